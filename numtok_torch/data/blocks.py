"""Documents laid end to end and cut into blocks of equal length, without rewriting the file: what
pretraining wants.

Blocks end every ``size`` tokens, but never inside a number: one that fits into a block begins the
next, and the block before is shorter by less than the number's tokens. A number longer than a block
is cut where the blocks are full: it then has no entry in the streams per number; its tokens stay.
Streams are views of the file's buffers, unless the block reaches over two chunks or holds
separators.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from numtok.errors import SchemaError
from numtok.representations import streams
from numtok.tokenizer.packing import NumberTokens, row_ends
from numtok_torch.data.packing import Ints
from numtok_torch.data.storage import Chunk, Row, Storage

Read = Callable[[int], Chunk]


@dataclass(frozen=True)
class Cutting:
    """How blocks are cut."""

    size: int  # tokens of a block
    separator: int | None  # the token after every document that has tokens; None for none
    apart: bool  # whether blocks have ``position_ids``
    tokens: NumberTokens  # what numbers are made of

    def __post_init__(self) -> None:
        if self.size < 1:
            raise SchemaError(f"block_size={self.size} must be positive")
        if self.separator is not None and (self.separator < 0 or self.separator in self.tokens.ids):
            raise SchemaError(
                f"separator={self.separator} must be the id of a token, and of none that numbers"
                " are made of"
            )


class FlatChunk:
    """A chunk's documents laid end to end, separators included; places are counted in that.

    Attributes:
        ends: int64[rows], where each row ends. total: the last of them.
        gaps: int64[separators], where separators are. raw: the places in the flat arrays of the
            chunk before which they come.
        begins, stops: int64[numbers], the first token of each number, and where its tokens end.
    """

    def __init__(self, chunk: Chunk, cutting: Cutting) -> None:
        self._arrays = [(name, values) for name, values, _ in chunk.arrays]
        arrays = {name: (values, chunk.offsets[which]) for name, values, which in chunk.arrays}
        (ids, offsets), (index, number_offsets) = arrays["input_ids"], arrays["number_index"]
        lengths, counts = np.diff(offsets), np.diff(number_offsets)
        separated = (lengths > 0) & (cutting.separator is not None)
        self.ends: Ints = np.cumsum(lengths + separated)
        self.total = int(self.ends[-1]) if len(self.ends) else 0
        self.gaps: Ints = self.ends[separated] - 1
        self.raw: Ints = offsets[1:][separated]
        first = index.astype(np.int64) + np.repeat(offsets[:-1], counts)
        shift = np.repeat(self.ends - lengths - separated - offsets[:-1], counts)
        self.begins: Ints = first + shift
        self.stops: Ints = cutting.tokens.stops(ids, first, np.repeat(offsets[1:], counts)) + shift

    def part(self, first: int, last: int, cutting: Cutting) -> Row:
        """The tokens from ``first`` to ``last``, and the numbers whose tokens all lie there."""
        low, high = np.searchsorted(self.begins, [first, last]).tolist()
        high -= int(high > low and self.stops[high - 1] > last)  # only the last can reach out
        inside = slice(*np.searchsorted(self.gaps, [first, last]).tolist())
        raw = slice(first - inside.start, last - inside.stop)
        gaps, per_token = self.raw[inside] - raw.start, streams("token")
        row: Row = {}
        for name, values in self._arrays:
            if name == "number_index":
                row[name] = (self.begins[low:high] - first).astype(values.dtype)
            elif name == "input_ids" or name in per_token:
                fill = (cutting.separator or 0) if name == "input_ids" else per_token[name][0].fill
                row[name] = np.insert(values[raw], gaps, fill, axis=0) if len(gaps) else values[raw]
            else:
                row[name] = values[low:high]
        if cutting.apart:
            within = slice(
                np.searchsorted(self.ends, first, "right"), np.searchsorted(self.ends, last)
            )
            edges = np.concatenate([[first], self.ends[within], [last]])
            row["position_ids"] = np.arange(first, last) - np.repeat(edges[:-1], np.diff(edges))
        return row


class Blocks:
    """Where the blocks of a data set begin and end, found in one pass that holds one chunk at a
    time, and the way to them: ``ends``, int64[blocks], through the whole data, and ``counts``,
    int64[chunks], how many begin in each chunk. Without ``skip_nulls`` a null row is a
    ``SchemaError``.
    """

    def __init__(self, storage: Storage, cutting: Cutting, skip_nulls: bool) -> None:
        self._cutting, self.cut_numbers = cutting, 0
        found: list[Ints] = []
        totals = np.zeros(len(storage.rows), np.int64)
        begin, block, rows = 0, 0, 0  # of the chunk, of the block that is open, and rows so far
        for number in range(len(storage.rows)):
            chunk = storage.read(number)
            if not skip_nulls and not chunk.valid.all():
                raise null_row(rows + int(chunk.valid.argmin()))
            laid = FlatChunk(chunk, cutting)
            section = np.array([[block - begin, laid.total + 1]])  # an open block may begin before
            cut = row_ends(section, laid.begins, laid.stops, cutting.size)
            found.append(cut.ends + begin)
            self.cut_numbers += cut.cut_numbers
            block = int(found[-1][-1]) if len(cut.ends) else block
            totals[number] = laid.total
            begin, rows = begin + laid.total, rows + len(chunk.valid)
        if block < begin:
            found.append(np.array([begin]))
        self.ends: Ints = np.concatenate([np.empty(0, np.int64), *found])
        self._chunk_ends: Ints = np.cumsum(totals)
        homes = np.searchsorted(self._chunk_ends, np.append(0, self.ends)[:-1], side="right")
        self.counts: Ints = np.bincount(homes, minlength=len(totals)).astype(np.int64)

    def row(self, number: int, read: Read) -> Row:
        """A block, from the chunks it lies in."""
        first, last = int(self.ends[number - 1]) if number else 0, int(self.ends[number])
        parts: list[Row] = []
        at = bisect_right(self._chunk_ends, first)
        while first < last:
            chunk, begin = read(at), int(self._chunk_ends[at - 1]) if at else 0
            stop = min(last, int(self._chunk_ends[at]))
            if stop > first:
                if chunk.laid is None:
                    chunk.laid = FlatChunk(chunk, self._cutting)
                parts.append(chunk.laid.part(first - begin, stop - begin, self._cutting))
            first, at = stop, at + 1
        return parts[0] if len(parts) == 1 else _end_to_end(parts)


def _end_to_end(parts: list[Row]) -> Row:
    """Parts of one block, which follow each other."""
    before = 0
    for part in parts:
        part["number_index"] = part["number_index"] + np.int32(before)
        before += len(part["input_ids"])
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def null_row(number: int) -> SchemaError:
    """The error of asking for one."""
    return SchemaError(
        f"row {number} is null: its document was; make the data set with nulls='skip'"
    )
