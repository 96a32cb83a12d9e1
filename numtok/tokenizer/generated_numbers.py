"""Turn what a model generated into numbers and text: a number that a head predicted becomes one
decimal, from which its text and its streams follow; token ids become text.

In: a head's reading of n numbers, token ids. Out: texts, and the streams (n, ...) that the model is
shown: those that the tokenizer gives for the text, so that a model reads what it wrote as it was
trained.

**One decimal, however it was computed.** Float32 sums depend on their order, so a cache, padding or
other rows in a batch move a real number by 1e-7 to 1e-5. So it is rounded to :data:`DIGITS`
significant digits; and where noise may decide which way (:func:`needs_reread`), it is read once more
from its own text alone. Digits (``FoNEHead``) and bits (``BitsHead``) are chosen among few, as
tokens are, and taken as they are. What remains: noise beyond its bounds, and a token,
digit or bit whose two best are closer than the noise, some 1 in 10**6 each in float32. In bfloat16
the noise is 1e-2, and tokens themselves differ with and without a cache.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.engines.config import vocabulary_of
from numtok.errors import InputError
from numtok.numbers.decimals import in_marks_of
from numtok.numbers.grammar import Grammar
from numtok.numbers.numbers import Numbers
from numtok.numbers.scan import scan
from numtok.representations import END_NUM, Representation, SingleToken, SpelledOut, symbol_token
from numtok.representations.columns import numbers_from_floats
from numtok.representations.digit_symbols import LONGEST_GROUP, groups
from numtok.tokenizer.decode import TokenIds, canonical, given_ids
from numtok.tokenizer.token_texts import is_lossless
from numtok.tokenizer.tokenizer import Tokenizer
from numtok.tokenizer.vocabulary import first_ids
from numtok.tokenizer.well_formed import NumberRules

# significant ones of a real number: one more would be noise; about one number in ten is read twice
DIGITS = 4
LARGEST = 1.797e308  # float64 of so many digits
CONTEXT = 8  # tokens that the text of the next one may depend on
UNFINISHED = "\ufffd"  # what bytes decode to whose character is not whole yet
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Streams = dict[str, npt.NDArray[Any]]


class Reading(NamedTuple):
    """Values of n numbers as a head predicts them."""

    values: Floats  # float64 (n,)
    # exact ones (n, ...), such as ``number_digits``, where the head predicts them
    streams: Mapping[str, npt.NDArray[Any]]
    # float64 (n, 2), between which float noise may move a value; None for what is chosen among few,
    # or drawn
    bounds: Floats | None = None


def finalize(
    tokenizer: Tokenizer, reading: Reading, alone: Callable[[int], float], name: str = "the head"
) -> tuple[list[str], Streams]:
    """Return the texts of n numbers, and every number stream (n, ...), as the model is shown them;
    RepresentationError for NaN. ``alone`` reads the value of number k once more, from its text
    without cache, padding or other rows: where float noise decides how a number is rounded.
    """
    values = reading.values.copy()
    for at in np.flatnonzero(needs_reread(reading)).tolist():
        values[at] = alone(at)
    numbers = _decimals(tokenizer, reading._replace(values=values), name)
    return [str(text) for text in numbers.format().to_pylist()], streams_of(tokenizer, numbers)


def rounded(values: Floats) -> Floats:
    """Round float64 (...) to :data:`DIGITS` significant digits; infinities and NaN stay."""
    flat = [float(f"{value:.{DIGITS - 1}e}") for value in values.ravel()]
    return np.array(flat, np.float64).reshape(values.shape)


def needs_reread(reading: Reading) -> npt.NDArray[np.bool_]:
    """Return bool (n,): whether float noise decides how a number is rounded."""
    if reading.bounds is None:
        return np.zeros(len(reading.values), np.bool_)
    low, high = rounded(reading.bounds).T  # (n,) each
    return np.asarray(low != high)


def _decimals(tokenizer: Tokenizer, reading: Reading, name: str) -> Numbers:
    """Return the numbers as decimals that all representations of the tokenizer hold; magnitudes
    where one of them does not carry the sign.
    """
    read = (one.decode_prediction(reading.streams) for one in _single(tokenizer.representations))
    numbers = next((numbers for numbers in read if numbers is not None), None)
    if numbers is None:
        finite = np.clip(rounded(reading.values), -LARGEST, LARGEST)  # NaN stays
        numbers = numbers_from_floats(finite, name)
    if not tokenizer.carries_sign:
        numbers = Numbers.parse([text.removeprefix("-") for text in numbers.format().to_pylist()])
    return held(tokenizer.representations, numbers)


def held(representations: Sequence[Representation], numbers: Numbers) -> Numbers:
    """Return the numbers, each replaced by one near it that all of the representations hold."""
    # what one of them makes of a number may be more than another can hold
    for _ in representations:
        for representation in _single(representations):
            numbers = representation.clip_to_representable(numbers)
    return numbers


def _single(representations: Sequence[Representation]) -> list[SingleToken]:
    return [one for one in representations if isinstance(one, SingleToken)]


def streams_of(tokenizer: Tokenizer, numbers: Numbers) -> Streams:
    """Return every number stream (n, ...) of the tokenizer, as it gives them for the text."""
    streams: Streams = {"number_value": numbers.to_float64()}
    for representation in _single(tokenizer.representations):
        columns = representation.columns()
        for name, column in representation.encode(numbers).items():
            tensors = hasattr(column, "to_numpy_ndarray")
            array = column.to_numpy_ndarray() if tensors else column.to_numpy(zero_copy_only=False)
            streams[name] = array.astype(columns[name].dtype)
    return streams


def number_ids(tokenizer: Tokenizer) -> list[int]:
    """Return the tokens that stand for a number or begin one; none if numbers are tokens of the
    text.
    """
    unspaced, spaced = first_ids(tokenizer.tokens, tokenizer.spelling)
    return [*unspaced.tolist(), *spaced.tolist()]


def spelled(
    tokenizer: Tokenizer, ids: npt.NDArray[np.int64], before: Sequence[int] = ()
) -> dict[int, str]:
    """Return the text of the numbers that are spelled out in int64[n] ids, by the place at which
    each begins, in the marks of the grammar; what is no number, as its symbols. ``before`` are the
    ids that they follow.
    """
    if tokenizer.spelling is None:
        return {}
    if tokenizer.spelling.reading is not None:  # they are where the grammar reads them
        numbers = tokenizer.numbers_in([*before, *ids.tolist()])
        positions = ((position - len(before), text) for position, _, text in numbers)
        return {position: text for position, text in positions if position >= 0}
    begins = np.flatnonzero(np.isin(ids, number_ids(tokenizer)))
    texts = in_marks_of(
        tokenizer.grammar, tokenizer.decoder.read_spelled(ids.astype(np.int32), begins)
    )
    return dict(zip(begins.tolist(), map(str, texts.to_pylist()), strict=True))


def value_of(surface: str, grammar: Grammar) -> float:
    """Return the value of a number's text, as the grammar reads it; NaN if the text is no number.

    >>> value_of("1,234.5", Grammar())
    1234.5
    """
    numbers = scan([surface], grammar)
    whole = numbers.text().to_pylist() == [surface]
    return float(numbers.to_float64()[0]) if whole else float("nan")


def generated_text(
    tokenizer: Tokenizer, prompt: list[int], ids: list[int], surfaces: list[str]
) -> str:
    """Return the text of the ids that follow a prompt, with ``surfaces`` for their ``[NUM]`` tokens.
    Of a decoder that puts spaces between tokens, that is what the ids add to the prompt's text.
    """
    has_values = isinstance(tokenizer.representations[0], SingleToken)

    def text(ids: list[int], surfaces: list[str]) -> str:
        return tokenizer.decode(ids, surfaces if has_values else None)

    alone = text(ids, surfaces)
    if is_lossless(tokenizer.config):
        return alone
    zeros = ["0"] * int(np.isin(prompt, number_ids(tokenizer)).sum())
    before, whole = text(prompt, zeros), text([*prompt, *ids], [*zeros, *surfaces])
    return whole.removeprefix(before) if whole.startswith(before) else alone


class PlaceTracker:
    """The places of the digits that a model writes, token by token, one state per row: what a layer
    sees of ``place_value`` while they are written (:mod:`numtok_torch.embeddings.place_values`).

    Args:
        vocabulary: the ids of the tokens that numbers are spelled with, by content: those of
            PlaceValue or Digits. Any other token, ``[/NUM]`` among them, ends a number.
        order: ``"msd"`` or ``"lsd"``.
        rules: those of numbers that are tokens of the text, which say where one begins and ends;
            None for numbers in brackets.
        point: the decimal mark.

    Example:
        >>> import numtok
        >>> tokenizer = numtok.Tokenizer.from_pretrained(numbers="place:lsd")
        >>> tracker = PlaceTracker.of(tokenizer)
        >>> [int(tracker.step([token])[0]) for token in tokenizer.encode("417 km").input_ids]
        [0, 1, 2, 3, 0, 0]
    """

    def __init__(
        self,
        vocabulary: Mapping[str, int],
        order: str = "msd",
        rules: NumberRules | None = None,
        point: str = ".",
    ) -> None:
        def ids(contents: Iterable[str]) -> list[int]:
            return [vocabulary[one] for one in contents if one in vocabulary]

        # digits of each token; the last is any other one
        self._widths = np.zeros(max(vocabulary.values(), default=0) + 2, np.int64)
        for group in groups(LONGEST_GROUP):
            self._widths[ids((group, symbol_token(group)))] = len(group)
        inner = {*"-+.,_'"} - {point}
        self._kinds = [ids(some) for some in (("[NUM]", " [NUM]"), point, inner, "eE")]
        self._order = order
        self._rules = rules
        # (5, rows): inside, after the point, exponent, count, and the state of the rules
        self._state: Ints | None = None

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> PlaceTracker | None:
        """Return the tracker for a tokenizer whose numbers have places, None for another one."""
        first = tokenizer.representations[0]
        if not isinstance(first, SpelledOut) or first.order is None or first.token_column is None:
            return None
        if first.marks_begin:
            return cls(tokenizer.tokens, first.order)
        rules, point = NumberRules.of(tokenizer), tokenizer.grammar.decimal
        return cls(tokenizer.tokens, first.order, rules, point)

    def step(self, ids: npt.ArrayLike) -> Ints:
        """Return the places, int64 (rows,), of the tokens (rows,) just written."""
        ids = np.asarray(ids, np.int64)
        opens, point, inner, power = (np.isin(ids, one) for one in self._kinds)
        width = self._widths[np.clip(ids, -1, len(self._widths) - 1)]
        state = np.zeros((5, len(ids)), np.int64) if self._state is None else self._state
        was_inside, was_behind, was_power = state[:3].astype(np.bool_)
        inside, now = opens | (was_inside & ((width > 0) | point | inner | power)), state[4]
        if self._rules is not None:
            now, opens, inside = self._rules.step(state[4], ids)
        behind = inside & (point | (was_behind & ~opens))
        exponent = inside & ~opens & (was_power | power)
        counts = inside & ~exponent & (behind if self._order == "msd" else True)
        width = np.where(counts, width, 0)
        count = np.where(opens | ~inside | point, 0, state[3]) + width
        self._state = np.stack([inside, behind, exponent, count, now]).astype(np.int64)
        return np.where(width > 0, -count if self._order == "msd" else count, 0)

    def reorder(self, rows: npt.ArrayLike) -> None:
        """Take the states of these rows, int64 (new rows,): for beams."""
        if self._state is not None:
            self._state = self._state[:, np.asarray(rows)]


class DecodeStream:
    """Text from ids that come one after the other, numbers whole: as
    ``tokenizers.decoders.DecodeStream``, for a :class:`numtok.Tokenizer` or a
    :class:`numtok.hf.NumberTokenizer`. Digits that are tokens of the text (``digits:1,bare``) come as
    the text does; WordPiece decodes them in another way alone than together, and is not for streams.

    Args:
        ids: a prompt, whose text is not given.
        skip_special_tokens: leave out special tokens; ``[NUM]`` is none.

    Example:
        >>> import numtok
        >>> tokenizer = numtok.Tokenizer.from_pretrained(numbers="p10")
        >>> stream = numtok.DecodeStream()
        >>> [stream.step(tokenizer, int(token)) for token in tokenizer.encode("is 7 m").input_ids]
        ['is', None, None, None, None, ' 7', ' m']
    """

    def __init__(self, ids: TokenIds | None = None, skip_special_tokens: bool = False) -> None:
        self.skip_special_tokens = skip_special_tokens
        self._ids: list[int] = [] if ids is None else given_ids(ids).tolist()
        self._values = ["0"] * len(self._ids)  # of a prompt: they are not shown
        self._given = len(self._ids)  # of these ids the text was given
        self._has_values: bool | None = None  # None before the first number

    def step(self, tokenizer: Any, id: int | TokenIds, number_value: Any = None) -> str | None:
        """Return the text that is settled by one more id, or several, in a list, an array or a
        tensor; None if there is none.

        ``number_value`` is that of a number that is one token: a float, a ``Decimal`` or its text.
        Without values ``[NUM]`` shows as itself.

        Raises:
            InputError: if some numbers have values and others none.
        """
        inner = getattr(tokenizer, "numtok", tokenizer)  # of a numtok.hf.NumberTokenizer
        more: list[int] = np.atleast_1d(np.asarray(id)).tolist()
        if not _kinds_of_tokens(inner).values.isdisjoint(more):
            has_value = number_value is not None
            if self._has_values not in (None, has_value):
                raise InputError(
                    "some numbers have a number_value and others none; give all, or none"
                )
            self._has_values = has_value
        self._ids += more
        text = "0" if number_value is None else str(canonical([number_value])[0])
        self._values += [text] * len(more)
        if self._is_in_number(inner) or self._is_in_bytes(inner):
            return None
        return self._settled(tokenizer, UNFINISHED)

    def finish(self, tokenizer: Any) -> str | None:
        """Return the rest, if the last number or character is not whole; None if there is none."""
        return self._settled(tokenizer, None)

    def _settled(self, tokenizer: Any, unfinished: str | None) -> str | None:
        given_text, text = self._text(tokenizer, self._given), self._text(tokenizer, len(self._ids))
        if len(text) <= len(given_text) or (unfinished and text.endswith(unfinished)):
            return None
        # the last tokens stay: those whose text was given now, or a few
        dropped = min(self._given, max(0, len(self._ids) - CONTEXT))
        del self._ids[:dropped], self._values[:dropped]
        self._given = len(self._ids)
        return text[len(given_text) :]

    def _text(self, tokenizer: Any, count: int) -> str:
        """Return the text of the first ``count`` ids."""
        ids, values = self._ids[:count], None
        if self._has_values:
            numbers = _kinds_of_tokens(getattr(tokenizer, "numtok", tokenizer)).values
            values = [self._values[at] for at, one in enumerate(ids) if one in numbers]
        if not isinstance(tokenizer, Tokenizer):
            options = {"skip_special_tokens": self.skip_special_tokens, "number_value": values}
            return str(tokenizer.decode(ids, **options))
        added = tokenizer.config["added_tokens"] if self.skip_special_tokens else []
        special = {token["id"] for token in added if token["special"]}
        return tokenizer.decode([one for one in ids if one not in special], values)

    def _is_in_number(self, tokenizer: Tokenizer) -> bool:
        """Whether the last ids begin a number that may go on."""
        first = tokenizer.representations[0]
        if not isinstance(first, SpelledOut) or not first.marks_begin:
            return False
        kinds = _kinds_of_tokens(tokenizer)
        for run, symbol in enumerate(reversed(self._ids), 1):
            if symbol not in kinds.symbols or symbol == tokenizer.tokens.get(END_NUM):
                return False
            if symbol in kinds.begins and run < (first.length or math.inf):
                return True
        return False

    def _is_in_bytes(self, tokenizer: Tokenizer) -> bool:
        """Whether the last id is that of a byte, as SentencePiece has them: one byte that is wrong
        changes the text of all that it stands in a row with.
        """
        return bool(self._ids) and self._ids[-1] in _kinds_of_tokens(tokenizer).bytes


class _KindsOfTokens(NamedTuple):
    """Ids of a tokenizer that a stream of text tells from others."""

    symbols: set[int]  # of all that numbers are made of
    begins: set[int]  # of those that begin one
    values: set[int]  # of numbers that are one token
    bytes: set[int | None]


@functools.lru_cache(maxsize=2)  # asked for at every token
def _kinds_of_tokens(tokenizer: Tokenizer) -> _KindsOfTokens:
    begins, vocabulary = set(number_ids(tokenizer)), vocabulary_of(tokenizer.config)
    values = begins if isinstance(tokenizer.representations[0], SingleToken) else set()
    of_bytes = {vocabulary.get(f"<0x{byte:02X}>") for byte in range(256)}
    return _KindsOfTokens(set(tokenizer.tokens.values()), begins, values, of_bytes)
