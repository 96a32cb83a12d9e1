"""``numtok encode``: text files to one Parquet or Arrow file of tokens and number tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .console import ProgressLine, counts, debug_option, duration, print_table, print_warning, size
from .options import (
    OnceCommand,
    check_scale,
    grammar_options,
    input_format_option,
    make_grammar,
    overflow_option,
    overwrite_option,
    quiet_option,
    scale_options,
    text_column_option,
    tokenizer_option,
    workers_option,
)

if TYPE_CHECKING:
    from numtok.corpus.fit import Fit
    from numtok.corpus.summary import Summary

EPILOG = """\b
Examples, with examples/sample.jsonl of the repository, or JSON lines of your own:
  numtok encode sample.jsonl -o sample.parquet
  numtok encode sample.jsonl -o bits.arrow --numbers xval,bits --keep-column id
  numtok encode sample.jsonl -o exact.parquet --numbers place --keep-text
  numtok encode sample.jsonl -o digits.parquet --numbers xval,fone:6,4,bits --compact
  numtok encode sample.jsonl -o wide.parquet --numbers xval:log
  numtok encode sample.jsonl -o scaled.parquet --scale 0.002 --clip 5
  numtok encode sample.jsonl -o tokens.parquet --layout token
  numtok encode sample.jsonl -o packed.parquet --pack 2048
  cat sample.jsonl | numtok encode - -o piped.parquet --quiet
