"""Read numbers as answers write them, exactly: the numerals of :func:`numtok.numbers.extract.read`,
and what may stand around one: signs, currency, per cent, fractions, powers of ten and scale words,
in plain text and in LaTeX.

No rule of numerals is said again here: they are found by the expression of the policy's grammar,
so that a numeral is the same here and in :func:`numtok.extract`. Answers write more than numerals,
``2 1/2`` and ``$3.5 million``, and this module joins them to such numbers. The numerals are
replaced by characters that stand for their digits (the *skeleton* of the text, as long as the
text), and one regular expression says how they join.
"""

from __future__ import annotations

import bisect
import functools
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import NamedTuple

from numtok.numbers.extract import read
from numtok.numbers.number import Number
from numtok.score.policy import Policy, policy_named

MOST_DIGITS = 4_000  # of a fraction or a power; longer ones are not read
MOST_BLANK = 200  # characters between a line and the one that it follows
_EXACT = Context(prec=999_999_999_999, Emax=999_999_999_999_999_999, Emin=-999_999_999_999_999_999)
SCALES = {
    "hundred": 2,
    "thousand": 3,
    "million": 6,
    "billion": 9,
    "trillion": 12,
    "quadrillion": 15,
    "quintillion": 18,
    "lakh": 5,
    "crore": 7,
}
SCALES |= {  # of the other languages that answers are looked for in
    word: power
    for power, words in {
        3: "tausend tsd mille mila millier migliaia millar millares тыс тысяча тысячи тысяч"
        " हजार हज़ार",
        5: "lac लाख",
        6: "mio mln millionen millón millones milhão milhões milione milioni"
        " млн миллион миллиона миллионов",
        7: "करोड करोड़",
        9: "mrd bln mld milliard milliarde milliarden bilhão bilhões miliardo miliardi"
        " млрд миллиард миллиарда миллиардов",
        12: "billionen billón billones trilhão trilhões трлн триллион триллиона триллионов",
    }.items()
    for word in words.split(" ")
}
_HAN_SCALES = {"十": 1, "百": 2, "千": 3, "万": 4, "萬": 4, "亿": 8, "億": 8, "兆": 12}
_HAN_SCALES |= {"백": 2, "천": 3, "만": 4, "억": 8, "조": 12}
_SHORT_SCALES = {"k": 3, "K": 3, "M": 6, "m": 6, "B": 9, "b": 9, "bn": 9, "T": 12}
_SHORT_SCALES |= {"mn": 6, "Mn": 6, "MM": 6, "mm": 6, "tn": 12, "Cr": 7, "cr": 7}
_SHORT_SCALES |= {"mi": 6, "bi": 9, "tri": 12, "Md": 9, "Mds": 9}  # R$ 5 bi, 5 Mds €
_ANY_SCALE = re.compile("|".join(sorted(SCALES, key=len, reverse=True)))
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_FRACTIONS = "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞⅐⅑⅒"
_PERCENT = (
    r"\\?%|[％٪]|(?i:per\s?cent(?:age)?|pct|prozent|pour\scent|por\s(?:ciento|cento)|per\s?cento"
    r"|процент(?:а|ов)?)\b"
)
# formatting between a minus and its number, and between a number and its per cent or scale: -**5**,
# $-\mathbf{5}$, \boxed{5}\%, **$5.2** million
_OPENING = (
    r"(?:(?<!\s)(?:\*++|`|\$(?=\\)|\\\())?+"
    r"(?:\{|~|\\[,;:!\ ]|\\(?:text[a-z]*|math[a-z]+|boldsymbol|boxed|fbox)\s?\{\s?)*+"
)
_CLOSING = r"(?:[*_`}$]|\\[,)])*+"
_CURRENCY = (
    r"(?:US|AU?|CA?|NZ|HK|SG?|R)?\\?\$|[€£¥₹₩₽₺₫₦฿₱]|(?:USD|EUR|GBP|Rs\.?|INR|CHF)(?=[\ ]|\d)"
)

