"""``numtok stats``: what numbers a corpus holds, what each representation would lose of them, and
which one suits.
"""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any

import click

from .console import ProgressLine, all_shown, counted, echo, print_table
from .options import (
    DEBUG,
    DELIMITER,
    FORMAT,
    GRAMMAR,
    INPUTS,
    ON_ERROR,
    PATTERN,
    QUIET,
    TEMPLATE,
    TEXT_COLUMN,
    TEXT_UNIT,
    TOKENIZER,
    WORKERS,
    command,
    group,
)
from .page import page

if TYPE_CHECKING:
    from numtok.statistics.report import Report

EXAMPLES = """
numtok stats sample.jsonl
numtok stats sample.jsonl --task estimate
numtok stats sample.jsonl --html report.html
numtok stats sample.jsonl --json counts.json --quiet
numtok stats sample.jsonl --numbers fone:4,2 --numbers xval,bits --grammar data
cat sample.jsonl | numtok stats - --json -
"""
BAR, WIDTH = 24, 100  # columns of the longest bar, and of a sentence


@command(EXAMPLES)
@INPUTS
@group(
    "Output",
    click.option("--html", metavar="FILE", help="Also write a page for the browser."),
    click.option(
        "--json",
        metavar="FILE",
        help="Also write all counts as JSON; - writes them to standard output, and nothing else.",
    ),
)
@group(
    "Numbers",
    click.option(
        "--task",
        type=click.Choice(["read", "estimate", "exact", "column", "arithmetic"]),
        help="Recommend for this: words beside numbers, estimates of values, answers right to the"
        " last digit, a column of a table from the others, or arithmetic digit by digit."
        " Default: column for a template, else exact.",
    ),
    click.option(
        "--numbers",
        metavar="LIST",
        multiple=True,
        help="Try this representation, such as xval or fone:8,2; repeatable. Default: all, fitted"
        " to the corpus.",
    ),
    GRAMMAR,
    PATTERN,
)
@group("Text", TOKENIZER, TEXT_COLUMN, TEMPLATE, FORMAT, DELIMITER, TEXT_UNIT, ON_ERROR)
@group("Running", WORKERS, QUIET, DEBUG)
def stats(
    inputs: tuple[str, ...],
    html: str | None,
    numbers: tuple[str, ...],
    task: str | None,
    progress: ProgressLine,
    **options: Any,
) -> None:
    """Show what numbers a corpus holds, and which representation suits it.

    INPUT is what encode takes, or a file that encode wrote: then the stored numbers are counted.
    """
    from numtok import corpus_stats
    from numtok.files import write_file
    from numtok.representations import parse
    from numtok.statistics.report import Report

    data, compared = options.pop("json"), [one for names in numbers for one in parse(names)]
    progress.quiet |= data == "-"
    report = Report.of(corpus_stats(inputs, progress=progress, **options), compared or None, task)
    progress.clear()
    if data == "-":
        echo(json.dumps(report.to_json()))
    elif data is not None:
        write_file(data, json.dumps(report.to_json(), indent=1) + "\n")
    to_show = shown_report(report, ", ".join(inputs))
    if html is not None:
        write_file(html, page(to_show))
    if not progress.quiet:
        print_report(to_show)


def shown_report(report: Report, source: str) -> dict[str, Any]:
    """Return what the page and the terminal show of a report."""
    of, report_text = report.statistics, report.to_text()
    report_text |= {
        "kind": "stats",
        "title": f"{counted(of.numbers, 'number')} in {counted(of.documents, 'document')}",
        "source": source,
        "options": " ".join(f"--{name} {value}" for name, value in report_text["options"].items()),
    }
    return dict(all_shown(report_text))


# On a terminal
# ----------------------------------------------------------------------------------------------


def print_report(data: dict[str, Any]) -> None:
    """Print all sections, the recommendation at the end; before all, that another grammar is
    wanted.
    """
    charts = {table["name"]: table for table in data["charts"]}
    if data["grammar"]:
        _title("another grammar")
        _print_wrapped(data["grammar"])
    print_table(data["tiles"], data["source"])
    if "Magnitudes" in charts:
        _print_bars(charts["Magnitudes"])
    wanted = (charts[name] for name in ("Years", "First digits") if name in charts)
    for table in (*data["lists"], *wanted):
        shares = zip(table["rows"], table["shares"], strict=True)
        _title(table["name"].lower())
        _print_wrapped(", ".join(f"{row[0]} {share}" for row, share in shares if row[1]))
    if data["losses"]:
        _print_losses([["", *data["headings"][1:]], *(loss["cells"] for loss in data["losses"])])
    _title(f"recommended: {data['options']}")
    for sentence in (*data["reasons"], *data["remarks"]):
        _print_wrapped(sentence)
    if data["tasks"]:
        _title("for other tasks")
        for task, wanted, name in data["tasks"]:
            echo(f"  --task {task:<11} {name:<22} {wanted}")


def _title(text: str) -> None:
    echo(click.style(text, bold=True))


def _print_wrapped(text: str) -> None:
    for line in textwrap.wrap(text, WIDTH - 4, break_on_hyphens=False, subsequent_indent="  "):
        echo(f"  {line}")


def _print_bars(table: dict[str, Any]) -> None:
    """Print a bar for each row that holds something, its second count light."""
    rows = [row for row in table["rows"] if sum(row[1:])]
    most, labels = max(sum(row[1:]) for row in rows), max(len(row[0]) for row in rows)
    _title(f"{table['name'].lower()}, {table['label']}")
    for label, first, second in rows:
        width = max(round(BAR * (first + second) / most), 1)
        light = round(width * second / (first + second))
        bar = click.style("█" * (width - light) + "░" * light, fg="cyan")
        remark = click.style(f"  {second:,} {table['columns'][1]}" if second else "", dim=True)
        echo(f"  {label:>{labels}}  {first + second:>{len(f'{most:,}')},}  {bar}{remark}")


def _print_losses(rows: list[list[str]]) -> None:
    """Print the names on the left, the figures right-aligned below their headings."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    _title("representations: what becomes of the numbers; tokens and bytes per number")
    for place, (name, *cells) in enumerate(rows):
        figures = [cell.rjust(size) for cell, size in zip(cells, widths[1:], strict=True)]
        echo(click.style("  ".join(["", name.ljust(widths[0]), *figures]), dim=place == 0))
