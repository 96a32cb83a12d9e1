"""Split a phrase into the quantities that it states: each is one number as a whole, or none.

``read_quantities`` reads a phrase from left to right. A *quantity* is what words and punctuation do
not separate: ``72 clips``, ``48/2 = 24``, ``2x + 1``, ``3 or 4``. It is a number if nothing but
units, currency, brackets and formatting stands around a single number, behind the last sign of
equality if there is one. An operator, a variable, a function, a relation, a power or a second
number makes it none. Commands of LaTeX are parts of a formula unless they only say how to set type.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from enum import Enum, auto
from fractions import Fraction

from numtok.score.reading import SCALES, Answer, Reading


class _Open(Enum):
    """Kinds of a quantity that is no number so far."""

    NOTHING = auto()
    FORMULA = auto()  # without a number
    SPOILT = auto()  # with a number that is only a part of it


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_EQUALS = _words(
    "is are was were be equals equal makes make gives give yields becomes totals ist est"
)
_JOINS = _words(
    "and or to through plus minus times over than divided multiplied und oder et ou и или"
)
_FUNCTIONS = _words(
    """log ln lg exp sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh sqrt cbrt pi gcd lcm mod
    max min floor ceil abs det root"""
)
# 5 min is a time; 5 ln 2 and 5 pi are products
_FACTORS = _FUNCTIONS - _words("min max floor ceil abs root")
_OR = _words("or oder ou или")
_BOUNDS = _words("below above under over exceeding beyond")
_SPOILERS = _words("twice thrice half double triple not nor neither never cannot")
_OF = re.compile(r"\s+of\s")
_SPOILERS_BEFORE_OF = _words(  # a third of 9, the square of 3
    """third thirds quarter quarters fourth fourths fifth fifths sixth sixths seventh sevenths eighth eighths
    ninth ninths tenth tenths hundredth thousandth square cube factorial reciprocal inverse opposite
    negative logarithm"""
)
_LABELS = _words(
    "option choice step case part question problem exercise example item figure table equation"
    " section"
)
_BEHIND = _words(
    "squared cubed factorial tenths hundredths thousandths halves thirds fourths fifths sixths"
    " sevenths eighths ninths dozen dozens mil dutzend douzaine douzaines docena docenas dúzia dúzias dozzina dozzine дюжин"
    " дюжины hundert centaine centaines centinaia cientos сотен сотни"
)
# after these another part of the sentence begins
_ENDS = _words(
    """of in on at by per for from with within without between after before during until out as since because
    so if when where which who whose that while but though although then thus therefore hence see
    given due based rounded using via each every all altogether only just also now de en por
    für von pro à au aux dans par mit aus"""
)
_UNITS = _words(
    """mm cm dm km µm μm um nm ft in yd mi mg kg lb lbs oz ml cl dl gal qt pt hz khz mhz ghz kw mw gw wh kwh kj
    mj ev kev mev kb mb gb tb kbps mbps gbps mph kph rpm fps psi hp hr hrs min mins sec secs ms ns µs μs yr
    yrs mo wk px dpi st nd rd th am pm ish pct usd eur gbp mol pa kpa mpa bar atm db cc ha ac"""
)
_UNIT_LETTERS = frozenset("mgshlLdtAVWKCFJNΩ")
_DASHES = frozenset("-\u2010\u2011\u2012\u2013\u2014\u2015\u2212")
_RELATIONS = frozenset("<>\u2264\u2265\u2260±∓×÷√")  # what begins with one of these is no number
_OPERATORS = _DASHES | _RELATIONS | frozenset("+*/·⋅∙∗∕")
_PLAIN = frozenset("~|")  # of the mathematical symbols

_SETTING = (  # commands that say how to set type
    r"\\(?:left|right|[bB]igg?[lr]?|[lL]arge|LARGE|[hH]uge|small|displaystyle|textstyle|text(?:rm|bf|it|sf|tt|up|sc|normal)?"
    r"|math(?:rm|bf|it|sf|tt|normal)|boldsymbol|bf|rm|it|mbox|hbox|boxed|fbox|underline|emph|q?quad|circ|degree|celsius|dollar|euro"
    r"|pounds?|percent)(?![A-Za-z])|\\(?:begin|end)\s?\{(?:align(?:ed|at)?|equation|gather(?:ed)?|split"
    r"|center|displaymath|math)\*?\}|\\[ ,;:!>$%&\#()\[\]]"
)
_BRACKET = re.compile(r"\\left|[(\[{|]")
_HALF = re.compile(r"\s+(?:a|one|two|three)[\s-]+(?:half|halves|thirds?|quarters?|fourths?)\b")
_UNIT_GOES_ON = re.compile(r"[^\W\d_²³}][·⋅*/](?:[^\W\d_]|\(|\\[a-z])|}/\\[a-z]")
_NUMBER = re.compile(r"\s+[$€£]?\d")
_SIDE = re.compile(r"[\s-]\d{1,3}(?!\d)")  # of a rectangle; no year
_POWER = re.compile(r"\s+the\s+(?:power\b|second\b|third\b|\w+th\b|\d)")
_UPRIGHT = re.compile(
    r"(?:\\(?:text|mathrm|rm)\s?\{?[\s~]*|°\s?|\\circ\s?\}?[\s~]*(?:\\text\{\s?)?)\Z"
)
_MORE_OR_LESS = (  # than, in other languages
    r"(?:más|mais|menos|moins|plus)\s+de|(?:più|meno)\s+di|(?:mehr|weniger)\s+als|(?:meer|minder)\s+dan"
    r"|более|больше|менее|меньше"
)
_TOKEN = re.compile(
    rf"""
      (?P<skip> [\s\u200b\ufeff]+ | {_SETTING} | \^\s?\{{?\s?\\(?:circ|degree)(?![A-Za-z])\s?\}}?
        | </?[A-Za-z][\w-]*/?> )
    | (?P<stop> <?-{{1,5}}> | <?={{1,5}}> | [\u2190-\u21ff\u27f0-\u27ff∴∵∎] | \\(?:(?:long)?(?:right|Right)arrow|implies|therefore
        |to)(?![A-Za-z]) | \\\\ | [。！？] | \?+ | >>+ )
    | (?P<equals> (?:\\(?:approx|simeq|sim|equiv|doteq|coloneqq)(?![A-Za-z]) | [=≈≃≅≐])+ )
    | (?P<operator> \\(?:times|cdot|div|ast)(?![A-Za-z]) )
    | (?P<relation> \\(?:pm|mp)(?![A-Za-z]) | [!<>] =+ | \+/-? | (?<![^\W_])(?i:{_MORE_OR_LESS})(?![^\W_]) )
    | (?P<formula> \\(?:begin|end)\s?\{{\w+\*?\}} | \\(?:[A-Za-z]+|.) | \d+ | [₀-₉]+ )
    | (?P<raised> \^\s?(?:\{{\s?[-\u2212]?\d+\s?\}} | [-\u2212]?\d+) | [⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹]+ )
    | (?P<label> \(?(?<![^\W_])[A-J]\)(?=[\s*}}]) )
    | (?P<word> [^\W\d_]+ (?: ['’.&]?[^\W\d_] | (?<=[^\W\d_]{{2}})-[^\W\d_]{{2}} | /[^\W\d_] )*+ )
    | (?P<comma> [,，、،;；] )
    | (?P<dots> \.\.+ | … )
    | (?P<dot> \. )
    | (?P<bang> !+ )
    | (?P<colon> [:：] )
    | (?P<opening> [(\[{{（［] )
    | (?P<closing> [)\]}}）］] )
    | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)


def read_quantities(
    text: str, readings: list[Reading], start: int, stop: int, boxed: bool = False
) -> Iterator[Answer | None]:
    """Yield each quantity of the phrase text[start:stop] that holds a number, one of ``readings``: the
    number that it is as a whole, or None. If ``boxed``, the phrase is a formula, in which single
    letters are variables.
    """
    phrase = _Phrase(text, start, stop, boxed)
    at = start
    for reading in readings:
        phrase.read_tokens(at, reading.start)
        phrase.number(reading)
        at = reading.stop
        yield from phrase.take()
    phrase.read_tokens(at, stop)
    phrase.end()
    yield from phrase.take()


def _has_number(quantity: Answer | _Open) -> bool:
    return isinstance(quantity, Answer) or quantity is _Open.SPOILT


class _Phrase:
    """The state of reading a phrase.

    Attributes:
        open: the quantity that has not ended.
        left: the number on the left of the last sign of equality, if there was one.
        listed: the number that "and" or a comma has joined with the open formula.
        words: how many words have followed the last number or formula of the open quantity.
        link: what joins the open quantity with what follows: an operator, a word such as "or", a
            comma, an opening bracket; or an empty string.
        spoils: how many more words may follow before a number that "not", "log" or < spoils.
        labels: the last word was one such as "step", whose number counts something else.
        labelled: the last number followed such a word.
        in_parts: one word stands between the last two numbers: 2 hours 30 minutes.
    """

    def __init__(self, text: str, start: int, stop: int, boxed: bool) -> None:
        self.text, self.start, self.stop, self.boxed = text, start, stop, boxed
        self.ended: list[Answer | None] = []
        self.open: Answer | _Open = _Open.NOTHING
        self.left: Answer | _Open = _Open.NOTHING
        self.listed: Answer | _Open = _Open.NOTHING
        self.operand_stop = self.word_stop = -1  # where the last number or formula, or word, ends
        self.words = self.depth = self.spoils = 0
        self.link = ""
        self.labels = self.labelled = self.in_parts = False

    def read_tokens(self, start: int, stop: int) -> None:
        """Read what stands between two numbers."""
        while start < stop and (match := _TOKEN.match(self.text, start, stop)):
            kind = match.lastgroup
            if kind != "skip":
                getattr(self, f"_{kind}")(match.start(), match.end(), match[0])
            start = match.end()
            self.word_stop = start if kind == "word" else -1

    def take(self) -> list[Answer | None]:
        """Return the quantities that have ended since the last call."""
        ended, self.ended = self.ended, []
        return ended

    @property
    def has_number(self) -> bool:
        """Whether the open quantity holds a number."""
        return _has_number(self.open)

    def end(self) -> None:
        """End the open quantity."""
        ended = next((one for one in (self.open, self.listed, self.left) if _has_number(one)), None)
        if isinstance(ended, Answer):
            self.ended.append(ended)
        elif ended is _Open.SPOILT:
            self.ended.append(None)
        self.open = self.left = self.listed = _Open.NOTHING
        self.words, self.link = 0, ""
        self.labels = self.labelled = False

    def number(self, reading: Reading) -> None:
        """Make a number the open quantity; the one before it ends, or is spoilt by it."""
        if self.link == "per":  # 8 litres per 100 km
            self.operand_stop, self.words, self.link = reading.stop, 2, ""
            return
        spoilt = (
            reading.answer is None or self.spoils > 0 or self.labels or self._is_multiple(reading)
        )
        if self.has_number and self.link == "numbering":
            self.open = _Open.NOTHING
        joins = self.link in ("", "comma") and self.words == 1
        in_parts = joins and (self.in_parts or isinstance(self.open, Answer))
        if self.has_number:
            beside = self.words == 0 or in_parts
            if self.link == "bracket" or (self.link in ("", "comma") and not beside):
                self.end()
            else:
                spoilt = True
        elif self.open is _Open.FORMULA:
            spoilt = spoilt or not self.words or self.link != ""
        self.open = _Open.SPOILT if spoilt or reading.answer is None else reading.answer
        self.listed = _Open.NOTHING
        self.labelled, self.in_parts = self.labels, in_parts
        self._operand(reading.stop)

    def _is_multiple(self, reading: Reading) -> bool:
        """Whether the k of 5k is a variable, as in a formula."""
        thousands = self.text[reading.stop - 1 : reading.stop] in ("k", "K")
        in_formula = self.boxed or self.text[reading.stop : reading.stop + 1] == "$"
        is_money = reading.answer is None or reading.answer.currency != ""
        return thousands and in_formula and not is_money

    def _operand(self, stop: int) -> None:
        self.operand_stop, self.words, self.link, self.spoils, self.labels = stop, 0, "", 0, False

    def _formula(self, start: int, stop: int, token: str) -> None:
        """Read a variable, a command, a digit of what is no number: it joins what it stands beside."""
        if self.has_number and self.link in ("and", "or", "comma") and not self.depth:
            alone = self.link == "and" and not self.boxed
            self.listed, self.open = (self.open if alone else _Open.SPOILT), _Open.FORMULA
        elif self.has_number and (not self.words or self.link):
            self.open = _Open.SPOILT
        else:
            if self.has_number:
                self.end()
            self.open = _Open.FORMULA
        spoils = self.spoils
        self._operand(stop)
        self.spoils = spoils

    def _word(self, start: int, stop: int, token: str) -> None:
        word = token.lower()
        if word == "x" and self.has_number and _NUMBER.match(self.text, stop, self.stop):
            self.link = "times"  # 5 cm x 3 cm
        elif len(token) == 1 and self._is_variable(start, stop, token):
            self._formula(start, stop, token)
        elif word in _EQUALS:
            self._equals(start, stop, token)
        elif self.has_number and not self.words and self._changes_number(word, start, stop):
            self.open = _Open.SPOILT
        elif word in _FUNCTIONS or (word in _BOUNDS and self.open is _Open.NOTHING):
            self._function(word, 1)
        elif word in _JOINS:
            self._join(word, stop)
        elif word in _SPOILERS or word.endswith(("n't", "n’t")):
            self._function(word, 3)
        elif word in _SPOILERS_BEFORE_OF and _OF.match(self.text, stop, self.stop):
            self._function(word, 1)
        elif word in _ENDS and self._is_part(word, stop):
            self.link = "word"
        elif word == "per" and self.has_number and _NUMBER.match(self.text, stop, self.stop):
            self.link = "per"
        elif len(token) > 1 and word not in _ENDS and self._is_product(start, token):
            self._formula(start, stop, token)
        else:
            self._plain_word(word)

    def _changes_number(self, word: str, start: int, stop: int) -> bool:
        """Whether a word directly behind a number makes another number of it."""
        if word in SCALES:  # else it was read with the number
            return self.text[start - 2 : start] == ") "  # $(3.2) million
        if word == "root":  # 3 root 2
            return _NUMBER.match(self.text, stop, self.stop) is not None
        return word in _BEHIND or (  # 3 quarters of it
            word in _SPOILERS_BEFORE_OF and _OF.match(self.text, stop, self.stop) is not None
        )

    def _is_part(self, word: str, stop: int) -> bool:
        """Whether "of", "in", "by" or "à" joins two numbers: 25% of 80, 1 in 6, 5 by 6, 3 à 4."""
        if self.link == "word":
            return word in ("of", "by")
        if word == "by" and self.has_number and not self.words:
            return _SIDE.match(self.text, stop, self.stop) is not None
        if self.words or not self.has_number:
            return False
        if not isinstance(self.open, Answer):
            return word == "of"  # 3 fifths of 10
        if word == "à":
            return _NUMBER.match(self.text, stop, self.stop) is not None
        if word == "of":
            return self.open.percent or isinstance(self.open.value, Fraction)
        return word == "out" or (word == "in" and self.open.text == "1")

    def _plain_word(self, word: str) -> None:
        if word in _ENDS:
            self._end_part()
        elif self.link == "times" and self.has_number:  # but 5/day and 5 - that is all are numbers
            self.open, self.link = _Open.SPOILT, ""
        elif self.link:
            self._end_part()
        self.words += 1
        self.spoils = max(0, self.spoils - (word not in ("of", "the")))
        self.labels = word in _LABELS

    def _end_part(self) -> None:
        if self.has_number or self.left is not _Open.NOTHING:
            self.end()
        self.words, self.link = 0, ""

    def _is_variable(self, start: int, stop: int, letter: str) -> bool:
        """Whether a letter that stands alone is a variable, and no article or unit."""
        script = unicodedata.name(letter, "").split(" ")[0]
        if not letter.isascii() and script not in ("GREEK", "MICRO", "OHM"):  # à, é, 个
            return False
        after = self.text[stop : min(stop + 9, self.stop)]
        is_unit = self.has_number and not self.words and letter in _UNIT_LETTERS
        if self.boxed or after.startswith(("$", "\\)", "\\]")):
            return not (is_unit and _UPRIGHT.search(self.text, max(self.start, start - 20), start))
        if self.link == "comma" and after.lstrip().startswith("="):  # n = 5, m = 3
            return True
        if letter in "aAI" and (self.link == "comma" or not self.has_number or self.words):
            return not after[:1].isspace()
        return not (is_unit or (letter == "a" and re.match(r"\s+[^\W\d_]{2}", after)))

    def _is_product(self, start: int, token: str) -> bool:
        """Whether letters directly after a number are variables, as in 3xy."""
        if not self.has_number or self.words:
            return bool(re.fullmatch(r"[A-Za-z]/[A-Za-z]", token) and not self.has_number)
        first, *rest = token.split("/")
        if first in _UNIT_LETTERS and (rest or len(first) == 1):
            return False
        if len(first) == 1 or re.fullmatch(r"[a-d]?[xyz]{1,3}|ab|bc|ac|abc|mn|pq", first):
            return True
        glued = start == self.operand_stop
        return glued and len(first) < 4 and first.isascii() and first.lower() not in _UNITS

    def _function(self, word: str, reach: int) -> None:
        """Read a word that makes another number of the next one, within so many words."""
        if self.has_number and (word == "mod" or (word in _FACTORS and not self.words)):
            self.open = _Open.SPOILT
        elif self.has_number:
            self.end()
        self.spoils = reach

    def _join(self, word: str, stop: int) -> None:
        """Read a word that joins two numbers: and, or, to, plus."""
        if self.has_number and word == "to" and _POWER.match(self.text, stop):
            self.open, self.spoils = _Open.SPOILT, 3
        elif self.has_number and word == "and" and _HALF.match(self.text, stop):
            self.open = _Open.SPOILT  # 5 and a half
        if self.open is _Open.NOTHING:
            self.spoils = 2 if word in ("than", "times", "plus", "minus") else self.spoils
        elif word in ("to", "through", "over", "times") and (self.words > 1 or not self.has_number):
            self._end_part()
        else:
            self.link = "or" if word in _OR else "and" if word == "and" else "word"
            return
        self.words += 1

    def _equals(self, start: int, stop: int, token: str) -> None:
        """Drop what stands on the left of an equation, if there is something on the right."""
        if token == "\\sim" and isinstance(self.open, Answer) and not self.words:  # 5\sim6, a range
            self.link = "operator"
            return
        if self.has_number:
            self.left = self.open
        elif self.open is _Open.FORMULA:
            self.left = _Open.NOTHING
        several = _has_number(self.listed)  # x = 2, y = 3
        if several:
            self.ended.append(None)
        self.open = self.listed = _Open.NOTHING
        self.words, self.link, self.spoils = 0, "", 3 if several else 0
        self.labels = self.labelled = False

    def _operator(self, start: int, stop: int, token: str) -> None:
        times = token not in _DASHES and token not in "/*"
        if token == "+" and start == self.operand_stop and self.text[stop : stop + 1].isspace():
            return  # 20+ people
        if self.has_number and self.words and _UNIT_GOES_ON.match(self.text, start - 1, self.stop):
            return  # kg·m/s
        if self.open is not _Open.NOTHING:
            self.link = "times" if times else "operator"
        elif token in _RELATIONS or (token.startswith("\\") and self.words):
            self.spoils = 3
        elif token in _DASHES and _BRACKET.match(self.text, stop, self.stop):
            self.spoils = 1

    def _relation(self, start: int, stop: int, token: str) -> None:
        if token[0] == "!" and start == self.operand_stop and self.has_number:  # 5!=120
            self.open = _Open.SPOILT
            self._equals(start, stop, token)
        elif self.open is _Open.NOTHING:
            self.spoils = 3
        else:
            self.link = "times"

    def _raised(self, start: int, stop: int, token: str) -> None:
        """Read a power of a unit; of a number it would have been read with it."""
        if self.open is not _Open.NOTHING and not self.words:
            self._formula(start, stop, token)

    def _stop(self, start: int, stop: int, token: str) -> None:
        self.end()
        self.spoils = 0

    _label = _stop

    def _comma(self, start: int, stop: int, token: str) -> None:
        if self.open is _Open.NOTHING:
            self.spoils = 0
        else:
            self.link = "comma"

    def _dots(self, start: int, stop: int, token: str) -> None:
        """Read the dots after a number: 0.333... goes on for ever, and 1..2..3 is no number."""
        joins = self.has_number and self.text[stop : min(stop + 1, self.stop)].isdigit()
        is_endless = isinstance(self.open, Answer) and "." in self.open.text
        if start == self.operand_stop and (joins or is_endless):
            self.open, self.link = _Open.SPOILT, "operator"
        else:
            self._stop(start, stop, token)

    def _dot(self, start: int, stop: int, token: str) -> None:
        """Read a full stop, but not in 0.\\overline{3} and 0.(3)."""
        after = self.text[stop : min(stop + 2, self.stop)]
        part = re.match(r"[^\W_]|\\[A-Za-z]|\{|\(\d", after)
        if part and start == self.operand_stop:
            self._formula(start, stop, token)
        elif not part:
            self._stop(start, stop, token)

    def _bang(self, start: int, stop: int, token: str) -> None:
        """Read a factorial directly after a number, else the end of a sentence."""
        before = self.text[start - 1 : start]
        if self.has_number and (start == self.operand_stop or (before == ")" and not self.words)):
            self.open = _Open.SPOILT
        else:
            self._stop(start, stop, token)

    def _colon(self, start: int, stop: int, token: str) -> None:
        """Read a time or a ratio between two numbers, else the end of what it introduces."""
        before, after = self.text[max(start - 1, self.start) : start], self.text[stop : stop + 1]
        glued = start == self.operand_stop and after.isdigit()
        if self.labelled or self.open is _Open.NOTHING:
            self.open = self.left = _Open.NOTHING
        if self.has_number and (glued or before == after == " "):
            self.link = "operator"
        else:
            self._stop(start, stop, token)

    def _opening(self, start: int, stop: int, token: str) -> None:
        """Read a bracket; a product directly after a number, a function directly after a word."""
        if token == "{":
            return
        self.depth += 1
        if self.has_number and not self.words:
            if self.link in ("", "comma"):  # else it joins 5 + (3), 5 or (3)
                glued = start == self.operand_stop or self.boxed
                self.link = "times" if glued else "bracket"
        elif self.has_number:
            self.end()
        elif start == self.word_stop and self.text[start - 1].isascii():
            self._formula(start, stop, token)

    def _closing(self, start: int, stop: int, token: str) -> None:
        if token == "}":
            return
        if not self.depth and token == ")" and self.has_number and start == self.operand_stop:
            self.link = "numbering"  # 1) 72
        self.depth = max(0, self.depth - 1)

    def _other(self, start: int, stop: int, token: str) -> None:
        before, after = self.text[max(start - 1, self.start) : start], self.text[stop : stop + 1]
        if token in _OPERATORS:
            self._operator(start, stop, token)
        elif token == "|" and not (before + after).strip():
            self._stop(start, stop, token)
        elif token == "_" and not (before.isalnum() or before == "}"):
            pass
        elif token in "^|_‰!⌊⌋⌈⌉\u0304\u0305" or (
            token not in _PLAIN and unicodedata.category(token) == "Sm"
        ):
            self._formula(start, stop, token)
