"""``numtok encode``: text files to a Parquet or Arrow file of tokens and number tensors, or to a
folder of them; and for a folder ``numtok finish`` and ``numtok status``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .console import (
    ProgressLine,
    Row,
    duration,
    echo,
    print_table,
    print_warning,
    rate,
    shown,
    size,
)
from .options import FOLDER, INPUTS, command, refuse

if TYPE_CHECKING:
    from numtok.corpus.fit import Fit
    from numtok.corpus.summary import Summary

# shares of numbers, above which the user is told of them
VANISHING, CLIPPED, LEFT = 0.01, 0.1, 0.01
ENCODE = """
Numbers
  --numbers LIST = xval:log  One representation or several, with commas between: see below.
  --grammar
  --pattern
  --overflow
  --dense  Store bits and fone as tensors instead of integers and digits.
  --scale X  Multiply xval's values by this; 1 leaves them as they are. Default: fitted to the inputs.
  --clip X  Bound the scaled values. Default: 5, or none with --scale.
  --fit  Fit the scale, as is done unless --scale is given.
  --fit-quantile Q  Fit the scale so that this quantile of the magnitudes becomes 5. Default: so that
      the fewest numbers are clipped or come near zero; of xval:log, so that none is clipped.
Text
  --tokenizer
  --text-column
  --template
  --format
  --delimiter
  --text-unit
  --leading-space auto|separate  The space before a number is part of the number's token where the
      tokenizer allows it (auto, the default), or a token of its own (separate).
  --add-special-tokens  Put the tokenizer's special tokens around each document.
  --parse-special  Encode special tokens written in the text as special tokens, not as text.
  --on-error
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
  --overwrite
Packed rows
  --pack N  Write rows of at most N tokens for trainers: documents joined with the end token, none
      lost, no number cut. Implies --layout token.
  --pack-mode sequential|best-fit  Fill one row after the other (sequential, the default), or put
      whole documents where they fit best, and cut only longer ones.
  --end-token TOKEN  The token after every packed document, or its id. Default: <|endoftext|>, </s>
      or the like.
Folders of shards
  --split SHARES  Write a folder for each, as in train=0.98,validation=0.02. A document's
      place depends on its text and --split-seed alone, so it stays when others come.
  --split-seed SEED  The seed of the hash by which --split divides. Default: 0.
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
numtok encode sample.jsonl -o sample.parquet --numbers bits
numtok encode sample.jsonl -o bits.arrow --numbers xval:log,bits --keep-column id
numtok encode sample.jsonl -o exact.parquet --numbers place --keep-text
numtok encode sample.jsonl -o digits.parquet --numbers xval:log,fone:6,4,bits
numtok encode sample.jsonl -o scaled.parquet --numbers xval --scale 0.002 --clip 5
numtok encode sample.jsonl -o packed.parquet --numbers bits --pack 2048
numtok encode sample.jsonl -o shards/ --numbers xval:log --shards 4
cat sample.jsonl | numtok encode - -o - --numbers bits --quiet
"""
# What numtok has defaults for, which no option replaces by none.
UNSET = ("compression", "split_seed", "tensors", "pack_mode", "engine", "batch_bytes")


@command([INPUTS], ENCODE, EXAMPLES, epilog=REPRESENTATIONS)
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
    given = {name: one for name, one in options.items() if one is not None or name not in UNSET}
    summary = encode_files(inputs, output, progress=progress, **given)
    progress.clear()
    _warn(summary, packed=options["pack"] is not None)
    if progress.quiet:
        return
    piped = output == "-"
    rows = list(_summary(summary, options["numbers"], options["pack"]))
    print_table(rows, "standard output" if piped else summary.output, err=piped)


FINISH = """
Running
  --check  Also read all shards, and compare them with their SHA-256.
  --quiet
  --debug
