"""Log-Fourier: one ``[NUM]`` per number, shown as its sign and the cosine and sine of 2πL/T for L =
log10 abs(x) at several periods T.

In: n numbers. Out: ``number_log_fourier``, float32[n, k + 1, 2]. Row 0 holds flags: the sign, -1 or
    1, and 1 if the number is zero, else 0. Rows 1 to k hold cosine and sine for the periods
    1000**((k - j) / (k - 1)), j = 1 to k: from 1000 decades, the magnitude as a whole, down to one,
    the place of the leading digits on a slide rule; they are 0 for zero. Inverse: L from the
    longest period to the shortest, each saying which turn of the next it is, then rounded to seven
    significant digits: exact for every decimal that has no more, and else within a relative error
    of 5.1e-7. Fourier features of the logarithm; numbers from 1e-499 up to 1e499, all of float64
    among them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.arrays.kernels import allocating_kernel
from numtok.numbers.numbers import Numbers
from numtok.representations import decimals
from numtok.representations.base import Mask, SingleToken
from numtok.representations.columns import Column, tensor_array, tensor_values

LONGEST_PERIOD = 1000.0  # decades; half of it in each direction
MAX_DECADE = 499
SIGNIFICANT_DIGITS = 7
MOST_FREQUENCIES = 4096

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LogFourier(SingleToken):
    """Sign, zero flag, and Fourier features of the logarithm of the magnitude.

    Attributes:
        n_frequencies: k, at least 2. More of them leave more room for error when a model's output
            is decoded.
        overflow: for numbers below 1e-499, other than zero, or from 1e499 on (``"clip"``: the
            nearest magnitude that is held).

    Example:
        >>> import numtok
        >>> numbers = numtok.Numbers.parse(["-60.2"])
        >>> features = numtok.LogFourier(n_frequencies=8).encode(numbers)["number_log_fourier"]
        >>> features.to_numpy_ndarray().shape
        (1, 9, 2)
    """

    n_frequencies: int = 8
    overflow: str = "text"
    name = "logfourier"
    declared = (Column("number_log_fourier", pa.float32(), np.float32, (0, 2), encoding="plain"),)
    positional = ("n_frequencies",)
    limits: ClassVar[Mapping[str, tuple[int, int]]] = {"n_frequencies": (2, MOST_FREQUENCIES)}

    @property
    def periods(self) -> npt.NDArray[np.float64]:
        """float64[k], in decades, descending from 1000 to 1."""
        steps = self.n_frequencies - 1
        return np.array([LONGEST_PERIOD ** ((steps - j) / steps) for j in range(steps + 1)])

    @property
    def exact_digit_range(self) -> range:
        return range(-MAX_DECADE, MAX_DECADE)

    def fits(self, numbers: Numbers) -> Mask:
        _, decade, zero = _logarithms(numbers)
        return np.asarray(zero | ((decade >= -MAX_DECADE) & (decade < MAX_DECADE)))

    def columns(self) -> dict[str, Column]:
        (column,) = self.declared
        return {column.name: column.shaped(self.n_frequencies + 1, 2)}

    def encode(self, numbers: Numbers) -> dict[str, pa.Array]:
        fraction, decade, zero = _logarithms(numbers)
        fraction[decade < -MAX_DECADE], fraction[decade >= MAX_DECADE] = 0.0, 1 - 1e-9
        decade = np.clip(decade, -MAX_DECADE, MAX_DECADE - 1)
        out = memory.empty(len(numbers) * (self.n_frequencies + 1) * 2, np.float32)
        _encode(numbers.negative, fraction, decade, zero, self.periods, out)
        return {"number_log_fourier": tensor_array(out, self.columns()["number_log_fourier"].type)}

    def decode(self, columns: Mapping[str, pa.Array]) -> Numbers:
        features: npt.NDArray[Any] = tensor_values(columns["number_log_fourier"])  # [n, k + 1, 2]
        if not np.isfinite(features).all():
            raise self.refused(
                "number_log_fourier holds infinite values or NaN; mask them out before decoding"
            )
        # [n, k], in -0.5 to 0.5
        turns = np.arctan2(features[:, 1:, 1].astype(np.float64), features[:, 1:, 0]) / (2 * np.pi)
        logarithm = LONGEST_PERIOD * turns[:, 0]
        for j, period in enumerate(self.periods[1:], 1):
            logarithm = period * (turns[:, j] + np.round(logarithm / period - turns[:, j]))
        zero = features[:, 0, 1] > 0.5
        decade = np.floor(np.where(zero, 0.0, logarithm))
        mantissa = (10.0 ** (logarithm - decade + SIGNIFICANT_DIGITS - 1) + 0.5).astype(np.int64)
        mantissa[zero] = 0
        exponent = decade.astype(np.int64) - (SIGNIFICANT_DIGITS - 1)
        return Numbers.from_digits(features[:, 0, 0] < 0, *decimals.split(mantissa, exponent))


def _logarithms(numbers: Numbers) -> tuple[Floats, Ints, Mask]:
    """Return log10 of each magnitude as fraction, float64[n] in [0, 1], and decade, int64[n], both
    0 for zero; and whether it is zero, bool[n].
    """
    mantissa, decade = decimals.rounded(numbers, 18, down=True)
    zero = mantissa == 0
    decade[zero] = 0
    return np.log10(np.where(zero, 1.0, mantissa / 1e17)), decade, zero


@allocating_kernel
def _encode(negative, fraction, decade, zero, periods, out):  # type: ignore[no-untyped-def]
    at = 0
    for i in range(decade.size):
        out[at] = -1.0 if negative[i] else 1.0
        out[at + 1] = 1.0 if zero[i] else 0.0
        at += 2
        for period in periods:
            if zero[i]:
                out[at] = out[at + 1] = 0.0
            else:
                turn = fraction[i] if period == 1.0 else (decade[i] + fraction[i]) / period
                angle = 2 * math.pi * (turn - math.floor(turn))
                out[at], out[at + 1] = math.cos(angle), math.sin(angle)
            at += 2
