"""Readers: whatever the format and compression, the documents come back as they were; hostile files
end in an error that helps.
"""

import csv
import gzip
import io
import itertools
import json
import os
import sys
import tempfile
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from input_files import COMPRESS, batches_of, failure, read_all, write, write_rows

import numtok
from numtok.corpus.read.batches import ReadOptions
from numtok.corpus.read.documents import find_inputs, read_batches
from numtok.corpus.read.sources import Source
from numtok.corpus.read.tables import ParquetFile
from numtok.errors import InputError

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30)
TEXTS = st.lists(TEXT, max_size=20)
NULLABLE = st.lists(st.none() | TEXT, max_size=20)


def compress(data, suffix):
    return COMPRESS[suffix](data) if suffix else data


def content(name, texts, rows=3):
    """The texts as a file of the format and the compression that its name tells; in Arrow's formats
    with so many rows a batch.
    """
    _, kind, suffix, *_ = [*name.split("."), "", ""]
    documents = [{"id": row, "text": text} for row, text in enumerate(texts)]
    if kind in ("parquet", "arrow", "feather"):
        out, table = io.BytesIO(), pa.table({"text": pa.array(texts, pa.string())})
        if kind == "parquet":
            pq.write_table(table, out, row_group_size=rows)
        else:
            with (pa.ipc.new_stream if kind == "feather" else pa.ipc.new_file)(
                out, table.schema
            ) as writer:
                writer.write_table(table, rows)
        return compress(out.getvalue(), suffix)
    if kind == "csv":
        lines = io.StringIO(newline="")
        csv.writer(lines, quoting=csv.QUOTE_ALL).writerows([["text"], *([one] for one in texts)])
        return compress(lines.getvalue().encode(), suffix)
    if kind == "txt":
        return compress("".join(f"{text}\n" for text in texts).encode(), suffix)
    if name.startswith("array"):
        return compress(json.dumps(documents, indent=1).encode(), suffix)
    written = [json.dumps(row, ensure_ascii=kind != "ndjson") for row in documents]
    return compress("".join(f"{line}\n" for line in written).encode(), suffix)


# Round trips


NULLABLE_FILES = "a.jsonl b.ndjson lines.json array.json a.parquet a.arrow a.feather"


@settings(max_examples=examples(30))
@given(NULLABLE, st.sampled_from(["", ".gz", ".zst", ".bz2", ".xz"]), st.integers(1, 200))
def test_texts_with_nulls_come_back(texts, suffix, batch_bytes):
    with tempfile.TemporaryDirectory() as folder:
        for name in NULLABLE_FILES.split():
            path = write(Path(folder), name + suffix, content(name + suffix, texts))
            assert read_all(path, batch_bytes=batch_bytes) == texts, name


ENDS = st.sampled_from(["\n", "\r\n"])


@settings(max_examples=60)
@given(TEXTS, ENDS, st.sampled_from(["", ".gz", ".zst"]), st.integers(3, 60))
def test_lines_of_text_come_back(texts, line_break, suffix, batch_bytes):
    texts = [text.replace("\n", " ").rstrip("\r") for text in texts]
    texts[:1] = [text.lstrip("\ufeff") for text in texts[:1]]
    data = "".join(text + line_break for text in texts).encode()
    with tempfile.TemporaryDirectory() as folder:
        # without its line break, an empty last line is no line
        for ends in (True, False) if texts and texts[-1] else (True,):
            written = data if ends else data.removesuffix(line_break.encode())
            path = write(Path(folder), f"{ends}.txt{suffix}", compress(written, suffix[1:]))
            assert read_all(path, batch_bytes=batch_bytes) == texts


