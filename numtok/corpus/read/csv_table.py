"""CSV and TSV files with a header line.

In: a ``Source``. Out: ``TextBatch`` es of the text column and the kept ones. Arrow's parser does
    the work, block by block. It takes what stands after a quote that never closes for one long
    cell, without a word; so a last row of our own is put behind the file, which must come out
    again.
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
import secrets
import threading
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv

from numtok.corpus.read.batches import (
    SKIP_HINT,
    ReadOptions,
    SkippedRow,
    TextBatch,
    checked_batches,
    is_bytes,
    left_out,
)
from numtok.corpus.read.lines import BOM, refuse_utf16
from numtok.corpus.read.sources import ByteStream, Source
from numtok.errors import InputError

_LARGEST_HEADER = 1 << 20
_LONGEST_ROW = (
    96 << 20
)  # bytes; Arrow's parser may hold half a dozen blocks of this size, so that it is less than other formats take
_ENCODING = 'convert the file with "iconv -f ENCODING -t UTF-8"'
_PATIENCE = 60  # seconds for a block that is being read, from standard input say
_OPEN_QUOTE = (
    "a quote that opens here never closes; close it, or write a quote that is part of the text as"
    ' "" inside quotes'
)


class _Head:
    """The first bytes of a file, read ahead to see the header; then the rest; then a row that is
    not the file's.
    """

    def __init__(self, stream: ByteStream, block: int, delimiter: str) -> None:
        self._stream, self._quoted = stream, _record(delimiter)
        self.data, self.header, self.complete = stream.read(block), 0, False
        refuse_utf16(self.data, stream.source)
        while not self._has_a_row():
            if len(self.data) >= _LONGEST_ROW:
                raise _too_long(_LONGEST_ROW, 2, stream.source)
            if not (more := stream.read(len(self.data))):
                self.complete = True
                break
            self.data += more
        self._waiting = self.data
        self._last = b""

    def _has_a_row(self) -> bool:
        """Whether the header (which ends at ``header``) and the row behind it are there with their
        line breaks.
        """
        start = len(BOM) if self.data.startswith(BOM) else 0
        header = self._quoted.match(self.data, start)
        self.header = header.end() if header else 0
        if not header and len(self.data) > _LARGEST_HEADER:
            raise InputError(
                f"the header is longer than {_LARGEST_HEADER:,} bytes: {_OPEN_QUOTE}",
                self._stream.source.name,
                1,
            )
        return header is not None and self._quoted.match(self.data, self.header) is not None

    def end_with(self, row: bytes) -> None:
        """The row that comes after the file's."""
        self._last = b"\n" + row + b"\n"

    def read(self, size: int) -> bytes:
        """The next ``size`` bytes, or one less.

        After a block that ends in a carriage return Arrow drops a line feed, within quotes too, and
        takes a block of nothing else for the end. So no block ends in one, and the row after the
        file's comes together with the file's last bytes.
        """
        data, self._waiting = self._waiting[:size], self._waiting[size:]
        data += self._stream.read(size - len(data)) if len(data) < size else b""
        room = size - len(data)
        data, self._last = data + self._last[:room], self._last[room:]
        if data.endswith(b"\r") and len(data) > 1:
            data, self._waiting = data[:-1], data[-1:] + self._waiting
        return data


def _record(delimiter: str) -> re.Pattern[bytes]:
    """One record with its line break, and blank lines before it, as Arrow reads it: a quote counts
    where a field begins.
    """
    rest = rf"[^{delimiter}\r\n]*+"
    field = rf'(?:"(?:[^"]|"")*+"{rest}|(?!"){rest})'
    return re.compile(
        rf"[\r\n]*+{field}(?:{delimiter}{field})*+(?:\r\n|\n|\r(?=.))".encode(), re.DOTALL
    )


