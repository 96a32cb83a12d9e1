"""Rows as dictionaries to rows laid end to end, and their truncation.

In: a list of rows, each a mapping of arrays, lists or tensors. Out:
    :class:`numtok_torch.data.streams.Rows`, flat numpy arrays with one value per token or per
    number of all rows. Two kinds of rows are read, and give the same:

- **sparse**, as in numtok's files and :class:`numtok_torch.data.dataset.NumberDataset`:
  ``number_index`` int[numbers], and one value per number in each number stream (``number_value``,
  ``number_scaled`` ...);
- **dense**, as a transformers tokenizer with numbers gives them: ``number_mask`` bool[tokens], and
  one value per token in each; whatever stands where the mask is False is ignored.

``place_value`` and everything else per token is the same in both. The ``seq_lengths`` of packed
rows become ``position_ids``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from numtok.errors import SchemaError
from numtok.representations.columns import SEQ_LENGTHS, as_array, form
from numtok_torch.data.packing import within
from numtok_torch.data.streams import (
    Forms,
    Ints,
    Mask,
    NumberTokens,
    Rows,
    number_streams,
    token_streams,
)

SPANS = "mask_spans"
Shapes = Mapping[str, tuple[int, ...]]


def read_rows(
    features: Sequence[Mapping[str, Any]], drop: Sequence[str] = (), shapes: Shapes | None = None
) -> Rows:
    """Lay rows end to end.

    Args:
        features: at least one; all have the same keys.
        drop: keys to leave out.
        shapes: stream to the shape of one number's value; only needed for Python lists of rows
            without any number, whose shape cannot be seen.

    Raises:
        SchemaError: for a key that has no place in a batch, or arrays that do not fit together,
            with the row and the way out.
    """
    keys = _common_keys(features)
    wanted = [
        key
        for key in keys
        if key not in drop and key not in ("number_index", "number_mask", SPANS, SEQ_LENGTHS.name)
    ]
    _check_known(wanted, keys)
    per_number, per_token = number_streams(), token_streams()
    ids, lengths = _end_to_end("input_ids", [row["input_ids"] for row in features])
    rows = Rows(lengths, {"input_ids": ids.astype(np.int64, copy=False)})
    rows.positions, counts = _positions(features, keys, rows)
    for key in wanted:
        if key == "input_ids":
            continue
        if key in per_number:
            rows.numbers[key] = _number_stream(key, features, rows, counts, shapes or {})
        elif key == "labels" and np.ndim(features[0][key]) == 0:
            rows.whole[key] = _per_row(key, features)
        else:
            values, given_lengths = _end_to_end(key, [row[key] for row in features])
            _check_lengths(key, given_lengths, lengths, "token")
            rows.tokens[key] = values.astype(per_token[key][0].dtype, copy=False)
    if SEQ_LENGTHS.name in keys:
        rows.tokens.setdefault("position_ids", _within_pieces(features, lengths))
    if SPANS in keys:
        rows.spans = _spans(features, rows)
    return rows


def _within_pieces(features: Sequence[Mapping[str, Any]], lengths: Ints) -> Ints:
    """The place of each token of packed rows in its piece of a document."""
    pieces, counts = _end_to_end(SEQ_LENGTHS.name, [row[SEQ_LENGTHS.name] for row in features])
    sums = np.append(0, np.cumsum(pieces.astype(np.int64)))
    _check_lengths(
        SEQ_LENGTHS.name, np.diff(sums[np.append(0, np.cumsum(counts))]), lengths, "token"
    )
    return within(pieces.astype(np.int64))


def _common_keys(features: Sequence[Mapping[str, Any]]) -> list[str]:
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


def _check_known(wanted: Sequence[str], keys: Sequence[str]) -> None:
    per_number = number_streams()
    unknown = [
        key
        for key in wanted
        if key != "input_ids" and key not in per_number and key not in token_streams()
    ]
    if unknown:
        raise SchemaError(
            f"the rows have {', '.join(map(repr, unknown))}, which is no stream of a batch; remove"
            " it from the rows, or name it in the collator's drop=(...)"
        )
    numbers = [key for key in wanted if key in per_number]
    if "number_index" in keys and "number_mask" in keys:
        raise SchemaError(
            "the rows have both 'number_index' (one value per number) and 'number_mask' (one value"
            " per token); remove one of them"
        )
    if numbers and "number_index" not in keys and "number_mask" not in keys:
        raise SchemaError(
            f"the rows have {numbers[0]!r}, but neither 'number_index' (then it has one value per"
            " number) nor 'number_mask' (one value per token)"
        )


def _end_to_end(
    name: str, parts: Sequence[Any], forms: Forms = ()
) -> tuple[npt.NDArray[Any], Ints]:
    """The parts one behind the other, and the length of each; parts without values do not settle
    the dtype or the shape. ``forms`` are those of a stream.
    """
    arrays = [
        part if type(part) is np.ndarray and part.dtype != np.uint64 else _array(part, forms)
        for part in parts
    ]
    try:
        counts = list(map(len, arrays))  # of all rows of a large batch: no time for Python per row
    except TypeError:
        single = next(row for row, array in enumerate(arrays) if not array.ndim)
        raise SchemaError(f"row {single}: {name!r} is a single value, not a sequence") from None
    lengths = np.array(counts, np.int64)
    full = list(compress(arrays, counts)) or arrays[:1]
    try:
        return np.concatenate(full), lengths
    except ValueError as error:
        raise SchemaError(
            f"{name!r} does not have the same shape in all rows ({error}); batch rows of one kind"
        ) from None


def _array(values: Any, forms: Forms = ()) -> npt.NDArray[Any]:
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


def _check_lengths(key: str, given: Ints, expected: Ints, what: str) -> None:
    if wrong := np.flatnonzero(given != expected).tolist():
        row = wrong[0]
        raise SchemaError(
            f"row {row}: {key!r} has {given[row]} values, but there are {expected[row]} {what}s; it"
            f" needs one value per {what}"
        )


def _per_row(key: str, features: Sequence[Mapping[str, Any]]) -> npt.NDArray[Any]:
    values = np.array([_array(row[key]) for row in features])
    return values.astype(np.float32 if values.dtype.kind == "f" else np.int64)


def _positions(
    features: Sequence[Mapping[str, Any]], keys: Sequence[str], rows: Rows
) -> tuple[Ints | None, Ints | None]:
    """(the numbers' first tokens, the count of numbers per row, None if the rows are dense)."""
    if "number_mask" in keys:
        mask, given_lengths = _end_to_end("number_mask", [row["number_mask"] for row in features])
        _check_lengths("number_mask", given_lengths, rows.lengths, "token")
        return np.flatnonzero(mask), None
    if "number_index" not in keys:
        return None, None
    index, counts = _end_to_end("number_index", [row["number_index"] for row in features])
    index = index.astype(np.int64, copy=False)
    wrong = (index < 0) | (index >= np.repeat(rows.lengths, counts))
    positions = index + np.repeat(rows.starts, counts)
    wrong[1:] |= np.diff(positions) <= 0
    if wrong.any():
        row = np.repeat(np.arange(len(counts)), counts)[np.argmax(wrong)]
        raise SchemaError(
            f"row {row}: 'number_index' must hold ascending places in 'input_ids'; if the ids were"
            " cut or joined, number_index must follow"
        )
    return positions, counts


def _number_stream(
    key: str, features: Sequence[Mapping[str, Any]], rows: Rows, counts: Ints | None, shapes: Shapes
) -> npt.NDArray[Any]:
    """(numbers, *inner) in the dtype of the batch."""
    assert rows.positions is not None
    forms = number_streams()[key]
    values, given_lengths = _end_to_end(key, [row[key] for row in features], forms)
    _check_lengths(
        key,
        given_lengths,
        rows.lengths if counts is None else counts,
        "token" if counts is None else "number",
    )
    if not values.size and values.ndim == 1:  # empty lists: the shape cannot be seen
        values = values.reshape(0, *(shapes[key] if key in shapes else _unseen(forms, values)))
    elif key in shapes and values.shape[1:] == (math.prod(shapes[key]),):
        values = values.reshape(-1, *shapes[key])  # as Parquet has them: plain lists
    elif key in shapes and values.shape[1:] != shapes[key]:
        raise SchemaError(
            f"{key!r} has values of shape {values.shape[1:]}, but the schema says {shapes[key]}"
        )
    if counts is None:
        values = values[rows.positions] if values.size else values
    return values.astype(form(forms, values.ndim - 1).dtype, copy=False)


def _unseen(forms: Forms, values: npt.NDArray[Any]) -> tuple[int, ...]:
    """The shape of one value of a stream that is empty in all rows: an array of integers is the
    compact form, an empty list could be anything.
    """
    scalar, tensors = (
        [column for column in forms if not column.shape],
        [column for column in forms if column.shape],
    )
    if tensors and not (scalar and values.dtype.kind != "f"):
        raise SchemaError(
            f"no row of this batch holds a number, and the shape of {tensors[0].name!r} cannot be"
            " seen in empty lists; give the collator the schema (NumberCollator.from_schema), or"
            " rows of numpy arrays"
        )
    return ()


def _spans(features: Sequence[Mapping[str, Any]], rows: Rows) -> Ints:
    parts = [np.asarray(_array(row[SPANS]), np.int64).reshape(-1, 2) for row in features]
    counts = np.array([len(part) for part in parts])
    spans = np.concatenate(parts)
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
    if not len(rows.lengths) or int(rows.lengths.max()) <= max_length:
        return rows
    total, (before, after) = int(rows.lengths.sum()), frame
    lengths = np.repeat(rows.lengths, rows.lengths)  # (tokens,)
    local = np.arange(total) - np.repeat(rows.starts, rows.lengths)  # (tokens,), place in its row
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
        stops = numbers.stops(rows.ids, rows.positions, rows.row_stops(rows.positions))
        intact: Mask = place[stops] - place[rows.positions] == stops - rows.positions
        cut.positions = place[rows.positions[intact]]
        cut.numbers = {name: values[intact] for name, values in rows.numbers.items()}
    if rows.spans is not None:
        cut.spans = place[rows.spans]
    return cut
