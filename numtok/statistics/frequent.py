"""The most frequent of many things in bounded memory: a Misra-Gries summary, as *Mergeable
Summaries* (Agarwal et al. 2012) merges them.

In: distinct pairs of integers with their counts. Out: :class:`Frequent`, up to ``capacity`` of
    them. Where no more than that were ever seen, it is exact. Else each count may be too low by up
    to ``missed``, which is at most total / (capacity + 1), in whatever order and groups the
    summaries were merged; what is not listed occurs at most ``missed`` times, so that whatever is
    more frequent is listed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from numtok.statistics.distinct import Counted, counted


@dataclass(frozen=True, eq=False)
class Frequent:
    """The most frequent of the pairs that were added.

    Attributes:
        pairs: with their counts, the most frequent first, then in order.
        capacity: the most pairs that are kept.
        missed: how much too low a count may be.
    """

    pairs: Counted
    capacity: int
    missed: int = 0

    @classmethod
    def of(cls, pairs: Counted, capacity: int, missed: int = 0) -> Frequent:
        """Of distinct pairs, as many as there are."""
        if len(pairs.times) > capacity:
            least = int(
                np.partition(pairs.times, len(pairs.times) - capacity - 1)[
                    len(pairs.times) - capacity - 1
                ]
            )
            kept = pairs.chosen(pairs.times > least)
            pairs, missed = kept._replace(times=kept.times - least), missed + least
        order = np.lexsort((pairs.second, pairs.first, -pairs.times))
        return cls(pairs.chosen(order), capacity, missed)

    def __add__(self, other: Frequent) -> Frequent:
        both = (
            np.concatenate([mine, theirs])
            for mine, theirs in zip(self.pairs, other.pairs, strict=True)
        )
        return Frequent.of(counted(*both), self.capacity, self.missed + other.missed)

    def to_json(self, written: Callable[[int, int], str]) -> dict[str, Any]:
        """``{"missed": 0, "counts": {"2019": 17, ...}}``, each pair as the text that ``written``
        gives it.
        """
        rows = zip(*(column.tolist() for column in self.pairs), strict=True)
        return {
            "missed": self.missed,
            "counts": {written(first, second): count for first, second, count in rows},
        }

    @classmethod
    def from_json(
        cls, data: dict[str, Any], capacity: int, read: Callable[[str], tuple[int, int]]
    ) -> Frequent:
        """The inverse of :meth:`to_json`."""
        rows = np.array(
            [(*read(text), count) for text, count in data["counts"].items()], np.int64
        ).reshape(-1, 3)
        return cls.of(Counted(*np.ascontiguousarray(rows.T)), capacity, int(data["missed"]))
