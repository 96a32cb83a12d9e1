"""The end of a piece: what of it is in the table of known pieces, and whether something could be
joined to the rest.

In: a piece of text, and the table (:mod:`numtok.engines.known_pieces`). What is not in the table is
    noted in the parts. For :mod:`numtok.engines.split`.
"""

from __future__ import annotations

import numpy as np

from numtok.arrays.bitmarks import ONE, SIXTY_THREE
from numtok.arrays.kernels import inner_kernel, merged_kernel
from numtok.arrays.utf8 import class_at, class_before
from numtok.engines.known_pieces import (
    EIGHT,
    EMPTY,
    LONGEST,
    MOST_SPACES,
    UNKNOWN,
    bytes_before,
    entry_of,
    hash_of,
    key_of,
    to_last_letter,
)
from numtok.engines.parts import (
    AFTER_LETTERS,
    LETTER,
    MISSING,
    MISSING_SLOTS,
    NUMERIC,
    SPACE,
    WHITE,
)

ASCII = 0x80
_NONE, _SLOTS = np.uint64(0), np.uint64(MISSING_SLOTS - 1)


@merged_kernel
def known_end(tools, begin, end):  # type: ignore[no-untyped-def]
    """(bytes, entry) of the piece [begin, end) in the table: of all of it, or of what follows its
    last letter; 0 bytes if that is not in it.
    """
    length = end - begin
    if end < EIGHT:
        return _NONE, np.int64(EMPTY)
    word = bytes_before(tools.given, end)
    count = to_last_letter(word)
    if length < EIGHT:
        count = length
    elif count == EIGHT:
        return _other_end(tools, np.int64(begin), np.int64(end))
    first = np.uint8(word >> ((EIGHT * (count - ONE)) & SIXTY_THREE))
    if count < length and count != 0 and not tools.classes[first] & AFTER_LETTERS:
        return _other_end(tools, np.int64(begin), np.int64(end))
    entry = look_up(tools, key_of(word, count, _NONE))
    return (count if entry >= 0 else _NONE), entry


@merged_kernel
def ends_openly(tools, begin, end):  # type: ignore[no-untyped-def]
    """Whether what ends at ``end`` ends in white space or in a character of category N, with which
    something else could be joined.
    """
    byte = tools.given[end - ONE]
    if byte < ASCII:
        return tools.classes[byte] & (NUMERIC | WHITE) != 0
    return (
        class_before(tools.given, np.int64(end), np.int64(begin), tools.classes)[0]
        & (NUMERIC | WHITE)
        != 0
    )


@inner_kernel
def _other_end(tools, begin, end):  # type: ignore[no-untyped-def]
    """:func:`known_end` of a piece with many spaces at its end, letters that are not ASCII, or
    others than ASCII behind them.
    """
    text, classes = tools.given, tools.classes
    last = end
    while last > begin and text[last - 1] == SPACE:
        last -= 1
    if end - last <= LONGEST:
        last = end  # they are counted with the rest
    first = last
    while first > begin and last - first <= LONGEST:
        kind, width = class_before(text, first, begin, classes)
        if kind & LETTER:
            break
        first -= width
    begins = first == begin or class_at(text, first, end, classes)[0] & AFTER_LETTERS
    if last - first > LONGEST or end - last > MOST_SPACES or last < 8 or not begins:
        return _NONE, np.int64(EMPTY)
    entry = look_up(
        tools,
        key_of(bytes_before(text, np.uint64(last)), np.uint64(last - first), np.uint64(end - last)),
    )
    return (np.uint64(end - first) if entry >= 0 else _NONE), entry


@merged_kernel
def look_up(tools, key):  # type: ignore[no-untyped-def]
    """The entry of the piece with that key, or below 0; a piece that is not in the table is noted."""
    entry = entry_of(tools.known, key)
    if entry == UNKNOWN:
        tools.out.missing[hash_of(key) & _SLOTS] = key
        tools.out.counts[MISSING] += 1
    return entry
