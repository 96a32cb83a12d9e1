"""The folder of a job: what lies in it, read and written so that nothing is ever half there.

In: names below the folder, such as ``__numtok/plan.json``. Out: their contents. JSON is written in
    one form only, with a digest of itself: the same content gives the same bytes, and damage is
    noticed. Nothing is written through a link, and nothing but plain files is read. What other
    readers of a folder need is at the end.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from numtok import locations
from numtok.errors import InputError, JobError, OutputError
from numtok.files import is_temporary, remove_leftovers, temporary_name, write_file
from numtok.options import conform
from numtok.stores import objects

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Kind = TypeVar("Kind")

# all that is not data; other programs skip such a name: datasets for its two underscores, pyarrow
# and Spark for one
OWN = "__numtok"
PLAN, MANIFEST, TOKENIZER = f"{OWN}/plan.json", f"{OWN}/manifest.json", f"{OWN}/tokenizer"
QUARANTINE = f"{OWN}/quarantine.jsonl"
DATA = (".parquet", ".arrow", ".feather", ".ipc")  # what readers take for a part of the corpus
SHARD = re.compile(r"\d{5,}(-of-\d{5,})?\.(parquet|arrow)")
FORMATS = (1, 2)  # of what is read; 2 is written
_CHECK = "check"


class Folder:
    """A folder of a file system that this machine has mounted, or of an object store, where folders
    come and go with what is in them.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path).rstrip("/") if locations.is_url(path) else str(Path(path))
        self.remote = locations.is_url(path)

    def __str__(self) -> str:
        return self.path

    def file(self, name: str) -> str:
        """Where the file is."""
        return locations.join(self.path, name)

    def make(self) -> None:
        """Make the folder, and the one of the job's own files in it."""
        if self.remote:
            objects.check_writable(self.path)
            return
        with self._named("make the folder"):
            os.makedirs(self.file(OWN), exist_ok=True)
        self._refuse_link(OWN)

    def names(self, inner: str = "") -> list[str]:
        """What is in the folder or in one below it, sorted; nothing if it is not there."""
        if self.remote:
            return objects.names(self.file(inner))
        with self._named("list the folder"), contextlib.suppress(FileNotFoundError):
            return sorted(os.listdir(self.file(inner)))
        return []

    def size(self, name: str) -> int | None:
        """Bytes of a plain file; None if it is not there."""
        if self.remote:
            return locations.size(self.file(name))
        try:
            found = os.lstat(self.file(name))
        except OSError:
            return None
        return found.st_size if stat.S_ISREG(found.st_mode) else None

    def sha256(self, name: str) -> str:
        """Of a file."""
        with locations.open_file(self.file(name)) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # it can be read into

    def remove(self, name: str) -> None:
        """Remove a file or a folder, if it is there."""
        path = self.file(name)
        if self.remote:
            objects.remove(path)
            return
        with self._named(f"remove {name}"), contextlib.suppress(FileNotFoundError):
            linked = os.path.islink(path)
            shutil.rmtree(path) if os.path.isdir(path) and not linked else os.unlink(path)

    def remove_leftovers(self, here: bool = False) -> None:
        """Remove what runs that died were writing, on whatever machine, only while nobody writes
        here; or the shards that died on this machine, at any time.
        """
        if here:
            if not self.remote:
                remove_leftovers(Path(self.path))
            return
        if self.remote:
            objects.abandon_uploads(self.path)
            return
        for inner in ("", OWN):
            for name in filter(is_temporary, self.names(inner)):
                self.remove(f"{inner}/{name}" if inner else name)

    def each(self, ask: Callable[[Item], Answer], items: Iterable[Item]) -> list[Answer]:
        """The answer about each item, several at once where each takes a while."""
        return locations.each(ask, items, self.remote)

    def create(self, name: str, content: bytes) -> bool:
        """Make a small file in one step; False if there is one of that name."""
        path = self.file(name)
        if self.remote:
            return objects.create(path, content)
        temporary = temporary_name(Path(path), secrets.token_hex(6))
        with self._named(f"write {name}"):
            temporary.write_bytes(content)
            try:
                os.link(temporary, path)
            except FileExistsError:
                return False
            except OSError:  # a file system without hard links
                return _create_plainly(path, content)
            finally:
                temporary.unlink(missing_ok=True)
        return True

    def touch(self, name: str, content: bytes) -> None:
        """Have :meth:`state` tell something else; ``content`` is what the file holds."""
        path = self.file(name)
        if self.remote:
            objects.write(path, content)
        else:
            os.utime(path, follow_symlinks=False)

    def state(self, name: str) -> bytes:
        """What differs once the file was touched."""
        if self.remote:
            return str(objects.status(self.file(name))).encode()
        with contextlib.suppress(OSError):
            return str(os.lstat(self.file(name)).st_mtime_ns).encode()
        return b""

    def replace(self, name: str, content: str | bytes) -> None:
        """Write a small file in one step, over what is there; not through a link."""
        self._refuse_link(name)
        write_file(self.file(name), content)

    def read(self, name: str) -> bytes | None:
        """All of a small file; None if it is not there.

        Raises:
            JobError: for a link, a pipe or a device.
        """
        self._refuse_link(name)
        return _plain(self.file(name))

    def write_json(self, name: str, content: dict[str, Any]) -> None:
        """Write JSON with a digest of itself; whole, and on the disk, when it returns."""
        signed = content | {_CHECK: digest(content)}
        self.replace(name, json.dumps(signed, indent=1, sort_keys=True) + "\n")

    def read_json(self, name: str, kind: type[Kind]) -> Kind | None:
        """The inverse, held to what ``kind`` declares; None if the file is not there.

        Raises:
            JobError: if it is damaged, was changed by hand, or is of another version.
        """
        self._refuse_link(name)
        return read_signed(self.file(name), kind)

    def _refuse_link(self, name: str) -> None:
        """``JobError`` for a link or a pipe: whoever made the folder may have it name any file, or
        never end.
        """
        if self.remote:
            return
        with contextlib.suppress(OSError):
            mode = os.lstat(self.file(name)).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                what = "a symbolic link" if stat.S_ISLNK(mode) else "no plain file"
                raise JobError(
                    f"is {what}, and a job neither reads nor writes its own files through one;"
                    " remove it",
                    self.file(name),
                )

    @contextlib.contextmanager
    def _named(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            refusal = OutputError(
                f"{self.path}: cannot {what}: {error.strerror or error}; check the folder and its"
                " permissions"
            )
            refusal.errno = error.errno
            raise refusal from error


def _create_plainly(path: str, content: bytes) -> bool:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
    except FileExistsError:
        return False
    with open(descriptor, "wb") as file:
        file.write(content)
    return True


def _plain(path: str) -> bytes | None:
    """All of a plain file; of a pipe, which nobody may ever write to, and of a device nothing."""
    if locations.is_url(path):
        return objects.read(path)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise JobError(f"cannot be read: {error.strerror}; remove it", path) from error
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise JobError("is no plain file; remove it", path)
        return file.read()


def digest(content: Any) -> str:
    """SHA-256 of JSON-ready content, written in one form."""
    return hashlib.sha256(
        json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()


def read_signed(path: str, kind: type[Kind]) -> Kind | None:
    """JSON that a job has written, as what declares it; see :meth:`Folder.read_json`."""
    stored = _plain(path)
    if stored is None:
        return None
    try:
        content = json.loads(stored)
        check = content.pop(_CHECK)
    except (ValueError, RecursionError, LookupError, AttributeError, TypeError):
        content, check = {}, None
    if check != digest(content):
        raise JobError("is damaged or was changed by hand; put it back, or begin anew", path)
    if content.get("format") not in FORMATS:
        raise JobError(
            f"is of another version of numtok (format {content.get('format')}); go on with that"
            " version, or begin anew with overwrite=True",
            path,
        )
    return conform(content, kind, path, JobError)


# What readers of the folder ask
# -------------------------------------------------------------------------------------------------


def shards_of(folder: str | Path) -> list[str] | None:
    """The files of a finished job in their order; None for a folder that is not a job's.

    Raises:
        InputError: if shards may be missing: a part of a corpus must not be taken for all of it.
        JobError: if the manifest is damaged.
    """
    manifest = read_signed(locations.join(folder, MANIFEST), dict)
    if manifest is None:
        if locations.exists(locations.join(folder, PLAN)):
            raise InputError(
                "its job is not finished, so that documents are missing; run the same `numtok"
                " encode` again, or `numtok finish`",
                str(folder),
            )
        return None
    names = [str(shard.get("file")) for shard in manifest.get("shards", []) if shard]
    if strange := [name for name in names if not SHARD.fullmatch(name)]:
        raise JobError(f"names {strange[0]!r}, which is no shard", locations.join(folder, MANIFEST))
    return [locations.join(folder, name) for name in names]


def saved_beside(path: str | Path) -> str | None:
    """The tokenizer.json of the job that the folder, or the file in it, belongs to; None if there
    is none.
    """
    folder = path if locations.is_folder(path) else os.path.dirname(path)
    found = locations.join(folder, f"{TOKENIZER}/tokenizer.json")
    return found if locations.is_file(found) else None
