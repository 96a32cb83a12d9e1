"""Writers: what is written comes back, with its schema; a file is there whole or not at all."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import interrupts
import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import ROOT

import numtok
from numtok.corpus.read.encoded import read_encoded
from numtok.corpus.write.encoded import open_writer
from numtok.errors import OutputError, SchemaError
from numtok.representations import FloatBits, FoNE

# Of a file that could hold all of these columns: FoNE twice is none, but what FORMAT.md says of the
# types is the same.
METADATA = numtok.Tokenizer.from_pretrained(None, [FloatBits(), FoNE(8, 7)]).batch_schema().metadata
NAMES = ["a.parquet", "a.arrow", "a.feather", "a.ipc"]


def tensors(dtype: pa.DataType, shape: list[int], count: int) -> pa.Array:
    size = int(np.prod(shape))
    values = pa.array(np.arange(count * size) % 2, dtype)  # (count * size,)
    return pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(dtype, shape), pa.FixedSizeListArray.from_arrays(values, size)
    )


def ragged(counts: list[int], values: pa.Array, large: bool = False) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(counts)])
    make = pa.LargeListArray if large else pa.ListArray
    return make.from_arrays(pa.array(offsets, pa.int64() if large else pa.int32()), values)


def encoded(counts: list[int], large: bool = False) -> pa.RecordBatch:
    """A batch as the tokenizer writes it: counts[i] numbers in document i."""
    n = sum(counts)
    columns = {
        "input_ids": ragged(
            [2 * count for count in counts], pa.array(np.arange(2 * n), pa.int32()), large
        ),
        "number_index": ragged(
            counts, pa.array(np.concatenate([np.arange(c) for c in [0, *counts]]), pa.int32())
        ),
        "number_value": ragged(counts, pa.array(np.arange(n) * 0.5)),
        "number_text": ragged(counts, pa.array([str(i) for i in range(n)], pa.string())),
        "number_bits": ragged(counts, tensors(pa.uint8(), [32], n), large),
        "number_fourier": ragged(counts, tensors(pa.float32(), [15, 2], n)),
        "number_digits": ragged(counts, tensors(pa.uint8(), [15], n)),
        "place_value": ragged(
            [2 * count for count in counts], pa.array(np.arange(2 * n) % 7, pa.int16())
        ),
    }
    fields = [
        pa.field(name, column.type, metadata={"about": name}) for name, column in columns.items()
    ]
    return pa.record_batch(list(columns.values()), schema=pa.schema(fields, METADATA))


def ids(rows: int, each: int = 100, seed: int = 0) -> pa.RecordBatch:
    values = np.random.default_rng(seed).integers(0, 1 << 30, rows * each).astype(np.int32)
    return pa.record_batch({"input_ids": ragged([each] * rows, pa.array(values))})


def write(
    path: Path, batches: list[pa.RecordBatch], schema: pa.Schema | None = None, **options: Any
) -> Path:
    with open_writer(path, schema or batches[0].schema, **options) as writer:
        for batch in batches:
            writer.write(batch)
    return path


def read(path: Path, **options: Any) -> pa.Table:
    return pa.Table.from_batches(list(read_encoded(path, **options)))


def assert_same_schema(schema: pa.Schema, expected: pa.Schema) -> None:
    """Types and all metadata; Parquet calls the items of a list ``element``, which Arrow does not
    count as a difference of type.
    """
    assert schema.equals(expected, check_metadata=False)
    assert schema.metadata == expected.metadata
    assert [field.metadata for field in schema] == [field.metadata for field in expected]


# What is written comes back
# -------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(
    st.lists(st.lists(st.integers(0, 4), max_size=6), min_size=1, max_size=4),
    st.sampled_from(NAMES),
    st.booleans(),
)
def test_round_trip_with_tensors(
    tmp_path_factory: pytest.TempPathFactory, counts: list[list[int]], name: str, large: bool
) -> None:
    batches = [encoded(some, large) for some in counts]
    path = write(tmp_path_factory.mktemp("out") / name, batches)
    table = read(path)
    assert_same_schema(table.schema, batches[0].schema)
    assert table.equals(pa.Table.from_batches(batches))
    assert os.listdir(path.parent) == [name]


@pytest.mark.parametrize("name", NAMES)
def test_slices_nulls_and_other_metadata(tmp_path: Path, name: str) -> None:
    whole = encoded([1, 0, 3, 2])
    nulls = pa.RecordBatch.from_arrays(
        [pa.nulls(2, field.type) for field in whole.schema], schema=whole.schema
    )
    batches = [whole.slice(1, 2), nulls, whole.slice(3).replace_schema_metadata({"other": "x"})]
    table = read(write(tmp_path / name, batches))
    assert table.equals(
        pa.Table.from_batches(
            [batch.replace_schema_metadata(whole.schema.metadata) for batch in batches]
        )
    )
    assert table.schema.metadata == whole.schema.metadata, "the metadata is that of open_writer"


CODECS = [("a.parquet", codec) for codec in ("zstd", "lz4", "snappy", "gzip", None)]


@pytest.mark.parametrize(
    ("name", "compression"), [*CODECS, ("a.arrow", "lz4"), ("a.arrow", "none")]
)
def test_compressions(tmp_path: Path, name: str, compression: str | None) -> None:
    batch = encoded([3, 4])
    path = write(tmp_path / name, [batch], compression=compression)
    assert read(path).equals(pa.Table.from_batches([batch]))


def test_parquet_stores_each_column_as_it_is_declared(tmp_path: Path) -> None:
    group = pq.read_metadata(write(tmp_path / "a.parquet", [encoded([50] * 50)])).row_group(0)
    stored = {
        group.column(i).path_in_schema.split(".")[0]: group.column(i)
        for i in range(group.num_columns)
    }
    for name, encoding in {
        "input_ids": "BYTE_STREAM_SPLIT",
        "number_index": "DELTA_BINARY_PACKED",
        "number_fourier": "PLAIN",
    }.items():
        assert encoding in stored[name].encodings and not stored[name].has_dictionary_page, name
    # the last is declared by nobody
    for name in ("number_value", "number_bits", "place_value"):
        assert stored[name].has_dictionary_page, name
    assert {column.compression for column in stored.values()} == {"ZSTD"}


def test_row_groups_are_bounded(tmp_path: Path) -> None:
    batches = [ids(100), ids(1000), *(ids(10) for _ in range(90))]  # 40 kB, 400 kB, 90 times 4 kB
    path = write(tmp_path / "a.parquet", batches, row_group_bytes=100_000)
    metadata = pq.read_metadata(path)
    sizes = [metadata.row_group(i).num_rows * 400 for i in range(metadata.num_row_groups)]
    assert max(sizes) < 160_000 and len(sizes) < 14
    whole = pa.Table.from_batches(batches).combine_chunks()
    assert read(path).combine_chunks()["input_ids"].equals(whole["input_ids"])
    assert max(batch.nbytes for batch in read_encoded(path, batch_bytes=20_000)) < 30_000


# The name appears only with a whole file
# ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_leaves_nothing(
    tmp_path: Path, name: str, error: type[BaseException], capfd: pytest.CaptureFixture[str]
) -> None:
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


def test_an_existing_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_text("mine")
    with pytest.raises(OutputError, match=r"exists already.*overwrite=True"):
        write(path, [ids(1)])
    with (
        pytest.raises(ValueError, match="stop"),
        open_writer(path, ids(1).schema, overwrite=True) as writer,
    ):
        writer.write(ids(1))
        raise ValueError("stop")
    assert path.read_text() == "mine"
    write(path, [ids(1)], overwrite=True)
    assert read(path).num_rows == 1


def test_a_file_made_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    with pytest.raises(OutputError, match="meanwhile"), open_writer(path, ids(1).schema) as writer:
        writer.write(ids(1))
        path.write_text("mine")
    assert path.read_text() == "mine" and os.listdir(tmp_path) == ["a.parquet"]


def test_folders_are_made_and_bad_places_refused(tmp_path: Path) -> None:
    assert read(write(tmp_path / "x" / "y" / "a.parquet", [ids(3)])).num_rows == 3
    (tmp_path / "file").write_text("")
    for path, reason in (
        (tmp_path / "file" / "a.parquet", "folder"),
        (tmp_path / "x", "folder"),
        (tmp_path / ("n" * 250 + ".parquet"), "too long"),
    ):
        with pytest.raises(OutputError, match=reason):
            write(path, [ids(1)], format="parquet")
    with pytest.raises(OutputError, match=r"\.parquet, \.arrow"):
        write(tmp_path / "a.csv", [ids(1)])
    assert read(write(tmp_path / "a.bin", [ids(1)], format="arrow")).num_rows == 1
    with pytest.raises(OutputError, match="parquet or arrow"):
        write(tmp_path / "b.bin", [ids(1)], format="csv")
    with pytest.raises(OutputError, match="zstd, lz4, none"):
        write(tmp_path / "a.arrow", [ids(1)], compression="snappy")


def test_a_batch_of_another_schema(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"number_bits(.|\n)*but the file has(.|\n)*input_ids"):
        write(tmp_path / "a.parquet", [encoded([1])], ids(1).schema)
    assert list(tmp_path.iterdir()) == []


SCRIPT = """
import resource, sys, time
import numpy as np, pyarrow as pa
from numtok.corpus.write.encoded import open_writer
from numtok.errors import OutputError
values = np.random.default_rng(0).integers(0, 1 << 30, 100_000).astype(np.int32)
batch = pa.record_batch({"input_ids": pa.ListArray.from_arrays(np.arange(0, 100_001, 100, dtype=np.int32), values)})
"""


def run(script: str, *arguments: str) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", SCRIPT + textwrap.dedent(script), *arguments]
    return interrupts.start(command, env=environment)


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_a_full_disk(tmp_path: Path, name: str) -> None:
    # A limit on the file size is as real as a full disk: write() itself fails, in the middle or
    # only in the footer.
    process = run(
        """
        for limit in (0, 1000, 1_000_000, 1_170_000):
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            try:
                with open_writer(sys.argv[1], batch.schema, row_group_bytes=500_000, compression="none") as writer:
                    for _ in range(3):
                        writer.write(batch)
            except OutputError as error:
                print(error, error.errno)
        """,
        str(tmp_path / name),
    )
    output, errors = process.communicate(timeout=20)
    assert errors == "" and list(tmp_path.iterdir()) == []
    said = output.splitlines()
    assert len(said) == 4
    told = (str(tmp_path / name), "File too large, after", "nothing is left")
    for line in said:
        assert all(one in line for one in told) and line.endswith(" 27")


def test_a_folder_without_permission() -> None:
    folder = Path(tempfile.mkdtemp())  # not below pytest's own, which others may not even enter
    write(folder / "warm.parquet", [ids(1)])
    folder.chmod(0o555)
    user = os.geteuid()
    try:
        if user == 0:  # root may write anywhere
            os.seteuid(65534)
        with pytest.raises(OutputError, match="Permission denied"):
            write(folder / "a.parquet", [ids(1)])
    finally:
        os.seteuid(user)
        folder.chmod(0o700)
        shutil.rmtree(folder)


# Reading what is not ours
# ---------------------------------------------------------------------------------------------
