"""Jobs in steady state: two worker processes on two cores against one on one, and a Ray cluster
against processes.

The clock runs from the second receipt of a job to the last, which leaves out starting, planning and
finishing. A worker reads and writes while it encodes, and so uses more than one core where it can.
For that reason two workers are compared with one worker on a single core. One worker on both cores
has a row of its own, which bounds what a second worker can add there.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.command_line import CORES, command, launch, repeated
from benchmarks.corpus import Corpus
from benchmarks.timing import Goal, Row, Section, Timing, check

SHARD, QUICK_SHARD = 64_000_000, 20_000  # bytes of a shard
SHARDS, TURNS = 8, 3
BEFORE = 2  # shards done before the clock starts: one of each of two workers
ONE, ONE_ON_TWO, TWO, RAY = (
    "one worker on one core",
    "one worker on two cores",
    "two workers on two cores",
    "two tasks on Ray",
)


class Way(NamedTuple):
    """Cores of the command, and its options."""

    cores: int
    options: tuple[str, ...]


WAYS: Mapping[str, Way] = {
    ONE: Way(1, ("--workers", "1")),
    ONE_ON_TWO: Way(CORES, ("--workers", "1")),
    TWO: Way(CORES, ("--workers", "2")),
    RAY: Way(CORES, ("--workers", "2", "--ray", "local")),
}


class Steady(NamedTuple):
    """Seconds from the second receipt to the last, and the sha256 of the shards."""

    seconds: float
    digests: list[str]


def run(corpus: Corpus) -> Section:
    """Run every way in turns, and check that all write the same bytes."""
    section = Section("Jobs, JSON lines to shards of Parquet, in steady state")
    ways = dict(WAYS)
    if importlib.util.find_spec("ray") is None:
        del ways[RAY]
        section.notes.append("Ray is not installed: its row is left out")
    with repeated(corpus, SHARDS * (QUICK_SHARD if corpus.quick else SHARD)) as (path, times):
        turns = [
            {name: _encode(corpus, path, way) for name, way in ways.items()}
            for _ in range(1 if corpus.quick else TURNS)
        ]
    whole = corpus.nbytes * times / 1e6
    digests = next(iter(turns[0].values())).digests
    for name in ways:
        check(
            all(turn[name].digests == digests for turn in turns),
            f"the shards by {name} are not those by {next(iter(ways))}",
        )
    section.checks.append(f"the {len(digests)} shards by {', '.join(ways)} are equal to the byte")
    timings = {name: Timing(tuple(turn[name].seconds for turn in turns)) for name in ways}
    section.rows += [
        Row(name, timing, whole * (1 - BEFORE / len(digests))) for name, timing in timings.items()
    ]
    if corpus.quick:
        return section
    both, added = timings[ONE].over(timings[ONE_ON_TWO]), timings[ONE_ON_TWO].over(timings[TWO])
    section.notes.append(
        f"one worker is {both:.2f} times as fast on two cores as on one: there, two can be"
        f" {CORES / both:.2f} times one at most, and are {added:.2f}"
    )
    section.goals.append(
        Goal(
            "two workers on two cores over one on one",
            timings[ONE].over(timings[TWO]),
            1.8,
            None,
            "x",
        )
    )
    if RAY in timings:
        section.goals.append(
            Goal("Ray over processes", timings[TWO].over(timings[RAY]), 0.9, None, "x")
        )
    return section


def _encode(corpus: Corpus, path: Path, way: Way) -> Steady:
    """Run ``numtok encode`` into a new folder beside the input."""
    output = path.parent / "out"
    shutil.rmtree(output, ignore_errors=True)
    arguments: tuple[str | Path, ...] = (
        "encode",
        path,
        "-o",
        f"{output}/",
        "--tokenizer",
        corpus.tokenizer,
        "--shards",
        str(SHARDS),
        "--quiet",
        *("--clip", "5"),  # clipping a few numbers is intended
        *way.options,
    )
    launch(*command(), *arguments, cores=way.cores)
    files = sorted(output.glob("*.parquet"))
    receipts = sorted(file.stat().st_mtime for file in (output / "__numtok").glob("0*.json"))
    check(
        len(files) == len(receipts) > BEFORE,
        f"{' '.join(way.options)} left {len(files)} shards and {len(receipts)} receipts",
    )
    # a file system may tell time in coarse steps
    seconds = max(receipts[-1] - receipts[BEFORE - 1], 1e-6)
    return Steady(seconds, [hashlib.sha256(file.read_bytes()).hexdigest() for file in files])
