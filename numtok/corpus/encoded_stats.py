"""The statistics of encoded files, from what they store of each number: its text where it was kept,
else its float64.

In: record batches that ``numtok encode`` wrote. Out: :class:`~numtok.statistics.Statistics`. What
    is not stored is not known: numbers that were left as text, what stands around numbers, their
    written form without ``number_text``, and the sign where a representation leaves it to the text.
"""

from __future__ import annotations

import contextlib

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.corpus.read.encoded import open_encoded
from numtok.corpus.read.sources import Source
from numtok.errors import NumtokError
from numtok.numbers.grammar import Grammar
from numtok.numbers.numbers import Numbers
from numtok.numbers.scan import scan
from numtok.representations.values import numbers_from_floats
from numtok.statistics import Statistics
from numtok.tokenizer.schema import METADATA_KEY, column, flat, read_metadata
from numtok.tokenizer.token_layout import to_number_layout


def is_encoded(source: Source) -> bool:
    """Whether a source is a file with numtok's metadata; a damaged one is left to whoever reads it."""
    if source.path == "-" or source.format not in ("parquet", "arrow") or source.compression:
        return False
    with contextlib.suppress(NumtokError), contextlib.closing(open_encoded(source.path)) as file:
        return METADATA_KEY in (file.schema.metadata or {})
    return False


def statistics_of_encoded(batch: pa.RecordBatch, path: str = "") -> Statistics:
    """Of one batch with its metadata.

    Raises:
        SchemaError: if it lacks a column.
    """
    batch = to_number_layout(batch)
    stored, offsets = flat(column(batch, "number_value"))
    values = memory.from_arrow(stored)
    numbers, written = None, False
    if "number_text" in batch.schema.names:
        surfaces = scan(
            flat(batch.column("number_text"))[0],
            Grammar.from_dict(read_metadata(batch.schema, path)["grammar"]),
        )
        written = len(surfaces) == len(values) and bool((np.diff(surfaces.document) == 1).all())
        numbers = surfaces if written else None
    if numbers is None:
        numbers = _of_floats(values)
    nulls = int(batch.column("number_value").null_count)
    return Statistics.of_values(
        numbers, np.asarray(offsets, np.int64), without_text=nulls, written=written
    )


def _of_floats(values: npt.NDArray[np.float64]) -> Numbers:
    """Infinite ones as a number that is beyond float64."""
    finite = np.isfinite(values)
    numbers = numbers_from_floats(np.where(finite, values, 0.0), "number_value")
    if finite.all():
        return numbers
    texts = numbers.format().to_pylist()
    for place in np.flatnonzero(~finite).tolist():
        texts[place] = "1e999" if values[place] > 0 else "-1e999"
    return Numbers.parse(texts)
