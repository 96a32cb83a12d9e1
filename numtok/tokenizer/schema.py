"""The Arrow schema of encoded text (``FORMAT.md``): columns, types, metadata and lists; and whether
the rows of a batch, which anybody may have written, hold together.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.arrays.text_rows import ArrowArray
from numtok.errors import InputError, SchemaError
from numtok.representations import Representation, from_dict
from numtok.representations.columns import (
    ALWAYS,
    PACKED,
    PACKED_WITH_TEXT,
    SEQ_LENGTHS,
    SEQ_TEXT,
    WITH_TEXT,
    Column,
)
from numtok.tokenizer.metadata import FORMAT_VERSION, parse_metadata, tensor_shapes

METADATA_KEY = b"numtok"
LIST_LIMIT = 2**31 - 1
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
# the column that tells how many there are
_COUNTED = {"token": "input_ids", "number": "number_index", "piece": SEQ_LENGTHS.name}


def columns_of(
    representations: Sequence[Representation],
    keep_text: bool,
    layout: str = "number",
    packed: bool = False,
) -> dict[str, Column]:
    """Return the columns of encoded text by name, in order; packed rows have token layout, and know
    the pieces of documents in them.
    """
    represented = (column for one in representations for column in one.columns().values())
    texts = (PACKED_WITH_TEXT if packed else WITH_TEXT) if keep_text else ()
    columns = (*ALWAYS, *represented, *texts, *(PACKED if packed else ()))
    if layout == "token":
        columns = tuple(column.along_tokens() for column in columns)
    return {column.name: column for column in columns}


def build_schema(
    representations: Sequence[Representation],
    keep_text: bool,
    metadata: dict[str, Any],
    large: bool = False,
) -> pa.Schema:
    """Return the schema of encoded batches."""
    text, rows = (pa.large_string(), pa.large_list) if large else (pa.string(), pa.list_)
    fields = [
        pa.field(column.name, text if column.per == "row" else rows(column.type))
        for column in columns_of(representations, keep_text).values()
    ]
    shapes = tensor_shapes(representations)
    described = json.dumps(
        {"format": FORMAT_VERSION} | metadata | ({"shapes": shapes} if shapes else {}),
        sort_keys=True,
        ensure_ascii=True,
        separators=(",", ":"),
    )
    return pa.schema(fields, {METADATA_KEY: described.encode()})


def read_metadata(schema: pa.Schema, where: str = "") -> dict[str, Any]:
    """Return the metadata that :func:`build_schema` wrote, checked: see
    :mod:`numtok.tokenizer.metadata`. SchemaError if the data is not numtok's, or of a newer format,
    or the metadata are damaged.
    """
    return _parsed(_described(schema), where)


def _described(schema: pa.Schema) -> bytes | None:
    return (schema.metadata or {}).get(METADATA_KEY)


def _parsed(described: bytes | None, where: str) -> dict[str, Any]:
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
    """Return a record batch of any Arrow library as pyarrow's; InputError for others."""
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
    """Return a batch without rows; ``pa.array([], ...)`` and ``empty_table`` cannot make extension
    types inside lists, ``nulls`` can.
    """
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def number_positions(batch: pa.RecordBatch) -> tuple[Ints, Ints, Ints]:
    """Return (where the ids of each row begin, where its numbers do, the first token of each
    number) of a batch in number layout, all rows end to end.
    """
    _, offsets = memory.flat(column(batch, "input_ids"))
    index, numbers = memory.flat(column(batch, "number_index"))
    return offsets, numbers, memory.from_arrow(index) + np.repeat(offsets[:-1], np.diff(numbers))


def valid_rows(column: pa.Array) -> Mask:
    """Return bool[rows]: which are not null."""
    if not column.null_count:
        return np.ones(len(column), np.bool_)
    return memory.from_arrow(column.is_valid())


