"""Blocks: every token and number of every document once, no number cut that fits, from files of
every kind, in any order, and through a real training.
"""

from __future__ import annotations

import functools
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

import numtok
from numtok.corpus.write.encoded import open_writer
from numtok.errors import NumtokError, SchemaError
from numtok.representations import P10, FloatBits, FoNE, PlaceValue, XVal

torch = pytest.importorskip("torch")
from numtok_torch.data import IterableNumberDataset, NumberCollator, NumberDataset
from numtok_torch.data.rows import NumberTokens
from numtok_torch.data.storage import Storage

REPRESENTATIONS: dict[str, Any] = {
    "xval": XVal(),
    "place": PlaceValue(),
    "p10": P10(),
    "bits": FloatBits(),
    "bits-compact": FloatBits(compact=True),
    "fone": FoNE(6, 4),
    "fone-compact": FoNE(6, 4, compact=True),
}
END = "<|endoftext|>"
PER_TOKEN = ("input_ids", "place_value")
DOCUMENTS = st.lists(
    st.lists(
        st.sampled_from(
            [
                "one",
                "-3.25",
                "12",
                "0",
                "the mass",
                "999999.5",
                "7 8 9",
                "1234567890123456789012345",
                "=",
            ]
        ),
        max_size=12,
    ).map(" ".join),
    max_size=8,
)


@functools.cache
def tokenizer(name: str) -> numtok.Tokenizer:
    return numtok.Tokenizer.from_pretrained(None, [REPRESENTATIONS[name]])


def chunked(batch: pa.RecordBatch, rows: int) -> pa.Table:
    return pa.Table.from_batches(
        [batch.slice(at, rows) for at in range(0, batch.num_rows, rows)], batch.schema
    )


def spans(tok: numtok.Tokenizer, row: dict[str, Any]) -> list[tuple[int, int]]:
    """First token and end of each number of a document, by a search of its own."""
    tokens = NumberTokens.from_schema(tok.batch_schema())
    ids, found = row["input_ids"].tolist(), []
    for first in row["number_index"].tolist():
        found.append(
            (
                first,
                (
                    ids.index(tokens.end, first) + 1
                    if tokens.end is not None
                    else first + tokens.length
                ),
            )
        )
    return found


def slow_blocks(
    tok: numtok.Tokenizer, batch: pa.RecordBatch, size: int, separator: int | None
) -> tuple[list[dict[str, Any]], int]:
    """Token by token: the blocks, and how many numbers are longer than one."""
    tokens: list[
        tuple[int, int, int, int]
    ] = []  # id, place value, place in the document, which number, else -1
    numbers: list[tuple[int, int, dict[str, Any]]] = []
    for row in NumberDataset(batch):
        begin = len(tokens)
        places = row.get("place_value", np.zeros(len(row["input_ids"]), int)).tolist()
        tokens += [
            (number, place, at, 0)
            for at, (number, place) in enumerate(
                zip(row["input_ids"].tolist(), places, strict=True)
            )
        ]
        if separator is not None and len(row["input_ids"]):
            tokens.append((separator, 0, len(row["input_ids"]), 0))
        for which, (first, stop) in enumerate(spans(tok, row)):
            numbers.append(
                (
                    begin + first,
                    begin + stop,
                    {
                        name: row[name][which]
                        for name in row
                        if name not in (*PER_TOKEN, "number_index")
                    },
                )
            )
    blocks, begin = [], 0
    while begin < len(tokens):
        end = min(begin + size, len(tokens))
        across = [
            first for first, stop, _ in numbers if first < end < stop and stop - first <= size
        ]
        end = across[0] if across else end
        inside = [
            (first - begin, values)
            for first, stop, values in numbers
            if begin <= first and stop <= end
        ]
        offset, positions = 0, []
        for k, (_, _, local, _) in enumerate(tokens[begin:end]):
            offset = k if local == 0 else offset
            positions.append(k - offset)
        blocks.append({"tokens": tokens[begin:end], "numbers": inside, "positions": positions})
        begin = end
    return blocks, sum(stop - first > size for first, stop, _ in numbers)


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
def test_blocks_are_the_documents_cut_up(
    name: str, texts: list[str], size: int, rows: int, separated: bool, named: bool
) -> None:
    tok = tokenizer(name)
    batch = tok.encode_batch(texts)
    separator = (
        next(token["id"] for token in tok.config["added_tokens"] if token["content"] == END)
        if separated
        else None
    )
    table = chunked(batch, rows)
    options: dict[str, Any] = {
        "block_size": size,
        "tokenizer": tok,
        "separator": END if separated and named else separator,
    }
    data = NumberDataset(table, **options)
    expected, long = slow_blocks(tok, batch, size, separator)
    for blocks in (list(data), list(IterableNumberDataset(table, **options))):
        assert len(data) == len(blocks) == len(expected)
        for block, reference in zip(blocks, expected, strict=True):
            assert len(block["input_ids"]) <= size
            assert block["input_ids"].tolist() == [token[0] for token in reference["tokens"]]
            assert block["position_ids"].tolist() == reference["positions"]
            if name == "place":
                assert block["place_value"].tolist() == [token[1] for token in reference["tokens"]]
            assert block["number_index"].tolist() == [first for first, _ in reference["numbers"]]
            for stream in set(block) - {*PER_TOKEN, "number_index", "position_ids"}:
                assert len(block[stream]) == len(reference["numbers"])
                for mine, (_, values) in zip(block[stream], reference["numbers"], strict=True):
                    np.testing.assert_array_equal(mine, values[stream])
    assert data.cut_numbers == long
    whole = NumberDataset(batch)
    joined = [
        number for block in data for number in block["input_ids"].tolist() if number != separator
    ]
    assert joined == [number for row in whole for number in row["input_ids"].tolist()]
    values = [value for block in data for value in block["number_value"].tolist()]
    assert len(values) == sum(len(row["number_value"]) for row in whole) - long
    if not long:
        assert values == [value for row in whole for value in row["number_value"].tolist()]
    if name not in ("place", "p10"):
        assert all(
            len(block["input_ids"]) == size for block in list(data)[:-1]
        )  # one token a number: never cut, never short


