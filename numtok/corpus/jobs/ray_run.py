"""Shards on a Ray cluster: one task a shard, of which a window is under way at once; only paths and
numbers travel.

In: a task and the numbers of the shards. Out: an ``Outcome`` for each, as they end. The folder and
    the inputs must be where they are on every node, as on a shared file system. A task whose
    process or node dies is begun again elsewhere; the receipts see to it that nothing is there
    twice.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from numtok import locations
from numtok.corpus.jobs.attempt import Outcome, Task, Watch, attempt
from numtok.corpus.jobs.shards import read_plan, saved_tokenizer
from numtok.corpus.jobs.store import Folder
from numtok.errors import JobError

TRIES = 3  # of a shard whose process or node dies
# tasks that wait for each that runs: the next begins at once, and a million shards are not a
# million waiting tasks
AHEAD = 2
PATIENCE = 1.0  # seconds until an interrupt is seen


def run_on_ray(
    address: str,
    task: Task,
    shards: Sequence[int],
    workers: int | None,
    watch: Watch,
    modules: Sequence[str],
) -> Iterator[Outcome]:
    """By the cluster at this address.

    Args:
        address: ``auto`` for the one that there is, ``local`` for one that is started here, or
            ``host:port``.
        task: the job.
        shards: of it, that are to be done.
        workers: shards at once; by default as many as the cluster has processors.
        watch: is not called, as tasks tell nothing until they end.
        modules: where representations are defined, which the nodes import.

    Raises:
        JobError: if Ray is not installed, or there is no cluster.
    """
    ray = _ray()
    with _connected(ray, address):
        remote = ray.remote(num_cpus=1, max_retries=TRIES - 1)(_attempt_there)
        at_once = workers or AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
        here = (*_where(task), tuple(modules))
        waiting = list(reversed(shards))
        running: dict[Any, int] = {}
        while waiting or running:
            while waiting and len(running) < at_once:
                shard = waiting.pop()
                running[remote.remote(*here, shard)] = shard
            ended, _ = ray.wait(list(running), num_returns=1, timeout=PATIENCE)
            for reference in ended:
                outcome = _outcome(ray, reference, running.pop(reference))
                if outcome.stop:
                    waiting.clear()
                yield outcome


def _where(task: Task) -> tuple[str, str]:
    """The folder as all nodes name it, and where paths begin; nowhere, if there are none but URLs.

    Raises:
        JobError: for what lies in the memory of this process.
    """
    named = [str(task.folder), *(given["path"] for given in task.plan.inputs)]
    if any(map(locations.only_here, named)):
        raise JobError(
            "memory:// is the memory of one process, and no node of a cluster sees it; use a store"
            " that all of them reach",
            named[0],
        )
    folder = named[0] if locations.is_url(named[0]) else os.path.abspath(named[0])
    return folder, "" if all(map(locations.is_url, named)) else os.getcwd()


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise JobError(
            "Ray is not installed here; pip install 'numtok[ray]', on every node of the cluster too"
        ) from error


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
            " or use --ray local"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _outcome(ray: Any, reference: Any, shard: int) -> Outcome:
    """How the task ended; what Ray itself says if it did not end by itself."""
    try:
        return Outcome(*ray.get(reference))
    except ray.exceptions.RayError as error:
        reason = " ".join(str(error).split())[:300]
        return Outcome(
            shard,
            f"its task died, {TRIES} times if Ray could try again: {type(error).__name__}:"
            f" {reason}",
        )


def _attempt_there(
    folder: str, here: str, modules: Sequence[str], shard: int
) -> tuple[int, str | None, bool]:
    """What a node does."""
    try:
        if here:
            os.chdir(here)  # inputs may be named from there
    except OSError as error:
        message = (
            f"a node does not have the folder {here} ({error.strerror}); the folders of a job must"
            " be the same on all nodes"
        )
        return shard, message, False
    return tuple(attempt(_task(folder, tuple(modules)), shard, 1, lambda *_: None))  # type: ignore[return-value]


@functools.lru_cache(maxsize=1)
def _task(folder: str, modules: tuple[str, ...]) -> Task:
    """Read once in a process: Ray's belong to one program, and so to one job after the other."""
    logging.getLogger("numtok").setLevel(logging.ERROR)
    for module in modules:
        importlib.import_module(module)
    plan = read_plan(Folder(folder))
    if plan is None:
        raise JobError(
            f"a node does not see the plan in {folder}; the folder must be the same on all nodes,"
            " as on a shared file system"
        )
    return Task(Folder(folder), plan, saved_tokenizer(Folder(folder), plan))
