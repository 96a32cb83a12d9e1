"""Read the figures of answers and sources for :mod:`numtok.score.grounding`: numbers with the step of
their last written digit, words such as "about", and the scales that a table states.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

from numtok.score.claims import NonClaims
from numtok.score.number_words import read_number_words
from numtok.score.policy import Policy
from numtok.score.reading import Answer, read_numbers

MOST_DIGITS = 300  # before or behind the point; longer figures are found only as they are written
_WIDE = Context(prec=1000)
_MILLIONS = {"M": 6, "mn": 6, "B": 9, "tn": 12}
_PREFIXES = {"T": 12, "G": 9, "M": 6, "k": 3, "": 0, "c": -2, "m": -3}
METRIC_UNITS = {  # the unit without prefix, and the power of ten
    f"{prefix}{base}": (base, _PREFIXES[prefix])
    for base, prefixes in {
        "m": ("k", "", "c", "m"),
        "g": ("k", "", "m"),
        "l": ("", "c", "m"),
        "W": ("G", "M", "k", ""),
        "Wh": ("T", "G", "M", "k", ""),
        "Hz": ("G", "M", "k", ""),
        "B": ("T", "G", "M", "k"),
    }.items()
    for prefix in prefixes
}
METRIC_UNITS |= {"metre": ("m", 0), "meter": ("m", 0), "kilometre": ("m", 3), "kilometer": ("m", 3)}
METRIC_UNITS |= {"gram": ("g", 0), "kilogram": ("g", 3), "tonne": ("g", 6), "litre": ("l", 0)}
METRIC_UNITS |= {"liter": ("l", 0), "mL": ("l", -3), "L": ("l", 0)}


def metric_unit(unit: str) -> tuple[str, int] | None:
    """Return the base of a metric unit, and the power of ten of its prefix; None for another one.

    Example:
        >>> metric_unit("km/s")
        ('m/s', 3)
    """
    name, slash, per = unit.partition("/")
    base, power = METRIC_UNITS.get(name, ("", 0))
    return (base + slash + per, power) if base else None


_NO_UNITS = ("", "point", "year", "yoy")  # "up 5 points, 5% year on year"
_ROUNDED = re.compile(
    r"(?:\b(?:about|around|approximately|approx\.?|roughly|some|circa|ca\.?|close\sto|or\sso|estimated|near|c\.)|[~≈∼])"
    r"[\s*_]*(?:a\s)?\Z",
    re.IGNORECASE,
)
_AT_LEAST = re.compile(
    r"(?:\b(?:over|more\sthan|above|exceed(?:s|ed|ing)?|at\sleast|upwards?\sof|greater\sthan|topp(?:ed|ing)"
    r"|surpass(?:es|ed|ing)?|in\sexcess\sof|higher\sthan|well\sover|just\sover|beyond)|[>≥]=?)[\s*_]*\Z",
    re.IGNORECASE,
)
_AT_MOST = re.compile(
    r"(?:\b(?:nearly|almost|under|less\sthan|below|fewer\sthan|up\sto|at\smost|lower\sthan|not\squite)|[<≤]=?)[\s*_]*\Z",
    re.IGNORECASE,
)
_AT_LEAST_AFTER = re.compile(r"\+(?!\s?\d)|\s+or\s+more\b|\s+plus\b|\s+and\s+(?:up|above)\b")
_STATED_SCALE = re.compile(
    r"(?:\bin|[($£€¥]|(?<!\d),|\bUS\$|\bUSD|\bEUR|\b(?:amounts?|figures?|values?)\s(?:are\s)?in)\s*(?:US)?[$£€¥]?\s*"
    r"(?:(?P<word>thousands|millions|billions|lakhs?|crores?)\b|(?P<short>['\u2019]?000s?\b|1,000s\b|[x×]\s?1,000(?=\))|\bmillion\b|\bbillion\b|\bmn\b|\bbn\b"
    r"|(?<=[$£€¥])m\b|(?<=(?:USD|EUR|GBP)\s)m\b))",
    re.IGNORECASE,
)
_SCALE_POWERS = {"t": 3, "0": 3, "1": 3, "m": 6, "b": 9, "l": 5, "c": 7}
_SCALE_BEHIND = re.compile(r"\)\s?(thousand|million|billion)\b")  # $(3.2) million, a loss
_JOINT = re.compile(r"\s?(?:[-\u2010\u2011\u2013]|to)\s?|\s(?P<word>and)\s")
_BETWEEN = re.compile(r"\bbetween\s+\Z", re.IGNORECASE)
_POINTS = re.compile(r"\s*(?:basis\spoints?|bps?)\b", re.IGNORECASE)
_PERCENT = re.compile(
    r"\s*(?:percentage\spoints?|pp|ppts?|p\.p\.|‰|per\s?mille)(?![^\W_])", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Place:
    """A figure of a source.

    Attributes:
        source: the index of the source.
        text: the figure as written.
        start, stop: its span in the source, in characters.
        value: the exact value as written: 25 for 25%.

    Example:
        >>> from numtok.score import grounded
        >>> place = grounded("12 voted", ["no figure here", "12 of 48 voted"])[0].found[0]
        >>> place.source, place.text, place.start, place.stop
        (1, '12', 0, 2)
    """

    source: int
    text: str
    start: int
    stop: int
    value: Decimal | Fraction


Found = tuple[tuple[Place, ...], str]  # the places that have a figure, and how they have it


def position(place: Place) -> tuple[int, int]:
    """Return what places are ordered by."""
    return place.source, place.start


@dataclass(frozen=True, slots=True)
class Quantity:
    """A figure as it is compared.

    Attributes:
        answer: the number as it was read.
        source: the index of its source; -1 for a figure of the answer itself.
        size: the absolute value, None for figures of more than ``MOST_DIGITS`` digits.
        step: what one more in the last written digit adds; 0 for fractions.
        percent: whether it is a percentage, or basis points as one.
        kind: what it is if it claims nothing, see :mod:`numtok.score.claims`.
        scaled: whether it names its own scale ("million"), or is a percentage.
        powers: other powers of ten that it may be meant with ("1.5 M", the 5 of "5 to 10 million").
        in_words: whether it is spelled out.
    """

    answer: Answer
    source: int
    size: Fraction | None
    step: Fraction
    percent: bool
    kind: str = ""
    scaled: bool = False
    powers: tuple[int, ...] = ()
    in_words: bool = False

    @property
    def place(self) -> Place:
        """Where the figure stands."""
        one = self.answer
        return Place(self.source, one.text, one.start, one.stop, one.value)

    @property
    def is_bare(self) -> bool:
        """Whether neither a currency, a per cent nor the name of what is counted stands beside it."""
        return not (self.percent or self.answer.currency or self.answer.unit not in _NO_UNITS)

    def without_place(self) -> Quantity:
        """Return the figure without where it stands, equal to another that is compared alike."""
        return dataclasses.replace(
            self, answer=dataclasses.replace(self.answer, text="", start=0, stop=0)
        )


def read_figures(text: str, policy: Policy, source: int = -1) -> list[Quantity]:
    """Return the figures of a text in order; spelled out ones only of a source."""
    claims = NonClaims(text)
    answers = read_numbers(text, policy)
    figures = [
        _quantity(text, answer, following, claims, source)
        for answer, following in itertools.zip_longest(answers, answers[1:])
    ]
    if source >= 0:
        taken = bytearray(len(text))
        for answer in answers:
            taken[answer.start : answer.stop] = b"\1" * (answer.stop - answer.start)
        for start, stop, value, percent in read_number_words(text):
            if not any(taken[start:stop]):
                spelled = Answer(value, text[start:stop], start, stop, percent)
                measure = _size_and_step(value, 0)
                figures.append(
                    Quantity(spelled, source, *measure, percent, scaled=True, in_words=True)
                )
    return figures


def _quantity(
    text: str, answer: Answer, following: Answer | None, claims: NonClaims, source: int
) -> Quantity:
    percent = answer.percent
    powers: list[int] = []
    if match := _SCALE_BEHIND.match(text, answer.stop):
        powers.append(_SCALE_POWERS[match[1][0]])
    if answer.unit in _MILLIONS:
        powers.append(_MILLIONS[answer.unit])
    if following is not None and _is_range(text, answer, following):
        percent = percent or following.percent  # 5-10%
        power = written_scale(following) or _MILLIONS.get(following.unit, 0)
        powers += [power] if power and not answer.percent else []
    shift = 0
    if _POINTS.match(text, answer.stop):
        percent, shift = True, -2
    elif match := _PERCENT.match(text, answer.stop):
        percent, shift = True, -1 if match[0].strip()[0] in "‰" or "mille" in match[0] else 0
    return Quantity(
        answer,
        source,
        *_size_and_step(answer.value, shift),
        percent,
        claims.kind(*_digits_span(answer)),
        percent or written_scale(answer) != 0,
        tuple(powers),
    )


def _is_range(text: str, low: Answer, high: Answer) -> bool:
    """Whether two figures are the ends of a range, such as 5-10 or between 5 and 10."""
    match = _JOINT.fullmatch(text, low.stop, high.start)
    if match is None or match["word"] is None:
        return match is not None
    return _BETWEEN.search(text, max(0, low.start - 10), low.start) is not None


def _size_and_step(value: Decimal | Fraction, shift: int) -> tuple[Fraction | None, Fraction]:
    """Return the absolute value times 10**shift, None if it is too long, and its step."""
    if isinstance(value, Fraction):
        return abs(value) * Fraction(10) ** shift, Fraction(0)
    exponent = int(value.as_tuple().exponent)
    if not -MOST_DIGITS <= exponent <= MOST_DIGITS or value.adjusted() > MOST_DIGITS:
        return None, Fraction(0)
    power = Fraction(10) ** shift
    return Fraction(_WIDE.abs(value)) * power, Fraction(10) ** exponent * power


_DIGITS = re.compile(r"\d(?:.*\d)?", re.DOTALL)


def _digits_span(answer: Answer) -> tuple[int, int]:
    """Return the span from the first to the last digit of a figure."""
    match = _DIGITS.search(answer.text)
    if match is None:
        return answer.start, answer.stop
    return answer.start + match.start(), answer.start + match.end()


_LETTERS = re.compile(r"[^\W\d_%]+[\s€£]*\Z")


def written_scale(answer: Answer) -> int:
    """Return the power of ten of the scale word of a figure: 6 for "1.2 million"; 0 without one."""
    if isinstance(answer.value, Fraction) or answer.percent or not _LETTERS.search(answer.text):
        return 0
    exponent = int(answer.value.as_tuple().exponent)
    decimals = re.search(r"[.,]\}?\s?(\d+)(?!.*\d)", answer.text)
    if decimals is None or (len(decimals[1]) == 3 and exponent % 3 == 0):  # the mark groups
        return exponent
    return exponent + len(decimals[1])


def stated_scales(text: str) -> tuple[int, ...]:
    """Return the powers of ten that a text says its figures are in.

    Example:
        >>> stated_scales("Revenue (in thousands)")
        (3,)
    """
    words = (match["word"] or match["short"] for match in _STATED_SCALE.finditer(text))
    return tuple(sorted({_SCALE_POWERS[one.lstrip("'\u2019x× ")[0].lower()] for one in words}))


_CHANGE = re.compile(
    r"\b(?:(?P<up>rose|risen|ris(?:es|ing|e)|grew|grown|grow(?:s|ing|th)?|up|increas\w+|gain\w*|jump\w*|climb\w*"
    r"|higher|more|surg\w+|added|plus)"
    r"|(?P<down>fell|fallen|fall(?:s|ing)?|down|declin\w+|decreas\w+|dropp?\w*|shrank|shrunk|lower|less|fewer|lost"
    r"|los\w+|cut|reduc\w+|slump\w*|minus))\b",
    re.IGNORECASE,
)
_COMPARATIVES = ("more", "less", "fewer", "higher", "lower")  # fell 5% more than


def direction(text: str, figure: Quantity) -> int:
    """Return 1 if the words beside a figure say that something rose, -1 if it fell, else 0.

    Examples:
        >>> direction("Sales fell by 5%", read_figures("Sales fell by 5%", Policy())[0])
        -1
        >>> direction("a 5% increase", read_figures("a 5% increase", Policy())[0])
        1
    """
    if figure.answer.text[0] in "+-\u2212":
        return 1 if figure.answer.text[0] == "+" else -1
    start, stop = figure.answer.start, figure.answer.stop
    changes = list(_CHANGE.finditer(text, max(0, start - 40), start))
    behind = _CHANGE.match(text, stop + (text[stop : stop + 1] in (" ", "-")))
    if behind and not (changes and behind[0].lower() in _COMPARATIVES):
        changes.append(behind)
    return 0 if not changes else 1 if changes[-1]["up"] else -1


def as_float(size: Fraction) -> float:
    """Return the nearest float, infinity for what is beyond."""
    try:
        return float(size)
    except OverflowError:
        return math.inf


def interval(text: str, figure: Quantity, tolerance: str | Fraction) -> tuple[Fraction, Fraction]:
    """Return the least and the largest size that a figure of ``text`` may stand for. The tolerance is
    "exact", "rounding", or a share of the size in the source.
    """
    size = figure.size or Fraction(0)
    if tolerance == "exact" or not size or figure.kind:  # 2000 is no rounding of the year 1999
        return size, size
    if isinstance(tolerance, Fraction):
        return size / (1 + tolerance), size / (1 - tolerance)
    start, stop = figure.answer.start, figure.answer.stop
    before = text[max(0, start - 24) : start]
    after = text[stop : stop + 12]
    up = _AT_LEAST.search(before) or _AT_LEAST_AFTER.match(after)
    down = _AT_MOST.search(before)
    step = _rounding_step(figure, size, bool(up or down or _ROUNDED.search(before)))
    if up:
        return size, size + step
    if down:
        return max(size - step, size / 2), size
    return size - step / 2, size + step / 2


def _rounding_step(figure: Quantity, size: Fraction, hedged: bool) -> Fraction:
    """Return the step that a figure was rounded to: that of its last written digit, but zeros before
    the point need not be meant: behind "about" none of them, and else from three zeros on, where
    two digits stay.
    """
    step = figure.step
    if step != Fraction(10) ** written_scale(figure.answer):  # 1 of 500, 10**6 of 500 million
        return step
    digits = str(int(size / step))
    zeros = len(digits) - len(digits.rstrip("0"))
    if hedged:
        return max(step, min(step * Fraction(10) ** zeros, size / 5))
    kept = min(zeros, len(digits) - 2) if zeros >= 3 else 0
    return step * Fraction(10) ** kept
