"""P10, P1000, B1999 and FP15: the published encoders where they agree with us, and where they do
not.
"""

import json
from decimal import ROUND_HALF_EVEN, Context, Decimal

import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from spelling import decoded, read, same, symbols

from numtok import Numbers
from numtok.representations import B1999, FP15, P10, P1000

KINDS = [P10, P1000, B1999, FP15]


ANY_DIGITS = st.text("0123456789", min_size=1, max_size=30) | st.from_regex(
    r"[0-9]{1,4}50{0,20}[01]?", fullmatch=True
)

# ---- Vocabulary


@pytest.mark.parametrize(
    ("kind", "published", "zeros"),
    [(P10, 28, 0), (P1000, 918, 1), (B1999, 1816, 2), (FP15, 28800, 2)],
)
@pytest.mark.parametrize("form", ["integer", "decimal"])
def test_vocabulary_sizes_of_the_papers_and_what_zero_needs(kind, published, zeros, form):
    representation = kind(form=form)
    assert len(set(representation.alphabet)) == len(representation.alphabet) == published + zeros


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        (P10(), "- 6 0 2 E-1, + 0 0 0 E0, - 0 0 0 E0"),
        (P10(form="decimal"), "- 6 0 2 e+1, + 0 0 0 e+0, - 0 0 0 e+0"),
        (P1000(), "- 602 E-1, + 000 E0, - 000 E0"),
        (P1000(form="decimal"), "- 6.02 e+1, + 0.00 e+0, - 0.00 e+0"),
        (B1999(), "-602 E-1, 000 E0, -000 E0"),
        (B1999(form="decimal"), "-6.02 e+1, 0.00 e+0, -0.00 e+0"),
        (FP15(), "-602E-1, 000E0, -000E0"),
        (FP15(form="decimal"), "-6.02e+1, 0.00e+0, -0.00e+0"),
    ],
)
def test_the_example_of_xval_and_both_zeros(kind, written):
    numbers = ["-60.2", "0", "-0"]
    assert symbols(kind, numbers) == [row.split() for row in written.split(", ")]
    assert all(map(same, decoded(kind, numbers), map(Decimal, numbers)))


# ---- The published encoders


def test_golden_symbols(shared):
    """Mantissa and exponent of FP15 are N{mantissa}e{e} there, with value mantissa * 10**(e - 9);
    signed mantissas carry an N.
    """
    golden = (shared / "golden" / "charton_lawt.jsonl").read_text().splitlines()
    lines = [json.loads(line) for line in golden]
    numbers = [line["number"] for line in lines]
    for kind in (P10, P1000, B1999):
        published = [line[kind.name.upper()] for line in lines]
        expected = [[symbol.removeprefix("N") for symbol in row] for row in published]
        assert symbols(kind(), numbers) == expected
    for got, line in zip(symbols(FP15(), numbers), lines, strict=True):
        mantissa, _, exponent = line["FP15"][0].removeprefix("N").partition("e")
        assert got == [f"{mantissa}E{int(exponent) - 9}"]


# ---- Every number


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("digits", "decades"),
    [(1, (0, 0)), (2, (-20, -3)), (3, (-7, 8)), (3, (2, 5)), (18, (-400, 400))],
)
def test_rounds_as_decimal_does(kind, digits, decades):
    if digits == 18:
        kind = P10  # the others would have as many symbols as there are mantissas
    representation = kind(digits=digits, decades=decades)
    assert len(representation.alphabet) == representation.n_symbols
    powers = st.integers(decades[0] - 45, decades[1] + 10)

    @settings(max_examples=examples(30))
    @given(st.builds("{}{}e{}".format, st.sampled_from(["", "-"]), ANY_DIGITS, powers))
    def check(literal):
        expected = Context(prec=digits, rounding=ROUND_HALF_EVEN).create_decimal(literal)
        fits = not expected or decades[0] <= expected.adjusted() <= decades[1]
        assert representation.fits(Numbers.parse([literal])).tolist() == [fits]
        if fits:
            assert same(decoded(representation, [literal])[0], expected)

    check()


# ---- Symbols that are no number


@pytest.mark.parametrize(
    ("kind", "rows", "texts"),
    [
        (
            P10(),
            ["+ 5 0 0 E0", "+ +", "5 + 0 0 E0", "- 0 6 0 E-1", "", "+ 5 0 0 0"],
            ["500", "++", "5+00E0", "-6", "", "+5000"],
        ),
        (
            P1000(),
            ["+ 602 E0", "+ E0 602", "602 602 E0", "+ - E0"],
            ["602", "+E0602", "602602E0", "+-E0"],
        ),
        (B1999(), ["-602 E-2", "E0 E0", "602 602", "602"], ["-6.02", "E0E0", "602602", "602"]),
    ],
)
def test_symbols_that_are_no_number_are_given_as_they_are(kind, rows, texts):
    assert read(kind, [row.split() for row in rows]) == texts
