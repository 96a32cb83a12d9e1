"""Rows laid end to end, and new rows made of pieces of them: how documents are packed, and joined
again.

In: a record batch in number layout. Out: :meth:`FlatRows.take`, a batch whose rows are stretches of
    its tokens one behind the other, with the numbers that begin in them. All arrays are gathered at
    once; pieces that follow one another are views.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.tokenizer.schema import flat, list_array
from numtok.tokenizer.stored import declared_columns
from numtok.tokenizer.token_spans import NumberTokens

Ints = npt.NDArray[np.int64]


def joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """The rows of batches of one schema, one behind the other, as one batch."""
    if len(batches) == 1:
        return batches[0]
    filled = [batch for batch in batches if batch.num_rows] or batches[:1]
    return (
        pa.Table.from_batches(filled).combine_chunks().to_batches()[0]
        if len(filled) > 1
        else filled[0]
    )


def with_ends(batch: pa.RecordBatch, end: int | None) -> pa.RecordBatch:
    """The columns per token and per number, with the end token behind each row that is not null, if
    there is one; null rows become empty.
    """
    ids, known = batch.column("input_ids"), declared_columns(batch.schema)
    valid = memory.from_arrow(ids.is_valid()) if ids.null_count else np.ones(len(ids), np.bool_)
    offsets = flat(ids)[1]
    shift = memory.offsets_of(
        np.zeros(len(ids), np.int64) if end is None else valid.astype(np.int64)
    )
    places = np.arange(int(offsets[-1])) + np.repeat(shift[:-1], np.diff(offsets))
    all_valid, columns, fields = np.ones(len(ids), np.bool_), [], []
    for field in batch.schema:
        if field.name not in known or known[field.name].per not in ("token", "number"):
            continue
        values, own_offsets = flat(batch.column(field.name))
        if known[field.name].per == "token":
            plain = memory.from_arrow(values)
            fill = (end or 0) if field.name == "input_ids" else known[field.name].fill
            spread = memory.full(int(offsets[-1] + shift[-1]), fill, plain.dtype)
            spread[places] = plain
            values, own_offsets = memory.to_arrow(spread), offsets + shift
        columns.append(
            list_array(
                values,
                own_offsets,
                field.type.value_type,
                all_valid,
                pa.types.is_large_list(field.type),
            )
        )
        fields.append(field)
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, batch.schema.metadata))


class FlatRows:
    """The tokens and the numbers of a batch, end to end.

    Attributes:
        schema: of the columns per token and per number.
        ids: int32[tokens]. offsets: int64[rows + 1], where the tokens of each row begin.
        places: int64[numbers], the first token of each.
    """

    def __init__(self, batch: pa.RecordBatch) -> None:
        known = declared_columns(batch.schema)
        names = [
            name
            for name in batch.schema.names
            if name in known and known[name].per in ("token", "number")
        ]
        self.schema = pa.schema([batch.schema.field(name) for name in names], batch.schema.metadata)
        self._per_token = {name for name in names if known[name].per == "token"}
        self._values = {
            name: flat(batch.column(name))[0] for name in names if name != "number_index"
        }
        self.ids = memory.from_arrow(self._values["input_ids"])
        self.offsets: Ints = flat(batch.column("input_ids"))[1]
        index, self._number_offsets = flat(batch.column("number_index"))
        self.places: Ints = memory.from_arrow(index) + np.repeat(
            self.offsets[:-1], np.diff(self._number_offsets)
        )

    def number_stops(self, tokens: NumberTokens) -> Ints:
        """int64[numbers]: where the tokens of each number end."""
        return tokens.stops(
            self.ids, self.places, np.repeat(self.offsets[1:], np.diff(self._number_offsets))
        )

    def take(
        self, starts: Ints, stops: Ints, rows: Ints, valid: npt.NDArray[np.bool_] | None = None
    ) -> pa.RecordBatch:
        """New rows.

        Args:
            starts: int64[pieces], the first token of each piece.
            stops: int64[pieces], where it ends.
            rows: int64[new rows + 1]: row r is made of the pieces ``rows[r]`` up to ``rows[r +
                1]``, in their order.
            valid: bool[new rows]: a row that is not is null; None if all are.
        """
        edges = memory.offsets_of(stops - starts)
        low, high = np.searchsorted(self.places, starts), np.searchsorted(self.places, stops)
        tokens, numbers = _Stretches(starts, stops), _Stretches(low, high)
        places = numbers.of(self.places) - np.repeat(starts - edges[:-1], high - low)
        token_offsets = edges[rows]
        number_offsets = memory.offsets_of(high - low)[rows]
        index = (places - np.repeat(token_offsets[:-1], np.diff(number_offsets))).astype(np.int32)
        valid, columns = np.ones(len(rows) - 1, np.bool_) if valid is None else valid, []
        for field in self.schema:
            per_token = field.name in self._per_token
            if field.name == "number_index":
                values: pa.Array | npt.NDArray[np.int32] = index
            else:
                values = (tokens if per_token else numbers).of_arrow(self._values[field.name])
            offsets = token_offsets if per_token else number_offsets
            columns.append(
                list_array(
                    values,
                    offsets,
                    field.type.value_type,
                    valid,
                    pa.types.is_large_list(field.type),
                )
            )
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


class _Stretches:
    """Places ``starts[k]`` up to ``stops[k]`` of an array, one stretch behind the other."""

    def __init__(self, starts: Ints, stops: Ints) -> None:
        self._whole: slice | None = None
        if not len(starts) or np.array_equal(starts[1:], stops[:-1]):
            self._whole = slice(int(starts[0]), int(stops[-1])) if len(starts) else slice(0, 0)
            return
        edges = memory.offsets_of(stops - starts)
        self._places = np.arange(int(edges[-1])) + np.repeat(starts - edges[:-1], stops - starts)

    def of(self, values: Ints) -> Ints:
        return values[self._whole] if self._whole is not None else values[self._places]

    def of_arrow(self, values: pa.Array) -> pa.Array:
        if self._whole is not None:
            return values.slice(self._whole.start, self._whole.stop - self._whole.start)
        return values.take(memory.to_arrow(self._places))
