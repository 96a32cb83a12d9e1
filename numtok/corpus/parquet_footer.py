"""A checksum for the footer of a Parquet file, which the format has for pages only: a flipped bit
there is another name, type or number of rows.

In: a footer that is to be written, or a whole file. Out: twenty-one bytes right before the footer,
    where every reader of Parquet skips what it does not
know of: ``numtok.crc32:`` and eight hexadecimal digits, the CRC-32 of the footer, its length and
    the ending ``PAR1``. ``FORMAT.md`` is the normative text.
"""

from __future__ import annotations

import hashlib
import os
import zlib

from numtok import locations
from numtok.errors import InputError

MARK = b"numtok.crc32:"
_DIGITS = 8
_TAIL = 8  # the footer's length, and PAR1


def sealed(footer: bytes) -> bytes:
    """The end of a file with this footer: its checksum, itself, its length and the ending."""
    end = footer + len(footer).to_bytes(4, "little") + b"PAR1"
    return MARK + b"%08x" % zlib.crc32(end) + end


def check(path: str, name: str | None = None) -> None:
    """Refuse a file whose footer is not the one that was written; files without the mark, which
    others wrote, pass.
    """
    start, footer = _footer(path)
    place = start - len(MARK) - _DIGITS
    if place < 0:
        return
    with locations.open_file(path, locations.SMALL_BLOCK) as file:
        file.seek(place)
        mark = file.read(len(MARK) + _DIGITS)
    if mark.startswith(MARK) and mark[len(MARK) :] != b"%08x" % zlib.crc32(footer):
        raise InputError(
            "the file is damaged: its footer does not have the checksum it was written with; fetch"
            " it again, or make it anew",
            name or path,
        )


def identity(path: str) -> str:
    """What stands for all that a file holds: a digest of its footer, in which are places, sizes and
    types, of its own size, and of its time of change.
    """
    found = os.stat(path)
    return hashlib.sha256(
        f"{found.st_size} {found.st_mtime_ns}\n".encode() + _footer(path)[1]
    ).hexdigest()


def _footer(path: str) -> tuple[int, bytes]:
    """(where it begins, the footer up to the end of the file); (0, nothing) if there is none."""
    with locations.open_file(path, locations.SMALL_BLOCK) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL))
        length = int.from_bytes(file.read(4), "little") + _TAIL
        if length > size:
            return 0, b""
        file.seek(size - length)
        return size - length, file.read()
