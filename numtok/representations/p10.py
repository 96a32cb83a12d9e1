"""P10: ``- 6 0 2 E-1``, sign, digits and exponent, ``digits`` + 2 tokens per number.

See :mod:`numtok.representations.charton` for what goes in and comes out, the inverse and the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.kernels import allocating_kernel
from numtok.representations.base import Mask
from numtok.representations.charton import Charton, Ints, exponents
from numtok.representations.continuation import Rules


@dataclass(frozen=True)
class P10(Charton):
    """``- 6 0 2 E-1``: sign, digits one by one, exponent."""

    name: ClassVar[str] = "p10"

    @property
    def alphabet(self) -> tuple[str, ...]:
        return ("+", "-", *"0123456789", *exponents(self.digits, self.decades, self.form))

    @property
    def length(self) -> int:
        return self.digits + 2

    @property
    def first_symbols(self) -> range:
        return range(2)

    @property
    def n_symbols(self) -> int:
        return 12 + self.n_exponents

    def symbols_of(self, minus: Ints, mantissa: Ints, decade: Ints) -> npt.NDArray[np.uint16]:
        out = memory.empty(len(minus) * self.length, np.uint16)
        _spell(minus, mantissa, decade, self.digits, out)
        return out.reshape(-1, self.length)

    def read_table(self, table: Ints) -> tuple[Mask, Ints, Ints, Mask]:
        digits, decade = table[:, 1:-1] - 2, table[:, -1] - 12
        valid = (table[:, 0] < 2) & (digits >= 0).all(1) & (digits < 10).all(1) & (decade >= 0)
        powers = 10 ** np.arange(self.digits - 1, -1, -1, dtype=np.int64)
        return table[:, 0] == 1, digits @ powers, decade, valid

    def rules(self) -> Rules:
        digits, zero = range(2, 12), range(2, 3)
        first: Rules = {
            "begin": [(range(2), "sign")],
            "sign": [(zero, "zero 1"), (range(3, 12), "digit 1")],
        }
        behind = {f"digit {k}": [(digits, f"digit {k + 1}")] for k in range(1, self.digits)}
        zeros = {f"zero {k}": [(zero, f"zero {k + 1}")] for k in range(1, self.digits)}
        last = self.rules_of_exponents()
        return {
            **first,
            **behind,
            **zeros,
            f"digit {self.digits}": last["mantissa"],
            f"zero {self.digits}": last["zero"],
            "end": [],
        }


@allocating_kernel
def _spell(minus, mantissa, decade, digits, out):  # type: ignore[no-untyped-def]
    """The symbols of P10."""
    at = 0
    for i in range(minus.size):
        out[at] = minus[i]
        rest = np.uint64(mantissa[i])
        for k in range(at + digits, at, -1):
            out[k] = np.uint64(2) + rest % np.uint64(10)
            rest //= np.uint64(10)
        out[at + digits + 1] = 12 + decade[i]
        at += digits + 2
