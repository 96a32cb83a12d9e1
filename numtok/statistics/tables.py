"""A report as tables of plain text, which the terminal and the page show alike.

In: :class:`~numtok.statistics.report.Report`. Out: for each section, rows of a label and counts,
    and shares as text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from numtok.statistics.digits import LARGEST_DECADE, MOST_DIGITS
from numtok.statistics.examples import written
from numtok.statistics.losses import Loss
from numtok.statistics.magnitudes import quantiles
from numtok.statistics.report import Report
from numtok.statistics.statistics import Statistics
from numtok.statistics.surfaces import FIRST_YEAR, FORMS, MARKS
from numtok.statistics.words import word

# Right behind a number these say nothing of its unit.
FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a after all also an and are as at be been before but by das de der des die du e el en et"
        " for from had has have he her his i if in is it its la las le les los mit no not o of on"
        " one or over per que s she so than that the their there they this to two und under until"
        " up van von was were when where which while who will with y",
    )
)


class Row(NamedTuple):
    """A label and its counts."""

    label: str
    counts: tuple[int, ...]


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
    counts = (count(loss.clipped), count(loss.vanishing), count(loss.left_as_text))
    return (
        loss.name,
        count(loss.exact),
        count(loss.rounded),
        error,
        *counts,
        *(figure(value) for value in (loss.tokens, loss.bytes, loss.compact_bytes)),
    )


def overview(report: Report) -> list[tuple[str, str, str]]:
    """(what, figure, remark) of the corpus as a whole."""
    of = report.statistics
    negative, zeros, total = (
        int(of.digits.negative.sum() + of.digits.zeros[1]),
        int(of.digits.zeros.sum()),
        of.numbers,
    )
    rows = [
        (
            "documents",
            f"{of.documents:,}",
            f"{of.without_text:,} of them without text" if of.without_text else "",
        )
    ]
    rows.append(
        (
            "numbers",
            f"{total:,}",
            f"{total / of.documents:.1f} per document" if of.documents else "",
        )
    )
    if not total:
        return rows
    whole = int(of.digits.fraction[0])
    rows.append(
        ("integers", percent(whole, total), f"{percent(total - whole, total)} have a fraction")
    )
    rows.append(("negative", percent(negative, total), f"{percent(zeros, total)} are zero"))
    if of.smallest is not None and of.largest is not None:
        rows.append(("range", f"{of.smallest:.6g} to {of.largest:.6g}", ""))
    if of.digits.magnitude.any():
        low, middle, high = quantiles(of, (0.01, 0.5, 0.99))
        rows.append(
            (
                "typical magnitude",
                f"{middle:.3g}",
                f"the median; 98% are from {low:.3g} to {high:.3g}, zeros aside",
            )
        )
    if of.bytes:
        rows.append(("share of the text", percent(of.number_bytes, of.bytes), "of its bytes"))
    if of.tokens.numbers:
        cost, share = (
            of.tokens.before / of.tokens.numbers,
            percent(of.tokens.before, of.tokens.tokens),
        )
        rows.append(
            (
                "tokens per number",
                f"{cost:.2f}",
                (
                    f"by the tokenizer alone: {share} of all tokens, of {of.tokens.bytes:,} bytes"
                    " of text"
                ),
            )
        )
    rows.append(
        ("scale for xval", f"{report.xval.scale!r}", f"{report.xval.largest:.4g} becomes 5")
    )
    return rows


def magnitudes(of: Statistics) -> list[Row]:
    """(decade, positive, negative), from the smallest decade that there is to the largest, those
    between them too.
    """
    there = np.flatnonzero(of.digits.positive + of.digits.negative)
    if not len(there):
        return []
    return [
        Row(
            power_of_ten(int(place) - LARGEST_DECADE),
            (int(of.digits.positive[place]), int(of.digits.negative[place])),
        )
        for place in range(int(there[0]), int(there[-1]) + 1)
    ]


def power_of_ten(decade: int) -> str:
    """``0.01``, ``1``, ``1000``, ``1e5``."""
    if abs(decade) == LARGEST_DECADE:
        return f"1e{decade} and {'more' if decade > 0 else 'less'}"
    return f"{10.0**decade:.{max(0, -decade)}f}" if -4 <= decade <= 4 else f"1e{decade}"


def digits(of: Statistics) -> list[Row]:
    """(digits, numbers with so many significant ones, before the point, behind it)."""
    columns = (of.digits.significant, of.digits.integer, of.digits.fraction)
    last = max(int(np.flatnonzero(counts)[-1]) if counts.any() else 0 for counts in columns)
    return [
        Row(
            f"{place}" if place < MOST_DIGITS else f"{place} or more",
            tuple(int(counts[place]) for counts in columns),
        )
        for place in range(last + 1)
    ]


def forms(of: Statistics) -> list[Row]:
    """The forms, of which each number has one."""
    return _there(FORMS, of.forms.forms)


def marks(of: Statistics) -> list[Row]:
    """The marks, of which a number may have several."""
    return _there(MARKS, of.forms.marks)


def years(of: Statistics) -> list[Row]:
    """By decade, from the first that there is to the last."""
    there = np.flatnonzero(of.forms.years)
    places = range(int(there[0]), int(there[-1]) + 1) if len(there) else range(0)
    return [Row(f"{FIRST_YEAR + 10 * place}s", (int(of.forms.years[place]),)) for place in places]


def first_digits(of: Statistics) -> list[Row]:
    """(digit, numbers, how many Benford's law expects)."""
    total = int(of.digits.first.sum())
    return (
        [
            Row(str(digit), (int(of.digits.first[digit]), round(total * math.log10(1 + 1 / digit))))
            for digit in range(1, 10)
        ]
        if total
        else []
    )


def values(of: Statistics, most: int) -> list[Row]:
    """The most frequent values."""
    pairs = of.values.pairs
    return [
        Row(written(int(first), int(second)), (int(count),))
        for first, second, count in zip(*(column[:most] for column in pairs), strict=True)
    ]


def units(of: Statistics, most: int) -> list[Row]:
    """The most frequent words and symbols right behind a number, without function words."""
    rows = (
        Row(word(int(first), int(second)), (int(count),))
        for first, second, count in zip(*of.units.pairs, strict=True)
    )
    return [row for row in rows if row.label.lower() not in FUNCTION_WORDS][:most]


def per_document(of: Statistics) -> list[Row]:
    """Documents by how many numbers they have."""
    last = int(np.flatnonzero(of.per_document)[-1]) if of.per_document.any() else -1
    labels = ["0", "1"] + [f"{1 << bin} to {(2 << bin) - 1}" for bin in range(1, last)]
    return [Row(labels[bin], (int(of.per_document[bin]),)) for bin in range(last + 1)]


def unknown(of: Statistics) -> list[str]:
    """Sentences about what could not be seen."""
    said = []
    if of.in_text < of.numbers:
        some = "" if not of.in_text else f" of {of.numbers - of.in_text:,} of them"
        said.append(
            f"Encoded files do not tell what stands around numbers{some}: their units, their share"
            " of the text, and the numbers that were left as text."
        )
    if of.written < of.numbers:
        some = (
            "The written form"
            if not of.written
            else f"The written form of {of.numbers - of.written:,} numbers"
        )
        said.append(
            f"{some} is not known, nor digits beyond float64: the file was encoded without"
            " --keep-text."
        )
    if of.values.missed or of.units.missed:
        bound = max(of.values.missed, of.units.missed)
        said.append(
            "There are more values and units than are kept; counts of the most frequent ones are"
            f" up to {bound:,} too low."
        )
    return said


def _there(names: Sequence[str], counts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[Row]:
    rows = [
        Row(name, (int(count),))
        for name, count in zip(names, counts.tolist(), strict=True)
        if count
    ]
    return sorted(rows, key=lambda row: -row.counts[0])
