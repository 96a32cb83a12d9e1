"""Who runs the shards: this process, several of this machine, or tasks on a Ray cluster. All of
them run the same loop, :func:`numtok.corpus.jobs.work.work`, and so do those of other machines that
were started with the same command; a claim keeps two from doing the same.

In: a task and the shards to be done. Out: a folder in which each of them is done, or has failed;
    what died was begun again, ``TRIES`` times in all.
"""

from __future__ import annotations

import contextlib
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
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from numtok import locations
from numtok.arrays import memory
from numtok.corpus.jobs.claims import Claims
from numtok.corpus.jobs.folder import OWN
from numtok.corpus.jobs.plan import Shard
from numtok.corpus.jobs.shards import Outcome, Task
from numtok.corpus.jobs.work import task_in, work
from numtok.corpus.summary import Progress, processors
from numtok.errors import JobError

WORTH_A_PROCESS = 16 << 20  # bytes of input; less takes no longer than a process takes to start
TRIES = 3  # of a shard whose process dies
START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from numtok.corpus.jobs.work import"
    " main; main()"
)
# a quarter less memory in each worker, for no more time
THRIFTY = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"}
PATIENCE = 10.0  # seconds that a worker has for tidying up
LOOK = 1.0  # seconds between two looks at what others do
_LONGEST = 500  # characters of what a dead worker said last


