"""Write numtok/arrays/unicode_ranges.json anew, from the Unicode data of the ``regex`` package and
of ``tokenizers``: ``python tests/support/unicode_ranges.py``, with Python 3.11.
"""

import itertools
import json
import unicodedata

import regex
from tokenizers import normalizers

from numtok.arrays.unicode_classes import CODE_POINTS, RANGES_FILE

SPACELESS_SCRIPTS = "Han Hiragana Katakana Bopomofo Hangul Thai Lao Khmer Myanmar"
SPACELESS = "".join(rf"\p{{Script_Extensions={script}}}" for script in SPACELESS_SCRIPTS.split())
# Thai, Katakana and Bopomofo share marks such as the tilde with Latin: n\u0303 is a letter as \u00f1 is.
LATIN_MARKS = r"[\p{M}&&\p{Script_Extensions=Latin}]"
PATTERNS = {
    "letter": rf"(?V1)[[\p{{L}}\p{{M}}\p{{Nl}}_]--[[{SPACELESS}]--{LATIN_MARKS}]]",
    "digit": r"\p{Nd}",
    "number": r"\p{N}",
    "space": r"\p{White_Space}",
    # Unassigned characters count as unsafe: another library's newer Unicode data may know them.
    "nfc_unsafe": (
        r"(?V1)[\p{NFC_Quick_Check=No}\p{NFC_Quick_Check=Maybe}\p{Cn}[\P{Canonical_Combining_Class=0}]]"
    ),
}
CHARACTERS = [chr(code) for code in (*range(0xD800), *range(0xE000, CODE_POINTS))]


def collected():
    """Return all ranges, flattened."""
    members = {
        name: {one for one in CHARACTERS if regex.match(pattern, one)}
        for name, pattern in PATTERNS.items()
    }
    members["nfc_newer"] = members["nfc_unsafe"] - known_to_tokenizers()
    assert unicodedata.unidata_version == "14.0.0", "write the file with Python 3.11"
    members["unsettled"] = {
        one
        for one in CHARACTERS
        if not regex.match(rf"\p{{{unicodedata.category(one)}}}", one)
        or unicodedata.category(one) == "Cn"
    }
    return {name: edges({ord(one) for one in found}) for name, found in members.items()}


def known_to_tokenizers():
    """Return the characters for which the NFC of ``tokenizers`` does something.

    It puts marks (combining class 1 to 239) before U+0345 (240); it takes a composed character
    apart, or changes it; it composes a character with the one before it.
    """
    composed, apart = normalizers.NFC().normalize_str, normalizers.NFD().normalize_str
    known = {"\u0345"}
    for character in CHARACTERS:
        pieces = apart(character)
        if pieces != character:
            known |= {character, *pieces[1:]}
        elif composed(f"a\u0345{character}") != f"a\u0345{character}":
            known.add(character)
    return known


def edges(codes):
    """Return the half-open ranges that hold the code points, flattened."""
    firsts = sorted(code for code in codes if code - 1 not in codes)
    lasts = sorted(code + 1 for code in codes if code + 1 not in codes)
    return list(itertools.chain.from_iterable(zip(firsts, lasts, strict=True)))


if __name__ == "__main__":
    source = f"Unicode data of the regex package {regex.__version__}"
    data = {"source": source, "ranges": collected()}
    RANGES_FILE.write_text(json.dumps(data, separators=(",", ":")) + "\n", "ascii")
