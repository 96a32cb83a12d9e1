"""One number from many samples: the median or the mean of what was written, with an interval."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from torch_generators import scripted, setting

from numtok.tokenizer.generated_numbers import number_ids
from numtok_torch import Estimate, Generated, MixtureHead, generate

PROMPTS = ["It weighs", "a b c and"]


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(5)


def sampled(made, tokenizer, prompts, **options):
    found = generate(made, tokenizer, prompts, **({"samples": 200} | options))
    assert isinstance(found, Generated)
    return found


@pytest.mark.parametrize("reduce", ["median", "mean"])
def test_values_are_drawn_from_the_head(reduce):
    made, tokenizer, _ = setting("xval")
    made.head = MixtureHead(made.head.d_model, 1)  # 7 ± 0.5, whatever is before
    with torch.no_grad():
        for one in made.head.parameters():
            one.zero_()
        made.head.network[-1].bias.copy_(torch.tensor([0.0, 7.0, math.log(math.expm1(0.5))]))
    number = number_ids(tokenizer)[0]
    options = scripted(tokenizer, PROMPTS[0], [number])
    found = sampled(made, tokenizer, PROMPTS[:1], reduce=reduce, **options)
    (estimate,) = found.estimates
    assert estimate.value == pytest.approx(7.0, abs=0.15)
    low, high = estimate.interval
    assert (low, high) == (pytest.approx(7 - 0.82, abs=0.25), pytest.approx(7 + 0.82, abs=0.25))
    assert len(estimate.samples) == len(found.texts) == 200
    assert len(set(estimate.samples)) > 150


@pytest.mark.parametrize("name", ["xval", "p10"])
def test_estimates_are_of_the_texts_of_their_prompt(name):
    made, tokenizer, options = setting(name)
    found = sampled(made, tokenizer, PROMPTS, samples=9, coverage=0.5, **options)
    for prompt, estimate in enumerate(found.estimates):
        values = found.values[9 * prompt : 9 * prompt + 9]
        firsts = [one[0] for one in values if one and not math.isnan(one[0])]
        assert estimate.samples == firsts
        assert estimate.value == pytest.approx(np.median(firsts))
        assert estimate.interval == pytest.approx(tuple(np.quantile(firsts, [0.25, 0.75])))
    assert len(found.estimates) == len(PROMPTS)


def test_what_is_no_number_does_not_count():
    assert Estimate.of([[1.0, 9.0], [], [math.nan], [3.0]], "mean", 0.9).samples == [1.0, 3.0]
    nothing = Estimate.of([[], [math.nan]], "median", 0.9)
    assert math.isnan(nothing.value) and math.isnan(nothing.interval[0]) and not nothing.samples
    assert dataclasses.asdict(Estimate.of([[2.0]], "median", 0.9)) == {
        "value": 2.0,
        "interval": (2.0, 2.0),
        "samples": [2.0],
    }
