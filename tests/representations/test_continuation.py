"""What may follow what in spelled-out numbers: everything that is encoded passes, and everything
that passes is a number and encodes to the same.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import numtok
from numtok import Grammar, Numbers
from numtok.numbers.to_text import in_marks_of
from numtok.representations import B1999, FP15, P10, P1000, Digits, NumeroLogic, PlaceValue, Spelled
from numtok.representations.base import NEVER

SPELLED: dict[str, Any] = {
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
    st.from_regex(
        r"[-+]?([0-9]{1,9}|[0-9]{1,3}(,[0-9]{3}){1,3})(\.[0-9]{1,6})?([eE][-+]?[0-9]{1,3})?",
        fullmatch=True,
    ),
    st.from_regex(r"[-+]?\.[0-9]{1,6}([eE][-+]?[0-9]{1,3})?", fullmatch=True),
    st.sampled_from(
        ["0", "-0", "0.00", "000", "1e0", "1,234,567.8e+12", ".5", "12345678901234567890"]
    ),
)


def spelled_of(representation: Any, text: str) -> list[int] | None:
    """The symbols of a number; None if the representation cannot hold it."""
    numbers = Numbers.parse([text])
    return (
        representation.encode(numbers).symbols.tolist() if representation.fits(numbers)[0] else None
    )


def accepts(continuation: Any, symbols: list[int]) -> bool:
    state = 0
    for symbol in symbols:
        state = continuation.following[state, symbol]
        if state == NEVER:
            return False
    return bool(continuation.ends[state])


@pytest.mark.parametrize("name", SPELLED)
@given(text=surfaces)
@settings(max_examples=examples(50))
@example(text="-0")
def test_what_is_encoded_passes(name: str, text: str) -> None:
    symbols = spelled_of(SPELLED[name], text)
    assert symbols is None or accepts(SPELLED[name].continuation(Grammar()), symbols)


@pytest.mark.parametrize(("characters", "longest"), [("1,.", 9), ("10,", 8), ("1.e-", 5)])
@pytest.mark.parametrize("grammar", GRAMMARS)
def test_what_passes_is_what_the_scanner_reads(grammar: str, characters: str, longest: int) -> None:
    """Of all texts of so many characters, in the marks of the grammar; forwards, and without an
    exponent backwards too.
    """
    rules = GRAMMARS[grammar]
    separator = next((mark for mark in rules.grouping or "" if mark in "'_"), ",")
    texts = [
        "".join(one)
        for count in range(1, longest + 1)
        for one in itertools.product(characters, repeat=count)
    ]
    found = numtok.scan(in_marks_of(rules, pa.array(texts, pa.large_string())), rules)
    whole = np.zeros(len(texts), np.bool_)
    whole[
        found.document[found.stop - found.start == np.array([*map(len, texts)])[found.document]]
    ] = True
    symbol_of = {
        one: PlaceValue.alphabet.index(separator if one == "," else one) for one in characters
    }
    for order in ("msd", *(["lsd"] if "e" not in characters else [])):
        continuation = PlaceValue(order=order).continuation(rules)
        said = [
            accepts(
                continuation, [symbol_of[one] for one in (text if order == "msd" else text[::-1])]
            )
            for text in texts
        ]
        assert [
            text for text, read, passes in zip(texts, whole, said, strict=True) if read != passes
        ] == []
    assert whole.sum() > 10


def test_two_digits_then_a_point_then_a_power() -> None:
    """Which is read only forwards: backwards its point would come first."""
    assert accepts(PlaceValue().continuation(Grammar()), spelled_of(PlaceValue(), "25.e-3"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "grammar"),
    [(name, "default") for name in SPELLED]
    + [("place", one) for one in GRAMMARS if one != "swiss"]
    + [("digits by two", "plain")],
)
@given(choices=st.data())
@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.too_slow])
def test_what_passes_is_one_number_and_encodes_to_the_same(
    name: str, grammar: str, choices: Any
) -> None:
    """A walk through the automaton, every way to go on as likely as the next, that ends where it
    may.
    """
    representation, rules = SPELLED[name], GRAMMARS[grammar]
    continuation = representation.continuation(rules)
    state, symbols = 0, []
    while not continuation.ends[state] or (
        len(symbols) < 24
        and (continuation.following[state] != NEVER).any()
        and choices.draw(st.booleans())
    ):
        onward = np.flatnonzero(continuation.following[state] != NEVER)
        if len(symbols) >= 24:
            onward = onward[
                continuation.to_end[continuation.following[state, onward]]
                < continuation.to_end[state]
            ]
        symbols.append(int(onward[choices.draw(st.integers(0, len(onward) - 1))]))
        state = continuation.following[state, symbols[-1]]
    text = in_marks_of(
        rules,
        representation.decode(Spelled(np.array(symbols, np.uint16), np.array([0, len(symbols)]))),
    )[0].as_py()
    found = numtok.scan([text], rules)
    assert len(found) == 1 and found.text().to_pylist() == [text]
    assert representation.fits(found).all()
    assert representation.encode(found).symbols.tolist() == symbols


@pytest.mark.parametrize("name", SPELLED)
def test_every_beginning_can_be_ended(name: str) -> None:
    representation = SPELLED[name]
    continuation = representation.continuation(Grammar())
    assert (continuation.to_end < len(continuation.ends)).all()
    assert (continuation.to_end[continuation.ends] == 0).all()
    if representation.length is not None:
        assert continuation.to_end[0] == representation.length
        assert set(np.flatnonzero(continuation.following[0] != NEVER)) == set(
            representation.first_symbols
        )


def test_what_is_no_number_does_not_pass() -> None:
    place, backwards = (
        PlaceValue().continuation(Grammar()),
        PlaceValue(order="lsd").continuation(Grammar()),
    )

    def symbols(text: str) -> list[int]:
        return [PlaceValue.alphabet.index(one) for one in text]

    of_either = (
        "", "-", "--1", "1-", ",123", "1,,234", "1.2.3", "1e", "1e5.5", "1e5e5", "1,234,", "1_234",
        "1e1234",
    )  # fmt: skip
    for text in (*of_either, ".", "1.", "1,23", "1234,567"):
        assert not accepts(place, symbols(text)), text
    for text in (*of_either, ".1", "1,2", "12,3", "1234,5", "321,.4"):
        assert not accepts(backwards, symbols(text)), text
    for text in ("654,321", "-56.4", "5.", "65.432,1e-7"):
        assert accepts(backwards, symbols(text)), text


def test_groups_are_cut_in_one_way() -> None:
    """Digits that would be cut in another way when they are read again do not pass."""
    for digits, good, bad in (
        (
            Digits(),
            ["1 234 567", "12", "1 , 234 . 567 8", ". 123 4", "1 e - 123"],
            ["1 23", "123 4", "1234", "1 , 23", ". 1 234", "1 . e 12 3"],
        ),
        (Digits(2), ["1 23 45", "1 , 2 34", ". 12 3"], ["12 3", "1 , 23 4", "1 , 23", ". 1 23"]),
        (Digits(2, "left"), ["12 34 5", "1 , 23 4", "1 e 12 3"], ["1 23", "1 , 2 34"]),
    ):
        continuation = digits.continuation(Grammar())
        for expected, texts in ((True, good), (False, bad)):
            for text in texts:
                known = all(one in digits.alphabet for one in text.split())
                assert (
                    known
                    and accepts(continuation, [digits.alphabet.index(one) for one in text.split()])
                ) == expected, text
    assert len(Digits(1).continuation(Grammar()).ends) <= 2 * len(
        PlaceValue().continuation(Grammar()).ends
    )
