"""On the first run of a machine, some kernels are compiled by another process while this one
compiles others: its user waits two thirds as long.

In: a module whose ``compile_kernels()`` calls the kernels once, and their names. Out: their files,
    where every process looks for them. This one waits for a file that it needs while the other
    process lives; whatever goes wrong there, it compiles the kernel itself. Nothing is begun if
    something is compiled already, if nothing can be kept, on one core, or in a process that has a
    parent of its own to do it.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

from numtok.arrays.kernel_folders import is_compiled, writable_place

LONGEST = 60.0  # seconds that are waited
PAUSE = 0.005
_PROGRAM = """import importlib, sys
from numtok.arrays import compile_beside
compile_beside.allowed = False
importlib.import_module(sys.argv[1]).compile_kernels()"""
allowed = True


class _Helper(NamedTuple):
    process: subprocess.Popen[bytes]
    kernels: tuple[str, ...]


_helper: _Helper | None = None


def begin(module: str, kernels: tuple[str, ...]) -> None:
    """Have these kernels compiled by another process, once in the life of this one, if there is
    reason to.
    """
    global _helper, allowed
    if (
        allowed
        and not any(map(is_compiled, kernels))
        and _can_help()
        and writable_place() is not None
    ):
        with contextlib.suppress(OSError):
            nothing = subprocess.DEVNULL
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, module],
                stdin=nothing,
                stdout=nothing,
                stderr=nothing,
            )
            atexit.register(_end, process)
            _helper = _Helper(process, kernels)
    allowed = False


def _can_help() -> bool:
    """Whether there is a core and an interpreter for it; a program frozen into one file would be
    run again instead.
    """
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return (
        cores > 1
        and multiprocessing.parent_process() is None
        and bool(sys.executable)
        and not getattr(sys, "frozen", False)
    )


def waited(kernel: str, is_there: Callable[[], bool]) -> bool:
    """Whether the other process had this kernel to compile; then it is there, or that process has
    ended.
    """
    if _helper is None or kernel not in _helper.kernels:
        return False
    until = time.monotonic() + LONGEST
    while _helper.process.poll() is None and not is_there() and time.monotonic() < until:
        time.sleep(PAUSE)
    return True


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
