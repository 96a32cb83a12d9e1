"""JSON lines: one object per line.

In: blocks of whole lines. Out: ``TextBatch`` es with large_string texts. Arrow's parser does the
    work, one block at a time and only for the columns wanted; what it refuses is parsed again line
    by line with ``json``, which either accepts it (the
slow parse is the reference: it decides what is valid) or tells line, column and reason.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.json

from numtok.arrays import memory
from numtok.corpus.kept_values import (
    DECODER,
    KINDS,
    WAY_OUT,
    guess_type,
    may_be_changed,
    needs_a_look,
    unfit,
    with_floats,
)
from numtok.corpus.read.batches import (
    SKIP_HINT,
    TEXT_COLUMNS,
    ReadOptions,
    SkippedRow,
    TextBatch,
)
from numtok.corpus.read.lines import Block, not_utf8, read_blocks
from numtok.corpus.read.sources import ByteStream, Source
from numtok.corpus.read.template import AS_WRITTEN, Template
from numtok.errors import InputError

# Arrow's parser crashes the process when the first row is a bare `null`, so it only gets blocks
# that start with an object.
_STARTS_WITH_OBJECT = re.compile(rb"[ \t\r\n]*\{")
_SAMPLE_BYTES = 1 << 20
_LONG_STRING, _BACKSLASH = 1 << 12, 0x5C
_FIT_IN_INT32 = (1 << 31) - 2


class BadRow(Exception):
    """One row that cannot be used; says why, and where in the line if known."""

    def __init__(self, reason: str, column: int | None = None) -> None:
        super().__init__(reason)
        self.column = column


@dataclass
class Rows:
    """Parsed rows on their way to Arrow: texts, the kept values, and where each row came from."""

    texts: list[str | None] = field(default_factory=list)
    kept: list[list[Any]] = field(default_factory=list)
    bad: list[SkippedRow] = field(default_factory=list)


@dataclass(frozen=True)
class Columns:
    """The text column's name, and the Arrow type of each kept column other than that."""

    text: str
    kept: dict[str, pa.DataType]
    template: Template | None = None

    def row(self, value: Any, written: Any = None) -> tuple[str | None, list[Any]]:
        """Text and kept values of one parsed row; ``BadRow`` if it cannot be used.

        A row ``null`` is a null document. ``written`` is the row with its numbers as they are
        written, which a template takes.
        """
        if value is None:
            return None, [None] * len(self.kept)
        if not isinstance(value, dict):
            raise BadRow(
                f"the row is {KINDS[type(value)]}, not an object; if the file is one array of"
                " objects, tell with input_format='json'"
            )
        text = value.get(self.text) if self.template is None else self.template.of_row(written)
        if text is not None and not isinstance(text, str):
            raise BadRow(
                f"text column {self.text!r} holds {KINDS[type(text)]}, not a string; choose another"
                " with text_column=NAME"
            )
        if text is not None and not text.isascii():
            _check_surrogates(text, self.text)
        for name, dtype in self.kept.items():
            try:
                reason = unfit(value.get(name), dtype)
            except RecursionError:
                reason = "is nested too deeply; do not keep this column"
            if reason:
                raise BadRow(f"kept column {name!r} {reason}")
        return text, [with_floats(value.get(name), dtype) for name, dtype in self.kept.items()]

    def check_kept(self, kept: Sequence[Any]) -> None:
        """``BadRow`` if a kept value is not of its column's type."""
        for (name, dtype), value in zip(self.kept.items(), kept, strict=True):
            try:
                pa.array([value], dtype)
            except (pa.ArrowException, OverflowError, UnicodeEncodeError):
                reason = (
                    f"kept column {name!r} holds {KINDS[type(value)]} that is not {dtype} like the"
                    " rows before"
                )
                raise BadRow(f"{reason}; {WAY_OUT}") from None

    def arrays(self, rows: Rows) -> tuple[pa.Array, dict[str, pa.Array]]:
        """The rows as Arrow columns; an Arrow error if a kept value is not of its column's type."""
        texts = pa.array(rows.texts, pa.large_string())
        values = zip(*rows.kept, strict=True) if rows.kept else ([] for _ in self.kept)
        return texts, {
            name: pa.array(list(column), dtype)
            for (name, dtype), column in zip(self.kept.items(), values, strict=False)
        }


