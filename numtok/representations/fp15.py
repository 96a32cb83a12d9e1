"""FP15: ``-602E-1``, one token per number.

See :mod:`numtok.representations.charton` for what goes in and comes out, the inverse and the paper.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from numtok.representations.base import Mask
from numtok.representations.charton import Charton, Ints, exponents, mantissas, with_signs
from numtok.representations.continuation import Rules


@dataclass(frozen=True)
class FP15(Charton):
    """``-602E-1``: the whole number in one symbol."""

    name: ClassVar[str] = "fp15"

    @property
    def alphabet(self) -> tuple[str, ...]:
        return _whole(self.digits, self.decades, self.form, self.exponent_of_zero)

    @property
    def length(self) -> int:
        return 1

    @property
    def first_symbols(self) -> range:
        return range(self.n_symbols)

    @property
    def n_symbols(self) -> int:
        return 2 * (self.n_mantissas - 1) * self.n_exponents + 2

    def symbols_of(self, minus: Ints, mantissa: Ints, decade: Ints) -> npt.NDArray[np.uint16]:
        code = self.code_of(mantissa)
        index = np.where(code > 0, decade * (self.n_mantissas - 1) + code, 0)
        return (2 * index + minus).astype(np.uint16)[:, None]

    def read_table(self, table: Ints) -> tuple[Mask, Ints, Ints, Mask]:
        minus, index = table[:, 0] % 2 == 1, table[:, 0] // 2
        decade, code = np.divmod(index - 1, self.n_mantissas - 1)
        return (
            minus,
            self.mantissa_of(np.where(index > 0, code + 1, 0)),
            np.maximum(decade, 0),
            table[:, 0] < self.n_symbols,
        )

    def rules(self) -> Rules:
        return {"begin": [(range(self.n_symbols), "end")], "end": []}


@functools.lru_cache(maxsize=8)
def _whole(
    digits: int, decades: tuple[int, int], form: str, exponent_of_zero: int
) -> tuple[str, ...]:
    """Zero and minus zero, then every mantissa with every exponent."""
    signed, powers = with_signs(mantissas(digits, form)), exponents(digits, decades, form)
    zeros = tuple(zero + powers[exponent_of_zero] for zero in signed[:2])
    return (*zeros, *(mantissa + power for power in powers for mantissa in signed[2:]))
