"""Streams of 64 bits hold every bit of a float64."""

import itertools

import pytest

pytest.importorskip("transformers")
pytest.importorskip("torch")

import numpy as np

from numtok.hf import NumberTokenizer
from numtok.representations import FloatBits


@pytest.mark.parametrize("compact", [False, True])
def test_every_bit_of_a_float64(compact):
    """As lists and as tensors, padded; compact, as int64 of the same bits, as torch has them."""
    numbers = FloatBits(width=64, compact=compact)
    tokenizer = NumberTokenizer.from_pretrained(
        None, numbers=numbers, return_numbers=True, pad_token="<|endoftext|>"
    )
    rows = ["a -0.30000000000000004 and 5e-324", "none", "7.000000000000001"]
    values = np.array([-0.30000000000000004, 5e-324, 7.000000000000001])
    expected = values.view(np.int64)
    if not compact:
        expected = np.unpackbits(values.astype(">f8").view(np.uint8)).reshape(-1, 64)
    called = dict(tokenizer(rows))
    flat = zip(
        *(itertools.chain(*called[f"number_{one}"]) for one in ("bits", "mask")), strict=True
    )
    assert [bits for bits, is_number in flat if is_number] == expected.tolist()
    padded = tokenizer(rows, padding=True, return_tensors="pt")
    assert padded["number_bits"][padded["number_mask"]].tolist() == expected.tolist()
    if compact:  # a file holds them without a sign, and so do the lists that datasets makes of it
        unsigned = [[one % 2**64 for one in row] for row in called["number_bits"]]
        for given in (called, called | {"number_bits": unsigned}):
            assert tokenizer.pad(given)["number_bits"] == padded["number_bits"].tolist()
