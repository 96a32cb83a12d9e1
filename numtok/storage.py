"""Storage: paths of this machine, and URLs of object stores by way of fsspec. What reads and writes
takes either, and does not ask which it is; :mod:`numtok.files` writes to both. Objects are read by
ranges and put as a whole. The packages of stores try again by themselves; what goes
wrong for good is an error with the URL and the way out.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

from numtok.errors import (
    InputError,
    MissingDependencyError,
    MissingInputError,
    NumtokError,
    OutputError,
)

Item = TypeVar("Item")
Answer = TypeVar("Answer")

PART = 16 << 20  # bytes of a part of an upload: 10,000 of them are an object of S3 at most
BLOCK, BLOCKS = 8 << 20, 4  # bytes that are read at once; so many are cached of an open object
SMALL_BLOCK = 64 << 10  # for the end of an object, of which little is wanted
AT_ONCE = 16  # questions to a store

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")  # a single letter is a drive of Windows
_REFUSED = (
    "NoCredentialsError",
    "PartialCredentialsError",
    "ProfileNotFound",
    "ClientAuthenticationError",
    "DefaultCredentialsError",
)
# what stores call the tag of an object, or the time of its change
_TAGS = (
    *("ETag", "etag", "generation", "md5Hash", "content_md5", "blob_id", "Content-MD5", "Digest"),
    *("Last-Modified", "LastModified", "last_modified", "updated", "mtime", "created"),
)

_systems: dict[tuple[int, str, str], Any] = {}


def is_url(place: object) -> bool:
    """Whether it names something in a store, and not a path."""
    return isinstance(place, str | os.PathLike) and _URL.match(str(place)) is not None


def normalized(path: str | Path) -> str:
    """Return a URL as it is, and a path without what says nothing, as in ``./a//b``."""
    return str(path) if is_url(path) else str(Path(path))


def join(folder: str | Path, name: str) -> str:
    """Return the path or URL of a name in a folder."""
    return f"{str(folder).rstrip('/')}/{name}" if is_url(folder) else os.path.join(folder, name)


def only_here(path: str | Path) -> bool:
    """Whether other processes have no such place: the memory of this one."""
    return str(path).startswith("memory://")


# Stores, and what goes wrong with them
# -------------------------------------------------------------------------------------------------


def _scheme(url: str) -> str:
    return url.partition("://")[0].lower()


def _system(url: str, doing: str = "read") -> tuple[Any, str]:
    """Return (what speaks with the store, the path in it); one for all threads of a process."""
    try:
        import fsspec
    except ImportError as error:
        raise MissingDependencyError(
            f"{url}: URLs need fsspec, which is not installed: pip install 'numtok[remote]'"
        ) from error
    scheme = _scheme(url)
    if scheme in ("file", "local"):
        raise InputError(
            f"is a file of this machine: give its path, {url.partition('://')[2]}", url
        )
    try:
        kind = fsspec.get_filesystem_class(scheme)
    except ImportError as error:
        missing = getattr(error.__cause__, "name", None) or scheme
        raise MissingDependencyError(
            f"{url}: {scheme}:// needs {missing}, which is not installed: pip install {missing}"
        ) from error
    except ValueError as error:
        raise InputError(
            f"{scheme}:// is unknown; known are paths, s3://, gs://, az://, hf://, https:// and the"
            " others of fsspec",
            url,
        ) from error
    with _named_errors(url, doing):  # some connect at once
        options = kind._get_kwargs_from_urls(url)
        key = os.getpid(), scheme, repr(sorted(options.items()))
        if key not in _systems:
            _systems[key] = kind(**options)
        return _systems[key], kind._strip_protocol(url)


@contextlib.contextmanager
def _named_errors(url: str, doing: str = "read") -> Iterator[None]:
    """Turn errors of a store into InputError or OutputError, with the URL, what is wrong, and the
    way out.
    """
    try:
        yield
    except NumtokError:
        raise
    except Exception as error:
        raise _refusal(url, error, doing) from error


def _refusal(url: str, error: Exception, doing: str) -> NumtokError:
    root = _root(error)
    if type(root).__name__ == "FileExpired":
        return changed(url)
    reason = " ".join(str(root).split())[:300].rstrip(".") or type(root).__name__
    refused = isinstance(root, PermissionError) or type(root).__name__ in _REFUSED
    if _is_missing(error):
        what = f"there is no such {'bucket or folder' if doing == 'write' else 'object'}; check the URL"
    elif refused or _answer(root) in (401, 403):
        what = (
            f"access is refused ({reason}); check the credentials for {_scheme(url)}:// and what"
            " they permit"
        )
    else:
        what = (
            f"{reason}; check the URL, the network and the store, then run the same command again"
        )
    if doing == "read":
        return MissingInputError(f"cannot be read: {what}", url)
    return OutputError(f"cannot {doing} {url}: {what}")


