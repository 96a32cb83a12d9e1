"""Batches of texts that the readers return, ``TextBatch``, and the code they share: picking the
text column, checking it, and cutting columns into batches of about ``batch_bytes`` without copying.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.corpus.read.sources import Source
from numtok.corpus.read.template import Cells, Template
from numtok.errors import InputError, MissingInputError
from numtok.tokenizer.metadata import MOST_TOKENS
from numtok.tokenizer.schema import valid_rows

TEXT_COLUMNS = ("text", "content", "document", "body")
# Bytes; what is read whole has a limit, or a small compressed file could fill the memory. Arrow
# writes a row of Parquet into one page, which holds 2 GiB: a token of four bytes for each byte of
# such a document, or a number of eight for every second one.
LONGEST_ROW = 1 << 29
SKIP_HINT = "or drop such rows with on_error='skip' (--on-error skip)"


class SkippedRow(NamedTuple):
    """A row that could not be read: its line in the source (in Parquet and Arrow its row), from 1, if
    that is known, and why.
    """

    line: int | None
    error: str


class Places(NamedTuple):
    """Where rows come from."""

    sources: list[Source]
    source_index: npt.NDArray[np.int64]  # int[n], index into ``sources``
    rows: npt.NDArray[np.int64]  # int[n], the 0-based row there


@dataclass(frozen=True, eq=False)
class TextBatch:
    """Some consecutive rows of one file; or of several, in any order, if there are ``places``."""

    texts: pa.Array  # string or large_string, nulls kept, checked UTF-8; may be a slice
    kept: dict[str, pa.Array]  # the other columns asked for, each as long
    first_row: int  # 0-based, in the file; rows that were skipped count, blank lines do not
    position: int  # bytes of the file, as stored (compressed), consumed so far
    source: Source
    bad: tuple[SkippedRow, ...] = ()  # what was left out (``on_error="skip"``)
    column: str = ""  # that holds the text; empty if there is none, or a template
    places: Places | None = None  # of the rows, if they are not consecutive
    cells: Cells | None = None  # where the columns of a template stand in the texts

    @property
    def skipped(self) -> int:
        """The number of rows that were skipped."""
        return len(self.bad)

    @property
    def where(self) -> Places:
        """The places of the rows."""
        if self.places is not None:
            return self.places
        count = len(self.texts)
        return Places([self.source], np.zeros(count, int), self.first_row + np.arange(count))

    def take(self, rows: npt.NDArray[np.int64]) -> TextBatch:
        """Return some rows, in this order."""
        (sources, source_index, numbers), indices = self.where, pa.array(rows)
        return dataclasses.replace(
            self,
            texts=self.texts.take(indices),
            kept={name: column.take(indices) for name, column in self.kept.items()},
            places=Places(sources, source_index[rows], numbers[rows]),
            cells=self.cells and self.cells.rows(rows),
        )


def joined(batches: Sequence[TextBatch]) -> TextBatch:
    """Return the rows of one batch or more, all with the same kept columns, and of the same columns
    where a template made their texts.
    """
    first, places = batches[0], [batch.where for batch in batches]
    before = np.cumsum([0, *(len(one.sources) for one in places)])
    return dataclasses.replace(
        first,
        texts=pa.concat_arrays([batch.texts.cast(pa.large_string()) for batch in batches]),
        kept={
            name: pa.concat_arrays([batch.kept[name].cast(column.type) for batch in batches])
            for name, column in first.kept.items()
        },
        bad=tuple(row for batch in batches for row in batch.bad),
        places=Places(
            [source for one in places for source in one.sources],
            np.concatenate([one.source_index + n for one, n in zip(places, before, strict=False)]),
            np.concatenate([one.rows for one in places]),
        ),
        cells=Cells.joined([batch.cells for batch in batches if batch.cells])
        if first.cells
        else None,
    )


@dataclass(frozen=True)
class ReadOptions:
    """Options of reading, explained in :class:`numtok.corpus.encode_options.EncodeOptions`. A row
    without the text column, or with null in it, is a null document; ``"skip"`` also leaves out what
    lies after damage. Without ``kept_types`` a JSON column has the type that its first rows suggest,
    which may differ from file to file.
    """

    text_column: str | None = None
    keep_columns: Sequence[str] = ()
    batch_bytes: int = 8 << 20
    text_unit: Literal["line", "file"] = "line"
    on_error: Literal["raise", "skip"] = "raise"
    kept_types: Mapping[str, pa.DataType] = field(default_factory=dict)
    template: Template | None = None
    delimiter: str | None = None  # of CSV; None for a comma, or a tab in TSV

    def wanted(
        self, source: Source, names: Sequence[str], strings: Callable[[], Sequence[str]]
    ) -> list[str]:
        """Return the columns to read, those of the text first; ``strings`` could be the text.
        ``MissingInputError`` lists the columns where one is not there, or none can be the text.
        """
        if self.template is not None:
            first = list(self.template.columns or names)
            way_out = "correct the template"
            if not first:
                raise MissingInputError(
                    "has no columns, so that no text can be made of them", source.name
                )
        else:
            first = [] if self.text_column is None else [self.text_column]
            way_out = "choose one with text_column=NAME (--text-column NAME)"
        listing = ", ".join(map(repr, names)) or "none"
        for name in (*first, *self.keep_columns):
            if name not in names:
                do = way_out if name in first else "correct the list of columns to keep"
                raise MissingInputError(
                    f"no column {name!r}; the columns are {listing}: {do}", source.name
                )
            if names.count(name) > 1:
                raise MissingInputError(
                    f"{names.count(name)} columns are called {name!r}; rename all but one",
                    source.name,
                )
        first = first or [_usual_text_column(source, names, strings(), listing)]
        return list(dict.fromkeys([*first, *self.keep_columns]))


def skipped_batch(
    source: Source,
    options: ReadOptions,
    row: int,
    bad: Sequence[SkippedRow],
    position: int | None = None,
) -> TextBatch:
    """Return a batch without rows, which tells of rows that were skipped."""
    kept = {name: pa.nulls(0, options.kept_types.get(name)) for name in options.keep_columns}
    texts, read = pa.array([], pa.large_string()), source.size or 0
    return TextBatch(texts, kept, row, read if position is None else position, source, tuple(bad))


def _usual_text_column(
    source: Source, columns: Sequence[str], strings: Sequence[str], listing: str
) -> str:
    """Return ``text``, or the first of ``TEXT_COLUMNS`` that holds strings; else the only column that
    does.
    """
    for name in TEXT_COLUMNS:
        # one called text is meant, also where a file of many has something else in it
        if columns.count(name) == 1 and (name in strings or name == "text"):
            return name
    if len(strings) == 1:
        return strings[0]
    unknown = "cannot tell which column holds the text" if strings else "no column holds text"
    raise MissingInputError(
        f"{unknown}; the columns are {listing}: choose one with"
        " text_column=NAME (--text-column NAME), or join some by template=... (--template)",
        source.name,
    )


def _value_type(dtype: pa.DataType) -> pa.DataType:
    return dtype.value_type if pa.types.is_dictionary(dtype) else dtype


def _is_text(dtype: pa.DataType) -> bool:
    return _value_type(dtype) in (pa.string(), pa.large_string(), pa.string_view())


def _is_bytes(dtype: pa.DataType) -> bool:
    return _value_type(dtype) in (pa.binary(), pa.large_binary(), pa.binary_view())


def text_columns(schema: pa.Schema) -> list[str]:
    """Return the columns that can be the text column without being asked for: those of text, and
    those with a usual name that hold only nulls, as pandas writes a column without any value.
    """
    return [
        field.name
        for field in schema
        if _is_text(field.type) or (field.name in TEXT_COLUMNS and pa.types.is_null(field.type))
    ]


def as_text(column: pa.Array, name: str, source: Source) -> pa.Array:
    """Return the column as large_string, checked; ``InputError`` if it is of another kind or
    broken.
    """
    if not any(kind(column.type) for kind in (_is_text, _is_bytes, pa.types.is_null)):
        raise InputError(
            f"text column {name!r} is of type {column.type}, not string; choose another with"
            " text_column=NAME (--text-column NAME)",
            source.name,
        )
    check_column(column, name, source.name)
    try:
        texts = column.cast(pa.large_string())
    except pa.ArrowInvalid:
        raise DamagedValueError(
            f"column {name!r} is not UTF-8 text; choose another with text_column=NAME (--text-column"
            " NAME)",
            source.name,
        ) from None
    if texts.nbytes > LONGEST_ROW and _value_lengths(texts).max(initial=0) > LONGEST_ROW:
        raise too_long("a document", LONGEST_ROW, source)
    return texts


def check_column(column: pa.Array, name: str, path: str) -> None:
    """Raise ``InputError`` for broken UTF-8 or offsets: somebody else wrote that memory."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        damage = str(error).partition(" at string index")[0]
        raise DamagedValueError(
            f"column {name!r} is damaged or not UTF-8: {damage}; write the file again from valid"
            " text",
            path,
        ) from None


