"""Lock files in the folder of a job on a disk: a second run that would write the same shards is
refused. The system drops the locks of a process that dies. In an object store there are none: the
last rename wins, with the same bytes.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator

from numtok import files
from numtok.corpus.jobs.folder import OWN, Folder
from numtok.errors import JobError, OutputError

_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@contextlib.contextmanager
def run_lock(folder: Folder, share: tuple[int, int] | None = None) -> Iterator[None]:
    """Hold the lock of a run: runs of different shares go together, and no other two. JobError if
    another run has it.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(_lock(folder, "lock", shared=share is not None))
        if share is not None:
            stack.enter_context(_lock(folder, f"{share[0]}-of-{share[1]}.lock"))
        yield


@contextlib.contextmanager
def plan_lock(folder: Folder) -> Iterator[None]:
    """Hold the lock of the plan, once those who have it are done."""
    with _lock(folder, "plan.lock", wait=True):
        yield


@contextlib.contextmanager
def _lock(folder: Folder, name: str, shared: bool = False, wait: bool = False) -> Iterator[None]:
    path = folder.file(f"{OWN}/{name}")
    if folder.remote or not files.locks:
        yield
        return
    folder.make_way(f"{OWN}/{name}")
    descriptor = _take(folder, path, shared, wait)
    try:
        if not shared:
            os.truncate(descriptor, 0)
            os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode())
        yield
    finally:
        with contextlib.suppress(OSError):  # shared with others, who remove it in the end
            files.lock(descriptor, wait=False)
            os.unlink(path)
        os.close(descriptor)


def _take(folder: Folder, path: str, shared: bool, wait: bool) -> int:
    """Return the locked file; the one of this name, as another run may have removed it meanwhile."""
    while True:
        try:
            descriptor = os.open(path, _FLAGS, 0o666)
        except OSError as error:
            raise OutputError(
                f"cannot write {path}: {error.strerror}; check the folder and its permissions"
            ) from error
        try:
            files.lock(descriptor, wait, shared)
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
