"""Encoded files as record batches in the types of ``FORMAT.md``: the inverse of
``write.py``. All of them in order, of bounded size and their rows checked; or any chunk,
which is a row group of Parquet or a record batch of Arrow IPC, and any columns of it, whole without
Arrow's threads, as data loaders have processes of their own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from numtok import storage
from numtok.corpus.read.batches import decoded
from numtok.corpus.read.sources import Source, named_errors
from numtok.corpus.read.tables import PAGE_BUFFER, ArrowFile, ParquetFile
from numtok.errors import InputError, NumtokError, SchemaError
from numtok.tokenizer.layout import conform, conform_schema
from numtok.tokenizer.schema import METADATA_KEY, check_rows, no_rows

SUFFIXES = (".parquet", ".arrow", ".feather", ".ipc")
_KIND = "Parquet or Arrow IPC"


class EncodedFile:
    """An open file of either kind. What does not have numtok's metadata is given as it is."""

    def __init__(self, path: str, file: ArrowFile | ParquetFile) -> None:
        self.path, self._file = path, file
        self.rows: int | None = file.rows  # None where that takes reading the file
        schema: pa.Schema = file.schema_arrow
        self._is_numtoks = METADATA_KEY in (schema.metadata or {})
        self.schema: pa.Schema = conform_schema(schema, path) if self._is_numtoks else schema

    def chunk_rows(self) -> list[int]:
        """Return the rows of each chunk."""
        with named_errors(Source(self.path, _KIND)):
            return list(self._file.chunk_rows)

    def chunk(self, number: int, columns: Sequence[str]) -> pa.RecordBatch:
        """Return these columns of a chunk; its rows are not checked."""
        with named_errors(Source(self.path, _KIND)):
            return self._conformed(self._file.batch(number, list(columns)))

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
            for stored in self._file.stream(names, batch_bytes):
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

    def close(self) -> None:
        """Close the file; what was read of it stays valid."""
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
            # its pages are decoded into memory of their own, so it is not mapped
            return EncodedFile(path, ParquetFile(path, 0 if at_random else PAGE_BUFFER))
        if magic == b"ARROW1" or magic.startswith(b"\xff\xff\xff\xff"):
            return EncodedFile(path, ArrowFile(path))
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