def test_whole_file_is_one_document(tmp_path):
    path = write(tmp_path, "a.txt.gz", gzip.compress(b"\xef\xbb\xbfone\r\ntwo\n\n"))
    assert read_all(path, text_unit="file") == ["one\r\ntwo\n\n"]
    assert read_all(write(tmp_path, "empty.txt", b""), text_unit="file") == []
    error = failure(write(tmp_path, "bad.txt", b"ok\nno \xff"), text_unit="file")
    assert (error.line, error.column) == (2, 4)
    [batch] = batches_of(tmp_path / "bad.txt", text_unit="file", on_error="skip")
    assert (len(batch.texts), batch.skipped) == (0, 1)


# Rows, batches, positions


NAMES = "a.jsonl a.csv a.parquet a.arrow a.feather a.jsonl.gz a.csv.zst a.json"


@pytest.mark.parametrize("name", NAMES.split())
def test_batches_are_bounded_and_know_their_place(tmp_path, name):
    texts = [f"{row} " + "x" * (row % 700) for row in range(2000)]
    path = write(tmp_path, name, content(name, texts, rows=4 if "parquet" in name else 2000))
    [source] = find_inputs([path])
    assert source.size == path.stat().st_size
    batches = list(read_batches(source, ReadOptions(batch_bytes=20_000)))
    assert len(batches) > 10 and max(batch.texts.nbytes for batch in batches) < 100_000
    sizes = [len(batch.texts) for batch in batches]
    assert [batch.first_row for batch in batches] == [0, *itertools.accumulate(sizes[:-1])]
    assert [batch.position for batch in batches] == sorted(batch.position for batch in batches)
    # an IPC stream ends in 8 bytes that say so
    assert source.size - 8 <= batches[-1].position <= source.size
    assert [text for batch in batches for text in batch.texts.to_pylist()] == texts


# Which column


def test_a_batch_is_bounded_whatever_its_column_is_called(tmp_path):
    table = pa.table({"meta.text": ["word " * 1000] * 2000, "meta": [1] * 2000})
    pq.write_table(table, tmp_path / "a.parquet", use_dictionary=False)
    with ParquetFile(str(tmp_path / "a.parquet")) as file:
        assert max(batch.nbytes for batch in file.stream(["meta.text"], 100_000)) < 200_000


def table_files(folder, row):
    names = ("a.parquet", "a.arrow", "a.csv", "a.jsonl", "a.json")
    return [write_rows(folder / name, [row]) for name in names]


def test_the_text_column_is_found_or_asked_for(tmp_path):
    for path in table_files(tmp_path, {"id": 1, "title": "t", "body": "b", "content": "c"}):
        assert read_all(path) == ["c"]
        assert read_all(path, text_column="title") == ["t"]
        error = str(failure(path, text_column="txt"))
        assert all(one in error for one in ("'txt'", "'title', 'body'", "text_column="))
        assert "'nope'" in str(failure(path, keep_columns=["nope"]))
    for path in table_files(tmp_path, {"id": 1, "note": "only string"}):
        assert read_all(path) == ["only string"]
    for path in table_files(tmp_path, {"a": "1x", "b": "2x"}):
        error = failure(path)
        assert "'a', 'b'" in str(error) and "text_column=NAME (--text-column NAME)" in str(error)


def test_the_text_is_the_column_of_that_name_whatever_its_values_are(tmp_path):
    """Or a file of a folder whose texts are all numbers, or all missing, gives another column."""
    for value in ("42", "2020-01-02", "true", ""):
        rows = {"lang": "de", "text": value}
        assert read_all(write_rows(tmp_path / "a.csv", [rows])) == [value]
        assert read_all(write_rows(tmp_path / "a.tsv", [rows])) == [value]
    for name in ("a.parquet", "a.arrow", "a.jsonl", "a.json"):
        assert read_all(write_rows(tmp_path / name, [{"lang": "de", "text": None}])) == [None]
        error = failure(write_rows(tmp_path / name, [{"lang": "de", "text": 42}]))
        assert "not a string" in str(error) or "int64, not string" in str(error)


