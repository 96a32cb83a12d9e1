"""FloatBits: the bits are those of IEEE 754, as ``struct`` packs them, rounded once from decimals
of any length (``tests/numbers``); and what width 64 leaves as it was.
"""

import math
import struct
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import numtok
from numtok.numbers.numbers import Numbers
from numtok.representations import FloatBits, XVal
from numtok.statistics.losses import candidates

NARROW, WIDE, BOTH = FloatBits(), FloatBits(width=64), FloatBits(width=64, reciprocal=True)
COMPACT = FloatBits(width=64, compact=True)
MAX, TINY, NORMAL = 1.7976931348623157e308, 5e-324, 2.2250738585072014e-308
# half a unit in the last place further than the largest, a decimal rounds to infinity
FIRST_INFINITE = Fraction(2) ** 1024 - Fraction(2) ** 970
FLOATS = st.floats(allow_nan=False, allow_infinity=False)


def word(value, width=64):
    """IEEE 754 binary64 or binary32, big-endian, as one integer."""
    return int.from_bytes(struct.pack(">d" if width == 64 else ">f", value), "big")


def rows(representation, *surfaces):
    """Each number's bits as one string, or as the word that is stored."""
    column = representation.encode(Numbers.parse(list(surfaces)))["number_bits"]
    if representation.compact:
        return list(column.to_pylist())
    return ["".join(map(str, row)) for row in column.to_numpy_ndarray().tolist()]


GOLDEN = {
    "-28.5": "1 10000011 11001000000000000000000",
    "-0": "1 00000000 00000000000000000000000",
    "1e-45": "0 00000000 00000000000000000000001",
}
GOLDEN_WIDE = {
    "-28.5": "1 10000000011 1100100000000000000000000000000000000000000000000000",
    # 2**53 + 1, to even
    "9007199254740993": "0 10000110100 0000000000000000000000000000000000000000000000000000",
}


@pytest.mark.parametrize(("surface", "bits"), [*GOLDEN.items(), *GOLDEN_WIDE.items()])
def test_golden_bits(surface, bits):
    """Sign, exponent and fraction, most significant first; in compact form, one integer."""
    width = len(bits) - 2
    assert [len(field) for field in bits.split()] == ([1, 8, 23] if width == 32 else [1, 11, 52])
    assert rows(FloatBits(width=width), surface) == [bits.replace(" ", "")]
    compact = FloatBits(width=width, compact=True)
    assert rows(compact, surface) == [int(bits.replace(" ", ""), 2)]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("one", "width"),
    [*((one, 32) for one in (XVal(), NARROW, FloatBits(compact=True))),
     *((one, 64) for one in (WIDE, COMPACT, BOTH))],
    ids=str,
)  # fmt: skip
@given(st.lists(FLOATS, min_size=1, max_size=6))
@example([MAX, -MAX, TINY, -TINY, NORMAL, math.nextafter(NORMAL, 0), 0.0, -0.0, 0.1 + 0.2])
@example([3.4028234663852886e38, 1.401298464324817e-45, 1.1754943508222875e-38])
@example([70000.0, 1e-9, 2049.0, -3.0, 65504.5, 1234567.0])  # float16 does not hold these
def test_every_float_is_exact(one, width, values):
    """Bit for bit, minus zero as well; and in the shortest decimal that reads back as the float."""
    with np.errstate(over="ignore"):
        floats = np.array(values).astype(f"f{width // 8}")
    floats = floats[np.isfinite(floats)]
    texts = pa.array(floats).cast(pa.large_string())
    numbers = Numbers.parse(texts)
    assert one.fits(numbers).all()
    back = one.decode(one.encode(numbers))
    found = back.to_float32() if width == 32 else back.to_float64()
    assert found.tobytes() == floats.tobytes()
    assert back.to_decimal() == [Decimal(text) for text in texts.to_pylist()]
    if one not in (XVal(), BOTH):
        words = [word(value, width) for value in floats.tolist()]
        expected = words if one.compact else [f"{value:0{width}b}" for value in words]
        assert rows(one, *texts.to_pylist()) == expected


# The reciprocal


def divided(value):
    """1/x by exact arithmetic, rounded once; ±infinity for ±0 (IEEE 754, 7.3), and where the
    quotient rounds to it (7.4).
    """
    if value == 0:
        return math.copysign(math.inf, value)
    exact = 1 / Fraction(value)
    return math.copysign(math.inf, value) if abs(exact) >= FIRST_INFINITE else float(exact)


@given(st.lists(FLOATS, min_size=1, max_size=6))
@example([0.0, -0.0, TINY, -TINY, MAX, 5.562684646268003e-309, 5.562684646268009e-309, 3.0, -0.1])
def test_the_bits_of_the_reciprocal_stand_behind(values):
    expected = [f"{word(value):064b}{word(divided(value)):064b}" for value in values]
    assert rows(BOTH, *map(repr, values)) == expected


# As options


@pytest.mark.parametrize("numbers", ["bits", "bits:32"])
def test_what_was_written_before_keeps_its_fingerprint(numbers):
    narrow, wide = (numtok.Tokenizer.from_pretrained(numbers=one) for one in (numbers, WIDE))
    assert narrow.fingerprint == "4c5abb1ce4e3780c" != wide.fingerprint
    assert set(narrow.representations[0].to_dict()) == {"name", "compact", "overflow"}
    assert "log" not in XVal().to_dict()
    statistics = numtok.Statistics.of_batch(["5"])
    assert {"bits", "bits:64"} <= {one.spec() for one in candidates(statistics)}


def test_what_a_head_chose_is_read_by_its_own_width():
    values = np.array([-28.5, 0.30000000000000004, -0.0])
    wide = np.unpackbits(values.astype(">f8").view(np.uint8)).reshape(-1, 64)
    narrow = np.unpackbits(values.astype(">f4").view(np.uint8)).reshape(-1, 32)
    for one in (WIDE, BOTH, COMPACT):
        for bits in (wide, values.view(np.int64)):  # as a batch has words
            read = one.decode_prediction({"number_bits": bits})
            assert read is not None and read.to_float64().tobytes() == values.tobytes()
        read = one.decode_prediction({"number_bits": narrow})
        assert read is not None
        assert read.to_float32().tobytes() == values.astype(np.float32).tobytes()
