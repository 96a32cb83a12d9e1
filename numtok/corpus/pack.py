"""Which rows a file gets: those of documents, in either layout, or documents packed into rows of at
most so many tokens, no token lost, no number cut that fits. Packed rows are a function of the
documents alone, not of their batches; :mod:`numtok.corpus.unpack` is the inverse.
"""

from __future__ import annotations

import bisect
import math
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.representations.columns import PACKED, SEQ_DOCUMENTS, SEQ_REMAINING, SEQ_TEXT, Column
from numtok.tokenizer.layout import to_token_layout, token_schema, with_metadata
from numtok.tokenizer.packing import FlatRows, NumberTokens, joined, row_ends, with_ends
from numtok.tokenizer.schema import declared_columns, read_metadata

Ints = npt.NDArray[np.int64]

# Best fit chooses among documents of so many tokens, and of 64 rows at least.
WINDOW_TOKENS = 1 << 21
WINDOW_ROWS = 64
WRITTEN_BYTES = 8 << 20  # of a batch of rows in token layout, about


class FileRows:
    """Which rows a file gets of encoded batches: those in number layout, as they come."""

    def __init__(self, encoded: pa.Schema) -> None:
        self.schema = encoded  # of the file
        self.cut_numbers = 0  # numbers longer than a row, which were cut

    def convert(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Convert a batch as far as that goes by itself; called from several threads."""
        return batch

    def arrange(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the batches to write once this one has come, in the order of the documents."""
        yield batch

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Return what is still to be written at the end."""
        return iter(())


class TokenLayoutRows(FileRows):
    """Rows with one value per token in every column: :mod:`numtok.tokenizer.layout`."""

    def __init__(self, encoded: pa.Schema) -> None:
        super().__init__(token_schema(encoded))

    def convert(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return to_token_layout(batch)


class _Pieces(NamedTuple):
    """Pieces of documents in the order of the rows they go to."""

    starts: Ints  # int64[pieces], in the flat tokens
    stops: Ints
    source: Ints  # int64[pieces], the row that each is of
    rows: Ints  # int64[rows + 1]: row r has the pieces rows[r] up to rows[r + 1]


class PackedRows(FileRows):
    """Rows of pieces of documents, of at most ``length`` tokens; after every document that is not
    null comes the token ``end``, unless its frame ends with it already.
    """

    def __init__(self, encoded: pa.Schema, length: int, mode: str, end: int | None) -> None:
        super().__init__(encoded)
        metadata = read_metadata(encoded)
        before, after = metadata["frame"]
        self._length, self._fits = length, mode == "best-fit"
        self._end = None if after[-1:] == [end] else end
        self._tokens, self._documents = NumberTokens.from_metadata(metadata), 0
        # Documents, or pieces of the last ones, with their SEQ_ columns per row.
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_tokens, self._window = 0, max(WINDOW_TOKENS, WINDOW_ROWS * length)
        has_text = "text" in encoded.names
        self._per_row = [SEQ_DOCUMENTS, SEQ_REMAINING, *[SEQ_TEXT] * has_text]
        described = {
            "pack": {"length": length, "mode": mode},
            "frame": [before, after if self._end is None else [*after, end]],
        }
        without_text = (field for field in encoded if field.name != "text")
        tokens = token_schema(pa.schema(without_text, encoded.metadata))
        declared = declared_columns(tokens)
        self._token_bytes = sum(
            _bytes_per_token(declared[n]) for n in tokens.names if n in declared
        )
        packed_fields = [
            pa.field(one.name, pa.list_(one.type)) for one in (*self._per_row[2:], *PACKED)
        ]
        self.schema = with_metadata(
            pa.schema([*tokens, *packed_fields], tokens.metadata), described
        )

    def arrange(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        self._waiting.append(self._with_ends(batch))
        self._waiting_tokens += len(memory.flat(self._waiting[-1].column("input_ids"))[0])
        if not self._fits:
            yield from self._sequential(last=False)
        while self._fits and self._waiting_tokens >= self._window:
            documents = joined(self._waiting)
            offsets = memory.flat(documents.column("input_ids"))[1]
            count = int(np.searchsorted(offsets, self._window))
            yield from self._best_fit(documents.slice(0, count))
            self._waiting = [documents.slice(count)]
            self._waiting_tokens = int(offsets[-1] - offsets[count])

    def rest(self) -> Iterator[pa.RecordBatch]:
        if not any(batch.num_rows for batch in self._waiting):
            return
        if self._fits:
            yield from self._best_fit(joined(self._waiting))
        else:
            yield from self._sequential(last=True)
        self._waiting = []

    def _with_ends(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the documents with the end token after each that is not null, numbered."""
        rows = with_ends(batch, self._end)
        numbers = np.arange(self._documents, self._documents + batch.num_rows)
        values = [memory.to_arrow(numbers), memory.to_arrow(np.zeros(batch.num_rows, np.int64))]
        values += [batch.column("text").cast(SEQ_TEXT.type)] if SEQ_TEXT in self._per_row else []
        self._documents += batch.num_rows
        fields = [pa.field(one.name, one.type) for one in self._per_row]
        return pa.RecordBatch.from_arrays(
            [*rows.columns, *values],
            schema=pa.schema([*rows.schema, *fields], batch.schema.metadata),
        )

    def _sequential(self, last: bool) -> Iterator[pa.RecordBatch]:
        """Yield the rows that are full; with ``last``, all rows. A row that just became full waits,
        as null documents that follow belong to it.
        """
        waiting = joined(self._waiting)
        flat = FlatRows(waiting)
        total = int(flat.offsets[-1])
        cuts = row_ends(
            np.array([[0, total]]),
            flat.places,
            flat.number_stops(self._tokens),
            self._length,
        )
        self.cut_numbers += cuts.cut_numbers
        starts, stops, source = _split(flat.offsets, cuts.ends)
        row = np.searchsorted(cuts.ends, starts + (stops > starts), side="left")
        full = len(cuts.ends) + last
        done = int(np.searchsorted(row, full))
        edges = np.searchsorted(row, np.arange(full + 1))
        yield from self._written(
            waiting, flat, _Pieces(starts[:done], stops[:done], source[:done], edges)
        )
        edges = np.arange(len(row) - done + 1)
        open_row = _Pieces(starts[done:], stops[done:], source[done:], edges)
        self._waiting = [self._open(waiting, flat, open_row)]

    def _best_fit(self, documents: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a window of documents: long ones fill rows of their own, and what is
        left of each goes into the fullest row that has room.
        """
        flat = FlatRows(documents)
        sections = np.stack([flat.offsets[:-1], flat.offsets[1:]], 1)
        cuts = row_ends(sections, flat.places, flat.number_stops(self._tokens), self._length)
        self.cut_numbers += cuts.cut_numbers
        starts, stops, source = _split(flat.offsets, cuts.ends)
        ends_document = stops == flat.offsets[1:][source]
        row = np.empty(len(starts), np.int64)
        fitted, rows = best_fit((stops - starts)[ends_document], self._length)
        row[ends_document] = fitted
        # full rows, each its own
        row[~ends_document] = np.arange(rows, rows + np.count_nonzero(~ends_document))
        rank = np.full(int(row.max(initial=-1)) + 1, -1, np.int64)
        # after the last of its pieces, so that those of a document stay in order
        np.maximum.at(rank, row, np.arange(len(row)))
        row = np.argsort(np.argsort(rank))[row]
        order = np.argsort(row, kind="stable")
        edges = np.searchsorted(row[order], np.arange(len(rank) + 1))
        yield from self._written(
            documents, flat, _Pieces(starts[order], stops[order], source[order], edges)
        )

    def _open(self, waiting: pa.RecordBatch, flat: FlatRows, pieces: _Pieces) -> pa.RecordBatch:
        """Return pieces as rows that wait for more."""
        rows = flat.take(pieces.starts, pieces.stops, pieces.rows)
        for column, values in zip(
            self._per_row, self._of_documents(waiting, flat, pieces), strict=True
        ):
            rows = rows.append_column(pa.field(column.name, column.type), values)
        return rows

    def _written(
        self, waiting: pa.RecordBatch, flat: FlatRows, pieces: _Pieces
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows as they are stored, so many at a time."""
        count = len(pieces.rows) - 1
        step = max(1, WRITTEN_BYTES // (self._length * self._token_bytes))
        for at in range(0, count, step):
            rows = pieces.rows[at : min(at + step, count) + 1]
            some = slice(int(rows[0]), int(rows[-1]))
            part = _Pieces(
                pieces.starts[some], pieces.stops[some], pieces.source[some], rows - rows[0]
            )
            tokens = to_token_layout(flat.take(part.starts, part.stops, part.rows))
            lengths = memory.to_arrow((part.stops - part.starts).astype(np.int32))
            documents, remaining, *text = self._of_documents(waiting, flat, part)
            lists = [
                memory.list_array(values, part.rows, pa.list_(values.type))
                for values in (*text, lengths, documents, remaining)
            ]
            yield pa.RecordBatch.from_arrays([*tokens.columns, *lists], schema=self.schema)

    def _of_documents(
        self, waiting: pa.RecordBatch, flat: FlatRows, pieces: _Pieces
    ) -> list[pa.Array]:
        """Return the columns of each piece: its document, how many tokens follow, the text with the first."""
        source = memory.to_arrow(pieces.source)
        after = (
            memory.from_arrow(waiting.column(SEQ_REMAINING.name))[pieces.source]
            + flat.offsets[1:][pieces.source]
            - pieces.stops
        )
        values = [waiting.column(SEQ_DOCUMENTS.name).take(source), memory.to_arrow(after)]
        if SEQ_TEXT in self._per_row:
            later = pieces.starts > flat.offsets[:-1][pieces.source]
            chosen = pa.array(np.where(later, 0, pieces.source), mask=later)
            values.append(waiting.column(SEQ_TEXT.name).take(chosen))
        return values


def _bytes_per_token(column: Column) -> int:
    """Return the bytes of a token in a file, at least 1."""
    bits = 32 if pa.types.is_string(column.value_type) else column.value_type.bit_width
    return -(-bits * math.prod(column.shape) // 8)


def _split(offsets: Ints, cuts: Ints) -> tuple[Ints, Ints, Ints]:
    """Return (starts, stops, source row) of the pieces of rows that are cut; empty ones stay."""
    low = np.searchsorted(cuts, offsets[:-1], side="right")
    high = np.searchsorted(cuts, offsets[1:], side="left")
    counts = (high - low).clip(0) + 1
    source = np.repeat(np.arange(len(counts)), counts)
    nth = np.arange(len(source)) - np.repeat(memory.offsets_of(counts)[:-1], counts)
    cut_after = np.minimum(low[source] + nth, len(cuts))
    bounded = np.append(cuts, 0)
    starts = np.where(nth == 0, offsets[:-1][source], bounded[np.maximum(cut_after - 1, 0)])
    stops = np.where(nth == counts[source] - 1, offsets[1:][source], bounded[cut_after])
    return starts, stops, source


def best_fit(lengths: Ints, size: int) -> tuple[Ints, int]:
    """Return (int64[pieces], the row of each; how many rows), for lengths of at most ``size``:
    longest first, each where the least room is left, as in Ding et al. 2024, "Fewer Truncations
    Improve Language Modeling"; ties go to the row that was touched last.
    """
    rows, total = np.empty(len(lengths), np.int64), 0
    with_room: dict[int, list[int]] = defaultdict(list)  # the rows that have so much left
    rooms: list[int] = []  # those that some row has, ascending
    order = np.argsort(-lengths, kind="stable")
    for piece, length in zip(order.tolist(), lengths[order].tolist(), strict=True):
        place = bisect.bisect_left(rooms, length)
        if place == len(rooms):
            row, room, total = total, size, total + 1
        else:
            room = rooms[place]
            row = with_room[room].pop()
            if not with_room[room]:
                del rooms[place]
        rows[piece] = row
        room -= length
        if not with_room[room]:
            bisect.insort(rooms, room)
        with_room[room].append(row)
    return rows, total
