"""FloatDigits: golden values of RegressLM's own tests, bases, ranges, and what may follow what."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from numtok import FloatDigits, Grammar, Numbers, Tokenizer
from numtok.errors import RepresentationError
from numtok.representations import Spelled, parse
from numtok.representations.base import NEVER

KINDS = [
    FloatDigits(),
    FloatDigits(2, 8, 24),
    FloatDigits(16, 2, 8, "clip"),
    FloatDigits(10, 3, 18),
    FloatDigits(3, 1, 1, "error"),
]


def spelled(one: FloatDigits, literal: str) -> str:
    return " ".join(one.alphabet[k] for k in one.encode(Numbers.parse([literal])).symbols)


def read(one: FloatDigits, symbols: str) -> str:
    found = np.array([one.alphabet.index(k) for k in symbols.split()], np.uint16)
    (text,) = one.decode(Spelled(found, np.array([0, len(found)]))).to_pylist()
    return str(text)


@pytest.mark.parametrize(
    ("literal", "symbols", "value"),
    [
        ("123.4", "+ E+ 2 1 2 3 4", "123.4"),
        ("12345", "+ E+ 4 1 2 3 4", "12340"),
        ("0.1234", "+ E- 1 1 2 3 4", "0.1234"),
        ("-123.4", "- E+ 2 1 2 3 4", "-123.4"),
        ("-0.1234", "- E- 1 1 2 3 4", "-0.1234"),
        ("1.234e-9", "+ E- 9 1 2 3 4", "0.000000001234"),
        ("-1.2e9", "- E+ 9 1 2 0 0", "-1200000000"),
        ("1.2345e9", "+ E+ 9 1 2 3 4", "1234000000"),
        ("1.234e10", "+ E+ 9 9 9 9 9", "9999000000"),
        ("-1.234e10", "- E+ 9 9 9 9 9", "-9999000000"),
        ("0", "+ E+ 0 0 0 0 0", "0"),
        ("1", "+ E+ 0 1 0 0 0", "1"),
        ("0.01", "+ E- 2 1 0 0 0", "0.01"),
        ("-1000", "- E+ 3 1 0 0 0", "-1000"),
    ],
)
def test_the_values_of_regress_lms_tests(literal: str, symbols: str, value: str) -> None:
    """There the sign of the exponent is ``+`` or ``-``, too."""
    one = FloatDigits(overflow="clip")
    assert spelled(one, literal) == symbols
    assert Numbers.parse([read(one, symbols)]).to_decimal() == Numbers.parse([value]).to_decimal()


def test_other_bases_and_rounding() -> None:
    assert spelled(FloatDigits(2, 3, 4), "-28.5") == "- E+ 1 0 0 1 1 1 0"  # 1.110|01 · 2^4
    assert spelled(FloatDigits(16, 1, 2), "255.5") == "+ E+ 2 1 0"  # ff.8, to even
    assert spelled(FloatDigits(10, 2, 3), "9.996") == "+ E+ 0 1 1 0 0"
    assert spelled(FloatDigits(12, 1, 2), "143") == "+ E+ 1 11 11"
    assert read(FloatDigits(12, 1, 2), "- E- 1 11 11").startswith("-0.993055555555555555555")
    for nothing in ("+ E+ 1 2 3", "1 E+ 2 1 2 3 4", "+ + 2 1 2 3 4", "+ E+ + 1 2 3 4"):
        assert read(FloatDigits(), nothing) == nothing.replace(" ", "")


def test_numbers_side_by_side_are_read_back_from_their_tokens() -> None:
    tokenizer = Tokenizer.from_pretrained(numbers=[FloatDigits(2, 4, 24)])
    texts = ["a -60.25 3 and 0.125,-7", "-0 1 2", "7"]
    assert tokenizer.decode_batch(tokenizer.encode_batch(texts)).to_pylist() == texts


def test_the_range_and_one_beyond() -> None:
    literals = ["1e-9", "9.9994e-10", "9.9999e-10", "9999499999", "9999500000", "-0", "1e999999"]
    held = FloatDigits().fits(Numbers.parse(literals)).tolist()
    assert held == [True, False, True, True, False, True, False]
    assert spelled(FloatDigits(overflow="clip"), "-1e-400") == "- E- 9 1 0 0 0"
    assert spelled(FloatDigits(), "-0") == "- E+ 0 0 0 0 0"
    binary = FloatDigits(2, 3, 4)
    held = binary.fits(Numbers.parse(["0.0078125", "0.0075", "247", "248", "1e5000"])).tolist()
    assert held == [True, False, True, False, False]
    assert FloatDigits(7, 2, 9).fits(Numbers.parse(["1" * 100_000])).tolist() == [False]


@pytest.mark.thorough
@settings(max_examples=examples(50))
@given(st.floats(1e-30, 1e30), st.integers(2, 36), st.integers(1, 10))
def test_it_is_near_to_half_of_the_last_digit(value: float, base: int, digits: int) -> None:
    one = FloatDigits(base, {2: 7, 3: 5}.get(base, 2), digits)
    if not one.fits(Numbers.parse([value]))[0]:
        assert not 1e-6 < value < 1e6 or base in (4, 5)
        return
    (text,) = one.decode(one.encode(Numbers.parse([value]))).to_pylist()
    assert abs(float(text) / value - 1) <= 0.5 * base ** (1 - digits) * (1 + 1e-12)


@pytest.mark.parametrize("one", [FloatDigits(2, 2, 2), FloatDigits(3, 1, 2), FloatDigits(2, 1, 1)])
def test_what_may_follow_is_what_is_spelled(one: FloatDigits) -> None:
    """All sequences of the length of a number: those that may be written, and those that are what
    some number is spelled as.
    """
    rules, found = one.continuation(Grammar()), 0
    for symbols in itertools.product(range(len(one.alphabet)), repeat=one.length):
        state = 0
        for symbol in symbols:
            state = int(rules.following[state, symbol]) if state != NEVER else NEVER
        text = read(one, " ".join(one.alphabet[k] for k in symbols))
        again: Any = None
        if text != "".join(one.alphabet[k] for k in symbols):
            again = tuple(one.encode(Numbers.parse([text])).symbols.tolist())
        assert (state != NEVER and bool(rules.ends[state])) is (again == symbols)
        found += again == symbols
    exponents = 2 * one.largest_exponent + 1
    mantissas = (one.base - 1) * one.base ** (one.mantissa_digits - 1)
    assert found == 2 * (exponents * mantissas + 1)


@pytest.mark.parametrize(
    "options",
    [
        {"base": 1},
        {"base": 37},
        {"exponent_digits": 0},
        {"mantissa_digits": 19},
        {"base": 2, "exponent_digits": 13},
    ],
)
def test_sizes_that_are_none(options: dict[str, int]) -> None:
    with pytest.raises(RepresentationError, match="must be from 2 to 36"):
        FloatDigits(**options)
    assert parse("float_digits:2,8,24") == (FloatDigits(2, 8, 24),)