"""
# each of n machines does --shard I/n, and one finishes
JOB_EXAMPLES = """
numtok encode sample.jsonl -o parts/ --numbers bits --shard 1/1
numtok status parts/
numtok finish parts/
"""


@command([FOLDER], FINISH, JOB_EXAMPLES)
def finish(folder: str, check: bool, progress: ProgressLine) -> tuple[list[Row], str]:
    """Finish a folder that several machines wrote.

    Run it once, after each machine has run encode with its --shard I/N. It checks that every shard is
    done and that together they hold each input exactly once, and writes the manifest.
    """
    from numtok import finish_job

    summary = finish_job(folder, check=check)
    return list(_summary(summary, None)), summary.output


@command([FOLDER], "Running\n  --debug", JOB_EXAMPLES)
def status(folder: str) -> None:
    """Show how far the job in a folder is.

    It says how many shards are done, and whether the job is finished.
    """
    from numtok import job_status

    found = job_status(folder)
    echo(shown(folder))
    echo(f"  done      {len(found.done):,} of {found.shards:,} shards")
    if found.finished:
        echo("  finished")


# What it came to


def _warn(summary: Summary, packed: bool) -> None:
    """Documents without text, no numbers at all, and many numbers left as text or lost to a scale."""
    if summary.without_text:
        became = "pieces without tokens" if packed else "null rows"
        print_warning(
            f"{summary.without_text:,} of {summary.documents:,} documents have no text (it is"
            f" missing or null) and are {became}, the first in {summary.first_without_text}"
        )
    if summary.documents and not summary.numbers:
        _warn_of_no_numbers(summary)
    if left := _left_as_text(summary):
        print_warning(left)
    log = any(getattr(representation, "log", False) for representation in summary.representations)
    kept = max(summary.numbers - sum(summary.left_as_text.values()), 1)
    vanishing, clipped = summary.vanishing.get("xval", 0), summary.clipped.get("xval", 0)
    if vanishing > VANISHING * kept or clipped > CLIPPED * kept:
        more = "" if log else "--numbers xval:log holds more of them, and "
        print_warning(
            f"with this scale of xval, {vanishing / kept:.1%} of the numbers are nearly zero for"
            f" the model and {clipped / kept:.1%} are clipped; {more}--numbers bits holds numbers"
            " of all magnitudes"
        )


def _left_as_text(summary: Summary) -> str:
    """Say how many numbers, of all and of each column of a template, stay text; or nothing, if those
    are few.
    """
    from numtok.representations.parse import name_of

    left, there = summary.left_by_column, summary.numbers_by_column
    columns = [
        f"{count:,} of {there[name]:,} in column {name!r}"
        for name, count in left.items()
        if count > LEFT * there[name]
    ]
    total = sum(summary.left_as_text.values())
    if not columns and total <= LEFT * summary.numbers:
        return ""
    names = [name_of(one) for one in summary.representations if one.name in summary.left_as_text]
    where = f" ({', '.join(columns)})" if columns else ""
    return (
        f"{' and '.join(names)} cannot hold {total / summary.numbers:.1%} of the numbers{where}, which"
        " stay ordinary text: a model gets no value of them. `numtok stats` says which"
        " representations hold them; --overflow clip takes the nearest number that is held"
    )


def _warn_of_no_numbers(summary: Summary) -> None:
    """Say where there are some, in a table."""
    found = ", ".join(map(repr, summary.number_columns))
    template = " ".join(f"{{{name}}}" for name in summary.number_columns)
    where = f" in {summary.text_column!r}" if summary.text_column else ""
    ways = (
        f"; the columns {found} hold some: join them to the text with --template '{template}', or"
        " all with --template row"
        if found
        else "; with tables, --template joins columns to the text"
    )
    print_warning(f"there are no numbers{where}{ways}")


def _summary(summary: Summary, numbers: Any, pack: int | None = None) -> Iterator[Row]:
    """Yield the rows of the table printed at the end. ``numbers`` is the option as the user gave
    it, ``pack`` the length of packed rows.
    """
    if not isinstance(numbers, str):
        numbers = ",".join(representation.name for representation in summary.representations)
    skipped = f"{summary.skipped:,} left out, see {summary.quarantine}" if summary.skipped else ""
    each = f"{summary.bytes / summary.tokens:.2f} bytes each" if summary.tokens else ""
    column = f"of {summary.text_column!r}; " if summary.text_column else ""
    yield "documents", f"{summary.documents:,}", skipped
    yield "text", size(summary.bytes), column + _time_taken(summary)
    yield "tokens", f"{summary.tokens:,}", each
    yield "numbers", f"{summary.numbers:,}", f"as {numbers}"
    if pack:
        full = summary.tokens + summary.documents - summary.without_text
        share = f"{full / max(summary.rows * pack, 1):.2%} full"
        yield "rows", f"{summary.rows:,}", f"of at most {pack:,} tokens, {share}"
    if summary.fit is not None:
        yield from _fitted(summary.fit)
    yield from _lost(summary)
    for name, count in summary.splits.items():
        yield f"of {name}", f"{count:,}", "documents"
    if summary.shards:
        told = [f"{summary.resumed:,} were done before"] if summary.resumed else []
        left = summary.shards - summary.shards_done
        told += [f"{left:,} are not done yet"] if left else []
        yield "shards", f"{summary.shards:,}", "; ".join(told)
    share = f"{summary.output_bytes / max(summary.bytes, 1):.2f} of the text's size"
    yield "output", size(summary.output_bytes), share if summary.bytes else "there is no text"


def _lost(summary: Summary) -> Iterator[Row]:
    """The numbers that are not as they were, by what became of them."""
    kinds = (
        ("cut numbers", summary.cut_numbers, "longer than a row, so that they lie in several"),
        ("left as text", summary.left_as_text, "cannot be held: "),
        ("clipped", summary.clipped, ""),
        ("nearly zero", summary.vanishing, "below 0.001 once scaled: "),
        (
            "in added tokens", summary.in_added_tokens,
            "digits within the tokenizer's own tokens, not numbers",
        ),
    )  # fmt: skip
    for label, lost, why in kinds:
        by = lost if isinstance(lost, dict) else {}
        if count := sum(by.values()) if by else lost:
            each = sorted(by.items())
            yield label, f"{count:,}", why + ", ".join(f"{n:,} by {name}" for name, n in each if n)


def _fitted(fit: Fit) -> Iterator[Row]:
    """Yield a row for each fitted representation, with the options that give other files the same
    scale.
    """
    to = f"({fit.numbers:,} numbers of {fit.documents:,} documents)"
    if xval := fit.xval:
        effect = "there is no number but zero to fit it to"
        if fit.largest is not None:
            effect = f"{fit.largest:.4g} becomes 5 {to}"
        again = f"--scale {xval.scale!r} --clip {xval.clip:g}"
        yield "xval's scale", f"{xval.scale!r}", f"{effect}; for more files: {again}"
    yield from ((f"fitted {one.name}", "", to) for one in fit.fitted if not one.has_scale)


def _time_taken(summary: Summary) -> str:
    """Return the duration of the run and its speed. A resumed run has no speed, as parts were done
    before.
    """
    if summary.resumed or not summary.seconds:
        return duration(summary.seconds) if summary.seconds else ""
    return f"{rate(summary.bytes, summary.seconds)}, without start-up"
