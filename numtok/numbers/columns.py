"""Exact decimals and their places in arrays: what the scanner fills, and the conversions read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.bitmarks import ONE, ZERO
from numtok.arrays.kernels import kernel


class Columns(NamedTuple):
    """The columns of :class:`numtok.Numbers`, as the compiled functions take them: the value of
    number ``i`` is ±``digits[digit_offsets[i]:digit_offsets[i + 1]]`` × 10**``exponent[i]``.
    """

    document: npt.NDArray[np.int32]
    start: npt.NDArray[np.int64]
    stop: npt.NDArray[np.int64]
    negative: npt.NDArray[np.bool_]
    digits: npt.NDArray[np.uint8]
    digit_offsets: npt.NDArray[np.int64]
    exponent: npt.NDArray[np.int64]

    def first(self, count: int) -> Columns:
        """The first ``count`` numbers, in the same memory."""
        document, start, stop, negative, digits, digit_offsets, exponent = self
        places = document[:count], start[:count], stop[:count], negative[:count]
        digits = digits[: digit_offsets[count]]
        return Columns(*places, digits, digit_offsets[: count + 1], exponent[:count])

    def take(self, indices: npt.NDArray[np.int64]) -> Columns:
        """Those at the indices."""
        digits = np.diff(self.digit_offsets)[indices].sum()
        out = empty_columns(len(indices), int(digits))
        _take(self, indices, out)
        return out

    def is_zero(self) -> npt.NDArray[np.bool_]:
        """bool[n]: every digit is 0."""
        zero = memory.empty(len(self.exponent), np.bool_)
        _is_zero(self.digits, self.digit_offsets, zero)
        return zero


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


def gather(
    text: npt.NDArray[np.uint8], first: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint8]:
    """Bytes whose part ``i``, ``[offsets[i]:offsets[i + 1]]``, is what stands in ``text`` from
    ``first[i]`` on.
    """
    out = memory.empty(int(offsets[-1]), np.uint8)
    _gather(text, first, offsets, out)
    return out


@kernel
def _take(given, indices, out):  # type: ignore[no-untyped-def]
    filled = ZERO
    out.digit_offsets[0] = 0
    for i in range(np.uint64(indices.size)):
        k = np.uint64(indices[i])
        out.document[i], out.negative[i] = given.document[k], given.negative[k]
        out.start[i], out.stop[i] = given.start[k], given.stop[k]
        out.exponent[i] = given.exponent[k]
        for j in range(np.uint64(given.digit_offsets[k]), np.uint64(given.digit_offsets[k + ONE])):
            out.digits[filled] = given.digits[j]
            filled += ONE
        out.digit_offsets[i + ONE] = filled


@kernel
def _is_zero(digits, offsets, zero):  # type: ignore[no-untyped-def]
    for i in range(zero.size):
        zero[i] = True
        for k in range(offsets[i], offsets[i + 1]):
            if digits[k] != 0:
                zero[i] = False
                break


@kernel
def _gather(text, first, offsets, out):  # type: ignore[no-untyped-def]
    for i in range(first.size):
        base = first[i] - offsets[i]
        for k in range(offsets[i], offsets[i + 1]):
            out[k] = text[base + k]
