"""A report: the statistics of a corpus, what the representations would lose of them, and which one
suits; as JSON for programs, and as the text that the terminal and the page show.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from numtok.options import shown_option
from numtok.representations import Representation, XVal
from numtok.representations.magnitudes import clipping
from numtok.statistics.counters import FIRST_YEAR, LARGEST_DECADE, MOST_DIGITS
from numtok.statistics.losses import Loss, fitted_xval, losses
from numtok.statistics.recommend import BY_TASK, Recommendation, recommend
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
    """Report on a corpus: its statistics, the loss of each representation, and a recommendation."""

    statistics: Statistics
    losses: tuple[Loss, ...]  # of the representations that were asked for
    recommendation: Recommendation  # among all that are registered
    xval: XVal  # with the scale that it wants
    clipping: str | None  # what that would clip, if ``numtok encode`` stops for it

    @classmethod
    def of(
        cls,
        statistics: Statistics,
        representations: Sequence[Representation] | None = None,
        task: str | None = None,
    ) -> Report:
        """Return the report on statistics.

        Args:
            statistics: of a corpus.
            representations: that are compared; all that are registered if not given.
            task: what the model has to do: ``"exact"``, ``"arithmetic"``, ``"estimate"``,
                ``"column"`` or ``"read"``; see :func:`numtok.statistics.recommend.recommend`.
        """
        own_losses = losses(statistics)
        compared = own_losses if representations is None else losses(statistics, representations)
        advice = recommend(statistics, own_losses, task)
        xval = fitted_xval(statistics)
        counts = statistics.counts["magnitudes"], statistics.numbers, statistics.columns
        return cls(statistics, tuple(compared), advice, xval, clipping(xval, *counts))

    def to_json(self) -> dict[str, Any]:
        """Return ``statistics`` as :meth:`Statistics.from_json` takes them, ``representations``,
        ``recommendation``, the ``scale`` and ``clip`` of xVal, and ``clipping``: why ``numtok
        encode`` would stop with these, or None.
        """
        return {
            "statistics": self.statistics.to_json(),
            "representations": [loss.to_json() for loss in self.losses],
            "recommendation": dataclasses.asdict(self.recommendation),
            "scale": self.xval.scale,
            "clip": self.xval.clip,
            "clipping": self.clipping,
        }

    def to_text(self) -> dict[str, Any]:
        """Return all that is shown, as text and counts: ``tiles`` (label, figure, remark),
        ``losses`` below ``headings``, ``charts`` and ``lists`` of rows, and the sentences of the
        advice.
        """
        of, advice = self.statistics, self.recommendation
        return {
            "options": advice.options,
            "grammar": _of_grammar(advice.grammar),
            "reasons": [*advice.reasons, *advice.against],
            "remarks": list(_remarks(self)),
            "tasks": [(task, BY_TASK[task].wanted, name) for task, name in advice.by_task.items()],
            "tiles": list(_overview(of)),
            "headings": LOSS_HEADINGS,
            "losses": [_loss(one, advice.numbers) for one in self.losses] if of.numbers else [],
            "charts": [one for one in _charts(of) if one["rows"]] if of.numbers else [],
            "lists": [one for one in _lists(of) if one["rows"]],
        }


def _of_grammar(wanted: str | None) -> str:
    """Say that the texts look as if they were written by the rules of another grammar, or nothing."""
    if wanted is None:
        return ""
    return (
        f"This looks like {wanted} numbers, which were read by another grammar, so that all counts"
        f" here are of pieces of numbers: count again with {shown_option('grammar', wanted)}, and"
        " encode with it."
    )


def percent(count: float, total: float) -> str:
    """Format a share: ``12.3%``; ``<0.1%`` rather than 0 for what is there."""
    share = count / total if total else 0.0
    return "<0.1%" if 0 < share < 0.001 else f"{100 * share:.1f}%"


def _loss(loss: Loss, taken: str) -> dict[str, Any]:
    """Return a row below ``LOSS_HEADINGS``, with ``-`` for nothing, and its four counts."""

    def count(value: int) -> str:
        return percent(value, loss.numbers) if value else "-"

    def figure(value: float | None) -> str:
        return "-" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")

    error = f"{loss.worst_error:.1g}" if loss.rounded else "-"
    lost = (loss.clipped, loss.vanishing, loss.left_as_text)
    held = (count(loss.exact), count(loss.rounded), error)
    return {
        "cells": (loss.name, *held, *map(count, lost), figure(loss.tokens), figure(loss.bytes)),
        "taken": loss.name == taken,
        "parts": [loss.exact, loss.rounded, loss.clipped, loss.left_as_text],
    }


def _overview(statistics: Statistics) -> Iterator[tuple[str, str, str]]:
    """Yield (what, figure, remark) of the corpus as a whole."""
    counts, total = statistics.counts, statistics.numbers
    without = f"{statistics.without_text:,} of them without text" if statistics.without_text else ""
    each = f"{total / statistics.documents:.1f} per document" if statistics.documents else ""
    yield "documents", f"{statistics.documents:,}", without
    yield "numbers", f"{total:,}", each
    if not total:
        return
    whole = int(counts["fraction_digits"][0])
    yield "integers", percent(whole, total), f"{percent(total - whole, total)} have a fraction"
    zeros = f"{percent(int(counts['zeros'].sum()), total)} are zero"
    yield "negative", percent(statistics.negative, total), zeros
    if statistics.smallest is not None and statistics.largest is not None:
        yield "range", f"{statistics.smallest:.6g} to {statistics.largest:.6g}", ""
    if counts["magnitudes"].any():
        low, middle, high = statistics.quantiles((0.01, 0.5, 0.99))
        spread = f"the median; 98% are from {low:.3g} to {high:.3g}, zeros aside"
        yield "typical magnitude", f"{middle:.3g}", spread
    if statistics.bytes:
        share = percent(statistics.number_bytes, statistics.bytes)
        yield "share of the text", share, "of its bytes"
    if (costs := statistics.tokens).numbers:
        share = f"{percent(costs.before, costs.tokens)} of all tokens"
        note = f"by the tokenizer alone: {share}, of {costs.bytes:,} bytes of text"
        yield "tokens per number", f"{costs.before / costs.numbers:.2f}", note


def _table(
    name: str, remark: str, label: str, columns: Sequence[str], rows: Sequence[Any], total: int = 0
) -> dict[str, Any]:
    """Return rows of a label and a count for each column; the first count also as a share of the
    total.
    """
    shares = [percent(row[1], total) for row in rows]
    return {
        "name": name, "remark": remark, "label": label, "columns": columns, "rows": rows,
        "shares": shares,
    }  # fmt: skip


def _charts(statistics: Statistics) -> Iterator[dict[str, Any]]:
    """Yield the charts of magnitudes, first digits, digits, years, and numbers per document."""
    counts, first = statistics.counts, statistics.counts["first_digits"]
    powers = [power_of_ten(n) for n in range(-LARGEST_DECADE, LARGEST_DECADE + 1)]
    decades = np.stack([counts["positive_decades"], counts["negative_decades"]])
    signs, names = ("positive", "negative"), ("significant", "integer", "fraction")
    yield _table("Magnitudes", "by power of ten, zero aside", "from", signs, _axis(decades, powers))
    if total := int(first.sum()):
        benford = [
            (f"{n}", int(first[n]), round(total * math.log10(1 + 1 / n))) for n in range(1, 10)
        ]
        remark, columns = "other than zero, and what Benford's law expects", ("numbers", "expected")
        yield _table("First digits", remark, "digit", columns, benford, total)
    digits = np.stack([counts[f"{name}_digits"] for name in names])
    labels = [*map(str, range(MOST_DIGITS)), f"{MOST_DIGITS} or more"]
    remark, rows = "from the first to the last that is not zero", _axis(digits, labels, fold=False)
    yield _table("Significant digits", remark, "digits", names, rows)
    years = counts["years"][None]
    rows = _axis(years, [f"{FIRST_YEAR + 10 * n}s" for n in range(years.size)])
    remark = "four digits from 1000 to 2100, by decade"
    yield _table("Years", remark, "decade", ("numbers",), rows, statistics.written)
    per_document = counts["per_document"][None]
    labels = ["0", "1", *(f"{1 << n} to {(2 << n) - 1}" for n in range(1, per_document.size))]
    rows = _axis(per_document, labels, fold=False)
    yield _table("Numbers per document", "", "numbers", ("documents",), rows)


def _lists(statistics: Statistics) -> Iterator[dict[str, Any]]:
    """Yield the tables of written forms, most frequent values, and units."""
    counts = statistics.units.counts.items()
    units = [(unit, n) for unit, n in counts if unit.lower() not in FUNCTION_WORDS]
    written = map(statistics.counts.labelled, ("forms", "marks"))
    forms = [row for counts_by_label in written for row in Counter(counts_by_label).most_common()]
    note = "each number has one form, and any of the marks"
    behind = "the word or symbol right behind a number, function words aside"
    values, columns = list(statistics.values.counts.items())[:LISTED], ("numbers",)
    yield _table("Written forms", note, "as written", columns, forms, statistics.written)
    yield _table("Most frequent values", "", "value", columns, values, statistics.numbers)
    yield _table("Units", behind, "unit", columns, units[:LISTED], statistics.in_text)


def power_of_ten(decade: int) -> str:
    """Format a power of ten: ``0.01``, ``1``, ``1000``, ``1e5``."""
    if abs(decade) == LARGEST_DECADE:
        return f"1e{decade} and {'more' if decade > 0 else 'less'}"
    return f"{10.0**decade:.{max(0, -decade)}f}" if -4 <= decade <= 4 else f"1e{decade}"


def _remarks(report: Report) -> Iterator[str]:
    """Return sentences about what looks odd, what could not be seen, and the scale of xVal."""
    of = report.statistics
    yield from report.recommendation.remarks
    if of.in_text < of.numbers:
        some = "" if not of.in_text else f" of {of.numbers - of.in_text:,} of them"
        yield (
            f"Encoded files do not tell what stands around numbers{some}: their units, their share"
            " of the text, and the numbers that were left as text."
        )
    if of.written < of.numbers:
        some = "" if not of.written else f" of {of.numbers - of.written:,} numbers"
        yield (
            f"The written form{some} is not known, nor digits beyond float64: the file was encoded"
            " without keep_text=True (--keep-text)."
        )
    if bound := max(of.values.missed, of.units.missed):
        yield (
            "There are more values and units than are kept; counts of the most frequent ones are"
            f" up to {bound:,} too low."
        )
    if report.clipping:
        yield f"Do not take xval here, or encoding stops: {report.clipping}."
    elif of.numbers:
        scale = f"--numbers xval --scale {report.xval.scale!r} --clip {report.xval.clip!r}"
        yield f"The scale that xval wants, and that encode fits to this text: {scale}"


def _axis(counts: Any, labels: Sequence[str], fold: bool = True) -> list[tuple[Any, ...]]:
    """Return rows for int64[columns, n], from the first that holds something to the last; with
    ``fold``, what is far out, up to ``TAIL`` at either end, as one row.
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
