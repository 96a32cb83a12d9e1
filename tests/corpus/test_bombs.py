"""Small compressed files that expand without end: an error that names the file, in bounded memory."""

import gzip
import json
import subprocess
import sys

import memory_store
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
from numtok.corpus.look import stored_row
from numtok.corpus.read.batches import ReadOptions
from numtok.corpus.read.documents import read_batches
from numtok.corpus.read.find import find_inputs

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
def test_a_long_value_in_every_row_that_is_stored_once(tmp_path, name):
    """Two columns of 0.8 GB in some hundred bytes."""
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 800, pa.int32()), pa.array([LONG]))
    table, path = pa.table({"text": column, "id": column}), tmp_path / name
    if path.suffix == ".parquet":
        pq.write_table(table, path, compression="zstd", store_schema=False)
    else:
        pa.feather.write_feather(table, path, "zstd")
    assert path.stat().st_size < 2_000
    [(said, peak)] = apart(("read", path, "line", "id"))
    assert said == "800" and peak < 600, "MiB"


def test_long_values_that_are_stored_as_what_differs(tmp_path):
    path = tmp_path / "a.parquet"
    how = {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}}
    table = pa.table({"text": pa.array([LONG]).take([0] * 300)})
    pq.write_table(table, path, compression="zstd", data_page_size=1 << 30, **how)
    assert path.stat().st_size < 2_000
    [(said, peak)] = apart(("read", path))
    assert said == "300" and peak < 600, "MiB"


def encoded_bomb(path, name, count=300_000_000):
    """An encoded row, or some, of gigabytes in some kilobytes, ``count`` ids for one. The footer says
    that there are no dictionaries, and the first list is empty.
    """
    schema = numtok.Tokenizer.from_pretrained().batch_schema(keep_text=True)
    rows = {"text": 1500, "number_text": 2}.get(name, 1)
    columns = {
        field.name: pa.array([None if field.name == "text" else []] * rows, field.type)
        for field in schema
    }
    places = pa.array([0] * 1500, pa.int32())
    long = pa.DictionaryArray.from_arrays(places, pa.array(["7" * (1 << 20)]))
    if name == "text":
        columns["text"] = long
    elif name == "number_text":
        columns[name] = pa.ListArray.from_arrays(pa.array([0, 0, 1500], pa.int32()), long)
    else:
        ids = pa.array(np.full(count, 5, np.int32))
        columns[name] = pa.ListArray.from_arrays(pa.array([0, len(ids)], pa.int32()), ids)
    table = pa.table(columns)
    with pq.ParquetWriter(path, table.schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"numtok": schema.metadata[b"numtok"].decode()})
    assert path.stat().st_size < 20_000
    forge_footer(path, b"\x35\x00\x06\x10", b"\x35\x00\x06\x06")  # RLE in place of RLE_DICTIONARY
    return path


def forge_footer(path, told, forged):
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    assert told in data[start:]
    path.write_bytes(data[:start] + data[start:].replace(told, forged))


@pytest.mark.parametrize("name", ["number_text", pytest.param("input_ids", marks=pytest.mark.slow)])
def test_an_encoded_row_that_expands_without_end(name, tmp_path):
    path = encoded_bomb(tmp_path / "a.parquet", name)
    for said, peak in apart(("stats", path), ("decode", path)):
        assert said.startswith(f"{path}: a row") and "longer than 512 MiB" in said
        assert peak < 512, "MiB"


@pytest.mark.slow  # to write it
def test_a_row_of_more_ids_than_512_mebibytes_is_refused(tmp_path):
    path = encoded_bomb(tmp_path / "a.parquet", "input_ids", (1 << 27) + 1)
    for said, peak in apart(("stats", path), ("decode", path), ("inspect", path)):
        assert said.startswith(f"{path}: a row of 'input_ids") and "longer than 512 MiB" in said
        assert peak < 512, "MiB"


