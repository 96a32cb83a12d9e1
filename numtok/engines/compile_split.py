"""The kernels of the fast engine, compiled in a process of their own: see
:mod:`numtok.arrays.compile_beside`.

In: nothing. Out: the kernels that :data:`numtok.engines.gigatoken_engine.KERNELS` names, compiled
    and kept.
"""

from __future__ import annotations

import numpy as np

from numtok.arrays.text_rows import TextRows
from numtok.engines.gigatoken_engine import GigatokenEngine
from numtok.engines.interface import NumberTokens, Slots
from numtok.engines.tokenizer_json import load_source
from numtok.numbers.numbers import Numbers


def compile_kernels() -> None:
    """By a text without numbers: what takes numbers out is compiled all the same, and what finds
    them is not.
    """
    places, ids, offsets = np.empty(0, np.int64), np.empty(0, np.int32), np.zeros(1, np.int64)
    numbers = Numbers(
        ids,
        places,
        places,
        np.empty(0, np.bool_),
        np.empty(0, np.uint8),
        offsets,
        places,
        TextRows.of(["a"]),
    )
    GigatokenEngine(load_source(), NumberTokens(-1)).encode(
        numbers.rows, Slots.of(numbers, ids, ids, offsets)
    )
