"""Subword: the baseline. Numbers stay ordinary text, and the subword tokenizer does what it does.

In: n numbers. Out: nothing but their places: ``number_index`` points at the token in which each
    number begins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numtok.numbers.grammar import Grammar
from numtok.numbers.numbers import Numbers
from numtok.representations.base import Mask, PlainForm, Representation


@dataclass(frozen=True)
class Subword(Representation):
    """Numbers as the tokenizer itself cuts them: no token is added, and no column.

    Example:
        >>> import numtok
        >>> tokenizer = numtok.Tokenizer.from_pretrained(numbers=numtok.Subword())
        >>> tokenizer.decode(tokenizer.encode("2 km").input_ids)
        '2 km'
    """

    name = "subword"
    stays_text = True

    def fits(self, numbers: Numbers) -> Mask:
        return np.ones(len(numbers), np.bool_)

    def plain_form(self, grammar: Grammar) -> PlainForm:
        return PlainForm()
