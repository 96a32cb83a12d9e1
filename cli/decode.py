"""``numtok decode``: encoded files back to text."""

from __future__ import annotations

from typing import Any

import click

from . import options as shared
from .console import ProgressLine, print_table, rate, size
from .options import group, opt

EPILOG = """\b
Examples, with examples/sample.jsonl of the repository, or JSON lines of your own:
  numtok encode sample.jsonl -o kept.parquet --keep-text --quiet
  numtok decode kept.parquet -o back.jsonl
"""


@click.command(cls=shared.Command, epilog=EPILOG)
@shared.inputs
@group(
    "Output",
    opt(
        "-o/--output FILE",
        "A .jsonl, .txt (one text per line), .parquet or .arrow file.",
        required=True,
    ),
    shared.overwrite,
)
@group("Text", shared.tokenizer)
@group("Running", shared.workers)
@shared.running
def decode(inputs: tuple[str, ...], output: str, quiet: bool, **options: Any) -> None:
    """Give back the text of files that `numtok encode` wrote.

    Byte for byte if they were encoded with --keep-text; else with the numbers in canonical form.
    Give the same --tokenizer as then; the rest is in the files, and in a folder of shards the
    tokenizer too. Columns that were kept come along, except into .txt.
    """
    from numtok import decode_files

    with ProgressLine(quiet) as progress:
        summary = decode_files(inputs, output, progress=progress, **options)
    if not quiet:
        speed = f"{rate(summary.bytes, summary.seconds)}, without start-up"
        rows = [
            ("documents", f"{summary.documents:,}", ""),
            ("numbers", f"{summary.numbers:,}", ""),
            ("text", size(summary.bytes), speed),
        ]
        print_table(rows, summary.output)
