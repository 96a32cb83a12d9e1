"""Which numbers may be written: :class:`NumberFormat`, a finite set of texts.

In: bounds, digits, signs, or the figures themselves. Out: an automaton over characters, and what
other programs and models need to keep to it. Every text is a number, every number ends.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from numtok.arrays.cached import cached_property
from numtok.errors import FormatError
from numtok.number_format.bounded_decimals import (
    DIGITS,
    LARGEST_EXPONENT,
    BoundedDecimals,
    Shape,
)
from numtok.number_format.notations import to_gbnf, to_lark, to_regex
from numtok.numbers.automaton import NEVER, Continuation, Part
from numtok.numbers.extract import extract

if TYPE_CHECKING:
    from numtok.number_format.logits_processor import NumberFormatProcessor

SIGNS = ("", "-", "+-")
DEFAULT_DIGITS = 15  # every decimal of so many digits survives a float64
LONGEST = 1000  # characters of a figure, and digits of a bound: more take minutes to lay out
GROUPING = (",", "_", " ", "'", "\N{THIN SPACE}", "\N{NARROW NO-BREAK SPACE}")

Figure = str | Decimal | int | float


@dataclass(frozen=True, repr=False)
class NumberFormat:
    """A finite set of numbers as they may be written, exact for any bounds.

    There are no superfluous zeros in front, no ``-0`` and no lone point.

    Args:
        minimum, maximum: the bounds, both of them allowed; an open side ends where the digits do.
        decimals: the most digits after the point, zeros at the end included. None: as many as
            ``minimum``, ``maximum`` and ``step`` are written with, so that integers give integers;
            with ``exponent``, as many as ``max_digits`` leaves room for.
        step: numbers are multiples of it, counted from 0.
        sign: which signs may be written: ``"-"``; ``"+-"``, where a plus may stand before numbers
            above 0; or ``""``.
        exponent: allow scientific notation too, as ``1.5e-7``: one digit other than 0 before the
            point, and an exponent from -308 to 308 without plus or zeros in front.
        grouping: the character between groups of three digits before the point, which is then
            written wherever there are more than three; one of ``, _ '`` and spaces.
        max_digits: the most digits in all, without the exponent's and a lone 0 before the point.
            None: 15, or as many as the bounds and ``decimals`` ask for if that is more.
        texts: the only texts that may be written, from :meth:`of`; no other option goes with it.

    Raises:
        FormatError: for options that do not go together, or leave no number.

    Example:
        >>> price = NumberFormat(minimum="0.05", maximum="99.95", decimals=2)
        >>> [price.matches(text) for text in ("0.05", "7.5", "99.96", "007", "1.999")]
        [True, True, False, False, False]
        >>> NumberFormat(0, 255).regex()
        '(?:0|1[0-9]{0,2}|2(?:[0-4][0-9]?|5[0-5]?|[6-9])?|[3-9][0-9]?)'
    """

    minimum: Figure | None = None
    maximum: Figure | None = None
    decimals: int | None = None
    step: Figure | None = None
    sign: str = "-"
    exponent: bool = False
    grouping: str | None = None
    max_digits: int | None = None
    texts: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("minimum", "maximum", "step"):
            if (bound := getattr(self, name)) is not None:
                object.__setattr__(self, name, _decimal(bound, name))
        self._check()
        if not self.automaton.ends.any():
            raise FormatError(f"{self}: no number is left; widen the bounds, decimals or sign")

    def __repr__(self) -> str:
        options = ((one, getattr(self, one.name)) for one in fields(self))
        shown = (
            f"{one.name}={str(value) if isinstance(value, Decimal) else value!r}"
            for one, value in options
            if value != one.default
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    @classmethod
    def of(cls, values: Iterable[Figure]) -> NumberFormat:
        """Return the format of exactly these figures: texts as they are written, other numbers as
        decimals without an exponent.

        >>> NumberFormat.of(["1,234", 7, 0.5]).texts
        ('0.5', '1,234', '7')

        Raises:
            FormatError: for no values, for a text in place of a list, and for a text in it that is
                not one number, or has more than 1,000 characters.
        """
        if isinstance(values, str):
            raise FormatError(f"values={values!r} is a text; give a list of figures")
        return cls(texts=tuple(sorted(set(map(as_written, values)))))

    @cached_property
    def alphabet(self) -> str:
        """The characters of the texts; the symbols of ``automaton``, in order."""
        if self.texts is not None:
            return "".join(sorted(set("".join(self.texts))))
        marks = [*self.sign, ".", self.grouping or "", "e-" if self.exponent else ""]
        return DIGITS + "".join(dict.fromkeys("".join(marks)))

    @cached_property
    def automaton(self) -> Continuation:
        """The minimal automaton over the characters of ``alphabet``."""
        return self._automaton(self.alphabet, str)

    def in_utf8(self) -> tuple[str, Continuation]:
        """Return ``alphabet`` and ``automaton`` of the bytes of the texts (:func:`as_bytes`): a token may
        hold a part of a character.

        >>> NumberFormat(grouping="\N{THIN SPACE}").in_utf8()[0]
        '0123456789-.\xe2\x80\x89'
        """
        if self.alphabet.isascii():
            return self.alphabet, self.automaton
        alphabet = "".join(dict.fromkeys(as_bytes(self.alphabet)))
        return alphabet, self._automaton(alphabet, as_bytes)

    def _automaton(self, alphabet: str, spelled: Callable[[str], str]) -> Continuation:
        """Return the automaton of the texts as they are spelled in the characters of an alphabet."""
        language = BoundedDecimals(alphabet)
        if self.texts is None:
            whole = self._bounded(language, spelled(self.grouping or ""))
        else:
            whole = language.texts(*map(spelled, self.texts))
        return language.continuation(whole, len(alphabet)).minimal()

    @cached_property
    def longest(self) -> int:
        """The number of characters of the longest text."""
        reached, length = np.array([0]), -1
        while len(reached):
            following = self.automaton.following[reached]
            reached, length = np.unique(following[following != NEVER]), length + 1
        return length

    def matches(self, text: str) -> bool:
        """Whether a text, all of it, is one of the numbers."""
        state = 0
        for character in text:
            symbol = self.alphabet.find(character)
            state = int(self.automaton.following[state, symbol]) if symbol >= 0 else NEVER
            if state == NEVER:
                return False
        return bool(self.automaton.ends[state])

    def value(self, text: str) -> Decimal:
        """Return the exact value of a text of this format. FormatError for any other text.

        >>> NumberFormat(grouping=",").value("-12,345")
        Decimal('-12345')
        """
        value = None
        if self.matches(text):
            is_listed = self.texts is not None
            value = _read(text) if is_listed else Decimal(text.replace(self.grouping or "", ""))
        if value is None:
            raise FormatError(f"{text!r} is not a number of {self}")
        return value

    def regex(self) -> str:
        """Return a regular expression without anchors, lookaround or backtracking, as any engine
        reads it. FormatError where it would be too long to be of use.
        """
        return to_regex(self.automaton, self.alphabet)

    def gbnf(self) -> str:
        """Return a grammar of llama.cpp, with the rule ``root``."""
        return to_gbnf(self.automaton, self.alphabet)

    def ebnf(self) -> str:
        """Return a grammar of xgrammar, which reads those of llama.cpp."""
        return self.gbnf()

    def lark(self) -> str:
        """Return a grammar of llguidance, with the rule ``start``."""
        return to_lark(self.automaton, self.alphabet)

    def json_schema(self, string: bool = False) -> dict[str, Any]:
        """Return the JSON schema of the values, or of the texts. That of the values says nothing of
        ``max_digits`` between the bounds, nor that scientific notation ends.

        >>> NumberFormat(0, 1, decimals=2).json_schema()
        {'type': 'number', 'minimum': 0, 'maximum': 1, 'multipleOf': 0.01}

        Args:
            string: describe a string whose ``pattern`` are the texts, in place of a number.

        Raises:
            FormatError: for a bound that no float64 writes exactly, and a pattern that is too long.
        """
        if string:
            return {"type": "string", "pattern": f"^{self.regex()}$"}
        if self.texts is not None:
            return {"enum": [_json_number(one) for one in sorted(set(map(self.value, self.texts)))]}
        low, high = self._bounds()
        if not self.exponent:  # an open side ends where the digits do
            most = Decimal("9" * self._digits)
            low = most.copy_negate() if low is None else low
            high = most if high is None else high
        step = None if self.step is None else Decimal(self.step)
        if not self.exponent:  # the least multiple of the step that has no more decimals
            units = 1 if step is None else (Fraction(step) * 10**self._decimals).numerator
            step = Decimal(f"{units}e-{self._decimals}")
        limits = {"minimum": low, "maximum": high, "multipleOf": step}
        is_whole = step is not None and step == step.to_integral_value()
        return {"type": "integer" if is_whole else "number"} | {
            name: _json_number(limit) for name, limit in limits.items() if limit is not None
        }

    def logits_processor(
        self,
        tokenizer: Any,
        leading_space: bool = True,
        eos_token_id: int | Sequence[int] | None = None,
    ) -> NumberFormatProcessor:
        """Return what lets a model write one number of this format and then end:
        ``model.generate(..., logits_processor=[format.logits_processor(tokenizer)])``.

        Args:
            tokenizer: any tokenizer of transformers, a ``tokenizers.Tokenizer`` or a
                ``numtok.Tokenizer``; its own tokens are used.
            leading_space: whether one space may stand before the number.
            eos_token_id: the end token, or several; None for the tokenizer's.

        Raises:
            FormatError: for a tokenizer without an end token, whose tokens cannot write the
                numbers, or whose numbers have tokens of their own, as ``[NUM]``.
        """
        from numtok.number_format.logits_processor import NumberFormatProcessor

        return NumberFormatProcessor(*self.in_utf8(), tokenizer, leading_space, eos_token_id)

    def _check(self) -> None:
        """Hold the options to what they may be."""
        others = (one for one in fields(self) if one.name != "texts")
        if self.texts is not None and any(getattr(self, o.name) != o.default for o in others):
            raise FormatError("texts are all that may be written: leave the other options out")
        if self.sign not in SIGNS:
            raise FormatError(f"sign={self.sign!r} must be one of {', '.join(map(repr, SIGNS))}")
        if self.grouping is not None and self.grouping not in GROUPING:
            shown = ", ".join(map(repr, GROUPING))
            raise FormatError(f"grouping={self.grouping!r} must be None or one of {shown}")
        for name, least in (("decimals", 0), ("max_digits", 1)):
            count = getattr(self, name)
            if count is not None and not (type(count) is int and least <= count <= 400):
                raise FormatError(f"{name}={count!r} must be an integer from {least} to 400")
        if self.step is not None and Decimal(self.step) <= 0:
            raise FormatError(f"step={self.step} must be above 0")
        if self.texts is not None and not self.texts:
            raise FormatError("there are no figures to write; give some")

    @cached_property
    def _digits(self) -> int:
        """The most digits of a number."""
        return self.max_digits or max(DEFAULT_DIGITS, sum(self._written()))

    @cached_property
    def _decimals(self) -> int:
        """The most digits behind the point."""
        if self.exponent and self.decimals is None:
            return self._digits - 1
        return min(self._written()[1], self._digits)

    def _written(self) -> tuple[int, int]:
        """Return how many digits the bounds have at most before the point, and how many are behind."""
        bounds = [Decimal(one) for one in (self.minimum, self.maximum) if one is not None]
        whole = max((one.adjusted() + 1 for one in bounds if one), default=1)
        if self.decimals is not None:
            return max(whole, 1), self.decimals
        written = bounds if self.step is None else [*bounds, Decimal(self.step)]
        return max(whole, 1), max((_decimals_of(one) for one in written), default=0)

    def _bounds(self) -> tuple[Decimal | None, Decimal | None]:
        """The bounds as the sign lets them be, None for an open side."""
        low = None if self.minimum is None else Decimal(self.minimum)
        if "-" not in self.sign and (low is None or low < 0):
            low = Decimal(0)
        return low, None if self.maximum is None else Decimal(self.maximum)

    def _bounded(self, language: BoundedDecimals, grouping: str) -> Part:
        """All numbers, those below 0 with a minus."""
        shape = Shape(
            self._decimals,
            self._digits,
            None if self.step is None else Fraction(self.step),
            grouping,
            self.exponent,
        )
        far = Fraction(10) ** (LARGEST_EXPONENT + 1 if self.exponent else self._digits)
        bounds = [None if bound is None else Fraction(bound) for bound in self._bounds()]
        low, high = (
            -far if bounds[0] is None else bounds[0],
            far if bounds[1] is None else bounds[1],
        )
        parts = []
        if high >= 0:
            unsigned = functools.partial(language.unsigned, shape, max(low, Fraction(0)), high)
            parts.append(unsigned(zero=low <= 0))
            if "+" in self.sign:
                parts.append(language.then(language.texts("+"), unsigned(zero=False)))
        if low < 0:
            below = language.unsigned(shape, max(-high, Fraction(0)), -low, zero=False)
            parts.append(language.then(language.texts("-"), below))
        return language.either(*parts)


def _decimal(value: Figure, name: str) -> Decimal:
    """Return the exact decimal that is written; of a float, numpy's too, the one that it prints as."""
    try:
        is_written = isinstance(value, str | Decimal) or not isinstance(value, Real)
        number = Decimal(value if is_written else str(value))
    except (ArithmeticError, TypeError, ValueError):
        number = Decimal("NaN")
    if isinstance(value, bool) or not number.is_finite():
        raise FormatError(f"{name}={value!r} must be a finite number, or the text of one")
    if max(number.adjusted(), _decimals_of(number)) >= LONGEST:
        raise FormatError(f"{name}={number:.5g} has more than {LONGEST:,} digits")
    return number


