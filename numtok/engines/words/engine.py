"""``tokenizers`` with the ids of words kept, for tokenizers that certainly cut at spaces: the same
ids, mostly without asking for them again.

In and out: as every engine (:mod:`numtok.engines.interface`).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.kernels import kernel
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
from numtok.engines.pieces import pieces_between, put_together
from numtok.engines.special_rows import SpecialRowsEngine
from numtok.engines.tokenizers_engine import TokenizersEngine
from numtok.engines.words.cache import BEGIN, BEHIND, Words, packed, spans_of, tokens_of
from numtok.engines.words.cuts import cuts_at_spaces, tokens_to_leave_whole
from numtok.numbers.numbers import Numbers

PREFIXES = "aeiousn"  # words for another one to stand after


def with_words_kept(slow: TokenizersEngine, config: Config, tokens: NumtokTokens) -> Engine:
    """The engine, with words cached if the tokenizer certainly cuts at spaces."""
    source, two_forms = without_numbers(config, tokens, parse_special=True), tokens.spaced >= 0
    added = {token["content"].strip().casefold() for token in source["added_tokens"]}
    prefix = next((letter for letter in PREFIXES if letter not in added), None)
    if prefix is None or not cuts_at_spaces(source, two_forms):
        return slow
    words = WordsEngine(slow, prefix, two_forms)
    left = [name.encode() for name in tokens_to_leave_whole(source)]
    return SpecialRowsEngine(words, lambda: slow, left) if left else words


class WordsEngine:
    """See the module; ``slow`` gives the ids of words, ``prefix`` is one that is no added token."""

    name = "tokenizers"
    is_fast = True

    def __init__(self, slow: TokenizersEngine, prefix: str, two_forms: bool) -> None:
        self.slow, self._prefix, self._two_forms = slow, prefix, two_forms
        self.words = Words(self._ids)
        self._spans = Words(self._packed_spans)

    @functools.cached_property
    def _prefix_ids(self) -> list[int]:
        return self.slow.encode_text([self._prefix])[0]

    def encode(self, rows: TextRows, slots: Slots) -> Encoded:
        pieces = pieces_between(rows, slots, self._two_forms)
        found = self.words.find(pieces.text, pieces.documents, _begins(slots, len(rows)))
        if found is None:
            return self.slow.encode(rows, slots)
        return put_together(tokens_of(found), pieces.spaced, slots)

    def spans(self, rows: TextRows, slots: Slots) -> Ints | None:
        """int64[t, 2]: the characters that each token of the rows covers, if every number is one
        token; None if that is not known.
        """
        pieces, begins = pieces_between(rows, slots, self._two_forms), _begins(slots, len(rows))
        found = self._spans.find(pieces.text, pieces.documents, begins)
        return None if found is None else spans_of(found, pieces.text, pieces.documents, begins)

    def first_tokens(self, encoded: Encoded, numbers: Numbers, wanted: Mask | None = None) -> Ints:
        """Find the tokens by the characters that they cover; by ``tokenizers`` where words do not
        tell them.
        """
        rows, nothing = numbers.rows, np.empty(0, np.int32)
        none = Slots.of(numbers.select(nothing), nothing, nothing, np.zeros(1, np.int64))
        spans = self.spans(rows, none)
        if spans is None or len(spans) != len(encoded.ids):  # other rows by another engine
            return self.slow.first_tokens(encoded, numbers, wanted)
        places = memory.empty(len(numbers), np.int64)
        text = rows.text, rows.offsets
        _find_tokens(spans, encoded.offsets, *text, numbers.per_document(), numbers.start, places)
        return places

    def _ids(self, words: list[bytes]) -> list[list[int]]:
        found = self._encodings(words, offsets=False)
        return [encoding.ids[skipped:] for encoding, skipped, _ in found]

    def _packed_spans(self, words: list[bytes]) -> list[list[int]]:
        return [
            packed(encoding.offsets[skipped:], before)
            for encoding, skipped, before in self._encodings(words, offsets=True)
        ]

    def _encodings(self, words: list[bytes], offsets: bool) -> list[tuple[Any, int, int]]:
        """(encoding, tokens and characters before the word) of each, after its first byte."""
        behind = [word[1:].decode() for word in words if word[0] == BEHIND]
        others = [
            word[1:].decode() if word[0] == BEGIN else self._prefix + word.decode()
            for word in words
            if word[0] != BEHIND
        ]
        after_number = iter(self.slow.encodings(behind, True, offsets))
        after_text = iter(self.slow.encodings(others, False, offsets))
        skipped = {BEHIND: (1, 1), BEGIN: (0, 0)}
        after_word = len(self._prefix_ids), len(self._prefix)
        return [
            (next(after_number if word[0] == BEHIND else after_text),
             *skipped.get(word[0], after_word))
            for word in words
        ]  # fmt: skip


def _begins(slots: Slots, rows: int) -> npt.NDArray[np.bool_]:
    """bool[pieces]: which ones begin a row."""
    begins = np.zeros(len(slots.document) + rows, np.bool_)
    begins[slots.per_document[:-1] + np.arange(rows)] = True
    return begins


@kernel
def _find_tokens(spans, offsets, text, row_offsets, per_row, starts, places):  # type: ignore[no-untyped-def]
    """Fill int64[n] ``places`` with the token in which each number begins; for a character without
    a token, the next that has one.
    """
    for row in range(row_offsets.size - 1):
        at, characters, token, last = row_offsets[row], 0, offsets[row], offsets[row + 1]
        for number in range(per_row[row], per_row[row + 1]):
            while at < row_offsets[row] + starts[number]:
                characters += text[at] & 0xC0 != 0x80
                at += 1
            while token < last and spans[token, 1] <= max(characters, spans[token, 0]):
                token += 1
            places[number] = min(token, last - 1)
