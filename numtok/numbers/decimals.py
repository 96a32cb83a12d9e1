"""Exact decimals in arrays: what the conversions to floats and to text work on.

In and out: :class:`Decimals`, n numbers ±digits × 10**exponent.
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
        first = take(self.offsets[:-1], indices)
        offsets = memory.offsets_of(take(self.offsets[1:], indices) - first)
        digits = gather(self.digits, first, offsets)
        return Decimals(digits, offsets, take(self.exponent, indices), take(self.negative, indices))

    def is_zero(self, indices: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.bool_]:
        """bool[n]: every digit is 0; of all, or of those at the indices."""
        if indices is None:
            indices = np.arange(len(self.exponent))
        zero = memory.empty(len(indices), np.bool_)
        _is_zero(self.digits, self.offsets, indices, zero)
        return zero


def take(values: npt.NDArray[Any], indices: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """The values at the indices, in memory of Arrow's pool."""
    return np.take(values, indices, out=memory.empty(len(indices), values.dtype), mode="wrap")


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
def _is_zero(digits, offsets, indices, zero):  # type: ignore[no-untyped-def]
    for i in range(zero.size):
        zero[i] = True
        for k in range(offsets[indices[i]], offsets[indices[i] + 1]):
            if digits[k] != 0:
                zero[i] = False
                break


@kernel
def _gather(text, first, offsets, out):  # type: ignore[no-untyped-def]
    for i in range(first.size):
        base = first[i] - offsets[i]
        for k in range(offsets[i], offsets[i + 1]):
            out[k] = text[base + k]
