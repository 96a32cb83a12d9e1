"""Jobs in steady state: two worker processes over one, and a Ray cluster over the processes.

What starting, planning and finishing take is the same for a small corpus and a large one, so it goes out of the difference between the two: bytes
over seconds of what the large one has more.
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

SHARD, SMALL, LARGE, TURNS = 24_000_000, 2, 14, 3  # bytes of a shard; shards of the two corpora: seven turns of two workers, and one
QUICK_SHARD = 20_000
WAYS: Mapping[str, tuple[str, ...]] = {
    "one worker": ("--workers", "1"),
    "two workers": ("--workers", "2"),
    "two tasks on Ray": ("--workers", "2", "--ray", "local"),
}


class Steady(NamedTuple):
    """Seconds by the clock, and of the processor as far as it is told, for what the large corpus has more."""

    seconds: float
    cpu: float


def run(corpus: Corpus) -> Section:
    """Run each way in turns on both corpora, and compare what they wrote."""
    section = Section("Jobs, JSON lines to shards of Parquet, two cores, in steady state")
    ways = dict(WAYS)
    if importlib.util.find_spec("ray") is None:
        del ways["two tasks on Ray"]
        section.notes.append("Ray is not installed: its row is left out")
    shard = QUICK_SHARD if corpus.quick else SHARD
    with repeated(corpus, SMALL * shard) as (small, few), repeated(corpus, LARGE * shard) as (large, many):
        turns = [{name: _steady(corpus, small, large, how) for name, how in ways.items()} for _ in range(1 if corpus.quick else TURNS)]
        section.checks.append(_same_bytes(corpus, small, ways))
    amount = corpus.nbytes * (many - few) / 1e6
    for name in () if corpus.quick else ways:
        check(
            all(turn[name].seconds > 0 for turn in turns),
            f"{name}: the larger corpus took no longer; the machine is too busy to tell anything",
        )
    timings = {name: Timing(tuple(max(turn[name].seconds, 1e-9) for turn in turns)) for name in ways}  # --quick tells nothing anyway
    for name, timing in timings.items():
        cpu = sorted(turn[name].cpu for turn in turns)[len(turns) // 2]
        told = "" if "Ray" in name else f", {1000 * cpu / max(amount, 1e-9):.1f} ms of processor a MB"  # Ray's processes are no children
        section.rows.append(Row(f"{name}{told}", timing, amount))
    if not corpus.quick:
        section.goals.append(Goal("two workers over one", timings["one worker"].over(timings["two workers"]), 1.8, None, "x"))
        if "two tasks on Ray" in timings:
            section.goals.append(Goal("Ray over processes", timings["two workers"].over(timings["two tasks on Ray"]), 0.9, None, "x"))
    return section


def _steady(corpus: Corpus, small: Path, large: Path, how: tuple[str, ...]) -> Steady:
    less, more = (_encode(corpus, path, count, how) for path, count in ((small, SMALL), (large, LARGE)))
    return Steady(more.seconds - less.seconds, more.cpu - less.cpu)


def _encode(corpus: Corpus, path: Path, shards: int, how: tuple[str, ...]) -> Steady:
    """``numtok encode`` into a new folder beside the input."""
    output = path.parent / "out"
    shutil.rmtree(output, ignore_errors=True)
    given = ("encode", path, "-o", f"{output}/", "--tokenizer", corpus.tokenizer, "--shards", str(shards), "--quiet", *how)
    done = launch(*command(), *given)
    return Steady(done.seconds, done.cpu)


def _same_bytes(corpus: Corpus, path: Path, ways: Mapping[str, tuple[str, ...]]) -> str:
    """Whoever does the shards, they are the same."""
    found = {}
    for name, how in ways.items():
        _encode(corpus, path, SMALL, how)
        files = sorted((path.parent / "out").glob("*.parquet"))
        found[name] = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
        check(0 < len(files) <= SMALL, f"{name} wrote {len(files)} shards, expected {SMALL}")
        check(found[name] == next(iter(found.values())), f"the shards by {name} are not those by {next(iter(found))}")
    return f"the shards by {', '.join(found)} are equal to the byte"
