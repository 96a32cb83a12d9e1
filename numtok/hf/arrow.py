"""Arrow in, Arrow out: encode a text column for training without ever making Python lists.

In: a table, record batch or column of texts. Out: a table with what a tokenizer call returns, one
    row per text, beside the other columns of the table. Number streams are lists of fixed-size
    lists rather than of ``fixed_shape_tensor``, which ``datasets`` does not read.

``datasets`` merges what a mapped function returns with the columns that were there only if both are
mappings of lists; a table that is returned is the whole result, whatever ``remove_columns`` says.
So the columns to keep are put into it here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from transformers import PreTrainedTokenizerFast
from transformers.tokenization_utils_base import TruncationStrategy

from numtok.arrays import memory
from numtok.errors import InputError
from numtok.hf.backend import BackendState
from numtok.hf.batch import encode_flat
from numtok.tokenizer.schema import LIST_LIMIT

INTEGERS = {"input_ids": np.int32}  # the other columns of the base class hold 0 and 1


def text_column(texts: Any, column: str) -> pa.Array | pa.ChunkedArray:
    """The texts of a table, a record batch, or a column itself.

    Raises:
        InputError: if there is no such column, it holds no text, or a text is null.
    """
    if isinstance(texts, pa.Table | pa.RecordBatch):
        if column not in texts.schema.names:
            raise InputError(
                f"there is no column {column!r}, only {', '.join(texts.schema.names)}; name the"
                " text column with column=..."
            )
        texts = texts.column(column)
    if not isinstance(texts, pa.Array | pa.ChunkedArray):
        raise InputError(
            f"expected an Arrow table or string column, got {type(texts).__name__}; make one of a"
            " list with pyarrow.array(texts)"
        )
    if texts.null_count:
        row = texts.is_null().to_pylist().index(True)
        raise InputError(
            f"row {row} of the text column is null; leave such rows out first, for example with"
            " dataset.filter"
        )
    return texts


def encode_column(
    tokenizer: PreTrainedTokenizerFast,
    state: BackendState,
    texts: pa.Array | pa.ChunkedArray,
    with_streams: bool,
    add_special_tokens: bool,
    max_length: int | None,
) -> pa.Table:
    """One row per text: what a call returns.

    Raises:
        InputError: if a row has no room for the special tokens.
    """
    strategy = (
        TruncationStrategy.DO_NOT_TRUNCATE
        if max_length is None
        else TruncationStrategy.LONGEST_FIRST
    )
    options = {
        "add_special_tokens": add_special_tokens,
        "truncation_strategy": strategy,
        "max_length": max_length,
    }
    flat = encode_flat(tokenizer, state, texts, with_streams, options)
    if flat is None:
        state.numtok.encode_batch(texts)  # says what is wrong with the texts, if it is that
        raise InputError(
            f"max_length={max_length} leaves no room for the special tokens; give more, or"
            " add_special_tokens=False"
        )
    columns = {
        name: values.astype(INTEGERS.get(name, np.int8)) for name, values in flat.columns.items()
    } | flat.streams
    large = bool(flat.edges[-1] > LIST_LIMIT)
    return pa.table({name: _lists(values, flat.edges, large) for name, values in columns.items()})


def beside(around: Any, encoded: pa.Table, left_out: str | None) -> pa.Table:
    """The columns of ``around`` but one, with those of ``encoded`` added, or replaced; only these if
    ``around`` is no table. Its metadata, which name the ``datasets`` features, stay.
    """
    if not isinstance(around, pa.Table | pa.RecordBatch):
        return encoded
    table = pa.Table.from_batches([around]) if isinstance(around, pa.RecordBatch) else around
    table = table.drop_columns([] if left_out is None else [left_out])
    for name, values in zip(encoded.column_names, encoded.columns, strict=True):
        at = table.schema.get_field_index(name)
        table = table.append_column(name, values) if at < 0 else table.set_column(at, name, values)
    return table


def _lists(values: npt.NDArray[Any], edges: npt.NDArray[np.int64], large: bool) -> pa.Array:
    """[t, ...] cut into rows, without a copy of the values."""
    flat = memory.to_arrow(values.reshape(-1))
    for size in reversed(values.shape[1:]):
        flat = pa.FixedSizeListArray.from_arrays(flat, size)
    if large:
        return pa.LargeListArray.from_arrays(memory.to_arrow(edges), flat)
    return pa.ListArray.from_arrays(memory.to_arrow(edges.astype(np.int32)), flat)
