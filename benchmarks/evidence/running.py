"""Make the runs that have no result yet.

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
    """Make the runs of an experiment that ``into`` lacks, phase after phase.

    Args:
        name: name of the experiment.
        size: see :mod:`benchmarks.evidence.experiment`.
        match: make only runs whose file name contains this text.
        jobs: runs at once, each in a process of its own; 1 for this process.
        store: results that a run depends on, those of a search or a pretrained model.
        into: the store that gets the results, mostly the same.

    Returns:
        The count of runs that failed. The results of all others are stored.
    """
    failed, experiment = 0, EXPERIMENTS[name]
    for phase in experiment.phases(size):
        missing = [
            settings
            for settings in phase
            if match in slug(settings) and into.get(experiment.results, settings) is None
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
    """Make one run, store its result in the folder ``into``, and return how long it took."""
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="numtok-evidence-") as folder:
        result = EXPERIMENTS[name].run(settings, Store(results), Path(folder))
    Store(into).put(EXPERIMENTS[name].results, settings, result)
    return f"{time.perf_counter() - began:.0f} s"
