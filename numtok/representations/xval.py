"""xVal: one ``[NUM]`` per number, whose embedding is multiplied by the number's value.

In: n numbers. Out: ``number_scaled``, float32[n], value × scale, perhaps clipped. Inverse: divide by the scale; exact for every float32 at
scale 1. xVal: A Continuous Numerical Tokenization for Scientific Language Models (Golkar et al. 2023), section 2.

Layer norm makes the model see x/√(1 + x²), which is flat far from zero: the paper keeps scaled values within [−5, 5].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.errors import RepresentationError
from numtok.numbers import Numbers
from numtok.representations.base import Mask, SingleToken, finite_float32, numbers_from_floats


@dataclass(frozen=True)
class XVal(SingleToken):
    """One scaled float32 per number.

    Attributes:
        scale: what values are multiplied with; positive.
        clip: the largest magnitude after scaling, or None; larger ones become ±clip and are counted.
        overflow: for values that are infinite as float32, or not zero but zero as float32 (``"clip"``: the nearest finite float32 that is
            not zero).
    """

    scale: float = 1.0
    clip: float | None = None
    overflow: str = "text"
    name: ClassVar[str] = "xval"

    def __post_init__(self) -> None:
        self._check_overflow()
        if not (np.isfinite(self.scale) and self.scale > 0):
            raise RepresentationError(f"xval: scale={self.scale} must be a positive, finite number")
        if self.clip is not None and not self.clip > 0:
            raise RepresentationError(f"xval: clip={self.clip} must be positive, or None for no clipping")

    @classmethod
    def fit(cls, numbers: Numbers, target: float = 5.0, quantile: float | None = None, overflow: str = "text") -> XVal:
        """Scale and clip such that the numbers of a corpus come to lie within ±``target``, as the paper wants.

        Args:
            numbers: of the corpus, or of a sample of it.
            target: what the largest magnitude is scaled to, 5 in the paper.
            quantile: take this quantile of the magnitudes, such as 0.999, for the largest, and clip what is larger; None for no such cut.
            overflow: as in the class.

        Raises:
            RepresentationError: if no number is finite and not zero, or an option is out of range.
        """
        return cls.fit_values(numbers.to_float64(), target, quantile, overflow)

    @classmethod
    def fit_values(
        cls, values: npt.NDArray[np.float64], target: float = 5.0, quantile: float | None = None, overflow: str = "text"
    ) -> XVal:
        """:meth:`fit` for float64[n]."""
        if not (np.isfinite(target) and target > 0):
            raise RepresentationError(f"xval: target={target} must be a positive, finite number")
        if quantile is not None and not 0 < quantile <= 1:
            raise RepresentationError(f"xval: quantile={quantile} must be above 0 and at most 1, or None for the largest magnitude")
        magnitude = np.abs(values)
        magnitude = magnitude[np.isfinite(magnitude) & (magnitude > 0)]
        if not len(magnitude):
            raise RepresentationError(f"xval: none of the {len(values)} numbers is finite and not zero, so there is no scale to fit")
        largest = float(magnitude.max() if quantile is None else np.quantile(magnitude, quantile))
        return cls(scale=target / largest, clip=target, overflow=overflow)

    def _scaled(self, numbers: Numbers) -> npt.NDArray[np.float32]:
        """float32[n], not clipped; at scale 1 rounded once, from the decimal."""
        if self.scale == 1.0:
            return numbers.to_float32()
        with np.errstate(over="ignore", under="ignore"):
            return (numbers.to_float64() * self.scale).astype(np.float32)

    def fits(self, numbers: Numbers) -> Mask:
        scaled = self._scaled(numbers)
        if self.clip is not None:  # too large a value is clipped, whatever the overflow policy
            scaled = np.clip(scaled, -self.clip, self.clip)
        return finite_float32(scaled, numbers)

    def clipped(self, numbers: Numbers) -> Mask:
        beyond = super().clipped(numbers)
        return beyond if self.clip is None else beyond | (np.abs(self._scaled(numbers)) > np.float32(self.clip))

    def columns(self) -> dict[str, pa.DataType]:
        return {"number_scaled": pa.float32()}

    def encode(self, numbers: Numbers) -> dict[str, pa.Array]:
        scaled = self._scaled(numbers)
        if self.clip is not None:
            scaled = np.clip(scaled, np.float32(-self.clip), np.float32(self.clip))
        return {"number_scaled": pa.array(clip_to_float32(scaled, numbers) if self.overflow == "clip" else scaled)}

    def decode(self, columns: Mapping[str, pa.Array]) -> Numbers:
        scaled = columns["number_scaled"].to_numpy(zero_copy_only=False)
        if self.scale == 1.0:
            return numbers_from_floats(scaled, self.name)
        with np.errstate(over="ignore", under="ignore"):
            return numbers_from_floats((scaled.astype(np.float64) / self.scale).astype(np.float32), self.name)


def clip_to_float32(values: npt.NDArray[np.float32], numbers: Numbers) -> npt.NDArray[np.float32]:
    """``values`` with infinities replaced by the largest finite float32, and zeros that stand for other numbers by the smallest."""
    wrong = ~finite_float32(values, numbers)
    if wrong.any():
        limits = np.finfo(np.float32)
        magnitude = np.where(np.isinf(values), limits.max, limits.smallest_subnormal)
        values = np.where(wrong, np.where(numbers.negative, -magnitude, magnitude), values).astype(np.float32)
    return values
