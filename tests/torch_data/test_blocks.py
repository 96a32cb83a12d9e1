"""Blocks: every token and number of every document once, no number cut that fits, from files of
every kind, in any order, and through a real training.
"""

import contextlib

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch_rows import tokenizer

from numtok.corpus.write.encoded import open_writer
from numtok.representations import P10, FloatBits, FoNE, PlaceValue, XVal
from numtok.tokenizer.layout import to_token_layout
from numtok.tokenizer.packing import NumberTokens

torch = pytest.importorskip("torch")
from numtok_torch.data import NumberCollator, NumberDataset

REPRESENTATIONS = {
    "xval": XVal(),
    "place": PlaceValue(),
    "bare": PlaceValue(brackets=False),
    "p10": P10(),
    "bits": FloatBits(),
    "bits-compact": FloatBits(compact=True),
    "fone": FoNE(6, 4),
    "fone-compact": FoNE(6, 4, compact=True),
}
END = "<|endoftext|>"
WORDS = [
    "one",
    "-3.25",
    "12",
    "0",
    "the mass",
    "999999.5",
    "7 8 9",
    "1234567890" * 2 + "12345",
    "=",
]
DOCUMENTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), max_size=8)


def chunked(batch, rows):
    parts = [batch.slice(at, rows) for at in range(0, batch.num_rows, rows)]
    return pa.Table.from_batches(parts, batch.schema)


def joined(rows, separator=None):
    """The streams of rows laid end to end, a separator after each; ``number_index`` counts from the
    first token of all, ``position_ids`` from that of each document.
    """
    streams, begin = {}, 0
    for row in rows:
        parts, count = dict(row), len(row["input_ids"])
        parts.setdefault("position_ids", np.arange(count + (separator is not None)))
        parts["number_index"] = parts["number_index"] + begin
        if separator is not None:
            parts["input_ids"] = np.append(parts["input_ids"], separator)
            if "place_value" in parts:
                parts["place_value"] = np.append(parts["place_value"], 0)
        begin += len(parts["input_ids"])
        for name, values in parts.items():
            streams.setdefault(name, []).append(values)
    return {name: np.concatenate(some) for name, some in streams.items()}


@pytest.mark.thorough
@settings(max_examples=examples(20, thorough=60))
@example("place", ["12 -3.25 999999.5 12 12 12"] * 3, 9, 1, True, False)
@example("p10", ["-3.25 one 12"] * 3, 4, 2, True, True)  # five tokens a number, four a block
@given(
    st.sampled_from(sorted(REPRESENTATIONS)),
    DOCUMENTS,
    st.integers(1, 40),
    st.integers(1, 4),
    st.booleans(),
    st.booleans(),
)
def test_blocks_are_the_documents_cut_up(name, texts, size, rows, separated, in_tokens):
    """In either layout. Where they may be cut, the tests of packed files say."""
    tok = tokenizer(REPRESENTATIONS[name])
    batch = tok.encode_batch(texts)
    added = {token["content"]: token["id"] for token in tok.config["added_tokens"]}
    separator = added[END] if separated else None
    table = chunked(to_token_layout(batch) if in_tokens else batch, rows)
    given = END if separated and rows % 2 else separator
    spans = [tok.numbers_in(row["input_ids"]) for row in NumberDataset(batch)]
    long = sum(stop - start > size for row in spans for start, stop, _ in row)
    told = pytest.warns(UserWarning, match=f"^{long} numbers are longer than a block")
    with told if long else contextlib.nullcontext():
        data = NumberDataset(table, block_size=size, tokenizer=tok, separator=given)
    sizes = [len(block["input_ids"]) for block in data]
    assert all(0 < one <= size for one in sizes)
    expected, found = joined(NumberDataset(batch), separator), joined(data)
    first, cut = np.repeat(np.cumsum(sizes) - sizes, sizes), np.arange(sum(sizes))
    assert found.keys() == (expected.keys() if len(data) else set())
    for stream, values in found.items():
        if stream == "position_ids":  # count from the row, where a document began before it
            expected[stream] = np.minimum(expected[stream], cut - first)
        np.testing.assert_array_equal(values, expected[stream])
    if name not in ("place", "bare", "p10"):  # one token a number: never cut, never short
        assert set(sizes[:-1]) <= {size}


def test_blocks_of_files(tmp_path):
    """From two files of several chunks, with null documents."""
    tok = tokenizer(PlaceValue())
    batch = tok.encode_batch([f"a {n}.5 of -{n * n}" if n % 7 else None for n in range(60)])
    for part in range(2):
        with open_writer(tmp_path / f"{part}.parquet", batch.schema) as writer:
            for at in range(part * 30, part * 30 + 30, 6):
                writer.write(batch.slice(at, 6))
    options = {"block_size": 11, "nulls": "skip"}
    data = NumberDataset(tmp_path, tokenizer=tok, **options)
    expected = NumberDataset(batch, **options)
    assert len(data) == len(expected) > 30
    for block, wanted in zip(data, expected, strict=True):
        assert block.keys() == wanted.keys()
        for name, values in block.items():
            np.testing.assert_array_equal(values, wanted[name])


def test_one_text_without_documents():
    tok = tokenizer(XVal())
    blocks = NumberDataset(tok.encode_batch(["one 2", "three"]), block_size=2, separate=False)
    assert all("position_ids" not in block for block in blocks)
    assert len(NumberDataset(tok.encode_batch([]), block_size=2)) == 0
    assert len(NumberDataset(tok.encode_batch(["", ""]), block_size=2)) == 0


def test_what_lies_below_a_null_is_no_token():
    tok = tokenizer(XVal())
    batch = tok.encode_batch(["1", None], keep_text=True)
    number = NumberTokens.from_schema(batch.schema).ids[0]
    flat, mask = pa.array([number, 5], pa.int32()), pa.array([False, True])
    ids = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), flat, mask=mask)
    hidden = batch.set_column(0, batch.schema.field(0), ids)
    # what Arrow allows to lie below a null is no token
    (row,) = NumberDataset(hidden, block_size=4, nulls="skip")
    assert row["input_ids"].tolist() == [number]


# --- into batches


@pytest.mark.parametrize("pack", [False, True])
def test_a_batch_of_blocks_keeps_documents_apart(pack):
    tok = tokenizer(XVal())
    encoded = tok.encode_batch(["one two 3", "4 five", "6"])
    data = NumberDataset(encoded, block_size=4, tokenizer=tok)
    options = {"objective": "causal", "max_length": 4, "pack": pack}
    batch = NumberCollator.from_schema(data.schema, 0, **options)(list(data))
    assert "attention_mask" not in batch
    assert batch["position_ids"].tolist() == [[0, 1, 2, 0], [0, 0, 0, 0]]
    # no document follows from another
    ids = batch["input_ids"][0, 1:3].tolist()
    assert batch["labels"].tolist() == [[-100, *ids, -100], [-100] * 4]
    shown = NumberCollator.from_schema(data.schema, 0, **options, pack_attention_mask=True)
    assert shown(list(data))["attention_mask"].tolist() == [[1, 1, 1, 1], [1, 1, 0, 0]]
