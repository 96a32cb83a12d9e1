"""The folder of a job: what lies in it, read and written so that nothing is ever half there. JSON
has one form and a digest of itself: the same content gives the same bytes, and damage is noticed.
Whoever made the folder may have put links and pipes there: a job follows none.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from numtok import files, storage
from numtok.errors import InputError, JobError, OutputError
from numtok.files import is_temporary, write_file
from numtok.options import conform

Kind = TypeVar("Kind")

# all that is not data; other programs skip such a name: datasets for its two underscores, pyarrow
# and Spark for one; polars skips no folder, and is given the files
OWN = "__numtok"
PLAN, MANIFEST, TOKENIZER = f"{OWN}/plan.json", f"{OWN}/manifest.json", f"{OWN}/tokenizer"
TOKENIZER_FILES = (TOKENIZER, f"{TOKENIZER}/tokenizer.json", f"{TOKENIZER}/numtok.json")
QUARANTINE = f"{OWN}/quarantine.jsonl"
DATA = (".parquet", ".arrow", ".feather", ".ipc")  # what readers take for a part of the corpus
SHARD = re.compile(r"\d{5,}(-of-\d{5,})?\.(parquet|arrow)")
FORMAT = 3
_CHECK = "check"
# how files are opened, as far as the system knows: any, and those of a job itself, not through links
_ANY = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_OWN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


class Folder:
    """On this machine, or in an object store, where folders come and go with what is in them;
    JobError if the inner folder is a link.
    """

    def __init__(self, path: str | Path) -> None:
        self.remote = storage.is_url(path)
        self.path = str(path).rstrip("/") if self.remote else str(Path(path))
        self.refuse_links(OWN)

    def __str__(self) -> str:
        return self.path

    def file(self, name: str) -> str:
        """Return the path or the URL of a file in the folder."""
        return storage.join(self.path, name)

    def refuse_links(self, *names: str) -> None:
        """Raise JobError if one of the files or folders is a link."""
        for path in map(self.file, names):
            if not self.remote and os.path.islink(path):
                raise _strange(path)

    def make(self) -> None:
        """Make the folder, and the one of the job's own files in it."""
        if self.remote:
            storage.check_writable(self.path)
        else:
            with self._refused("make the folder"):
                os.makedirs(self.file(OWN), exist_ok=True)

    def names(self, inner: str = "") -> list[str]:
        """Return what is in the folder or in one below it, sorted; nothing if it is not there."""
        with self._refused("list the folder"):
            return storage.names(self.file(inner))

    def size(self, name: str) -> int | None:
        """Return the bytes of a plain file; None if it is not there."""
        if self.remote:
            found = storage.status(self.file(name))
            return found and found.size
        with contextlib.suppress(OSError):
            status = os.lstat(self.file(name))
            return status.st_size if stat.S_ISREG(status.st_mode) else None
        return None

    def remove(self, name: str) -> None:
        """Remove a file or a folder, if it is there."""
        with self._refused(f"remove {name}"):
            storage.remove(self.file(name))

    def make_way(self, name: str) -> None:
        """Remove what is no plain file: what is to be written replaces a link, not what it names."""
        if not self.remote and self.size(name) is None:
            self.remove(name)

    def remove_leftovers(self) -> None:
        """Remove what runs that died had written of shards; once all shards are done."""
        if self.remote:
            return
        for inner in ("", OWN):
            for name in filter(is_temporary, self.names(inner)):
                if re.match(r"\.\d{5,}", name):
                    self.remove(os.path.join(inner, name))

    def replace(self, name: str, content: str | bytes) -> None:
        """Write a small file in one step, over what is there."""
        self.make_way(name)
        write_file(self.file(name), content)

    def read(self, name: str) -> bytes | None:
        """Return all of a small file; None if it is not there, JobError for a link, a folder, a
        pipe or a device.
        """
        return _read_plain(self.file(name), _OWN)

    def write_json(self, name: str, content: dict[str, Any]) -> None:
        """Write JSON with a digest of itself; whole, and on the disk, when it returns."""
        signed = content | {_CHECK: digest(content)}
        self.replace(name, json.dumps(signed, indent=1, sort_keys=True) + "\n")

    def read_json(self, name: str, kind: type[Kind]) -> Kind | None:
        """Read what :meth:`write_json` wrote, as ``kind`` declares it; None if the file is not
        there, JobError if it is damaged, was changed by hand, or is of another version.
        """
        return _verified(self.read(name), self.file(name), kind)

    @contextlib.contextmanager
    def _refused(self, what: str) -> Iterator[None]:
        """Raise what the system refuses as OutputError."""
        try:
            yield
        except OSError as error:
            refusal = OutputError(
                f"{self.path}: cannot {what}: {error.strerror or error}; check the folder and its"
                " permissions"
            )
            refusal.errno = error.errno
            raise refusal from error


