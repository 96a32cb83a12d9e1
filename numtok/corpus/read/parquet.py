"""Parquet files.

In: a ``Source``. Out: ``TextBatch`` es; only the text column and the kept ones are read, a few
    pages at a time.

A page may say little and mean much: a dictionary of one long value and a run of references to it,
    or values that share their beginning with the value before. So texts are read as dictionaries,
    and cut into batches before these are decoded; where Arrow cannot do that, so few rows are read
    at once that even the longest value in each of them would be bounded.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq

from numtok import locations
from numtok.corpus.read.batches import (
    ReadOptions,
    TextBatch,
    checked_batches,
    is_bytes,
    pick_text_column,
    text_columns,
)
from numtok.corpus.read.sources import Source, plain_path

_NOT_READ_AS_DICTIONARIES = frozenset(
    {"DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"}
)  # encodings for which Arrow has not learnt to
_MOST_ROWS = 1 << 14
_MOST_BYTES = 1 << 27  # of a batch of such values, if each were as long as all that is stored
_VALUE_BYTES = 8  # of a number once it is decoded, however little is stored of it
PAGE_BUFFER = 1 << 20


def open_parquet(path: str, buffer_size: int = 0) -> pq.ParquetFile:
    """A Parquet file that notices damage by the checksums of its pages.

    Args:
        path: of the file.
        buffer_size: bytes that are read at once of a column, so that memory is bounded; 0 for all
            of the row group.
    """
    return pq.ParquetFile(
        locations.for_arrow(path),
        pre_buffer=False,
        buffer_size=buffer_size,
        page_checksum_verification=True,
    )


def read_parquet(source: Source, options: ReadOptions) -> Iterator[TextBatch]:
    """The documents of a Parquet file, page by page."""
    with plain_path(source) as path, open_parquet(path, PAGE_BUFFER) as file:
        schema = file.schema_arrow
        groups = list(range(file.metadata.num_row_groups))[source.start : source.stop]
        total = sum(file.metadata.row_group(group).num_rows for group in groups)
        text = pick_text_column(
            source, options.text_column, schema.names, text_columns(schema), options.keep_columns
        )
        wanted = list(dict.fromkeys([text, *options.keep_columns]))
        types = {
            name: schema.field(name).type for name in wanted if is_bytes(schema.field(name).type)
        }
        chunks = _chunks(file.metadata, wanted)
        other = {
            chunk.path_in_schema
            for chunk in chunks
            if not _NOT_READ_AS_DICTIONARIES.isdisjoint(chunk.encodings)
        }
        rows = _rows_per_batch(file.metadata.num_rows, chunks, other, options.batch_bytes)
        dictionaries = [name for name in types if name not in other]
        first_row = 0
        with _as_dictionaries(path, file.metadata, dictionaries) as encoded:
            for batch in encoded.iter_batches(
                batch_size=rows, row_groups=groups, columns=wanted, use_threads=False
            ):
                stop = first_row + batch.num_rows
                ordered = batch.select(wanted)  # Parquet gives the columns in the order of the file
                yield from checked_batches(
                    source,
                    ordered,
                    wanted,
                    first_row,
                    (source.size or 0) * stop // total,
                    options,
                    types,
                )
                first_row = stop


def identity(path: str) -> str:
    """What stands for all that a file holds: a digest of its footer, in which are places, sizes and
    types, of its own size, and of its time of change.
    """
    found = os.stat(path)
    with open(path, "rb") as file:
        file.seek(max(0, found.st_size - 8))
        file.seek(max(0, found.st_size - 8 - int.from_bytes(file.read(4), "little")))
        return hashlib.sha256(
            f"{found.st_size} {found.st_mtime_ns}\n".encode() + file.read()
        ).hexdigest()


def _as_dictionaries(path: str, metadata: Any, columns: list[str]) -> pq.ParquetFile:
    """The file once more, as :func:`open_parquet` opens it, with these columns as dictionaries."""
    return pq.ParquetFile(
        locations.for_arrow(path),
        metadata=metadata,
        read_dictionary=columns,
        pre_buffer=False,
        buffer_size=PAGE_BUFFER,
        page_checksum_verification=True,
    )


def _chunks(metadata: Any, columns: list[str]) -> list[Any]:
    """What the footer says of each chunk of these columns, those of their parts included."""
    every = (
        metadata.row_group(group).column(index)
        for group in range(metadata.num_row_groups)
        for index in range(metadata.num_columns)
    )
    return [
        chunk
        for chunk in every
        if any(f"{chunk.path_in_schema}.".startswith(f"{name}.") for name in columns)
    ]


def _rows_per_batch(rows: int, chunks: list[Any], other: set[str], batch_bytes: int) -> int:
    """How many rows hold about ``batch_bytes``, by the file's own account; of ``other`` columns, a
    value may be as long as all that is stored.
    """
    stored: int = sum(
        max(chunk.total_uncompressed_size, _VALUE_BYTES * chunk.num_values) for chunk in chunks
    )
    largest: int = max(
        (chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema in other),
        default=0,
    )
    return max(
        1, min(_MOST_ROWS, rows * batch_bytes // max(stored, 1), _MOST_BYTES // max(largest, 1))
    )