def read_csv(source: Source, options: ReadOptions) -> Iterator[TextBatch]:
    """The documents of a CSV or TSV file with a header line. All columns are strings as written
    (``007``, ``NA``), so none is null.

    Fields may be quoted and then hold line breaks. A row longer than Arrow's block makes it start
    again with larger blocks.
    """
    done, told, block = 0, 0, options.batch_bytes
    while True:
        bad: list[SkippedRow] = []  # of this pass; the first ``told`` are handed out already
        try:
            for batch in _csv_pass(source, options, block, bad):
                if (stop := batch.first_row + len(batch.texts)) > done:
                    fresh = max(0, done - batch.first_row)
                    kept = {name: column.slice(fresh) for name, column in batch.kept.items()}
                    yield TextBatch(
                        batch.texts.slice(fresh),
                        kept,
                        batch.first_row + fresh,
                        batch.position,
                        source,
                        tuple(bad[told:]),
                        batch.column,
                    )
                    done, told = stop, max(told, len(bad))
            if bad[told:]:
                yield left_out(source, options, done, bad[told:])
            return
        except pa.ArrowInvalid as error:
            if "straddling" not in str(error):
                raise _csv_error(error, source) from None
            if source.size is None or block >= _LONGEST_ROW:
                raise _too_long(block, done + 2, source) from None
            block = min(block * 8, _LONGEST_ROW)


def _too_long(size: int, row: int, source: Source) -> InputError:
    message = (
        f"a row is longer than {size:,} bytes: is a closing quote missing? If not, save the input"
        " as a file of JSON lines"
    )
    return InputError(message, source.name, row)


def _csv_pass(
    source: Source, options: ReadOptions, block: int, bad: list[SkippedRow]
) -> Iterator[TextBatch]:
    """All batches, with blocks of this size; ``bad`` is told which rows were left out."""
    delimiter = "\t" if source.format == "tsv" else ","
    skip = options.on_error == "skip"

    def leave_out(row: pyarrow.csv.InvalidRow) -> str:
        reason = f"{row.actual_columns} columns, where the header has {row.expected_columns}"
        bad.append(SkippedRow(row.number, f"cannot be read as {source.format}: {reason}"))
        return "skip"

    parse = pyarrow.csv.ParseOptions(
        delimiter=delimiter,
        newlines_in_values=True,
        invalid_row_handler=leave_out if skip else None,
    )
    with ByteStream(source) as stream:
        head = _Head(stream, block, delimiter)
        names = _csv_header(head, delimiter, source)
        if not names or not head.header:
            return  # an empty file, or a header without its line break and hence without rows
        guess = [names[0]] if len(names) == 1 else None
        wanted = options.wanted(
            source, names, lambda: guess or _csv_strings(head.data, names, parse)
        )
        convert = pyarrow.csv.ConvertOptions(
            include_columns=wanted,
            column_types=dict.fromkeys(wanted, pa.binary() if skip else pa.string()),
        )
        read = pyarrow.csv.ReadOptions(use_threads=False, block_size=max(block, len(head.data)))
        mark = secrets.token_hex(16)
        head.end_with(delimiter.join([mark] * len(names)).encode())
        with _read_by_arrow(
            head, {"read_options": read, "parse_options": parse, "convert_options": convert}
        ) as opened:
            row = 0
            for batch in _without_last_row(opened, mark, source):
                good = _decoded(batch, row, bad) if skip else batch
                yield from checked_batches(source, good, wanted, row, stream.position, options)
                row += good.num_rows


def _decoded(batch: pa.RecordBatch, row: int, bad: list[SkippedRow]) -> pa.RecordBatch:
    """The rows whose bytes are UTF-8, as strings."""
    strings = pa.schema([(name, pa.string()) for name in batch.schema.names])
    try:
        return batch.cast(strings)
    except pa.ArrowInvalid:
        values = [column.to_pylist() for column in batch.columns]
    good = []
    for number, cells in enumerate(zip(*values, strict=True)):
        try:
            good.append([cell.decode() for cell in cells])
        except UnicodeDecodeError as error:
            line = row + number + 2 + len(bad)  # behind the header and what was left out before
            bad.append(SkippedRow(line, f"not UTF-8: byte 0x{error.object[error.start]:02x}"))
    columns = list(zip(*good, strict=True)) or [()] * len(values)
    return pa.RecordBatch.from_arrays(
        [pa.array(list(one), pa.string()) for one in columns], schema=strings
    )


class _File:
    """What Arrow reads from: a file that tells when it is held no more."""

    closed = False

    def __init__(self, head: _Head) -> None:
        self.read, self.gone = head.read, threading.Event()

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        """Closing is the business of the ``ByteStream``."""

    def __del__(self) -> None:
        self.gone.set()


