"""Text that may stand beside a number so that the number reads the same: rules A to D of
:mod:`numtok.numbers.grammar` as an automaton, for text that is made piece by piece.

The rules are said again here because a model writes text token by token: before a token is chosen,
the automaton tells whether every number before it stays what it is, and whether a number may
follow. :func:`numtok.extract` needs the whole text.

A state is how the text ends, named by a text that ends so: ``N`` is a number, ``0`` other digits,
``a`` a letter. ``-`` is a sign and ``.`` a decimal mark that a number would begin with; in ``a-``
and ``a.`` it would not. ``\\ab`` is a LaTeX command, ``\\u`` what may become an escape, ``$A`` a
capital after a currency sign.

The automaton, without what ``AFTER`` says of rarer characters; every state that has no arrow for a
blank leads to the first one with it::

    blank --number--> N --e-------> Ne --- - --> Ne-     text with digits may follow none of the N,
      |               |-- . ------> N. --e-----> Ne      another number only N, and Nx
      |               |-- , ------> N, --number--> N     (1,234 is one number: digits decide)
      |               |-- ' ------> N'
      |               |-- x ------> Nx --number--> N     10x6
      |               +--letter---> Na --letter--> Na    5km
      |--letter--> a --digit--> 0 --e--> 0e --- - --> 0e-    B2B: no number may follow these
      |-- \\ --> \\ --letter--> \\a --letter--> \\ab --number--> N    \\pm5
      |-- $ --> $ --capital--> $A --number--> N          $US5
      +-- - or . --number--> N                           -5, .5; a- and a. are these after a letter

Characters are of these kinds:

======= ==================================================================
kind    characters
======= ==================================================================
e E     letters that may begin an exponent: e and d
h H     the other hexadecimal letters
x u U   letters that begin an escape after a backslash
l L     all other letters of ASCII; upper case is a capital
a       letters beyond ASCII, and ``_``
,       the comma, if it groups digits
'       any other character that groups digits
)       a character that no sign may follow
;       the point where the comma is the decimal mark
/       a fraction such as ½
\\ $    the backslash; a currency sign
blank   all others
======= ==================================================================

What depends on the digits is left open: whether a comma between numbers groups them (``1,234``) and
whether an ``x`` makes them hexadecimal (``0x7``). So are a sign that a number begins with after
``)``, parentheses in accounts, and UUIDs. Where only the characters within a word would tell
(``32m2``, ``USD5``, the T of a time), no digit may follow. Beside a user's pattern everything may
stand.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays.unicode_classes import (
    BLOCKER,
    CODE_POINTS,
    DIGIT,
    DOT,
    LETTER,
    SIGN,
    character_classes,
)
from numtok.numbers.grammar import (
    ARABIC_POINT,
    CURRENCY_SIGNS,
    FRACTIONS,
    Grammar,
    separators_of,
)

# after any other text, and where the states below do not say: "!" is a digit after which a number
# would not read as it did
LETTERS, CAPITALS = "aehxulEHUL", "EHUL"
USUAL = {kind: kind for kind in " 0-.);\\$"} | {kind: "a" for kind in LETTERS}
USUAL |= {",": " ", "'": " ", "/": " "}
AFTER_LETTERS = {"-": "a-", ".": "a."}
NO_LETTERS = dict.fromkeys(LETTERS, "Na") | AFTER_LETTERS | {"0": "!"}
COMMAND, ESCAPE = dict.fromkeys(LETTERS[1:], "\\ab"), dict.fromkeys("ehEH", "\\u")
EXPONENT, DIGITS_EXPONENT = dict.fromkeys("eE", "Ne"), dict.fromkeys("eE", "0e")
AFTER: dict[str, dict[str, str]] = {
    " ": {},
    "N": NO_LETTERS | EXPONENT | {"x": "Nx", ".": "N.", ";": "N.", ",": "N,", "'": "N'", "/": "!"},
    "N.": {"0": "!", "-": "a-", ".": "a."} | EXPONENT,  # 2.e+3
    "N,": {"0": "!"},
    "N'": {"0": "!"},
    "Nx": NO_LETTERS,  # a number may follow, as in 10x6
    "Na": NO_LETTERS,
    "Ne": NO_LETTERS | {"-": "Ne-"},
    "Ne-": {"0": "!", "-": "a-"},
    "0": {"-": "a-", ".": "0.", ";": "0.", "'": "0'", "/": "0/"} | DIGITS_EXPONENT,
    "0.": {"-": "a-", ".": "a."} | DIGITS_EXPONENT,
    "0'": {},
    "0/": {".": "0.", ";": "0.", "/": "0/"} | DIGITS_EXPONENT,
    "0e": {"-": "0e-", ".": "a."},
    "0e-": {"-": "a-"},
    "a": AFTER_LETTERS,
    "\\": COMMAND | dict.fromkeys("ehlEHL", "\\a") | dict.fromkeys("xuU", "\\u"),
    "\\a": COMMAND | AFTER_LETTERS,
    "\\u": COMMAND | ESCAPE | AFTER_LETTERS,
    "\\ab": COMMAND | {"-": "a-"},
    "$": dict.fromkeys(CAPITALS, "$A"),
    "$A": dict.fromkeys(CAPITALS, "$AA") | {"-": "a-"},
    "$AA": dict.fromkeys(CAPITALS, "$AAA") | {"-": "a-"},
    "$AAA": {"-": "a-"},
    ".": AFTER_LETTERS,
    "a.": AFTER_LETTERS,
    ";": AFTER_LETTERS,
    "-": {"-": "a-"},
    "a-": {"-": "a-"},
    ")": {"-": "a-"},
}
STATES = tuple(AFTER)
OTHER_TEXT, NUMBER = STATES.index(" "), STATES.index("N")
# where a number may begin: with whatever it begins with; without a sign; with a digit alone
WITH_SIGN = (" ", "N,", "\\", "$")
WITH_MARK = (*WITH_SIGN, "a-", ")", "\\ab", "$A", "$AA", "$AAA")
WITH_DIGIT = (*WITH_MARK, "Nx", "a.", ";")

Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


class Around(NamedTuple):
    """Distinct texts after each state."""

    which: Ints  # int64[texts], the distinct one that a text is like
    after: Ints  # int64[states, distinct], the state after it
    allowed: Mask  # bool[states, distinct], whether each number before it stays what it is


class Begins(NamedTuple):
    """Where a number that begins with a digit, with its decimal mark or with a sign reads as itself:
    bool[states] each.
    """

    digit: Mask
    mark: Mask
    sign: Mask


def may_begin(grammar: Grammar, carries_sign: bool = True) -> Begins:
    """Return where a number may begin, in the form without a space.

    ``carries_sign``: the sign belongs to the number, so that the text before it has none.
    """
    digit, mark, sign = {*WITH_DIGIT}, {*WITH_MARK}, {*WITH_SIGN}
    if not (grammar.signs and carries_sign):
        digit.add("-")
        mark.add("-")
    if not grammar.leading_dot:
        digit.add(".")
    return Begins(*(np.array([state in some for state in STATES]) for some in (digit, mark, sign)))


def around(grammar: Grammar, texts: Sequence[str]) -> Around:
    """Return the states after each of the texts, from every state."""
    points = np.frombuffer("".join(texts).encode("utf-32-le"), np.uint32)
    kinds = character_kinds(grammar)[points].tobytes().decode("ascii")
    ends = np.cumsum([len(text) for text in texts]).tolist()
    place_of: dict[str, int] = {}
    edges = zip([0, *ends[:-1]], ends, strict=True)
    each = (_shortened(kinds[first:end]) for first, end in edges)
    which = np.array([place_of.setdefault(one, len(place_of)) for one in each], np.int64)
    walked = [[walk(state, one, grammar.decimal) for one in place_of] for state in STATES]
    after = [[STATES.index(state) for state, _ in row] for row in walked]
    allowed = [[stays for _, stays in row] for row in walked]
    shape = len(STATES), len(place_of)
    return Around(which, np.reshape(after, shape), np.reshape(allowed, shape))


def walk(state: str, kinds: str, decimal: str) -> tuple[str, bool]:
    """Return (the state after these characters, whether each number before them stays what it is)."""
    stays = True
    for kind in kinds:
        following = AFTER[state].get(kind, USUAL[kind])
        if decimal == "," and kind == "-" and state.endswith("."):
            following = "-"  # a sign may stand behind a comma
        stays = stays and following != "!"
        state = "0" if following == "!" else following
    return state, stays


@functools.lru_cache(maxsize=10_000)
def _shortened(kinds: str) -> str:
    """Drop characters that change no state: repeated ones, and those within a word."""
    return re.sub(f"[{LETTERS}]{{2,}}", shortened_word, re.sub(r"([ 0)])\1+", r"\1", kinds))


def shortened_word(run: re.Match[str]) -> str:
    """Return two letters that have the effect of the run: the first says whether an exponent or an
    escape begins, the other whether the rest are hexadecimal, and whether all are ASCII. Up to
    three capitals stay as many.
    """
    first, others = run[0][0], run[0][1:]
    if len(others) < 3 and set(run[0]) <= set(CAPITALS):
        return run[0]
    if "a" in run[0]:
        return first + "a"
    return first + ("h" if set(others) <= set("ehEH") else "l")


@functools.lru_cache(maxsize=4)
def character_kinds(grammar: Grammar) -> npt.NDArray[np.uint8]:
    """Return uint8[0x110000], the kind of each character, as its code in ASCII."""
    table = np.full(CODE_POINTS, ord(" "), np.uint8)
    if grammar.pattern is not None:
        return table
    classes = character_classes(grammar.unicode_digits)
    for of, kind in ((LETTER, "a"), (SIGN, "-"), (BLOCKER, ")"), (DOT, ";")):
        table[classes == of] = ord(kind)
    table[classes >= DIGIT] = ord("0")
    for capitals, kind in (("AZ", "L"), ("AF", "H"), ("DE", "E"), ("UU", "U")):
        first, last = map(ord, capitals)
        table[first : last + 1] = ord(kind)
        table[first + 32 : last + 33] = ord(kind.lower())
    table[ord("x")] = ord("x")
    for kind, edges in (("$", CURRENCY_SIGNS), ("/", FRACTIONS)):
        for first, last in edges:
            table[first:last] = ord(kind)
    table[ord("\\")] = ord("\\")
    for mark in set(separators_of(grammar)) - {".", "_"}:  # which are a point and a letter
        table[ord(mark)] = ord("," if mark == "," else "'")
    table[[ord(grammar.decimal), ord(ARABIC_POINT)]] = ord(".")
    return table
