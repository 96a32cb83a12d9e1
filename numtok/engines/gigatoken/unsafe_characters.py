"""Text for which a tokenizer without its normalizer and added tokens, or another library, may give
other ids: characters that Unicode normalisation changes, or that are newer than the Unicode data of
a library, and runs of spaces.

In: text. Out: their positions.
"""

from __future__ import annotations

import unicodedata

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.bitmarks import ONE, SIXTY_THREE, byte_ranges, count_marks, lowest_bit, marks_of
from numtok.arrays.kernels import kernel
from numtok.arrays.text_rows import TextRows
from numtok.arrays.utf8 import decode
from numtok.engines.engine import Ints, Mask

Bytes = npt.NDArray[np.uint8]

MAY_BE_UNSAFE = byte_ranges((0xCA, 0xFF))  # first bytes from U+0280 on
SPACES = byte_ranges((0x20, 0x20))


def positions_of(text: Bytes, flagged: Bytes) -> Ints:
    """Return the positions of the characters from U+0280 on that are flagged by code point."""
    if text.size == 0:
        return np.empty(0, np.int64)
    marks = marks_of(text, MAY_BE_UNSAFE)
    positions = memory.empty(count_marks(marks)[0], np.int64)
    return positions[: _positions(text, flagged, marks, positions)]


def changed_positions(text: Bytes, unsafe: Bytes, always: Bytes) -> Ints:
    """Return the positions of the characters that NFC changes in this text, among those flagged in
    ``unsafe``, and of all that are flagged in ``always``.

    A character that NFC may change stands in a run of characters that are not ASCII, after one
    that may be; each such run is normalised by itself, and most are what NFC makes of them.
    Python's own data know all characters that are not newer, and their normal forms are the same
    for ever.
    """
    positions = positions_of(text, unsafe)
    if not len(positions):
        return positions
    runs = memory.empty(len(text), np.uint8)
    starts = memory.empty(len(positions) + 1, np.int64)
    run_of = memory.empty(len(positions), np.int64)
    count = _runs(text, positions, runs, starts, run_of)
    joined = runs[: starts[count]].tobytes().decode()
    changed = np.zeros(count, np.bool_)
    if not unicodedata.is_normalized("NFC", joined):
        for k in range(count):
            run = runs[starts[k] : starts[k + 1]].tobytes().decode()
            changed[k] = not unicodedata.is_normalized("NFC", run)
    kept = changed[run_of]
    kept |= np.isin(positions, positions_of(text, always), assume_unique=True)
    return np.asarray(positions[kept])


def runs_of_spaces(text: Bytes, most: int) -> Ints | None:
    """Return the positions of spaces before another one; None if they are more than ``most``,
    about.
    """
    spaces = marks_of(text, SPACES)
    behind = spaces >> ONE
    behind[:-1] |= spaces[1:] << SIXTY_THREE
    spaces &= behind
    blocks = np.flatnonzero(spaces)
    if len(blocks) > most:
        return None
    bits = np.unpackbits(spaces[blocks].view(np.uint8), bitorder="little").reshape(-1, 64)
    block, bit = np.nonzero(bits)
    return blocks[block] * 64 + bit


def changed_rows(rows: TextRows, unsafe: Bytes, always: Bytes) -> Mask:
    """Return which rows have such positions, bool[rows]."""
    first = int(rows.offsets[0])
    positions = changed_positions(rows.text[first : int(rows.offsets[-1])], unsafe, always)
    return np.diff(np.searchsorted(positions, rows.offsets - first)) > 0


@kernel
def _positions(text, flagged, marks, positions):  # type: ignore[no-untyped-def]
    """Fill in the positions of the marks that are flagged; returns their count."""
    count = 0
    for block in range(marks.size):
        bits = marks[block]
        while bits != 0:
            at = block * 64 + np.int64(lowest_bit(bits))
            bits &= bits - ONE
            # no dash or quote is
            if not (text[at] == 0xE2 and text[at + 1] == 0x80 and text[at + 2] > 0x81):
                code, _ = decode(text, at)
                if flagged[code] != 0:
                    positions[count] = at
                    count += 1
    return count


@kernel
def _runs(text, positions, runs, starts, run_of):  # type: ignore[no-untyped-def]
    """Copy what NFC looks at around each position: all up to the next ASCII character, and the one
    before; the count of runs.
    """
    count, filled, stop = 0, 0, 0
    starts[0] = 0
    for k in range(positions.size):
        at = positions[k]
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
        run_of[k] = count - 1
    return count