@pytest.mark.parametrize("kind", ["parquet", "arrow", "arrow-plain"])
def test_blocks_of_files(kind: str, tmp_path: Path) -> None:
    """From two files of several chunks, at random, after pickling, with null documents."""
    tok = tokenizer("place")
    batch = tok.encode_batch(
        [f"a {n}.5 of -{n * n}" if n % 7 else None for n in range(60)], keep_text=True
    )
    for part in range(2):
        with open_writer(
            tmp_path / f"{part}.{kind.split('-')[0]}",
            batch.schema,
            compression=None if kind == "arrow-plain" else "zstd",
        ) as writer:
            for at in range(part * 30, part * 30 + 30, 6):
                writer.write(batch.slice(at, 6))
    options = {
        "columns": ["number_value", "place_value"],
        "block_size": 11,
        "nulls": "skip",
    }
    data = NumberDataset(tmp_path, tokenizer=tok, cache_bytes=1, **options)
    expected = list(NumberDataset(batch, **options))
    assert len(data) == len(expected) > 30
    order = np.random.default_rng(0).permutation(len(data)).tolist()
    for made in (data, pickle.loads(pickle.dumps(data))):
        for number, block in zip(
            order, made.__getitems__([n - len(data) for n in order]), strict=True
        ):
            assert sorted(block) == sorted(
                [
                    "input_ids",
                    "number_index",
                    "number_value",
                    "place_value",
                    "position_ids",
                ]
            )
            for name, values in block.items():
                np.testing.assert_array_equal(values, expected[number][name])
    assert [value for block in data for value in block["number_value"]] == [
        value for n in range(60) if n % 7 for value in (n + 0.5, -n * n)
    ]
    with pytest.raises(IndexError, match=f"row {len(data)} of"):
        data[len(data)]


def test_one_text_without_documents() -> None:
    batch = tokenizer("xval").encode_batch(["one 2", "three"])
    assert all(
        "position_ids" not in block for block in NumberDataset(batch, block_size=2, separate=False)
    )
    assert len(NumberDataset(tokenizer("xval").encode_batch([]), block_size=2)) == 0
    assert (
        len(NumberDataset(tokenizer("xval").encode_batch(["", ""]), block_size=2, separator=0)) == 0
    )


def test_access_reads_only_the_chunks_of_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    data = NumberDataset(
        chunked(tokenizer("xval").encode_batch(["1 2 3 4 5 6 7 8"] * 50), 5),
        block_size=16,
        cache_bytes=0,
    )
    read: list[int] = []
    original = Storage.read
    monkeypatch.setattr(
        Storage, "read", lambda self, number: read.append(number) or original(self, number)
    )
    data.__getitems__([7, 6, 5])
    assert len(set(read)) <= 3 and len(read) <= 4
    assert np.shares_memory(data[0]["number_value"], data._storage.read(0).arrays[2][1])  # a view


@pytest.mark.parametrize("shuffle", [False, True])
def test_shares_and_resuming_of_blocks(shuffle: bool) -> None:
    table = chunked(tokenizer("p10").encode_batch([f"{n} and {n + 1} more" for n in range(90)]), 8)

    def make(rank: int = 0, world: int = 1, size: int = 12) -> IterableNumberDataset:
        return IterableNumberDataset(
            table, shuffle=shuffle, window=2, rank=rank, world_size=world, block_size=size
        )

    def ids(blocks: Any) -> list[list[int]]:
        return [block["input_ids"].tolist() for block in blocks]

    everything = ids(make())
    assert sorted(everything) == sorted(ids(NumberDataset(table, block_size=12))) and (
        everything == ids(make(size=12))
    )
    shares = [ids(make(rank, 3)) for rank in range(3)]
    assert [block for share in shares for block in share] == everything
    assert [len(share) for share in shares] == [len(make(rank, 3)) for rank in range(3)]
    running = make()
    rows = iter(running)
    for _ in range(17):
        next(rows)
    state = json.loads(json.dumps(running.state_dict()))
    resumed = make()
    resumed.load_state_dict(state)
    assert ids(resumed) == everything[17:]
    with pytest.raises(SchemaError, match=r"the state has (rows|block_size)"):
        make(size=13).load_state_dict(state)


