"""``numtok decode``, encoded files back to text; and ``numtok export``, into the formats of other
people's trainers.
"""

from __future__ import annotations

from typing import Any

import click

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
EXPORT = """
Output
  --to megatron|gpt-neox!  The reader; they differ in the codes of floats only.
  --end-token TOKEN  Put behind each document, which these trainers join: a token or its id. Packed
      rows have theirs.
  --overwrite
Text
  --tokenizer
Running
  --quiet
  --debug
"""
ENCODED = "numtok encode sample.jsonl -o kept.parquet --keep-text --quiet\n"


@command([INPUTS], DECODE, f"{ENCODED}numtok decode kept.parquet -o back.jsonl")
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


@command(
    [INPUTS, click.Argument(["prefix"])],
    EXPORT,
    f"{ENCODED}numtok export kept.parquet data/sample --to megatron --end-token '<|endoftext|>'",
)
def export(inputs: tuple[str, ...], prefix: str, quiet: bool, **options: Any) -> None:
    """Write twin .bin and .idx files, as Megatron-LM and GPT-NeoX read them.

    INPUT is a file that `numtok encode` wrote, or a folder of them. PREFIX.bin and PREFIX.idx have
    the ids, a sequence for each row; PREFIX_number_value and so on the number streams, one value
    per token, of the same lengths and order; PREFIX.json says what they are. Rows without tokens
    are left out.
    """
    from numtok import export_files

    with ProgressLine(quiet) as progress:
        exported = export_files(inputs, prefix, progress=progress, **options)
    if not quiet:
        left = f"{exported.left_out:,} rows without tokens left out" if exported.left_out else ""
        rows = [
            ("sequences", f"{exported.sequences:,}", left),
            ("tokens", f"{exported.tokens:,}", ""),
            ("streams", f"{len(exported.files)}", ", ".join(exported.files)),
            ("output", size(exported.bytes), rate(exported.bytes, exported.seconds)),
        ]
        print_table(rows, prefix)