# Characters of a skeleton: the first digit of a numeral (of 10 another one), further digits of its
# integer part, all that comes after these, a numeral without integer part, and a sign.
_FIRST, _TEN, _DIGIT, _REST, _POINT, _SIGNED, _OTHER = "\ue000\ue001\ue002\ue003\ue004\ue005\ue006"
_RESERVED = dict.fromkeys(map(ord, _FIRST + _TEN + _DIGIT + _REST + _POINT + _SIGNED), _OTHER)


@dataclass(frozen=True, slots=True)
class Answer:
    """A number in a text.

    Attributes:
        value: the exact value, a Fraction if it is written as one, else a Decimal.
        text: the number as written.
        start, stop: its place in the text, in characters.
        percent: whether it is a percentage.
        currency: the currency as written, or an empty string.
        unit: the word after the number, with its power (``cm²``); empty if there is none but a word
            such as "of" or "is".

    Example:
        >>> answer = read_numbers("It rose by 2.5%.")[0]
        >>> answer.value, answer.percent
        (Decimal('2.5'), True)
    """

    value: Decimal | Fraction
    text: str
    start: int
    stop: int
    percent: bool = False
    currency: str = ""
    unit: str = ""


class Reading(NamedTuple):
    """The span of a number in a text, in characters, and the number; None if its value cannot be
    had (``3/0``, ``4 10/3``, a power of more than ``MOST_DIGITS`` digits).
    """

    start: int
    stop: int
    answer: Answer | None


def read_numbers(text: str, policy: Policy | str = "default") -> list[Answer]:
    """Return every number of a text, in order; those whose value cannot be had (``3/0``, a power of
    more than 4,000 digits) are left out.

    Examples:
        >>> [str(number.value) for number in read_numbers("2 1/2 km at $3.5 million")]
        ['5/2', '3.5E+6']
    """
    readings = iterate_readings(text, policy_named(policy))
    return [one.answer for one in readings if one.answer is not None]


def iterate_readings(
    text: str, policy: Policy, start: int = 0, stop: int | None = None
) -> Iterator[Reading]:
    """Yield every number of a text, or of its lines from ``start`` to ``stop``, those without a value
    too.
    """
    offset = max(start - 1, 0)  # with the line feed before
    lines = text[offset:stop]
    follows = text[max(0, offset - MOST_BLANK) : offset].strip() != ""
    numerals = list(read(_without_thin_spaces(lines, policy), policy.grammar))
    starts = [numeral.start for numeral in numerals]
    for match in _pattern(policy).finditer(_skeleton(lines, numerals)):
        first = bisect.bisect_left(starts, match.start())
        parts = numerals[first : bisect.bisect_left(starts, match.end(), first)]
        yield _reading(lines, match, parts, offset, follows)


def _without_thin_spaces(text: str, policy: Policy) -> str:
    """Replace the comma of LaTeX's thin space, which is no decimal mark: 12\\,500 is not 12 and ,500."""
    is_mark = policy.latex and policy.grammar.decimal == ","
    return text.replace("\\,", "\\;") if is_mark else text


def _skeleton(text: str, numerals: list[Number]) -> str:
    """Replace each numeral by the characters that stand for its digits."""
    plain, pieces, at = text.translate(_RESERVED), [], 0
    for numeral in numerals:
        sign = _SIGNED if numeral.text[0] in "+-\u2212" else ""
        size = len(numeral.text) - len(sign)
        digits = _INTEGER_PART.match(numeral.text, len(sign)).end() - len(sign)  # type: ignore[union-attr]
        first = (_TEN if numeral.text == "10" else _FIRST) if digits else _POINT
        pieces += [plain[at : numeral.start], sign, first]
        pieces += [_DIGIT * (digits - 1), _REST * (size - max(digits, 1))]
        at = numeral.stop
    return "".join(pieces) + plain[at:]


