"""Counts that add up in any order: histograms under their labels, and the most frequent of many
things.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.representations.magnitudes import BINS

Ints = npt.NDArray[np.int64]

MOST_DIGITS = 40  # the last bin is for as many or more
LARGEST_DECADE = 50  # the same, in both directions
FIRST_YEAR, LAST_YEAR = 1000, 2100
_DECADES = range(-LARGEST_DECADE, LARGEST_DECADE + 1)

# The labels of each histogram's bins, in their order.
LABELS: dict[str, range | tuple[str, ...]] = {
    # numbers by digits from the first to the last that is not zero; 0 for zero
    "significant_digits": range(MOST_DIGITS + 1),
    "integer_digits": range(MOST_DIGITS + 1),  # before and after the point that the value needs
    "fraction_digits": range(MOST_DIGITS + 1),
    "first_digits": range(10),  # that are not zero; nothing at 0
    "positive_decades": _DECADES,  # by the power of ten of the first digit; zero is in neither
    "negative_decades": _DECADES,
    "zeros": ("0", "-0"),
    "magnitudes": range(BINS),  # see :mod:`numtok.representations.magnitudes`
    "beyond_float64": ("infinite", "zero"),  # as float64, and in no bin of ``magnitudes``
    # each number has one form, and any of the marks
    "forms": ("plain", "grouped", "decimal", "grouped decimal", "scientific"),
    "marks": (
        "minus", "plus", "minus U+2212", "parentheses",
        "leading zeros", "trailing zeros", "leading point", "other digits", "minus after a word",
    ),
    # four ASCII digits without a sign, by decade
    "years": range(FIRST_YEAR, LAST_YEAR + 10, 10),
    "side_by_side": (  # see :mod:`numtok.statistics.surfaces`
        "decimal comma", "grouped by space", "grouped by thin space", "grouped by apostrophe",
        "grouped in lakhs",
    ),
    # documents by how many numbers they have: 0, 1, 2 to 3, 4 to 7, ...
    "per_document": ("0", *(str(1 << bin) for bin in range(47))),
}  # fmt: skip


class Histograms(dict[str, Ints]):
    """Counts, int64, by the names of ``LABELS``; all 0 for a name that is not given."""

    def __init__(self, counts_by_name: Mapping[str, Ints]) -> None:
        labels = LABELS.items()
        super().__init__(
            {name: counts_by_name.get(name, np.zeros(len(of), np.int64)) for name, of in labels}
        )

    def __add__(self, other: Histograms) -> Histograms:
        return Histograms({name: self[name] + other[name] for name in LABELS})

    def labelled(self, name: str) -> dict[str, int]:
        """Return the counts of a histogram by label, without those that are 0."""
        counts = self[name]
        return {str(LABELS[name][k]): int(counts[k]) for k in np.flatnonzero(counts).tolist()}

    def to_json(self) -> dict[str, dict[str, int]]:
        """Return the counts by name and label, without empty bins."""
        return {name: self.labelled(name) for name in LABELS}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Histograms:
        """Read what :meth:`to_json` returned; ValueError for a label that does not exist."""
        counters = cls({})
        for name, labels in LABELS.items():
            for label, count in data[name].items():
                counters[name][labels.index(int(label) if isinstance(labels, range) else label)] = (
                    count
                )
        return counters


def binned(name: str, values: Ints) -> Ints:
    """Return a histogram whose labels are a range of numbers; what is beyond it is in the last bin."""
    labels = LABELS[name]
    first, last = int(labels[0]), int(labels[-1])
    return np.bincount(np.clip(values, first, last) - first, minlength=len(labels))


@dataclass(frozen=True)
class Frequent:
    """The most frequent of what was added, in bounded memory: a Misra-Gries summary, as *Mergeable
    Summaries* (Agarwal et al. 2012) merges them. Exact up to ``capacity`` things; beyond, a count
    may be too low by up to ``missed``, at most total / (capacity + 1), and so often what is not
    listed.
    """

    capacity: int  # the most things that are kept
    counts: dict[str, int] = field(default_factory=dict)  # the most frequent first, then in order
    missed: int = 0  # how much too low a count may be

    @classmethod
    def of(cls, counts: Mapping[str, int], capacity: int, missed: int = 0) -> Frequent:
        """Build a counter from exact counts, keeping the ``capacity`` most frequent."""
        ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        least = ordered[capacity][1] if len(ordered) > capacity else 0
        kept = {name: count - least for name, count in ordered if count > least}
        return cls(capacity, kept, missed + least)

    def __add__(self, other: Frequent) -> Frequent:
        both = Counter(self.counts) + Counter(other.counts)
        return Frequent.of(both, self.capacity, self.missed + other.missed)

    def to_json(self) -> dict[str, Any]:
        """Return ``{"missed": 0, "counts": {"2019": 17, ...}}``."""
        return {"missed": self.missed, "counts": dict(self.counts)}

    @classmethod
    def from_json(cls, data: dict[str, Any], capacity: int) -> Frequent:
        """Read what :meth:`to_json` returned."""
        counts = {str(name): int(count) for name, count in data["counts"].items()}
        return cls.of(counts, capacity, int(data["missed"]))
