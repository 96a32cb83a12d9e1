"""Files that are there whole or not at all. Until a file is complete, it is
``.NAME.HOST.PID-RANDOM.tmp`` beside its place, locked by its writer: what a killed run left is not
locked, and the next run that writes the same name removes it. A run on another machine is never
taken for dead, since not every shared disk shares its locks.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from numtok import storage
from numtok.errors import OutputError
from numtok.storage import is_url

locks: Any = None  # on Windows: nothing is locked, and so nothing taken for a leftover
with contextlib.suppress(ImportError):
    import fcntl as locks

_TEMPORARY = re.compile(r"\..+\.[\w-]+\.\d+-[0-9a-f]{12}\.tmp")
_LONGEST_NAME = 180  # bytes; file systems allow 255, and host, number and random part take up to 60


@contextlib.contextmanager
def new_file(path: str | Path, overwrite: bool) -> Iterator[BinaryIO]:
    """Open an unbuffered file under a temporary name. When the context ends well it gets its own
    name, or goes to its URL; else it is removed.

    Forcing what is written to the disk is left to the writer. A link is followed: the file it names
    is replaced. OutputError if there is no folder for it; the file exists and ``overwrite`` is not
    set; it is a folder or a device; or the system refuses.
    """
    if is_url(path):
        with storage.new_object(str(path), overwrite) as file:
            yield file
        return
    path = Path(path)
    if os.path.isdir(path):
        raise OutputError(f"{path} is a folder; name a file in it")
    if os.path.lexists(path) and not overwrite:
        raise OutputError(
            f"{path} exists already; choose another name, or overwrite it with overwrite=True"
            " (--overwrite)"
        )
    if _is_special(path):
        raise OutputError(
            f"{path} is a device or a pipe, which cannot be replaced by a file; choose another name"
        )
    target = Path(os.path.realpath(path)) if os.path.islink(path) else path
    if not target.parent.is_dir():  # a name that was mistyped would make a folder anywhere
        raise OutputError(
            f"cannot write {path}: there is no folder {target.parent}; make it, or choose another"
            " place"
        )
    try:
        # a name that the system refuses is refused now, not once hours have gone into the file
        with contextlib.suppress(FileNotFoundError):
            os.lstat(target)
        _remove_leftovers(target)
        temporary, descriptor = _create(target)
    except OSError as error:
        raise OutputError(
            f"cannot write {path}: {error.strerror}; check the folder and its permissions"
        ) from error
    try:
        # where there are no locks, it is closed before it is renamed: Windows wants that
        with open(os.dup(descriptor) if locks else descriptor, "w+b", buffering=0) as file:
            yield file
        _publish(temporary, target, overwrite)
    finally:
        temporary.unlink(missing_ok=True)
        if locks:
            os.close(descriptor)


def write_file(path: str | Path, content: str | bytes) -> None:
    """Write ``content`` (text as UTF-8), replacing what is there in one step, and make the folder
    that it belongs in; a device or a pipe gets it as it is. OutputError if the system refuses; what
    was there stays as it was.
    """
    data = memoryview(content.encode() if isinstance(content, str) else content)
    if is_url(path):
        storage.write_object(str(path), bytes(data))
        return
    path = Path(path)
    special = _is_special(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "wb", buffering=0) if special else new_file(path, overwrite=True) as file:
            while data:
                data = data[file.write(data) :]
            if not special:
                os.fsync(file.fileno())
    except OutputError:
        raise
    except OSError as error:
        refusal = OutputError(
            f"cannot write {path}: {error.strerror or error}; make room or choose another place,"
            " then run again"
        )
        refusal.errno = error.errno
        raise refusal from error


def lock(descriptor: int, wait: bool = True) -> None:
    """Lock a file until it is closed; OSError if another process has, or without locks."""
    if not locks:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
    locks.flock(descriptor, locks.LOCK_EX | (0 if wait else locks.LOCK_NB))


def is_temporary(name: str) -> bool:
    """Whether a file of this name is one that a run writes, or died over."""
    return _TEMPORARY.fullmatch(name) is not None


def _is_special(path: Path) -> bool:
    """Whether it exists and is neither a file nor a folder."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def _prefix(target: Path) -> str:
    """Return the prefix of the temporary names for this target on this machine."""
    name = target.name
    if len(os.fsencode(name)) > _LONGEST_NAME:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()[:32]
    return f".{name}.{_host()}."


def _host() -> str:
    return re.sub(r"[^\w-]", "-", socket.gethostname(), flags=re.ASCII)[:32]


def _create(target: Path) -> tuple[Path, int]:
    """Return a new temporary file and its descriptor, which holds the lock until it is closed."""
    while True:
        name = f"{_prefix(target)}{os.getpid()}-{secrets.token_hex(6)}.tmp"
        temporary = target.with_name(name)
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        # without locks in the file system, nothing is removed there as a leftover either
        with contextlib.suppress(OSError):
            lock(descriptor)
        if temporary.exists():
            return temporary, descriptor
        os.close(descriptor)  # another run took it for a leftover before it was locked


def _remove_leftovers(target: Path) -> None:
    """Remove the temporary files of this target by runs on this machine that died."""
    names: list[str] = []
    if not locks:
        return
    with contextlib.suppress(OSError):  # a folder that may be written to, but not listed
        names = [name for name in os.listdir(target.parent) if is_temporary(name)]
    for name in names:
        if not name.startswith(_prefix(target)):
            continue
        # locked by a run that lives, gone meanwhile, or not ours
        with contextlib.suppress(OSError):
            descriptor = os.open(target.with_name(name), os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW)
            try:
                lock(descriptor, wait=False)
                os.unlink(target.with_name(name))
            finally:
                os.close(descriptor)


def _publish(temporary: Path, path: Path, overwrite: bool) -> None:
    """Give the complete file its name in one step, and make the name last through a power cut."""
    try:
        os.replace(temporary, path) if overwrite else _rename_new(temporary, path)
        if hasattr(os, "O_DIRECTORY"):  # else folders cannot be opened
            folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except FileExistsError:
        raise OutputError(
            f"{path} was made by someone else meanwhile; choose another name, or overwrite it with"
            " overwrite=True (--overwrite)"
        ) from None
    except OSError as error:
        raise OutputError(
            f"cannot give {path} its name: {error.strerror}; check the folder and its permissions"
        ) from error


def _rename_new(temporary: Path, path: Path) -> None:
    """Rename, but never onto a file that came into being since: a link fails there."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if path.exists():
            raise FileExistsError(path) from None
        os.replace(temporary, path)
