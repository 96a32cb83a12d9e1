"""Prepare before encoding: ``numtok train``, a byte-level BPE tokenizer that has seen no digit; and
``numtok warm-up``, what a first run does for later ones.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import click

from .console import ProgressLine, Row, duration, echo, size
from .options import (
    COUNT,
    DEBUG,
    DELIMITER,
    FORMAT,
    GRAMMAR,
    INPUTS,
    OVERWRITE,
    PATTERN,
    QUIET,
    TEXT_COLUMN,
    TOKENIZER,
    Count,
    command,
    group,
)

TRAINING = """
numtok train sample.jsonl -o my-tokenizer --vocab-size 1000
numtok encode sample.jsonl -o trained.parquet --numbers bits --tokenizer my-tokenizer
"""
WARMING = """
numtok warm-up
numtok warm-up --numbers xval,bits --numbers p10
numtok warm-up --tokenizer my-tokenizer --quiet
"""


@command(TRAINING)
@INPUTS
@group(
    "Output",
    click.option(
        "-o", "--output", metavar="FOLDER", required=True, help="Write the tokenizer.json here."
    ),
    click.option(
        "--vocab-size",
        metavar="N",
        type=Count(257, 1 << 31),
        default=16000,
        show_default=True,
        help="The size of the vocabulary.",
    ),
    click.option(
        "--min-frequency",
        metavar="N",
        type=COUNT,
        default=2,
        show_default=True,
        help="Merge only pairs that occur this often.",
    ),
    OVERWRITE,
)
@group("Text", TEXT_COLUMN, FORMAT, DELIMITER, GRAMMAR, PATTERN)
@group("Running", QUIET, DEBUG)
def train(
    inputs: tuple[str, ...],
    output: str,
    vocab_size: int,
    min_frequency: int,
    grammar: Any,
    overwrite: bool,
    progress: ProgressLine,
    **reading: Any,
) -> tuple[list[Row], str]:
    """Train a byte-level BPE tokenizer without numbers.

    Numbers are taken out of the text first, so no merge spans a number and digits stay single tokens.
    numtok, tokenizers and transformers load the result.
    """
    from numtok.tokenizer.train import save_tokenizer, train_tokenizer

    started = time.perf_counter()
    texts = _texts(inputs, progress, **reading)
    config = train_tokenizer(texts, vocab_size, grammar=grammar, min_frequency=min_frequency)
    path = save_tokenizer(config, output, overwrite)
    rows = [
        ("tokens", f"{len(config['model']['vocab']):,}", ""),
        ("size", size(path.stat().st_size), ""),
        ("time", duration(time.perf_counter() - started), ""),
    ]
    return rows, str(path)


def _texts(
    inputs: tuple[str, ...],
    progress: ProgressLine,
    input_format: str | None,
    delimiter: str | None,
    text_column: str | None,
) -> Iterator[Any]:
    """Yield the texts of all inputs, with progress while they are read."""
    from numtok.corpus.encode_options import EncodeOptions
    from numtok.corpus.pipeline import Reader
    from numtok.corpus.read.documents import find_inputs
    from numtok.corpus.summary import Run

    run = Run(find_inputs(inputs, input_format), "-", progress)
    reader = Reader(run.sources, EncodeOptions(text_column=text_column, delimiter=delimiter))
    for batch, run.read in reader.chunks():
        yield batch.texts
        run.tick()


@command(WARMING, name="warm-up")
@group(
    "Numbers",
    click.option(
        "--numbers",
        metavar="LIST",
        multiple=True,
        help="Representations to prepare, such as xval,bits; repeatable. Default: all.",
    ),
)
@group("Text", TOKENIZER)
@group("Running", QUIET, DEBUG)
def warm_up(
    numbers: tuple[str, ...], tokenizer: str | None, progress: ProgressLine
) -> tuple[list[Row], str]:
    """Compile everything now, not in the first run.

    Use it in container images and on the nodes of a cluster.

    Compiled functions go into your cache folder; NUMBA_CACHE_DIR names another place. So does what
    numtok learns about the tokenizer; NUMTOK_CACHE names another place.
    """
    from numtok.arrays.kernel_cache import compiled_in
    from numtok.corpus.warm_up import warm_up

    started = time.perf_counter()

    def say(name: str) -> None:
        if not progress.quiet:
            echo(f"numtok: preparing {name}", err=True)

    folder = warm_up(tokenizer, numbers or None, say)
    rows = [
        ("compiled functions", f"{compiled_in(folder):,}", ""),
        ("time", duration(time.perf_counter() - started), ""),
    ]
    return rows, str(folder)
