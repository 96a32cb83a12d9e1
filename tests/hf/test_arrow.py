"""Arrow in, Arrow out: ``encode_arrow`` gives what a call gives, with the other columns of the
table, in ``datasets`` too.
"""

from __future__ import annotations

import struct
from typing import Any

import pytest

pytest.importorskip("transformers")
pytest.importorskip("torch")

import pyarrow as pa
from hf_cases import MIXED_TEXTS, REPRESENTATIONS, TEXTS, build_ours, build_source

from numtok.errors import InputError
from numtok.hf import NumberTokenizer
from numtok.representations import FloatBits


@pytest.mark.parametrize(("removed", "num_proc"), [(None, None), (["text"], None), (None, 2)])
def test_map_to_arrow_keeps_the_other_columns(
    removed: list[str] | None, num_proc: int | None, tmp_path: Any
) -> None:
    """Their values, order and kinds (a class label, nested lists), as after an ordinary map."""
    datasets = pytest.importorskip("datasets")
    tok = build_ours("gpt2", return_numbers=True)
    label = datasets.ClassLabel(names=["no", "yes"])
    kinds = {
        "id": datasets.Value("string"),
        "text": datasets.Value("string"),
        "labels": label,
        "spans": datasets.List(datasets.Value("int64")),
    }
    columns = {
        "id": [f"row {n}" for n in range(7)],
        "text": [f"it is {n}.5" for n in range(7)],
        "labels": [n % 2 for n in range(7)],
    }
    columns["spans"] = [[n] * (n % 3) for n in range(7)]
    datasets.Dataset.from_dict(columns, features=datasets.Features(kinds)).save_to_disk(
        str(tmp_path / "data")
    )
    dataset = datasets.load_from_disk(str(tmp_path / "data"))
    options = {"batched": True, "batch_size": 3, "remove_columns": removed}
    ordinary = dataset.map(lambda rows: dict(tok(rows["text"])), **options)
    kept = {} if removed else {"fn_kwargs": {"keep_column": True}}
    mapped = (
        dataset.with_format("arrow")
        .map(tok.encode_arrow, num_proc=num_proc, **options, **kept)
        .with_format(None)
    )
    assert mapped.column_names == ordinary.column_names
    assert mapped[:] == ordinary[:]
    assert all(mapped.features[name] == kinds[name] for name in kinds if name in mapped.features)
    again = (
        mapped.with_format("arrow")
        .map(lambda table: tok.encode_arrow(table, column="id"), batched=True)
        .with_format(None)
    )
    assert "id" not in again.column_names
    # replaced, as by an ordinary map
    assert again["input_ids"][:] == tok(columns["id"])["input_ids"]
    assert again["labels"][:] == columns["labels"]


def test_arrow_of_any_kind() -> None:
    """A table, a batch, a column, a chunked one; other types of text."""
    tok = build_ours("bert")
    table = pa.table({"words": pa.chunked_array([TEXTS[:1], TEXTS[1:]])})
    expected = tok(TEXTS)["input_ids"]
    whole = table.combine_chunks()
    for texts in (
        table,
        whole.to_batches()[0],
        table["words"].cast(pa.large_string()),
        whole["words"].chunk(0),
        pa.array(["", *TEXTS])[1:],
    ):
        assert tok.encode_arrow(texts, column="words")["input_ids"].to_pylist() == expected
    assert tok.encode_arrow(pa.array([], pa.string())).num_rows == 0


@pytest.mark.parametrize("name", REPRESENTATIONS)
@pytest.mark.parametrize("kind", ["gpt2", "bert", "t5"])
def test_arrow_is_the_call(kind: str, name: str) -> None:
    tokenizer = NumberTokenizer.from_tokenizer(build_source(kind), numbers=REPRESENTATIONS[name])
    rows = [text for text in MIXED_TEXTS if "1e400" not in text]
    for given_rows in (
        pa.table({"text": rows}),
        pa.record_batch({"text": rows}),
        pa.chunked_array([rows[:2], rows[2:]]),
        pa.array(rows),
    ):
        for options in (
            {"return_numbers": True},
            {"return_numbers": False, "max_length": 6},
            {"add_special_tokens": False},
        ):
            table = tokenizer.encode_arrow(given_rows, **options)
            cut = (
                {"truncation": True, "max_length": options["max_length"]}
                if "max_length" in options
                else {}
            )
            called = tokenizer(
                rows,
                **({name: value for name, value in options.items() if name != "max_length"} | cut),
            )
            assert table.to_pydict() == dict(called)


@pytest.mark.parametrize("compact", [False, True])
def test_every_bit_of_a_float64(compact: bool) -> None:
    """In a call, as lists and as tensors, padded, and in Arrow: compact, as int64 of the same bits,
    as torch has them.
    """
    tokenizer = NumberTokenizer.from_pretrained(
        None,
        numbers=FloatBits(width=64, compact=compact),
        return_numbers=True,
        pad_token="<|endoftext|>",
    )
    rows, values = (
        ["a -0.30000000000000004 and 5e-324", "none", "7.000000000000001"],
        [-0.30000000000000004, 5e-324, 7.000000000000001],
    )
    words = [struct.unpack(">q", struct.pack(">d", value))[0] for value in values]
    expected = (
        words
        if compact
        else [[int(bit) for bit in f"{word & 0xFFFFFFFFFFFFFFFF:064b}"] for word in words]
    )
    called = dict(tokenizer(rows))
    marks = [
        (row, at)
        for row, mask in enumerate(called["number_mask"])
        for at, found in enumerate(mask)
        if found
    ]
    assert [called["number_bits"][row][at] for row, at in marks] == expected
    assert tokenizer.encode_arrow(pa.array(rows)).to_pydict() == called
    padded = tokenizer(rows, padding=True, return_tensors="pt")
    assert padded["number_bits"][padded["number_mask"]].tolist() == expected
    if compact:  # a file holds them without a sign, and so do the lists that datasets makes of it
        unsigned = {
            name: [[one % 2**64 for one in row] for row in given]
            if name == "number_bits"
            else given
            for name, given in called.items()
        }
        assert (
            tokenizer.pad(unsigned)["number_bits"]
            == tokenizer.pad(called)["number_bits"]
            == padded["number_bits"].tolist()
        )


def test_arrow_says_what_is_wrong() -> None:
    tokenizer = NumberTokenizer.from_pretrained(None)
    with pytest.raises(InputError, match="no column 'text', only body; name"):
        tokenizer.encode_arrow(pa.table({"body": ["a"]}))
    with pytest.raises(InputError, match="row 1 of the text column is null"):
        tokenizer.encode_arrow(pa.array(["a", None]))
    with pytest.raises(InputError, match="got int64"):
        tokenizer.encode_arrow(pa.array([1]))
    with pytest.raises(InputError, match="max_length=1 leaves no room for the special tokens"):
        NumberTokenizer.from_tokenizer(build_source("bert")).encode_arrow(
            pa.array(["a"]), max_length=1
        )
