"""The rules of the grammar, one function each, on UTF-8 bytes in a buffer.

The letters A to D in the comments are those of :mod:`numtok.numbers.grammar`. Positions are byte
offsets into the buffer, ``start`` and ``stop`` the document's edges, which nothing looks beyond;
``classes`` is the table of :mod:`numtok.arrays.unicode_classes`. Everything is compiled by Numba
and linear in time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays.kernels import inner_kernel
from numtok.arrays.unicode_classes import DIGIT, DOT, LETTER, OTHER, SIGN
from numtok.arrays.utf8 import class_at, class_before, decode
from numtok.numbers.grammar import MAX_EXPONENT_DIGITS

POINT, COMMA, SPACE = 0x2E, 0x2C, 0x20


class Notation(NamedTuple):
    """How numerals are written: the code points that group digits, int32; the decimal mark; whether
    by two before the last three; whether with exponents.
    """

    separators: npt.NDArray[np.int32]
    decimal: np.uint8
    lakhs: bool
    exponent: bool


@inner_kernel
def _skip_digits(text, at, stop, classes):  # type: ignore[no-untyped-def]
    """(end, count) of the run of digits at ``at``."""
    count = 0
    while at < stop:
        if text[at] < 0x80:
            if classes[text[at]] < DIGIT:
                break
            at += 1
        else:
            code, width = decode(text, at)
            if classes[code] < DIGIT:
                break
            at += width
        count += 1
    return at, count


@inner_kernel
def digit_at(text, at, stop, classes):  # type: ignore[no-untyped-def]
    """Whether a digit stands at ``at``."""
    kind, _ = class_at(text, at, stop, classes)
    return kind >= DIGIT


@inner_kernel
def _separator_at(text, at, stop, separators):  # type: ignore[no-untyped-def]
    """(code point, width) of the character at ``at`` if it may group digits, else (0, 0)."""
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
    """(end of the grouped integer whose first group of ``count`` digits is [first, at), whether it
    is an address).

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
            if count > 3 or not _may_begin(
                text, first, at, width, start, classes, notation.decimal
            ):
                return at, False
            separator = code
        end, size = _skip_digits(text, end + width, stop, classes)
        if size == 2 and notation.lakhs and count <= 2 and twos == groups:
            twos += 1
        elif size != 3 or groups > twos > 0:
            return at, False
        groups += 1
    if twos > 0 and twos == groups:  # three digits have to follow
        return at, False
    return end, groups == 3 and separator == POINT and _is_address(text, first, end)


@inner_kernel
def _may_begin(text, first, at, width, start, classes, decimal):  # type: ignore[no-untyped-def]
    """Whether the digits [first, at) may be the first of groups that the separator at ``at``
    separates, by what stands before them.
    """
    before, listed = first, first - width >= start
    for k in range(width):
        listed = listed and text[first - width + k] == text[at + k]
    if listed:
        before -= width
    kind, _ = class_before(text, before, start, classes)
    if listed and kind >= DIGIT:  # inside a list such as 1,23,456
        return False
    # A4 210; 0.123
    return not (kind == LETTER and text[at] == SPACE and not listed) and not (
        decimal == COMMA and text[first] == 0x30
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
def _exponent_at(text, at, stop, classes):  # type: ignore[no-untyped-def]
    """(end, value, fits) of the exponent at ``at``; end is ``at`` if there is none."""
    if at >= stop or (text[at] != 0x65 and text[at] != 0x45):  # e, E
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
    end, count = _skip_digits(text, at, stop, classes)
    fraction, address = 0, False
    if dot:
        fraction = count
    else:
        end, address = _grouped_end(text, end, at, count, start, stop, classes, notation)
        if end < stop and text[end] == notation.decimal and digit_at(text, end + 1, stop, classes):
            end, fraction = _skip_digits(text, end + 1, stop, classes)
    mantissa = end
    exponent, fits = np.int64(0), True
    if notation.exponent:
        begin = end
        if not dot and fraction == 0 and end < stop and text[end] == notation.decimal:  # 2.e+3
            begin = end + 1
        exponent_end, exponent, fits = _exponent_at(text, begin, stop, classes)
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
def glued_end(text, at, stop, classes, notation):  # type: ignore[no-untyped-def]
    """End of what is glued to the numeral that ends at ``at``; ``at`` itself if nothing is (D)."""
    while True:
        if (
            at < stop
            and (text[at] == POINT or text[at] == notation.decimal)
            and digit_at(text, at + 1, stop, classes)
        ):
            at, _ = _skip_digits(text, at + 1, stop, classes)
            continue
        if notation.exponent:
            end, _, _ = _exponent_at(text, at, stop, classes)
            if end > at:
                at = end
                continue
        end = at
        while True:
            kind, width = class_at(text, end, stop, classes)
            if kind != LETTER:
                break
            end += width
        if end == at or kind < DIGIT:
            return at
        at, _ = _skip_digits(text, end, stop, classes)


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
    """(first byte, leading mark?, minus?) of the numeral whose first digit is at ``at`` (A, B);
    ``leading`` is the decimal mark, or a byte that no text has if it cannot lead.
    """
    first, dot, minus = at, False, False
    if at > start and text[at - 1] == leading:
        kind, _ = class_before(text, at - 1, start, classes)
        if (
            kind != LETTER
            and kind < DIGIT
            and kind != DOT
            and (at - 1 == start or text[at - 2] != leading)
        ):
            first, dot = at - 1, True
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
        if text[at] < 0x80:
            kind = classes[text[at]]
            at += 1
        else:
            code, width = decode(text, at)
            kind = classes[code]
            at += width
        if kind >= DIGIT:
            out[filled] = kind - DIGIT
            filled += 1
    return filled
