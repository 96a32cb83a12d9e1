"""What may stand beside numbers: whatever text the rules let stand there, the numbers are read."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from numtok import Grammar, extract
from numtok.numbers.neighbours import NUMBER, OTHER_TEXT, STATES, around, may_begin

GRAMMARS = {
    "prose": Grammar(),
    "data": Grammar.data(),
    "european": Grammar.european(),
    "indian": Grammar.indian(),
    "swiss": Grammar.swiss(),
    "underscore": Grammar(grouping="_"),
    "no exponent": Grammar(exponent=False),
    "no signs": Grammar(signs=False),
    "no leading mark": Grammar(leading_dot=False),
    "ASCII": Grammar(unicode_digits=False),
}
TEXTS = ["kg", "e-", "5.", "12", "x5", " 7", "x", "exe", ".5", "--", "..", "\u2212", "\u2019"]
TEXTS += [*"aeEx.,-+)( 5;:'_0%é年٣\u00a0", "e-.", "xx", "0x"]
NUMBER_HERE = "number"


def numbers(grammar):
    """Those whose digits cannot be groups of others, nor the 0 of 0x7."""
    found = ["7123", f"81234{grammar.decimal}25"]
    return [*found, "56789e3", f"9123{grammar.decimal}5e-2"] if grammar.exponent else found


@pytest.mark.parametrize("name", GRAMMARS)
@given(
    pieces=st.lists(st.one_of(st.just(NUMBER_HERE), st.sampled_from(TEXTS)), max_size=10),
    which=st.integers(0, 3),
)
@example([NUMBER_HERE, "x", NUMBER_HERE, ".", "5"], 0)
@example(["-", NUMBER_HERE, "e-", NUMBER_HERE, "kg", "12"], 1)
@example([".", NUMBER_HERE, ".", "e-", NUMBER_HERE, ",", "5"], 2)
def test_numbers_beside_text_are_read(name, pieces, which):
    grammar = GRAMMARS[name]
    some, begins, found = numbers(grammar), may_begin(grammar), around(grammar, TEXTS)
    text, spans, state = "", set(), OTHER_TEXT
    for piece in pieces:
        if piece == NUMBER_HERE:
            number = some[(len(spans) + which) % len(some)]
            if begins[state]:
                spans.add((len(text), len(text) + len(number)))
                text, state = text + number, NUMBER
            continue
        kind = found.which[TEXTS.index(piece)]
        if found.allowed[state, kind]:
            text, state = text + piece, found.after[state, kind]
    assert spans <= {(number.start, number.stop) for number in extract(text, grammar)}


@pytest.mark.parametrize(
    "text",
    [
        "5kg or 5 kg, 10x6, (5), [1,2,3], 10-20, 3/4, $5. 7% 8",
        "-5, 1920x1080x3 and wait...5 F.2 B2B x_3 v1.2 5e, 2.5em; 6.k",
        "2020年5月 é(4) -x-3 a-5 5:30 {4}-{5} 2**3 5--3",
    ],
)
def test_what_texts_have_beside_numbers_may_stand(text):
    grammar, state, at = Grammar(), OTHER_TEXT, 0
    read = extract(text, grammar)
    assert len(read) >= 5
    for number in read:
        found = around(grammar, [text[at : number.start]])
        assert found.allowed[state, 0], text[: number.start]
        state, at = found.after[state, 0], number.stop
        assert may_begin(grammar)[state], (text[: number.start], STATES[state])
        state = NUMBER
    assert around(grammar, [text[at:]]).allowed[state, 0]


def test_signs_and_marks_that_are_not_of_the_number_may_stand_before_it():
    """With magnitudes, where the sign stays in the text; and in grammars without them."""
    sign, point = STATES.index("-"), STATES.index(".")
    assert not may_begin(Grammar())[[sign, point]].any()
    assert may_begin(Grammar(), carries_sign=False)[sign]
    assert may_begin(Grammar(signs=False))[sign] and may_begin(Grammar(leading_dot=False))[point]


def test_beside_a_users_pattern_everything_may_stand():
    found = around(Grammar.from_pattern(r"\d+"), TEXTS)
    assert found.allowed.all() and np.all(found.after == OTHER_TEXT)
