"""Exact decimals and their spans in arrays: what the scanner fills, and the conversions read."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.bitmarks import ONE, ZERO
from numtok.arrays.kernels import kernel

Runs = npt.NDArray[np.int64]  # int64[r, 2]: where each begins and ends, half-open


class Decimals(NamedTuple):
    """The arrays of :class:`numtok.Numbers`, as the compiled functions take them: the value of
    number ``i`` is ±``digits[digit_offsets[i]:digit_offsets[i + 1]]`` × 10**``exponent[i]``.
    """

    document: npt.NDArray[np.int32]
    start: npt.NDArray[np.int64]
    stop: npt.NDArray[np.int64]
    negative: npt.NDArray[np.bool_]
    digits: npt.NDArray[np.uint8]
    digit_offsets: npt.NDArray[np.int64]
    exponent: npt.NDArray[np.int64]

    def take(self, runs: Runs, in_place: bool = False) -> Decimals:
        """Return the numbers of the runs, as :func:`take` takes them."""
        digits, offsets = self.digits, self.digit_offsets
        if not in_place:
            count = int((offsets[runs[:, 1]] - offsets[runs[:, 0]]).sum())
            digits = memory.empty(count, np.uint8)
            offsets = memory.empty(int((runs[:, 1] - runs[:, 0]).sum()) + 1, np.int64)
        count = _take_digits(self.digits, self.digit_offsets, runs, digits, offsets)
        return Decimals(
            take(self.document, runs, in_place),
            take(self.start, runs, in_place),
            take(self.stop, runs, in_place),
            take(self.negative, runs, in_place),
            digits[: offsets[count]],
            offsets[: count + 1],
            take(self.exponent, runs, in_place),
        )

    def is_zero(self) -> npt.NDArray[np.bool_]:
        """Return bool[n]: whether every digit is 0."""
        zero = memory.empty(len(self.exponent), np.bool_)
        _is_zero(self.digits, self.digit_offsets, zero)
        return zero


def runs_of(which: npt.NDArray[Any], count: int) -> Runs:
    """Return the runs of values at the indices, or where the mask is True, out of ``count``.

    Raises:
        IndexError: for an index that is out of range, or a mask of another length.
    """
    if which.dtype == np.bool_ and len(which) == count:
        padded = np.zeros(count + 2, np.bool_)
        padded[1:-1] = which
        return np.flatnonzero(padded[1:] != padded[:-1]).reshape(-1, 2)
    first = np.arange(count)[which]
    begins, ends = np.diff(first, prepend=-2) != 1, np.diff(first, append=-2) != 1
    return np.stack([first[begins], first[ends] + 1], 1)


def take(values: npt.NDArray[Any], runs: Runs, in_place: bool = False) -> npt.NDArray[Any]:
    """Return ``values[begin:end]`` of all runs, one after the other.

    ``in_place``: in their own memory, of ascending runs, which is several times as fast; the values
    are then not to be used any more.
    """
    count = int((runs[:, 1] - runs[:, 0]).sum())
    if in_place:
        values.flags.writeable = True
    out = values[:count] if in_place else memory.empty(count, values.dtype)
    _take(values, runs, out)
    return out


@kernel
def _take(values, runs, out):  # type: ignore[no-untyped-def]
    to = ZERO
    for run in range(runs.shape[0]):
        first, length = np.uint64(runs[run, 0]), np.uint64(runs[run, 1] - runs[run, 0])
        for k in range(length):
            out[to + k] = values[first + k]
        to += length


@kernel
def _take_digits(digits, offsets, runs, out, out_offsets):  # type: ignore[no-untyped-def]
    """Copy the digits of the runs, and return the count of numbers."""
    to, filled = ZERO, ZERO
    out_offsets[0] = 0
    for run in range(runs.shape[0]):
        first, length = np.uint64(runs[run, 0]), np.uint64(runs[run, 1] - runs[run, 0])
        begin, end = np.uint64(offsets[first]), np.uint64(offsets[first + length])
        for k in range(ONE, length + ONE):
            out_offsets[to + k] = np.uint64(offsets[first + k]) - begin + filled
        for k in range(end - begin):
            out[filled + k] = digits[begin + k]
        to += length
        filled += end - begin
    return np.int64(to)


@kernel
def _is_zero(digits, offsets, zero):  # type: ignore[no-untyped-def]
    for i in range(zero.size):
        zero[i] = True
        for k in range(offsets[i], offsets[i + 1]):
            if digits[k] != 0:
                zero[i] = False
                break


@kernel
def leave_signs(text, offsets, document, start, stop):  # type: ignore[no-untyped-def]
    """Move each ``start`` after the sign; in ``(1)`` after the opening parenthesis, and ``stop``
    before the closing one.
    """
    for i in range(start.size):
        first = text[offsets[document[i]] + start[i]]
        if first == 0x2D or first == 0x2B:  # - +
            start[i] += 1
        elif first == 0xE2:  # of U+2212
            start[i] += 3
        elif first == 0x28:
            start[i] += 1
            stop[i] -= 1
