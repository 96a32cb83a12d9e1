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
  --to megatron|gpt-neox|mds|webdataset!  The program that is to read the files. For mds (MosaicML
      streaming) and webdataset, PREFIX is a folder, and their packages must be installed.
  --end-token TOKEN  Put this token, or id, after each document. Packed rows have theirs already.
  --overwrite
Text
  --tokenizer PATH  The tokenizer of the inputs, if --end-token is one of its tokens.
Running
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


@command(
    [INPUTS, click.Argument(["prefix"])],
    EXPORT,
    f"{ENCODED}numtok export kept.parquet data/sample --to megatron --end-token '<|endoftext|>'",
)
def export(inputs: tuple[str, ...], prefix: str, quiet: bool, **options: Any) -> None:
    """Write the files of other trainers and loaders.

    INPUT is a file that `numtok encode` wrote, or a folder of them.

    PREFIX.bin and PREFIX.idx get the token ids, a sequence for each row. PREFIX_number_value and so
    on get the number columns, one value per token, in the same order. PREFIX.json says which type
    and shape each has. Rows without tokens are left out.
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
