"""Files with columns: CSV and TSV, Parquet, Arrow IPC (file and stream).

In: a ``Source``. Out: ``TextBatch`` es; only the text column and the kept ones are read, a piece at a time.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet as pq

from numtok.corpus.batches import ReadOptions, TextBatch, as_kept, as_text, cut_batches, is_text, pick_text_column
from numtok.corpus.lines import BOM, refuse_utf16
from numtok.corpus.sources import ByteStream, Source, plain_path
from numtok.errors import InputError

_MOST_ROWS = 1 << 14  # bounds a Parquet batch whose dictionary makes it look small
_LARGEST_CSV_BLOCK = 1 << 30
_LARGEST_HEADER = 1 << 20
_PAGE_BUFFER = 1 << 20


def _batches(source: Source, batch: pa.RecordBatch, names: list[str], row: int, position: int, options: ReadOptions) -> Iterator[TextBatch]:
    """One record batch, checked and cut: its columns are ``names``, the text first."""
    columns = dict(zip(names, batch.columns, strict=True))
    kept = {name: as_kept(columns[name], name, source, options.kept_types.get(name)) for name in options.keep_columns}
    yield from cut_batches(TextBatch(as_text(columns[names[0]], names[0], source), kept, row, position, source), options.batch_bytes)


# CSV ------------------------------------------------------------------------------------------------------------------


class _Replayed:
    """A ``ByteStream`` whose first bytes, read ahead to see the header, come again."""

    closed = False

    def __init__(self, head: bytes, stream: ByteStream) -> None:
        self.head, self.stream = head, stream

    def read(self, size: int = -1) -> bytes:
        if not self.head:
            return self.stream.read(size)
        piece, self.head = self.head[:size], self.head[size:]
        return piece

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        """Closing is the business of the ``ByteStream``."""


def read_csv(source: Source, options: ReadOptions) -> Iterator[TextBatch]:
    """The documents of a CSV or TSV file with a header line. All columns are strings as written (``007``, ``NA``), so none is null.

    Fields may be quoted and then hold line breaks. A row longer than Arrow's block makes it start again with larger blocks.
    """
    done, block = 0, options.batch_bytes
    while True:
        try:
            for batch in _csv_pass(source, options, block):
                if batch.first_row >= done:
                    done = batch.first_row + len(batch.texts)
                    yield batch
                elif batch.first_row + len(batch.texts) > done:
                    fresh = done - batch.first_row
                    kept = {name: column.slice(fresh) for name, column in batch.kept.items()}
                    yield TextBatch(batch.texts.slice(fresh), kept, done, batch.position, source)
                    done = batch.first_row + len(batch.texts)
            return
        except pa.ArrowInvalid as error:
            if "straddling" not in str(error):
                raise _csv_error(error, source) from None
            if source.size is None or block >= _LARGEST_CSV_BLOCK:
                message = f"a row is longer than {block} bytes: is a closing quote missing? If not, save the input as a file of JSON lines"
                raise InputError(message, source.name) from None
            block = min(block * 8, _LARGEST_CSV_BLOCK)


def _csv_pass(source: Source, options: ReadOptions, block: int) -> Iterator[TextBatch]:
    """All batches, with blocks of this size."""
    delimiter = "\t" if source.format == "tsv" else ","
    parse = pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    with ByteStream(source) as stream:
        head = stream.read(block)
        names = _csv_header(head, delimiter, source)
        if not names or not (b"\n" in head or b"\r" in head):
            return  # an empty file, or a header without its line break and hence without rows
        guess = [names[0]] if len(names) == 1 else None
        text = pick_text_column(source, options.text_column, names, guess or _csv_strings(head, names, parse), options.keep_columns)
        wanted = list(dict.fromkeys([text, *options.keep_columns]))
        convert = pyarrow.csv.ConvertOptions(include_columns=wanted, column_types=dict.fromkeys(wanted, pa.string()))
        read = pyarrow.csv.ReadOptions(use_threads=False, block_size=block)
        replayed = pa.PythonFile(_Replayed(head, stream), mode="r")
        row = 0
        for batch in pyarrow.csv.open_csv(replayed, read_options=read, parse_options=parse, convert_options=convert):
            yield from _batches(source, batch, wanted, row, stream.position, options)
            row += batch.num_rows


def _csv_header(head: bytes, delimiter: str, source: Source) -> list[str]:
    """The names in the first line that is not blank; none for an empty file."""
    refuse_utf16(head, source)
    text = head[:_LARGEST_HEADER].removeprefix(BOM).decode("utf-8", "surrogateescape")
    try:
        names = next((row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row), [])
    except csv.Error as error:
        raise InputError(f"the header cannot be read: {error}; the first line must name the columns", source.name, 1) from None
    for name in names:
        if not name.isascii() and any("\udc80" <= char <= "\udcff" for char in name):
            raise InputError('the header is not UTF-8; convert the file with "iconv -f ENCODING -t UTF-8"', source.name, 1)
    return names


def _csv_strings(head: bytes, names: Sequence[str], parse: Any) -> list[str]:
    """The columns that are neither numbers nor dates nor empty in the first block, by Arrow's guess."""
    cut = head.rfind(b"\n") + 1 or len(head)
    lenient = pyarrow.csv.ParseOptions(delimiter=parse.delimiter, newlines_in_values=True, invalid_row_handler=lambda row: "skip")
    read = pyarrow.csv.ReadOptions(use_threads=False, block_size=cut + 1)
    try:
        table = pyarrow.csv.read_csv(pa.BufferReader(head[:cut]), read_options=read, parse_options=lenient)
    except (pa.ArrowException, UnicodeDecodeError):
        return list(names)
    return [field.name for field in table.schema if is_text(field.type)]


