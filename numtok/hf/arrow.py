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
from numtok.tokenizer.schema import LIST_LIMIT, list_array

INTEGERS = {"input_ids": np.int32}  # the other columns of the base class hold 0 and 1


def text_column(texts: Any, column: str) -> pa.Array | pa.ChunkedArray:
    """The texts of a table, a record batch, or a column itself. InputError if there is no such
    column, it holds no text, or a text is null.
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
    """One row per text; InputError if a row has no room for the special tokens."""
    options: dict[str, Any] = {"add_special_tokens": add_special_tokens, "max_length": max_length}
    if max_length is not None:
        options["truncation_strategy"] = TruncationStrategy.LONGEST_FIRST
    flat = encode_flat(tokenizer, state, texts, with_streams, options)
    if flat is None:
        state.numtok.encode_batch(texts)  # says what is wrong with the texts, if it is that
        raise InputError(
            f"max_length={max_length} leaves no room for the special tokens; give more, or"
            " add_special_tokens=False"
        )
    whole = flat.columns.items()
    columns = {name: values.astype(INTEGERS.get(name, np.int8)) for name, values in whole}
    rows = pa.large_list if flat.edges[-1] > LIST_LIMIT else pa.list_
    lists = {name: _of_values(values) for name, values in (columns | flat.streams).items()}
    return pa.table({k: list_array(one, flat.edges, rows(one.type)) for k, one in lists.items()})


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


def _of_values(values: npt.NDArray[Any]) -> pa.Array:
    """[t, ...] as t lists of a fixed size, without a copy."""
    flat = memory.to_arrow(values.reshape(-1))
    for size in reversed(values.shape[1:]):
        flat = pa.FixedSizeListArray.from_arrays(flat, size)
    return flat
