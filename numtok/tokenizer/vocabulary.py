"""The tokens that numbers have in one tokenizer, and spelled-out numbers as ids, in brackets
``[NUM]`` and ``[/NUM]`` if the representation has them.

The inverse reads ids that a model may have made: whatever follows, up to the first token that does
not belong to the number. Where numbers are tokens of the text, so that a point may end a sentence,
that is the longest number that begins there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.kernels import allocating_kernel
from numtok.engines.config import is_byte_level, kind_of, ordinary_token, vocabulary_of
from numtok.engines.engine import NumtokTokens, Slots
from numtok.errors import TokenizerError
from numtok.numbers.automaton import NEVER, Continuation
from numtok.numbers.grammar import Grammar
from numtok.numbers.numbers import Numbers
from numtok.representations import (
    END_NUM,
    NUM,
    Representation,
    SingleToken,
    Spelled,
    SpelledOut,
    symbol_token,
)

Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]
# the name of a symbol's token, where the representation does not share the vocabulary
OWN_SYMBOL = re.compile(r" ?\[NUM:[^\[\]]+\]")


class Spelling(NamedTuple):
    """The tokens of a spelled-out representation."""

    ids: Ids  # int32[symbols], the token of each symbol
    first: range  # the symbols that begin a number without brackets; empty if there are brackets
    # int32[len(first)], the second form of their tokens, with the space before; empty if there is
    # one form
    spaced: Ids
    length: int | None  # symbols per number; None for as many as follow
    # ids of ``[NUM]``, `` [NUM]`` and ``[/NUM]``; -1 where there is none
    brackets: tuple[int, int, int]
    # what may follow what in a number that is tokens of the text; None for other numbers
    reading: Continuation | None = None

    @classmethod
    def of(
        cls, representation: Representation, tokens: Mapping[str, int], grammar: Grammar
    ) -> Spelling | None:
        """Return the spelling of a representation, with the id of each of its tokens, in text of
        this grammar; None if it does not spell numbers out.
        """
        if not isinstance(representation, SpelledOut):
            return None
        ids = [
            tokens[content] if content in tokens else tokens[symbol_token(content)]
            for content in representation.token_strings_in(grammar)
        ]
        spaced = [tokens[one] for one in representation.spaced_token_strings if one in tokens]
        unspaced_ids, spaced_ids = np.array(ids, np.int32), np.array(spaced, np.int32)
        brackets = (tokens.get(NUM, -1), tokens.get(f" {NUM}", -1), tokens.get(END_NUM, -1))
        first, length = representation.first_symbols, representation.length
        reading = representation.reading(grammar)
        return cls(unspaced_ids, first, spaced_ids, length, brackets, reading)

    @property
    def bracketed(self) -> bool:
        return self.brackets[0] >= 0

    def runs(self, own_ids: Set[int]) -> dict[str, list[list[int]]]:
        """Return the ids among ``own_ids``, those of numtok, as the schema's metadata hold them:
        consecutive ids as [first, count].
        """
        own_symbols = self.ids[np.isin(self.ids, [*own_ids])]
        return {"plain": _runs(own_symbols), "spaced": _runs(self.spaced)}


def first_ids(tokens: Mapping[str, int], spelling: Spelling | None) -> tuple[Ids, Ids]:
    """Return the tokens with which numbers begin: without, and with the space before them."""
    if spelling is not None and not spelling.bracketed:
        return spelling.ids[spelling.first.start : spelling.first.stop], spelling.spaced
    unspaced, spaced = (
        np.array([tokens[form]] if form in tokens else [], np.int32) for form in (NUM, f" {NUM}")
    )
    return unspaced, spaced


def token_ids(spelled: Spelled, spelling: Spelling) -> tuple[Ids, Ids, Ints]:
    """Return (flat ids without space, with space, offsets) of spelled-out numbers; the forms differ
    in each number's first id.
    """
    if not spelling.bracketed:
        flat = spelling.ids[spelled.symbols]
        with_space = flat.copy()
        if len(spelling.spaced):
            starts = spelled.offsets[:-1]
            first = spelled.symbols[starts].astype(np.int64) - spelling.first.start
            with_space[starts] = spelling.spaced[first]
        return flat, with_space, spelled.offsets
    unspaced, spaced, end = spelling.brackets
    offsets = memory.offsets_of(np.diff(spelled.offsets) + 2)
    flat = np.full(offsets[-1], end, np.int32)
    flat[_symbol_places(spelled, offsets[:-1] + 1)] = spelling.ids[spelled.symbols]
    flat[offsets[:-1]] = unspaced
    with_space = flat.copy()
    with_space[offsets[:-1]] = spaced
    return flat, with_space, offsets


def symbol_columns(
    representation: Representation, spelled: Spelled | None, positions: Ints, length: int
) -> dict[str, npt.NDArray[Any]]:
    """Return the columns [length] with one value per token, where the tokens of the numbers begin at
    the positions: 0 but at symbols.
    """
    if not isinstance(representation, SpelledOut) or spelled is None or spelled.stream is None:
        return {}
    if (column := representation.token_column) is None:
        return {}
    values = np.zeros(length, spelled.stream.dtype)
    values[_symbol_places(spelled, positions + representation.bracketed)] = spelled.stream
    return {column.name: values}


def _symbol_places(spelled: Spelled, positions: Ints) -> Ints:
    """Return int64[symbols]: the place of each, where those of the numbers begin at the positions."""
    begins = positions - spelled.offsets[:-1]
    return np.asarray(np.repeat(begins, np.diff(spelled.offsets)) + np.arange(len(spelled.symbols)))


def read_symbols(ids: Ids, positions: Ints, spelling: Spelling) -> Spelled:
    """Read the symbols at each position, up to the first token that does not belong to the number:
    the inverse of :func:`token_ids`.
    """
    # a model may give any id; the table ends here
    beyond = int(max(spelling.ids.max(initial=-1), spelling.spaced.max(initial=-1))) + 1
    symbol_of = np.full(beyond + 1, -1, np.int32)
    symbol_of[spelling.ids] = np.arange(len(spelling.ids))
    symbol_of[spelling.spaced] = spelling.first.start + np.arange(len(spelling.spaced))
    symbol_ids = np.where((ids < 0) | (ids > beyond), beyond, ids)
    if (reading := spelling.reading) is not None:
        following = np.append(positions[1:], len(ids))  # the number that begins next
        limits = np.where(following > positions, following, len(ids))
        symbols, ends = symbol_of[symbol_ids], reading.ends
        return Spelled(*_read_longest(symbols, positions, limits, reading.following, ends))
    most = len(ids) if spelling.length is None else spelling.length
    starts, first = positions + spelling.bracketed, (spelling.first.start, spelling.first.stop)
    return Spelled(*_read_symbols(symbol_ids, starts, symbol_of, most, *first))


def number_stops(ids: Ids, positions: Ints, spelling: Spelling | None) -> Ints:
    """Return where each number's tokens end: after its one token, or after its symbols and
    ``[/NUM]``.
    """
    if spelling is None:
        return positions + 1
    stops = positions + spelling.bracketed + np.diff(read_symbols(ids, positions, spelling).offsets)
    if spelling.bracketed:
        stops += np.append(ids, -1)[np.minimum(stops, len(ids))] == spelling.brackets[2]
    return np.maximum(stops, positions + 1)


def _runs(ids: Ids) -> list[list[int]]:
    """Return ids that follow one another as [first, count] each; tens of thousands are one run,
    unless they were added in several turns.
    """
    starts = np.flatnonzero(np.diff(ids, prepend=-2) != 1)
    runs: list[list[int]] = np.stack([ids[starts], np.diff(starts, append=len(ids))], 1).tolist()
    return runs


@allocating_kernel
def _read_symbols(ids, starts, symbol_of, most, first, last):  # type: ignore[no-untyped-def]
    """Read symbols in two passes: sizes, then symbols.

    A symbol from ``first`` up to ``last`` begins the next number.
    """
    offsets = np.zeros(starts.size + 1, np.int64)
    symbols = np.empty(0, np.uint16)
    for writing in range(2):
        for i in range(starts.size):
            at, filled = starts[i], offsets[i]
            while 0 <= at < ids.size and at < starts[i] + most:
                symbol = symbol_of[ids[at]]
                if symbol < 0 or (at > starts[i] and first <= symbol < last):
                    break
                if writing:
                    symbols[filled] = symbol
                filled += 1
                at += 1
            offsets[i + 1] = filled
        if not writing:
            symbols = np.empty(offsets[-1], np.uint16)
    return symbols, offsets


@allocating_kernel
def _read_longest(symbols, starts, limits, following, ends):  # type: ignore[no-untyped-def]
    """Read the longest number that begins at each start, before its limit; where none does, all
    symbols.
    """
    offsets = np.zeros(starts.size + 1, np.int64)
    for i in range(starts.size):
        at, state, stop = starts[i], 0, starts[i]
        while 0 <= at < limits[i] and state != NEVER and symbols[at] >= 0:
            state = following[state, symbols[at]]
            at += 1
            if state != NEVER and ends[state]:
                stop = at
        if stop == starts[i]:
            while 0 <= stop < limits[i] and symbols[stop] >= 0:
                stop += 1
        offsets[i + 1] = offsets[i] + stop - starts[i]
    out = np.empty(offsets[-1], np.uint16)
    for i in range(starts.size):
        for k in range(offsets[i], offsets[i + 1]):
            out[k] = symbols[starts[i] + k - offsets[i]]
    return out, offsets


def add_number_tokens(
    config: dict[str, Any], representation: Representation, two_forms: bool
) -> tuple[dict[str, Any], dict[str, int]]:
    """Return ``config`` with the tokens that the representation (the first of those combined)
    needs, and the ids of all of them.

    Ids are given out in a fixed order after the largest there is; tokens that are there already
    keep theirs, so a saved tokenizer does not change. TokenizerError if the source already has one
    of them as a token of another kind.
    """
    own, shared, together = representation.added_tokens(two_forms)
    vocabulary = vocabulary_of(config)
    entries = list(config.get("added_tokens") or [])
    added = {token["content"]: token for token in entries}
    if all(content in vocabulary or content in added for content in together):
        shared = (*together, *shared)
    else:
        own = (*own, *map(symbol_token, together))
    tokens: dict[str, int] = {}
    following = 1 + max([*vocabulary.values(), *(token["id"] for token in entries)], default=-1)
    for content in own:
        _check_own(content, added.get(content), vocabulary)
    for content in (*own, *shared):
        if content in added:
            tokens[content] = added[content]["id"]
        elif content in vocabulary:
            tokens[content] = vocabulary[content]
        else:
            entries.append(ordinary_token(following, content))
            tokens[content] = following
            following += 1
    return config | {"added_tokens": entries}, tokens


def _check_own(
    content: str, entry: Mapping[str, Any] | None, vocabulary: Mapping[str, int]
) -> None:
    """Refuse a source in which one of numtok's own tokens is something else."""
    if entry is not None and (entry["special"] or entry["normalized"]):
        raise TokenizerError(
            f"the source tokenizer already has {content!r} as a special or normalized token; numtok"
            " needs it as an ordinary added token: remove it from the source, or start from the"
            " original tokenizer"
        )
    if entry is None and content in vocabulary:  # the text would get its id without being a number
        raise TokenizerError(
            f"the source tokenizer already has {content!r} as a word of its vocabulary; rename it"
            " there"
        )


