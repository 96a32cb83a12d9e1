"""Compact columns to dense ones: bits and features of every number as tensors.

In: rows of a file. Out: the same, in which ``number_bits`` holds each bit by itself and
``number_digits`` has become ``number_fourier``.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.errors import SchemaError
from numtok.representations import SingleToken, from_dict
from numtok.representations.columns import NUMBER_MASK
from numtok.representations.parse import choose
from numtok.representations.values import tensor_array, tensor_values
from numtok.tokenizer.layout import conform, with_metadata
from numtok.tokenizer.metadata import tensor_shapes
from numtok.tokenizer.schema import flat, list_array, no_rows, read_metadata, valid_rows

Batch = TypeVar("Batch", pa.RecordBatch, pa.Table)


def expand(batch: Batch) -> Batch:
    """Make dense tensors of the compact columns of bits and FoNE. All other columns stay as they
    are. Both layouts are taken.

    Args:
        batch: rows of an encoded file, with its metadata.

    Raises:
        SchemaError: without numtok's metadata, or if a column is not of its type.
    """
    if isinstance(batch, pa.Table):
        schema = expand(no_rows(batch.schema)).schema
        return pa.Table.from_batches([expand(one) for one in batch.to_batches()], schema)
    if not isinstance(batch, pa.RecordBatch):
        raise SchemaError(f"expected a record batch or a table, got {type(batch).__name__}")
    described, batch = read_metadata(batch.schema), conform(batch)
    compact = [from_dict(options) for options in described["numbers"]]
    dense = choose(compact, compact=False)
    columns, fields = list(batch.columns), list(batch.schema)
    for one, wanted in zip(compact, dense, strict=True):
        for old, new in zip(one.columns(), wanted.columns().values(), strict=True):
            at = batch.schema.get_field_index(old)
            if one == wanted or at < 0 or not isinstance(one, SingleToken):
                continue
            column, rows = batch.column(at), pa.list_
            if pa.types.is_large_list(column.type):
                rows = pa.large_list
            values, offsets = flat(column)
            made = _filled(one.expand({old: values})[new.name], new.fill, batch, described)
            columns[at] = list_array(made, offsets, rows(new.type), valid_rows(column))
            fields[at] = pa.field(new.name, columns[at].type, metadata=fields[at].metadata)
    changes = {"numbers": [one.to_dict() for one in dense], "shapes": tensor_shapes(dense) or None}
    schema = with_metadata(pa.schema(fields, batch.schema.metadata), changes)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _filled(tensors: pa.Array, fill: float, batch: pa.RecordBatch, described: Any) -> pa.Array:
    """With the fill at tokens that are no numbers, where values run along with tokens."""
    if described["layout"] == "number":
        return tensors
    mask = memory.from_arrow(flat(batch.column(NUMBER_MASK.name))[0])
    values: npt.NDArray[Any] = np.array(tensor_values(tensors))
    values[~mask] = fill
    return tensor_array(values, tensors.type)