def column(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return a column of a batch, or a SchemaError that lists those there are."""
    if name not in batch.schema.names:
        raise SchemaError(
            f"the batch has no column {name!r}; it has {', '.join(batch.schema.names)}"
        )
    return batch.column(name)


class _Declared(NamedTuple):
    """Facts of the metadata that checks of rows need."""

    columns: Mapping[str, Column]  # that numtok may have written
    per_number: bool  # whether numbers have columns of their own
    shared: bool  # whether an ordinary token may be that of two numbers
    packed: bool  # whether rows are pieces of documents
    frame: tuple[list[int], list[int]]  # the special tokens before and after each row


@functools.lru_cache(maxsize=16)  # all batches of a file have the same
def _declared_by(described: bytes | None, where: str) -> _Declared:
    metadata = _parsed(described, where)
    numbers = [from_dict(options) for options in metadata["numbers"]]
    layout, packed = metadata["layout"], metadata["pack"] is not None
    columns = MappingProxyType(columns_of(numbers, True, layout, packed))
    return _Declared(columns, layout == "number", numbers[0].stays_text, packed, metadata["frame"])


def declared_columns(schema: pa.Schema, where: str = "") -> Mapping[str, Column]:
    """Return the columns that numtok may have written, by the representations in the metadata. All
    others are a user's own columns.
    """
    return _declared_by(_described(schema), where).columns


def check_rows(batch: pa.RecordBatch, where: str = "", first_row: int = 0) -> None:
    """Refuse rows of a batch that :func:`conform` returned which would give another row's values.
    SchemaError naming the row, if columns disagree in nulls or lengths, ``number_index`` does not
    ascend within ``input_ids``, or the row does not begin and end with the metadata's ``frame``.
    """
    for wrong, message, *columns in _checks(batch, _declared_by(_described(batch.schema), where)):
        if wrong.any():
            row = int(np.argmax(wrong))
            message = message.format(*(one[row] for one in columns))
            raise SchemaError(
                f"{message}; the file is damaged, or its columns were changed apart from each other",
                path=where or None,
                row=first_row + row,
            )


def _checks(batch: pa.RecordBatch, declared: _Declared) -> Iterator[tuple[Any, ...]]:
    """Yield (bool[rows], which are wrong; the message for a row, with ``{}`` for its values; arrays of
    these values) of each check, which relies on those before it.
    """
    for needed in ("input_ids", "number_index" if declared.per_number else "number_mask"):
        column(batch, needed)  # is there
    columns = {
        name: one
        for name, one in declared.columns.items()
        if name in batch.schema.names and one.per != "row"
    }
    valid = valid_rows(batch.column("input_ids"))
    edges: dict[str, Ints] = {}
    for name, one in columns.items():
        values = batch.column(name)
        yield valid_rows(values) != valid, f"{name!r} and 'input_ids' are not null together"
        values, edges[name] = memory.flat(values)
        if values.null_count and one != SEQ_TEXT:
            yield _rows_with(~valid_rows(values), edges[name]), f"{name!r} holds a null value"
    counts = {name: np.diff(one) for name, one in edges.items()}
    for name, one in columns.items():
        wanted = counts.get(_COUNTED[one.per], counts[name])
        message = f"{name!r} has {{}} values, but there are {{}} {one.per}s"
        yield counts[name] != wanted, message, counts[name], wanted
    tokens = counts["input_ids"]
    if declared.per_number:
        index = memory.from_arrow(memory.flat(batch.column("number_index"))[0]).astype(np.int64)
        wrong = (index < 0) | (index >= np.repeat(tokens, counts["number_index"]))
        descends = np.diff(index, prepend=0) < (not declared.shared)
        descends[edges["number_index"][:-1][counts["number_index"] > 0]] = False  # the first
        wrong |= descends
        first = np.full(len(tokens), index[np.argmax(wrong)] if len(index) else 0)
        message = "'number_index' has {}, which is no place after the one before it within {} ids"
        yield _rows_with(wrong, edges["number_index"]), message, first, tokens
    if declared.packed and SEQ_LENGTHS.name in edges:
        lengths = memory.from_arrow(memory.flat(batch.column(SEQ_LENGTHS.name))[0]).astype(np.int64)
        negative = _rows_with(lengths < 0, edges[SEQ_LENGTHS.name])
        yield negative, f"{SEQ_LENGTHS.name!r} has a negative length"
        sums = np.diff(memory.offsets_of(lengths)[edges[SEQ_LENGTHS.name]])
        message = f"{SEQ_LENGTHS.name!r} are {{}} tokens, but there are {{}}"
        yield sums != tokens, message, sums, tokens
    if not declared.packed and any(declared.frame):
        before, after = map(np.array, declared.frame)
        sizes = f"{len(before)} and {len(after)}"
        message = (
            f"'input_ids' does not begin and end with the {sizes} ids of the metadata's 'frame'"
        )
        yield valid & (tokens < len(before) + len(after)), message
        ids = memory.from_arrow(memory.flat(batch.column("input_ids"))[0])
        starts, stops = (
            one[valid][:, None] for one in (edges["input_ids"][:-1], edges["input_ids"][1:])
        )
        wrong = ~valid
        wrong[valid] = (ids[starts + np.arange(len(before))] != before).any(1)
        wrong[valid] |= (ids[stops - len(after) + np.arange(len(after))] != after).any(1)
        yield wrong & valid, message


def _rows_with(chosen: Mask, edges: Ints) -> Mask:
    """Return bool[rows]: which hold one of the chosen values."""
    return np.asarray(np.diff(memory.offsets_of(chosen)[edges]) > 0)
