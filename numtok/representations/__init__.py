"""Ways to show numbers to a model, one file each: which tokens stand for a number, which columns
hold its value, and the inverse.

``base`` says what a representation is, ``columns`` what a column is, and ``registry`` which ones
there are, by their names. Imports ``numtok.numbers`` and ``numtok.arrays``; nothing of
tokenizers, files or torch.
"""

from numtok.representations.base import END_NUM as END_NUM
from numtok.representations.base import NUM as NUM
from numtok.representations.base import Representation as Representation
from numtok.representations.base import SingleToken as SingleToken
from numtok.representations.base import Spelled as Spelled
from numtok.representations.base import SpelledOut as SpelledOut
from numtok.representations.base import symbol_token as symbol_token
from numtok.representations.charton import B1999 as B1999
from numtok.representations.charton import FP15 as FP15
from numtok.representations.charton import P10 as P10
from numtok.representations.charton import P1000 as P1000
from numtok.representations.columns import Column as Column
from numtok.representations.digits import Digits as Digits
from numtok.representations.exponent_bins import ExponentBins as ExponentBins
from numtok.representations.float_bits import FloatBits as FloatBits
from numtok.representations.float_digits import FloatDigits as FloatDigits
from numtok.representations.fone import FoNE as FoNE
from numtok.representations.log_fourier import LogFourier as LogFourier
from numtok.representations.numerologic import NumeroLogic as NumeroLogic
from numtok.representations.place_value import PlaceValue as PlaceValue
from numtok.representations.quantile_bins import QuantileBins as QuantileBins
from numtok.representations.registry import REPRESENTATIONS as REPRESENTATIONS
from numtok.representations.registry import check_combination as check_combination
from numtok.representations.registry import from_dict as from_dict
from numtok.representations.registry import parse as parse
from numtok.representations.registry import register as register
from numtok.representations.registry import representations_of as representations_of
from numtok.representations.registry import streams as streams
from numtok.representations.subword import Subword as Subword
from numtok.representations.xval import XVal as XVal
