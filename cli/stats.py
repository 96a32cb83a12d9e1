"""``numtok stats``: what numbers a corpus holds, what each representation would lose of them, and
which one suits.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from .console import ProgressLine, debug_option
from .options import (
    OnceCommand,
    grammar_options,
    input_format_option,
    make_grammar,
    on_error_option,
    quiet_option,
    text_column_option,
    text_unit_option,
    tokenizer_option,
    workers_option,
)
from .page_frame import check_folder, write_page
from .stats_text import print_report

if TYPE_CHECKING:
    from numtok.representations import Representation

EPILOG = """\b
Examples, with examples/sample.jsonl of the repository, or JSON lines of your own:
  numtok stats sample.jsonl
  numtok stats sample.jsonl --html report.html
  numtok stats sample.jsonl --json counts.json --quiet
  numtok stats sample.jsonl --numbers fone:4,2 --numbers xval,bits --grammar data
  cat sample.jsonl | numtok stats - --json -
"""


@click.command(cls=OnceCommand, epilog=EPILOG)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option("--html", "page", metavar="FILE", help="Also write a page for the browser.")
@click.option(
    "--json",
    "data",
    metavar="FILE",
    help="Also write all counts, for programs; - for standard output, and nothing else then.",
)
@click.option(
    "--numbers",
    multiple=True,
    metavar="LIST",
    help=(
        "Compare these representations, such as xval or fone:8,2; repeatable.  [default: all,"
        " fitted to the corpus]"
    ),
)
@tokenizer_option
@text_column_option
@input_format_option
@text_unit_option
@grammar_options
@workers_option
@on_error_option
@quiet_option
@debug_option
def stats(
    inputs: tuple[str, ...],
    page: str | None,
    data: str | None,
    numbers: tuple[str, ...],
    grammar: str,
    pattern: str | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Show what numbers a corpus holds, and which representation suits it.

    INPUT is what encode takes, or a file that encode wrote, whose stored numbers are then counted.
    """
    from numtok import corpus_stats
    from numtok.files import write_file
    from numtok.statistics.report import Report

    compared = _chosen(numbers)
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
        from .stats_page import stats_page

        write_page(stats_page(report, ", ".join(inputs)), page)
    if not quiet and data != "-":
        print_report(report, ", ".join(inputs))


def _chosen(numbers: tuple[str, ...]) -> list[Representation] | None:
    from numtok.representations import parse

    return [one for names in numbers for one in parse(names)] if numbers else None
