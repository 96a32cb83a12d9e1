"""Convert encoded files: ``numtok decode`` gives their text back; ``numtok export`` writes them, or
a tokenizer, for programs without numtok.
"""

from __future__ import annotations

from typing import Any

import click

from .console import ProgressLine, Row, rate, size
from .options import (
    DEBUG,
    GRAMMAR,
    INPUTS,
    OVERWRITE,
    QUIET,
    TOKENIZER,
    WORKERS,
    command,
    group,
    refuse,
    token_or_id,
)

ENCODED = "numtok encode sample.jsonl -o kept.parquet --numbers bits --keep-text --quiet\n"


@command(f"{ENCODED}numtok decode kept.parquet -o back.jsonl")
@INPUTS
@group(
    "Output",
    click.option(
        "-o",
        "--output",
        metavar="FILE",
        required=True,
        help="A .jsonl, .txt (one text per line), .parquet or .arrow file; or - for JSON lines on"
        " standard output.",
    ),
    OVERWRITE,
)
@group("Text", TOKENIZER)
@group("Running", WORKERS, QUIET, DEBUG)
def decode(inputs: tuple[str, ...], output: str, **options: Any) -> tuple[list[Row], str]:
    """Give back the text of files that `numtok encode` wrote.

    The text is the same to the byte if it was encoded with --keep-text. Else numbers come back by
    value: 0.50 as 0.5.

    Give the same --tokenizer as for encode; a folder of shards has it inside. Columns that were kept
    are written too, except to .txt.
    """
    from numtok import decode_files

    done = decode_files(inputs, output, **options)
    rows = [
        ("documents", f"{done.documents:,}", ""),
        ("numbers", f"{done.numbers:,}", ""),
        ("text", size(done.bytes), f"{rate(done.bytes, done.seconds)}, without start-up"),
    ]
    return rows, done.output


EXPORTING = """
numtok export plain --to tokenizers --numbers digits:3
numtok encode sample.jsonl -o kept.parquet --numbers bits --keep-text --quiet
numtok export kept.parquet data/sample --to megatron --end-token '<|endoftext|>'
"""
ROWS_SHOWN = 12


@command(EXPORTING)
@click.argument("inputs", nargs=-1, metavar="[INPUT...]")
@click.argument("output")
@group(
    "Output",
    click.option(
        "--to",
        type=click.Choice(["tokenizers", "megatron", "gpt-neox"]),
        required=True,
        help="The program that is to read the output. For tokenizers, OUTPUT is a folder.",
    ),
    click.option(
        "--tokenizer",
        metavar="PATH",
        help="With tokenizers: the tokenizer to export, a tokenizer.json, a folder that holds one,"
        " or a hub id; default: the small English tokenizer inside numtok. With the others:"
        " that of the inputs, if --end-token is one of its tokens.",
    ),
    OVERWRITE,
)
@group(
    "With --to tokenizers",
    click.option(
        "--numbers",
        metavar="LIST",
        help="Required: digits:1, digits:2 or digits:3 (grouped from the right), digits:3,left, or"
        " subword.",
    ),
    GRAMMAR,
)
@group(
    "With the others",
    click.option(
        "--end-token",
        metavar="TOKEN",
        callback=token_or_id,
        help="Put this token, or id, after each document, also an empty one. Packed rows have"
        " theirs already. Both programs join documents, so that without it nothing separates"
        " them.",
    ),
)
@group("Running", QUIET, DEBUG)
def export(
    inputs: tuple[str, ...],
    output: str,
    *,
    to: Any,
    tokenizer: str | None,
    numbers: str | None,
    grammar: Any,
    overwrite: bool,
    end_token: str | int | None,
    progress: ProgressLine,
) -> tuple[list[Row], str]:
    """Write what programs without numtok read.

    With --to tokenizers: a tokenizer.json. Digits, alone or in groups, become ordinary rows of the
    vocabulary. tokenizers, AutoTokenizer, transformers.js and servers in Rust read the folder OUTPUT
    and give the ids that numtok gives. There is no INPUT.

    With the others: the files of the trainer. INPUT is a file that `numtok encode` wrote,
    or a folder of them. OUTPUT.bin and OUTPUT.idx get the token ids, a sequence for each row.
    OUTPUT_number_value and so on get the number columns, one value per token, in the same order.
    OUTPUT.json says which type and shape each has. Rows without tokens are left out.
    """
    from numtok import Tokenizer, export_files

    if to == "tokenizers":
        refuse("is for encoded files, not for --to tokenizers", "end_token")
        if inputs:
            raise click.UsageError(
                "--to tokenizers has no INPUT; give the tokenizer by --tokenizer"
            )
        if numbers is None:
            raise click.UsageError("--to tokenizers needs --numbers, such as digits:3")
        added = Tokenizer.from_pretrained(tokenizer, numbers, grammar).export(output, overwrite)
        more = ", ..." if len(added) > ROWS_SHOWN else ""
        return [("added rows", f"{len(added):,}", ", ".join(added[:ROWS_SHOWN]) + more)], output
    as_they_are = f"is for --to tokenizers; with --to {to}, numbers are as they were encoded"
    refuse(as_they_are, "numbers", "grammar")
    if not inputs:
        raise click.UsageError(f"--to {to} needs an INPUT, a file that `numtok encode` wrote")
    if not isinstance(end_token, str):
        refuse("is for the name of an --end-token", "tokenizer")
    how: dict[str, Any] = {"tokenizer": tokenizer, "overwrite": overwrite, "progress": progress}
    done = export_files(inputs, output, to=to, end_token=end_token, **how)
    left = f"{done.left_out:,} rows without tokens left out" if done.left_out else ""
    rows = [
        ("sequences", f"{done.sequences:,}", left),
        ("tokens", f"{done.tokens:,}", ""),
        ("streams", f"{len(done.files)}", ", ".join(done.files)),
        ("output", size(done.bytes), rate(done.bytes, done.seconds)),
    ]
    return rows, output
