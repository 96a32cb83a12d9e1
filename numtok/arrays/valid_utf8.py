"""Whether bytes are UTF-8 as Unicode defines it (table 3-7 of its core specification), 64 of them
at a time.

In: a buffer and the offsets of rows in it. Out: whether every row is valid by itself. Which row is
    not, and where, is for others to say.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from numtok.arrays.bitmarks import ONE, SIX, SIXTY_THREE
from numtok.arrays.blocks import BLOCK, bytes_between
from numtok.arrays.kernels import kernel

_TWO, _THREE, _SIXTY_ONE, _SIXTY_TWO = (np.uint64(count) for count in (2, 3, 61, 62))
_NONE = np.uint64(0)


def is_utf8(text: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> bool:
    """Whether ``text[offsets[r]:offsets[r + 1]]`` is valid for all rows, whose offsets lie within
    the text and never decrease.
    """
    first, last = int(offsets[0]), int(offsets[-1])
    tail = np.zeros(
        BLOCK, np.uint8
    )  # what is left behind the last whole block, and the end of a text is the end of a character
    whole = first + (last - first) // BLOCK * BLOCK
    if not 0 <= first <= last <= len(text):
        return False
    tail[: last - whole] = text[whole:last]
    return bool(_is_utf8(text[first:last], offsets, tail))


@kernel
def _is_utf8(text, offsets, tail):  # type: ignore[no-untyped-def]
    for row in range(offsets.size - 1):
        at = offsets[row] - offsets[0]
        if (
            offsets[row] > offsets[row + 1]
            or at < 0
            or (at < text.size and 0x80 <= text[at] < 0xC0)
        ):
            return False
    # What the last bytes of a block ask of the first ones of the next: how many continue a
    # character, and which may not.
    one = two = three = after_e0 = after_ed = after_f0 = after_f4 = _NONE
    for block in range(np.uint64(text.size // BLOCK + 1)):
        is_last = block == np.uint64(text.size // BLOCK)
        here, at = (tail, _NONE) if is_last else (text, block << SIX)
        high = bytes_between(here, at, 0x80, 0xFF)
        if (high | one | two | three) == 0:
            continue
        following, of_three, of_four = (
            bytes_between(here, at, 0x80, 0xBF),
            bytes_between(here, at, 0xE0, 0xEF),
            bytes_between(here, at, 0xF0, 0xF4),
        )
        leads = bytes_between(here, at, 0xC2, 0xDF) | of_three | of_four
        expected = (
            leads << ONE | one | (of_three | of_four) << _TWO | two | of_four << _THREE | three
        )
        wrong = (high & ~(following | leads)) | (expected ^ following)
        e0, ed, f0, f4 = (
            bytes_between(here, at, 0xE0, 0xE0),
            bytes_between(here, at, 0xED, 0xED),
            _NONE,
            _NONE,
        )
        wrong |= (e0 << ONE | after_e0) & bytes_between(here, at, 0x80, 0x9F)  # in fewer bytes too
        wrong |= (ed << ONE | after_ed) & bytes_between(here, at, 0xA0, 0xBF)  # surrogates
        if of_four | after_f0 | after_f4:
            f0, f4 = bytes_between(here, at, 0xF0, 0xF0), bytes_between(here, at, 0xF4, 0xF4)
            wrong |= (f0 << ONE | after_f0) & bytes_between(here, at, 0x80, 0x8F)
            wrong |= (f4 << ONE | after_f4) & bytes_between(here, at, 0x90, 0xBF)  # beyond U+10FFFF
        if wrong:
            return False
        one, two, three = (
            leads >> SIXTY_THREE,
            (of_three | of_four) >> _SIXTY_TWO,
            of_four >> _SIXTY_ONE,
        )
        after_e0, after_ed, after_f0, after_f4 = (
            e0 >> SIXTY_THREE,
            ed >> SIXTY_THREE,
            f0 >> SIXTY_THREE,
            f4 >> SIXTY_THREE,
        )
    return True
