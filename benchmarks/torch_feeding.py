"""From Parquet to batch: ``IterableNumberDataset`` and ``NumberCollator`` beside ``datasets`` with
the padding collator of transformers.

The corpus is cut into rows, and encoded by numtok with XVal and compact FloatBits. The peers read
only the ids of the same rows. The rows in the batches are compared with those of the file, as
pyarrow reads it, before the clock starts. A turn is one pass over the file, its decompression
included; workers are running already. Padding tokens do not count.
"""

from __future__ import annotations

import importlib.util
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import numtok
from benchmarks.corpus import Corpus
from benchmarks.timing import Goal, Section, alternate, check
from numtok.corpus.write import open_writer

TOKENS, QUICK_TOKENS = 1_000_000, 2_000
CORES = 2
# bytes of a row group: two workers share several, as they share those of a large file
GROUP_BYTES = 2 << 20
NEEDED = ("torch", "transformers", "datasets")
# streams, with the dtypes of the file
STREAMS = {
    "number_value": np.float64,
    "number_scaled": np.float32,
    "number_bits": np.uint32,
}


@dataclass(frozen=True)
class Case:
    """Rows of one kind, and how they are batched.

    Attributes:
        name: name for the report.
        characters: characters of a row, about.
        sizes: rows per batch.
        options: options of the collator.
    """

    name: str
    characters: int
    sizes: tuple[int, ...]
    options: dict[str, Any]


CASES = (
    Case("short rows", 130, (32, 256), {}),
    Case("rows cut to 512 tokens", 1700, (32, 256), {"max_length": 512}),
    Case("short rows packed to 1024 tokens", 130, (256,), {"max_length": 1024, "pack": True}),
)


def run(corpus: Corpus) -> Section:
    """Measure all kinds of rows, in this process and with two workers."""
    section = Section(
        f"Feeding: Parquet to batch, {CORES} cores; ours with all streams, the peer with ids alone"
    )
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        section.checks.append(
            f"nothing: {', '.join(missing)} is not installed; pip install '.[torch]' datasets"
        )
        return section
    import datasets
    import torch
    import transformers

    torch.set_num_threads(1)
    datasets.disable_progress_bars()
    transformers.logging.set_verbosity_error()
    section.notes.append(", ".join(f"{name} {version(name)}" for name in NEEDED))
    # workers suffer from other load more than one process does
    if hasattr(os, "getloadavg"):
        section.notes.append(f"load average when it began: {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder, two_cores():
        for case in CASES:
            measure(case, corpus, Path(folder), section)
    return section


@contextmanager
def two_cores() -> Iterator[None]:
    """Run on two cores, and start workers on them, where the system can."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:CORES])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def measure(case: Case, corpus: Corpus, folder: Path, section: Section) -> None:
    """Write the files of a case, check both ways to read them, and time them side by side."""
    ours, peer = folder / f"{case.characters}.parquet", folder / f"{case.characters}-ids.parquet"
    if not ours.exists():
        write(corpus, case, ours, peer)
    expected = rows_of_file(
        ours, None if "pack" in case.options else case.options.get("max_length")
    )
    tokens = sum(len(ids) for ids, *_ in expected) // 4
    rates: dict[int, list[float]] = {}
    for workers in (0, CORES):
        for size in case.sizes[: 1 if corpus.quick else None]:
            name = (
                f"{case.name}, {tokens / len(expected):.0f} on average, batches of {size},"
                f" {workers or 'no'} workers"
            )
            loaders = {
                name: our_loader(ours, size, workers, case.options),
                f"  {peer_name(case)}": peer_loader(peer, size, workers, case, corpus),
            }
            compare(case, name, *loaders.values(), expected)
            timings = alternate(
                {
                    one: lambda loader=loader: sum(1 for _ in loader)
                    for one, loader in loaders.items()
                },
                corpus.budget(4),
            )
            section.add(timings, tokens / 1e6, name, "M tokens")
            rates.setdefault(workers, []).append(tokens / 1e6 / timings[name].median)
    section.checks.append(
        f"{case.name}: ids and streams of {len(expected):,} rows in batches are those of the file;"
        " ids of the peer as well"
    )
    if not corpus.quick:
        for workers, measured in rates.items():
            section.goals.append(
                Goal(
                    f"Parquet to batch, {case.name}, {workers or 'no'} workers",
                    min(measured),
                    2,
                    None,
                    "M tokens/s",
                )
            )


def write(corpus: Corpus, case: Case, ours: Path, peer: Path) -> None:
    """Write the corpus in rows: encoded for numtok, and truncated ids for the peer."""
    tokenizer = numtok.Tokenizer.from_pretrained(
        corpus.tokenizer, numbers=[numtok.XVal(), numtok.FloatBits(compact=True)]
    )
    limit = case.characters
    rows = [
        row
        for text in corpus.texts
        for row in re.findall(rf"(?s)\S.{{0,{limit}}}(?!\S)|\S{{1,{limit}}}", text)
    ]
    batch = tokenizer.encode_batch(rows)
    ends = np.cumsum(pc.list_value_length(batch.column("input_ids")).to_numpy())
    batch = batch.slice(0, 1 + int(np.searchsorted(ends, QUICK_TOKENS if corpus.quick else TOKENS)))
    with open_writer(ours, batch.schema, row_group_bytes=GROUP_BYTES) as writer:
        writer.write(batch)
    ids = pc.list_slice(batch.column("input_ids"), 0, case.options.get("max_length"))
    pq.write_table(pa.table({"input_ids": ids}), peer, compression="zstd", row_group_size=1000)


def our_loader(path: Path, size: int, workers: int, options: dict[str, Any]) -> Any:
    """Return numtok's loader of batches for causal language modelling."""
    from torch.utils.data import DataLoader

    from numtok_torch.data import IterableNumberDataset, NumberCollator

    data = IterableNumberDataset(path)
    collator = NumberCollator.from_schema(data.schema, 0, objective="causal", **options)
    return DataLoader(
        data,
        batch_size=size,
        num_workers=workers,
        persistent_workers=bool(workers),
        collate_fn=collator,
    )


def peer_loader(path: Path, size: int, workers: int, case: Case, corpus: Corpus) -> Any:
    """Return the peer's loader of batches of ids and masks, or of one packed row each."""
    from datasets import Dataset
    from torch.utils.data import DataLoader
    from transformers import (
        DataCollatorWithFlattening,
        DataCollatorWithPadding,
        PreTrainedTokenizerFast,
    )

    data: Any = Dataset.from_parquet(str(path), cache_dir=str(path.parent / "cache"))
    if "pack" in case.options:
        collator: Callable[..., Any] = DataCollatorWithFlattening()
    else:
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(corpus.tokenizer), pad_token="[PAD]")
        collator = DataCollatorWithPadding(tokenizer)
    return DataLoader(
        data,
        batch_size=size,
        num_workers=workers,
        persistent_workers=bool(workers),
        collate_fn=collator,
    )


