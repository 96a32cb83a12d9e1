"""What may follow what in spelled-out numbers: everything that is encoded passes, and everything
that passes is a number and encodes to the same.
"""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from spelling import SURFACE, accepts

import numtok
from numtok import Grammar, Numbers
from numtok.numbers.to_text import in_marks_of
from numtok.representations import B1999, FP15, P10, P1000, Digits, NumeroLogic, PlaceValue, Spelled
from numtok.representations.continuation import NEVER

SPELLED = {
    "p10": P10(),
    "p10 one digit": P10(1, (-2, 3), "decimal"),
    "p10 long": P10(18),
    "p1000": P1000(),
    "p1000 far from one": P1000(2, (5, 9), "decimal"),
    "b1999": B1999(),
    "fp15": FP15(2, (-3, 2)),
    "place": PlaceValue(),
    "place lsd": PlaceValue(order="lsd"),
    "digits": Digits(),
    "digits from the left": Digits(3, "left"),
    "digits by two": Digits(2),
    "numerologic": NumeroLogic(),
}
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
}
surfaces = st.one_of(
    st.from_regex(SURFACE, fullmatch=True),
    st.sampled_from(["0", "-0", "0.00", "000", "1e0", "1,234,567.8e+12", ".5", "25.e-3", "1" * 20]),
)


@pytest.mark.parametrize("name", SPELLED)
@given(text=surfaces)
@settings(max_examples=examples(50))
@example(text="-0")
@example(text="25.e-3")
def test_what_is_encoded_passes(name, text):
    representation, numbers = SPELLED[name], Numbers.parse([text])
    if representation.fits(numbers)[0]:
        symbols = representation.encode(numbers).symbols.tolist()
        assert accepts(representation.continuation(Grammar()), symbols)


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


@pytest.mark.parametrize(
    ("name", "grammar"),
    [(name, "default") for name in SPELLED]
    + [("place", one) for one in GRAMMARS if one != "swiss"]
    + [("digits by two", "plain")],
)
@given(choices=st.data())
@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.too_slow])
def test_what_passes_is_one_number_and_encodes_to_the_same(name, grammar, choices):
    """A walk through the automaton, every way to go on as likely as the next, that ends where it
    may.
    """
    representation, rules = SPELLED[name], GRAMMARS[grammar]
    continuation = representation.continuation(rules)
    following, to_end = continuation.following, continuation.to_end
    state, symbols = 0, []
    while not continuation.ends[state] or (
        len(symbols) < 24 and (following[state] != NEVER).any() and choices.draw(st.booleans())
    ):
        onward = np.flatnonzero(following[state] != NEVER)
        if len(symbols) >= 24:
            onward = onward[to_end[following[state, onward]] < to_end[state]]
        symbols.append(int(onward[choices.draw(st.integers(0, len(onward) - 1))]))
        state = following[state, symbols[-1]]
    spelled = Spelled(np.array(symbols, np.uint16), np.array([0, len(symbols)]))
    text = in_marks_of(rules, representation.decode(spelled))[0].as_py()
    found = numtok.scan([text], rules)
    assert len(found) == 1 and found.text().to_pylist() == [text]
    assert representation.fits(found).all()
    assert representation.encode(found).symbols.tolist() == symbols


@pytest.mark.parametrize("name", SPELLED)
def test_every_beginning_can_be_ended(name):
    representation = SPELLED[name]
    continuation = representation.continuation(Grammar())
    assert (continuation.to_end < len(continuation.ends)).all()
    assert (continuation.to_end[continuation.ends] == 0).all()
    if representation.length is not None:
        assert continuation.to_end[0] == representation.length
        first = np.flatnonzero(continuation.following[0] != NEVER)
        assert set(first) == set(representation.first_symbols)


@pytest.mark.parametrize("order", ["msd", "lsd"])
def test_what_is_no_number_does_not_pass(order):
    """What the texts of few characters above do not have."""
    rules = PlaceValue(order=order).continuation(Grammar())

    def passes(text):
        return accepts(rules, [PlaceValue.alphabet.index(one) for one in text])

    wrong = ["", "-", "--1", "1-", "1e5.5", "1e5e5", "1_234", "1e1234"]
    wrong += ["321,.4", "1234,5"] if order == "lsd" else ["1,23", "1234,567"]
    assert not [text for text in wrong if passes(text)]
    if order == "lsd":
        assert all(map(passes, ("654,321", "-56.4", "5.", "65.432,1e-7")))


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
