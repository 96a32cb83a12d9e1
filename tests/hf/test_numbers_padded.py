"""``pad`` pads number streams as it pads ids."""

import numpy as np
import pytest

pytest.importorskip("transformers")
pytest.importorskip("torch")

import hf_number_checks as number_checks
from hf_cases import SINGLE, SPELLED, oracle, ours


@pytest.mark.parametrize("numbers", ["fone", "all", "bits", "place value"])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("kind", ["bert", "llama", "roberta"])
def test_padding_of_streams(kind, side, numbers):
    chosen = (SINGLE | SPELLED)[numbers]
    tok, reference = ours(kind, chosen), oracle(kind, chosen)
    for options in (
        {},
        {"padding": "max_length", "max_length": 40},
        {"pad_to_multiple_of": 8},
        {"return_tensors": "np"},
        {"return_tensors": "pt"},
    ):
        number_checks.check_number_padding(
            tok, reference, ["a 5", "no number", "-3 4 5 b 1,234 text"], side, **options
        )


def test_padding_forms():
    """One feature, columns, tensors, and features whose order of keys differs."""
    tok = ours("bert")
    features = [dict(tok(text, return_numbers=True)) for text in ("a 5 b 6", "7")]
    expected = tok.pad(features)["number_value"]
    columns = {key: [one[key] for one in features] for key in features[0]}
    for shape in (columns, [features[0], dict(reversed(features[1].items()))]):
        assert tok.pad(shape)["number_value"] == expected
    alone = tok.pad(features[1], padding="max_length", max_length=6)
    assert list(alone["number_value"]) == [1.0, 7.0, 1.0, 1.0, 1.0, 1.0]
    assert [bool(one) for one in alone["number_mask"]] == [False, True] + [False] * 4
    arrays = tok.pad([{key: np.array(value) for key, value in one.items()} for one in features])
    assert isinstance(arrays["input_ids"], np.ndarray)
    assert arrays["number_value"].dtype == np.float64
    assert arrays["number_value"].tolist() == [list(row) for row in expected]
