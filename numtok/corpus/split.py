"""Splits of a corpus: a document belongs to the split in whose range its hash lies. The hash depends
on the text and a seed alone, so a document stays where it is when others come or go, and equal texts
are in the same split.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays.text_rows import TextRows
from numtok.errors import InputError
from numtok.options import shown_option

_HASHES = 1 << 64


class HashRange(NamedTuple):
    """The documents whose hash, BLAKE2b of the text with the seed as the key, is from ``low`` up to
    ``high``, as shares of the largest hash.
    """

    low: Decimal
    high: Decimal
    seed: int

    @classmethod
    def parse(cls, bounds: str | None, seed: int) -> HashRange | None:
        """Read ``"0:0.7"``, as :func:`parse_split` gives it; None, which stands for all documents."""
        if bounds is None:
            return None
        low, high = map(Decimal, bounds.split(":"))
        return cls(low, high, seed)

    def contains(self, texts: pa.Array) -> npt.NDArray[np.bool_]:
        """Return bool[n]: which texts lie in the range; null counts as the empty text."""
        rows = TextRows.of(texts)
        data, ends = rows.text.data, rows.offsets.tolist()
        low, high = int(self.low * _HASHES), int(self.high * _HASHES)
        key = str(self.seed).encode()
        inside = np.empty(len(ends) - 1, np.bool_)
        for row in range(len(inside)):
            digest = hashlib.blake2b(data[ends[row] : ends[row + 1]], digest_size=8, key=key)
            inside[row] = low <= int.from_bytes(digest.digest(), "big") < high
        return inside


def parse_split(split: str) -> dict[str, str]:
    """Return the bounds of each split's hashes; InputError if the shares make no sense.

    >>> parse_split("train=0.98,validation=0.02")
    {'train': '0:0.98', 'validation': '0.98:1.00'}
    """
    bounds: dict[str, str] = {}
    low = Decimal(0)
    for part in split.split(","):
        name, _, share = part.strip().partition("=")
        if not re.fullmatch(r"[A-Za-z]\w*", name) or name in bounds:
            break
        with contextlib.suppress(InvalidOperation):
            high = low + Decimal(share)
            if high > low:
                bounds[name], low = f"{low}:{high}", high
                continue
        break
    if not bounds or low != 1:
        raise InputError(
            f"{shown_option('split', split)} must name the splits and their shares, which add up"
            " to 1, as in 'train=0.98,validation=0.02'"
        )
    return bounds