def _csv_error(error: pa.ArrowInvalid, source: Source) -> InputError:
    """The row number is that of records, the header being 1: the line, unless fields hold line breaks."""
    reason = str(error).splitlines()[0]
    row = re.search(r"Row #(\d+)", reason)
    way_out = "mend that row; fields with the delimiter or a line break in them must be quoted"
    if "UTF8" in reason:
        way_out = 'convert the file with "iconv -f ENCODING -t UTF-8"'
    return InputError(f"cannot be read as {source.format}: {reason}; {way_out}", source.name, int(row[1]) if row else None)


# Parquet --------------------------------------------------------------------------------------------------------------


def read_parquet(source: Source, options: ReadOptions) -> Iterator[TextBatch]:
    """The documents of a Parquet file, page by page."""
    streaming = {"pre_buffer": False, "buffer_size": _PAGE_BUFFER, "page_checksum_verification": True}
    with plain_path(source) as path, pq.ParquetFile(path, **streaming) as file:
        schema, total = file.schema_arrow, file.metadata.num_rows
        text = pick_text_column(source, options.text_column, schema.names, _strings(schema), options.keep_columns)
        wanted = list(dict.fromkeys([text, *options.keep_columns]))
        rows = _rows_per_batch(file.metadata, text, options.batch_bytes)
        first_row = 0
        for batch in file.iter_batches(batch_size=rows, columns=wanted, use_threads=False):
            stop = first_row + batch.num_rows
            ordered = batch.select(wanted)  # Parquet gives the columns in the order of the file
            yield from _batches(source, ordered, wanted, first_row, (source.size or 0) * stop // total, options)
            first_row = stop


def _strings(schema: pa.Schema) -> list[str]:
    return [field.name for field in schema if is_text(field.type)]


def _rows_per_batch(metadata: Any, text: str, batch_bytes: int) -> int:
    """How many rows hold about ``batch_bytes`` of text, by the file's own account."""
    stored, rows = 0, int(metadata.num_rows)
    for group in range(metadata.num_row_groups):
        chunks = (metadata.row_group(group).column(index) for index in range(metadata.num_columns))
        stored += sum(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema == text)
    return max(1, min(_MOST_ROWS, rows * batch_bytes // max(stored, 1)))


# Arrow IPC ------------------------------------------------------------------------------------------------------------


def read_arrow(source: Source, options: ReadOptions) -> Iterator[TextBatch]:
    """The documents of an Arrow IPC file or stream, memory-mapped: uncompressed texts are not copied."""
    with plain_path(source) as path, pa.memory_map(path) as mapped:
        is_file = mapped.read(6) == b"ARROW1"
        mapped.seek(0)
        opened = pa.ipc.open_file(mapped) if is_file else pa.ipc.open_stream(mapped)
        schema = opened.schema
        text = pick_text_column(source, options.text_column, schema.names, _strings(schema), options.keep_columns)
        wanted = list(dict.fromkeys([text, *options.keep_columns]))
        # Columns left out are neither read nor decompressed.
        projection = pa.ipc.IpcReadOptions(included_fields=[schema.names.index(name) for name in wanted], use_threads=False)
        mapped.seek(0)
        opened = pa.ipc.open_file(mapped, options=projection) if is_file else pa.ipc.open_stream(mapped, options=projection)
        batches = (opened.get_batch(index) for index in range(opened.num_record_batches)) if is_file else iter(opened)
        first_row = 0
        for number, batch in enumerate(batches, 1):
            done, total = (number, opened.num_record_batches) if is_file else (mapped.tell(), mapped.size())
            yield from _batches(source, batch.select(wanted), wanted, first_row, (source.size or 0) * done // total, options)
            first_row += batch.num_rows
