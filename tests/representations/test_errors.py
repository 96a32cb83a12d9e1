"""Check what representations refuse: names, options, columns that cannot be decoded, numbers that give
no scale.
"""

import math

import errors
import numpy as np
import pyarrow as pa

from numtok import Numbers, Tokenizer
from numtok.errors import RepresentationError, TokenizerError
from numtok.representations import (
    FP15,
    P10,
    P1000,
    Digits,
    ExponentBins,
    FloatBits,
    FoNE,
    LogFourier,
    PlaceValue,
    QuantileBins,
    XVal,
    from_dict,
    parse,
)

NAMES = {
    "": "no representation given; choose from xval, bits",
    " , ": "no representation given",
    "xvals": "unknown representation 'xvals'; choose from xval, bits",
    "XVal": "unknown representation 'XVal'",
    "fpne:6,4": "unknown representation 'fpne'; choose from …fone",
    "xval,xval": "xval is given twice",
    "fone:6,4,fone:3,3": "given twice",
    "bins,exponent_bins": "given twice",
    "xval,place": "place stands alone; it cannot be combined with xval",
    "subword,bits,xval": "subword stands alone; it cannot be combined with bits, xval",
    "p10,xval": "stands alone",
    "xval,digits:1": "digits stands alone; it cannot be combined with xval",
    "place,place": "place",
    "fone": "needs int_digits and frac_digits",
    "fone:6": "needs frac_digits",
    "fone:6,4,2": "too many numbers",
    "fone:six": "integers after the colon",
    f"p10:{'9' * 5000}": "integers after the colon",
    "fone:": "integers after the colon",
    "bits,4": "belongs to no representation",
    "4": "belongs to no representation",
    "digits,3": "3 in 'digits,3' belongs to no representation",
    "subword:1": "takes none",
    "digits:3,2": "too many numbers after the colon; digits takes group",
    "digits:right": "expected integers after the colon, as in fone:6,4, or digits:",
    "place:msd": "expected integers after the colon, as in fone:6,4, or place:lsd",
    "xval:lag": "xval:log",
}
NOT_FINITE = [math.nan, math.inf, -math.inf]
FLOATS = [XVal(), XVal(scale=2.0), FloatBits(), FloatBits(compact=True)]
FONE, FEATURES = FoNE(2, 1), np.ones((2, 3, 2))


def decode(representation, values):
    """Decode a column of these values: floats as bits where the representation has bits."""
    column = pa.array(values) if np.ndim(values) < 2 else tensors(np.asarray(values))
    if isinstance(representation, FloatBits):
        floats = np.array(values, np.float32)
        column = pa.array(floats.view(np.uint32))
        if not representation.compact:
            column = tensors(np.unpackbits(floats.astype(">f4").view(np.uint8)).reshape(-1, 32))
    return representation.decode({next(iter(representation.columns())): column})


def tensors(values):
    return pa.FixedShapeTensorArray.from_numpy_ndarray(values)


def fit(*literals, **options):
    return XVal.fit(Numbers.parse(list(literals)), **options)


OPTIONS = [
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
    (
        lambda: PlaceValue(order="lsd", brackets=False),
        "take order='msd', or brackets=True",
    ),
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
    (lambda: LogFourier(1), "n_frequencies=1 must be from 2 to 4096"),
    *(
        (lambda sizes=sizes: parse(f"float_digits:{sizes}"), "must be from 2 to 36")
        for sizes in ("1,2,2", "37,2,2", "10,0,2", "10,2,19", "2,13,2")
    ),
    (lambda: QuantileBins(edges=(1.0, 1.0)), "larger than the one before"),
    (lambda: QuantileBins(edges=(0.0,)), "edges must be 2 to"),
    (lambda: QuantileBins(1, edges=(0.0, 1.0, 2.0)), "2 to n + 1 = 2 numbers"),
    (lambda: QuantileBins(edges=(0.0, math.inf)), "within ±8e+307"),
    (lambda: QuantileBins(n=0), "n=0 must be from 1"),
]
VALUES = [
    *(
        (lambda one=one, value=value: decode(one, [1.0, value]), f"{one.name}: value 1 is {value}")
        for one in FLOATS
        for value in NOT_FINITE
    ),
    (
        lambda: decode(ExponentBins(), np.array([1, 201], np.int16)),
        "number_bin holds 201, expected 0 to 200",
    ),
    (
        lambda: decode(QuantileBins(edges=(0.0, 1.0)), np.array([7], np.int16)),
        "holds 7, expected 0 to 0",
    ),
    (lambda: decode(LogFourier(2), np.array([[[1, 0], [math.nan, 0], [1, 0]]], "f4")), "NaN"),
    (
        lambda: FONE.decode_digits(np.where([[[False]], [[True]]], math.nan, FEATURES)),
        "number 1 are not finite",
    ),
    (lambda: FONE.decode_digits(np.ones((1, 4, 2))), "expected (n, 3, 2)"),
    (lambda: FONE.decode_digits(FEATURES, "argmax"), "rule"),
    (
        lambda: decode(FoNE(2, 1, compact=True), np.array([[1, 2, 10]], np.uint8)),
        "10, which is not a digit",
    ),
]
FITS = [
    (lambda: fit("0", "1e999"), "none of the 2 numbers"),
    (fit, "none of the 0 numbers"),
    (lambda: fit("1", target=0), "target"),
    (lambda: fit("1", quantile=1.5), "quantile"),
    (
        lambda: Tokenizer.from_pretrained(numbers="quantile_bins").encode("a 5"),
        "encode_files fits them … QuantileBins.fit",
    ),
]
BOTH = [XVal(), FloatBits()]
ERRORS = {
    RepresentationError: [
        *((lambda text=text: parse(text), told) for text, told in NAMES.items()),
        (lambda: parse("xval", compact=True), "none of 'xval' has the option compact"),
        (lambda: from_dict({"scale": 1.0}), "unknown … choose from xval, bits"),
        *OPTIONS,
        *VALUES,
        *FITS,
    ],
    TokenizerError: [
        (
            lambda some=some: Tokenizer.from_pretrained(numbers=BOTH).with_options(some),
            "other tokens",
        )
        for some in ([XVal()], [PlaceValue()], [FoNE(3, 0), FloatBits()])
    ],
}


@errors.rows(ERRORS)
def test_errors(call, kind, told, fields):
    errors.check(call, kind, told, fields)
