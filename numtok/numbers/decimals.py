"""Exact decimals in arrays: what the conversions to floats and to text work on, and how some of
them are taken out.

In and out: :class:`Decimals`, n numbers ±digits × 10**exponent. Large columns are gathered into
    memory from Arrow's pool.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.kernels import kernel


class Decimals(NamedTuple):
    """The value of number ``i`` is ±``digits[offsets[i]:offsets[i + 1]]`` × 10**``exponent[i]``;
    see :class:`numtok.Numbers`.
    """

    digits: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    exponent: npt.NDArray[np.int64]
    negative: npt.NDArray[np.bool_]

    def take(self, indices: npt.NDArray[np.int64]) -> Decimals:
        """Those at the indices."""
        lengths = memory.empty(len(indices), np.int64)
        _digit_counts(self.offsets, indices, lengths)
        offsets = memory.offsets_of(lengths)
        digits = memory.empty(int(offsets[-1]), np.uint8)
        gather(self.digits, take(self.offsets[:-1], indices), offsets, digits)
        return Decimals(digits, offsets, take(self.exponent, indices), take(self.negative, indices))

    def without(self, few: npt.NDArray[np.int64]) -> Decimals:
        """All but those at a few ascending indices."""
        offsets, at = memory.empty(len(self.exponent) - len(few) + 1, np.int64), 0
        for first, last in zip(
            [0, *(few + 1).tolist()], [*few.tolist(), len(self.exponent)], strict=True
        ):
            removed = int(self.offsets[first]) - (int(offsets[at]) if at else 0)
            np.subtract(
                self.offsets[first : last + 1], removed, out=offsets[at : at + last - first + 1]
            )
            at += last - first
        digits = without(self.digits, self.offsets[few], self.offsets[few + 1])
        return Decimals(
            digits,
            offsets,
            without(self.exponent, few, few + 1),
            without(self.negative, few, few + 1),
        )

    def close_up(self, few: npt.NDArray[np.int64]) -> Decimals:
        """All but those at a few ascending indices, mostly in the same memory: see
        :func:`close_up`.
        """
        starts, stops = self.offsets[few], self.offsets[few + 1]
        digits, offsets = (
            without(self.digits, starts, stops),
            close_up(self.offsets, few, np.cumsum(stops - starts)),
        )
        return Decimals(digits, offsets, close_up(self.exponent, few), close_up(self.negative, few))

    def is_zero(self) -> npt.NDArray[np.bool_]:
        """bool[n]: every digit is 0."""
        zero = memory.empty(len(self.exponent), np.bool_)
        _is_zero(self.digits, self.offsets, zero)
        return zero


def take(values: npt.NDArray[Any], indices: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """The values at the indices."""
    return np.take(values, indices, out=memory.empty(len(indices), values.dtype), mode="wrap")


def close_up(
    values: npt.NDArray[Any],
    few: npt.NDArray[np.int64],
    removed: npt.NDArray[np.int64] | None = None,
) -> npt.NDArray[Any]:
    """All but those at a few ascending indices, in the same memory, though it be read-only: what
    lies behind each moves up, less ``removed`` by then.
    """
    values.flags.writeable = True
    at, stops = int(few[0]), [*few[1:].tolist(), len(values)]
    for number, (first, last) in enumerate(zip((few + 1).tolist(), stops, strict=True)):
        values[at : at + last - first] = (
            values[first:last] if removed is None else values[first:last] - removed[number]
        )
        at += last - first
    return values[:at]


def without(
    values: npt.NDArray[Any], starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64]
) -> npt.NDArray[Any]:
    """All but a few ascending stretches: what lies between them is copied in one go."""
    kept = memory.empty(len(values) - int((stops - starts).sum()), values.dtype)
    edges = zip([0, *stops.tolist()], [*starts.tolist(), len(values)], strict=True)
    return np.concatenate([values[first:last] for first, last in edges], out=kept)


@kernel
def _digit_counts(offsets, indices, counts):  # type: ignore[no-untyped-def]
    for i in range(indices.size):
        first = indices[i] if indices[i] >= 0 else indices[i] + offsets.size - 1
        counts[i] = offsets[first + 1] - offsets[first]


@kernel
def _is_zero(digits, offsets, zero):  # type: ignore[no-untyped-def]
    for i in range(zero.size):
        zero[i] = True
        for k in range(offsets[i], offsets[i + 1]):
            if digits[k] != 0:
                zero[i] = False
                break
    return zero


@kernel
def gather(text, first, offsets, out):  # type: ignore[no-untyped-def]
    """Fill ``out``: piece ``i``, ``out[offsets[i]:offsets[i + 1]]``, is what stands in ``text``
    from ``first[i]`` on.
    """
    for i in range(first.size):
        base = first[i] - offsets[i]
        for k in range(offsets[i], offsets[i + 1]):
            out[k] = text[base + k]
