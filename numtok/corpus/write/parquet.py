"""Record batches into row groups of Parquet, several at once.

In: record batches of one schema, in order. Out: a Parquet file. Batches are gathered into row
    groups of about the same size; each is encoded and compressed by itself, as a Parquet file in
    memory, in one of several threads, and put behind the others in order
    (:mod:`numtok.corpus.write.joined_file`). So the file is the same to the byte, however many
    threads there are.
"""

from __future__ import annotations

import collections
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa

from numtok.corpus.write.joined_file import JoinedFile, RowGroup
from numtok.corpus.write.tensor_pages import LEVELS, is_tensor, tensor_chunk
from numtok.representations.columns import Encoding
from numtok.tokenizer.schema import METADATA_KEY
from numtok.tokenizer.stored import declared_columns, plain, plain_schema

ZSTD_LEVEL = 1
ROW_GROUP_BYTES = (
    16 << 20
)  # of Arrow data; larger ones are hardly smaller or quicker, cost memory, and one row costs the more to read
ENCODINGS = {"plain": "PLAIN", "delta": "DELTA_BINARY_PACKED", "split": "BYTE_STREAM_SPLIT"}
FITTING = {
    "DELTA_BINARY_PACKED": ("INT32", "INT64"),
    "BYTE_STREAM_SPLIT": ("INT32", "INT64", "FLOAT", "DOUBLE"),
}


class ParquetSink:
    """An open Parquet file: ``write`` record batches, then ``finish``; ``abandon`` in any case.

    Args:
        file: opened for writing.
        schema: of all batches.
        row_group_bytes: about how much Arrow data makes a row group.
        tensors: ``"lists"`` or ``"extension"``.
        threads: that encode and compress; one does it in the calling thread.
    """

    def __init__(
        self,
        file: BinaryIO,
        schema: pa.Schema,
        compression: str,
        row_group_bytes: int,
        tensors: str,
        threads: int,
    ) -> None:
        self._schema = schema
        empty = _parquet_file(
            plain_schema(schema) if tensors == "lists" else schema
        )  # in pages, a tensor is a list in any case
        self._leaves = _leaves(empty)
        self._options = _options(self._leaves, encodings(schema), compression)
        self._tensors = _tensors(self._leaves, plain_schema(schema), encodings(schema))
        self._file = JoinedFile(file, empty)
        self._codec = compression, ZSTD_LEVEL if compression == "zstd" else None
        self._row_group_bytes, self._threads = row_group_bytes, threads
        self._gathered: list[pa.RecordBatch] = []
        self._gathered_bytes = 0
        self._pool = ThreadPoolExecutor(threads, "numtok-parquet") if threads > 1 else None
        self._coming: collections.deque[Future[list[RowGroup]]] = collections.deque()

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
            self._join(self._made(batches, size))
        else:
            self._coming.append(self._pool.submit(self._made, batches, size))
            self._append(self._threads)

    def _append(self, most: int) -> None:
        """Put what is made into the file, in order, and wait until at most so many row groups are
        still to come.
        """
        while self._coming and (len(self._coming) > most or self._coming[0].done()):
            self._join(self._coming.popleft().result())

    def _join(self, groups: list[RowGroup]) -> None:
        for group in groups:
            self._file.append(group)

    def _made(self, batches: list[pa.RecordBatch], size: int) -> list[RowGroup]:
        """One row group, or several if one batch was large."""
        batches = [plain(batch.replace_schema_metadata(self._schema.metadata)) for batch in batches]
        table = pa.Table.from_batches(batches)
        each = max(1, -(-table.num_rows // max(1, round(size / self._row_group_bytes))))
        return [
            self._row_group(table.slice(start, each)) for start in range(0, table.num_rows, each)
        ]

    def _row_group(self, table: pa.Table) -> RowGroup:
        made = {
            path: tensor_chunk(table.column(path.split(".")[0]).chunks, path, *self._codec)
            for path in self._tensors
        }
        chunks = {path: chunk for path, chunk in made.items() if chunk is not None}
        rest = table.drop_columns([path.split(".")[0] for path in chunks])
        group = RowGroup.of(_parquet_file(rest.schema, rest, **self._options))
        for place, path in enumerate(self._leaves):
            if path in chunks:
                group.insert(place, *chunks[path])
        return group


def encodings(schema: pa.Schema) -> dict[str, Encoding]:
    """How Parquet is to store numtok's columns of a schema, as they declare it."""
    if METADATA_KEY not in (schema.metadata or {}):
        return {}
    return {name: column.encoding for name, column in declared_columns(schema).items()}


def _parquet_file(schema: pa.Schema, table: pa.Table | None = None, **options: Any) -> pa.Buffer:
    """A whole file without a row group, or one with the rows of ``table``."""
    import pyarrow.parquet as pq

    memory = pa.BufferOutputStream()
    with pq.ParquetWriter(memory, schema, **options) as writer:
        if table is not None:
            writer.write_table(table, row_group_size=table.num_rows)
    return memory.getvalue()


class _Leaf(NamedTuple):
    """A column of values: its physical type, and how deep it lies in lists and in what may be null."""

    kind: str
    lists: int
    levels: int


def _leaves(file: pa.Buffer) -> dict[str, _Leaf]:
    """By the names that Parquet has for them, such as input_ids.list.element, in order."""
    import pyarrow.parquet as pq

    schema = pq.read_metadata(pa.BufferReader(file)).schema
    found = map(schema.column, range(len(schema)))
    return {
        leaf.path: _Leaf(leaf.physical_type, leaf.max_repetition_level, leaf.max_definition_level)
        for leaf in found
    }


def _tensors(leaves: dict[str, _Leaf], schema: pa.Schema, chosen: dict[str, Encoding]) -> list[str]:
    """Those of the leaves that :mod:`numtok.corpus.write.tensor_pages` writes; never all, as Arrow
    begins the row group.
    """
    own = {
        name
        for name, encoding in chosen.items()
        if encoding == "tensor" and name in schema.names and is_tensor(schema.field(name).type)
    }
    found = [
        path for path, leaf in leaves.items() if path.split(".")[0] in own and leaf[1:] == LEVELS
    ]
    return found if len(found) < len(leaves) else []


def _options(
    leaves: dict[str, _Leaf], chosen: dict[str, Encoding], compression: str
) -> dict[str, Any]:
    """How to store each of the ``leaves``, by the columns that they are of.

    Checksums cost 3% and let a reader notice damage; statistics are of no use for lists.
    """
    dictionaries, others = [], {}
    for path, leaf in leaves.items():
        encoding = ENCODINGS.get(chosen.get(path.split(".")[0], "dictionary"))
        if encoding is None:
            dictionaries.append(path)
        elif leaf.kind in FITTING.get(encoding, (leaf.kind,)):
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
