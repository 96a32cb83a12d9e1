"""Check what the scanner, grammars and ``Numbers`` refuse, and where they say it is."""

import math
from decimal import Decimal

import errors
import numpy as np
import pyarrow as pa
from scanned import DAMAGED, strings

from numtok import Grammar, Numbers, extract, scan
from numtok.errors import GrammarError, InputError

FIRST, SECOND = {"document": 0}, {"document": 1}
NOT_TEXTS = [
    ("7", "got one str"), (None, "NoneType"), (5, "int"),
    ([2.5], "expected str or None, got float", FIRST),
    (["1", 5], "expected str or None, got int", SECOND),
    (["1", ["2"]], "expected str or None, got list", SECOND),
    (["1", "a\ud800"], "lone surrogate U+D800", SECOND | {"character": 1}),
    ([None, "\udfff"], "lone surrogate U+DFFF", SECOND | {"character": 0}),
    (pa.array([1, 2]), "got int64"), (pa.array([b"1"]), "got binary"), (pa.array([["1"]]), "got list"),
    (pa.array([1, 2]).dictionary_encode(), "got dictionary"), (pa.chunked_array([[1]]), "got int64"),
    (pa.chunked_array([[1], [2]]), "got int64"), (pa.chunked_array([[b"1"], [b"\xff"]]), "got binary"),
    (pa.chunked_array([], pa.int64()), "got int64"),
]  # fmt: skip
NOT_UTF8 = [
    DAMAGED,
    DAMAGED.view(pa.binary()).cast(pa.large_binary()).view(pa.large_string()),
    pa.chunked_array([DAMAGED]),
    pa.chunked_array([DAMAGED, DAMAGED]),
    pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), DAMAGED),
]
# Arrow itself, asked to convert such an array, reads outside its memory
OUTSIDE = [
    strings(places, b"1 2") for places in ([0, 7, 3], [0, 1 << 20, 3], [0, -5, 3], [3, 2, 3])
]
OUTSIDE += [pa.chunked_array([one] * 2) for one in OUTSIDE] + [
    pa.DictionaryArray.from_arrays(pa.array([0, 1]), one) for one in OUTSIDE
]
NO_NUMBERS = "x 1,23 1.2.3 nan inf - . 1. $5 5kg --5 0x1F e5 1e ½ 12:30"
LITERALS = ["", " 1", "1 ", "1 2", *NO_NUMBERS.split()]
NOT_FINITE = [None, math.nan, math.inf, Decimal("NaN"), Decimal("Infinity"), "two"]
LARGEST = 10**17 - 1  # the largest exponent that the grammar reads


def digits(*rows):
    """Two numbers, each by its digits and its exponent."""
    flat, exponents = zip(*rows, strict=True)
    offsets = np.cumsum([0, *map(len, flat)])
    return Numbers.from_digits(
        np.zeros(len(rows), np.bool_), np.concatenate(flat).astype(np.uint8), offsets, np.array(exponents)
    )  # fmt: skip


BYTE_3 = SECOND | {"byte": 3}
NO_DECIMAL = "the pattern matched … does not read as a decimal number"
PATTERNS = [
    ("(", "", "does not compile"), (r"(?P<number>\d+", "", "does not compile"),
    (r"\d*", "", "matches the empty string"), ("", "", "matches the empty string"),
    ("[a-z]+", "é x", NO_DECIMAL, BYTE_3), (r"\d+x\d+", "é 1x2", NO_DECIMAL, BYTE_3),
    ("1,", "é 1,", NO_DECIMAL, BYTE_3), (r"\.", "é .", NO_DECIMAL, BYTE_3), ("-", "é -", NO_DECIMAL, BYTE_3),
    (r"\d(?=(?P<number>\d+))", "123", "matches overlap at character 2", SECOND),
    (r"\d+(?:[eE]\d+)?", "a 1e123456789012345678", "the exponent", SECOND | {"byte": 2}),
]  # fmt: skip
BOTH_MARKS = "both group digits and be the decimal"
OPTIONS = [
    *(({"grouping": one}, "grouping=… is not supported") for one in (";", "", ",,", "\t")),
    ({"decimal": ";"}, "decimal=';' is not supported; use '.' or ','"),
    *(({"grouping": one, "decimal": one[-1]}, BOTH_MARKS) for one in (".", ",", " ,")),
    ({"dots": 1, "commas": True}, "option commas, dots; this version knows accounting"),
    ({"pattern": "["}, "does not compile"),
]
ERRORS = {
    InputError: [
        *((lambda texts=texts: scan(texts), *told) for texts, *told in NOT_TEXTS),
        *(
            (lambda texts=texts: scan(texts), "0xFF is not valid UTF-8; …errors='replace'", SECOND | {"byte": 1})
            for texts in NOT_UTF8
        ),
        *((lambda texts=texts: scan(texts), "damaged") for texts in OUTSIDE),
        *(
            (lambda one=one: Numbers.parse(["1", one, "2"]),
             f"row 1: …{one!r}… is not one finite decimal number")
            for one in LITERALS
        ),
        *(
            (lambda given=given: Numbers.parse(given), "row 1: ")
            for given in (*([1, one] for one in NOT_FINITE), pa.array(["1", None]))
        ),
        *(
            (lambda exponent=exponent: digits(([7], 0), ([1, 2], exponent)),
             f"number 1: its exponent {exponent} has more than 17 digits")
            for exponent in (LARGEST + 1, -LARGEST - 3, 2**62)
        ),
    ],
    GrammarError: [
        *(
            (lambda pattern=pattern, text=text: scan(["", text], Grammar.from_pattern(pattern)), *told)
            for pattern, text, *told in PATTERNS
        ),
        *((lambda options=options: Grammar.from_dict(options), told) for options, told in OPTIONS),
        (lambda: scan(["5"], "klingon"), "expected a Grammar or one of 'prose', 'data'"),
        (lambda: extract("5", "klingon"), "expected a Grammar or one of 'prose', 'data'"),
    ],
    IndexError: [
        (lambda which=which: scan(["1 2"])[which], "") for which in (2, -3, [0, 2], np.array([True]))
    ],
}  # fmt: skip


@errors.rows(ERRORS)
def test_errors(call, kind, told, fields):
    errors.check(call, kind, told, fields)
