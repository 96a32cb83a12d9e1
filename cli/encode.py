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
  --numbers LIST = xval  One representation or several, with commas between: see below.
  --grammar
  --pattern
  --overflow
  --dense  Store bits and fone as tensors instead of integers and digits.
  --scale X  Multiply xval's values by this; 1 leaves them as they are. Default: fitted to the inputs.
  --clip X  Bound the scaled values. Default: 5, or none with --scale.
  --fit  Fit the scale, as is done unless --scale is given.
  --fit-quantile Q  Fit the scale so that this quantile of the magnitudes becomes 5. Default: so that
      the fewest numbers are clipped or come near zero.
Text
  --tokenizer
  --text-column
  --template
  --format
  --text-unit
  --leading-space auto|separate  The space before a number is part of the number's token where the
      tokenizer allows it (auto, the default), or a token of its own (separate).
  --add-special-tokens  Put the tokenizer's special tokens around each document.
  --parse-special  Encode special tokens written in the text as special tokens, not as text.
  --on-error
Which documents, in which order
  --shuffle SEED  Put the documents in random order, in bounded memory: the inputs (in a folder, small
      stretches of them), and the documents of 32 MiB of text among one another.
  --split SHARES  Write a folder for each, as in train=0.98,validation=0.02. A document's
      place depends on its text and --split-seed alone, so it stays when others come.
  --sample A:B  Take the documents whose hash, from 0 to 1, lies between the two, as in 0:0.01.
  --split-seed SEED  Of that hash, and so of --split. Default: 0.
Output
  -o/--output FILE!  A .parquet, .arrow (.feather, .ipc) or .jsonl file; FOLDER/ for a folder of
      shards; a URL; or - for standard output.
  --output-format parquet|arrow|jsonl  Write this format, whatever the name. Default in a folder:
      parquet; on standard output: jsonl.
  --keep-text  Also store what is needed to give the text back byte for byte.
  --keep-column NAME...  Also store this column of the input; repeatable.
  --layout number|token  Store one value per number (the default, and smallest), or one per token in
      every column, so that programs can slice and join rows.
  --compression zstd|lz4|snappy|gzip|none  zstd is the default; snappy and gzip are for Parquet.
  --tensors lists|extension  Store tensors in Parquet as plain lists (the default), which every
      program reads, or as Arrow's tensor type (extension), which datasets refuses.
  --stats  Also report the numbers of the corpus, as numtok stats does; a folder keeps the counts.
  --overwrite
Packed rows
  --pack N  Write rows of at most N tokens for trainers: documents joined with the end token, none
      lost, no number cut. Implies --layout token.
  --pack-mode sequential|best-fit  Fill one row after the other (sequential, the default), or put
      whole documents where they fit best, and cut only longer ones.
  --end-token TOKEN  The token after every packed document, or its id. Default: <|endoftext|>, </s>
      or the like.
Folders of shards
  --shards N  Write a folder of at most N files.
  --shard-size SIZE  Write a folder with one file for about so much input. Default: 256MiB.
  --shard I/N  Write only every N-th shard, from the I-th on, as one of N machines; then run
      `numtok finish`.
  --ray ADDRESS  Write the shards on a Ray cluster: auto (the running one), local, or host:port. All
      nodes must see the same files.
  --card  Also write a README.md for the Hugging Face hub that says what the files hold. Programs that
      read whole folders, as pyarrow and Spark do, take it for data: name the files there.
Running
  --config
  --workers
  --engine auto|gigatoken|tokenizers  What tokenizes the text; the ids are the same. auto, the
      default, takes the faster one if it knows the tokenizer.
  --batch-bytes N  About how much text is encoded at once.
  --quiet
  --debug
"""
# A test holds these names to the registry, which takes too long to load for a help text.
REPRESENTATIONS = """\b
Representations; those with one token can be combined, as in xval,fone:6,4,bits:
  xval            one token, its scaled value; xval:log the logarithm
  bits            one token, the 32 bits of a float; bits:64 of a double
  fone:I,F        one token, phases of I digits before the point and F after it
  logfourier      one token, phases of the logarithm
  exponent_bins   one token, a bin on a logarithmic scale
  quantile_bins:N   one token, one of N bins fitted to the corpus; quantile_bins:N,soft
  place           a token per digit, with its place; place:lsd ones first
  digits          groups of three digits; digits:1 one by one; digits:3,places
  p10 p1000 b1999 fp15   sign, mantissa, exponent in 5, 3, 2 or 1 tokens; p10:5 digits
  float_digits    sign, exponent and mantissa in digits of a base; float_digits:10,2,4
  numerologic     a token per digit, after the count of the digits
  subword         what the tokenizer does by itself

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
UNSET = ("compression", "split_seed", "tensors", "pack_mode", "engine", "batch_bytes")


@command([INPUTS], OPTIONS, EXAMPLES, epilog=REPRESENTATIONS)
def encode(
    inputs: tuple[str, ...],
    output: str,
    grammar: Any,
    pattern: str | None,
    quiet: bool,
    **options: Any,
) -> None:
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
