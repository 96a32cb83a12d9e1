"""Documents in random order, in bounded memory: those of a block change places with one another, and
with no others. Which stretches of the inputs come together is settled before, by who opens them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from numtok.arrays.text_rows import TextRows
from numtok.corpus.pieces import Piece
from numtok.corpus.read.batches import TextBatch, joined, stretches

Item = TypeVar("Item")
BLOCK_BYTES = 32 << 20  # of text and kept columns


def in_random_order(items: Sequence[Item], *seed: int) -> list[Item]:
    """The items, in an order that is the same in all versions of numpy."""
    return [items[place] for place in np.random.RandomState(seed).permutation(len(items))]


def shuffled(pieces: Iterable[Piece], seed: int, batch_bytes: int) -> Iterator[Piece]:
    """The same documents, those of each block in random order."""
    block: list[TextBatch] = []
    size = number = read = 0
    for batch, read in pieces:
        if len(batch.texts):
            block.append(batch)
            size += sum(column.nbytes for column in (batch.texts, *batch.kept.values()))
        if size >= BLOCK_BYTES:
            yield from _permuted(block, (seed, number), batch_bytes, read)
            size, number = 0, number + 1
    yield from _permuted(block, (seed, number), batch_bytes, read)


def _permuted(
    block: list[TextBatch], seed: tuple[int, int], batch_bytes: int, read: int
) -> Iterator[Piece]:
    """The documents of the batches; the list is emptied."""
    if not block:
        return
    whole = joined(block)
    block.clear()
    order = np.random.RandomState(seed).permutation(len(whole.texts))
    for start, stop in stretches(np.diff(TextRows.of(whole.texts).offsets)[order], batch_bytes):
        yield Piece(whole.take(order[start:stop]), read)
