"""The histograms that statistics hold, and what they are in JSON: labels in place of the places in
an array, and nothing for empty bins.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.representations.magnitudes import BINS

Ints = npt.NDArray[np.int64]

MOST_DIGITS = 40  # the last bin is for as many or more
LARGEST_DECADE = 50  # the same, in both directions
FIRST_YEAR, LAST_YEAR = 1000, 2100
FORMS = ("plain", "grouped", "decimal", "grouped decimal", "scientific")
MARKS = (
    "minus",
    "plus",
    "minus U+2212",
    "parentheses",
    "leading zeros",
    "trailing zeros",
    "leading point",
    "other digits",
)
SIDE_BY_SIDE = (
    "decimal comma",
    "grouped by space",
    "grouped by thin space",
    "grouped by apostrophe",
    "grouped in lakhs",
)
PER_DOCUMENT = ("0", *(str(1 << bin) for bin in range(47)))


class _Axis(NamedTuple):
    """What a histogram is called in JSON, and its bins: as many as there are names, or ``size``
    from ``first`` on in steps.
    """

    name: str
    size: int = 0
    names: tuple[str, ...] = ()
    first: int = 0
    step: int = 1

    def label(self, place: int) -> str:
        return self.names[place] if self.names else str(self.first + self.step * place)

    def place(self, label: str) -> int:
        if self.names:
            return self.names.index(label)
        place = (int(label) - self.first) // self.step
        if not 0 <= place < self.size:
            raise IndexError(f"{self.name} has no {label!r}")
        return place


class Histograms(NamedTuple):
    """Counts, int64 each.

    Attributes:
        significant: [41] numbers by digits from the first to the last that is not zero; 0 for zero.
        integer, fraction: [41], by digits before and after the point that the value needs.
        first: [10], by the first digit that is not zero; nothing at 0.
        positive, negative: [101], by decade, -50 (or less) to 50 (or more); zero is in neither.
        zeros: [2], zero and minus zero.
        magnitude: [65504], see :mod:`numtok.representations.magnitudes`.
        beyond: [2], numbers other than zero that are infinite as float64, and zero as float64; in
            no bin of ``magnitude``.
        forms: [5], each number has one.
        marks: [8], of which a number may have several.
        years: [111], four ASCII digits without a sign, 1000 to 2100, by decade.
        side_by_side: [5], see :mod:`numtok.statistics.surfaces`.
        per_document: [48], documents by how many numbers they have: 0, 1, 2 to 3, 4 to 7, ...
    """

    significant: Ints
    integer: Ints
    fraction: Ints
    first: Ints
    positive: Ints
    negative: Ints
    zeros: Ints
    magnitude: Ints
    beyond: Ints
    forms: Ints
    marks: Ints
    years: Ints
    side_by_side: Ints
    per_document: Ints

    @classmethod
    def none(cls) -> Histograms:
        """Of no numbers."""
        return cls(*(np.zeros(axis.size or len(axis.names), np.int64) for axis in _AXES))

    def __add__(self, other: Any) -> Histograms:  # of tuples, it would join them
        return Histograms(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def to_json(self) -> dict[str, dict[str, int]]:
        """By name and label: ``magnitudes`` by the leading 16 bits of the double, ``*_decades`` by
        the power of ten, ``years`` by decade.
        """
        return {
            axis.name: {axis.label(k): int(counts[k]) for k in np.flatnonzero(counts).tolist()}
            for axis, counts in zip(_AXES, self, strict=True)
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Histograms:
        """The inverse of :meth:`to_json`."""
        made = cls.none()
        for axis, counts in zip(_AXES, made, strict=True):
            for label, count in data[axis.name].items():
                counts[axis.place(label)] = count
        return made


_AXES = (
    _Axis("significant_digits", MOST_DIGITS + 1),
    _Axis("integer_digits", MOST_DIGITS + 1),
    _Axis("fraction_digits", MOST_DIGITS + 1),
    _Axis("first_digits", 10),
    _Axis("positive_decades", 2 * LARGEST_DECADE + 1, first=-LARGEST_DECADE),
    _Axis("negative_decades", 2 * LARGEST_DECADE + 1, first=-LARGEST_DECADE),
    _Axis("zeros", names=("0", "-0")),
    _Axis("magnitudes", BINS),
    _Axis("beyond_float64", names=("infinite", "zero")),
    _Axis("forms", names=FORMS),
    _Axis("marks", names=MARKS),
    _Axis("years", (LAST_YEAR - FIRST_YEAR) // 10 + 1, first=FIRST_YEAR, step=10),
    _Axis("side_by_side", names=SIDE_BY_SIDE),
    _Axis("per_document", names=PER_DOCUMENT),
)
