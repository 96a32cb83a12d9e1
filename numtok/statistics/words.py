"""The word or symbol right behind each number, which is often its unit: ``%``, ``km``, ``°C``,
``years``, ``年``.

In: :class:`numtok.numbers.Numbers` with their text. Out: a key for each, two int64 that hold up to
    ``BYTES`` bytes of UTF-8; :func:`word` gives the text back. There may be one space between. A
    word is a run of letters, as in ``km``, with what belongs to a unit behind it (``km/h``,
    ``m²``); a symbol is one character of a list that leaves out punctuation; a character of a
    script without spaces stands for itself.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.kernels import inline_kernel, inner_kernel, kernel
from numtok.arrays.unicode_classes import LETTER, OTHER, character_classes
from numtok.arrays.utf8 import class_at, decode
from numtok.numbers.numbers import Numbers

Ints = npt.NDArray[np.int64]

BYTES = 16


def words_behind(numbers: Numbers) -> tuple[Ints, Ints]:
    """The keys, int64[n] each; both are 0 where there is no such word."""
    low, high = memory.empty(len(numbers), np.int64), memory.empty(len(numbers), np.int64)
    stops = numbers.rows.offsets[numbers.document] + numbers.stop
    ends = numbers.rows.offsets[numbers.document + 1]
    _words(numbers.rows.text, stops, ends, character_classes(), low, high)
    return low, high


def word(low: int, high: int) -> str:
    """The text of a key; what is longer than ``BYTES`` was cut."""
    return (
        ((low & 2**64 - 1) | (high & 2**64 - 1) << 64)
        .to_bytes(BYTES, "little")
        .rstrip(b"\0")
        .decode()
    )


def key_of(text: str) -> tuple[int, int]:
    """The inverse of :func:`word`."""
    low, high = np.frombuffer(text.encode().ljust(BYTES, b"\0"), np.int64).tolist()
    return low, high


@kernel
def _words(text, stops, ends, classes, low, high):  # type: ignore[no-untyped-def]
    for i in range(stops.size):
        first, end = stops[i], ends[i]
        first += _space(text, first, end)
        last = _word_end(text, first, end, classes)
        low[i] = high[i] = 0
        for k in range(min(last - first, 8)):
            low[i] |= np.int64(text[first + k]) << (8 * k)
        for k in range(8, last - first):
            high[i] |= np.int64(text[first + k]) << (8 * (k - 8))


@inline_kernel
def _space(text, at, end):  # type: ignore[no-untyped-def]
    """The width of a space at ``at``, or 0: also one that does not break, or is thin."""
    width = 0
    if at < end and text[at] == 0x20:
        width = 1
    elif at + 1 < end and text[at] == 0xC2 and text[at + 1] == 0xA0:
        width = 2
    elif (
        at + 2 < end
        and text[at] == 0xE2
        and text[at + 1] == 0x80
        and (text[at + 2] == 0x89 or text[at + 2] == 0xAF)
    ):
        width = 3
    return width


@inner_kernel
def _word_end(text, first, end, classes):  # type: ignore[no-untyped-def]
    """Where the word or symbol at ``first`` ends; ``first`` if there is none."""
    end = min(end, first + BYTES)
    at = _letters_end(text, first, end, classes)
    if at > first:
        if at + 1 < end and text[at] == 0x2F:  # km/h
            at = (
                max(at, _letters_end(text, at + 1, end, classes))
                if _letters_end(text, at + 1, end, classes) > at + 1
                else at
            )
        if (
            at + 1 < end and text[at] == 0xC2 and (text[at + 1] == 0xB2 or text[at + 1] == 0xB3)
        ):  # m²
            at += 2
        return at
    if at >= end:
        return at
    if text[at] < 0x80:
        return at + 1 if text[at] == 0x25 or text[at] == 0x24 else at
    width = 2 if text[at] < 0xE0 else 3 if text[at] < 0xF0 else 4
    if at + width > end:
        return at
    code, width = decode(text, at)
    if classes[code] != OTHER or not _is_symbol(code):
        return at
    at += width
    if code == 0xB0:  # °C
        kind, width = class_at(text, at, end, classes)
        following, _ = class_at(text, at + width, end, classes)
        if kind == LETTER and following != LETTER and text[at] < 0x80 and text[at] != 0x5F:
            at += 1
    return at


@inner_kernel
def _letters_end(text, at, end, classes):  # type: ignore[no-untyped-def]
    """The end of the run of letters at ``at``, those that lie before ``end`` as a whole."""
    while at < end and text[at] != 0x5F:
        width = 1 if text[at] < 0x80 else 2 if text[at] < 0xE0 else 3 if text[at] < 0xF0 else 4
        if at + width > end:
            break
        kind, width = class_at(text, at, end, classes)
        if kind != LETTER:
            break
        at += width
    return at


@inline_kernel
def _is_symbol(code):  # type: ignore[no-untyped-def]
    """Whether a character that is no letter may be a unit: money, degrees, per mille, primes,
    letter-like ones, and scripts that are written without spaces.
    """
    return (
        (0xA2 <= code <= 0xA5)
        or code == 0xB0
        or (0x2030 <= code <= 0x2034)
        or (0x20A0 <= code <= 0x20CF)
        or (0x2100 <= code <= 0x214F)
        or (0x0E00 <= code <= 0x0EFF)
        or (0x1000 <= code <= 0x109F)
        or (0x1780 <= code <= 0x17FF)
        or (0x3040 <= code <= 0x30FF)
        or (0x3300 <= code <= 0x9FFF)
        or (0xAC00 <= code <= 0xD7A3)
        or code >= 0x20000
    )
