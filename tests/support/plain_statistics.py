"""The oracle of the statistics: a loop over the numbers that ``numtok.extract`` finds, with
Python's own decimals and strings.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, field

import numtok

YEAR = re.compile(r"[0-9]{4}")


@dataclass
class PlainStatistics:
    """The counts by the names that ``Statistics.to_json`` gives them; the examples and the tokens
    are left out.
    """

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    numbers: int = 0
    number_bytes: int = 0

    def count(self, what, label):
        self.counts.setdefault(what, Counter())[str(label)] += 1

    def __getitem__(self, what):
        return dict(self.counts.get(what, {}))


def plain_statistics(texts, grammar=None):
    made = PlainStatistics()
    for text in texts:
        numbers = numtok.extract(text or "", grammar)
        made.count("per_document", 1 << (len(numbers).bit_length() - 1) if numbers else 0)
        for number in numbers:
            made.numbers += 1
            made.number_bytes += len(number.text.encode())
            _digits(made, number.value.as_tuple())
            _form(made, number.text)
            before = re.search("[0-9A-Za-z_\x80-\U0010ffff] $", text[: number.start])
            if number.text[0] == "-" and before:
                made.count("marks", "minus after a word")
    return made


def _digits(made, value):
    sign, digits, exponent = value
    written = "".join(map(str, digits)).lstrip("0")
    significant = written.rstrip("0")
    lowest = exponent + len(written) - len(significant)
    decade = exponent + len(written) - 1
    if not significant:
        lowest, decade = 0, -1
        made.count("zeros", "-0" if sign else "0")
    else:
        made.count("negative_decades" if sign else "positive_decades", min(max(decade, -50), 50))
        made.count("first_digits", significant[0])
    made.count("significant_digits", min(len(significant), 40))
    made.count("integer_digits", min(max(decade + 1, 0), 40))
    made.count("fraction_digits", min(max(-lowest, 0), 40))
    if len(significant) <= 18:
        mark = "-" if sign and significant else ""
        made.count("values", f"{mark}{significant}e{lowest}" if significant else "0")


def _form(made, text):
    mantissa, exponent = [*re.split("[eEdD]", text), None][:2]
    assert mantissa is not None
    for sign, name in {"-": "minus", "+": "plus", "−": "minus U+2212", "(": "parentheses"}.items():
        if mantissa.startswith(sign):
            made.count("marks", name)
    body = mantissa.strip("-+−()").replace("٫", ".")
    whole, point, fraction = body.partition(".")
    if not fraction:
        point = ""
    grouped = any(unicodedata.category(character) != "Nd" for character in whole)
    form = " ".join(["grouped"] * grouped + ["decimal"] * bool(point)) or "plain"
    form = "scientific" if exponent is not None else form
    made.count("forms", form)
    digits = [unicodedata.decimal(one) for one in whole if unicodedata.category(one) == "Nd"]
    if len(digits) > 1 and digits[0] == 0:
        made.count("marks", "leading zeros")
    if point and unicodedata.decimal(fraction[-1]) == 0:
        made.count("marks", "trailing zeros")
    if body.startswith("."):
        made.count("marks", "leading point")
    if any(ord(one) > 127 and unicodedata.category(one) == "Nd" for one in body):
        made.count("marks", "other digits")
    if form == "plain" and YEAR.fullmatch(text) and 1000 <= int(text) <= 2100:
        made.count("years", int(text) // 10 * 10)
