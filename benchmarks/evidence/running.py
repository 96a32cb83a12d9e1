"""Make the runs that have no result.

In: an experiment, and the store. Out: more results in the store, and one line about each run.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import torch

from benchmarks.evidence.experiments import EXPERIMENTS
from benchmarks.evidence.store import Settings, Store, slug


def run_missing(name: str, size: str, match: str, jobs: int, store: Store, into: Store) -> int:
    """Make them, the cheapest first.

    Args:
        name: of the experiment.
        size: see :mod:`benchmarks.evidence.experiment`.
        match: only those whose file name holds this.
        jobs: so many at once, each in a process of its own; 1 for this process.
        store: the results that a run rests on: those of a search, or a pretrained model.
        into: the results of which some are missing, and which gets them; mostly the same.

    Returns:
        How many failed; the others have their results.
    """
    failed, one = 0, EXPERIMENTS[name]
    for phase in one.phases(size):
        missing = [
            settings
            for settings in phase
            if match in slug(settings) and into.get(one.results, settings) is None
        ]
        with _pool(jobs) as pool:
            runs = {
                pool.submit(run_one, name, settings, store.folder, into.folder): settings
                for settings in missing
            }
            for done in as_completed(runs):
                error = done.exception()
                failed += error is not None
                print(
                    f"{name} {slug(runs[done])}:"
                    f" {done.result() if error is None else f'failed: {error!r}'}",
                    file=sys.stderr,
                    flush=True,
                )
    return failed


def _pool(jobs: int) -> Executor:
    return (
        ThreadPoolExecutor(1)
        if jobs == 1
        else ProcessPoolExecutor(jobs, get_context("spawn"), max_tasks_per_child=1)
    )


def run_one(name: str, settings: Settings, results: Path, into: Path) -> str:
    """One run, in a process of its own; its result is kept in ``into``."""
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    store, began = Store(results), time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="numtok-evidence-") as folder:
        found = EXPERIMENTS[name].run(settings, store, Path(folder))
    Store(into).put(EXPERIMENTS[name].results, settings, found)
    return f"{time.perf_counter() - began:.0f} s"
