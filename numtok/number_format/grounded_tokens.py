"""The tokens that may follow a text whose figures are all among those given.

In: the tokens of a tokenizer, an automaton of :mod:`numtok.number_format.grounded_text`, and how a
text ends. Out: bool[tokens], which of them may follow. A token is stepped character by character;
where a token ends within the UTF-8 of a character, the next one has to go on with it.
"""

from __future__ import annotations

import codecs
import contextlib
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.errors import FormatError
from numtok.number_format.grounded_text import NOWHERE, SPECIAL, GroundedText, Symbols
from numtok.number_format.token_trie import Ints, TokenTrie

NEEDED = "0123456789.-"  # symbols of characters that have to be tokens of their own
CONTINUING = bytes(range(0x80, 0xC0))  # within a character
OTHER = " "  # the symbol of most characters, and of bytes that are no text

Mask = npt.NDArray[np.bool_]


class Ending(NamedTuple):
    """The end of a text: the state of its automaton, and the bytes of a character that is not whole."""

    state: int
    pending: bytes = b""


class Vocabulary:
    """The tokens of a tokenizer as a trie of symbols.

    Args:
        contents: (id, UTF-8) of each token; special tokens have none.
        symbols: the symbols of characters.

    Attributes:
        content: the UTF-8 of each token by id.
        trie: the distinct sequences of symbols, without those that change no state.
        ids: int64[tokens].
        node: int64[tokens], where each token ends in the trie.
        tails: (token, bytes) of those that end within a character; a token is an index in ``ids``.
        continuing: int64[n], the tokens that begin within a character.
        invalid: int64[m], those and the tokens that are no text at all.
        single: the symbols of characters that are tokens of their own.

    Raises:
        FormatError: if digits, the point and the hyphen are not tokens of their own.
    """

    def __init__(self, contents: Iterable[tuple[int, bytes]], symbols: Symbols) -> None:
        self.content = dict(contents)
        self.ids: Ints = np.array(list(self.content), np.int64)
        texts, self.tails = [], []
        continuing: list[int] = []
        invalid: list[int] = []
        for token, content in enumerate(self.content.values()):
            try:
                text, tail = decode(content)
            except UnicodeDecodeError:
                text, tail = "", b""
                (continuing if content[0] in CONTINUING else invalid).append(token)
            texts.append(text if content else SPECIAL)
            if tail:
                self.tails.append((token, tail))
        self.continuing: Ints = np.array(continuing, np.int64)
        self.invalid: Ints = np.array([*continuing, *invalid], np.int64)
        written = symbols.of("\n".join(text.replace("\n", "\r") for text in texts))  # a line each
        distinct: dict[str, int] = {}
        which = [
            distinct.setdefault(text, len(distinct)) if text else -1
            for text in symbols.shortened(written).split("\n")
        ]
        self.alphabet = symbols.all + "".join(sorted(symbols.rare(written)))
        self.trie = TokenTrie(((number, text) for text, number in distinct.items()), self.alphabet)
        self.node: Ints = np.append(self.trie.node, 0)[np.array(which, np.int64)]  # -1: the root
        self.single = {self.alphabet[column] for column in self.trie.single_characters()}
        if not self.single.issuperset(NEEDED):
            raise FormatError(
                "this tokenizer has no token for each digit, the point and the hyphen"
            )


class GroundedTokens:
    """The tokens of a vocabulary that may follow.

    Args:
        vocabulary: of the tokenizer.
        text: the automaton of the texts that may be written.
    """

    def __init__(self, vocabulary: Vocabulary, text: GroundedText) -> None:
        self._vocabulary, self.text = vocabulary, text
        self._table = _Rows(text, vocabulary.alphabet)

    def after(self, ending: Ending, token: int) -> Ending:
        """Return how a text ends after one more token, whether or not it may follow."""
        try:
            text, pending = self._decoded(ending, token)
        except UnicodeDecodeError:
            return Ending(self.text.behind(OTHER, ending.state))
        return Ending(self.text.behind(self.text.symbols.of(text), ending.state), pending)

    def _decoded(self, ending: Ending, token: int) -> tuple[str, bytes]:
        content = self._vocabulary.content.get(token, b"")
        return decode(ending.pending + content) if content else (SPECIAL, b"")

    def allowed(self, ending: Ending) -> Mask:
        """Return bool[tokens], whether each token may follow."""
        if ending.pending:
            return self._after_part(ending)
        at_nodes = self._vocabulary.trie.states(self._table, ending.state)
        states = at_nodes[self._vocabulary.node]
        allowed: Mask = states != NOWHERE
        allowed[self._vocabulary.invalid] = False
        for token, tail in self._vocabulary.tails:
            allowed[token] = allowed[token] and self._may_go_on(Ending(int(states[token]), tail))
        return allowed

    def _after_part(self, ending: Ending) -> Mask:
        """Return what :meth:`allowed` does within a character, with which a token has to go on."""
        allowed = np.zeros(len(self._vocabulary.ids), np.bool_)
        for token in self._vocabulary.continuing.tolist():
            with contextlib.suppress(UnicodeDecodeError):
                text, pending = self._decoded(ending, int(self._vocabulary.ids[token]))
                state = self.text.step(ending.state, self.text.symbols.of(text))
                allowed[token] = self._may_go_on(Ending(state, pending))
        return allowed

    def _may_go_on(self, ending: Ending) -> bool:
        """Whether some character that begins with the pending bytes may follow."""
        step = self.text.step
        if not ending.pending:
            return ending.state != NOWHERE
        return step(ending.state, OTHER) != NOWHERE or any(
            step(ending.state, symbol) != NOWHERE
            for content, symbol in self.text.beyond_ascii
            if content.startswith(ending.pending)
        )


class _Rows:
    """The table of an automaton whose rows are computed when they are first needed."""

    def __init__(self, text: GroundedText, alphabet: str) -> None:
        self._text, self._alphabet = text, alphabet
        self._table = np.zeros((16, len(alphabet)), np.int64)
        self._filled = np.zeros(16, np.bool_)

    def __getitem__(self, index: tuple[Ints, Ints]) -> Ints:
        states = index[0]
        while len(self._filled) <= states.max(initial=0):
            self._table = np.concatenate([self._table, np.zeros_like(self._table)])
            self._filled = np.concatenate([self._filled, np.zeros_like(self._filled)])
        if not self._filled[states].all():
            for state in np.unique(states[~self._filled[states]]).tolist():
                self._table[state] = [self._text.step(state, one) for one in self._alphabet]
                self._filled[state] = True
        return self._table[index]


def decode(content: bytes, errors: str = "strict") -> tuple[str, bytes]:
    """Return the text of some bytes, and the bytes at its end that are a character's first part.

    >>> decode("5 €".encode()[:-1])[0]
    '5 '
    """
    decoder = codecs.getincrementaldecoder("utf-8")(errors)
    return decoder.decode(content), decoder.getstate()[0]
