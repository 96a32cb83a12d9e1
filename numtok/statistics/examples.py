"""Examples of the numbers of each shape, on which any representation can be tried afterwards, with
how many they stand for.

In: the keys of numbers (:class:`numtok.statistics.digits.Keys`). Out: :class:`Examples`. A *shape*
    is a number of significant digits, 0 to 19, and a decade, -50 to 50, both ends open; zero has
    none of either. Of each shape, the magnitudes with the ``PER_SHAPE`` smallest hashes are kept,
    each with its exact count, and the count of all. That needs no order: however batches are
    merged, the same are kept. A number of more than 18 digits is an example with its first 18 and a
    1 behind them.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.kernels import kernel
from numtok.numbers.numbers import Numbers
from numtok.statistics.digits import LARGEST_DECADE, LONG, MANTISSA, Keys
from numtok.statistics.distinct import Counted, counted, mixed

Ints = npt.NDArray[np.int64]

PER_SHAPE = 4
_DECADES = 2 * LARGEST_DECADE + 1
_SHAPES = (LONG + 1) * _DECADES
_POWERS = np.array([10**power for power in range(MANTISSA + 1)], np.int64)


@dataclass(frozen=True, eq=False)
class Examples:
    """What is kept of the numbers' values, without their sign.

    Attributes:
        shapes: int64[2020], how many numbers each shape has: ``shapes[significant * 101 + decade +
            50]``.
        shape: int64[m], of each example, ascending.
        values: their mantissas and powers, and how often each occurs.
    """

    shapes: Ints
    shape: Ints
    values: Counted

    @classmethod
    def none(cls) -> Examples:
        """Of no numbers."""
        return cls(np.zeros(_SHAPES, np.int64), np.empty(0, np.int64), Counted.none())

    @classmethod
    def of(cls, keys: Keys, distinct: Counted) -> Examples:
        """Of all numbers, and the distinct values of those that are not longer than a mantissa."""
        shapes, long = np.zeros(_SHAPES, np.int64), keys.significant == LONG
        examples = cls._chosen(shapes, distinct, None)
        if not long.any():
            return examples
        cut = counted(np.abs(keys.mantissa[long]), keys.power[long])
        return examples + cls._chosen(np.zeros(_SHAPES, np.int64), cut, LONG)

    @classmethod
    def _chosen(cls, shapes: Ints, distinct: Counted, significant: int | None) -> Examples:
        magnitude = np.abs(distinct.first)
        digits = np.searchsorted(_POWERS, magnitude, side="right")
        decade = np.clip(distinct.second + digits - 1, -LARGEST_DECADE, LARGEST_DECADE)
        shape = (
            np.where(digits == 0, 0, digits if significant is None else significant) * _DECADES
            + np.where(digits == 0, 0, decade)
            + LARGEST_DECADE
        )
        np.add.at(shapes, shape, distinct.times)
        return cls.kept(shapes, shape, distinct._replace(first=magnitude))

    @classmethod
    def kept(cls, shapes: Ints, shape: Ints, values: Counted) -> Examples:
        """Of values that may be there more than once, those that are kept."""
        place, hashes = (
            memory.full(_SHAPES * PER_SHAPE, -1, np.int64),
            memory.empty(_SHAPES * PER_SHAPE, np.uint64),
        )
        counts = memory.full(_SHAPES * PER_SHAPE, 0, np.int64)
        _keep(shape, values, place, hashes, counts)
        filled = np.flatnonzero(place >= 0)
        chosen = place[filled]
        return cls(shapes, shape[chosen], values.chosen(chosen)._replace(times=counts[filled]))

    def __add__(self, other: Examples) -> Examples:
        values = Counted(
            *(
                np.concatenate([mine, theirs])
                for mine, theirs in zip(self.values, other.values, strict=True)
            )
        )
        return Examples.kept(
            self.shapes + other.shapes, np.concatenate([self.shape, other.shape]), values
        )

    def numbers(self) -> Numbers:
        """The examples, all of them positive."""
        rows = zip(
            self.shape.tolist(),
            self.values.first.tolist(),
            self.values.second.tolist(),
            strict=True,
        )
        literals = []
        for shape, mantissa, power in rows:
            padding = MANTISSA - len(str(mantissa)) if shape >= LONG * _DECADES else 0
            literals.append(
                f"{mantissa}{'0' * padding}1e{power - padding - 1}"
                if shape >= LONG * _DECADES
                else f"{mantissa}e{power}"
            )
        return Numbers.parse(literals)

    def weights(self) -> npt.NDArray[np.float64]:
        """float64[m]: how many numbers each example stands for: those of a shape share its numbers
        as they occur among themselves.
        """
        among = np.zeros(_SHAPES, np.int64)
        np.add.at(among, self.shape, self.values.times)
        return np.asarray(self.values.times * self.shapes[self.shape] / among[self.shape])

    def to_json(self) -> list[Any]:
        """A row per shape: digits, decade, count, and the count of each example, as text."""
        rows: dict[int, dict[str, int]] = {}
        for shape, mantissa, power, count in zip(
            self.shape.tolist(), *(column.tolist() for column in self.values), strict=True
        ):
            rows.setdefault(shape, {})[written(mantissa, power)] = count
        found = np.flatnonzero(self.shapes).tolist()
        return [
            [
                shape // _DECADES,
                shape % _DECADES - LARGEST_DECADE,
                int(self.shapes[shape]),
                rows[shape],
            ]
            for shape in found
        ]

    @classmethod
    def from_json(cls, data: list[Any]) -> Examples:
        """The inverse of :meth:`to_json`."""
        shapes, rows = np.zeros(_SHAPES, np.int64), []
        for significant, decade, count, values in data:
            shape = significant * _DECADES + decade + LARGEST_DECADE
            shapes[shape] = count
            rows += [(shape, *read(text), times) for text, times in values.items()]
        columns = np.ascontiguousarray(np.array(rows, np.int64).reshape(-1, 4).T)
        return cls.kept(shapes, columns[0], Counted(*columns[1:]))


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


@kernel
def _keep(shape, values, place, hashes, counts):  # type: ignore[no-untyped-def]
    """Of each shape the values with the smallest hashes: where they stand, in the order of their
    hashes, and how often they occur.
    """
    for i in range(shape.size):
        value = mixed(values.first[i], values.second[i])
        first = shape[i] * PER_SHAPE
        at, stop = first, first + PER_SHAPE
        while at < stop and place[at] >= 0 and hashes[at] < value:
            at += 1
        if at == stop:
            continue
        same = (
            place[at] >= 0 and hashes[at] == value
        )  # a shape and a mantissa give the power, and the hash is one to one in the mantissa
        if same:
            counts[at] += values.times[i]
            continue
        for k in range(stop - 1, at, -1):
            place[k], hashes[k], counts[k] = place[k - 1], hashes[k - 1], counts[k - 1]
        place[at], hashes[at], counts[at] = i, value, values.times[i]
