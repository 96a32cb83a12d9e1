"""The folder that a job writes to: where files lie is decided here alone.

In: names below the folder, such as ``__numtok/plan.json``. Out: their contents, whole or not there
    at all; and locks that end with the process that holds them. JSON is written in one form only,
    with a digest of itself: the same content gives the same bytes, and damage is noticed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import socket
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from numtok import locations
from numtok.corpus.job_folder import OWN, PLAN
from numtok.errors import JobError, OutputError
from numtok.files import is_temporary, write_file
from numtok.stores import objects

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_CHECK = "check"


class Folder:
    """A folder of a file system that this machine has mounted, or of an object store, where folders
    come and go with what is in them.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path).rstrip("/") if locations.is_url(path) else str(Path(path))
        self._remote = locations.is_url(path)

    def __str__(self) -> str:
        return self.path

    def file(self, name: str) -> str:
        """Where the file is."""
        return locations.join(self.path, name)

    def make(self) -> None:
        """Make the folder, and the one of the job's own files in it."""
        if self._remote:
            objects.check_writable(self.path)
            return
        with self._named("make the folder"):
            os.makedirs(self.file(OWN), exist_ok=True)

    def exists(self) -> bool:
        return locations.is_folder(self.file(OWN))

    def names(self, inner: str = "") -> list[str]:
        """What is in the folder or in one below it, sorted; nothing if it is not there."""
        if self._remote:
            return objects.names(self.file(inner))
        try:
            return sorted(os.listdir(self.file(inner)))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise self._refusal("list the folder", error) from error

    def size(self, name: str) -> int | None:
        """Bytes of a file; None if it is not there."""
        return locations.size(self.file(name))

    def sha256(self, name: str) -> str:
        """Of a file."""
        with locations.open_file(self.file(name)) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # it can be read into

    def remove(self, name: str) -> None:
        """Remove a file or a folder, if it is there."""
        path = self.file(name)
        if self._remote:
            objects.remove(path)
            return
        with self._named(f"remove {name}"), contextlib.suppress(FileNotFoundError):
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)

    def remove_leftovers(self) -> None:
        """Remove what runs that died were writing, on whatever machine; only while nobody writes
        here.
        """
        if self._remote:
            objects.abandon_uploads(self.path)
            return
        for inner in ("", OWN):
            for name in self.names(inner):
                if is_temporary(name):
                    self.remove(f"{inner}/{name}" if inner else name)

    def each(self, ask: Callable[[Item], Answer], items: Iterable[Item]) -> list[Answer]:
        """The answer about each item, several at once where each takes a while."""
        return locations.each(ask, items, self._remote)

    def write_json(self, name: str, content: dict[str, Any]) -> None:
        """Write JSON with a digest of itself; whole, and on the disk, when it returns."""
        write_file(
            self.file(name),
            json.dumps(content | {_CHECK: digest(content)}, indent=1, sort_keys=True) + "\n",
        )

    def read_json(self, name: str) -> dict[str, Any] | None:
        """The inverse; None if the file is not there.

        Raises:
            JobError: if it is damaged, or was changed by hand.
        """
        with self._named(f"read {name}"):
            stored = locations.read(self.file(name))
        if stored is None:
            return None
        try:
            content = json.loads(stored)
            check = content.pop(_CHECK)
        except (ValueError, RecursionError, LookupError, AttributeError, TypeError):
            content, check = {}, None
        if check != digest(content):
            raise JobError(
                f"is damaged or was changed by hand; {self._way_out(name)}", path=self.file(name)
            )
        return dict(content)

    def _way_out(self, name: str) -> str:
        if name == PLAN:
            return "put the file back, or begin the job anew with --overwrite"
        command = "" if self._remote else f" (rm '{self.file(name)}')"
        return f"remove it{command} and run the same command again, which makes it anew"

    @contextlib.contextmanager
    def lock(self, name: str, shared: bool = False, wait: bool = False) -> Iterator[None]:
        """Hold a lock of the folder, which ends with the process at the latest. Object stores have
        none: what two runs put there is the same, and whole.

        Args:
            name: of the lock.
            shared: with others that share it.
            wait: for who holds it, rather than to raise.

        Raises:
            JobError: somebody else holds it; the message names the process.
        """
        if self._remote:
            yield
            return
        path = self.file(f"{OWN}/{name}")
        with self._named("lock the folder"):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            try:
                fcntl.flock(
                    descriptor,
                    (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB),
                )
            except BlockingIOError:
                holder = os.pread(descriptor, 200, 0).decode("utf-8", "replace") or "unknown"
                raise JobError(
                    f"another run is working on this folder (process {holder}); wait until it ends,"
                    " or stop it: what it has finished stays",
                    path=self.path,
                ) from None
            # a file system without locks: what two runs write is the same, and each file appears in
            # one step
            except OSError as error:
                if error.errno not in (
                    errno.ENOLCK,
                    errno.ENOTSUP,
                    errno.EOPNOTSUPP,
                    errno.ENOSYS,
                    errno.EINVAL,
                ):
                    raise self._refusal("lock the folder", error) from error
            with contextlib.suppress(OSError):
                os.truncate(descriptor, 0)
                os.pwrite(descriptor, f"{os.getpid()} on {socket.gethostname()}".encode(), 0)
            yield
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _named(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._refusal(what, error) from error

    def _refusal(self, what: str, error: OSError) -> OutputError:
        refusal = OutputError(
            f"{self.path}: cannot {what}: {error.strerror or error}; check the folder and its"
            " permissions"
        )
        refusal.errno = error.errno
        return refusal


def digest(content: Any) -> str:
    """SHA-256 of JSON-ready content, written in one form."""
    return hashlib.sha256(
        json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()
