"""Inputs cut into shards. A plain file of lines is cut where a line begins, a Parquet file between
row groups; all others stay whole. A part belongs to the shard in which its middle lies, the inputs
being laid end to end, so that shards are of about one size.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from typing import NamedTuple

from numtok.corpus.read.documents import INPUT_FORMATS, group_sizes, line_start
from numtok.corpus.read.sources import Source
from numtok.errors import InputError

Span = tuple[int, int | None, int]  # start, stop, bytes


class Part(NamedTuple):
    """A part of one input, or all of it."""

    path: str
    format: str
    compression: str | None
    size: int  # of all of the input, when it was planned
    tag: str  # of the same; it changes with the content
    start: int  # byte of a file of lines, row group of a Parquet file
    stop: int | None  # None for a file that is not cut
    length: int  # in bytes, as stored

    @property
    def source(self) -> Source:
        """The part as an input."""
        return Source(self.path, self.format, self.compression, self.length, self.start, self.stop)


def cut(
    sources: Sequence[Source], tags: Sequence[str], count: int, text_unit: str
) -> list[list[Part]]:
    """Return the parts of each of at most ``count`` shards, which together hold each input exactly
    once; ``text_unit="file"`` keeps text files whole.
    """
    total = sum(source.size or 0 for source in sources)
    shards: dict[int, list[Part]] = {}
    done = 0
    for source, tag in zip(sources, tags, strict=True):
        stop = done + (source.size or 0)
        numbers = range(done * count // total, stop * count // total + 2) if total else ()
        ends = [end for k in numbers if done < (end := total * k // count) < stop]
        pieces: dict[int, list[Span]] = {}
        for span in _spans(source, [end - done for end in ends], text_unit):
            twice_middle = 2 * done + span[2]
            done += span[2]
            place = min(twice_middle * count // (2 * total), count - 1) if total else 0
            pieces.setdefault(place, []).append(span)
        for place, some in pieces.items():
            joined = (some[0][0], some[-1][1], sum(length for _, _, length in some))
            shards.setdefault(place, []).append(_part(source, tag, joined))
    return [shards[place] for place in sorted(shards)]


def cut_again(source: Source, tag: str, count: int, text_unit: str) -> list[Part]:
    """Return so many parts of a file that has changed since it was cut into as many; the last ones
    are empty where there is too little to cut.
    """
    parts = [part for shard in cut([source], [tag], count, text_unit) for part in shard]
    return parts + [_part(source, tag, (0, 0, 0))] * (count - len(parts))


def _spans(source: Source, inner: Sequence[int], text_unit: str) -> list[Span]:
    """Return the spans that the file is cut into; ``inner`` are the bytes where it should be cut."""
    size = source.size or 0
    kind = None if source.compression or not inner else INPUT_FORMATS[source.format].cut
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
    """Return where row groups would end if the file had nothing else; just 0 for a damaged one."""
    with contextlib.suppress(InputError):
        groups = group_sizes(source)
        size, total = source.size or 0, max(sum(groups), 1)
        return [0, *(size * done // total for done in itertools.accumulate(groups))]
    return [0]


def _part(source: Source, tag: str, span: Span) -> Part:
    return Part(source.path, source.format, source.compression, source.size or 0, tag, *span)
