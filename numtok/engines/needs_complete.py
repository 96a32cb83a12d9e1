"""Where text needs the complete tokenizer, because a tokenizer without added tokens and normaliser may give other ids.

In: a text buffer. Out: the places of its events: two spaces in a row, where runs of spaces are added tokens, and characters that Unicode normalisation may
change, or that are newer than the Unicode data of a library. (The added tokens that are words are found by a regular expression, in the engine.)
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.bitmarks import ONE, lowest_bit
from numtok.arrays.kernels import kernel
from numtok.arrays.utf8 import decode

SPACE = 0x20


def places_of_events(text: npt.NDArray[np.uint8], double_space: bool, unsafe: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Positions in ``text``, ascending, of two spaces in a row, if asked for, and of characters flagged in ``unsafe`` (if not empty)."""
    if text.size == 0 or not (double_space or unsafe.size):
        return np.empty(0, np.int64)
    marks = memory.empty((text.size - 1) // 64 + 1, np.uint64)
    _mark(text, double_space, marks)
    places = memory.empty(int(np.bitwise_count(marks).sum()), np.int64)
    return places[: _check(text, unsafe, marks, places)]


@kernel
def _mark(text, double_space, marks):  # type: ignore[no-untyped-def]
    """Bit k of ``marks[b]`` says that there may be an event at ``text[64 * b + k]``: two spaces in a row, or a character from U+0300 on.

    As in the scanner of numbers, the loop over whole blocks becomes vector compares.
    """
    whole = (text.size - 1) // 64  # so that there is always a next byte
    space = np.uint8(SPACE) if double_space else np.uint8(0xFF)  # no byte of UTF-8
    for block in range(whole):
        bits = np.uint64(0)
        for k in range(64):
            byte, following = text[block * 64 + k], text[block * 64 + k + 1]
            bits |= np.uint64((byte >= 0xCC) | ((byte == space) & (following == space))) << np.uint64(k)
        marks[block] = bits
    bits = np.uint64(0)
    for at in range(whole * 64, text.size):
        if text[at] >= 0xCC or (text[at] == space and at + 1 < text.size and text[at + 1] == space):
            bits |= np.uint64(1) << np.uint64(at - whole * 64)
    marks[whole] = bits


@kernel
def _check(text, unsafe, marks, places):  # type: ignore[no-untyped-def]
    """Fill ``places`` with those of the marks that are events; returns their count. No character below U+0300 is changed by NFC."""
    count = 0
    for block in range(marks.size):
        bits = marks[block]
        while bits != 0:
            at = block * 64 + np.int64(lowest_bit(bits))
            bits &= bits - ONE
            event = text[at] == SPACE
            if not event and unsafe.size and not (text[at] == 0xE2 and text[at + 1] == 0x80 and text[at + 2] > 0x81):  # dashes, quotes
                code, _ = decode(text, at)
                event = unsafe[code] != 0
            if event:
                places[count] = at
                count += 1
    return count
