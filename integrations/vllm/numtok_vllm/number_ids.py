"""A token that stands for a number, and its value, in one id: all that vLLM carries of a text between
its processes is int32.

In: the id of ``[NUM]`` and the text of a decimal. Out: an id from 2^30 on; bit 29 says which of the
two number tokens it is, the lower 29 bits hold sign, digits and exponent.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok import Tokenizer
from numtok.errors import RepresentationError, TokenizerError
from numtok.representations import FloatBits, FoNE, SingleToken
from numtok.tokenizer.generated_numbers import number_ids
from numtok.tokenizer.saving import read_settings

FIRST, FORM = 1 << 30, 1 << 29  # the first id with a value, and the bit of the second form
LAST = 2**31 - 1


def check_saved(folder: Any) -> None:
    """Raise TokenizerError for a folder whose numbers are not known: without, it gives other ids."""
    if read_settings(folder) is None:
        raise TokenizerError(
            f"{folder} is no folder with a tokenizer that numtok saved or exported; save it there, or"
            " leave out --tokenizer-mode numtok and --logits-processors"
        )


class NumberIds:
    """The ids of a tokenizer whose numbers are one token.

    Six significant digits and exponents from -134 to 133 are carried; where a representation has a
    fixed point (FoNE), eight digits in all.

    Raises:
        RepresentationError: if the representation holds more than an id carries.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        shown = tokenizer.representations
        self.tokens = number_ids(tokenizer) if isinstance(shown[0], SingleToken) else []
        self.digits, self.low, self.exponents = 6, -134, 268
        for one in shown if self.tokens else ():
            too_long = isinstance(one, FloatBits)
            if isinstance(one, FoNE):
                self.digits, self.low, self.exponents = 8, -one.frac_digits, 1
                too_long = one.n_digits > self.digits
            if too_long:
                raise RepresentationError(
                    f"{one.name}: its numbers do not fit an id of vLLM, which has 29 bits for them;"
                    " take XVal, or FoNE of eight digits at most"
                )

    def pack(self, token: int, value: str) -> int:
        """Return the id of a number token with the decimal ``value``.

        Raises:
            RepresentationError: for more digits than an id carries.
        """
        number = Decimal(value).normalize()
        sign, digits, exponent = number.as_tuple()
        whole, exponent = int("".join(map(str, digits))), int(exponent)
        if whole == 0:
            exponent = self.low
        up = max(0, exponent - (self.low + self.exponents - 1))
        whole, place = whole * 10**up, exponent - up - self.low
        if whole >= 10**self.digits or place < 0:
            raise RepresentationError(
                f"{value} cannot be sent to the model: an id of vLLM carries {self.digits} digits"
                f" of a number, and exponents from {self.low} to {self.low + self.exponents - 1};"
                " round it"
            )
        packed = (sign * 10**self.digits + whole) * self.exponents + place
        return FIRST + FORM * self.tokens.index(token) + int(packed)

    def unpack(self, token: int) -> tuple[int, str | None]:
        """Return the token of the vocabulary that an id stands for, and the number; None for no number."""
        if token < FIRST or not self.tokens:
            return token, None
        form, packed = divmod(token - FIRST, FORM)
        packed, place = divmod(packed, self.exponents)
        sign, whole = divmod(packed, 10**self.digits)
        text = f"{'-' if sign else ''}{whole}e{place + self.low}"
        return self.tokens[min(form, len(self.tokens) - 1)], str(Decimal(text).normalize())

    def plain(self, ids: Any) -> npt.NDArray[np.int64]:
        """Return ids of any shape as tokens of the vocabulary."""
        given = np.asarray(ids, np.int64)
        if not self.tokens:
            return given
        forms = np.array([*self.tokens, self.tokens[-1]])[(given >= FIRST + FORM).astype(int)]
        return np.where(given >= FIRST, forms, given)
