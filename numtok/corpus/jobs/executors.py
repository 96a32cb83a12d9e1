"""Run shards: in this process, in several of this machine, or as tasks on a Ray cluster. Each executor
yields the outcome of one shard after the other, in any order; closing it stops its processes.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import logging
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, BinaryIO

from numtok import storage
from numtok.arrays import memory
from numtok.corpus.jobs.encode_shard import (
    Address,
    Outcome,
    Task,
    modules_of,
    try_shard,
    try_shard_at,
)
from numtok.corpus.jobs.plan import Shard
from numtok.corpus.summary import Progress, processors
from numtok.errors import JobError

Tick = Callable[[int | None, Progress | None], None]  # called now and then, with a shard's progress

WORTH_A_PROCESS = 16 << 20  # bytes of input; less takes no longer than a process takes to start
TRIES = 3  # of a shard whose process dies, and of a process that dies before it could begin
RAY_TRIES = 10  # of a task whose node dies
LOOK, LOOK_AWAY = 0.2, 2.0  # seconds between two ticks; on Ray
PATIENCE = 10.0  # seconds that a worker has for tidying up
# a quarter less memory in each worker, for no more time
THRIFTY = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"}
_LONGEST = 500  # characters of what a dead worker said last


def run_here(
    task: Task, shards: Sequence[Shard], workers: int | None, tick: Tick
) -> Generator[Outcome]:
    """Encode shards on this machine. Without a number of workers, no more processes are started than
    pay. A representation that is defined in a script cannot go to another process; nor can what
    lies in the memory of this one.
    """
    most = len(shards) if workers else sum(shard.size for shard in shards) // WORTH_A_PROCESS
    places = (task.folder.path, *task.plan.paths)
    alone = "__main__" in modules_of(task) or any(map(storage.only_here, places))
    # a frozen program has no interpreter that could run a worker: it would start itself again
    alone = alone or not sys.executable or getattr(sys, "frozen", False)
    count = workers or processors()
    processes = 1 if alone else min(count, len(shards), most)
    threads = max(1, count // max(processes, 1))
    if processes > 1:
        return run_processes(task, shards, processes, threads, tick)
    return (
        try_shard(task, shard, threads, functools.partial(tick, shard.number)) for shard in shards
    )


# In processes of this machine
# -------------------------------------------------------------------------------------------------


class _Worker:
    """A process that encodes the shards it is given. It is a plain child, neither a fork nor what
    ``multiprocessing`` spawns, so that no lock, no thread and no script of the parent comes along.
    """

    def __init__(self, address: Address, threads: int, events: queue.SimpleQueue[Any]) -> None:
        self.shard: Shard | None = None  # that it works on
        self.is_ready = False
        self._said: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115
        paths = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONSAFEPATH": "1"}
        command = [sys.executable, "-m", "numtok.corpus.jobs.worker"]
        try:
            self.process = subprocess.Popen(
                [*command, json.dumps([address, threads])],
                stdin=subprocess.PIPE,  # it ends with this process, however that ends
                stdout=subprocess.PIPE,
                stderr=self._said,
                env={**THRIFTY, "RAYON_NUM_THREADS": str(threads), **os.environ, **paths},
            )
        except OSError as error:
            self._said.close()
            raise JobError(
                f"cannot start a worker: {error.strerror or error}; take fewer workers"
            ) from error
        threading.Thread(target=self._listen, args=(events,), daemon=True).start()

    def _listen(self, events: queue.SimpleQueue[Any]) -> None:
        """Pass its messages on, and None once it has ended."""
        with self.process.stdout as lines:  # type: ignore[union-attr]  # it is a pipe
            for line in lines:
                with contextlib.suppress(ValueError):  # it died in the middle of a word
                    events.put((self, json.loads(line)))
        with contextlib.suppress(subprocess.TimeoutExpired):  # to hear the last that it says
            self.process.wait(PATIENCE)
        events.put((self, None))

    def encode(self, shard: Shard) -> None:
        """Give it a shard; if it has died, its end is yet to be heard of."""
        self.shard = shard
        with contextlib.suppress(OSError):
            self.process.stdin.write(f"{shard.number}\n".encode())  # type: ignore[union-attr]
            self.process.stdin.flush()  # type: ignore[union-attr]  # it is a pipe

    def finish(self) -> None:
        """Tell it that there is no more."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()  # type: ignore[union-attr]

    def close(self) -> str:
        """Wait for its end, and say how it ended, and the last that it said."""
        self.finish()
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        with self._said:
            self._said.seek(0)
            lines = self._said.read().decode("utf-8", "replace").strip().splitlines()
        killed = f"was killed ({signal.Signals(-code).name})" if code < 0 else ""
        last = f": {lines[-1][-_LONGEST:]}" if lines else ""
        return (killed or f"ended with status {code}") + last


