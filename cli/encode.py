"""``numtok encode``: text files to a Parquet or Arrow file of tokens and number tensors, or to a
folder of them; and for a folder ``numtok finish`` and ``numtok status``.
"""

from __future__ import annotations

from typing import Any

import click

from .console import ProgressLine, Row, echo, print_summary, shown
from .options import (
    CONFIG,
    COUNT,
    DEBUG,
    DELIMITER,
    FOLDER,
    FORMAT,
    GRAMMAR,
    INPUTS,
    ON_ERROR,
    OVERFLOW,
    OVERWRITE,
    PATTERN,
    POSITIVE,
    QUIET,
    TEMPLATE,
    TEXT_COLUMN,
    TEXT_UNIT,
    TOKENIZER,
    WORKERS,
    Share,
    Size,
    command,
    group,
    refuse,
    token_or_id,
)
from .summary import rows_of, warn

# A test holds these names to the registry, which takes too long to load for a help text.
REPRESENTATIONS = """\b
Representations; those with one token can be combined, as in xval,fone:6,4,bits:
  xval            one token, its scaled value; xval:log the logarithm
  bits            one token, the 32 bits of a float; bits:64 of a double
  fone:I,F        one token, phases of I digits before the point and F after it
  logfourier      one token, phases of the logarithm
  exponent_bins   one token, a bin on a logarithmic scale
  quantile_bins:N one token, one of N bins fitted to the corpus; quantile_bins:N,soft
  place           a token per digit, with its decimal position; place:lsd the last digit first
  digits          groups of three digits; digits:1 one by one; digits:3,places;
                  digits:1,bare for a pretrained model that has digits already
  p10 p1000 b1999 fp15   sign, mantissa, exponent in 5, 3, 2 or 1 tokens; p10:5 digits
  float_digits    sign, exponent and mantissa in digits of a base; float_digits:10,2,4
  numerologic     a token per digit, after the count of the digits
  subword         what the tokenizer does by itself

"""
EXAMPLES = """
numtok encode sample.jsonl -o sample.parquet --numbers bits
numtok encode sample.jsonl -o bits.arrow --numbers xval:log,bits --keep-column id
numtok encode sample.jsonl -o exact.parquet --numbers place --keep-text
numtok encode sample.jsonl -o digits.parquet --numbers xval:log,fone:6,4,bits
numtok encode sample.jsonl -o scaled.parquet --numbers xval --scale 0.002 --clip 5
numtok encode sample.jsonl -o packed.parquet --numbers bits --pack 2048
numtok encode sample.jsonl -o shards/ --numbers xval:log --shards 4
cat sample.jsonl | numtok encode - -o - --numbers bits --quiet
"""


