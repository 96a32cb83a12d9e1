"""Short pieces of text beside numbers, and their ids: there are few different ones, so a table
holds most of them.

A piece is up to seven bytes of any kind and the spaces after them. Its key has 64 bits: its bytes
from the last to the first, how many they are in three bits, and in five how many spaces follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays.bitmarks import EIGHT, ONE, SIXTY_THREE, lowest_bit
from numtok.arrays.kernels import inner_kernel, merged_kernel
from numtok.arrays.utf8 import class_at, class_before
from numtok.engines.gigatoken.parts import AFTER_LETTERS, LETTER, MISSING_SLOTS, NUMERIC, WHITE
from numtok.engines.pieces import SPACE

BITS = 14
SIZE = 1 << BITS  # places in the table; half of them stay empty
LONGEST, MOST_SPACES = 7, 31  # bytes of a piece, and of spaces after them
MOST_IDS = 8  # of one piece
UNKNOWN, TOO_LONG = -1, -2
EMPTY = 0  # the entry of a piece without bytes
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(64 - BITS)
_NOTHING, _THREE, _FIVE = np.uint64(0), np.uint64(3), np.uint64(5)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
ASCII, LINE_END, RETURN = 0x80, 0x0A, 0x0D
_SLOTS = np.uint64(MISSING_SLOTS - 1)


class PieceCache(NamedTuple):
    """The table: the piece whose key is ``keys[place]`` has ``ids[entry, :counts[entry]]`` for
    ``entry = entries[place]``, TOO_LONG if they are too many.
    """

    keys: npt.NDArray[np.uint64]
    entries: npt.NDArray[np.int32]
    ids: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]


def empty_cache() -> PieceCache:
    """The table that knows the empty piece alone."""
    return PieceCache(
        np.zeros(SIZE, np.uint64),
        np.zeros(SIZE, np.int32),
        np.zeros((1, MOST_IDS), np.int32),
        np.zeros(1, np.int32),
    )


def is_full(pieces: PieceCache) -> bool:
    """Whether no more pieces are taken up."""
    return bool(np.count_nonzero(pieces.keys) >= SIZE // 2)


def with_more(pieces: PieceCache, keys: Sequence[int], ids: Sequence[Sequence[int]]) -> PieceCache:
    """A table with these pieces too, which it does not have yet, as far as there is room."""
    table = PieceCache(pieces.keys.copy(), pieces.entries.copy(), pieces.ids, pieces.counts)
    rows: list[Sequence[int]] = []
    room = SIZE // 2 - np.count_nonzero(pieces.keys)
    for key, row in list(zip(keys, ids, strict=True))[: int(room)]:
        place = (key * int(_MULTIPLIER) & 0xFFFFFFFFFFFFFFFF) >> int(_SHIFT)
        while table.keys[place]:
            place = (place + 1) % SIZE
        table.keys[place], table.entries[place] = key, TOO_LONG
        if len(row) <= MOST_IDS:
            table.entries[place] = len(pieces.counts) + len(rows)
            rows.append(row)
    more = np.zeros((len(rows), MOST_IDS), np.int32)
    for number, row in enumerate(rows):
        more[number, : len(row)] = row
    counts = np.array([len(row) for row in rows], np.int32)
    return table._replace(
        ids=np.concatenate([pieces.ids, more]), counts=np.concatenate([pieces.counts, counts])
    )


def text_of(key: int) -> bytes:
    """The piece that has a key."""
    return (key >> 8).to_bytes(LONGEST, "little")[: (key >> 5) & 7][::-1] + b" " * (key & 31)


@merged_kernel
def bytes_before(text, at):  # type: ignore[no-untyped-def]
    """uint64: the eight bytes before ``at``, the last one lowest; LLVM makes one load of it."""
    word = _NOTHING
    for k in range(EIGHT):
        word |= np.uint64(text[at - ONE - k]) << (EIGHT * k)
    return word


@merged_kernel
def to_last_letter(word):  # type: ignore[no-untyped-def]
    """How many of eight bytes are after the last ASCII letter, with the last byte lowest; 8 if
    none is one. All are looked at in one go.
    """
    low = (word | np.uint64(0x2020202020202020)) & np.uint64(0x7F7F7F7F7F7F7F7F)
    from_a, above_z = low + np.uint64(0x1F1F1F1F1F1F1F1F), low + np.uint64(0x0505050505050505)
    return lowest_bit(from_a & ~above_z & ~word & np.uint64(0x8080808080808080)) >> _THREE


@merged_kernel
def key_of(word, count, spaces):  # type: ignore[no-untyped-def]
    """uint64: the key of the last ``count`` bytes of a word, and the spaces after it."""
    kept = word & ~(_ALL << (count * EIGHT))
    return kept << EIGHT | count << _FIVE | spaces


@merged_kernel
def hash_of(key):  # type: ignore[no-untyped-def]
    """uint64: the place in the table where a key is looked for first."""
    return key * _MULTIPLIER >> _SHIFT


@merged_kernel
def entry_of(pieces, key):  # type: ignore[no-untyped-def]
    """The entry of the piece with that key; UNKNOWN, or TOO_LONG.

    Free places have the key and the entry of the empty piece.
    """
    place = hash_of(key)
    while pieces.keys[place] != key:
        if pieces.keys[place] == _NOTHING:
            return np.int64(UNKNOWN)
        place = (place + ONE) & np.uint64(SIZE - 1)
    return np.int64(pieces.entries[place])


@merged_kernel
def cached_end(tools, begin, end):  # type: ignore[no-untyped-def]
    """(bytes, entry) of the piece [begin, end) in the table: of all of it, or of what follows its
    last letter; 0 bytes if that is not in it.
    """
    length = end - begin
    if end < EIGHT:
        return _NOTHING, np.int64(EMPTY)
    word = bytes_before(tools.given, end)
    count = to_last_letter(word)
    if length < EIGHT:
        count = length
    elif count == EIGHT:
        return _other_end(tools, np.int64(begin), np.int64(end))
    first = np.uint8(word >> ((EIGHT * (count - ONE)) & SIXTY_THREE))
    if count < length and count != 0 and not tools.classes[first] & AFTER_LETTERS:
        return _other_end(tools, np.int64(begin), np.int64(end))
    entry = look_up(tools, key_of(word, count, _NOTHING))
    return (count if entry >= 0 else _NOTHING), entry


@merged_kernel
def ends_piece(tools, byte):  # type: ignore[no-untyped-def]
    """Whether this is a line end after which the pre-tokenizer cuts whatever follows but another."""
    return tools.line_ends and (byte == LINE_END) | (byte == RETURN)


@merged_kernel
def ends_openly(tools, begin, end):  # type: ignore[no-untyped-def]
    """Whether what ends at ``end`` ends in white space or in a character of category N, with which
    something else could be joined.
    """
    byte = tools.given[end - ONE]
    if byte < ASCII:
        return tools.classes[byte] & (NUMERIC | WHITE) != 0 and not ends_piece(tools, byte)
    kind, _ = class_before(tools.given, np.int64(end), np.int64(begin), tools.classes)
    return kind & (NUMERIC | WHITE) != 0


@inner_kernel
def _other_end(tools, begin, end):  # type: ignore[no-untyped-def]
    """:func:`cached_end` of a piece with many spaces at its end, letters that are not ASCII, or
    others than ASCII after them.
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
        return _NOTHING, np.int64(EMPTY)
    word = bytes_before(text, np.uint64(last))
    entry = look_up(tools, key_of(word, np.uint64(last - first), np.uint64(end - last)))
    return (np.uint64(end - first) if entry >= 0 else _NOTHING), entry


@merged_kernel
def look_up(tools, key):  # type: ignore[no-untyped-def]
    """The entry of the piece with that key, or below 0; a piece that the table lacks is noted."""
    entry = entry_of(tools.known, key)
    if entry == UNKNOWN:
        tools.out.missing[hash_of(key) & _SLOTS] = key
        tools.out.counts[0].missing += 1
    return entry
