"""Processes of this machine that encode shards, as the one that hands them out sees them.
:mod:`numtok.corpus.jobs.worker` is the other end.

In: a folder with a plan. Out: processes that are given numbers of shards on their standard input
    and answer in lines of JSON, which come out of one queue. They are plain children, neither forks
    nor what ``multiprocessing`` spawns: no lock, no thread and no script of the parent comes along.
    They end when their input ends, and so with the parent, however that ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Collection
from typing import Any, NamedTuple

from numtok.errors import JobError

START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from numtok.corpus.jobs.worker import"
    " main; main()"
)
THRIFTY = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "1",
}  # a quarter less memory in each worker, for no more time
PATIENCE = 10.0  # seconds that a worker has for tidying up
_LONGEST = 500  # characters of what a dead worker said last


class Worker:
    """One process.

    Attributes:
        shard: that it was given; None while it has none.
        ended: whether it was told that there is nothing more to do.
    """

    def __init__(self, given: dict[str, Any], messages: queue.SimpleQueue[Message]) -> None:
        self.shard: int | None = None
        self.ended = False
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        environment = {**THRIFTY, "RAYON_NUM_THREADS": str(given["threads"]), **os.environ}
        self._process = subprocess.Popen(
            [sys.executable, "-c", START, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            env=environment,
        )
        self.pid = self._process.pid
        self._tell(given)
        self._listener = threading.Thread(
            target=self._listen, args=(messages,), name="numtok-pool", daemon=True
        )
        self._listener.start()

    def _listen(self, messages: queue.SimpleQueue[Message]) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            messages.put(Message(self, json.loads(line)))
        messages.put(Message(self, None))

    def _tell(self, content: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it is dead, which its messages will tell
            self._process.stdin.write(json.dumps(content) + "\n")
            self._process.stdin.flush()

    def give(self, shard: int) -> None:
        """Have it encode a shard."""
        self.shard = shard
        self._tell({"shard": shard})

    def end(self) -> None:
        """Let it go once it has nothing to do."""
        assert self._process.stdin is not None
        self.ended = True
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def stop(self) -> None:
        """Have it tidy up at once."""
        with contextlib.suppress(OSError):
            self._process.terminate()

    def wait(self) -> None:
        """Until it has ended."""
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        """Wait for it, and let go of what it wrote to."""
        self.wait()
        self._listener.join()
        for file in (self._process.stdin, self._process.stdout, self._said):
            with contextlib.suppress(OSError):
                file.close()  # type: ignore[union-attr]  # they are pipes

    def last_words(self) -> str:
        """How it ended, and the last that it said."""
        self.wait()
        self._said.seek(0)
        lines = self._said.read().decode("utf-8", "replace").strip().splitlines()
        code = self._process.returncode
        how = (
            f"was killed ({signal.Signals(-code).name})"
            if code < 0
            else f"ended with status {code}"
        )
        return how + (f": {lines[-1][-_LONGEST:]}" if lines else "")


class Message(NamedTuple):
    """What a worker says; ``content`` is None if it will say no more."""

    worker: Worker
    content: dict[str, Any] | None


class Pool:
    """The workers of one run; a context that none of them outlives.

    Args:
        folder: of the job.
        threads: in each worker.
        modules: to import first, where representations are defined.
    """

    def __init__(self, folder: str, threads: int, modules: Collection[str]) -> None:
        self._given = {"folder": folder, "threads": threads, "modules": sorted(modules)}
        self._messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._workers: list[Worker] = []

    def start(self) -> None:
        """One more process; it will say ``ready``."""
        try:
            self._workers.append(Worker(self._given, self._messages))
        except OSError as error:
            raise JobError(
                f"cannot start a worker: {error.strerror or error}; use fewer --workers"
            ) from error

    def next(self) -> Message:
        """The next message."""
        while True:
            with contextlib.suppress(
                queue.Empty
            ):  # waking up now and then lets an interrupt through
                return self._messages.get(timeout=1.0)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for worker in self._workers:
            worker.end() if kind is None else worker.stop()
        for worker in self._workers:
            worker.close()
