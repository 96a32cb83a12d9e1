"""Parquet files, some pages at a time, however large the row groups are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from numtok import storage
from numtok.arrays import memory
from numtok.corpus.read.batches import (
    ReadOptions,
    TextBatch,
    checked_batches,
    text_columns,
)
from numtok.corpus.read.sources import Source, plain_path

_MOST_ROWS = 1 << 14
_VALUE_BYTES = 8  # of a number once it is decoded, however little is stored of it
PAGE_BUFFER = 1 << 20


class ParquetFile(pq.ParquetFile):  # type: ignore[misc]  # pyarrow is untyped
    """A Parquet file that notices damage by the checksums of its pages, open until it is closed. So
    many bytes of a column are read at once, 0 for all of the row group.
    """

    def __init__(self, path: str, buffer_size: int = 0) -> None:
        super().__init__(
            storage.for_arrow(path),
            pre_buffer=False,
            buffer_size=buffer_size,
            page_checksum_verification=True,
        )
        self.rows = int(self.metadata.num_rows)
        self.chunk_rows = [
            self.metadata.row_group(number).num_rows for number in range(self.num_row_groups)
        ]

    def batch(self, number: int, columns: list[str]) -> pa.RecordBatch:
        """Return these columns of a row group."""
        table = self.read_row_group(number, columns=columns, use_threads=False).select(columns)
        return table.combine_chunks().to_batches()[0]

    def stream(self, columns: Sequence[str], batch_bytes: int) -> Iterator[pa.RecordBatch]:
        """Yield all rows of these columns, in batches of about so many bytes."""
        return bounded_batches(self, range(self.num_row_groups), columns, batch_bytes)

    def close(self, force: bool = True) -> None:
        """Close the file, be it that it was opened before it was given to Arrow."""
        super().close(force)


def read_parquet(source: Source, options: ReadOptions) -> Iterator[TextBatch]:
    """Yield the documents of a Parquet file, page by page."""
    with plain_path(source) as path, ParquetFile(path, PAGE_BUFFER) as file:
        schema = file.schema_arrow
        groups = range(file.num_row_groups)[source.start : source.stop]
        total = sum(file.chunk_rows[group] for group in groups)
        wanted = options.wanted(source, schema.names, lambda: text_columns(schema))
        row = 0
        for batch in bounded_batches(file, groups, wanted, options.batch_bytes):
            done = (source.size or 0) * (row + batch.num_rows) // total
            yield from checked_batches(source, batch, wanted, row, done, options)
            row += batch.num_rows


def bounded_batches(
    file: pq.ParquetFile, groups: Sequence[int], columns: Sequence[str], batch_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of these columns, in this order, in batches of about ``batch_bytes``, as far as
    the footer tells the sizes.
    """
    for group in groups:
        rows = _rows_per_batch(file.metadata.row_group(group), columns, batch_bytes)
        for batch in file.iter_batches(rows, [group], list(columns), use_threads=False):
            memory.trim_memory(batch.nbytes)
            yield batch.select(columns)


def _rows_per_batch(group: Any, columns: Sequence[str], batch_bytes: int) -> int:
    """Return how many rows of a row group hold about ``batch_bytes``, by the footer."""
    chunks = (group.column(at) for at in range(group.num_columns))
    size = sum(
        max(chunk.total_uncompressed_size, _VALUE_BYTES * chunk.num_values)
        for chunk in chunks
        if chunk.path_in_schema.split(".")[0] in columns
    )
    return int(max(1, min(_MOST_ROWS, group.num_rows * batch_bytes // max(size, 1))))