@contextlib.contextmanager
def _read_by_arrow(head: _Head, options: dict[str, Any]) -> Iterator[Iterator[pa.RecordBatch]]:
    """The batches. Arrow reads ahead in a thread of its own until its reader is gone; whoever
    leaves waits for that.

    The frames of an error would keep the reader. Reading then goes on, block after block into
    memory, and into the end of the process, where a thread that needs Python crashes it.
    """
    file = _File(head)
    gone = file.gone
    batches = _batches(file, options)
    del file
    try:
        yield batches
    finally:
        batches.close()
        gone.wait(_PATIENCE)


def _batches(file: _File, options: dict[str, Any]) -> Generator[pa.RecordBatch, None, None]:
    """What Arrow reads; nothing else holds its reader, nor the file once this has begun."""
    reader: Any = None
    try:
        reader = pyarrow.csv.open_csv(pa.PythonFile(file, mode="r"), **options)
        yield from reader
    finally:
        del file, reader


def _without_last_row(
    batches: Iterator[pa.RecordBatch], mark: str, source: Source
) -> Iterator[pa.RecordBatch]:
    """The batches without the row of marks; ``InputError`` if that was swallowed by a cell.

    Each is handed out once the next is there.
    """
    rows, before = 0, None
    for batch in batches:
        if not batch.num_rows:
            continue
        if before is not None:
            yield before
        before = batch
        rows += batch.num_rows
    last = None if before is None else before.column(0)[before.num_rows - 1].as_py()
    if before is None or last not in (mark, mark.encode()):
        if before is not None and before.num_rows > 1:
            yield before.slice(0, before.num_rows - 1)
        raise InputError(_OPEN_QUOTE, source.name, rows + 1)
    if before.num_rows > 1:
        yield before.slice(0, before.num_rows - 1)


def _csv_header(head: _Head, delimiter: str, source: Source) -> list[str]:
    """The names in the first line that is not blank; none for an empty file."""
    text = (
        head.data[: head.header or len(head.data)]
        .removeprefix(BOM)
        .decode("utf-8", "surrogateescape")
    )
    try:
        names = next(
            (row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row),
            [],
        )
    except csv.Error as error:
        raise InputError(
            f"the header cannot be read: {error}; the first line must name the columns",
            source.name,
            1,
        ) from None
    if names and not head.header and re.search(r"[\r\n]", text.strip("\r\n")):
        raise InputError(_OPEN_QUOTE, source.name, 1)
    for name in names:
        if not name.isascii() and any("\udc80" <= char <= "\udcff" for char in name):
            raise InputError(f"the header is not UTF-8; {_ENCODING}", source.name, 1)
    return names


def _csv_strings(head: bytes, names: Sequence[str], parse: Any) -> list[str]:
    """The columns that are neither numbers nor dates nor empty in the first block, by Arrow's
    guess.
    """
    cut = head.rfind(b"\n") + 1 or len(head)
    lenient = pyarrow.csv.ParseOptions(
        delimiter=parse.delimiter, newlines_in_values=True, invalid_row_handler=lambda row: "skip"
    )
    read = pyarrow.csv.ReadOptions(use_threads=False, block_size=cut + 1)
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(head[:cut]), read_options=read, parse_options=lenient
        )
    except (pa.ArrowException, UnicodeDecodeError):
        return list(names)
    return (
        [field.name for field in table.schema if is_bytes(field.type)]  # bytes: not UTF-8
        if table.num_rows
        else list(names)
    )


def _csv_error(error: pa.ArrowInvalid, source: Source) -> InputError:
    """The row number is that of records, the header being 1: the line, unless fields hold line
    breaks.
    """
    reason = str(error).splitlines()[0]
    row = re.search(r"Row #(\d+)", reason)
    way_out = (
        "mend that row: fields with the delimiter or a line break in them must be quoted, and a"
        f" quote that never closes swallows what follows, {SKIP_HINT}"
    )
    if "UTF8" in reason:
        way_out = _ENCODING
    return InputError(
        f"cannot be read as {source.format}: {reason}; {way_out}",
        source.name,
        int(row[1]) if row else None,
    )
