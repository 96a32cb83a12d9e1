"""The representations that are compared, each fitted to the numbers: xVal's scale, and as many
digits for FoNE as nearly all of them have.

In: :class:`~numtok.statistics.Statistics`. Out: representations, in the order of the registry.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from numtok.representations import FoNE, Representation, XVal, magnitudes
from numtok.representations.parse import plain_ones
from numtok.representations.registry import REPRESENTATIONS
from numtok.statistics.statistics import Statistics

COVERED = 0.99  # of the numbers, whose digits FoNE is given; a few long ones would widen it for all
MOST_FONE_DIGITS = 16  # before the point, and behind it


def candidates(statistics: Statistics) -> list[Representation]:
    """All that are registered, but those that need options of their own, with their variants; xVal
    plain and with ``log``.
    """
    fitted: dict[str, list[Representation]] = {
        "xval": [fitted_xval(statistics), fitted_xval(statistics, log=True)],
        "fone": [fitted_fone(statistics)],
    }
    found: list[Representation] = []
    for name, kind in REPRESENTATIONS.items():
        found += fitted.get(name) or plain_ones(kind)
    return found


def fitted_xval(statistics: Statistics, log: bool = False) -> XVal:
    """With the scale that ``numtok encode`` fits to these numbers."""
    return magnitudes.fitted_xval(statistics.counts.magnitude, log=log)


def fitted_fone(statistics: Statistics) -> FoNE:
    """With as many digits before and after the point as 99% of the numbers have, each for itself;
    at least one before it, and at most 16.
    """
    counts = statistics.counts
    return FoNE(max(_covering(counts.integer), 1), _covering(counts.fraction))


def _covering(counts: npt.NDArray[np.int64]) -> int:
    """The fewest digits that ``COVERED`` of the numbers do not exceed."""
    place = int(np.searchsorted(np.cumsum(counts), COVERED * counts.sum()))
    return min(place, MOST_FONE_DIGITS)
