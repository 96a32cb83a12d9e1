"""Count the numbers that a fitted scale of xVal would clip, in all and by column of a table, and
raise the error that stops an encoding which would lose them: for ``numtok encode`` and ``numtok
stats``.

In: magnitudes as :mod:`numtok.representations.magnitudes` counts them. Out: a sentence, or none.
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
from numtok.representations import magnitudes
from numtok.representations.xval import XVal

MOST, MOST_OF_COLUMN = 0.01, 0.5  # shares of numbers that may be clipped: of all, of one column
OTHER = -1  # the key of zeros and of infinite numbers, which have no bin


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
        bins = magnitudes.bins_of(values)
        for column in np.unique(columns[columns >= 0]).tolist():
            found, times = np.unique(bins[columns == column], return_counts=True)
            new = Counter(dict(zip(found.tolist(), times.tolist(), strict=True)))
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
        found = {}
        for name, counts in self.counts.items():
            bins = np.array([one for one in counts if one != OTHER], np.int64)
            times = np.array([counts[one] for one in bins.tolist()], np.int64)
            beyond = int(times[_clipped(xval, magnitudes.begin_of(bins))].sum())
            found[name] = (beyond, counts.total())
        return found

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
        if any(not OTHER <= one < magnitudes.BINS for bins in counts.values() for one in bins):
            raise ValueError("a magnitude that no number has")
        return cls(counts)


def clipping(
    xval: XVal, counts: npt.NDArray[np.int64], total: int, columns: ColumnMagnitudes
) -> str | None:
    """Say what a fitted scale would clip: None unless that is more than 1% of the ``total`` numbers,
    whose magnitudes have these counts, or half of those in one column.
    """
    begin, times = magnitudes.lower_ends(counts)
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
        f" {', '.join(first)} or {last}; or say that it is meant, by scale=... (--scale), clip=..."
        " (--clip) or overflow='clip' (--overflow clip)"
    )


def _clipped(xval: XVal, begin: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Return bool[n]: which bins of magnitudes lie beyond the scale."""
    return xval.clipped(Numbers.parse(begin.tolist()))


def refuse_clipping(
    xval: XVal, counts: npt.NDArray[np.int64], total: int, columns: ColumnMagnitudes
) -> None:
    """Raise RepresentationError with what :func:`clipping` says."""
    if told := clipping(xval, counts, total, columns):
        raise RepresentationError(told)
