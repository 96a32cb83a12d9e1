"""The grammar once more, as one regular expression: slow, short, and the reference that the fast
scanner is held to.

In: one text and the options of a built-in :class:`numtok.Grammar`. Out: ``(start, stop, surface,
    value)`` of each number, in characters. Written from the rules in :mod:`numtok.numbers.grammar`;
    the letters A to D below are theirs. It knows nothing of bytes, and shares with the scanner only
    the Unicode ranges."""

from __future__ import annotations

import functools
from decimal import Decimal

import regex

from numtok import Grammar
from numtok.arrays.unicode_classes import ranges

Found = tuple[int, int, str, Decimal]

SIGN = r"[-+\u2212]"
HEXADECIMAL = "[0-9A-Fa-f]"
NEVER = "(?!)"  # a part that the grammar switches off


def _members(name: str) -> str:
    """One of the ranges of unicode_tables as the inside of a character class."""
    return "".join(rf"\U{first:08x}-\U{last - 1:08x}" for first, last in ranges()[name])


@functools.cache
def patterns(grammar: Grammar) -> tuple[regex.Pattern[str], regex.Pattern[str]]:
    """(one run of joined numerals with what is glued to it, a UUID)."""
    digits = _members("digit") if grammar.unicode_digits else "0-9"
    letters = (
        _members("letter") if grammar.unicode_digits else f"{_members('letter')}{_members('digit')}"
    )
    digit, letter = (
        f"[{digits}]",
        f"[{letters}]" if grammar.unicode_digits else f"(?:(?![0-9])[{letters}])",
    )
    word = f"[{letters}{digits}]"
    mark = regex.escape(grammar.decimal)
    grouped = (
        "|".join(
            _grouped(separator, grammar, digit, letter) for separator in grammar.grouping or ""
        )
        or NEVER
    )
    sign = rf"(?<! {word} | [)\]}}%.] | {SIGN} ) {SIGN}" if grammar.signs else NEVER  # B
    point = rf"(?<! {word} | \. | {mark} ) {mark}" if grammar.leading_dot else NEVER  # A
    exponent = f"[eE] {SIGN}?+ {digit}++" if grammar.exponent else NEVER
    # Possessive quantifiers throughout: a numeral is read to its end or not at all.
    numeral = (
        rf"(?: {grouped} | {digit}++ ) (?: {mark} {digit}++ (?: {exponent} )?+ | {mark}?+"
        rf" {exponent} )?+"
    )
    lone_zero = "(?P<zero> 0 (?= [xX] ) )"

    run = rf"""
        (?P<opens> (?<= (?<! {word} ) \( ) )?+                      # accounting: "(" not after a word character
        (?P<number>
            (?P<sign> {sign} )?+
            (?: {point} (?P<digit>) {digit}++ (?: {exponent} )?+
            |   (?P<digit>) (?P<after_letter> (?<= {letter} ) )?+   # C: read to its end, and left alone
                (?: {lone_zero} | {numeral} )
            )
        )
        (?: (?(zero) {NEVER} ) x (?P<number> {lone_zero} | {numeral} ) )*+      # 10x6, but not past the lone 0 of 0x6
        (?P<hexadecimal> (?(zero) (?= [xX] {HEXADECIMAL} ) | {NEVER} ) )?+      # C: 0x1F
        (?P<closes> (?= \) ) )?+
        (?P<glued> (?: (?: \. | {mark} ) {digit}++ | {exponent} | {letter}++ {digit}++ )*+ )   # D: 1.2.3, 1e5e3, 7R32
    """
    uuid = (
        f"(?<! {word} ) {'-'.join(f'{HEXADECIMAL}{{{size}}}' for size in (8, 4, 4, 4, 12))} (?!"
        f" {word} )"
    )
    return regex.compile(run, regex.VERBOSE), regex.compile(uuid, regex.VERBOSE)


def _grouped(separator: str, grammar: Grammar, digit: str, letter: str) -> str:
    """Digits that this separator groups, as part of a verbose expression."""
    group = rf"\U{ord(separator):08x}"
    sizes = [f"{digit}{{1,3}}+ (?: {group} {digit}{{3}}+ (?! {digit} ) )++"]
    if grammar.lakhs:
        sizes.append(
            f"{digit}{{1,2}}+ (?: {group} {digit}{{2}}+ (?! {digit} ) )++ {group} {digit}{{3}}+ (?!"
            f" {digit} )"
        )
    not_zero = "(?! 0 )" if grammar.decimal == "," else ""
    not_after_letter = f"(?<! {letter} )" if separator == " " else ""
    return (
        rf"{not_after_letter} (?<! {digit} {group} ) {not_zero} (?: {' | '.join(sizes)} ) (?!"
        rf" {group} {digit} )"
    )


def is_address(surface: str) -> bool:
    """Whether this is 192.168.100.200, which points might group too."""
    parts = surface.lstrip("-+\u2212").split(".")
    return len(parts) == 4 and all(
        part.isascii() and part.isdigit() and part[0] != "0" and int(part) <= 255 for part in parts
    )


def find_numbers(text: str, grammar: Grammar) -> list[Found]:
    """All numbers in ``text``: (start, stop, surface, value)."""
    run, uuid = patterns(grammar)
    uuids = [match.span() for match in uuid.finditer(text)]
    found: list[Found] = []
    at = 0
    while match := run.search(text, at):
        at = match.end()
        if within := [stop for start, stop in uuids if start <= match.start("digit") < stop]:
            at = within[0]  # go on after the UUID
            continue
        if match["after_letter"] is not None or match["hexadecimal"] is not None or match["glued"]:
            continue
        spans = match.spans("number")
        if any(is_address(text[start:stop]) for start, stop in spans):
            continue
        values = [value_of(text[start:stop], grammar) for start, stop in spans]
        in_parentheses = (
            match["opens"] is not None and match["closes"] is not None and match["sign"] is None
        )
        if grammar.accounting and in_parentheses and len(spans) == 1 and values[0] is not None:
            spans, values = [(spans[0][0] - 1, spans[0][1] + 1)], [values[0].copy_negate()]
        # D: one literal that cannot be held, and the whole run is left alone
        found += [
            (start, stop, text[start:stop], value)
            for (start, stop), value in zip(spans, values, strict=True)
            if value is not None and None not in values
        ]
    return found


def value_of(surface: str, grammar: Grammar) -> Decimal | None:
    """The exact value, or ``None`` if its exponent has more than 17 significant digits."""
    plain = surface.translate(dict.fromkeys(map(ord, grammar.grouping or ""))).replace(
        grammar.decimal, "."
    )
    plain = plain.replace("\u2212", "-").lower().translate(digit_values())
    _, _, exponent = plain.partition("e")
    if exponent and abs(Decimal(exponent)) >= 10**17:
        return None
    return Decimal(plain)


@functools.cache
def digit_values() -> dict[int, str]:
    """The ASCII digit for each decimal digit; ``Decimal`` reads other scripts too, but only those
    that this version of Python knows.
    """
    return {
        code: str((code - first) % 10)
        for first, last in ranges()["digit"]
        for code in range(first, last)
    }
