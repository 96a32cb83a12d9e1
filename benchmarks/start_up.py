"""The time of a start: CPU time of whole processes that do next to no work. Caches are warm, as
after ``numtok warm-up``, or empty, as at the first start on a machine, which compiles code and
compares the engines.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

from benchmarks.command_line import command, launch
from benchmarks.corpus import Corpus
from benchmarks.timing import Goal, Section, Timing, check

LINE = "The mass is -1.5e3 kg."
FIRST = "the first encode on a machine: one line, default tokenizer, nothing compiled"
ENCODE = (
    "import sys, numtok;"
    f" numtok.Tokenizer.from_pretrained(*sys.argv[1:]).encode({LINE!r}).input_ids"
)


class Start(NamedTuple):
    """A command, and the floor and aim of its CPU seconds."""

    arguments: tuple[str | Path, ...]
    floor: float | None = None
    aim: float | None = None


def starts(corpus: Corpus, folder: Path) -> dict[str, Start]:
    """Return the commands that are measured, by name."""
    line, output = folder / "line.jsonl", folder / "line.parquet"
    line.write_text(f'{{"text": "{LINE}"}}\n')
    command_line = (
        *command(),
        "encode",
        line,
        "-o",
        output,
        "--scale",
        "1",
        "--workers",
        "1",
        "--quiet",
        "--overwrite",
    )
    return {
        "python -c pass": Start((sys.executable, "-c", "pass")),
        "numtok --help": Start((*command(), "--help"), 0.2, 0.1),
        "encode one line, default tokenizer": Start((sys.executable, "-c", ENCODE), 1.0, 0.6),
        f"encode one line, {corpus.tokenizer_name}": Start(
            (sys.executable, "-c", ENCODE, corpus.tokenizer), 1.5, 0.8
        ),
        "numtok inspect": Start((*command(), "inspect", LINE), 1.0),
        "numtok encode, one line, default tokenizer": Start(command_line, 1.0, 0.6),
        f"numtok encode, one line, {corpus.tokenizer_name}": Start(
            (*command_line, "--tokenizer", corpus.tokenizer), 1.5, 0.8
        ),
    }


def run(corpus: Corpus) -> Section:
    """Measure every command."""
    section = Section(
        "Start-up: CPU time of the whole process, warm caches; in the last row, empty caches"
    )
    with tempfile.TemporaryDirectory() as folder:
        measured = starts(corpus, Path(folder))
        if corpus.quick:
            measured = dict(list(measured.items())[::2])
        # the first run warms up; a quick run has no other
        seconds = {name: [launch(*start.arguments).cpu] for name, start in measured.items()}
        values = pq.read_table(Path(folder) / "line.parquet").column("number_value").to_pylist()
        check(values == [[-1500.0]], f"numtok encode gives {values}, expected [[-1500.0]]")
        section.checks.append("numtok encode gives -1500.0 for -1.5e3")
        for _ in range(0 if corpus.quick else 9):
            for name, start in measured.items():
                seconds[name].append(launch(*start.arguments).cpu)
        if not corpus.quick:
            measured[FIRST] = Start((sys.executable, "-c", ENCODE), 15.0)
            empty = [Path(folder) / str(turn) for turn in range(3)]
            seconds[FIRST] = [
                launch(
                    *measured[FIRST].arguments,
                    NUMBA_CACHE_DIR=f"{one}/kernels",
                    NUMTOK_CACHE=f"{one}/facts",
                ).cpu
                for one in empty
            ]
    timings = {name: Timing(tuple(some[1:] or some)) for name, some in seconds.items()}
    section.add(timings, 0)
    for name, start in measured.items():
        if start.floor is not None:
            section.goals.append(
                Goal(f"start-up: {name}", timings[name].median, start.floor, start.aim, "s", True)
            )
    return section