def own_tokens(
    config: dict[str, Any], tokens: Mapping[str, int], named: Collection[str]
) -> dict[str, int]:
    """Return content and id of the added tokens that are numtok's, not the source's: those in use,
    and of other representations that were saved before.

    In a text they are never tokens.
    """
    names = {NUM, f" {NUM}", END_NUM, *tokens, *named}
    return {
        content: token["id"]
        for token in config["added_tokens"]
        if not token["special"] and not token["normalized"]
        if (content := token["content"]) in names or OWN_SYMBOL.fullmatch(content)
    }


class NumberTokensInText(NamedTuple):
    """Tokens and columns of n numbers."""

    columns: dict[str, Any]  # one value per number each
    slots: Slots  # where the numbers stand in the text, and the tokens that are put there
    spelled: Spelled | None  # the symbols, if numbers are spelled out


@dataclass(frozen=True, eq=False)
class NumberVocabulary:
    """A tokenizer.json with the tokens of numbers added, and the ids of these tokens."""

    config: dict[str, Any]  # the tokenizer.json with the number tokens added, as a dict
    tokens: dict[str, int]  # the id of every token that numtok uses for numbers
    own: dict[str, int]  # the id of every added token that is numtok's, in use or not
    spelling: Spelling | None  # the tokens of a representation that spells numbers out
    in_text: NumtokTokens  # what the engines are to know of the number tokens

    @classmethod
    def of(
        cls,
        source: dict[str, Any],
        representation: Representation,
        leading_space: str,
        saved: Collection[str],
        grammar: Grammar,
    ) -> NumberVocabulary:
        """Return the vocabulary of a source with the tokens that ``representation``, the first of
        those combined, needs for text of this grammar. ``saved``: the names of numtok's tokens that a
        saved source has.
        """
        two_forms = leading_space == "auto" and is_byte_level(source)
        config, tokens = add_number_tokens(source, representation, two_forms)
        own = own_tokens(config, tokens, saved)
        spelling = Spelling.of(representation, tokens, grammar)
        unspaced, spaced = (int(ids[0]) if len(ids) else -1 for ids in first_ids(tokens, spelling))
        as_text = spelling is not None and spelling.reading is not None
        if as_text:
            unspaced = _size(config)  # no token: it stands for numbers within the engines
        reserved = tuple(number for number in own.values() if number not in (unspaced, spaced))
        return cls(config, tokens, own, spelling, NumtokTokens(unspaced, spaced, reserved, as_text))

    @property
    def size(self) -> int:
        """Return one more than the largest id."""
        return _size(self.config)

    def encode(
        self, numbers: Numbers, representations: Sequence[Representation]
    ) -> NumberTokensInText:
        """Return the tokens and columns that numbers have in these representations, which differ
        from those of the vocabulary at most in options that leave tokens alone.
        """
        first, count = representations[0], len(numbers)
        if first.stays_text:
            return NumberTokensInText({}, Slots.none(len(numbers.rows)), None)
        if self.spelling is not None and isinstance(first, SpelledOut):
            spelled = first.encode(numbers)
            unspaced, spaced, offsets = token_ids(spelled, self.spelling)
            return NumberTokensInText({}, Slots.of(numbers, unspaced, spaced, offsets), spelled)
        columns: dict[str, Any] = {}
        for representation in representations:
            if isinstance(representation, SingleToken):
                columns |= representation.encode(numbers)
        ids = self.in_text.unspaced, self.in_text.spaced
        unspaced, spaced = (memory.full(count, one, np.int32) for one in ids)
        slots = Slots.of(numbers, unspaced, spaced, np.arange(count + 1))
        return NumberTokensInText(columns, slots, None)

    def described(self) -> dict[str, Any]:
        """Return the entries of the schema's metadata: the ids of number tokens, and of symbols as
        runs.
        """
        symbols = {number for one, number in self.tokens.items() if OWN_SYMBOL.fullmatch(one)}
        tokens = {one: number for one, number in self.tokens.items() if number not in symbols}
        metadata: dict[str, Any] = {"tokens": tokens, "vocab_size": self.size}
        metadata["tokenizer_kind"] = (
            f"{kind_of(self.config)} of {self.size - len(self.own):,} tokens"
        )
        if symbols and self.spelling is not None:
            return metadata | {"symbols": self.spelling.runs(symbols)}
        return metadata


def _size(config: dict[str, Any]) -> int:
    """Return one more than the largest id."""
    added = (token["id"] for token in config["added_tokens"])
    return 1 + int(max([*vocabulary_of(config).values(), *added]))


def share_tokens(first: Sequence[Representation], second: Sequence[Representation]) -> bool:
    """Whether representations differ at most in options that leave tokens alone, as a scale."""
    kinds = [*map(type, first)] == [*map(type, second)]
    return list(first) == list(second) or (kinds and isinstance(first[0], SingleToken))
