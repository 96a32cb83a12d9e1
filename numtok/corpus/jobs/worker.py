"""The program of a worker: a process that another has started to do shards, and that ends with it.
Its standard input is a pipe from that process, and closed once that is gone.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time

GRACE = 0.3  # seconds to tidy up in, once the parent is dead: it ends within one


def main() -> None:
    """Do what the first argument says, as JSON, for the process whose number is the second."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's business
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # an exit tidies up
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends it
    parent = int(sys.argv[2])
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()
    from numtok.corpus.jobs.work import do_share  # takes seconds to load, in which a parent may die

    do_share(**json.loads(sys.argv[1]))


def _end_with_parent(parent: int) -> None:
    """End the process once its standard input has ended: by an exit, and where that takes longer
    than ``GRACE`` and the parent is dead, at once. The next run removes what was half written.
    """
    while os.read(0, 1):  # not by sys.stdin, whose lock the end of Python would wait for
        pass
    stop = time.monotonic() + GRACE
    while os.getppid() == parent and time.monotonic() < stop:
        time.sleep(0.01)  # a process that dies closes its files first
    if os.getppid() != parent:  # else it waits, and kills what takes too long
        # by the system, as this thread stands still while Python loads a library or ends
        signal.setitimer(signal.ITIMER_REAL, GRACE)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
