"""The numbers of a short text, by regular expressions: where an array would cost more than the
search.

In: one text. Out: the same text with a mark for each number, or None where only the scanner can
    tell what is a number, as of one text in twenty. The expressions are made of the table by which
    the scanner settles most numbers (:func:`numtok.numbers.plain_numbers.neighbours`).
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

import numpy as np

from numtok.numbers.grammar import Grammar
from numtok.numbers.plain_numbers import (
    BEGINS,
    ENDS,
    ENDS_BEFORE,
    NO_DIGIT,
    SEPARATES,
    neighbours,
)

PLACES = range(-15, 15)  # the powers of ten at which the digits of these numbers can stand
# dashes, quotes, currencies: next to other characters that are not ASCII, the scanner tells
BESIDE = "\u2013\u2014\u201c\u201d\u00a3\u20ac"
UNIT_LETTERS = "a-df-wyzA-DF-WYZ"  # none that begins an exponent or a chain
ANY_DIGIT = re.compile(
    "[\\d\U00010000-\U000effff]"
)  # or a character beyond the first plane, where Python may not know all digits yet


@dataclass(frozen=True)
class ShortTexts:
    """How to replace the numbers of a grammar.

    Attributes:
        number: matches whole numbers only, though not all.
        no_number: matches digits that are none, as they follow a letter.
    """

    number: re.Pattern[str]
    no_number: re.Pattern[str]

    def replaced(self, text: str, mark: str) -> str | None:
        """``text`` with ``mark``, a private-use character, in place of each number; None if there
        is none, or only the scanner can tell.
        """
        marked, count = self.number.subn(mark, text)
        if not count or (
            ANY_DIGIT.search(marked) and ANY_DIGIT.search(self.no_number.sub("", marked))
        ):
            return None
        return marked


@functools.lru_cache(maxsize=64)
def short_texts(grammar: Grammar) -> ShortTexts | None:
    """Those of a grammar; None if it is a user's own expression."""
    if grammar.pattern is not None:
        return None
    table = neighbours(grammar)

    def having(flags: int, without: int = 0) -> str:
        found = np.flatnonzero((table & flags != 0) & (table & without == 0)).tolist()
        return "".join(re.escape(chr(byte)) for byte in found if chr(byte) != "-")

    point = r"\." if "." in (grammar.grouping or "") else ""
    separators = having(SEPARATES) + point
    not_zero = "(?!0)" if grammar.decimal == "," else ""
    more = (
        1 if "." in separators else 3
    )  # four groups with points between them are perhaps an address
    grouped = (
        f"{not_zero}[0-9]{{1,3}}(?P<s>[{separators}])[0-9]{{3}}(?:(?P=s)[0-9]{{3}}){{0,{more}}}|"
        if separators
        else ""
    )
    decimal = f"(?:{grouped}[0-9]{{1,15}})(?:\\{grammar.decimal}[0-9]{{1,15}})?"
    begins = f"(?<![^{having(BEGINS, without=SEPARATES)}{BESIDE}])"
    before = rf"(?:{begins}|(?<=(?<!\d) ))" if " " in (grammar.grouping or "") else begins
    marks, no_digit = having(ENDS_BEFORE) + point, having(NO_DIGIT)
    follows = f"[{having(ENDS)}{BESIDE}]|\\Z|[{marks}](?:[{no_digit}{BESIDE}]|\\Z)"
    end = f"(?:{follows}|[{separators}](?!{ANY_DIGIT.pattern}))" if separators else f"(?:{follows})"
    unit = f"[{UNIT_LETTERS}]+(?:[{having(ENDS)}{marks}]|\\Z)"
    signed = f"(?:{before}|(?<![^ ])[-+\u2212])" if grammar.signs else before
    # Beside a hyphen: the lengths that no group of a UUID has there.
    forms = (
        f"{signed}{decimal}(?={end}|{unit})",
        f"{before}[0-9]{{1,7}}(?=-)",
        f"(?<=[0-9A-Za-z]-)[0-9]{{1,11}}(?={end})",
    )
    return ShortTexts(
        re.compile("|".join(forms)), re.compile(f"(?<=[A-Za-z])[0-9]{{1,15}}(?={end}|-)")
    )
