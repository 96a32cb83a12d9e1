"""What ``numtok stats`` prints: compact tables, the recommendation at the end."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from .console import print_table, use_colour
from .streams import shown

if TYPE_CHECKING:
    from numtok.statistics.report import Report
    from numtok.statistics.tables import Row

BAR, MOST = 24, 12  # columns of the longest bar; values and units that are listed
WIDTH = 100


def print_report(report: Report, title: str) -> None:
    """All sections."""
    from numtok.statistics import tables

    of = report.statistics
    print_table(tables.overview(report), title)
    if of.numbers:
        _print_magnitudes(tables.magnitudes(of))
        _print_line("written", tables.forms(of) + tables.marks(of), of.written)
        _print_line("years", _the_most(tables.years(of)), of.written)
        _print_line("units", tables.units(of, MOST), of.in_text)
        _print_line("values", tables.values(of, MOST), of.numbers)
        _print_line("first digits", tables.first_digits(of), int(of.digits.first.sum()))
        _print_losses(tables.LOSS_HEADINGS, [tables.loss_cells(loss) for loss in report.losses])
    for sentence in tables.unknown(of):
        _print_wrapped(sentence, dim=True)
    _title(f"recommended: {report.recommendation.options}")
    for sentence in (*report.recommendation.reasons, *report.recommendation.remarks):
        _print_wrapped(sentence)


def _the_most(rows: list[Row]) -> list[Row]:
    """The largest, in the order that they were in."""
    least = sorted((row.counts[0] for row in rows), reverse=True)[:MOST][-1:]
    return [row for row in rows if least and row.counts[0] >= max(least[0], 1)]


def _title(text: str) -> None:
    click.echo(click.style(shown(text), bold=True), color=use_colour(sys.stdout))


def _print_wrapped(text: str, dim: bool = False) -> None:
    for line in textwrap.wrap(
        shown(text),
        WIDTH - 2,
        initial_indent="  ",
        subsequent_indent="    ",
        break_on_hyphens=False,
    ):
        click.echo(click.style(line, dim=dim), color=use_colour(sys.stdout))


def _print_magnitudes(rows: Sequence[Row]) -> None:
    """A bar per decade, the negative part of it dim; where there are many, only those that hold
    numbers.
    """
    if not rows:
        return
    rows = [row for row in rows if sum(row.counts)] if len(rows) > 16 else rows
    most = max(sum(row.counts) for row in rows)
    labels = max(len(row.label) for row in rows)
    figures = [f"{sum(row.counts):,}" for row in rows]
    _title("magnitudes, from")
    for row, figure in zip(rows, figures, strict=True):
        positive, negative = row.counts
        width = max(round(BAR * (positive + negative) / most), 1 if positive + negative else 0)
        light = round(width * negative / max(positive + negative, 1))
        remark = f"  {negative:,} negative" if negative else ""
        bar = click.style("█" * (width - light), fg="cyan") + click.style("░" * light, fg="cyan")
        line = (
            f"  {row.label.rjust(labels)}  {figure.rjust(max(map(len, figures)))} "
            f" {bar}{click.style(remark, dim=True)}"
        )
        click.echo(line.rstrip(), color=use_colour(sys.stdout))


def _print_line(title: str, rows: Iterable[Row], total: int) -> None:
    """The labels of one section with their shares, on as few lines as they need."""
    from numtok.statistics.tables import percent

    told = ", ".join(f"{row.label} {percent(row.counts[0], total)}" for row in rows)
    if told:
        _title(title)
        _print_wrapped(told)


def _print_losses(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """The table of representations: the names on the left, the figures right-aligned below their
    headings.
    """
    heads = ["" if name == "representation" else name for name in headings]
    widths = [max(len(row[k]) for row in [tuple(heads), *rows]) for k in range(len(heads))]
    _title("representations: what becomes of the numbers; tokens and bytes per number")
    for place, row in enumerate([tuple(heads), *rows]):
        cells = [
            cell.ljust(size) if k == 0 else cell.rjust(size)
            for k, (cell, size) in enumerate(zip(row, widths, strict=True))
        ]
        click.echo(
            click.style("  " + "  ".join(cells), dim=place == 0), color=use_colour(sys.stdout)
        )