_INTEGER_PART = re.compile(r"\d*")


@functools.cache
def _pattern(policy: Policy) -> re.Pattern[str]:
    """Compile the expression of one number of a skeleton."""
    never = "(?!)"
    whole = f"[{_FIRST}{_TEN}]{_DIGIT}*+"
    integer = f"{whole}(?!{_REST})"
    numeral = f"(?:{whole}{_REST}*+|{_POINT}{_REST}*+)"
    sign = f"{_SIGNED}?+"
    fractions = _fractions(integer, numeral, policy) if policy.fractions else never
    three = f"[{_FIRST}{_TEN}]{_DIGIT}{{2}}(?!{_DIGIT})"
    braced_comma = r"\s?\{\s?,\s?\}"
    typeset = r"\\,|\\\ |[\u00a0\u2009\u202f]" if policy.latex else never
    decimal_comma = ""
    if policy.latex and policy.grammar.decimal == ",":  # 2{,}5
        decimal_comma = rf"(?:(?:{braced_comma}|,\\!)\s?(?P<behind_comma>{whole}(?!{_REST})))?+"
    elif policy.latex:
        typeset = rf",\\!\s?|{braced_comma}|{typeset}"
    grouped = (
        rf"[{_FIRST}{_TEN}]{_DIGIT}{{0,2}}(?![{_DIGIT}{_REST}])(?P<separator>{typeset}){three}"
        rf"(?:(?P=separator){three})*+{_REST}*+(?!(?P=separator)[{_FIRST}{_TEN}])"
    )
    ten = (  # in "5 x10^3" the 10 is no numeral
        rf"\s*+(?:\\times|\\cdot|[×·⋅∙∗✕xX*])\s*+(?:{_TEN}{_DIGIT}(?!{_REST})|(?<=[xX])10)"
    )
    power = (
        r"(?:(?:\^\s*+|\*\*)(?:(?P<brace>\{\s*+)|(?P<bracket>\(\s*+))?+"
        rf"(?P<exponent>{sign}{integer})(?(brace)\s*+\}})(?(bracket)\s*+\))"
        r"|(?P<superscript>[⁻⁺]?+[⁰¹²³⁴⁵⁶⁷⁸⁹]++))(?!\s*+\^|\*\*[^\W_])"
    )
    power = power if policy.latex else never
    not_raised = rf"(?<![_^{_SIGNED}])(?<![_^]\{{)" if policy.latex else f"(?<!{_SIGNED})"
    minus = (
        r"[-\u2212\ufe63\uff0d]\s*+|[\u2010\u2011](?=\S)|\u2013[^\S\n]?|\b(?i:minus|negative)[\s}]++"
        r"|(?<![胜勝])[负負]"
    )
    minus = minus if policy.signs else never
    frac = r"\\[dtc]?frac" if policy.fractions and policy.latex else never
    begins = rf"[{_FIRST}{_TEN}{_POINT}]|{frac}|\d*+[{_FRACTIONS}]"
    scale = rf"(?i:{_ANY_SCALE.pattern})s?" if policy.scales else never
    han = rf"\s?[{''.join(_HAN_SCALES)}]{{1,2}}" if policy.scales else never
    short = "|".join(sorted(_SHORT_SCALES, key=len, reverse=True)) if policy.scales else never
    kilo = r"[kK]\b|[^\S\n]?(?:bn\b|[kKM](?=[€£])|Mds?(?=\s?€))" if policy.scales else never
    return re.compile(
        rf"""
        (?: (?P<minus> {minus} ) (?P<opening> {_OPENING} ) (?= (?: (?:{_CURRENCY}) \s*+ )?+ (?: {begins} ) ) )?+
        (?P<currency> (?<![^\W\d_]) (?: {_CURRENCY} ) \s*+ )?+
        {not_raised} {sign}
        (?: {fractions}
          | (?P<base> (?P<before_comma> {grouped} | {numeral} ) {decimal_comma} ) (?: (?P<ten> {ten} )?+ {power} )?+ )
        (?: (?P<closing> {_CLOSING} )
            (?: (?:\s|\\[ ,;]|~|\\text\{{)*+(?P<percent>{_PERCENT} )
              | (?: [^\S\n]|-|\\[ ]|~ )?+ (?: \\text\{{\s*+ )?+ (?P<scale>{scale}(?:\s{scale})*+)\b )
          | (?(currency)[^\S\n]?(?P<short>{short})\b | (?P<kilo>{kilo}) )
          | (?P<han>{han})
        )?+
        (?P<behind> \s?[€£] )?+
        """,
        re.VERBOSE,
    )


