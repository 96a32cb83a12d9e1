"""Token layout: the same content with one value per token, which survives what lists per number do
not.
"""

import functools
import json

import numpy as np
import pytest
from effort import examples
from hostile import rows
from hypothesis import example, given, settings

import numtok
from numtok.representations import streams
from numtok.representations.registry import set_for_all
from numtok.tokenizer.layout import conform, tensors_as_lists, to_number_layout, to_token_layout
from numtok.tokenizer.schema import check_rows, declared_columns, read_metadata

NUMBERS = [
    "xval,fone:3,2,bits", "place", "place:bare", "digits:3,bare", "p10", "subword", "bins,logfourier",
    "xval,fone:3,2,bits compact",
]  # fmt: skip
TEXTS = ["is -28.5 or 1,234", None, "", "none", "7 8 9.25"]


@functools.cache
def tokenizer(numbers):
    names, *compact = numbers.split()
    return numtok.Tokenizer.from_pretrained(None, set_for_all(names, compact=bool(compact)))


@pytest.mark.parametrize("numbers", NUMBERS)
@settings(max_examples=examples(3))
@given(texts=rows)
@example(texts=TEXTS)
def test_it_is_the_same_content(numbers, texts):
    tok = tokenizer(numbers)
    batch = tok.encode_batch(texts, keep_text=True)
    token = to_token_layout(batch)
    token.validate(full=True)
    check_rows(conform(tensors_as_lists(token)))
    if numbers != "subword":  # where two numbers may begin in one token
        assert to_number_layout(token).equals(batch)
        assert to_number_layout(token).schema.equals(batch.schema, check_metadata=True)
    assert (
        tok.decode_batch(token).to_pylist()
        == tok.decode_batch(tensors_as_lists(token)).to_pylist()
        == texts
    )
    for first in range(0, len(texts), 3):
        assert to_token_layout(batch.slice(first, 3)).equals(token.slice(first, 3))


@pytest.mark.parametrize("numbers", NUMBERS)
def test_each_value_stands_at_the_first_token_of_its_number(numbers):
    batch = tokenizer(numbers).encode_batch(TEXTS, keep_text=True)
    token = to_token_layout(batch)
    fills = {name: forms[0].fill for name, forms in streams().items()} | {"number_text": ""}
    for row, spread in zip(batch.to_pylist(), token.to_pylist(), strict=True):
        if row["input_ids"] is None:
            assert all(one is None for one in spread.values())
            continue
        places = row["number_index"]
        assert [at for at, here in enumerate(spread["number_mask"]) if here] == places
        for name in fills.keys() & row.keys():
            assert len(spread[name]) == len(row["input_ids"])
            if name != "place_value":
                assert [spread[name][at] for at in places] == row[name]
                others = np.delete(np.array(spread[name]), places, axis=0)
                assert (others == fills[name]).all()


def test_the_metadata_say_so():
    batch = tokenizer("place").encode_batch(TEXTS)
    token = to_token_layout(batch)
    described = json.loads(token.schema.metadata[b"numtok"])
    assert described == {**json.loads(batch.schema.metadata[b"numtok"]), "layout": "token"}
    assert [read_metadata(one.schema)["layout"] for one in (batch, token)] == ["number", "token"]
    assert to_token_layout(token) is token and to_number_layout(batch) is batch
    assert set(declared_columns(token.schema)) >= set(token.schema.names)