"""
VANISHING, CLIPPED = 0.01, 0.1  # shares of numbers lost to a scale, above which the user is told


@click.command(cls=OnceCommand, epilog=EPILOG)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option("-o", "--output", required=True, metavar="FILE", help="A .parquet, .arrow, .feather or .ipc file.")
@click.option(
    "--numbers", default="xval", show_default=True, metavar="LIST", help="Representations, such as xval or xval,fone:6,4,bits or p10."
)
@click.option("--compact", is_flag=True, help="Store bits as one integer and fone as digits; the torch layers take either.")
@scale_options
@tokenizer_option
@text_column_option
@click.option("--keep-column", "keep_columns", multiple=True, metavar="NAME", help="Also store this column; repeatable.")
@click.option("--keep-text", is_flag=True, help="Also store what it takes to give back every byte.")
@input_format_option
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
@click.option(
    "--tensors",
    type=click.Choice(["lists", "extension"]),
    default="lists",
    show_default=True,
    help="In Parquet: plain lists, which every program reads, or Arrow's tensor type, which datasets refuses.",
)
@click.option(
    "--layout",
    type=click.Choice(["number", "token"]),
    help="A value per number (the default, and smallest), or one per token in every column: such rows can be sliced and joined.",
)
@click.option(
    "--pack",
    type=click.IntRange(1),
    metavar="LENGTH",
    help="Rows of at most so many tokens, in token layout, for trainers: documents joined with the end token, none lost, no number cut.",
)
@click.option(
    "--pack-mode",
    type=click.Choice(["sequential", "best-fit"]),
    default="sequential",
    show_default=True,
    help="Fill row after row, or put whole documents where they leave the least room, and cut only longer ones.",
)
@click.option(
    "--end-token",
    metavar="TOKEN",
    callback=lambda _context, _option, value: int(value) if value and value.isdecimal() else value,
    help="Behind every packed document: a token or its id; by default <|endoftext|>, </s> or the like.",
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
def encode(inputs: tuple[str, ...], output: str, grammar: str, pattern: str | None, quiet: bool, **options: Any) -> None:
    """Encode text files into one file of tokens and number tensors.

    INPUT is a file, a folder, a pattern such as 'data/*.jsonl.zst', or - for standard input. JSON lines, JSON, CSV, TSV, text,
    Parquet and Arrow are read, plain or compressed (.gz, .zst, .bz2, .xz).
    """
    from numtok import encode_files

    check_scale(options["scale"], options["fit"], options["fit_quantile"])
    with ProgressLine(quiet) as progress:
        summary = encode_files(inputs, output, grammar=make_grammar(grammar, pattern), progress=progress, **options)
    if summary.without_text:
        share = f"{summary.without_text:,} of {summary.documents:,} documents have no text (it is missing or null)"
        print_warning(
            f"{share} and are {'pieces without tokens' if options['pack'] else 'null rows'}, the first in {summary.first_without_text}"
        )
    warn_of_losses(summary)
    if not quiet:
        print_summary(summary, options["numbers"], options["pack"])


def warn_of_losses(summary: Summary) -> None:
    """Say it where a scale loses many numbers."""
    log = any(getattr(representation, "log", False) for representation in summary.representations)
    kept = max(summary.numbers - sum(summary.left_as_text.values()), 1)
    vanishing, clipped = summary.vanishing.get("xval", 0), summary.clipped.get("xval", 0)
    if vanishing > VANISHING * kept or clipped > CLIPPED * kept:
        lost = f"{vanishing / kept:.1%} of the numbers are nearly zero for the model and {clipped / kept:.1%} are clipped"
        wider = "--numbers bits holds" if log else "--numbers xval:log holds more of them, and bits holds"
        print_warning(f"with this scale of xval, {lost}; {wider} numbers of all magnitudes")


def scale_row(fit: Fit) -> tuple[str, str, str]:
    """The scale, what it was found on, and how to encode other files alike."""
    where = f"{fit.numbers:,} numbers of {fit.documents:,} documents"
    effect = f"{fit.largest:.4g} becomes 5 ({where})" if fit.largest is not None else "there is no number but zero to fit it to"
    again = f"--scale {fit.xval.scale!r} --clip {fit.xval.clip:g}"
    return "xval's scale", f"{fit.xval.scale!r}", f"{effect}; for more files: {again}"


def packing_rows(summary: Summary, length: int) -> list[tuple[str, str, str]]:
    """How full packed rows are, and what was cut."""
    full = (summary.tokens + summary.documents - summary.without_text) / max(summary.rows * length, 1)
    rows = [("rows", f"{summary.rows:,}", f"of at most {length:,} tokens, {full:.2%} full")]
    if summary.cut_numbers:
        rows.append(("cut numbers", f"{summary.cut_numbers:,}", "longer than a row, so that they lie in several"))
    return rows


def print_summary(summary: Summary, numbers: str, pack: int | None = None) -> None:
    """The table at the end."""
    seconds = max(summary.seconds, 1e-9)
    rows = [
        ("documents", f"{summary.documents:,}", f"{summary.skipped:,} bad rows left out" if summary.skipped else ""),
        ("text", size(summary.bytes), f"{duration(summary.seconds)}, {size(summary.bytes / seconds)}/s, without start-up"),
        ("tokens", f"{summary.tokens:,}", f"{summary.bytes / summary.tokens:.2f} bytes each" if summary.tokens else ""),
        ("numbers", f"{summary.numbers:,}", f"as {numbers}"),
    ]
    rows += packing_rows(summary, pack) if pack else []
    if summary.fit is not None:
        rows.append(scale_row(summary.fit))
    if summary.tokens_before is not None and summary.tokens_after is not None:
        rows.append(("tokens per number", f"{summary.tokens_after:.2f}", f"{summary.tokens_before:.2f} by the tokenizer alone"))
    if any(summary.left_as_text.values()):
        rows.append(("left as text", f"{sum(summary.left_as_text.values()):,}", f"cannot be held: {counts(summary.left_as_text)}"))
    if summary.clipped:
        rows.append(("clipped", f"{sum(summary.clipped.values()):,}", counts(summary.clipped)))
    if summary.vanishing:
        rows.append(("nearly zero", f"{sum(summary.vanishing.values()):,}", f"below 0.001 once scaled: {counts(summary.vanishing)}"))
    if summary.in_added_tokens:
        rows.append(("in added tokens", f"{summary.in_added_tokens:,}", "digits within the tokenizer's own tokens, not numbers"))
    rows.append(("output", size(summary.output_bytes), f"{summary.output_bytes / max(summary.bytes, 1):.2f} of the text's size"))
    print_table(rows, summary.output)
