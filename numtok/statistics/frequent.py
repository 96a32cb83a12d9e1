"""The most frequent of many things in bounded memory: a Misra-Gries summary, as *Mergeable
Summaries* (Agarwal et al. 2012) merges them. Exact up to ``capacity`` things; beyond, a count may
be too low by up to ``missed``, at most total / (capacity + 1), and so often what is not listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Frequent:
    """The most frequent of what was added."""

    capacity: int  # the most things that are kept
    counts: dict[str, int] = field(default_factory=dict)  # the most frequent first, then in order
    missed: int = 0  # how much too low a count may be

    @classmethod
    def of(cls, counts: Mapping[str, int], capacity: int, missed: int = 0) -> Frequent:
        """Of things, as many as there are."""
        ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        least = ordered[capacity][1] if len(ordered) > capacity else 0
        kept = {name: count - least for name, count in ordered if count > least}
        return cls(capacity, kept, missed + least)

    def __add__(self, other: Frequent) -> Frequent:
        both = Counter(self.counts) + Counter(other.counts)
        return Frequent.of(both, self.capacity, self.missed + other.missed)

    def to_json(self) -> dict[str, Any]:
        """``{"missed": 0, "counts": {"2019": 17, ...}}``."""
        return {"missed": self.missed, "counts": dict(self.counts)}

    @classmethod
    def from_json(cls, data: dict[str, Any], capacity: int) -> Frequent:
        """The inverse of :meth:`to_json`."""
        counts = {str(name): int(count) for name, count in data["counts"].items()}
        return cls.of(counts, capacity, int(data["missed"]))
