"""A report: the statistics of a corpus, what the representations would lose of them, and which one
suits, as JSON for programs, and as tables of text, which the terminal and the page show alike.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from numtok.representations import Representation, XVal
from numtok.statistics.histograms import FIRST_YEAR, FORMS, LARGEST_DECADE, MARKS, MOST_DIGITS
from numtok.statistics.losses import Loss, fitted_xval, losses
from numtok.statistics.recommend import Recommendation, recommend
from numtok.statistics.statistics import Statistics

# of the counts at either end of an axis are shown as one, lest few outliers take it all
TAIL = 0.02
LISTED = 12  # values and units
# Right after a number these say nothing of its unit.
_WORDS = """
a after all also an and are as at be been before but by das de der des die du e el en et for from had
has have he her his i if in is it its la las le les los mit no not o of on one or over per que s she
so than that the their there they this to two und under until up van von was were when where which
while who will with y
"""
FUNCTION_WORDS = frozenset(_WORDS.split())
LOSS_HEADINGS = (
    "representation", "exact", "rounded", "worst error", "clipped", "near zero", "left as text",
    "tokens", "bytes",
)  # fmt: skip


@dataclass(frozen=True)
class Report:
    """What there is to tell about a corpus."""

    statistics: Statistics
    losses: tuple[Loss, ...]  # of the representations that were asked for
    recommendation: Recommendation  # among all that are registered
    xval: XVal  # with the scale that it wants

    @classmethod
    def of(
        cls, statistics: Statistics, representations: Sequence[Representation] | None = None
    ) -> Report:
        """Of the statistics; ``representations`` are compared, or all that are registered."""
        known = losses(statistics)
        compared = known if representations is None else losses(statistics, representations)
        advice = recommend(statistics, known)
        return cls(statistics, tuple(compared), advice, fitted_xval(statistics))

    def to_json(self) -> dict[str, Any]:
        """``statistics`` as :meth:`Statistics.from_json` takes them, ``representations``,
        ``recommendation``, and the ``scale`` and ``clip`` of xVal.
        """
        return {
            "statistics": self.statistics.to_json(),
            "representations": [loss.to_json() for loss in self.losses],
            "recommendation": dataclasses.asdict(self.recommendation),
            "scale": self.xval.scale,
            "clip": self.xval.clip,
        }


class Table(NamedTuple):
    """A section."""

    name: str
    remark: str
    label: str  # what the rows are called by
    columns: tuple[str, ...]  # what their counts are
    rows: list[tuple[Any, ...]]  # of a label and as many counts
    total: int = 0  # what the counts are shares of


def percent(count: float, total: float) -> str:
    """``12.3%``; ``<0.1%`` rather than 0 for what is there."""
    share = count / total if total else 0.0
    return "<0.1%" if 0 < share < 0.001 else f"{100 * share:.1f}%"


def loss_cells(loss: Loss) -> tuple[str, ...]:
    """A row below ``LOSS_HEADINGS``; ``-`` for nothing."""

    def count(value: int) -> str:
        return percent(value, loss.numbers) if value else "-"

    def figure(value: float | None) -> str:
        return "-" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")

    error = f"{loss.worst_error:.1g}" if loss.rounded else "-"
    lost = (loss.clipped, loss.vanishing, loss.left_as_text)
    held = (count(loss.exact), count(loss.rounded), error)
    return (loss.name, *held, *map(count, lost), figure(loss.tokens), figure(loss.bytes))


def overview(report: Report) -> list[tuple[str, str, str]]:
    """(what, figure, remark) of the corpus as a whole."""
    of, total = report.statistics, report.statistics.numbers
    without = f"{of.without_text:,} of them without text" if of.without_text else ""
    each = f"{total / of.documents:.1f} per document" if of.documents else ""
    rows = [("documents", f"{of.documents:,}", without), ("numbers", f"{total:,}", each)]
    if not total:
        return rows
    whole = int(of.counts.fraction[0])
    fractions = f"{percent(total - whole, total)} have a fraction"
    zeros = f"{percent(int(of.counts.zeros.sum()), total)} are zero"
    rows.append(("integers", percent(whole, total), fractions))
    rows.append(("negative", percent(of.negative, total), zeros))
    if of.smallest is not None and of.largest is not None:
        rows.append(("range", f"{of.smallest:.6g} to {of.largest:.6g}", ""))
    if of.counts.magnitude.any():
        low, middle, high = of.quantiles((0.01, 0.5, 0.99))
        spread = f"the median; 98% are from {low:.3g} to {high:.3g}, zeros aside"
        rows.append(("typical magnitude", f"{middle:.3g}", spread))
    if of.bytes:
        rows.append(("share of the text", percent(of.number_bytes, of.bytes), "of its bytes"))
    if (costs := of.tokens).numbers:
        share = f"{percent(costs.before, costs.tokens)} of all tokens"
        told = f"by the tokenizer alone: {share}, of {costs.bytes:,} bytes of text"
        rows.append(("tokens per number", f"{costs.before / costs.numbers:.2f}", told))
    return rows


def charts(of: Statistics) -> list[Table]:
    """Magnitudes, first digits, digits, years, and numbers per document."""
    counts, first = of.counts, int(of.counts.first.sum())
    decades = np.stack([counts.positive, counts.negative])
    powers = [power_of_ten(n - LARGEST_DECADE) for n in range(decades.shape[1])]
    benford = [round(first * math.log10(1 + 1 / digit)) for digit in range(1, 10)]
    by_digit = [(f"{n}", int(counts.first[n]), benford[n - 1]) for n in range(1, 10)]
    digits = np.stack([counts.significant, counts.integer, counts.fraction])
    names = [f"{n}" if n < MOST_DIGITS else f"{n} or more" for n in range(MOST_DIGITS + 1)]
    years = [f"{FIRST_YEAR + 10 * n}s" for n in range(len(counts.years))]
    per_document = ["0", "1", *(f"{1 << bin} to {(2 << bin) - 1}" for bin in range(1, 62))]
    of_value = ("significant", "integer", "fraction")
    expected = "other than zero, and what Benford's law expects"
    # fmt: off
    return [
        Table("Magnitudes", "by power of ten, zero aside", "from", ("positive", "negative"),
              _axis(decades, powers)),
        Table("First digits", expected, "digit", ("numbers", "expected"),
              by_digit if first else [], first),
        Table("Significant digits", "from the first to the last that is not zero", "digits",
              of_value, _axis(digits, names, fold=False)),
        Table("Years", "four digits from 1000 to 2100, by decade", "decade", ("numbers",),
              _axis(counts.years[None], years), of.written),
        Table("Numbers per document", "", "numbers", ("documents",),
              _axis(counts.per_document[None], per_document, fold=False)),
    ]
    # fmt: on


def lists(of: Statistics) -> list[Table]:
    """How numbers are written, the most frequent values, and what stands after them."""
    forms = _there(FORMS, of.counts.forms) + _there(MARKS, of.counts.marks)
    values = list(of.values.counts.items())[:LISTED]
    units = [unit for unit in of.units.counts.items() if unit[0].lower() not in FUNCTION_WORDS]
    told = "each number has one form, and any of the marks"
    behind = "the word or symbol right behind a number, function words aside"
    return [
        Table("Written forms", told, "as written", ("numbers",), forms, of.written),
        Table("Most frequent values", "", "value", ("numbers",), values, of.numbers),
        Table("Units", behind, "unit", ("numbers",), units[:LISTED], of.in_text),
    ]


def power_of_ten(decade: int) -> str:
    """``0.01``, ``1``, ``1000``, ``1e5``."""
    if abs(decade) == LARGEST_DECADE:
        return f"1e{decade} and {'more' if decade > 0 else 'less'}"
    return f"{10.0**decade:.{max(0, -decade)}f}" if -4 <= decade <= 4 else f"1e{decade}"


def remarks(report: Report) -> list[str]:
    """Sentences about what looks odd, what could not be seen, and the scale of xVal."""
    of, said = report.statistics, [*report.recommendation.remarks]
    if of.in_text < of.numbers:
        some = "" if not of.in_text else f" of {of.numbers - of.in_text:,} of them"
        said.append(
            f"Encoded files do not tell what stands around numbers{some}: their units, their share"
            " of the text, and the numbers that were left as text."
        )
    if of.written < of.numbers:
        some = "" if not of.written else f" of {of.numbers - of.written:,} numbers"
        said.append(
            f"The written form{some} is not known, nor digits beyond float64: the file was encoded"
            " without keep_text=True."
        )
    if bound := max(of.values.missed, of.units.missed):
        said.append(
            "There are more values and units than are kept; counts of the most frequent ones are"
            f" up to {bound:,} too low."
        )
    if of.numbers:
        scale = f"numbers='xval' scale={report.xval.scale!r} clip={report.xval.clip!r}"
        said.append(f"The scale that xval wants, and that encode fits to this text: {scale}")
    return said


def _axis(counts: Any, labels: Sequence[str], fold: bool = True) -> list[tuple[Any, ...]]:
    """Rows for int64[columns, n], from the first that holds something to the last; with ``fold``,
    what is far out, up to ``TAIL`` at either end, as one row.
    """
    total = counts.sum(0)
    there = np.flatnonzero(total)
    if not len(there):
        return []
    first, last = int(there[0]), int(there[-1])
    low, high, below = first, last, np.cumsum(total)
    if fold:
        few = TAIL * total.sum()
        low = int(np.searchsorted(below, few, "right"))
        high = int(np.searchsorted(below, total.sum() - few))
        # one alone is shown as itself
        low, high = (low if low > first + 1 else first), (high if high < last - 1 else last)
    rows = [(labels[k], *counts[:, k].tolist()) for k in range(low, high + 1)]
    if low > first:
        rows.insert(0, (f"below {labels[low]}", *counts[:, :low].sum(1).tolist()))
    if high < last:
        rows.append((f"{labels[high + 1]} and more", *counts[:, high + 1 :].sum(1).tolist()))
    return rows


def _there(names: Sequence[str], counts: Any) -> list[tuple[Any, ...]]:
    rows = [(name, n) for name, n in zip(names, counts.tolist(), strict=True) if n]
    return sorted(rows, key=lambda row: -row[1])
