"""A fast engine for a tokenizer with something that it cannot read: added tokens, such as
RoBERTa's ``<mask>``, which takes the white space before it along, or bytes that have no token.

Rows that hold the name of such a token or such a byte, which few do, are encoded by ``tokenizers``,
and all others by the fast engine.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from numtok.arrays.text_rows import TextRows
from numtok.engines.engine import Encoded, Engine, Ints, Mask, Slots
from numtok.numbers.numbers import Numbers


class SpecialRowsEngine:
    """The engine of this module; ``unread`` are the names and bytes that the fast engine cannot
    read, and ``slow`` returns the engine of rows that hold one.
    """

    def __init__(self, fast: Engine, slow: Callable[[], Engine], unread: list[bytes]) -> None:
        self.fast, self._slow, self.name = fast, slow, fast.name
        self._unread = any_of(unread)
        # `in` takes a tenth of the time of the pattern
        self._bytes = unread if all(len(one) == 1 for one in unread) else []

    def encode(self, rows: TextRows, slots: Slots) -> Encoded:
        named = self._have_unread(rows)
        if not named.any():
            return self.fast.encode(rows, slots)
        if named.all():
            return self._slow().encode(rows, slots)
        edges = np.flatnonzero(np.diff(named)) + 1
        parts = []
        for first, last in itertools.pairwise([0, *edges.tolist(), len(rows)]):
            engine = self._slow() if named[first] else self.fast
            parts.append(engine.encode(rows.part(first, last), slots.part(first, last)))
        return Encoded.joined(parts)

    def first_tokens(self, encoded: Encoded, numbers: Numbers, wanted: Mask | None = None) -> Ints:
        """Find the tokens by the engine that encodes the row."""
        named = self._have_unread(numbers.rows)
        wanted = np.ones(len(named), np.bool_) if wanted is None else wanted
        places = self.fast.first_tokens(encoded, numbers, wanted & ~named)
        if (special := named[numbers.document]).any():
            others = self._slow().first_tokens(encoded, numbers, wanted & named)
            places = np.where(special, others, places)
        return places

    def _have_unread(self, rows: TextRows) -> Mask:
        """Return which rows the fast engine cannot read, bool[rows]."""
        text, offsets = rows.text[int(rows.offsets[0]) : int(rows.offsets[-1])], rows.offsets
        named = np.zeros(len(rows), np.bool_)
        if self._bytes:
            data = text.tobytes()
            if not any(byte in data for byte in self._bytes):
                return named
        starts = spans_in_rows(self._unread, text, offsets - offsets[0])[:, 0]
        named[np.searchsorted(offsets - offsets[0], starts, "right") - 1] = True
        return named


def any_of(names: list[bytes]) -> re.Pattern[bytes]:
    """Return a pattern that finds any of the names, the longest first."""
    return re.compile(b"|".join(map(re.escape, sorted(names, key=len, reverse=True))))


def spans_in_rows(pattern: re.Pattern[bytes], text: npt.NDArray[np.uint8], offsets: Ints) -> Ints:
    """Return int64[n, 2], the spans of the matches in each row, ``offsets[0]`` being 0."""
    matches = [match.span() for match in pattern.finditer(text.data)]
    spans = np.array(matches, np.int64).reshape(-1, 2)
    row = np.searchsorted(offsets, spans[:, 0], "right")
    if (spans[:, 1] <= offsets[row]).all():
        return spans
    # a match over the edge of a row may hide others
    edges = itertools.pairwise(offsets.tolist())
    by_row = [pattern.finditer(text.data, first, last) for first, last in edges]
    matches = [match.span() for row_matches in by_row for match in row_matches]
    return np.array(matches, np.int64).reshape(-1, 2)
