"""Read, work, write: the batches of all inputs as one stream, on the way of which documents and
skipped rows are counted (``Reader``), and an ordered pipeline with bounded memory
(``run_ordered``).

The calling thread reads, threads work, one more writes. What is read but not yet written has a
budget in bytes, whatever each stage's speed; an item larger than the budget passes alone. The first
failure in the order of the items is raised.
"""

from __future__ import annotations

import dataclasses
import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from numtok.arrays import memory
from numtok.corpus.encode_options import EncodeOptions
from numtok.corpus.read.batches import ReadOptions, SkippedRow, TextBatch, joined
from numtok.corpus.read.documents import lines_before, read_batches, rows_before
from numtok.corpus.read.sources import Source
from numtok.corpus.read.template import Template
from numtok.corpus.split import HashRange
from numtok.corpus.summary import BATCH_BYTES, Quarantined, processors
from numtok.errors import NumtokError

SMALL_BYTES = 1 << 16  # smaller batches cost more than what is in them, and are joined
_NO_TYPES: Mapping[str, pa.DataType] = {}


class TextChunk(NamedTuple):
    """A batch, and the stored bytes of all inputs up to its end."""

    batch: TextBatch
    read: int


class Reader:
    """All batches of all sources, and what is counted of them."""

    def __init__(
        self,
        sources: Sequence[Source],
        options: EncodeOptions,
        documents: HashRange | None = None,  # those of a split; None for all
    ) -> None:
        self.sources = sources
        self.options = ReadOptions(
            options.text_column,
            batch_bytes=options.batch_bytes or BATCH_BYTES,
            text_unit=options.text_unit,
            on_error=options.on_error,
            template=None if options.template is None else Template(options.template),
            delimiter=options.delimiter,
        )
        self.text_column = ""  # of the first file that has one
        self.skipped: list[Quarantined] = []
        self.without_text = 0  # documents
        self.first_without_text = ""  # the file and the row, from 1, of the first of them
        self._documents = documents

    def with_kept_columns(
        self, names: Sequence[str], fields_of_job: Sequence[pa.Field] | None = None
    ) -> tuple[Iterable[TextChunk], list[pa.Field]]:
        """Return (chunks, kept columns): their types are those of the first batch, or
        ``fields_of_job``.
        """
        types: dict[str, pa.DataType] = {field.name: field.type for field in fields_of_job or ()}
        chunks = self.chunks(tuple(names), types)
        if not names or fields_of_job is not None:
            return chunks, list(fields_of_job or ())
        first: list[TextChunk] = []
        for chunk in chunks:  # one whose rows were all left out has no types
            first.append(chunk)
            if len(chunk.batch.texts):
                break
        known_by = first[-1].batch.kept if first else {}
        types.update({name: known_by[name].type if first else pa.string() for name in names})
        fields = [pa.field(name, dtype) for name, dtype in types.items()]
        return itertools.chain(first, chunks), fields

    def chunks(
        self, names: Sequence[str] = (), types: Mapping[str, pa.DataType] = _NO_TYPES
    ) -> Iterator[TextChunk]:
        """Yield the documents of all sources in order, with the columns ``names``; ``types`` may
        come to be known while the first are read.
        """
        done = 0
        for source in self.sources:
            options_of_file = dataclasses.replace(
                self.options, keep_columns=names, kept_types=dict(types)
            )
            bad: list[SkippedRow] = []
            for batch in read_batches(source, options_of_file):
                bad += batch.bad
                if self._documents is not None:
                    batch = batch.take(np.flatnonzero(self._documents.contains(batch.texts)))
                self._count(batch)
                yield TextChunk(batch, done + batch.position)
            done += source.size or 0
            before = lines_before(source) if bad else 0  # in the whole file
            self.skipped += (
                Quarantined(source.name, None if line is None else line + before, error)
                for line, error in bad
            )

    def _count(self, batch: TextBatch) -> None:
        self.text_column = self.text_column or batch.column
        self.without_text += batch.texts.null_count
        if batch.texts.null_count and not self.first_without_text:
            null = int(memory.from_arrow(batch.texts.is_null()).argmax())
            row = int(batch.where.rows[null]) + 1 + rows_before(batch.source)
            near = "near " if batch.skipped else ""
            self.first_without_text = f"{batch.source.name}, {near}row {row}"


