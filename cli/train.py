"""``numtok train``: a byte-level BPE tokenizer that has seen no digit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import click

from . import options as shared
from .console import ProgressLine, duration, print_table, size
from .options import count, group, make_grammar, opt

EPILOG = """\b
Examples, with examples/sample.jsonl of the repository, or JSON lines of your own:
  numtok train sample.jsonl -o my-tokenizer --vocab-size 1000
  numtok encode sample.jsonl -o trained.parquet --tokenizer my-tokenizer
"""


@click.command(cls=shared.Command, epilog=EPILOG)
@shared.inputs
@group(
    "Output",
    opt("-o/--output FOLDER", "Gets a tokenizer.json.", required=True),
    opt("--vocab-size N", "Tokens in all.", count(257, 1 << 31), default=16000),
    opt(
        "--min-frequency N",
        "How often a pair must occur to be merged.",
        count(1, 1 << 31),
        default=2,
    ),
    shared.overwrite,
)
@group("Text", shared.text_column, shared.input_format, shared.grammar, shared.pattern)
@shared.running
def train(
    inputs: tuple[str, ...],
    output: str,
    vocab_size: int,
    min_frequency: int,
    grammar: Any,
    pattern: str | None,
    overwrite: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Train a byte-level BPE tokenizer on text with its numbers taken out.

    Merges never span a number, and digits stay single tokens. The result loads in numtok,
    tokenizers and transformers.
    """
    from numtok.engines.train import save_tokenizer, train_tokenizer

    started = time.perf_counter()
    with ProgressLine(quiet) as progress:
        config = train_tokenizer(
            _texts(inputs, progress, started, **reading),
            vocab_size,
            grammar=make_grammar(grammar, pattern),
            min_frequency=min_frequency,
        )
    path = save_tokenizer(config, output, overwrite)
    if not quiet:
        rows = [
            ("tokens", f"{len(config['model']['vocab']):,}", ""),
            ("size", size(path.stat().st_size), ""),
            ("time", duration(time.perf_counter() - started), ""),
        ]
        print_table(rows, str(path))


def _texts(
    inputs: tuple[str, ...],
    progress: ProgressLine,
    started: float,
    input_format: str | None,
    text_column: str | None,
) -> Iterator[Any]:
    """The texts of all inputs, with progress while they are read."""
    from numtok.corpus.read.documents import find_inputs, read_batches
    from numtok.corpus.summary import Progress

    sources, done = find_inputs(inputs, input_format), 0
    sizes = [source.size for source in sources]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    for source in sources:
        for batch in read_batches(source, text_column):
            yield batch.texts
            seconds = time.perf_counter() - started
            progress(Progress(done + batch.position, total, 0, 0, 0, seconds))
        done += source.size or 0
