"""Unicode character classes as flat lookup tables: code point in, class byte out.

The ranges lie in ``unicode_ranges.json`` beside this file, taken from the Unicode data of the
``regex`` package, so that what counts as a digit or a letter does not change with the Python
version. ``tests/support/unicode_ranges.py`` writes that file anew.

Classes of ``character_classes()`` (uint8[0x110000]):

====== =============================================================================================================
value  meaning
====== =============================================================================================================
0      anything else
1      letter: general category L, M or Nl, or ``_``; not a character of a script written without spaces (see below)
2      sign: ``-``, ``+``, U+2212
3      blocks a sign that follows it: ``)``, ``]``, ``}``, ``%``
4      dot, or U+066B, the decimal mark of Arabic
16+v   decimal digit (general category Nd) of value v
====== =============================================================================================================

Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese put digits directly beside words
(``2020年5月``), so their characters are not letters here, as in the word boundaries of UAX #29: a
digit after one of them starts a number.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path

import numpy as np
import numpy.typing as npt

OTHER, LETTER, SIGN, BLOCKER, DOT, DIGIT = 0, 1, 2, 3, 4, 16
CODE_POINTS = 0x110000
RANGES_FILE = Path(__file__).with_name("unicode_ranges.json")

Table = npt.NDArray[np.uint8]


@functools.cache
def ranges() -> dict[str, list[tuple[int, int]]]:
    """Return the half-open code point ranges per class.

    The classes are ``letter``, ``digit``, ``number`` (category N), ``space``, ``nfc_unsafe`` (NFC
    may change text that holds it), ``nfc_newer``, those of the latter that the older Unicode data
    of ``tokenizers`` does not know, so that its NFC leaves them alone, and ``unsettled``, not
    assigned in Unicode 14, or of another category since, so that libraries disagree.
    """
    data = json.loads(RANGES_FILE.read_text("ascii"))
    return {
        name: [(first, last) for first, last in zip(flat[::2], flat[1::2], strict=True)]
        for name, flat in data["ranges"].items()
    }


@functools.cache
def character_classes(unicode_digits: bool = True) -> Table:
    """Return uint8[0x110000] of the classes above.

    Without ``unicode_digits`` every non-ASCII digit is a letter.
    """
    table = np.zeros(CODE_POINTS, np.uint8)
    for first, last in ranges()["letter"]:
        table[first:last] = LETTER
    for first, last in ranges()["digit"]:
        # every range is whole blocks of ten, in order of value
        digits = np.arange(last - first) % 10 + DIGIT
        table[first:last] = digits if unicode_digits or first == ord("0") else LETTER
    for characters, value in (("-+\u2212", SIGN), (")]}%", BLOCKER), (".\u066b", DOT)):
        table[[ord(character) for character in characters]] = value
    table.flags.writeable = False
    return table


@functools.cache
def flags(*names: str) -> Table:
    """Return uint8[0x110000] of 0 and 1: membership in one of these classes of :func:`ranges`."""
    table = np.zeros(CODE_POINTS, np.uint8)
    for name in names:
        for first, last in ranges()[name]:
            table[first:last] = 1
    table.flags.writeable = False
    return table
