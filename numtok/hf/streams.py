"""The number streams: tensors that run along with ``input_ids``, one value per token.

In: numbers, and the tokens that stand for them. Out, for a text of t tokens: ``number_mask``,
    bool[t], which tokens begin a number; ``number_value``, float64[t]; and what the representations
    declare (:func:`numtok.representations.streams`), one value a token. Names, dtypes, shapes and
    what stands at tokens without a value are those of each :class:`numtok.representations.Column`;
    what the values say is in ``FORMAT.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from transformers import BatchEncoding
from transformers.utils import logging

from numtok.numbers.numbers import Numbers
from numtok.representations import SingleToken, streams
from numtok.representations.columns import (
    NUMBER_MASK,
    NUMBER_VALUE,
    Column,
    as_array,
    form,
    neutral,
)
from numtok.tokenizer.tokenizer import Tokenizer

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]

ADVICE = "numbers-without-streams"
# below transformers' own, whose handler and verbosity it takes
logger: Any = logging.get_logger("transformers.numtok")


class NumberStreams:
    """The streams of the n numbers of one call: a value for each of them, or for each of their
    tokens, of which number k has ``offsets[k + 1] - offsets[k]``.
    """

    def __init__(
        self,
        numbers: Numbers,
        columns: Mapping[str, pa.Array],
        per_token: Mapping[str, Array],
        offsets: Ints,
    ) -> None:
        self.per_number: dict[str, Array] = {NUMBER_VALUE.name: numbers.to_float64()}
        self.per_number |= {name: as_numpy(column) for name, column in columns.items()}
        self.per_token = {name: values.astype(np.int64) for name, values in per_token.items()}
        self.offsets = offsets

    def spread(self, length: int, tokens: Ints, numbers: Ints, symbols: Ints) -> dict[str, Array]:
        """Return the streams of a text of ``length`` tokens; token ``tokens[k]`` is the
        ``symbols[k]``-th of number ``numbers[k]``.
        """
        begin = symbols == 0
        first, which = tokens[begin], numbers[begin]
        mask = np.zeros(length, np.bool_)
        mask[first] = True
        spread, forms = {NUMBER_MASK.name: mask}, streams()
        for name, values in self.per_number.items():
            spread[name] = neutral(forms[name][0], length, values)
            spread[name][first] = values[which]
        for name, values in self.per_token.items():
            spread[name] = neutral(forms[name][0], length, values)
            spread[name][tokens] = values[self.offsets[numbers] + symbols]
        return spread


def add_to_encoding(
    out: Any, rows: Sequence[Mapping[str, Array]], tensors: Any, single: bool
) -> None:
    """Put the streams of each row into a ``BatchEncoding``: lists, or, if asked for, tensors of the
    dtypes above.
    """
    for name in rows[0] if rows else ():
        values = [row[name] for row in rows]
        # only NumPy has something for this
        if tensors is not None and len({len(value) for value in values}) > 1:
            out[name] = np.empty(len(values), object)
            out[name][:] = values
        elif tensors is not None:
            out[name] = BatchEncoding({name: np.stack(values)}, tensor_type=tensors)[name]
        else:
            out[name] = values[0].tolist() if single else [row.tolist() for row in values]


def stream_names(names: Iterable[str]) -> list[str]:
    """Return those names that are number streams."""
    stream_columns = {NUMBER_MASK.name, *streams()}
    return [name for name in names if name in stream_columns]


def mark_whole_numbers(out: Any, name: str) -> None:
    """Give all tokens of a number the value of its first one, in the column ``name`` of a
    ``BatchEncoding`` with streams. All of them have the span of the number, and what looks for the
    token of a character finds the first.
    """
    single = len(out.encodings) == 1 and np.ndim(out[name]) == 1
    for row, encoding in enumerate(out.encodings):
        values, begins = (out[one] if single else out[one][row] for one in (name, NUMBER_MASK.name))
        stop = -1  # of the number that the token before belongs to
        for token, (_, end) in enumerate(encoding.offsets):
            if begins[token]:
                stop = end
            elif end == stop:
                values[token] = values[token - 1]
            else:
                stop = -1


def pop_streams(inputs: Any) -> tuple[Any, dict[str, Any]]:
    """Return (inputs to ``pad`` without their number streams, the streams); a list of rows becomes
    one mapping, as in transformers.
    """
    rows = isinstance(inputs, list | tuple) and len(inputs) > 0 and isinstance(inputs[0], Mapping)
    names = inputs[0].keys() if rows else inputs.keys() if isinstance(inputs, Mapping) else ()
    present = stream_names(names)
    if not present:
        return inputs, {}
    if rows:
        inputs = {name: [row[name] for row in inputs] for name in names}
    streams_of_rows = {name: inputs[name] for name in present}
    return {name: inputs[name] for name in names if name not in present}, streams_of_rows


def pad_streams(out: Any, rows_by_stream: Mapping[str, Any], leading: str, side: str) -> None:
    """Pad the streams as ``out[leading]`` (the ids) was padded, and put them into ``out``."""
    ids = out[leading]
    tensor_type = None if isinstance(ids, list) else "np" if isinstance(ids, np.ndarray) else "pt"
    single = len(ids) > 0 and np.ndim(ids[0]) == 0
    forms_of = {NUMBER_MASK.name: (NUMBER_MASK,), **streams()}
    for name, values in rows_by_stream.items():
        rows = zip([values] if single else values, [ids] if single else ids, strict=True)
        forms = forms_of[name]
        padded = [
            pad_stream(forms[0], _array(forms, row), len(row_ids), side) for row, row_ids in rows
        ]
        if single and tensor_type is not None:
            out[name] = BatchEncoding({name: padded[0]}, tensor_type=tensor_type)[name]
        else:
            add_to_encoding(out, [{name: row} for row in padded], tensor_type, single)


def pad_stream(column: Column, values: Array, length: int, side: str) -> Array:
    """Pad ``values`` with the column's fill on one side, up to ``length``."""
    missing = max(length - len(values), 0)
    first = (0, missing) if side == "right" else (missing, 0)
    return np.pad(values, [first, *[(0, 0)] * (values.ndim - 1)], constant_values=column.fill)


