"""Time functions side by side, and hold what was measured.

Functions take turns, A B A B, so that a machine that slows down slows all of them. A ratio is the
median of the ratios of all turns. The garbage collector is off while the clock runs, as in
``timeit``, and the result of a function is freed before the clock stops.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

TURN = 0.1  # seconds of a turn; a quick function is called several times in a turn


class WrongResult(Exception):
    """A result differs from the reference, and is not worth timing."""


def check(right: bool, message: str) -> None:
    """Raise :class:`WrongResult` unless ``right``."""
    if not right:
        raise WrongResult(message)


@dataclass(frozen=True)
class Timing:
    """Seconds of each turn."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def low(self) -> float:
        return min(self.seconds)

    @property
    def high(self) -> float:
        return max(self.seconds)

    def over(self, other: Timing) -> float:
        """Return how many times as long as ``other`` this took: the median of the ratios of all
        turns.
        """
        return statistics.median(
            mine / theirs for mine, theirs in zip(self.seconds, other.seconds, strict=True)
        )


@dataclass(frozen=True)
class Row:
    """A line of a table.

    Attributes:
        name: what ran.
        timing: seconds of each turn.
        amount: millions of ``unit`` that one turn handles, so that amount / seconds is a rate; 0
            for no rate.
        unit: ``MB``, or ``M tokens``.
        ratio: time relative to numtok's own row.
    """

    name: str
    timing: Timing
    amount: float = 0.0
    unit: str = "MB"
    ratio: float | None = None

    @property
    def rate(self) -> float | None:
        return self.amount / self.timing.median if self.amount else None


@dataclass(frozen=True)
class Goal:
    """A budget: a floor that must hold, and an aim.

    Attributes:
        what: what is measured, in words.
        value: the measured value.
        floor, aim: the least value, or the largest if ``at_most``. The aim may be None.
        unit: such as ``x``, ``MB/s``, ``s``, ``MiB``.
        at_most: whether small values are good.
    """

    what: str
    value: float
    floor: float
    aim: float | None
    unit: str
    at_most: bool = False

    @property
    def verdict(self) -> str:
        if self.aim is not None and self._holds(self.aim):
            return "aim met"
        return "floor met" if self.floor_holds else "NOT MET"

    @property
    def floor_holds(self) -> bool:
        return self._holds(self.floor)

    def _holds(self, limit: float) -> bool:
        return self.value <= limit if self.at_most else self.value >= limit


@dataclass
class Section:
    """Results of one benchmark.

    Attributes:
        title: title of the table.
        rows: rows of the table.
        goals: budgets.
        checks: results that were compared before the clock started.
        notes: further remarks for readers.
        error: why nothing was timed.
    """

    title: str
    rows: list[Row] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    error: str | None = None

    def add(
        self,
        timings: Mapping[str, Timing],
        amount: float,
        ours: str | None = None,
        unit: str = "MB",
    ) -> None:
        """Add a row for each timing, with its ratio to that of ``ours``."""
        for name, timing in timings.items():
            ratio = timing.over(timings[ours]) if ours is not None and name != ours else None
            self.rows.append(Row(name, timing, amount, unit, ratio))


def seconds_of(function: Callable[[], object], calls: int = 1) -> float:
    """Return the seconds of one call, the mean of ``calls``."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        start = time.perf_counter()
        for _ in range(calls):
            function()
        return (time.perf_counter() - start) / calls
    finally:
        if was_enabled:
            gc.enable()


def alternate(
    functions: Mapping[str, Callable[[], object]], budget: float, least: int = 3, most: int = 31
) -> dict[str, Timing]:
    """Time functions in turns, after one or two calls of each to warm up.

    A quick function is called several times in its turn; else it would be measured with the caches
    that a slow one leaves behind. Each turn begins with another function, as the first one finds
    the caches as the garbage collector leaves them. Without a budget, a turn is one call, and
    garbage is not collected.

    Args:
        functions: functions without arguments, by name.
        budget: seconds for all together, about; decides the number of turns.
        least: turns, at the least.
        most: turns, at the most.
    """
    calls: dict[str, int] = {}
    cost = 0.0
    for name, function in functions.items():
        first = seconds_of(function)
        estimate = first if first > 1 else seconds_of(function)
        calls[name] = min(max(1, round(min(TURN, budget) / max(estimate, 1e-9))), 1000)
        cost += estimate * calls[name]
    turns = min(max(least, int(budget / cost)), most)
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    order = list(functions.items())
    for _ in range(turns):
        if budget:  # collecting takes a fifth of a second once torch is loaded
            gc.collect()
        for name, function in order:
            seconds[name].append(seconds_of(function, calls[name]))
        order.append(order.pop(0))
    return {name: Timing(tuple(measured)) for name, measured in seconds.items()}


def on_new_text(
    functions: Mapping[str, Callable[[int], object]], parts: int, warm_up: int = 2
) -> dict[str, Timing]:
    """Time functions in turns, each turn on another part of a text, so that no function meets a
    text that it has cached.

    Args:
        functions: functions that take the number of a part, by name.
        parts: parts of the text.
        warm_up: parts at the beginning that do not count.
    """
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    order = list(functions.items())
    for part in range(parts):
        for name, function in order:
            seconds[name].append(seconds_of(lambda: function(part)))  # noqa: B023
        order.append(order.pop(0))
    return {name: Timing(tuple(some[warm_up:])) for name, some in seconds.items()}
