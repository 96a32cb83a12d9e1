"""B1999: ``-602 E-1``, signed mantissa and exponent, two tokens per number.

See :mod:`numtok.representations.charton` for what goes in and comes out, the inverse and the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from numtok.representations.base import Mask
from numtok.representations.charton import Charton, Ints, exponents, mantissas, with_signs
from numtok.representations.continuation import Rules


@dataclass(frozen=True)
class B1999(Charton):
    """``-602 E-1``: signed mantissa, exponent."""

    name: ClassVar[str] = "b1999"

    @property
    def alphabet(self) -> tuple[str, ...]:
        return (
            *with_signs(mantissas(self.digits, self.form)),
            *exponents(self.digits, self.decades, self.form),
        )

    @property
    def length(self) -> int:
        return 2

    @property
    def first_symbols(self) -> range:
        return range(2 * self.n_mantissas)

    @property
    def n_symbols(self) -> int:
        return 2 * self.n_mantissas + self.n_exponents

    def symbols_of(self, minus: Ints, mantissa: Ints, decade: Ints) -> npt.NDArray[np.uint16]:
        return np.stack(
            [2 * self.code_of(mantissa) + minus, 2 * self.n_mantissas + decade], 1
        ).astype(np.uint16)

    def read_table(self, table: Ints) -> tuple[Mask, Ints, Ints, Mask]:
        code, decade = table[:, 0] // 2, table[:, 1] - 2 * self.n_mantissas
        return (
            table[:, 0] % 2 == 1,
            self.mantissa_of(code),
            decade,
            (code < self.n_mantissas) & (decade >= 0),
        )

    def rules(self) -> Rules:
        return {
            "begin": [(range(2), "zero"), (range(2, 2 * self.n_mantissas), "mantissa")],
            **self.rules_of_exponents(),
        }