@command(EXAMPLES, epilog=REPRESENTATIONS)
@INPUTS
@group(
    "Numbers",
    click.option(
        "--numbers",
        metavar="LIST",
        default="xval:log",
        show_default=True,
        help="One representation or several, with commas between: see below.",
    ),
    GRAMMAR,
    PATTERN,
    OVERFLOW,
    click.option(
        "--dense",
        is_flag=True,
        help="Store bits and fone as tensors instead of integers and digits.",
    ),
    click.option(
        "--scale",
        metavar="X",
        type=POSITIVE,
        help="Multiply xval's values by this; 1 leaves them as they are. Default: fitted to the"
        " inputs.",
    ),
    click.option(
        "--clip",
        metavar="X",
        type=POSITIVE,
        help="Bound the scaled values. Default: 5, or none with --scale.",
    ),
    click.option(
        "--fit",
        is_flag=True,
        hidden=True,
        help="Fit the scale, as is done unless --scale is given.",
    ),
    click.option(
        "--fit-quantile",
        metavar="Q",
        type=click.FloatRange(0, 1, min_open=True),
        help="Fit the scale so that this quantile of the magnitudes becomes 5. Default: so that"
        " the fewest numbers are clipped or come near zero; of xval:log, so that none is"
        " clipped.",
    ),
)
@group(
    "Text",
    TOKENIZER,
    TEXT_COLUMN,
    TEMPLATE,
    FORMAT,
    DELIMITER,
    TEXT_UNIT,
    click.option(
        "--leading-space",
        type=click.Choice(["auto", "separate"]),
        help="The space before a number is part of the number's token where the tokenizer allows"
        " it (auto, the default), or a token of its own (separate).",
    ),
    click.option(
        "--add-special-tokens",
        is_flag=True,
        help="Put the tokenizer's special tokens around each document.",
    ),
    click.option(
        "--parse-special",
        is_flag=True,
        help="Encode special tokens written in the text as special tokens, not as text.",
    ),
    ON_ERROR,
)
@group(
    "Output",
    click.option(
        "-o",
        "--output",
        metavar="FILE",
        required=True,
        help="A .parquet, .arrow (.feather, .ipc) or .jsonl file; FOLDER/ for a folder of shards;"
        " a URL; or - for standard output.",
    ),
    click.option(
        "--output-format",
        type=click.Choice(["parquet", "arrow", "jsonl"]),
        help="Write this format, whatever the name. Default in a folder: parquet; on standard"
        " output: jsonl.",
    ),
    click.option(
        "--keep-text",
        is_flag=True,
        help="Also store what is needed to give the text back byte for byte.",
    ),
    click.option(
        "--keep-column",
        "keep_columns",
        metavar="NAME",
        multiple=True,
        help="Also store this column of the input; repeatable.",
    ),
    click.option(
        "--layout",
        type=click.Choice(["number", "token"]),
        help="Store one value per number (the default, and smallest), or one per token in every"
        " column, so that programs can slice and join rows.",
    ),
    click.option(
        "--compression",
        type=click.Choice(["zstd", "lz4", "snappy", "gzip", "none"]),
        help="zstd is the default; snappy and gzip are for Parquet.",
    ),
    click.option(
        "--tensors",
        type=click.Choice(["lists", "extension"]),
        help="Store tensors in Parquet as plain lists (the default), which every program reads, or"
        " as Arrow's tensor type (extension), which datasets refuses.",
    ),
    OVERWRITE,
)
@group(
    "Packed rows",
    click.option(
        "--pack",
        metavar="N",
        type=COUNT,
        help="Write rows of at most N tokens for trainers: documents joined with the end token,"
        " none lost, no number cut. Implies --layout token.",
    ),
    click.option(
        "--pack-mode",
        type=click.Choice(["sequential", "best-fit"]),
        help="Fill one row after the other (sequential, the default), or put whole documents where"
        " they fit best, and cut only longer ones.",
    ),
    click.option(
        "--end-token",
        metavar="TOKEN",
        callback=token_or_id,
        help="The token after every packed document, or its id. Default: <|endoftext|>, </s> or"
        " the like.",
    ),
)
@group(
    "Folders of shards",
    click.option(
        "--split",
        metavar="SHARES",
        help="Write a folder for each, as in train=0.98,validation=0.02. A document's place"
        " depends on its text and --split-seed alone, so it stays when others come.",
    ),
    click.option(
        "--split-seed",
        metavar="SEED",
        type=click.IntRange(0, (1 << 32) - 1),
        help="The seed of the hash by which --split divides. Default: 0.",
    ),
    click.option("--shards", metavar="N", type=COUNT, help="Write a folder of at most N files."),
    click.option(
        "--shard-size",
        metavar="SIZE",
        type=Size(),
        help="Write a folder with one file for about so much input. Default: 256MiB.",
    ),
    click.option(
        "--shard",
        metavar="I/N",
        type=Share(),
        help="Write only every N-th shard, from the I-th on, as one of N machines; then run"
        " `numtok finish`.",
    ),
    click.option(
        "--ray",
        metavar="ADDRESS",
        help="Write the shards on a Ray cluster: auto (the running one), local, or host:port. All"
        " nodes must see the same files.",
    ),
    click.option(
        "--card",
        is_flag=True,
        help="Also write a README.md for the Hugging Face hub that says what the files hold."
        " Programs that read whole folders, as pyarrow and Spark do, take it for data: name"
        " the files there.",
    ),
)
@group(
    "Running",
    CONFIG,
    WORKERS,
    click.option(
        "--engine",
        type=click.Choice(["auto", "gigatoken", "tokenizers"]),
        help="What tokenizes the text; the ids are the same. auto, the default, takes the faster"
        " one if it knows the tokenizer.",
    ),
    click.option(
        "--batch-bytes",
        metavar="N",
        type=COUNT,
        hidden=True,
        help="About how much text is encoded at once.",
    ),
    QUIET,
    DEBUG,
)
def encode(inputs: tuple[str, ...], output: str, progress: ProgressLine, **options: Any) -> None:
    """Encode text files to tokens and number columns.

    INPUT is a file, a folder, a pattern such as 'data/*.jsonl.zst', a URL, or - for standard
    input. It may be JSON lines, JSON, CSV, TSV, text, Parquet or Arrow, plain or compressed (.gz,
    .zst, .bz2, .xz).

    The output is one file, or for corpora of any size a folder of shards. After a kill, run the
    same command again: it goes on where it was. Folders may be in an object store (pip install
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
    options_given = {name: value for name, value in options.items() if value is not None}
    summary = encode_files(inputs, output, progress=progress, **options_given)
    progress.clear()
    warn(summary, packed=options["pack"] is not None)
    if progress.quiet:
        return
    asked = (options[name] for name in ("numbers", "pack", "add_special_tokens"))
    print_summary(list(rows_of(summary, *asked)), summary.output)


# each of n machines does --shard I/n, and one finishes
JOB_EXAMPLES = """
numtok encode sample.jsonl -o parts/ --numbers bits --shard 1/1
numtok status parts/
numtok finish parts/
"""


@command(JOB_EXAMPLES)
@FOLDER
@group(
    "Running",
    click.option(
        "--check", is_flag=True, help="Also read all shards, and compare them with their SHA-256."
    ),
    QUIET,
    DEBUG,
)
def finish(folder: str, check: bool, progress: ProgressLine) -> tuple[list[Row], str]:
    """Finish a folder that several machines wrote.

    Run it once, after each machine has run encode with its --shard I/N. It checks that every shard is
    done and that together they hold each input exactly once, and writes the manifest.
    """
    from numtok import finish_job

    summary = finish_job(folder, check=check)
    return list(rows_of(summary, None)), summary.output


@command(JOB_EXAMPLES)
@FOLDER
@group("Running", DEBUG)
def status(folder: str) -> None:
    """Show how far the job in a folder is.

    It says how many shards are done, and whether the job is finished.
    """
    from numtok import job_status

    job = job_status(folder)
    echo(shown(folder))
    echo(f"  done      {len(job.done):,} of {job.shards:,} shards")
    if job.finished:
        echo("  finished")
