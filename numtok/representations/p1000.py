"""P1000: ``- 602 E-1``, sign, mantissa and exponent, three tokens per number.

See :mod:`numtok.representations.charton` for what goes in and comes out, the inverse and the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from numtok.representations.base import Mask
from numtok.representations.charton import Charton, Ints, exponents, mantissas
from numtok.representations.continuation import Rules


@dataclass(frozen=True)
class P1000(Charton):
    """``- 602 E-1``: sign, mantissa, exponent."""

    name: ClassVar[str] = "p1000"

    @property
    def alphabet(self) -> tuple[str, ...]:
        return (
            "+",
            "-",
            *mantissas(self.digits, self.form),
            *exponents(self.digits, self.decades, self.form),
        )

    @property
    def length(self) -> int:
        return 3

    @property
    def first_symbols(self) -> range:
        return range(2)

    @property
    def n_symbols(self) -> int:
        return 2 + self.n_mantissas + self.n_exponents

    def symbols_of(self, minus: Ints, mantissa: Ints, decade: Ints) -> npt.NDArray[np.uint16]:
        return np.stack(
            [minus, 2 + self.code_of(mantissa), 2 + self.n_mantissas + decade], 1
        ).astype(np.uint16)

    def read_table(self, table: Ints) -> tuple[Mask, Ints, Ints, Mask]:
        code, decade = table[:, 1] - 2, table[:, 2] - 2 - self.n_mantissas
        valid = (table[:, 0] < 2) & (code >= 0) & (code < self.n_mantissas) & (decade >= 0)
        return table[:, 0] == 1, self.mantissa_of(code), decade, valid

    def rules(self) -> Rules:
        mantissas = range(3, 2 + self.n_mantissas)
        return {
            "begin": [(range(2), "sign")],
            "sign": [(range(2, 3), "zero"), (mantissas, "mantissa")],
            **self.rules_of_exponents(),
        }