class Gauge:
    """How far a job is: adds up what its shards say.

    Args:
        shards: those that count. done: those of them that were done before.
        progress: is told, from the thread that tells the gauge.
    """

    def __init__(
        self,
        shards: Sequence[Shard],
        done: Sequence[Shard],
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self._progress, self._started = progress, time.perf_counter()
        self._total, self._shards = sum(shard.size for shard in shards), len(shards)
        self._resumed = sum(shard.size for shard in done)
        self._done = {shard.number: Progress(shard.size, None, 0, 0, 0, 0.0) for shard in done}
        self._running: dict[int, Progress] = {}

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.perf_counter() - self._started

    def watch(self, shard: Shard, said: Progress | Outcome) -> None:
        """A shard is so far, or has ended."""
        if isinstance(said, Progress):
            self._running[shard.number] = said
        elif said.error is None:
            self.end(shard)
        self.tell()

    def end(self, shard: Shard) -> None:
        """A shard is done."""
        last = self._running.pop(shard.number, Progress(0, None, 0, 0, 0, 0.0))
        self._done.setdefault(shard.number, last._replace(read=shard.size))

    def tell(self) -> None:
        """Call back."""
        if self._progress is not None:
            every = [*self._done.values(), *self._running.values()]
            self._progress(
                Progress(
                    read=sum(one.read for one in every),
                    total=self._total,
                    documents=sum(one.documents for one in every),
                    tokens=sum(one.tokens for one in every),
                    written=sum(one.written for one in every),
                    seconds=self.seconds,
                    shards=(len(self._done), self._shards),
                    resumed=self._resumed,
                )
            )


class Run:
    """One command at work on a job.

    Args:
        task: the job. shards: of it, that are to be done.
        claims: of this process. gauge: is told how far all is.
        workers: threads and processes; by default one per processor, as far as they pay.
        ray: the address of the cluster that does it; None for this machine.
    """

    def __init__(
        self,
        task: Task,
        shards: Sequence[Shard],
        claims: Claims,
        gauge: Gauge,
        workers: int | None,
        ray: str | None,
    ) -> None:
        self.task, self.shards, self.claims, self.gauge = task, shards, claims, gauge
        self.workers, self.ray = workers, ray
        self.modules = sorted(
            {type(one).__module__ for one in task.tokenizer.representations}
        )  # where representations are defined
        self.failures: dict[int, str] = {}
        self._by_number = {shard.number: shard for shard in shards}
        self._deaths: Counter[str] = Counter()
        self._last_words = "was killed"
        self._stopped = False

    def __call__(self) -> None:
        """Until every shard is done, or has failed in this run, or all would fail alike."""
        while left := self.look():
            free = [shard for shard in left if shard.name not in self._claimed]
            if self._stopped:
                return
            if not free:
                time.sleep(LOOK)  # others work on them, or have died
            elif self.ray is not None:
                on_ray(self, free)
            else:
                self._here(free)

    def look(self) -> list[Shard]:
        """The shards that are yet to be done; claims of the dead are taken away."""
        self._claimed, over = self.claims.sweep()
        for name, claim in over.items():
            self._deaths[name] += claim.run == self.claims.run
            if self._deaths[name] >= TRIES and self.claims.take(name):
                error = (
                    f"its worker {self._last_words}, {TRIES} times; if there was too little memory,"
                    " take fewer workers"
                )
                self.claims.release(name, error)
                self._claimed = self.claims.all()
        names = set(self.task.folder.names(OWN))
        left = []
        for shard in self.shards:
            held = self._claimed.get(shard.name)
            if f"{shard.name}.json" in names:
                self.gauge.end(shard)
            elif held is not None and held.error is not None and held.run == self.claims.run:
                self.failures[shard.number] = held.error
            else:
                left.append(shard)
        self.gauge.tell()
        return left

    def _here(self, free: Sequence[Shard]) -> None:
        """By this process, or by several. Without a number, no more are started than pay. A
        representation that is defined in a script cannot go to another process; nor can what lies
        in the memory of this one.
        """
        most = len(free) if self.workers else sum(shard.size for shard in free) // WORTH_A_PROCESS
        workers = self.workers or processors()
        places = (self.task.folder.path, *(part.path for part in self.task.plan.parts))
        alone = "__main__" in self.modules or any(map(locations.only_here, places))
        processes = 1 if alone else min(workers, len(free), most)
        threads = max(1, workers // max(processes, 1))
        if processes <= 1:
            work(self.task, free, self.claims, threads, self._told)
        else:
            self._in_processes(free, processes, threads)

    def _told(self, shard: Shard, said: Progress | Outcome) -> None:
        self._stopped = self._stopped or (isinstance(said, Outcome) and said.stop)
        self.gauge.watch(shard, said)

    def _in_processes(self, free: Sequence[Shard], processes: int, threads: int) -> None:
        """By processes of their own, until one of them has died or all have ended."""
        memory.release()  # what planning took, as this process does little from now on
        given = {
            "folder": str(self.task.folder),
            "run": self.claims.run,
            "shards": [shard.number for shard in free],
            "threads": threads,
            "modules": self.modules,
        }
        try:
            with Pool(given, processes) as pool:
                self._follow(pool)
        finally:
            self.task.folder.remove_leftovers(here=True)  # of workers that could not tidy up

    def _follow(self, pool: Pool) -> None:
        """What workers say, until none is left; one that dies is begun again."""
        for worker, content in pool.messages():
            if content is None and worker.failed():
                self._last_words = worker.last_words()
                if not worker.ready and self._stillborn():
                    raise JobError(f"a worker {self._last_words}, before it could begin")
                if self.look():
                    pool.start()
            elif content is not None and "progress" in content:
                self._told(self._by_number[content["shard"]], Progress(*content["progress"]))
            elif content is not None and "shard" in content:
                outcome = Outcome(content["error"], content["stop"])
                self._told(self._by_number[content["shard"]], outcome)

    def _stillborn(self) -> bool:
        self._deaths[""] += 1
        return self._deaths[""] >= TRIES


# Processes of this machine
# -------------------------------------------------------------------------------------------------


class Worker:
    """A process: a plain child, neither a fork nor what ``multiprocessing`` spawns, so that no
    lock, no thread and no script of the parent comes along. It ends when its input does, and so
    with the parent, however that ends.
    """

    def __init__(self, given: dict[str, Any], messages: queue.SimpleQueue[Any]) -> None:
        self.ready = False
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        environment = {**THRIFTY, "RAYON_NUM_THREADS": str(given["threads"]), **os.environ}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", START, json.dumps(sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                text=True,
                env=environment,
            )
        except OSError as error:
            raise JobError(
                f"cannot start a worker: {error.strerror or error}; take fewer workers"
            ) from error
        with contextlib.suppress(OSError):  # it is dead, which its messages will tell
            self._input.write(json.dumps(given) + "\n")
            self._input.flush()
        self._listener = threading.Thread(target=self._listen, args=(messages,), daemon=True)
        self._listener.start()

    @property
    def _input(self) -> Any:
        return self._process.stdin

    def _listen(self, messages: queue.SimpleQueue[Any]) -> None:
        for line in self._process.stdout or ():
            self.ready = True
            messages.put((self, json.loads(line)))
        messages.put((self, None))

    def failed(self) -> bool:
        """Whether it ended otherwise than by having done all."""
        self._wait()
        return self._process.returncode != 0

    def stop(self) -> None:
        """Have it tidy up at once."""
        with contextlib.suppress(OSError):
            self._process.terminate()

    def _wait(self) -> None:
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        """Wait for it, and let go of what it wrote to."""
        self._wait()
        self._listener.join()
        for file in (self._process.stdin, self._process.stdout, self._said):
            with contextlib.suppress(OSError):
                file.close()  # type: ignore[union-attr]  # they are pipes

    def last_words(self) -> str:
        """How it ended, and the last that it said."""
        self._said.seek(0)
        lines = self._said.read().decode("utf-8", "replace").strip().splitlines()
        code = self._process.returncode
        how = (
            f"was killed ({signal.Signals(-code).name})"
            if code < 0
            else f"ended with status {code}"
        )
        return how + (f": {lines[-1][-_LONGEST:]}" if lines else "")


class Pool:
    """Processes that are all told the same; a context that none of them outlives."""

    def __init__(self, given: dict[str, Any], processes: int) -> None:
        self._given, self._queue = given, queue.SimpleQueue[Any]()
        self._workers: list[Worker] = []
        self._left = 0
        for _ in range(processes):
            self.start()

    def start(self) -> None:
        """One more."""
        self._workers.append(Worker(self._given, self._queue))
        self._left += 1

    def messages(self) -> Iterator[tuple[Worker, dict[str, Any] | None]]:
        """What they say, None for one that will say no more, until none is left."""
        while self._left:
            with contextlib.suppress(queue.Empty):  # waking up lets an interrupt through
                worker, content = self._queue.get(timeout=1.0)
                self._left -= content is None
                yield worker, content

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for worker in self._workers:
            if kind is not None:
                worker.stop()
        for worker in self._workers:
            worker.close()


# A Ray cluster
# -------------------------------------------------------------------------------------------------


def on_ray(run: Run, free: Sequence[Shard]) -> None:
    """By tasks that run the loop, twice as many as the cluster has processors: those that wait
    begin on nodes that come later, or find nothing left. The folder and the inputs must be where
    they are on every node, as on a shared file system.

    Raises:
        JobError: if Ray is not installed, or there is no cluster.
    """
    try:
        ray = importlib.import_module("ray")
    except ImportError as error:
        raise JobError(
            "Ray is not installed here; pip install 'numtok[ray]', on every node of the cluster too"
        ) from error
    folder, here = _as_nodes_see_it(run.task)
    given = (folder, here, run.modules, run.claims.run, [shard.number for shard in free])
    with _connected(ray, str(run.ray)):
        loop = ray.remote(num_cpus=1, max_retries=TRIES - 1)(_loop_there)
        count = run.workers or 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
        waiting = [loop.remote(*given) for _ in range(min(count, len(free)))]
        while waiting:
            ended, waiting = ray.wait(waiting, num_returns=1, timeout=LOOK)
            for reference in ended:
                run._last_words = _said(ray, reference) or run._last_words
            run.look()


def _said(ray: Any, reference: Any) -> str:
    """How the task died, if it did.

    Raises:
        JobError: if it could not begin.
    """
    try:
        if error := ray.get(reference):
            raise JobError(error)
    except ray.exceptions.RayError as error:
        return f"died: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return ""


def _as_nodes_see_it(task: Task) -> tuple[str, str]:
    """The folder as all nodes name it, and where paths begin; nowhere, if there are none but URLs.

    Raises:
        JobError: for what lies in the memory of this process.
    """
    named = [str(task.folder), *(part.path for part in task.plan.parts)]
    if any(map(locations.only_here, named)):
        raise JobError(
            "memory:// is the memory of one process, and no node of a cluster sees it; use a store"
            " that all of them reach",
            named[0],
        )
    folder = named[0] if locations.is_url(named[0]) else os.path.abspath(named[0])
    return folder, "" if all(map(locations.is_url, named)) else os.getcwd()


@contextlib.contextmanager
def _connected(ray: Any, address: str) -> Iterator[None]:
    """To the cluster; a program that is connected already stays so."""
    if ray.is_initialized():
        yield
        return
    alone: dict[str, Any] = {"include_dashboard": False} if address == "local" else {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **alone)
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        raise JobError(
            f"there is no Ray cluster at {address!r} ({reason}); start one with `ray start --head`,"
            " or take ray='local'"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _loop_there(
    folder: str, here: str, modules: Sequence[str], run: str, numbers: Sequence[int]
) -> str:
    """What a node does; why it cannot begin, or nothing."""
    try:
        if here:
            os.chdir(here)  # inputs may be named from there
        task = task_in(folder, modules)
    except OSError as error:
        return (
            f"a node does not have the folder {here} ({error.strerror}); the folders of a job must"
            " be the same on all nodes"
        )
    except JobError as error:
        return f"a node: {error}"
    wanted = set(numbers)
    shards = [shard for shard in task.plan.shards if shard.number in wanted]
    work(task, shards, Claims(task.folder, run), 1, lambda *_: None)
    return ""