def peer_name(case: Case) -> str:
    """Return the name of the peer for the report."""
    return f"datasets, DataCollatorWith{'Flattening' if 'pack' in case.options else 'Padding'}"


def compare(case: Case, name: str, ours: Any, peer: Any, expected: list[tuple[bytes, ...]]) -> None:
    """Check that every row of the file is in one batch, and nothing else. Workers and packing
    change the order, which is ignored.
    """
    batched = sorted(row for batch in ours for row in rows_of_batch(batch))
    check(
        batched == sorted(expected),
        f"{name}: the ids or streams of the batches are not those of the file",
    )
    if "pack" in case.options:
        ids = sorted(
            part.tobytes()
            for batch in peer
            for part in split(batch["input_ids"][0], batch["position_ids"][0])
        )
    else:
        ids = sorted(
            ids_of_row[is_token].tobytes()
            for batch in peer
            for ids_of_row, is_token in zip(
                as_ids(batch["input_ids"]), batch["attention_mask"].numpy() == 1, strict=True
            )
        )
    check(ids == sorted(ids for ids, *_ in expected), f"{name}: the peer has other ids")


def rows_of_file(path: Path, limit: int | None) -> list[tuple[bytes, ...]]:
    """Return (ids, positions of numbers, value, scaled, bits) of each row as bytes, read by pyarrow
    and truncated to ``limit`` tokens.
    """
    rows = []
    for row in pq.read_table(path).to_pylist():
        positions = np.array(row["number_index"], np.int32)
        inside = slice(None) if limit is None else positions < limit
        values = (
            np.array(row[column], dtype)[inside].tobytes() for column, dtype in STREAMS.items()
        )
        rows.append(
            (
                np.array(row["input_ids"][:limit], np.int32).tobytes(),
                positions[inside].tobytes(),
                *values,
            )
        )
    return rows


def rows_of_batch(batch: dict[str, Any]) -> Iterator[tuple[bytes, ...]]:
    """Yield (ids, positions of numbers, value, scaled, bits) of each row as bytes, from the padded
    or packed tensors of a batch.
    """
    ids, number_mask, is_token = (
        as_ids(batch["input_ids"]),
        batch["number_mask"].numpy(),
        no_padding(batch),
    )
    streams = [batch[name].numpy().astype(dtype) for name, dtype in STREAMS.items()]
    for line in range(len(ids)):
        starts = (
            np.flatnonzero(is_token[line] & (batch["position_ids"][line].numpy() == 0))
            if "position_ids" in batch
            else np.array([0])
        )
        stops = [*starts[1:].tolist(), int(is_token[line].sum())]
        for first, stop in zip(starts.tolist(), stops, strict=True):
            mask = number_mask[line, first:stop]
            values = (stream[line, first:stop][mask].tobytes() for stream in streams)
            yield (
                ids[line, first:stop].tobytes(),
                np.flatnonzero(mask).astype(np.int32).tobytes(),
                *values,
            )


def no_padding(batch: dict[str, Any]) -> Any:
    """Return which tokens are no padding, bool (batch, seq). Packed batches have no mask; their
    padding has id 0 and position 0, with which no row begins.
    """
    if "attention_mask" in batch:
        return batch["attention_mask"].numpy() == 1
    return (batch["input_ids"].numpy() != 0) | (batch["position_ids"].numpy() != 0)


def split(ids: Any, positions: Any) -> list[Any]:
    """Return the rows of a packed row."""
    return np.split(as_ids(ids), np.flatnonzero(positions.numpy() == 0)[1:])


def as_ids(ids: Any) -> Any:
    """Return token ids as int32, as the file has them."""
    return ids.numpy().astype(np.int32)
