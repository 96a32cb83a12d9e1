"""``numtok export``: a tokenizer for programs without numtok, and encoded files in the formats of
other people's trainers.
"""

from __future__ import annotations

from typing import Any

import click

from .console import ProgressLine, print_table, rate, size
from .options import command, refuse

EXPORT = """
Output
  --to tokenizers|megatron|gpt-neox|mds|webdataset!  The program that is to read the output. For
      tokenizers, mds (MosaicML streaming) and webdataset, OUTPUT is a folder. The packages of the
      last two must be installed.
  --tokenizer PATH  With tokenizers: the tokenizer to export, a tokenizer.json, a folder that holds
      one, or a hub id; default: the small English tokenizer inside numtok. With the others: that of
      the inputs, if --end-token is one of its tokens.
  --overwrite
With --to tokenizers
  --numbers LIST  Required: digits:1, digits:2 or digits:3 (grouped from the right), digits:3,left,
      or subword.
  --grammar
With the others
  --end-token TOKEN  Put this token, or id, after each document. Packed rows have theirs already.
Running
  --quiet
  --debug
"""
EXPORTING = """
numtok export plain --to tokenizers --numbers digits:3
numtok encode sample.jsonl -o kept.parquet --keep-text --quiet
numtok export kept.parquet data/sample --to megatron --end-token '<|endoftext|>'
"""
ROWS_SHOWN = 12


@command(
    [
        click.Argument(["inputs"], nargs=-1, metavar="[INPUT...]"),
        click.Argument(["output"]),
    ],
    EXPORT,
    EXPORTING,
)
def export(
    inputs: tuple[str, ...], to: str, numbers: str | None, grammar: Any, **options: Any
) -> None:
    """Write what programs without numtok read.

    With --to tokenizers: a tokenizer.json. Digits, alone or in groups, become ordinary rows of the
    vocabulary. tokenizers, AutoTokenizer, transformers.js and servers in Rust read the folder OUTPUT
    and give the ids that numtok gives. There is no INPUT.

    With the others: the files of trainers and loaders. INPUT is a file that `numtok encode` wrote,
    or a folder of them. OUTPUT.bin and OUTPUT.idx get the token ids, a sequence for each row.
    OUTPUT_number_value and so on get the number columns, one value per token, in the same order.
    OUTPUT.json says which type and shape each has. Rows without tokens are left out.
    """
    if to == "tokenizers":
        refuse("is for encoded files, not for --to tokenizers", "end_token")
        if inputs:
            raise click.UsageError(
                "--to tokenizers has no INPUT; give the tokenizer by --tokenizer"
            )
        if numbers is None:
            raise click.UsageError("--to tokenizers needs --numbers, such as digits:3")
        return _export_tokenizer(numbers, grammar, **options)
    refuse(
        f"is for --to tokenizers; with --to {to}, numbers are as they were encoded",
        "numbers",
        "grammar",
    )
    if not inputs:
        raise click.UsageError(f"--to {to} needs an INPUT, a file that `numtok encode` wrote")
    if not isinstance(options["end_token"], str):
        refuse("is for the name of an --end-token", "tokenizer")
    return _export_files(inputs, to=to, **options)


def _export_tokenizer(
    numbers: str,
    grammar: Any,
    output: str,
    tokenizer: str | None,
    overwrite: bool,
    quiet: bool,
    **_: Any,
) -> None:
    from numtok import Tokenizer

    added = Tokenizer.from_pretrained(tokenizer, numbers, grammar).export(output, overwrite)
    if not quiet:
        shown = f"{', '.join(added[:ROWS_SHOWN])}{', ...' if len(added) > ROWS_SHOWN else ''}"
        print_table([("added rows", f"{len(added):,}", shown)], output)


def _export_files(inputs: tuple[str, ...], output: str, quiet: bool, **options: Any) -> None:
    from numtok import export_files

    with ProgressLine(quiet) as progress:
        exported = export_files(inputs, output, progress=progress, **options)
    if not quiet:
        left = f"{exported.left_out:,} rows without tokens left out" if exported.left_out else ""
        rows = [
            ("sequences", f"{exported.sequences:,}", left),
            ("tokens", f"{exported.tokens:,}", ""),
            ("streams", f"{len(exported.files)}", ", ".join(exported.files)),
            ("output", size(exported.bytes), rate(exported.bytes, exported.seconds)),
        ]
        print_table(rows, output)
