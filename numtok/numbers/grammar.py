"""The grammar of numbers in text: immutable options, and the rules in words.

The rules are lexical: no dictionary, no language model. A *digit* is ASCII 0-9 or any Unicode
decimal digit (general category Nd); a *letter* is a Unicode letter, mark or letter number or ``_``,
except in scripts written without spaces between words (Chinese, Japanese, Korean, Thai, Lao, Khmer,
Burmese: see :mod:`numtok.arrays.unicode_classes`); a *word character* is a digit or a letter.

A. **Numeral**: ``d{1,3}(,ddd)+`` or digits, then an optional fraction ``.digits``; or ``.digits``
   alone; then an optional exponent ``[eE]`` sign? digits. A trailing dot is outside (``in 2019.``),
   except before an exponent (``2.e+3`` is 2000). A comma groups only if the whole run of
   comma-joined digits is well formed and the first group is not a lone 0: ``1,234,567`` is one
   number, ``1,23``, ``100,200,30`` and ``0,125`` are lists. A leading dot is a decimal point only
   if the character before it is neither a word character nor a dot: ``F.2`` and ``wait...5`` are 2
   and 5. U+066B is a decimal mark and U+066C groups too, as Arabic has them.
B. **Sign**: ``-``, ``+`` or U+2212 that touches the numeral, if the character before it is not a
   word character, ``)``, ``]``, ``}``, ``%``, ``.`` or another sign.
C. **After a letter** digits are not a number (``B2B``, ``x_3``, ``v1.2``, ``Rs1,599``): the numeral
   that starts there is skipped whole. A single ``x`` between two numerals separates them as ``*``
   does (``10x6``); after a lone ``0`` it is hexadecimal (``0x1F``, ``0xFF``). Letters that are no
   word do not count: a LaTeX command, a backslash and two letters or more (``\\times10``,
   ``\\pm.5``; not the escapes ``\\x41`` and ``\\u2019``); one to three capitals after a currency
   sign (``$US160``); the ``T`` between a date and ``hh:`` (``2019-09-01T10:38``). With
   ``currency_codes`` nor does one of :data:`CURRENCY_CODES` (``USD1,700``).
D. **Glued runs** are left alone: when a numeral (or a chain of them joined by ``x``) is followed by
   ``.digit``, by letters and then a digit, by a second exponent, by ``D`` with sign and digits
   (``1.5D+03``), or by a fraction such as ``½``, it could only be read by cutting it, so none of it
   is a number: ``1.2.3``, ``192.168.0.1``, ``1e5.5``, ``7R32``, ``2½``, hashes. A unit of length
   with the exponent 2 or 3 is a suffix (``32m2`` is 32). UUIDs (8-4-4-4-12 hexadecimal digits) are
   left alone too, and so is a literal whose exponent has more than 17 significant digits.

The marks differ by country, the rules do not. Where the comma is the decimal mark
(``decimal=","``), read "comma" for "dot" in A, and a grouped number does not begin with 0; in D a
dot or a comma with a digit after it is glued, so a dot that neither groups nor marks the fraction
leaves all of ``1.5``, ``14.30``, ``12.03.2024`` and ``1,234.5`` alone. Dots that group four numbers
up to 255 are an address, ``192.168.100.200``. A space does not group digits after a letter (``A4
210`` is 210), and a number keeps to the separator that it began with. With ``lakhs``, groups of two
before the last three are well formed as well.

``Grammar.from_pattern`` replaces all of this by a user's own regular expression.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from numtok.errors import GrammarError
from numtok.options import check_options

GROUPING_CHARACTERS = {
    ",": "comma",
    ".": "point",
    "_": "underscore",
    "'": "apostrophe",
    "\u2019": "right quote",
    " ": "space",
    "\u00a0": "no-break space",
    "\u2009": "thin space",
    "\u202f": "narrow no-break space",
}
DECIMAL_MARKS = (".", ",")
ARABIC_POINT, ARABIC_COMMA = "\u066b", "\u066c"  # the decimal mark and the separator of Arabic
EXPONENTS = ("eE", "eEdD")
# half-open ranges of code points: $, those of Latin 1 and of their own block, and full-width ones
CURRENCY_SIGNS = (
    *((0x24, 0x25), (0xA2, 0xA6), (0x20A0, 0x20D0)),
    *((0xFF04, 0xFF05), (0xFFE0, 0xFFE2), (0xFFE5, 0xFFE7)),
)
FRACTIONS = ((0xBC, 0xBF), (0x2150, 0x2160), (0x2189, 0x218A))  # such as ½
UNITS = ("m", "km", "dm", "cm", "mm", "\u00b5m", "\u03bcm", "um", "nm", "ft", "in", "yd", "mi")
# ISO 4217, and what prices have before them in India, Malaysia and Scandinavia
_CODES = """AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BOV BRL BSD BTN BWP
BYN BZD CAD CDF CHE CHF CHW CLF CLP CNY COP COU CRC CUC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB
EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HRK HTG HUF IDR ILS INR IQD IRR ISK JMD JOD
JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU
MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD
RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SLL SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY
TTD TWD TZS UAH UGX USD USN UYI UYU UYW UZS VED VES VND VUV WST XAF XAG XAU XCD XCG XDR XOF XPD
XPF XPT YER ZAR ZMW ZWG ZWL Rs RM kr"""
CURRENCY_CODES = tuple(_CODES.split())
# |exponent| < 10**17 keeps every sum of exponents inside int64 and inside decimal's range
MAX_EXPONENT_DIGITS = 17
# left out of what is saved where they are as they ever were, which keeps its fingerprint
LATER_OPTIONS = ("decimal", "lakhs", "exponents", "currency_codes")
NAMES = ("prose", "data", "european", "indian", "swiss", "finance")  # each is a method of Grammar


@dataclass(frozen=True)
class Grammar:
    """An immutable choice of what counts as a number.

    Attributes:
        grouping: the characters that may group digits by three, or ``None`` for none. Of ``, . _
            '`` U+2019, the space, U+00A0 U+2009 U+202F.
        signs: read ``-``, ``+`` and U+2212 as signs.
        exponent: read ``1e5`` as 100000; otherwise it is left alone.
        leading_dot: read ``.5`` as 0.5; otherwise as 5. Where the comma is the decimal mark, this
            is ``,5``.
        unicode_digits: read every Unicode decimal digit; otherwise only ASCII ones, and the others
            are letters.
        accounting: read ``(1,234)`` as -1234; the parentheses then belong to the number.
        pattern: a regular expression that replaces the built-in rules, see :meth:`from_pattern`.
        decimal: the decimal mark, ``.`` or ``,``; not one of ``grouping``.
        lakhs: read ``12,34,567`` as 1234567, with any of the ``grouping`` characters; ``1,234,567``
            stays one number.
        exponents: the letters that begin an exponent, ``eE`` or ``eEdD``: the latter reads
            Fortran's ``1.5D+03`` as 1500.
        currency_codes: read the number directly after one of :data:`CURRENCY_CODES`: ``USD1,700``
            as 1700.

    Raises:
        GrammarError: for an option that cannot be used.

    Example:
        >>> import numtok
        >>> grammar = numtok.Grammar(grouping="_")
        >>> [number.text for number in numtok.extract("1,234 and 1_000", grammar)]
        ['1', '234', '1_000']
    """

    grouping: str | None = ","
    signs: bool = True
    exponent: bool = True
    leading_dot: bool = True
    unicode_digits: bool = True
    accounting: bool = False
    pattern: str | None = None
    decimal: str = "."
    lakhs: bool = False
    exponents: str = "eE"
    currency_codes: bool = False

    def __post_init__(self) -> None:
        check_options(self, "grammar", GrammarError)
        if self.decimal not in DECIMAL_MARKS:
            raise GrammarError(f"decimal={self.decimal!r} is not supported; use '.' or ','")
        if self.exponents not in EXPONENTS:
            raise GrammarError(
                f"exponents={self.exponents!r} is not supported; use 'eE' or 'eEdD', and"
                " exponent=False for none"
            )
        separators = set(self.grouping or "")
        if self.grouping is not None and not (
            separators <= GROUPING_CHARACTERS.keys() and 0 < len(separators) == len(self.grouping)
        ):
            supported = ", ".join(
                f"{character!r} ({name})" for character, name in GROUPING_CHARACTERS.items()
            )
            raise GrammarError(
                f"grouping={self.grouping!r} is not supported; use None or any of {supported}, each"
                " once"
            )
        if self.decimal in (self.grouping or ""):
            raise GrammarError(
                f"{self.decimal!r} cannot both group digits and be the decimal mark; give decimal"
                " or grouping another one"
            )
        if self.pattern is not None:
            compile_pattern(self.pattern)

    @classmethod
    def prose(cls) -> Grammar:
        """Return the default grammar: commas group digits by three."""
        return cls()

    @classmethod
    def data(cls) -> Grammar:
        """Return the grammar for JSON, CSV and code: a comma never groups, ``[100,200,300]`` is
        three numbers.

        Example:
            >>> import numtok
            >>> [number.text for number in numtok.extract("[100,200]", numtok.Grammar.data())]
            ['100', '200']
        """
        return cls(grouping=None)

    @classmethod
    def european(cls) -> Grammar:
        """Return the grammar of 1.234,56 and 1 234,56: a comma is the decimal mark; points and
        spaces group, no-break and thin ones too.

        Example:
            >>> import numtok
            >>> numtok.extract("1.234,5 km", numtok.Grammar.european())[0].value
            Decimal('1234.5')
        """
        return cls(grouping=". \u00a0\u2009\u202f", decimal=",")

    @classmethod
    def indian(cls) -> Grammar:
        """Return the grammar of 12,34,567.89: commas group by two before the last three digits; or
        by three, as in the default.
        """
        return cls(lakhs=True)

    @classmethod
    def swiss(cls) -> Grammar:
        """Return the grammar of 1'234.56: apostrophes group, straight or U+2019."""
        return cls(grouping="'\u2019")

    @classmethod
    def finance(cls) -> Grammar:
        """Return the grammar for accounts and news of markets: ``(1,234)`` is -1234, and the code
        of a currency does not hide the number behind it, ``USD1,700``, ``EUR50m``, ``Rs164``.

        Example:
            >>> import numtok
            >>> numbers = numtok.extract("USD1,700 (12)", numtok.Grammar.finance())
            >>> [str(number.value) for number in numbers]
            ['1700', '-12']
        """
        return cls(accounting=True, currency_codes=True)

    @classmethod
    def from_pattern(cls, pattern: str, grouping: str | None = ",") -> Grammar:
        """Make a grammar of a regular expression in the syntax of the ``regex`` package.

        Every match is a number. If the expression has a group named ``number``, that group is the
        number and the rest is context. The number must read as an optional sign, digits with
        optional ``grouping`` characters between them, an optional fraction and an optional
        exponent. For another decimal mark, use
        ``dataclasses.replace(Grammar.european(), pattern=...)``.

        Slower than the built-in rules, with the same outputs.

        Raises:
            GrammarError: if the expression does not compile or matches the empty string.

        Example:
            >>> import numtok
            >>> grammar = numtok.Grammar.from_pattern("[0-9]+[.][0-9]+")
            >>> [number.text for number in numtok.extract("room 7 at 7.5 m", grammar)]
            ['7.5']
        """
        return cls(grouping=grouping, pattern=pattern)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready options; :meth:`from_dict` is the inverse."""
        options = dataclasses.asdict(self)
        usual = {name: getattr(Grammar, name) for name in LATER_OPTIONS}
        return {name: one for name, one in options.items() if usual.get(name, ...) != one}

    @classmethod
    def from_dict(cls, options: dict[str, Any]) -> Grammar:
        """Make a grammar of the options that :meth:`to_dict` returned; unknown options are an
        error.
        """
        if not isinstance(options, dict):
            raise GrammarError(f"the options of a grammar are a dict, not {type(options).__name__}")
        names = {field.name for field in dataclasses.fields(cls)}
        if unknown := sorted(map(str, set(options) - names)):
            raise GrammarError(
                f"unknown grammar option {', '.join(unknown)}; this version knows"
                f" {', '.join(sorted(names))}"
            )
        return cls(**options)


def separators_of(grammar: Grammar) -> str:
    """Return the characters that group digits: the grammar's, and if there are any, the Arabic one."""
    return grammar.grouping + ARABIC_COMMA if grammar.grouping else ""


def check_grammar(grammar: Any) -> Grammar:
    """Return ``grammar``, the grammar with that name, or the default for None. Anything else is an
    error.
    """
    if isinstance(grammar, str) and grammar in NAMES:
        named: Grammar = getattr(Grammar, grammar)()
        return named
    if grammar is not None and not isinstance(grammar, Grammar):
        raise GrammarError(
            f"expected a Grammar or one of {', '.join(map(repr, NAMES))}, got {repr(grammar)[:60]}"
        )
    return grammar or Grammar()


def compile_pattern(pattern: str) -> Any:
    """Compile and check a user's pattern."""
    import regex

    try:
        compiled = regex.compile(pattern)
    except regex.error as error:
        raise GrammarError(f"the number pattern {pattern!r} does not compile: {error}") from error
    if compiled.fullmatch("") is not None:
        raise GrammarError(
            f"the number pattern {pattern!r} matches the empty string; require at least one digit,"
            " such as \\d+"
        )
    return compiled
