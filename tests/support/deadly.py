"""A representation that stops the process that encodes a text with 666 in it, as want of memory or a
long document would. Workers import this module for it; the process of the tests comes to no harm.
"""

import builtins
import contextlib
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numtok
from numtok.representations.registry import REPRESENTATIONS, register


class Late:
    """Takes long to be deleted, which Python does at its end."""

    def __del__(self, sleep=time.sleep):
        sleep(60)


def end_long():
    builtins.late = Late()
    time.sleep(60)


DEEDS = {
    "dies": lambda: os.kill(os.getpid(), 9),
    "waits": lambda: threading.Event().wait(),
    "encodes long": lambda: ThreadPoolExecutor(1).submit(time.sleep, 60).result(),
    "ends long": end_long,
    "cannot tidy up": lambda: time.sleep(1000),
}


def is_worker():
    """Whether this is a process that was started to encode shards."""
    return b"numtok.corpus.jobs.worker" in Path("/proc/self/cmdline").read_bytes()


@contextlib.contextmanager
def registered(*kinds):
    """Within, representations are known by their names, as in the workers."""
    for kind in kinds:
        register(kind)
    try:
        yield
    finally:
        for kind in kinds:
            del REPRESENTATIONS[kind.name]


@dataclass(frozen=True)
class Deadly(numtok.FloatBits):
    """Tells that it has begun by a file in the folder ``told``, and then does its deed."""

    name: ClassVar[str] = "deadly"
    deed: str = "dies"
    told: str = ""

    def encode(self, numbers):
        if is_worker() and (numbers.to_float64() == 666).any():
            if self.told:
                Path(self.told, str(os.getpid())).touch()
            DEEDS[self.deed]()
        return super().encode(numbers)


if is_worker():
    register(Deadly)
