"""Ways to show numbers to a model, one file each: which tokens stand for a number, which columns
hold its value, and the inverse.

``base`` says what a representation is, ``columns`` what a column is, ``registry`` which ones there
are, and ``parse`` reads their names. Imports ``numtok.numbers`` and ``numtok.arrays``; nothing of
tokenizers, files or torch.
"""

from numtok.representations.base import (
    END_NUM,
    NUM,
    Representation,
    SingleToken,
    Spelled,
    SpelledOut,
    symbol_token,
)
from numtok.representations.charton import B1999, FP15, P10, P1000
from numtok.representations.columns import Column
from numtok.representations.digits import Digits
from numtok.representations.exponent_bins import ExponentBins
from numtok.representations.float_bits import FloatBits
from numtok.representations.float_digits import FloatDigits
from numtok.representations.fone import FoNE
from numtok.representations.log_fourier import LogFourier
from numtok.representations.numerologic import NumeroLogic
from numtok.representations.parse import check_combination, from_dict, parse, representations_of
from numtok.representations.place_value import PlaceValue
from numtok.representations.quantile_bins import QuantileBins
from numtok.representations.registry import REPRESENTATIONS, register, streams
from numtok.representations.subword import Subword
from numtok.representations.xval import XVal

__all__ = [
    "B1999",
    "END_NUM",
    "FP15",
    "NUM",
    "P10",
    "P1000",
    "REPRESENTATIONS",
    "Column",
    "Digits",
    "ExponentBins",
    "FloatBits",
    "FloatDigits",
    "FoNE",
    "LogFourier",
    "NumeroLogic",
    "PlaceValue",
    "QuantileBins",
    "Representation",
    "SingleToken",
    "Spelled",
    "SpelledOut",
    "Subword",
    "XVal",
    "check_combination",
    "from_dict",
    "parse",
    "register",
    "representations_of",
    "streams",
    "symbol_token",
]
