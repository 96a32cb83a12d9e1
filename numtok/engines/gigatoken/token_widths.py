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

from numtok.engines.engine import Encoded, Engine, Ints, Mask
from numtok.numbers.numbers import Numbers

Widths = npt.NDArray[Any]


def widths_of(contents: Mapping[int, bytes]) -> Widths:
    """Return how many bytes each token has, by id, and 0, for all ids beyond."""
    # 8 bits stay in the first-level cache
    kind = np.uint8 if max(map(len, contents.values())) < 256 else np.uint16
    widths = np.zeros(max(contents) + 2, kind)
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
    stops = np.cumsum(widths[np.minimum(encoded.ids, len(widths) - 1)], dtype=np.int64)
    ends = np.append(0, stops)[encoded.offsets]
    stops -= np.repeat(ends[:-1], np.diff(encoded.offsets))
    places = encoded.tokens_at(starts, numbers.document, stops)
    left = (np.diff(numbers.per_document()) > 0) & (np.diff(ends) != sizes)
    if wanted is not None:
        left &= wanted
    if left.any():
        places = np.where(
            left[numbers.document], slow().first_tokens(encoded, numbers, left), places
        )
    return places
