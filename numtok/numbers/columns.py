"""The columns of :class:`numtok.Numbers`, as the compiled functions take them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.bitmarks import ONE
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


def runs_of(which: npt.NDArray[Any], count: int) -> npt.NDArray[np.int64]:
    """int64[r, 2]: first and stop of the runs of numbers at the indices, or where the mask is True,
    out of ``count``.

    Raises:
        IndexError: for an index that is out of range, or a mask of another length.
    """
    if which.dtype != np.bool_:
        first = np.arange(count)[which]
        begins, ends = np.diff(first, prepend=-2) != 1, np.diff(first, append=-2) != 1
        return np.stack([first[begins], first[ends] + 1], 1)
    if len(which) != count:
        raise IndexError(f"a mask of {len(which)} for {count} numbers")
    padded = np.zeros(count + 2, np.bool_)
    padded[1:-1] = which
    return np.flatnonzero(padded[1:] != padded[:-1]).reshape(-1, 2)


def take_columns(columns: Columns, runs: npt.NDArray[np.int64]) -> Columns:
    """The numbers of the runs."""
    ends = columns.digit_offsets
    digits = int((ends[runs[:, 1]] - ends[runs[:, 0]]).sum())
    out = empty_columns(int((runs[:, 1] - runs[:, 0]).sum()), digits)
    out.digit_offsets[0] = 0
    _copy(columns, runs, out, 0)
    return out


def take_values(values: npt.NDArray[Any], runs: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """One value for each number of the runs."""
    out = memory.empty(int((runs[:, 1] - runs[:, 0]).sum()), values.dtype)
    _copy_values(values, runs, out, 0)
    return out


def close_columns(columns: Columns, runs: npt.NDArray[np.int64]) -> Columns:
    """The numbers of ascending runs, moved up in their own memory: nearly all of them, as a rule,
    so that those before the first gap are not touched.
    """
    first, later = _before_first_gap(runs)
    count = _copy(columns, later, columns, first)
    document, start, stop, negative, digits, digit_offsets, exponent = columns
    digits, digit_offsets = digits[: digit_offsets[count]], digit_offsets[: count + 1]
    places = document[:count], start[:count], stop[:count]
    return Columns(*places, negative[:count], digits, digit_offsets, exponent[:count])


def close_values(values: npt.NDArray[Any], runs: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Likewise one value for each number, also of a read-only array."""
    first, later = _before_first_gap(runs)
    values.flags.writeable = True
    return values[: _copy_values(values, later, values, first)]


def _before_first_gap(runs: npt.NDArray[np.int64]) -> tuple[int, npt.NDArray[np.int64]]:
    """(how many numbers are before it, the later runs)."""
    return (int(runs[0, 1]), runs[1:]) if len(runs) and runs[0, 0] == 0 else (0, runs)


@kernel
def _copy_values(values, runs, out, count):  # type: ignore[no-untyped-def]
    """Behind the ``count`` values that are there; how many there are then."""
    to = np.uint64(count)
    for run in range(runs.shape[0]):
        first, length = np.uint64(runs[run, 0]), np.uint64(runs[run, 1] - runs[run, 0])
        for k in range(length):
            out[to + k] = values[first + k]
        to += length
    return np.int64(to)


@kernel
def _copy(given, runs, out, count):  # type: ignore[no-untyped-def]
    """Behind the ``count`` numbers that are there; how many there are then."""
    to, filled = np.uint64(count), np.uint64(out.digit_offsets[count])
    for run in range(runs.shape[0]):
        first, length = np.uint64(runs[run, 0]), np.uint64(runs[run, 1] - runs[run, 0])
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
    return np.int64(to)
