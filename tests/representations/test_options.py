"""Names and options of representations: what is read and written, and what is refused."""

import pytest

import numtok
from numtok.representations import (
    B1999,
    FP15,
    P10,
    P1000,
    REPRESENTATIONS,
    Digits,
    ExponentBins,
    FloatBits,
    FoNE,
    LogFourier,
    PlaceValue,
    Subword,
    XVal,
    parse,
)

NAMES = {
    "xval": (XVal(),),
    "xval:log": (XVal(log=True),),
    "bits:64,reciprocal": (FloatBits(width=64, reciprocal=True),),
    "fone:6,4": (FoNE(6, 4),),
    "place": (PlaceValue(),),
    "place:lsd": (PlaceValue(order="lsd"),),
    "digits": (Digits(),),
    "digits:1": (Digits(1),),
    "digits:1,places": (Digits(1, places=True),),
    "p10": (P10(),),
    "p10:4": (P10(4),),
    "p1000": (P1000(),),
    "b1999": (B1999(),),
    "fp15": (FP15(),),
    "exponent_bins:100,xval": (ExponentBins(100), XVal()),
    "xval,fone:6,4,bits": (XVal(), FoNE(6, 4), FloatBits()),
    "bits:64,xval": (FloatBits(width=64), XVal()),
    "subword": (Subword(),),
}
OTHERWISE = {
    " xval , bits,": (XVal(), FloatBits()),
    " fone: 6 , 4 , logfourier:8 ": (FoNE(6, 4), LogFourier(8)),
    "bits:32": (FloatBits(),),
    "digits:3": (Digits(),),
    "digits: places, 1": (Digits(1, places=True),),
    "bins:50,xval": (ExponentBins(50), XVal()),  # a former name
}


@pytest.mark.parametrize(("text", "expected"), (NAMES | OTHERWISE).items())
def test_names(text, expected):
    assert parse(text) == expected
    if text in NAMES:
        assert ",".join(one.spec() for one in expected) == text


def test_names_are_those_of_classes():
    assert "bins" not in REPRESENTATIONS, "a list of what there is names each once"
    for name, kind in REPRESENTATIONS.items():
        assert kind.name == name
        assert getattr(numtok, kind.__name__) is kind and kind.__name__ in numtok.__all__


def test_options_for_all_of_a_list():
    made = parse("xval,fone:6,4,bits", compact=True, overflow="clip")
    compact = {"compact": True, "overflow": "clip"}
    assert made == (XVal(overflow="clip"), FoNE(6, 4, **compact), FloatBits(**compact))
