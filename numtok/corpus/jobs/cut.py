"""Inputs cut into shards, and cut again where they were mended. A plain file of lines is cut where
a line begins, a Parquet file between row groups; all others stay whole. A part belongs to the shard
in which its middle lies, the inputs being laid end to end, so that shards are of about one size.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import zlib
from collections.abc import Iterator, Sequence

from numtok import locations
from numtok.corpus.jobs.plan import Part
from numtok.corpus.read.batches import ReadOptions
from numtok.corpus.read.documents import group_sizes, line_start
from numtok.corpus.read.formats import FORMATS
from numtok.corpus.read.jsonl import columns_of_head
from numtok.corpus.read.sources import Source
from numtok.errors import InputError

_MARK = 64  # bytes after a cut by which it is found again
_NEAR = 1 << 16  # how far from where it should be

Stretch = tuple[int, int | None, int]  # start, stop, bytes


def cut(
    sources: Sequence[Source],
    tags: Sequence[str],
    count: int,
    text_unit: str,
    text_column: str | None = None,
) -> list[list[Part]]:
    """The parts of each of at most ``count`` shards, which together hold each input exactly once;
    ``text_unit="file"`` keeps text files whole.
    """
    total = sum(source.size or 0 for source in sources)
    shards: dict[int, list[Part]] = {}
    done = 0
    for source, tag in zip(sources, tags, strict=True):
        stop = done + (source.size or 0)
        numbers = range(done * count // total, stop * count // total + 2) if total else ()
        ends = [end for k in numbers if done < (end := total * k // count) < stop]
        pieces: dict[int, list[Stretch]] = {}
        for stretch in _stretches(source, [end - done for end in ends], text_unit):
            twice_middle = 2 * done + stretch[2]
            done += stretch[2]
            place = min(twice_middle * count // (2 * total), count - 1) if total else 0
            pieces.setdefault(place, []).append(stretch)
        for place, some in pieces.items():
            joined = (some[0][0], some[-1][1], sum(length for _, _, length in some))
            shards.setdefault(place, []).append(_part(source, tag, joined, text_column))
    return [shards[place] for place in sorted(shards)]


def _stretches(source: Source, inner: Sequence[int], text_unit: str) -> list[Stretch]:
    """What the file is cut into; ``inner`` are the bytes where it should be."""
    size = source.size or 0
    kind = None if source.compression or not inner else FORMATS[source.format].cut
    if kind == "lines" and not (source.format == "txt" and text_unit == "file"):
        starts = sorted({0, *(line_start(source.path, at, size) for at in inner)} - {size})
        if len(starts) > 1:
            bounds = itertools.pairwise([*starts, size])
            return [(start, stop, stop - start) for start, stop in bounds]
    if kind == "row groups" and len(ends := _group_ends(source)) > 2:
        groups = enumerate(itertools.pairwise(ends))
        return [(number, number + 1, end - start) for number, (start, end) in groups]
    return [(0, None, size)]


def _group_ends(source: Source) -> list[int]:
    """Where row groups would end if the file had nothing else; just 0 for a damaged one."""
    with contextlib.suppress(InputError):
        groups = group_sizes(source)
        size, total = source.size or 0, max(sum(groups), 1)
        return [0, *(size * done // total for done in itertools.accumulate(groups))]
    return [0]


def _part(source: Source, tag: str, stretch: Stretch, text_column: str | None) -> Part:
    (start, stop, length), size = stretch, source.size or 0
    part = Part(source.path, source.format, source.compression, size, tag, start, stop, length)
    if not start or FORMATS[source.format].cut != "lines":
        return part
    with locations.open_file(source.path, 1 << 16) as file:
        file.seek(start)
        part = part._replace(mark=zlib.crc32(file.read(_MARK)))
    if source.format == "jsonl":  # what lies before the part says which column is the text
        with contextlib.suppress(InputError):
            columns = columns_of_head(part.source, ReadOptions(text_column, on_error="skip"))
            return part._replace(column=columns.text if columns else None)
    return part


def cut_again(
    parts: Sequence[Part], source: Source, tag: str, text_column: str | None = None
) -> list[Part | None]:
    """The parts of a file as it is now: the same if it is as it was, else about as it was cut
    before; None for one that is gone. Where a cut was is told by the bytes after it, so that what
    lies between two changes keeps its bounds.
    """
    first, size, kind = parts[0], source.size or 0, FORMATS[source.format].cut
    now = (source.format, source.compression, size, tag)
    if (first.format, first.compression, first.size, first.tag) == now:
        return list(parts)
    if first.stop is None or kind is None or source.compression:
        return [_part(source, tag, (0, None, size), text_column), *[None] * (len(parts) - 1)]
    if kind == "lines":
        place: Sequence[int]
        starts = list(_starts_again(parts, source.path, size))
        place, end = range(size + 1), size  # in bytes
    else:
        ends = _group_ends(source)
        starts = [0, *(one.start if one.start < len(ends) - 1 else None for one in parts[1:])]
        place, end = ends, len(ends) - 1
    there = [start for start in starts if start is not None]
    made = {
        start: _part(source, tag, (start, stop, place[stop] - place[start]), text_column)
        for start, stop in itertools.pairwise([*there, end])
    }
    return [None if start is None else made[start] for start in starts]


def _starts_again(parts: Sequence[Part], path: str, size: int) -> Iterator[int | None]:
    """Where each part of a file of lines begins now; None for one that would be empty."""
    last = shift = 0
    yield 0
    for part in parts[1:]:
        found = _found_again(path, part, (shift, size - part.size), size)
        shift = found - part.start
        if last < found < size:
            last = found
            yield found
        else:
            yield None


def _found_again(path: str, part: Part, shifts: Sequence[int], size: int) -> int:
    """Where the part begins now: at the same bytes, or else where some line does."""
    for shift in shifts:
        middle = part.start + shift
        begin = max(0, middle - _NEAR)
        with locations.open_file(path) as file:
            file.seek(begin)
            data = file.read(2 * _NEAR + _MARK)
        breaks = [found.end() for found in re.finditer(b"\n", data)]
        for place in sorted(breaks, key=lambda one: abs(begin + one - middle)):
            if zlib.crc32(data[place : place + _MARK]) == part.mark:
                return begin + place
    return line_start(path, min(max(part.start + shifts[0], 1), size), size)
