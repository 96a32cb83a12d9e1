"""Encoded batches as they are stored, and back: tensors as plain lists, other programs' variants of
the types, and whether the rows hold together.

In: record batches that anybody may have written. Out: :func:`conform` gives the columns the types
    of ``FORMAT.md``, without a copy where only a tensor is plain or the other way round (its
    storage is the plain list); :func:`check_rows` refuses rows whose columns disagree;
    :func:`plain` is for Parquet, which knows no tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.errors import SchemaError
from numtok.representations import from_dict
from numtok.representations.columns import SEQ_LENGTHS, SEQ_TEXT, Column
from numtok.tokenizer.metadata import parse_metadata
from numtok.tokenizer.schema import METADATA_KEY, columns_of, flat, read_metadata
from numtok.tokenizer.schema import column as named_column

Ints = npt.NDArray[np.int64]

_COUNTED = {
    "token": "input_ids",
    "number": "number_index",
    "piece": SEQ_LENGTHS.name,
}  # the column that tells how many there are


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with numtok's lists of tensors as lists of ``fixed_size_list``; their shapes are
    in the metadata.
    """
    shapes = read_metadata(schema)["shapes"] if METADATA_KEY in (schema.metadata or {}) else {}
    fields = []
    for field in schema:
        kind = getattr(field.type, "value_type", None)
        if field.name in shapes and isinstance(kind, pa.FixedShapeTensorType):
            field = field.with_type(_like(field.type, kind.storage_type))
        fields.append(field)
    return pa.schema(fields, schema.metadata)


def plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with the types of :func:`plain_schema`, without a copy."""
    described = plain_schema(batch.schema)
    columns = [
        column if column.type.equals(field.type) else _with_values(column, column.values.storage)
        for column, field in zip(batch.columns, described, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=described)


def conform_schema(schema: pa.Schema, where: str = "") -> pa.Schema:
    """The schema with numtok's columns in the types of ``FORMAT.md``, tensors as tensors; other
    columns stay as they are.
    """
    own = declared_columns(schema, where)
    fields = []
    for field in schema:
        if field.name not in own:
            fields.append(field)
        elif own[field.name].per == "row":
            fields.append(
                field
                if field.type in (pa.string(), pa.large_string())
                else field.with_type(pa.large_string())
            )
        else:
            fields.append(field.with_type(_like(field.type, own[field.name].type)))
    return pa.schema(fields, schema.metadata)


class _Declared(NamedTuple):
    """What rows rely on of the metadata.

    Attributes:
        columns: that numtok may have written. per_number: whether numbers have columns of their
            own.
        shared: whether an ordinary token may be that of two numbers. packed: whether rows are
            pieces of documents.
        frame: the special tokens before and behind each row.
    """

    columns: Mapping[str, Column]
    per_number: bool
    shared: bool
    packed: bool
    frame: tuple[list[int], list[int]]


@functools.lru_cache(maxsize=16)
def _declared_by(described: bytes) -> _Declared:
    metadata = parse_metadata(described)
    numbers, layout, packed = (
        [from_dict(options) for options in metadata["numbers"]],
        metadata["layout"],
        metadata["pack"] is not None,
    )
    columns = MappingProxyType(columns_of(numbers, True, layout, packed))
    return _Declared(columns, layout == "number", numbers[0].stays_text, packed, metadata["frame"])


def _declared(schema: pa.Schema, where: str = "") -> _Declared:
    """That of a schema; it is parsed once, however many batches have it."""
    described = (schema.metadata or {}).get(METADATA_KEY)
    try:
        return _declared_by(described or b"")
    except SchemaError:
        read_metadata(schema, where)  # which names the file
        raise


def declared_columns(schema: pa.Schema, where: str = "") -> Mapping[str, Column]:
    """What numtok may have written of the data, by the representations in its metadata; all else
    are somebody's own columns.
    """
    return _declared(schema, where).columns


def conform(batch: pa.RecordBatch, where: str = "") -> pa.RecordBatch:
    """The batch with the types of :func:`conform_schema`; lists below null rows are empty.

    Raises:
        SchemaError: if a column is of a type that cannot be read as its own.
    """
    described, own = conform_schema(batch.schema, where), declared_columns(batch.schema, where)
    columns = []
    for column, field in zip(batch.columns, described, strict=True):
        if field.name in own:
            try:
                column = _conformed(column, field.type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
                reason = str(error).splitlines()[0]
                message = (
                    f"column {field.name!r} is {column.type}, which cannot be read as {field.type}:"
                    f" {reason}"
                )
                raise SchemaError(f"{where}: {message}" if where else message) from None
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=described)


def _conformed(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if not isinstance(column, pa.ListArray | pa.LargeListArray):
        return column if column.type.equals(kind) else column.cast(kind)
    if (
        column.null_count
        and np.diff(memory.from_arrow(column.offsets))[~memory.from_arrow(column.is_valid())].any()
    ):
        column = column.take(pa.array(np.arange(len(column))))
    if column.type.equals(kind):
        return column
    wanted = kind.value_type
    values = (
        column.values.storage if isinstance(column.values, pa.ExtensionArray) else column.values
    )
    storage = wanted.storage_type if isinstance(wanted, pa.BaseExtensionType) else wanted
    if not values.type.equals(storage):
        values = values.cast(storage)
    return _with_values(
        column, pa.ExtensionArray.from_storage(wanted, values) if storage is not wanted else values
    )


def _like(kind: pa.DataType, values: pa.DataType) -> pa.DataType:
    return pa.large_list(values) if pa.types.is_large_list(kind) else pa.list_(values)


def _with_values(column: pa.Array, values: pa.Array) -> pa.Array:
    """The lists of ``column``, holding other values, without a copy."""
    kind = _like(column.type, values.type)
    return pa.Array.from_buffers(
        kind, len(column), column.buffers()[:2], column.null_count, column.offset, children=[values]
    )


# Rows
# -----------------------------------------------------------------------------------------------------------------


def check_rows(batch: pa.RecordBatch, where: str = "", first_row: int = 0) -> None:
    """Refuse rows that would give another row's values: every column must have one value per token,
    or per number, of its row.

    Args:
        batch: that :func:`conform` returned.
        where: the file, for the message.
        first_row: the number of the first row in it.

    Raises:
        SchemaError: naming the row, if columns disagree in nulls or lengths, ``number_index`` does
            not ascend within ``input_ids``, or the row does not begin and end with the metadata's
            ``frame``.
    """
    declared = _declared(batch.schema)
    try:
        _check_rows(batch, declared)
    except _BadRow as bad:
        message = (
            f"{bad.what}; the file is damaged, or its columns were changed apart from each other"
        )
        raise SchemaError(message, path=where or None, row=first_row + bad.row) from None


class _BadRow(Exception):
    def __init__(self, row: Any, what: str) -> None:
        self.row, self.what = int(row), what


def _check_rows(batch: pa.RecordBatch, declared: _Declared) -> None:
    for needed in ("input_ids", "number_index" if declared.per_number else "number_mask"):
        named_column(batch, needed)
    columns = {
        name: column
        for name, column in declared.columns.items()
        if name in batch.schema.names and column.per != "row"
    }
    valid: npt.NDArray[np.bool_] = memory.from_arrow(batch.column("input_ids").is_valid())
    edges: dict[str, Ints] = {}
    for name in columns:
        column = batch.column(name)
        other = (
            memory.from_arrow(column.is_valid()) != valid
            if column.null_count or not valid.all()
            else None
        )
        if other is not None and other.any():
            raise _BadRow(np.argmax(other), f"{name!r} and 'input_ids' are not null together")
        values, edges[name] = flat(column)
        if values.null_count and columns[name] != SEQ_TEXT:
            row = _row_of(np.argmax(~memory.from_arrow(values.is_valid())), edges[name])
            raise _BadRow(row, f"{name!r} holds a null value")
    for name, column in columns.items():
        expected = edges[_COUNTED[column.per]] if _COUNTED[column.per] in edges else edges[name]
        if not np.array_equal(edges[name], expected):
            row = int(np.argmax(np.diff(edges[name]) != np.diff(expected)))
            count, wanted = (
                int(offsets[row + 1] - offsets[row]) for offsets in (edges[name], expected)
            )
            raise _BadRow(row, f"{name!r} has {count} values, but there are {wanted} {column.per}s")
    if declared.per_number:
        _check_index(batch, edges, declared.shared)
    if not declared.packed:
        _check_frame(batch, edges["input_ids"], valid, declared.frame)
    elif SEQ_LENGTHS.name in edges:
        _check_pieces(batch, edges)


def _check_pieces(batch: pa.RecordBatch, edges: dict[str, Ints]) -> None:
    """The pieces of documents in a packed row are all of its tokens."""
    lengths = memory.from_arrow(flat(batch.column(SEQ_LENGTHS.name))[0]).astype(np.int64)
    sums = np.append(0, np.cumsum(lengths))
    rows = edges[SEQ_LENGTHS.name]
    if (lengths < 0).any():
        raise _BadRow(
            _row_of(np.argmax(lengths < 0), rows),
            f"{SEQ_LENGTHS.name!r} has {lengths.min()}, which is no length",
        )
    wrong = np.diff(sums[rows]) != np.diff(edges["input_ids"])
    if wrong.any():
        row = int(np.argmax(wrong))
        total, tokens = int(np.diff(sums[rows])[row]), int(np.diff(edges["input_ids"])[row])
        raise _BadRow(row, f"{SEQ_LENGTHS.name!r} are {total} tokens, but there are {tokens}")


def _check_index(batch: pa.RecordBatch, edges: dict[str, Ints], shared: bool) -> None:
    """``number_index`` ascends within each row's ids; ordinary tokens may be ``shared`` by two
    numbers.
    """
    index = memory.from_arrow(flat(batch.column("number_index"))[0])
    if not len(index):
        return
    numbers = edges["number_index"]
    lengths = np.repeat(np.diff(edges["input_ids"]), np.diff(numbers))
    wrong = (index < 0) | (index >= lengths)
    descends = np.zeros(len(index), np.bool_)
    descends[1:] = index[1:] < index[:-1] + (not shared)
    descends[numbers[:-1][numbers[:-1] < len(index)]] = False  # the first of each row
    wrong |= descends
    if wrong.any():
        at = int(np.argmax(wrong))
        row = _row_of(at, numbers)
        raise _BadRow(
            row,
            f"'number_index' has {index[at]}, which is no place after the one before it within the"
            f" row's {lengths[at]} ids",
        )


def _check_frame(
    batch: pa.RecordBatch,
    edges: Ints,
    valid: npt.NDArray[np.bool_],
    frame: tuple[list[int], list[int]],
) -> None:
    """Each row begins and ends with the special tokens that the metadata tell."""
    before, after = frame
    if not before and not after:
        return
    ids = memory.from_arrow(flat(batch.column("input_ids"))[0])
    starts, stops = edges[:-1][valid], edges[1:][valid]
    bad = stops - starts < len(before) + len(after)
    if not bad.any():
        for place, token in enumerate(before):
            bad |= ids[starts + place] != token
        for place, token in enumerate(reversed(after), 1):
            bad |= ids[stops - place] != token
    if bad.any():
        row = np.flatnonzero(valid)[np.argmax(bad)]
        raise _BadRow(
            row,
            f"'input_ids' does not begin and end with the 'frame' of the metadata, {len(before)}"
            f" and {len(after)} ids",
        )


def _row_of(value: Any, edges: Ints) -> int:
    return int(np.searchsorted(edges, value, side="right")) - 1
