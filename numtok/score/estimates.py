"""Errors of estimates: mean absolute error, median relative error, R²."""

from __future__ import annotations

import math
import statistics
from decimal import Decimal

from numtok.score.compare import ROUNDED, Exact, rounded


class Estimates:
    """Sums over pairs of values, to 60 digits; only the relative errors are kept one by one."""

    def __init__(self) -> None:
        self.count = 0
        self._relative: list[float] = []  # of the targets that are not 0
        self._errors, self._squares = Decimal(0), Decimal(0)  # sums of |error| and of error²
        # sums of the targets and of their squares, relative to the first target
        self._targets, self._target_squares = Decimal(0), Decimal(0)
        self._first: Decimal | None = None

    def add(self, value: Exact, target: Exact) -> None:
        """Count a pair."""
        predicted, wanted = rounded(value), rounded(target)
        self._first = wanted if self._first is None else self._first
        error = ROUNDED.subtract(predicted, wanted).copy_abs()
        offset = ROUNDED.subtract(wanted, self._first)
        self.count += 1
        self._errors = ROUNDED.add(self._errors, error)
        self._squares = ROUNDED.fma(error, error, self._squares)
        self._targets = ROUNDED.add(self._targets, offset)
        self._target_squares = ROUNDED.fma(offset, offset, self._target_squares)
        if wanted:
            self._relative.append(float(ROUNDED.divide(error, wanted.copy_abs())))

    @property
    def mean_absolute_error(self) -> float:
        """Mean of |value - target|; NaN without pairs."""
        return float(ROUNDED.divide(self._errors, self.count)) if self.count else math.nan

    @property
    def median_relative_error(self) -> float:
        """Median of |value - target| / |target| over targets other than 0; NaN without any."""
        return statistics.median(self._relative) if self._relative else math.nan

    @property
    def r_squared(self) -> float:
        """Coefficient of determination: 1 - Σ(value - target)² / Σ(target - mean target)².

        NaN for fewer than two pairs, or if all targets are equal.
        """
        if not self._target_squares:
            return math.nan
        mean = ROUNDED.divide(self._targets, self.count)
        spread = ROUNDED.subtract(self._target_squares, ROUNDED.multiply(mean, self._targets))
        return float(ROUNDED.subtract(1, ROUNDED.divide(self._squares, spread)))
