"""The Arrow schema of encoded text: columns, types and metadata. ``FORMAT.md`` is the normative
text.

In: representations and flat arrays with one value per token or per number. Out: a record batch with
    one row per document; and back.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.arrays.text_rows import ArrowArray
from numtok.errors import InputError, SchemaError
from numtok.representations import Representation
from numtok.representations.columns import ALWAYS, PACKED, PACKED_WITH_TEXT, WITH_TEXT, Column
from numtok.tokenizer.metadata import FORMAT_VERSION, parse_metadata, tensor_shapes

METADATA_KEY = b"numtok"
LIST_LIMIT = 2**31 - 1


def columns_of(
    representations: Sequence[Representation],
    keep_text: bool,
    layout: str = "number",
    packed: bool = False,
) -> dict[str, Column]:
    """The columns of encoded text by name, in order; packed rows have token layout, and know the
    pieces of documents in them.
    """
    own = (
        column for representation in representations for column in representation.columns().values()
    )
    texts = (PACKED_WITH_TEXT if packed else WITH_TEXT) if keep_text else ()
    columns = (*ALWAYS, *own, *texts, *(PACKED if packed else ()))
    return {
        column.name: column
        for column in (
            columns if layout == "number" else (column.along_tokens() for column in columns)
        )
    }


def build_schema(
    representations: Sequence[Representation],
    keep_text: bool,
    metadata: dict[str, Any],
    large: bool = False,
) -> pa.Schema:
    """The schema of encoded batches."""
    fields = []
    for column in columns_of(representations, keep_text).values():
        if column.per == "row":
            fields.append(pa.field(column.name, pa.large_string() if large else column.type))
        else:
            fields.append(
                pa.field(
                    column.name, pa.large_list(column.type) if large else pa.list_(column.type)
                )
            )
    shapes = tensor_shapes(representations)
    described = json.dumps(
        {"format": FORMAT_VERSION} | metadata | ({"shapes": shapes} if shapes else {}),
        sort_keys=True,
        ensure_ascii=True,
        separators=(",", ":"),
    )
    return pa.schema(fields, {METADATA_KEY: described.encode()})


class BatchSchemas:
    """The schemas of one tokenizer's batches, each made once.

    Args:
        representations: whose columns they have.
        described: their metadata, all but the special tokens.
        frame: gives the ids of the special tokens before and after a text, once a schema needs
            them.
    """

    def __init__(
        self,
        representations: Sequence[Representation],
        described: Mapping[str, Any],
        frame: Callable[[], tuple[list[int], list[int]]],
    ) -> None:
        self._representations, self._described, self._frame = representations, described, frame
        self._made: dict[tuple[bool, bool, bool], pa.Schema] = {}

    def get(self, keep_text: bool, add_special_tokens: bool, large: bool) -> pa.Schema:
        """That of batches with such options; ``large`` has 64-bit offsets."""
        options = (keep_text, add_special_tokens, large)
        if options not in self._made:
            metadata = {
                **self._described,
                "frame": list(self._frame()) if add_special_tokens else [[], []],
            }
            self._made[options] = build_schema(self._representations, keep_text, metadata, large)
        return self._made[options]


def read_metadata(schema: pa.Schema, where: str = "") -> dict[str, Any]:
    """The metadata that :func:`build_schema` wrote, checked: see :mod:`numtok.tokenizer.metadata`.

    Args:
        schema: of a batch or a file.
        where: the file, for the message.

    Raises:
        SchemaError: if the data is not numtok's, or of a newer format, or the metadata are damaged.
    """
    described = (schema.metadata or {}).get(METADATA_KEY)
    try:
        if described is None:
            raise SchemaError(
                "the data has no 'numtok' schema metadata, so it was not written by numtok (or"
                " another program dropped the metadata)"
            )
        return parse_metadata(described)
    except SchemaError as error:
        raise SchemaError(f"{where}: {error}") if where else error from None


def as_record_batch(batch: ArrowArray) -> pa.RecordBatch:
    """A record batch of any Arrow library as pyarrow's, without a copy.

    Raises:
        InputError: for anything else.
    """
    if isinstance(batch, pa.RecordBatch):
        return batch
    if hasattr(batch, "__arrow_c_array__"):
        with contextlib.suppress(pa.ArrowException):  # of an array of something else than rows
            return pa.record_batch(batch)
    raise InputError(
        f"expected a record batch, got {type(batch).__name__}; take a table's to_batches() one by"
        " one, and decode for one Encoding or ids"
    )


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """A batch without rows; ``pa.array([], ...)`` and ``empty_table`` cannot make extension types
    inside lists, ``nulls`` can.
    """
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def list_array(
    values: Any,
    offsets: npt.NDArray[np.int64],
    kind: pa.DataType,
    valid: npt.NDArray[np.bool_],
    large: bool,
) -> pa.Array:
    """Rows ``values[offsets[r]:offsets[r + 1]]`` as a list array; rows that are not valid become
    null.
    """
    if not isinstance(values, pa.Array):
        values = memory.to_arrow(values)
        values = values if values.type.equals(kind) else values.cast(kind)
    array_type = pa.LargeListArray if large else pa.ListArray
    mask = None if valid.all() else memory.to_arrow(~valid)
    list_type = pa.large_list(kind) if large else pa.list_(kind)
    return array_type.from_arrays(
        memory.to_arrow(offsets if large else offsets.astype(np.int32)),
        values,
        type=list_type,
        mask=mask,
    )


def flat(column: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """(values, offsets from 0) of a list column, also of a slice; the inverse of
    :func:`list_array`.
    """
    offsets = memory.from_arrow(column.offsets).astype(np.int64)
    return column.values.slice(offsets[0], offsets[-1] - offsets[0]), offsets - offsets[0]


def column(batch: pa.RecordBatch, name: str) -> pa.Array:
    """A column of a batch, or a SchemaError that lists those there are."""
    if name not in batch.schema.names:
        raise SchemaError(
            f"the batch has no column {name!r}; it has {', '.join(batch.schema.names)}"
        )
    return batch.column(name)
