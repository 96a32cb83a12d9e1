"""``numtok encode``: text files to a Parquet or Arrow file of tokens and number tensors, or to a
folder of them.
"""

from __future__ import annotations

from typing import Any

from .console import ProgressLine
from .options import INPUTS, command, make_grammar, refuse
from .summary import print_summary, print_warnings

OPTIONS = """
Numbers
  --numbers LIST = xval  Representations: see below.
  --grammar
  --pattern
  --overflow
  --dense  Store bits and fone as tensors, not as one integer and digits.
  --scale X  Multiply xval's values by this. Default: fitted; 1 is raw.
  --clip X  Clip scaled values here. Default: 5, or none with --scale.
  --fit  Fit the scale, as is done unless --scale is given.
  --fit-quantile Q  Scale this quantile of the magnitudes to 5. Default: the one with which the
      fewest numbers are clipped or vanish.
Text
  --tokenizer
  --text-column
  --template
  --format
  --text-unit
  --leading-space auto|separate  Whether a number's token takes the space before it along (auto) or
      not.
  --add-special-tokens  Put the tokenizer's special tokens around each text.
  --parse-special  Read special tokens that are written in the text as such.
  --on-error
Output
  -o/--output FILE!  A .parquet, .arrow (.feather, .ipc) or .jsonl file; or FOLDER/; - for standard
      output. Or a URL.
  --output-format parquet|arrow|jsonl  Whatever the name; parquet in a folder, unless arrow is given.
      Standard output takes jsonl, its default, and arrow, as a stream.
  --keep-text  Also store what it takes to give back every byte.
  --keep-column NAME...  Also store this column; repeatable.
  --layout number|token  A value per number (the default, and smallest), or one per token in every
      column: such rows can be sliced and joined.
  --compression zstd|lz4|snappy|gzip|none  zstd is the default; snappy and gzip are for Parquet.
  --tensors lists|extension  In Parquet: plain lists (the default), which every program reads, or
      Arrow's tensor type (extension), which datasets refuses.
  --stats  Also tell what numbers there are, as numtok stats does; a folder keeps it.
  --overwrite
Packed rows
  --pack N  Rows of at most so many tokens, in token layout, for trainers: documents joined with the
      end token, none lost, no number cut.
  --pack-mode sequential|best-fit  Fill row after row (sequential, the default), or put whole
      documents where they leave the least room, and cut only longer ones.
  --end-token TOKEN  Behind every packed document: a token or its id; else <|endoftext|>, </s> or
      the like.
Folders of shards
  --shards N  Write a folder of so many files, at most.
  --shard-size SIZE  Write a folder, a file for about so much input. Default: 256MiB.
  --shard I/N  Do every N-th shard only, from the I-th on; then `numtok finish`.
  --ray ADDRESS  Have a Ray cluster write the shards: auto, local, or host:port. All nodes must see
      the same files.
Running
  --config
  --workers
  --engine auto|gigatoken|tokenizers  The same ids; auto is the default.
  --batch-bytes N  About how much text is encoded at once.
  --quiet
  --debug
"""
# A test holds these names to the registry, which takes too long to load for a help text.
REPRESENTATIONS = """\b
Representations, one or several of those with one token, as in xval,fone:6,4,bits:
  xval            one value, scaled; xval:log its logarithm
  bits            the 32 bits of a float; bits:64 of a double
  fone:I,F        the phases of I digits before the point and F behind it
  logfourier      the phases of the logarithm
  exponent_bins   a bin on a logarithmic scale
  quantile_bins:N   a bin between quantiles, which are fitted; quantile_bins:N,soft a place in it
  place           a token per digit, with its place; place:lsd backwards
  digits          groups of three digits; digits:1 one by one; digits:3,places
  p10 p1000 b1999 fp15   sign, mantissa and exponent: 3, 2 or 1 tokens; p10:5 digits
  float_digits    sign, exponent and mantissa in digits of a base; float_digits:10,2,4
  subword         what the tokenizer alone gives

"""
EXAMPLES = """
numtok encode sample.jsonl -o sample.parquet
numtok encode sample.jsonl -o bits.arrow --numbers xval,bits --keep-column id
numtok encode sample.jsonl -o exact.parquet --numbers place --keep-text
numtok encode sample.jsonl -o digits.parquet --numbers xval,fone:6,4,bits
numtok encode sample.jsonl -o scaled.parquet --scale 0.002 --clip 5
numtok encode sample.jsonl -o packed.parquet --pack 2048
numtok encode sample.jsonl -o shards/ --shards 4
cat sample.jsonl | numtok encode - -o - --quiet
"""
# What numtok has defaults for, which no option replaces by none.
UNSET = ("compression", "tensors", "pack_mode", "engine", "batch_bytes")


@command([INPUTS], OPTIONS, EXAMPLES, epilog=REPRESENTATIONS)
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
    given = {name: one for name, one in options.items() if one is not None or name not in UNSET}
    with ProgressLine(quiet) as progress:
        summary = encode_files(
            inputs, output, grammar=make_grammar(grammar, pattern), progress=progress, **given
        )
    print_warnings(summary, packed=options["pack"] is not None)
    if not quiet:
        print_summary(summary, options["numbers"], options["pack"])
        if summary.statistics is not None:
            from numtok.statistics.report import Report

            from .stats import print_report, shown_report

            print_report(shown_report(Report.of(summary.statistics), "numbers"))
