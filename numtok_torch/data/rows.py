"""Rows as dictionaries to rows laid end to end, and their truncation; the names, dtypes and fillers
of everything a batch carries.

Two kinds of rows are read, and give the same:

- **sparse**, as in numtok's files and :class:`numtok_torch.data.dataset.NumberDataset`:
  ``number_index`` int[numbers], and one value per number in each number stream (``number_value``,
  ``number_scaled`` ...), of shape ``(numbers, *inner)``;
- **dense**, as a transformers tokenizer with numbers gives them, and files in token layout:
  ``number_mask`` bool[tokens], and one value per token in each, ``(tokens, *inner)``; whatever
  stands where the mask is False is ignored.

``place_value`` and everything else per token is the same in both. The ``seq_lengths`` of packed
rows become ``position_ids``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch

from numtok.errors import SchemaError
from numtok.representations import streams
from numtok.representations.columns import (
    INPUT_IDS,
    NUMBER_INDEX,
    NUMBER_MASK,
    SEQ_LENGTHS,
    Column,
    as_array,
    form,
)
from numtok.tokenizer.layout import conform_schema
from numtok.tokenizer.packing import NumberTokens
from numtok.tokenizer.schema import declared_columns
from numtok_torch.data.packing import Ints, Mask, within

Array = npt.NDArray[Any]
Row = Mapping[str, Any]
Shapes = Mapping[str, tuple[int, ...]]
Forms = tuple[Column, ...]  # dense and compact

SPANS = "mask_spans"
NO_STREAMS = (INPUT_IDS.name, NUMBER_INDEX.name, NUMBER_MASK.name, SEQ_LENGTHS.name, SPANS)
BATCH_ONLY = {  # per token too, but of no file
    column.name: (column,)
    for column in (
        Column("labels", pa.int64(), np.int64, fill=-100, per="token"),
        Column("token_type_ids", pa.int64(), np.int64, per="token"),
        Column("position_ids", pa.int64(), np.int64, per="token"),
        Column("attention_mask", pa.int64(), np.int64, per="token"),
        Column("special_tokens_mask", pa.int64(), np.int64, fill=1, per="token"),
    )
}


def number_streams() -> dict[str, Forms]:
    """Return the streams with one value per number, by name."""
    return streams("number")


def token_streams() -> dict[str, Forms]:
    """Return the streams with one value per token, by name, besides ``input_ids``."""
    return {**streams("token"), **BATCH_ONLY}


def stored_columns() -> frozenset[str]:
    """Return the columns of a file that hold tensors, or say how a packed row is to be read."""
    return frozenset({*NO_STREAMS, *streams()} - {SPANS})


def inner_shapes(schema: pa.Schema) -> dict[str, tuple[int, ...]]:
    """Return the shape of one number's value, for the number streams of a file: () for a scalar,
    (32,) for bits that are not compact.
    """
    schema = conform_schema(schema)  # Parquet has tensors as plain lists
    own = declared_columns(schema)
    kinds = {
        name: schema.field(name).type.value_type
        for name in number_streams()
        if name in schema.names and name in own
    }
    return {
        name: tuple(kind.shape) if isinstance(kind, pa.FixedShapeTensorType) else ()
        for name, kind in kinds.items()
    }


@dataclass
class Placed:
    """``values[k]`` belongs to token ``positions[k]``; all others have the filler."""

    positions: Ints
    values: Array
    fill: float


@dataclass
class Rows:
    """Rows laid end to end, before they are padded."""

    lengths: Ints  # int64[rows], tokens per row
    tokens: dict[str, Array]  # stream to (tokens,), ``input_ids`` among them
    # int64[numbers], the first token of each number, ascending; None if the rows say nothing about
    # numbers
    positions: Ints | None = None
    numbers: dict[str, Array] = field(default_factory=dict)  # stream to (numbers, *inner)
    # stream to one value per row, such as the label of a document
    whole: dict[str, Array] = field(default_factory=dict)
    # more streams with values at some tokens, such as ``number_value_labels``
    placed: dict[str, Placed] = field(default_factory=dict)
    # int64[k, 2], half-open spans of tokens to mask; None if the rows have none
    spans: Ints | None = None

    @property
    def ids(self) -> Ints:
        return self.tokens["input_ids"]

    @property
    def starts(self) -> Ints:
        """Return int64[rows]: the first token of each row."""
        return np.asarray(np.cumsum(self.lengths) - self.lengths)

    def number_stops(self, numbers: NumberTokens) -> Ints:
        """Return int64[numbers]: where the tokens of each number end."""
        positions = np.empty(0, np.int64) if self.positions is None else self.positions
        stops = np.cumsum(self.lengths)
        return numbers.stops(
            self.ids, positions, stops[np.searchsorted(stops, positions, side="right")]
        )


def read_rows(
    features: Sequence[Row], drop: Sequence[str] = (), shapes: Shapes | None = None
) -> Rows:
    """Lay rows with the same keys end to end. ``shapes``, of one number's value in each stream, are
    only needed for Python lists without any number. SchemaError for a key that has no place in a
    batch, or arrays that do not fit together.
    """
    keys = _common_keys(features)
    wanted = [key for key in keys if key not in drop and key not in NO_STREAMS]
    _check_streams(wanted, keys)
    ids, lengths = _end_to_end(features, "input_ids")
    rows = Rows(lengths, {"input_ids": ids.astype(np.int64, copy=False)})
    rows.positions, counts = _positions(features, keys, rows)
    for key in wanted:
        if key in number_streams():
            rows.numbers[key] = _number_stream(key, features, rows, counts, shapes or {})
        elif key == "labels" and np.ndim(features[0][key]) == 0:
            values = np.array([_array(row[key]) for row in features])
            rows.whole[key] = values.astype(np.float32 if values.dtype.kind == "f" else np.int64)
        else:
            values = _per_token(features, key, lengths)
            rows.tokens[key] = values.astype(token_streams()[key][0].dtype, copy=False)
    if rows.positions is not None and len(rows.positions):
        first = np.diff(rows.positions, prepend=-1) > 0  # numbers of a text may begin in one token
        rows.positions = rows.positions[first]
        rows.numbers = {key: values[first] for key, values in rows.numbers.items()}
    if SEQ_LENGTHS.name in keys:
        pieces, counts = _end_to_end(features, SEQ_LENGTHS.name)
        pieces = pieces.astype(np.int64)
        sums = np.append(0, np.cumsum(pieces))[np.append(0, np.cumsum(counts))]
        _check_lengths(SEQ_LENGTHS.name, np.diff(sums), lengths, "token")
        rows.tokens.setdefault("position_ids", within(pieces))
    if SPANS in keys:
        rows.spans = _spans(features, rows)
    return rows


def _common_keys(features: Sequence[Row]) -> list[str]:
    """Return the keys of the rows. SchemaError if they differ, lack ``input_ids``, or there are no
    rows.
    """
    if not features:
        raise SchemaError("there are no rows to put into a batch")
    keys = list(features[0].keys())
    if "input_ids" not in keys:
        raise SchemaError(
            f"row 0 has no 'input_ids'; it has {', '.join(map(str, keys)) or 'nothing'}"
        )
    for number, row in enumerate(features):
        if row.keys() != features[0].keys():
            differing = ", ".join(sorted(set(keys) ^ set(row.keys())))
            raise SchemaError(
                f"rows 0 and {number} do not have the same keys: {differing} is in one of them"
                " only; batch rows of one kind"
            )
    return keys


def _check_streams(wanted: Sequence[str], keys: Sequence[str]) -> None:
    """Refuse wanted keys that are no streams, and numbers of both kinds of rows, or of neither."""
    per_number = number_streams()
    if unknown := [key for key in wanted if key not in per_number and key not in token_streams()]:
        raise SchemaError(
            f"the rows have {', '.join(map(repr, unknown))}, which is no stream of a batch; remove"
            " it from the rows, or name it in the collator's drop=(...)"
        )
    if "number_index" in keys and "number_mask" in keys:
        raise SchemaError(
            "the rows have both 'number_index' (one value per number) and 'number_mask' (one value"
            " per token); remove one of them"
        )
    numbers = [key for key in wanted if key in per_number]
    if numbers and "number_index" not in keys and "number_mask" not in keys:
        raise SchemaError(
            f"the rows have {numbers[0]!r}, but neither 'number_index' (then it has one value per"
            " number) nor 'number_mask' (one value per token)"
        )


def _end_to_end(features: Sequence[Row], name: str, forms: Forms = ()) -> tuple[Array, Ints]:
    """Return the values of all rows one after the other, and how many each has; rows without do not
    settle the dtype or the shape. ``forms`` are those of a stream.
    """
    arrays = [
        part if type(part) is np.ndarray and part.dtype != np.uint64 else _array(part, forms)
        for part in (row[name] for row in features)
    ]
    try:
        counts = list(map(len, arrays))  # of all rows of a large batch: no time for Python per row
    except TypeError:
        single = next(row for row, array in enumerate(arrays) if not array.ndim)
        raise SchemaError(f"row {single}: {name!r} is a single value, not a sequence") from None
    full = list(compress(arrays, counts)) or arrays[:1]
    try:
        return np.concatenate(full), np.array(counts, np.int64)
    except ValueError as error:
        raise SchemaError(
            f"{name!r} does not have the same shape in all rows ({error}); batch rows of one kind"
        ) from None


def _array(values: Any, forms: Forms = ()) -> Array:
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        return np.asarray((values.float() if values.dtype is torch.bfloat16 else values).numpy())
    try:
        return as_array(values, forms) if forms else np.asarray(values)
    except ValueError as error:  # nested lists of different lengths
        raise SchemaError(
            f"a row holds nested lists of different lengths ({error}); the values of numbers have"
            " one shape"
        ) from None


def _check_lengths(key: str, lengths: Ints, expected: Ints, what: str) -> None:
    if wrong := np.flatnonzero(lengths != expected).tolist():
        row = wrong[0]
        raise SchemaError(
            f"row {row}: {key!r} has {lengths[row]} values, but there are {expected[row]} {what}s; it"
            f" needs one value per {what}"
        )


def _per_token(features: Sequence[Row], key: str, lengths: Ints) -> Array:
    values, found_lengths = _end_to_end(features, key)
    _check_lengths(key, found_lengths, lengths, "token")
    return values


def _positions(
    features: Sequence[Row], keys: Sequence[str], rows: Rows
) -> tuple[Ints | None, Ints | None]:
    """Return (the numbers' first tokens, the count of numbers per row, None if the rows are dense)."""
    if "number_mask" in keys:
        return np.flatnonzero(_per_token(features, "number_mask", rows.lengths)), None
    if "number_index" not in keys:
        return None, None
    index, counts = _end_to_end(features, "number_index")
    index = index.astype(np.int64, copy=False)
    wrong = (index < 0) | (index >= np.repeat(rows.lengths, counts))
    positions = index + np.repeat(rows.starts, counts)
    wrong[1:] |= np.diff(positions) < 0
    if wrong.any():
        row = np.repeat(np.arange(len(counts)), counts)[np.argmax(wrong)]
        raise SchemaError(
            f"row {row}: 'number_index' must hold places in 'input_ids', in order; if the ids were"
            " cut or joined, number_index must follow"
        )
    return positions, counts


def _number_stream(
    key: str, features: Sequence[Row], rows: Rows, counts: Ints | None, shapes: Shapes
) -> Array:
    """Return the values of a stream, (numbers, *inner), in the dtype of the batch."""
    forms = number_streams()[key]
    values, found_lengths = _end_to_end(features, key, forms)
    if counts is None:
        _check_lengths(key, found_lengths, rows.lengths, "token")
    else:
        _check_lengths(key, found_lengths, counts, "number")
    if not values.size and values.ndim == 1:  # empty lists: the shape cannot be seen
        values = values.reshape(0, *(shapes[key] if key in shapes else _unseen(forms, values)))
    elif key in shapes and values.shape[1:] == (math.prod(shapes[key]),):
        values = values.reshape(-1, *shapes[key])  # as Parquet has them: plain lists
    elif key in shapes and values.shape[1:] != shapes[key]:
        raise SchemaError(
            f"{key!r} has values of shape {values.shape[1:]}, but the schema says {shapes[key]}"
        )
    if counts is None and values.size:
        values = values[rows.positions]
    return values.astype(form(forms, values.ndim - 1).dtype, copy=False)


def _unseen(forms: Forms, values: Array) -> tuple[int, ...]:
    """Return the shape of one value of a stream that is empty in all rows: an array of integers is
    the compact form, an empty list could be anything.
    """
    tensors = [column for column in forms if column.shape]
    if tensors and (len(tensors) == len(forms) or values.dtype.kind == "f"):
        raise SchemaError(
            f"no row of this batch holds a number, and the shape of {tensors[0].name!r} cannot be"
            " seen in empty lists; give the collator the schema (NumberCollator.from_schema), or"
            " rows of numpy arrays"
        )
    return ()


def _spans(features: Sequence[Row], rows: Rows) -> Ints:
    parts = [np.asarray(_array(row[SPANS]), np.int64).reshape(-1, 2) for row in features]
    counts, spans = np.array([len(part) for part in parts]), np.concatenate(parts)
    limit = np.repeat(rows.lengths, counts)
    if (spans[:, 0] < 0).any() or (spans[:, 1] > limit).any() or (spans[:, 0] > spans[:, 1]).any():
        raise SchemaError(
            f"{SPANS!r} must be [start, stop) pairs of places in 'input_ids', with 0 <= start <="
            " stop <= the row's length"
        )
    return np.asarray(spans + np.repeat(rows.starts, counts)[:, None])


def truncate(
    rows: Rows, max_length: int, side: str, numbers: NumberTokens, frame: tuple[int, int] = (0, 0)
) -> Rows:
    """Cut rows longer than ``max_length`` at one side, all streams together.

    The ``frame``, so many tokens at the beginning and the end of every row (``[CLS]``, ``[SEP]``),
    is kept. A number of which a token is cut loses its entry in every stream per number; what is
    left of a spelled-out one stays as tokens, each with its own place value.
    """
    if int(rows.lengths.max(initial=0)) <= max_length:
        return rows
    before, after = frame
    lengths, local = np.repeat(rows.lengths, rows.lengths), within(rows.lengths)  # (tokens,)
    if side == "right":  # both keep all of a row that is short enough
        keep = (local < max_length - after) | (local >= lengths - after)
    else:
        keep = (local < before) | (local >= lengths - (max_length - before))
    place = np.concatenate([[0], np.cumsum(keep)])  # (tokens + 1,), the new place of each token
    cut = Rows(
        np.minimum(rows.lengths, max_length),
        {name: values[keep] for name, values in rows.tokens.items()},
        whole=rows.whole,
    )
    if rows.positions is not None:
        stops = rows.number_stops(numbers)
        intact: Mask = place[stops] - place[rows.positions] == stops - rows.positions
        cut.positions = place[rows.positions[intact]]
        cut.numbers = {name: values[intact] for name, values in rows.numbers.items()}
    if rows.spans is not None:
        cut.spans = place[rows.spans]
    return cut
