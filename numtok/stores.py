"""Object stores, by way of fsspec: objects are read by ranges and put as a whole, and what goes
wrong is told with the URL and the way out. The packages of stores try again by themselves; over
plain HTTP, which has none, requests are made again here. ``numtok.locations`` takes paths too.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import random
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple, TypeVar

from numtok.errors import (
    InputError,
    MissingDependencyError,
    MissingInputError,
    NumtokError,
    OutputError,
)

Answer = TypeVar("Answer")

TRIES, PAUSE = 5, 0.5  # of a request over HTTP; seconds before the second, about twice that later
PART = 16 << 20  # bytes of a part of an upload: 10,000 of them are an object of S3 at most
BLOCK, BLOCKS = 8 << 20, 4  # bytes that are read at once; so many are cached of an open object

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_FINAL = (
    FileExistsError,
    IsADirectoryError,
    NotADirectoryError,
    ImportError,
    ValueError,
    TypeError,
    LookupError,
    NotImplementedError,
)
_REFUSED = (
    "NoCredentialsError",
    "PartialCredentialsError",
    "ProfileNotFound",
    "ClientAuthenticationError",
    "DefaultCredentialsError",
)
_TOO_SOON = (408, 425, 429)  # answers of HTTP that say: later
# what stores call the tag of an object, or the time of its change
_TAGS = (
    *("ETag", "etag", "generation", "md5Hash", "content_md5", "blob_id", "Content-MD5", "Digest"),
    *("Last-Modified", "LastModified", "last_modified", "updated", "mtime", "created"),
)

_systems: dict[tuple[int, str, str], Any] = {}


def is_url(place: object) -> bool:
    """Whether it names something in a store, and not a path."""
    return isinstance(place, str | os.PathLike) and _URL.match(str(place)) is not None


def _scheme(url: str) -> str:
    return url.partition("://")[0].lower()


def _system(url: str) -> tuple[Any, str]:
    """(what speaks with the store, the path in it); one for all threads of a process."""
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
    options = kind._get_kwargs_from_urls(url)
    key = os.getpid(), scheme, repr(sorted(options.items()))
    if key not in _systems:
        _systems[key] = kind(**options)
    return _systems[key], kind._strip_protocol(url)


# What goes wrong
# -------------------------------------------------------------------------------------------------


def _tried(url: str, ask: Callable[[], Answer], doing: str = "read") -> Answer:
    """The answer. InputError, OutputError naming the URL, what is wrong, and the way out."""
    left = TRIES if _scheme(url) in ("http", "https") else 1
    pause = PAUSE
    while True:
        try:
            return ask()
        except NumtokError:
            raise
        except Exception as error:
            left -= 1
            if not left or _verdict(error) != "passing":
                raise _refusal(url, error, doing) from error
        time.sleep(pause * random.uniform(0.75, 1.25))
        pause *= 2


def _root(error: BaseException) -> BaseException:
    """What went wrong: whatever HTTP has to say, fsspec calls it missing."""
    cause = error.__cause__
    hidden = cause is not None and type(cause).__module__.startswith("aiohttp")
    return cause if cause and hidden and isinstance(error, FileNotFoundError) else error


def _answer(error: BaseException) -> int:
    """The status that HTTP answered with, whatever the package calls it; 0 if unknown."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("status", "status_code", "code"):
            if isinstance(value := getattr(holder, name, None), int):
                return value
    return 0


def _verdict(error: BaseException) -> str:
    """``"missing"``, ``"refused"``, ``"changed"``, ``"final"`` or, of all that may pass,
    ``"passing"``.
    """
    error = _root(error)
    answer, name = _answer(error), type(error).__name__
    if isinstance(error, FileNotFoundError) or answer in (404, 410):
        return "missing"
    if isinstance(error, PermissionError) or answer in (401, 403) or name in _REFUSED:
        return "refused"
    if name == "FileExpired":
        return "changed"
    if isinstance(error, _FINAL) or (400 <= answer < 500 and answer not in _TOO_SOON):
        return "final"
    return "passing"


def changed(url: str) -> MissingInputError:
    """What is told of an object that is no longer the one that was opened."""
    return MissingInputError(
        "changed while it was read; put it back, or begin anew once it stays as it is", url
    )


