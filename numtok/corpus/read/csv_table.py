"""CSV and TSV files with a header line.

In: a ``Source``. Out: ``TextBatch`` es of the text column and the kept ones. The file is cut into
blocks of whole records, and each is parsed by Arrow.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.csv

from numtok.corpus.read.batches import (
    SKIP_HINT,
    TEXT_COLUMNS,
    ReadOptions,
    SkippedRow,
    TextBatch,
    checked_batches,
    is_bytes,
    skipped_batch,
)
from numtok.corpus.read.lines import BOM, HEAD, one_text, refuse_utf16
from numtok.corpus.read.sources import ByteStream, Source
from numtok.errors import InputError
from numtok.options import shown_option

_LARGEST_HEADER = 1 << 20
# Bytes; less than other formats take, as Arrow's parser holds a row of this size several times.
_LONGEST_ROW = 96 << 20
_BLANK = re.compile(rb"[\r\n]*")
_DELIMITERS = (";", "|", "\t", ",")  # that are tried where the rows do not fit the usual one
_DECIMAL_COMMA = re.compile(r"\d+,(?!\d{3}(?!\d))\d+")  # in 1,234 it may group digits
_ENCODING = 'convert the file with "iconv -f ENCODING -t UTF-8"'
_LeaveOut = Callable[[pyarrow.csv.InvalidRow], str]
_OPEN_QUOTE = (
    "a quote that opens here never closes; close it, or write a quote that is part of the text as"
    ' "" inside quotes'
)


@dataclass(frozen=True)
class _Block:
    """Whole records; the line of the file with which they begin, and stored bytes read so far."""

    data: bytes
    line: int
    position: int


class _Table:
    """A file of records, as Arrow reads them: a quote counts where a field begins."""

    def __init__(self, source: Source, delimiter: str | None) -> None:
        self.source = source
        self.delimiter = delimiter or ("\t" if source.format == "tsv" else ",")
        between = re.escape(self.delimiter)
        rest = rf"[^{between}\r\n]*+"
        field = rf'(?:"[^"]*+(?:""[^"]*+)*+"{rest}|(?!"){rest})'
        record = rf"[\r\n]*+{field}(?:{between}{field})*+(?:\r\n|\n|\r(?=.))"
        self.record = re.compile(record.encode(), re.DOTALL)
        self._records = re.compile(f"(?:{record})*+".encode(), re.DOTALL)

    def blocks(self, stream: ByteStream, size: int) -> Iterator[_Block]:
        """Yield the header, then blocks of about ``size`` bytes, longer only for a longer row."""
        data, line, of_header, last = b"", 1, True, False
        while not last:
            # As much as is there already: so a long row costs linear time.
            piece = stream.read(max(size, len(data), HEAD))
            last = not piece
            if not data and of_header:
                refuse_utf16(piece, self.source)
                piece = piece.removeprefix(BOM)
            data += b"\n" if last and data and not data.endswith(b"\n") else piece
            while end := self._end(data, of_header):
                yield _Block(data[:end], line, stream.position)
                line, data, of_header = line + _line_breaks(data[:end]), data[end:], False
            self._refuse_endless(data, line, of_header)
        if rest := data.lstrip(b"\r\n"):
            line += _line_breaks(data[: len(data) - len(rest)])
            raise InputError(_OPEN_QUOTE, self.source.name, line)

    def _end(self, data: bytes, of_header: bool) -> int:
        """Return where the last whole record ends, or the header; 0 if there is none."""
        if not of_header and b'"' not in data and b"\n" in data:
            return data.rfind(b"\n") + 1
        match = (self.record if of_header else self._records).match(data)
        return match.end() if match else 0

    def _refuse_endless(self, data: bytes, line: int, of_header: bool) -> None:
        if of_header and len(data) > _LARGEST_HEADER:
            message = f"the header is longer than {_LARGEST_HEADER:,} bytes: {_OPEN_QUOTE}"
            raise InputError(message, self.source.name, line)
        if len(data) > _LONGEST_ROW:
            message = (
                f"a row is longer than {_LONGEST_ROW:,} bytes: is a closing quote missing? If not,"
                " save the input as a file of JSON lines"
            )
            raise InputError(message, self.source.name, line)

    def line_of(self, block: _Block, record: int) -> int:
        """Return the line in which a record of a block begins; records count from 0."""
        for number, match in enumerate(self.record.finditer(block.data)):
            if number == record:
                blank = len(match[0]) - len(match[0].lstrip(b"\r\n"))
                return block.line + _line_breaks(block.data[: match.start() + blank])
        return block.line

    def parse(
        self,
        block: _Block,
        names: Sequence[str],
        leave_out: _LeaveOut,
        wanted: Sequence[str] = (),
    ) -> pa.Table:
        """Return the block by Arrow: the wanted columns as bytes, or all in the types that Arrow
        guesses.
        """

        def read(data: bytes, leave_out: _LeaveOut) -> pa.Table:
            return pyarrow.csv.read_csv(
                pa.BufferReader(data),
                read_options=pyarrow.csv.ReadOptions(
                    use_threads=False, block_size=len(data) + 1, column_names=names
                ),
                parse_options=pyarrow.csv.ParseOptions(
                    delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=leave_out
                ),
                convert_options=pyarrow.csv.ConvertOptions(
                    include_columns=wanted, column_types=dict.fromkeys(wanted, pa.binary())
                ),
            )

        try:
            one_text(block.data, len(block.data))
        except pa.ArrowInvalid:
            pass
        else:
            return read(block.data, leave_out)
        # Arrow gives rows to ``leave_out`` as text, which it cannot make of these bytes: so it gives
        # those of a copy, and reads the others.
        left_out = set()

        def note(row: pyarrow.csv.InvalidRow) -> str:
            left_out.add(row.number - 1)
            return leave_out(row)

        read(block.data.decode("utf-8", "replace").encode(), note)
        records = enumerate(self.record.finditer(block.data))
        rest = b"".join(record[0] for number, record in records if number not in left_out)
        return read(rest or b"\n", leave_out)


def _line_breaks(data: bytes) -> int:
    return data.count(b"\n") or data.count(b"\r")


def read_csv(source: Source, options: ReadOptions) -> Iterator[TextBatch]:
    """Yield the documents of a CSV or TSV file with a header line. All columns are strings as
    written (``007``, ``NA``), so none is null. Fields may be quoted and then hold line breaks.
    """
    table, row = _Table(source, options.delimiter), 0
    with ByteStream(source) as stream:
        blocks = table.blocks(stream, options.batch_bytes)
        header = next(blocks, None)
        if header is None:
            return
        names = _names(header, table)
        filled = (block for block in blocks if not _BLANK.fullmatch(block.data))
        first = next(filled, None)
        hint = _other_delimiter(header, first, table) if first and options.delimiter is None else ""
        if hint:
            warnings.warn(hint, stacklevel=1)  # of this line, so that Python says it once
        wanted = options.wanted(source, names, lambda: _strings(first, names, table))
        for block in itertools.chain([first] if first else [], filled):
            batch, bad = _rows(block, names, wanted, table, hint)
            if bad and options.on_error == "raise":
                raise InputError(bad[0].error, source.name, bad[0].line)
            yield from checked_batches(source, batch, wanted, row, block.position, options)
            row += batch.num_rows
            if bad:
                yield skipped_batch(source, options, row, bad, block.position)
                row += len(bad)


def _names(header: _Block, table: _Table) -> list[str]:
    """Return the names in the first line that is not blank."""
    text, where = header.data.decode("utf-8", "surrogateescape"), (table.source.name, 1)
    try:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=table.delimiter)
        names = next(row for row in rows if row)
    except csv.Error as error:
        message = f"the header cannot be read: {error}; the first line must name the columns"
        raise InputError(message, *where) from None
    if any("\udc80" <= char <= "\udcff" for name in names for char in name):
        raise InputError(f"the header is not UTF-8; {_ENCODING}", *where)
    return names


def _other_delimiter(header: _Block, first: _Block, table: _Table) -> str:
    """Return a sentence that names the delimiter by which the header and every row of the first
    block have the same columns, two or more, while a column holds it as the table is read; or "".
    """
    for delimiter in _DELIMITERS:
        if delimiter == table.delimiter or delimiter.encode() not in header.data:
            continue
        other, ragged = _Table(table.source, delimiter), False

        def note(_: pyarrow.csv.InvalidRow) -> str:
            nonlocal ragged
            ragged = True
            return "error"

        try:
            names = _names(header, other)
            columns = [f"{place}" for place in range(len(names))]
            rows = other.parse(first, columns, note, columns).num_rows
        except (pa.ArrowException, InputError):
            continue
        if rows and len(names) > 1 and not ragged:
            return _advice(names, first, table, delimiter)
    return ""


def _advice(names: Sequence[str], first: _Block, table: _Table, delimiter: str) -> str:
    """Return how to read the table with the ``delimiter`` that gives every row these columns."""
    listing = ", ".join(map(repr, names))
    text = first.data.decode("utf-8", "replace")
    comma = _DECIMAL_COMMA.search(text) if table.delimiter == "," else None
    also = (
        f" and, if {comma[0]} has a decimal comma, grammar='european' (--grammar european)"
        if comma
        else ""
    )
    return (
        f"{table.delimiter!r} is taken for what stands between columns, but every row has"
        f" {len(names)} columns ({listing:.300}) with {delimiter!r} between them; read the file"
        f" with {shown_option('delimiter', delimiter)}{also}"
    )


def _strings(block: _Block | None, names: list[str], table: _Table) -> list[str]:
    """Return the columns with a usual name of the text, and those that Arrow takes for neither
    numbers nor dates nor empty, by a block.
    """
    if block is None or len(names) == 1:
        return names
    try:
        guessed = table.parse(block, names, lambda row: "skip")
    except (pa.ArrowException, UnicodeDecodeError):
        return names
    strings = [
        field.name
        for field in guessed.schema
        if field.name in TEXT_COLUMNS or is_bytes(field.type)  # bytes: not UTF-8
    ]
    return strings if guessed.num_rows else names


def _rows(
    block: _Block, names: Sequence[str], wanted: Sequence[str], table: _Table, hint: str
) -> tuple[pa.RecordBatch, list[SkippedRow]]:
    """Return the rows that can be read, as strings, and the others in the order of their lines;
    ``hint`` is what to do about rows of another length, if that is known.
    """
    ragged: dict[int, str] = {}

    def leave_out(row: pyarrow.csv.InvalidRow) -> str:
        comma = _DECIMAL_COMMA.search(row.text or "") if table.delimiter == "," else None
        more = row.actual_columns > row.expected_columns
        such = f" (perhaps a decimal comma, as in {comma[0]})" if comma and more else ""
        mend = (
            f"mend that row: fields with the delimiter{such} or a line break in them must be"
            f" quoted, {SKIP_HINT}"
        )
        ragged[row.number - 1] = (
            f"cannot be read as {table.source.format}: Expected {row.expected_columns} columns, got"
            f" {row.actual_columns}; {hint or mend}"
        )
        return "skip"

    parsed = table.parse(block, names, leave_out, wanted)
    read = pa.RecordBatch.from_arrays(
        [one.combine_chunks() for one in parsed.columns], list(wanted)
    )
    strings = pa.schema([(name, pa.string()) for name in wanted])
    bad = [SkippedRow(table.line_of(block, row), error) for row, error in ragged.items()]
    try:
        return read.cast(strings), bad
    except pa.ArrowInvalid:
        pass
    good, numbers = [], (row for row in itertools.count() if row not in ragged)
    rows = zip(*(one.to_pylist() for one in read.columns), strict=True)
    for number, cells in zip(numbers, rows, strict=False):
        try:
            good.append([cell.decode() for cell in cells])
        except UnicodeDecodeError as error:
            reason = f"not UTF-8: byte 0x{error.object[error.start]:02x}; {_ENCODING}, {SKIP_HINT}"
            bad.append(SkippedRow(table.line_of(block, number), reason))
    values = zip(*good, strict=True) if good else [()] * len(wanted)
    columns = [pa.array(list(column), pa.string()) for column in values]
    return pa.RecordBatch.from_arrays(columns, schema=strings), sorted(bad)
