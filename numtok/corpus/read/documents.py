"""Text documents out of files, in bounded memory: ``TextBatch`` es, each some rows of one file or of
a part of one; and the files that the user names, each with the format and the compression of its
name. ``INPUT_FORMATS`` is the table of input formats: what a file's name must end in, and what
reads it. A new format is a reader beside the others and a line there.

Each may end in .gz, .zst, .bz2 or .xz as well. Parquet and Arrow must be seekable, so from standard
input or under such a suffix they are first unpacked into a temporary file.
"""

from __future__ import annotations

import contextlib
import glob
import importlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import pyarrow as pa

from numtok import storage
from numtok.corpus.jobs.folder import MANIFEST, OWN, PLAN, shards_of
from numtok.corpus.read.batches import ReadOptions, SkippedRow, TextBatch, skipped_batch
from numtok.corpus.read.sources import COMPRESSIONS, Source, named_errors
from numtok.corpus.read.template import ROW, Template
from numtok.errors import InputError, MissingInputError, NumtokError
from numtok.numbers.grammar import Grammar
from numtok.numbers.scan import scan
from numtok.options import shown_option
from numtok.storage import is_url

_CHUNK = 1 << 20
_BLANK = b" \t\r"
_DEFAULTS = ReadOptions()
_TABLES = ("csv", "tsv", "parquet", "arrow", "jsonl")
_SAMPLE_BYTES = 1 << 20  # of a table

Reader = Callable[[Source, ReadOptions], Iterator[TextBatch]]


class Format(NamedTuple):
    """An input format: the suffixes of its files, the reader of one, and where such a file can be
    cut into parts if it is not compressed.
    """

    suffixes: tuple[str, ...]
    read: Reader
    cut: Literal["lines", "row groups"] | None = None


def _in(module: str, name: str) -> Reader:
    """Return a reader, which is imported when it first reads: each takes other parts of Arrow."""

    def read(source: Source, options: ReadOptions) -> Iterator[TextBatch]:
        reader: Reader = getattr(importlib.import_module(f"numtok.corpus.read.{module}"), name)
        return reader(source, options)

    return read


INPUT_FORMATS: dict[str, Format] = {
    # the name of a format is the first of its suffixes
    "jsonl": Format(("jsonl", "ndjson"), _in("jsonl", "read_json_lines"), "lines"),
    "json": Format(("json",), _in("jsonl", "read_json")),
    "csv": Format(("csv",), _in("csv_table", "read_csv")),
    "tsv": Format(("tsv",), _in("csv_table", "read_csv")),
    "txt": Format(("txt",), _in("lines", "read_text"), "lines"),
    "parquet": Format(("parquet",), _in("tables", "read_parquet"), "row groups"),
    "arrow": Format(("arrow", "feather", "ipc"), _in("tables", "read_arrow")),
}
SUFFIXES = {suffix: name for name, format in INPUT_FORMATS.items() for suffix in format.suffixes}


def check_formats(sources: Sequence[Source], text_unit: str, delimiter: str | None) -> None:
    """Refuse ``text_unit="file"`` without a text file, and ``delimiter`` without CSV or TSV."""
    if delimiter is not None and not any(one.format in ("csv", "tsv") for one in sources):
        raise InputError(
            f"{shown_option('delimiter', delimiter)} is for CSV and TSV files, and there is none;"
            " leave it out"
        )
    if text_unit == "file" and not any(source.format == "txt" for source in sources):
        raise InputError(
            "text_unit='file' (--text-unit file) is for .txt files, and there is none; leave it out"
        )


def read_batches(source: Source, options: ReadOptions = _DEFAULTS) -> Iterator[TextBatch]:
    """Yield the documents of one source, in order; InputError names the file, line and column. No
    text is ever changed to make it fit. A file that is not there, or has no such column, raises
    even where ``on_error`` is ``"skip"``.
    """
    rows = 0
    try:
        with named_errors(source):
            for batch in INPUT_FORMATS[source.format].read(source, options):
                rows = batch.first_row + len(batch.texts) + batch.skipped
                yield batch
    except InputError as error:
        if options.on_error == "raise" or isinstance(error, MissingInputError):
            if error.line is not None and source.start:  # of a part: the line of the file
                error.line += lines_before(source)
            if error.row is not None:
                error.row += rows_before(source)
            raise
        reason = f"all from here on is left out: {error.message}"
        yield skipped_batch(source, options, rows, [SkippedRow(error.line, reason)])


