"""Documents in number layout joined, and cut into rows that end inside no number: for packed files
and data sets of blocks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.arrays.kernels import kernel
from numtok.engines.config import vocabulary_of
from numtok.errors import TokenizerError
from numtok.numbers.grammar import Grammar
from numtok.options import shown_option
from numtok.representations import END_NUM, NUM, SpelledOut, from_dict
from numtok.tokenizer.schema import (
    declared_columns,
    number_positions,
    read_metadata,
    valid_rows,
)
from numtok.tokenizer.tokenizer import Tokenizer
from numtok.tokenizer.vocabulary import Spelling, number_stops

Ints = npt.NDArray[np.int64]
USUAL = ("<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<｜end▁of▁sentence｜>", "[SEP]")


@dataclass(frozen=True)
class NumberTokens:
    """Which token ids belong to numbers."""

    # every id that numtok's number tokens have, ``[NUM]`` and the digits of spelled-out numbers
    # among them: no random word is one of these
    ids: tuple[int, ...] = ()
    # those of them that no ordinary text contains: ``[NUM]``, `` [NUM]``, ``[/NUM]`` and all
    # ``[NUM:...]``
    own: tuple[int, ...] = ()
    end: int | None = None  # the id of ``[/NUM]`` if numbers are in brackets, else None
    length: int = 1  # the tokens per number, if they are not
    # how numbers are read that are tokens of the text; None for others
    reading: Spelling | None = dataclasses.field(default=None, compare=False)

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any]) -> NumberTokens:
        """Read number tokens from the ``numtok`` metadata of a schema
        (``numtok.tokenizer.schema.read_metadata``).
        """
        tokens: dict[str, int] = metadata.get("tokens", {})
        runs = [run for form in metadata.get("symbols", {}).values() for run in form]
        symbols = [number for first, count in runs for number in range(first, first + count)]
        brackets = [tokens[content] for content in (NUM, f" {NUM}", END_NUM) if content in tokens]
        first = from_dict(metadata["numbers"][0])
        bracketed = isinstance(first, SpelledOut) and first.bracketed
        length = (first.length if isinstance(first, SpelledOut) else None) or 1
        ids = sorted({*tokens.values(), *symbols})
        own = tuple(sorted({*brackets, *symbols}))
        if isinstance(first, SpelledOut) and not first.marks_begin:
            named = tokens | dict(zip(first.added_tokens(False).together, symbols, strict=False))
            grammar = Grammar.from_dict(metadata["grammar"])
            return cls(tuple(ids), own, reading=Spelling.of(first, named, grammar))
        if bracketed:
            return cls(tuple(ids), own, tokens[END_NUM])
        return cls(tuple(ids), own, None, length)

    @classmethod
    def from_schema(cls, schema: pa.Schema) -> NumberTokens:
        """Read number tokens from a schema that numtok wrote; ``SchemaError`` for any other."""
        return cls.from_metadata(read_metadata(schema))

    def stops(self, ids: Ints, positions: Ints, row_stops: Ints) -> Ints:
        """Return int64[numbers]: where each number's tokens end, exclusive.

        A number in brackets ends after its ``[/NUM]``; one that lacks it (the ids were cut by
        another program) before the next number, or with the row. One that is tokens of the text ends
        where its longest reading does.

        Args:
            ids: int64[tokens], all rows, one after the other.
            positions: int64[numbers], ascending, the first token of each number.
            row_stops: int64[numbers], where the row of each number ends.
        """
        following = np.append(positions[1:], len(ids))
        limit = np.minimum(following, row_stops)
        if self.reading is not None:
            stops = number_stops(ids.astype(np.int32), positions, self.reading)
            return np.asarray(np.minimum(stops, limit))
        if self.end is None:
            return np.asarray(np.minimum(positions + self.length, limit))
        ends = np.flatnonzero(ids == self.end)
        behind = np.append(ends, len(ids))[np.searchsorted(ends, positions)] + 1
        return np.asarray(np.minimum(behind, limit))


class RowEnds(NamedTuple):
    """Where rows end, and how many numbers are longer than a row, so that they were cut."""

    ends: Ints
    cut_numbers: int


def row_ends(sections: Ints, begins: Ints, stops: Ints, size: int) -> RowEnds:
    """Return the ends of rows of ``size`` tokens that lie within spans of tokens, each cut from
    its own beginning.

    A row ends after ``size`` tokens, but never inside a number: one that fits into a row begins the
    next, and the row before is shorter by less than the number's tokens. A number longer than a row
    is cut where rows are full.

    Args:
        sections: int64[k, 2], ascending: where the first row of each begins, and the place before
            which all ends are.
        begins: int64[numbers], ascending, the first token of each number.
        stops: int64[numbers], where its tokens end.
        size: tokens of a row.
    """
    lengths = (sections[:, 1] - sections[:, 0]).clip(0)
    # two rows that follow one another hold more than ``size``
    ends = np.empty(int((2 * (lengths // size) + 2).sum()), np.int64)
    count, cut = _row_ends(np.ascontiguousarray(sections, np.int64), begins, stops, size, ends)
    return RowEnds(ends[:count], int(cut))


@kernel
def _row_ends(sections, begins, stops, size, ends):  # type: ignore[no-untyped-def]
    count, cut, at, last_cut = 0, 0, 0, -1
    for section in range(sections.shape[0]):
        end = sections[section, 0] + size
        while end < sections[section, 1]:
            while at < begins.size and begins[at] < end:
                at += 1
            last = at - 1  # the last number that begins before
            if last >= 0 and stops[last] > end:
                if stops[last] - begins[last] <= size:
                    end = begins[last]
                elif last != last_cut:
                    last_cut = last
                    cut += 1
            ends[count] = end
            count += 1
            end += size
    return count, cut


def end_token(tokenizer: Tokenizer, token_or_id: str | int | None = None) -> int:
    """Return the id of the end token that is given, or of the first of the usual ones that the
    tokenizer has as an added token. TokenizerError if there is none, or it is part of numbers.
    """
    added = {token["content"]: int(token["id"]) for token in tokenizer.config["added_tokens"]}
    if token_or_id is None:
        usual = next((added[content] for content in USUAL if content in added), None)
        if usual is None:
            raise TokenizerError(
                "the tokenizer has none of the usual end tokens; name the one that ends a document"
                " by end_token=... (--end-token)"
            )
        return usual
    ids_by_token = added if token_or_id in added else vocabulary_of(tokenizer.config)
    number = token_or_id if isinstance(token_or_id, int) else ids_by_token.get(token_or_id)
    if number is None or not 0 <= number < tokenizer.vocab_size:
        raise TokenizerError(
            f"{shown_option('end_token', token_or_id)} is no token of the tokenizer; give a token, or"
            " the id of one"
        )
    if number in tokenizer.tokens.values():
        raise TokenizerError(
            f"{shown_option('end_token', token_or_id)} is a token that numbers are made of; choose one"
            " that ends documents"
        )
    return number


def joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of batches of one schema, one after the other, as one batch."""
    filled = [batch for batch in batches if batch.num_rows] or batches[:1]
    return pa.concat_batches(filled) if len(filled) > 1 else filled[0]


