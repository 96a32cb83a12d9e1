"""Encoded files as record batches: the inverse of ``writers.py``.

In: a Parquet or Arrow IPC file that anybody may have written. Out: its batches one at a time, in the types of ``FORMAT.md``, their rows checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from numtok.corpus import parquet_footer
from numtok.corpus.arrow_files import ArrowFile, no_rows
from numtok.corpus.read.sources import Source, named_errors
from numtok.errors import InputError
from numtok.tokenizer.schema import METADATA_KEY
from numtok.tokenizer.stored import check_rows, conform


def read_encoded(path: str | Path, batch_bytes: int = 8 << 20) -> Iterator[pa.RecordBatch]:
    """The record batches of a Parquet or Arrow IPC file, one at a time, each with the schema and its metadata.

    At least one batch comes, if need be without rows, so that the schema is always there. Parquet batches have about ``batch_bytes``; Arrow
    batches are those of the file. Without numtok's metadata, they are given as they are.

    Raises:
        InputError: if the file is neither of the two, or damaged.
        SchemaError: if its metadata are damaged, or rows have columns that disagree; it names the file and the row.
    """
    path = str(path)
    with named_errors(Source(path, "Parquet or Arrow IPC")):
        with open(path, "rb") as file:
            magic = file.read(8)
        if magic.startswith(b"PAR1"):
            batches = _read_parquet(path, batch_bytes)
        elif magic.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
            batches = _read_arrow(path)
        else:
            raise InputError("neither a Parquet nor an Arrow IPC file; give a file that `numtok encode` wrote", path)
        row = 0
        for batch in batches:
            if METADATA_KEY in (batch.schema.metadata or {}):
                batch = conform(batch, path)
                check_rows(batch, path, row)
            row += batch.num_rows
            yield batch


def _read_parquet(path: str, batch_bytes: int) -> Iterator[pa.RecordBatch]:
    parquet_footer.check(path)
    with pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20, page_checksum_verification=True) as file:
        metadata = file.metadata
        stored = sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))
        rows = max(1, min(1 << 16, metadata.num_rows * batch_bytes // max(stored, 1)))
        yield from _or_none(file.iter_batches(batch_size=rows, use_threads=False), file.schema_arrow)


def _read_arrow(path: str) -> Iterator[pa.RecordBatch]:
    file = ArrowFile(path)
    try:
        yield from _or_none((batch for batch, _ in file.read()), file.schema)
    finally:
        file.close()


def _or_none(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batches, or one without rows if there are none."""
    empty = True
    for batch in batches:
        yield batch
        empty = False
    if empty:
        yield no_rows(schema)
