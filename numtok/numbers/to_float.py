"""Exact decimals to floats, each rounded once, from the decimal, to nearest even (IEEE 754).

In: :class:`~numtok.numbers.columns.Columns`. Out: :class:`Floats`. Clinger's fast path settles
nearly all: digits up to 2**53 and a power of ten up to 22, which are both exact doubles. Arrow's
correctly rounding parser reads the others from their text.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.arrays.bitmarks import EIGHT, ONE, ZERO, eight_bytes
from numtok.arrays.kernels import kernel, merged_kernel
from numtok.numbers.columns import Columns
from numtok.numbers.to_text import to_text

_POWERS_OF_TEN = np.array([float(10**power) for power in range(23)])
_TEN = np.uint64(10)


class Floats(NamedTuple):
    """Of n numbers, read-only; neither width is rounded through the other."""

    doubles: npt.NDArray[np.float64]
    singles: npt.NDArray[np.float32]
    # bool[n], whether float32 holds it: not infinite, nor rounded to zero without being zero
    held: npt.NDArray[np.bool_]

    def take(self, indices: npt.NDArray[np.int64]) -> Floats:
        """Those at the indices."""
        doubles, singles, held = self
        return Floats(doubles[indices], singles[indices], held[indices]).read_only()

    def read_only(self) -> Floats:
        """The same, from now on."""
        for one in self:
            one.flags.writeable = False
        return self


def to_floats(columns: Columns) -> Floats:
    """The floats of all numbers."""
    count = len(columns.exponent)
    floats = Floats(*(memory.empty(count, kind) for kind in (np.float64, np.float32, np.bool_)))
    left = memory.empty(count, np.int64)
    left = left[: _to_floats(columns, _POWERS_OF_TEN, floats, left)]
    if len(left):
        others = columns.take(left)
        texts = to_text(others)
        floats.doubles[left] = memory.from_arrow(texts.cast(pa.float64()))
        floats.singles[left] = singles = memory.from_arrow(texts.cast(pa.float32()))
        floats.held[left] = np.isfinite(singles) & ((singles != 0) | others.is_zero())
    return floats.read_only()


@kernel
def _to_floats(columns, powers, out, left):  # type: ignore[no-untyped-def]
    """Fill in what can be told; the count of the others, which are in ``left``.

    What can be told has a magnitude that float32 holds, too.
    """
    digits, offsets, found = columns.digits, columns.digit_offsets, ZERO
    for i in range(np.uint64(columns.exponent.size)):
        whole, told = _whole(digits, np.uint64(offsets[i]), np.uint64(offsets[i + ONE]))
        power, value = columns.exponent[i], np.float64(whole)
        if whole == ZERO:
            power = np.int64(0)
        told = told and -22 <= power <= 22
        if told and power < 0:
            value /= powers[np.uint64(-power)]
        elif told and power > 0:
            value *= powers[np.uint64(power)]
        # Half-way between two float32 the double may have been rounded there from the decimal.
        rest = np.float64(value).view(np.uint64) & np.uint64(0x1FFFFFFF)
        if not told or (rest == np.uint64(0x10000000) and power != 0):
            left[found] = i
            found += ONE
        out.doubles[i] = -value if columns.negative[i] else value
        out.singles[i], out.held[i] = np.float32(out.doubles[i]), True
    return np.int64(found)


@merged_kernel
def _whole(digits, first, last):  # type: ignore[no-untyped-def]
    """(the digits as an integer, whether they are at most 2**53)."""
    count, whole = last - first, ZERO
    if count <= EIGHT and first + EIGHT <= np.uint64(digits.size):
        # Eight digits at once, whatever their count: those too many are shifted out, and zeros in.
        word = eight_bytes(digits, first) << EIGHT * (EIGHT - count)
        word = word * _TEN + (word >> EIGHT)  # bytes 0, 2, 4, 6: two digits each
        pairs = word & np.uint64(0x000000FF000000FF)
        others = (word >> np.uint64(16)) & np.uint64(0x000000FF000000FF)
        whole = pairs * np.uint64(0x000F424000000064) + others * np.uint64(0x0000271000000001)
        return whole >> np.uint64(32), True
    for k in range(first, last):
        whole = whole * _TEN + np.uint64(digits[k])
        if whole > ONE << np.uint64(53):
            return whole, False
    return whole, True
