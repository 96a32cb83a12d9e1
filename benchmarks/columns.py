"""Size and speed of every column in every encoding and compression of Parquet.

``python -m benchmarks.columns`` prints the whole table. ``docs/files.md`` shows the chosen rows,
each with the ``encoding`` that its ``Column`` declares.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.corpus import Corpus, load
from numtok import Tokenizer
from numtok.corpus.write import ENCODINGS, FITTING
from numtok.tokenizer.layout import tensors_as_lists, to_token_layout
from numtok.tokenizer.schema import declared_columns

COMPRESSIONS: dict[str, tuple[str, int | None]] = {
    "none": ("none", None),
    "lz4": ("lz4", None),
    "snappy": ("snappy", None),
    "zstd 1": ("zstd", 1),
    "zstd 3": ("zstd", 3),
}
ARROW = ENCODINGS | {"dictionary": None}
# Representation, whether compact, and its columns that are measured.
KINDS: tuple[tuple[str, bool, tuple[str, ...]], ...] = (
    ("xval", False, ("input_ids", "number_index", "number_value", "number_scaled")),
    ("bits", False, ("number_bits",)),
    ("bits", True, ("number_bits",)),
    ("bits:64", False, ("number_bits",)),
    ("bits:64", True, ("number_bits",)),
    ("fone:6,4", False, ("number_fourier",)),
    ("fone:6,4", True, ("number_digits",)),
    ("logfourier", False, ("number_log_fourier",)),
    ("bins", False, ("number_bin",)),
    ("place", False, ("place_value",)),
)
TURNS = 3


class Stored(NamedTuple):
    """Bytes of a stored column, and the CPU seconds of writing and reading it."""

    size: int
    write: float
    read: float


def columns(corpus: Corpus) -> Iterator[tuple[str, pa.Table, str]]:
    """Yield (name for the report, a table of one column, the chosen encoding) of every kind of
    column. A column of names stands for input columns that are kept.
    """
    for numbers, compact, names in KINDS:
        tokenizer = Tokenizer.from_pretrained(corpus.tokenizer, _representations(numbers, compact))
        batch = tokenizer.encode_batch(corpus.column, keep_text=numbers == "xval")
        chosen = declared_columns(batch.schema)
        for name in names:
            yield (
                (
                    f"`{name}`{' of 64' * (numbers == 'bits:64')}{', compact' if compact and name == 'number_bits' else ''}"
                ),
                _alone(tensors_as_lists(batch), name),
                chosen[name].encoding,
            )
        if numbers == "xval":
            yield "`number_text`", _alone(batch, "number_text"), chosen["number_text"].encoding
            tokens = to_token_layout(batch)
            chosen = declared_columns(tokens.schema)
            for name in ("number_mask", "number_value"):
                yield f"`{name}`, token layout", _alone(tokens, name), chosen[name].encoding
    yield "texts, kept", pa.table({"text": corpus.column}), "dictionary"
    yield (
        "names, kept",
        pa.table({"id": [f"page-{k * 7919 % 100_003}" for k in range(len(corpus.texts))]}),
        "dictionary",
    )


def _representations(numbers: str, compact: bool) -> Sequence[object]:
    from numtok.representations.registry import set_for_all

    return set_for_all(numbers, None, compact)


def _alone(batch: pa.RecordBatch, name: str) -> pa.Table:
    """Return one column of a batch as a table."""
    return pa.Table.from_batches([batch.select([name]).replace_schema_metadata(None)])


def measured(table: pa.Table) -> Iterator[tuple[str, list[Stored]]]:
    """Yield (encoding, the measurement for each compression) for all encodings that Parquet has for
    the column of a table.
    """
    whole = _written(table, {})
    leaf = pq.read_metadata(pa.BufferReader(whole)).schema.column(0)
    for encoding, arrow in ARROW.items():
        if arrow in FITTING and leaf.physical_type not in FITTING[arrow]:
            continue
        if arrow is None and leaf.physical_type == "BOOLEAN":
            continue
        options = (
            {"use_dictionary": [leaf.path]}
            if arrow is None
            else {"use_dictionary": False, "column_encoding": {leaf.path: arrow}}
        )
        stored = [
            _stored(
                functools.partial(
                    _written, table, options | {"compression": name, "compression_level": level}
                )
            )
            for name, level in COMPRESSIONS.values()
        ]
        yield encoding, stored


def _stored(written: Callable[[], pa.Buffer]) -> Stored:
    """Measure a function that writes a column."""
    data = written()
    read = _seconds(
        lambda: pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True).read(
            use_threads=False
        )
    )
    return Stored(data.size, _seconds(written), read)


def _written(table: pa.Table, options: dict[str, Any]) -> pa.Buffer:
    """Return a table as Parquet in memory, written with these options."""
    memory = pa.BufferOutputStream()
    pq.write_table(
        table,
        memory,
        row_group_size=max(1, len(table)),
        write_statistics=False,
        write_page_checksum=True,
        **options,
    )
    return memory.getvalue()


def _seconds(work: Callable[[], object]) -> float:
    """Return the least CPU seconds of :data:`TURNS` calls."""
    best = float("inf")
    for _ in range(TURNS):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return max(best, 1e-6)


def lines(corpus: Corpus) -> Iterator[str]:
    """Yield the lines of a Markdown table. Each cell has the size in percent of the Arrow data, and
    MB/s of these data written and read.
    """
    yield f"| column, MB of Arrow data | encoding | {' | '.join(COMPRESSIONS)} |"
    yield "|---" * (2 + len(COMPRESSIONS)) + "|"
    for name, table, chosen in columns(corpus):
        amount = table.nbytes
        label = f"{name}, {amount / 1e6:.3g}"
        for encoding, stored in measured(table):
            shown = [
                f"{100 * one.size / amount:.3g} · {amount / 1e6 / one.write:.0f} ·"
                f" {amount / 1e6 / one.read:.0f}"
                for one in stored
            ]
            cells = [
                f"**{cell}**" if encoding == chosen and compression == "zstd 1" else cell
                for cell, compression in zip(shown, COMPRESSIONS, strict=True)
            ]
            yield f"| {label} | {encoding} | {' | '.join(cells)} |"
            label = ""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.columns", description=lines.__doc__)
    parser.add_argument("--corpus", type=Path, help="a JSON lines file with the field text")
    parser.add_argument("--tokenizer", type=Path, help="a tokenizer.json")
    parser.add_argument(
        "--quick", action="store_true", help="a little text, to see that everything runs"
    )
    options = parser.parse_args()
    for line in lines(load(options.corpus, options.tokenizer, options.quick)):
        print(line, flush=True)


if __name__ == "__main__":
    main()