def as_kept(column: pa.Array, name: str, source: Source, dtype: pa.DataType | None) -> pa.Array:
    """Return a kept column: checked, cast to ``dtype`` where one is asked."""
    check_column(column, name, source.name)
    if dtype is None or column.type.equals(dtype):
        return column
    error: Exception | str = "values would change"
    try:
        cast = column.cast(dtype)
        if pa.types.is_null(column.type):
            return cast
        if _is_alike(dtype, column.type) and _same(cast.cast(column.type), column):
            return cast
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as refusal:
        error = refusal
    message = (
        f"column {name!r} is {column.type} here but {dtype} before: {error}; do not keep it, or"
        " convert the files to one type"
    )
    raise MissingInputError(message, source.name)


def _is_number(dtype: pa.DataType) -> bool:
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(kind(dtype) for kind in kinds)


def _is_alike(left: pa.DataType, right: pa.DataType) -> bool:
    """Whether the values of two types mean the same: Arrow casts 5 to a time in 1970, a local time
    to one in a zone, and true to 1. Fields that only one of two structs has do not count.
    """
    if pa.types.is_struct(left) and pa.types.is_struct(right):
        names = {part.name for part in left} & {part.name for part in right}
        return all(_is_alike(left.field(name).type, right.field(name).type) for name in names)
    if is_list(left) and is_list(right):
        return _is_alike(left.value_type, right.value_type)
    if pa.types.is_timestamp(left) and pa.types.is_timestamp(right):
        return (left.tz is None) == (right.tz is None)
    return left.equals(right) or any(
        kind(left) and kind(right) for kind in (_is_number, _is_text, _is_bytes)
    )