TEXT_TYPES = [pa.string_view(), pa.binary(), pa.large_binary(), pa.large_string()]


@pytest.mark.parametrize("dtype", [*TEXT_TYPES, pa.dictionary(pa.int32(), pa.string())])
def test_other_arrow_kinds_of_text(tmp_path, dtype):
    plain = pa.binary() if "binary" in str(dtype) else pa.string()
    table = pa.table({"text": pa.array(["é", None, ""]).cast(plain).cast(dtype)})
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table)
    assert read_all(tmp_path / "a.arrow", text_column="text") == ["é", None, ""]


@pytest.mark.parametrize("value", [b"\xff", rb"\ud800"])
def test_what_is_no_character_matters_in_the_columns_that_are_used(tmp_path, value):
    data = b'{"text":"ok","y":"b"}\n{"text":"none","y":"%s"}\n' % value
    path = write(tmp_path, "a.jsonl", data)
    summary = numtok.encode_files(path, tmp_path / "out.parquet", numbers="bits")
    assert read_all(path) == ["ok", "none"] and summary.documents == 2
    for how in ({"template": "{y}"}, {"template": "row"}, {"keep_columns": ["y"]}):
        assert failure(path, **how).line == 2
        batches = batches_of(path, on_error="skip", **how)
        assert [row.line for batch in batches for row in batch.bad] == [2]
        assert sum(len(batch.texts) for batch in batches) == 1


# JSON: awkward but right


GOOD = {
    "a.jsonl": [
        (b"", []),
        (b"\n\n \t\r\n", []),
        (b"\xef\xbb\xbf", []),
        (b'\xef\xbb\xbf{"text":"a"}\n', ["a"]),
        (b'{"text":"a"}', ["a"]),
        (b'\n\r\n{"text":"a"}\r\n\n  {"text":"b"}  \r\n', ["a", "b"]),
        (b'{"text":"a","text":"b"}\n', ["b"]),
        (b'{"text":"a","x":1,"x":"s"}\n', ["a"]),
        (b'{"text":"a","x":1}\n{"text":"b","x":"s"}\n{"text":"c","x":[{}]}\n', ["a", "b", "c"]),
        (b"{}\n{}\n", [None, None]),
        (b'{}\n{"text":"b"}\n{"text":null}\n', [None, "b", None]),
        (b'null\n{"text":"a"}\n', [None, "a"]),  # a leading null crashes Arrow's own parser
        (b'{"text":"a"}\nnull\n', ["a", None]),
        (b'{"text":"a\\u0000b\\n\\"c\\""}\n', ['a\0b\n"c"']),
        (b'{"te\\u0078t":"a"}\n', ["a"]),
        (b'{"text":"\\ud83d\\ude00"}\n', ["\U0001f600"]),
        (b'{"text":"a","x":"\xff"}\n{"text":"b","text":"c"}\n', ["a", "c"]),
        (b'{"text":"a","x":NaN,"y":1' + b"0" * 9000 + b'}\n{"text":"b","text":"c"}\n', ["a", "c"]),
        (b'{"text":"a","x":' + b"[" * 50_000 + b"]" * 50_000 + b"}\n", ["a"]),
        (b'{"id":"q","text":null}\n', [None]),
    ],
    "a.json": [
        ("", []),
        (" \n", []),
        ("[]", []),
        ("[ ]\n", []),
        ('\ufeff[{"text":"a"}]', ["a"]),
        ('[{"text":"a"},\n\n {"text":null}, {}, null]\n', ["a", None, None, None]),
        ('{"text":"a"}', ["a"]),
        ('{\n "text": "a",\n "n": 1\n}\n', ["a"]),
        ('{"text":"a"}\n{"text":"b"}\n', ["a", "b"]),
    ],
}
BROKEN = {
    "a.jsonl": [
        (b'{"text":"a"}\n\n{"text":oops}\n{"text":"c"}\n', 3, 9, "Expecting value"),
        (b'{"text":"a"}\n{"text":"b', 2, 9, "Unterminated string"),
        (b'{"text":"a"} xx\n', 1, 14, "one object on each line"),
        (b'{"text":"a"}{"text":"b"}\n', 1, 13, "one object on each line"),
        (b'{"text":\n"a"}\n', 1, 9, "Expecting value"),
        (b'{"text":"a\0b"}\n', 1, 11, "Invalid control character"),
        (b'{"text":"a\tb"}\n', 1, 11, "Invalid control character"),
        (b'{"text":"a"}\0\n', 1, 13, "one object on each line"),
        (b'[{"text":"a"}]\n', 1, None, "input_format='json'"),
        (b'"a"\n', 1, None, "not an object"),
        (b'{"text":"ok"}\n\n{"text":["a"]}\n', 3, None, "not a string"),
        (b'{"text":"\\ud800"}\n', 1, None, "surrogate"),
        (b'{"text":"a"}\n{"text":"\xc3\xa9 \xff"}\n', 2, 12, "byte 0xff at byte offset 25"),
        (b'{"text":"a"}\n\xef\xbb\xbf{"text":"b"}\n', 2, 1, "not valid JSON"),
        (b"[" * 100_000 + b"\n", 1, None, "nested too deeply"),
        ('{"text":"a"}\n'.encode("utf-16"), 1, None, "UTF-16"),
    ],
    "a.json": [
        (b'[{"text":"a"}\n {"text":"b"}]', 2, 2, "Expecting ','"),
        (b'[{"text":"a"},\n]', 2, 1, "Expecting value"),
        (b'[{"text":"a"}', 1, 14, "Expecting ','"),
        (b'[{"text":"a"}]\n[]', 2, 1, "more text"),
        (b'\n[{"text":\n"\xff"}]', 3, 2, "byte offset 12"),
        (b'{\n"text": oops}', 2, 9, "Expecting value"),
        (b"[1]", 1, None, "not an object"),
        (b'[{"text":"ok"},\n{"text":true}]', 2, None, "not a string"),
    ],
}