def _root(error: BaseException) -> BaseException:
    """Return the cause of an error of fsspec, which reports every failure of HTTP as a missing
    file.
    """
    cause = error.__cause__
    hidden = cause is not None and type(cause).__module__.startswith("aiohttp")
    return cause if cause and hidden and isinstance(error, FileNotFoundError) else error


def _answer(error: BaseException) -> int:
    """Return the status that HTTP answered with, whatever the package calls it; 0 if unknown."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("status", "status_code", "code"):
            if isinstance(value := getattr(holder, name, None), int):
                return value
    return 0


def _is_missing(error: BaseException) -> bool:
    root = _root(error)
    return isinstance(root, FileNotFoundError) or _answer(root) in (404, 410)


def changed(url: str) -> MissingInputError:
    """Return the error for an object that was replaced after it was opened."""
    return MissingInputError(
        "changed while it was read; put it back, or begin anew once it stays as it is", url
    )


# What there is
# -------------------------------------------------------------------------------------------------


class Status(NamedTuple):
    """State of a path: its size in bytes, or None if the store does not say; a tag that changes
    with the content; whether it is a folder.
    """

    size: int | None
    tag: str
    is_folder: bool


def _if_there(url: str, ask: Callable[[Any, str], Answer]) -> Answer | None:
    """Return the answer; None if there is nothing, and not if the store cannot be asked."""
    system, path = _system(url)
    with _named_errors(url):
        system.invalidate_cache()
        try:
            return ask(system, path)
        except FileNotFoundError as error:
            if not _is_missing(error):
                raise
    return None


def _info(system: Any, path: str) -> Status:
    info = system.info(path)
    tag = next((str(info[name]).strip('"') for name in _TAGS if info.get(name) is not None), "")
    return Status(info.get("size"), tag, info.get("type") == "directory")


def status(path: str | Path) -> Status | None:
    """Return the state of a path; None if nothing is there."""
    if is_url(path):
        return _if_there(str(path), _info)
    try:
        file_status = os.stat(path)
    except (OSError, ValueError):
        return None
    return Status(
        file_status.st_size, str(file_status.st_mtime_ns), stat.S_ISDIR(file_status.st_mode)
    )


def is_file(path: str | Path) -> bool:
    """Whether there is something other than a folder."""
    file_status = status(path)
    return file_status is not None and not file_status.is_folder


def is_folder(path: str | Path) -> bool:
    """Whether there is a folder."""
    file_status = status(path)
    return file_status is not None and file_status.is_folder


def names(folder: str | Path) -> list[str]:
    """Return the sorted names of the files and folders in a folder; empty if there is no such
    folder.
    """
    if not is_url(folder):
        with contextlib.suppress(FileNotFoundError):
            return sorted(os.listdir(folder))
        return []
    if status(folder) is None:  # s3fs would look through all that lies beside it
        return []
    listing = _if_there(str(folder), lambda system, path: (system.ls(path, detail=False), path))
    paths, folder_path = listing or ([], "")
    inner = {path.rstrip("/") for path in paths} - {folder_path.rstrip("/")}
    return sorted(path.rpartition("/")[2] for path in inner)


def files_below(url: str, pattern: bool = False) -> dict[str, int | None]:
    """Return the URLs of all files below a folder, or of a pattern, sorted, with their bytes."""
    root = re.split(r"[*?\[]", url)[0].rpartition("/")[0] if pattern else url.rstrip("/")
    inner = len(_system(root)[1].rstrip("/"))

    def ask(system: Any, path: str) -> dict[str, int | None]:
        details = system.glob(path, detail=True) if pattern else system.find(path, detail=True)
        return {
            f"{root}/{name[inner:].lstrip('/')}": info.get("size")
            for name, info in sorted(details.items())
            if info["type"] != "directory"
        }

    return _if_there(url, ask) or {}


def same_file(path: str | Path, other: str | Path) -> bool:
    """Whether two places are one file, which is there."""
    if is_url(path) or is_url(other):
        return str(path) == str(other)
    return os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)


def each(ask: Callable[[Item], Answer], items: Iterable[Item], remotely: bool) -> list[Answer]:
    """Return the answer about each item; a store is asked about several items at once."""
    if not remotely:
        return list(map(ask, items))
    with ThreadPoolExecutor(AT_ONCE, "numtok-store") as pool:
        return list(pool.map(ask, items))


# Reading
# -------------------------------------------------------------------------------------------------


class RemoteFile(io.RawIOBase):
    """An object opened for reading, by ranges of ``block`` bytes; InputError naming the URL, also
    while reading.
    """

    def __init__(self, url: str, block: int | None = None) -> None:
        self._url = url
        system, path = _system(url)
        with _named_errors(url):
            if only_here(url):  # where all that open an object share one position
                content = system.cat_file(path)
                self._file: Any = io.BytesIO(content)
                self.size: int | None = len(content)  # in bytes, if the store knows
            else:
                how = {"cache_type": "blockcache", "cache_options": {"maxblocks": BLOCKS}}
                self._file = system.open(path, "rb", block_size=block or BLOCK, **how)
                self.size = self._file.size

    def readinto(self, buffer: Any) -> int:
        with _named_errors(self._url):
            wanted = len(buffer)
            if self.size is not None:
                wanted = min(wanted, max(self.size - self._file.tell(), 0))
            data: bytes = self._file.read(wanted)
            if self.size is not None and len(data) < wanted:
                raise ConnectionError("fewer bytes came than were asked for")
        buffer[: len(data)] = data
        return len(data)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self.size is not None

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())


def open_file(path: str | Path, block: int | None = None) -> BinaryIO:
    """Open a file or an object for reading; ``block`` bytes of an object are read at once, if that
    is given.
    """
    if is_url(path):
        return RemoteFile(str(path), block)  # type: ignore[return-value]  # a raw file is enough
    return open(path, "rb")


def for_arrow(path: str | Path) -> Any:
    """Return an open file for Arrow, which would take a path such as ``run:1/a.parquet`` for a URL,
    and refuses one that is not UTF-8.
    """
    import pyarrow as pa

    if not is_url(path):
        return pa.OSFile(os.fsencode(path))
    return pa.PythonFile(RemoteFile(str(path)), mode="r")


def read_object(url: str) -> bytes | None:
    """Return all of a small object; None if there is none."""
    return _if_there(url, lambda system, path: bytes(system.cat_file(path)))


@contextlib.contextmanager
def fetched(folder: str, wanted: Sequence[str]) -> Iterator[Path]:
    """Yield a local folder with copies of those of the files that exist."""
    with tempfile.TemporaryDirectory(prefix="numtok-") as local:
        for name in wanted:
            if is_file(join(folder, name)):
                with open_file(join(folder, name)) as file:
                    Path(local, name).write_bytes(file.read())
        yield Path(local)


# Writing
# -------------------------------------------------------------------------------------------------


def check_writable(url: str) -> tuple[Any, str]:
    """Return (what speaks with the store, the path in it); OutputError for a read-only store."""
    if _scheme(url) in ("http", "https"):
        raise OutputError(
            f"cannot write {url}: {_scheme(url)}:// is for reading; write to a path, or to a"
            " store such as s3://"
        )
    return _system(url, "write")


def write_object(url: str, content: bytes) -> None:
    """Put a small object, or replace it, in one step."""
    system, path = check_writable(url)
    with _named_errors(url, "write"):
        system.pipe_file(path, content)


@contextlib.contextmanager
def new_object(url: str, overwrite: bool) -> Iterator[BinaryIO]:
    """Open a nameless local file, gone with the process at the latest, whose content is put under
    the URL as a whole when the context ends well. OutputError if there is an object and
    ``overwrite`` is not set, or the store refuses.
    """
    system, path = check_writable(url)
    _refuse_existing(url, overwrite)
    try:
        whole = tempfile.TemporaryFile(prefix="numtok-")  # noqa: SIM115
    except OSError as error:
        reason = f"there is no place for what is to be uploaded: {error.strerror or error}"
        raise OutputError(
            f"cannot write {url}: {reason}; make room in {tempfile.gettempdir()}, or set TMPDIR"
        ) from error
    with whole:
        with open(os.dup(whole.fileno()), "w+b", buffering=0) as file:
            yield file
        _refuse_existing(url, overwrite)
        whole.seek(0)
        with _named_errors(url, "write"):
            _upload(system, path, whole)


def _refuse_existing(url: str, overwrite: bool) -> None:
    if not overwrite and is_file(url):
        raise OutputError(
            f"{url} exists already; choose another name, or overwrite it with overwrite=True"
            " (--overwrite)"
        )


def _upload(system: Any, path: str, content: BinaryIO) -> None:
    """Upload in parts, one of which is in memory. What was begun is abandoned if it fails."""
    target = system.open(path, "wb", block_size=PART)
    try:
        shutil.copyfileobj(content, target, PART)
        target.close()
    except BaseException:
        with contextlib.suppress(Exception):
            target.discard()
        with contextlib.suppress(Exception):
            target.closed = True  # else it would put what there is once it is collected
        raise


def remove(path: str | Path) -> None:
    """Remove a file, a link, or a folder with all that is in it, if it is there."""
    if is_url(path):
        system, inner = _system(str(path), "remove")
        with _named_errors(str(path), "remove"), contextlib.suppress(FileNotFoundError):
            system.invalidate_cache()
            system.rm(inner, recursive=True)
        return
    with contextlib.suppress(FileNotFoundError):
        linked = os.path.islink(path)
        shutil.rmtree(path) if os.path.isdir(path) and not linked else os.unlink(path)