def _refusal(url: str, error: Exception, doing: str) -> NumtokError:
    verdict = _verdict(error)
    if verdict == "changed":
        return changed(url)
    reason = " ".join(str(_root(error)).split())[:300].rstrip(".") or type(error).__name__
    kind = "bucket or folder" if doing == "write" else "object"
    what = {
        "missing": f"there is no such {kind}; check the URL",
        "refused": (
            f"access is refused ({reason}); check the credentials for {_scheme(url)}:// and what"
            " they permit"
        ),
        "final": f"{reason}; check the URL, or use a copy on this machine",
        "passing": (
            f"{reason}, however often it was tried; check the network and the store, then run the same"
            " command again"
        ),
    }[verdict]
    if doing == "read":
        return MissingInputError(f"cannot be read: {what}", url)
    return OutputError(f"cannot {doing} {url}: {what}")


# What there is
# -------------------------------------------------------------------------------------------------


class Status(NamedTuple):
    """What a store says of a URL: bytes, if it knows; a tag that changes with the content; whether
    it is a folder.
    """

    size: int | None
    tag: str
    is_folder: bool


def _status_of(info: dict[str, Any]) -> Status:
    """What fsspec calls the info of an object."""
    tag = next((str(info[name]).strip('"') for name in _TAGS if info.get(name) is not None), "")
    return Status(info.get("size"), tag, info.get("type") == "directory")


def _if_there(url: str, ask: Callable[[Any, str], Answer]) -> Answer | None:
    """The answer; None if there is nothing, and not if the store cannot be asked."""
    system, path = _system(url)

    def ask_now() -> Answer | None:
        system.invalidate_cache()
        try:
            return ask(system, path)
        except FileNotFoundError as error:
            if _verdict(error) != "missing":
                raise
            return None

    return _tried(url, ask_now)


def status(url: str) -> Status | None:
    """As it is now; None if there is nothing."""
    return _if_there(url, lambda system, path: _status_of(system.info(path)))


def read(url: str) -> bytes | None:
    """All of a small object; None if there is none."""
    return _if_there(url, lambda system, path: bytes(system.cat_file(path)))


def names(url: str) -> list[str]:
    """What is right below a folder, sorted; nothing if there is none."""
    if status(url) is None:  # s3fs would look through all that lies beside it
        return []
    found = _if_there(url, lambda system, path: (system.ls(path, detail=False), path))
    if found is None:
        return []
    own = found[1].rstrip("/")
    inner = {name.rstrip("/") for name in found[0]} - {own}
    return sorted(name.rpartition("/")[2] for name in inner)


def files_below(url: str, pattern: bool = False) -> dict[str, int | None]:
    """The URLs of all files below a folder, or of a pattern, sorted, with their bytes."""
    root = re.split(r"[*?\[]", url)[0].rpartition("/")[0] if pattern else url.rstrip("/")
    inner = len(_system(root)[1].rstrip("/"))

    def ask(system: Any, path: str) -> dict[str, int | None]:
        found = system.glob(path, detail=True) if pattern else system.find(path, detail=True)
        return {
            f"{root}/{name[inner:].lstrip('/')}": info.get("size")
            for name, info in sorted(found.items())
            if info["type"] != "directory"
        }

    return _if_there(url, ask) or {}