def _fractions(integer: str, numeral: str, policy: Policy) -> str:
    """Return the expression of fractions: LaTeX, such as ½, and with a slash."""
    one = f"{_FIRST}(?![{_DIGIT}{_REST}])"
    two = f"[{_FIRST}{_TEN}]{_DIGIT}(?![{_DIGIT}{_REST}])"
    argument = rf"(?:\{{\s*+{_SIGNED}?+{numeral}\s*+\}}|{one})"
    year = f"{_FIRST}{_DIGIT}{{3}}(?!{_DIGIT})"
    command = rf"\\[dtc]?frac\s*+(?:{argument}\s*+{argument}|{two})" if policy.latex else "(?!)"
    return (
        rf"(?P<whole>{integer}\s*+)?+(?P<frac>{command})"
        rf"|(?:(?P<glued>{integer}\s?+|(?<![\w.,/])\d++)|(?<![\d{_REST}/]))(?P<vulgar>[{_FRACTIONS}])(?!\d)"
        rf"|(?<!/)(?P<mixed>(?!{year}){integer}[^\S\n]++(?={integer}/[{_FIRST}{_TEN}]))?+"
        rf"(?P<slash>{integer}/{integer})(?!/[{_FIRST}{_TEN}{_POINT}])"
    )


def _reading(
    text: str, match: re.Match[str], parts: list[Number], offset: int, follows: bool
) -> Reading:
    """Return what a match of the skeleton reads in some lines, which begin at ``offset`` and follow
    others or not.
    """
    start, stop, minus = match.start(), match.end(), match["minus"]
    numeral = parts[0] if len(parts) == 1 else None
    if numeral is not None and (numeral.start, numeral.stop) == (start, stop):  # nothing else
        place = start + offset, stop + offset
        return Reading(*place, Answer(numeral.value, numeral.text, *place, unit=_unit(text, stop)))
    if minus is not None and not _is_sign(text, start, minus, follows):
        start, minus = match.end("opening"), None
    currency = match["currency"] or ""
    is_closed = "$" in (match["closing"] or "")
    if currency.strip() == "$" and (is_closed or _is_math(text, match.end("currency"), stop)):
        start = match.end("currency") if minus is None else start
        currency = ""
    value = _value(match, parts)
    if value is None or (match["short"] and not currency):  # the M of $5M$ is a variable
        return Reading(start + offset, stop + offset, None)
    first = max(match.start(), match.end("opening"), match.end("currency"))
    negative = any(part.text[0] in "-\u2212" for part in parts if part.start == first)
    if negative or minus is not None:
        value = -value if isinstance(value, Fraction) else value.copy_negate()
    percent = match["percent"] is not None
    money = (currency or match["behind"] or "").strip().replace("\\", "")
    unit = "" if percent else _unit(text, stop)
    written, place = text[start:stop], (start + offset, stop + offset)
    return Reading(*place, Answer(value, written, *place, percent, money, unit))


