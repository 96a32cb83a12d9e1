"""A model that writes no figure but those of its prompt.

In: all ids so far, int64 (rows, seq), and the scores of the next token, float (rows, vocabulary).
Out: the scores, -inf for each token that would begin, continue or end another figure.

A token is stepped character by character through the automaton of
:mod:`numtok.number_format.grounded_text`. Where a token ends within the UTF-8 of a character, the
next one has to go on with it.
"""

from __future__ import annotations

import codecs
import contextlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.errors import FormatError
from numtok.number_format.grounded_text import NOWHERE, SPECIAL, GroundedText, Symbols
from numtok.number_format.logits_processor import RowsProcessor
from numtok.number_format.number_format import Figure
from numtok.number_format.token_trie import Ints, TokenTrie, token_contents_of
from numtok.number_format.written_forms import digits_of_names, forms_of_values, written_forms
from numtok.score.policy import Policy, policy_named

LAST_WORDS = 200  # characters of the prompt, at most, that an answer may go on with
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


RowState = tuple[GroundedTokens, Ending]


class GroundedLogitsProcessor(RowsProcessor):
    """Lets a model write free text, and no figures in it but those of the prompt:
    ``model.generate(..., logits_processor=[GroundedLogitsProcessor(tokenizer)])``, any model.

    Figures are what :func:`numtok.extract` finds. Each may be written as in the prompt, with and
    without grouped digits, and without its minus. Digits behind a letter, as in Q3, may be those
    that stand so in the prompt. Numbers in words are free. The prompt's last word and the answer
    are one text, so that ``1`` at the end of a prompt may become ``17``. Where other constraints
    leave no token that may follow, they alone hold. It works as transformers' ``LogitsProcessor``.

    Args:
        tokenizer: of transformers, or a ``tokenizers.Tokenizer``; its own tokens are used.
        sources: the texts that have the figures; None for the prompt of each row.
        allow: further figures, such as ``range(1, 11)`` for the numbers of a list. None by default:
            when a digit is written, nothing tells a list number from a claim.
        policy: how numbers are written: the grammar of a :class:`numtok.score.Policy`.
        eos_token_id: the end token, or several; None for the tokenizer's.

    Shape:
        - input_ids: (rows, seq); scores: (rows, vocabulary); output: (rows, vocabulary).

    Raises:
        FormatError: for a tokenizer without an end token, without tokens for single digits, or
            whose numbers have tokens of their own, as ``[NUM]``.

    Example:
        >>> import numtok.hf, torch
        >>> tokenizer = numtok.hf.NumberTokenizer.from_pretrained(numbers="subword")
        >>> processor = GroundedLogitsProcessor(tokenizer, "Sales: 12, then 340.", eos_token_id=0)
        >>> ids = tokenizer("Sales rose to 3", return_tensors="pt").input_ids
        >>> scores = processor(ids, torch.zeros(1, len(tokenizer)))
        >>> tokenizer.decode(scores[0].isfinite().nonzero().flatten())  # tokens that may follow
        '4'
    """

    def __init__(
        self,
        tokenizer: Any,
        sources: str | Sequence[str] | None = None,
        allow: Iterable[Figure] = (),
        policy: Policy | str = "default",
        eos_token_id: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(tokenizer, eos_token_id)
        self.grammar = policy_named(policy).grammar
        self._symbols = Symbols(self.grammar)
        self._vocabulary = Vocabulary(token_contents_of(tokenizer), self._symbols)
        self._is_end = np.isin(self._vocabulary.ids, self.ends)
        self._further = forms_of_values(allow, self.grammar)
        self._tokens: dict[str, GroundedTokens] = {}  # by the text that has the figures
        texts = [sources] if isinstance(sources, str) else sources
        self._sources = None if texts is None else "\n".join(texts)

    def first(self, ids: Ints) -> RowState:
        """Return the state of a row at the end of its prompt."""
        content = self._vocabulary.content
        prompt, pending = decode(
            b"".join(content.get(one) or b"\n" for one in ids.tolist()), errors="replace"
        )
        tokens = self._tokens_of(prompt if self._sources is None else self._sources)
        state = tokens.text.behind(self._symbols.of(_last_words(prompt)))
        return tokens, Ending(state, pending)

    def after(self, state: RowState, token: int) -> RowState:
        """Return the state after one more token."""
        tokens, ending = state
        return tokens, tokens.after(ending, token)

    def allowed(self, state: RowState) -> Ints:
        """Return the ids of the tokens that may follow, int64[n]."""
        tokens, ending = state
        ids = self._vocabulary.ids[tokens.allowed(ending) & ~self._is_end]
        may_end = tokens.text.may_end(ending.state) and not ending.pending
        return np.append(ids, np.array(self.ends, np.int64)) if may_end else ids

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Return the scores of the tokens that may follow, and -inf for all others."""
        held = super().__call__(input_ids, scores)
        used = {tokens for tokens, _ in self._states.values()}
        if len(used) < len(self._tokens):  # the others are of prompts before
            self._tokens = {text: one for text, one in self._tokens.items() if one in used}
            self._masks = {key: mask for key, mask in self._masks.items() if key[0][0] in used}
        return held

    def _tokens_of(self, text: str) -> GroundedTokens:
        """Return which tokens may follow, for the figures of a text."""
        if text not in self._tokens:
            figures = {
                written
                for form in written_forms(text, self.grammar) | self._further
                if self._vocabulary.single.issuperset(written := self._symbols.plain(form))
            }
            names = digits_of_names(text, self.grammar)
            automaton = GroundedText(self._symbols, figures, names, text)
            self._tokens[text] = GroundedTokens(self._vocabulary, automaton)
        return self._tokens[text]


def _last_words(prompt: str) -> str:
    """Return the end of the last line of a prompt, without a word that is cut."""
    line = prompt[prompt.rfind("\n") + 1 :]
    return line if len(line) <= LAST_WORDS else line[-LAST_WORDS:].partition(" ")[2]
