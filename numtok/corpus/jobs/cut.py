"""Inputs cut into shards, and cut again where they were mended.

In: inputs, whose bytes are thought of as laid end to end, and how many shards there should be. Out:
    for each shard its ``Part`` s, in order; together they hold each input exactly once. A plain
    file of lines is cut where a line begins, a Parquet file between row groups; all others stay
    whole, and compressed files too. A part belongs to the shard in which its middle lies, so that
    shards are of about one size, and there may be fewer than were asked for.
"""

from __future__ import annotations

import contextlib
import itertools
import zlib
from collections.abc import Iterator, Sequence

from numtok import locations
from numtok.corpus.jobs.plan import Part
from numtok.corpus.read.formats import FORMATS
from numtok.corpus.read.parts import group_sizes, line_start
from numtok.corpus.read.sources import Source
from numtok.errors import InputError

_MARK = 64  # bytes behind a cut by which it is found again
_NEAR = 1 << 16  # how far from where it should be

Stretch = tuple[int, int | None, int]  # start, stop, bytes


def cut(
    sources: Sequence[Source], tags: Sequence[str], count: int, text_unit: str
) -> list[list[Part]]:
    """The parts of each shard.

    Args:
        sources: files.
        tags: of each.
        count: of shards, at most.
        text_unit: ``"file"`` keeps text files whole.
    """
    total = sum(source.size or 0 for source in sources)
    shards: dict[int, list[Part]] = {}
    begin = 0
    for source, tag in zip(sources, tags, strict=True):
        size = source.size or 0
        inner = [at - begin for at in _boundaries(total, count, begin, begin + size)]
        done, pieces = 0, dict[int, Stretch]()
        for start, stop, length in _stretches(source, inner, text_unit):
            middle = 2 * (begin + done) + length  # twice
            place = min(middle * count // (2 * total), count - 1) if total else 0
            first, _, before = pieces.get(place, (start, stop, 0))
            pieces[place] = first, stop, before + length
            done += length
        for place, part in zip(pieces, parts_of(source, tag, iter(pieces.values())), strict=True):
            shards.setdefault(place, []).append(part)
        begin += size
    return [shards[place] for place in sorted(shards)]


def parts_of(source: Source, tag: str, stretches: Iterator[Stretch]) -> Iterator[Part]:
    """The parts of one file."""
    lines = FORMATS[source.format].cut == "lines"
    for start, stop, length in stretches:
        mark = _mark(source.path, start) if start and lines else 0
        name, size = (source.path, source.format, source.compression), source.size or 0
        yield Part(*name, size, tag, start, stop, length, mark)


def _boundaries(total: int, count: int, start: int, stop: int) -> Iterator[int]:
    """Where, between two bytes, shards of one size would end."""
    if total:
        ends = (
            total * k // count for k in range(start * count // total, stop * count // total + 2)
        )
        yield from (end for end in ends if start < end < stop)


def _stretches(source: Source, inner: Sequence[int], text_unit: str) -> list[Stretch]:
    """What the file is cut into; ``inner`` are the bytes where it should be."""
    size = source.size or 0
    kind = None if source.compression or not inner else FORMATS[source.format].cut
    if kind == "lines" and not (source.format == "txt" and text_unit == "file"):
        starts = sorted({0, *(line_start(source.path, at, size) for at in inner)} - {size})
        if len(starts) > 1:
            return _between([*starts, size])
    if kind == "row groups" and len(ends := _group_ends(source)) > 2:
        return [
            (number, number + 1, end - start)
            for number, (start, end) in enumerate(itertools.pairwise(ends))
        ]
    return [(0, None, size)]


def _group_ends(source: Source) -> list[int]:
    """Where row groups would end if the file had nothing else; just 0 for a damaged one, which its
    shard will tell.
    """
    with contextlib.suppress(InputError):
        groups = group_sizes(source)
        size, total = source.size or 0, max(sum(groups), 1)
        return [0, *(size * done // total for done in itertools.accumulate(groups))]
    return [0]


def _between(ends: Sequence[int]) -> list[Stretch]:
    return [(start, stop, stop - start) for start, stop in itertools.pairwise(ends)]


def cut_again(parts: Sequence[Part], source: Source, tag: str) -> list[Part | None]:
    """The parts of a file that has other bytes now, about as it was cut before; None for one that
    is gone. Where a cut was is told by the bytes behind it, so that what lies between two changes
    keeps its bounds.
    """
    size, first = source.size or 0, parts[0]
    kind = FORMATS[source.format].cut
    if first.stop is None or kind is None or source.compression:
        whole = next(parts_of(source, tag, iter([(0, None, size)])))
        return [whole, *[None] * (len(parts) - 1)]
    starts: list[int | None] = [0]
    if kind == "lines":
        shift = 0
        for part in parts[1:]:
            found = _found_again(source.path, part, (shift, size - part.size), size)
            shift = found - part.start
            starts.append(found if max(one or 0 for one in starts) < found < size else None)
        ends = [*(one for one in starts if one is not None), size]
        stretches = iter(_between(ends))
    else:
        at = _group_ends(source)
        groups = len(at) - 1
        starts += [part.start if part.start < groups else None for part in parts[1:]]
        ends = [*(one for one in starts if one is not None), groups]
        stretches = iter([(a, b, at[b] - at[a]) for a, b in itertools.pairwise(ends)])
    made = parts_of(source, tag, stretches)
    return [None if start is None else next(made) for start in starts]


def _found_again(path: str, part: Part, shifts: Sequence[int], size: int) -> int:
    """Where the part begins now: at the same bytes, or else where some line does."""
    for shift in shifts:
        middle = part.start + shift
        begin = max(0, middle - _NEAR)
        with locations.open_file(path) as file:
            file.seek(begin)
            data = file.read(2 * _NEAR + _MARK)
        breaks, at = [], data.find(b"\n")
        while at >= 0:
            breaks.append(at + 1)
            at = data.find(b"\n", at + 1)
        for place in sorted(breaks, key=lambda one: abs(begin + one - middle)):
            if zlib.crc32(data[place : place + _MARK]) == part.mark:
                return begin + place
    return line_start(path, min(max(part.start + shifts[0], 1), size), size)


def _mark(path: str, start: int) -> int:
    """Of the bytes from ``start`` on."""
    with locations.open_file(path, 1 << 16) as file:
        file.seek(start)
        return zlib.crc32(file.read(_MARK))
