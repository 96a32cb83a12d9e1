"""Inputs and their bytes: ``Source`` describes an input, ``ByteStream`` returns its decompressed
bytes. Every failure to open, read or decompress is an ``InputError`` that names the file.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa

from numtok import storage
from numtok.errors import InputError, MissingInputError

COMPRESSIONS = {"gz": "gzip", "zst": "zstd", "bz2": "bz2", "xz": "xz"}
_DAMAGE = (zlib.error, lzma.LZMAError)
_INPUT = 1 << 18  # stored bytes that are given to a decompressor at once


@dataclass(frozen=True)
class Source:
    """An input, or a part of one."""

    path: str  # or a URL; ``-`` is standard input
    format: str
    compression: str | None = None
    size: int | None = None  # in stored bytes; None where it is not known before the end
    start: int = 0  # of a part: byte of a file of lines, row group of a Parquet file
    stop: int | None = None  # the end of the file

    @property
    def name(self) -> str:
        """The path as shown in messages."""
        return "<stdin>" if self.path == "-" else self.path


def identify(path: str) -> tuple[int, str]:
    """Return (size, a tag that changes with the content) of an input; MissingInputError without
    one.
    """
    status = storage.status(path)
    if status is None:
        raise MissingInputError("is not there any more; check the path", path)
    return status.size or 0, status.tag


@contextlib.contextmanager
def named_errors(source: Source) -> Iterator[None]:
    """Give what Arrow, the decompressors and the system raise, as ``InputError`` for the file."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, *_DAMAGE, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0].rstrip(". ") if str(error) else type(error).__name__
        if isinstance(error, OSError) and error.strerror and error.errno:
            raise MissingInputError(
                f"cannot be read: {error.strerror}; check the path, its permissions and the disk",
                source.name,
            ) from None
        kind = f"{source.compression}-compressed " if source.compression else ""
        message = (
            f"cannot be read as {kind}{source.format}: {reason}; if it was cut short or damaged,"
            " fetch it again; if it is of another kind, name that by input_format=... (--format)"
        )
        raise InputError(message, source.name) from None


class _Counted(io.RawIOBase):
    """A readable file that counts the bytes it gave; closing it is the business of ``ByteStream``."""

    def __init__(self, raw: BinaryIO, limit: int | None) -> None:
        self.count, self.limit = 0, limit
        # of a pipe what is there, so that an interrupt is seen between two reads that block
        self._read = sys.stdin.buffer.read1 if raw is sys.stdin.buffer else raw.read  # type: ignore[attr-defined]

    def read(self, size: int = -1) -> bytes:
        if self.limit is not None:
            left = self.limit - self.count
            size = left if size < 0 else min(size, left)
        data: bytes = self._read(size)
        self.count += len(data)
        return data

    def readable(self) -> bool:
        return True


# The decompressors of one member of a file. The file objects of the standard library take whatever
# cannot be read behind the first member for the end of the file; that of gzip does not.
_MEMBERS: dict[str, Callable[[], Any]] = {
    "bz2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ),
}


class _Members:
    """The decompressed bytes of all members of a file. Zero bytes behind a member are padding;
    whatever else stands there must be another member.
    """

    def __init__(self, stored: _Counted, compression: str) -> None:
        self._stored, self._start = stored, _MEMBERS[compression]
        self._padding_unit = 4 if compression == "xz" else 1  # bytes
        self._member = self._start()

    def read(self, size: int) -> bytes:
        """Return at most ``size`` bytes, and none only at the end."""
        while True:
            if self._member.eof:
                following = self._after_padding(self._member.unused_data)
                if not following:
                    return b""
                self._member = self._start()
            else:
                following = self._stored.read(_INPUT) if self._member.needs_input else b""
            needed_input = self._member.needs_input
            data: bytes = self._member.decompress(following, size)
            if data:
                return data
            if needed_input and not following and not self._member.eof:
                raise EOFError("the compressed data ends in the middle")

    def _after_padding(self, data: bytes) -> bytes:
        """Return what follows the zero bytes behind a member; nothing at the end of the file."""
        padding = 0
        while data or (data := self._stored.read(_INPUT)):
            following = data.lstrip(b"\0")
            padding += len(data) - len(following)
            if data := following:
                break
        if padding % self._padding_unit:
            raise EOFError("the padding behind the compressed data is no multiple of four bytes")
        return data


class ByteStream:
    """The decompressed bytes of a source; ``position`` counts the stored ones consumed."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.raw: BinaryIO = (
            sys.stdin.buffer if source.path == "-" else storage.open_file(source.path)
        )
        if source.start:
            self.raw.seek(source.start)
        limit = None if source.stop is None else source.stop - source.start
        self.counted = _Counted(self.raw, limit)
        self.stream: Any = self.counted
        if source.compression == "gzip":
            self.stream = gzip.GzipFile(fileobj=self.counted)
        elif source.compression in _MEMBERS:
            self.stream = _Members(self.counted, source.compression)
        elif source.compression:
            self.stream = pa.CompressedInputStream(
                pa.PythonFile(self.counted, mode="r"), source.compression
            )

    @property
    def position(self) -> int:
        """Bytes of the stored file that were read so far."""
        return self.counted.count

    def read(self, size: int) -> bytes:
        """Return the next ``size`` bytes; fewer only at the end."""
        data: bytes = self.stream.read(size)
        if not data and self.source.compression and not self.position:
            raise EOFError("the file is empty, which no compressed file is")
        if len(data) in (0, size):
            return data
        pieces, missing = [data], size - len(data)
        while missing > 0 and (data := self.stream.read(missing)):
            pieces.append(data)
            missing -= len(data)
        return b"".join(pieces)

    def __enter__(self) -> ByteStream:
        return self

    def __exit__(self, *_: object) -> None:
        if self.source.path != "-":
            self.raw.close()


@contextlib.contextmanager
def plain_path(source: Source) -> Iterator[str]:
    """Give a path with the decompressed bytes: the file itself, or a temporary copy."""
    if source.path != "-" and source.compression is None and source.size is not None:
        yield source.path
        return
    # in a folder: Windows opens a file that removes itself only once
    with tempfile.TemporaryDirectory(prefix="numtok-") as folder:
        path = os.path.join(folder, "decompressed")
        with open(path, "wb") as copy, ByteStream(source) as stream:
            while data := stream.read(8 << 20):
                copy.write(data)
        yield path