@contextmanager
def located(batch: TextBatch) -> Iterator[None]:
    """Let errors about a document of a batch name its file and row instead."""
    try:
        yield
    except NumtokError as error:
        sources, of, rows = batch.where
        source, row = sources[of[error.document or 0]], int(rows[error.document or 0]) + 1
        row += rows_before(source)
        error.move_to_file(source.name, row, near=error.document is None or batch.skipped > 0)
        raise
    except Exception as error:
        sources, of, rows = batch.where
        ends = (f"row {rows[end] + 1} of {sources[of[end]].name}" for end in (0, -1) if len(rows))
        error.add_note(f"while encoding {' to '.join(ends)}")
        raise


def _size(batch: TextBatch) -> int:
    """Return the bytes of the texts and the kept columns."""
    return sum(column.nbytes for column in (batch.texts, *batch.kept.values()))


def join_small(chunks: Iterable[TextChunk]) -> Iterator[TextChunk]:
    """Yield the same documents, with batches of less than ``SMALL_BYTES`` joined to larger ones: a
    folder of tiny files gives a batch for each. An error comes after the documents before it.
    """
    waiting: list[TextChunk] = []
    size = 0
    try:
        for chunk in chunks:
            small = _size(chunk.batch) < SMALL_BYTES
            others = waiting and _names(chunk) != _names(waiting[-1])
            if not small or size >= SMALL_BYTES or others:
                yield from _joined(waiting)
                waiting, size = [], 0
            if small:
                waiting.append(chunk)
                size += _size(chunk.batch)
            else:
                yield chunk
    except Exception:
        yield from _joined(waiting)
        raise
    yield from _joined(waiting)


def _names(chunk: TextChunk) -> tuple[str, ...]:
    """Return the columns that a template joined to the texts."""
    return () if chunk.batch.cells is None else chunk.batch.cells.names


def _joined(chunks: Sequence[TextChunk]) -> Iterator[TextChunk]:
    """Yield one chunk with the rows of all; nothing of none."""
    filled = [chunk for chunk in chunks if len(chunk.batch.texts)] or chunks[-1:]
    if len(filled) > 1:
        yield TextChunk(joined([chunk.batch for chunk in filled]), chunks[-1].read)
    else:
        yield from filled


Item = TypeVar("Item")
Result = TypeVar("Result")

TICK = 0.1  # seconds between two looks at the clock while waiting
ON_THE_WAY = 2  # batches between reader and writer, besides one for each worker


def run_ordered(
    items: Iterable[Item],
    work: Callable[[Item], Result],
    sink: Callable[[Result], None],
    size_of: Callable[[Item], int],
    workers: int | None,
    batch_bytes: int,
    tick: Callable[[], None] = lambda: None,
) -> None:
    """Run the pipeline to its end: ``work`` in so many threads, by default one per processor, and
    ``sink`` in a thread of its own, which is not in use any more when this returns or raises. Between
    reader and writer are ``batch_bytes`` for each worker, and for ``ON_THE_WAY`` more. ``tick`` is
    called after each item and every ``TICK`` seconds.
    """
    workers = workers or processors()
    budget = (workers + ON_THE_WAY) * batch_bytes
    waiting: deque[tuple[Future[None], int]] = deque()
    source, failed, used = iter(items), None, 0
    pool = ThreadPoolExecutor(workers, "numtok-worker")
    writer = ThreadPoolExecutor(1, "numtok-writer")
    stopped = threading.Event()

    def write(result: Future[Result]) -> None:
        """Write a result in its turn; nothing behind a failure, or once the run is stopped."""
        if stopped.is_set():
            return
        try:
            sink(result.result())
        except BaseException:
            stopped.set()
            raise

    def oldest() -> int:
        """Return the size of the oldest item, once it is written."""
        written, size = waiting.popleft()
        while not wait([written], TICK).done:
            tick()
        written.result()
        tick()
        return size

    try:
        while failed is None:
            try:
                item = next(source)
            except StopIteration:
                break
            except Exception as error:  # raised once all that was read before is written
                failed = error
                break
            size = size_of(item)
            while waiting and (used + size > budget or waiting[0][0].done()):
                used -= oldest()
            waiting.append((writer.submit(write, pool.submit(work, item)), size))
            used += size
            del item
            tick()
        while waiting:
            oldest()
        if failed is not None:
            raise failed
    finally:
        stopped.set()
        pool.shutdown(wait=False, cancel_futures=True)
        writer.shutdown(cancel_futures=True)
        pool.shutdown()
