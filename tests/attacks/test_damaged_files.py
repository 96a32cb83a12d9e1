"""Damaged files: flipped bits, files cut short, rows that do not hold together.

The same texts, or one error that names the file.
"""

import json
import os
import random

import pyarrow as pa
import pyarrow.ipc
import pytest
import trained
from input_files import decoded, read_encoded

import numtok
from numtok.corpus.write import open_writer
from numtok.errors import InputError, NumtokError, SchemaError
from numtok.representations import P10, FloatBits, PlaceValue, Subword, XVal
from numtok_torch import NumberDataset

TOKENIZER = numtok.Tokenizer.from_pretrained(None, [XVal(), FloatBits()])
TEXTS = [f"row {n} is {n / 7:.3f} or -{n}e5, and then {n + 1}" for n in range(40)]
TEXTS[7:9] = [None, "nothing"]


def write(path, tokenizer=TOKENIZER, compression="zstd"):
    batch = tokenizer.encode_batch(TEXTS)
    with open_writer(path, batch.schema, compression=compression, overwrite=True) as writer:
        for first in range(0, len(TEXTS), 15):
            writer.write(batch.slice(first, 15))
    return path


def read(path):
    return decoded(path, TOKENIZER)


CANONICAL = TOKENIZER.decode_batch(TOKENIZER.encode_batch(TEXTS)).to_pylist()


@pytest.mark.parametrize(
    ("name", "compression"), [("a.arrow", "zstd"), ("a.arrow", "none"), ("a.parquet", "zstd")]
)
def test_flipped_bits(tmp_path, name, compression):
    """In front of the footer: no flip gives another exception; nor other texts of Parquet, which
    has checksums.
    """
    path = write(tmp_path / name, compression=compression)
    whole = path.read_bytes()
    assert read(path) == CANONICAL
    footer = int.from_bytes(whole[-8:-4] if name == "a.parquet" else whole[-10:-6], "little")
    noticed, generator = 0, random.Random(name + compression)
    for _ in range(60):
        place = generator.randrange(8 * (len(whole) - footer - 10))
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            same = read(path) == CANONICAL
            assert same or name == "a.arrow", f"bit {place}: other texts"
        except NumtokError as error:
            assert str(path) in str(error), f"bit {place}: {error}"
            noticed += 1
    assert noticed > (30 if name == "a.parquet" else 5)


