"""The table of examples (``grammar_examples``), run by every reader of the rules: ``extract``, the
scanner by its rules and by its short way, the text beside numbers, the symbols of numbers, scoring.
"""

import dataclasses
import re
from decimal import Decimal

import numpy as np
import pytest
from grammar_examples import GRAMMARS, TABLE

import numtok
from numtok.numbers.extract import read
from numtok.numbers.text_boundaries import NUMBER, OTHER_TEXT, around, may_begin
from numtok.representations import Digits, PlaceValue
from numtok.score import POLICIES, read_numbers
from numtok.testing import accepts

CASES = [
    pytest.param(rows, text, numbers, id=f"{rows.grammar} {text!a:.40}")
    for rows in TABLE
    for text, numbers in rows.examples.items()
]
POLICY_GRAMMARS = {"prose": "comma", "european": "point", "data": "none", "swiss": "apostrophe"}
POLICY_GRAMMARS["indian"] = "lakhs"


def stated(numbers):
    """[(number as written, sign, digits and exponent of its value)] of a row."""
    cells = [cell.partition("=") for cell in numbers]
    return [(text, Decimal(value or text).as_tuple()) for text, _, value in cells]


@pytest.mark.parametrize(("rows", "text", "numbers"), CASES)
def test_extract(rows, text, numbers):
    found = list(read(text, GRAMMARS[rows.grammar]))
    assert [(one.text, one.value.as_tuple()) for one in found] == stated(numbers)
    assert [text[one.start : one.stop] for one in found] == [one.text for one in found]
    assert numtok.extract(text, GRAMMARS[rows.grammar]) == found


@pytest.mark.parametrize(("rows", "text", "numbers"), CASES)
def test_scanner(rows, text, numbers):
    """By the rules at the edges of a text, and by the short way far from them."""
    expected = list(read(text, GRAMMARS[rows.grammar]))
    starts = [len(text[: one.start].encode()) for one in expected]
    for before in ("", "\n"):
        found = numtok.scan([before + text + before * 64], GRAMMARS[rows.grammar])
        values = [value.as_tuple() for value in found.to_decimal()]
        assert list(zip(found.text().to_pylist(), values, strict=True)) == stated(numbers)
        assert (found.start - len(before)).tolist() == starts


def may_stand(grammar, text, spans):
    """Whether the automaton lets the text between the spans of numbers stand beside these."""
    begins, state, at = may_begin(grammar), OTHER_TEXT, 0
    for start, stop in spans:
        first = text[start]
        kind = "sign" if first in "+-\u2212" else "digit" if first.isdecimal() else "mark"
        beside = around(grammar, [text[at:start]])
        state, allowed = beside.after[state, 0], beside.allowed[state, 0]
        if not allowed or not getattr(begins, kind)[state]:
            return False
        state, at = NUMBER, stop
    return bool(around(grammar, [text[at:]]).allowed[state, 0])


@pytest.mark.parametrize(("rows", "text", "numbers"), CASES)
def test_text_boundaries(rows, text, numbers):
    """The automaton allows what is read, and of digits that are read otherwise nothing."""
    grammar = GRAMMARS[rows.grammar]
    spans = [(one.start, one.stop) for one in read(text, grammar)]
    assert may_stand(grammar, text, spans) != ("less" in rows.boundaries)
    sign = r"[-+\u2212]?" if grammar.signs else ""
    runs = re.finditer(rf"{sign}[0-9]+(?:[{grammar.decimal}][0-9]+)?", text)
    runs = [match.span() for match in runs]
    alone = [[one] for one in runs]  # the other digits as text beside it
    allowed = [each for each in [runs, *alone] if each and may_stand(grammar, text, each)]
    more = not all(set(each) <= set(spans) for each in allowed)
    assert more == ("more" in rows.boundaries)


@pytest.mark.parametrize(("rows", "text", "numbers"), CASES)
def test_symbol_grammar(rows, text, numbers):
    """The automaton allows the symbols of every number, and of a text that is no number nothing."""
    grammar = GRAMMARS[rows.grammar]
    found = numtok.scan([text], grammar)
    passing = []
    for representation in (PlaceValue(), PlaceValue(order="lsd"), Digits(3)):
        spelled = representation.encode(found)
        each = np.split(spelled.symbols, spelled.offsets[1:-1])[: len(found)]
        rules = representation.continuation(grammar)
        passing.append([accepts(rules, one) for one in each])
    assert passing == [[not rows.symbols] * len(found)] * 3
    alphabet = PlaceValue.alphabet
    if rows.grammar in ("prose", "data", "indian") and set(text) <= set(alphabet):
        rules = PlaceValue().continuation(grammar)
        whole = [cell.partition("=")[0] for cell in numbers] == [text] and not rows.symbols
        assert accepts(rules, [alphabet.index(one) for one in text]) == whole


@pytest.mark.parametrize(
    ("rows", "text", "numbers"), [one for one in CASES if one.values[0].grammar in POLICY_GRAMMARS]
)
def test_score(rows, text, numbers):
    """Return the numbers that scoring reads where it reads numerals alone, no words or fractions."""
    thousands = POLICY_GRAMMARS[rows.grammar]
    found = read_numbers(text, dataclasses.replace(POLICIES["strict"], thousands=thousands))
    assert [one.value.as_tuple() for one in found] == [value for _, value in stated(numbers)]
