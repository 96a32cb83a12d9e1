"""Numbers: what counts as one (``grammar``), finding them in text (``scan``), and keeping them
exactly (``numbers``).

In: rows of text. Out: :class:`Numbers`, exact sign, digits, exponent and place. May import
    :mod:`numtok.arrays`.
"""

from numtok.numbers.grammar import Grammar
from numtok.numbers.numbers import Number, Numbers
from numtok.numbers.scan import extract, scan

__all__ = ["Grammar", "Number", "Numbers", "extract", "scan"]
