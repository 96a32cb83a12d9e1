"""Encoded batches as files hold them: tensors as plain lists, other programs' variants of the
types, one value per number or per token, compact columns and dense ones.

In token layout ``number_index`` is ``number_mask``, and every column of numbers has a number's
value at its first token and the ``fill`` of its :class:`numtok.representations.Column` at all
others, (tokens, ...) for (numbers, ...): such rows can be sliced, joined and packed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.errors import SchemaError
from numtok.representations import SingleToken, from_dict
from numtok.representations.columns import (
    NUMBER_INDEX,
    NUMBER_MASK,
    Column,
    neutral,
    tensor_array,
    tensor_values,
)
from numtok.representations.registry import set_for_all
from numtok.tokenizer.metadata import tensor_shapes
from numtok.tokenizer.schema import (
    METADATA_KEY,
    columns_of,
    declared_columns,
    no_rows,
    number_positions,
    read_metadata,
    valid_rows,
)
from numtok.tokenizer.schema import (
    column as column_of,
)

Ints = npt.NDArray[np.int64]
Batch = TypeVar("Batch", pa.RecordBatch, pa.Table)


def schema_with_lists(schema: pa.Schema) -> pa.Schema:
    """Return the schema with lists of tensors as lists of ``fixed_size_list``."""
    return tensors_as_lists(no_rows(schema)).schema


def tensors_as_lists(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with the types of :func:`schema_with_lists`, without a copy."""
    metadata = batch.schema.metadata or {}
    shapes = read_metadata(batch.schema)["shapes"] if METADATA_KEY in metadata else {}
    columns = [
        _with_values(column, column.values.storage)
        if name in shapes and isinstance(getattr(column, "values", None), pa.FixedShapeTensorArray)
        else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    pairs = zip(batch.schema, columns, strict=True)
    fields = [field.with_type(one.type) for field, one in pairs]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, metadata))


def conform_schema(schema: pa.Schema, where: str = "") -> pa.Schema:
    """Return the schema with numtok's columns in the types of ``FORMAT.md``."""
    return conform(no_rows(schema), where).schema


def conform(batch: pa.RecordBatch, where: str = "") -> pa.RecordBatch:
    """Return the batch with the types of :func:`conform_schema`; lists below null rows are empty.
    SchemaError if a column is of a type that cannot be read as its own.
    """
    declared, columns, fields = declared_columns(batch.schema, where), [], []
    for field, column in zip(batch.schema, batch.columns, strict=True):
        name, kind = field.name, column.type
        if name in declared and declared[name].per != "row":
            kind = _like(kind, declared[name].type)
        elif name in declared and kind not in (pa.string(), pa.large_string()):
            kind = pa.large_string()
        try:
            columns.append(_conformed(column, kind) if name in declared else column)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            reason = str(error).splitlines()[0]
            message = f"column {name!r} is {column.type}, which cannot be read as {kind}: {reason}"
            raise SchemaError(f"{where}: {message}" if where else message) from None
        fields.append(field.with_type(kind))
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, batch.schema.metadata))


