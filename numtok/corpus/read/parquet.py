"""Parquet files.

In: a ``Source``. Out: ``TextBatch`` es; only the text column and the kept ones are read, a few pages at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq

from numtok.corpus import parquet_footer
from numtok.corpus.read.batches import ReadOptions, TextBatch, checked_batches, pick_text_column, text_columns
from numtok.corpus.read.sources import Source, plain_path

_MOST_ROWS = 1 << 14  # bounds a Parquet batch whose dictionary makes it look small
PAGE_BUFFER = 1 << 20


def open_parquet(path: str, name: str | None = None, buffer_size: int = 0) -> pq.ParquetFile:
    """A Parquet file that notices damage: the checksum of its footer, where numtok wrote it, and those of its pages.

    Args:
        path: of the file.
        name: of the file in messages, where that is not its path.
        buffer_size: bytes that are read at once of a column, so that memory is bounded; 0 for all of the row group.

    Raises:
        InputError: if the footer is damaged; what Arrow raises, for other damage.
    """
    parquet_footer.check(path, name)
    return pq.ParquetFile(path, pre_buffer=False, buffer_size=buffer_size, page_checksum_verification=True)


def read_parquet(source: Source, options: ReadOptions) -> Iterator[TextBatch]:
    """The documents of a Parquet file, page by page."""
    with plain_path(source) as path, open_parquet(path, source.name, PAGE_BUFFER) as file:
        schema, total = file.schema_arrow, file.metadata.num_rows
        text = pick_text_column(source, options.text_column, schema.names, text_columns(schema), options.keep_columns)
        wanted = list(dict.fromkeys([text, *options.keep_columns]))
        rows = _rows_per_batch(file.metadata, text, options.batch_bytes)
        first_row = 0
        for batch in file.iter_batches(batch_size=rows, columns=wanted, use_threads=False):
            stop = first_row + batch.num_rows
            ordered = batch.select(wanted)  # Parquet gives the columns in the order of the file
            yield from checked_batches(source, ordered, wanted, first_row, (source.size or 0) * stop // total, options)
            first_row = stop


def _rows_per_batch(metadata: Any, text: str, batch_bytes: int) -> int:
    """How many rows hold about ``batch_bytes`` of text, by the file's own account."""
    stored, rows = 0, int(metadata.num_rows)
    for group in range(metadata.num_row_groups):
        chunks = (metadata.row_group(group).column(index) for index in range(metadata.num_columns))
        stored += sum(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema == text)
    return max(1, min(_MOST_ROWS, rows * batch_bytes // max(stored, 1)))
