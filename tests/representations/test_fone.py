"""FoNE: phases held to rational arithmetic, two decoders, and errors of the published code."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from spelling import column_values

from numtok import Grammar, Numbers
from numtok.numbers.scan import scan
from numtok.representations import FoNE
from numtok.representations.fone import nearest_phase

# ---- References


def reference(literal, fone):
    """Cosine and sine of 2πx/T for every period, with the turn as a fraction."""
    turns = [abs(Fraction(literal)) / Fraction(period) % 1 for period in fone.periods]
    turns = [turn - 1 if turn > Fraction(1, 2) else turn for turn in turns]
    return [(math.cos(2 * math.pi * turn), math.sin(2 * math.pi * turn)) for turn in turns]


def published_periods(bases, before, after):
    """The periods as the authors' code lists them: each base times every power of ten, up to
    10**(before + 1) - 1.
    """
    powers = [10.0**k for k in range(-after, before + 2)]
    periods = {base * power for base in bases for power in powers}
    return sorted(period for period in periods if period <= 10 ** (before + 1) - 1)


def bfloat16(values):
    """Rounded to bfloat16, halves to even."""
    bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    return (((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) << 16).astype(np.uint32).view(np.float32)


def decimals(before, after):
    """Literals with at most so many digits before and after the point, with zeros around that do
    not count.
    """
    whole = st.text("0123456789", min_size=1, max_size=before) if before else st.just("0")
    fraction = st.text("0123456789", max_size=after)
    zeros = st.sampled_from(["", "0"])
    written = st.builds("00{}.{}{}".format, whole, fraction, zeros)
    return written.map(lambda text: text.removesuffix("."))


LENGTHS = [(3, 2), (9, 8), (20, 20), (0, 5), (5, 0)]

# ---- The encoder


def test_golden_features(shared):
    golden = (shared / "golden" / "fone_reference.jsonl").read_text().splitlines()
    lines = [json.loads(line) for line in golden]
    fone = FoNE(6, 4)
    assert [float(period) for period in fone.periods] == lines[0]["periods"]
    got = column_values(fone, [line["number"] for line in lines[1:]])
    expected = np.array([line["features"] for line in lines[1:]]).reshape(got.shape)
    np.testing.assert_allclose(got, expected, atol=1e-6, rtol=0)


def test_the_example_of_the_paper():
    turns = np.array([0.7, 0.17, 0.417]) * 2 * np.pi
    expected = np.stack([np.cos(turns), np.sin(turns)], 1)
    np.testing.assert_allclose(column_values(FoNE(1, 2), ["4.17"])[0], expected, atol=1e-7)
    assert FoNE(1, 2).digits(Numbers.parse(["4.17"])).tolist() == [[7, 1, 4]]
    # in the published code a mask of x != 0 erases the features of zero
    assert column_values(FoNE(3, 2), ["0", "-0.00"]).tolist() == [[[1.0, 0.0]] * 5] * 2


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("before", "after", "bases"),
    [
        *((*length, (10,)) for length in LENGTHS),
        *((5, 3, bases) for bases in ((2, 5, 10), (5,), (7,), (2, 5), (3, 9))),
    ],
)
def test_features_are_the_definition_with_the_published_periods_and_an_inverse(
    before, after, bases
):
    fone = FoNE(before, after, bases)
    periods = [float(period) for period in fone.periods]
    assert periods == pytest.approx(published_periods(bases, before, after))

    @settings(max_examples=examples(25))
    @given(st.lists(decimals(before, after), min_size=1, max_size=8))
    def check(literals):
        features = column_values(fone, literals)
        expected = [reference(literal, fone) for literal in literals]
        np.testing.assert_allclose(features, expected, atol=1e-7, rtol=0)
        found = fone.numbers(fone.decode_digits(bfloat16(features))).to_decimal()
        assert list(found) == [one.copy_abs() for one in Numbers.parse(literals).to_decimal()]

    check()


# ---- The decoders


@pytest.mark.parametrize(("before", "after"), [(5, 0), (17, 0), (20, 20), (60, 0)])
def test_exact_inverse_through_narrow_floats(before, after):
    torch = pytest.importorskip("torch")
    fone = FoNE(before, after)
    truth = np.random.default_rng(before).integers(0, 10, (1000, before + after)).astype(np.uint8)
    truth[:100, 1:] = 9  # 999...: the phases next to a whole turn
    truth[100:200, 1:] = 0
    features = torch.from_numpy(fone.features(truth).copy())
    for kind in (torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn):
        assert (fone.decode_digits(features.to(kind).float().numpy()) == truth).all(), kind
    assert (
        before == 60
        or (fone.decode_digits(features.to(torch.float8_e5m2).float().numpy()) == truth).all()
    )


def test_exact_inverse_bears_a_twentieth_of_a_turn():
    random, fone = np.random.default_rng(1), FoNE(6, 4)
    truth = random.integers(0, 10, (1000, 10)).astype(np.uint8)
    features = fone.features(truth)
    angles = np.arctan2(features[..., 1], features[..., 0])
    angles += random.uniform(-0.049, 0.049, angles.shape) * 2 * np.pi
    moved = 3.0 * np.stack([np.cos(angles), np.sin(angles)], -1)
    assert (fone.decode_digits(moved) == truth).all()


def test_the_published_head_does_not_invert_the_encoder():
    fone = FoNE(5, 0)
    every = np.arange(10**5)
    truth = np.stack([every // 10**k % 10 for k in range(5)], 1).astype(np.uint8)
    features = fone.features(truth)
    assert (fone.decode_digits(features, "nearest phase") != truth).any(1).mean() > 0.9
    assert (fone.decode_digits(features, "exact") == truth).all()


@pytest.mark.parametrize("bases", [(10,), (2, 5), (2, 5, 10)])
def test_nearest_phase_reads_what_a_trained_head_puts_out(bases):
    digits = np.random.default_rng(2).integers(0, 10, (100, 6)).astype(np.uint8)
    turns = digits[:, :, None] / np.array(bases) * 2 * np.pi
    outputs = np.stack([np.cos(turns), np.sin(turns)], -1).reshape(100, -1, 2)
    assert (nearest_phase(outputs.astype(np.float32), 6, bases) == digits).all()


# ---- Sign


def test_the_sign_stays_in_the_text():
    """-3 is the digits of 3, not 9, 9, 9, 9, 7."""
    assert not FoNE.carries_sign
    assert FoNE(5, 0).digits(scan(["a -3"]).without_sign()).tolist() == [[3, 0, 0, 0, 0]]
    numbers = scan(["a -3 b +4, \N{MINUS SIGN}5.5 6 -1,234", "", "−0"]).without_sign()
    assert numbers.text().to_pylist() == ["3", "4", "5.5", "6", "1,234", "0"]
    assert not np.signbit(numbers.to_float64()).any()
    accounts = scan(["(1,234) -7"], Grammar(accounting=True)).without_sign()
    assert accounts.text().to_pylist() == ["1,234", "7"]


# ---- Layouts and columns


@pytest.mark.thorough
def test_chunks_are_numbers_of_their_own():
    fone = FoNE(10, 2, chunk=5)
    assert fone.shape == (3, 5, 2)
    features = column_values(fone, ["1234567890.12"])  # from the right: 89012, 34567, 12
    plain = FoNE(5, 0)
    np.testing.assert_array_equal(features[0], column_values(plain, ["89012", "34567", "12"]))
    digits = column_values(FoNE(10, 2, chunk=5, compact=True), ["1234567890.12"])
    assert digits.tolist() == [[[2, 1, 0, 9, 8], [7, 6, 5, 4, 3], [2, 1, 0, 0, 0]]]

    @given(decimals(10, 2), st.sampled_from([(10,), (2, 5, 10), (7,)]), st.booleans())
    def check(literal, bases, compact):
        numbers = Numbers.parse([literal])
        chunked = FoNE(10, 2, bases, compact, chunk=5)
        assert chunked.decode(chunked.encode(numbers)).to_decimal() == numbers.to_decimal()

    check()
