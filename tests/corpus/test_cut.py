"""Inputs cut into shards: every byte and every row group is in one of them, once, and cuts are
where lines begin.
"""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from numtok.corpus.jobs.cut import Part, cut
from numtok.corpus.jobs.finish import check_tiles
from numtok.corpus.jobs.plan import Plan
from numtok.corpus.read.documents import find_inputs, read_batches
from numtok.corpus.read.parts import group_sizes, line_start, rows_before
from numtok.corpus.read.sources import ByteStream, Source
from numtok.errors import JobError

LINES = st.lists(st.text("ab é\r", max_size=30).map(str.encode), max_size=30).map(b"\n".join)
FILES = st.lists(
    st.tuples(st.sampled_from(["jsonl", "txt", "csv", "jsonl.gz"]), LINES), min_size=1, max_size=5
)


def written(folder: str, files: list[tuple[str, bytes]]) -> list[Source]:
    sources = []
    for number, (kind, content) in enumerate(files):
        path = Path(folder, f"{number}.{kind}")
        path.write_bytes(content)
        sources.append(
            Source(
                str(path), kind.split(".")[0], "gzip" if kind.endswith("gz") else None, len(content)
            )
        )
    return sources


def part_of(source: Source, part: Part) -> Source:
    return dataclasses.replace(source, start=part.start, stop=part.stop, size=part.size)


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
        shards = cut(sources, count, "line")
        parts = [part for shard in shards for part in shard]
        assert 1 <= len(shards) <= count and all(shards)
        assert [part.input for part in parts] == sorted(part.input for part in parts)
        for number, (kind, content) in enumerate(files):
            own = [part for part in parts if part.input == number]
            assert b"".join(content_of(part_of(sources[number], part)) for part in own) == content
            assert sum(part.size for part in own) == len(content)
            starts = [part.start for part in own]
            assert starts[0] == 0 and starts == sorted(set(starts))
            assert all(content[start - 1 : start] == b"\n" for start in starts[1:])
            assert len(own) == 1 or kind in ("jsonl", "txt")
            assert all(part.stop is not None for part in own) or len(own) == 1
        check_tiles(plan_of(sources, shards))


def plan_of(sources: list[Source], shards: list[list[Part]]) -> Plan:
    inputs: list[dict[str, Any]] = [
        {"path": source.path, "format": source.format, "size": source.size} for source in sources
    ]
    return Plan(
        inputs, [[list(part) for part in parts] for parts in shards], {}, {}, {}, "", None, None
    )


@given(LINES, st.integers(0, 500))
def test_a_line_starts_at_the_first_break_from_a_byte_on(content: bytes, position: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (source,) = written(folder, [("txt", content)])
        starts = [at for at in range(len(content)) if at == 0 or content[at - 1 : at] == b"\n"]
        position = min(position, len(content))
        expected = next((at for at in starts if at >= position), len(content))
        assert line_start(source.path, position, len(content)) == expected


def test_files_of_one_size_and_lines_of_one_size_make_shards_of_one_size(tmp_path: Path) -> None:
    sources = written(str(tmp_path), [("jsonl", b"123456789\n" * 100)] * 6)
    assert [sum(part.size for part in shard) for shard in cut(sources, 12, "line")] == [500] * 12
    assert [sum(part.size for part in shard) for shard in cut(sources, 4, "line")] == [1500] * 4
    whole = written(str(tmp_path), [("jsonl.gz", b"123456789\n" * 100)] * 6)
    assert [[part.input for part in shard] for shard in cut(whole, 3, "line")] == [
        [0, 1],
        [2, 3],
        [4, 5],
    ]
    assert [[part.input for part in shard] for shard in cut(whole, 50, "line")] == [
        [0],
        [1],
        [2],
        [3],
        [4],
        [5],
    ]
    texts = written(str(tmp_path), [("txt", b"123456789\n" * 100)])
    assert len(cut(texts, 5, "line")) == 5 and len(cut(texts, 5, "file")) == 1


@given(st.lists(st.integers(0, 40), max_size=9), st.integers(1, 12))
@settings(max_examples=25)
def test_row_groups_are_kept_whole(rows: list[int], count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.parquet")
        schema = pa.schema([("text", pa.string())])
        done = 0
        with pq.ParquetWriter(path, schema) as writer:
            for size in rows:
                writer.write_table(
                    pa.table({"text": [f"row {done + row}" for row in range(size)]}, schema)
                )
                done += size
        (source,) = find_inputs([path])
        parts = [part for shard in cut([source], count, "line") for part in shard]
        if len(parts) > 1:
            ends = [part.stop for part in parts]
            assert [part.start for part in parts] == [0, *ends[:-1]] and ends[-1] == len(
                group_sizes(source)
            )
        assert sum(part.size for part in parts) == source.size
        found = []
        for part in parts:
            piece = part_of(source, part)
            assert rows_before(piece) == len(found)
            for batch in read_batches(piece):
                assert batch.first_row == len(found) - rows_before(piece)
                found += batch.texts.to_pylist()
        assert found == [f"row {row}" for row in range(done)]


@pytest.mark.parametrize(
    "shards",
    [
        [[Part(0, 0, 10, 10)], [Part(0, 12, 20, 8)]],
        [[Part(0, 0, 10, 10)], [Part(0, 8, 20, 12)]],
        [[Part(0, 0, 10, 10)]],
        [[Part(0, 10, 20, 10)]],
        [[Part(0, 10, 20, 10)], [Part(0, 0, 10, 10)]],
        [[Part(0, 0, None, 20)], [Part(0, 0, None, 20)]],
        [[]],
    ],
)
def test_what_does_not_tile_is_refused(shards: list[list[Part]]) -> None:
    with pytest.raises(JobError, match=r"a\.jsonl: the shards do not hold all of it"):
        check_tiles(plan_of([Source("a.jsonl", "jsonl", None, 20)], shards))
