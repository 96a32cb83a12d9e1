"""A process that encodes shards for :mod:`numtok.corpus.jobs.pool`.

In, on standard input: a line of JSON with the folder, then the number of a shard in each. Out, on
    standard output: lines that say ``ready``, how far a shard is, and how it ended. It ends with
    its input, in the middle of a shard too, and leaves nothing half-written.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import queue
import signal
import sys
import threading
import time
import warnings
from typing import Any

from numtok.corpus.jobs.attempt import Outcome, Task, attempt
from numtok.corpus.jobs.shards import read_plan, saved_tokenizer
from numtok.corpus.jobs.store import Folder
from numtok.corpus.summary import Progress

_EVERY = 0.2  # seconds between two reports
_ENDED = 128 + signal.SIGTERM


class _Parent:
    """The one that hands out shards."""

    def __init__(self) -> None:
        self._channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)  # whatever prints must not speak in between
        self._next_report = 0.0
        self.orders: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self.busy = threading.Event()

    def tell(self, **content: Any) -> None:
        self._channel.write(json.dumps(content) + "\n")
        self._channel.flush()

    def listen(self) -> None:
        """Take orders; the end of the input is the end of the parent, or of the work."""
        for line in sys.stdin:
            self.orders.put(json.loads(line)["shard"])
        self.orders.put(None)
        if self.busy.is_set():
            os.kill(os.getpid(), signal.SIGTERM)

    def watch(self, shard: int, progress: Progress) -> None:
        """Say now and then how far the shard is."""
        if (now := time.monotonic()) >= self._next_report:
            self._next_report = now + _EVERY
            self.tell(progress=progress)


def main() -> None:
    """The whole life of the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's business
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_ENDED))  # an exit tidies up
    logging.getLogger("numtok").setLevel(logging.ERROR)  # the parent has said it
    warnings.simplefilter("ignore")
    parent = _Parent()
    given = json.loads(sys.stdin.readline())
    for module in given["modules"]:
        importlib.import_module(module)
    folder = Folder(given["folder"])
    plan = read_plan(folder)
    assert plan is not None, "a worker is started for a job that is planned"
    task = Task(folder, plan, saved_tokenizer(folder, plan))
    threading.Thread(target=parent.listen, daemon=True).start()
    parent.tell(ready=True)
    while (shard := parent.orders.get()) is not None:
        parent.busy.set()
        outcome: Outcome = attempt(task, shard, given["threads"], parent.watch)
        parent.busy.clear()
        parent.tell(ended=outcome)


if __name__ == "__main__":
    main()