def with_ends(batch: pa.RecordBatch, end: int | None) -> pa.RecordBatch:
    """Return the columns per token and per number, with the end token after each row that is not
    null, if there is one; null rows become empty.
    """
    ids, declared = batch.column("input_ids"), declared_columns(batch.schema)
    offsets = memory.flat(ids)[1]
    shift = memory.offsets_of(valid_rows(ids) & (end is not None))
    places = np.arange(int(offsets[-1])) + np.repeat(shift[:-1], np.diff(offsets))
    columns, fields = [], []
    for field in batch.schema:
        if field.name not in declared or declared[field.name].per not in ("token", "number"):
            continue
        values, own_offsets = memory.flat(batch.column(field.name))
        if declared[field.name].per == "token":
            plain = memory.from_arrow(values)
            fill = (end or 0) if field.name == "input_ids" else declared[field.name].fill
            spread = memory.full(int(offsets[-1] + shift[-1]), fill, plain.dtype)
            spread[places] = plain
            values, own_offsets = memory.to_arrow(spread), offsets + shift
        columns.append(memory.list_array(values, own_offsets, field.type))
        fields.append(field)
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, batch.schema.metadata))


class FlatRows:
    """The tokens and the numbers of a batch, end to end: ``schema`` of its columns, ``ids``
    int32[tokens], ``offsets`` int64[rows + 1], where each row begins, ``places`` int64[numbers], the
    first token of each.
    """

    def __init__(self, batch: pa.RecordBatch) -> None:
        declared = declared_columns(batch.schema)
        per = {name: declared[name].per for name in batch.schema.names if name in declared}
        names = [name for name in per if per[name] in ("token", "number")]
        self.schema = pa.schema([batch.schema.field(name) for name in names], batch.schema.metadata)
        self._per_token = {name for name in names if per[name] == "token"}
        self._values = {name: memory.flat(batch.column(name))[0] for name in names}
        self.ids = memory.from_arrow(self._values["input_ids"])
        self.offsets, self._number_offsets, self.places = number_positions(batch)

    def number_stops(self, tokens: NumberTokens) -> Ints:
        """Return int64[numbers]: where the tokens of each number end."""
        row_stops = np.repeat(self.offsets[1:], np.diff(self._number_offsets))
        return tokens.stops(self.ids, self.places, row_stops)

    def take(
        self, starts: Ints, stops: Ints, rows: Ints, valid: npt.NDArray[np.bool_] | None = None
    ) -> pa.RecordBatch:
        """Return new rows of pieces that begin and end at int64[pieces] tokens: row r is made of
        the pieces ``rows[r]`` up to ``rows[r + 1]``. One that is not ``valid``, bool[new rows], is
        null.
        """
        edges = memory.offsets_of(stops - starts)
        low, high = np.searchsorted(self.places, starts), np.searchsorted(self.places, stops)
        tokens, numbers = _Spans(starts, stops), _Spans(low, high)
        places = numbers.of(self.places) - np.repeat(starts - edges[:-1], high - low)
        token_offsets = edges[rows]
        number_offsets = memory.offsets_of(high - low)[rows]
        index = (places - np.repeat(token_offsets[:-1], np.diff(number_offsets))).astype(np.int32)
        columns = []
        for field in self.schema:
            per_token = field.name in self._per_token
            if field.name == "number_index":
                values: pa.Array | npt.NDArray[np.int32] = index
            else:
                values = (tokens if per_token else numbers).of_arrow(self._values[field.name])
            offsets = token_offsets if per_token else number_offsets
            columns.append(memory.list_array(values, offsets, field.type, valid))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


class _Spans:
    """Spans of an array, ``starts[k]`` up to ``stops[k]``, one after the other."""

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
