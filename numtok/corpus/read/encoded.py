"""Encoded files as record batches in the types of ``FORMAT.md``: the inverse of
``write.py``. All of them in order, of bounded size and their rows checked; or any chunk,
which is a row group of Parquet or a record batch of Arrow IPC, and any columns of it, whole without
Arrow's threads, as data loaders have processes of their own.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from numtok import storage
from numtok.corpus.read.arrow import ArrowFile
from numtok.corpus.read.batches import decoded
from numtok.corpus.read.parquet import PAGE_BUFFER, bounded_batches, open_parquet
from numtok.corpus.read.sources import Source, named_errors
from numtok.errors import InputError, NumtokError, SchemaError
from numtok.tokenizer.layout import conform, conform_schema
from numtok.tokenizer.schema import METADATA_KEY, check_rows, no_rows

SUFFIXES = (".parquet", ".arrow", ".feather", ".ipc")
_KIND = "Parquet or Arrow IPC"


class EncodedFile(ABC):
    """An open file of either kind. What does not have numtok's metadata is given as it is."""

    rows: int | None = None  # None where that takes reading the file

    def __init__(self, path: str, schema: pa.Schema) -> None:
        self.path = path
        self._is_numtoks = METADATA_KEY in (schema.metadata or {})
        self.schema: pa.Schema = conform_schema(schema, path) if self._is_numtoks else schema

    def chunk(self, number: int, columns: Sequence[str]) -> pa.RecordBatch:
        """Return these columns of a chunk; its rows are not checked."""
        with named_errors(Source(self.path, _KIND)):
            return self._conformed(self._chunk(number, list(columns)))

    def batches(
        self, batch_bytes: int, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield all rows of these columns, or of all, in batches of about ``batch_bytes``, or those of
        an Arrow file; at least one batch, if need be without rows. SchemaError names the file and
        the row where columns disagree.
        """
        row, batch, names = 0, None, list(columns or self.schema.names)
        source = Source(self.path, _KIND)
        with named_errors(source):
            for stored in self._stream(batch_bytes, names):
                for part in decoded(stored, batch_bytes, source):
                    batch = self._conformed(part)
                    if self._is_numtoks:
                        check_rows(batch, self.path, row)
                    row += batch.num_rows
                    yield batch
        if batch is None:
            fields = [self.schema.field(name) for name in names]
            yield no_rows(pa.schema(fields, self.schema.metadata))

    def _conformed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return conform(batch, self.path) if self._is_numtoks else batch

    @abstractmethod
    def chunk_rows(self) -> list[int]:
        """Return the rows of each chunk."""

    @abstractmethod
    def _chunk(self, number: int, columns: list[str]) -> pa.RecordBatch:
        """Return these columns of a chunk, as stored."""

    @abstractmethod
    def _stream(self, batch_bytes: int, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Return all rows in order, as stored."""

    @abstractmethod
    def close(self) -> None:
        """Close the file; what was read of it stays valid."""


class _Parquet(EncodedFile):
    """Its pages are decoded into memory of their own, so it is not mapped."""

    def __init__(self, path: str, at_random: bool) -> None:
        self._file = open_parquet(path, buffer_size=0 if at_random else PAGE_BUFFER)
        super().__init__(path, self._file.schema_arrow)
        self._metadata = self._file.metadata
        self.rows = int(self._metadata.num_rows)

    def chunk_rows(self) -> list[int]:
        return [
            self._metadata.row_group(number).num_rows
            for number in range(self._metadata.num_row_groups)
        ]

    def _chunk(self, number: int, columns: list[str]) -> pa.RecordBatch:
        table = self._file.read_row_group(number, columns=columns, use_threads=False).select(
            columns
        )
        return table.combine_chunks().to_batches()[0]

    def _stream(self, batch_bytes: int, columns: list[str]) -> Iterator[pa.RecordBatch]:
        groups = range(self._metadata.num_row_groups)
        yield from bounded_batches(self._file, groups, columns, batch_bytes)

    def close(self) -> None:
        self._file.close()


class _Arrow(EncodedFile):
    """An IPC file or stream: only the columns asked for are decompressed."""

    def __init__(self, path: str) -> None:
        self._file = ArrowFile(path)
        super().__init__(path, self._file.schema)

    def chunk_rows(self) -> list[int]:
        # small, in either layout
        counted = "number_index" if "number_index" in self.schema.names else "number_mask"
        with named_errors(Source(self.path, _KIND)):
            return [batch.num_rows for batch, _ in self._file.read([counted])]

    def _chunk(self, number: int, columns: list[str]) -> pa.RecordBatch:
        return self._file.batch(number, columns)

    def _stream(self, batch_bytes: int, columns: list[str]) -> Iterator[pa.RecordBatch]:
        yield from (batch for batch, _ in self._file.read(columns))

    def close(self) -> None:
        self._file.close()


def open_encoded(path: str | Path, at_random: bool = False) -> EncodedFile:
    """Open a file by what it begins with: for one pass in bounded memory, or for chunks, again and
    again, ``at_random``. InputError if it is neither of the two, or damaged, SchemaError if its
    metadata are.
    """
    path = str(path)
    with named_errors(Source(path, _KIND)):
        with storage.open_file(path, storage.SMALL_BLOCK) as file:
            magic = file.read(6)
        if magic.startswith(b"PAR1"):
            return _Parquet(path, at_random)
        if magic == b"ARROW1" or magic.startswith(b"\xff\xff\xff\xff"):
            return _Arrow(path)
    raise InputError(
        "neither a Parquet nor an Arrow IPC file; give a file that numtok encoded", path
    )


def schema_of(path: str | Path) -> pa.Schema:
    """Return the schema of a file, with numtok's types and metadata."""
    with contextlib.closing(open_encoded(path)) as file:
        return file.schema


def is_encoded(path: str) -> bool:
    """Whether a file has numtok's metadata, which may be damaged or of a later version; a file that
    is damaged itself is left to whoever reads it.
    """
    try:
        return METADATA_KEY in (schema_of(path).metadata or {})
    except SchemaError:
        return True
    except NumtokError:
        return False