def rows_of(tables):
    return [(name, *row) for name, rows in tables.items() for row in rows]


@pytest.mark.parametrize(("name", "data", "texts"), rows_of(GOOD))
def test_awkward_json(tmp_path, name, data, texts):
    for batch_bytes in (8 << 20, 1):  # however the blocks fall
        assert read_all(write(tmp_path, name, data), batch_bytes=batch_bytes) == texts


@pytest.mark.parametrize(("name", "data", "line", "column", "reason"), rows_of(BROKEN))
def test_broken_json(tmp_path, name, data, line, column, reason):
    path = write(tmp_path, name, data)
    for batch_bytes in (8 << 20, 5):
        error = failure(path, batch_bytes=batch_bytes)
        assert (error.line, error.column) == (line, column) and reason in str(error)


def test_bad_rows_can_be_skipped(tmp_path):
    data = b'oops\n{"text":"a"}\n{"text":1}\n{"text":"\xff"}\n\n{"text":"\\udc80"}\n{"text":"b"}\n[]\n{"text":"c'
    path = write(tmp_path, "a.jsonl", data)
    [batch] = batches_of(path, on_error="skip")
    assert (batch.texts.to_pylist(), batch.skipped) == (["a", "b"], 6)
    assert "on_error='skip'" in str(failure(path))
    path = write(tmp_path, "a.txt", b"a\nb\xff\r\n\nc\r\n\xff")
    [batch] = batches_of(path, on_error="skip")
    assert (batch.texts.to_pylist(), batch.skipped) == (["a", "", "c"], 2)
    error = failure(path)
    assert (error.line, error.column) == (2, 2)
    assert "byte offset 3" in str(error) and "iconv" in str(error)