def _same(left: pa.Array, right: pa.Array) -> bool:
    """Whether two values are equal, not-a-number being equal to itself."""
    if not pa.types.is_floating(left.type):
        return bool(left.equals(right))
    import pyarrow.compute as pc

    equal = pc.or_kleene(pc.equal(left, right), pc.and_kleene(pc.is_nan(left), pc.is_nan(right)))
    return pc.all(equal).as_py() is not False


def checked_batches(
    source: Source,
    batch: pa.RecordBatch,
    names: Sequence[str],
    row: int,
    position: int,
    options: ReadOptions,
) -> Iterator[TextBatch]:
    """Yield one record batch, checked and cut: its columns are ``names``, those of the text first."""
    for part in decoded(batch, options.batch_bytes, source):
        yield from _checked_rows(source, part, names, row, position, options)
        row += part.num_rows


def _checked_rows(
    source: Source,
    part: pa.RecordBatch,
    names: Sequence[str],
    row: int,
    position: int,
    options: ReadOptions,
) -> Iterator[TextBatch]:
    """Yield the texts and kept columns of ``part``, whose first row is ``row`` of the source. Where
    a value is damaged, ``part`` is halved until one row is left, which is skipped or refused.
    """
    columns = dict(zip(names, part.columns, strict=True))
    try:
        kept = {
            name: as_kept(columns[name], name, source, options.kept_types.get(name))
            for name in options.keep_columns
        }
        if options.template is None:
            name, cells = names[0], None
            texts = as_text(columns[name], name, source)
        else:
            name = ""
            read = {name: columns[name] for name in options.template.columns or names}
            for one, column in read.items():
                check_column(column, one, source.name)
            texts, cells = options.template.of_columns(read, source.name)
    except DamagedValueError as error:
        if part.num_rows > 1:
            half = part.num_rows // 2
            for rows, first in ((part.slice(0, half), row), (part.slice(half), row + half)):
                yield from _checked_rows(source, rows, names, first, position, options)
        elif options.on_error == "skip":
            bad = [SkippedRow(row + 1, error.message)]
            yield skipped_batch(source, options, row, bad, position)
        else:
            message = f"{error.message}, {SKIP_HINT}"
            raise DamagedValueError(message, source.name, row=row + 1) from None
    else:
        whole = TextBatch(texts, kept, row, position, source, (), name, cells=cells)
        yield from cut_batches(whole, options.batch_bytes)


