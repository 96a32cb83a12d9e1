"""Check what the scanner and the grammar as one expression find, comparable, and the pieces of hostile text that both
are given.

In: texts and a grammar. Out: rows of plain values.
"""

import numpy as np
import pyarrow as pa

import numtok
from numtok.numbers.extract import read

UUID = "12345678-1234-1234-1234-123456789012"


def surfaces(text, grammar=None):
    return [str(surface) for surface in numtok.scan([text], grammar).text().to_pylist()]


def strings(offsets, data, valid=None):
    """Make an Arrow array of memory as other programs may lay it out."""
    places = pa.py_buffer(np.array(offsets, np.int32))
    mask = valid and pa.py_buffer(valid)
    return pa.StringArray.from_buffers(len(offsets) - 1, places, pa.py_buffer(data), mask)


DAMAGED = strings([0, 1, 3, 4], b"1 \xff2")


def rows_of(numbers):
    """All that was found, comparable: a decimal's tuple tells 1.0 from 1.00 and 0 from -0."""
    columns = (
        numbers.document.tolist(),
        numbers.start.tolist(),
        numbers.stop.tolist(),
        numbers.text().to_pylist(),
        numbers.to_decimal(),
    )
    return [(*place, value.as_tuple()) for *place, value in zip(*columns, strict=True)]


def rows_of_oracle(texts, grammar):
    return [
        (
            document,
            len(text[: number.start].encode()),
            len(text[: number.stop].encode()),
            number.text,
            number.value.as_tuple(),
        )
        for document, text in enumerate(texts)
        if text is not None
        for number in read(text, grammar)
    ]


COMMON = [*"0123456789..,,--++−eEexXxaZ_ ()", "12", "123", "123", "1234", "00", "000"]
RARE_WORDS = """
1,234 1,23 1.5 2.e+3 1e5 e-3 0x 0xF 10x6 km ee ... -- _1 (5) (10x6) (-1,234) f(3)
1e12345678901234567 1e123456789012345678 1e-000012345678901234567 1e-٠0012345678901234567
12345678-1234-1234-1234-123456789012 1234567e-123e-123e-123e-1234567890ab
abcdefab-cdef-abcd-efab-cdefabcdefab 7bcdabcd-7bcd-abcd-1bcd-9bcdabcdabcd 0a1b2c3d-4e5f
12345678- -1234 -1234-1234-123456789012 123456789012 deadbeef 9f86d081884c7d65
"""
# letters that are no word, units, fractions, other exponents, the marks of Arabic
RARE_WORDS += r"""
\ \a \pm \times \u \u00 \xe \US $ $US $A £ USD EUR Rs kr _USD T T10: -09-01T10: 2019-09-01T10:38
2019-09-01T m2 cm3 µm2 ft2 m2. m3, ½ 2½ ⅐ D+03 d-3 1.5D D+3D 0,125 0,1 ٫ ٬ ٣٫١ ١٬٢٣٤ ٠,123
"""
RARE = [
    *"[]{}%\n\t'\"/:^$·",
    *"’\u2009\u202f\u00a0",  # the other separators, and a space that never groups
    *"é–年日ก½²Ⅻ٤０７𝟙𝟚€😀\u0301\u200b",
    *RARE_WORDS.split(),
]
PIECES = COMMON * 4 + RARE