def _conformed(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if not isinstance(column, pa.ListArray | pa.LargeListArray):
        return column if column.type.equals(kind) else column.cast(kind)
    if column.null_count and np.diff(memory.from_arrow(column.offsets))[~valid_rows(column)].any():
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
    """Return the lists of ``column``, holding other values, without a copy."""
    kind = _like(column.type, values.type)
    return pa.Array.from_buffers(
        kind, len(column), column.buffers()[:2], column.null_count, column.offset, children=[values]
    )


def with_metadata(schema: pa.Schema, changes: Mapping[str, Any]) -> pa.Schema:
    """Return the schema whose metadata say these things too, or instead; None takes a key away."""
    described = json.loads(schema.metadata[METADATA_KEY])
    described = {key: value for key, value in (described | changes).items() if value is not None}
    text = json.dumps(described, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return schema.with_metadata({**schema.metadata, METADATA_KEY: text.encode()})


def token_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of :func:`to_token_layout`'s batches; columns that are not numtok's stay."""
    return _with_places(schema, NUMBER_INDEX, NUMBER_MASK, {"layout": "token"})


def number_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema in number layout of a schema in token layout: the inverse of
    :func:`token_schema`.
    """
    return _with_places(schema, NUMBER_MASK, NUMBER_INDEX, {"layout": None, "pack": None})


def _with_places(
    schema: pa.Schema, old: Column, new: Column, changes: Mapping[str, Any]
) -> pa.Schema:
    at = schema.get_field_index(old.name)
    if at >= 0:
        schema = schema.set(at, pa.field(new.name, _like(schema.field(at).type, new.type)))
    return with_metadata(schema, changes)


def to_token_layout(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows, which hold together (:func:`numtok.tokenizer.schema.check_rows`), in token
    layout.
    """
    if read_metadata(batch.schema)["layout"] == "token":
        return batch
    described, of_numbers = token_schema(batch.schema), _number_columns(batch.schema)
    offsets, _, positions = number_positions(batch)
    valid = valid_rows(batch.column("input_ids"))
    first = np.diff(positions, prepend=-1) > 0  # of those that begin in one token
    total, columns = int(offsets[-1]), []
    for column, field in zip(batch.columns, described, strict=True):
        if field.name == NUMBER_MASK.name:
            values: Any = np.zeros(total, np.bool_)
            values[positions] = True
        elif field.name in of_numbers:
            values = _spread(
                memory.flat(column)[0], positions, first, total, of_numbers[field.name]
            )
        else:
            columns.append(column)
            continue
        columns.append(memory.list_array(values, offsets, field.type, valid))
    return pa.RecordBatch.from_arrays(columns, schema=described)


def to_number_layout(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Convert rows in token layout to number layout: the inverse of :func:`to_token_layout`. Rows
    in number layout stay as they are.
    """
    if read_metadata(batch.schema)["layout"] == "number":
        return batch
    described, of_numbers = number_schema(batch.schema), _number_columns(batch.schema)
    mask, offsets = memory.flat(batch.column(NUMBER_MASK.name))
    positions = np.flatnonzero(memory.from_arrow(mask))
    number_offsets = np.searchsorted(positions, offsets)
    chosen, valid = memory.to_arrow(positions), valid_rows(batch.column("input_ids"))
    index, columns = positions - np.repeat(offsets[:-1], np.diff(number_offsets)), []
    for column, field in zip(batch.columns, described, strict=True):
        if field.name == NUMBER_INDEX.name:
            values: Any = index.astype(np.int32)
        elif field.name in of_numbers:
            values = memory.flat(column)[0].take(chosen)
        else:
            columns.append(column)
            continue
        columns.append(memory.list_array(values, number_offsets, field.type, valid))
    return pa.RecordBatch.from_arrays(columns, schema=described)


def _number_columns(schema: pa.Schema) -> dict[str, Column]:
    """Return the columns that have one value per number in number layout, without ``number_index``."""
    numbers = [from_dict(options) for options in read_metadata(schema)["numbers"]]
    declared = columns_of(numbers, keep_text=True)
    return {
        name: column
        for name, column in declared.items()
        if column.per == "number" and column != NUMBER_INDEX
    }


def _spread(
    values: pa.Array, positions: Ints, first: npt.NDArray[np.bool_], total: int, column: Column
) -> pa.Array:
    """Return (tokens, ...): the values at their positions, the column's fill elsewhere."""
    if not first.all():
        values, positions = values.filter(memory.to_arrow(first)), positions[first]
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        which = np.full(total, len(values))
        which[positions] = np.arange(len(values))
        return values.take(pa.array(which, mask=which == len(values))).fill_null("")
    if isinstance(values, pa.ExtensionArray):
        tensors = tensor_values(values)
        dense = neutral(column, total, tensors)
        dense[positions] = tensors
        return tensor_array(dense, values.type)
    plain = memory.from_arrow(values)
    spread = memory.full(total, column.fill, plain.dtype)
    spread[positions] = plain
    return memory.to_arrow(spread)


def expand(batch: Batch) -> Batch:
    """Make dense tensors of the compact columns of bits and FoNE. All other columns stay as they
    are. Both layouts are taken.

    Args:
        batch: rows of an encoded file, with its metadata.

    Raises:
        SchemaError: without numtok's metadata, or if a column is not of its type.

    Example:
        >>> import numtok
        >>> tokenizer = numtok.Tokenizer.from_pretrained(numbers=numtok.FloatBits(compact=True))
        >>> batch = tokenizer.encode_batch(["-28.5"])
        >>> str(batch.schema.field("number_bits").type)
        'list<item: uint32>'
        >>> str(numtok.expand(batch).schema.field("number_bits").type)
        'list<item: extension<arrow.fixed_shape_tensor[value_type=uint8, shape=[32]]>>'
    """
    if isinstance(batch, pa.Table):
        schema = expand(no_rows(batch.schema)).schema
        return pa.Table.from_batches([expand(one) for one in batch.to_batches()], schema)
    if not isinstance(batch, pa.RecordBatch):
        raise SchemaError(f"expected a record batch or a table, got {type(batch).__name__}")
    described, batch = read_metadata(batch.schema), conform(batch)
    compact = [from_dict(options) for options in described["numbers"]]
    dense = set_for_all(compact, compact=False)
    columns, fields = list(batch.columns), list(batch.schema)
    for one, wanted in zip(compact, dense, strict=True):
        for old, new in zip(one.columns(), wanted.columns().values(), strict=True):
            at = batch.schema.get_field_index(old)
            if one == wanted or at < 0 or not isinstance(one, SingleToken):
                continue
            column, rows = batch.column(at), pa.list_
            if pa.types.is_large_list(column.type):
                rows = pa.large_list
            values, offsets = memory.flat(column)
            values = _filled(one.expand({old: values})[new.name], new.fill, batch, described)
            columns[at] = memory.list_array(values, offsets, rows(new.type), valid_rows(column))
            fields[at] = pa.field(new.name, columns[at].type, metadata=fields[at].metadata)
    changes = {"numbers": [one.to_dict() for one in dense], "shapes": tensor_shapes(dense) or None}
    schema = with_metadata(pa.schema(fields, batch.schema.metadata), changes)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _filled(tensors: pa.Array, fill: float, batch: pa.RecordBatch, described: Any) -> pa.Array:
    """Put the fill at tokens that are no numbers, where values run along with tokens."""
    if described["layout"] == "number":
        return tensors
    mask = memory.from_arrow(memory.flat(column_of(batch, NUMBER_MASK.name))[0])
    values: npt.NDArray[Any] = np.array(tensor_values(tensors))
    values[~mask] = fill
    return tensor_array(values, tensors.type)
