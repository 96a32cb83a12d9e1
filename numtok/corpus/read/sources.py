"""From what the user names to streams of bytes: ``find_inputs`` gives sources, ``ByteStream`` their decompressed bytes.

In: files, folders, globs or ``-``. Out: ``Source`` records in reading order, and a stream that knows how far into the
stored file it is. Every failure to open, read or decompress is an ``InputError`` that names the file.
"""

from __future__ import annotations

import contextlib
import glob
import lzma
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import pyarrow as pa

from numtok.errors import InputError

FORMATS = {
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "json": "json",
    "csv": "csv",
    "tsv": "tsv",
    "txt": "txt",
    "parquet": "parquet",
    "arrow": "arrow",
    "feather": "arrow",
    "ipc": "arrow",
}
COMPRESSIONS = {"gz": "gzip", "zst": "zstd", "bz2": "bz2", "xz": "xz"}
# A folder written by the `datasets` library has these beside its .arrow files; they hold no documents.
SIDECARS = frozenset({"dataset_info.json", "dataset_dict.json", "state.json"})


@dataclass(frozen=True)
class Source:
    """One input: ``path`` (``-`` is standard input), ``format``, ``compression`` or None, ``size`` in stored bytes or None."""

    path: str
    format: str
    compression: str | None = None
    size: int | None = None

    @property
    def name(self) -> str:
        """The path as shown in messages."""
        return "<stdin>" if self.path == "-" else self.path


def find_inputs(inputs: Sequence[str | Path], format: str | None = None) -> list[Source]:
    """The files behind ``inputs``, in the order given; folders and globs are sorted by path.

    Args:
        inputs: files; folders (read recursively: known suffixes only, names with a leading dot skipped, links to folders not
            followed); globs (``**`` works; hits that are folders are ignored); ``-`` for standard input.
        format: overrides the suffix of files, globs and standard input (JSON lines unless told); in a folder, it selects
            the files of that format.

    Raises:
        InputError: nothing is there, a format is neither known nor given, or the same file is there twice.
    """
    if format is not None and format not in FORMATS:
        raise InputError(f"unknown format {format!r}; known are {', '.join(FORMATS)}")
    asked = None if format is None else FORMATS[format]
    found: list[Source] = []
    for item in inputs:
        found.extend(_expand(str(item), asked))
    if not found:
        raise InputError("no input given; name files, folders, globs, or - for standard input")
    _refuse_twice(found)
    return found


def _refuse_twice(found: Sequence[Source]) -> None:
    """``InputError`` if a file would be read twice: by two names, through a link, or once plain and once compressed."""
    files: dict[object, Source] = {}
    stems: dict[str, Source] = {}
    for source in found:
        status = None if source.path == "-" else os.stat(source.path)
        before = files.setdefault((status.st_dev, status.st_ino) if status else "-", source)
        if before is not source:
            same = f"is given twice (the other time as {before.path})" if before.path != source.path else "is given twice"
            raise InputError(f"{same}, so that its documents would come twice; name it once", source.name)
        if source.path == "-":
            continue
        stem = os.path.realpath(os.path.splitext(source.path)[0] if source.compression else source.path)
        before = stems.setdefault(stem, source)
        if before is not source:
            message = f"seems to hold the same as {before.path}, compressed or not; name only one of the two, or rename one"
            raise InputError(message, source.name)


def _expand(item: str, asked: str | None) -> list[Source]:
    """The sources behind one argument; a file that really has ``*`` in its name wins over the glob."""
    if item == "-":
        return [Source("-", asked or "jsonl")]
    if os.path.isdir(item):
        return _folder(item, asked)
    if os.path.lexists(item):
        return [_file(item, asked)]
    if glob.has_magic(item):
        hits = [hit for hit in sorted(glob.glob(item, recursive=True)) if not os.path.isdir(hit)]
        if hits:
            return [_file(hit, asked) for hit in hits]
        raise InputError("no file matches this pattern; check it, and quote it so that the shell leaves it alone", item)
    raise InputError("no such file or folder; check the path", item)


