"""The rules of the grammar, one function each, on UTF-8 bytes in a buffer.

They say again what the expression of :mod:`numtok.numbers.extract` says, because they are compiled
and read a corpus many times as fast. The letters A to D in the comments are those of
:mod:`numtok.numbers.grammar`. Positions are byte offsets into the buffer. ``start`` and ``stop``
are the boundaries of the document, beyond which no rule looks; ``classes`` is the table of
:mod:`numtok.arrays.unicode_classes`. Everything is compiled by Numba and linear in time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays.kernels import inner_kernel
from numtok.arrays.unicode_classes import DIGIT, DOT, LETTER, OTHER, SIGN
from numtok.arrays.utf8 import class_at, class_before, decode
from numtok.numbers.grammar import MAX_EXPONENT_DIGITS
from numtok.numbers.words import follows_word, is_fraction, is_no_word, time_at, unit_end

POINT, COMMA, SPACE = 0x2E, 0x2C, 0x20


class Notation(NamedTuple):
    """Form of numerals: the code points that group digits, int32; the decimal mark; whether groups
    before the last three digits have two; exponents with no letter (0), with e (1), or with e and d
    (2); whether codes of currencies may stand before numerals.
    """

    separators: npt.NDArray[np.int32]
    decimal: np.uint8
    lakhs: bool
    exponents: np.uint8
    currency_codes: bool


@inner_kernel
def skip_digits(text, at, stop, classes):  # type: ignore[no-untyped-def]
    """Return (end, count) of the run of digits at ``at``."""
    count = 0
    kind, width = class_at(text, at, stop, classes)
    while kind >= DIGIT:
        at += width
        count += 1
        kind, width = class_at(text, at, stop, classes)
    return at, count


@inner_kernel
def digit_at(text, at, stop, classes):  # type: ignore[no-untyped-def]
    """Whether a digit stands at ``at``."""
    kind, _ = class_at(text, at, stop, classes)
    return kind >= DIGIT


@inner_kernel
def _mark_at(text, at, stop, decimal):  # type: ignore[no-untyped-def]
    """Return the width of the decimal mark at ``at``, ``decimal`` or U+066B; 0 if there is none."""
    if at >= stop:
        return 0
    if text[at] == decimal:
        return 1
    return 2 if text[at] == 0xD9 and text[at + 1] == 0xAB else 0


@inner_kernel
def _separator_at(text, at, stop, separators):  # type: ignore[no-untyped-def]
    """Return (code point, width) of the character at ``at`` if it may group digits, else (0, 0)."""
    if at >= stop:
        return np.int64(0), 0
    code, width = np.int64(text[at]), 1
    if code >= 0x80:
        code, width = decode(text, at)
    for k in range(separators.size):
        if code == separators[k]:
            return code, width
    return np.int64(0), 0


@inner_kernel
def _grouped_end(text, at, first, count, start, stop, classes, notation):  # type: ignore[no-untyped-def]
    """Return (end of the grouped integer whose first group of ``count`` digits is [first, at),
    whether it is an address).

    The end is ``at`` itself if the separators only separate (A).
    """
    end, groups, twos, separator = at, 0, 0, np.int64(0)
    while True:
        code, width = _separator_at(text, end, stop, notation.separators)
        if (
            code == 0
            or (groups > 0 and code != separator)
            or not digit_at(text, end + width, stop, classes)
        ):
            break
        if groups == 0:
            if count > 3 or not _may_begin(text, first, at, width, start, stop, classes, notation):
                return at, False
            separator = code
        end, size = skip_digits(text, end + width, stop, classes)
        if size == 2 and notation.lakhs and count <= 2 and twos == groups:
            twos += 1
        elif size != 3 or groups > twos > 0:
            return at, False
        groups += 1
    if twos > 0 and twos == groups:  # three digits have to follow
        return at, False
    return end, groups == 3 and separator == POINT and _is_address(text, first, end)


@inner_kernel
def _may_begin(text, first, at, width, start, stop, classes, notation):  # type: ignore[no-untyped-def]
    """Whether the digits [first, at) may be the first of groups that the separator at ``at``
    separates, by what they are and what stands before them.
    """
    kind, size = class_at(text, first, stop, classes)
    if kind == DIGIT and (first + size == at or notation.decimal == COMMA):  # 0,125; 012.345
        return False
    before, listed = first, first - width >= start
    for k in range(width):
        listed = listed and text[first - width + k] == text[at + k]
    if listed:
        before -= width
    kind, _ = class_before(text, before, start, classes)
    if listed and kind >= DIGIT:  # inside a list such as 1,23,456
        return False
    return not (  # A4 210
        text[at] == SPACE
        and not listed
        and follows_word(text, first, start, stop, classes, notation.currency_codes)
    )


@inner_kernel
def _is_address(text, first, end):  # type: ignore[no-untyped-def]
    """Whether four groups of digits are numbers from 1 to 255, as in 192.168.100.200."""
    value = np.int64(0)
    for k in range(first, end):
        digit = np.int64(text[k]) - 0x30
        value = value * 10 + digit if digit >= 0 else np.int64(0)  # a point begins another
        if (value == 0 and digit == 0) or value > 255:
            return False
    return True


@inner_kernel
def _exponent_at(text, at, stop, classes, exponents):  # type: ignore[no-untyped-def]
    """Return (end, value, fits) of the exponent at ``at``; end is ``at`` if there is none."""
    letter = text[at] | 0x20 if at < stop else 0
    if not ((letter == 0x65 and exponents > 0) or (letter == 0x64 and exponents > 1)):  # e, d
        return at, np.int64(0), True
    digits = at + 1
    kind, width = class_at(text, digits, stop, classes)
    negative = False
    if kind == SIGN:
        negative = text[digits] != 0x2B
        digits += width
    end, value, significant = digits, np.int64(0), 0
    while True:
        kind, width = class_at(text, end, stop, classes)
        if kind < DIGIT:
            break
        if significant > 0 or kind > DIGIT:
            significant += 1
            if significant <= MAX_EXPONENT_DIGITS:
                value = value * 10 + (kind - DIGIT)
        end += width
    if end == digits:
        return at, np.int64(0), True
    return end, -value if negative else value, significant <= MAX_EXPONENT_DIGITS


@inner_kernel
def numeral(text, at, start, stop, dot, classes, notation):  # type: ignore[no-untyped-def]
    """Read the numeral whose first digit is at ``at`` (``dot``: it follows a leading decimal
    point).

    Returns (end, end of the mantissa, fraction digits, exponent, fits).
    """
    end, count = skip_digits(text, at, stop, classes)
    fraction, address = 0, False
    if dot:
        fraction = count
    else:
        end, address = _grouped_end(text, end, at, count, start, stop, classes, notation)
        width = _mark_at(text, end, stop, notation.decimal)
        if width > 0 and digit_at(text, end + width, stop, classes):
            end, fraction = skip_digits(text, end + width, stop, classes)
    mantissa = end
    exponent, fits = np.int64(0), True
    if notation.exponents > 0:
        begin = end
        if not dot and fraction == 0:  # 2.e+3
            begin += _mark_at(text, end, stop, notation.decimal)
        exponent_end, exponent, fits = _exponent_at(text, begin, stop, classes, notation.exponents)
        if exponent_end > begin:
            end = exponent_end
    return (
        end,
        mantissa,
        fraction,
        exponent,
        fits and not (address and fraction == 0 and end == mantissa),
    )


@inner_kernel
def _point_and_digit(text, at, stop, classes, decimal):  # type: ignore[no-untyped-def]
    """Return the width of the dot or decimal mark at ``at`` if a digit follows; else 0."""
    width = 1 if at < stop and text[at] == POINT else _mark_at(text, at, stop, decimal)
    return width if width > 0 and digit_at(text, at + width, stop, classes) else 0


@inner_kernel
def _other_exponent_end(text, at, stop, classes, notation):  # type: ignore[no-untyped-def]
    """End of the signed exponent at ``at`` that the grammar does not read, as in ``1.5D+03``;
    ``at`` if there is none. A letter behind it tells dimensions, ``2D-3D``, but units behind ``e``.
    """
    letter = at + _mark_at(text, at, stop, notation.decimal)
    kind, _ = class_at(text, letter + 1, stop, classes)
    if letter >= stop or kind != SIGN:
        return at
    read, _, _ = _exponent_at(text, letter, stop, classes, notation.exponents)
    end, _, _ = _exponent_at(text, letter, stop, classes, 2)
    kind, _ = class_at(text, end, stop, classes)
    dimension = kind == LETTER and text[letter] | 0x20 == 0x64
    return at if read > letter or end == letter or dimension else end


@inner_kernel
def glued_end(text, at, start, stop, classes, notation):  # type: ignore[no-untyped-def]
    """End of what is glued to the numeral that ends at ``at``; ``at`` itself if nothing is (D)."""
    unit = unit_end(text, at, stop)
    if unit > at:
        kind, _ = class_at(text, unit, stop, classes)
        point = _point_and_digit(text, unit, stop, classes, notation.decimal)
        if kind != LETTER and kind < DIGIT and point == 0:
            return at
    if time_at(text, at, start, stop, classes):
        return at
    while True:
        width = _point_and_digit(text, at, stop, classes, notation.decimal)
        if width > 0:
            at, _ = skip_digits(text, at + width, stop, classes)
            continue
        end, _, _ = _exponent_at(text, at, stop, classes, notation.exponents)
        if end == at:
            end = _other_exponent_end(text, at, stop, classes, notation)
        if end > at:
            at = end
            continue
        end = at
        while is_fraction(text, end, stop):
            _, width = class_at(text, end, stop, classes)
            end += width
        if end > at:
            at, _ = skip_digits(text, end, stop, classes)
            continue
        while True:
            kind, width = class_at(text, end, stop, classes)
            if kind != LETTER:
                break
            end += width
        if end == at or kind < DIGIT:
            return at
        at, _ = skip_digits(text, end, stop, classes)


@inner_kernel
def is_hexadecimal(byte):  # type: ignore[no-untyped-def]
    """Whether the byte is one of 0-9, a-f, A-F."""
    return 0x30 <= byte <= 0x39 or 0x61 <= byte <= 0x66 or 0x41 <= byte <= 0x46


@inner_kernel
def _uuid_at(text, at, start, stop, classes):  # type: ignore[no-untyped-def]
    """Whether a UUID stands at ``at``, with no word character on either side."""
    if at < start or at + 36 > stop or text[at + 8] != 0x2D:
        return False
    for k in range(36):
        if k == 8 or k == 13 or k == 18 or k == 23:
            if text[at + k] != 0x2D:
                return False
        elif not is_hexadecimal(text[at + k]):
            return False
    before, _ = class_before(text, at, start, classes)
    after, _ = class_at(text, at + 36, stop, classes)
    return before != LETTER and before < DIGIT and after != LETTER and after < DIGIT


@inner_kernel
def uuid_end(text, at, start, stop, classes):  # type: ignore[no-untyped-def]
    """End of the UUID that the digit at ``at`` belongs to, or -1."""
    group = at
    while group > start and at - group < 12 and is_hexadecimal(text[group - 1]):
        group -= 1
    if _uuid_at(text, group, start, stop, classes):
        return group + 36
    if group > start and text[group - 1] == 0x2D:
        for back in (9, 14, 19, 24):
            if _uuid_at(text, group - back, start, stop, classes):
                return group - back + 36
    return -1


@inner_kernel
def look_back(text, at, start, classes, signs, leading):  # type: ignore[no-untyped-def]
    """Return (first byte, leading mark?, minus?) of the numeral whose first digit is at ``at`` (A,
    B); ``leading`` is the decimal mark, or 0xFF, a byte that no text has, if it cannot lead.
    """
    first, dot, minus = at, False, False
    mark = at
    if leading != 0xFF and at > start:
        if text[at - 1] == leading:
            mark = at - 1
        elif at - 1 > start and text[at - 1] == 0xAB and text[at - 2] == 0xD9:
            mark = at - 2
    if mark < at:
        kind, _ = class_before(text, mark, start, classes)
        if kind == LETTER:
            dot = is_no_word(text, mark, start)
        elif kind < DIGIT and kind != DOT:
            dot = mark == start or text[mark - 1] != leading
        if dot:
            first = mark
    if signs:
        kind, width = class_before(text, first, start, classes)
        if kind == SIGN:
            previous, _ = class_before(text, first - width, start, classes)
            if previous == OTHER:
                first -= width
                minus = text[first] != 0x2B
    return first, dot, minus


@inner_kernel
def in_parentheses(text, first, end, start, stop, classes):  # type: ignore[no-untyped-def]
    """Whether [first, end) is unsigned and stands alone in parentheses that do not follow a word
    character: ``(1,234)`` in accounts.
    """
    if (
        first <= start
        or end >= stop
        or text[first - 1] != 0x28
        or text[end] != 0x29
        or classes[text[first]] == SIGN
        or text[first] == 0xE2
    ):
        return False
    kind, _ = class_before(text, first - 1, start, classes)
    return kind != LETTER and kind < DIGIT


@inner_kernel
def copy_digits(text, at, stop, classes, out, filled):  # type: ignore[no-untyped-def]
    """Append the values of all digits in [at, stop) to ``out``; returns the new fill."""
    while at < stop:
        kind, width = class_at(text, at, stop, classes)
        at += width
        if kind >= DIGIT:
            out[filled] = kind - DIGIT
            filled += 1
    return filled
