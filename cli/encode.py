"""``numtok encode``: text files to a Parquet or Arrow file of tokens and number tensors, or to a
folder of them.
"""

from __future__ import annotations

from typing import Any

import click

from . import options as shared
from .console import ProgressLine
from .options import count, group, make_grammar, opt, refuse
from .summary import print_summary, print_warnings

# A test holds these names to the registry, which takes too long to load for a help text.
REPRESENTATIONS = """\
xval            one value, scaled; xval:log its logarithm
bits            the 32 bits of a float; bits:64 of a double
fone:I,F        the phases of I digits before the point and F behind it
logfourier      the phases of the logarithm
exponent_bins   a bin on a logarithmic scale
place           a token per digit, with its place; place:lsd backwards
digits          groups of three digits; digits:1 one by one; digits:3,places
p10 p1000 b1999 fp15   sign, mantissa and exponent: 3, 2 or 1 tokens; p10:5 digits
subword         what the tokenizer alone gives"""
EPILOG = f"""\
\b
Representations, one or several of those with one token, as in xval,fone:6,4,bits:
  {REPRESENTATIONS.replace(chr(10), chr(10) + "  ")}

\b
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
POSITIVE = click.FloatRange(0, min_open=True)


@click.command(cls=shared.Command, epilog=EPILOG)
@shared.inputs
@group(
    "Numbers",
    opt("--numbers LIST", "Representations: see below.", shared.Names(), default="xval"),
    shared.grammar,
    shared.pattern,
    shared.overflow,
    opt("--dense", "Store bits and fone as tensors, not as one integer and digits."),
    opt("--scale X", "Multiply xval's values by this. Default: fitted; 1 is raw.", POSITIVE),
    opt("--clip X", "Clip scaled values here. Default: 5, or none with --scale.", POSITIVE),
    opt("--fit", "Fit the scale, as is done unless --scale is given.", hidden=True),
    opt(
        "--fit-quantile Q",
        "Scale this quantile of the magnitudes to 5. Default: the one with which the fewest numbers"
        " are clipped or vanish.",
        click.FloatRange(0, 1, min_open=True),
    ),
)
@group(
    "Text",
    shared.tokenizer,
    shared.text_column,
    shared.template,
    shared.input_format,
    shared.text_unit,
    opt(
        "--leading-space CHOICE",
        "Whether a number's token takes the space before it along (auto) or not.",
        click.Choice(["auto", "separate"]),
    ),
    opt("--add-special-tokens", "Put the tokenizer's special tokens around each text."),
    opt("--parse-special", "Read special tokens that are written in the text as such."),
    shared.on_error,
)
@group(
    "Output",
    opt(
        "-o/--output FILE",
        "A .parquet, .arrow (.feather, .ipc) or .jsonl file; or FOLDER/; - for standard output. Or a URL.",
        required=True,
    ),
    opt(
        "--output-format FORMAT",
        "parquet, arrow or jsonl, whatever the name; parquet in a folder, unless arrow is given."
        " Standard output takes jsonl, its default, and arrow, as a stream.",
        click.Choice(["parquet", "arrow", "jsonl"]),
    ),
    opt("--keep-text", "Also store what it takes to give back every byte."),
    opt(
        "--keep-column NAME",
        "Also store this column; repeatable.",
        name="keep_columns",
        multiple=True,
    ),
    opt(
        "--layout PER",
        "A value per number (the default, and smallest), or one per token in every column: such"
        " rows can be sliced and joined.",
        click.Choice(["number", "token"]),
    ),
    opt(
        "--compression CODEC",
        "zstd (the default), lz4, none; for Parquet also snappy, gzip.",
        click.Choice(["zstd", "lz4", "snappy", "gzip", "none"]),
    ),
    opt(
        "--tensors KIND",
        "In Parquet: plain lists (the default), which every program reads, or Arrow's tensor type"
        " (extension), which datasets refuses.",
        click.Choice(["lists", "extension"]),
    ),
    opt("--stats", "Also tell what numbers there are, as numtok stats does; a folder keeps it."),
    shared.overwrite,
)
@group(
    "Packed rows",
    opt(
        "--pack LENGTH",
        "Rows of at most so many tokens, in token layout, for trainers: documents joined with the"
        " end token, none lost, no number cut.",
        count(),
    ),
    opt(
        "--pack-mode MODE",
        "Fill row after row (sequential, the default), or put whole documents where they leave the"
        " least room, and cut only longer ones.",
        click.Choice(["sequential", "best-fit"]),
    ),
    shared.end_token(
        "Behind every packed document: a token or its id; else <|endoftext|>, </s> or the like."
    ),
)
@group(
    "Folders of shards",
    opt("--shards N", "Write a folder of so many files, at most.", count()),
    opt(
        "--shard-size SIZE",
        "Write a folder, a file for about so much input. Default: 256MiB.",
        shared.Size(),
    ),
    opt(
        "--shard I/N",
        "Do every N-th shard only, from the I-th on; then `numtok finish`.",
        shared.Share(),
    ),
    opt(
        "--ray ADDRESS",
        "Have a Ray cluster write the shards: auto, local, or host:port. All nodes must see the"
        " same files.",
    ),
)
@group(
    "Running",
    shared.config,
    shared.workers,
    opt(
        "--engine NAME",
        "auto (the default), gigatoken or tokenizers: the same ids.",
        click.Choice(["auto", "gigatoken", "tokenizers"]),
    ),
    opt("--batch-bytes N", "About how much text is encoded at once.", count(), hidden=True),
)
@shared.running
def encode(
    inputs: tuple[str, ...],
    output: str,
    grammar: Any,
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

    kind = options["output_format"] or ("jsonl" if output == "-" else output.rpartition(".")[2])
    if output == "-":
        refuse("is for a file, and standard output is none", "overwrite")
    if kind == "jsonl":
        refuse("is for Parquet and Arrow, and JSON lines are neither", "compression")
    if kind in ("jsonl", "arrow", "feather", "ipc"):
        refuse("is for Parquet alone", "tensors")
    unset = ("compression", "tensors", "pack_mode", "engine", "batch_bytes")
    options = {
        name: value for name, value in options.items() if value is not None or name not in unset
    }
    with ProgressLine(quiet) as progress:
        summary = encode_files(
            inputs, output, grammar=make_grammar(grammar, pattern), progress=progress, **options
        )
    print_warnings(summary, packed=options["pack"] is not None)
    if not quiet:
        print_summary(summary, options["numbers"], options["pack"])
        if summary.statistics is not None:
            from numtok.statistics.report import Report

            from .stats import print_report

            print_report(Report.of(summary.statistics), "numbers")
