"""The numbers of a short text by regular expressions are those of the scanner; what representations
are sure to hold, they hold.
"""

from __future__ import annotations

import random

import pytest
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

import numtok
from numtok import Grammar
from numtok.numbers.scan_short import ANY_DIGIT, short_texts
from numtok.representations import FloatBits, FoNE, LogFourier, Representation, XVal

MARK = "\U00100000"
GRAMMARS = [
    Grammar(),
    Grammar.data(),
    Grammar(grouping="_"),
    Grammar(grouping="'", signs=False),
    Grammar(grouping="\u2019", exponent=False, leading_dot=False),
    Grammar(accounting=True),
    Grammar(unicode_digits=False),
    Grammar.european(),
    Grammar.indian(),
    Grammar.swiss(),
    Grammar(grouping=None, decimal=","),
]
PIECES = [
    *"0123456789 ,.-+exEXsaAbF_:/'()%$\n\u2212\u2013\u2019\u0665\u20ac²½",
    "12345678",
    "1,234",
    "1.234",
    "12 345",
    "1999",
    " 5",
    "-1",
    "th",
    " 3.5 ",
    "\U00011f50",
]


def written(text: str, grammar: Grammar) -> str:
    """``text`` with a mark for each number that the scanner finds."""
    pieces, at = [], 0
    for number in numtok.extract(text, grammar):
        pieces += [text[at : number.start], MARK]
        at = number.stop
    return "".join(pieces) + text[at:]


@pytest.mark.thorough
@settings(max_examples=examples(400))
@given(
    text=st.lists(st.sampled_from(PIECES), max_size=14).map("".join),
    grammar=st.sampled_from(GRAMMARS),
)
@example(text="12345678-1234-1234-1234-123456789012 5", grammar=Grammar())
@example(text="5 00001234-abcd-1234-1234-1234567890ab", grammar=Grammar())
@example(
    text="In 2019-2020 the A330-200, Q4 and covid-19: -5, 10x6, 1e-5 and 12-minute (1970- ) v1.2.3",
    grammar=Grammar(),
)
def test_replaced_is_what_the_scanner_finds(text: str, grammar: Grammar) -> None:
    replaced = short_texts(grammar).replaced(text, MARK)  # type: ignore[union-attr]
    assert replaced is None or replaced == written(text, grammar)


def test_numbers_at_random_beside_everything() -> None:
    """More than hypothesis gets to: 4,000 texts, of which a fair part is settled."""
    random.seed(5)
    settled = 0
    for _ in range(4_000):
        text = "".join(random.choices(PIECES, k=random.randint(1, 9)))
        grammar = random.choice(GRAMMARS)
        if (replaced := short_texts(grammar).replaced(text, MARK)) is not None:  # type: ignore[union-attr]
            settled += 1
            assert replaced == written(text, grammar), (text, grammar)
    assert settled > 400


@pytest.mark.parametrize(
    "text",
    [
        "In 2019 the league had 1,234 players and 3.5 million fans.",
        "It ran from 1988-89 to the 1990s (72R, A330) at -5 degrees.",
        "1937–38 and “5” at €20, 12:30, 50%.",
    ],
)
def test_usual_sentences_are_settled(text: str) -> None:
    assert short_texts(Grammar()).replaced(text, MARK) == written(text, Grammar())  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "grammar"),
    [
        (
            "Im Jahr 2019 hatte die Liga 1.234 Spieler und 3,5 Millionen Zuschauer.",
            Grammar.european(),
        ),
        ("Le 5 mai 2019, 12 345 personnes et 1 234,56 euros à 20 km.", Grammar.european()),
        ("In 2019 it had Rs 1,234 and 3.5 lakh fans.", Grammar.indian()),
        ("Es kostet 1'234.50 Franken, nicht 5.", Grammar.swiss()),
    ],
)
def test_usual_sentences_of_the_world_are_settled(text: str, grammar: Grammar) -> None:
    assert short_texts(grammar).replaced(text, MARK) == written(text, grammar)  # type: ignore[union-attr]


def test_a_users_own_expression_is_left_to_the_scanner() -> None:
    assert short_texts(Grammar.from_pattern(r"\d+")) is None
    assert ANY_DIGIT.search("\U00011f50")  # a digit since Unicode 15, which Python may not know


@pytest.mark.parametrize(
    "representation",
    [
        XVal(),
        XVal(scale=1e-12),
        XVal(scale=7e9, log=True),
        XVal(clip=2.0),
        FloatBits(),
        LogFourier(),
    ],
    ids=repr,
)
def test_what_is_surely_held_fits(representation: Representation) -> None:
    held = representation.surely_held
    digits = {"1" + "0" * (high - low) for low, high in ((0, 0), (0, 5))} | {
        "9" * 15,
        "0",
        "000",
        "12345",
    }
    literals = [
        f"{digit}e{power}" for digit in digits for power in (held[0], 0, held[-1] + 1 - len(digit))
    ]
    numbers = numtok.scan(literals)
    assert len(numbers) == len(literals) and representation.fits(numbers).all()


def test_most_representations_must_look() -> None:
    assert not FoNE(3, 2).surely_held
