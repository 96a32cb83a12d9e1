"""Which tokens a number is made of, and where rows of so many tokens end without cutting one.

In: the metadata of encoded text, and token ids laid end to end. Out: :class:`NumberTokens`, which
    says where the tokens of each number end, and :func:`row_ends`, which data sets of blocks and
    packed files are cut by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays.kernels import kernel
from numtok.representations import END_NUM, NUM, SpelledOut, from_dict
from numtok.tokenizer.schema import read_metadata

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class NumberTokens:
    """Which token ids belong to numbers.

    Attributes:
        ids: every id that numtok's number tokens have, ``[NUM]`` and the digits of spelled-out
            numbers among them: no random word is one of these.
        own: those of them that no ordinary text contains: ``[NUM]``, `` [NUM]``, ``[/NUM]`` and all
            ``[NUM:...]``.
        end: the id of ``[/NUM]`` if numbers are in brackets, else None.
        length: the tokens per number, if they are not.
    """

    ids: tuple[int, ...] = ()
    own: tuple[int, ...] = ()
    end: int | None = None
    length: int = 1

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any]) -> NumberTokens:
        """From the ``numtok`` metadata of a schema (``numtok.tokenizer.schema.read_metadata``)."""
        tokens: dict[str, int] = metadata.get("tokens", {})
        runs = [run for form in metadata.get("symbols", {}).values() for run in form]
        symbols = [number for first, count in runs for number in range(first, first + count)]
        brackets = [tokens[content] for content in (NUM, f" {NUM}", END_NUM) if content in tokens]
        first = from_dict(metadata["numbers"][0])
        bracketed = isinstance(first, SpelledOut) and first.bracketed
        length = (first.length if isinstance(first, SpelledOut) else None) or 1
        ids = sorted({*tokens.values(), *symbols})
        return cls(
            tuple(ids),
            tuple(sorted({*brackets, *symbols})),
            tokens[END_NUM] if bracketed else None,
            1 if bracketed else length,
        )

    @classmethod
    def from_schema(cls, schema: pa.Schema) -> NumberTokens:
        """From a schema that numtok wrote; ``SchemaError`` for any other."""
        return cls.from_metadata(read_metadata(schema))

    def stops(self, ids: Ints, positions: Ints, row_stops: Ints) -> Ints:
        """int64[numbers]: where each number's tokens end, exclusive.

        A number in brackets ends behind its ``[/NUM]``; one that lacks it (the ids were cut by
        another program) before the next number, or with the row.

        Args:
            ids: int64[tokens], rows laid end to end.
            positions: int64[numbers], ascending, the first token of each number.
            row_stops: int64[numbers], where the row of each number ends.
        """
        following = np.append(positions[1:], len(ids))
        limit = np.minimum(following, row_stops)
        if self.end is None:
            return np.asarray(np.minimum(positions + self.length, limit))
        ends = np.flatnonzero(ids == self.end)
        behind = np.append(ends, len(ids))[np.searchsorted(ends, positions)] + 1
        return np.asarray(np.minimum(behind, limit))


class RowEnds(NamedTuple):
    """Where rows end, and how many numbers are longer than a row, so that they were cut."""

    ends: Ints
    cut_numbers: int


def row_ends(sections: Ints, begins: Ints, stops: Ints, size: int) -> RowEnds:
    """The ends of rows of ``size`` tokens that lie within stretches of tokens, each cut from its
    own beginning.

    A row ends after ``size`` tokens, but never inside a number: one that fits into a row begins the
    next, and the row before is shorter by less than the number's tokens. A number longer than a row
    is cut where rows are full.

    Args:
        sections: int64[k, 2], ascending: where the first row of each begins, and the place before
            which all ends are.
        begins: int64[numbers], ascending, the first token of each number.
        stops: int64[numbers], where its tokens end.
        size: tokens of a row.
    """
    lengths = (sections[:, 1] - sections[:, 0]).clip(0)
    ends = np.empty(
        int((2 * (lengths // size) + 2).sum()), np.int64
    )  # two rows that follow one another hold more than ``size``
    count, cut = _row_ends(np.ascontiguousarray(sections, np.int64), begins, stops, size, ends)
    return RowEnds(ends[:count], int(cut))


@kernel
def _row_ends(sections, begins, stops, size, ends):  # type: ignore[no-untyped-def]
    count, cut, at, last_cut = 0, 0, 0, -1
    for section in range(sections.shape[0]):
        end = sections[section, 0] + size
        while end < sections[section, 1]:
            while at < begins.size and begins[at] < end:
                at += 1
            last = at - 1  # the last number that begins before
            if last >= 0 and stops[last] > end:
                if stops[last] - begins[last] <= size:
                    end = begins[last]
                elif last != last_cut:
                    last_cut = last
                    cut += 1
            ends[count] = end
            count += 1
            end += size
    return count, cut