def as_bytes(text: str) -> str:
    """Return a text with one character for each byte of its UTF-8: the one of the byte's number."""
    return text.encode("utf-8", "replace").decode("latin-1")


def from_bytes(text: str) -> str:
    """Return the text of what :func:`as_bytes` returned."""
    return text.encode("latin-1").decode()


def as_written(value: Figure) -> str:
    """Return a figure as it is written: a text itself, another number without an exponent.

    Raises:
        FormatError: for a text that is not one number, and what is no finite number.
    """
    if not isinstance(value, str):
        number = _decimal(value, "value")
        return format(number if number else abs(number), "f")
    if _read(value) is None:
        raise FormatError(f"{value!r} is not one number; give its value as a Decimal")
    if len(value) > LONGEST:
        raise FormatError(f"the figure {value[:20]!r}... has more than {LONGEST:,} characters")
    return value


def _decimals_of(number: Decimal) -> int:
    return max(0, -int(number.as_tuple().exponent))


def _json_number(value: Decimal) -> int | float:
    if value == value.to_integral_value():
        return int(value)
    if Decimal(repr(float(value))) != value:
        raise FormatError(
            f"no float64 is written {value}, so JSON readers would round it; take"
            " json_schema(string=True)"
        )
    return float(value)


def _read(text: str) -> Decimal | None:
    """Return the value of a text that is one number, and nothing besides; else None."""
    numbers = extract(text)
    return numbers[0].value if [number.text for number in numbers] == [text] else None
