"""Texts whose figures are all among those given: an automaton over the characters of free text.

In: figures, and what counts as a number. Out: the state after each character, as rows of a table
that are computed when they are first needed (``table[states, columns]``).

An automaton tells how the text so far ends, and so whether a number begins at the next character
(:mod:`numtok.numbers.text_boundaries`). Beside it stand the beginnings of figures that the text
ends with. Where the automaton says that digits would be read as a number, or would change the
number before them, only these decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays.unicode_classes import DIGIT, character_classes, ranges
from numtok.number_format.bounded_decimals import DIGITS
from numtok.numbers.grammar import ARABIC_POINT, Grammar, separators_of
from numtok.numbers.text_boundaries import (
    LETTERS,
    STATES,
    character_kinds,
    may_begin,
    shortened_word,
    walk,
)

Ints = npt.NDArray[np.int64]
KINDS = " aehxulEHUL.,';/)\\$-"  # of text_boundaries, without the digits; each is a symbol
FIRST_SEPARATOR = 0xE000  # private-use code points are symbols of characters that group digits
SEPARATED = ("N,", "N'")  # states behind a number and a character that may group digits
GLUED_AFTER = ("a", "0.")  # states in which digits belong to a name, such as Q3 or v1.2
SPECIAL = "\0"  # the symbol of a special token, which a reader of the text may see or not
NOWHERE = 0  # the state that no text leads out of
MARKS_BEYOND_ASCII = f"\u2212{ARABIC_POINT}"


class Symbols:
    """Symbols of characters: a symbol stands for all characters that no figure tells apart.

    A symbol is the kind of a character (:mod:`numtok.numbers.text_boundaries`), an ASCII digit, a
    plus, a character that groups digits, or a numeral beyond ASCII, such as ``²`` or ``٣``, itself.

    Args:
        grammar: what counts as a number, without a pattern or parentheses for a sign.
    """

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        kinds = character_kinds(grammar)
        table = kinds.astype(np.uint32)
        for first, last in ranges()["number"]:
            table[first:last] = np.arange(first, last)
        for character in f"+dD\n{SPECIAL}":  # d and D are of the kinds e and E, but no exponents
            table[ord(character)] = ord(character)
        self._kind = dict(zip(KINDS, KINDS, strict=True)) | dict.fromkeys(DIGITS, "0")
        self._kind |= {"+": "-", "d": "e", "D": "E", "\n": " ", SPECIAL: " "}
        for at, mark in enumerate(separators_of(grammar)):
            symbol = "," if mark == "," else chr(FIRST_SEPARATOR + at)
            self._kind[symbol] = chr(kinds[ord(mark)])
            table[ord(mark)] = ord(symbol)
        self._table, self._kinds = table, kinds
        self._values = character_classes()
        self.all = "".join(self._kind)

    def of(self, text: str) -> str:
        """Return the symbol of each character of a text."""
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        return self._table[points].astype("<u4").tobytes().decode("utf-32-le")

    def kind(self, symbol: str) -> str:
        """Return the kind of a symbol: that of its characters."""
        return self._kind.get(symbol) or chr(self._kinds[ord(symbol)])

    def plain(self, text: str) -> str:
        """Return the symbols of a text, with ASCII digits for those of all scripts."""
        return "".join(map(self._plain, self.of(text)))

    def _plain(self, symbol: str) -> str:
        value = int(self._values[ord(symbol)]) - DIGIT
        return symbol if symbol in self._kind or value < 0 else str(value)

    def rare(self, symbols: str) -> set[str]:
        """Return the numerals beyond ASCII among symbols."""
        return set(symbols).difference(self._kind)

    def shortened(self, symbols: str) -> str:
        """Drop symbols that change no state: those within words, and marks after two equal ones. Line
        feeds stay.
        """
        marks = re.sub(r"([^\w\n])\1{2,}", r"\1\1", symbols)
        return re.sub(f"[{LETTERS}]{{2,}}", shortened_word, marks)


class Path(NamedTuple):
    """The beginning of a figure, in symbols, that the text so far ends with; or of digits of a name,
    such as Q3, which are not read as a number.
    """

    written: str
    is_figure: bool


class State(NamedTuple):
    """The end of a text.

    Attributes:
        text: the state of :mod:`numtok.numbers.text_boundaries`; None within a number that must go
            on.
        paths: the figures that may go on.
    """

    text: str | None
    paths: frozenset[Path] = frozenset()


class GroundedText:
    """An automaton over the symbols of texts that hold no figure but those given.

    Args:
        symbols: of the grammar by which figures are read.
        figures: the figures, as they may be written, in symbols of ASCII digits and marks.
        names: the digits that may stand behind letters, the same way.
        source: the text that has them; its numerals beyond ASCII may be written.

    Attributes:
        start: the state at the beginning of a text.
        beyond_ascii: (UTF-8, symbol) of the characters beyond ASCII that figures may have.
    """

    def __init__(
        self, symbols: Symbols, figures: Iterable[str], names: Iterable[str], source: str
    ) -> None:
        self.symbols, self._rare = symbols, frozenset(symbols.rare(symbols.of(source)))
        self._texts = frozenset(names), frozenset(figures)
        self._beginnings = tuple(
            {text[:stop] for text in texts for stop in range(1, len(text))} for texts in self._texts
        )
        marks = [*MARKS_BEYOND_ASCII, *separators_of(symbols.grammar), *self._rare]
        self.beyond_ascii = [(one.encode(), symbols.of(one)) for one in marks if not one.isascii()]
        begins = may_begin(symbols.grammar)
        self._begins = {
            kind: {state for state, may in zip(STATES, mask, strict=True) if may}
            for kind, mask in (("0", begins.digit), (".", begins.mark), ("-", begins.sign))
        }
        self._begins["-"].add("N'")
        self._begins["."].add("N'")
        if symbols.grammar.decimal == ",":  # which a sign may follow
            self._begins["-"].update(one for one in STATES if one.endswith("."))
        self._states: list[State | None] = [None]  # NOWHERE
        self._numbers: dict[State, int] = {}
        self._following: dict[tuple[int, str], int] = {}
        self.start = self._number(State(" "))

    def step(self, state: int, symbols: str) -> int:
        """Return the state after more symbols."""
        for symbol in symbols:
            if (state, symbol) not in self._following:
                self._following[state, symbol] = self._after(state, symbol)
            state = self._following[state, symbol]
        return state

    def may_end(self, state: int) -> bool:
        """Whether a text may end in a state: not within a figure."""
        current = self._states[state]
        return current is not None and current.text is not None

    def behind(self, symbols: str, state: int | None = None) -> int:
        """Return the state after symbols that need not be allowed: one that may not follow ends the
        figures before it, and what comes after it is followed again.
        """
        state = self.start if state is None else state
        current = self._states[state]
        text = current.text if current and current.text else " "
        for symbol in symbols:
            kind = self.symbols.kind(self.symbols.plain(symbol))
            text, _ = walk(text, kind, self.symbols.grammar.decimal)
            state = self.step(state, symbol) or self._number(State(text))
        return state

    def _number(self, state: State) -> int:
        if state not in self._numbers:
            self._numbers[state] = len(self._states)
            self._states.append(state)
        return self._numbers[state]

    def _after(self, number: int, symbol: str) -> int:
        """Return the state after one symbol."""
        state = self._states[number]
        if symbol in self._rare:
            symbol = self.symbols.plain(symbol)
        elif self.symbols.rare(symbol):
            return NOWHERE
        if state is None:
            return NOWHERE
        kind = self.symbols.kind(symbol)
        if symbol == SPECIAL:  # no digits may follow directly
            return NOWHERE if state.text is None else self._number(State("N"))
        text = self._text_after(state, kind)
        paths = set()
        for path in (*state.paths, *self._begun(state, kind)):
            written = path.written + symbol
            if written in self._beginnings[path.is_figure]:
                paths.add(path._replace(written=written))
            if written in self._texts[path.is_figure]:
                text = "N" if path.is_figure else "0"
        if text is None and not paths:
            return NOWHERE
        return self._number(State(text, frozenset(paths)))

    def _text_after(self, state: State, kind: str) -> str | None:
        """Return how the text ends behind a character that belongs to no figure, None where none may
        stand.
        """
        if state.text is None or kind == "0":
            return None
        text, stays = walk(state.text, kind, self.symbols.grammar.decimal)
        if state.text == "0" and kind == ",":  # B2,345
            text = "N,"
        return text if stays else None

    def _begun(self, state: State, kind: str) -> list[Path]:
        """Return the figure, or the digits of a name, that may begin with a character."""
        text = state.text
        if kind == "0" and text in SEPARATED:
            return []  # 48,25 looks like a figure, though it is read as two
        if text in self._begins.get(kind, ()):
            return [Path("", is_figure=True)]
        return [Path("", is_figure=False)] if kind == "0" and text in GLUED_AFTER else []
