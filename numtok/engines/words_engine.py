"""``tokenizers`` with the ids of words kept, for tokenizers that certainly cut at spaces: the same ids, mostly without asking for them again.

In and out: as every engine (:mod:`numtok.engines.interface`).
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from numtok.arrays.text_rows import TextRows
from numtok.engines.interface import Config, Encoded, Engine, NumberTokens, Slots, without_numbers
from numtok.engines.pieces import pieces_between, put_together
from numtok.engines.special_rows import SpecialRowsEngine
from numtok.engines.tokenizers_engine import TokenizersEngine
from numtok.engines.word_cuts import cuts_at_spaces, tokens_to_leave_whole
from numtok.engines.words import BEGIN, BEHIND, Words

PREFIXES = "aeiousn"  # words for another one to stand behind


def with_words_kept(slow: TokenizersEngine, config: Config, tokens: NumberTokens) -> Engine:
    """The engine, with words kept if it is certain that the tokenizer cuts at spaces; else as it is."""
    source, two_forms = without_numbers(config, tokens, parse_special=True), tokens.spaced >= 0
    added = {token["content"].strip().casefold() for token in source["added_tokens"]}
    prefix = next((letter for letter in PREFIXES if letter not in added), None)
    if prefix is None or not cuts_at_spaces(source, two_forms):
        return slow
    words = WordsEngine(slow, prefix, two_forms)
    left = tokens_to_leave_whole(source)
    return SpecialRowsEngine(words, slow, left) if left else words


class WordsEngine:
    """See the module.

    Args:
        slow: gives the ids of words.
        prefix: a word that is no added token.
        two_forms: whether a number takes the space before it along.
    """

    name = "tokenizers"
    is_fast = True

    def __init__(self, slow: TokenizersEngine, prefix: str, two_forms: bool) -> None:
        self.slow, self._prefix, self._two_forms = slow, prefix, two_forms
        self.words = Words(self._encode)

    @functools.cached_property
    def _prefix_ids(self) -> list[int]:
        return self.slow.encode_text([self._prefix])[0]

    def encode(self, rows: TextRows, slots: Slots) -> Encoded:
        pieces = pieces_between(rows, slots, self._two_forms)
        tokens = self.words.tokens(pieces.text, pieces.documents, _begins(slots, len(rows)))
        return self.slow.encode(rows, slots) if tokens is None else put_together(pieces, tokens, slots)

    def first_tokens(self, text: str, characters: list[int]) -> list[int]:
        """The token in which each character lies; for a character without one, the next that has."""
        return self.slow.first_tokens(text, characters)

    def _encode(self, words: list[bytes]) -> list[list[int]]:
        """Ids of words, each behind what its first byte says."""
        behind = [k for k, word in enumerate(words) if word[0] == BEHIND]
        others = [k for k, word in enumerate(words) if word[0] != BEHIND]
        lists: list[list[int]] = [[] for _ in words]
        for k, ids in zip(behind, self.slow.encode_behind_number([words[k][1:].decode() for k in behind]), strict=True):
            lists[k] = ids
        texts = [words[k][1:].decode() if words[k][0] == BEGIN else self._prefix + words[k].decode() for k in others]
        skipped = len(self._prefix_ids)
        for k, ids in zip(others, self.slow.encode_text(texts), strict=True):
            lists[k] = ids if words[k][0] == BEGIN else ids[skipped:]
        return lists


def _begins(slots: Slots, rows: int) -> npt.NDArray[np.bool_]:
    """bool[pieces]: which ones begin a row."""
    begins = np.zeros(len(slots.document) + rows, np.bool_)
    begins[slots.per_document[:-1] + np.arange(rows)] = True
    return begins
