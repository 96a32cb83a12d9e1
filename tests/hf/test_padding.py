"""``pad`` pads number streams as it pads ids, and so do the data collators of transformers."""

import numpy as np
import pytest

pytest.importorskip("transformers")
pytest.importorskip("torch")

import hf_checks as checks
import torch
import transformers
from hf_cases import SINGLE, SPELLED, TEXTS, build_ours, oracle, ours
from hf_compare import attributes, same
from hf_oracle import NEUTRAL

from numtok.representations import FloatBits, FoNE, XVal


@pytest.mark.parametrize("numbers", ["fone", "all", "bits", "place value"])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_padding_of_streams(kind, side, numbers):
    """``pad`` pads every stream as it pads the ids, and gives what padding within the call gives."""
    chosen = (SINGLE | SPELLED)[numbers]
    tok, reference = ours(kind, chosen), oracle(kind, chosen)
    texts = ["a 5", "no number", "-3 4 5 b 1,234 text"]
    expected = [reference.call(text).rows[0] for text in texts]
    long = {"padding": "max_length", "max_length": 40}
    tensors = [{"return_tensors": one} for one in ("np", "pt")]
    for options in ({}, long, {"pad_to_multiple_of": 8}, *tensors):
        with attributes(tok, {"padding_side": side}):
            features = [tok(text, return_numbers=True) for text in texts]
            padded = tok.pad(features, **options)
            plain = [{key: one[key] for key in ("input_ids", "attention_mask")} for one in features]
            bare = tok.pad(plain, **options)
        for name in ("input_ids", "attention_mask"):
            same(padded[name], bare[name])
        width = len(bare["input_ids"][0])
        for name in ["number_value", "number_mask", *reference.extra_streams()]:
            for ours_, row in zip(padded[name], expected, strict=True):
                stream = row.stream(name)
                shape = next((np.asarray(one).shape for one in stream), ())
                filling = [np.full(shape, NEUTRAL.get(name, 0))] * (width - len(stream))
                theirs = filling + stream if side == "left" else stream + filling
                checks.same_stream(ours_, theirs)
        if "return_tensors" in options:
            dtypes = [str(padded[name].dtype) for name in ("number_value", "number_mask")]
            assert [one.removeprefix("torch.") for one in dtypes] == ["float64", "bool"]


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


def test_words_of_64_bits():
    """As int64 of the same bits, which torch has; a file holds them without a sign, and so do the
    lists that ``datasets`` makes of it.
    """
    tok = build_ours("bert", (FloatBits(width=64, compact=True),), return_numbers=True)
    rows = dict(tok(["a -0.30000000000000004 and 5e-324", "none", "7.000000000000001"]))
    expected = np.array([-0.30000000000000004, 5e-324, 7.000000000000001]).view(np.int64)
    unsigned = [[one % 2**64 for one in row] for row in rows["number_bits"]]
    for given in (rows, rows | {"number_bits": unsigned}):
        padded = tok.pad(given, return_tensors="pt")
        assert padded["number_bits"][padded["number_mask"]].tolist() == expected.tolist()


# The collators of transformers


COLLATORS = {
    "padding": lambda tok: transformers.DataCollatorWithPadding(tok, pad_to_multiple_of=4),
    "token classification": transformers.DataCollatorForTokenClassification,
    "sequences": transformers.DataCollatorForSeq2Seq,
}


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", COLLATORS)
def test_collators_with_streams(name, side):
    """Those that only pad take the streams along."""
    numbers = (XVal(), FoNE(6, 4, overflow="clip"))
    tok = build_ours("bert", numbers, return_numbers=True)
    tok.padding_side = side
    features = [dict(tok(text)) for text in TEXTS]
    for one in features if name != "padding" else ():
        one["labels"] = [7] * len(one["input_ids"])
    batch = COLLATORS[name](tok)(features)
    multiple = 4 if name == "padding" else None
    padded = tok(TEXTS, padding=True, pad_to_multiple_of=multiple, return_tensors="pt")
    for key in ("input_ids", "number_value", "number_mask", "number_scaled", "number_fourier"):
        assert torch.equal(batch[key], padded[key]), key
    assert batch["number_value"].dtype == torch.float64 and batch["number_mask"].dtype == torch.bool
