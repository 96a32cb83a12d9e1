"""Where tokens stand in their text, told by the words that are known (:mod:`numtok.engines.words`).

In: the words of the pieces between numbers, and for each token of a word the characters of the word
    that it covers. Out: int64[t, 2], the characters that each token of the rows covers, numbers
    among them, which cover all between two pieces.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.kernels import kernel
from numtok.engines.interface import Ints
from numtok.engines.words import Found

BITS = 16  # of the end of a token in a word
NOWHERE = (1 << 32) - 1  # a word in which that does not suffice


def packed(spans: Sequence[tuple[int, int]], before: int) -> list[int]:
    """One integer for each span, less the characters before the word."""
    moved = [(start - before, stop - before) for start, stop in spans]
    return [
        start << BITS | stop if 0 <= start <= stop < (1 << BITS) - 1 else NOWHERE
        for start, stop in moved
    ]


def spans_of(
    found: Found, text: npt.NDArray[np.uint8], pieces: Ints, begins: npt.NDArray[np.bool_]
) -> Ints | None:
    """The spans of all tokens; None if a word is too long."""
    spans = memory.empty(2 * (found.size + int(np.count_nonzero(~begins))), np.int64).reshape(-1, 2)
    return spans if _fill(found, text, pieces, begins, spans) else None


@kernel
def _fill(found, text, pieces, begins, spans):  # type: ignore[no-untyped-def]
    """Whether all are known."""
    filled, at, characters = 0, 0, 0  # bytes, and the characters of the row before them
    for piece in range(begins.size):
        if begins[piece]:
            at, characters = pieces[piece, 0], 0
        else:
            spans[filled, 0] = characters
            while at < pieces[piece, 0]:
                characters += text[at] & 0xC0 != 0x80
                at += 1
            spans[filled, 1] = characters
            filled += 1
        for word in range(found.per_piece[piece], found.per_piece[piece + 1]):
            place = found.which[word]
            for token in range(found.known.offsets[place], found.known.offsets[place + 1]):
                value = np.int64(found.known.values[token])
                if value == NOWHERE:
                    return False
                spans[filled, 0] = characters + (value >> BITS)
                spans[filled, 1] = characters + (value & ((1 << BITS) - 1))
                filled += 1
            end = at + found.widths[word]
            while at < end:
                characters += text[at] & 0xC0 != 0x80
                at += 1
    return True