def test_a_bad_row_of_an_array_is_left_out_by_itself(tmp_path):
    data = '[{"text":"a"},\n {"text":\n 1},\n {"text":"b\\n"}, []]'
    path = write(tmp_path, "a.json", data)
    assert read_all(path, on_error="skip") == ["a", "b\n"]
    (batch,) = batches_of(path, on_error="skip")
    assert [row.line for row in batch.bad] == [2, 4]


def test_streams_that_were_joined_lose_no_row(tmp_path):
    """Every reader of Arrow stops at the end of the first one."""
    table, stream = pa.table({"text": ["a", "b"]}), io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as file:
        file.write_table(table)
    one = stream.getvalue()
    assert read_all(write(tmp_path, "one.arrow", one)) == ["a", "b"]
    joined = write(tmp_path, "two.arrow", one + one)
    assert "after the end of its stream" in str(failure(joined))
    *_, last = batches_of(joined, on_error="skip")
    assert "after the end of its stream" in last.bad[0].error


def test_files_of_other_kinds_are_told(tmp_path):
    for name in ("a.zip", "a.tar.gz", "a.jsonl.lz4"):
        with pytest.raises(InputError, match="unpack it if it is an archive"):
            find_inputs(write(tmp_path, name, b"a"))


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_a_bad_row_of_a_table_is_left_out_by_itself(tmp_path, name):
    """The rows behind it are read, also in other row groups, and each is named."""
    rows = [b"row %d" % k for k in range(100)]
    bad = [17, 18, 55, 99]
    for row in bad:
        rows[row] = b"\xff 5"
    table = pa.table({"text": pa.array(rows, pa.binary()), "id": range(100)})
    write_table(table, tmp_path / name, rows=30)
    error = failure(tmp_path / name, text_column="text")
    assert (error.row, error.path) == (18, str(tmp_path / name)) and "on_error='skip'" in str(error)
    out = tmp_path / "out"
    numtok.encode_files(
        *(tmp_path / name, f"{out}/"), numbers="bits", text_column="text", keep_columns=["id"],
        keep_text=True, on_error="skip", shards=3, workers=1,
    )  # fmt: skip
    back = pa.concat_tables(map(pq.read_table, sorted(out.glob("*.parquet"))))
    assert back["id"].to_pylist() == [k for k in range(100) if k not in bad]
    quarantine = (out / "__numtok" / "quarantine.jsonl").read_text().splitlines()
    assert [json.loads(line)["line"] for line in quarantine] == [row + 1 for row in bad]


def test_a_text_of_an_arrow_file_that_is_not_utf8_is_left_out_by_itself(tmp_path):
    schema = pa.schema({"text": pa.string()})
    with pa.ipc.new_stream(tmp_path / "a.arrow", schema) as writer:
        for texts in ([b"a", b"\xff", b"c"], [b"d"]):
            columns = [pa.array(texts).view(pa.string())]
            writer.write_batch(pa.record_batch(columns, schema=schema))
    assert read_all(tmp_path / "a.arrow", on_error="skip") == ["a", "c", "d"]
    assert failure(tmp_path / "a.arrow").row == 2


def write_table(table, path, rows):
    """Parquet or Arrow in groups of rows."""
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=rows)
    else:
        pyarrow.feather.write_feather(table, path, "uncompressed", chunksize=rows)


# Damage


