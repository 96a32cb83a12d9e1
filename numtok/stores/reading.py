"""Objects opened for reading, by ranges.

In: a URL. Out: what Python and Arrow take for a file.
"""

from __future__ import annotations

import io
from typing import Any

from numtok.stores.ask import changed, scheme_of, system_of, tried
from numtok.stores.objects import Status, status_of

BLOCK, BLOCKS = (
    8 << 20,
    4,
)  # bytes that are read at once, and how often so many are kept of an open object


class RemoteFile(io.RawIOBase):
    """An object opened for reading, by ranges. A request that fails is made again, and only for
    what the object was when it was opened.

    Args:
        url: of the object.
        block: bytes that are read at once; ``BLOCK`` if not given.

    Raises:
        InputError: naming the URL; also while reading.
    """

    def __init__(self, url: str, block: int | None = None) -> None:
        self._url, self._block, self._place = url, block or BLOCK, 0
        self._file: Any = None
        self._opened: Status | None = None
        tried(url, self._open)

    def _open(self) -> None:
        system, path = system_of(self._url)
        if scheme_of(self._url) == "memory":  # where all that open an object share one place in it
            self._file, found = io.BytesIO(system.cat_file(path)), status_of(system.info(path))
        else:
            how = {"cache_type": "blockcache", "cache_options": {"maxblocks": BLOCKS}}
            self._file = system.open(path, "rb", block_size=self._block, **how)
            found = status_of(getattr(self._file, "details", None) or {})
        if self._opened not in (None, found):
            raise changed(self._url)
        self._opened = found

    @property
    def size(self) -> int | None:
        """In bytes, if the store knows."""
        return self._opened.size if self._opened else None

    def read(self, size: int | None = -1) -> bytes:
        """So many bytes, fewer only at the end; all of the rest without a number."""
        if size is None or size < 0:
            return self.readall()
        return tried(self._url, lambda: self._read(size))

    def _read(self, size: int) -> bytes:
        try:
            if self._file is None:
                self._open()
            self._file.seek(self._place)
            data = bytes(self._file.read(size))
            if self.size is not None and len(data) < min(size, self.size - self._place):
                raise ConnectionError("fewer bytes came than were asked for")
        except BaseException:
            self._file = None  # it may have kept what it should not
            raise
        self._place += len(data)
        return data

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self.size is not None

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._place = (
            offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self.size or 0}[whence]
        )
        return self._place

    def tell(self) -> int:
        return self._place
