"""xVal: one ``[NUM]`` per number, whose embedding is multiplied by the number's value.

In: n numbers. Out: ``number_scaled``, float32[n], perhaps clipped:

    x · scale                              exact for every float32 at scale 1
    sign(x) · log10(1 + abs(x)) · scale    with ``log``, for text of many magnitudes

Inverse: divide by the scale, and with ``log`` take sign · (10^abs − 1). xVal: A Continuous
    Numerical Tokenization for Scientific Language Models (Golkar et al. 2023), section 2; the
    logarithm is no part of the paper, which names its limited dynamic range as a shortcoming.

Layer norm makes the model see x/√(1 + x²), which is flat far from zero: "we normalize numbers in
the text corpus such that they fall within the range [-5,5]" (section 2). :meth:`XVal.fit` does it;
what then is smaller than ``VANISHING`` is next to nothing for the model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.errors import RepresentationError
from numtok.numbers.numbers import Numbers
from numtok.representations.base import Mask, SingleToken
from numtok.representations.columns import Column, clip_to_finite, finite, numbers_from_floats

TARGET = 5.0  # the paper's range
# a vector of size 1 does not change in bfloat16 if 0.004 is added to it; the squared error of
# taking 0.001 for 0 is 1e-6
VANISHING = 1e-3
SCALE_DIGITS = 4  # of a fitted scale, rounded down: it can be typed again and is the same
LARGEST_SCALE = 1e300
LN10, LARGEST = np.log(10.0), np.finfo(np.float64).max

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class XVal(SingleToken):
    """The number embedding of xVal: one scaled float32 per number.

    With ``log`` it holds zero and, at scale 1, magnitudes from 1.7e-45 to 1.8e308. The relative
    error is at most 2^-24 · (1 + 1/abs(x)) · ln(1 + abs(x)), to first order: 6e-8 near zero, 8e-7
    at a million, 4e-5 at 1e300. (Where the scaled logarithm is subnormal, below 1.2e-38, digits are
    lost sooner.)

    Attributes:
        scale: positive; values are multiplied by it.
        clip: the largest magnitude after scaling, or None; larger ones become ±clip and are
            counted, whatever ``overflow`` says, if they are finite as float64, which
            ``number_value`` keeps.
        log: take sign(x) · log10(1 + abs(x)) for the value.
        overflow: for values that are infinite as float32 (with ``log``, as float64), or not zero
            but zero as float32 (``"clip"``: the nearest that is held).

    Example:
        >>> import numtok
        >>> numbers = numtok.Numbers.parse(["-60.5", "8"])
        >>> numtok.XVal(scale=0.25).encode(numbers)["number_scaled"].to_pylist()
        [-15.125, 2.0]
    """

    scale: float = 1.0
    clip: float | None = None
    log: bool = False
    overflow: str = "text"
    name = "xval"
    declared = (Column("number_scaled", pa.float32(), np.float32, fill=1.0, encoding="split"),)
    later = ("log",)
    has_scale = True
    words: ClassVar[Mapping[str, Mapping[str, Any]]] = {"log": {"log": True}}

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (np.isfinite(self.scale) and self.scale > 0):
            raise self.refused(f"scale={self.scale} must be a positive, finite number")
        if self.clip is not None and not self.clip > 0:
            raise self.refused(f"clip={self.clip} must be positive, or None for no clipping")

    @classmethod
    def fit(
        cls,
        numbers: Numbers,
        target: float = TARGET,
        quantile: float | None = None,
        overflow: str = "text",
        log: bool = False,
    ) -> XVal:
        """Fit scale and clip so that the numbers of a corpus lie within ±``target``, as in the
        paper.

        Args:
            numbers: those of the corpus, or of a sample.
            target: 5 in the paper; larger values are clipped.
            quantile: scale this quantile of the magnitudes other than zero to ``target``; 1 is the
                largest number, and one Avogadro number then makes all others vanish. None takes
                the scale that loses the fewest numbers, clipped or below 0.001, and with ``log``,
                which has room for all magnitudes, the largest number.
            overflow: as in the class.
            log: as in the class.

        Raises:
            RepresentationError: if no number is finite and not zero, or an option is out of range.
        """
        return cls.fit_values(numbers.to_float64(), target, quantile, overflow, log)

    @classmethod
    def fit_values(
        cls,
        values: Floats,
        target: float = TARGET,
        quantile: float | None = None,
        overflow: str = "text",
        log: bool = False,
        counts: npt.NDArray[np.int64] | None = None,
    ) -> XVal:
        """Fit scale and clip to float64[n], each of which occurs once or ``counts`` times,
        int64[n], as :meth:`fit` does for numbers. RepresentationError for options out of range, and
        where no value is finite and not zero.
        """
        if not (np.isfinite(target) and target > 0):
            raise RepresentationError(f"xval: target={target} must be a positive, finite number")
        if quantile is not None and not 0 < quantile <= 1:
            raise RepresentationError(
                f"xval: quantile={quantile} must be above 0 and at most 1, or None to lose the"
                " fewest numbers"
            )
        magnitude = np.abs(values)
        usable = np.flatnonzero(np.isfinite(magnitude) & (magnitude > 0))
        order = usable[np.argsort(magnitude[usable], kind="stable")]
        magnitude = magnitude[order]
        times = np.ones(len(magnitude), np.int64) if counts is None else counts[order]
        if not len(magnitude):
            raise RepresentationError(
                f"xval: none of the {len(values)} numbers is finite and not zero, so there is no"
                " scale to fit"
            )
        if log:
            least = np.finfo(np.float64).smallest_subnormal
            magnitude = np.maximum(np.log1p(magnitude) / LN10, least)
        if quantile is None and log:
            chosen = float(magnitude[-1])
        elif quantile is None:
            chosen = _largest_kept(magnitude, memory.offsets_of(times), target)
        else:
            chosen = float(np.quantile(magnitude, quantile, method="inverted_cdf", weights=times))
        with np.errstate(over="ignore"):
            scale = min(target / chosen, LARGEST_SCALE)
        rounding = Context(prec=SCALE_DIGITS, rounding=ROUND_DOWN)
        return cls(float(rounding.create_decimal(repr(scale))), target, log, overflow)

    @property
    def largest(self) -> float:
        """The magnitude that becomes 5."""
        largest = TARGET / self.scale
        return min(math.expm1(min(largest * LN10, 709.7)), LARGEST) if self.log else largest

    def _scaled(self, numbers: Numbers) -> npt.NDArray[np.float32]:
        """Return float32[n], not clipped; at scale 1 rounded once, from the decimal."""
        if self.scale == 1.0 and not self.log:
            return numbers.to_float32()
        values = numbers.to_float64()
        if self.log:
            values = np.copysign(np.log1p(np.abs(values)) / LN10, values)
        with np.errstate(over="ignore", under="ignore"):
            return (values * self.scale).astype(np.float32)

    @property
    def exact_digit_range(self) -> range:
        # far within float32, and log10(1 + x) is nearly x or more than 0.3
        most = 30 - math.ceil(abs(math.log10(self.scale)))
        return range(-most, most)

    def fits(self, numbers: Numbers) -> Mask:
        if self.clip is None and self.scale == 1.0 and not self.log:
            return numbers.fit_float32()
        scaled = self._scaled(numbers)
        if self.clip is None:
            return finite(scaled, numbers)
        # Too large a value is clipped, whatever the overflow policy, unless no column would hold
        # it: number_value must give it back.
        held = finite(np.clip(scaled, -self.clip, self.clip), numbers)
        return held & np.isfinite(numbers.to_float64())

    def clipped(self, numbers: Numbers) -> Mask:
        beyond = super().clipped(numbers)
        if self.clip is None:
            return beyond
        return np.asarray(beyond | (np.abs(self._scaled(numbers)) > np.float32(self.clip)))

    def near_zero(self, numbers: Numbers) -> Mask:
        """Return bool[n]: nonzero numbers that are below ``VANISHING`` after scaling, so that a
        model can hardly tell them from zero.
        """
        small = np.abs(self._scaled(numbers)) < np.float32(VANISHING)
        return np.asarray(small & (numbers.to_float64() != 0))

    def encode(self, numbers: Numbers) -> dict[str, pa.Array]:
        scaled = self._scaled(numbers)
        if self.clip is not None:
            scaled = np.clip(scaled, np.float32(-self.clip), np.float32(self.clip))
        if self.overflow == "clip":
            scaled = self._within(scaled, numbers)
        return {"number_scaled": memory.to_arrow(scaled)}

    def _within(self, scaled: npt.NDArray[np.float32], numbers: Numbers) -> npt.NDArray[np.float32]:
        """Replace infinities by the largest float that is held, and zeros that stand for other
        numbers by the smallest.
        """
        if self.log:
            with np.errstate(over="ignore"):
                largest = np.float32(np.log1p(LARGEST) / LN10 * self.scale)
            scaled = np.where(np.isinf(scaled), np.copysign(largest, scaled), scaled)
        return clip_to_finite(scaled, numbers)

    def decode(self, columns: Mapping[str, pa.Array]) -> Numbers:
        scaled = columns["number_scaled"].to_numpy(zero_copy_only=False)
        if self.scale == 1.0 and not self.log:
            return numbers_from_floats(scaled, self.name)
        with np.errstate(over="ignore", under="ignore"):
            values = scaled.astype(np.float64) / self.scale
            if self.log:
                values = np.copysign(np.expm1(np.abs(values) * LN10), values)
        # what stands for the largest double, rounded up, is beyond it
        values = np.where(np.isfinite(scaled), np.clip(values, -LARGEST, LARGEST), scaled)
        return numbers_from_floats(values, self.name) if self.log else self._rounded(values)

    def _rounded(self, values: Floats) -> Numbers:
        """Return the floats as the shortest decimals of float32, which is their precision. Values
        that the scale brings into the range of float32 may themselves lie beyond it, or among its
        subnormals, which have fewer digits.
        """
        with np.errstate(over="ignore", under="ignore"):
            narrow = values.astype(np.float32)
        small = (np.abs(values) < np.finfo(np.float32).tiny) & (values != 0)
        beyond = np.isfinite(values) & (np.isinf(narrow) | small)
        if not beyond.any():
            return numbers_from_floats(narrow, self.name)
        held = numbers_from_floats(np.where(beyond, np.float32(0), narrow), self.name)
        texts = held.format().to_pylist()
        for place in np.flatnonzero(beyond).tolist():
            texts[place] = f"{values[place]:.8g}"
        return Numbers.parse(texts)


def _largest_kept(magnitude: Floats, below: npt.NDArray[np.int64], target: float) -> float:
    """Return the magnitude that loses the fewest numbers when it is scaled to the target: larger
    ones are clipped, far smaller ones come out near zero. Of several such magnitudes, the largest.

    ``below`` says how many numbers the first k magnitudes are, int64[n + 1].
    """
    vanishing = below[np.searchsorted(magnitude, magnitude * (VANISHING / target), side="left")]
    clipped = below[-1] - below[np.searchsorted(magnitude, magnitude, side="right")]
    lost = vanishing + clipped
    return float(magnitude[len(magnitude) - 1 - int(np.argmin(lost[::-1]))])
