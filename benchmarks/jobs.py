"""Jobs in steady state: two worker processes over one, and a Ray cluster over the processes.

The clock runs from the second receipt of a job to its last, so that starting, planning and finishing are left out.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.command_line import command, launch, repeated
from benchmarks.corpus import Corpus
from benchmarks.timing import Goal, Row, Section, Timing, check

SHARD, QUICK_SHARD, SHARDS, TURNS = 24_000_000, 20_000, 14, 3  # bytes of a shard; shards
BEFORE = 2  # shards that are done before the clock runs: one of each of two workers
WAYS: Mapping[str, tuple[str, ...]] = {
    "one worker": ("--workers", "1"),
    "two workers": ("--workers", "2"),
    "two tasks on Ray": ("--workers", "2", "--ray", "local"),
}


class Steady(NamedTuple):
    """Seconds from the second receipt to the last; those of the processor for all of the command, as far as they are told; what was written."""

    seconds: float
    cpu: float
    digests: list[str]


def run(corpus: Corpus) -> Section:
    """Run each way in turns, and compare what they wrote."""
    section = Section("Jobs, JSON lines to shards of Parquet, two cores, in steady state")
    ways = dict(WAYS)
    if importlib.util.find_spec("ray") is None:
        del ways["two tasks on Ray"]
        section.notes.append("Ray is not installed: its row is left out")
    with repeated(corpus, SHARDS * (QUICK_SHARD if corpus.quick else SHARD)) as (path, times):
        turns = [{name: _encode(corpus, path, how) for name, how in ways.items()} for _ in range(1 if corpus.quick else TURNS)]
    whole = corpus.nbytes * times / 1e6
    digests = next(iter(turns[0].values())).digests
    for name in ways:
        check(all(turn[name].digests == digests for turn in turns), f"the shards by {name} are not those by {next(iter(ways))}")
    section.checks.append(f"the {len(digests)} shards by {', '.join(ways)} are equal to the byte")
    timings = {name: Timing(tuple(turn[name].seconds for turn in turns)) for name in ways}
    for name, timing in timings.items():
        cpu = sorted(turn[name].cpu for turn in turns)[len(turns) // 2]
        told = "" if "Ray" in name else f", {1000 * cpu / whole:.1f} ms of processor a MB, all told"  # Ray's processes are no children
        section.rows.append(Row(f"{name}{told}", timing, whole * (1 - BEFORE / len(digests))))
    if not corpus.quick:
        section.goals.append(Goal("two workers over one", timings["one worker"].over(timings["two workers"]), 1.8, None, "x"))
        if "two tasks on Ray" in timings:
            section.goals.append(Goal("Ray over processes", timings["two workers"].over(timings["two tasks on Ray"]), 0.9, None, "x"))
    return section


def _encode(corpus: Corpus, path: Path, how: tuple[str, ...]) -> Steady:
    """``numtok encode`` into a new folder beside the input."""
    output = path.parent / "out"
    shutil.rmtree(output, ignore_errors=True)
    given = ("encode", path, "-o", f"{output}/", "--tokenizer", corpus.tokenizer, "--shards", str(SHARDS), "--quiet", *how)
    done = launch(*command(), *given)
    files = sorted(output.glob("*.parquet"))
    receipts = sorted(file.stat().st_mtime for file in (output / "__numtok").glob("0*.json"))
    check(len(files) == len(receipts) > BEFORE, f"{' '.join(how)} left {len(files)} shards and {len(receipts)} receipts")
    seconds = max(receipts[-1] - receipts[BEFORE - 1], 1e-6)  # a file system may tell time in coarse steps
    return Steady(seconds, done.cpu, [hashlib.sha256(file.read_bytes()).hexdigest() for file in files])
