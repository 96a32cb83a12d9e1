"""``numtok decode``: encoded files back to text."""

from __future__ import annotations

import click

from .console import ProgressLine, debug_option, duration, print_table, size
from .options import OnceCommand, overwrite_option, quiet_option, tokenizer_option, workers_option

EPILOG = """\b
Examples, with examples/sample.jsonl of the repository, or JSON lines of your own:
  numtok encode sample.jsonl -o kept.parquet --keep-text --quiet
  numtok decode kept.parquet -o back.jsonl
"""


@click.command(cls=OnceCommand, epilog=EPILOG)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FILE",
    help="A .jsonl, .txt (one text per line), .parquet or .arrow file.",
)
@tokenizer_option
@workers_option
@overwrite_option
@quiet_option
@debug_option
def decode(
    inputs: tuple[str, ...],
    output: str,
    tokenizer: str | None,
    workers: int | None,
    overwrite: bool,
    quiet: bool,
) -> None:
    """Give back the text of files that `numtok encode` wrote.

    Byte for byte if they were encoded with --keep-text; else with the numbers in canonical form.
    Give the same --tokenizer as then; the rest is in the files, and in a folder of shards the
    tokenizer too. Columns that were kept come along, except into .txt.
    """
    from numtok import decode_files

    with ProgressLine(quiet) as progress:
        summary = decode_files(
            inputs,
            output,
            tokenizer=tokenizer,
            workers=workers,
            overwrite=overwrite,
            progress=progress,
        )
    if not quiet:
        rate = (
            f"{duration(summary.seconds)}, {size(summary.bytes / max(summary.seconds, 1e-9))}/s,"
            " without start-up"
        )
        rows = [
            ("documents", f"{summary.documents:,}", ""),
            ("numbers", f"{summary.numbers:,}", ""),
            ("text", size(summary.bytes), rate),
        ]
        print_table(rows, summary.output)
