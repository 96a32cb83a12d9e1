"""Equal things counted: pairs of integers that stand for a value or a word.

In: two columns, int64[n] each. Out: the distinct pairs and how often each occurs. ``mixed`` is a
    hash of a pair that is the same everywhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.kernels import inline_kernel, kernel

Ints = npt.NDArray[np.int64]

_scratch = memory.Scratch()


class Counted(NamedTuple):
    """m pairs, int64[m] each, and how often each occurs."""

    first: Ints
    second: Ints
    times: Ints

    def chosen(self, which: npt.NDArray[np.bool_] | Ints) -> Counted:
        """Some of the pairs."""
        return Counted(self.first[which], self.second[which], self.times[which])

    @classmethod
    def none(cls) -> Counted:
        """No pairs."""
        return cls(*(np.empty(0, np.int64) for _ in range(3)))


def counted(first: Ints, second: Ints, times: Ints | None = None) -> Counted:
    """The distinct pairs, in no particular order; each is there once, or ``times`` times."""
    size = max(8, 1 << (2 * len(first)).bit_length())
    table = Counted(*(_scratch.empty(name, size, np.int64) for name in Counted._fields))
    table.times.fill(0)
    if times is None:
        times = memory.full(len(first), 1, np.int64)
    _count(Counted(first, second, times), table)
    return table.chosen(np.flatnonzero(table.times))


@inline_kernel
def mixed(first, second):  # type: ignore[no-untyped-def]
    """uint64: a hash of the pair; the finish of splitmix64."""
    value = np.uint64(first) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(second) * np.uint64(
        0xC2B2AE3D27D4EB4F
    )
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@kernel
def _count(pairs, table):  # type: ignore[no-untyped-def]
    mask = np.uint64(table.times.size - 1)
    for i in range(pairs.first.size):
        place = mixed(pairs.first[i], pairs.second[i]) & mask
        while table.times[place] != 0 and (
            table.first[place] != pairs.first[i] or table.second[place] != pairs.second[i]
        ):
            place = (place + np.uint64(1)) & mask
        table.first[place], table.second[place] = pairs.first[i], pairs.second[i]
        table.times[place] += pairs.times[i]
