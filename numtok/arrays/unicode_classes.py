"""Unicode character classes as flat lookup tables: code point in, class byte out.

The ranges lie in ``unicode_ranges.json`` beside this file, taken from the Unicode data of the
``regex`` package, so that what counts as a digit or a letter does not change with the Python
version. ``python -m numtok.arrays.unicode_classes`` writes that file anew.

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
import itertools
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

OTHER, LETTER, SIGN, BLOCKER, DOT, DIGIT = 0, 1, 2, 3, 4, 16
CODE_POINTS = 0x110000
SPACELESS_SCRIPTS = (
    "Han",
    "Hiragana",
    "Katakana",
    "Bopomofo",
    "Hangul",
    "Thai",
    "Lao",
    "Khmer",
    "Myanmar",
)
RANGES_FILE = Path(__file__).with_name("unicode_ranges.json")

Table = npt.NDArray[np.uint8]


@functools.cache
def ranges() -> dict[str, list[tuple[int, int]]]:
    """The half-open code point ranges per class.

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
    """uint8[0x110000] of the classes above.

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
    """uint8[0x110000] of 0 and 1: membership in one of these classes of :func:`ranges`."""
    table = np.zeros(CODE_POINTS, np.uint8)
    for name in names:
        for first, last in ranges()[name]:
            table[first:last] = 1
    table.flags.writeable = False
    return table


def _collect() -> dict[str, list[int]]:
    """All ranges, flattened, from the ``regex`` package, and what ``tokenizers`` knows of them."""
    import unicodedata

    import regex

    spaceless = "".join(rf"\p{{Script_Extensions={script}}}" for script in SPACELESS_SCRIPTS)
    patterns = {
        "letter": rf"(?V1)[[\p{{L}}\p{{M}}\p{{Nl}}_]--[{spaceless}]]",
        "digit": r"\p{Nd}",
        "number": r"\p{N}",
        "space": r"\p{White_Space}",
        # Unassigned characters count as unsafe: another library's newer Unicode data may know them.
        "nfc_unsafe": (
            r"(?V1)[\p{NFC_Quick_Check=No}\p{NFC_Quick_Check=Maybe}\p{Cn}[\P{Canonical_Combining_Class=0}]]"
        ),
    }
    members = {}
    for name, pattern in patterns.items():
        match = regex.compile(pattern).match
        members[name] = {code for code in _code_points() if match(chr(code)) is not None}
    members["nfc_newer"] = members["nfc_unsafe"] - _known_to_tokenizers()
    assert unicodedata.unidata_version == "14.0.0", "write the file with Python 3.11"
    members["unsettled"] = {
        code
        for code in _code_points()
        if not regex.match(rf"\p{{{unicodedata.category(chr(code))}}}", chr(code))
        or unicodedata.category(chr(code)) == "Cn"
    }
    return {name: _edges(codes) for name, codes in members.items()}


def _code_points() -> Iterable[int]:
    return itertools.chain(range(0xD800), range(0xE000, CODE_POINTS))


def _known_to_tokenizers() -> set[int]:
    """The characters for which the NFC of ``tokenizers`` does something.

    It puts marks (combining class 1 to 239) before U+0345 (240); it takes a composed character
    apart, or changes it; it composes a character with the one before it.
    """
    from tokenizers import normalizers

    composed, apart = normalizers.NFC().normalize_str, normalizers.NFD().normalize_str
    known = {0x0345}
    for character in map(chr, _code_points()):
        pieces = apart(character)
        if pieces != character:
            known |= {ord(character), *map(ord, pieces[1:])}
        elif composed(f"a\u0345{character}") != f"a\u0345{character}":
            known.add(ord(character))
    return known


def _edges(codes: set[int]) -> list[int]:
    """The half-open ranges that hold the code points, flattened."""
    ordered = sorted(codes)
    firsts = [code for code in ordered if code - 1 not in codes]
    lasts = [code + 1 for code in ordered if code + 1 not in codes]
    return [edge for pair in zip(firsts, lasts, strict=True) for edge in pair]


def _write() -> None:
    import regex

    source = f"Unicode data of the regex package {regex.__version__}"
    RANGES_FILE.write_text(
        json.dumps({"source": source, "ranges": _collect()}, separators=(",", ":")) + "\n", "ascii"
    )


if __name__ == "__main__":
    _write()
