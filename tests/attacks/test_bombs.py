"""Small compressed files that expand without end: an error that names the file, in bounded memory."""

import gzip
import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from input_files import failure, read_all

import numtok

ZEROS = b"0" * (8 << 20)
SCRIPT = r"""
import json, re, resource, sys
import numtok
from numtok.corpus.row_viewer import stored_row
from numtok.corpus.read.batches import ReadOptions
from numtok.corpus.read.documents import read_batches
from numtok.corpus.read.documents import find_inputs

def read(path, unit="line", keep=""):
    [source] = find_inputs([path])
    how = ReadOptions(None, keep.split(), 1 << 20, unit)
    return sum(len(batch.texts) for batch in read_batches(source, how))

def encode(path):
    return numtok.encode_files(path, path + ".out.parquet", scale=1, keep_text=True)

def decode(path):
    return numtok.decode_files(path, path + ".jsonl", workers=2)

def inspect(path):
    return stored_row(path)

stats = numtok.corpus_stats
resource.setrlimit(resource.RLIMIT_AS, (6 << 30,) * 2)
for call, *given in json.loads(sys.argv[1]):
    try:
        said = str(globals()[call](*given))
    except numtok.NumtokError as error:
        said = str(error)
    status = open("/proc/self/status").read()
    peak = int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) >> 10  # not ru_maxrss, which counts the process that was forked
    print(json.dumps([said, peak]))
"""


def apart(*calls):
    """(what came of it, peak memory in MiB so far) of each (name of a call, path, and what else it
    is given), in a process of its own.
    """
    command = [sys.executable, "-c", SCRIPT, json.dumps(calls, default=str)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    return [json.loads(line) for line in done.stdout.splitlines()]


def bomb(path, head, times=160):
    """More than 1.3 GB in a file of a megabyte or less."""
    codec = "gzip" if path.suffix == ".gz" else "zstd"

    def pack(data):
        return bytes(pa.compress(data, codec, asbytes=True))

    path.write_bytes(pack(head) + pack(ZEROS) * times)
    assert path.stat().st_size < 2_000_000
    return path


ENDLESS = [
    ("a.jsonl.gz", b'{"text": "fine"}\n{"text": "', "line"),
    ("a.txt.gz", b"fine\n", "line"),
    ("a.txt.zst", b"", "file"),
    ("a.csv.gz", b"id,text\n" + b"1,fine\n" * 300_000 + b"2,", "line"),
    ("a.csv.zst", b"", "line"),
    ("a.json.zst", b'[{"text": "', "line"),
    ("a.json.gz", b"", "line"),
]


@pytest.mark.parametrize(
    "names",
    [
        ["a.jsonl.gz", "a.csv.zst"],
        pytest.param([name for name, *_ in ENDLESS], marks=pytest.mark.slow),
    ],
)
def test_one_endless_line(names, tmp_path):
    given = [one for one in ENDLESS if one[0] in names]
    files = [("read", bomb(tmp_path / name, head), unit) for name, head, unit in given]
    for (_, path, _), (said, peak) in zip(files, apart(*files), strict=True):
        assert said.startswith(str(path)) and "longer than" in said
        assert peak < 1024, f"MiB, with {path}"


def test_endless_small_rows_are_read_piece_by_piece(tmp_path):
    row, path = b'{"text": "12 of 34"}\n', tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(row * 400_000) * 20)
    [(said, peak)] = apart(("read", path))
    assert said == "8000000" and peak < 500, "MiB"


LONG = "12 of 34" * (1 << 17)


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_long_values_that_are_stored_once_are_decoded_piece_by_piece(tmp_path, name):
    """Two columns of 0.8 GB in some hundred bytes, whose dictionaries the schema tells."""
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 800, pa.int32()), pa.array([LONG]))
    table, path = pa.table({"text": column, "id": column}), tmp_path / name
    if path.suffix == ".parquet":
        pq.write_table(table, path, compression="zstd")
    else:
        pa.feather.write_feather(table, path, "zstd")
    assert path.stat().st_size < 3_000
    [(said, peak)] = apart(("read", path, "line", "id"))
    assert said == "800" and peak < 600, "MiB"


def row_of_ids(path, count):
    """Write an encoded row of so many ids, in some kilobytes."""
    row = numtok.Tokenizer.from_pretrained().encode_batch(["none"], keep_text=True)
    columns = {name: row[name] for name in row.schema.names}
    ids = pa.array(np.full(count, 5, np.int32))
    columns["input_ids"] = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), ids)
    table = pa.table(columns).replace_schema_metadata(row.schema.metadata)
    pq.write_table(table, path, compression="zstd")
    assert path.stat().st_size < 40_000
    return path


@pytest.mark.slow  # to write it
def test_a_row_of_more_ids_than_512_mebibytes_is_refused(tmp_path):
    path = row_of_ids(tmp_path / "a.parquet", (1 << 27) + 1)
    for said, peak in apart(("stats", path), ("decode", path), ("inspect", path)):
        assert said.startswith(f"{path}: a row of 'input_ids") and "longer than 512 MiB" in said
        assert peak < 3000, "MiB"


@pytest.mark.parametrize(
    "make", [pa.ipc.new_stream, pytest.param(pa.ipc.new_file, marks=pytest.mark.slow)]
)
def test_a_long_document_of_an_arrow_file_is_refused(make, tmp_path):
    path, size = tmp_path / "a.arrow", 600 << 20
    schema = pa.schema({"text": pa.large_string()})
    with make(str(path), schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        for rows in ([0, 1], [0, size]):
            text = [None, pa.py_buffer(np.array(rows)), pa.py_buffer(bytes(rows[1]))]
            column = pa.Array.from_buffers(pa.large_string(), 1, text)
            writer.write_batch(pa.record_batch([column], schema=schema))
    for said, _ in apart(("stats", path), ("encode", path)):
        assert said.startswith(f"{path}: a document is longer than 512 MiB")


@pytest.mark.slow
def test_memory_does_not_grow_with_the_row_group(tmp_path):
    words = "It was 1,234.5 m or 7% more than -0.5e-3, in all of them, and so on. " * 200
    texts = pa.array([f"{row} {words}" for row in range(20_000)])
    assert texts.nbytes > 270_000_000
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet", compression="zstd")
    del texts
    assert pq.read_metadata(tmp_path / "a.parquet").num_row_groups == 1
    [(said, peak)] = apart(("encode", tmp_path / "a.parquet"))
    assert "documents=20000" in said and peak < 1024, "MiB"


@pytest.mark.parametrize("depth", [100, 900, 100_000])
def test_endless_depth(tmp_path, depth):
    lines, array = tmp_path / "a.jsonl", tmp_path / "a.json"
    nested = '{"a":' * depth + "1" + "}" * depth
    for deep in ("[" * depth + "]" * depth, nested):
        lines.write_text('{"text": "a", "x": ' + deep + "}\n")
        array.write_text('[{"text": "a",\n "x": ' + deep + "}]")
        for path in (lines, array):
            try:
                assert read_all(path) == ["a"], "what is not kept may be anything"
            except ValueError as error:
                assert "nested too deeply" in str(error)
            if depth > 100:
                assert "nested too deeply" in str(failure(path, keep_columns=["x"]))
            else:
                assert read_all(path, keep_columns=["x"]) == ["a"]
    lines.write_text(f'{{"text": "a", "x": {{"a": 1}}}}\n{{"text": "b", "x": {nested}}}\n')
    said = str(failure(lines, keep_columns=["x"]))
    assert "kept column 'x'" in said or depth > 900
