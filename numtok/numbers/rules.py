"""The rules of the grammar, one function each, on UTF-8 bytes in a buffer.

The letters A to D in the comments are those of :mod:`numtok.numbers.grammar`. Positions are byte offsets into the buffer, ``start`` and ``stop`` the document's
edges, which nothing looks beyond; ``classes`` is the table of :mod:`numtok.arrays.unicode_classes`. Everything is compiled by Numba and linear in time.
"""

from __future__ import annotations

import numpy as np

from numtok.arrays.kernels import inner_kernel
from numtok.arrays.unicode_classes import DIGIT, DOT, LETTER, OTHER, SIGN
from numtok.arrays.utf8 import class_at, class_before, decode

MAX_EXPONENT_DIGITS = 17  # |exponent| < 10**17 keeps every sum of exponents inside int64 and inside decimal's range


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
def _matches(text, at, stop, needle):  # type: ignore[no-untyped-def]
    """Whether ``needle`` (not empty) stands at ``at``."""
    if at + needle.size > stop or needle.size == 0:
        return False
    for k in range(needle.size):
        if text[at + k] != needle[k]:
            return False
    return True


@inner_kernel
def _grouped_end(text, at, first, count, start, stop, classes, grouping):  # type: ignore[no-untyped-def]
    """End of the grouped integer whose first group of ``count`` digits is [first, at); ``at`` itself if the commas only separate (A)."""
    if not _matches(text, at, stop, grouping) or not digit_at(text, at + grouping.size, stop, classes):
        return at
    if first - grouping.size >= start and _matches(text, first - grouping.size, stop, grouping):
        kind, _ = class_before(text, first - grouping.size, start, classes)
        if kind >= DIGIT:  # already inside a list such as 1,23,456
            return at
    well_formed = count <= 3
    end = at
    while _matches(text, end, stop, grouping) and digit_at(text, end + grouping.size, stop, classes):
        end, size = _skip_digits(text, end + grouping.size, stop, classes)
        if size != 3:
            well_formed = False
            break
    return end if well_formed else at


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
def numeral(text, at, start, stop, dot, classes, grouping, use_exponent):  # type: ignore[no-untyped-def]
    """Read the numeral whose first digit is at ``at`` (``dot``: it follows a leading decimal point).

    Returns (end, end of the mantissa, fraction digits, exponent, fits).
    """
    end, count = _skip_digits(text, at, stop, classes)
    fraction = 0
    if dot:
        fraction = count
    else:
        if grouping.size:
            end = _grouped_end(text, end, at, count, start, stop, classes, grouping)
        if end < stop and text[end] == 0x2E and digit_at(text, end + 1, stop, classes):
            end, fraction = _skip_digits(text, end + 1, stop, classes)
    mantissa = end
    exponent, fits = np.int64(0), True
    if use_exponent:
        begin = end
        if not dot and fraction == 0 and end < stop and text[end] == 0x2E:  # 2.e+3
            begin = end + 1
        exponent_end, exponent, fits = _exponent_at(text, begin, stop, classes)
        if exponent_end > begin:
            end = exponent_end
    return end, mantissa, fraction, exponent, fits


@inner_kernel
def glued_end(text, at, stop, classes, use_exponent):  # type: ignore[no-untyped-def]
    """End of what is glued to the numeral that ends at ``at``; ``at`` itself if nothing is (D)."""
    while True:
        if at < stop and text[at] == 0x2E and digit_at(text, at + 1, stop, classes):
            at, _ = _skip_digits(text, at + 1, stop, classes)
            continue
        if use_exponent:
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
def look_back(text, at, start, before, classes, signs, leading_dot):  # type: ignore[no-untyped-def]
    """(first byte, leading dot?, minus?) of the numeral whose first digit is at ``at`` (A, B)."""
    first, dot, minus = at, False, False
    if before == DOT and leading_dot:
        kind, _ = class_before(text, at - 1, start, classes)
        if kind != LETTER and kind < DIGIT and kind != DOT:
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
    """Whether [first, end) is unsigned and stands alone in parentheses that do not follow a word character: ``(1,234)`` in accounts."""
    if first <= start or end >= stop or text[first - 1] != 0x28 or text[end] != 0x29 or classes[text[first]] == SIGN or text[first] == 0xE2:
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
