"""The token in which each number begins, for numbers that are ordinary text: the widths of tokens
in bytes tell.

In: token ids of rows. Out: positions of tokens; of rows whose bytes do not add up, by another
engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.kernels import kernel
from numtok.engines.engine import Encoded, Engine, Ints, Mask
from numtok.numbers.numbers import Numbers

Widths = npt.NDArray[Any]


def widths_of(contents: Mapping[int, bytes]) -> Widths:
    """Return how many bytes each token has, by id."""
    # 8 bits stay in the first-level cache
    kind = np.uint8 if max(map(len, contents.values())) < 256 else np.uint16
    widths = np.zeros(max(contents) + 1, kind)
    for token, content in contents.items():
        widths[token] = len(content)
    return widths


def find_first_tokens(
    encoded: Encoded,
    numbers: Numbers,
    starts: Ints,
    sizes: Ints,
    widths: Widths,
    slow: Callable[[], Engine],
    wanted: Mask | None,
) -> Ints:
    """Return int64[n], the position in ``encoded.ids`` of the token in which each number begins, in
    the rows that are ``wanted``.

    The bytes that the tokens are made of are those of the rows, perhaps normalized: int64[n]
    ``starts``, the byte of its row in which each number begins; int64[rows] ``sizes``. ``slow``
    returns the engine that tells where bytes do not.
    """
    per_row = numbers.per_document()
    places, found_sizes = memory.empty(len(numbers), np.int64), memory.empty(len(sizes), np.int64)
    _find_tokens(encoded.ids, encoded.offsets, widths, per_row, starts, places, found_sizes)
    left = (np.diff(per_row) > 0) & (found_sizes != sizes)
    if wanted is not None:
        left &= wanted
    if left.any():
        places = np.where(
            left[numbers.document], slow().first_tokens(encoded, numbers, left), places
        )
    return places


@kernel
def _find_tokens(ids, offsets, widths, per_row, starts, places, sizes):  # type: ignore[no-untyped-def]
    """Fill int64[n] ``places`` with the token that holds each byte of ``starts``, and int64[rows]
    ``sizes`` with the bytes of each row's tokens.
    """
    for row in range(sizes.size):
        at, number, last = 0, per_row[row], per_row[row + 1]
        for token in range(offsets[row], offsets[row + 1]):
            if ids[token] < widths.size:  # no other engine's
                at += widths[ids[token]]
            while number < last and starts[number] < at:
                places[number] = token
                number += 1
        for rest in range(number, last):
            places[rest] = offsets[row]
        sizes[row] = at
