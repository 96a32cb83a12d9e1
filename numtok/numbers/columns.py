"""The columns of :class:`numtok.Numbers`, as the compiled functions take them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.bitmarks import ONE, ZERO
from numtok.arrays.kernels import kernel


class Columns(NamedTuple):
    """The columns of :class:`numtok.Numbers`."""

    document: npt.NDArray[np.int32]
    start: npt.NDArray[np.int64]
    stop: npt.NDArray[np.int64]
    negative: npt.NDArray[np.bool_]
    digits: npt.NDArray[np.uint8]
    digit_offsets: npt.NDArray[np.int64]
    exponent: npt.NDArray[np.int64]


def empty_columns(numbers: int, digits: int) -> Columns:
    """Room for so many numbers and digits."""
    return Columns(
        memory.empty(numbers, np.int32),
        memory.empty(numbers, np.int64),
        memory.empty(numbers, np.int64),
        memory.empty(numbers, np.bool_),
        memory.empty(digits, np.uint8),
        memory.empty(numbers + 1, np.int64),
        memory.empty(numbers, np.int64),
    )


def take_columns(columns: Columns, which: npt.NDArray[Any]) -> Columns:
    """The numbers at the indices, or where the mask is True.

    Raises:
        IndexError: for an index that is out of range, or a mask of another length.
    """
    indices = np.arange(len(columns.document))[which]
    ends = columns.digit_offsets
    digits = len(columns.digits)
    if which.dtype != np.bool_:  # some may come more than once
        digits = int((ends[1:][indices] - ends[:-1][indices]).sum())
    out = empty_columns(len(indices), digits)
    filled = _take(columns, indices, out)
    return out._replace(digits=out.digits[:filled])


@kernel
def _take(given, indices, out):  # type: ignore[no-untyped-def]
    """The count of digits. Numbers that follow each other are copied column by column."""
    filled, to, count = ZERO, ZERO, np.uint64(indices.size)
    out.digit_offsets[0] = 0
    while to < count:
        first, length = np.uint64(indices[to]), ONE
        while to + length < count and np.uint64(indices[to + length]) == first + length:
            length += ONE
        for k in range(length):
            out.document[to + k] = given.document[first + k]
        for k in range(length):
            out.start[to + k] = given.start[first + k]
        for k in range(length):
            out.stop[to + k] = given.stop[first + k]
        for k in range(length):
            out.negative[to + k] = given.negative[first + k]
        for k in range(length):
            out.exponent[to + k] = given.exponent[first + k]
        begin = np.uint64(given.digit_offsets[first])
        for k in range(length):
            out.digit_offsets[to + k + ONE] = (
                np.uint64(given.digit_offsets[first + k + ONE]) - begin + filled
            )
        for k in range(np.uint64(given.digit_offsets[first + length]) - begin):
            out.digits[filled + k] = given.digits[begin + k]
        to += length
        filled = np.uint64(out.digit_offsets[to])
    return np.int64(filled)
