"""Check what may follow what in spelled-out numbers, beyond what the kit says of each: numbers as they are
written, and other grammars.
"""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import numtok
from numtok import Grammar
from numtok.numbers.to_text import in_marks_of
from numtok.representations import Digits, PlaceValue
from numtok.testing import accepts, check_continuation

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


@pytest.mark.parametrize("grammar", [one for one in GRAMMARS if one != "swiss"])
@given(data=st.data())
@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.too_slow])
def test_what_passes_is_one_number_and_encodes_to_the_same(grammar, data):
    check_continuation(PlaceValue(), GRAMMARS[grammar], data)


@pytest.mark.parametrize(
    ("digits", "good", "bad"),
    [
        (
            Digits(),
            ["1 234 567", "12", "1 , 234 . 567 8", ". 123 4", "1 e - 123"],
            ["1 23", "123 4", "1 , 23", ". 1 234", "1 . e 12 3"],
        ),
        (Digits(2), ["1 23 45", "1 , 2 34", ". 12 3"], ["12 3", "1 , 23 4", "1 , 23", ". 1 23"]),
        (Digits(2, "left"), ["12 34 5", "1 , 23 4", "1 e 12 3"], ["1 23", "1 , 2 34"]),
    ],
)
def test_groups_are_cut_in_one_way(digits, good, bad):
    """Digits that would be cut in another way when they are read again do not pass."""
    rules = digits.continuation(Grammar())
    for text in (*good, *bad):
        ids = [digits.alphabet.index(one) for one in text.split()]
        assert accepts(rules, ids) == (text in good), text
    single = Digits(1).continuation(Grammar())
    assert len(single.ends) <= 2 * len(PlaceValue().continuation(Grammar()).ends)
