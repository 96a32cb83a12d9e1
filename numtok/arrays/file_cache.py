"""Files of a user's cache folder, each written whole or not at all, with a checksum; and which
folders can be trusted with what decides on what runs.

The folder is ``numtok`` in ``XDG_CACHE_HOME``, else in ``~/.cache``; ``NUMTOK_CACHE`` names
another, and ``NUMTOK_CACHE=0`` none. It and all above it must be the user's own or the system's,
and nobody else may write there. Nothing that is cached is needed.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import secrets
import stat
import sys
from collections.abc import Callable
from pathlib import Path

HEAD = b"numtok kept 1\n"
DIGEST = 32  # bytes of SHA-256
MOST_FILES = 1024  # of a folder; the oldest half goes when there are more
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_IMPORT = re.compile(r"^ *(?:from|import)\s+([\w.]+)", re.MULTILINE)


def user_folder() -> Path | None:
    """Return the cache folder of this user, which may not exist yet; None if it cannot be trusted."""
    chosen = os.environ.get("NUMTOK_CACHE")
    if chosen == "0":
        return None
    try:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a user without a home
        return None
    folder = Path(chosen) if chosen else caches / "numtok"
    return folder if not os.path.lexists(folder) or trusted(folder) else None


def trusted(folder: Path) -> Path | None:
    """Return the folder, free of symbolic links, if it is there, this user or the system owns it
    and all above it, and nobody else can write to any of them (but to a sticky one, such as /tmp).
    """
    try:
        real = folder.resolve(strict=True)
        levels = [level.stat() for level in (real, *real.parents)]
    except (OSError, RuntimeError):  # none, or a circle of links
        return None
    if not hasattr(os, "getuid"):  # Windows, where a user's own folders are private
        return real
    for at, level in enumerate(levels):
        ours = level.st_uid in (os.getuid(), 0) and stat.S_ISDIR(level.st_mode)
        own_group = stat.S_IWGRP if at and level.st_gid == level.st_uid else 0
        writable = level.st_mode & OTHERS_WRITE & ~own_group
        if not ours or (writable and not (at and level.st_mode & stat.S_ISVTX)):
            return None
    return real


def _is_ours(file: os.stat_result) -> bool:
    """Whether this user or the system owns it, and nobody else can write to it."""
    if not hasattr(os, "getuid"):
        return True
    return file.st_uid in (os.getuid(), 0) and not file.st_mode & OTHERS_WRITE


def make_private(folder: Path) -> Path:
    """Make the folder and what is missing above it, for this user alone, whatever the umask;
    returns it free of symbolic links. OSError if the system refuses, or somebody else can write to
    a folder that is there.
    """
    for level in reversed([folder, *folder.parents]):
        if not os.path.lexists(level):
            with contextlib.suppress(FileExistsError):
                level.mkdir(mode=0o700)
    if (real := trusted(folder)) is None:
        raise PermissionError(
            f"{folder}, or a folder above it, belongs to another user, or others can write to it"
        )
    return real


@functools.cache
def source_key(module: str) -> str:
    """Return a digest of the source of a module and of all that it imports of its package and of
    numtok, directly or not: it changes with them, whatever the times of the files. OSError if there
    are no files of it.
    """
    roots = {module.partition(".")[0], __name__.partition(".")[0]}
    ahead, digests = [module], {}
    while ahead:
        name = ahead.pop()
        if name not in digests and name.partition(".")[0] in roots:
            digests[name], imported = _source(name)
            ahead += imported
    return hashlib.sha256("".join(digests[name] for name in sorted(digests)).encode()).hexdigest()


@functools.cache
def _source(module: str) -> tuple[str, list[str]]:
    """Return (a digest of its source, the modules that it imports); of a package, of all its files."""
    name, *parts = module.split(".")
    root = sys.modules[name]
    path = Path(next(iter(getattr(root, "__path__", [root.__file__ or ""]))), *parts)
    files = sorted(path.glob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    content = b"".join(file.read_bytes() for file in files)
    return hashlib.sha256(content).hexdigest(), _IMPORT.findall(content.decode())


def read(path: Path) -> bytes | None:
    """Return the content that :func:`write` stored; None if it is missing or damaged, or if the
    file, its folder or any above it is another user's or writable by others (:func:`trusted`).
    """
    folder = trusted(path.parent)
    if folder is None:
        return None
    try:
        with open(folder / path.name, "rb") as file:
            content = file.read() if _is_ours(os.fstat(file.fileno())) else b""
    except OSError:
        return None
    digest, rest = content[len(HEAD) :][:DIGEST], content[len(HEAD) + DIGEST :]
    whole = content.startswith(HEAD) and hashlib.sha256(rest).digest() == digest
    return rest if whole else None


def write(path: Path, content: bytes) -> None:
    """Cache ``content`` there in one step, and remove the older half of a folder that has more than
    ``MOST_FILES``. OSError if the system refuses.
    """
    folder = make_private(path.parent)
    temporary = folder / f"{path.name}.{secrets.token_hex(6)}.tmp"
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with open(os.open(temporary, flags, 0o600), "wb") as file:  # whatever the umask
            file.write(HEAD + hashlib.sha256(content).digest() + content)
        os.replace(temporary, folder / path.name)
    finally:
        temporary.unlink(missing_ok=True)
    if len(names := os.listdir(folder)) > MOST_FILES:
        with contextlib.suppress(OSError):  # another process may be at it
            by_age = sorted(names, key=lambda name: os.stat(folder / name).st_mtime)
            for name in by_age[: len(names) // 2]:
                (folder / name).unlink(missing_ok=True)


def cached(kind: str, inputs: list[str], find: Callable[[], str]) -> str:
    """Return ``find()``, cached between runs. ``inputs`` must hold everything the result depends on,
    except the source of the function's module, which is part of the key anyway.
    """
    folder = user_folder()
    if folder is None:
        return find()
    try:
        source = source_key(find.__module__)
    except OSError:  # numtok is installed without its sources
        return find()
    digest = hashlib.sha256()
    for part in (source, kind, *inputs):
        digest.update(hashlib.sha256(part.encode("utf-8", "surrogatepass")).digest())
    path = folder / "facts" / f"{kind}-{digest.hexdigest()[:40]}"
    stored = read(path)
    if stored is not None:
        return stored.decode()
    result = find()
    with contextlib.suppress(OSError):
        write(path, result.encode())
    return result
