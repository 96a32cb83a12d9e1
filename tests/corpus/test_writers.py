"""Writers: what is written comes back, with its schema; a file is there whole or not at all."""

import os

import interrupts
import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from input_files import read_encoded

import numtok
from numtok.corpus.write import json_lines, open_writer
from numtok.errors import OutputError, SchemaError
from numtok.representations import FloatBits, FoNE, XVal

TOKENIZER = numtok.Tokenizer.from_pretrained(None, [XVal(), FloatBits(), FoNE(8, 7)])
NAMES = ["a.parquet", "a.arrow", "a.feather", "a.ipc"]


def encoded(counts, large=False):
    """A batch of documents with so many numbers each, in larger lists if that is asked for."""
    batch = TOKENIZER.encode_batch([" -0.5 or" * count for count in counts], keep_text=True)
    if not large:
        return batch
    columns = [
        pa.LargeListArray.from_arrays(one.offsets.cast(pa.int64()), one.values)
        if pa.types.is_list(one.type)
        else one
        for one in batch.columns
    ]
    made = pa.record_batch(columns, names=batch.schema.names)
    return made.replace_schema_metadata(batch.schema.metadata)


def ids(rows, each=100, seed=0):
    values = np.random.default_rng(seed).integers(0, 1 << 30, rows * each).astype(np.int32)
    offsets = pa.array(range(0, rows * each + 1, each), pa.int32())
    return pa.record_batch({"input_ids": pa.ListArray.from_arrays(offsets, pa.array(values))})


def write(path, batches, schema=None, **options):
    with open_writer(path, schema or batches[0].schema, **options) as writer:
        for batch in batches:
            writer.write(batch)
    return path


def read(path, **options):
    return pa.Table.from_batches(list(read_encoded(path, **options)))


# What is written comes back


@settings(max_examples=25)
@given(
    st.lists(st.lists(st.integers(0, 4), max_size=6), min_size=1, max_size=4),
    st.sampled_from(NAMES),
    st.booleans(),
)
def test_round_trip_with_tensors(tmp_path_factory, counts, name, large):
    batches = [encoded(some, large) for some in counts]
    path = write(tmp_path_factory.mktemp("out") / name, batches)
    table = read(path)
    # Parquet calls the items of a list ``element``, which Arrow does not count as another type
    assert table.schema.equals(batches[0].schema, check_metadata=False)
    assert table.schema.metadata == batches[0].schema.metadata
    assert table.equals(pa.Table.from_batches(batches))
    assert os.listdir(path.parent) == [name]


@pytest.mark.parametrize("name", NAMES[:2])
def test_slices_nulls_and_other_metadata(tmp_path, name):
    whole = encoded([1, 0, 3, 2])
    columns = [pa.nulls(2, field.type) for field in whole.schema]
    nulls = pa.RecordBatch.from_arrays(columns, schema=whole.schema)
    batches = [whole.slice(1, 2), nulls, whole.slice(3)]
    other = [*batches[:2], batches[2].replace_schema_metadata({"other": "x"})]
    table = read(write(tmp_path / name, other))
    assert table.equals(pa.Table.from_batches(batches))
    assert table.schema.metadata == whole.schema.metadata, "the metadata is that of open_writer"


@pytest.mark.parametrize("compression", ["zstd", "lz4", "snappy", "gzip", None])
def test_compressions(tmp_path, compression):
    batch = encoded([3, 4])
    for name in ("a.parquet", "a.arrow")[: 1 + (compression == "lz4")]:
        path = write(tmp_path / name, [batch], compression=compression)
        assert read(path).equals(pa.Table.from_batches([batch]))


def test_parquet_stores_each_column_as_it_is_declared(tmp_path):
    group = pq.read_metadata(write(tmp_path / "a.parquet", [encoded([50] * 50)])).row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    stored = {column.path_in_schema.split(".")[0]: column for column in columns}
    declared = {"input_ids": "BYTE_STREAM_SPLIT", "number_index": "DELTA_BINARY_PACKED"}
    for name, encoding in (declared | {"number_fourier": "PLAIN"}).items():
        assert encoding in stored[name].encodings and not stored[name].has_dictionary_page, name
    assert stored["number_value"].has_dictionary_page and stored["number_bits"].has_dictionary_page
    assert {column.compression for column in stored.values()} == {"ZSTD"}


def test_row_groups_are_bounded(tmp_path):
    batches = [ids(100), ids(1000), *(ids(10) for _ in range(90))]  # 40 kB, 400 kB, 90 times 4 kB
    path = write(tmp_path / "a.parquet", batches, row_group_bytes=100_000)
    metadata = pq.read_metadata(path)
    sizes = [metadata.row_group(i).num_rows * 400 for i in range(metadata.num_row_groups)]
    assert max(sizes) < 160_000 and len(sizes) < 14
    whole = pa.Table.from_batches(batches).combine_chunks()
    assert read(path).combine_chunks()["input_ids"].equals(whole["input_ids"])
    assert max(batch.nbytes for batch in read_encoded(path, batch_bytes=20_000)) < 30_000


def test_json_has_no_word_for_what_is_no_number_in_a_map_either():
    kind = pa.map_(pa.string(), pa.float64())
    (line,) = json_lines(pa.record_batch({"m": pa.array([[("a", np.nan), ("b", 0.5)]], kind)}))
    assert line == '{"m": [["a", null], ["b", 0.5]]}\n'


# The name appears only with a whole file


@pytest.mark.parametrize("name", NAMES[:2])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_exception_leaves_nothing(tmp_path, name, error, capfd):
    with (
        pytest.raises(error, match="stop"),
        open_writer(tmp_path / name, ids(1).schema, row_group_bytes=1) as writer,
    ):
        writer.write(ids(10))
        assert [file.name.startswith(f".{name}.") for file in tmp_path.iterdir()] == [True]
        raise error("stop")
    assert list(tmp_path.iterdir()) == []
    del writer
    assert capfd.readouterr().err == ""


def test_a_file_that_is_there_or_was_made_meanwhile_stays(tmp_path):
    path = tmp_path / "a.parquet"
    with pytest.raises(OutputError, match="meanwhile"), open_writer(path, ids(1).schema) as writer:
        writer.write(ids(1))
        path.write_text("mine")
    with pytest.raises(OutputError, match=r"exists already.*overwrite=True"):
        write(path, [ids(1)])
    with (
        pytest.raises(ValueError, match="stop"),
        open_writer(path, ids(1).schema, overwrite=True) as writer,
    ):
        writer.write(ids(1))
        raise ValueError("stop")
    assert path.read_text() == "mine" and os.listdir(tmp_path) == ["a.parquet"]
    assert read(write(path, [ids(1)], overwrite=True)).num_rows == 1


def test_a_batch_of_another_schema(tmp_path):
    with pytest.raises(SchemaError, match=r"number_bits(.|\n)*but the file has(.|\n)*input_ids"):
        write(tmp_path / "a.parquet", [encoded([1])], ids(1).schema)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("limit", [0, 1000, 1_000_000, 1_170_000])
@pytest.mark.parametrize("name", NAMES[:2])
def test_a_full_disk(name, limit, tmp_path):
    """Be it full in the middle, or only when the footer is written."""
    told = rf"{tmp_path / name}: File too large, after .*nothing is left"
    with interrupts.largest_file(limit), pytest.raises(OutputError, match=told) as caught:
        write(tmp_path / name, [ids(1000)] * 3, row_group_bytes=500_000, compression="none")
    assert caught.value.errno == 27 and not list(tmp_path.iterdir())
