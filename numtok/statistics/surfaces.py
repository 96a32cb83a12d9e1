"""How numbers are written: their form, four-digit years, and numbers that stand side by side as if
another country's grammar had written one.

In: :class:`numtok.numbers.Numbers` with their text. Out: :class:`Written`, histograms.

Every number has one of the ``FORMS``, and any of the ``MARKS``. A *year* is four ASCII digits
without a sign, 1000 to 2100. The ``SIDE_BY_SIDE`` are
numbers with one character between them: two, ``12 345`` and ``12'345``, one to three digits before
    exactly three; and, in running text, exactly two with a comma, ``3,14``, or three and more that
    are grouped as ``12,34,567`` is. *Running text* has a space or a character that is not ASCII
    before them, and behind them neither the end of the line, a tab, a bracket nor a quote: that
    leaves out lists, tuples and the rows of tables.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.kernels import inner_kernel, kernel
from numtok.arrays.unicode_classes import DIGIT, character_classes
from numtok.arrays.utf8 import class_at
from numtok.numbers.numbers import Numbers

Ints = npt.NDArray[np.int64]

FORMS = ("plain", "grouped", "decimal", "grouped decimal", "scientific")
MARKS = (
    "minus",
    "plus",
    "minus U+2212",
    "parentheses",
    "leading zeros",
    "trailing zeros",
    "leading point",
    "other digits",
)
SIDE_BY_SIDE = (
    "decimal comma",
    "grouped by space",
    "grouped by thin space",
    "grouped by apostrophe",
    "grouped in lakhs",
)
FIRST_YEAR, LAST_YEAR = 1000, 2100
(
    _MINUS,
    _PLUS,
    _MINUS_SIGN,
    _PARENTHESES,
    _LEADING_ZEROS,
    _TRAILING_ZEROS,
    _LEADING_POINT,
    _OTHER_DIGITS,
) = (1 << k for k in range(len(MARKS)))
_SIGNED = _MINUS | _PLUS | _MINUS_SIGN | _PARENTHESES
_PLAIN, _SCIENTIFIC = FORMS.index("plain"), FORMS.index("scientific")


class Written(NamedTuple):
    """Histograms of n numbers, int64 each: ``forms`` [5], ``marks`` [8], ``years`` [111] by decade
    from 1000 on, ``side_by_side`` [5].
    """

    forms: Ints
    marks: Ints
    years: Ints
    side_by_side: Ints

    @classmethod
    def none(cls) -> Written:
        """Of no numbers."""
        decades = (LAST_YEAR - FIRST_YEAR) // 10 + 1
        return cls(
            *(
                np.zeros(size, np.int64)
                for size in (len(FORMS), len(MARKS), decades, len(SIDE_BY_SIDE))
            )
        )

    def __add__(self, other: Written) -> Written:  # type: ignore[override]  # of tuples, it would join them
        return Written(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class _Places(NamedTuple):
    """Number ``i`` is ``text[offsets[document[i]] + start[i] : offsets[document[i]] + stop[i]]``."""

    text: npt.NDArray[np.uint8]
    offsets: Ints
    document: npt.NDArray[np.int32]
    start: Ints
    stop: Ints


class _Shape(NamedTuple):
    """How one number is written: its form, a bit for each of its marks, its digits before the
    point, and, of four at most, their value.
    """

    form: int
    marks: int
    integer: int
    value: int


def count_written(numbers: Numbers, side_by_side: bool = True) -> Written:
    """Histograms of the numbers; ``side_by_side`` only if they stand in their text and not each in
    a row of its own.
    """
    written, rows = Written.none(), numbers.rows
    digits = memory.empty(len(numbers), np.int8)
    places = _Places(rows.text, rows.offsets, numbers.document, numbers.start, numbers.stop)
    _count_surfaces(places, character_classes(), ord(numbers.decimal), written, digits)
    if side_by_side:
        _count_pairs(places, digits, written.side_by_side)
        _count_joined(places, digits, written.side_by_side)
    return written


@kernel
def _count_surfaces(places, classes, decimal, written, digits):  # type: ignore[no-untyped-def]
    """Fill the histograms, and for :func:`_count_pairs` in ``digits`` how many digits a plain
    number has, or -1 - digits of another without exponent.
    """
    for i in range(places.start.size):
        base = places.offsets[places.document[i]]
        shape = _shape(places.text, base + places.start[i], base + places.stop[i], classes, decimal)
        written.forms[shape.form] += 1
        for k in range(written.marks.size):
            written.marks[k] += (shape.marks >> k) & 1
        plain = shape.form == _PLAIN and shape.marks & (_SIGNED | _OTHER_DIGITS) == 0
        if plain and shape.integer == 4 and FIRST_YEAR <= shape.value <= LAST_YEAR:
            written.years[(shape.value - FIRST_YEAR) // 10] += 1
        count = min(shape.integer, 9)
        digits[i] = count if plain else -1 - count if shape.form != _SCIENTIFIC else -128


@inner_kernel
def _shape(text, first, end, classes, decimal):  # type: ignore[no-untyped-def]
    """:class:`_Shape` of the surface [first, end)."""
    at, marks, grouped, point, scientific = first, 0, False, False, False
    integer, value, last = 0, np.int64(0), np.int64(0)
    while at < end:
        byte = text[at]
        if byte < 0x80:
            kind, width = np.int64(classes[byte]), 1
        else:
            kind, width = class_at(text, at, end, classes)
        if kind >= DIGIT:
            last = kind - DIGIT
            if byte >= 0x80:
                marks |= _OTHER_DIGITS
            if not point:
                if integer == 1 and value == 0:
                    marks |= _LEADING_ZEROS
                if integer < 4:
                    value = value * 10 + last
                integer += 1
        elif byte == decimal:
            if integer == 0:
                marks |= _LEADING_POINT
            point = text[at + 1] | 0x20 != 0x65  # that of 2.e+3 is none; a digit or an e follows
        elif byte == 0x65 or byte == 0x45:
            scientific = True
            break
        elif at == first and byte == 0x2D:
            marks |= _MINUS
        elif at == first and byte == 0x2B:
            marks |= _PLUS
        elif at == first and byte == 0x28:
            marks |= _PARENTHESES
        elif at == first and byte == 0xE2 and text[at + 1] == 0x88:
            marks |= _MINUS_SIGN
        elif byte != 0x29:
            grouped = True
        at += width
    if point and last == 0:
        marks |= _TRAILING_ZEROS
    form = 4 if scientific else 2 * point + grouped
    return _Shape(form, marks, integer, int(value))


@kernel
def _count_pairs(places, digits, side_by_side):  # type: ignore[no-untyped-def]
    """Numbers of one document with a space or an apostrophe between them, as if it grouped digits."""
    text = places.text
    for i in range(digits.size - 1):
        gap, between = (
            places.start[i + 1] - places.stop[i],
            places.offsets[places.document[i]] + places.stop[i],
        )
        if (
            places.document[i + 1] != places.document[i]
            or not 1 <= gap <= 3
            or not 1 <= digits[i] <= 3
        ):
            continue
        there = digits[i + 1] if digits[i + 1] >= 0 else -1 - digits[i + 1]
        if there != 3:
            continue
        thin = gap == 3 and text[between] == 0xE2 and text[between + 1] == 0x80
        if gap == 1 and text[between] == 0x20:
            side_by_side[1] += 1
        elif (thin and (text[between + 2] == 0x89 or text[between + 2] == 0xAF)) or (
            gap == 2 and text[between] == 0xC2 and text[between + 1] == 0xA0
        ):
            side_by_side[2] += 1
        elif (gap == 1 and text[between] == 0x27) or (thin and text[between + 2] == 0x99):
            side_by_side[3] += 1


@kernel
def _count_joined(places, digits, side_by_side):  # type: ignore[no-untyped-def]
    """Numbers of one document with a comma between them, in running text."""
    first = 0
    while first < digits.size:
        last = first
        while last + 1 < digits.size and _comma_follows(places, last):
            last += 1
        if last > first and _in_running_text(places, first, last):
            if last > first + 1:
                side_by_side[4] += _grouped_in_lakhs(digits, first, last)
            else:
                side_by_side[0] += digits[first] != -128 and digits[last] >= 1
        first = last + 1


@inner_kernel
def _comma_follows(places, i):  # type: ignore[no-untyped-def]
    """Whether nothing but a comma stands between a number and the next one."""
    behind = places.offsets[places.document[i]] + places.stop[i]
    return (
        places.document[i + 1] == places.document[i]
        and places.start[i + 1] - places.stop[i] == 1
        and places.text[behind] == 0x2C
    )


@inner_kernel
def _in_running_text(places, first, last):  # type: ignore[no-untyped-def]
    """Whether numbers stand as those of sentences do, by the characters on either side."""
    row = places.document[first]
    begin, end = places.offsets[row] + places.start[first], places.offsets[row] + places.stop[last]
    if places.start[first] == 0 or end >= places.offsets[row + 1]:
        return False
    before, after = places.text[begin - 1], places.text[end]
    if before != 0x20 and before < 0x80:
        return False
    return not (
        after < 0x20
        or after == 0x29
        or after == 0x5D
        or after == 0x7D
        or after == 0x22
        or after == 0x27
    )  # ) ] } " '


@inner_kernel
def _grouped_in_lakhs(digits, first, last):  # type: ignore[no-untyped-def]
    """Whether so many digits are before each comma and behind the last one as in 12,34,567."""
    before = digits[first] if digits[first] >= 0 else -1 - digits[first]  # with a sign
    if not 1 <= before <= 2 or (digits[last] != 3 and digits[last] != -4):
        return False
    for i in range(first + 1, last):
        if digits[i] != 2:
            return False
    return True