# each format; all that can be wrong with each compression: test_compressions.py
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.feather"])
def test_damaged_tables(tmp_path, name):
    whole = content(name, [f"row {row}" for row in range(3000)], rows=500)
    shorter = whole[:100] if name == "a.feather" else whole[:-1]
    for data in (b"", whole[:4], b"hello world" * 20, whole[: len(whole) // 2], shorter):
        assert "cut short or damaged" in str(failure(write(tmp_path, name, data)))


def test_broken_utf8_and_offsets_in_tables(tmp_path):
    def forged(offsets, text):
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
        return pa.Array.from_buffers(pa.string(), len(offsets) // 4 - 1, buffers)

    bad_text = forged(b"\0\0\0\0\2\0\0\0", b"a\xff")
    bad_offsets = forged(b"\0\0\0\0\x40\0\0\0\1\0\0\0", b"ab")
    for column in (bad_text, bad_offsets):
        batch = pa.record_batch({"text": column})
        with pa.ipc.new_stream(tmp_path / "a.arrow", batch.schema) as writer:
            writer.write_batch(batch)
        assert "column 'text' is damaged or not UTF-8" in str(failure(tmp_path / "a.arrow"))
    pq.write_table(pa.table({"text": bad_text}), tmp_path / "a.parquet")
    assert "'text'" in str(failure(tmp_path / "a.parquet"))


# Finding inputs


def test_folders_globs_and_files(tmp_path, monkeypatch):
    found = ("b.jsonl", "a.TXT.GZ", "sub/c.csv", "sub/deep/d.parquet")
    others = (".hidden.txt", ".git/e.txt", "README.md", "noext", "state.json", "x.gz")
    for name in (*found, *others):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        write(tmp_path, name, b"")
    monkeypatch.chdir(tmp_path)

    def names(*inputs, format=None):
        return [os.path.relpath(source.path) for source in find_inputs(inputs, format)]

    assert names(".") == ["a.TXT.GZ", "b.jsonl", "sub/c.csv", "sub/deep/d.parquet"]
    assert names("sub", "b.jsonl") == ["sub/c.csv", "sub/deep/d.parquet", "b.jsonl"]
    assert names("**/*.csv") == names("sub/*.csv") == ["sub/c.csv"]
    assert names("*.md", format="txt") == ["README.md"]
    assert names(".", format="csv") == ["sub/c.csv"]
    assert find_inputs(["a.TXT.GZ"]) == [Source("a.TXT.GZ", "txt", "gzip", 0)]
    assert find_inputs(["-"]) == [Source("-", "jsonl")]
    assert find_inputs(["-"], "csv") == [Source("-", "csv")]
    write(tmp_path, "odd[1]*.txt", b"")
    assert names("odd[1]*.txt") == ["odd[1]*.txt"], "a real name wins over the pattern"


@pytest.mark.parametrize("form", ["jsonl", "csv", "txt", "parquet", "arrow", "json"])
def test_standard_input_and_pipes(tmp_path, monkeypatch, form):
    texts, pipe = ["a", "b 1"], tmp_path / "pipe"
    data = content(f"a.{'feather' if form == 'arrow' else form}", texts)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(data,))
    writer.start()
    for item in ("-", pipe):
        [source] = find_inputs([item], form)
        assert source.size is None
        assert [one for batch in read_batches(source) for one in batch.texts.to_pylist()] == texts
    writer.join()


def test_errors_of_standard_input_and_of_a_file_that_goes_away(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"text":"a"}\n{')))
    with pytest.raises(InputError, match=r"^<stdin>:2:2: not valid JSON"):
        list(read_batches(Source("-", "jsonl")))
    path = write(tmp_path, "a.jsonl", b"")
    [source] = find_inputs([path])
    path.unlink()
    with pytest.raises(InputError, match="No such file"):
        list(read_batches(source))


def test_a_named_pipe_in_a_folder_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "c.jsonl")
    assert find_inputs([tmp_path / "c.jsonl"])[0].size is None
    with pytest.raises(InputError, match=r"c\.jsonl: is a pipe or a device"):
        find_inputs([tmp_path])


def test_a_parquet_file_is_closed_at_once(tmp_path):
    """Windows removes and replaces no file that is open."""
    write_rows(tmp_path / "a.parquet", [{"text": "is 5"}])
    with ParquetFile(str(tmp_path / "a.parquet")) as file:
        assert file.read().num_rows == 1
    with pytest.raises(ValueError, match="closed"):
        file.read()
