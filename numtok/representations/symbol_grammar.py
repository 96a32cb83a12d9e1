"""Automata of spelled-out numbers: :class:`Decimals`, the numbers that a grammar reads (rule A of
:mod:`numtok.numbers.grammar`), character by character or in groups of digits. What builds them is
in :mod:`numtok.numbers.automaton`.

The rule is said again here because a model writes numbers symbol by symbol: before a symbol is
chosen, the automaton tells which ones lead to a number. :func:`numtok.extract` needs all of it. The
numbers of the default grammar; in brackets the states in which a number may end::

                   .                              0-9
       +----------------------> (leading) -------------------+
       |                                                     v
    (begin) --0-9--> [integer] --- . ---> (point) --0-9--> [fraction]
                        | , and             ^
                        | 3 digits          | .
                        v                   |
                    [grouped] --------------+

    [integer], [grouped], (point), [fraction] --- e or E ---> (exponent) --0-9--> [power]

A sign may stand at (begin) and at (exponent), once. A comma may follow [integer] if that has at most
three digits and is not 0, and [grouped] again; [power] has at most three digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from numtok.numbers.automaton import Language, Part
from numtok.numbers.grammar import Grammar

EXPONENT_DIGITS = 3  # the largest power of ten that a float64 holds is 308


class Decimals(Language):
    """The decimals that a grammar reads, with ``.`` for the point whatever its mark.

    The first of several groups is not a lone 0. Where the comma is the decimal mark, 0.123 is not
    grouped and 192.168.100.200 an address: groups begin with no zero there, and there are at most
    three.

    Args:
        alphabet: digits, or groups of them, and marks.
        grammar: what numbers are.
        group: the most digits of a symbol.
        left: whether the digits before the point are cut from the left, as those behind it are.
        backwards: whether the mantissa is written from the last symbol to the first.
    """

    def __init__(
        self,
        alphabet: Sequence[str],
        grammar: Grammar,
        group: int = 1,
        left: bool = False,
        backwards: bool = False,
    ) -> None:
        super().__init__()
        self._alphabet, self._grammar = tuple(alphabet), grammar
        self._group, self._left, self._backwards = group, left, backwards
        self._points = grammar.decimal == ","  # whether points may be separators
        marks = (
            mark if mark in alphabet and mark != "." else "," for mark in grammar.grouping or ""
        )
        self._separators = tuple(dict.fromkeys(marks))

    def number(self, exponent_digits: int | None = EXPONENT_DIGITS) -> Part:
        """Accept any number; with None, one with any number of digits in its exponent."""
        integer, fraction = self._integer(None), self._fraction(None)
        mantissas = [integer, self._mantissa(integer, fraction)]
        if self._grammar.leading_dot:
            mantissas.append(fraction)
        before_exponent = self._mantissa(integer, self.mark("."))
        return self._number(mantissas, before_exponent, exponent_digits)

    def counted(self, whole: int, fraction: int | None) -> Part:
        """Accept a number that has so many digits before its point, and behind it; None: no point."""
        integer, nothing = self._integer(whole), self.either()
        if fraction is None:
            return self._number([integer], nothing)
        if fraction == 0:
            return self._number([], self._mantissa(integer, self.mark(".")))
        if whole == 0:
            integer = self.then() if self._grammar.leading_dot else nothing
        return self._number([self._mantissa(integer, self._fraction(fraction))], nothing)

    def mark(self, marks: str) -> Part:
        """Accept one of these characters."""
        return self.one(tuple(map(self._alphabet.index, marks)))

    def _number(
        self,
        mantissas: Sequence[Part],
        before_exponent: Part,
        exponent_digits: int | None = EXPONENT_DIGITS,
    ) -> Part:
        """Accept a number with sign and exponent; ``before_exponent`` is a mantissa that needs an
        exponent.
        """
        sign = self.maybe(self.mark("+-"))
        lengths = [None] if exponent_digits is None else range(1, exponent_digits + 1)
        powers = (self._run(length, self._left) for length in lengths)
        exponent = self.then(self.mark("eE"), sign, self.either(*powers))
        if not self._grammar.exponent:
            exponent = self.either()
        with_exponent = self.then(self.either(*mantissas, before_exponent), exponent)
        unsigned = self.either(*mantissas, with_exponent)
        return self.then(sign, unsigned) if self._grammar.signs else unsigned

    def _mantissa(self, *parts: Part) -> Part:
        return self.then(*(parts[::-1] if self._backwards else parts))

    def _fraction(self, count: int | None) -> Part:
        return self._mantissa(self.mark("."), self._run(count, left=True))

    def _integer(self, count: int | None) -> Part:
        """Accept so many digits, None for any number of them, with and without separators."""
        forms = [self._run(count, self._left)] if count != 0 else []
        for mark in self._separators:
            forms += self._separated(mark, count, 3, 0, 1 if self._points else None)
            if self._grammar.lakhs:
                forms += self._separated(mark, count, 2, 1, None)
        return self.either(*forms)

    def _separated(
        self, mark: str, count: int | None, size: int, least: int, most: int | None
    ) -> Iterator[Part]:
        """Accept up to ``size`` digits, ``least`` to ``most`` times as many again, and three at the
        end.
        """
        separator = self.mark(mark)
        again = self._mantissa(separator, self._run(size, self._left))
        last = self._mantissa(separator, self._run(3, self._left))
        for first in range(1, size + 1):
            low, high = least, most
            if count is not None:
                low, rest = divmod(count - 3 - first, size)
                if rest or low < least or (most is not None and low > most):
                    continue
                high = low
            further = [self.many(again)] if high is None else [self.maybe(again)] * (high - low)
            begin = self._run(first, self._left, nonzero=self._points or first == 1)
            yield self._mantissa(begin, *[again] * low, *further, last)

    def _run(self, count: int | None, left: bool, nonzero: bool = False) -> Part:
        """Accept so many digits, None for any number of them, cut in groups from one side."""
        size = self._group
        if count is None:
            full, last = self.many(self._digits(size)), range(1, size + 1)
            short = self.either(*map(self._digits, last))
            return self.then(full, short) if left else self.then(short, full)
        sizes = [size] * (count // size)
        rest = [count % size] if count % size else []
        sizes = sizes + rest if left else rest + sizes
        return self._mantissa(self._digits(sizes[0], nonzero), *map(self._digits, sizes[1:]))

    def _digits(self, count: int, nonzero: bool = False) -> Part:
        """Accept a symbol of so many digits, the first of which is not 0 if it is to be
        ``nonzero``.
        """
        return self.one(
            tuple(
                symbol
                for symbol, one in enumerate(self._alphabet)
                if len(one) == count and one.isdigit() and not (nonzero and one[0] == "0")
            )
        )
