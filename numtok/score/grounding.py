"""Check the figures of an answer against its sources: each is found there, exactly, rounded, as a
percentage or in another scale; or computed from two figures of the sources; or nowhere.

All comparisons are exact (fractions). Floats only choose which figures are compared.
"""

from __future__ import annotations

import bisect
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from numtok.errors import NumtokError
from numtok.score.claims import KINDS, check_kinds
from numtok.score.computed import MOST_OPERANDS, Operand, Wanted, computed_from
from numtok.score.figures import (
    Found,
    Place,
    Quantity,
    as_float,
    direction,
    interval,
    metric_unit,
    position,
    read_figures,
    stated_scales,
)
from numtok.score.policy import Policy, policy_named

_COARSE = 0.06  # how far from a fraction the figures lie that may be a rounding of it
_RANKS = ("exact", "scale", "percent", "rounded")


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of an answer, and where the sources have it.

    Attributes:
        text: the figure as written.
        start, stop: its span in the answer, in characters.
        value: the exact value.
        found: the places in the sources; the two operands, or the one, of a computed figure; empty
            if the sources do not have it.
        how: ``exact``, ``scale`` (another scale or unit: 1.2 million for 1,200 in a table of
            thousands), ``percent`` (25% for 0.25), ``rounded``; of a computed figure ``sum``,
            ``difference``, ``product``, ``quotient``, ``percent of``, ``percent change`` or
            ``complement`` (of 100%); empty if it is not found.
        ignored: what it is if it claims nothing: ``year``, ``date``, ``list`` and so on.

    Example:
        >>> from numtok.score import grounded
        >>> figure = grounded("About 1.2 million", "1,234,567 were sold")[0]
        >>> figure.text, figure.how, figure.found[0].text
        ('1.2 million', 'rounded', '1,234,567')
    """

    text: str
    start: int
    stop: int
    value: Decimal | Fraction
    found: tuple[Place, ...] = ()
    how: str = ""
    ignored: str = ""

    @property
    def computed(self) -> bool:
        """Whether the figure is computed from figures of the sources."""
        return bool(self.how) and self.how not in _RANKS

    @property
    def ungrounded(self) -> bool:
        """Whether the figure is a claim that the sources do not have."""
        return not (self.found or self.ignored)


def grounded(
    answer: str,
    sources: str | Sequence[str],
    tolerance: str | float | Decimal = "rounding",
    policy: Policy | str = "default",
    ignore: Iterable[str] = KINDS,
    *,
    compute: bool = True,
    source_policy: Policy | str | None = None,
) -> list[Figure]:
    """Return every figure of an answer, with the places in the sources that have it.

    Args:
        answer: the text to check.
        sources: the texts that the answer may take figures from.
        tolerance: ``"rounding"`` allows what rounds to the digits written, and what "over" or
            "almost" allow; ``"exact"`` nothing; a number such as 0.01 so much of the source's figure.
        policy: how figures are written. ``percent``, ``units`` and ``currency`` say what may differ.
        ignore: the kinds of figures that are not held against the answer, all by default.
        compute: also look for sums, differences, products, quotients and changes of two figures; of
            the first 400 different ones of the sources, and a warning says so.
        source_policy: how figures of the sources are written; by default as those of the answer.

    Raises:
        NumtokError: for a tolerance, policy or kind that does not exist, or what is no text.

    Example:
        >>> text = "Sales were 1,234,567 in 2023, of which 25% online."
        >>> for figure in grounded("About 1.2 million, a quarter (25%) online, 17 abroad.", text):
        ...     print(figure.text, figure.how or "nowhere", [place.text for place in figure.found])
        1.2 million rounded ['1,234,567']
        25% exact ['25%']
        17 nowhere []
    """
    read_sources = Sources(sources, policy if source_policy is None else source_policy)
    figures = read_sources.check(answer, tolerance, policy, ignore, compute=compute)
    if read_sources.left_out and compute and any(one.ungrounded for one in figures):
        warnings.warn(
            f"of the figures of the sources the first {MOST_OPERANDS} different ones were tried as"
            f" operands of sums, quotients and the like, and {read_sources.left_out:,} were not",
            stacklevel=2,
        )
    return figures


class _Entry(NamedTuple):
    """A value that a figure of the sources may stand for."""

    size: Fraction
    quantity: Quantity
    how: str


class Sources:
    """Texts that answers are checked against, read once for many answers.

    Example:
        >>> sources = Sources(["12 of 48 voted"])
        >>> [figure.how for figure in sources.check("12 of 48 are 25%, not 30%")]
        ['exact', 'exact', 'percent of', '']
    """

    def __init__(self, sources: str | Sequence[str], policy: Policy | str = "default") -> None:
        texts = [sources] if isinstance(sources, str) else list(sources)
        self._policy = policy_named(policy)
        self._entries = defaultdict[str, list[_Entry]](list)  # by group, in order of size
        self._long: list[Quantity] = []  # figures without a size
        self._scales: set[int] = set()
        operands: dict[tuple[Fraction, bool, str], Operand] = {}  # the first of each value
        for number, text in enumerate(texts):
            if not isinstance(text, str):
                raise NumtokError(f"source {number + 1} is {type(text).__name__}, not a text")
            scales = stated_scales(text)
            self._scales.update(scales)
            for figure in read_figures(text, self._policy, number):
                self._add(figure, scales)
                if figure.size and figure.kind in ("", "year"):
                    operand = Operand(figure.size, as_float(figure.size), figure)
                    operands.setdefault((figure.size, figure.percent, figure.kind), operand)
        for entries in self._entries.values():
            entries.sort(key=_float_size)
        chosen = list(operands.values())[:MOST_OPERANDS]
        self._operands = sorted(chosen, key=lambda one: one.approximate)
        self.left_out = len(operands) - len(chosen)  # figures not tried as operands

    def _add(self, figure: Quantity, scales: Sequence[int]) -> None:
        if figure.size is None:
            self._long.append(figure)
            return
        group = "percent" if figure.percent else "plain"
        self._entries[group].append(_Entry(figure.size, figure, "exact"))
        for group, factor in _scaled(figure, scales):
            self._entries[group].append(_Entry(figure.size * factor, figure, "scale"))

    def check(
        self,
        answer: str,
        tolerance: str | float | Decimal = "rounding",
        policy: Policy | str = "default",
        ignore: Iterable[str] = KINDS,
        *,
        compute: bool = True,
    ) -> list[Figure]:
        """Return the figures of an answer, as :func:`grounded` does."""
        if not isinstance(answer, str):
            raise NumtokError(f"the answer is {type(answer).__name__}, not a text")
        chosen, ignored, allowed = policy_named(policy), check_kinds(ignore), _tolerance(tolerance)
        own_scales = stated_scales(answer)
        figures, direct = [], dict[Any, Found]()
        for quantity in read_figures(answer, chosen):
            one = quantity.answer
            kind = quantity.kind if quantity.kind in ignored else ""
            bounds = None if quantity.size is None else interval(answer, quantity, allowed)
            alike = quantity.without_place(), bounds  # tables repeat their figures
            if alike not in direct:
                direct[alike] = self._direct(quantity, bounds, chosen, own_scales)
            places, how = direct[alike]
            if not (places or quantity.kind) and compute and quantity.size is not None:
                places, how = self._computed(answer, quantity, allowed)
            figures.append(Figure(one.text, one.start, one.stop, one.value, places, how, kind))
        return figures

    def _direct(
        self,
        figure: Quantity,
        bounds: tuple[Fraction, Fraction] | None,
        policy: Policy,
        scales: Sequence[int],
    ) -> Found:
        """Return the places that have a figure, and how; those of the closest kind alone."""
        if bounds is None:
            same = [one.place for one in self._long if one.answer.value == figure.answer.value]
            return tuple(same), "exact" if same else ""
        low, high = bounds
        best: dict[tuple[int, bool], set[Place]] = {}
        for reading in _readings(figure, policy, scales):
            scaled = low * reading.factor, high * reading.factor
            slack = 0 if figure.step else _COARSE
            for entry in _between(self._entries[reading.group], *scaled, slack):
                how = _how(figure, entry, reading, *scaled)
                source = entry.quantity
                fits = reading.allows(source) and _may_found(figure, source)
                if how and fits and _is_same_kind(figure, source, policy):
                    other_sign = (figure.answer.value < 0) != (source.answer.value < 0)
                    rank = _RANKS.index(how), other_sign
                    best.setdefault(rank, set()).add(source.place)
        if not best:
            return (), ""
        rank = min(best)
        return tuple(sorted(best[rank], key=position)), _RANKS[rank[0]]

    def _computed(self, text: str, figure: Quantity, tolerance: str | Fraction) -> Found:
        low, high = interval(text, figure, tolerance)
        assert figure.size is not None
        powers = {0} if figure.percent else {0, *self._scales}
        change = direction(text, figure)
        scales = [Fraction(10) ** power for power in sorted(powers)]
        wanted = [
            Wanted(low / one, high / one, figure.size / one, figure, change) for one in scales
        ]
        return computed_from(wanted, self._operands)


def _between(entries: list[_Entry], low: Fraction, high: Fraction, slack: float) -> list[_Entry]:
    """Return the entries from ``low`` to ``high``, and some more; ``slack``: how far beyond."""
    start = bisect.bisect_left(entries, as_float(low) * (1 - slack), key=_float_size)
    stop = bisect.bisect_right(entries, as_float(high) * (1 + slack), lo=start, key=_float_size)
    return entries[start:stop]


def _float_size(entry: _Entry) -> float:
    return as_float(entry.size)


class _Reading(NamedTuple):
    """A way to read a figure: as a value of a group, times a factor.

    Attributes:
        group: "plain", "percent" or a metric unit.
        factor: what the figure is multiplied by.
        how: "exact", "scale" or "percent".
        allows: which figures of the sources may be meant.
    """

    group: str
    factor: Fraction
    how: str
    allows: Callable[[Quantity], bool]


def _readings(figure: Quantity, policy: Policy, scales: Sequence[int]) -> Iterator[_Reading]:
    """Yield the ways to read a figure of an answer."""
    one, mixed = Fraction(1), policy.percent in ("ignore", "either")
    if figure.percent:
        yield _Reading("percent", one, "exact", _any)
        if mixed:
            yield _Reading("plain", one, "exact", lambda source: source.is_bare)
        if policy.percent != "match":
            yield _Reading("plain", Fraction(1, 100), "percent", _is_share)
        return
    yield _Reading("plain", one, "exact", _any)
    for group, factor in _scaled(figure, scales):
        yield _Reading(group, factor, "scale", _any)
    if mixed and figure.is_bare:
        yield _Reading("percent", one, "exact", _any)
    if policy.percent != "match" and _is_share(figure):
        yield _Reading("percent", Fraction(100), "percent", _any)


def _scaled(figure: Quantity, scales: Sequence[int]) -> Iterator[tuple[str, Fraction]]:
    """Yield (group, factor) of the other scales that a figure may be meant in: powers of ten, of
    which the text names ``scales``, and the metric unit without prefix.
    """
    for power in (*figure.powers, *(() if figure.scaled or figure.kind else scales)):
        yield "plain", Fraction(10) ** power
    if not figure.answer.currency and (unit := metric_unit(figure.answer.unit)):
        yield unit[0], Fraction(10) ** unit[1]


def _any(_: Quantity) -> bool:
    return True


def _may_found(figure: Quantity, source: Quantity) -> bool:
    """Whether a figure of the sources may be what a claim goes back to: no label, date or name."""
    return bool(figure.kind) or source.kind in ("", "year", "count", "ordinal")


def _is_share(figure: Quantity) -> bool:
    """Whether a figure may be a share of one: no whole number, no money, no measure."""
    one = figure.answer
    measures = one.currency or metric_unit(one.unit)
    return figure.size is not None and figure.size.denominator != 1 and not measures


def _how(
    figure: Quantity, entry: _Entry, reading: _Reading, low: Fraction, high: Fraction
) -> str | None:
    """Return how a value of the sources agrees with a figure, None if it does not."""
    assert figure.size is not None
    size = figure.size * reading.factor
    if size == entry.size:
        return entry.how if reading.how == "exact" else reading.how
    if low <= entry.size <= high:
        return "rounded"
    step = entry.quantity.step
    if not figure.step and 0 < step * 10 <= entry.size and abs(size - entry.size) <= step / 2:
        return "rounded"  # 1/3 for 33%
    return None


def _is_same_kind(figure: Quantity, source: Quantity, policy: Policy) -> bool:
    """Whether currency and unit agree where the policy asks for it; km and m are one unit."""
    one, other = figure.answer, source.answer
    return (policy.currency != "match" or one.currency == other.currency) and (
        policy.units != "match" or _base_unit(one.unit) == _base_unit(other.unit)
    )


def _base_unit(unit: str) -> str:
    return (metric_unit(unit) or (unit, 0))[0]


def _tolerance(tolerance: str | float | Decimal) -> str | Fraction:
    if tolerance in ("rounding", "exact"):
        return str(tolerance)
    try:
        value = Fraction(str(tolerance))
    except (ValueError, ZeroDivisionError):
        value = Fraction(-1)
    if not 0 <= value < 1:
        raise NumtokError(
            f"tolerance={tolerance!r} is neither 'rounding', 'exact' nor a number below 1, such as 0.01"
        )
    return value
