"""Imported first in a process of its own, it takes away what Windows does not have, and refuses what
Windows refuses: to open a folder, and to rename or remove a file that this process has open.
"""

import ctypes
import os
import shutil
import signal
import sys
import tempfile

import pyarrow.parquet  # noqa: F401  # others may use what is taken away, and have ways around it
import torch  # noqa: F401

NAMES = (
    "O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK fork getuid mkfifo sched_getaffinity statvfs uname"
)

for module in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[module] = None  # to import it then fails
for name in NAMES.split():
    delattr(os, name)
del signal.SIGHUP, signal.SIGKILL

_open, _listdir, _readlink, _temporary_file = (
    os.open, os.listdir, os.readlink, tempfile.TemporaryFile,
)  # fmt: skip


def _refuse_open_ones(of):
    def checked(path, *more, **options):
        paths = [
            os.path.realpath(one) for one in (path, *more) if isinstance(one, str | os.PathLike)
        ]
        for descriptor in _listdir("/proc/self/fd"):
            try:
                opened = _readlink(f"/proc/self/fd/{descriptor}")
            except OSError:
                continue
            if opened in paths:
                raise PermissionError(13, "used by another process", opened)
        return of(path, *more, **options)

    return checked


def _open_no_folder(path, flags, *more, **options):
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied", path)
    return _open(path, flags, *more, **options)


class _LibraryWithAName(ctypes.CDLL):
    def __init__(self, name, *more, **options):
        if name is None:
            raise TypeError("argument of type 'NoneType' is not iterable")
        super().__init__(name, *more, **options)


class _OpenedOnce:
    def __init__(self, *more, **options):
        self.name, self._file = "used by another process", _temporary_file(*more, **options)

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()


ctypes.CDLL, tempfile.NamedTemporaryFile = _LibraryWithAName, _OpenedOnce
shutil._use_fd_functions = False
os.open = _open_no_folder
for name in ("rename", "replace", "unlink", "remove"):
    setattr(os, name, _refuse_open_ones(getattr(os, name)))
