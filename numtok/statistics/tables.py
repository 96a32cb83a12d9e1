"""A report as tables of plain text, which the terminal and the page show alike.

In: :class:`~numtok.statistics.report.Report`. Out: for each section, rows of a label and counts,
    and shares as text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from numtok.statistics.histograms import FIRST_YEAR, FORMS, LARGEST_DECADE, MARKS, MOST_DIGITS
from numtok.statistics.losses import Loss
from numtok.statistics.report import Report
from numtok.statistics.statistics import Statistics

# of the counts at either end of an axis are shown as one, lest few outliers take it all
TAIL = 0.02

# Right behind a number these say nothing of its unit.
_WORDS = """
a after all also an and are as at be been before but by das de der des die du e el en et for from had
has have he her his i if in is it its la las le les los mit no not o of on one or over per que s she
so than that the their there they this to two und under until up van von was were when where which
while who will with y
"""
FUNCTION_WORDS = frozenset(_WORDS.split())
LOSS_HEADINGS = (
    "representation",
    "exact",
    "rounded",
    "worst error",
    "clipped",
    "near zero",
    "left as text",
    "tokens",
    "bytes",
    "compact",
)


class Row(NamedTuple):
    """A label and its counts."""

    label: str
    counts: tuple[int, ...]


class Table(NamedTuple):
    """A section.

    Attributes:
        name, remark: what it shows.
        label, columns: what the rows are called by, and what their counts are.
        rows: of as many counts as there are columns.
        total: what the counts are shares of.
    """

    name: str
    remark: str
    label: str
    columns: tuple[str, ...]
    rows: list[Row]
    total: int = 0


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
    costs = (loss.tokens, loss.bytes, loss.compact_bytes)
    return (loss.name, count(loss.exact), count(loss.rounded), error, *map(count, lost),
            *map(figure, costs))  # fmt: skip


def overview(report: Report) -> list[tuple[str, str, str]]:
    """(what, figure, remark) of the corpus as a whole."""
    of, total = report.statistics, report.statistics.numbers
    without = f"{of.without_text:,} of them without text" if of.without_text else ""
    each = f"{total / of.documents:.1f} per document" if of.documents else ""
    rows = [("documents", f"{of.documents:,}", without), ("numbers", f"{total:,}", each)]
    if not total:
        return rows
    zeros, negative = int(of.counts.zeros.sum()), of.negative
    fractions = total - int(of.counts.fraction[0])
    rows += [
        (
            "integers",
            percent(total - fractions, total),
            f"{percent(fractions, total)} have a fraction",
        ),
        ("negative", percent(negative, total), f"{percent(zeros, total)} are zero"),
    ]
    if of.smallest is not None and of.largest is not None:
        rows.append(("range", f"{of.smallest:.6g} to {of.largest:.6g}", ""))
    if of.counts.magnitude.any():
        low, middle, high = of.quantiles((0.01, 0.5, 0.99))
        spread = f"the median; 98% are from {low:.3g} to {high:.3g}, zeros aside"
        rows.append(("typical magnitude", f"{middle:.3g}", spread))
    if of.bytes:
        rows.append(("share of the text", percent(of.number_bytes, of.bytes), "of its bytes"))
    if of.tokens.numbers:
        share = percent(of.tokens.before, of.tokens.tokens)
        told = (
            f"by the tokenizer alone: {share} of all tokens, of {of.tokens.bytes:,} bytes of text"
        )
        rows.append(("tokens per number", f"{of.tokens.before / of.tokens.numbers:.2f}", told))
    return rows


def charts(of: Statistics) -> list[Table]:
    """Magnitudes, first digits, digits, years, and numbers per document."""
    decades = np.stack([of.counts.positive, of.counts.negative])
    digits = np.stack([of.counts.significant, of.counts.integer, of.counts.fraction])
    first = int(of.counts.first.sum())
    benford = [round(first * math.log10(1 + 1 / digit)) for digit in range(1, 10)]
    per_document = ["0", "1", *(f"{1 << bin} to {(2 << bin) - 1}" for bin in range(1, 62))]
    digit_names = [f"{n}" if n < MOST_DIGITS else f"{n} or more" for n in range(MOST_DIGITS + 1)]
    return [
        Table(
            "Magnitudes",
            "by power of ten, zero aside",
            "from",
            ("positive", "negative"),
            _axis(decades, [power_of_ten(n - LARGEST_DECADE) for n in range(decades.shape[1])]),
        ),
        Table(
            "First digits",
            "other than zero, and what Benford's law expects",
            "digit",
            ("numbers", "expected"),
            [Row(f"{n}", (int(of.counts.first[n]), benford[n - 1])) for n in range(1, 10)]
            if first
            else [],
            first,
        ),
        Table(
            "Significant digits",
            "from the first to the last that is not zero",
            "digits",
            ("significant", "integer", "fraction"),
            _axis(digits, digit_names, fold=False),
        ),
        Table(
            "Years",
            "four digits from 1000 to 2100, by decade",
            "decade",
            ("numbers",),
            _axis(
                of.counts.years[None],
                [f"{FIRST_YEAR + 10 * n}s" for n in range(len(of.counts.years))],
            ),
            of.written,
        ),
        Table(
            "Numbers per document",
            "",
            "numbers",
            ("documents",),
            _axis(of.counts.per_document[None], per_document, fold=False),
        ),
    ]


def lists(of: Statistics, most: int) -> list[Table]:
    """How numbers are written, the most frequent values, and what stands behind them."""
    forms = _there(FORMS, of.counts.forms) + _there(MARKS, of.counts.marks)
    values = [Row(name, (count,)) for name, count in [*of.values.counts.items()][:most]]
    units = [
        Row(name, (count,))
        for name, count in of.units.counts.items()
        if name.lower() not in FUNCTION_WORDS
    ]
    told = "each number has one form, and any of the marks"
    behind = "the word or symbol right behind a number, function words aside"
    numbers = ("numbers",)
    return [
        Table("Written forms", told, "as written", numbers, forms, of.written),
        Table("Most frequent values", "", "value", numbers, values, of.numbers),
        Table("Units", behind, "unit", numbers, units[:most], of.in_text),
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
            " without --keep-text."
        )
    if bound := max(of.values.missed, of.units.missed):
        said.append(
            "There are more values and units than are kept; counts of the most frequent ones are"
            f" up to {bound:,} too low."
        )
    if of.numbers:
        scale = f"--numbers xval --scale {report.xval.scale!r} --clip {report.xval.clip:g}"
        said.append(f"The scale that xval wants, and that encode fits to this text: {scale}")
    return said


def _axis(counts: Any, labels: Sequence[str], fold: bool = True) -> list[Row]:
    """Rows for int64[columns, n], from the first that holds something to the last; with ``fold``,
    what is far out, up to ``TAIL`` at either end, as one row.
    """
    total = counts.sum(0)
    there = np.flatnonzero(total)
    if not len(there):
        return []
    first, last = int(there[0]), int(there[-1])
    below = np.cumsum(total) if fold else total
    few = TAIL * total.sum() if fold else 0
    low = int(np.searchsorted(below, few, "right")) if fold else first
    high = int(np.searchsorted(below, total.sum() - few)) if fold else last
    low, high = (low if low > first + 1 else first), (high if high < last - 1 else last)
    rows = [Row(labels[k], tuple(counts[:, k].tolist())) for k in range(low, high + 1)]
    if low > first:
        rows.insert(0, Row(f"below {labels[low]}", tuple(counts[:, :low].sum(1).tolist())))
    if high < last:
        rows.append(
            Row(f"{labels[high + 1]} and more", tuple(counts[:, high + 1 :].sum(1).tolist()))
        )
    return rows


def _there(names: Sequence[str], counts: Any) -> list[Row]:
    rows = [Row(name, (n,)) for name, n in zip(names, counts.tolist(), strict=True) if n]
    return sorted(rows, key=lambda row: -row.counts[0])
