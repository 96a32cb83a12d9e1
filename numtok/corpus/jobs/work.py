"""What does shards, wherever it runs: it claims the next one that has no receipt, makes it, and goes
on until there is none that nobody works on. As a program, it is a worker that another process has
started, and ends with that.
"""

from __future__ import annotations

import functools
import importlib
import json
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Sequence

from numtok.corpus.jobs.claims import SUFFIX, Claims
from numtok.corpus.jobs.folder import OWN, Folder
from numtok.corpus.jobs.plan import Shard, read_plan
from numtok.corpus.jobs.shards import Task, encode_shard, saved_tokenizer
from numtok.corpus.summary import Progress
from numtok.errors import JobError, NumtokError

Watch = Callable[[bool], None]  # is told now and then, and by True that a shard has ended


def work(task: Task, shards: Sequence[Shard], claims: Claims, threads: int, watch: Watch) -> None:
    """Do what nobody does of these shards; ``watch`` may raise, which stops the work."""
    folder, left = task.folder, list(shards)
    while left:
        names = set(folder.names(OWN))
        left = [one for one in left if not names & {f"{one.name}.json", one.name + SUFFIX}]
        shard = next((shard for shard in left if claims.take(shard.name)), None)
        if shard is None:
            return
        error, stop = None, False
        try:
            if folder.size(shard.receipt) is None:  # nobody was quicker
                error, stop = _attempt(task, shard, claims, threads, watch)
                if error is not None and folder.size(shard.receipt) is not None:
                    error = None  # somebody else has done it meanwhile
        except BaseException:
            claims.release(shard.name)
            raise
        claims.release(shard.name, error, stop)
        watch(True)
        if stop:
            return


def _attempt(
    task: Task, shard: Shard, claims: Claims, threads: int, watch: Watch
) -> tuple[str | None, bool]:
    """(what went wrong, whether all others would fail alike, as on a full disk)."""
    try:
        encode_shard(task, shard, threads, functools.partial(_note, claims, shard.name, watch))
    except NumtokError as error:
        return str(error), isinstance(error, OSError)
    except MemoryError:
        return "out of memory; take fewer workers", False
    except Exception as error:
        notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
        return f"this is a bug in numtok: {type(error).__name__}: {error}{notes}", False
    return None, False


def _note(claims: Claims, name: str, watch: Watch, progress: Progress) -> None:
    claims.note(name, progress)
    watch(False)


def do_share(
    folder: str, here: str, modules: Sequence[str], run: str, share: tuple[int, int], threads: int
) -> None:
    """The work of a process that knows nothing of the job yet: what ``JobRun.given`` says."""
    os.chdir(here)
    logging.getLogger("numtok").setLevel(logging.ERROR)  # who began it has said it
    warnings.simplefilter("ignore")
    for module in modules:
        importlib.import_module(module)
    there = Folder(folder)
    plan = read_plan(there)
    if plan is None:
        raise JobError(f"there is no plan in {folder} as this machine sees it")
    task, claims = Task(there, plan, saved_tokenizer(there, plan)), Claims(there, run)
    work(task, plan.share(share), claims, threads, lambda ended: None)


def _end_with_parent() -> None:
    """Its end is that of the standard input."""
    while os.read(0, 1):  # not by sys.stdin, whose lock the end of Python would wait for
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """The whole life of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's business
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # an exit tidies up
    threading.Thread(target=_end_with_parent, daemon=True).start()
    do_share(**json.loads(sys.argv[1]))


if __name__ == "__main__":
    main()
