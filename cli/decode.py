"""``numtok decode``: encoded files back to text."""

from __future__ import annotations

from typing import Any

from .console import ProgressLine, print_table, rate, size
from .options import INPUTS, command

DECODE = """
Output
  -o/--output FILE!  A .jsonl, .txt (one text per line), .parquet or .arrow file.
  --overwrite
Text
  --tokenizer
Running
  --workers
  --quiet
  --debug
"""
ENCODED = "numtok encode sample.jsonl -o kept.parquet --keep-text --quiet\n"


@command([INPUTS], DECODE, f"{ENCODED}numtok decode kept.parquet -o back.jsonl")
def decode(inputs: tuple[str, ...], output: str, quiet: bool, **options: Any) -> None:
    """Give back the text of files that `numtok encode` wrote.

    The text is the same to the byte if it was encoded with --keep-text. Else numbers come back by
    value: 0.50 as 0.5.

    Give the same --tokenizer as for encode; a folder of shards has it inside. Columns that were kept
    are written too, except to .txt.
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
