"""The magnitudes of a corpus's numbers as values with counts: the most frequent ones exactly, all
others as the middle of a bin that is 3% wide.

In: :class:`~numtok.statistics.Statistics`. Out: float64 and int64 of the same length. Much lies on
    single values, such as 1: a limit just below them is another than one just above.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from numtok.statistics.digits import magnitude_bins, magnitude_centres
from numtok.statistics.examples import written
from numtok.statistics.statistics import Statistics


def magnitudes(statistics: Statistics) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """(values, counts) of all numbers but those that are zero or infinite as float64, ascending."""
    pairs = statistics.values.pairs
    frequent = np.abs(
        [
            float(written(first, second))
            for first, second in zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)
        ]
    )
    usable = np.isfinite(frequent) & (frequent > 0)
    frequent, counts = frequent[usable], pairs.times[usable]
    rest = statistics.digits.magnitude.copy()
    np.subtract.at(rest, magnitude_bins(frequent), counts)
    bins = np.flatnonzero(rest)
    values, all_counts = (
        np.concatenate([frequent, magnitude_centres(bins)]),
        np.concatenate([counts, rest[bins]]),
    )
    order = np.argsort(values, kind="stable")
    return values[order], all_counts[order]


def quantiles(statistics: Statistics, shares: Sequence[float]) -> list[float]:
    """Of the magnitudes other than zero, of which there must be some."""
    values, counts = magnitudes(statistics)
    below = np.cumsum(counts)
    return [float(values[int(np.searchsorted(below, share * below[-1]))]) for share in shares]