def line_start(path: str, position: int, size: int) -> int:
    """Return where the next line begins from ``position`` on; ``size``, that of the file, if none
    does.
    """
    if position == 0:
        return 0
    at = position - 1
    with storage.open_file(path, _CHUNK) as file:
        file.seek(at)
        while at < size and (chunk := file.read(_CHUNK)):
            if (line_break := chunk.find(b"\n")) >= 0:
                return min(at + line_break + 1, size)
            at += len(chunk)
    return size


def group_sizes(source: Source) -> list[int]:
    """Return the bytes of each row group, as stored."""
    from numtok.corpus.read.tables import ParquetFile  # only what reads Parquet loads it

    with named_errors(source), ParquetFile(source.path) as file:
        groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
        return [
            sum(group.column(column).total_compressed_size for column in range(group.num_columns))
            for group in groups
        ]


def rows_before(source: Source) -> int:
    """Count the rows of the file in front of the part. Blank lines are no rows of JSON lines."""
    if not source.start:
        return 0
    if INPUT_FORMATS[source.format].cut == "row groups":
        from numtok.corpus.read.tables import ParquetFile

        with ParquetFile(source.path) as file:
            return sum(file.chunk_rows[: source.start])
    rows, rest = 0, b""
    for chunk in _before(source):
        *lines, rest = (rest + chunk).split(b"\n")
        is_text = source.format == "txt"
        rows += len(lines) if is_text else sum(1 for line in lines if line.strip(_BLANK))
    return rows


def lines_before(source: Source) -> int:
    """Return the lines of the file in front of the part; of Parquet, the rows."""
    if not source.start or INPUT_FORMATS[source.format].cut != "lines":
        return rows_before(source)
    return sum(chunk.count(b"\n") for chunk in _before(source))


def _before(source: Source) -> Iterator[bytes]:
    """Yield the bytes of the file in front of the part."""
    left = source.start
    with storage.open_file(source.path) as file:
        while left and (chunk := file.read(min(_CHUNK, left))):
            left -= len(chunk)
            yield chunk


def columns_with_numbers(
    source: Source, grammar: Grammar, delimiter: str | None = None
) -> tuple[str, ...]:
    """Return the columns in which the first rows hold numbers; none for a pipe, what is no table, or
    a table with columns of lists or objects.
    """
    if source.size is None or source.format not in _TABLES:
        return ()
    with contextlib.suppress(NumtokError, pa.ArrowException, OSError):
        options = ReadOptions(None, (), _SAMPLE_BYTES, template=Template(ROW), delimiter=delimiter)
        batch = next(INPUT_FORMATS[source.format].read(source, options), None)
        if batch is not None and batch.cells is not None:
            numbers = scan(batch.texts, grammar)
            columns = batch.cells.column_of(numbers.document, numbers.stop)
            return tuple(batch.cells.counted(columns))
    return ()


# A folder written by the `datasets` library has these beside its .arrow files; they hold no
# documents.
SIDECARS = frozenset({"dataset_info.json", "dataset_dict.json", "state.json"})


def find_inputs(
    inputs: str | Path | Sequence[str | Path], format: str | None = None
) -> list[Source]:
    """Return the files of ``inputs``, in the order given; those of folders and globs by path.
    InputError if there are none, or one is there twice.

    Folders are read recursively: known suffixes only, names with a leading dot skipped, links to
    folders not followed; of the folder of a job, the shards. ``format`` overrides the suffix of
    files; in a folder, it selects those of that format.
    """
    if format is not None and format not in SUFFIXES:
        raise InputError(f"unknown format {format!r}; known are {', '.join(SUFFIXES)}")
    asked = None if format is None else SUFFIXES[format]
    items = [inputs] if isinstance(inputs, str | os.PathLike) else inputs
    sources = [source for item in items for source in _expand(str(item), asked)]
    if not sources:
        raise InputError("no input given; name files, folders, globs, or - for standard input")
    _refuse_twice(sources)
    return sources


def _refuse_twice(sources: Sequence[Source]) -> None:
    """Raise ``InputError`` if a file would be read twice: by a link, or plain and compressed."""
    files: dict[object, Source] = {}
    for source in sources:
        path, in_store = source.path, source.path == "-" or is_url(source.path)
        status = None if in_store else os.stat(path)
        before = files.setdefault((status.st_dev, status.st_ino) if status else path, source)
        if before is not source:
            other = f" (the other time as {before.path})" if before.path != path else ""
            raise InputError(
                f"is given twice{other}, so that its documents would come twice; name it once",
                source.name,
            )
        stem = os.path.splitext(path)[0] if source.compression else path
        before = files.setdefault(("plain", stem if in_store else os.path.realpath(stem)), source)
        if before is not source:
            raise InputError(
                f"seems to hold the same as {before.path}, compressed or not; name only one of the"
                " two, or rename one",
                source.name,
            )


