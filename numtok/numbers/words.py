"""Letters beside digits that are no word of theirs (rules C and D of
:mod:`numtok.numbers.grammar`): LaTeX commands, capitals after a currency sign, codes of currencies,
the ``T`` of a time, units with an exponent, and fractions such as ½.

Positions are byte offsets into UTF-8 text, ``start`` and ``stop`` the boundaries of the document.
Each run of letters is read once for the digits beside it, so that the time stays linear.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from numtok.arrays.kernels import inner_kernel
from numtok.arrays.unicode_classes import DIGIT, LETTER
from numtok.arrays.utf8 import class_before, decode
from numtok.numbers.grammar import CURRENCY_CODES, CURRENCY_SIGNS, FRACTIONS, UNITS

BACKSLASH, COLON, HYPHEN = 0x5C, 0x3A, 0x2D
LONGEST_CODE, LONGEST_UNIT = 3, 3  # bytes
MOST_CAPITALS = 3  # after a currency sign


def _as_integers(words: Iterable[str]) -> npt.NDArray[np.int64]:
    """Return the bytes of each word of at most eight as one integer, the last byte lowest."""
    return np.array([int.from_bytes(word.encode(), "big") for word in words], np.int64)


CODE_WORDS, UNIT_WORDS = _as_integers(CURRENCY_CODES), _as_integers(UNITS)
SIGN_RANGES = np.array(CURRENCY_SIGNS, np.int64)
FRACTION_RANGES = np.array(FRACTIONS, np.int64)


@inner_kernel
def _is_ascii_letter(byte):  # type: ignore[no-untyped-def]
    return 0x61 <= byte | 0x20 <= 0x7A


@inner_kernel
def _within(code, ranges):  # type: ignore[no-untyped-def]
    """Whether a code point lies in one of the half-open ranges, int64[n, 2]."""
    for k in range(len(ranges)):
        if ranges[k, 0] <= code < ranges[k, 1]:
            return True
    return False


@inner_kernel
def _is_one_of(word, words):  # type: ignore[no-untyped-def]
    for k in range(words.size):
        if words[k] == word:
            return True
    return False


@inner_kernel
def _first_letter(text, at, start):  # type: ignore[no-untyped-def]
    """Return where the run of ASCII letters that ends at ``at`` begins."""
    while at > start and _is_ascii_letter(text[at - 1]):
        at -= 1
    return at


@inner_kernel
def _all_capitals(text, first, at):  # type: ignore[no-untyped-def]
    for k in range(first, at):
        if text[k] > 0x5A:
            return False
    return True


@inner_kernel
def _is_escape(text, first, at):  # type: ignore[no-untyped-def]
    """Whether these letters after a backslash begin an escape: ``\\x41``, ``\\u2019``."""
    if text[first] != 0x78 and text[first] | 0x20 != 0x75:  # x, u, U
        return False
    for k in range(first + 1, at):
        if text[k] | 0x20 > 0x66:  # f
            return False
    return True


@inner_kernel
def _currency_sign_before(text, at, start):  # type: ignore[no-untyped-def]
    """Whether a currency sign ends at ``at``."""
    if at <= start:
        return False
    at -= 1
    if text[at] < 0x80:
        return text[at] == 0x24
    while text[at] & 0xC0 == 0x80:
        at -= 1
    code, _ = decode(text, at)
    return _within(code, SIGN_RANGES)


@inner_kernel
def is_no_word(text, at, start):  # type: ignore[no-untyped-def]
    """Whether the letters that end at ``at`` are a LaTeX command, or capitals after a currency
    sign.
    """
    first = _first_letter(text, at, start)
    count = at - first
    if count >= 2 and first > start and text[first - 1] == BACKSLASH:
        return not _is_escape(text, first, at)
    return (
        0 < count <= MOST_CAPITALS
        and _all_capitals(text, first, at)
        and _currency_sign_before(text, first, start)
    )


@inner_kernel
def _is_currency_code(text, at, start, classes):  # type: ignore[no-untyped-def]
    """Whether the word that ends at ``at`` is the code of a currency."""
    first, word = at, np.int64(0)
    while first > start and at - first <= LONGEST_CODE and _is_ascii_letter(text[first - 1]):
        first -= 1
        word |= np.int64(text[first]) << 8 * (at - 1 - first)
    if first == at or at - first > LONGEST_CODE:
        return False
    before, _ = class_before(text, first, start, classes)
    return before != LETTER and before < DIGIT and _is_one_of(word, CODE_WORDS)


@inner_kernel
def time_at(text, at, start, stop, classes):  # type: ignore[no-untyped-def]
    """Whether the T between a date and a time stands at ``at``, as in ``2019-09-01T10:38``."""
    if (
        at - 10 < start
        or at + 3 >= stop
        or text[at] != 0x54
        or text[at + 3] != COLON
        or text[at - 3] != HYPHEN
        or text[at - 6] != HYPHEN
    ):
        return False
    for k in range(-10, 3):
        if k != -6 and k != -3 and k != 0 and not 0x30 <= text[at + k] <= 0x39:
            return False
    before, _ = class_before(text, at - 10, start, classes)
    return before != LETTER and before < DIGIT


@inner_kernel
def follows_word(text, at, start, stop, classes, currency_codes):  # type: ignore[no-untyped-def]
    """Whether the digits at ``at`` stand directly after a letter of a word, and are hidden (C)."""
    before, _ = class_before(text, at, start, classes)
    if before != LETTER:
        return False
    if not _is_ascii_letter(text[at - 1]):
        return True
    if is_no_word(text, at, start) or time_at(text, at - 1, start, stop, classes):
        return False
    return not (currency_codes and _is_currency_code(text, at, start, classes))


@inner_kernel
def unit_end(text, at, stop):  # type: ignore[no-untyped-def]
    """End of the unit of length with its exponent that stands at ``at``: ``m2``, ``cm3`` (D);
    ``at`` if there is none.
    """
    word = np.int64(0)
    for width in range(1, LONGEST_UNIT + 1):
        if at + width >= stop:
            return at
        word = word << 8 | np.int64(text[at + width - 1])
        if text[at + width] == 0x32 or text[at + width] == 0x33:
            return at + width + 1 if _is_one_of(word, UNIT_WORDS) else at
    return at


@inner_kernel
def is_fraction(text, at, stop):  # type: ignore[no-untyped-def]
    """Whether a fraction such as ½ stands at ``at``."""
    if at >= stop or text[at] < 0x80:
        return False
    code, _ = decode(text, at)
    return _within(code, FRACTION_RANGES)
