"""Rows of a Parquet file in random order: ``NumberDataset`` beside ``datasets``. Both convert the
file to Arrow once.

The corpus is encoded once, and repeated up to a file of 55 MB. Rows are compared with those of
pyarrow before the clock starts. Each turn reads other rows, either of an open data set or of one
that is opened with an empty cache.
"""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import numtok
from benchmarks.corpus import Corpus
from benchmarks.timing import Goal, Section, alternate, check
from numtok.corpus.write import open_writer
from numtok.representations import FloatBits, FoNE, Representation, XVal

ROWS = 500
FILE_BYTES, BATCH_BYTES = 55_000_000, 32 << 20
BLOCK = 1024
CASES: dict[str, tuple[Representation, str]] = {
    "xVal": (XVal(), "number_scaled"),
    "dense bits": (FloatBits(), "number_bits"),
    "FoNE": (FoNE(6, 4), "number_fourier"),
}


def run(corpus: Corpus) -> Section:
    """Measure each representation."""
    section = Section(
        f"Shuffled reading: {ROWS} random rows of a Parquet file, and what comes before the first"
    )
    if missing := [
        name for name in ("torch", "datasets") if importlib.util.find_spec(name) is None
    ]:
        section.checks.append(
            f"nothing: {', '.join(missing)} is not installed; pip install '.[torch]' datasets"
        )
        return section
    import datasets

    datasets.disable_progress_bars()
    section.notes.append(f"datasets {version('datasets')}")
    with tempfile.TemporaryDirectory() as name:
        datasets.config.HF_DATASETS_CACHE = str(Path(name, "kept"))
        for case, (representation, column) in CASES.items():
            measure(case, representation, column, corpus, Path(name), section)
    return section


def measure(
    case: str,
    representation: Representation,
    column: str,
    corpus: Corpus,
    folder: Path,
    section: Section,
) -> None:
    """Write a file, compare rows, and time both data sets."""
    from datasets import Dataset

    from numtok_torch.data.dataset import NumberDataset

    path, our_cache, peer_cache = folder / f"{case}.parquet", folder / "kept", folder / "converted"
    write(path, representation, corpus)
    ours, peer = NumberDataset(path), Dataset.from_parquet(str(path), cache_dir=str(peer_cache))
    check_rows(case, column, path, ours, peer)
    section.checks.append(
        f"{case}: ids and {column} of rows at random are those that pyarrow reads; the peer's ids"
        " as well"
    )
    rows, blocks = drawn(len(ours)), NumberDataset(path, block_size=BLOCK)
    block_rows = drawn(len(blocks))
    timings = alternate(
        {
            f"{case}: {ROWS} rows": lambda: [ours[row] for row in rows()],
            f"{case}: {ROWS} blocks of {BLOCK} tokens": lambda: [
                blocks[row] for row in block_rows()
            ],
            "  datasets: rows": lambda: [peer[row] for row in rows()],
        },
        corpus.budget(8),
    )
    begin = alternate(
        {
            f"{case}: {ROWS} rows from nothing": lambda: afresh(
                our_cache, lambda: NumberDataset(path), rows()
            ),
            "  datasets: rows from nothing": lambda: afresh(
                peer_cache,
                lambda: Dataset.from_parquet(str(path), cache_dir=str(peer_cache)),
                rows(),
            ),
        },
        corpus.budget(8),
    )
    for measured in (timings, begin):
        section.add(measured, path.stat().st_size / 1e6, next(iter(measured)))
    if not corpus.quick:
        (rows_name, blocks_name, peer_rows), (first_name, peer_first) = timings, begin
        ratios = {
            rows_name: timings[rows_name].median / timings[peer_rows].median,
            blocks_name: timings[blocks_name].median / timings[peer_rows].median,
            first_name: begin[first_name].median / begin[peer_first].median,
        }
        section.goals += [
            Goal(f"{name}, of datasets' time", ratio, 1, None, "x", True)
            for name, ratio in ratios.items()
        ]


def write(path: Path, representation: Representation, corpus: Corpus) -> None:
    """Write the corpus again and again; once for a quick run."""
    batch = numtok.Tokenizer.from_pretrained(
        corpus.tokenizer, numbers=[representation]
    ).encode_batch(corpus.texts)
    with open_writer(path, batch.schema) as writer:
        writer.write(batch)
        while not corpus.quick and writer.bytes_written < FILE_BYTES:
            writer.write(pa.concat_batches([batch] * max(1, BATCH_BYTES // max(1, batch.nbytes))))


def check_rows(case: str, column: str, path: Path, ours: Any, peer: Any) -> None:
    """Check that ids and values of a few rows are those of the file."""
    table = pq.read_table(path, columns=["input_ids", column])
    for row in drawn(len(ours))()[:20]:
        expected, row_read = table.slice(row, 1).to_pylist()[0], ours[row]
        check(
            expected["input_ids"] == row_read["input_ids"].tolist() == peer[row]["input_ids"],
            f"{case}: row {row} has other ids",
        )
        wanted = np.array(expected[column], row_read[column].dtype).ravel()
        check(
            np.array_equal(wanted, row_read[column].ravel()),
            f"{case}: row {row} has other values in {column}",
        )


def drawn(count: int) -> Callable[[], list[int]]:
    """Return a function that draws other random rows in each call."""
    generator = np.random.default_rng(0)
    return lambda: generator.integers(0, count, ROWS).tolist()


def afresh(folder: Path, open_data: Callable[[], Any], rows: list[int]) -> None:
    """Open a data set with an empty cache, and read rows."""
    shutil.rmtree(folder, ignore_errors=True)
    data = open_data()
    for row in rows:
        data[row]
