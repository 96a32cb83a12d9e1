"""Where each token of a batch goes: rows laid end to end to a rectangle, one row per line or
several packed into one.

In: int64[rows], the tokens per row. Out: a :class:`Layout`: the shape (batch, seq) and, for each
token, its place in the flattened rectangle. One layout serves every stream:
``layout.dense(values, fill, positions)`` puts its values there, and
``batch.reshape(-1)[layout.places]`` is the inverse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Layout:
    """A rectangle, and the places of the tokens in it."""

    batch: int  # of the rectangle
    width: int
    places: Ints  # int64[tokens], the flat place of each
    local: Ints  # int64[tokens], the place of each in its own row

    def dense(
        self, values: npt.NDArray[Any], fill: float, positions: Ints | None = None
    ) -> npt.NDArray[Any]:
        """Return (batch, width, *inner): ``values`` (n, *inner) at tokens ``positions`` (all of
        them if None), ``fill`` elsewhere.
        """
        inner = values.shape[1:]
        shape = (self.batch * self.width, *inner)
        # untouched pages of zeros cost nothing
        out = np.zeros(shape, values.dtype) if fill == 0 else np.full(shape, fill, values.dtype)
        out[self.places if positions is None else self.places[positions]] = values
        return out.reshape(self.batch, self.width, *inner)


def since(begins: Mask) -> Ints:
    """Return int64[tokens]: the distance of each token from the last one, up to itself, that begins
    something.
    """
    starts = np.flatnonzero(begins)
    return np.arange(len(begins)) - np.repeat(starts, np.diff(np.append(starts, len(begins))))


def within(lengths: Ints) -> Ints:
    """Return int64[tokens]: the place of each token in its own piece, by the pieces' lengths."""
    return np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def round_up(width: int, multiple: int | None) -> int:
    """Return the next multiple, at least ``width``."""
    return width if multiple is None else -(-width // multiple) * multiple


def pad(lengths: Ints, width: int, side: str) -> Layout:
    """Lay out one row per line, at the left edge (``side="right"``) or at the right one."""
    begins = np.arange(len(lengths)) * width + (0 if side == "right" else width - lengths)
    return _layout(lengths, begins, len(lengths), width)


def pack(lengths: Ints, capacity: int, width: int, side: str) -> Layout:
    """Lay out several whole rows per line, at most ``capacity`` tokens: first fit, longest first
    (Johnson 1973), which needs at most 11/9 of the fewest lines.

    Rows without tokens take no place; if all are empty, there is one line of padding.
    """
    free = np.full(len(lengths), capacity)
    line, offset = np.zeros(len(lengths), np.int64), np.zeros(len(lengths), np.int64)
    for row in np.argsort(-lengths, kind="stable").tolist():
        line[row] = np.argmax(free >= lengths[row])  # the first that has room
        offset[row] = capacity - free[line[row]]
        free[line[row]] -= lengths[row]
    used = int(np.count_nonzero(free < capacity))
    shift = 0 if side == "right" else width - (capacity - free)[line]
    return _layout(lengths, line * width + offset + shift, max(1, used), width)


def _layout(lengths: Ints, begins: Ints, batch: int, width: int) -> Layout:
    local = within(lengths)
    return Layout(batch, width, local + np.repeat(begins, lengths), local)
