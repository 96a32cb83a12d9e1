"""Digits: each number spelled out between ``[NUM]`` and ``[/NUM]``, or without them, in groups of
one to three digits, and nothing beside the tokens.

In: n numbers. Out: the characters of each number as written, the digits in groups, one token each:
    1234567.8901 is ``1 234 567 . 890 1``. Inverse: the characters. Exact for every decimal, as
    written: leading and trailing zeros, separators and exponents stay. ``Digits(1)`` is the
    digit-wise baseline of FoNE (Zhou et al. 2025); groups of three are what the vocabularies of
    Llama 3 and GPT-4 have. That they are cut from the right, so that the same digits of two numbers
    stand below each other, helps in arithmetic: Tokenization counts (Singh and Strouse 2024).

====================  ==========================  ==========================  ===========================
literal               ``group=3``                 ``align="left"``            ``group=1``
====================  ==========================  ==========================  ===========================
``1234567``           1 234 567                   123 456 7                   1 2 3 4 5 6 7
``1,234``             1 , 234                     1 , 234                     1 , 2 3 4
``-60.2``             - 60 . 2                    - 60 . 2                    - 6 0 . 2
``.12345``            . 123 45                    . 123 45                    . 1 2 3 4 5
``007``               007                         007                         0 0 7
``1.5e-1000``         1 . 5 e - 1 000             1 . 5 e - 100 0             1 . 5 e - 1 0 0 0
====================  ==========================  ==========================  ===========================

**Tokens.** If the source vocabulary has all groups (10, 110 or 1,110), they are its tokens; else
each is an added token of its own, ``[NUM:602]``: no number is half trained and half new. Signs,
points and the like are tokens of the source where it has them.

**Without brackets** (``brackets=False``): see :mod:`~numtok.representations.digit_symbols`. With a
tokenizer that cuts digits by itself, the ids are then its own, but for signs, and for white space
of two or more characters before a number: `` -5`` is `` ``, ``-``, ``5``.

**Places** (``places=True``): the column ``place_value``, as of
:class:`~numtok.representations.place_value.PlaceValue`; a group has the index of its last digit, so
that 1 234 567 has 7 4 1, and 890 1 after the point has -3 -4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from numtok.numbers.grammar import Grammar
from numtok.numbers.numbers import Numbers
from numtok.representations import digit_symbols
from numtok.representations.base import AddedTokens, Mask, PlainForm, Spelled, Symbols
from numtok.representations.columns import Column
from numtok.representations.digit_symbols import AsWritten
from numtok.representations.place_value import PlaceValue
from numtok.representations.symbol_grammar import Decimals

SIGNS = "[-+\u2212]"
LETTERS = r"\p{L}\p{M}\p{Nl}_"


@dataclass(frozen=True)
class Digits(AsWritten):
    """Digits in groups.

    Attributes:
        group: digits of a group, 1 to 3.
        align: ``"right"``, so that the first group of an integer is the short one, or ``"left"``.
            After the point, groups begin at the point.
        places: whether the column ``place_value`` is written.
        overflow: for numbers with an index beyond ±32767 (``"clip"``: those indices are clipped).
            Without ``places``, every number is held.
        brackets: whether ``[NUM]`` and ``[/NUM]`` stand around each number.

    Example:
        >>> import numtok
        >>> digits = numtok.Digits(group=3)
        >>> encoded = digits.encode(numtok.Numbers.parse(["-12345.6"]))
        >>> [digits.alphabet[symbol] for symbol in encoded.symbols]
        ['-', '12', '345', '.', '6']
    """

    group: int = 3
    align: str = "right"
    places: bool = False
    overflow: str = "text"
    brackets: bool = True
    name = "digits"
    order = "msd"
    positional = ("group",)
    words: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "left": {"align": "left"},
        "places": {"places": True},
        **AsWritten.bare,
    }
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({"group": 1},)
    declared = PlaceValue.declared
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"align": ("left", "right")}
    limits: ClassVar[Mapping[str, tuple[int, int]]] = {"group": (1, digit_symbols.LONGEST_GROUP)}

    @property
    def alphabet(self) -> tuple[str, ...]:
        return digit_symbols.alphabet(self.group)

    def columns(self) -> dict[str, Column]:
        return super().columns() if self.places else {}

    def added_tokens(self, two_forms: bool) -> AddedTokens:
        own, _, _ = super().added_tokens(two_forms)
        return AddedTokens(own, digit_symbols.MARKS, digit_symbols.groups(self.group))

    def fits(self, numbers: Numbers) -> Mask:
        return digit_symbols.places_fit(numbers) if self.places else np.ones(len(numbers), np.bool_)

    def encode(self, numbers: Numbers) -> Spelled:
        return digit_symbols.to_symbols(numbers, self.group, self.align == "left", self.places)

    @property
    def exact_digit_range(self) -> range:
        return range(-digit_symbols.LIMIT, digit_symbols.LIMIT)

    def encode_one(self, written: bytes, decimal: str) -> Symbols:
        return digit_symbols.one_to_symbols(written, decimal, self.group, self.align == "left")

    def decode(self, spelled: Spelled) -> pa.LargeStringArray:
        return digit_symbols.from_symbols(spelled.symbols, spelled.offsets)

    def decimals(self, grammar: Grammar) -> Decimals:
        return Decimals(self.alphabet, grammar, self.group, self.align == "left")

    def plain_form(self, grammar: Grammar) -> PlainForm:
        if self.places:
            raise self.refused(
                "places are a column, and a plain tokenizer.json has tokens only; export"
                f" Digits({self.group}) without places"
            )
        if grammar.exponent and grammar.exponents != "eE":
            raise self.refused(
                "the D of an exponent is spelled E, which no plain tokenizer.json can; export with"
                ' Grammar(exponents="eE")'
            )
        splits = _digit_splits(self.group, self.align == "right", grammar)
        return PlainForm(digit_symbols.groups(self.group), splits)


def _digit_splits(group: int, from_right: bool, grammar: Grammar) -> tuple[str, ...]:
    """Return the expressions that cut digits in groups of at most so many, of integers from the
    right or from the left.

    They are lexical: every run of ASCII digits is cut, be it a number or not, and so are the signs,
    leading marks and exponents that the grammar reads. Only what ``tokenizers`` and JavaScript read
    alike is used: lookbehinds of fixed length, categories of Unicode, no ``\\d`` and no ``\\w``.
    All are linear in the length of the text.
    """
    groups, marks = f"[0-9]{{1,{group}}}", _marks(grammar)
    if group == 1 or not from_right:
        return ("|".join([groups, *marks]),)
    # the short group in front of a multiple of whole ones; the rest is then cut from the left
    mark = re.escape(grammar.decimal)
    after = [f"(?<![^{LETTERS}.{mark}]{mark})", f"(?<!^{mark})"]
    fraction = "".join(after) if grammar.leading_dot else f"(?<![0-9]{mark})"
    first = f"(?<![0-9]){fraction}[0-9]{{1,{group - 1}}}(?=(?:[0-9]{{{group}}})+(?![0-9]))"
    return ("|".join([first, *marks]), groups)


def _marks(grammar: Grammar) -> list[str]:
    """Return the expressions for the signs, leading marks and exponents that the grammar reads."""
    mark, lookarounds = re.escape(grammar.decimal), []
    if grammar.signs:
        lookarounds.append(rf"(?<![{LETTERS}\p{{Nd}})\]}}%.+\u2212\-]){SIGNS}(?={mark}?[0-9])")
    if grammar.leading_dot:
        lookarounds.append(rf"(?<![{LETTERS}\p{{Nd}}.{mark}]){mark}(?=[0-9])")
    if grammar.exponent:
        letter = f"[{grammar.exponents}]"
        lookarounds.append(f"(?<=[0-9]|[0-9]{mark}){letter}(?={SIGNS}?[0-9])")
        lookarounds.append(f"(?<=[0-9]{letter}|[0-9]{mark}{letter}){SIGNS}(?=[0-9])")
    return lookarounds
