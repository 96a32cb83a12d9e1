"""Who runs the shards: this process, one after the other, a pool of processes on this machine, or a
Ray cluster.

In: a task and the numbers of the shards to be done. Out: an ``Outcome`` for each, as they end. A
    shard that fails does not stop the others, unless they would fail alike. Whatever else runs
    shards, such as a cluster, is one more function of this kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from numtok import locations
from numtok.arrays import memory
from numtok.corpus.jobs.attempt import Outcome, Task, Watch, attempt
from numtok.corpus.jobs.pool import Pool
from numtok.corpus.jobs.ray_run import run_on_ray
from numtok.corpus.summary import Progress, processors
from numtok.errors import JobError

WORTH_A_PROCESS = (
    16 << 20
)  # bytes of input; less than that takes no longer than a process takes to start
TRIES = 3  # of a shard whose worker dies


def run(
    task: Task, shards: Sequence[int], workers: int | None, watch: Watch, ray: str | None = None
) -> Iterator[Outcome]:
    """By a Ray cluster, if there is the address of one. Else by so many workers, by default one per
    processor: processes as far as there are shards, and threads in these for the rest.

    Without a number, no more processes are started than pay. A representation that is defined in a
    script cannot go to another process: then this one does it all; and so if the folder or an input
    is in the memory of this one.
    """
    if ray is not None:
        return run_on_ray(ray, task, shards, workers, watch, sorted(modules_of(task)))
    most = len(shards) if workers else sum(map(task.plan.size, shards)) // WORTH_A_PROCESS
    workers = workers or processors()
    processes = (
        1 if "__main__" in modules_of(task) or _only_here(task) else min(workers, len(shards), most)
    )
    threads = max(1, workers // max(processes, 1))
    return (
        run_here(task, shards, threads, watch)
        if processes <= 1
        else run_processes(task, shards, processes, threads, watch)
    )


def _only_here(task: Task) -> bool:
    """Whether other processes would not find the folder, or an input."""
    return any(
        map(locations.only_here, (task.folder.path, *(given["path"] for given in task.plan.inputs)))
    )


def modules_of(task: Task) -> set[str]:
    """Where the representations are defined."""
    return {type(representation).__module__ for representation in task.tokenizer.representations}


def run_here(task: Task, shards: Sequence[int], threads: int, watch: Watch) -> Iterator[Outcome]:
    """In this process."""
    for shard in shards:
        outcome = attempt(task, shard, threads, watch)
        yield outcome
        if outcome.stop:
            return


def run_processes(
    task: Task, shards: Sequence[int], processes: int, threads: int, watch: Watch
) -> Iterator[Outcome]:
    """In processes of their own.

    The shard of one that is killed goes to another, ``TRIES`` times in all.
    """
    waiting, tries = list(reversed(shards)), dict.fromkeys(shards, 0)
    memory.release()  # what planning took, as this process does little from now on
    with Pool(str(task.folder), threads, modules_of(task)) as pool:
        for _ in range(processes):
            pool.start()
        left, stillborn = (
            processes,
            0,
        )  # workers that are there; those that died before they were ready
        while left:
            worker, content = pool.next()
            if content is not None and "progress" in content:
                watch(worker.shard, Progress(*content["progress"]))  # type: ignore[arg-type]  # it has one
                continue
            if content is None:
                left -= 1
                if worker.shard is not None:
                    yield from _after_death(worker.shard, worker.last_words(), tries, waiting)
                elif not worker.ended and (stillborn := stillborn + 1) >= TRIES:
                    raise JobError(f"a worker {worker.last_words()}, before it could begin")
                if waiting and left < processes:
                    pool.start()
                    left += 1
                continue
            if "ended" in content:
                worker.shard = None
                outcome = Outcome(*content["ended"])
                if outcome.stop:
                    waiting.clear()
                yield outcome
            if waiting:
                worker.give(waiting.pop())
            else:
                worker.end()


def _after_death(
    shard: int, how: str, tries: dict[int, int], waiting: list[int]
) -> Iterator[Outcome]:
    """Put the shard back, or give it up."""
    tries[shard] += 1
    if tries[shard] < TRIES:
        waiting.append(shard)
    else:
        yield Outcome(
            shard,
            f"its worker {how}, {TRIES} times; if there was too little memory, use fewer --workers",
        )
