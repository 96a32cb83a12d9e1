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
from numtok.corpus.read.documents import group_sizes, line_start
from numtok.corpus.read.formats import FORMATS
from numtok.corpus.read.sources import Source
from numtok.errors import InputError

_MARK = 64  # bytes after a cut by which it is found again
_NEAR = 1 << 16  # how far from where it should be

Stretch = tuple[int, int | None, int]  # start, stop, bytes


def cut(
    sources: Sequence[Source], tags: Sequence[str], count: int, text_unit: str
) -> list[list[Part]]:
    """The parts of each of at most ``count`` shards, which together hold each input exactly once;
    ``text_unit="file"`` keeps text files whole.
    """
    total = sum(source.size or 0 for source in sources)
    shards: dict[int, list[Part]] = {}
    done = 0
    for source, tag in zip(sources, tags, strict=True):
        stop = done + (source.size or 0)
        ends = _ends_within(total, count, done, stop)
        pieces: dict[int, list[Stretch]] = {}
        for stretch in _stretches(source, [end - done for end in ends], text_unit):
            twice_middle = 2 * done + stretch[2]
            done += stretch[2]
            place = min(twice_middle * count // (2 * total), count - 1) if total else 0
            pieces.setdefault(place, []).append(stretch)
        for place, some in pieces.items():
            joined = (some[0][0], some[-1][1], sum(length for _, _, length in some))
            shards.setdefault(place, []).append(_part(source, tag, joined))
        done = stop
    return [shards[place] for place in sorted(shards)]


def _part(source: Source, tag: str, stretch: Stretch) -> Part:
    (start, stop, length), size = stretch, source.size or 0
    mark = _mark(source.path, start) if start and FORMATS[source.format].cut == "lines" else 0
    kind = (source.format, source.compression)
    return Part(source.path, *kind, size, tag, start, stop, length, mark)


def _ends_within(total: int, count: int, start: int, stop: int) -> list[int]:
    """Where, between two bytes, shards of one size would end."""
    if not total:
        return []
    numbers = range(start * count // total, stop * count // total + 2)
    return [end for k in numbers if start < (end := total * k // count) < stop]


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


def cut_again(parts: Sequence[Part], source: Source, tag: str) -> list[Part | None]:
    """The parts of a file that has other bytes now, about as it was cut before; None for one that
    is gone. Where a cut was is told by the bytes after it, so that what lies between two changes
    keeps its bounds.
    """
    size, kind = source.size or 0, FORMATS[source.format].cut
    if parts[0].stop is None or kind is None or source.compression:
        return [_part(source, tag, (0, None, size)), *[None] * (len(parts) - 1)]
    if kind == "lines":
        place: Sequence[int]
        starts = list(_starts_again(parts, source.path, size))
        place, end = range(size + 1), size  # in bytes
    else:
        ends = _group_ends(source)
        starts = [0, *(one.start if one.start < len(ends) - 1 else None for one in parts[1:])]
        place, end = ends, len(ends) - 1
    there = [start for start in starts if start is not None]
    bounds = itertools.pairwise([*there, end])
    stretches = iter([(start, stop, place[stop] - place[start]) for start, stop in bounds])
    return [None if start is None else _part(source, tag, next(stretches)) for start in starts]


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


def _mark(path: str, start: int) -> int:
    """Of the bytes from ``start`` on."""
    with locations.open_file(path, 1 << 16) as file:
        file.seek(start)
        return zlib.crc32(file.read(_MARK))