def _expand(item: str, asked: str | None) -> list[Source]:
    """Return the sources of one argument; a file that really has ``*`` in its name wins over the
    glob.
    """
    if item == "-":
        return [Source("-", asked or "jsonl")]
    status = storage.status(item)
    if status is not None and status.is_folder:
        return _folder(item.rstrip("/") if is_url(item) else storage.normalized(item), asked)
    if status is not None or os.path.lexists(item):
        return [_file(item, asked, status and status.size)]
    if glob.has_magic(item):
        if is_url(item):
            hits = storage.files_below(item, pattern=True)
        else:
            names = sorted(glob.glob(item, recursive=True))
            hits = {name: None for name in names if not os.path.isdir(name)}
        if hits:
            return [_file(hit, asked, size) for hit, size in hits.items()]
        raise InputError(
            "no file matches this pattern; check it, and quote it so that the shell leaves it"
            " alone",
            item,
        )
    raise InputError("no such file or folder; check the path or URL", item)


def _folder(folder: str, asked: str | None) -> list[Source]:
    """Return all files of known (or the asked) format below ``folder``; of a job, its shards alone."""
    sizes = storage.files_below(folder) if is_url(folder) else dict.fromkeys(_walk(folder))
    of_a_job = (file for file in sizes if file.endswith((f"/{PLAN}", f"/{MANIFEST}")))
    jobs = tuple({file.rpartition(f"/{OWN}/")[0] for file in of_a_job})
    shards = [file.replace(os.sep, "/") for job in jobs for file in shards_of(job) or ()]
    if lost := [shard for shard in shards if shard not in sizes]:
        raise InputError("is a shard that is not there any more; encode it again", lost[0])
    beside = tuple(f"{job}/" for job in jobs)  # whatever else lies there is not read
    data = [
        file
        for file in sizes
        if not file.startswith(beside) and _is_data(file[len(folder) :].split("/"), asked)
    ]
    if not data and not shards:
        wanted = asked or "/".join(f".{suffix}" for suffix in SUFFIXES)
        raise InputError(
            f"the folder holds no file of a known kind ({wanted}, plain or compressed); name files"
            " and input_format=... (--format)",
            folder,
        )
    ordered = sorted([*data, *shards], key=lambda file: file.split("/"))
    sources = [_file(file, asked, sizes[file]) for file in ordered]
    for source in sources:
        if source.size is None and not is_url(folder):  # it may wait for ever
            raise InputError("is a pipe or a device; take it out of the folder", source.path)
    return sources


def _walk(folder: str) -> Iterator[str]:
    """Yield the files below a folder of this machine, but for those in hidden folders; with slashes,
    also on Windows.
    """

    def refuse(error: OSError) -> None:
        raise InputError(
            f"the folder cannot be read: {error.strerror}; check its permissions",
            error.filename or folder,
        )

    for root, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (f"{root}/{name}".replace(os.sep, "/") for name in files)


def _is_data(inner: Sequence[str], asked: str | None) -> bool:
    """Whether a file, by its path within a folder, is one to be read."""
    hidden = any(part.startswith(".") or part == OWN for part in inner)
    file_format = None if hidden or inner[-1] in SIDECARS else suffixes(inner[-1])[0]
    return file_format is not None and (
        asked in (None, file_format) or (asked, file_format) == ("jsonl", "json")
    )


def _file(path: str, asked: str | None, size: int | None) -> Source:
    """Return one file; its format is the asked one or that of its suffix."""
    if not is_url(path):
        path = str(Path(path))
        try:
            status = os.stat(path)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}; check the path", path) from None
        # A pipe or device (`<(command)`) has a size of 0 that means nothing.
        size = status.st_size if stat.S_ISREG(status.st_mode) else None
    file_format, compression = suffixes(path)
    if asked is None and file_format is None:
        raise InputError(
            "unknown kind of file; unpack it if it is an archive, rename it to one of"
            f" .{', .'.join(SUFFIXES)}, or tell with input_format=... (--format)",
            path,
        )
    return Source(path, asked or file_format or "jsonl", compression, size)


def suffixes(path: str) -> tuple[str | None, str | None]:
    """Return (format, compression), each None if unknown: ``a.jsonl.gz`` is ``("jsonl", "gzip")``."""
    if path.startswith(("http://", "https://")):
        path = path.partition("?")[0]
    parts = os.path.basename(path).lower().split(".")[1:]
    compression = COMPRESSIONS.get(parts[-1]) if parts else None
    if compression:
        parts = parts[:-1]
    return (SUFFIXES.get(parts[-1]) if parts else None), compression
