"""Examples of the numbers of each shape (significant digits, 0 to 19, and decade, -50 to 50), on
which any representation can be tried, with how many they stand for. The magnitudes with the
``PER_SHAPE`` smallest hashes are kept: the same in whatever order batches are merged. One of more
than 18 digits has its first 18 and a 1 after them.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.numbers.numbers import Numbers
from numtok.statistics.digits import DECADES, LONG, MANTISSA, Values
from numtok.statistics.histograms import LARGEST_DECADE

Ints = npt.NDArray[np.int64]

PER_SHAPE = 4
_SHAPES = (LONG + 1) * DECADES


@dataclass(frozen=True, eq=False)
class Examples:
    """What is kept of the numbers' values, without their sign."""

    shapes: Ints  # int64[2020], how many numbers each shape has
    values: Values  # of each shape those that are kept, in the order of shapes and hashes

    @classmethod
    def none(cls) -> Examples:
        """Of no numbers."""
        return cls(np.zeros(_SHAPES, np.int64), Values(*(np.empty(0, np.int64),) * 4))

    @classmethod
    def of(cls, values: Values) -> Examples:
        """Of distinct values."""
        counts = np.bincount(values.shape, values.times, _SHAPES).astype(np.int64)
        return cls._kept(counts, values._replace(mantissa=np.abs(values.mantissa)))

    @classmethod
    def _kept(cls, shapes: Ints, values: Values) -> Examples:
        """Of values that may be there more than once, those that are kept."""
        values = values.distinct()
        values = values.chosen(np.lexsort((_hashes(values), values.shape)))
        begin = np.searchsorted(values.shape, values.shape)
        return cls(shapes, values.chosen(np.arange(len(begin)) - begin < PER_SHAPE))

    def __add__(self, other: Examples) -> Examples:
        both = zip(self.values, other.values, strict=True)
        values = Values(*(np.concatenate([mine, theirs]) for mine, theirs in both))
        return Examples._kept(self.shapes + other.shapes, values)

    def numbers(self) -> Numbers:
        """The examples, all of them positive."""
        literals = []
        columns = (self.values.is_cut(), self.values.mantissa, self.values.power)
        for is_cut, mantissa, power in zip(*(one.tolist() for one in columns), strict=True):
            fill = MANTISSA - len(str(mantissa))
            literals.append(
                f"{mantissa}{'0' * fill}1e{power - fill - 1}" if is_cut else f"{mantissa}e{power}"
            )
        return Numbers.parse(literals)

    def weights(self) -> npt.NDArray[np.float64]:
        """float64[m]: how many numbers each example stands for: those of a shape share its numbers
        as they occur among themselves.
        """
        shape = self.values.shape
        among = np.bincount(shape, self.values.times, _SHAPES)
        return np.asarray(self.values.times * self.shapes[shape] / among[shape])

    def to_json(self) -> list[Any]:
        """A row per shape: digits, decade, count, and the count of each example, as text."""
        rows: dict[int, dict[str, int]] = {}
        for shape, mantissa, power, times in zip(*(v.tolist() for v in self.values), strict=True):
            rows.setdefault(shape, {})[written(mantissa, power)] = times
        return [
            [shape // DECADES, shape % DECADES - LARGEST_DECADE, int(self.shapes[shape]), rows[shape]]
            for shape in np.flatnonzero(self.shapes).tolist()
        ]  # fmt: skip

    @classmethod
    def from_json(cls, data: list[Any]) -> Examples:
        """The inverse of :meth:`to_json`; ValueError for what it did not give."""
        shapes, rows = np.zeros(_SHAPES, np.int64), []
        for significant, decade, count, values in data:
            shape = significant * DECADES + decade + LARGEST_DECADE
            if shape < 0 or count <= 0 or not values or min(values.values()) <= 0:
                raise ValueError(f"no examples with {significant} digits and decade {decade}")
            shapes[shape] = count
            rows += [(shape, *read(text), times) for text, times in values.items()]
        columns = np.ascontiguousarray(np.array(rows, np.int64).reshape(-1, 4).T)
        return cls._kept(shapes, Values(*columns))


def _hashes(values: Values) -> npt.NDArray[np.uint64]:
    """uint64[m], the finish of splitmix64."""
    with np.errstate(over="ignore"):
        mixed = values.mantissa.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed += values.power.astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def written(mantissa: int, power: int) -> str:
    """A value as short text: ``0.25``, ``-1500``, ``6.02214076e+23``."""
    value = Decimal(mantissa).scaleb(power) if abs(power) < 1000 else None
    if value is not None and -7 <= value.adjusted() < 16:
        return f"{value:f}"
    digits = str(abs(mantissa))
    point = f"{digits[0]}.{digits[1:]}" if len(digits) > 1 else digits
    return f"{'-' if mantissa < 0 else ''}{point}e{power + len(digits) - 1:+d}"


def read(text: str) -> tuple[int, int]:
    """The inverse of :func:`written`: mantissa and power."""
    sign, digits, power = Decimal(text).as_tuple()
    whole = "".join(map(str, digits)).lstrip("0")
    mantissa = whole.rstrip("0")
    if not mantissa:
        return 0, 0
    return int(mantissa) * (-1 if sign else 1), int(power) + len(whole) - len(mantissa)
