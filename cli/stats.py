"""``numtok stats``: what numbers a corpus holds, what each representation would lose of them, and
which one suits.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from . import options as shared
from .console import ProgressLine, print_table, use_colour
from .options import group, make_grammar, opt
from .page import check_folder, write_page
from .streams import shown

if TYPE_CHECKING:
    from numtok.statistics.report import Report
    from numtok.statistics.tables import Row, Table

EPILOG = """\b
Examples, with examples/sample.jsonl of the repository, or JSON lines of your own:
  numtok stats sample.jsonl
  numtok stats sample.jsonl --html report.html
  numtok stats sample.jsonl --json counts.json --quiet
  numtok stats sample.jsonl --numbers fone:4,2 --numbers xval,bits --grammar data
  cat sample.jsonl | numtok stats - --json -
"""
BAR, MOST = 24, 12  # columns of the longest bar; values and units that are listed
WIDTH = 100


@click.command(cls=shared.Command, epilog=EPILOG)
@shared.inputs
@group(
    "Output",
    opt("--html FILE", "Also write a page for the browser.", name="page"),
    opt(
        "--json FILE",
        "Also write all counts, for programs; - for standard output, and nothing else then.",
        name="data",
    ),
)
@group(
    "Numbers",
    opt(
        "--numbers LIST",
        "Compare these representations, such as xval or fone:8,2; repeatable. Default: all, fitted"
        " to the corpus.",
        multiple=True,
    ),
    shared.grammar,
    shared.pattern,
)
@group(
    "Text",
    shared.tokenizer,
    shared.text_column,
    shared.template,
    shared.input_format,
    shared.text_unit,
    shared.on_error,
)
@group("Running", shared.workers)
@shared.running
def stats(
    inputs: tuple[str, ...],
    page: str | None,
    data: str | None,
    numbers: tuple[str, ...],
    grammar: Any,
    pattern: str | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Show what numbers a corpus holds, and which representation suits it.

    INPUT is what encode takes, or a file that encode wrote, whose stored numbers are then counted.
    """
    from numtok import corpus_stats
    from numtok.files import write_file
    from numtok.representations import parse
    from numtok.statistics.report import Report

    compared = [one for names in numbers for one in parse(names)] or None
    for path in (page, data):
        if path not in (None, "-"):
            check_folder(str(path))  # now rather than when all is counted
    with ProgressLine(quiet or data == "-") as progress:
        counted = corpus_stats(
            inputs, grammar=make_grammar(grammar, pattern), progress=progress, **options
        )
    report = Report.of(counted, compared)
    if data == "-":
        click.echo(json.dumps(report.to_json()))
    elif data is not None:
        write_file(data, json.dumps(report.to_json(), indent=1) + "\n")
    if page is not None:
        from .page import stats_data

        write_page(stats_data(report, ", ".join(inputs)), page)
    if not quiet and data != "-":
        print_report(report, ", ".join(inputs))


def print_report(report: Report, title: str) -> None:
    """All sections, the recommendation at the end."""
    from numtok.statistics import tables

    of = report.statistics
    print_table(tables.overview(report), title)
    if of.numbers:
        magnitudes, first_digits, _, years, _ = tables.charts(of)
        _print_bars(magnitudes)
        for table in (*tables.lists(of, MOST), years, first_digits):
            _print_shares(table)
        _print_losses(tables.LOSS_HEADINGS, [tables.loss_cells(loss) for loss in report.losses])
    _title(f"recommended: {report.recommendation.options}")
    for sentence in (*report.recommendation.reasons, *tables.remarks(report)):
        _print_wrapped(sentence)


def _echo(line: str) -> None:
    click.echo(line, color=use_colour(sys.stdout))


def _title(text: str) -> None:
    _echo(click.style(shown(text), bold=True))


def _print_wrapped(text: str) -> None:
    indents = {"initial_indent": "  ", "subsequent_indent": "    "}
    for line in textwrap.wrap(shown(text), WIDTH - 2, break_on_hyphens=False, **indents):  # type: ignore[arg-type]
        _echo(line)


def _print_bars(table: Table) -> None:
    """A bar per row, its second count light; of many rows only those that hold numbers."""
    rows: list[Row] = table.rows
    rows = [row for row in rows if sum(row.counts)] if len(rows) > 16 else rows
    most = max((sum(row.counts) for row in rows), default=1)
    labels = max((len(row.label) for row in rows), default=0)
    _title(f"{table.name.lower()}, {table.label}")
    for row in rows:
        count, second = sum(row.counts), row.counts[1]
        width = max(round(BAR * count / most), 1 if count else 0)
        light = round(width * second / max(count, 1))
        bar = click.style("█" * (width - light) + "░" * light, fg="cyan")
        remark = click.style(f"  {second:,} {table.columns[1]}" if second else "", dim=True)
        figure = f"{count:,}".rjust(len(f"{most:,}"))
        _echo(f"  {row.label.rjust(labels)}  {figure}  {bar}{remark}".rstrip())


def _print_shares(table: Table) -> None:
    """The labels of one section with their shares, on as few lines as they need; of many, the
    largest.
    """
    from numtok.statistics.tables import percent

    least = sorted((row.counts[0] for row in table.rows), reverse=True)[:MOST][-1:] or [0]
    most = [row for row in table.rows if row.counts[0] >= max(least[0], 1)]
    rows = table.rows if table.name == "Written forms" else most
    if rows:
        _title(table.name.lower())
        _print_wrapped(
            ", ".join(f"{row.label} {percent(row.counts[0], table.total)}" for row in rows)
        )


def _print_losses(headings: Sequence[str], rows: list[tuple[str, ...]]) -> None:
    """The names on the left, the figures right-aligned below their headings."""
    rows = [("", *headings[1:]), *rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    _title("representations: what becomes of the numbers; tokens and bytes per number")
    for place, (name, *cells) in enumerate(rows):
        figures = [cell.rjust(size) for cell, size in zip(cells, widths[1:], strict=True)]
        _echo(click.style("  ".join(["", name.ljust(widths[0]), *figures]), dim=place == 0))