def _read_plain(path: str, flags: int) -> bytes | None:
    """Return all of a plain file; None if it is not there. JobError for a folder, a pipe or a
    device, and with ``flags=_OWN`` for a link.
    """
    if storage.is_url(path):
        return storage.read_object(path)
    try:
        descriptor = os.open(path, os.O_RDONLY | _ANY | flags)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _strange(path, error.strerror or "") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _strange(path)
    with open(descriptor, "rb") as file:
        return file.read()


def _strange(path: str, why: str = "") -> JobError:
    if os.path.islink(path):
        what = "is a symbolic link, and a job neither reads nor writes its own files through one"
    else:
        what = f"cannot be read: {why}" if why else "is no plain file"
    return JobError(f"{what}; remove it", path)


def digest(content: Any) -> str:
    """Return the SHA-256 of JSON-ready content, written in one form."""
    return hashlib.sha256(
        json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()


def _verified(
    stored: bytes | None, path: str, kind: type[Kind], formats: tuple[int, ...] = (FORMAT,)
) -> Kind | None:
    if stored is None:
        return None
    try:
        content = json.loads(stored)
        check = content.pop(_CHECK)
    except (ValueError, RecursionError, LookupError, AttributeError, TypeError):
        content, check = {}, None
    if check != digest(content):
        raise JobError("is damaged or was changed by hand; put it back, or begin anew", path)
    if content.get("format") not in formats:
        raise JobError(
            f"is of another version of numtok (format {content.get('format')}); go on with that"
            " version, or begin anew with overwrite=True (--overwrite)",
            path,
        )
    return conform(content, kind, path, JobError)


# The lock: a second run that would write the same shards is refused
# -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def run_lock(folder: Folder, share: tuple[int, int] | None = None) -> Iterator[None]:
    """Hold the lock of a run, which the system drops if the process dies; JobError if another run has
    it. Neither a share of the shards has a lock, nor a folder in an object store: whoever renames
    last writes the same bytes.
    """
    if folder.remote or share is not None or not files.locks:
        yield
        return
    name = f"{OWN}/lock"
    folder.make_way(name)
    descriptor = _take(folder, folder.file(name))
    try:
        with contextlib.suppress(OSError):  # a full disk; what has to be written will tell
            os.truncate(descriptor, 0)
            os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode())
        yield
    finally:
        with contextlib.suppress(OSError):
            os.unlink(folder.file(name))
        os.close(descriptor)


def _take(folder: Folder, path: str) -> int:
    """Return the locked file; the one of this name, as another run may have removed it meanwhile."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _ANY | _OWN, 0o666)
        except OSError as error:
            raise OutputError(
                f"cannot write {path}: {error.strerror}; check the folder and its permissions"
            ) from error
        try:
            files.lock(descriptor, wait=False)
        except BlockingIOError:
            holder = os.read(descriptor, 1000).decode("utf-8", "replace")
            os.close(descriptor)
            who = f" ({holder})" if holder else ""
            raise JobError(
                f"another run is working on this folder{who}; wait until it ends, or stop it: what"
                " it has finished stays",
                str(folder),
            ) from None
        except OSError:  # a file system without locks
            return descriptor
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.stat(path), os.fstat(descriptor)):
                return descriptor
        os.close(descriptor)


# What readers of the folder ask
# -------------------------------------------------------------------------------------------------


def read_manifest(folder: str | Path) -> dict[str, Any] | None:
    """Return the manifest of a finished job; None if there is none, JobError as for
    :meth:`Folder.read_json`.
    """
    path = storage.join(folder, MANIFEST)
    return _verified(_read_plain(path, 0), path, dict, (1, 2, FORMAT))


def shards_of(folder: str | Path) -> list[str] | None:
    """Return the files of a finished job in their order; None for a folder that is not a job's.
    InputError if shards may be missing: a part of a corpus must not be taken for all of it.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        if storage.status(storage.join(folder, PLAN)) is not None:
            raise InputError(
                "its job is not finished, so that documents are missing; run the same job again,"
                " or finish it",
                str(folder),
            )
        return None
    path = storage.join(folder, MANIFEST)
    listed = conform(manifest.get("shards", []), list[dict[str, Any] | None], path, JobError)
    names = [str(shard.get("file")) for shard in listed if shard]
    if strange := [name for name in names if not SHARD.fullmatch(name)]:
        raise JobError(f"names {strange[0]!r}, which is no shard", path)
    return [storage.join(folder, name) for name in names]


def saved_beside(path: str | Path) -> str | None:
    """Return the tokenizer.json of the job that a folder, or a file in it, belongs to; or None."""
    folder = path if storage.is_folder(path) else os.path.dirname(path)
    path_of_tokenizer = storage.join(folder, f"{TOKENIZER}/tokenizer.json")
    return path_of_tokenizer if storage.is_file(path_of_tokenizer) else None
