"""A fast engine for a tokenizer with added tokens that it cannot read, such as RoBERTa's
``<mask>``, which takes the white space before it along.

Rows that have the name of such a token in them, which few have, are encoded by ``tokenizers``, and
all others by the fast engine: without the name there is nothing to parse.
"""

from __future__ import annotations

import itertools
import re

import numpy as np

from numtok.arrays.text_rows import TextRows
from numtok.engines.interface import (
    Config,
    Encoded,
    Engine,
    Ints,
    Mask,
    NumtokTokens,
    Slots,
    without_numbers,
)
from numtok.engines.tokenizers_engine import TokenizersEngine
from numtok.errors import TokenizerError
from numtok.numbers.numbers import Numbers


def special_names(config: Config, tokens: NumtokTokens) -> list[str]:
    """Names of the special tokens. TokenizerError if one may be in a text under another name, as it
    is looked for in normalized text.
    """
    special = [
        token
        for token in without_numbers(config, tokens, parse_special=True)["added_tokens"]
        if token["special"]
    ]
    if config.get("normalizer") is not None and any(token["normalized"] for token in special):
        raise TokenizerError("its special tokens are looked for in normalized text")
    return [token["content"] for token in special]


class SpecialRowsEngine:
    """See the module; ``names`` are those of the added tokens that the fast engine cannot read."""

    is_fast = True

    def __init__(self, fast: Engine, slow: TokenizersEngine, names: list[str]) -> None:
        self.fast, self.slow, self.name = fast, slow, fast.name
        longest_first = sorted((name.encode() for name in names), key=len, reverse=True)
        self._names = re.compile(b"|".join(map(re.escape, longest_first)) or b"(?!)")

    def encode(self, rows: TextRows, slots: Slots) -> Encoded:
        named = self._have_names(rows)
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
        """By the engine that encodes the row."""
        named = self._have_names(numbers.rows)
        wanted = np.ones(len(named), np.bool_) if wanted is None else wanted
        places = self.fast.first_tokens(encoded, numbers, wanted & ~named)
        if named.any():
            others = self.slow.first_tokens(encoded, numbers, wanted & named)
            places = np.where(named[numbers.document], others, places)
        return places

    def spans(self, rows: TextRows, slots: Slots) -> Ints | None:
        """Those of the fast engine (:meth:`~numtok.engines.words.engine.WordsEngine.spans`); None
        if there is a row that it cannot read.
        """
        return None if self._have_names(rows).any() else self.fast.spans(rows, slots)

    def _have_names(self, rows: TextRows) -> Mask:
        """bool[rows]: which have the name of a special token in them."""
        first, last = int(rows.offsets[0]), int(rows.offsets[-1])
        matches = self._names.finditer(rows.text[first:last].data)
        found = np.array([match.start() + first for match in matches], np.int64)
        named = np.zeros(len(rows), np.bool_)
        # a name across two rows does no harm
        named[np.searchsorted(rows.offsets, found, "right") - 1] = True
        return named
