"""The ``numtok`` command as users run it: JSON lines to Parquet, its speed and its memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq

from benchmarks.corpus import Corpus
from benchmarks.timing import Goal, Row, Section, Timing, check
from numtok.corpus import tokenizer_of
from numtok.corpus.write import open_writer

BYTES, QUICK_BYTES = 1_000_000_000, 20_000
CORES = 2
NUMBERS = "xval:log", "bits", "fone:6,4"  # the first is the default of the command
FLOOR, AIM = 0.7, 1  # relative to the speed of pyarrow alone
TURNS = 2
MIB = 1024 * 1024

# Runs a command, and prints its time and peak memory. A small program of its own, as on Linux the
# peak memory of a child is never below the memory of its parent at the start.
LAUNCHER = """
import json, os, sys, time
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(sys.argv[1])])
start = time.perf_counter()
process = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(process, 0)
seconds = time.perf_counter() - start
peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
cpu = usage.ru_utime + usage.ru_stime
print(json.dumps({"code": os.waitstatus_to_exitcode(status), "seconds": seconds, "cpu": cpu, "peak": peak}))
"""


class Finished(NamedTuple):
    """Seconds by the clock, seconds of the processor, and peak memory in bytes of a run."""

    seconds: float
    cpu: float
    peak: int


def command() -> list[str]:
    """Return the command that runs numtok with this Python: its console script, or the module."""
    script = Path(sys.executable).with_name("numtok")
    return [str(script)] if script.is_file() else [sys.executable, "-m", "numtok_cli.main"]


def launch(*arguments: str | Path, cores: int = CORES, **variables: str) -> Finished:
    """Run a command without its output, and return its time and memory.

    Python may cache compiled modules, as it does by default.

    Args:
        arguments: the command.
        cores: cores that the command may use.
        variables: further environment variables.
    """
    removed = ("RAYON_NUM_THREADS", "TOKENIZERS_PARALLELISM", "PYTHONDONTWRITEBYTECODE")
    environment = {
        name: value for name, value in os.environ.items() if name not in removed
    } | variables
    launcher = [sys.executable, "-I", "-S", "-c", LAUNCHER, str(cores), *map(str, arguments)]
    done = subprocess.run(launcher, env=environment, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    report = json.loads(lines[-1]) if lines and done.returncode == 0 else {"code": done.returncode}
    check(
        report["code"] == 0,
        f"{' '.join(map(str, arguments))} ends with code {report['code']}:"
        f" {done.stderr.strip()[-500:]}",
    )
    return Finished(report["seconds"], report["cpu"], report["peak"])


@contextmanager
def repeated(corpus: Corpus, size: int) -> Iterator[tuple[Path, int]]:
    """Yield a JSON lines file of about ``size`` bytes in a temporary folder, and how often the file
    repeats the corpus.
    """
    times = max(1, size // len(corpus.lines))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input.jsonl"
        with path.open("wb") as file:
            for _ in range(times):
                file.write(corpus.lines)
        yield path, times


def encode(corpus: Corpus, path: Path, numbers: str) -> Finished:
    """Run ``numtok encode``, with a Parquet file beside the input as output."""
    output = path.with_suffix(".parquet")
    options: list[str | Path] = [
        "--numbers",
        numbers,
        "--tokenizer",
        corpus.tokenizer,
        "--workers",
        str(CORES),
        "--quiet",
        "--overwrite",
    ]
    return launch(*command(), "encode", path, "-o", output, *options)


def run(corpus: Corpus) -> Section:
    """Check and time ``numtok encode``, and measure its memory."""
    section = Section(
        f"Command line: JSON lines to Parquet, {min(CORES, os.cpu_count() or 1)} cores, start-up"
        " included"
    )
    with repeated(corpus, QUICK_BYTES if corpus.quick else BYTES) as (path, times):
        for numbers in NUMBERS[:1] if corpus.quick else NUMBERS:
            measure(corpus, path, times, numbers, 1 if corpus.quick else TURNS, section)
    return section


def measure(
    corpus: Corpus, path: Path, times: int, numbers: str, turns: int, section: Section
) -> None:
    """Run the command ``turns`` times, check its output, and add a row and its budgets."""
    runs = [encode(corpus, path, numbers) for _ in range(turns + (turns > 1))]  # the first warms up
    section.checks.append(check_output(corpus, path.with_suffix(".parquet"), times, numbers))
    runs = runs[-turns:]
    alone = Timing(tuple(pyarrow_alone(path, len(corpus.texts)) for _ in runs))
    amount = corpus.nbytes * times / 1e6
    timing = Timing(tuple(one.seconds for one in runs))
    peak = max(one.peak for one in runs) / MIB
    busy = sum(one.cpu for one in runs) / sum(one.seconds for one in runs)
    what = f"numtok encode --numbers {numbers}, {amount:,.0f} MB of text"
    section.rows += [
        Row(f"{what}, {busy:.1f} cores busy, peak {peak:,.0f} MiB", timing, amount),
        Row(
            "  pyarrow alone: the same input, the same columns",
            alone,
            amount,
            "MB",
            alone.over(timing),
        ),
    ]
    if not corpus.quick:
        section.goals.append(
            Goal(f"{what}, of the speed of pyarrow alone", alone.over(timing), FLOOR, AIM, "x")
        )
    section.goals.append(
        Goal(
            f"peak memory, --numbers {numbers}, {amount:,.0f} MB of text",
            peak,
            1024,
            700,
            "MiB",
            True,
        )
    )


def pyarrow_alone(path: Path, documents: int) -> float:
    """Return the seconds that pyarrow takes on one thread to read the input and to write the rows
    of the output, which no encoder can save.
    """
    encoded, copy = path.with_suffix(".parquet"), path.with_suffix(".copy.parquet")
    batches = pq.ParquetFile(encoded).iter_batches(batch_size=documents)
    batch = next(batches)  # of one repetition of the corpus
    schema = pq.read_schema(encoded)
    times = pq.read_metadata(encoded).num_rows // documents
    options = pyarrow.json.ReadOptions(use_threads=False)
    start = time.perf_counter()
    for _ in pyarrow.json.open_json(path, options):
        pass
    with open_writer(str(copy), schema, "parquet", overwrite=True) as writer:
        for _ in range(times):
            writer.write(batch)
    return time.perf_counter() - start


def check_output(corpus: Corpus, path: Path, times: int, numbers: str) -> str:
    """Check that every repetition of the corpus has the tokens and numbers that ``encode_batch``
    gives.
    """
    # the fitted tokenizer clips numbers that would otherwise stay text
    tokenizer = tokenizer_of(path, corpus.tokenizer)
    expected = tokenizer.encode_batch(corpus.column)
    documents = len(corpus.texts)
    with pq.ParquetFile(path) as file:
        rows = file.metadata.num_rows
        check(
            rows == documents * times,
            f"the output has {rows:,} rows, expected {documents * times:,}",
        )
        seen = 0
        for batch in file.iter_batches(columns=["input_ids", "number_value"], batch_size=documents):
            for name in ("input_ids", "number_value"):
                wanted, column = expected.column(name), batch.column(name)
                at = seen % documents
                whole = pa.concat_arrays([wanted[at:], wanted[:at]])[: len(column)].cast(
                    column.type
                )
                check(column.equals(whole), f"{name}: other values after row {seen:,}")
            seen += len(batch)
    return f"--numbers {numbers}: ids and values of {rows:,} rows in Parquet equal encode_batch"
