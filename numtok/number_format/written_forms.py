"""The ways in which the figures of a text may be written again.

In: a text. Out: its figures as they stand there, without the characters that group digits, and with
them; those below 0 also without their sign, as in "fell by 5".
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

from numtok.number_format.bounded_decimals import DIGITS
from numtok.number_format.number_format import Figure, as_written
from numtok.numbers.extract import extract
from numtok.numbers.grammar import Grammar, separators_of
from numtok.numbers.number import Number

MINUS = "-\u2212"
LONGEST = (
    100  # characters of a figure that may be written again; longer ones take minutes to lay out
)


def written_forms(text: str, grammar: Grammar) -> set[str]:
    """Return the ways to write the figures of a text, but for those of more than ``LONGEST`` characters.

    >>> sorted(written_forms("from 1,250 to -3", Grammar()))
    ['+1,250', '+1250', '-3', '1,250', '1250', '3']
    """
    numbers = extract(text, grammar)
    figures = {one.text for one in numbers if len(one.text) <= LONGEST}
    forms = {form for figure in figures for form in _forms(figure, grammar)}
    return forms | {one for one in _lists(text, numbers, grammar) if len(one) <= LONGEST}


def _lists(text: str, numbers: list[Number], grammar: Grammar) -> Iterator[str]:
    """Yield what looks like one number and is read as several, such as 1,23."""
    marks = set(separators_of(grammar)) - {" "}
    joined = [text[one.stop : other.start] in marks for one, other in itertools.pairwise(numbers)]
    start = 0
    for stop, goes_on in enumerate([*joined, False], 1):
        if not goes_on:
            if stop - start > 1:
                yield text[numbers[start].start : numbers[stop - 1].stop]
            start = stop


def forms_of_values(values: Iterable[Figure], grammar: Grammar) -> set[str]:
    """Return the ways to write numbers, and the figures of texts.

    Raises:
        FormatError: for what is neither a text nor a finite number.
    """
    point = grammar.decimal
    texts = (v if isinstance(v, str) else as_written(v).replace(".", point) for v in values)
    return written_forms(" ; ".join(texts), grammar)


def digits_of_names(text: str, grammar: Grammar) -> set[str]:
    """Return the digits of a text that are not read as numbers, as in names.

    >>> sorted(digits_of_names("In Q3 the B2B sales of COVID-19 tests fell by 5", Grammar()))
    ['2', '3']
    """
    rest = list(text)
    for number in extract(text, grammar):
        rest[number.start : number.stop] = " " * (number.stop - number.start)
    return {one for one in re.findall("[0-9]+", "".join(rest)) if len(one) <= LONGEST}


def _forms(figure: str, grammar: Grammar) -> Iterator[str]:
    """Yield the figure with and without its sign, grouped in each way, and without groups."""
    sign = figure[0] if figure[0] in f"+{MINUS}" else ""
    plain = figure.removeprefix(sign).translate(dict.fromkeys(map(ord, separators_of(grammar))))
    forms = {figure.removeprefix(sign), plain}
    whole = len(plain) - len(plain.lstrip(DIGITS))
    for separator in grammar.grouping or "":
        forms |= {f"{one}{plain[whole:]}" for one in _grouped(plain[:whole], separator, grammar)}
    signs = ("", "-") if sign and sign in MINUS else ("", "+")
    for form in forms:
        if [one.text for one in extract(form, grammar)] == [form]:
            yield from (f"{one}{form}" for one in signs)


def _grouped(digits: str, separator: str, grammar: Grammar) -> Iterator[str]:
    """Yield digits in groups of three, and of two where the grammar has them."""
    for size in (3, 2) if grammar.lakhs else (3,):
        groups, rest = [digits[-3:]], digits[:-3]
        while rest:
            groups, rest = [rest[-size:], *groups], rest[:-size]
        if len(groups) > 1:
            yield separator.join(groups)
