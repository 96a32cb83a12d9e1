"""``numtok encode``: text files to one Parquet or Arrow file of tokens and number tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .console import ProgressLine, counts, debug_option, duration, print_table, size
from .options import (
    INPUT_FORMATS,
    grammar_options,
    make_grammar,
    make_tokenizer,
    overflow_option,
    overwrite_option,
    quiet_option,
    tokenizer_option,
    workers_option,
)

if TYPE_CHECKING:
    from numtok.corpus.summary import Summary

EPILOG = """\b
Examples:
  numtok encode sample.jsonl -o sample.parquet
  numtok encode sample.jsonl -o bits.arrow --numbers xval,bits --keep-column id
  numtok encode sample.jsonl -o exact.parquet --numbers place --keep-text
  cat sample.jsonl | numtok encode - -o piped.parquet --quiet
"""


@click.command(epilog=EPILOG)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option("-o", "--output", required=True, metavar="FILE", help="A .parquet, .arrow, .feather or .ipc file.")
@click.option("--numbers", default="xval", show_default=True, metavar="LIST", help="Representations, such as xval or xval,bits or place.")
@tokenizer_option
@click.option("--text-column", metavar="NAME", help="Where the text is. Default: text, content, document, body, or the only strings.")
@click.option("--keep-column", "keep_columns", multiple=True, metavar="NAME", help="Also store this column; repeatable.")
@click.option("--keep-text", is_flag=True, help="Also store what it takes to give back every byte.")
@click.option("--format", "input_format", type=click.Choice(INPUT_FORMATS), help="Format of the inputs, whatever their suffix.")
@click.option("--text-unit", type=click.Choice(["line", "file"]), default="line", show_default=True, help="In .txt: what a document is.")
@grammar_options
@overflow_option
@click.option("--leading-space", type=click.Choice(["auto", "separate"]), help="Whether a number's token takes the space before it along.")
@click.option("--add-special-tokens", is_flag=True, help="Put the tokenizer's special tokens around each text.")
@click.option("--parse-special", is_flag=True, help="Read special tokens that are written in the text as such.")
@click.option("--engine", type=click.Choice(["auto", "gigatoken", "tokenizers"]), default="auto", show_default=True, help="Same ids.")
@click.option(
    "--compression", type=click.Choice(["zstd", "lz4", "snappy", "gzip", "none"]), default="zstd", show_default=True, help="Of the output."
)
@workers_option
@click.option(
    "--on-error",
    type=click.Choice(["raise", "skip"]),
    default="raise",
    show_default=True,
    help="Stop at a bad row, or leave it out and count it.",
)
@overwrite_option
@quiet_option
@debug_option
def encode(
    inputs: tuple[str, ...],
    numbers: str,
    tokenizer: str | None,
    grammar: str,
    pattern: str | None,
    overflow: str | None,
    engine: str,
    leading_space: str | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Encode text files into one file of tokens and number tensors.

    INPUT is a file, a folder, a pattern such as 'data/*.jsonl.zst', or - for standard input. JSON lines, JSON, CSV, TSV, text,
    Parquet and Arrow are read, plain or compressed (.gz, .zst, .bz2, .xz).
    """
    from numtok.corpus.pipeline import encode_corpus

    made = make_tokenizer(tokenizer, numbers, make_grammar(grammar, pattern), overflow, engine, leading_space)
    with ProgressLine(quiet) as progress:
        summary = encode_corpus(inputs, options.pop("output"), made, progress=progress, **options)
    if not quiet:
        print_summary(summary, numbers)


def print_summary(summary: Summary, numbers: str) -> None:
    """The table at the end."""
    seconds = max(summary.seconds, 1e-9)
    rows = [
        ("documents", f"{summary.documents:,}", f"{summary.skipped:,} bad rows left out" if summary.skipped else ""),
        ("text", size(summary.bytes), f"{duration(summary.seconds)}, {size(summary.bytes / seconds)}/s"),
        ("tokens", f"{summary.tokens:,}", f"{summary.bytes / summary.tokens:.2f} bytes each" if summary.tokens else ""),
        ("numbers", f"{summary.numbers:,}", f"as {numbers}"),
    ]
    if summary.tokens_before is not None and summary.tokens_after is not None:
        rows.append(("tokens per number", f"{summary.tokens_after:.2f}", f"{summary.tokens_before:.2f} by the tokenizer alone"))
    if any(summary.left_as_text.values()):
        rows.append(("left as text", f"{sum(summary.left_as_text.values()):,}", f"cannot be held: {counts(summary.left_as_text)}"))
    if summary.clipped:
        rows.append(("clipped", f"{sum(summary.clipped.values()):,}", counts(summary.clipped)))
    if summary.in_added_tokens:
        rows.append(("in added tokens", f"{summary.in_added_tokens:,}", "digits within the tokenizer's own tokens, not numbers"))
    rows.append(("output", size(summary.output_bytes), f"{summary.output_bytes / max(summary.bytes, 1):.2f} of the text's size"))
    print_table(rows, summary.output)