@pytest.mark.slow
def test_a_long_row_of_ids_takes_not_much_more_than_to_read_it(tmp_path):
    path = encoded_bomb(tmp_path / "a.parquet", "input_ids", 80_000_000)  # 305 MiB
    (decoded, peak), (inspected, _) = apart(("decode", path), ("inspect", path))
    assert "documents=1" in decoded and peak < 1800, "MiB"
    assert inspected.startswith(f"{path}, row 1: has 80,000,000 tokens, more than")


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_a_long_number_in_every_row_that_is_stored_once(name, tmp_path):
    """0.15 GB of numbers in some kilobytes; a list of them is decoded at a time, not all."""
    rows, path = 150, tmp_path / name
    row = numtok.Tokenizer.from_pretrained().encode_batch(["7"], keep_text=True)
    long = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["7" * 2**20]))
    columns = {name: row[name].take(pa.array([0] * rows)) for name in row.schema.names}
    columns["number_text"] = pa.ListArray.from_arrays(pa.array(range(rows + 1), pa.int32()), long)
    columns["text"] = pa.nulls(rows, pa.string())
    table = pa.table(columns).replace_schema_metadata(row.schema.metadata)
    if path.suffix == ".parquet":
        pq.write_table(table, path, compression="zstd")
    else:
        pa.feather.write_feather(table, path, "zstd")
    assert path.stat().st_size < 20_000
    for said, peak in apart(("stats", path), ("decode", path)):
        assert "documents=150" in said and peak < 512, "MiB"


@pytest.mark.slow
def test_a_long_text_beside_every_encoded_row_is_read_piece_by_piece(tmp_path):
    [(said, peak)] = apart(("stats", encoded_bomb(tmp_path / "a.parquet", "text")))
    assert "documents=1500" in said and peak < 1024, "MiB"


@pytest.mark.parametrize("make", [pa.ipc.new_file, pa.ipc.new_stream])
def test_an_arrow_batch_that_expands_without_end(make, tmp_path):
    path, size = tmp_path / "a.arrow", 600 << 20
    schema = pa.schema({"text": pa.large_string()})
    with make(str(path), schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        for rows in ([0, 1], [0, size]):
            text = [None, pa.py_buffer(np.array(rows)), pa.py_buffer(bytes(rows[1]))]
            column = pa.Array.from_buffers(pa.large_string(), 1, text)
            writer.write_batch(pa.record_batch([column], schema=schema))
    for said, peak in apart(("stats", path), ("encode", path)):
        assert said.startswith(f"{path}: batch 2 takes 600 MiB once it is decompressed")
        assert peak < 512, "MiB"
    memory_store.empty().pipe_file("/bombs/a.arrow", path.read_bytes())
    assert "batch 2 takes 600 MiB" in str(failure("memory://bombs/a.arrow"))


def test_another_encoding_than_the_footer_says_is_refused(tmp_path):
    """A value may take much more than is stored of it."""
    path = tmp_path / "a.parquet"
    how = {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}}
    pq.write_table(pa.table({"text": ["a 1"] * 5}), path, **how)
    assert read_all(path) == ["a 1"] * 5
    forge_footer(path, b"\x25\x06\x0e", b"\x25\x06\x00")  # PLAIN
    assert "the footer says of 'text' another encoding" in str(failure(path))


def test_a_dictionary_behind_its_values_is_refused(tmp_path):
    """It could not be looked at before they are read."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["a 1"] * 5}), path)
    chunk = pq.read_metadata(path).row_group(0).column(0)
    offsets = (chunk.data_page_offset, chunk.dictionary_page_offset)
    values, dictionary = (bytes([offset << 1]) for offset in offsets)  # one byte is enough here
    told, forged = b"\x26%b\x26%b" % (values, dictionary), b"\x26%b\x26%b" % (dictionary, values)
    assert path.read_bytes().count(told) == 1
    path.write_bytes(path.read_bytes().replace(told, forged))
    assert "'text' stands behind its values" in str(failure(path))


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


@pytest.mark.parametrize("depth", [100, 900, 5000, 100_000])
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
