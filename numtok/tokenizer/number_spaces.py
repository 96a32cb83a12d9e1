"""The space before a number, put back where a tokenizer drops it: T5 has the same ids for ``room 7``
and ``room7``, and the latter holds no number.

In: the text between numbers, and the text of each. Out: the whole text, in which every number reads
as it is. After a number such tokenizers write the space of a word themselves.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from numtok.numbers.extract import extract
from numtok.numbers.grammar import Grammar

# general categories of what stands directly before a number: opening brackets and quotes, currency
# signs, dashes
DIRECTLY_BEFORE = ("Ps", "Pi", "Sc", "Pd")
SIGNS_AND_MARKS = "+\u2212/#"
BEFORE = 4  # characters before a number that decide how it is read after such a mark: "2.e-"


class NumberSpaces:
    """Joins texts and numbers under a grammar; ``carries_sign``: the sign is a part of the number, so
    that one in the text before is another character.
    """

    def __init__(self, grammar: Grammar, carries_sign: bool) -> None:
        self._grammar, self._carries_sign = grammar, carries_sign

    def join(self, texts: Sequence[str], numbers: Sequence[str]) -> str:
        """Return ``texts``, one more than ``numbers``, with these between them and the spaces that
        they need. Names of tokens, such as ``[NUM]``, need none.
        """
        joined = texts[0]
        for number, text in zip(numbers, texts[1:], strict=True):
            is_number = not number.startswith("[")
            space = " " if is_number and self._needs_space(joined[-BEFORE:], number) else ""
            joined += space + number + text
        return joined

    def _needs_space(self, before: str, number: str) -> bool:
        """Whether a space belongs between the end of a text and a number."""
        if not before or before[-1].isspace():
            return False
        last = before[-1]
        if last not in SIGNS_AND_MARKS and unicodedata.category(last) not in DIRECTLY_BEFORE:
            return True
        word = before.split()[-1]
        found = extract(word + number, self._grammar)[-1:]
        begins = (len(word),) if self._carries_sign else (len(word), len(word) - 1)
        return not (found and found[0].start in begins and found[0].stop == len(word + number))
