"""The Arrow schema: what another program finds in a batch or a file, without numtok; and that
FORMAT.md says what the representations declare.
"""

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
import tokenizers
import trained

import numtok
from numtok import Grammar
from numtok.numbers.numbers import Numbers
from numtok.representations import (
    NUM,
    REPRESENTATIONS,
    Digits,
    ExponentBins,
    FloatBits,
    PlaceValue,
    Subword,
    XVal,
    from_dict,
)
from numtok.representations.columns import ALWAYS, WITH_TEXT
from numtok.tokenizer import schema
from numtok.tokenizer.generated_numbers import streams_of
from numtok.tokenizer.tokenizer import Tokenizer

BITS = pa.fixed_shape_tensor(pa.uint8(), [32])
CASES = [
    ([XVal()], {"number_scaled": pa.float32()}),
    ([FloatBits()], {"number_bits": BITS}),
    ([FloatBits(compact=True)], {"number_bits": pa.uint32()}),
    ([FloatBits(width=64)], {"number_bits": pa.fixed_shape_tensor(pa.uint8(), [64])}),
    (
        [FloatBits(width=64, reciprocal=True)],
        {"number_bits": pa.fixed_shape_tensor(pa.uint8(), [128])},
    ),
    ([FloatBits(compact=True, width=64)], {"number_bits": pa.uint64()}),
    ([FloatBits(), XVal(scale=0.5)], {"number_bits": BITS, "number_scaled": pa.float32()}),
    ([PlaceValue()], {"place_value": pa.int16()}),
    ([Digits(places=True)], {"place_value": pa.int16()}),
    ([Digits()], {}),
    ([Subword()], {}),
]
TEXTS = ["is -28.5 or 1,234", None, "", "none", "7"]
cases = pytest.mark.parametrize(
    ("numbers", "columns"), CASES, ids=[" ".join(map(repr, numbers)) for numbers, _ in CASES]
)


def make(numbers, kind="gpt2", **options):
    return Tokenizer(trained.config(kind), numbers, **options)


@cases
@pytest.mark.parametrize(("keep_text", "frame"), [(False, True), (True, False)])
def test_types_and_rows(numbers, columns, keep_text, frame):
    """A null row is null in every column; a row without text or numbers is empty, not null; and of
    no row, no token, no number the types are those of any other batch.
    """
    tok = make(numbers)
    batch = tok.encode_batch(TEXTS, keep_text, frame)
    batch.validate(full=True)
    always = {"input_ids": pa.int32(), "number_index": pa.int32(), "number_value": pa.float64()}
    expected = {name: pa.list_(kind) for name, kind in {**always, **columns}.items()}
    if keep_text:
        expected |= {"number_text": pa.list_(pa.string()), "text": pa.string()}
        assert batch["number_text"].to_pylist() == [["-28.5", "1,234"], None, [], [], ["7"]]
    assert {one.name: one.type for one in batch.schema} == expected
    assert batch["number_value"].to_pylist() == [[-28.5, 1234.0], None, [], [], [7.0]]
    widths = [ids if ids is None else len(ids) for ids in batch["input_ids"].to_pylist()]
    for name in expected.keys() - {"text"}:
        per_token = name in ("input_ids", "place_value")
        lengths = [row if row is None else len(row) for row in batch[name].to_pylist()]
        assert lengths == (widths if per_token else [2, None, 0, 0, 1]), name
    for texts in ([], [None], [None, None], [""], ["a"], [None, "5"], ["5", None]):
        few = tok.encode_batch(texts, keep_text, frame)
        few.validate(full=True)
        assert few.schema.equals(batch.schema, check_metadata=True)
        assert few.schema.equals(tok.batch_schema(keep_text, frame), check_metadata=True)
        if keep_text:
            assert tok.decode_batch(few).to_pylist() == texts


@cases
def test_metadata(numbers, columns):
    tok = make(numbers, "bert", grammar=Grammar.data())
    for frame in (False, True):
        described = json.loads(
            tok.encode_batch(TEXTS, add_special_tokens=frame).schema.metadata[b"numtok"]
        )
        runs = itertools.chain(*described.get("symbols", {}).values())
        in_runs = {number for first, count in runs for number in range(first, first + count)}
        assert described["format"] == schema.FORMAT_VERSION == 2
        assert Grammar.from_dict(described["grammar"]) == Grammar.data()
        assert [from_dict(one) for one in described["numbers"]] == numbers
        assert described["tokenizer"] == tok.fingerprint
        assert described["tokens"] == {
            content: number for content, number in tok.tokens.items() if number not in in_runs
        }
        assert described["vocab_size"] == tok.vocab_size
        assert [len(side) for side in described["frame"]] == ([1, 1] if frame else [0, 0])


