"""Where files lie: a path of this machine, or the URL of an object store. What reads and writes
takes either, and does not ask which it is; :mod:`numtok.files` writes to both.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from numtok import stores
from numtok.stores import Status, is_url

__all__ = ["is_url"]

Item = TypeVar("Item")
Answer = TypeVar("Answer")

AT_ONCE = 16  # questions to a store
SMALL_BLOCK = 64 << 10  # for the end of an object, of which little is wanted


def place(given: str | Path) -> str | Path:
    """A URL as it is, anything else as a path."""
    return str(given) if is_url(given) else Path(given)


def join(folder: str | Path, name: str) -> str:
    """A place in a folder."""
    return f"{str(folder).rstrip('/')}/{name}" if is_url(folder) else os.path.join(folder, name)


def open_file(path: str | Path, block: int | None = None) -> BinaryIO:
    """Opened for reading; ``block`` bytes of an object are read at once, if that is given."""
    if is_url(path):
        return stores.RemoteFile(str(path), block)  # type: ignore[return-value]  # a raw file is enough
    return open(path, "rb")


def for_arrow(path: str | Path, block: int | None = None) -> Any:
    """What Arrow opens: the path, or an open object."""
    if not is_url(path):
        return path
    import pyarrow as pa

    return pa.PythonFile(stores.RemoteFile(str(path), block), mode="r")


def status(path: str | Path) -> Status | None:
    """What there is; None if there is nothing."""
    if is_url(path):
        return stores.status(str(path))
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return Status(found.st_size, str(found.st_mtime_ns), stat.S_ISDIR(found.st_mode))


def exists(path: str | Path) -> bool:
    return status(path) is not None


def is_file(path: str | Path) -> bool:
    found = status(path)
    return found is not None and not found.is_folder


def is_folder(path: str | Path) -> bool:
    found = status(path)
    return found is not None and found.is_folder


def size(path: str | Path) -> int | None:
    """Bytes of a file; None if it is not there."""
    found = status(path)
    return None if found is None else found.size


def names(folder: str | Path) -> list[str]:
    """What is right below a folder, sorted; nothing if it is not there."""
    if is_url(folder):
        return stores.names(str(folder))
    with contextlib.suppress(FileNotFoundError):
        return sorted(os.listdir(folder))
    return []


def remove(path: str | Path) -> None:
    """Remove a file, a link, or a folder with all that is in it, if it is there."""
    if is_url(path):
        stores.remove(str(path))
        return
    with contextlib.suppress(FileNotFoundError):
        linked = os.path.islink(path)
        shutil.rmtree(path) if os.path.isdir(path) and not linked else os.unlink(path)


def same_file(path: str | Path, other: str | Path) -> bool:
    """Whether two places are one file, which is there."""
    if is_url(path) or is_url(other):
        return str(path) == str(other)
    return os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)


def only_here(path: str | Path) -> bool:
    """Whether other processes have no such place: the memory of this one."""
    return is_url(path) and str(path).startswith("memory://")


def each(ask: Callable[[Item], Answer], items: Iterable[Item], remotely: bool) -> list[Answer]:
    """The answer about each item; about those of a store several at once."""
    if not remotely:
        return list(map(ask, items))
    with ThreadPoolExecutor(AT_ONCE, "numtok-store") as pool:
        return list(pool.map(ask, items))


@contextlib.contextmanager
def fetched(folder: str, wanted: Sequence[str]) -> Iterator[Path]:
    """A folder of this machine with copies of those of the files that there are."""
    with tempfile.TemporaryDirectory(prefix="numtok-") as local:
        for name in wanted:
            if is_file(join(folder, name)):
                with open_file(join(folder, name)) as file:
                    Path(local, name).write_bytes(file.read())
        yield Path(local)
