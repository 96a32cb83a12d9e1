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
    "minus", "plus", "minus U+2212", "parentheses",
    "leading zeros", "trailing zeros", "leading point", "other digits",
)  # fmt: skip
SIDE_BY_SIDE = (
    "decimal comma", "grouped by space", "grouped by thin space", "grouped by apostrophe",
    "grouped in lakhs",
)  # fmt: skip
PER_DOCUMENT = ("0", *(str(1 << bin) for bin in range(47)))


class Histograms(NamedTuple):
    """Counts, int64 each."""

    # [41] numbers by digits from the first to the last that is not zero; 0 for zero
    significant: Ints
    integer: Ints  # [41], by digits before and after the point that the value needs
    fraction: Ints
    first: Ints  # [10], by the first digit that is not zero; nothing at 0
    positive: Ints  # [101], by decade, -50 (or less) to 50 (or more); zero is in neither
    negative: Ints
    zeros: Ints  # [2], zero and minus zero
    magnitude: Ints  # [65504], see :mod:`numtok.representations.magnitudes`
    # [2], numbers other than zero that are infinite as float64, and zero as float64; in no bin of
    # ``magnitude``
    beyond: Ints
    forms: Ints  # [5], each number has one
    marks: Ints  # [8], of which a number may have several
    years: Ints  # [111], four ASCII digits without a sign, 1000 to 2100, by decade
    side_by_side: Ints  # [5], see :mod:`numtok.statistics.surfaces`
    per_document: Ints  # [48], documents by how many numbers they have: 0, 1, 2 to 3, 4 to 7, ...

    @classmethod
    def none(cls) -> Histograms:
        """Of no numbers."""
        return cls(*(np.zeros(len(labels), np.int64) for labels in LABELS.values()))

    def __add__(self, other: Any) -> Histograms:  # of tuples, it would join them
        return Histograms(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def to_json(self) -> dict[str, dict[str, int]]:
        """By name and label: ``magnitudes`` by the leading 16 bits of the double, ``*_decades`` by
        the power of ten, ``years`` by decade.
        """
        return {
            name: {str(labels[k]): int(counts[k]) for k in np.flatnonzero(counts).tolist()}
            for (name, labels), counts in zip(LABELS.items(), self, strict=True)
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Histograms:
        """The inverse of :meth:`to_json`; ValueError for a label that there is not."""
        made = cls.none()
        for (name, labels), counts in zip(LABELS.items(), made, strict=True):
            for label, count in data[name].items():
                counts[labels.index(int(label) if isinstance(labels, range) else label)] = count
        return made


# What each is called in JSON, and its bins, in the order of the fields.
LABELS: dict[str, range | tuple[str, ...]] = {
    "significant_digits": range(MOST_DIGITS + 1),
    "integer_digits": range(MOST_DIGITS + 1),
    "fraction_digits": range(MOST_DIGITS + 1),
    "first_digits": range(10),
    "positive_decades": range(-LARGEST_DECADE, LARGEST_DECADE + 1),
    "negative_decades": range(-LARGEST_DECADE, LARGEST_DECADE + 1),
    "zeros": ("0", "-0"),
    "magnitudes": range(BINS),
    "beyond_float64": ("infinite", "zero"),
    "forms": FORMS,
    "marks": MARKS,
    "years": range(FIRST_YEAR, LAST_YEAR + 10, 10),
    "side_by_side": SIDE_BY_SIDE,
    "per_document": PER_DOCUMENT,
}
