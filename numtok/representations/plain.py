r"""Numbers as the rows and the regular expressions of a plain tokenizer.json, which any program reads.

In: how digits are grouped, and a grammar. Out: :class:`PlainForm`. What a regular expression says is
lexical: every run of ASCII digits is cut, be it a number or not (``B2B``, ``1.2.3``), and stays as
it is written; and so are the marks of numbers, each apart from the text around it:

====================  =====================================================================
``1234567.8901``      ``1 234 567 . 890 1``: after the decimal mark from the left
``-.5``               the sign where the grammar reads one (rule B), and the leading mark (A)
``1.5e-10``           ``e`` and its sign
``10-20``, ``x-3``    no signs: they stay with the text, which the source's own pattern cuts
====================  =====================================================================

Only what ``tokenizers`` and JavaScript read alike is used: lookbehinds of fixed length, categories
of Unicode, no ``\d`` and no ``\w``. All are linear in the length of the text.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from numtok.numbers.grammar import Grammar

SIGNS = "[-+\u2212]"
LETTERS = r"\p{L}\p{M}\p{Nl}_"


class PlainForm(NamedTuple):
    """Rows and splits of a tokenizer.json that tokenizes numbers without numtok."""

    rows: tuple[str, ...] = ()  # that the vocabulary needs
    # regular expressions; each cuts the chunks of the one before it, and every match is a chunk.
    # Empty if numbers stay as the source cuts them.
    splits: tuple[str, ...] = ()


def digit_splits(group: int, from_right: bool, grammar: Grammar) -> tuple[str, ...]:
    """Return the expressions that cut digits in groups of at most so many, of integers from the
    right or from the left.
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