class RemoteFile(io.RawIOBase):
    """An object opened for reading, by ranges of ``block`` bytes. A request that fails is made again,
    and only for what the object was when it was opened.

    Raises:
        InputError: naming the URL; also while reading.
    """

    def __init__(self, url: str, block: int | None = None) -> None:
        self._url, self._block, self._position = url, block or BLOCK, 0
        self._file: Any = None
        self._opened: Status | None = None
        _tried(url, self._open)

    def _open(self) -> None:
        system, path = _system(self._url)
        if _scheme(self._url) == "memory":  # where all that open an object share one position
            self._file, found = io.BytesIO(system.cat_file(path)), _status_of(system.info(path))
        else:
            how = {"cache_type": "blockcache", "cache_options": {"maxblocks": BLOCKS}}
            self._file = system.open(path, "rb", block_size=self._block, **how)
            found = _status_of(getattr(self._file, "details", None) or {})
        if self._opened not in (None, found):
            raise changed(self._url)
        self._opened = found

    @property
    def size(self) -> int | None:
        """In bytes, if the store knows."""
        return self._opened.size if self._opened else None

    def readinto(self, buffer: Any) -> int:
        data: bytes = _tried(self._url, lambda: self._read(len(buffer)))
        buffer[: len(data)] = data
        return len(data)

    def _read(self, size: int) -> bytes:
        try:
            if self._file is None:
                self._open()
            self._file.seek(self._position)
            data = bytes(self._file.read(size))
            if self.size is not None and len(data) < min(size, self.size - self._position):
                raise ConnectionError("fewer bytes came than were asked for")
        except BaseException:
            self._file = None  # it may have kept what it should not
            raise
        self._position += len(data)
        return data

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self.size is not None

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = offset + [0, self._position, self.size or 0][whence]
        return self._position

    def tell(self) -> int:
        return self._position


# What is put there
# -------------------------------------------------------------------------------------------------


def check_writable(url: str) -> None:
    """``OutputError`` for a store that is for reading only."""
    if _scheme(url) in ("http", "https"):
        raise OutputError(
            f"cannot write {url}: {_scheme(url)}:// is for reading; write to a path, or to a"
            " store such as s3://"
        )


def write(url: str, content: bytes) -> None:
    """Put a small object, or replace it, in one step."""
    check_writable(url)
    system, path = _system(url)
    _tried(url, lambda: system.pipe_file(path, content), "write")


def create(url: str, content: bytes) -> bool:
    """Put a small object; False if there is one of that name. Where the store cannot do that in one
    step, two at the same moment may both have put it.
    """
    check_writable(url)
    system, path = _system(url)

    def ask() -> bool:
        system.invalidate_cache()
        if system.exists(path):
            return False
        try:
            system.pipe_file(path, content, mode="create")
        except FileExistsError:
            return False
        except (TypeError, NotImplementedError):
            system.pipe_file(path, content)
        except OSError as error:
            if error.errno != errno.EINVAL and "PreconditionFailed" not in str(error):
                raise
            return False
        return True

    return _tried(url, ask, "write")


def remove(url: str) -> None:
    """Remove an object, or a folder with all that is in it, if it is there."""
    system, path = _system(url)

    def ask() -> None:
        system.invalidate_cache()
        with contextlib.suppress(FileNotFoundError):
            system.rm(path, recursive=True)

    _tried(url, ask, "remove")


@contextlib.contextmanager
def new_object(url: str, overwrite: bool) -> Iterator[BinaryIO]:
    """A nameless file of this machine, gone with the process at the latest, which is put under the
    URL as a whole when the context ends well. OutputError if there is an object and ``overwrite``
    is not set, or the store refuses.
    """
    check_writable(url)
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
        system, path = _system(url)
        _tried(url, lambda: _upload(system, path, whole), "write")


def _refuse_existing(url: str, overwrite: bool) -> None:
    if not overwrite and (found := status(url)) is not None and not found.is_folder:
        raise OutputError(
            f"{url} exists already; choose another name, or overwrite it with overwrite=True"
        )


def _upload(system: Any, path: str, content: BinaryIO) -> None:
    """In parts, one of which is in memory; what was begun is abandoned if it fails."""
    content.seek(0)
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


def abandon_uploads(folder: str) -> None:
    """Have a store of S3's kind forget the parts of uploads below a folder that nobody completed;
    others forget them by themselves.
    """
    system, path = _system(folder)
    if not hasattr(system, "call_s3"):
        return
    bucket, _, inner = path.partition("/")
    below = {"Bucket": bucket, "Prefix": f"{inner}/".lstrip("/")}
    # whoever may write may not always list uploads; what stays is invisible
    with contextlib.suppress(Exception):
        while uploads := system.call_s3("list_multipart_uploads", **below).get("Uploads"):
            for upload in uploads:
                which = {name: upload[name] for name in ("Key", "UploadId")}
                system.call_s3("abort_multipart_upload", Bucket=bucket, **which)
