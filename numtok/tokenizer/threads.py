"""A batch in several threads: its rows in parts of about equal length, encoded at once, and put
together in order.

In: rows of text, and what encodes some of them. Out: what encoding all of them at once gives, to
    the byte: rows are encoded independently of one another. The kernels, gigatoken and
    ``tokenizers`` release the interpreter's lock while they work.
"""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from numtok.arrays.text_rows import TextRows
from numtok.errors import InputError, NumtokError
from numtok.tokenizer import schema
from numtok.tokenizer.results import EncodeReport

LEAST = 1 << 16  # bytes of text in a part; for less, a thread is not worth while

Encoded: TypeAlias = tuple[pa.RecordBatch, EncodeReport]

_process = os.getpid()


def cores() -> int:
    """How many this process may use; 1 in a worker of :mod:`multiprocessing` or a fork, beside
    which there are others.
    """
    if os.getpid() != _process or multiprocessing.parent_process() is not None:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def checked(threads: Any) -> int:
    """The number of threads that is meant; ``None`` for as many as there are cores.

    Raises:
        InputError: for anything else but a positive integer.
    """
    if threads is None:
        return cores()
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise InputError(
            f"threads={threads!r} is not a positive integer; give None for as many as there are"
            " cores"
        )
    return threads


@functools.lru_cache(maxsize=1)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Threads that stay, with the memory that they have touched; a fork has none of its parent's."""
    return ThreadPoolExecutor(threads, f"numtok-encode-{process}")


def encode_parts(encode: Callable[[TextRows], Encoded], rows: TextRows, threads: int) -> Encoded:
    """What ``encode(rows)`` returns, by several threads.

    Raises:
        NumtokError: as ``encode(rows)`` does.
    """
    parts = min(threads, len(rows), rows.nbytes // LEAST)
    if parts < 2:
        return encode(rows)
    edges = np.searchsorted(
        rows.offsets, rows.offsets[0] + np.arange(1, parts) * (rows.nbytes / parts)
    ).tolist()
    bounds = sorted({0, *edges, len(rows)})
    pieces = [rows.part(first, last) for first, last in itertools.pairwise(bounds)]
    try:
        encoded = list(_pool(os.getpid(), len(pieces)).map(encode, pieces))
    except NumtokError:
        return encode(rows)  # names the place among all of the rows
    report = sum((one for _, one in encoded[1:]), encoded[0][1])
    if (
        max(report.tokens, rows.nbytes) > schema.LIST_LIMIT
    ):  # lists with wider offsets, which only the whole can know
        return encode(rows)
    return pa.concat_batches([batch for batch, _ in encoded]), report
