"""One number from many samples: the median or the mean of what was written, with an interval."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from torch_generators import setting

from numtok_torch import Estimate, Generated, generate

PROMPTS = ["It weighs", "a b c and"]


@pytest.mark.parametrize("name", ["xval", "p10", "mixture"])
def test_estimates_are_of_the_texts_of_their_prompt(name):
    """Draw the values, where the head can."""
    torch.manual_seed(5)
    made, tokenizer, options = setting(name)
    options |= {"samples": 9, "coverage": 0.5}
    if name == "mixture":  # the same tokens each time
        options["top_k"] = 1
    found = generate(made, tokenizer, PROMPTS, **options)
    assert isinstance(found, Generated) and len(found.texts) == 9 * len(PROMPTS)
    for prompt, estimate in enumerate(found.estimates):
        values = found.values[9 * prompt : 9 * prompt + 9]
        firsts = [one[0] for one in values if one and not math.isnan(one[0])]
        assert estimate.samples == firsts
        assert name != "mixture" or len(set(firsts)) == 9
        assert estimate.value == pytest.approx(np.median(firsts))
        assert estimate.interval == pytest.approx(tuple(np.quantile(firsts, [0.25, 0.75])))
    assert len(found.estimates) == len(PROMPTS)


def test_what_is_no_number_does_not_count():
    assert Estimate.of([[1.0, 9.0], [], [math.nan], [3.0]], "mean", 0.9).samples == [1.0, 3.0]
    assert Estimate.of([[1.0], [3.0], [8.0]], "mean", 0.9).value == 4.0
    nothing = Estimate.of([[], [math.nan]], "median", 0.9)
    assert math.isnan(nothing.value) and math.isnan(nothing.interval[0]) and not nothing.samples
    assert dataclasses.asdict(Estimate.of([[2.0]], "median", 0.9)) == {
        "value": 2.0,
        "interval": (2.0, 2.0),
        "samples": [2.0],
    }
