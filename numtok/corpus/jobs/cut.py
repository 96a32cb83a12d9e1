"""Inputs cut into shards.

In: inputs, whose bytes are thought of as laid end to end, and how many shards there should be. Out:
    for each shard its ``Part`` s, in order; together they hold each input exactly once. A plain
    file of lines is cut where a line begins, a Parquet file between row groups; all others stay
    whole, and compressed files too. A part belongs to the shard in which its middle lies, so that
    shards are of about one size, and there may be fewer than were asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from numtok.corpus.read.formats import FORMATS
from numtok.corpus.read.parts import group_sizes, line_start
from numtok.corpus.read.sources import Source


class Part(NamedTuple):
    """A stretch of one input.

    Attributes:
        input: its number.
        start, stop: bytes of a file of lines, row groups of a Parquet file; ``stop`` is None for a
            file that is not cut.
        size: in bytes, as stored.
    """

    input: int
    start: int
    stop: int | None
    size: int


def cut(sources: Sequence[Source], count: int, text_unit: str) -> list[list[Part]]:
    """The parts of each shard.

    Args:
        sources: files.
        count: of shards, at most.
        text_unit: ``"file"`` keeps text files whole.
    """
    total = sum(source.size or 0 for source in sources)
    shards: dict[int, list[Part]] = {}
    begin = 0
    for number, source in enumerate(sources):
        size = source.size or 0
        inner = [at - begin for at in _boundaries(total, count, begin, begin + size)]
        done = 0
        for start, stop, length in _stretches(source, inner, text_unit):
            middle = 2 * (begin + done) + length  # twice
            place = min(middle * count // (2 * total), count - 1) if total else 0
            shard = shards.setdefault(place, [])
            if shard and shard[-1].input == number:
                shard[-1] = shard[-1]._replace(stop=stop, size=shard[-1].size + length)
            else:
                shard.append(Part(number, start, stop, length))
            done += length
        begin += size
    return [shards[place] for place in sorted(shards)]


def _boundaries(total: int, count: int, start: int, stop: int) -> Iterator[int]:
    """Where, between two bytes, shards of one size would end."""
    if total:
        ends = (
            total * k // count for k in range(start * count // total, stop * count // total + 2)
        )
        yield from (end for end in ends if start < end < stop)


def _stretches(
    source: Source, inner: Sequence[int], text_unit: str
) -> list[tuple[int, int | None, int]]:
    """(start, stop, bytes) of what the file is cut into; ``inner`` are the bytes where it should
    be.
    """
    size = source.size or 0
    kind = None if source.compression else FORMATS[source.format].cut
    if inner and kind == "lines" and not (source.format == "txt" and text_unit == "file"):
        starts = sorted({0, *(line_start(source.path, at, size) for at in inner)} - {size})
        if len(starts) > 1:
            return [
                (start, stop, stop - start) for start, stop in itertools.pairwise([*starts, size])
            ]
    if inner and kind == "row groups":
        groups = group_sizes(source)
        ends = [size * done // max(sum(groups), 1) for done in itertools.accumulate(groups)]
        if len(groups) > 1:
            return [
                (number, number + 1, end - start)
                for number, (start, end) in enumerate(itertools.pairwise([0, *ends]))
            ]
    return [(0, None, size)]
