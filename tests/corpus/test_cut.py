"""Inputs cut into shards: every byte and every row group is in one of them, once, and cuts are
where lines begin.
"""

import dataclasses
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import example, given, settings
from hypothesis import strategies as st

import numtok
from numtok.corpus.jobs.request import cut, cut_again
from numtok.corpus.read.sources import ByteStream, Source

LINES = st.lists(st.text("ab é\r", max_size=30).map(str.encode), max_size=30).map(b"\n".join)
FILES = st.lists(
    st.tuples(st.sampled_from(["jsonl", "txt", "csv", "jsonl.gz"]), LINES), min_size=1, max_size=5
)


def written(folder, files):
    sources = []
    for number, (kind, content) in enumerate(files):
        path = Path(folder, f"{number}.{kind}")
        path.write_bytes(content)
        compression = "gzip" if kind.endswith("gz") else None
        sources.append(Source(str(path), kind.split(".")[0], compression, len(content)))
    return sources


def made(sources, count, unit="line"):
    return cut(sources, ["" for _ in sources], count, unit)


def parts_of(sources, count):
    return [part for shard in made(sources, count) for part in shard]


def content_of(source):
    with ByteStream(dataclasses.replace(source, compression=None)) as stream:
        return stream.read(1 << 20)


@given(FILES, st.integers(1, 40))
@example([("jsonl", b"a\n" * 10)], 10)
@example([("jsonl", b"\n\n\n")], 2)
@example([("jsonl", b"long" * 100 + b"\n" + b"b\n" * 3)], 7)
@example([("jsonl", b""), ("jsonl", b"a"), ("jsonl", b"")], 3)
@settings(max_examples=60)
def test_parts_tile_the_inputs_at_line_ends(files, count):
    with tempfile.TemporaryDirectory() as folder:
        sources = written(folder, files)
        shards = made(sources, count)
        parts = [part for shard in shards for part in shard]
        assert 1 <= len(shards) <= count and all(shards)
        assert [part.path for part in parts] == sorted(part.path for part in parts)
        for number, (kind, content) in enumerate(files):
            own = [part for part in parts if part.path == sources[number].path]
            assert b"".join(content_of(part.source) for part in own) == content
            assert sum(part.length for part in own) == len(content)
            starts = [part.start for part in own]
            assert starts[0] == 0 and starts == sorted(set(starts))
            assert all(content[start - 1 : start] == b"\n" for start in starts[1:])
            assert len(own) == 1 or kind in ("jsonl", "txt")
            assert all(part.stop is not None for part in own) or len(own) == 1


def test_files_of_one_size_and_lines_of_one_size_make_shards_of_one_size(tmp_path):
    lines = b"123456789\n" * 100
    sources = written(str(tmp_path), [("jsonl", lines)] * 6)
    for count, size in ((12, 500), (4, 1500)):
        assert [sum(part.length for part in one) for one in made(sources, count)] == [size] * count
    whole = written(str(tmp_path), [("jsonl.gz", lines)] * 6)
    for count, files in ((3, 2), (50, 1)):
        assert [len(shard) for shard in made(whole, count)] == [files] * (6 // files)
    texts = written(str(tmp_path), [("txt", lines)])
    assert len(made(texts, 5)) == 5 and len(made(texts, 5, "file")) == 1


@given(LINES, LINES, st.integers(1, 12))
@settings(max_examples=60)
def test_a_file_that_is_cut_again_is_in_its_parts_once(before, after, count):
    with tempfile.TemporaryDirectory() as folder:
        parts = parts_of(written(folder, [("jsonl", before)]), count)
        (source,) = written(folder, [("jsonl", after)])
        again = cut_again(source, "new", len(parts), "line")
        assert len(again) == len(parts)
        assert b"".join(content_of(part.source) for part in again) == after
        starts = [part.start for part in again if part.length]
        assert all(after[start - 1 : start] == b"\n" for start in starts[1:])


def test_a_row_group_without_rows_is_a_part_too(tmp_path):
    """Be it the only one of its shard: the parts still follow one another."""
    texts, path = pa.table({"text": [f"row {row}" for row in range(40)]}), tmp_path / "a.parquet"
    with pq.ParquetWriter(path, texts.schema) as writer:
        for rows in (texts.slice(0, 10), texts.slice(0, 0), texts.slice(10)):
            writer.write_table(rows)
    for count in range(1, 6):
        out = tmp_path / str(count)
        made = numtok.encode_files(path, out, numbers="bits", shards=count, workers=1)
        assert made.documents == numtok.finish_job(out).documents == 40