@pytest.mark.parametrize("name", ["a.arrow", "a.parquet"])
def test_cut_short(tmp_path, name):
    path = write(tmp_path / name)
    whole = path.read_bytes()
    size = len(whole)
    for length in [*range(24), *range(30, size, size // 25), *range(size - 12, size)]:
        path.write_bytes(whole[:length])
        for reader in (lambda: list(read_encoded(path)), lambda: NumberDataset(path)[0]):
            with pytest.raises(InputError) as caught:
                reader()
            assert str(path) in str(caught.value)


def test_files_of_other_writers_are_read(tmp_path):
    batch = TOKENIZER.encode_batch(TEXTS)
    for make, name in ((pa.ipc.new_file, "a.arrow"), (pa.ipc.new_stream, "b.arrow")):
        with make(tmp_path / name, batch.schema) as writer:
            writer.write_batch(batch)
        assert read(tmp_path / name) == CANONICAL
        kept = [text for text in TEXTS if text is not None]
        assert len(NumberDataset(tmp_path / name, nulls="skip")) == len(kept)


def test_cut_short_after_it_was_converted(tmp_path):
    path = write(tmp_path / "a.parquet")
    data = NumberDataset(path, nulls="skip")
    rows = [row["input_ids"].tolist() for row in data]
    os.truncate(path, 600)
    assert [row["input_ids"].tolist() for row in data] == rows


# Rows


def shifted(values):
    """The last value of row 1 becomes the first of row 2: the columns still have as many values in
    all.
    """
    return [values[0], values[1][:-1], [values[1][-1], *values[2]], *values[3:]]


def in_row(row, change):
    return lambda rows: [change(one) if at == row else one for at, one in enumerate(rows)]


def longer(*more):
    return lambda one: [*one, *more]


ROWS = [
    (XVal(), "number_scaled", shifted, 1, "has 2 values, but there are 3 numbers"),
    (XVal(), "number_value", in_row(3, longer(5.0)), 3, "has 4 values, but there are 3"),
    (XVal(), "number_index", in_row(4, longer(1)), 4, "numbers|'number_index' has 1"),
    (XVal(), "number_index", in_row(0, lambda one: [99, *one[1:]]), 0, "'number_index' has 99"),
    (XVal(), "number_index", in_row(1, lambda one: [-1, *one[1:]]), 1, "'number_index' has -1"),
    (XVal(), "number_index", in_row(2, lambda one: one[::-1]), 2, "'number_index' has"),
    (XVal(), "number_value", in_row(0, lambda one: None), 0, "not null together"),
    (XVal(), "number_value", in_row(5, lambda one: [None, *one[1:]]), 5, "holds a null value"),
    (XVal(), "input_ids", in_row(1, lambda one: []), 1, "'number_index' has"),
    (PlaceValue(), "place_value", in_row(2, longer(0)), 2, "'place_value' has .* tokens"),
    (PlaceValue(), "place_value", shifted, 1, "'place_value' has .* tokens"),
    (P10(), "number_index", in_row(0, longer(10_000)), 0, "numbers|has 10000"),
]


@pytest.mark.parametrize(("numbers", "name", "change", "row", "message"), ROWS)
def test_rows_that_do_not_hold_together(numbers, name, change, row, message, tmp_path):
    tokenizer = numtok.Tokenizer.from_pretrained(None, [numbers])
    batch = tokenizer.encode_batch([f"{n} is {n}.5 or {n + 7}" for n in range(6)])
    at = batch.schema.get_field_index(name)
    field = batch.schema.field(at)
    batch = batch.set_column(at, field, pa.array(change(batch[name].to_pylist()), field.type))
    with pytest.raises(SchemaError, match=f"^row {row}: .*({message})"):
        tokenizer.decode_batch(batch)
    with pytest.raises(SchemaError, match=f"^row {row}: "):
        NumberDataset(batch)[0]
    for path in (tmp_path / "a.parquet", tmp_path / "a.arrow"):
        with open_writer(path, batch.schema) as writer:
            writer.write(tokenizer.encode_batch(["5 6 7"] * 4))
            writer.write(batch)
        told = f"{path}, row {row + 4}: .*({message})"
        with pytest.raises(SchemaError, match=told):
            numtok.decode_files(path, tmp_path / "o.jsonl", tokenizer)
        with pytest.raises(SchemaError, match=told):
            NumberDataset(path)[9]
    assert not (tmp_path / "o.jsonl").exists()


def test_two_numbers_may_begin_in_one_ordinary_token():
    tokenizer = numtok.Tokenizer(trained.config("metaspace_never"), [Subword()])
    batch = tokenizer.encode_batch(["1,2345", "5"], keep_text=True)
    assert batch["number_index"].to_pylist() == [[0, 0], [0]]
    assert tokenizer.decode_batch(batch).to_pylist() == ["1,2345", "5"]


@pytest.mark.parametrize("frame", [[[5], []], [[], [5]], [[5] * 1000, [5] * 1000], [[0], [0]]])
def test_a_forged_frame(frame):
    batch = TOKENIZER.encode_batch(["is 5", None, "and 7 or so"])
    described = json.loads(batch.schema.metadata[b"numtok"]) | {"frame": frame}
    forged = batch.replace_schema_metadata({"numtok": json.dumps(described)})
    for reader in (lambda: TOKENIZER.decode_batch(forged), lambda: NumberDataset(forged)[0]):
        with pytest.raises(SchemaError, match=r"row 0: .*'frame'"):
            reader()


def test_what_lies_below_null_rows_does_not_count():
    """Arrow lets a null row have values that nobody sees; they are no other row's."""
    batch = TOKENIZER.encode_batch(["5 and 6", "7", "8"])
    columns = [TOKENIZER.encode_batch(["5 and 6", None, "8"]).column(0)]
    for one in batch.columns[1:]:
        buffers = [pa.py_buffer(b"\x05"), one.buffers()[1]]
        columns.append(pa.Array.from_buffers(one.type, 3, buffers, children=[one.values]))
    odd = pa.RecordBatch.from_arrays(columns, schema=batch.schema)
    assert odd["number_index"].null_count == 1
    assert TOKENIZER.decode_batch(odd).to_pylist() == ["5 and 6", None, "8"]
