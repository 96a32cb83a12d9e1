"""What is kept between runs: files in the user's cache folder, each written whole or not at all,
with a checksum.

In: a path and bytes. Out: the same bytes, or None, for whatever reason: nothing that is kept is
    needed.

The folder is ``numtok`` in ``XDG_CACHE_HOME``, else in ``~/.cache``; ``NUMTOK_CACHE`` names
another, and ``NUMTOK_CACHE=0`` none. What lies there decides on what runs, so it is used only if it
is the user's own and nobody else can write to it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path

from numtok.arrays.stamp import content_stamp

HEAD = b"numtok kept 1\n"
DIGEST = 32  # bytes of SHA-256
MOST_FACTS = 4096  # files; the oldest half goes when there are more


def user_folder() -> Path | None:
    """The folder of this user, which may not be there yet; None if there is none that can be
    trusted.
    """
    chosen = os.environ.get("NUMTOK_CACHE")
    if chosen == "0":
        return None
    try:
        folder = (
            Path(chosen)
            if chosen
            else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "numtok"
        )
    except RuntimeError:  # a user without a home
        return None
    return folder if _is_private(folder) or not os.path.lexists(folder) else None


def _is_private(folder: Path) -> bool:
    """Whether the folder is there, is the user's own (or the system's), and nobody else can write
    to it.
    """
    try:
        found = folder.stat()
    except OSError:
        return False
    ours = os.name != "posix" or (
        found.st_uid in (os.getuid(), 0) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )
    return ours and stat.S_ISDIR(found.st_mode)


def make_private(folder: Path) -> None:
    """Make the folder, for this user alone.

    Raises:
        OSError: if the system refuses.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def read(path: Path) -> bytes | None:
    """What :func:`write` put there, if it is whole."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    start = len(HEAD) + DIGEST
    if (
        not content.startswith(HEAD)
        or hashlib.sha256(content[start:]).digest() != content[len(HEAD) : start]
    ):
        return None
    return content[start:]


def write(path: Path, content: bytes) -> None:
    """Keep ``content`` there in one step: other runs find what was there, or this.

    Raises:
        OSError: if the system refuses.
    """
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        temporary.write_bytes(HEAD + hashlib.sha256(content).digest() + content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def once(kind: str, given: list[str], find: Callable[[], str]) -> str:
    """What ``find()`` returns, kept for the next run with the same ``given``, which must hold all
    that it depends on beside numtok's own source.
    """
    folder = user_folder()
    if folder is None:
        return find()
    digest = hashlib.sha256()
    for part in (content_stamp(), kind, *given):
        digest.update(hashlib.sha256(part.encode("utf-8", "surrogatepass")).digest())
    path = folder / "facts" / f"{kind}-{digest.hexdigest()[:40]}"
    known = read(path)
    if known is not None:
        return known.decode()
    found = find()
    with contextlib.suppress(OSError):
        make_private(folder)
        path.parent.mkdir(exist_ok=True)
        write(path, found.encode())
        _remove_old(path.parent)
    return found


def _remove_old(folder: Path) -> None:
    names = os.listdir(folder)
    if len(names) > MOST_FACTS:
        by_age = sorted(names, key=lambda name: os.stat(folder / name).st_mtime)
        for name in by_age[: len(names) // 2]:
            (folder / name).unlink(missing_ok=True)
