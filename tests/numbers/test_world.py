"""Numbers of the world: the decimal comma, points, spaces and apostrophes as separators, groups of
two; each grammar against the oracle.
"""

import dataclasses
import html
import itertools
from decimal import Decimal

import pytest
from effort import examples
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from places import ROOT
from scanned import PIECES, rows_of, rows_of_oracle

import numtok
from numtok import Grammar
from numtok.numbers.grammar import GROUPING_CHARACTERS

WORLD = {"european": Grammar.european(), "indian": Grammar.indian(), "swiss": Grammar.swiss()}

# ---- Equality with the oracle


MARKS = [*".,", *"., ", " ", " ", "'", "’", "\u00a0", "\u2009", "\u202f", " ", "-"]
SHORT_FORMS = "1.234 1.234,5 12,34,567 1,23,456 0.123 012 192.168.100.200 1.000.000.000 ,5 e3 e-3,5"
FORMS = [*SHORT_FORMS.split(), "12 345", "1'234"]
HOSTILE = PIECES + 12 * MARKS + 4 * FORMS + 6 * ["1", "12", "123", "234", "567", "0", "99"]
texts_to_hurt = st.lists(st.sampled_from(HOSTILE), max_size=24).map("".join)
all_options = st.builds(
    lambda marks, **options: Grammar("".join(marks - {options["decimal"]}) or None, **options),
    st.sets(st.sampled_from(sorted(GROUPING_CHARACTERS)), max_size=5),
    decimal=st.sampled_from(",."),
    lakhs=st.booleans(),
    signs=st.booleans(),
    exponent=st.booleans(),
    leading_dot=st.booleans(),
    unicode_digits=st.booleans(),
    accounting=st.booleans(),
)


@pytest.mark.thorough
@settings(max_examples=examples(40, thorough=200))  # each compiles an oracle
@given(
    st.lists(texts_to_hurt | st.text(max_size=8), max_size=16),
    all_options | st.sampled_from(sorted(WORLD)).map(WORLD.__getitem__),
)
@example(["12,345,678", "1,23,456,78,901", "123,45,678"], Grammar.indian())
@example(["2019 345.678 x", "1.234 567 890", "7b 1.234 km"], Grammar.european())
def test_equals_oracle_with_all_options(texts, grammar):
    assert rows_of(numtok.scan(texts, grammar)) == rows_of_oracle(texts, grammar)


@pytest.mark.parametrize("name", WORLD)
def test_equals_oracle_with_every_mark_beside_digits(name):
    """In one row too, so that most are read away from the end of the buffer."""
    grammar = WORLD[name]
    before, after = ["", " ", "5 ", "é ", "a", "."], ["", "x", "5", "567", "é", " "]
    digits = ["1", "12 345", "1.234", "1,23,456", "2019", "1’234"]
    texts = [*map("".join, itertools.product(before, digits, [*" .,'’", "\u00a0"], after))]
    for rows in (texts, ["\n".join(texts)]):
        found, expected = rows_of(numtok.scan(rows, grammar)), rows_of_oracle(rows, grammar)
        assert found == expected, sorted(set(found) ^ set(expected))[:6]


@pytest.mark.parametrize("name", [*WORLD, "prose"])
def test_equals_oracle_on_wikipedia(name, wiki_texts):
    """English text as it is, and with its numbers as another country writes them."""
    mark = {"european": {",": ".", ".": ","}, "indian": {}, "swiss": {",": "'"}}.get(name, {})
    english = wiki_texts[3::80]
    grammar = getattr(Grammar, name)()
    for texts in (english, [text.translate(str.maketrans(mark)) for text in english]):
        assert rows_of(numtok.scan(texts, grammar)) == rows_of_oracle(texts, grammar)


@given(
    st.decimals(
        allow_nan=False, allow_infinity=False, places=2, min_value=-(10**15), max_value=10**15
    ),
    st.sampled_from(sorted(WORLD)),
    st.data(),
)
def test_what_a_country_writes_is_read_back(value, name, data):
    whole, _, fraction = f"{abs(value)}".partition(".")
    grammar = WORLD[name]
    if grammar.lakhs:
        head, last = whole[:-3], whole[-3:]
        pairs = [head[max(end - 2, 0) : end] for end in range(len(head), 0, -2)][::-1]
        written = ",".join([*pairs, last])
    else:
        groups = [whole[max(end - 3, 0) : end] for end in range(len(whole), 0, -3)][::-1]
        written = data.draw(st.sampled_from(sorted(grammar.grouping or ""))).join(groups)
    surface = ("-" if value.is_signed() else "") + written + grammar.decimal + fraction
    [number] = numtok.extract(f"es sind {surface} km", grammar)
    assert (number.text, number.value) == (surface, value)


# ---- Options


@given(texts_to_hurt, st.sampled_from([Grammar(), Grammar.european()]))
@example("1e-٠0012345678901234567", Grammar.european())
def test_a_pattern_reads_the_marks_of_its_grammar(text, grammar):
    """Every number of the built-in rules, by an expression that matches it alone."""
    assume("|" not in text)
    by_pattern = dataclasses.replace(grammar, pattern=r"(?<=\|)[^|\n]+(?=\|\n)")
    built_in = numtok.scan([text], grammar)
    again = numtok.scan(["".join(f"|{one.text}|\n" for one in built_in)], by_pattern)
    assert [(one.text, one.value.as_tuple()) for one in again] == [
        (one.text, one.value.as_tuple()) for one in built_in
    ]
    assert [column.dtype for column in again.decimals] == [
        column.dtype for column in built_in.decimals
    ]


# ---- The documentation


@pytest.mark.parametrize(
    ("title", "expected_names", "least"),
    [
        ("Which letters and marks may touch a number?", ["prose", "finance"], 12),
        ("What does each read?", ["prose", "european", "indian", "swiss"], 15),
    ],
)
def test_the_tables_of_the_documentation_are_true(title, expected_names, least):
    page = (ROOT / "docs" / "grammar.md").read_text("utf-8").partition(f"## {title}")[2]
    page = page.partition("\n## ")[0]
    lines = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("| ")]
    (_, *names, _), *cases = [[cell.strip() for cell in line] for line in lines]
    assert names == expected_names and len(cases) > least
    for text, *cells in cases:
        for name, cell in zip(names, cells, strict=False):
            found = numtok.extract(html.unescape(text), getattr(Grammar, name)())
            expected = [] if cell == "–" else [Decimal(value) for value in cell.split("; ")]
            assert [number.value for number in found] == expected, (text, name)
