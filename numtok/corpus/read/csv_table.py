"""CSV and TSV files with a header line.

In: a ``Source``. Out: ``TextBatch`` es of the text column and the kept ones. The file is cut into
blocks of whole records, and each is parsed by Arrow; where Arrow refuses one, by Python's ``csv``,
which tells the rows apart that cannot be read.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv

from numtok.corpus.read.batches import (
    SKIP_HINT,
    TEXT_COLUMNS,
    ReadOptions,
    SkippedRow,
    TextBatch,
    checked_batches,
    skipped_batch,
)
from numtok.corpus.read.lines import BOM, HEAD, Block, refuse_utf16
from numtok.corpus.read.sources import ByteStream, Source
from numtok.errors import InputError
from numtok.options import shown_option

_LARGEST_HEADER = 1 << 20
# Bytes; less than other formats take, as Arrow's parser holds a row of this size several times.
_LONGEST_ROW = 96 << 20
csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_ROW))  # it refuses more than 128 KiB
_BLANK = re.compile(rb"[\r\n]*")
_DELIMITERS = (";", "|", "\t", ",")  # that are tried where the rows do not fit the usual one
_DECIMAL_COMMA = re.compile(r"\d+,(?!\d{3}(?!\d))\d+")  # in 1,234 it may group digits
_ENCODING = 'convert the file with "iconv -f ENCODING -t UTF-8"'
_OPEN_QUOTE = (
    "a quote that opens here never closes; close it, or write a quote that is part of the text as"
    ' "" inside quotes'
)


class _Table:
    """A file of records, as Arrow reads them: a quote counts where a field begins."""

    def __init__(self, source: Source, delimiter: str | None) -> None:
        self.source = source
        self.delimiter = delimiter or ("\t" if source.format == "tsv" else ",")
        between = re.escape(self.delimiter)
        rest = rf"[^{between}\r\n]*+"
        field = rf'(?:"[^"]*+(?:""[^"]*+)*+"{rest}|(?!"){rest})'
        record = rf"[\r\n]*+{field}(?:{between}{field})*+(?:\r\n|\n|\r(?=.))"
        self._record = re.compile(record.encode(), re.DOTALL)
        self._records = re.compile(f"(?:{record})*+".encode(), re.DOTALL)

    def blocks(self, stream: ByteStream, size: int) -> Iterator[Block]:
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
                yield Block(data[:end], line, 0, stream.position)
                line, data, of_header = line + _line_breaks(data[:end]), data[end:], False
            self._refuse_endless(data, line, of_header)
        if rest := data.lstrip(b"\r\n"):
            line += _line_breaks(data[: len(data) - len(rest)])
            raise InputError(_OPEN_QUOTE, self.source.name, line)

    def _end(self, data: bytes, of_header: bool) -> int:
        """Return where the last whole record ends, or the header; 0 if there is none."""
        if not of_header and b'"' not in data and b"\n" in data:
            return data.rfind(b"\n") + 1
        match = (self._record if of_header else self._records).match(data)
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


def _line_breaks(data: bytes) -> int:
    return data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")


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


def _names(header: Block, table: _Table) -> list[str]:
    """Return the names in the first line that is not blank."""
    names: list[str] = next(row for row in _cells(header.data, table.delimiter) if row)
    if any("\udc80" <= char <= "\udcff" for name in names for char in name):
        raise InputError(f"the header is not UTF-8; {_ENCODING}", table.source.name, 1)
    return names


def _other_delimiter(header: Block, first: Block, table: _Table) -> str:
    """Return a sentence that names the delimiter by which the header and every row of the first
    block have the same columns, two or more, while a column holds it as the table is read; or "".
    """
    for delimiter in _DELIMITERS:
        if delimiter != table.delimiter and delimiter.encode() in header.data:
            names = next(row for row in _cells(header.data, delimiter) if row)
            rows = (len(row) for row in _cells(first.data, delimiter) if row)
            if len(names) > 1 and all(columns == len(names) for columns in rows):
                return _advice(names, first, table, delimiter)
    return ""


def _advice(names: Sequence[str], first: Block, table: _Table, delimiter: str) -> str:
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


def _strings(block: Block | None, names: list[str], table: _Table) -> list[str]:
    """Return the columns with a usual name of the text, and those that Arrow takes for neither
    numbers nor dates nor empty, by a block.
    """
    if block is None or len(names) == 1:
        return names
    data = block.data.decode("utf-8", "replace").encode()
    guessed = _parsed(data, names, table, invalid_row_handler=lambda row: "skip")
    strings = [
        field.name
        for field in guessed.schema
        if field.name in TEXT_COLUMNS or pa.types.is_string(field.type)
    ]
    return strings if guessed.num_rows else names


def _parsed(
    data: bytes,
    names: Sequence[str],
    table: _Table,
    convert: pyarrow.csv.ConvertOptions | None = None,
    **parse: Any,
) -> pa.Table:
    """Return whole records as Arrow reads them."""
    return pyarrow.csv.read_csv(
        pa.BufferReader(data),
        read_options=pyarrow.csv.ReadOptions(
            use_threads=False, block_size=len(data) + 1, column_names=names
        ),
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=table.delimiter, newlines_in_values=True, **parse
        ),
        convert_options=convert,
    )


def _rows(
    block: Block, names: Sequence[str], wanted: Sequence[str], table: _Table, hint: str
) -> tuple[pa.RecordBatch, list[SkippedRow]]:
    """Return the rows that can be read, as strings, and the others in the order of their lines;
    ``hint`` is what to do about rows of another length, if that is known. Python's parser, which is
    slower, reads a block that Arrow's refuses.
    """
    strings = pa.schema([(name, pa.string()) for name in wanted])
    convert = pyarrow.csv.ConvertOptions(include_columns=wanted, column_types=strings)
    try:
        parsed = _parsed(block.data, names, table, convert)
        columns = [one.combine_chunks() for one in parsed.columns]
        return pa.RecordBatch.from_arrays(columns, schema=strings), []
    except pa.ArrowInvalid:
        pass
    places = [names.index(name) for name in wanted]
    reader, before = _cells(block.data, table.delimiter), 0
    good, bad = [], []
    for row in reader:
        cells = [row[place] for place in places] if len(row) == len(names) else []
        error = _wrong(row, cells, len(names), table, hint) if row else ""
        if error:
            bad.append(SkippedRow(block.line + before, error))
        elif row:
            good.append(cells)
        before = reader.line_num
    values = zip(*good, strict=True) if good else [()] * len(wanted)
    columns = [pa.array(list(column), pa.string()) for column in values]
    return pa.RecordBatch.from_arrays(columns, schema=strings), bad


def _cells(data: bytes, delimiter: str) -> Any:
    """Return a reader of whole records; bytes that are not UTF-8 become lone surrogates."""
    lines = io.TextIOWrapper(io.BytesIO(data), "utf-8", "surrogateescape", newline="")
    return csv.reader(lines, delimiter=delimiter)


def _wrong(
    row: Sequence[str], cells: Sequence[str], expected: int, table: _Table, hint: str
) -> str:
    """Return why a row, of which ``cells`` are wanted, cannot be used; empty if it can."""
    if len(row) != expected:
        comma = _DECIMAL_COMMA.search(",".join(row)) if table.delimiter == "," else None
        such = (
            f" (perhaps a decimal comma, as in {comma[0]})" if comma and len(row) > expected else ""
        )
        mend = (
            f"mend that row: fields with the delimiter{such} or a line break in them must be"
            f" quoted, {SKIP_HINT}"
        )
        return (
            f"cannot be read as {table.source.format}: Expected {expected} columns, got {len(row)};"
            f" {hint or mend}"
        )
    try:
        "".join(cells).encode("utf-8", "surrogateescape").decode()
    except UnicodeDecodeError as error:
        return f"not UTF-8: byte 0x{error.object[error.start]:02x}; {_ENCODING}, {SKIP_HINT}"
    return ""
