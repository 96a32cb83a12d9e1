"""Short pieces of text beside numbers, and their ids: there are few different ones, so a table
holds most of them.

In: the bytes of a piece: up to seven of any kind and the spaces behind them. Out: its ids. A piece
    is known by a key of 64 bits: its bytes from the last to the first, how many they are in three
    bits, and in five how many spaces follow. The table never changes: one with more pieces takes
    its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays.bitmarks import ONE, lowest_bit
from numtok.arrays.kernels import merged_kernel

BITS = 14
SIZE = 1 << BITS  # places in the table; half of them stay empty
LONGEST, MOST_SPACES = 7, 31  # bytes of a piece, and of spaces behind them
MOST_IDS = 8  # of one piece
UNKNOWN, TOO_LONG = -1, -2
EMPTY = 0  # the entry of a piece without bytes
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(64 - BITS)
_NOTHING, _THREE, _FIVE, EIGHT = np.uint64(0), np.uint64(3), np.uint64(5), np.uint64(8)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


class KnownPieces(NamedTuple):
    """The table: the piece whose key is ``keys[place]`` has ``ids[entry, :counts[entry]]`` for
    ``entry = entries[place]``, TOO_LONG if they are too many.
    """

    keys: npt.NDArray[np.uint64]
    entries: npt.NDArray[np.int32]
    ids: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]


def no_pieces() -> KnownPieces:
    """The table that knows the empty piece alone."""
    return KnownPieces(
        np.zeros(SIZE, np.uint64),
        np.zeros(SIZE, np.int32),
        np.zeros((1, MOST_IDS), np.int32),
        np.zeros(1, np.int32),
    )


def is_full(pieces: KnownPieces) -> bool:
    """Whether no more pieces are taken up."""
    return bool(np.count_nonzero(pieces.keys) >= SIZE // 2)


def with_more(
    pieces: KnownPieces, keys: Sequence[int], ids: Sequence[Sequence[int]]
) -> KnownPieces:
    """A table with these pieces too, which it does not have yet, as far as there is room."""
    table = KnownPieces(pieces.keys.copy(), pieces.entries.copy(), pieces.ids, pieces.counts)
    rows: list[Sequence[int]] = []
    room = SIZE // 2 - np.count_nonzero(pieces.keys)
    for key, row in list(zip(keys, ids, strict=True))[: int(room)]:
        place = (key * int(_MULTIPLIER) & 0xFFFFFFFFFFFFFFFF) >> int(_SHIFT)
        while table.keys[place]:
            place = (place + 1) % SIZE
        table.keys[place], table.entries[place] = (
            key,
            len(pieces.counts) + len(rows) if len(row) <= MOST_IDS else TOO_LONG,
        )
        if len(row) <= MOST_IDS:
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
    """uint64: the eight bytes before ``at``, the last of them lowest, which LLVM makes one load of."""
    word = _NOTHING
    for k in range(EIGHT):
        word |= np.uint64(text[at - ONE - k]) << (EIGHT * k)
    return word


@merged_kernel
def to_last_letter(word):  # type: ignore[no-untyped-def]
    """How many of eight bytes are behind the last ASCII letter, with the last byte lowest; 8 if
    none is one. All are looked at in one go.
    """
    low = (word | np.uint64(0x2020202020202020)) & np.uint64(0x7F7F7F7F7F7F7F7F)
    from_a, above_z = low + np.uint64(0x1F1F1F1F1F1F1F1F), low + np.uint64(0x0505050505050505)
    return lowest_bit(from_a & ~above_z & ~word & np.uint64(0x8080808080808080)) >> _THREE


@merged_kernel
def key_of(word, count, spaces):  # type: ignore[no-untyped-def]
    """uint64: the key of the last ``count`` bytes of a word, at most seven, and the spaces behind
    it.
    """
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
