"""How numbers are written: their form, four-digit years, and numbers that stand side by side as if another country's grammar had written one.

In: :class:`numtok.numbers.Numbers` with their text. Out: :class:`Written`, histograms.

Every number has one of the ``FORMS``, and any of the ``MARKS``. A *year* is four ASCII digits without a sign, 1000 to 2100. The ``SIDE_BY_SIDE`` are exactly
two numbers with one character between them: ``3,14`` that is not part of a list, ``12 345`` and ``12'345``, one to three digits before exactly three.
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
MARKS = ("minus", "plus", "minus U+2212", "parentheses", "leading zeros", "trailing zeros", "leading point", "other digits")
SIDE_BY_SIDE = ("decimal comma", "grouped by space", "grouped by thin space", "grouped by apostrophe")
FIRST_YEAR, LAST_YEAR = 1000, 2100
_MINUS, _PLUS, _MINUS_SIGN, _PARENTHESES, _LEADING_ZEROS, _TRAILING_ZEROS, _LEADING_POINT, _OTHER_DIGITS = (
    1 << k for k in range(len(MARKS))
)
_SIGNED = _MINUS | _PLUS | _MINUS_SIGN | _PARENTHESES
_PLAIN, _SCIENTIFIC = FORMS.index("plain"), FORMS.index("scientific")
_NO_COMMA, _NEITHER = 0, -1


class Written(NamedTuple):
    """Histograms of n numbers, int64 each: ``forms`` [5], ``marks`` [8], ``years`` [111] by decade from 1000 on, ``side_by_side`` [4]."""

    forms: Ints
    marks: Ints
    years: Ints
    side_by_side: Ints

    @classmethod
    def none(cls) -> Written:
        """Of no numbers."""
        decades = (LAST_YEAR - FIRST_YEAR) // 10 + 1
        return cls(*(np.zeros(size, np.int64) for size in (len(FORMS), len(MARKS), decades, len(SIDE_BY_SIDE))))

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
    """How one number is written: its form, a bit for each of its marks, its digits before the point, and, of four at most, their value."""

    form: int
    marks: int
    integer: int
    value: int


def count_written(numbers: Numbers, side_by_side: bool = True) -> Written:
    """Histograms of the numbers; ``side_by_side`` only if they stand in their text and not each in a row of its own."""
    written, rows = Written.none(), numbers.rows
    digits = memory.empty(len(numbers), np.int8)
    places = _Places(rows.text, rows.offsets, numbers.document, numbers.start, numbers.stop)
    _count_surfaces(places, character_classes(), written, digits)
    if side_by_side:
        _count_pairs(places, digits, written.side_by_side)
    return written


@kernel
def _count_surfaces(places, classes, written, digits):  # type: ignore[no-untyped-def]
    """Fill the histograms, and for :func:`_count_pairs` in ``digits`` how many digits a plain number has, or -1 - digits of another without exponent."""
    for i in range(places.start.size):
        base = places.offsets[places.document[i]]
        shape = _shape(places.text, base + places.start[i], base + places.stop[i], classes)
        written.forms[shape.form] += 1
        for k in range(written.marks.size):
            written.marks[k] += (shape.marks >> k) & 1
        plain = shape.form == _PLAIN and shape.marks & (_SIGNED | _OTHER_DIGITS) == 0
        if plain and shape.integer == 4 and FIRST_YEAR <= shape.value <= LAST_YEAR:
            written.years[(shape.value - FIRST_YEAR) // 10] += 1
        count = min(shape.integer, 9)
        digits[i] = count if plain else -1 - count if shape.form != _SCIENTIFIC else -128


@inner_kernel
def _shape(text, first, end, classes):  # type: ignore[no-untyped-def]
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
        elif byte == 0x2E:
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
    """Numbers of one document with one character between them."""
    text = places.text
    joined_before = False  # whether a comma stands between the number and the one before it
    for i in range(digits.size - 1):
        joined, base = False, places.offsets[places.document[i]]
        gap, between = places.start[i + 1] - places.stop[i], base + places.stop[i]
        if places.document[i + 1] == places.document[i] and 1 <= gap <= 3 and digits[i] != -128:
            here, there = digits[i] if digits[i] >= 0 else -1 - digits[i], digits[i + 1]
            groups = digits[i] >= 1 and here <= 3 and there == 3
            if gap == 1 and text[between] == 0x2C:
                joined = True
                after = i + 2 < digits.size and places.document[i + 2] == places.document[i]
                list_goes_on = after and places.start[i + 2] - places.stop[i + 1] == 1 and text[base + places.stop[i + 1]] == 0x2C
                side_by_side[0] += there >= 1 and not joined_before and not list_goes_on
            elif gap == 1 and text[between] == 0x20:
                side_by_side[1] += groups
            elif (
                gap == 3
                and text[between] == 0xE2
                and text[between + 1] == 0x80
                and (text[between + 2] == 0x89 or text[between + 2] == 0xAF)
            ) or (gap == 2 and text[between] == 0xC2 and text[between + 1] == 0xA0):
                side_by_side[2] += groups
            elif (gap == 1 and text[between] == 0x27) or (
                gap == 3 and text[between] == 0xE2 and text[between + 1] == 0x80 and text[between + 2] == 0x99
            ):
                side_by_side[3] += groups
        joined_before = joined
