"""Where text needs the complete tokenizer, because a tokenizer without added tokens and normaliser
may give other ids.

In: a text buffer. Out: the unsafe places: where two or more spaces in a row begin, if runs of
    spaces are added tokens, and characters that Unicode normalisation changes, or that are newer
    than the Unicode data of a library. (The added tokens that are words are found by a regular
    expression, in the engine.)
"""

from __future__ import annotations

import unicodedata

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.bitmarks import (
    ONE,
    SIXTY_THREE,
    byte_ranges,
    count_marks,
    lowest_bit,
    marks_of,
)
from numtok.arrays.kernels import kernel
from numtok.arrays.text_rows import TextRows
from numtok.arrays.utf8 import decode
from numtok.engines.interface import Ints, Mask
from numtok.engines.pieces import SPACE

Bytes = npt.NDArray[np.uint8]

SPACES, MAY_BE_UNSAFE = byte_ranges((SPACE, SPACE)), byte_ranges((0xCA, 0xFF))  # from U+0280 on


def unsafe_places(text: Bytes, runs_of_spaces: bool, unsafe: Bytes) -> Ints:
    """Positions in ``text``, ascending, where two or more spaces begin, if asked for, and of
    characters flagged in ``unsafe`` (if not empty).
    """
    if text.size == 0 or not (runs_of_spaces or unsafe.size):
        return np.empty(0, np.int64)
    marks = marks_of(text, MAY_BE_UNSAFE)
    if runs_of_spaces:
        spaces = marks_of(text, SPACES)
        before, behind = spaces << ONE, spaces >> ONE
        before[1:] |= spaces[:-1] >> SIXTY_THREE
        behind[:-1] |= spaces[1:] << SIXTY_THREE
        marks |= spaces & behind & ~before
    places = memory.empty(count_marks(marks)[0], np.int64)
    return places[: _check(text, unsafe, marks, places)]


def without_normalized(text: Bytes, places: Ints, left: Bytes) -> Ints:
    """``places`` without the characters that NFC leaves as they are in this text; those flagged in
    ``left`` stay.

    A character that NFC may change stands in a run of characters that are not ASCII, after one
    that may be; each such run is normalised by itself, and most are what NFC makes of them.
    Python's own data know all characters that are not newer, and their normal forms are the same
    for ever.
    """
    unsafe = text[places] != SPACE
    if not unsafe.any():
        return places
    runs = memory.empty(len(text), np.uint8)
    starts = memory.empty(len(places) + 1, np.int64)
    belongs = np.full(len(places), -1, np.int64)
    count = _runs(text, places, runs, starts, belongs)
    joined = runs[: starts[count]].tobytes().decode()
    changed = np.zeros(count, np.bool_)
    if not unicodedata.is_normalized("NFC", joined):
        for k in range(count):
            run = runs[starts[k] : starts[k + 1]].tobytes().decode()
            changed[k] = not unicodedata.is_normalized("NFC", run)
    stays = ~unsafe
    stays[unsafe] = changed[belongs[unsafe]]
    if left.size:
        _keep_flagged(text, places, left, stays)
    return np.asarray(places[stays])


def changed_rows(rows: TextRows, unsafe: Bytes, left: Bytes) -> Mask:
    """Whether NFC changes a row, or may, as it holds a character flagged in ``left``; bool[rows].
    ``unsafe``: flags of the characters that NFC may change, and of those in ``left``.
    """
    first = int(rows.offsets[0])
    text = rows.text[first : int(rows.offsets[-1])]
    places = without_normalized(text, unsafe_places(text, False, unsafe), left)
    return np.diff(np.searchsorted(places, rows.offsets - first)) > 0


@kernel
def _check(text, unsafe, marks, places):  # type: ignore[no-untyped-def]
    """Fill ``places`` with those of the marks that are events; returns their count.

    No character below U+0280 is changed by NFC, or unsettled.
    """
    count = 0
    for block in range(marks.size):
        bits = marks[block]
        while bits != 0:
            at = block * 64 + np.int64(lowest_bit(bits))
            bits &= bits - ONE
            event = text[at] == SPACE
            # dashes, quotes
            if (
                not event
                and unsafe.size
                and not (text[at] == 0xE2 and text[at + 1] == 0x80 and text[at + 2] > 0x81)
            ):
                code, _ = decode(text, at)
                event = unsafe[code] != 0
            if event:
                places[count] = at
                count += 1
    return count


@kernel
def _runs(text, places, runs, starts, belongs):  # type: ignore[no-untyped-def]
    """Copy what NFC looks at around each of the places that is no space: all up to the next ASCII
    character, and the one before; the count of runs.
    """
    count, filled, stop = 0, 0, 0
    starts[0] = 0
    for k in range(places.size):
        at = places[k]
        if text[at] == SPACE:
            continue
        if at >= stop:
            first, stop = at, at
            while first > 0 and text[first] >= 0x80:
                first -= 1
            while stop < text.size and text[stop] >= 0x80:
                stop += 1
            for j in range(first, stop):
                runs[filled] = text[j]
                filled += 1
            count += 1
            starts[count] = filled
        belongs[k] = count - 1
    return count


@kernel
def _keep_flagged(text, places, flagged, stays):  # type: ignore[no-untyped-def]
    for k in range(places.size):
        if text[places[k]] != SPACE:
            code, _ = decode(text, places[k])
            stays[k] = stays[k] or flagged[code] != 0
