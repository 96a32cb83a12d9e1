"""What does shards, wherever it runs: it claims the next one that has no receipt, makes it, and goes
on until there is none that nobody works on.

In: a task, the shards that are to be done, the claims of this process. Out: files, receipts, and
    the claims of those that failed, with the reason. :func:`main` is a process of its own that does
    so, for :mod:`numtok.corpus.jobs.run`: its standard input says what, and ends when it is to end;
    its standard output says how far it is, in lines of JSON.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Collection, Sequence
from typing import Any

from numtok.corpus.jobs.claims import SUFFIX, Claims
from numtok.corpus.jobs.folder import OWN, Folder
from numtok.corpus.jobs.plan import Shard, read_plan
from numtok.corpus.jobs.shards import Outcome, Task, attempt, saved_tokenizer
from numtok.corpus.summary import Progress
from numtok.errors import JobError

_EVERY = 0.2  # seconds between two reports
_ENDED = 128 + signal.SIGTERM

Told = Callable[[Shard, Progress | Outcome], None]


def work(task: Task, shards: Sequence[Shard], claims: Claims, threads: int, tell: Told) -> None:
    """Do what nobody does.

    Args:
        task: the job.
        shards: of it, that are to be done, by whomever.
        claims: of this process.
        threads: that encode.
        tell: is called with how far a shard is, and with how it ended.
    """
    folder, left = task.folder, list(shards)
    while left:
        names = set(folder.names(OWN))
        left = [shard for shard in left if not _taken(shard, names)]
        shard = next((shard for shard in left if claims.take(shard.name)), None)
        if shard is None:
            return
        outcome = Outcome()
        try:
            if folder.size(shard.receipt) is None:  # nobody was quicker
                outcome = attempt(task, shard, threads, tell)
                if outcome.error is not None and folder.size(shard.receipt) is not None:
                    outcome = Outcome()  # somebody else has done it meanwhile
        except BaseException:
            claims.release(shard.name)
            raise
        claims.release(shard.name, outcome.error)
        tell(shard, outcome)
        if outcome.stop:
            return


def _taken(shard: Shard, names: Collection[str]) -> bool:
    return f"{shard.name}.json" in names or f"{shard.name}{SUFFIX}" in names


def task_in(folder: str, modules: Sequence[str]) -> Task:
    """The job that lies in a folder, for a process that knows nothing of it yet."""
    logging.getLogger("numtok").setLevel(logging.ERROR)  # who began it has said it
    warnings.simplefilter("ignore")
    for module in modules:
        importlib.import_module(module)
    plan = read_plan(Folder(folder))
    if plan is None:
        raise JobError(
            f"there is no plan in {folder} as this machine sees it; the folder must be the same on"
            " all of them, as on a shared file system"
        )
    return Task(Folder(folder), plan, saved_tokenizer(Folder(folder), plan))


class _Parent:
    """The one that started this process."""

    def __init__(self) -> None:
        self._channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)  # whatever prints must not speak in between
        self._next_report = 0.0

    def listen(self) -> None:
        """The end of the input is the end of the parent, or of its patience."""
        while os.read(0, 1):  # not by sys.stdin, whose lock the end of Python would wait for
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    def tell(self, content: dict[str, Any]) -> None:
        self._channel.write(json.dumps(content) + "\n")
        self._channel.flush()

    def watch(self, shard: Shard, said: Progress | Outcome) -> None:
        """Say now and then how far the shard is, and how it ended."""
        if isinstance(said, Outcome):
            self.tell({"shard": shard.number, "error": said.error, "stop": said.stop})
        elif (now := time.monotonic()) >= self._next_report:
            self._next_report = now + _EVERY
            self.tell({"shard": shard.number, "progress": said})


def main() -> None:
    """The whole life of the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's business
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_ENDED))  # an exit tidies up
    parent = _Parent()
    given = json.loads(sys.stdin.readline())
    task = task_in(given["folder"], given["modules"])
    threading.Thread(target=parent.listen, daemon=True).start()
    parent.tell({"ready": True})
    wanted = set(given["shards"])
    shards = [shard for shard in task.plan.shards if shard.number in wanted]
    work(task, shards, Claims(task.folder, given["run"]), given["threads"], parent.watch)


if __name__ == "__main__":
    main()
