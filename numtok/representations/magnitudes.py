"""Magnitudes counted in bins 3% wide, and the scale that xVal gets from them: ``numtok encode`` and
``numtok stats`` both fit it so, and thus find the same.

In: float64[n], or counts. Out: int64[65504], counts by the leading 16 bits of the double without
    its sign: 32 steps from one power of two to the next. Zero and what is infinite are not counted.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from numtok.representations.xval import TARGET, XVal

BINS = 0x7FF << 5
SHIFT = 52 - 5  # bits of a double below its exponent and the first five bits of its mantissa
WIDTH = 1 + 1 / 32  # a bin ends at most so many times where it begins

Ints = npt.NDArray[np.int64]


def bins_of(values: npt.NDArray[np.float64]) -> Ints:
    """Return int64[n]: the bin of each value's magnitude; -1 for zero and what is infinite."""
    magnitude = np.abs(values)
    bins = (magnitude.view(np.uint64) >> np.uint64(SHIFT)).astype(np.int64)
    return np.where((magnitude > 0) & (magnitude < np.inf), bins, -1)


def counted(values: npt.NDArray[np.float64]) -> Ints:
    """Return the counts of the values' magnitudes."""
    bins = bins_of(values)
    return np.bincount(bins[bins >= 0], minlength=BINS)


def lower_ends(counts: Ints) -> tuple[npt.NDArray[np.float64], Ints]:
    """Return (where the bins that hold something begin, their counts), ascending."""
    filled = np.flatnonzero(counts)
    return begin_of(filled), counts[filled]


def begin_of(bins: Ints) -> npt.NDArray[np.float64]:
    """Return float64[n]: where bins begin."""
    begin = (bins.astype(np.uint64) << np.uint64(SHIFT)).view(np.float64)
    return np.maximum(begin, np.finfo(np.float64).smallest_subnormal)


def fitted_xval(
    counts: Ints, quantile: float | None = None, log: bool = False, overflow: str = "text"
) -> XVal:
    """Return :class:`XVal` fitted to the lower ends of bins, with room for what lies above them in
    their bins; scale 1 where there is nothing.
    """
    values, times = lower_ends(counts)
    if not len(values):
        return XVal(1.0, TARGET, log, overflow)
    fitted = XVal.fit_values(values, TARGET / WIDTH, quantile, overflow, log, times)
    return XVal(fitted.scale, TARGET, log, overflow)
