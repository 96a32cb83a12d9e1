"""Numbers that a text spells out in English words: ``twelve``, ``a hundred and five``, ``two
million``, ``half``, ``two and a half``, ``two-thirds``. Sources are read so; answers are held to their digits alone.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

_BELOW_20 = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
    fifteen sixteen seventeen eighteen nineteen"""
_BY_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_UNITS = {word: value for value, word in enumerate(_BELOW_20.split())}
_TENS = {word: 10 * value for value, word in enumerate(_BY_TENS.split(), 2)}
_SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_PARTS = {"half": 2, "halve": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6}
_PARTS |= {"seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10}


class SpelledNumber(NamedTuple):
    """A number in words: its span in the text, its value, and whether "percent" follows."""

    start: int
    stop: int
    value: Decimal | Fraction
    percent: bool


@functools.cache
def _expression() -> re.Pattern[str]:
    units, tens, scales, parts = map("|".join, (_UNITS, _TENS, _SCALES, _PARTS))
    below_100 = rf"(?:(?:{tens})(?:[-\s](?:{units}))?|{units})"
    below_1000 = (
        rf"(?:(?:{below_100}|an?)\shundred(?:\s(?:and\s)?{below_100})?|{below_100}(?:\sdozen)?)"
    )
    article = rf"an?(?=\s(?:{scales}|{parts}|dozen))(?:\sdozen)?"
    return re.compile(
        rf"\b(?:(?P<alone>half)(?:\sa\s(?P<scale>{scales}))?"
        rf"|(?P<count>{below_1000}|{article})"
        rf"(?:\sand\s(?P<times>an?|one|two|three)[-\s](?P<added>{parts})s?(?:\s(?P<of>{scales}))?"
        rf"|(?<!ty)[-\s](?P<part>{parts})s?|(?P<more>(?:\s(?:{scales})(?:\s(?:and\s)?{below_1000})?)*)))\b"
        rf"(?!-(?:first|second|{parts})\b)"  # twenty-fifth
        r"(?P<percent>\s?(?:%|per\s?cent))?",
        re.IGNORECASE,
    )


def read_number_words(text: str) -> Iterator[SpelledNumber]:
    """Yield the numbers that stand in words.

    Example:
        >>> [str(one.value) for one in read_number_words("Twenty-one of a hundred and five, or half")]
        ['21', '105', '1/2']
        >>> [str(one.value) for one in read_number_words("two and a half, one and a half million")]
        ['5/2', '1500000']
        >>> [str(one.value) for one in read_number_words("five eighths, the twenty-fifth")]
        ['5/8']
    """
    for match in _expression().finditer(text):
        value: Decimal | Fraction
        if match["alone"]:
            word = (match["scale"] or "").lower()
            value = Decimal(5).scaleb(_SCALES[word] - 1) if word else Fraction(1, 2)
        elif match["added"]:  # two and a half million
            part = Fraction(_whole(match["times"]), _PARTS[match["added"].lower()])
            scale = 10 ** _SCALES[match["of"].lower()] if match["of"] else 1
            value = (_whole(match["count"]) + part) * scale
        elif match["part"]:
            value = Fraction(_whole(match["count"]), _PARTS[match["part"].lower()])
        else:
            value = Decimal(_whole(match["count"] + match["more"]))
        yield SpelledNumber(*match.span(), value, match["percent"] is not None)


def _whole(words: str) -> int:
    """Return the whole number that words spell; an article alone is 1."""
    total, group = 0, 0
    for word in re.split(r"[-\s]", words.lower()):
        if word in ("hundred", "dozen"):
            group = max(group, 1) * (100 if word == "hundred" else 12)
        elif word in _SCALES:
            scale = 10 ** _SCALES[word]
            total = total * scale if total and not group else total + max(group, 1) * scale
            group = 0
        else:
            group += _TENS.get(word, 0) + _UNITS.get(word, 0)
    return 1 if words.lower() in ("a", "an") else total + group
