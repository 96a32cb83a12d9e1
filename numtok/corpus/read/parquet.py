"""Parquet files, a few pages at a time, however large the row groups are."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from numtok import locations
from numtok.corpus.read.batches import (
    ReadOptions,
    TextBatch,
    checked_batches,
    text_columns,
)
from numtok.corpus.read.sources import Source, plain_path

_MOST_ROWS = 1 << 13  # of a batch: a value that is stored once may be in each of them
_VALUE_BYTES = 8  # of a number once it is decoded, however little is stored of it
PAGE_BUFFER = 1 << 20


def open_parquet(path: str, buffer_size: int = 0, **how: Any) -> pq.ParquetFile:
    """A Parquet file that notices damage by the checksums of its pages.

    Args:
        path: of the file.
        buffer_size: bytes that are read at once of a column, so that memory is bounded; 0 for all
            of the row group.
        how: further options of pyarrow.
    """
    return pq.ParquetFile(
        locations.for_arrow(path),
        pre_buffer=False,
        buffer_size=buffer_size,
        page_checksum_verification=True,
        **how,
    )


def read_parquet(source: Source, options: ReadOptions) -> Iterator[TextBatch]:
    """The documents of a Parquet file, page by page."""
    with plain_path(source) as path, open_parquet(path, PAGE_BUFFER) as file:
        schema = file.schema_arrow
        groups = list(range(file.metadata.num_row_groups))[source.start : source.stop]
        total = sum(file.metadata.row_group(group).num_rows for group in groups)
        wanted = options.wanted(source, schema.names, lambda: text_columns(schema))
        row = 0
        for batch in bounded_batches(file, groups, wanted, options.batch_bytes):
            done = (source.size or 0) * (row + batch.num_rows) // total
            yield from checked_batches(source, batch, wanted, row, done, options)
            row += batch.num_rows


def identity(path: str) -> str:
    """What stands for all that a file holds: a digest of its footer, in which are places, sizes and
    types, of its own size, and of its time of change.
    """
    found = os.stat(path)
    with open(path, "rb") as file:
        file.seek(max(0, found.st_size - 8))
        file.seek(max(0, found.st_size - 8 - int.from_bytes(file.read(4), "little")))
        told = f"{found.st_size} {found.st_mtime_ns}\n".encode()
        return hashlib.sha256(told + file.read()).hexdigest()


def bounded_batches(
    file: pq.ParquetFile, groups: Sequence[int], columns: Sequence[str], batch_bytes: int
) -> Iterator[pa.RecordBatch]:
    """The rows of these columns, in this order, in batches of about ``batch_bytes`` by the file's
    own account.
    """
    for group in groups:
        metadata = file.metadata.row_group(group)
        chunks = [metadata.column(at) for at in range(metadata.num_columns)]
        stored = sum(
            max(chunk.total_uncompressed_size, _VALUE_BYTES * chunk.num_values)
            for chunk in chunks
            if chunk.path_in_schema.split(".")[0] in columns
        )
        rows = min(_MOST_ROWS, metadata.num_rows * batch_bytes // max(stored, 1))
        for batch in file.iter_batches(max(1, rows), [group], list(columns), use_threads=False):
            yield batch.select(columns)