class DamagedValueError(InputError):
    """A value of a column is damaged, or is no text. The other rows may be sound."""


def decoded(batch: pa.RecordBatch, batch_bytes: int, source: Source) -> Iterator[pa.RecordBatch]:
    """Yield the rows with dictionaries decoded, also those in lists (an IPC file cannot change one
    midway), so few at a time that long values do not fill the memory. InputError for a list that is
    longer than a row of tokens may be.
    """
    batch = memory.without_views(batch)
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        _check_lists(column, name, source)
    types = [_decoded_type(column.type) for column in batch.columns]
    coded = [column for column, kind in zip(batch.columns, types, strict=True) if kind]
    if not coded:
        yield batch
        return
    fields = [
        field.with_type(kind or field.type) for field, kind in zip(batch.schema, types, strict=True)
    ]
    schema = pa.schema(fields, batch.schema.metadata)
    words = [(one.values if is_list(one.type) else one).dictionary for one in coded]
    longest = max(int(_value_lengths(each).max(initial=1)) for each in words)
    step = max(1, batch_bytes // longest)
    for start in range(0, batch.num_rows, step):
        part = zip(batch.slice(start, step).columns, types, strict=True)
        columns = [_plain(column, kind) if kind else column for column, kind in part]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _check_lists(column: pa.Array, name: str, source: Source) -> None:
    """Refuse a row with a longer list than a row of tokens may have."""
    if not is_list(column.type) or len(column.values) <= MOST_TOKENS:
        return
    if np.diff(column.offsets.to_numpy()).max(initial=0) > MOST_TOKENS:
        raise too_long(f"a row of {name!r}", LONGEST_ROW, source)


def _plain(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a slice without its dictionary. A cast would decode all lists of which these are some."""
    if not is_list(kind):
        return column.cast(kind)
    values, offsets = memory.flat(column)
    return memory.list_array(values.cast(kind.value_type), offsets, kind, valid_rows(column))


def _decoded_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the type without its dictionary; None if it has none."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if not is_list(kind) or not pa.types.is_dictionary(kind.value_type):
        return None
    inner = kind.value_field.with_type(kind.value_type.value_type)
    return pa.large_list(inner) if pa.types.is_large_list(kind) else pa.list_(inner)


def is_list(kind: pa.DataType) -> bool:
    """Whether it is a list, of either width."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _value_lengths(values: pa.Array) -> npt.NDArray[np.int64]:
    """Return int64[n]: the bytes of each value; 0 for values that are short anyway."""
    if not (_is_text(values.type) or _is_bytes(values.type)):
        return np.zeros(len(values), np.int64)
    import pyarrow.compute as pc

    return np.asarray(pc.fill_null(pc.binary_length(values), 0), np.int64)


def too_long(what: str, longest: int, source: Source, line: int | None = None) -> InputError:
    """Return the error for what would have to be held in memory whole, but is too long for that."""
    message = (
        f"{what} is longer than {longest >> 20:,} MiB, the most that is held in memory; cut it into"
        " several documents"
    )
    return InputError(
        message + (", or check what the compressed file expands to" if source.compression else ""),
        source.name,
        line,
    )


def cut_batches(batch: TextBatch, batch_bytes: int) -> Iterator[TextBatch]:
    """Yield slices of at most about ``batch_bytes`` of text. A longer document stays whole."""
    rows = len(batch.texts)
    if rows <= 1 or batch.texts.nbytes <= 2 * batch_bytes:
        yield batch
        return
    for start, stop in split_by_size(_value_lengths(batch.texts), batch_bytes):
        kept = {name: column.slice(start, stop - start) for name, column in batch.kept.items()}
        texts = batch.texts.slice(start, stop - start)
        first, bad = batch.first_row + start, batch.bad if start == 0 else ()
        cells = batch.cells and batch.cells.rows(slice(start, stop))
        yield dataclasses.replace(
            batch, texts=texts, kept=kept, first_row=first, bad=bad, cells=cells
        )


def split_by_size(lengths: npt.NDArray[Any], batch_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield (first row, the one after the last) of runs of rows of at most ``batch_bytes``, or of one
    longer row.

    >>> list(split_by_size(np.array([3, 3, 9, 1]), 6))
    [(0, 2), (2, 3), (3, 4)]
    """
    ends = np.cumsum(lengths, dtype=np.int64)
    start = 0
    while start < len(ends):
        done = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + batch_bytes, side="right")))
        yield start, stop
        start = stop
