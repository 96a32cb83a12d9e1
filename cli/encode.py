"""``numtok encode``: text files to a Parquet or Arrow file of tokens and number tensors, or to a
folder of them.
"""

from __future__ import annotations

from typing import Any

import click

from .console import ProgressLine, debug_option, print_warning
from .jobs import config_option, sharding_options
from .options import (
    Names,
    OnceCommand,
    check_scale,
    end_token_option,
    grammar_options,
    input_format_option,
    make_grammar,
    on_error_option,
    overflow_option,
    overwrite_option,
    quiet_option,
    scale_options,
    text_column_option,
    text_unit_option,
    tokenizer_option,
    workers_option,
)
from .stats_text import print_report
from .summary import print_summary, warn_of_losses

EPILOG = """\b
Examples, with examples/sample.jsonl of the repository, or JSON lines of your own:
  numtok encode sample.jsonl -o sample.parquet
  numtok encode sample.jsonl -o bits.arrow --numbers xval,bits --keep-column id
  numtok encode sample.jsonl -o exact.parquet --numbers place --keep-text
  numtok encode sample.jsonl -o backwards.parquet --numbers place:lsd
  numtok encode sample.jsonl -o digits.parquet --numbers xval,fone:6,4,bits
  numtok encode sample.jsonl -o wide.parquet --numbers xval:log
  numtok encode sample.jsonl -o scaled.parquet --scale 0.002 --clip 5
  numtok encode sample.jsonl -o tokens.parquet --layout token
  numtok encode sample.jsonl -o packed.parquet --pack 2048
  cat sample.jsonl | numtok encode - -o piped.parquet --quiet
  numtok encode sample.jsonl -o shards/ --shards 4
  cat sample.jsonl | numtok encode - -o - --quiet
"""


@click.command(cls=OnceCommand, epilog=EPILOG)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FILE",
    help="A .parquet, .arrow, .feather or .ipc file; or FOLDER/; - for standard output. Or a URL.",
)
@click.option(
    "--numbers",
    type=Names(),
    default="xval",
    show_default=True,
    metavar="LIST",
    help="Representations, such as xval or xval,fone:6,4,bits or p10.",
)
@click.option(
    "--dense",
    is_flag=True,
    help="Store bits and fone as tensors, not as one integer and digits; torch takes either.",
)
@scale_options
@tokenizer_option
@text_column_option
@click.option(
    "--keep-column",
    "keep_columns",
    multiple=True,
    metavar="NAME",
    help="Also store this column; repeatable.",
)
@click.option("--keep-text", is_flag=True, help="Also store what it takes to give back every byte.")
@input_format_option
@text_unit_option
@grammar_options
@overflow_option
@click.option(
    "--leading-space",
    type=click.Choice(["auto", "separate"]),
    help="Whether a number's token takes the space before it along.",
)
@click.option(
    "--add-special-tokens",
    is_flag=True,
    help="Put the tokenizer's special tokens around each text.",
)
@click.option(
    "--parse-special",
    is_flag=True,
    help="Read special tokens that are written in the text as such.",
)
@click.option(
    "--engine",
    type=click.Choice(["auto", "gigatoken", "tokenizers"]),
    default="auto",
    show_default=True,
    help="Same ids.",
)
@click.option(
    "--compression",
    type=click.Choice(["zstd", "lz4", "snappy", "gzip", "none"]),
    default="zstd",
    show_default=True,
    help="Of the output.",
)
@click.option(
    "--tensors",
    type=click.Choice(["lists", "extension"]),
    default="lists",
    show_default=True,
    help=(
        "In Parquet: plain lists, which every program reads, or Arrow's tensor type, which datasets"
        " refuses."
    ),
)
@click.option(
    "--layout",
    type=click.Choice(["number", "token"]),
    help=(
        "A value per number (the default, and smallest), or one per token in every column: such"
        " rows can be sliced and joined."
    ),
)
@click.option(
    "--pack",
    type=click.IntRange(1),
    metavar="LENGTH",
    help=(
        "Rows of at most so many tokens, in token layout, for trainers: documents joined with the"
        " end token, none lost, no number cut."
    ),
)
@click.option(
    "--pack-mode",
    type=click.Choice(["sequential", "best-fit"]),
    default="sequential",
    show_default=True,
    help=(
        "Fill row after row, or put whole documents where they leave the least room, and cut only"
        " longer ones."
    ),
)
@end_token_option(
    "Behind every packed document: a token or its id; by default <|endoftext|>, </s> or the like."
)
@click.option(
    "--stats",
    is_flag=True,
    help="Also tell what numbers there are, as numtok stats does; a folder keeps it.",
)
@sharding_options
@workers_option
@click.option(
    "--batch-bytes",
    type=click.IntRange(1),
    hidden=True,
    help="About how much text is encoded at once.",
)
@on_error_option
@overwrite_option
@config_option
@quiet_option
@debug_option
def encode(
    inputs: tuple[str, ...],
    output: str,
    grammar: str,
    pattern: str | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Encode text files into one file of tokens and number tensors, or a folder of them.

    INPUT is a file, a folder, a pattern such as 'data/*.jsonl.zst', the URL of one, or - for
    standard input. JSON lines, JSON, CSV, TSV, text, Parquet and Arrow are read, plain or
    compressed (.gz, .zst, .bz2, .xz).

    A folder is for corpora of any size: it gets shards, which --workers processes write; after a
        kill, the same command goes on where it was. So it does in an object store (pip install
        'numtok[remote]' s3fs):

    \b
      numtok encode 's3://bucket/corpus/*.jsonl.zst' -o s3://bucket/data/
    """
    from numtok import encode_files

    check_scale(options["scale"], options["fit"], options["fit_quantile"])
    if options["batch_bytes"] is None:
        del options["batch_bytes"]
    with ProgressLine(quiet) as progress:
        summary = encode_files(
            inputs, output, grammar=make_grammar(grammar, pattern), progress=progress, **options
        )
    if summary.without_text:
        share = (
            f"{summary.without_text:,} of {summary.documents:,} documents have no text (it is"
            " missing or null)"
        )
        print_warning(
            f"{share} and are {'pieces without tokens' if options['pack'] else 'null rows'}, the"
            f" first in {summary.first_without_text}"
        )
    warn_of_losses(summary)
    if not quiet:
        print_summary(summary, options["numbers"], options["pack"])
        if summary.statistics is not None:
            from numtok.statistics.report import Report

            print_report(Report.of(summary.statistics), "numbers")
