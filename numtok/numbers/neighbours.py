"""What text may stand beside a number so that it reads as that number: rules A to D of
:mod:`numtok.numbers.grammar` as an automaton, for text that is made piece by piece.

A state is how the text ends, named by a text that ends so: ``N`` is a number, ``0`` other digits,
``a`` a letter. ``-`` is a sign and ``.`` a decimal mark that a number would begin with; in ``a-``
and ``a.`` it would not. The same characters are the kinds of characters: ``e`` and ``x`` are
letters too, ``,`` groups digits, ``)`` is what no sign may follow, ``;`` is the point where the
comma is the decimal mark, the blank all others.

What depends on the digits is left open: whether a comma between numbers groups them (``1,234``) and
whether an ``x`` makes them hexadecimal (``0x7``). So are a sign that a number begins with after
``)``, parentheses in accounts, and UUIDs. Beside a user's pattern everything may stand.
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
from numtok.numbers.grammar import Grammar

# after any other text, and where the states below do not say: "!" is a digit after which a number
# would not read as it did
USUAL = {" ": " ", "0": "0", "a": "a", "e": "a", "x": "a", "-": "-", ".": ".", ",": " "}
USUAL |= {")": ")", ";": ";"}
NO_LETTERS = {"a": "Na", "e": "Na", "x": "Na"}
AFTER: dict[str, dict[str, str]] = {
    " ": {},
    "N": {"0": "!", "-": "a-", ".": "N.", ";": "N.", ",": "N,", "a": "Na", "e": "Ne", "x": "Nx"},
    "N.": {"0": "!", "-": "a-", ".": "a.", "e": "Ne"},  # 2.e+3
    "N,": {"0": "!"},
    "Nx": {"0": "!", "-": "a-", ".": "a."} | NO_LETTERS,  # a number may follow, as in 10x6
    "Na": {"0": "!", "-": "a-", ".": "a."} | NO_LETTERS,
    "Ne": {"0": "!", "-": "Ne-", ".": "a."} | NO_LETTERS,
    "Ne-": {"0": "!", "-": "a-"},
    "0": {"-": "a-", ".": "0.", ";": "0.", "e": "0e"},
    "0.": {"-": "a-", ".": "a.", "e": "0e"},
    "0e": {"-": "0e-", ".": "a."},
    "0e-": {"-": "a-"},
    "a": {"-": "a-", ".": "a."},
    ".": {"-": "a-", ".": "a."},
    "a.": {"-": "a-", ".": "a."},
    ";": {"-": "a-", ".": "a."},
    "-": {"-": "a-"},
    "a-": {"-": "a-"},
    ")": {"-": "a-"},
}
STATES = tuple(AFTER)
OTHER_TEXT, NUMBER = STATES.index(" "), STATES.index("N")
BEFORE_NUMBERS = (" ", "N,", "Nx", "a.", ";", "a-", ")")

Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


class Around(NamedTuple):
    """Distinct texts after each state."""

    which: Ints  # int64[texts], the distinct one that a text is like
    after: Ints  # int64[states, distinct], the state after it
    allowed: Mask  # bool[states, distinct], whether each number before it stays what it is


def may_begin(grammar: Grammar, carries_sign: bool = True) -> Mask:
    """bool[states]: where a number reads as itself, in the form without a space; ``carries_sign``:
    its sign belongs to it, so that it has none in the text before.
    """
    states = {*BEFORE_NUMBERS}
    if not (grammar.signs and carries_sign):
        states.add("-")
    if not grammar.leading_dot:
        states.add(".")
    return np.array([state in states for state in STATES])


def around(grammar: Grammar, texts: Sequence[str]) -> Around:
    """What follows these texts, after each state."""
    points = np.frombuffer("".join(texts).encode("utf-32-le"), np.uint32)
    kinds = _kinds(grammar)[points].tobytes().decode("ascii")
    ends = np.cumsum([len(text) for text in texts]).tolist()
    known: dict[str, int] = {}
    edges = zip([0, *ends[:-1]], ends, strict=True)
    each = (_shortened(kinds[first:end]) for first, end in edges)
    which = np.array([known.setdefault(one, len(known)) for one in each], np.int64)
    walked = [[_walk(state, one, grammar.decimal) for one in known] for state in STATES]
    after = [[STATES.index(state) for state, _ in row] for row in walked]
    allowed = [[stays for _, stays in row] for row in walked]
    shape = len(STATES), len(known)
    return Around(which, np.reshape(after, shape), np.reshape(allowed, shape))


def _walk(state: str, kinds: str, decimal: str) -> tuple[str, bool]:
    """(the state after these characters, whether each number before them stays what it is)."""
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
    """The same for every state: what is repeated, or within a word, says nothing new."""
    return re.sub("(?<=[aex])[aex]+", "a", re.sub(r"([ 0)])\1+", r"\1", kinds))


@functools.lru_cache(maxsize=4)
def _kinds(grammar: Grammar) -> npt.NDArray[np.uint8]:
    """uint8[0x110000], the kind of each character, as its code in ASCII."""
    table = np.full(CODE_POINTS, ord(" "), np.uint8)
    if grammar.pattern is not None:
        return table
    classes = character_classes(grammar.unicode_digits)
    for of, kind in ((LETTER, "a"), (SIGN, "-"), (BLOCKER, ")"), (DOT, ";")):
        table[classes == of] = ord(kind)
    table[classes >= DIGIT] = ord("0")
    table[ord("x")] = ord("x")
    if grammar.exponent:
        table[[ord("e"), ord("E")]] = ord("e")
    for mark in set(grammar.grouping or "") - {".", "_"}:  # which are a point and a letter
        table[ord(mark)] = ord(",")
    table[ord(grammar.decimal)] = ord(".")
    return table