# what may stand before a minus that does not touch its number: nothing, an opening mark, "is"
_BEFORE_SIGN = re.compile(
    r"(?:[=≈:;,#({\[<>]|\\[(\[]|(?<![\w)}\]%])\$|\\(?:approx|boxed\{)"
    r"|\b(?i:is|are|was|were|be|equals?|gives?|gets?|to|of|about|around|approximately|roughly|nearly|almost|ist|est"
    r"|es|é|è|negative))\Z"
)
_MARKUP = " \t*_`\"'"
# that models write for a minus, in places where no dash stands; apart only behind =
_DASH = "\u2013"
_BULLETS = "-" + _DASH  # begin an item of a list


def _is_sign(text: str, at: int, minus: str, follows: bool) -> bool:
    """Whether what looks like a minus at ``at`` is a sign, and no operation, dash or bullet."""
    before = text[max(0, at - 40) : at]
    if minus == f"{_DASH} " and not before.rstrip().endswith(("=", "≈")):
        return False
    if minus in "负負":
        return True
    if len(minus) == 1 and minus != _DASH:  # it touches formatting, a currency or a fraction
        operation = r"(?:[\w)\]}%.+\-\u2212\ufe63\uff0d][*`]*|[\d)\]}%]\s)\Z"
        return not re.search(operation, before)
    before = before.rstrip(_MARKUP)
    if not before.strip():
        return at <= 40 and (minus[0] not in _BULLETS or not (follows or text[:at].strip()))
    if before[-1] == "\n":
        return minus[0] not in _BULLETS
    return _BEFORE_SIGN.search(before) is not None


def _is_math(text: str, start: int, stop: int) -> bool:
    """Whether the ``$`` before text[start:stop] opens a formula: the next ``$`` of the line is no
    currency.
    """
    end = text.find("\n", stop, stop + 200)
    closing = _DOLLAR.search(text, stop, end if end >= 0 else stop + 200)
    return closing is not None and not re.match(r"\s?[-+]?\.?\d", text[closing.end() :][:5])


_DOLLAR = re.compile(r"(?<!\\)\$")


def _value(match: re.Match[str], parts: list[Number]) -> Decimal | Fraction | None:
    """Return the value of a match without the sign before it, None if it cannot be had."""
    part = match.groupdict()
    value: Decimal | Fraction | None
    if part["base"] is None:
        value = _fraction(part, parts)
    else:
        stop = match.end("before_comma")
        value = _joined([one for one in parts if one.start < stop])
        if part.get("behind_comma"):
            start = match.start("behind_comma")
            value = _with_fraction(value, next(one for one in parts if one.start == start))
        if part.get("exponent") or part.get("superscript"):
            exponent = _int(part["superscript"] or parts[-1].text)
            if value is None or exponent is None:
                value = None
            elif part["ten"] is not None:
                value = _shifted(value, exponent)
            else:
                value = _power(value, exponent)
    shift = _SHORT_SCALES.get((part["short"] or part["kilo"] or "").strip(), 0)
    words = (part["scale"] or "").lower()
    shift += sum(SCALES[word] for word in _ANY_SCALE.findall(words))
    shift += sum(_HAN_SCALES[one] for one in (part["han"] or "").strip())
    if shift and value is not None:
        return value * 10**shift if isinstance(value, Fraction) else _shifted(value, shift)
    return value


def _joined(groups: list[Number]) -> Decimal:
    """Return the absolute value of digits that something typeset groups by three."""
    value = groups[0].value.copy_abs()
    for group in groups[1:]:
        value = _EXACT.add(value.scaleb(3, _EXACT), group.value)
    return value


def _with_fraction(whole: Decimal, behind: Number) -> Decimal | None:
    """Return a whole number with the digits behind its decimal comma; None if it has a fraction."""
    if whole != whole.to_integral_value():
        return None
    return _EXACT.add(whole, behind.value.scaleb(-len(behind.text), _EXACT))


def _shifted(value: Decimal, exponent: int) -> Decimal | None:
    return value.scaleb(exponent, _EXACT) if abs(exponent) < 10**17 else None


