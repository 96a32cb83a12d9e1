"""Magnitudes counted in bins 3% wide, the scale that xVal gets from them, and what it would clip, in
all and by column of a table: ``numtok encode`` and ``numtok stats`` both fit it so, and thus find the
same.

In: float64[n], or counts. Out: int64[65504], counts by the leading 16 bits of the double without
    its sign: 32 steps from one power of two to the next. Zero and what is infinite are not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.errors import RepresentationError
from numtok.numbers.numbers import Numbers
from numtok.representations.xval import TARGET, XVal

BINS = 0x7FF << 5
SHIFT = 52 - 5  # bits of a double below its exponent and the first five bits of its mantissa
WIDTH = 1 + 1 / 32  # a bin ends at most so many times where it begins
MOST, MOST_OF_COLUMN = 0.01, 0.5  # shares of numbers that may be clipped: of all, of one column
OTHER = -1  # the key of zeros and of infinite numbers, which have no bin

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


@dataclass(frozen=True)
class ColumnMagnitudes:
    """Magnitudes of the numbers in each column, as counts by bin. Those of parts add up with ``+``."""

    counts: Mapping[str, Counter[int]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        columns: npt.NDArray[np.int64],
        values: npt.NDArray[np.float64],
    ) -> ColumnMagnitudes:
        """Count n values by column.

        Args:
            names: of k columns.
            columns: int64[n], from 0 to k - 1; -1 for a value that stands in none.
            values: float64[n].
        """
        counts: dict[str, Counter[int]] = {}
        bins = bins_of(values)
        for column in np.unique(columns[columns >= 0]).tolist():
            used_bins, times = np.unique(bins[columns == column], return_counts=True)
            new = Counter(dict(zip(used_bins.tolist(), times.tolist(), strict=True)))
            counts[names[column]] = counts.get(names[column], Counter()) + new
        return cls(counts)

    def __add__(self, other: ColumnMagnitudes) -> ColumnMagnitudes:
        names = dict.fromkeys([*self.counts, *other.counts])
        none: Counter[int] = Counter()
        return ColumnMagnitudes(
            {name: self.counts.get(name, none) + other.counts.get(name, none) for name in names}
        )

    def clipped(self, xval: XVal) -> dict[str, tuple[int, int]]:
        """Return (numbers that the scale clips, all numbers) of each column."""
        beyond_by_name = {}
        for name, counts in self.counts.items():
            bins = np.array([one for one in counts if one != OTHER], np.int64)
            times = np.array([counts[one] for one in bins.tolist()], np.int64)
            beyond = int(times[_clipped(xval, begin_of(bins))].sum())
            beyond_by_name[name] = (beyond, counts.total())
        return beyond_by_name

    def to_json(self) -> dict[str, dict[str, int]]:
        """Return the counts by column and bin."""
        return {
            name: {str(one): times for one, times in sorted(counts.items())}
            for name, counts in sorted(self.counts.items())
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Mapping[str, Any]]) -> ColumnMagnitudes:
        """Read what :meth:`to_json` returned; ValueError for a bin that does not exist."""
        counts = {
            str(name): Counter({int(one): int(times) for one, times in bins.items()})
            for name, bins in data.items()
        }
        if any(not OTHER <= one < BINS for bins in counts.values() for one in bins):
            raise ValueError("a magnitude that no number has")
        return cls(counts)


def clipping(
    xval: XVal, counts: npt.NDArray[np.int64], total: int, columns: ColumnMagnitudes
) -> str | None:
    """Say what a fitted scale would clip: None unless that is more than 1% of the ``total`` numbers,
    whose magnitudes have these counts, or half of those in one column.
    """
    begin, times = lower_ends(counts)
    beyond = int(times[_clipped(xval, begin)].sum())
    in_columns = columns.clipped(xval)
    lost = {
        name: f"{clipped:,} of {there:,} in column {name!r}"
        for name, (clipped, there) in in_columns.items()
        if clipped >= MOST_OF_COLUMN * there and clipped
    }
    if beyond <= MOST * total and not lost:
        return None
    where = f", {' and '.join(lost.values())}" if lost else ""
    others = ["quantile_bins:32,soft", *([] if xval.log else ["xval:log"]), "logfourier"]
    *first, last = (repr(name) for name in others)
    return (
        f"the fitted scale of xval would clip {beyond / total:.1%} of the numbers{where}:"
        f" {xval.largest:.4g} is the largest value that a model can then read. Take"
        f" {', '.join(first)} or {last} as numbers=... (--numbers); or say that it is"
        " meant, by scale=... (--scale), clip=... (--clip) or overflow='clip' (--overflow clip)"
    )


def _clipped(xval: XVal, begin: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Return bool[n]: which bins of magnitudes lie beyond the scale."""
    return xval.clipped(Numbers.parse(begin.tolist()))


def refuse_clipping(
    xval: XVal, counts: npt.NDArray[np.int64], total: int, columns: ColumnMagnitudes
) -> None:
    """Raise RepresentationError with what :func:`clipping` says."""
    if warning := clipping(xval, counts, total, columns):
        raise RepresentationError(warning)
