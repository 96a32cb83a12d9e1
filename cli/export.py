"""``numtok export``: encoded files into the formats of other people's trainers."""

from __future__ import annotations

from typing import Any

import click

from .console import ProgressLine, debug_option, duration, print_table, size
from .options import OnceCommand, end_token_option, overwrite_option, quiet_option, tokenizer_option

EPILOG = """\b
Examples, with examples/sample.jsonl of the repository, or JSON lines of your own:
  numtok encode sample.jsonl -o kept.parquet --quiet
  numtok export kept.parquet --to megatron data/sample --end-token '<|endoftext|>'
"""


@click.command(cls=OnceCommand, epilog=EPILOG)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.argument("prefix")
@click.option(
    "--to",
    type=click.Choice(["megatron", "gpt-neox"]),
    required=True,
    help="Whose reader. They differ in the codes of floats only.",
)
@end_token_option(
    "Put behind each document, which these trainers join: a token or its id. Packed rows have"
    " theirs."
)
@tokenizer_option
@overwrite_option
@quiet_option
@debug_option
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
        rate = (
            f"{duration(exported.seconds)}, {size(exported.bytes / max(exported.seconds, 1e-9))}/s"
        )
        rows = [
            (
                "sequences",
                f"{exported.sequences:,}",
                f"{exported.left_out:,} rows without tokens left out" if exported.left_out else "",
            ),
            ("tokens", f"{exported.tokens:,}", ""),
            ("streams", f"{len(exported.files)}", ", ".join(exported.files)),
            ("output", size(exported.bytes), rate),
        ]
        print_table(rows, prefix)