@pytest.mark.parametrize("compact", [False, True])
def test_a_reader_without_numtok(compact, tmp_path):
    """What FORMAT.md promises: pyarrow and struct are enough to get every number and its place
    back.
    """
    tok = make([FloatBits(compact=compact), XVal(scale=2.0)])
    written = pa.Table.from_batches([tok.encode_batch(TEXTS, keep_text=True)])
    pq.write_table(written, tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet")
    tokens = json.loads(table.schema.metadata[b"numtok"])["tokens"]
    forms = {tokens[NUM], tokens[f" {NUM}"]}
    for row in table.to_pylist():
        ids, words = row["input_ids"], row["number_bits"]
        if ids is None:
            continue
        assert row["number_index"] == [at for at, token in enumerate(ids) if token in forms]
        if not compact:
            words = [int("".join(map(str, bits)), 2) for bits in words]
        values = np.array(words, np.uint32).view(np.float32).tolist()
        assert values == row["number_value"] == [scaled / 2 for scaled in row["number_scaled"]]
        assert values == [float(text.replace(",", "")) for text in row["number_text"]]


@pytest.mark.parametrize("numbers", ["xval", "fone:4,2", "place:lsd", "digits:3", "p10", "subword"])
@pytest.mark.parametrize("kind", ["gpt2", "bert", "t5", "llama_legacy"])
def test_a_text_is_rebuilt_as_format_md_says(kind, numbers):
    """Rebuild every text with ``tokenizers`` alone, in the four steps of the page."""
    stand_in = tokenizers.AddedToken("\ue000", normalized=False, special=False)
    plain = tokenizers.Tokenizer.from_str(json.dumps(trained.config(kind)))
    plain.add_tokens([stand_in])
    texts = ["The mass is -1.5e3 kg, x=1,234.50!", " 7 ", "a  8\n9 10", "", "none", "Ω½ (5)6%"]
    batch = make(numbers, kind).encode_batch(texts, keep_text=True, add_special_tokens=True)
    told = json.loads(batch.schema.metadata[b"numtok"])
    (before, after), tokens = map(len, told["frame"]), told["tokens"]
    spaced = {tokens.get(f" {NUM}"), *runs(told.get("symbols", {}).get("spaced", []))}
    for row, text in zip(batch.to_pylist(), texts, strict=True):
        ids, kept, at = row["input_ids"], [], before
        for first in row["number_index"] if numbers != "subword" else ():
            kept += [*ids[at:first], plain.token_to_id(stand_in.content)]
            several = ids.index(tokens["[/NUM]"], first) + 1 - first if "[/NUM]" in tokens else 1
            at = first + (5 if numbers == "p10" else several)
        kept += ids[at : len(ids) - after]
        rebuilt, *parts = plain.decode(kept, skip_special_tokens=False).split(stand_in.content)
        for first, number, part in zip(
            row["number_index"], row["number_text"], parts, strict=False
        ):
            rebuilt += " " * (ids[first] in spaced) + number + part
        assert (row["text"] or rebuilt) == text


def runs(pairs):
    """The ids of runs [first id, count]."""
    return [first + k for first, count in pairs for k in range(count)]


def test_place_values_stand_beside_their_digits():
    tok = make([PlaceValue()])
    batch = tok.encode_batch(["x 123.45!"], add_special_tokens=True)
    names = {number: name for name, number in tok.tokens.items()}
    ids, places = batch["input_ids"][0].as_py(), batch["place_value"][0].as_py()
    start = batch["number_index"][0].as_py()[0]
    spelled = [" [NUM]", "1", "2", "3", ".", "4", "5", "[/NUM]"]
    assert [names.get(token) for token in ids[start : start + 8]] == spelled
    assert places[start : start + 8] == [0, 3, 2, 1, 0, -1, -2, 0]
    assert not any(places[:start] + places[start + 8 :])


# Large batches


@cases
def test_large_lists(numbers, columns, monkeypatch):
    """Past what 32-bit offsets reach, the same values in large lists."""
    tok = make(numbers)
    small = tok.encode_batch(TEXTS, keep_text=True)
    monkeypatch.setattr(schema, "LIST_LIMIT", 3)
    large = tok.encode_batch(TEXTS, keep_text=True)
    large.validate(full=True)
    assert large.schema.equals(tok.batch_schema(True, large=True), check_metadata=True)
    assert all(pa.types.is_large_list(one.type) for one in large.schema if one.name != "text")
    assert large.schema.field("text").type == pa.large_string()
    assert large.to_pylist() == small.to_pylist()
    decoded = tok.decode_batch(large)
    assert decoded.type == pa.large_string()
    assert decoded.to_pylist() == TEXTS
    monkeypatch.undo()
    assert tok.decode_batch(large).to_pylist() == tok.decode_batch(small).to_pylist() == TEXTS


def test_null_rows_may_hide_values():
    """Arrow lets a null row have any extent in the values; other programs write such files."""
    tok = make([XVal()])
    batch = tok.encode_batch(["a 5", "b 6", "c 7"])
    columns = [
        pa.ListArray.from_arrays(
            column.offsets, column.values, type=column.type, mask=pa.array([False, True, False])
        )
        for column in batch.columns
    ]
    hidden = pa.RecordBatch.from_arrays(columns, schema=batch.schema)
    assert tok.decode_batch(hidden).to_pylist() == ["a 5", None, "c 7"]


def test_what_a_model_wrote_has_the_declared_type():
    """Expect the type that the stream has in a batch, not the one in a file."""
    stream = streams_of(make([ExponentBins()]), Numbers.parse(["1e3", "0"]))["number_bin"]
    assert stream.dtype == np.int64 and stream.tolist() == [141, 0]


def test_format_md_says_what_is_declared():
    page = Path(numtok.__file__).with_name("FORMAT.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+?) \| (token|number|row) \|", page, re.M)
    told = [
        (name, re.sub(r"\[.*\]", "[]", kind.replace("\\", "")), per) for name, kind, per in rows
    ]
    # some of them by two kinds
    declared = dict.fromkeys(one for kind in REPRESENTATIONS.values() for one in kind.declared)
    columns = (*ALWAYS, *declared, *WITH_TEXT)
    assert sorted(told) == sorted((one.name, written(one), one.per) for one in columns)


def written(column):
    """A type as the table has it, shapes left out."""
    kind = str(column.value_type)
    kind = {"float": "float32", "double": "float64"}.get(kind, kind)
    kind = f"fixed_shape_tensor<{kind}>[]" if column.shape else kind
    return kind if column.per == "row" else f"list<{kind}>"
