"""``numtok train``: a byte-level BPE tokenizer that has seen no digit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from .console import Clock, ProgressLine, debug_option, duration, print_table, size
from .options import (
    OnceCommand,
    grammar_options,
    input_format_option,
    make_grammar,
    overwrite_option,
    quiet_option,
    text_column_option,
)

EPILOG = """\b
Examples, with examples/sample.jsonl of the repository, or JSON lines of your own:
  numtok train sample.jsonl -o my-tokenizer --vocab-size 1000
  numtok encode sample.jsonl -o trained.parquet --tokenizer my-tokenizer
"""


@click.command(cls=OnceCommand, epilog=EPILOG)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option("-o", "--output", required=True, metavar="FOLDER", help="Gets a tokenizer.json.")
@click.option(
    "--vocab-size",
    type=click.IntRange(257),
    default=16000,
    show_default=True,
    help="Tokens in all.",
)
@click.option(
    "--min-frequency",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="How often a pair must occur to be merged.",
)
@text_column_option
@input_format_option
@grammar_options
@overwrite_option
@quiet_option
@debug_option
def train(
    inputs: tuple[str, ...],
    output: str,
    vocab_size: int,
    min_frequency: int,
    overwrite: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Train a byte-level BPE tokenizer on text with its numbers taken out.

    Merges never span a number, and digits stay single tokens. The result loads in numtok,
    tokenizers and transformers.
    """
    from numtok.engines.train import save_tokenizer, train_tokenizer

    clock = Clock()
    with ProgressLine(quiet) as progress:
        texts = _texts(inputs, reading["input_format"], reading["text_column"], progress, clock)
        grammar = make_grammar(reading["grammar"], reading["pattern"])
        config = train_tokenizer(texts, vocab_size, grammar=grammar, min_frequency=min_frequency)
    path = save_tokenizer(config, output, overwrite)
    if not quiet:
        tokens = len(config["model"]["vocab"])
        print_table(
            [
                ("tokens", f"{tokens:,}", ""),
                ("size", size(path.stat().st_size), ""),
                ("time", duration(clock()), ""),
            ],
            str(path),
        )


def _texts(
    inputs: tuple[str, ...],
    format: str | None,
    text_column: str | None,
    progress: ProgressLine,
    clock: Clock,
) -> Iterator[Any]:
    """The texts of all inputs, with progress while they are read."""
    from numtok.corpus.read.documents import find_inputs, read_batches
    from numtok.corpus.summary import Progress

    sources = find_inputs(inputs, format)
    sizes = [source.size for source in sources]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    done = 0
    for source in sources:
        for batch in read_batches(source, text_column):
            yield batch.texts
            progress(Progress(done + batch.position, total, 0, 0, 0, clock()))
        done += source.size or 0
