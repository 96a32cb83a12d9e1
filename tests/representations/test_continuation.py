"""Check what may follow what in spelled-out numbers, beyond what the kit says of each: all short
texts, in other grammars.
"""

import itertools

import numpy as np
import pyarrow as pa
import pytest

import numtok
from numtok import Grammar
from numtok.numbers.decimals import in_marks_of
from numtok.representations import PlaceValue
from numtok.testing import accepts

GRAMMARS = {
    "default": Grammar(),
    "data": Grammar.data(),
    "underscore": Grammar(grouping="_"),
    "apostrophe": Grammar(grouping="'"),
    "plain": Grammar(grouping=None, signs=False, exponent=False, leading_dot=False),
    "no exponent": Grammar(exponent=False),
    "no leading dot": Grammar(leading_dot=False),
    "european": Grammar.european(),
    "indian": Grammar.indian(),
    "swiss": Grammar.swiss(),
    "european by lakhs": Grammar(grouping=".", decimal=",", lakhs=True),
    "finance": Grammar.finance(),
    "eEdD": Grammar(exponents="eEdD"),
}


@pytest.mark.parametrize(("characters", "longest"), [("1,.", 9), ("10,", 8), ("1.e-", 5)])
@pytest.mark.parametrize("grammar", GRAMMARS)
def test_what_passes_is_what_the_scanner_reads(grammar, characters, longest):
    """Of all texts of so many characters, in the marks of the grammar; forwards, and without an
    exponent backwards too.
    """
    rules = GRAMMARS[grammar]
    separator = next((mark for mark in rules.grouping or "" if mark in "'_"), ",")
    counts = range(1, longest + 1)
    texts = ["".join(one) for n in counts for one in itertools.product(characters, repeat=n)]
    found = numtok.scan(in_marks_of(rules, pa.array(texts, pa.large_string())), rules)
    is_whole = found.stop - found.start == np.array([*map(len, texts)])[found.document]
    numbers = {texts[row] for row in found.document[is_whole]}
    assert len(numbers) > 10
    symbol = {
        one: PlaceValue.alphabet.index(separator if one == "," else one) for one in characters
    }
    for order, step in (("msd", 1), ("lsd", -1))[: 1 if "e" in characters else 2]:
        rules_of_order = PlaceValue(order=order).continuation(rules)
        passing = {
            text for text in texts if accepts(rules_of_order, [symbol[one] for one in text[::step]])
        }
        assert passing == numbers
