"""Find the numbers of one text: ``extract``, and the grammar as one regular expression.

A short text is read by that expression, so that nothing has to be compiled and Numba and Arrow need
not be loaded. It is the readable reference of the rules in :mod:`numtok.numbers.grammar`, whose
letters A to D are used here, and knows nothing of bytes. The fast scanner is tested against it.

The rules stand in four more places, each of which says why: compiled, in :mod:`numtok.numbers.rules`
and the short way of :mod:`numtok.numbers.scanner`; for text and numbers that a model writes token by
token, in :mod:`numtok.numbers.text_boundaries` and :mod:`numtok.representations.symbol_grammar`.
``tests/support/grammar_examples.py`` has examples that all of them are held to, and says where they
differ.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from numtok.errors import InputError
from numtok.numbers.grammar import (
    ARABIC_COMMA,
    ARABIC_POINT,
    CURRENCY_CODES,
    CURRENCY_SIGNS,
    FRACTIONS,
    GROUPING_CHARACTERS,
    MAX_EXPONENT_DIGITS,
    UNITS,
    Grammar,
    check_grammar,
    separators_of,
)
from numtok.numbers.number import Number

SHORT_TEXT = 1000  # characters; the scanner is faster for more

SIGN = r"[-+\u2212]"
HEXADECIMAL = "[0-9A-Fa-f]"
NEVER = "(?!)"  # a part that the grammar switches off

# These stand for all characters of their kind beyond ASCII, see _StandIns.
ARABIC_ZERO, SOME_LETTER, SOMETHING_ELSE = 0x660, "é", "·"
CURRENCY, FRACTION = "$", "½"
DIGIT = r"[0-9\u0660-\u0669]"
ZERO = r"[0\u0660]"
LETTER = r"[A-Za-z_é\u00b5\u03bc]"  # two of which are micro
WORD = r"[0-9\u0660-\u0669A-Za-z_é\u00b5\u03bc]"

# C: letters that are no word, and hide no digits after them
ESCAPE = r"\\ [uUx] [A-Fa-f]*"  # \x41, \u2019
COMMAND = rf"(?: \\ [A-Za-z]{{2,}} (?<! {ESCAPE} ) | \{CURRENCY} [A-Z]{{1,3}} )"
DATE = rf"(?<! {WORD} ) [0-9]{{4}} - [0-9]{{2}} - [0-9]{{2}}"
HOUR = "[0-9]{2} :"


def extract(text: str, grammar: Grammar | str | None = None) -> list[Number]:
    """Find all numbers in one text: each as written, with its span in characters and exact value.

    Args:
        text: of any length.
        grammar: what counts as a number, or its name, ``"european"``; ``Grammar()`` if not given.

    Examples:
        >>> [(number.text, number.value) for number in extract("pH 7.4 at -12.5e-3")]
        [('7.4', Decimal('7.4')), ('-12.5e-3', Decimal('-0.0125'))]

    Raises:
        InputError: for anything but a str, or a lone surrogate in it.
        GrammarError: if a user's pattern matches something that does not read as a decimal number.
    """
    if not isinstance(text, str):
        raise InputError(f"expected one str, got {type(text).__name__}; scan takes many texts")
    grammar = check_grammar(grammar)
    surrogates = not text.isascii() and re.search("[\ud800-\udfff]", text)  # scan has the error
    if len(text) <= SHORT_TEXT and grammar.pattern is None and not surrogates:
        return list(read(text, grammar))
    from numtok.numbers.scan import scan

    return list(scan([text], grammar))


def read(text: str, grammar: Grammar) -> Iterator[Number]:
    """Yield the numbers of one text by the regular expression, for a grammar without a user's
    pattern.
    """
    numerals, uuid = _patterns(grammar)
    kinds = text if text.isascii() else text.translate(_stand_ins(grammar.unicode_digits))
    uuids = [match.span() for match in uuid.finditer(kinds)]
    starts = [start for start, _ in uuids]
    at = 0
    while match := numerals.search(kinds, at):
        at, digit = match.end(), match.start("digit")
        before = bisect.bisect_right(starts, digit) - 1
        if before >= 0 and digit < uuids[before][1]:
            at = uuids[before][1]  # go on after the UUID
        elif match["after_letter"] is None and match["hexadecimal"] is None and not match["glued"]:
            yield from _numbers_of(match, text, grammar)


def _numbers_of(match: Any, text: str, grammar: Grammar) -> Iterator[Number]:
    """Yield the numerals of one run; none if one of them cannot be held or is an address (D)."""
    spans = match.spans("number")
    literals = [_literal(match.string[start:stop], grammar) for start, stop in spans]
    if any(_is_too_large(literal) for literal in literals):
        return
    if any(_is_address(text[start:stop]) for start, stop in spans):
        return
    values = [Decimal(literal) for literal in literals]
    in_parentheses = match["opens"] is not None and match["closes"] is not None
    if grammar.accounting and in_parentheses and match["sign"] is None and len(spans) == 1:
        spans, values = [(spans[0][0] - 1, spans[0][1] + 1)], [values[0].copy_negate()]
    for (start, stop), value in zip(spans, values, strict=True):
        yield Number(text[start:stop], start, stop, value)


class _StandIns(dict[int, str]):
    """For ``str.translate``: digits beyond ASCII become Arabic ones of the same value, letters one
    letter, and what the grammar does not know one other character.
    """

    def __init__(self, unicode_digits: bool) -> None:
        from numtok.arrays.unicode_classes import ranges

        self.edges = {name: list(itertools.chain(*ranges()[name])) for name in ("digit", "letter")}
        self.unicode_digits = unicode_digits
        with_roles = (*map(chr, range(128)), *"\u2212\u00b5\u03bc", ARABIC_POINT, ARABIC_COMMA)
        for character in (*with_roles, *GROUPING_CHARACTERS):
            self[ord(character)] = character
        for kind, edges in ((CURRENCY, CURRENCY_SIGNS), (FRACTION, FRACTIONS)):
            self |= dict.fromkeys(itertools.chain(*itertools.starmap(range, edges)), kind)

    def __missing__(self, code: int) -> str:
        at = {name: bisect.bisect_right(edges, code) for name, edges in self.edges.items()}
        if at["digit"] % 2 and self.unicode_digits:
            value = (code - self.edges["digit"][at["digit"] - 1]) % 10
            kind = chr(ARABIC_ZERO + value)
        else:
            kind = SOME_LETTER if at["digit"] % 2 or at["letter"] % 2 else SOMETHING_ELSE
        self[code] = kind
        return kind


_stand_ins = functools.cache(_StandIns)


@functools.cache
def _patterns(grammar: Grammar) -> tuple[Any, Any]:
    """Return (one run of joined numerals with what is glued to it, a UUID), for text of stand-ins."""
    import regex

    mark = rf"[{regex.escape(grammar.decimal)}{ARABIC_POINT}]"
    sign = (
        rf"(?<! {WORD} | [)\]}}%.{ARABIC_POINT}] | {SIGN} ) {SIGN}" if grammar.signs else NEVER
    )  # B
    before_point = (
        rf"(?: (?<! {WORD} | \. | {mark} ) | (?= {mark} {DIGIT} ) (?<= {COMMAND} ) )"  # C
    )
    point = f"{before_point} {mark}" if grammar.leading_dot else NEVER  # A
    letters = grammar.exponents if grammar.exponent else ""
    exponent = f"[{letters}] {SIGN}?+ {DIGIT}++" if letters else NEVER
    others = [f"[eE] {SIGN} {DIGIT}++"] if not letters else []
    if "d" not in letters:
        others.append(f"[dD] {SIGN} {DIGIT}++ (?! {LETTER} )")  # 2D-3D is 2 and 3
    other_exponent = f"{mark}?+ (?: {' | '.join(others) or NEVER} )"
    codes = f"(?<! {WORD} ) (?: {'|'.join(CURRENCY_CODES)} )" if grammar.currency_codes else NEVER
    no_word = f"(?<= {COMMAND} | {codes} ) | (?<= {DATE} T ) (?= {HOUR} )"
    in_word = f"(?<= {LETTER} ) (?! {no_word} )"
    grouped = "|".join(_grouped(one, grammar, in_word) for one in separators_of(grammar))
    unit = f"(?: {'|'.join(UNITS)} ) [23] (?! {WORD} | (?: \\. | {mark} ) {DIGIT} )"
    # Possessive quantifiers throughout: a numeral is read to its end or not at all.
    numeral = (
        rf"(?: {grouped or NEVER} | {DIGIT}++ )"
        rf" (?: {mark} {DIGIT}++ (?: {exponent} )?+ | {mark}?+ {exponent} )?+"
    )
    lone_zero = "(?P<zero> 0 (?= [xX] ) )"

    run = rf"""
        (?P<opens> (?<= (?<! {WORD} ) \( ) )?+             # accounting: "(" not after a word character
        (?P<number>
            (?P<sign> {sign} )?+
            (?: {point} (?P<digit>) {DIGIT}++ (?: {exponent} )?+
            |   (?P<digit>) (?P<after_letter>       # C: read to its end, left alone
                    (?= {DIGIT} ) {in_word}
                )?+
                (?: {lone_zero} | {numeral} )
            )
        )
        (?: (?(zero) {NEVER} ) x (?P<number> {lone_zero} | {numeral} ) )*+  # 10x6; not past the 0 of 0x6
        (?P<hexadecimal> (?(zero) (?= [xX] {HEXADECIMAL} ) | {NEVER} ) )?+  # C: 0x1F
        (?P<closes> (?= \) ) )?+
        (?P<glued>                                  # D: 1.2.3, 7R32
            (?= {unit} | (?<= {DATE} ) T {HOUR} )   # 32m2; the T of 2019-09-01T10:38
        |   (?: (?: \. | {mark} ) {DIGIT}++ | {exponent} | {other_exponent} | {LETTER}++ {DIGIT}++
            |   {FRACTION}++ {DIGIT}*+
            )*+
        )
    """
    groups = "-".join(f"{HEXADECIMAL}{{{size}}}" for size in (8, 4, 4, 4, 12))
    uuid = f"(?<! {WORD} ) {groups} (?! {WORD} )"
    return regex.compile(run, regex.VERBOSE), regex.compile(uuid, regex.VERBOSE)


def _grouped(separator: str, grammar: Grammar, in_word: str) -> str:
    """Return the expression of digits that this separator groups, as part of a verbose expression."""
    group = rf"\U{ord(separator):08x}"

    def of(size: int) -> str:
        return f"{group} {DIGIT}{{{size}}}+ (?! {DIGIT} )"

    sizes = [f"{DIGIT}{{1,3}}+ (?: {of(3)} )++"]
    if grammar.lakhs:
        sizes.append(f"{DIGIT}{{1,2}}+ (?: {of(2)} )++ {of(3)}")
    not_zero = f"(?! {ZERO} )" if grammar.decimal == "," else f"(?! {ZERO} {group} )"
    not_after_letter = f"(?! {in_word} )" if separator == " " else ""
    return (
        rf"{not_after_letter} (?<! {DIGIT} {group} ) {not_zero}"
        rf" (?: {' | '.join(sizes)} ) (?! {group} {DIGIT} )"
    )


def _is_address(surface: str) -> bool:
    """Whether this is 192.168.100.200, which points might group too."""
    parts = surface.lstrip("-+\u2212").split(".")
    return len(parts) == 4 and all(
        part.isascii() and part.isdigit() and part[0] != "0" and int(part) <= 255 for part in parts
    )


def _literal(numeral: str, grammar: Grammar) -> str:
    """Return the numeral as ``Decimal`` reads it: ungrouped digits, a point as the decimal mark.

    >>> _literal("1.234,5", Grammar.european())
    '1234.5'
    """
    plain = numeral.translate(dict.fromkeys(map(ord, separators_of(grammar))))
    for mark, other in ((grammar.decimal, "."), (ARABIC_POINT, "."), ("\u2212", "-")):
        plain = plain.replace(mark, other)
    return plain.lower().replace("d", "e")


def _is_too_large(literal: str) -> bool:
    """Whether its exponent has more than 17 significant digits."""
    _, _, exponent = literal.partition("e")
    return exponent != "" and Decimal(exponent).copy_abs() >= 10**MAX_EXPONENT_DIGITS
