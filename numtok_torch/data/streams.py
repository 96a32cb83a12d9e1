"""The names, dtypes and fillers of everything a batch carries, and which token ids numbers are made
of.

In: the Arrow schema of encoded text (numtok's ``FORMAT.md``). Out: :func:`number_streams` and
    :func:`token_streams`, the one vocabulary of row keys and batch tensors, as numtok's
    representations declare it, and :class:`numtok.tokenizer.token_spans.NumberTokens`.

**Shape.** A stream per token is ``(tokens,)`` in a row and ``(batch, seq)`` in a batch. A stream
per number is ``(numbers, *inner)`` in a sparse row, ``(tokens, *inner)`` in a dense one, and
``(batch, seq, *inner)`` in a batch: the number's value at its first token, the filler elsewhere.
The filler says nothing (1.0 and 0 are values of numbers too): presence is ``number_mask``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.representations import streams
from numtok.representations.columns import INPUT_IDS, NUMBER_INDEX, NUMBER_MASK, SEQ_LENGTHS, Column
from numtok.tokenizer.stored import conform_schema
from numtok.tokenizer.token_spans import NumberTokens

__all__ = [
    "BATCH_ONLY",
    "Forms",
    "Ints",
    "Mask",
    "NumberTokens",
    "Placed",
    "Rows",
    "inner_shapes",
    "number_streams",
    "stored_columns",
    "token_streams",
]

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


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
Forms = tuple[Column, ...]  # dense and compact


def number_streams() -> dict[str, Forms]:
    """Those with one value per number, by name."""
    return streams("number")


def token_streams() -> dict[str, Forms]:
    """Those with one value per token, by name, besides ``input_ids``."""
    return {**streams("token"), **BATCH_ONLY}


def stored_columns() -> frozenset[str]:
    """The columns of a file that hold tensors, or say how a packed row is to be read."""
    return frozenset(
        {INPUT_IDS.name, NUMBER_INDEX.name, NUMBER_MASK.name, SEQ_LENGTHS.name, *streams()}
    )


def inner_shapes(schema: pa.Schema) -> dict[str, tuple[int, ...]]:
    """Stream to the shape of one number's value, for the number streams of a file: () for a scalar,
    (32,) for bits that are not compact.
    """
    schema = conform_schema(schema)  # Parquet has tensors as plain lists
    kinds = {
        name: schema.field(name).type.value_type
        for name in number_streams()
        if name in schema.names
    }
    return {
        name: tuple(kind.shape) if isinstance(kind, pa.FixedShapeTensorType) else ()
        for name, kind in kinds.items()
    }


@dataclass
class Placed:
    """Values of some tokens: ``values[k]`` belongs to token ``positions[k]``, all other tokens have
    the filler.
    """

    positions: Ints
    values: npt.NDArray[Any]
    fill: float


@dataclass
class Rows:
    """Rows laid end to end: what :mod:`numtok_torch.data.rows` reads, truncates and masks, before
    it is padded.

    Attributes:
        lengths: int64[rows], tokens per row.
        tokens: stream to (tokens,), ``input_ids`` among them.
        positions: int64[numbers], the first token of each number, ascending; None if the rows say
            nothing about numbers.
        numbers: stream to (numbers, *inner).
        whole: stream to one value per row, such as the label of a document.
        placed: more streams with values at some tokens, such as ``number_value_labels``.
        spans: int64[k, 2], half-open stretches of tokens to mask; None if the rows have none.
    """

    lengths: Ints
    tokens: dict[str, npt.NDArray[Any]]
    positions: Ints | None = None
    numbers: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    whole: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    placed: dict[str, Placed] = field(default_factory=dict)
    spans: Ints | None = None

    @property
    def ids(self) -> Ints:
        return self.tokens["input_ids"]

    @property
    def starts(self) -> Ints:
        """int64[rows]: the first token of each row."""
        return np.asarray(np.cumsum(self.lengths) - self.lengths)

    def row_stops(self, positions: Ints) -> Ints:
        """int64[n]: where the row of each token ends."""
        stops = np.cumsum(self.lengths)
        return np.asarray(stops[np.searchsorted(stops, positions, side="right")])
