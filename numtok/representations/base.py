"""Base classes of representations of numbers: tokens in the text, and tensors beside it.

In: :class:`numtok.numbers.Numbers`. Out: for a :class:`SingleToken`, one ``[NUM]`` per number and
    Arrow arrays with one value per number; for a :class:`SpelledOut`, a short sequence of symbols
    per number. Each has its inverse beside it. A representation is a frozen dataclass: equal
    options, equal representation, and ``to_dict`` and ``from_dict`` are JSON.

To add one: a frozen dataclass that derives from one of the two, with its columns in ``declared``,
    and :func:`numtok.representations.register`.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.errors import RepresentationError
from numtok.numbers.automaton import Continuation
from numtok.numbers.grammar import Grammar
from numtok.numbers.numbers import Numbers
from numtok.options import check_options
from numtok.representations.columns import Column

NUM, END_NUM = "[NUM]", "[/NUM]"
OVERFLOW = ("text", "clip", "error")

Mask = npt.NDArray[np.bool_]
Symbols = npt.NDArray[np.uint16]


class AddedTokens(NamedTuple):
    """The tokens that a representation needs, in the order of their ids."""

    own: tuple[str, ...] = ()  # numtok's own; no source tokenizer may have them as anything else
    shared: tuple[str, ...] = ()  # symbols that may be tokens of the source tokenizer already
    # symbols that are tokens of the source tokenizer if it has all of them; else each is a token of
    # numtok's own, :func:`symbol_token`
    together: tuple[str, ...] = ()


class PlainForm(NamedTuple):
    """Rows and splits of a tokenizer.json that tokenizes numbers without numtok."""

    rows: tuple[str, ...] = ()  # that the vocabulary needs
    # regular expressions; each cuts the chunks of the one before it, and every match is a chunk.
    # Empty if numbers stay as the source cuts them.
    splits: tuple[str, ...] = ()


def symbol_token(symbol: str) -> str:
    """Return the token of a symbol that is no word of any vocabulary: ``[NUM:602]``.

    Example:
        >>> symbol_token("602")
        '[NUM:602]'
    """
    return f"[NUM:{symbol}]"


class Representation(ABC):
    """A way to show numbers to a model: as tokens, as tensors, or both.

    There are two kinds. A :class:`SingleToken` shows a number as one ``[NUM]``, with its value in
    columns; several of them can be combined. A :class:`SpelledOut` shows it as a sequence of
    tokens. ``Subword`` is neither: it leaves numbers as ordinary text.

    Attributes:
        name: its name on the command line and in JSON.
        overflow: what to do with numbers that it cannot hold. ``"text"`` leaves them as ordinary
            text, ``"clip"`` takes the nearest that it can hold; both are counted. ``"error"``
            refuses.
        carries_sign: whether it shows the sign. If not, it holds magnitudes, and the sign stays in
            the text (:meth:`Numbers.without_sign`).
        positional: the integer options that ``parse`` reads after a colon, in order: ``fone:6,4``.
        words: other words that ``parse`` reads after a colon, as in ``xval:log`` and
            ``place:lsd``, and the options that each stands for.
        variants: further options with which ``numtok stats`` compares it.
        declared: all columns that it may write with any options, dense and compact ones.
        aliases: earlier names, oldest first, which are still read.
        choices, limits: of some options, the values that there are, or the least and the largest.
        later: options that are younger than files: written only if they are set, so that the
            fingerprint of data written before they existed stays the same.
        stays_text: whether numbers stay ordinary text, so that two may begin in one token.
        has_scale: whether it has a ``scale`` that is fitted to the numbers of a corpus.
        exact_at_edges: whether single values alone are exact, the edges of bins, which say nothing
            of others with as many digits.

    Example:
        >>> import numtok
        >>> numtok.FoNE(2, 0).fits(numtok.Numbers.parse(["99", "100"])).tolist()
        [True, False]
    """

    name: ClassVar[str]
    overflow: str = "text"
    carries_sign: ClassVar[bool] = True
    positional: ClassVar[tuple[str, ...]] = ()
    words: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ()
    declared: ClassVar[tuple[Column, ...]] = ()
    aliases: ClassVar[tuple[str, ...]] = ()
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    limits: ClassVar[Mapping[str, tuple[int, int]]] = {}
    later: ClassVar[tuple[str, ...]] = ()
    stays_text: ClassVar[bool] = False
    has_scale: ClassVar[bool] = False
    exact_at_edges: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Hold all options to their types, their choices and their limits."""
        check_options(self, self.name, RepresentationError)
        for option, allowed in ({"overflow": OVERFLOW} | dict(self.choices)).items():
            if (value := getattr(self, option)) not in allowed:
                listing = ", ".join(map(repr, allowed))
                raise self.refused(f"{option}={value!r} is unknown; use one of {listing}")
        for option, (low, high) in self.limits.items():
            if not low <= (value := getattr(self, option)) <= high:
                raise self.refused(f"{option}={value} must be from {low} to {high}")

    def refused(self, why: str) -> RepresentationError:
        """Return the error for a wrong option of this representation."""
        return RepresentationError(f"{self.name}: {why}")

    def columns(self) -> dict[str, Column]:
        """Return the columns that the representation writes with these options, by name, with their
        shapes.
        """
        return {column.name: column for column in self.declared}

    @property
    def needs_fit(self) -> bool:
        """Whether it has to be fitted to the numbers of a corpus before it holds any."""
        return False

    def fit_to(
        self, values: npt.NDArray[np.float64], counts: npt.NDArray[np.float64] | None = None
    ) -> Representation:
        """Return a copy fitted to float64[n], each of which occurs once or ``counts`` times,
        float64[n]. One that is never :attr:`needs_fit` returns itself.
        """
        return self

    @property
    def exact_digit_range(self) -> range:
        """Powers of ten: a number all of whose digits stand at these fits, whatever they are.

        Empty if only :meth:`fits` can tell.
        """
        return range(0)

    @abstractmethod
    def fits(self, numbers: Numbers) -> Mask:
        """Return bool[n]: which numbers it can hold, exactly or within its documented precision."""

    def clipped(self, numbers: Numbers) -> Mask:
        """Return bool[n]: which numbers ``encode`` replaces by the nearest it can hold."""
        return ~self.fits(numbers) if self.overflow == "clip" else np.zeros(len(numbers), np.bool_)

    def added_tokens(self, two_forms: bool) -> AddedTokens:
        """Return the tokens that stand for numbers; with ``two_forms``, those that begin a number
        also with a space before them.
        """
        return AddedTokens()

    def plain_form(self, grammar: Grammar) -> PlainForm:
        """Return the form in which a program without numtok tokenizes numbers, from a
        tokenizer.json.

        Raises:
            RepresentationError: if no such file can say it.
        """
        raise RepresentationError(
            f"{self.name} is more than a cut of the text, so a plain tokenizer.json cannot say it;"
            " digits:1, digits:2, digits:3 and subword can be exported (save_pretrained saves all,"
            " for programs with numtok)"
        )

    def spec(self) -> str:
        """Return what :func:`numtok.representations.parse` reads: ``xval:log``, ``fone:6,4``,
        ``bits``. Options that can only be given in Python are not in it.

        Example:
            >>> from numtok import FoNE
            >>> FoNE(6, 4).spec()
            'fone:6,4'
        """
        values = [getattr(self, name) for name in self.positional]
        defaults = [getattr(type(self), name, None) for name in self.positional]
        parts = [] if values == defaults else list(map(str, values))
        options = vars(self).items()
        parts += [word for word, meant in self.words.items() if meant.items() <= options]
        return f"{self.name}:{','.join(parts)}" if parts else self.name

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready options; :func:`numtok.representations.from_dict` is the inverse."""
        options = dataclasses.asdict(self)  # type: ignore[call-overload]
        unset = {name for name in self.later if options[name] == getattr(type(self), name)}
        return {"name": self.name} | {k: one for k, one in options.items() if k not in unset}

    def identity(self) -> dict[str, Any]:
        """Return the options that fingerprints are made of: :meth:`to_dict` with the
        representation's first name, so that data written under that name keep their fingerprint,
        and without the form of columns, which changes no id.
        """
        options = self.to_dict() | {"name": (*self.aliases, self.name)[0]}
        return options | ({"compact": False} if "compact" in options else {})


class SingleToken(Representation):
    """A representation with one token ``[NUM]`` per number, and its value in one or more Arrow
    columns.

    Attributes:
        exact: whether :meth:`decode` gives decimals exactly, so that text is written from it rather
            than from a float64.

    Example:
        >>> import numtok
        >>> xval = numtok.XVal(scale=0.5)
        >>> xval.decode(xval.encode(numtok.Numbers.parse(["5", "-3"]))).to_float64().tolist()
        [5.0, -3.0]
    """

    exact: ClassVar[bool] = False

    @abstractmethod
    def encode(self, numbers: Numbers) -> dict[str, pa.Array]:
        """Encode numbers to columns, each of length n."""

    @abstractmethod
    def decode(self, columns: Mapping[str, pa.Array]) -> Numbers:
        """Decode columns to numbers: the inverse of :meth:`encode`, as far as the representation
        holds the numbers.
        """

    def near_zero(self, numbers: Numbers) -> Mask:
        """Return bool[n]: nonzero numbers whose encoding a model can hardly tell from that of zero."""
        return np.zeros(len(numbers), np.bool_)

    def added_tokens(self, two_forms: bool) -> AddedTokens:
        return AddedTokens((NUM, f" {NUM}") if two_forms else (NUM,))

    def expand(self, columns: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
        """Return the representation's columns among ``columns``, by name, with compact ones in
        their dense form.
        """
        return {name: columns[name] for name in self.columns() if name in columns}

    def decode_prediction(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Numbers | None:
        """Return the numbers of predicted digits or bits: arrays [n, ...] by the name of their
        column.

        None if there are none that say it to the last digit, so that only the model's float64 is
        left.
        """
        return None

    def clip_to_representable(self, numbers: Numbers) -> Numbers:
        """Return the numbers, each that cannot be held replaced by the nearest that can."""
        fits = self.fits(numbers)
        if fits.all():
            return numbers
        texts = numbers.format().to_pylist()
        held = self.nearest_in_range(numbers).format().to_pylist()
        return Numbers.parse(
            [text if good else near for text, near, good in zip(texts, held, fits, strict=True)]
        )

    def nearest_in_range(self, numbers: Numbers) -> Numbers:
        """Return the nearest numbers that can be held, of numbers that cannot."""
        clipping: Any = dataclasses.replace(self, overflow="clip")  # type: ignore[type-var]
        held: Numbers = clipping.decode(clipping.encode(numbers))
        return held


@dataclass(frozen=True, eq=False)
class Spelled:
    """n numbers as symbols.

    Example:
        >>> import numtok
        >>> spelled = numtok.P10().encode(numtok.Numbers.parse(["1", "-2"]))
        >>> spelled.offsets.tolist()
        [0, 5, 10]
    """

    symbols: Symbols  # uint16[total], indices into the representation's ``alphabet``
    offsets: npt.NDArray[np.int64]  # int64[n + 1]
    # one value per symbol for the representation's column per token, or None
    stream: npt.NDArray[Any] | None = None


class SpelledOut(Representation):
    """Each number as a sequence of symbols, each symbol one token; nothing else is needed to read
    it back.

    Attributes:
        shares_vocabulary: whether a symbol that is a token of the source tokenizer is that token.
            If not, all symbols are added tokens.
        order: in which order the digits of a number are tokens, one each or in groups: ``"msd"`` or
            ``"lsd"``; None if they are not.

    Example:
        >>> import numtok
        >>> place = numtok.PlaceValue()
        >>> place.decode(place.encode(numtok.Numbers.parse(["5", "-30.2"]))).to_pylist()
        ['5', '-30.2']
    """

    shares_vocabulary: ClassVar[bool] = True
    order: str | None = None

    @property
    def bracketed(self) -> bool:
        """Whether ``[NUM]`` and ``[/NUM]`` stand around each number."""
        return True

    def without_brackets(self) -> SpelledOut | None:
        """Return a copy that writes no brackets around numbers; None where that is not possible."""
        return None

    @property
    def marks_begin(self) -> bool:
        """Whether a token that only numbers have begins each number. If not, numbers are tokens of
        the text, and the grammar reads them there.
        """
        return self.bracketed or len(self.first_symbols) > 0

    @property
    @abstractmethod
    def alphabet(self) -> tuple[str, ...]:
        """The symbols, as in the papers."""

    @abstractmethod
    def encode(self, numbers: Numbers) -> Spelled:
        """Encode each number to symbols, without the brackets."""

    @abstractmethod
    def decode(self, spelled: Spelled) -> pa.LargeStringArray:
        """Decode symbols to the text of each number. Symbols that are no number are returned as
        their strings.
        """

    def encode_one(self, written: bytes, decimal: str) -> Symbols | None:
        """Encode one number that is surely held, from its text alone; None if the text is not
        enough.
        """
        return None

    def continuation(self, grammar: Grammar) -> Continuation | None:
        """Return the automaton of the symbols of numbers that ``grammar`` reads, without the
        brackets; None if nothing is known of it.
        """
        return None

    def reading(self, grammar: Grammar) -> Continuation | None:
        """Return the automaton of the symbols of a number that begins at a known token, where
        nothing else tells its end: unlike :meth:`continuation`, exponents may be of any length.
        None if :attr:`marks_begin`.
        """
        return None

    @property
    def length(self) -> int | None:
        """Tokens per number, the brackets not included; None if that depends on the number."""
        return None

    @property
    def token_strings(self) -> tuple[str, ...]:
        """The token of each symbol: the symbol, or, if the vocabulary is not shared,
        :func:`symbol_token` of it.
        """
        return self.alphabet if self.shares_vocabulary else tuple(map(symbol_token, self.alphabet))

    def token_strings_in(self, grammar: Grammar) -> tuple[str, ...]:
        """Return :attr:`token_strings` in text of this grammar, with its own marks where numbers
        are tokens of the text.
        """
        return self.token_strings

    @property
    def first_symbols(self) -> range:
        """The symbols that can begin a number without brackets: with two forms, each has one with a
        space before it.
        """
        return range(0)

    @property
    def spaced_token_strings(self) -> tuple[str, ...]:
        """The second form, with a space before it, of each of :attr:`first_symbols`."""
        tokens = self.token_strings
        return tuple(f" {tokens[symbol]}" for symbol in self.first_symbols)

    @property
    def symbol_values(self) -> tuple[tuple[str, float] | None, ...]:
        """Return for each symbol, in the order of :attr:`token_strings`, the kind of symbols it is
        compared with and its value among them; None for a symbol without a value.

        Empty if the tokens are those of the text, whose values their own strings say.
        """
        return ()

    @property
    def token_column(self) -> Column | None:
        """Its column with one value per token of the document, or None."""
        return next((column for column in self.columns().values() if column.per == "token"), None)

    def added_tokens(self, two_forms: bool) -> AddedTokens:
        opening = (NUM, f" {NUM}") if two_forms else (NUM,)
        brackets = (*opening, END_NUM) if self.bracketed else ()
        if self.shares_vocabulary:
            return AddedTokens(brackets, self.token_strings)
        return AddedTokens(
            (*brackets, *self.token_strings, *(self.spaced_token_strings if two_forms else ()))
        )

    def token_counts(self, numbers: Numbers) -> npt.NDArray[np.int64]:
        """Return int64[n]: the tokens of each number, with the brackets."""
        return np.diff(self.encode(numbers).offsets) + 2 * self.bracketed
