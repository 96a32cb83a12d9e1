"""The objects of a store: what there is, small ones whole, and new ones, which appear whole.

In: URLs, of objects or of folders, which come and go with what is in them. Out: what the store has.
    An object is put there in one step, so what is written lies in a nameless file of this machine
    until it is complete.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from numtok.errors import OutputError
from numtok.stores.ask import is_missing, scheme_of, system_of, tried

PART = 16 << 20  # bytes of a part of an upload: 10,000 of them are an object of S3 at most

_TAGS = (
    "ETag",
    "etag",
    "generation",
    "md5Hash",
    "content_md5",
    "blob_id",
    "Content-MD5",
    "Digest",
    "Last-Modified",
)
_TIMES = ("LastModified", "last_modified", "updated", "mtime", "created")


class Status(NamedTuple):
    """What a store says of a URL: bytes, if it knows; a tag that changes with the content; whether
    it is a folder.
    """

    size: int | None
    tag: str
    is_folder: bool


def status(url: str) -> Status | None:
    """As it is now; None if there is nothing."""
    system, path = system_of(url)

    def ask() -> Status | None:
        system.invalidate_cache()
        try:
            return status_of(system.info(path))
        except FileNotFoundError as error:
            if not is_missing(error):
                raise
            return None

    return tried(url, ask)


def names(url: str) -> list[str]:
    """What is right below a folder, sorted; nothing if there is none."""
    if status(url) is None:  # s3fs would look through all that lies beside it
        return []
    system, path = system_of(url)

    def ask() -> list[str]:
        system.invalidate_cache()
        found = system.ls(path, detail=False)
        return sorted(
            {
                name.rstrip("/").rpartition("/")[2]
                for name in found
                if name.rstrip("/") != path.rstrip("/")
            }
        )

    return tried(url, ask)


def files_below(url: str, pattern: bool = False) -> dict[str, int | None]:
    """The URLs of all files below a folder, or of those that a pattern names, sorted, with their
    bytes.
    """
    system, path = system_of(url)
    root = re.split(r"[*?\[]", url)[0].rpartition("/")[0] if pattern else url.rstrip("/")

    def ask() -> dict[str, int | None]:
        system.invalidate_cache()
        found = system.glob(path, detail=True) if pattern else system.find(path, detail=True)
        inner = len(system_of(root)[1].rstrip("/"))
        files = {
            f"{root}/{name[inner:].lstrip('/')}": info.get("size")
            for name, info in found.items()
            if info["type"] != "directory"
        }
        return dict(sorted(files.items()))

    return tried(url, ask)


def remove(url: str) -> None:
    """Remove an object, or a folder with all that is in it, if it is there."""
    system, path = system_of(url)

    def ask() -> None:
        system.invalidate_cache()
        with contextlib.suppress(FileNotFoundError):
            system.rm(path, recursive=True)

    tried(url, ask, "remove")


def read(url: str) -> bytes | None:
    """All of a small object; None if there is none."""
    system, path = system_of(url)

    def ask() -> bytes | None:
        try:
            return bytes(system.cat_file(path))
        except FileNotFoundError as error:
            if not is_missing(error):
                raise
            return None

    return tried(url, ask)


def check_writable(url: str) -> None:
    """``OutputError`` for a store that is for reading only."""
    if scheme_of(url) in ("http", "https"):
        raise OutputError(
            f"cannot write {url}: {scheme_of(url)}:// is for reading; write to a path, or to a"
            " store such as s3://"
        )


def write(url: str, content: bytes) -> None:
    """Put a small object, or replace it, in one step."""
    check_writable(url)
    system, path = system_of(url)
    tried(url, lambda: system.pipe_file(path, content), "write")


def create(url: str, content: bytes) -> bool:
    """Put a small object, if there is none of that name; in one step where the store can."""
    check_writable(url)
    system, path = system_of(url)

    def ask() -> bool:
        if _exists(system, path):
            return False
        try:
            system.pipe_file(path, content, mode="create")
        except (FileExistsError, TypeError, NotImplementedError) as error:
            if isinstance(error, FileExistsError):
                return False
            system.pipe_file(path, content)
        except OSError as error:
            if getattr(error, "errno", None) != errno.EINVAL and "PreconditionFailed" not in str(
                error
            ):
                raise
            return False
        return True

    return tried(url, ask, "write")


def _exists(system: Any, path: str) -> bool:
    system.invalidate_cache()
    return bool(system.exists(path))


@contextlib.contextmanager
def new_object(url: str, overwrite: bool) -> Iterator[BinaryIO]:
    """A nameless file, which is put under the URL as a whole when the context ends well.

    Raises:
        OutputError: there is an object and ``overwrite`` is not set, or the store refuses.
    """
    check_writable(url)
    _refuse_existing(url, overwrite)
    with _nameless(url) as kept:
        with open(os.dup(kept.fileno()), "w+b", buffering=0) as file:
            yield file
        _refuse_existing(url, overwrite)
        system, path = system_of(url)
        tried(url, lambda: _upload(system, path, kept), "write")


def _nameless(url: str) -> BinaryIO:
    """A file of this machine that is gone with the process at the latest."""
    try:
        return tempfile.TemporaryFile(prefix="numtok-")
    except OSError as error:
        reason = f"there is no place for what is to be uploaded: {error.strerror or error}"
        raise OutputError(
            f"cannot write {url}: {reason}; make room in {tempfile.gettempdir()}, or set TMPDIR"
        ) from error


def _refuse_existing(url: str, overwrite: bool) -> None:
    if not overwrite and (found := status(url)) is not None and not found.is_folder:
        raise OutputError(
            f"{url} exists already; choose another name, or overwrite it with overwrite=True"
        )


def _upload(system: Any, path: str, content: BinaryIO) -> None:
    """In parts, so that no more than one of them is in memory; what was begun is abandoned if it
    fails.
    """
    content.seek(0)
    target = system.open(path, "wb", block_size=PART)
    try:
        shutil.copyfileobj(content, target, PART)
        target.close()
    except BaseException:
        with contextlib.suppress(Exception):
            tried(path, target.discard)
        with contextlib.suppress(Exception):
            target.closed = True  # else it would put what there is once it is collected
        raise


def abandon_uploads(folder: str) -> None:
    """Have a store of S3's kind forget the parts of uploads below a folder that nobody completed;
    others forget them by themselves.
    """
    system, path = system_of(folder)
    if not hasattr(system, "call_s3"):
        return
    bucket, _, inner = path.partition("/")
    with contextlib.suppress(
        Exception
    ):  # whoever may write may not always list uploads; what stays is invisible
        while uploads := system.call_s3(
            "list_multipart_uploads", Bucket=bucket, Prefix=f"{inner}/".lstrip("/")
        ).get("Uploads"):
            for upload in uploads:
                system.call_s3(
                    "abort_multipart_upload",
                    Bucket=bucket,
                    Key=upload["Key"],
                    UploadId=upload["UploadId"],
                )


def status_of(info: dict[str, Any]) -> Status:
    """What fsspec calls the info of an object: each store has its own names in it."""
    tag = next(
        (str(info[name]).strip('"') for name in (*_TAGS, *_TIMES) if info.get(name) is not None), ""
    )
    return Status(info.get("size"), tag, info.get("type") == "directory")