def _array(forms: Sequence[Column], values: Any) -> Array:
    """Convert a row of a stream, lists, an array or a tensor, to an array of the declared dtype."""
    array = as_array(values.cpu() if hasattr(values, "cpu") else values, forms)
    return array.astype(form(forms, array.ndim - 1).dtype, copy=False)


def as_numpy(column: pa.Array) -> Array:
    """Return the values of a column; integers that are indices or codes as int64, which torch has
    too.
    """
    if isinstance(column, pa.ExtensionArray):
        return np.asarray(column.to_numpy_ndarray())
    values: Array = column.to_numpy(zero_copy_only=False)
    return values.astype(np.int64) if values.dtype.kind in "iu" else values


def warn_missing_streams(warnings_given: dict[str, bool], numtok: Tokenizer) -> None:
    """Warn once for a tokenizer if numbers were encoded without streams and nothing else holds
    their values. ``warnings_given`` is its ``deprecation_warnings``, which fingerprints of
    ``datasets`` leave out; ``TRANSFORMERS_NO_ADVISORY_WARNINGS=1`` silences it.
    """
    first = numtok.representations[0]
    if not isinstance(first, SingleToken) or warnings_given.get(ADVICE):
        return
    warnings_given[ADVICE] = True
    logger.warning_advice(
        f"Numbers are encoded as bare [NUM] (numbers=[{type(first).__name__}(...)]), so 5 and 11"
        " get the same ids: their values are in the number streams, which this call did not ask"
        " for. A stock model never sees them. Either train a numtok_torch.NumberModel with"
        " return_numbers=True, or spell numbers out: NumberTokenizer.from_pretrained(...,"
        " numbers=[numtok.PlaceValue()]), P10(), FP15() and the like. (You are told once.)"
    )
