"""Numbers as answers write them, read exactly: with signs, thousands, currency, per cent, fractions,
powers of ten and scale words, in plain text and in LaTeX.

The rules for what is a number are those of :mod:`numtok.numbers.grammar` (digits after a letter,
versions, addresses and hashes are none), as one regular expression.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

from numtok.score.policy import Policy, policy_named

MOST_DIGITS = 4_000  # of a fraction or a power; longer ones are not read
_EXACT = Context(prec=999_999_999_999, Emax=999_999_999_999_999_999, Emin=-999_999_999_999_999_999)
_SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_SHORT_SCALES = {"k": 3, "K": 3, "M": 6, "m": 6, "B": 9, "b": 9, "bn": 9, "T": 12}
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_FRACTIONS = "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞⅐⅑⅒"

# word characters, but not of scripts that are written without spaces between words
_LETTER = (
    r"[^\W\d\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
    r"\uac00-\ud7af\uf900-\ufaff]"
)
_SIGN = r"[-+\u2212\uff0d]"
_CURRENCY = r"(?:US|A|C|NZ|HK|S)?\\?\$|[€£¥₹₩₽₺₫₦฿₱]|(?:USD|EUR|GBP|Rs\.?|INR|CHF)[ ]?"
_COMMAND = r"\\[dtc]?frac"


@dataclass(frozen=True, slots=True)
class Answer:
    """A number in a text.

    Attributes:
        value: the exact value, a Fraction if it is written as one, else a Decimal.
        text: the number as written.
        start, stop: its place in the text, in characters.
        percent: whether it is a percentage.
        currency: the currency as written, or an empty string.
        unit: the word after the number, or an empty string.
    """

    value: Decimal | Fraction
    text: str
    start: int
    stop: int
    percent: bool = False
    currency: str = ""
    unit: str = ""


def read_numbers(text: str, policy: Policy | str = "default") -> list[Answer]:
    """Every number of a text, in order; those that cannot be had (x/0, a power of more than
    ``MOST_DIGITS`` digits) are left out.
    """
    return list(iterate_numbers(text, policy_named(policy)))


def iterate_numbers(
    text: str, policy: Policy, start: int = 0, stop: int | None = None
) -> Iterator[Answer]:
    """Every number of a stretch."""
    for match in _pattern(policy).finditer(text, start, len(text) if stop is None else stop):
        value = _value(match, policy)
        if value is not None:
            yield Answer(
                value,
                match[0],
                match.start(),
                match.end(),
                match["percent"] is not None,
                (match["currency"] or match["behind"] or "").strip().replace("\\", ""),
                _unit(text, match.end()) if match["percent"] is None else "",
            )


@functools.cache
def _pattern(policy: Policy) -> re.Pattern[str]:
    """One number under a policy."""
    point, groups = (r"\.", [","]) if policy.thousands != "point" else (",", [r"\.", "'", "\u2019"])
    groups += ["[\u00a0\u2009\u202f]"]
    groups += [r",\\!", r"\{,\}", r"\\,"] if policy.latex and point == r"\." else []
    if policy.thousands == "none":
        groups = ["(?!)"]
    separator = f"(?:{'|'.join(sorted(groups, key=len, reverse=True))})"
    grouped = rf"(?<!\d[,.'])\d{{1,3}}(?:{separator}\d{{3}})++(?!\d|{separator}\d)"
    whole = rf"(?:{grouped}|\d++)"
    decimal = rf"(?:{whole}(?:{point}(?:\d++|(?=[eE]{_SIGN}?\d)))?+|(?<![\w.]){point}\d++)(?:[eE]{_SIGN}?+\d++)?+"
    power = (
        r"(?:\^\s*+(?:\{\s*+)?+[-+\u2212]?+\d++(?:\s*+\})?+|\*\*[-+]?+\d++|[⁻⁺]?+[⁰¹²³⁴⁵⁶⁷⁸⁹]++)"
    )
    raised = r"(?<!\S\^)(?<![_^]\{)" if policy.latex else ""
    power = power if policy.latex else "(?!)"
    argument = r"(?:\{\s*+\d++\s*+\}|\d)"
    if policy.fractions:
        latex = rf"{_COMMAND}\s*+(?P<over>{argument})\s*+(?P<under>{argument})"
        latex = latex if policy.latex else "(?P<over>(?!))(?P<under>)"
        fraction = (
            rf"(?P<mixed>\d++\s*+(?={_COMMAND}|[{_FRACTIONS}])|\d++\s++(?=\d++/\d))?+"
            rf"(?:{latex}|(?P<vulgar>[{_FRACTIONS}])"
            rf"|(?<!/)(?P<top>\d++)/(?P<bottom>\d++)(?![./]\d|\d|{separator}\d))|"
        )
    else:
        fraction = "(?P<mixed>(?!))(?P<over>)(?P<under>)(?P<vulgar>)(?P<top>)(?P<bottom>)|"
    times = r"\s*+(?:\\times|\\cdot|[×·xX*])\s*+10\s*+" if policy.latex else r"\s*+[×·x*]\s*+10"
    scale = "|".join(_SCALES) if policy.scales else "(?!)"
    kilo = "[kK]" if policy.scales else "(?!)"
    short = "|".join(sorted(_SHORT_SCALES, key=len, reverse=True)) if policy.scales else "(?!)"
    money = _CURRENCY.replace("[ ]", r"[\ ]")
    return re.compile(
        rf"""
        (?: (?<!{_LETTER})(?<!\d)(?<!\d{point}){raised} | (?<=\dx)(?<!(?<!\d)0x) | (?<=\\frac) )
        (?P<sign> (?<![\w)\]}}%.])(?<!{_SIGN}) {_SIGN}(?:(?<=[{{$=(].)\s*+)?+(?={money}|\\|\d|{point}\d|[{_FRACTIONS}])
          | \bnegative\s++ )?+
        (?P<currency> {money} )?+ (?(currency)\s*+(?P<second>{_SIGN}(?=\d))?+)
        (?!0[xX][0-9A-Fa-f])
        (?: {fraction} (?P<decimal>{decimal})
            (?: {times}(?P<ten>{power}) | (?P<power>{power}) )?+ )
        (?! {point}\d | (?!x\d){_LETTER}++\d )
        (?: \s*+(?P<percent>\\?% | ％ | (?i:per\s?cent)\b )
          | (?(currency)(?P<short>{short})\b | (?P<thousand>{kilo})\b )
          | (?: [ ]|-|\\[ ]|~ )?+(?:(?<=[\d ~-])|\\text\{{\s*+)(?P<scale>(?i:{scale}))s?\b
        )?+
        (?P<behind> \s?[€£] )?+
        """,
        re.VERBOSE,
    )


def _value(match: re.Match[str], policy: Policy) -> Decimal | Fraction | None:
    """The exact value of a match of :func:`_pattern`."""
    part = match.groupdict()
    value: Decimal | Fraction | None
    if part["decimal"] is not None:
        value = _decimal(part["decimal"], policy)
        if value is not None and part["ten"] is not None:
            exponent = _int(part["ten"])
            value = None if exponent is None else _shifted(value, exponent)
        elif value is not None and part["power"] is not None:
            value = _power(value, _int(part["power"]))
    else:
        value = _fraction(part)
    short = _SHORT_SCALES.get(part["short"] or part["thousand"] or "", 0)
    shift = _SCALES.get((part["scale"] or "").lower(), short)
    if shift and value is not None:
        value = value * 10**shift if isinstance(value, Fraction) else _shifted(value, shift)
    if value is None:
        return None
    negative = [part["sign"], part["second"]]
    if any(sign and sign.strip() != "+" for sign in negative):
        return -value if isinstance(value, Fraction) else value.copy_negate()
    return value


def _decimal(written: str, policy: Policy) -> Decimal | None:
    mark = "," if policy.thousands == "point" else "."
    whole, point, rest = written.partition(mark)
    if mark == "." and "," in rest:
        return None
    digits = re.sub(r"[^\deE+\-\u2212\uff0d]", "", whole) + ("." + rest if point else "")
    try:
        return _EXACT.create_decimal(digits.replace("\u2212", "-").replace("\uff0d", "-"))
    except ArithmeticError:  # an exponent beyond any
        return None


def _shifted(value: Decimal, exponent: int) -> Decimal | None:
    return value.scaleb(exponent, _EXACT) if abs(exponent) < 10**17 else None


def _int(written: str) -> int | None:
    """An exponent, however it is raised."""
    digits = re.sub(r"[^\d+-]", "", written.translate(_SUPERSCRIPTS).replace("\u2212", "-"))
    return int(digits) if len(digits) <= 18 else None


def _power(base: Decimal, exponent: int | None) -> Decimal | Fraction | None:
    _, digits, shift = base.as_tuple()
    if exponent is None or not isinstance(shift, int):
        return None
    if max(len(digits), abs(base.adjusted())) * abs(exponent) > MOST_DIGITS:
        return None
    if exponent < 0:
        return Fraction(base) ** exponent if base else None
    whole = int("".join(map(str, digits))) ** exponent
    return Decimal(whole).scaleb(shift * exponent, _EXACT)


def _fraction(part: dict[str, str | None]) -> Fraction | None:
    if part["vulgar"]:
        value = Fraction(unicodedata.numeric(part["vulgar"])).limit_denominator(10)
    else:
        above = re.sub(r"\D", "", part["over"] or part["top"] or "")
        below = re.sub(r"\D", "", part["under"] or part["bottom"] or "")
        if len(above) + len(below) > MOST_DIGITS or not int(below):
            return None
        value = Fraction(int(above), int(below))
    return value + int(part["mixed"]) if part["mixed"] else value


_UNIT = re.compile(
    r"(?:\s|~|\\[ ,;]|-)*+(?:\\(?:text|mathrm|mbox|textrm)\s*+\{\s*+)?+"
    r"(?P<unit>(?:[^\W\d_]|[°µ])(?:[^\W\d_]|[/²³])*|\^\s*\{?\\circ\}?)"
)


def _unit(text: str, stop: int) -> str:
    """The word after a number, in the singular."""
    match = _UNIT.match(text, stop)
    unit = match["unit"] if match else ""
    if "circ" in unit:
        return "°"
    return unit[:-1] if len(unit) > 2 and unit.endswith("s") else unit