def _check_surrogates(text: str, name: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        escape = f"\\u{ord(text[error.start]):04x}"
        raise BadRow(
            f"text column {name!r} has half of a surrogate pair ({escape}), which is no character;"
            " mend the row"
        ) from None


def read_json_lines(source: Source, options: ReadOptions) -> Iterator[TextBatch]:
    """The documents of a JSON lines file; see ``read_batches``."""
    columns = columns_of_head(source, options) if source.start else None
    with ByteStream(source) as stream:
        yield from batches_of_blocks(
            read_blocks(stream, options.batch_bytes), source, options, columns
        )


def columns_of_head(source: Source, options: ReadOptions) -> Columns | None:
    """The columns of a part of a file: those by which the parts before it are read."""
    head = dataclasses.replace(source, start=0, stop=source.start, size=source.start)
    with ByteStream(head) as stream:
        settled = (
            _settle_columns(block, head, options)
            for block in read_blocks(stream, options.batch_bytes)
        )
        return next((columns for columns in settled if columns), None)


def batches_of_blocks(
    blocks: Iterator[Block], source: Source, options: ReadOptions, columns: Columns | None = None
) -> Iterator[TextBatch]:
    """One batch per block that has rows.

    The columns are settled by the first block that has any field at all, if they are not given.
    """
    first_row = 0
    for block in blocks:
        columns = columns or _settle_columns(block, source, options)
        use = columns or columns_without_rows(options)
        fast = _parse_fast(block, use)
        texts, kept, bad = (*fast, []) if fast else _parse_slow(block, use, source, options)
        memory.release_after(len(block.data))
        if len(texts) or bad:
            if use.text in options.keep_columns:
                kept[use.text] = texts
            yield TextBatch(texts, kept, first_row, block.position, source, tuple(bad), use.text)
        first_row += len(texts) + len(bad)


def _parse_fast(block: Block, columns: Columns) -> tuple[pa.Array, dict[str, pa.Array]] | None:
    """The block by Arrow's parser, or None where it, or its reading of lines, differs from the
    reference.
    """
    if (
        not _STARTS_WITH_OBJECT.match(block.data)
        or len(block.data) > _FIT_IN_INT32
        or columns.template is not None
        or any(map(needs_a_look, columns.kept.values()))
    ):
        return None
    schema = pa.schema([(columns.text, pa.large_string()), *columns.kept.items()])
    try:
        table = pyarrow.json.read_json(
            pa.BufferReader(block.data),
            read_options=pyarrow.json.ReadOptions(
                use_threads=False, block_size=len(block.data) + 1
            ),
            parse_options=pyarrow.json.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior="ignore"
            ),
        )
        # Arrow takes an object over two lines, or two objects on one, but a cut between blocks
        # would make the first fail at random.
        if table.num_rows != block.lines:
            return None
        texts, *kept = (column.combine_chunks() for column in table.columns)
        for column in (texts, *kept):
            column.validate(full=True)
        if any(may_be_changed(column, block.data) for column in kept):
            return None
    except pa.ArrowException:
        return None
    return texts, dict(zip(columns.kept, kept, strict=True))


def _parse_slow(
    block: Block, columns: Columns, source: Source, options: ReadOptions
) -> tuple[pa.Array, dict[str, pa.Array], list[SkippedRow]]:
    """The block line by line; the first bad row raises, or all are told."""
    rows = _collect(block, columns, source, options, check_kept=False)
    try:
        texts, kept = columns.arrays(rows)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        rows = _collect(block, columns, source, options, check_kept=True)
        texts, kept = columns.arrays(rows)
    return texts, kept, rows.bad


def _collect(
    block: Block, columns: Columns, source: Source, options: ReadOptions, check_kept: bool
) -> Rows:
    """All rows of the block; ``check_kept`` also tries each kept value, which is slow, to find the
    row to blame.
    """
    rows = Rows()
    offset = block.offset
    for number, raw in enumerate(block.data.split(b"\n"), block.line):
        if raw.strip(b" \t\r"):
            try:
                written = parse_line(raw, AS_WRITTEN) if columns.template else None
                text, kept = columns.row(parse_line(raw), written)
                if check_kept:
                    columns.check_kept(kept)
                rows.texts.append(text)
                rows.kept.append(kept)
            except BadRow as error:
                blamed = _blame(error, raw, source, number, offset)
                if options.on_error == "raise":
                    raise blamed from None
                rows.bad.append(SkippedRow(number, blamed.message))
        offset += len(raw) + 1
    return rows


def _blame(error: BadRow, raw: bytes, source: Source, line: int, offset: int) -> InputError:
    """The user's error for a bad row; bytes that are not UTF-8 come first, since they explain most
    other trouble.
    """
    try:
        raw.decode()
    except UnicodeDecodeError as encoding:
        return not_utf8(encoding, offset, source, line)
    return InputError(f"{error}, {SKIP_HINT}", source.name, line, error.column)


