"""Numbers as representations show them: spelled out, and in columns."""

from decimal import Decimal
from itertools import pairwise

import numpy as np

from numtok import Numbers
from numtok.representations import Spelled

# as numbers are written: groups of thousands, fractions, powers
SURFACE = (
    r"[+-]?(([1-9]|[0-9]{2,3})(,[0-9]{3}){1,3}|[0-9]{1,20})(\.[0-9]{1,10})?([eE][+-]?[0-9]{1,3})?"
    r"|[+-]?\.[0-9]{1,9}([eE][+-]?[0-9]{1,3})?"
)


def symbols(representation, numbers):
    """The symbols of each number."""
    numbers = numbers if isinstance(numbers, Numbers) else Numbers.parse(numbers)
    found = representation.encode(numbers)
    alphabet = np.array(representation.alphabet, object)
    return [alphabet[found.symbols[a:b]].tolist() for a, b in pairwise(found.offsets.tolist())]


def column_values(representation, literals):
    """The one column of the numbers: a list, or an array of tensors."""
    (column,) = representation.encode(Numbers.parse(literals)).values()
    return column.to_numpy_ndarray() if hasattr(column, "to_numpy_ndarray") else column.to_pylist()


def places(representation, numbers):
    """The indices of places beside the symbols of each number."""
    numbers = numbers if isinstance(numbers, Numbers) else Numbers.parse(numbers)
    found = representation.encode(numbers)
    return [found.stream[a:b].tolist() for a, b in pairwise(found.offsets.tolist())]


def read(representation, rows):
    """The text that is read from symbols."""
    number = {symbol: k for k, symbol in enumerate(representation.alphabet)}
    ids = np.array([number[symbol] for row in rows for symbol in row], np.uint16)
    spelled = Spelled(ids, np.cumsum([0, *map(len, rows)]))
    return list(representation.decode(spelled).to_pylist())


def decoded(representation, literals):
    """What comes back of numbers."""
    spelled = representation.encode(Numbers.parse(literals))
    return [Decimal(text) for text in representation.decode(spelled).to_pylist()]


def same(a, b):
    """Equal, and zeros of equal sign."""
    return a == b and a.is_signed() == b.is_signed()
