"""Runs of white space that are tokens of their own, and their ids: there are few different ones, so a table holds them.

In: the bytes of a run: ASCII white space. Out: its ids. A run is known by a key of 64 bits, three bits for each character before its last run of
spaces, and the number of these, so that no two have the same one. The table never changes: one with more runs takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays.kernels import merged_kernel

CHARACTERS = " \t\n\v\f\r"  # of which a run consists; what they are in a key is their place here and one
BITS = 14
SIZE = 1 << BITS  # places in the table; three quarters stay empty
LONGEST_START, MOST_SPACES = 16, 40  # characters before the last run of spaces, and of those
UNKNOWN = -1
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(64 - BITS)
_NOTHING = np.uint64(0)
_ONE, _THREE, _EIGHT = np.uint64(1), np.uint64(3), np.uint64(8)
_CODES = np.zeros(256, np.uint64)
_CODES[[ord(character) for character in CHARACTERS]] = range(1, len(CHARACTERS) + 1)


class Whites(NamedTuple):
    """The table: the run whose key is ``keys[place]`` has ``ids[offsets[entry]:offsets[entry + 1]]`` for ``entry = entries[place]``."""

    keys: npt.NDArray[np.uint64]
    entries: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]
    ids: npt.NDArray[np.int32]


def no_whites() -> Whites:
    """The empty table."""
    return Whites(np.zeros(SIZE, np.uint64), np.zeros(SIZE, np.int32), np.zeros(1, np.int64), np.empty(0, np.int32))


def is_full(whites: Whites) -> bool:
    """Whether no more runs are taken up."""
    return len(whites.offsets) > SIZE // 4


def with_more(whites: Whites, keys: Iterable[int], encode: Callable[[list[str]], list[list[int]]]) -> Whites:
    """A table with these runs too, as far as there is room; ``encode`` gives their ids."""
    new = list(dict.fromkeys(keys))[: SIZE // 4 + 1 - len(whites.offsets)]
    lists = encode([text_of(key) for key in new])
    table = Whites(whites.keys.copy(), whites.entries.copy(), *_extended(whites, lists))
    for entry, key in enumerate(new, len(whites.offsets) - 1):
        place = (key * int(_MULTIPLIER) & 0xFFFFFFFFFFFFFFFF) >> int(_SHIFT)
        while table.keys[place]:
            place = (place + 1) % SIZE
        table.keys[place], table.entries[place] = key, entry
    return table


def _extended(whites: Whites, lists: list[list[int]]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """(offsets, ids) with the lists behind those of the table."""
    ends = whites.offsets[-1] + np.cumsum([len(ids) for ids in lists], dtype=np.int64)
    flat = np.array([token for ids in lists for token in ids], np.int32)
    return np.concatenate([whites.offsets, ends]), np.concatenate([whites.ids, flat])


def text_of(key: int) -> str:
    """The run that has a key."""
    start, spaces = key >> 8, key & 0xFF
    characters = []
    while start:
        characters.append(CHARACTERS[(start & 7) - 1])
        start >>= 3
    return "".join(reversed(characters)) + " " * spaces


@merged_kernel
def key_of(text, first, last):  # type: ignore[no-untyped-def]
    """uint64: the key of the run [first, last); 0 if it is too long for one."""
    spaces = last
    while spaces > first and text[spaces - 1] == 0x20:
        spaces -= 1
    if spaces - first > LONGEST_START or last - spaces > MOST_SPACES:
        return _NOTHING
    key = _NOTHING
    for at in range(first, spaces):
        key = key << _THREE | _CODES[text[at]]
    return key << _EIGHT | np.uint64(last - spaces)


@merged_kernel
def place_of(keys, key):  # type: ignore[no-untyped-def]
    """The place of the run with that key, or UNKNOWN."""
    place = key * _MULTIPLIER >> _SHIFT
    while keys[place] != _NOTHING:
        if keys[place] == key:
            return np.int64(place)
        place = (place + _ONE) & np.uint64(SIZE - 1)
    return np.int64(UNKNOWN)
