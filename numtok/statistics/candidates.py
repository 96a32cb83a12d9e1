"""The representations that are compared, each fitted to the numbers: xVal's scale, and as many
digits for FoNE as nearly all of them have.

In: :class:`~numtok.statistics.Statistics`. Out: representations, in the order of the registry.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from numtok.representations import FoNE, Representation, XVal
from numtok.representations.parse import plain_ones
from numtok.representations.registry import REPRESENTATIONS
from numtok.representations.xval import TARGET
from numtok.statistics.digits import MOST_DIGITS
from numtok.statistics.magnitudes import magnitudes
from numtok.statistics.statistics import Statistics

COVERED = 0.99  # of the numbers, whose digits FoNE is given; a few long ones would widen it for all
MOST_FONE_DIGITS = 16  # before the point, and behind it


def candidates(statistics: Statistics) -> list[Representation]:
    """All that are registered, but those that need options of their own, with their variants; xVal
    plain and with ``log``.
    """
    fitted: dict[str, Callable[[Statistics], list[Representation]]] = {
        "xval": _xvals,
        "fone": lambda of: [fitted_fone(of)],
    }
    found: list[Representation] = []
    for name, kind in REPRESENTATIONS.items():
        if name in fitted:
            found += fitted[name](statistics)
        else:
            found += plain_ones(kind)
    return found


def fitted_xval(statistics: Statistics, log: bool = False) -> XVal:
    """With the scale with which the fewest numbers are lost, or 1 if all are zero.

    Magnitudes are those of :func:`~numtok.statistics.magnitudes.magnitudes`, so the scale may
    differ by 3% from that of :meth:`numtok.XVal.fit`.
    """
    values, counts = magnitudes(statistics)
    return (
        XVal.fit_values(values, log=log, counts=counts) if len(values) else XVal(1.0, TARGET, log)
    )


def fitted_fone(statistics: Statistics) -> FoNE:
    """With as many digits before and after the point as 99% of the numbers have, each for itself;
    at least one before it, and at most 16.
    """
    integer, fraction = (
        min(covering(counts), MOST_FONE_DIGITS)
        for counts in (statistics.digits.integer, statistics.digits.fraction)
    )
    return FoNE(max(integer, 1), fraction)


def covering(counts: npt.NDArray[np.int64]) -> int:
    """The fewest digits that ``COVERED`` of the numbers do not exceed; ``MOST_DIGITS`` if those are
    more than were counted.
    """
    total = int(counts.sum())
    return (
        min(int(np.searchsorted(np.cumsum(counts), COVERED * total)), MOST_DIGITS) if total else 0
    )


def _xvals(statistics: Statistics) -> list[Representation]:
    return [fitted_xval(statistics), fitted_xval(statistics, log=True)]
