"""Metrics against plain formulas, and what hostile input does to them."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from numtok.errors import InputError
from numtok_torch.metrics import (
    digit_accuracy,
    exact_match,
    log_error,
    mean_absolute_error,
    median_log_error,
    r_squared,
    share_unparseable,
)

BIG = 10**60
OF_VALUES = [mean_absolute_error, log_error, median_log_error, r_squared]
PLAIN = st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)), min_size=2, max_size=20)
DECIMALS = st.from_regex(r"-?[0-9]{1,12}(\.[0-9]{1,8})?", fullmatch=True)


# --- texts


LONG = "7" * 100_000
SAME = [
    ("1.50", "1.5"), ("15e-1", "1.5"), ("+1.5", "1.5"), ("01.5", "1.5"), ("1,234", "1234"),
    (".5", "0.5"), ("−5", "-5"), ("-0", "0"), ("0e9", "0.00"), ("1e400", "10e399"),
    (BIG, BIG), (LONG, LONG),
]  # fmt: skip
NOT_SAME = [
    ("5", "-5"), ("5", "50"), ("1e400", "1e401"), ("", "0"), ("5 apples", "5"), (" 5", "5"),
    ("nan", "5"), ("1.2.3", "1.2"), ("5\ud800", "5"),
    ("0.12", "0.11"),  # the published code accepts a difference below 10^-digits
    (str(BIG + 1), str(BIG)), (BIG + 1, BIG), (LONG, LONG[:-1] + "8"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [*((*pair, True) for pair in SAME), *((*pair, False) for pair in NOT_SAME)],
    ids=lambda one: str(one)[:20],
)
def test_exact_match_of_values(one, other, same):
    assert exact_match([one], [other]) == same


@given(DECIMALS, DECIMALS)
@example("0.10", "0.1")
def test_exact_match_is_decimal_equality(one, other):
    assert exact_match([one], [other]) == (Decimal(one) == Decimal(other))


ALIGNED = [  # prediction, reference, digits that are right, digits in all
    ("112", "112", 3, 3), ("12", "112", 2, 3), ("112", "12", 2, 3), ("1.5", "1.50", 3, 3),
    ("1.50", "1.5", 2, 2), ("1.52", "1.5", 2, 3), ("123.45", "124.45", 4, 5),
    ("23.456", "123.45", 4, 6), ("-5", "5", 1, 1), ("0", "100", 1, 3), ("100", "0", 1, 3),
    ("0.5", ".5", 2, 2), ("007", "7", 1, 1), ("1e2", "100", 3, 3), ("100", "1e2", 3, 3),
    ("x", "112", 0, 3), ("", "1", 0, 1),
    ("5e-1000000", "5", 0, 2),  # a long row of zeros earns nothing
    ("1e999999", "5", 0, 1000000), ("0e999999", "0", 1, 1),
]  # fmt: skip


@pytest.mark.parametrize(("prediction", "reference", "right", "places"), ALIGNED)
def test_digits_are_aligned_at_the_point(prediction, reference, right, places):
    assert digit_accuracy([prediction], [reference]) == pytest.approx(right / places)


WHOLE, PLACES = st.text("0123456789", min_size=1, max_size=9), st.integers(0, 4)


@given(WHOLE, WHOLE, PLACES, PLACES)
def test_digit_accuracy_is_the_loop(one, other, p, q):
    """Place by place, over a stretch that holds all digits."""
    prediction, reference = one + "." + "1" * p if p else one, other + "." + "2" * q if q else other

    def digit(text, place):
        whole, _, fraction = text.partition(".")
        whole = whole.lstrip("0") or "0"
        if place >= 0:
            return whole[-1 - place] if place < len(whole) else None
        return fraction[-1 - place] if -place <= len(fraction) else "0"

    pairs = {place: (digit(prediction, place), digit(reference, place)) for place in range(-6, 10)}
    counted = [
        (said, right)
        for place, (said, right) in pairs.items()
        if (said, right) != (None, None) and (place >= -q or said != "0")
    ]
    share = sum(said == right for said, right in counted) / len(counted)
    assert digit_accuracy([prediction], [reference]) == pytest.approx(share)


def test_pairs_weigh_the_same_and_digits_of_a_long_one_too():
    assert digit_accuracy(["1111111111", "2"], ["1111111111", "3"]) == 0.5
    assert digit_accuracy([LONG[:-1] + "8"], [LONG]) == 1 - 1e-5


def test_share_unparseable():
    with pytest.raises(InputError, match="nothing to measure"):
        share_unparseable([])
    texts = ["5", "", "five", "nan", "inf", "1e5", "1,234", "-.5", "5 6", "0x1F"]
    assert share_unparseable(texts) == pytest.approx(0.6)
    assert share_unparseable(np.array([1.0, np.nan, np.inf, -np.inf])) == 0.75
    assert share_unparseable([None, 5, Decimal("NaN")]) == pytest.approx(2 / 3)


# --- values


@given(PLAIN)
def test_values_are_the_plain_formulas(pairs):
    p, r = (np.array(part) for part in zip(*pairs, strict=True))
    exact = [Fraction(a) - Fraction(b) for a, b in pairs]
    squares = sum(d * d for d in exact)
    expected = float(sum(map(abs, exact)) / len(exact))
    assert mean_absolute_error(p, r) == pytest.approx(expected, rel=1e-9, abs=1e-300)
    mean = sum(map(Fraction, r.tolist())) / len(exact)
    spread = sum((Fraction(value) - mean) ** 2 for value in r.tolist())
    if not spread:
        assert math.isnan(r_squared(p, r))
        return
    expected = 1 - squares / spread
    if abs(expected) < 1e250:
        assert r_squared(p, r) == pytest.approx(float(expected), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("metric", OF_VALUES)
def test_every_kind_of_input_gives_the_same(metric):
    p, r = [1.5, 2.0, 4.25], [1.0, 2.5, 4.0]
    kinds = [
        np.array,
        lambda values: np.array(values, np.float16),
        lambda values: torch.tensor(values, dtype=torch.float64),
        lambda values: torch.tensor(values, dtype=torch.bfloat16, requires_grad=True),
        lambda values: [str(value) for value in values],
        lambda values: np.array([str(value) for value in values]),
        lambda values: [Decimal(value) for value in values],
        lambda values: [torch.tensor(value) for value in values],
        tuple,
    ]
    for kind in kinds:
        assert metric(kind(p), kind(r)) == metric(kind(p), r) == metric(p, r)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_float_is_the_shortest_decimal_of_its_own_precision(dtype):
    texts = ["0.1", "-3.14", "0.007", "1e-5", "0", "250", "2e20"]
    tensor = torch.tensor([float(text) for text in texts], dtype=dtype)
    if dtype is torch.float16:
        texts, tensor = texts[:6], tensor[:6]  # infinite
    assert exact_match(tensor, texts) == exact_match([*tensor], texts) == 1.0


def test_integers_of_60_digits_do_not_pass_through_floats():
    p, r = [BIG + 1, BIG + 2, BIG + 3], [BIG + 1, BIG + 3, BIG + 5]
    assert mean_absolute_error([*map(str, p)], [*map(str, r)]) == pytest.approx(1.0)
    assert r_squared(p, r) == pytest.approx(1 - 5 / 8)
    assert r_squared(r, r) == 1.0


def test_values_beyond_float64():
    assert log_error(["1e400"], ["1e-400"]) == pytest.approx(800.0)
    assert log_error(["1e99999999"], ["1"]) == pytest.approx(99999999.0)
    assert mean_absolute_error(["1e400"], ["1e400"]) == 0.0
    assert mean_absolute_error(["1e400"], ["0"]) == math.inf
    assert mean_absolute_error([1.7e308] * 3, [0] * 3) == pytest.approx(1.7e308)
    assert r_squared([1.7e308, 0, 1e308], [1.7e308, 0.0, 1e308]) == 1.0
    assert r_squared([1e300, 0], [0, 1]) == -math.inf
    with pytest.raises(InputError, match="log_error"):
        r_squared(["1e400", "0"], ["1e400", "0"])


def test_logarithms_by_hand():
    assert log_error([1, 100, 0.1], [10, 1, 0.1]) == pytest.approx(1.0)
    assert log_error([-10], [1000]) == pytest.approx(2.0)
    assert log_error(["0", "-0.0"], ["0", "0"]) == 0.0  # zeros have none
    assert log_error(["0"], ["5"]) == log_error(["5"], ["0"]) == math.inf
    assert median_log_error(["0", "100", "3"], ["5", "1", "3"]) == pytest.approx(2.0)
    assert math.isnan(r_squared([1, 2], [3, 3])) and math.isnan(r_squared([1], [3]))


@pytest.mark.parametrize("metric", OF_VALUES)
def test_predictions_that_are_no_number(metric):
    p, r = ["1.5", "five", "2", "nan", "4.25"], ["1", "2", "2.5", "3", "4"]
    with pytest.raises(InputError, match=r"prediction 1 .*skip.*share_unparseable"):
        metric(p, r)
    assert metric(p, r, invalid="skip") == metric(["1.5", "2", "4.25"], ["1", "2.5", "4"])
    with pytest.raises(InputError, match="prediction 1"):
        metric(np.array([0.0, np.nan]), [1, 2])
    with pytest.raises(InputError, match="nothing to measure"):
        metric(["x"], ["1"], invalid="skip")
    with pytest.raises(InputError, match="invalid='drop'"):
        metric(["1"], ["1"], invalid="drop")


@pytest.mark.parametrize("metric", [*OF_VALUES, exact_match, digit_accuracy])
def test_mismatches(metric):
    with pytest.raises(InputError, match="2 predictions, but 1 references"):
        metric(["1", "2"], ["1"])
    with pytest.raises(InputError, match="nothing to measure"):
        metric([], [])
    with pytest.raises(InputError):
        metric("12", "12")
    with pytest.raises(InputError):
        metric([object()], ["1"])
    with pytest.raises(InputError, match="reference 1"):
        metric(["1", "2"], ["1", "inf"])
    with pytest.raises(InputError, match="shape"):
        metric(np.ones((2, 2)), np.ones((2, 2)))
