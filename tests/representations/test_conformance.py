"""Every representation holds to what the others do, by the kit that users have for theirs."""

import itertools
from dataclasses import dataclass
from decimal import Decimal, localcontext

import pytest
from effort import examples

from numtok import Numbers
from numtok.representations import (
    FP15,
    P10,
    P1000,
    Digits,
    ExponentBins,
    FloatBits,
    FloatDigits,
    FoNE,
    PlaceValue,
    QuantileBins,
    SpelledOut,
    XVal,
    parse,
    registry,
)
from numtok.testing import check_representation

NAMES = (
    "xval xval:log bits bits:64 fone:6,4 fone:30,30 place place:bare digits:1 digits:3 digits:1,bare"
    " digits:3,bare digits:2,left,places,bare numerologic p10 p1000 b1999 fp15 exponent_bins"
    " logfourier:4 subword float_digits float_digits:2,8,24"
)
EDGES = (-3.0, 0.0, 1.4, 3.4, 7.85, 100.0)
KINDS = [
    *(one for name in NAMES.split() for one in parse(name)),
    XVal(scale=0.25, clip=5.0, overflow="clip"),
    FloatBits(compact=True, overflow="clip"),
    FoNE(20, 10, compact=True),
    FoNE(6, 4, bases=(10, 2, 5), chunk=5),
    PlaceValue("clip", "lsd", 50, 2**63 - 1),
    PlaceValue("clip", "msd", 50, 3, brackets=False),
    P10(digits=2, decades=(-3, 3), form="decimal", overflow="error"),
    P1000(2, (5, 9), "decimal"),
    FP15(2, (-3, 2)),
    ExponentBins(50, 1.0, 1e9, "clip"),
    FloatDigits(16, 2, 8, "clip"),
    QuantileBins(5, edges=EDGES),
    QuantileBins(5, True, EDGES),
    QuantileBins(2, True, (-8e307, 1e-300, 8e307), "clip"),
]


@pytest.mark.parametrize("representation", KINDS, ids=str)
def test_a_representation_holds_to_the_kit(representation):
    check_representation(representation, examples(10, thorough=200))


WRITTEN = ["-60.2", "0", "-0", "1,234.5", "007", "+5", ".5", "2.e+3", "15E-3", "0.0245", "9995"]


@pytest.mark.parametrize(
    "representation", [one for one in KINDS if isinstance(one, SpelledOut)], ids=str
)
def test_one_number_alone_is_spelled_as_among_others(representation):
    """From its text alone, whatever the precision of Python's decimals."""
    low, high = representation.exact_digit_range.start, representation.exact_digit_range.stop
    values = [Decimal(written.replace(",", "")).as_tuple() for written in WRITTEN]
    held = [low <= one.exponent and one.exponent + len(one.digits) <= high for one in values]
    numbers = Numbers.parse(list(itertools.compress(WRITTEN, held)))
    assert representation.fits(numbers).all()
    spelled = representation.encode(numbers)
    with localcontext(prec=1):
        alone = [representation.encode_one(one.encode(), ".") for one in numbers.text().to_pylist()]
    assert [one.tolist() for one in alone] == [
        spelled.symbols[first:last].tolist() for first, last in itertools.pairwise(spelled.offsets)
    ]


def test_the_kit_tells_of_numbers_that_ids_do_not_give_back(monkeypatch):
    """Without brackets, each digit begins a number here, so that 12 is read as 1 and 2."""

    @dataclass(frozen=True)
    class Bare(Digits):
        name = "bare"
        bracketed = False
        shares_vocabulary = False
        first_symbols = range(12)
        added_tokens = SpelledOut.added_tokens

    monkeypatch.setitem(registry.REPRESENTATIONS, "bare", Bare)
    with pytest.raises(AssertionError):
        check_representation(Bare(1), examples=50)


def test_the_kit_tells_of_ways_to_write_what_is_no_number(monkeypatch):
    """A mantissa with leading zeros, which no number is spelled with."""

    class Padded(P10):
        name = "padded"

        def forms(self):
            return [[range(self.sizes[one]) for one in self.fields]]

    monkeypatch.setitem(registry.REPRESENTATIONS, "padded", Padded)
    with pytest.raises(AssertionError):
        check_representation(Padded(), examples=50)
