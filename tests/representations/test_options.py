"""Names and options of representations: what is read and written, and what is refused."""

import math

import pytest

import numtok
from numtok.errors import RepresentationError
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
    QuantileBins,
    Subword,
    XVal,
    from_dict,
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


def test_class_file_and_name_agree():
    assert ExponentBins.name == "exponent_bins" == ExponentBins.__module__.rpartition(".")[2]
    assert "bins" not in REPRESENTATIONS, "a list of what there is names each once"
    for name, kind in REPRESENTATIONS.items():
        assert kind.name == name
        assert getattr(numtok, kind.__name__) is kind and kind.__name__ in numtok.__all__


def test_options_for_all_of_a_list():
    made = parse("xval,fone:6,4,bits", compact=True, overflow="clip")
    compact = {"compact": True, "overflow": "clip"}
    assert made == (XVal(overflow="clip"), FoNE(6, 4, **compact), FloatBits(**compact))
    with pytest.raises(RepresentationError, match="none of 'xval' has the option compact"):
        parse("xval", compact=True)


def test_options_that_are_newer_than_files_are_left_out_where_they_say_nothing():
    """What was encoded before there were any keeps its fingerprint."""
    assert "log" not in XVal().to_dict()
    assert set(FloatBits().to_dict()) == {"name", "compact", "overflow"}
    with pytest.raises(RepresentationError, match=r"unknown .*choose from xval, bits"):
        from_dict({"scale": 1.0})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no representation given; choose from xval, bits"),
        (" , ", "no representation given"),
        ("xvals", "unknown representation 'xvals'; choose from xval, bits"),
        ("XVal", "unknown representation 'XVal'"),
        ("fpne:6,4", "unknown representation 'fpne'; choose from .*fone"),
        ("xval,xval", "xval is given twice"),
        ("fone:6,4,fone:3,3", "given twice"),
        ("bins,exponent_bins", "given twice"),
        ("xval,place", "place stands alone; it cannot be combined with xval"),
        ("subword,bits,xval", "subword stands alone; it cannot be combined with bits, xval"),
        ("p10,xval", "stands alone"),
        ("xval,digits:1", "digits stands alone; it cannot be combined with xval"),
        ("place,place", "place"),
        ("fone", "needs int_digits and frac_digits"),
        ("fone:6", "needs frac_digits"),
        ("fone:6,4,2", "too many numbers"),
        ("fone:six", "integers after the colon"),
        ("fone:", "integers after the colon"),
        ("bits,4", "belongs to no representation"),
        ("4", "belongs to no representation"),
        ("digits,3", "3 in 'digits,3' belongs to no representation"),
        ("subword:1", "takes none"),
        ("digits:3,2", "too many numbers after the colon; digits takes group"),
        ("digits:right", "expected integers after the colon, as in fone:6,4, or digits:"),
        ("place:msd", "expected integers after the colon, as in fone:6,4, or place:lsd"),
        ("xval:lag", "xval:log"),
    ],
)
def test_names_that_cannot_be(text, message):
    with pytest.raises(RepresentationError, match=message):
        parse(text)


WRONG = [
    (lambda: XVal(scale=0.0), "scale=0.0 must be a positive, finite number"),
    (lambda: XVal(scale=-1.0), "scale=-1.0"),
    (lambda: XVal(scale=math.nan), "scale=nan"),
    (lambda: XVal(clip=0.0), "clip=0.0 must be positive"),
    (lambda: XVal(clip=math.nan), "clip=nan"),
    (lambda: XVal(overflow="drop"), "xval: overflow='drop' is unknown; use one of 'text', 'clip'"),
    (lambda: FloatBits(width=16), "width=16 must be 32 or 64"),
    (lambda: FloatBits(reciprocal=True), "take width=64"),
    (lambda: FoNE(0, 0), "nor both 0"),
    (lambda: FoNE(-1, 4), "negative"),
    (lambda: FoNE(4096, 1), "nor above 4096 together"),
    (lambda: FoNE(1, 0, bases=()), "bases"),
    (lambda: FoNE(1, 0, bases=(5, 5)), "bases"),
    (lambda: FoNE(1, 0, bases=(11,)), "bases"),
    (lambda: FoNE(1, 0, chunk=0), "chunk"),
    (lambda: PlaceValue(order="backwards"), "order"),
    (lambda: PlaceValue(max_offset=-1), "max_offset"),
    (lambda: PlaceValue(seed=-1), "seed"),
    (lambda: Digits(4), "digits: group=4 must be from 1 to 3"),
    (lambda: Digits(align="middle"), "align='middle' is unknown; use one of 'left', 'right'"),
    (lambda: P1000(digits=5), "p1000: 5 digits and 16 exponents need 90,019 symbols"),
    (lambda: FP15(3, (-20, 20)), "more than 65,536"),
    (lambda: P10(digits=0), "from 1 to 18"),
    (lambda: P10(decades=(3, 2)), "decades"),
    (lambda: P10(decades=(0, 10**6 + 1)), "within ±1,000,000"),
    (lambda: P10(form="float"), "form"),
    (lambda: ExponentBins(n=0), "n=0"),
    (lambda: ExponentBins(n=40000), "32767"),
    (lambda: ExponentBins(low=0.0), "positive"),
    (lambda: ExponentBins(low=2.0, high=1.0), "low less than high"),
    (lambda: ExponentBins(100, 1.0, 1.0 + 1e-15), "narrower than float64"),
    (lambda: ExponentBins(high=math.inf), "finite"),
    (lambda: LogFourier(1), "at least 2"),
    *(
        (lambda sizes=sizes: parse(f"float_digits:{sizes}"), "must be from 2 to 36")
        for sizes in ("1,2,2", "37,2,2", "10,0,2", "10,2,19", "2,13,2")
    ),
    (lambda: QuantileBins(edges=(1.0, 1.0)), "larger than the one before"),
    (lambda: QuantileBins(edges=(0.0,)), "edges must be 2 to"),
    (lambda: QuantileBins(1, edges=(0.0, 1.0, 2.0)), "2 to n \\+ 1 = 2 numbers"),
    (lambda: QuantileBins(edges=(0.0, math.inf)), "within ±8e\\+307"),
    (lambda: QuantileBins(n=0), "n=0 must be from 1"),
]


@pytest.mark.parametrize(("make", "message"), WRONG, ids=[message for _, message in WRONG])
def test_options_that_cannot_be(make, message):
    with pytest.raises(RepresentationError, match=message):
        make()
