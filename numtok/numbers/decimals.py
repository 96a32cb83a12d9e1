"""Exact decimals and their spans in arrays: what the scanner fills, and the conversions read."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.bitmarks import ZERO
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

    def take(self, runs: Runs) -> Decimals:
        """Return the numbers of the runs, as :func:`take` takes them."""
        lengths = take(np.diff(self.digit_offsets), runs)
        return Decimals(
            take(self.document, runs),
            take(self.start, runs),
            take(self.stop, runs),
            take(self.negative, runs),
            take(self.digits, self.digit_offsets[runs]),
            memory.offsets_of(lengths),
            take(self.exponent, runs),
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


def take(values: npt.NDArray[Any], runs: Runs) -> npt.NDArray[Any]:
    """Return ``values[begin:end]`` of all runs, one after the other."""
    out = memory.empty(int((runs[:, 1] - runs[:, 0]).sum()), values.dtype)
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
