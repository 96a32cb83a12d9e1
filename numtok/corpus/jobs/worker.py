"""The program of a worker: a process that another has started to encode shards. Its standard input
gives the numbers of shards, a line each, and ends with the process that started it; its standard
output tells, in JSON lines, how far it is and what came of each shard.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import time
from typing import Any

GRACE = 0.3  # seconds to tidy up in, once nobody asks for the shard any more
TELL = 0.2  # seconds between two words on how far it is


def main() -> None:
    """Encode the shards that standard input names, of the job that the first argument says."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's business
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # an exit tidies up
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what anything prints is no message
    numbers: queue.SimpleQueue[int | None] = queue.SimpleQueue()
    busy = threading.Event()
    busy.set()
    threading.Thread(target=_listen, args=(numbers, busy), daemon=True).start()
    address, threads = json.loads(sys.argv[1])
    from numtok.corpus.jobs.encode_shard import Address, try_shard  # takes seconds to load

    def tell(message: Any) -> None:
        channel.write(json.dumps(message) + "\n")
        channel.flush()

    last_time = 0.0

    def progress(far: Any) -> None:
        nonlocal last_time
        if time.monotonic() - last_time > TELL:
            last_time = time.monotonic()
            tell({"progress": far})

    task = Address(*address).open()
    tell({"ready": True})
    busy.clear()
    while (number := numbers.get()) is not None:
        busy.set()
        outcome = try_shard(task, task.plan.shards[number], threads, progress)
        busy.clear()
        tell({"outcome": outcome})


def _listen(numbers: queue.SimpleQueue[int | None], busy: threading.Event) -> None:
    """Pass on the numbers; once standard input has ended, end what is being encoded: by an exit,
    and where that takes longer than ``GRACE``, at once. The next run removes what is half written.
    """
    # not sys.stdin, whose lock the end of Python awaits
    orders = os.fdopen(0, "rb", buffering=0, closefd=False)
    while line := orders.readline():
        numbers.put(int(line))
    numbers.put(None)
    if busy.is_set():
        if hasattr(signal, "setitimer"):  # as this thread stands still while Python loads or ends
            signal.setitimer(signal.ITIMER_REAL, GRACE)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(GRACE)
        os._exit(128 + signal.SIGTERM)


if __name__ == "__main__":
    main()
