"""Check what may stand beside numbers: whatever text the rules let stand, numbers are read."""

import numpy as np
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from numtok import Grammar, extract
from numtok.numbers.text_boundaries import NUMBER, OTHER_TEXT, STATES, around, may_begin

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
    "currencies": Grammar(currency_codes=True),
    "eEdD": Grammar(exponents="eEdD"),
}
TEXTS = ["kg", "e-", "5.", "12", "x5", " 7", "x", "exe", ".5", "--", "..", "\u2212", "\u2019"]
TEXTS += [*"aeEx.,-+)( 5;:'_0%é年٣\u00a0", "e-.", "xx", "0x"]
WORDS = r"\pm \times \xe \u \a m2 US $US USD CANN D+ T10: 2019-09-01T Rs ½½ de lé AbC ABC ABe"
TEXTS += [*"\\$£½⅐٫٬dDuUTm", *WORDS.split()]
NUMBERS_HERE = ["digit", "mark", "sign"]


def numbers(grammar):
    """Those whose digits cannot be groups of others, nor the 0 of 0x7, by what they begin with."""
    found = {"digit": ["7123", f"81234{grammar.decimal}25"]}
    if grammar.exponent:
        found["digit"] += ["56789e3", f"9123{grammar.decimal}5e-2"]
    if grammar.leading_dot:
        found["mark"] = [f"{grammar.decimal}1234"]
    if grammar.signs:
        found["sign"] = ["-5123", f"+6123{grammar.decimal}5"]
    if grammar.signs and grammar.leading_dot:
        found["sign"].append(f"-{grammar.decimal}5123")
    return found


@settings(max_examples=examples(300, thorough=4000))
@given(
    st.sampled_from(sorted(GRAMMARS)),
    st.lists(st.sampled_from([*NUMBERS_HERE * 10, *TEXTS]), max_size=10),
    st.integers(0, 3),
)
@example("prose", ["digit", "x", "digit", ".", "5"], 0)
@example("prose", ["-", "digit", "e-", "digit", "kg", "12"], 1)
@example("european", [".", "digit", ".", "e-", "digit", ",", "5"], 2)
@example("prose", [r"\pm", "mark", " ", "$US", "digit", "½", "5.", "½", "digit"], 0)
@example("prose", [".", "mark", "(", ".", "sign", "(", "a", "-", "sign", "12", " 7", "digit"], 0)
def test_numbers_beside_text_are_read(name, pieces, which):
    grammar = GRAMMARS[name]
    some, begins, found = numbers(grammar), may_begin(grammar)._asdict(), around(grammar, TEXTS)
    text, spans, state = "", set(), OTHER_TEXT
    for piece in pieces:
        if piece in NUMBERS_HERE:
            if piece in some and begins[piece][state]:
                number = some[piece][(len(spans) + which) % len(some[piece])]
                spans.add((len(text), len(text) + len(number)))
                text, state = text + number, NUMBER
            continue
        kind = found.which[TEXTS.index(piece)]
        if found.allowed[state, kind]:
            text, state = text + piece, found.after[state, kind]
    assert spans <= {(number.start, number.stop) for number in extract(text, grammar)}


def test_signs_and_marks_that_are_not_of_the_number_may_stand_before_it():
    """With magnitudes, where the sign stays in the text; and in grammars without them."""
    sign, point = STATES.index("-"), STATES.index(".")
    assert not may_begin(Grammar()).digit[[sign, point]].any()
    assert may_begin(Grammar(), carries_sign=False).digit[sign]
    assert may_begin(Grammar(signs=False)).digit[sign]
    assert may_begin(Grammar(leading_dot=False)).digit[point]


def test_beside_a_users_pattern_everything_may_stand():
    found = around(Grammar.from_pattern(r"\d+"), TEXTS)
    assert found.allowed.all() and np.all(found.after == OTHER_TEXT)
