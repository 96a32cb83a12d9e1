"""Documents laid end to end and cut into blocks of equal length, without rewriting the file: what
pretraining wants.

In: the chunks of a :class:`numtok_torch.data.storage.Storage`. Out: :class:`Blocks`, an index of
    where every block ends, found in one pass that holds one chunk at a time; and rows, as in
    :mod:`numtok_torch.data.dataset`, cut out of the chunks that a block lies in.

**Where blocks end.** Every ``size`` tokens, but never inside a number: one that fits into a block
begins the next, and the block before is shorter by less than the number's tokens. A number longer
than a block is cut where the blocks are full. It then has no entry in the streams per number, as
when the collator cuts; its tokens stay. The last block is what is left.

**Shape** of a block: as of a row, and ``position_ids`` int64 (tokens,), which begin at 0 with each
    document and with the block, if asked for. Streams are views of the file's buffers, unless the
    block reaches over two chunks or holds separators.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.errors import SchemaError
from numtok.representations import streams
from numtok.representations.columns import NUMBER_MASK
from numtok.tokenizer.token_spans import row_ends
from numtok_torch.data.storage import Chunk, Row, Storage
from numtok_torch.data.streams import Ints, NumberTokens

Read = Callable[[int], Chunk]


@dataclass(frozen=True)
class Cutting:
    """How blocks are cut.

    Attributes:
        size: tokens of a block.
        separator: the token behind every document that has tokens; None for none.
        apart: whether blocks have ``position_ids``.
        tokens: what numbers are made of.
    """

    size: int
    separator: int | None
    apart: bool
    tokens: NumberTokens

    def __post_init__(self) -> None:
        if self.size < 1:
            raise SchemaError(f"block_size={self.size} must be positive")
        if self.separator is not None and (self.separator < 0 or self.separator in self.tokens.ids):
            raise SchemaError(
                f"separator={self.separator} must be the id of a token, and of none that numbers"
                " are made of"
            )


class Laid:
    """A chunk's documents laid end to end, separators included; places are counted in that.

    Attributes:
        dense: whether the chunk is in token layout: all its columns have one value per token.
        ends: int64[rows], where each row ends.
        gaps: int64[separators], where separators are. raw: the same in the flat arrays of the
            chunk, before which each comes.
        begins, stops: int64[numbers], the first token of each number, and where its tokens end.
    """

    def __init__(self, chunk: Chunk, cutting: Cutting) -> None:
        arrays = {
            name: (values, np.array(chunk.offsets[which], np.int64))
            for name, values, which in chunk.arrays
        }
        ids, offsets = arrays["input_ids"]
        self.dense = "number_mask" in arrays
        lengths = np.diff(offsets)
        marked = (lengths > 0) & (cutting.separator is not None)
        self.ends: Ints = np.cumsum(lengths + marked)
        self.gaps: Ints = self.ends[marked] - 1
        self.raw: Ints = offsets[1:][marked]
        if self.dense:
            first = np.flatnonzero(arrays["number_mask"][0])  # in the flat ids
            counts = np.diff(np.searchsorted(first, offsets))
        else:
            index, number_offsets = arrays["number_index"]
            counts = np.diff(number_offsets)
            first = index.astype(np.int64) + np.repeat(offsets[:-1], counts)
        shift = np.repeat(self.ends - lengths - marked - offsets[:-1], counts)
        self.begins: Ints = first + shift
        self.stops: Ints = cutting.tokens.stops(ids, first, np.repeat(offsets[1:], counts)) + shift
        self.total = int(self.ends[-1]) if len(self.ends) else 0

    def part(self, chunk: Chunk, first: int, last: int, cutting: Cutting) -> Row:
        """The tokens from ``first`` to ``last``, and the numbers whose tokens all lie there."""
        low, high = np.searchsorted(self.begins, [first, last]).tolist()
        high -= int(high > low and self.stops[high - 1] > last)  # only the last can reach out
        inside = slice(*np.searchsorted(self.gaps, [first, last]).tolist())
        raw = slice(first - inside.start, last - inside.stop)
        row: Row = {}
        per_token = streams(None if self.dense else "token") | {NUMBER_MASK.name: (NUMBER_MASK,)}
        for name, values, _ in chunk.arrays:
            if name == "input_ids" or name in per_token:
                fill = (cutting.separator or 0) if name == "input_ids" else per_token[name][0].fill
                gaps = self.raw[inside] - raw.start
                row[name] = np.insert(values[raw], gaps, fill, axis=0) if len(gaps) else values[raw]
            elif name == "number_index":
                row[name] = (self.begins[low:high] - first).astype(values.dtype)
            else:
                row[name] = values[low:high]
        if (
            self.dense and high < len(self.begins) and self.begins[high] < last
        ):  # a number that reaches out has no value
            row["number_mask"] = np.array(row["number_mask"])
            row["number_mask"][self.begins[high] - first] = False
        for name, texts, _ in chunk.texts:
            shown = texts[raw] if self.dense else texts[low:high]
            row[name] = shown.to_pylist()
            for place in reversed((self.gaps[inside] - first).tolist() if self.dense else ()):
                row[name].insert(place - int(np.searchsorted(self.gaps[inside], place + first)), "")
        if cutting.apart:
            inner = self.ends[
                np.searchsorted(self.ends, first, side="right") : np.searchsorted(self.ends, last)
            ]  # ends within
            edges = np.concatenate([[first], inner, [last]])
            row["position_ids"] = np.arange(first, last) - np.repeat(edges[:-1], np.diff(edges))
        return row


class Blocks:
    """Where the blocks of a data set begin and end, and the way to them.

    Attributes:
        ends: int64[blocks], through the whole data.
        counts: int64[chunks], how many blocks begin in each chunk.
        cut_numbers: how many numbers are longer than a block.

    Args:
        storage: of which ``input_ids`` and ``number_index`` are read, chunk by chunk.
        cutting: how.
        skip_nulls: else a null row is a ``SchemaError``.
    """

    def __init__(self, storage: Storage, cutting: Cutting, skip_nulls: bool) -> None:
        self.cutting, self.cut_numbers = cutting, 0
        per_chunk: list[npt.NDArray[np.int64]] = []
        totals = np.zeros(len(storage.rows), np.int64)
        begin, block, rows = 0, 0, 0  # of the chunk, of the block that is open, and rows so far
        for number in range(len(storage.rows)):
            chunk = storage.read(number)
            if not skip_nulls and not all(chunk.valid):
                row = rows + chunk.valid.index(False)
                raise SchemaError(
                    f"row {row} is null: its document was; make the data set with nulls='skip'"
                )
            laid = Laid(chunk, cutting)
            ends = self._ends_in(laid, block - begin)
            per_chunk.append(ends + begin)
            block = int(per_chunk[-1][-1]) if len(ends) else block
            totals[number] = laid.total
            begin, rows = begin + laid.total, rows + len(chunk.valid)
        if block < begin:
            per_chunk.append(np.array([begin], np.int64))
        self.ends: Ints = np.concatenate(per_chunk) if per_chunk else np.empty(0, np.int64)
        self._chunk_ends: Ints = np.cumsum(totals)
        homes = np.searchsorted(self._chunk_ends, np.append(0, self.ends)[:-1], side="right")
        self.counts: Ints = np.bincount(homes, minlength=len(totals)).astype(np.int64)

    def _ends_in(self, laid: Laid, block: int) -> Ints:
        """The ends that lie in a chunk; ``block``, where the open block begins, is negative if that
        is before the chunk.
        """
        found = row_ends(
            np.array([[block, laid.total + 1]]), laid.begins, laid.stops, self.cutting.size
        )
        self.cut_numbers += found.cut_numbers
        return found.ends

    def row(self, number: int, read: Read) -> Row:
        """A block, from the chunks it lies in."""
        first, last = int(self.ends[number - 1]) if number else 0, int(self.ends[number])
        parts: list[Row] = []
        at = bisect_right(self._chunk_ends, first)
        while first < last:
            chunk, begin = read(at), int(self._chunk_ends[at - 1]) if at else 0
            stop = min(last, int(self._chunk_ends[at]))
            if stop > first:
                parts.append(
                    _laid(chunk, self.cutting).part(
                        chunk, first - begin, stop - begin, self.cutting
                    )
                )
            first, at = stop, at + 1
        return parts[0] if len(parts) == 1 else _end_to_end(parts)


def _laid(chunk: Chunk, cutting: Cutting) -> Laid:
    """Made once for a chunk, and kept as long as it is."""
    if "laid" not in chunk.made:
        chunk.made["laid"] = Laid(chunk, cutting)
    laid: Laid = chunk.made["laid"]
    return laid


def _end_to_end(parts: list[Row]) -> Row:
    """Parts of one block, which follow each other."""
    before = np.cumsum([0, *(len(part["input_ids"]) for part in parts)])
    row: Row = {}
    for name, values in parts[0].items():
        pieces: list[Any] = [part[name] for part in parts]
        if name == "number_index":
            pieces = [
                piece + shift
                for piece, shift in zip(pieces, before.astype(values.dtype), strict=False)
            ]
        row[name] = (
            [text for piece in pieces for text in piece]
            if isinstance(values, list)
            else np.concatenate(pieces)
        )
    return row
