"""Blocks and packed files: every token and number of every document once, no number cut that fits,
and no model sees one document from within another.
"""

import contextlib
import itertools

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from input_files import read_encoded, write_texts
from torch_rows import tokenizer

import numtok
from numtok.corpus.write import open_writer
from numtok.errors import SchemaError
from numtok.representations import P10, FloatBits, FoNE, PlaceValue, XVal
from numtok.tokenizer.layout import to_token_layout
from numtok.tokenizer.packing import NumberTokens

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
import torch_models as tiny

from numtok_torch import NumberModel, embedding_from_schema
from numtok_torch.data import IterableNumberDataset, NumberCollator, NumberDataset

SPELLED_OUT = [PlaceValue(), PlaceValue(brackets=False), P10()]
ONE_TOKEN = [
    *(XVal(), FloatBits(), FloatBits(compact=True)),
    *(FoNE(6, 4), FoNE(6, 4, compact=True)),
]
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
@example(PlaceValue(), ["12 -3.25 999999.5 12 12 12"] * 3, 9, 1, True, False)
@example(P10(), ["-3.25 one 12"] * 3, 4, 2, True, True)  # five tokens a number, four a block
@given(
    st.sampled_from(SPELLED_OUT + ONE_TOKEN),
    DOCUMENTS,
    st.integers(1, 40),
    st.integers(1, 4),
    st.booleans(),
    st.booleans(),
)
def test_blocks_are_the_documents_cut_up(representation, texts, size, rows, separated, in_tokens):
    """In either layout. Where they may be cut, the tests of packed files say."""
    tok = tokenizer(representation)
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
    if representation in ONE_TOKEN:  # never cut, never short
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


# --- packed files

TEXTS = [f"the sum of {n} and -{n}.5 is {2 * n + 1}, " * (1 + n % 4) for n in range(30)]
LENGTH = 48


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the texts packed in each way, and in a file of another kind."""
    folder = tmp_path_factory.mktemp("packed")
    source = write_texts(folder / "in.jsonl", TEXTS)
    options = {"numbers": "xval", "scale": 0.05, "keep_text": True, "pack": LENGTH}
    numtok.encode_files(source, folder / "sequential.parquet", **options)
    numtok.encode_files(source, folder / "best-fit.arrow", **options, pack_mode="best-fit")
    return folder


@pytest.mark.parametrize("name", ["sequential.parquet", "best-fit.arrow"])
def test_rows_say_where_documents_begin(name, folder):
    tok, path = numtok.Tokenizer.from_pretrained(None, "xval"), folder / name
    data = NumberDataset(path, nulls="skip")
    assert len(data) == len(list(IterableNumberDataset(path)))
    tokens = sum(len(tok.encode(text)) + 1 for text in TEXTS)
    assert sum(len(row["input_ids"]) for row in data) == tokens
    streams = {"input_ids", "number_index", "number_value", "number_scaled", "position_ids"}
    for number, row in enumerate(data):
        assert set(row) == streams
        places = [place for _, place in pieces(path, [number])]
        positions = [range(place.stop - place.start) for place in places]
        assert row["position_ids"].tolist() == list(itertools.chain(*positions))
        assert all(row["input_ids"][place.stop - 1] == 0 for place in places[:-1])  # the end token
        assert (row["number_value"] == np.round(row["number_scaled"] / 0.05, 1)).all()
    assert all("position_ids" not in row for row in NumberDataset(path, separate=False))
    with pytest.raises(
        SchemaError, match="packed already, in 48 tokens each; leave out block_size"
    ):
        NumberDataset(path, block_size=8)


def test_rows_of_datasets_give_the_same_batch(folder):
    """Rows that ``datasets`` reads hold lists, and all columns of the file."""
    datasets = pytest.importorskip("datasets")
    path = folder / "sequential.parquet"
    rows = list(datasets.Dataset(pq.read_table(path)))
    assert {"seq_lengths", "seq_documents", "seq_remaining", "number_text"} <= set(rows[0])
    data = NumberDataset(path)
    collate = NumberCollator.from_schema(data.schema, 0, objective="causal")
    batch, mine = collate(rows), collate(list(data))
    assert batch.keys() == mine.keys() and "attention_mask" not in batch
    for name, values in mine.items():
        torch.testing.assert_close(batch[name], values, rtol=0, atol=0)
    assert (batch["labels"][batch["position_ids"] == 0] == -100).all()
    cut = NumberCollator.from_schema(data.schema, 0, max_length=20, objective=None)
    with pytest.warns(UserWarning, match="cuts"):
        assert (cut(rows)["position_ids"] == batch["position_ids"][:, :20]).all()
    wrong = [{**rows[0], "seq_lengths": [1, 2]}]
    with pytest.raises(
        SchemaError, match="row 0: 'seq_lengths' has 3 values, but there are 48 tokens"
    ):
        collate(wrong)


def pieces(path, rows):
    """The line and the places of every piece, as the file has them."""
    stored = [row for batch in read_encoded(path) for row in batch["seq_lengths"].to_pylist()]
    ends = [list(itertools.accumulate(stored[row], initial=0)) for row in rows]
    return [
        (line, slice(*edge))
        for line, edges in enumerate(ends)
        for edge in itertools.pairwise(edges)
    ]


@pytest.mark.parametrize("model", ["stock", "number"])
def test_the_trainer_keeps_documents_apart(model, folder, tmp_path):
    """The loss that the Trainer logs is the mean over the tokens of all pieces alone, as it would
    not be if one saw the one before it.
    """
    datasets = pytest.importorskip("datasets")
    path = folder / "sequential.parquet"
    data = NumberDataset(path)
    collate = NumberCollator.from_schema(data.schema, 0, objective="causal")
    made = tiny.backbone("llama", vocab_size=data.metadata["vocab_size"])
    if model == "number":
        made = NumberModel(made, embedding_from_schema(data.schema, tiny.D))
    else:  # a stock model takes no streams: leave them out
        collate.drop = [*collate.drop, "number_mask", "number_value", "number_scaled"]
    size = {"max_steps": 1, "per_device_train_batch_size": len(data), "learning_rate": 0.0}
    trainer = transformers.Trainer(
        made,
        tiny.arguments(tmp_path, **size, remove_unused_columns=model == "number"),
        data_collator=collate,
        train_dataset=datasets.Dataset(pq.read_table(path)),
    )
    trainer.train()
    logged = next(entry["loss"] for entry in trainer.state.log_history if "loss" in entry)
    batch, total, count = collate(list(data)), 0.0, 0
    made.eval()
    for line, place in pieces(path, list(range(len(data)))):
        one = {
            name: stream[line : line + 1, place]
            for name, stream in batch.items()
            if name not in ("position_ids", "labels")
        }
        with torch.no_grad():
            logits = made(**one).logits[0, :-1]
        targets = one["input_ids"][0, 1:]
        total += float(torch.nn.functional.cross_entropy(logits, targets, reduction="sum"))
        count += len(logits)
    assert abs(logged - total / count) < 2e-4 * logged