def _int(written: str) -> int | None:
    """Return an exponent, however it is raised; None if it is beyond all use."""
    digits = written.translate(_SUPERSCRIPTS).replace("\u2212", "-")
    return int(re.sub(r"[^\d+-]", "", digits)) if len(digits) <= 18 else None


def _power(base: Decimal, exponent: int) -> Decimal | Fraction | None:
    _, digits, shift = base.as_tuple()
    if max(len(digits), abs(base.adjusted())) * abs(exponent) > MOST_DIGITS:
        return None
    if exponent < 0:
        return Fraction(base) ** exponent if base else None
    if exponent == 0:
        return Decimal(1)
    whole = int("".join(map(str, digits))) ** exponent
    return Decimal(whole).scaleb(int(shift) * exponent, _EXACT)


def _fraction(part: dict[str, str | None], numbers: list[Number]) -> Fraction | None:
    """Return a fraction without the sign before it; ``numbers`` are all of it, the whole number first.
    None for x/0, and behind a whole number for what is no proper fraction.
    """
    whole = part["whole"] or part["mixed"]
    if part["vulgar"]:
        fraction = Fraction(unicodedata.numeric(part["vulgar"])).limit_denominator(10)
        glued = (part["glued"] or "").strip()
        above = numbers[0].value if numbers else Decimal(glued or 0)
        return None if _is_long(above) else abs(int(above)) + fraction
    terms = [one.value for one in numbers[1 if whole else 0 :]]
    if part["frac"] and len(terms) == 1:  # \frac12
        tens, ones = divmod(int(terms[0]), 10)
        terms = [Decimal(tens), Decimal(ones)]
    over, under = terms
    if not whole and part["slash"]:
        over = over.copy_abs()
    if not under or any(_is_long(term) for term in terms):
        return None
    fraction = Fraction(over) / Fraction(under)
    if not whole:
        return fraction
    proper = 0 <= fraction < 1 and not _is_long(numbers[0].value)
    return abs(int(numbers[0].value)) + fraction if proper else None


def _is_long(value: Decimal) -> bool:
    """Whether a decimal has more than ``MOST_DIGITS`` digits when it is written out."""
    return len(value.as_tuple().digits) > MOST_DIGITS or abs(value.adjusted()) > MOST_DIGITS


_SPACE = r"(?:[^\S\n]|~|\\[ ,;:!])*+"
_UNIT = re.compile(
    rf"(?:\*\*|__|\}}?+\$?+)(?:{_SPACE}|-)(?:\\(?:text(?:rm|up|normal)?|mathrm|mbox)\s*+\{{{_SPACE})?+"
    r"(?P<unit>(?:(?:square|cubic|sq\.?|cu\.?)\s)?(?:[^\W\d_]|[°µ])(?:[^\W\d_]|[/²³]){0,40}"
    r"|\^\s*\{?\\(?:circ|degree)|\\degree)(?:\}?\s?\^\s?\{?\s?(?P<power>[23])(?!\d)|(?P<digit>[23])(?!\w))?"
)
# words behind a number that say nothing of what is counted
_LINKS = """a an and are as at be but by compared during for from has have is it of on or over per since
    than that the then this to under until versus vs was were when where which while with"""
_NO_UNITS = frozenset(_LINKS.split())


def _unit(text: str, stop: int) -> str:
    """Return the word after a number, in the singular, with its power: ``cm²`` for ``cm^2``."""
    match = _UNIT.match(text, stop)
    unit = match["unit"] if match else ""
    if match is None or unit in _NO_UNITS or (unit == "in" and text[match.end() :][1:2].isalnum()):
        return ""
    if unit.startswith(("^", "\\")):
        return "°"
    if power := match["power"] or match["digit"]:
        return unit + "²³"["23".index(power)]
    if unit.endswith(("ches", "shes", "sses", "xes")):  # inches, boxes
        return unit[:-2]
    is_plural = len(unit) > 2 and unit.endswith("s") and unit[-2] not in "/s"
    return unit[:-1] if is_plural else unit
