"""Binary files with columns: Parquet, Arrow IPC (file and stream).

In: a ``Source``. Out: ``TextBatch`` es; only the text column and the kept ones are read, a piece at a time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from numtok.corpus import parquet_footer
from numtok.corpus.arrow_files import ArrowFile
from numtok.corpus.read.batches import ReadOptions, TextBatch, checked_batches, is_text, pick_text_column
from numtok.corpus.read.sources import Source, plain_path

_MOST_ROWS = 1 << 14  # bounds a Parquet batch whose dictionary makes it look small
_PAGE_BUFFER = 1 << 20


# Parquet --------------------------------------------------------------------------------------------------------------


def read_parquet(source: Source, options: ReadOptions) -> Iterator[TextBatch]:
    """The documents of a Parquet file, page by page."""
    with plain_path(source) as path:
        parquet_footer.check(path, source.name)
        yield from _read_parquet(path, source, options)


def _read_parquet(path: str, source: Source, options: ReadOptions) -> Iterator[TextBatch]:
    streaming = {"pre_buffer": False, "buffer_size": _PAGE_BUFFER, "page_checksum_verification": True}
    with pq.ParquetFile(path, **streaming) as file:
        schema, total = file.schema_arrow, file.metadata.num_rows
        text = pick_text_column(source, options.text_column, schema.names, _strings(schema), options.keep_columns)
        wanted = list(dict.fromkeys([text, *options.keep_columns]))
        rows = _rows_per_batch(file.metadata, text, options.batch_bytes)
        first_row = 0
        for batch in file.iter_batches(batch_size=rows, columns=wanted, use_threads=False):
            stop = first_row + batch.num_rows
            ordered = batch.select(wanted)  # Parquet gives the columns in the order of the file
            yield from checked_batches(source, ordered, wanted, first_row, (source.size or 0) * stop // total, options)
            first_row = stop


def _strings(schema: pa.Schema) -> list[str]:
    return [field.name for field in schema if is_text(field.type)]


def _rows_per_batch(metadata: Any, text: str, batch_bytes: int) -> int:
    """How many rows hold about ``batch_bytes`` of text, by the file's own account."""
    stored, rows = 0, int(metadata.num_rows)
    for group in range(metadata.num_row_groups):
        chunks = (metadata.row_group(group).column(index) for index in range(metadata.num_columns))
        stored += sum(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema == text)
    return max(1, min(_MOST_ROWS, rows * batch_bytes // max(stored, 1)))


# Arrow IPC ------------------------------------------------------------------------------------------------------------


def read_arrow(source: Source, options: ReadOptions) -> Iterator[TextBatch]:
    """The documents of an Arrow IPC file or stream, batch by batch; columns left out are neither read nor decompressed."""
    with plain_path(source) as path, contextlib.closing(ArrowFile(path, name=source.name)) as file:
        text = pick_text_column(source, options.text_column, file.schema.names, _strings(file.schema), options.keep_columns)
        wanted = list(dict.fromkeys([text, *options.keep_columns]))
        first_row = 0
        for batch, done in file.read(wanted):
            position = (source.size or 0) * done // max(file.size, 1)  # of a compressed file, its own size
            yield from checked_batches(source, batch, wanted, first_row, position, options)
            first_row += batch.num_rows
