"""Record batches into row groups of Parquet, several at once.

In: record batches of one schema, in order. Out: a Parquet file. Batches are gathered into row groups of about the same size; each is encoded and compressed
by itself, as a Parquet file in memory, in one of several threads, and put behind the others in order (:mod:`numtok.corpus.write.joined_file`). So
the file is the same to the byte, however many threads there are.
"""

from __future__ import annotations

import collections
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, BinaryIO

import pyarrow as pa

from numtok.corpus.write.joined_file import JoinedFile
from numtok.representations.columns import Encoding
from numtok.tokenizer.schema import METADATA_KEY
from numtok.tokenizer.stored import declared_columns, plain, plain_schema

ZSTD_LEVEL = 1
ROW_GROUP_BYTES = 16 << 20  # of Arrow data; larger ones are hardly smaller or quicker, cost memory, and one row costs the more to read
_ENCODINGS = {"plain": "PLAIN", "delta": "DELTA_BINARY_PACKED", "split": "BYTE_STREAM_SPLIT"}
_FITTING = {"DELTA_BINARY_PACKED": ("INT32", "INT64"), "BYTE_STREAM_SPLIT": ("INT32", "INT64", "FLOAT", "DOUBLE")}


class ParquetSink:
    """An open Parquet file: ``write`` record batches, then ``finish``; ``abandon`` in any case.

    Args:
        file: opened for writing.
        schema: of all batches.
        row_group_bytes: about how much Arrow data makes a row group.
        tensors: ``"lists"`` or ``"extension"``.
        threads: that encode and compress; one does it in the calling thread.
    """

    def __init__(self, file: BinaryIO, schema: pa.Schema, compression: str, row_group_bytes: int, tensors: str, threads: int) -> None:
        self._schema = schema
        self._stored = plain_schema(schema) if tensors == "lists" else schema
        empty = _parquet_file(self._stored)
        self._options = _options(_leaves(empty), encodings(schema), compression)
        self._file = JoinedFile(file, empty)
        self._row_group_bytes, self._threads = row_group_bytes, threads
        self._gathered: list[pa.RecordBatch] = []
        self._gathered_bytes = 0
        self._pool = ThreadPoolExecutor(threads, "numtok-parquet") if threads > 1 else None
        self._coming: collections.deque[Future[pa.Buffer]] = collections.deque()

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows."""
        self._gathered.append(batch)
        self._gathered_bytes += batch.nbytes
        if self._gathered_bytes >= self._row_group_bytes:
            self._end_row_group()

    def finish(self) -> None:
        """Write the rest and the footer."""
        if self._gathered:
            self._end_row_group()
        self._append(0)
        self._file.finish()

    def abandon(self) -> None:
        """Let nothing go on in other threads."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def _end_row_group(self) -> None:
        batches, size = self._gathered, self._gathered_bytes
        self._gathered, self._gathered_bytes = [], 0
        if self._pool is None:
            self._file.append(self._made(batches, size))
        else:
            self._coming.append(self._pool.submit(self._made, batches, size))
            self._append(self._threads)

    def _append(self, most: int) -> None:
        """Put what is made into the file, in order, and wait until at most so many row groups are still to come."""
        while self._coming and (len(self._coming) > most or self._coming[0].done()):
            self._file.append(self._coming.popleft().result())

    def _made(self, batches: list[pa.RecordBatch], size: int) -> pa.Buffer:
        """A Parquet file of one row group, or of several if one batch was large."""
        if self._stored is not self._schema:
            batches = [plain(batch.replace_schema_metadata(self._schema.metadata)) for batch in batches]
        table = pa.Table.from_batches(batches, self._stored)
        groups = max(1, round(size / self._row_group_bytes))
        return _parquet_file(self._stored, table, -(-table.num_rows // groups), **self._options)


def encodings(schema: pa.Schema) -> dict[str, Encoding]:
    """How Parquet is to store numtok's columns of a schema, as they declare it."""
    if METADATA_KEY not in (schema.metadata or {}):
        return {}
    return {name: column.encoding for name, column in declared_columns(schema).items()}


def _parquet_file(schema: pa.Schema, table: pa.Table | None = None, row_group_size: int = 1, **options: Any) -> pa.Buffer:
    """A whole file, of no rows or those of ``table``."""
    import pyarrow.parquet as pq

    memory = pa.BufferOutputStream()
    with pq.ParquetWriter(memory, schema, **options) as writer:
        if table is not None:
            writer.write_table(table, row_group_size=max(1, row_group_size))
    return memory.getvalue()


def _leaves(file: pa.Buffer) -> dict[str, str]:
    """The physical types of the columns by the names that Parquet has for them, such as input_ids.list.element."""
    import pyarrow.parquet as pq

    schema = pq.read_metadata(pa.BufferReader(file)).schema
    return {leaf.path: leaf.physical_type for leaf in map(schema.column, range(len(schema)))}


def _options(leaves: dict[str, str], chosen: dict[str, Encoding], compression: str) -> dict[str, Any]:
    """How to store each of the ``leaves``, by the columns that they are of.

    Checksums cost 3% and let a reader notice damage; statistics are of no use for lists.
    """
    dictionaries, others = [], {}
    for path, kind in leaves.items():
        encoding = _ENCODINGS.get(chosen.get(path.split(".")[0], "dictionary"))
        if encoding is None:
            dictionaries.append(path)
        elif kind in _FITTING.get(encoding, (kind,)):
            others[path] = encoding
    return {
        "compression": compression,
        "compression_level": ZSTD_LEVEL if compression == "zstd" else None,
        "use_dictionary": dictionaries,
        "column_encoding": others or None,
        "write_statistics": False,
        "write_page_checksum": True,
        "store_schema": True,  # extension types, large lists and the schema's metadata come back
    }
