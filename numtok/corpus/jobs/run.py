"""Who does the shards: this process, several of this machine, or tasks on a Ray cluster. All run the
loop of :mod:`numtok.corpus.jobs.work`, and so do other machines that were given the same command;
how far they all are is read from the folder.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

from numtok import locations
from numtok.arrays import memory
from numtok.corpus.jobs.claims import Claim, Claims
from numtok.corpus.jobs.folder import OWN
from numtok.corpus.jobs.plan import Receipt, Shard, read_receipt
from numtok.corpus.jobs.planning import Request
from numtok.corpus.jobs.work import Task, do_share, work
from numtok.corpus.summary import Progress, processors
from numtok.errors import JobError

WORTH_A_PROCESS = 16 << 20  # bytes of input; less takes no longer than a process takes to start
TRIES = 3  # of a shard whose process dies
RAY_TRIES = 100  # of a task: of all the shards that it comes to, each may cost it some
RAY_START = 60.0  # seconds in which some task begins on a cluster that is not busy
LOOK, LOOK_AWAY = 0.2, 2.0  # seconds between two looks at a folder, and at one in a store
PATIENCE = 10.0  # seconds that a worker has for tidying up
COMMAND = ["-m", "numtok.corpus.jobs.worker"]
# a quarter less memory in each worker, for no more time
THRIFTY = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"}
_LONGEST = 500  # characters of what a dead worker said last
_COUNTED = ("read", "documents", "tokens", "written")  # of a Progress, over all shards


class JobRun:
    """One command at work on a job: has its shards done, and tells how far they are."""

    def __init__(
        self,
        task: Task,
        request: Request,
        claims: Claims,
        before: Sequence[Receipt],
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.task, self.claims, self._progress = task, claims, progress
        self.share = request.sharding.share or (1, 1)
        self.ray, self.workers = request.sharding.ray, request.settings.workers
        self.shards = task.plan.share(self.share)
        self.failures: dict[int, str] = {}  # shards that failed, with the reason
        self._done: set[int] = set()
        self._counts: Counter[str] = Counter()  # of what is done
        receipts = {receipt.shard: receipt for receipt in before}
        for shard in self.shards:
            if shard.number in receipts:
                self._finish(shard, receipts[shard.number])
        self.left = [shard for shard in self.shards if shard.number not in self._done]
        self.resumed, self._resumed_bytes = len(self._done), self._counts["read"]  # before this run
        self._claimed: dict[str, Claim] = {}
        self._deaths: Counter[str] = Counter()  # of workers, by the shard that they were at
        self._dead: set[int] = set()
        self._last_words = "was killed"
        self._stopped = False
        self._pause = LOOK_AWAY if task.folder.remote else LOOK
        self._started, self._next_look = time.perf_counter(), 0.0

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.perf_counter() - self._started

    def __call__(self) -> None:
        """Until every shard is done, or has failed in this run, or all would fail alike."""
        self.look()
        while self.left and not self._stopped:
            free = [shard for shard in self.left if shard.name not in self._claimed]
            if not free:
                time.sleep(self._pause)  # others work on them, or have died
            elif self.ray is not None:
                self._on_ray(self.ray, len(free))
            else:
                self._here(free)
            self.look()

    def look(self) -> None:
        """What is done, and who works on what; claims of the dead are taken away."""
        folder, plan = self.task.folder, self.task.plan
        names = set(folder.names(OWN))
        self._claimed, over = self.claims.sweep(names)
        for name, dead in over.items():
            if dead.run == self.claims.run:
                self._bury(name, dead)
        for shard in self.left:
            claim = self._claimed.get(shard.name)
            if f"{shard.name}.json" in names:
                self._finish(shard, read_receipt(folder, plan, shard))
            elif claim is not None and claim.error is not None:
                self.failures[shard.number] = claim.error
                self._stopped = self._stopped or claim.stop
        ended = self._done | self.failures.keys()
        self.left = [shard for shard in self.left if shard.number not in ended]
        self._next_look = self.seconds + self._pause
        self._tell()

    def _finish(self, shard: Shard, receipt: Receipt | None) -> None:
        self._done.add(shard.number)
        self._counts["read"] += shard.size
        if receipt is not None:  # else nothing vouches for it, which the end of the run tells
            self._counts["documents"] += receipt.report.documents
            self._counts["tokens"] += receipt.report.tokens
            self._counts["written"] += receipt.bytes

    def _bury(self, name: str, claim: Claim) -> None:
        """A worker of this run died over a shard; after so many, the shard has failed."""
        self._dead.add(claim.pid)
        self._deaths[name] += 1
        if self._deaths[name] >= TRIES and self.claims.take(name):
            error = (
                f"its worker {self._last_words}, {TRIES} times; if there was too little memory,"
                " take fewer workers"
            )
            self.claims.release(name, error)

    def _tell(self) -> None:
        if self._progress is None:
            return
        counts = self._counts.copy()
        for shard in self.left:
            claim = self._claimed.get(shard.name)
            if claim is not None and claim.progress is not None:
                counts.update({name: getattr(claim.progress, name) for name in _COUNTED})
        self._progress(
            Progress(
                **{name: counts[name] for name in _COUNTED},
                total=sum(shard.size for shard in self.shards),
                seconds=self.seconds,
                shards=(len(self._done), len(self.shards)),
                resumed=self._resumed_bytes,
            )
        )

    def _watch(self, ended: bool) -> None:
        if ended or self.seconds >= self._next_look:
            self.look()

    def _given(self, here: str, threads: int) -> dict[str, Any]:
        """What :func:`do_share` is told elsewhere."""
        folder = self.task.folder
        return {
            "folder": folder.path if folder.remote else os.path.abspath(folder.path),
            "here": here,
            "modules": self._modules,
            "run": self.claims.run,
            "share": self.share,
            "threads": threads,
        }

    @property
    def _modules(self) -> list[str]:
        """Where representations are defined."""
        return sorted({type(one).__module__ for one in self.task.tokenizer.representations})

    # On this machine

    def _here(self, free: Sequence[Shard]) -> None:
        """By this process, or by several. Without a number, no more are started than pay. A
        representation that is defined in a script cannot go to another process; nor can what lies
        in the memory of this one.
        """
        most = len(free) if self.workers else sum(shard.size for shard in free) // WORTH_A_PROCESS
        workers = self.workers or processors()
        places = (self.task.folder.path, *self.task.plan.paths)
        alone = "__main__" in self._modules or any(map(locations.only_here, places))
        processes = 1 if alone else min(workers, len(free), most)
        threads = max(1, workers // max(processes, 1))
        if processes <= 1:
            work(self.task, free, self.claims, threads, self._watch)
        else:
            self._in_processes(processes, self._given(os.getcwd(), threads))

    def _in_processes(self, processes: int, given: dict[str, Any]) -> None:
        """Until all have ended; one that dies is begun again."""
        memory.release()  # what planning took, as this process does little from now on
        workers: list[_Worker] = []
        try:
            for _ in range(processes):
                workers.append(_Worker.start(given))
            while workers:
                time.sleep(self._pause)
                ended = [worker for worker in workers if worker.process.poll() is not None]
                self.look()
                for worker in ended:
                    workers.remove(worker)
                    if self._has_died(worker) and self.left and not self._stopped:
                        workers.append(_Worker.start(given))
        finally:
            for worker in workers:  # an error or an interrupt
                worker.process.terminate()
            for worker in workers:
                worker.close()
            self.task.folder.remove_own_leftovers()  # of workers that could not tidy up

    def _has_died(self, worker: _Worker) -> bool:
        """Whether it ended without having done all; JobError if too many did before they began."""
        how = worker.close()
        if worker.process.returncode == 0:
            return False
        self._last_words = how
        if worker.process.pid not in self._dead:
            self._deaths[""] += 1
            if self._deaths[""] >= TRIES:
                raise JobError(f"a worker {how}, before it could begin")
        return True

    # On a Ray cluster

    def _on_ray(self, address: str, free: int) -> None:
        """By tasks, twice as many as the cluster has processors: those that wait begin on nodes that
        come later, or find nothing left. Every node must see the folder and the inputs.
        """
        places = (self.task.folder.path, *self.task.plan.paths)
        given = self._given("/" if all(map(locations.is_url, places)) else os.getcwd(), threads=1)
        with _connected(address) as ray:
            task = ray.remote(num_cpus=1, max_retries=RAY_TRIES)(do_share)
            try:
                count = self.workers or 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
                waiting = [task.remote(**given) for _ in range(min(count, free))]
                told_at = self.seconds + RAY_START
                while waiting:
                    ended, waiting = ray.wait(waiting, num_returns=1, timeout=LOOK_AWAY)
                    ray.get(ended)
                    self.look()
                    if ended or self._claimed:
                        told_at = math.inf
                    elif self.seconds >= told_at:
                        told_at = math.inf
                        warnings.warn(
                            f"no task has begun on the Ray cluster after {RAY_START:g} seconds; it goes"
                            " on waiting for a free processor: see `ray status`",
                            stacklevel=2,
                        )
            except ray.exceptions.RayError as error:
                raise JobError(
                    f"a node cannot go on ({_reason(getattr(error, 'cause', error))}); the folders of"
                    " a job must be the same on all of them, as on a shared file system"
                ) from error


class _Worker(NamedTuple):
    """A process, and what it says. It is a plain child, neither a fork nor what ``multiprocessing``
    spawns, so that no lock, no thread and no script of the parent comes along.
    """

    process: subprocess.Popen[bytes]
    said: BinaryIO

    @classmethod
    def start(cls, given: dict[str, Any]) -> _Worker:
        said = tempfile.TemporaryFile()  # noqa: SIM115
        paths = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONSAFEPATH": "1"}
        threads = {"RAYON_NUM_THREADS": str(given["threads"])}
        try:
            process = subprocess.Popen(
                [sys.executable, *COMMAND, json.dumps(given), str(os.getpid())],
                stdin=subprocess.PIPE,  # it ends with this process, however that ends
                stdout=said,
                stderr=said,
                env={**THRIFTY, **threads, **os.environ, **paths},
            )
        except OSError as error:
            said.close()
            raise JobError(
                f"cannot start a worker: {error.strerror or error}; take fewer workers"
            ) from error
        return cls(process, said)

    def close(self) -> str:
        """Wait for its end; how it ended, and the last that it said."""
        self.process.stdin.close()  # type: ignore[union-attr]  # it is a pipe
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        with self.said:
            self.said.seek(0)
            lines = self.said.read().decode("utf-8", "replace").strip().splitlines()
        killed = f"was killed ({signal.Signals(-code).name})" if code < 0 else ""
        last = f": {lines[-1][-_LONGEST:]}" if lines else ""
        return (killed or f"ended with status {code}") + last


def _reason(error: Any) -> str:
    """Return what an error of Ray says, on one line."""
    return " ".join(str(error).split())[:300] or type(error).__name__


def _not_started(address: str, error: Exception) -> JobError:
    """Return the error for a node of Ray that does not come up."""
    return JobError(
        f"Ray did not start for {address!r} ({_reason(error)}); run the same command again once the"
        " machine has memory and processor time to spare, or leave out ray=..."
    )


@contextlib.contextmanager
def _connected(address: str) -> Iterator[Any]:
    """Ray, connected to the cluster; a program that is connected already stays so."""
    try:
        ray = importlib.import_module("ray")
    except ImportError as error:
        raise JobError(
            "Ray is not installed here; pip install 'numtok[ray]', on every node of the cluster too"
        ) from error
    if ray.is_initialized():
        yield ray
        return
    alone: dict[str, Any] = {"include_dashboard": False} if address == "local" else {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **alone)
    except (ConnectionError, RuntimeError, ValueError) as error:
        if address == "local":
            raise _not_started(address, error) from error
        raise JobError(
            f"there is no Ray cluster at {address!r} ({_reason(error)}); start one with `ray start"
            " --head`, or take ray='local'"
        ) from error
    except Exception as error:  # of no narrower kind, for a node that does not start in time
        raise _not_started(address, error) from error
    try:
        yield ray
    finally:
        ray.shutdown()
