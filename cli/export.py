"""``numtok export``: encoded files into the formats of other people's trainers."""

from __future__ import annotations

from typing import Any

import click

from . import options as shared
from .console import ProgressLine, print_table, rate, size
from .options import group, opt

EPILOG = """\b
Examples, with examples/sample.jsonl of the repository, or JSON lines of your own:
  numtok encode sample.jsonl -o kept.parquet --quiet
  numtok export kept.parquet --to megatron data/sample --end-token '<|endoftext|>'
"""


@click.command(cls=shared.Command, epilog=EPILOG)
@shared.inputs
@click.argument("prefix")
@group(
    "Output",
    opt(
        "--to READER",
        "megatron or gpt-neox, which differ in the codes of floats only.",
        click.Choice(["megatron", "gpt-neox"]),
        required=True,
    ),
    shared.end_token(
        "Put behind each document, which these trainers join: a token or its id. Packed rows have"
        " theirs."
    ),
    shared.overwrite,
)
@group("Text", shared.tokenizer)
@shared.running
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
