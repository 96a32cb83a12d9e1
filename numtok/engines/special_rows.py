"""A fast engine for a tokenizer with something that it cannot read: added tokens, such as
RoBERTa's ``<mask>``, which takes the white space before it along, or bytes that have no token.

Rows that hold the name of such a token or such a byte, which few do, are encoded by ``tokenizers``,
and all others by the fast engine.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable

import numpy as np

from numtok.arrays.text_rows import TextRows
from numtok.engines.config import Config, without_numbers
from numtok.engines.engine import Encoded, Engine, Ints, Mask, NumtokTokens, Slots
from numtok.errors import TokenizerError
from numtok.numbers.numbers import Numbers


def special_names(config: Config, tokens: NumtokTokens) -> list[bytes]:
    """Return the names of the special tokens. TokenizerError if one may be in a text under another
    name, as it is looked for in normalized text.
    """
    special = [
        token
        for token in without_numbers(config, tokens, parse_special=True)["added_tokens"]
        if token["special"]
    ]
    if config.get("normalizer") is not None and any(token["normalized"] for token in special):
        raise TokenizerError("its special tokens are looked for in normalized text")
    return [token["content"].encode() for token in special]


class SpecialRowsEngine:
    """The engine of this module; ``unread`` are the names and bytes that the fast engine cannot
    read.
    """

    is_fast = True

    def __init__(self, fast: Engine, make_slow: Callable[[], Engine], unread: list[bytes]) -> None:
        self.fast, self._make_slow, self.name = fast, make_slow, fast.name
        longest_first = sorted(unread, key=len, reverse=True)
        self._unread = re.compile(b"|".join(map(re.escape, longest_first)) or b"(?!)")
        # `in` takes a tenth of the time of the pattern
        self._bytes = unread if all(len(one) == 1 for one in unread) else []

    @functools.cached_property
    def slow(self) -> Engine:
        """Return the engine of the other rows."""
        return self._make_slow()

    def encode(self, rows: TextRows, slots: Slots) -> Encoded:
        named = self._have_unread(rows)
        if not named.any():
            return self.fast.encode(rows, slots)
        if named.all():
            return self.slow.encode(rows, slots)
        edges = np.flatnonzero(np.diff(named)) + 1
        parts = []
        for first, last in itertools.pairwise([0, *edges.tolist(), len(rows)]):
            engine = self.slow if named[first] else self.fast
            parts.append(engine.encode(rows.part(first, last), slots.part(first, last)))
        return Encoded.joined(parts)

    def first_tokens(self, encoded: Encoded, numbers: Numbers, wanted: Mask | None = None) -> Ints:
        """Find the tokens by the engine that encodes the row."""
        named = self._have_unread(numbers.rows)
        wanted = np.ones(len(named), np.bool_) if wanted is None else wanted
        places = self.fast.first_tokens(encoded, numbers, wanted & ~named)
        if named.any():
            others = self.slow.first_tokens(encoded, numbers, wanted & named)
            places = np.where(named[numbers.document], others, places)
        return places

    def spans(self, rows: TextRows, slots: Slots) -> Ints | None:
        """Return the spans of the fast engine; None if there is a row that it cannot read."""
        return None if self._have_unread(rows).any() else self.fast.spans(rows, slots)

    def _have_unread(self, rows: TextRows) -> Mask:
        """Return which rows the fast engine cannot read, bool[rows]."""
        first, last = int(rows.offsets[0]), int(rows.offsets[-1])
        text = rows.text[first:last].tobytes()
        named = np.zeros(len(rows), np.bool_)
        if self._bytes and not any(one in text for one in self._bytes):
            return named
        places = np.array(
            [match.start() + first for match in self._unread.finditer(text)], np.int64
        )
        # a name across two rows does no harm
        named[np.searchsorted(rows.offsets, places, "right") - 1] = True
        return named
