"""A whole job, from JSON lines to token ids in files, by numtok and by other programs: CPU time of
one process, start-up included.

The peers find no numbers. pyarrow alone encodes nothing: no encoder takes less time than reading
the text and writing it as Parquet.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from benchmarks.command_line import command, launch, repeated
from benchmarks.corpus import Corpus
from benchmarks.timing import Row, Section, Timing, check

BYTES, TURNS = 65_000_000, 2

PYARROW = """
import sys
import pyarrow.json, pyarrow.parquet
table = pyarrow.json.read_json(sys.argv[1], pyarrow.json.ReadOptions(use_threads=False))
pyarrow.parquet.write_table(table.select(["text"]), sys.argv[2], compression="zstd")
"""
DATASETS = """
import sys
from datasets import load_dataset
from transformers import PreTrainedTokenizerFast
tokenizer = PreTrainedTokenizerFast(tokenizer_file=sys.argv[3])
rows = load_dataset("json", data_files=sys.argv[1], split="train", cache_dir=sys.argv[2] + ".cache")
rows = rows.map(lambda some: tokenizer(some["text"]), batched=True, remove_columns=rows.column_names)
rows.to_parquet(sys.argv[2])
"""
DATATROVE = """
import os, sys
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.tokens import DocumentTokenizer
folder, name = os.path.split(sys.argv[1])
reader = JsonlReader(folder, glob_pattern=name)
writer = DocumentTokenizer(sys.argv[2], sys.argv[3], shuffle_documents=False)
LocalPipelineExecutor([reader, writer], tasks=1, logging_dir=sys.argv[2] + ".logs").run()
"""
PEERS = {
    "pyarrow alone: read, and write the text as Parquet": ("pyarrow", PYARROW),
    "datasets.map with a fast tokenizer, no numbers": ("datasets", DATASETS),
    "datatrove, DocumentTokenizer, no numbers": ("datatrove", DATATROVE),
}


def run(corpus: Corpus) -> Section:
    """Run each program on the same file, in turns."""
    section = Section("A whole job in one process: processor time, start-up included")
    missing = [name for name, _ in PEERS.values() if importlib.util.find_spec(name) is None]
    section.notes += [f"{name} is not installed: its row is left out" for name in missing]
    ours = "numtok encode --numbers xval:log, to Parquet"
    with repeated(corpus, len(corpus.lines) if corpus.quick else BYTES) as (path, times):
        seconds: dict[str, list[float]] = {}
        for turn in range(1 if corpus.quick else TURNS):
            seconds.setdefault(ours, []).append(_encode(corpus, path))
            for peer, (name, script) in PEERS.items():
                if name not in missing:
                    output = path.with_name(f"{name}-{turn}.parquet")
                    seconds.setdefault(peer, []).append(_run_script(script, path, output, corpus))
        if not {"datasets", "datatrove"} & set(missing):
            section.checks.append(_check_outputs(path))
    timings = {name: Timing(tuple(some)) for name, some in seconds.items()}
    amount = corpus.nbytes * times / 1e6
    section.rows += [
        Row(name, timing, amount, "MB", None if name == ours else timing.over(timings[ours]))
        for name, timing in timings.items()
    ]
    return section


def _encode(corpus: Corpus, path: Path) -> float:
    """Return the processor time of ``numtok encode``."""
    output = path.with_suffix(".parquet")
    options = ["--numbers", "xval:log", "--workers", "1", "--quiet", "--overwrite"]
    source = ["--tokenizer", corpus.tokenizer]
    return launch(*command(), "encode", path, "-o", output, *options, *source).cpu


def _run_script(script: str, path: Path, output: Path, corpus: Corpus) -> float:
    """Return the processor time of a peer, on one thread."""
    threads = {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    program = (sys.executable, "-W", "ignore", "-c", script)
    return launch(*program, path, output, corpus.tokenizer, **threads).cpu


def _check_outputs(path: Path) -> str:
    """Check that the peers write the same tokens, and numtok as many rows."""
    ours, datasets = path.with_suffix(".parquet"), path.with_name("datasets-0.parquet")
    rows, other = (pq.read_metadata(one).num_rows for one in (ours, datasets))
    check(rows == other, f"numtok encode writes {rows:,} rows and datasets {other:,}")
    ids = pq.read_table(datasets, columns=["input_ids"])["input_ids"].combine_chunks().flatten()
    (written,) = path.with_name("datatrove-0.parquet").glob("*.ds")
    check(
        np.array_equal(np.fromfile(written, np.uint16), ids.to_numpy()),
        "datasets and datatrove write other tokens",
    )
    return f"datasets and datatrove write the same {len(ids):,} tokens, and numtok as many rows"
