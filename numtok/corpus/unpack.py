"""The documents of encoded files; packed rows back to documents: the inverse of
:mod:`numtok.corpus.pack`. What waits for its other pieces, or for a document before it, is kept in
memory: a long document where rows were packed in sequence, else the documents of a window.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.corpus.read.encoded import open_encoded
from numtok.corpus.read.sources import Source
from numtok.errors import SchemaError
from numtok.representations.columns import (
    PACKED,
    SEQ_DOCUMENTS,
    SEQ_LENGTHS,
    SEQ_REMAINING,
    SEQ_TEXT,
)
from numtok.tokenizer.layout import number_schema, to_number_layout
from numtok.tokenizer.packing import FlatRows, joined
from numtok.tokenizer.schema import METADATA_KEY, column, declared_columns, read_metadata

Ints = npt.NDArray[np.int64]


def is_packed(schema: pa.Schema) -> bool:
    """Whether the rows of a schema are pieces of documents."""
    return METADATA_KEY in (schema.metadata or {}) and read_metadata(schema)["pack"] is not None


class EncodedChunk(NamedTuple):
    """Some documents, their file, and the stored bytes of all inputs up to their end."""

    batch: pa.RecordBatch
    path: str
    read: int


def encoded_rows(
    sources: Sequence[Source], batch_bytes: int, read: int = 0
) -> Iterator[EncodedChunk]:
    """Yield the rows of encoded files, as they are stored, in order. The bytes read so far are
    counted from ``read`` on.
    """
    for source in sources:
        size, rows = source.size or 0, 0
        with closing(open_encoded(source.path)) as file:
            for batch in file.batches(batch_bytes):
                rows += batch.num_rows
                done = read + size * rows // max(file.rows or rows, 1)
                yield EncodedChunk(batch, source.name, done)
        read += size


def encoded_chunks(
    sources: Sequence[Source], batch_bytes: int, read: int = 0
) -> Iterator[EncodedChunk]:
    """Yield the rows of encoded files, packed ones as documents; ``read`` bytes were read before.
    SchemaError for rows whose columns disagree, and for a packed file that ends within a document.
    """
    rows = encoded_rows(sources, batch_bytes, read)
    for path, chunks in itertools.groupby(rows, lambda chunk: chunk.path):
        unpacker: Unpacker | None = None
        for chunk in chunks:
            if unpacker is None and is_packed(chunk.batch.schema):
                unpacker = Unpacker(chunk.batch.schema, path)
            for batch in unpacker.documents(chunk.batch) if unpacker else [chunk.batch]:
                yield chunk._replace(batch=batch)
        if unpacker is not None:
            unpacker.finish()


class Unpacker:
    """Gathers documents, in batches of ``schema``, from the pieces of a packed file."""

    def __init__(self, packed: pa.Schema, path: str) -> None:
        packed_columns, schema = {one.name for one in (*PACKED, SEQ_TEXT)}, number_schema(packed)
        # a piece has nothing of other columns
        kept = declared_columns(schema, path).keys() - packed_columns
        rows = pa.schema([field for field in schema if field.name in kept], schema.metadata)
        self._has_text = SEQ_TEXT.name in packed.names
        self.schema = rows.append(pa.field("text", SEQ_TEXT.type)) if self._has_text else rows
        self._path, self._next = path, 0
        # a row for each piece, with what the SEQ_ columns say of it
        self._waiting: list[pa.RecordBatch] = []
        self._ended: Ints = np.empty(0, np.int64)  # documents whose last piece waits

    def documents(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the documents that are whole once this batch has come."""
        pieces = self._pieces(batch)
        remaining = memory.from_arrow(pieces.column(SEQ_REMAINING.name))
        ended = memory.from_arrow(pieces.column(SEQ_DOCUMENTS.name))[remaining == 0]
        self._waiting.append(pieces)
        self._ended = np.sort(np.concatenate([self._ended, ended]))
        whole = int((self._ended == self._next + np.arange(len(self._ended))).cumprod().sum())
        if whole:
            yield self._whole(self._next + whole)
            self._ended, self._next = self._ended[whole:], self._next + whole

    def finish(self) -> None:
        """Refuse a file of which pieces are missing."""
        if any(batch.num_rows for batch in self._waiting):
            raise SchemaError(
                f"document {self._next + 1} is not whole: the file lacks rows, or their order was"
                " changed",
                path=self._path,
            )

    def _pieces(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        for name in (SEQ_LENGTHS.name, SEQ_DOCUMENTS.name, SEQ_REMAINING.name):
            column(batch, name)
        packed = [
            one
            for one in (SEQ_DOCUMENTS, SEQ_REMAINING, SEQ_TEXT)
            if one.name in batch.schema.names
        ]
        lengths = memory.from_arrow(memory.flat(batch.column(SEQ_LENGTHS.name))[0]).astype(np.int64)
        edges = memory.offsets_of(lengths)
        rows = FlatRows(
            to_number_layout(batch.drop_columns([one.name for one in (SEQ_LENGTHS, *packed)]))
        )
        pieces = rows.take(edges[:-1], edges[1:], np.arange(len(edges)))
        for one in packed:
            pieces = pieces.append_column(
                pa.field(one.name, one.type), memory.flat(batch.column(one.name))[0]
            )
        return pieces

    def _whole(self, end: int) -> pa.RecordBatch:
        """Return the documents before ``end``, all of whose pieces are here; the other pieces stay."""
        waiting = joined(self._waiting)
        documents = memory.from_arrow(waiting.column(SEQ_DOCUMENTS.name))
        order = np.argsort(documents, kind="stable")
        chosen, others = np.split(order, [np.count_nonzero(documents < end)])
        flat = FlatRows(waiting)
        starts, stops = flat.offsets[:-1][chosen], flat.offsets[1:][chosen]
        rows = np.searchsorted(documents[chosen], np.arange(self._next, end + 1))
        remaining = memory.from_arrow(waiting.column(SEQ_REMAINING.name))[chosen]
        self._check(documents[chosen], stops - starts, remaining)
        tokens = np.diff(memory.offsets_of(stops - starts)[rows])
        whole = flat.take(starts, stops, rows, valid=tokens > 0)
        columns = whole.columns
        if self._has_text:
            columns = [
                *columns,
                waiting.column(SEQ_TEXT.name).take(memory.to_arrow(chosen[rows[:-1]])),
            ]
        self._waiting = [waiting.take(memory.to_arrow(np.sort(others)))]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _check(self, documents: Ints, lengths: Ints, remaining: Ints) -> None:
        """Check that each piece is followed by what it says remains, and that documents have
        numbers of their own.
        """
        same = documents[1:] == documents[:-1]
        wrong = np.append(
            same & (remaining[:-1] != remaining[1:] + lengths[1:]) | ~same & (remaining[:-1] > 0),
            False,
        )
        if wrong.any() or (documents < self._next).any():
            number = int(documents[np.argmax(wrong | (documents < self._next))])
            raise SchemaError(
                f"the pieces of document {number + 1} do not follow one another: rows are missing,"
                " or their order was changed",
                path=self._path,
            )