def parse_line(raw: bytes, decoder: json.JSONDecoder = DECODER) -> Any:
    """The value on one line; ``BadRow`` if there is none.

    Bytes that are not UTF-8 become lone surrogates, so that they only matter in a column that is
    used, as in Arrow's parser.
    """
    line = raw.decode("utf-8", "surrogateescape")
    try:
        value, stop = decoder.raw_decode(line, len(line) - len(line.lstrip(" \t\r")))
    except json.JSONDecodeError as error:
        raise BadRow(f"not valid JSON: {error.msg}; mend the line", error.pos + 1) from None
    except RecursionError:
        raise BadRow("nested too deeply to be read; mend the line") from None
    if rest := line[stop:].lstrip(" \t\r"):
        raise BadRow(
            "not valid JSON: more text after the value; put one object on each line",
            len(line) - len(rest) + 1,
        )
    return value


def _settle_columns(block: Block, source: Source, options: ReadOptions) -> Columns | None:
    """Which column is the text, and the types of the kept ones, from the block's first rows; None
    while no row has a field.
    """
    wanted = [
        *options.keep_columns,
        *([options.text_column] if options.text_column is not None else []),
    ]
    for limit in (_SAMPLE_BYTES, len(block.data)):
        rows = _sample(block.data, limit)
        names = list(dict.fromkeys(name for row in rows for name in row))
        if names and all(name in names for name in wanted):
            break
    return columns_of_rows(rows, names, source, options) if names else None


def columns_without_rows(options: ReadOptions) -> Columns:
    """The columns where no row has any field: every document is null."""
    text = options.text_column or "text"
    return Columns(
        text,
        {
            name: options.kept_types.get(name, pa.string())
            for name in options.keep_columns
            if name != text
        },
        options.template,
    )


def columns_of_rows(
    rows: Sequence[dict[str, Any]], names: Sequence[str], source: Source, options: ReadOptions
) -> Columns:
    """The columns by these sample rows."""
    kinds = {name: {type(row[name]) for row in rows if row.get(name) is not None} for name in names}
    named = [name for name in TEXT_COLUMNS if name in kinds]
    strings = [
        name
        for name in names
        if kinds[name] == {str} or (name in named and (str in kinds[name] or not kinds[name]))
    ]
    # With no string anywhere, a column by the right name is taken, so that the error will tell
    # which row holds what.
    strings = strings or named[:1] or [name for name in names if not kinds[name]]
    text = options.wanted(source, list(names), lambda: strings)[0]
    text = "" if options.template else text
    kept = [name for name in options.keep_columns if name != text]
    return Columns(
        text,
        {name: options.kept_types.get(name) or guess_type(rows, name, source) for name in kept},
        options.template,
    )


def _sample(data: bytes, limit: int) -> list[dict[str, Any]]:
    """The objects on the first lines, up to about ``limit`` bytes; bad lines are left for the real
    parse to report.
    """
    rows: list[dict[str, Any]] = []
    start, cut = 0, data.find(b"\n", limit)
    end = cut if cut >= 0 else len(data)
    while start <= end:
        stop = data.find(b"\n", start, end)
        stop = stop if stop >= 0 else end
        with contextlib.suppress(BadRow):
            row = parse_line(
                data[start:stop] if stop - start <= _SAMPLE_BYTES else _shortened(data, start, stop)
            )
            if isinstance(row, dict):
                rows.append(row)
        start = stop + 1
    return rows


def _shortened(data: bytes, start: int, stop: int) -> bytes:
    """A long line with empty strings instead of long ones: Python's would take several times its
    memory, and only their kind is asked for.
    """
    pieces, done = [], start
    begin = data.find(b'"', start, stop)
    while begin >= 0 and (end := _end_of_string(data, begin, stop)) >= 0:
        if end - begin > _LONG_STRING:
            pieces.append(data[done : begin + 1])
            done = end
        begin = data.find(b'"', end + 1, stop)
    return b"".join([*pieces, data[done:stop]])


def _end_of_string(data: bytes, begin: int, stop: int) -> int:
    """Where the quotation mark is that closes the one at ``begin``: behind an even number of
    backslashes; -1 if there is none.
    """
    at = data.find(b'"', begin + 1, stop)
    while at >= 0:
        before = at
        while data[before - 1] == _BACKSLASH:
            before -= 1
        if (at - before) % 2 == 0:
            break
        at = data.find(b'"', at + 1, stop)
    return at
