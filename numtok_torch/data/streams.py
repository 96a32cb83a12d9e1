"""The names, dtypes and fillers of everything a batch carries, and which token ids numbers are made of.

In: the Arrow schema of encoded text (numtok's ``FORMAT.md``). Out: :func:`number_streams` and :func:`token_streams`, the one vocabulary of row
keys and batch tensors, as numtok's representations declare it, and :class:`NumberTokens`, which says where the tokens of each number end.

**Shape.** A stream per token is ``(tokens,)`` in a row and ``(batch, seq)`` in a batch. A stream per number is ``(numbers, *inner)`` in a sparse
row, ``(tokens, *inner)`` in a dense one, and ``(batch, seq, *inner)`` in a batch: the number's value at its first token, the filler elsewhere.
The filler says nothing (1.0 and 0 are values of numbers too): presence is ``number_mask``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.representations import END_NUM, NUM, from_dict, streams
from numtok.representations.columns import INPUT_IDS, NUMBER_INDEX, NUMBER_MASK, Column
from numtok.tokenizer.schema import read_metadata
from numtok.tokenizer.stored import conform_schema

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
    """The columns of a file that hold tensors."""
    return frozenset({INPUT_IDS.name, NUMBER_INDEX.name, NUMBER_MASK.name, *streams()})


def inner_shapes(schema: pa.Schema) -> dict[str, tuple[int, ...]]:
    """Stream to the shape of one number's value, for the number streams of a file: () for a scalar, (32,) for bits that are not compact."""
    schema = conform_schema(schema)  # Parquet has tensors as plain lists
    kinds = {name: schema.field(name).type.value_type for name in number_streams() if name in schema.names}
    return {name: tuple(kind.shape) if isinstance(kind, pa.FixedShapeTensorType) else () for name, kind in kinds.items()}


@dataclass(frozen=True)
class NumberTokens:
    """Which token ids belong to numbers.

    Attributes:
        ids: every id that numtok's number tokens have, ``[NUM]`` and the digits of spelled-out numbers among them: no random word is one of these.
        own: those of them that no ordinary text contains: ``[NUM]``, `` [NUM]``, ``[/NUM]`` and the symbols of the Charton encodings.
        end: the id of ``[/NUM]`` if numbers are in brackets, else None.
        length: the tokens per number, if they are not.
    """

    ids: tuple[int, ...] = ()
    own: tuple[int, ...] = ()
    end: int | None = None
    length: int = 1

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any]) -> NumberTokens:
        """From the ``numtok`` metadata of a schema (``numtok.tokenizer.schema.read_metadata``)."""
        tokens: dict[str, int] = metadata.get("tokens", {})
        runs = [run for form in metadata.get("symbols", {}).values() for run in form]
        symbols = [number for first, count in runs for number in range(first, first + count)]
        brackets = [tokens[content] for content in (NUM, f" {NUM}", END_NUM) if content in tokens]
        first = from_dict(metadata["numbers"][0])
        bracketed = first.bracketed
        length = first.length or 1
        ids = sorted({*tokens.values(), *symbols})
        return cls(tuple(ids), tuple(sorted({*brackets, *symbols})), tokens[END_NUM] if bracketed else None, 1 if bracketed else length)

    @classmethod
    def from_schema(cls, schema: pa.Schema) -> NumberTokens:
        """From a schema that numtok wrote; ``SchemaError`` for any other."""
        return cls.from_metadata(read_metadata(schema))

    def stops(self, ids: Ints, positions: Ints, row_stops: Ints) -> Ints:
        """int64[numbers]: where each number's tokens end, exclusive.

        A number in brackets ends behind its ``[/NUM]``; one that lacks it (the ids were cut by another program) before the next number, or with the row.

        Args:
            ids: int64[tokens], rows laid end to end.
            positions: int64[numbers], ascending, the first token of each number.
            row_stops: int64[numbers], where the row of each number ends.
        """
        following = np.append(positions[1:], len(ids))
        limit = np.minimum(following, row_stops)
        if self.end is None:
            return np.asarray(np.minimum(positions + self.length, limit))
        ends = np.flatnonzero(ids == self.end)
        behind = np.append(ends, len(ids))[np.searchsorted(ends, positions)] + 1
        return np.asarray(np.minimum(behind, limit))


@dataclass
class Placed:
    """Values of some tokens: ``values[k]`` belongs to token ``positions[k]``, all other tokens have the filler."""

    positions: Ints
    values: npt.NDArray[Any]
    fill: float


@dataclass
class Rows:
    """Rows laid end to end: what :mod:`numtok_torch.data.rows` reads, truncates and masks, before it is padded.

    Attributes:
        lengths: int64[rows], tokens per row.
        tokens: stream to (tokens,), ``input_ids`` among them.
        positions: int64[numbers], the first token of each number, ascending; None if the rows say nothing about numbers.
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
