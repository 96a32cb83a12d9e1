"""The values of numbers: how many digits each has, how often it occurs, and examples of every shape.

A value is mantissa × 10**power with no zero at the mantissa's end, of up to ``MANTISSA`` digits;
what is longer is cut there. Its *decade* is the power of ten of its first digit, 3 for 1234; its
*shape* its count of significant digits, 0 to 40, and its decade, -50 to 50.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.numbers.numbers import Numbers
from numtok.representations import magnitudes
from numtok.statistics.counters import LARGEST_DECADE, MOST_DIGITS, binned

Ints = npt.NDArray[np.int64]

MANTISSA = 18  # decimal digits, which int64 holds
DECADES = 2 * LARGEST_DECADE + 1
PER_SHAPE = 4  # examples
_SHAPES = (MOST_DIGITS + 1) * DECADES
_EXACT = Context(prec=MANTISSA + 2, Emax=MAX_EMAX, Emin=MIN_EMIN)


class Values(NamedTuple):
    """m values and how often each occurs; int64[m] each. Minus zero is zero, which has no digits and
    the decade 0.
    """

    shape: Ints  # digits (``MOST_DIGITS`` at most) × ``DECADES`` + decade + ``LARGEST_DECADE``
    mantissa: Ints
    power: Ints
    times: Ints

    def chosen(self, which: npt.NDArray[Any]) -> Values:
        """Return the values at these indices."""
        return Values(*(column[which] for column in self))

    def is_cut(self) -> npt.NDArray[np.bool_]:
        """Return bool[m]: whether a value has more digits than a mantissa holds."""
        return np.asarray(self.shape >= (MANTISSA + 1) * DECADES)

    def distinct(self) -> Values:
        """Merge equal values."""
        names = list(self._fields)
        table = pa.table({name: pa.array(one) for name, one in zip(names, self, strict=True)})
        summed = table.group_by(names[:3], use_threads=False).aggregate([("times", "sum")])
        columns = [*(summed[name] for name in names[:3]), summed["times_sum"]]
        return Values(*(memory.from_arrow(column.combine_chunks()) for column in columns))


def count_values(numbers: Numbers) -> tuple[Values, dict[str, Ints]]:
    """Return the distinct values, with their signs; and the histograms of digits and magnitudes."""
    digits, nonzero = numbers.digits, np.flatnonzero(numbers.digits)
    begin, end = numbers.digit_offsets[:-1], numbers.digit_offsets[1:]
    ends = np.searchsorted(nonzero, end)
    some = np.flatnonzero(ends > np.searchsorted(nonzero, begin))  # numbers other than zero
    ones, negative = numbers.exponent[some] + end[some] - 1, numbers.negative[some]
    # in ``digits``, of each of them: its first digit, its last, and the last that a mantissa holds
    first = nonzero[np.searchsorted(nonzero, begin[some])]
    last = nonzero[ends[some] - 1]
    held = np.minimum(last, nonzero[np.searchsorted(nonzero, first + MANTISSA) - 1])
    significant, decade, lowest = last - first + 1, ones - first, ones - last

    values = Values(
        *(memory.full(len(numbers), fill, np.int64) for fill in (LARGEST_DECADE, 0, 0, 1))
    )
    mantissa = np.zeros(len(some), np.int64)
    for k in range(int((held - first).max(initial=-1)) + 1):
        more = np.flatnonzero(first + k <= held)
        mantissa[more] = mantissa[more] * 10 + digits[first[more] + k]
    place = np.clip(decade, -LARGEST_DECADE, LARGEST_DECADE) + LARGEST_DECADE
    values.shape[some] = np.minimum(significant, MOST_DIGITS) * DECADES + place
    values.mantissa[some], values.power[some] = np.where(negative, -mantissa, mantissa), ones - held

    zero, floats = np.ones(len(numbers), np.bool_), numbers.to_float64()
    zero[some] = False
    counts = {
        "first_digits": binned("first_digits", digits[first].astype(np.int64)),
        "positive_decades": binned("positive_decades", decade[~negative]),
        "negative_decades": binned("negative_decades", decade[negative]),
        "zeros": np.bincount(numbers.negative[zero], minlength=2),
        "magnitudes": magnitudes.counted(floats),
        "beyond_float64": np.array([np.isinf(floats).sum(), (floats[some] == 0).sum()]),
    }
    of_value = {"significant": significant, "integer": decade + 1, "fraction": -lowest}
    for name, count in of_value.items():
        counts[f"{name}_digits"] = binned(f"{name}_digits", count)
        counts[f"{name}_digits"][0] += zero.sum()
    return values.distinct(), counts


@dataclass(frozen=True, eq=False)
class Examples:
    """Values of every shape, without their sign, on which any representation can be tried, and how
    many numbers they stand for. Those with the ``PER_SHAPE`` smallest hashes are kept: the same in
    whatever order batches are merged. One of more than 18 digits has its first 18, then zeros, and a
    1 as the last digit of its shape.
    """

    shapes: Ints  # int64[4141], how many numbers each shape has
    values: Values  # of each shape those that are kept, in the order of shapes and hashes

    @classmethod
    def none(cls) -> Examples:
        """Return the examples of an empty corpus."""
        return cls(np.zeros(_SHAPES, np.int64), Values(*(np.empty(0, np.int64),) * 4))

    @classmethod
    def of(cls, values: Values) -> Examples:
        """Choose examples among distinct values."""
        counts = np.bincount(values.shape, values.times, _SHAPES).astype(np.int64)
        return cls._kept(counts, values._replace(mantissa=np.abs(values.mantissa)))

    @classmethod
    def _kept(cls, shapes: Ints, values: Values) -> Examples:
        """Choose examples among values that may repeat, ``PER_SHAPE`` of each shape."""
        values = values.distinct()
        values = values.chosen(np.lexsort((_hashes(values), values.shape)))
        begin = np.searchsorted(values.shape, values.shape)
        return cls(shapes, values.chosen(np.arange(len(begin)) - begin < PER_SHAPE))

    def __add__(self, other: Examples) -> Examples:
        both = zip(self.values, other.values, strict=True)
        values = Values(*(np.concatenate(pair) for pair in both))
        return Examples._kept(self.shapes + other.shapes, values)

    def numbers(self) -> Numbers:
        """Return the examples, all of them positive."""
        literals = []
        for shape, mantissa, power, _ in zip(*(one.tolist() for one in self.values), strict=True):
            missing = shape // DECADES - len(str(mantissa))
            is_cut = shape // DECADES > MANTISSA
            cut = f"{mantissa}{'0' * (missing - 1)}1e{power - missing}"
            literals.append(cut if is_cut else f"{mantissa}e{power}")
        return Numbers.parse(literals)

    def weights(self) -> npt.NDArray[np.float64]:
        """Return float64[m]: how many numbers each example stands for: those of a shape share its
        numbers as they occur among themselves.
        """
        shape = self.values.shape
        among = np.bincount(shape, self.values.times, _SHAPES)
        return np.asarray(self.values.times * self.shapes[shape] / among[shape])

    def to_json(self) -> list[Any]:
        """Return a row per shape: digits, decade, count, and the count of each example, as text."""
        rows: dict[int, dict[str, int]] = {}
        for shape, mantissa, power, times in zip(*(v.tolist() for v in self.values), strict=True):
            rows.setdefault(shape, {})[written(mantissa, power)] = times
        return [
            [shape // DECADES, shape % DECADES - LARGEST_DECADE, int(self.shapes[shape]), rows[shape]]
            for shape in np.flatnonzero(self.shapes).tolist()
        ]  # fmt: skip

    @classmethod
    def from_json(cls, data: list[Any]) -> Examples:
        """Read what :meth:`to_json` returned; ValueError for anything else."""
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
    """Return uint64[m], the finish of splitmix64."""
    with np.errstate(over="ignore"):
        mixed = values.mantissa.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed += values.power.astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def written(mantissa: int, power: int) -> str:
    """Write a value as short text: ``0.25``, ``-1500``, ``6.02214076e+23``."""
    value = Decimal(mantissa).scaleb(power) if abs(power) < 1000 else None
    if value is not None and -7 <= value.adjusted() < 16:
        return f"{value:f}"
    digits = str(abs(mantissa))
    point = f"{digits[0]}.{digits[1:]}" if len(digits) > 1 else digits
    return f"{'-' if mantissa < 0 else ''}{point}e{power + len(digits) - 1:+d}"


def read(text: str) -> tuple[int, int]:
    """Read what :func:`written` wrote: return mantissa and power."""
    sign, digits, power = Decimal(text).normalize(_EXACT).as_tuple()
    mantissa = int("".join(map(str, digits)))
    return (-mantissa if sign else mantissa), int(power)