def _folder(folder: str, asked: str | None) -> list[Source]:
    """All files of known (or the asked) format below ``folder``."""

    def refuse(error: OSError) -> None:
        raise InputError(f"the folder cannot be read: {error.strerror}; check its permissions", error.filename or folder)

    paths: list[Path] = []
    for root, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            known = suffixes(name)[0]
            hidden = name.startswith(".") or name in SIDECARS
            if known and not hidden and (asked in (None, known) or (asked, known) == ("jsonl", "json")):
                paths.append(Path(root, name))
    if not paths:
        wanted = asked or "/".join(f".{suffix}" for suffix in FORMATS)
        raise InputError(f"the folder holds no file of a known kind ({wanted}, plain or compressed); name files and --format", folder)
    return [_file(str(path), asked) for path in sorted(paths)]


def _file(path: str, asked: str | None) -> Source:
    """One file; its format is the asked one or that of its suffix."""
    known, compression = suffixes(path)
    if asked is None and known is None:
        raise InputError(f"unknown kind of file; rename it to one of .{', .'.join(FORMATS)}, or tell with --format", path)
    try:
        status = os.stat(path)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}; check the path", path) from None
    # A pipe or device (`<(command)`) has a size of 0 that means nothing.
    return Source(path, asked or known or "jsonl", compression, status.st_size if os.path.isfile(path) else None)


def suffixes(path: str) -> tuple[str | None, str | None]:
    """Format and compression by the end of the name: ``a.jsonl.gz`` is ``("jsonl", "gzip")``; None where unknown."""
    parts = os.path.basename(path).lower().split(".")[1:]
    compression = COMPRESSIONS.get(parts[-1]) if parts else None
    if compression:
        parts = parts[:-1]
    return (FORMATS.get(parts[-1]) if parts else None), compression


@contextlib.contextmanager
def named_errors(source: Source) -> Iterator[None]:
    """Turn what Arrow, the decompressors and the system raise into an ``InputError`` that names the file and the way out."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, lzma.LZMAError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0].rstrip(". ") if str(error) else type(error).__name__
        if isinstance(error, OSError) and error.strerror and error.errno:
            raise InputError(f"cannot be read: {error.strerror}; check the path, its permissions and the disk", source.name) from None
        kind = f"{source.compression}-compressed {source.format}" if source.compression else source.format
        way_out = "if it was cut short or damaged, fetch it again; if it is of another kind, name that (--format)"
        message = f"cannot be read as {kind}: {reason}; {way_out}"
        raise InputError(message, source.name) from None


class _Counted:
    """A readable file as pyarrow wants it, that counts the bytes it gave."""

    closed = False

    def __init__(self, raw: BinaryIO) -> None:
        self.raw, self.count = raw, 0

    def read(self, size: int = -1) -> bytes:
        data = self.raw.read(size)
        self.count += len(data)
        return data

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        """Closing is the business of ``ByteStream``."""

    def flush(self) -> None:
        """Nothing to flush."""


class ByteStream:
    """The decompressed bytes of a source: ``position`` counts the stored bytes consumed."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.raw: BinaryIO = sys.stdin.buffer if source.path == "-" else open(source.path, "rb")  # noqa: SIM115 (closed by __exit__)
        self.counted = _Counted(self.raw)
        self.stream: Any = self.counted
        if source.compression == "xz":
            self.stream = lzma.LZMAFile(self.counted)  # type: ignore[arg-type]  # noqa: SIM115
        elif source.compression:
            self.stream = pa.CompressedInputStream(pa.PythonFile(self.counted, mode="r"), source.compression)

    @property
    def position(self) -> int:
        """Bytes of the stored file that were read so far."""
        return self.counted.count

    def read(self, size: int = -1) -> bytes:
        """The next ``size`` bytes; fewer only at the end."""
        data: bytes = self.stream.read(size)
        if len(data) in (0, size):
            return data
        pieces, missing = [data], size - len(data)
        while missing > 0 and (data := self.stream.read(missing)):
            pieces.append(data)
            missing -= len(data)
        return b"".join(pieces)

    def __enter__(self) -> ByteStream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.source.path != "-":
            self.raw.close()


@contextlib.contextmanager
def plain_path(source: Source) -> Iterator[str]:
    """A path with the decompressed bytes, for formats that need to seek: the file itself, or a temporary copy that is removed."""
    if source.path != "-" and source.compression is None and source.size is not None:
        yield source.path
        return
    with tempfile.NamedTemporaryFile(prefix="numtok-") as copy:
        with ByteStream(source) as stream:
            shutil.copyfileobj(stream, copy, 8 << 20)
        copy.flush()
        yield copy.name
