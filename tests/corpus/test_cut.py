"""Inputs cut into shards: every byte and every row group is in one of them, once, and cuts are
where lines begin.
"""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import example, given, settings
from hypothesis import strategies as st

from numtok.corpus.jobs.cut import cut, cut_again
from numtok.corpus.jobs.plan import Part
from numtok.corpus.read.documents import (
    find_inputs,
    group_sizes,
    line_start,
    read_batches,
    rows_before,
)
from numtok.corpus.read.sources import ByteStream, Source

LINES = st.lists(st.text("ab é\r", max_size=30).map(str.encode), max_size=30).map(b"\n".join)
FILES = st.lists(
    st.tuples(st.sampled_from(["jsonl", "txt", "csv", "jsonl.gz"]), LINES), min_size=1, max_size=5
)


def written(folder: str, files: list[tuple[str, bytes]]) -> list[Source]:
    sources = []
    for number, (kind, content) in enumerate(files):
        path = Path(folder, f"{number}.{kind}")
        path.write_bytes(content)
        compression = "gzip" if kind.endswith("gz") else None
        sources.append(Source(str(path), kind.split(".")[0], compression, len(content)))
    return sources


def made(sources: list[Source], count: int, unit: str = "line") -> list[list[Part]]:
    return cut(sources, ["" for _ in sources], count, unit)


def parts_of(sources: list[Source], count: int) -> list[Part]:
    return [part for shard in made(sources, count) for part in shard]


def content_of(source: Source) -> bytes:
    with ByteStream(dataclasses.replace(source, compression=None)) as stream:
        return stream.read()


@given(FILES, st.integers(1, 40))
@example([("jsonl", b"a\n" * 10)], 10)
@example([("jsonl", b"\n\n\n")], 2)
@example([("jsonl", b"long" * 100 + b"\n" + b"b\n" * 3)], 7)
@example([("jsonl", b""), ("jsonl", b"a"), ("jsonl", b"")], 3)
@settings(max_examples=60)
def test_parts_tile_the_inputs_at_line_ends(files: list[tuple[str, bytes]], count: int) -> None:
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


@given(LINES, st.integers(0, 500))
def test_a_line_starts_at_the_first_break_from_a_byte_on(content: bytes, position: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (source,) = written(folder, [("txt", content)])
        starts = [at for at in range(len(content)) if at == 0 or content[at - 1 : at] == b"\n"]
        position = min(position, len(content))
        expected = next((at for at in starts if at >= position), len(content))
        assert line_start(source.path, position, len(content)) == expected


def test_files_of_one_size_and_lines_of_one_size_make_shards_of_one_size(tmp_path: Path) -> None:
    lines = b"123456789\n" * 100
    sources = written(str(tmp_path), [("jsonl", lines)] * 6)
    for count, size in ((12, 500), (4, 1500)):
        assert [sum(part.length for part in one) for one in made(sources, count)] == [size] * count
    whole = written(str(tmp_path), [("jsonl.gz", lines)] * 6)
    for count, files in ((3, 2), (50, 1)):
        assert [len(shard) for shard in made(whole, count)] == [files] * (6 // files)
    texts = written(str(tmp_path), [("txt", lines)])
    assert len(made(texts, 5)) == 5 and len(made(texts, 5, "file")) == 1


@given(st.lists(st.integers(0, 40), max_size=9), st.integers(1, 12))
@settings(max_examples=25)
def test_row_groups_are_kept_whole(rows: list[int], count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.parquet")
        schema = pa.schema([("text", pa.string())])
        done = 0
        with pq.ParquetWriter(path, schema) as writer:
            for size in rows:
                texts = [f"row {done + row}" for row in range(size)]
                writer.write_table(pa.table({"text": texts}, schema))
                done += size
        (source,) = find_inputs([path])
        parts = parts_of([source], count)
        if len(parts) > 1:
            ends = [part.stop for part in parts]
            assert [part.start for part in parts] == [0, *ends[:-1]]
            assert ends[-1] == len(group_sizes(source))
        assert sum(part.length for part in parts) == source.size
        found = []
        for part in parts:
            piece = part.source
            assert rows_before(piece) == len(found)
            for batch in read_batches(piece):
                assert batch.first_row == len(found) - rows_before(piece)
                found += batch.texts.to_pylist()
        assert found == [f"row {row}" for row in range(done)]


@given(LINES, LINES, st.integers(1, 12))
@settings(max_examples=60)
def test_a_file_that_is_cut_again_is_in_its_parts_once(
    before: bytes, after: bytes, count: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        parts = parts_of(written(folder, [("jsonl", before)]), count)
        again = cut_again(parts, written(folder, [("jsonl", after)])[0], "new")
        there = [part for part in again if part is not None]
        assert len(again) == len(parts) and again[0] is not None
        assert b"".join(content_of(part.source) for part in there) == after
        assert all(after[part.start - 1 : part.start] == b"\n" for part in there[1:])


def test_what_lies_between_two_changes_keeps_its_bounds(tmp_path: Path) -> None:
    lines = [f"line {number} of them\n".encode() for number in range(1000)]
    parts = parts_of(written(str(tmp_path), [("txt", b"".join(lines))]), 10)
    before = [content_of(part.source) for part in parts]
    (source,) = written(str(tmp_path), [("txt", b"".join([b"0\n", *lines[2:990], *lines[995:]]))])
    after = [content_of(part.source) for part in cut_again(parts, source, "new") if part]
    assert after[1:9] == before[1:9] and b"".join(after) == Path(source.path).read_bytes()
