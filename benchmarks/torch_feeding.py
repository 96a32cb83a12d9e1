"""From Parquet to batch: ``IterableNumberDataset`` and ``NumberCollator`` beside ``datasets`` with
the padding collator of transformers.

The corpus is cut into rows and encoded by numtok, with XVal and compact FloatBits; the peers read
the ids alone, of the same rows. Before the clock starts, the rows in the batches are compared with
those of the file, as pyarrow reads it. A turn is one pass over the file, its decompression
included; workers are running already. Tokens that are padding do not count.
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
# of a row group: several in this small file, so that two workers share it as they share a large one
GROUP_BYTES = 2 << 20
NEEDED = ("torch", "transformers", "datasets")
# with the dtypes of the file
STREAMS = {
    "number_value": np.float64,
    "number_scaled": np.float32,
    "number_bits": np.uint32,
}


@dataclass(frozen=True)
class Case:
    """Rows of one kind, and what becomes of them.

    Attributes:
        name: for people.
        characters: about how many make a row.
        sizes: rows per batch.
        options: of the collator.
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
    """All kinds of rows, in this process and from two workers."""
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
    # workers need the cores for themselves, more than one process does
    if hasattr(os, "getloadavg"):
        section.notes.append(f"load average when it began: {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder, two_cores():
        for case in CASES:
            measure(case, corpus, Path(folder), section)
    return section


@contextmanager
def two_cores() -> Iterator[None]:
    """Run on two cores, as do the workers that are started meanwhile, where the system can."""
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
    """Write the files of a case, check every way to read them, and time them side by side."""
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
        for workers, found in rates.items():
            section.goals.append(
                Goal(
                    f"Parquet to batch, {case.name}, {workers or 'no'} workers",
                    min(found),
                    2,
                    None,
                    "M tokens/s",
                )
            )


def write(corpus: Corpus, case: Case, ours: Path, peer: Path) -> None:
    """The corpus in pieces: encoded for us, and its ids, cut already, for the peer."""
    tokenizer = numtok.Tokenizer.from_pretrained(
        corpus.tokenizer, numbers=[numtok.XVal(), numtok.FloatBits(compact=True)]
    )
    limit = case.characters
    pieces = [
        piece
        for text in corpus.texts
        for piece in re.findall(rf"(?s)\S.{{0,{limit}}}(?!\S)|\S{{1,{limit}}}", text)
    ]
    batch = tokenizer.encode_batch(pieces)
    ends = np.cumsum(pc.list_value_length(batch.column("input_ids")).to_numpy())
    batch = batch.slice(0, 1 + int(np.searchsorted(ends, QUICK_TOKENS if corpus.quick else TOKENS)))
    with open_writer(ours, batch.schema, row_group_bytes=GROUP_BYTES) as writer:
        writer.write(batch)
    ids = pc.list_slice(batch.column("input_ids"), 0, case.options.get("max_length"))
    pq.write_table(pa.table({"input_ids": ids}), peer, compression="zstd", row_group_size=1000)


def our_loader(path: Path, size: int, workers: int, options: dict[str, Any]) -> Any:
    """Batches for causal language modelling."""
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
    """Batches of ids and masks, or of one packed line each."""
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
    """For people."""
    return f"datasets, DataCollatorWith{'Flattening' if 'pack' in case.options else 'Padding'}"


def compare(case: Case, name: str, ours: Any, peer: Any, expected: list[tuple[bytes, ...]]) -> None:
    """Every row of the file is in one batch, and nothing else is.

    Workers and packing change the order, so it is left aside.
    """
    found = sorted(row for batch in ours for row in rows_of_batch(batch))
    check(
        found == sorted(expected),
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
            line[shown].tobytes()
            for batch in peer
            for line, shown in zip(
                as_ids(batch["input_ids"]), batch["attention_mask"].numpy() == 1, strict=True
            )
        )
    check(ids == sorted(ids for ids, *_ in expected), f"{name}: the peer has other ids")


def rows_of_file(path: Path, limit: int | None) -> list[tuple[bytes, ...]]:
    """(ids, places of numbers, value, scaled, bits) of each row, as bytes, read by pyarrow and cut
    to ``limit`` tokens.
    """
    rows = []
    for row in pq.read_table(path).to_pylist():
        places = np.array(row["number_index"], np.int32)
        kept = slice(None) if limit is None else places < limit
        values = (np.array(row[column], dtype)[kept].tobytes() for column, dtype in STREAMS.items())
        rows.append(
            (
                np.array(row["input_ids"][:limit], np.int32).tobytes(),
                places[kept].tobytes(),
                *values,
            )
        )
    return rows


def rows_of_batch(batch: dict[str, Any]) -> Iterator[tuple[bytes, ...]]:
    """The same, from the padded or packed tensors of a batch."""
    ids, marked, shown = as_ids(batch["input_ids"]), batch["number_mask"].numpy(), no_padding(batch)
    streams = [batch[name].numpy().astype(dtype) for name, dtype in STREAMS.items()]
    for line in range(len(ids)):
        begins = (
            np.flatnonzero(shown[line] & (batch["position_ids"][line].numpy() == 0))
            if "position_ids" in batch
            else np.array([0])
        )
        stops = [*begins[1:].tolist(), int(shown[line].sum())]
        for first, stop in zip(begins.tolist(), stops, strict=True):
            mask = marked[line, first:stop]
            values = (stream[line, first:stop][mask].tobytes() for stream in streams)
            yield (
                ids[line, first:stop].tobytes(),
                np.flatnonzero(mask).astype(np.int32).tobytes(),
                *values,
            )


def no_padding(batch: dict[str, Any]) -> Any:
    """Which tokens are the rows': by the mask; packed lines have none, and there padding is id 0 at
    place 0, with which no row begins.
    """
    if "attention_mask" in batch:
        return batch["attention_mask"].numpy() == 1
    return (batch["input_ids"].numpy() != 0) | (batch["position_ids"].numpy() != 0)


def split(ids: Any, positions: Any) -> list[Any]:
    """The rows of a packed line."""
    return np.split(as_ids(ids), np.flatnonzero(positions.numpy() == 0)[1:])


def as_ids(ids: Any) -> Any:
    """As the file has them."""
    return ids.numpy().astype(np.int32)
