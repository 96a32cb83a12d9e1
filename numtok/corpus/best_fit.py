"""Pieces into rows with little room left: best fit, longest first.

In: how many tokens each piece has. Out: which row it goes to. Each goes where the least room is
    left for it, as in Ding et al. 2024, "Fewer Truncations Improve Language Modeling"; ties go to
    the row that was touched last, so that the result is a function of the lengths.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from numtok.arrays.kernels import kernel

Ints = npt.NDArray[np.int64]


def best_fit(lengths: Ints, size: int) -> tuple[Ints, int]:
    """(int64[pieces], the row of each; how many rows), for lengths of at most ``size``.

    A binary tree over the room that is left tells the smallest that suffices: time is pieces times
    log(size), memory that of ``size`` integers.
    """
    leaves = 1 << (size + 1).bit_length()
    counts = np.zeros(2 * leaves, np.int32)  # rows below each node
    first, following = (
        np.full(size + 1, -1, np.int64),
        np.full(len(lengths), -1, np.int64),
    )  # the rows with so much room, as a chain
    rows = np.empty(len(lengths), np.int64)
    order = np.argsort(-lengths, kind="stable")
    return rows, int(_best_fit(lengths, order, size, leaves, (counts, first, following), rows))


@kernel
def _best_fit(lengths, order, size, leaves, kept, rows):  # type: ignore[no-untyped-def]
    counts, first, following = kept
    total = 0
    for k in order:
        node = leaves + lengths[k]
        if counts[node] == 0:
            while node > 1 and (node & 1 or counts[node + 1] == 0):
                node >>= 1
            node = node + 1 if node > 1 else 0  # the nearest with more room, if there is one
        if node == 0:
            row, room = total, size
            total += 1
        else:
            while node < leaves:
                node *= 2
                if counts[node] == 0:
                    node += 1
            room = node - leaves
            row = first[room]
            first[room] = following[row]
            while node > 0:
                counts[node] -= 1
                node >>= 1
        rows[k] = row
        room -= lengths[k]
        following[row] = first[room]
        first[room] = row
        node = leaves + room
        while node > 0:
            counts[node] += 1
            node >>= 1
    return total