def run_processes(
    task: Task, shards: Sequence[Shard], processes: int, threads: int, tick: Tick
) -> Generator[Outcome]:
    """Encode shards in so many processes. One that dies is replaced; a shard over which ``TRIES`` of
    them died has failed.
    """
    memory.release()  # what planning took, as this process does little from now on
    events: queue.SimpleQueue[Any] = queue.SimpleQueue()
    waiting, deaths, workers = deque(shards), Counter[int](), list[_Worker]()
    address = Address.of(task, os.getcwd())

    def start() -> None:
        workers.append(_Worker(address, threads, events))
        workers[-1].encode(waiting.popleft())

    try:
        while len(workers) < processes and waiting:
            start()
        while workers:
            try:
                worker, message = events.get(timeout=LOOK)
            except queue.Empty:
                tick(None, None)
                continue
            if message is None:
                workers.remove(worker)
                if failed := _record_death(worker, waiting, deaths):
                    yield failed
                if waiting:
                    start()
            elif "outcome" in message:
                yield Outcome(*message["outcome"])
                worker.shard = None
                worker.encode(waiting.popleft()) if waiting else worker.finish()
            elif "progress" in message:
                tick(worker.shard.number, Progress(*message["progress"]))
            else:
                worker.is_ready = True
    finally:
        for worker in workers:  # an error or an interrupt
            worker.process.terminate()
        for worker in workers:
            worker.close()


def _record_death(worker: _Worker, waiting: deque[Shard], deaths: Counter[int]) -> Outcome | None:
    """Give the shard of a worker that has ended back, or return that the shard has failed; JobError
    if too many workers ended before they could begin.
    """
    how = worker.close()
    if worker.shard is None:
        return None
    counted = worker.shard.number if worker.is_ready else -1
    deaths[counted] += 1
    if deaths[counted] < TRIES:
        waiting.appendleft(worker.shard)
        return None
    if not worker.is_ready:
        raise JobError(f"a worker {how}, before it could begin")
    return Outcome(
        worker.shard.number,
        f"its worker {how}, {TRIES} times; if there was too little memory, take fewer workers",
    )


# On a Ray cluster
# -------------------------------------------------------------------------------------------------


def run_ray(
    task: Task, shards: Sequence[Shard], address: str, workers: int | None, tick: Tick
) -> Generator[Outcome]:
    """Encode shards by tasks on a Ray cluster, one for each shard, which Ray itself tries again where
    a node dies. Every node must see the folder and the inputs.
    """
    places = (task.folder.path, *task.plan.paths)
    job_address = Address.of(task, "/" if all(map(storage.is_url, places)) else os.getcwd())
    with _connected(address) as ray:
        remote = ray.remote(num_cpus=1, max_retries=RAY_TRIES)(try_shard_at)
        died = (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError)
        waiting, running = deque(shards), dict[Any, int]()
        try:
            while waiting or running:
                # twice as many as there are processors, so that none waits for this process
                most = workers or 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
                while waiting and len(running) < most:
                    shard = waiting.popleft()
                    running[remote.remote(job_address, shard.number)] = shard.number
                ended, _ = ray.wait(list(running), num_returns=1, timeout=LOOK_AWAY)
                for one in ended:
                    number = running.pop(one)
                    try:
                        yield ray.get(one)
                    except (*died, ray.exceptions.OutOfMemoryError) as error:
                        yield Outcome(number, f"its worker died ({_reason(error)})")
                tick(None, None)
        except ray.exceptions.RayError as error:
            raise JobError(
                f"a node cannot go on ({_reason(getattr(error, 'cause', error))}); the folders of"
                " a job must be the same on all of them, as on a shared file system"
            ) from error
        finally:
            for one in running:
                with contextlib.suppress(Exception):
                    ray.cancel(one, force=True)


def _reason(error: Any) -> str:
    """Return what an error of Ray says, on one line."""
    return " ".join(str(error).split())[:300] or type(error).__name__


@contextlib.contextmanager
def _connected(address: str) -> Iterator[Any]:
    """Connect Ray to the cluster, and yield it; a program that is connected already stays so."""
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
    except Exception as error:  # of any kind, as where a node does not start in time
        raise JobError(
            f"there is no Ray cluster at {address!r}, or it does not start ({_reason(error)}); start"
            " one with `ray start --head`, or take ray='local' (--ray local)"
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()
