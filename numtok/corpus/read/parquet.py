"""Parquet files, a few pages at a time, however large the row groups are. A page may say little and
mean much: a dictionary of one long value and a run of references to it. So dictionaries are looked
at first, and so few rows are read at once that the longest value in each of them would be bounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from numtok import locations
from numtok.arrays import memory
from numtok.corpus.read.batches import (
    LONGEST_ROW,
    ReadOptions,
    TextBatch,
    checked_batches,
    is_list,
    text_columns,
    too_long,
)
from numtok.corpus.read.sources import Source, plain_path
from numtok.errors import InputError
from numtok.tokenizer.metadata import MOST_TOKENS

# encodings whose values may be longer than what is stored of them
_DIFFERENCES = frozenset({"DELTA_BYTE_ARRAY"})
_MOST_ROWS = 1 << 14
_MOST_BYTES = 1 << 26  # of a batch, if each value were as long as the longest one
_VALUE_BYTES = 8  # of a number once it is decoded, however little is stored of it
_LOOKED_AT = 1 << 10  # values, for a dictionary
PAGE_BUFFER = 1 << 20


def open_parquet(path: str, buffer_size: int = 0, **how: Any) -> pq.ParquetFile:
    """A Parquet file that notices damage by the checksums of its pages; so many bytes of a column are
    read at once, 0 for all of the row group.
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
        for batch in bounded_batches(file, path, groups, wanted, options.batch_bytes, source):
            done = (source.size or 0) * (row + batch.num_rows) // total
            yield from checked_batches(source, batch, wanted, row, done, options)
            row += batch.num_rows


class _Leaf(NamedTuple):
    """A column of values in a row group."""

    path: str
    chunk: Any
    is_bytes: bool
    in_lists: bool
    longest: int  # bytes of the longest value in its dictionary


def bounded_batches(
    file: pq.ParquetFile,
    path: str,
    groups: Sequence[int],
    columns: Sequence[str],
    batch_bytes: int,
    source: Source,
) -> Iterator[pa.RecordBatch]:
    """The rows of these columns, in this order, in batches of about ``batch_bytes`` once they are
    :func:`decoded`; InputError at a row of which a column would take more than 512 MiB.
    """
    for group in groups:
        rows = file.metadata.row_group(group).num_rows
        leaves = _leaves(file, path, group, columns)
        for leaf in leaves:
            values = leaf.chunk.num_values
            if leaf.longest > LONGEST_ROW or (rows == 1 and values > MOST_TOKENS):
                raise too_long(f"a row of {leaf.path!r}", LONGEST_ROW, source)
        repeated = [
            leaf.path
            for leaf in leaves
            if leaf.in_lists and leaf.longest * leaf.chunk.num_values > _MOST_BYTES
        ]
        how = {"read_dictionary": repeated, "metadata": file.metadata}
        opened = open_parquet(path, PAGE_BUFFER, **how) if repeated else file
        some = _rows_per_batch(rows, leaves, batch_bytes)
        reader = opened.iter_batches(some, [group], list(columns), use_threads=False)
        while (batch := next(reader, None)) is not None:
            rows -= batch.num_rows
            if rows <= 0:  # it holds twice a long row, as long as it is there
                reader = iter(())
            for name, column in zip(columns, batch.select(columns).columns, strict=True):
                _check_lists(name, column, source)
            memory.release_after(batch.nbytes)
            yield batch.select(columns)


def _leaves(file: pq.ParquetFile, path: str, group: int, columns: Sequence[str]) -> list[_Leaf]:
    """What the footer and the dictionaries of a row group say of these columns."""
    metadata, schema = file.metadata.row_group(group), file.metadata.schema
    found = [
        (metadata.column(at), schema.column(at))
        for at in range(metadata.num_columns)
        if schema.column(at).path.split(".")[0] in columns
    ]
    for chunk, leaf in found:
        behind = chunk.has_dictionary_page and chunk.dictionary_page_offset > chunk.data_page_offset
        if behind and chunk.num_values:
            raise InputError(
                f"cannot be read as parquet: the dictionary of {leaf.path!r} stands"
                " behind its values; write the file again",
                path,
            )
    with open_parquet(
        path,
        PAGE_BUFFER,
        read_dictionary=[leaf.path for _, leaf in found],
        metadata=file.metadata,
    ) as encoded:
        longest = {
            leaf.path: _longest_in_dictionary(encoded, path, group, chunk, leaf)
            for chunk, leaf in found
            if leaf.physical_type == "BYTE_ARRAY" and chunk.num_values
        }
    return [
        _Leaf(
            leaf.path,
            chunk,
            leaf.physical_type == "BYTE_ARRAY",
            leaf.max_repetition_level > 0,
            longest.get(leaf.path, 0),
        )
        for chunk, leaf in found
    ]


def _longest_in_dictionary(
    encoded: pq.ParquetFile, path: str, group: int, chunk: Any, leaf: Any
) -> int:
    """Bytes of the longest value in the dictionary of a leaf, whatever the footer says of it: it is
    read with the first row, or the first list that is not empty. 0 if there is none.
    """
    rows, in_lists = encoded.metadata.row_group(group).num_rows, leaf.max_repetition_level > 0
    few = min(_LOOKED_AT, max(1, rows * _LOOKED_AT // chunk.num_values)) if in_lists else 1
    try:
        for batch in encoded.iter_batches(few, [group], [leaf.path], use_threads=False):
            found = _dictionaries(batch.column(0))
            if found or not in_lists:
                return max((pc.max(pc.binary_length(one)).as_py() or 0 for one in found), default=0)
    except OSError as error:  # how pyarrow says that these are no dictionaries
        if "Not yet implemented" not in str(error):
            raise
        if not any(name.startswith("DELTA") for name in chunk.encodings):
            raise InputError(
                f"cannot be read as parquet: the footer says of {leaf.path!r} another encoding than its"
                " pages have; write the file again",
                path,
            ) from None
    return 0


def _dictionaries(column: pa.Array) -> list[pa.Array]:
    """Those that have values, of a column and all in it."""
    if pa.types.is_dictionary(column.type):
        return [column.dictionary] if len(column.dictionary) else []
    if pa.types.is_map(column.type):
        return [*_dictionaries(column.keys), *_dictionaries(column.items)]
    if pa.types.is_struct(column.type):
        return [one for field in column.flatten() for one in _dictionaries(field)]
    return _dictionaries(column.values) if is_list(column.type) else []


def _rows_per_batch(rows: int, leaves: Sequence[_Leaf], batch_bytes: int) -> int:
    """How many rows hold about ``batch_bytes``, by the file's own account, and no more than
    ``_MOST_BYTES`` if each value were the longest there is.
    """
    stored = sum(
        max(leaf.chunk.total_uncompressed_size, _VALUE_BYTES * leaf.chunk.num_values)
        for leaf in leaves
    )
    most = min(_MOST_ROWS, rows * batch_bytes // max(stored, 1))
    for leaf in leaves:
        different = not _DIFFERENCES.isdisjoint(leaf.chunk.encodings)
        longest = leaf.chunk.total_uncompressed_size if different else leaf.longest
        if leaf.is_bytes and (different or not leaf.in_lists):
            most = min(most, _MOST_BYTES // max(longest, 1))
    return max(1, int(most))


def _check_lists(name: str, column: pa.Array, source: Source) -> None:
    if not is_list(column.type) or len(column.values) <= MOST_TOKENS:
        return
    if np.diff(column.offsets.to_numpy()).max(initial=0) > MOST_TOKENS:
        raise too_long(f"a row of {name!r}", LONGEST_ROW, source)