def test_what_blocks_refuse(tmp_path: Path) -> None:
    batch = tokenizer("xval").encode_batch(["1", None], keep_text=True)
    number = NumberTokens.from_schema(batch.schema).ids[0]
    for options, message in (
        ({"block_size": 0}, "block_size=0"),
        ({"block_size": 4}, "row 1 is null.*skip"),
        (
            {"block_size": 4, "nulls": "skip", "columns": ["text"]},
            "'text' has no value for each token",
        ),
        ({"separator": 1}, "give block_size"),
        ({"block_size": 4, "separator": END}, "tokenizer=..."),
        ({"block_size": 4, "separator": number}, "none that numbers are made of"),
        ({"block_size": 4, "separator": 10**6}, "no id of the tokenizer"),
        (
            {"block_size": 4, "separator": "[NONE]", "tokenizer": tokenizer("xval")},
            "no token '\\[NONE\\]'",
        ),
    ):
        with pytest.raises(NumtokError, match=message):
            NumberDataset(batch, **options)
    assert len(list(IterableNumberDataset(batch, block_size=4))) == 1
    ids = pa.ListArray.from_arrays(
        pa.array([0, 1, 2], pa.int32()),
        pa.array([number, 5], pa.int32()),
        mask=pa.array([False, True]),
    )
    hidden = batch.set_column(
        0, batch.schema.field(0), ids
    )  # what Arrow allows to lie below a null is no token
    (row,) = NumberDataset(hidden, block_size=4, nulls="skip")
    assert row["input_ids"].tolist() == [number]


# --- into batches
# -----------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [False, True])
def test_a_batch_of_blocks_keeps_documents_apart(pack: bool) -> None:
    tok = tokenizer("xval")
    data = NumberDataset(
        tok.encode_batch(["one two 3", "4 five", "6"]), block_size=4, tokenizer=tok
    )
    batch = NumberCollator.from_schema(data.schema, 0, objective="causal", max_length=4, pack=pack)(
        list(data)
    )
    assert "attention_mask" not in batch
    assert batch["position_ids"].tolist() == [[0, 1, 2, 0], [0, 0, 0, 0]]
    assert batch["labels"][0].tolist() == [
        -100,
        *batch["input_ids"][0, 1:3].tolist(),
        -100,
    ]  # no document follows from another
    assert (batch["labels"][1] == -100).all()
    shown = NumberCollator.from_schema(
        data.schema, 0, objective="causal", max_length=4, pack=pack, pack_attention_mask=True
    )(list(data))
    assert shown["attention_mask"].tolist() == [[1, 1, 1, 1], [1, 1, 0, 0]]


def test_blocks_of_parquet_train(tmp_path: Path) -> None:
    """From a file through the Trainer: the loss is finite and falls, and nothing of the corpus is
    lost.
    """
    transformers = pytest.importorskip("transformers")
    from numtok_torch import NumberModel, embedding_from_schema, head_from_schema

    tok = numtok.Tokenizer.from_pretrained(None, [XVal(scale=0.05)])
    texts = [f"the sum of {n} and {n + 1} is {2 * n + 1}" for n in range(40)]
    pq.write_table(
        pa.Table.from_batches([tok.encode_batch(texts)]), tmp_path / "a.parquet", row_group_size=8
    )
    data = NumberDataset(tmp_path / "a.parquet", block_size=32, separator=END, tokenizer=tok)
    assert sum(len(block["input_ids"]) for block in data) == sum(
        len(tok.encode(text)["input_ids"]) + 1 for text in texts
    )
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=tok.vocab_size, n_embd=16, n_layer=1, n_head=2, n_positions=32
    )
    model = NumberModel(
        transformers.GPT2LMHeadModel(config),
        embedding_from_schema(data.schema, 16),
        head_from_schema(data.schema, 16),
    )
    arguments = transformers.TrainingArguments(
        str(tmp_path / "out"),
        max_steps=12,
        learning_rate=1e-2,
        logging_steps=1,
        report_to=[],
        use_cpu=True,
        save_strategy="no",
        disable_tqdm=True,
    )
    collator = NumberCollator.from_schema(data.schema, pad_token_id=0, objective="causal")
    trainer = transformers.Trainer(model, arguments, data_collator=collator, train_dataset=data)
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert np.isfinite(losses).all() and np.mean(losses[-3:]) < 0.8 * losses[0]
