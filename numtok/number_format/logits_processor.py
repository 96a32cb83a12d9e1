"""A model that writes one number of a format, and then ends.

In: all ids so far, int64 (rows, seq), and the scores of the next token, float (rows, vocabulary).
Out: the scores, -inf for each token that may not follow.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from numtok.errors import FormatError, TokenizerError
from numtok.number_format.token_trie import Ints, TokenTrie, token_bytes_of
from numtok.numbers.automaton import NEVER, Continuation
from numtok.tokenizer.packing import end_token

ENDED = -1  # the state after the end token


class RowsProcessor:
    """A logits processor that knows the state of each row by its ids, so that rows may be reordered,
    dropped or repeated, as beams are. A row that it has not seen before is a prompt. Where other
    constraints leave no token that may follow, they alone hold.

    Args:
        tokenizer: the model's.
        eos_token_id: the end token, or several; None for the tokenizer's.

    Attributes:
        ends: the end tokens.

    Raises:
        FormatError: for a tokenizer without an end token.
    """

    supports_continuous_batching = False  # there, several requests are one row

    def __init__(self, tokenizer: Any, eos_token_id: int | Sequence[int] | None) -> None:
        self.ends = _end_tokens(tokenizer, eos_token_id)
        self._states: dict[bytes, Any] = {}
        self._masks: dict[Any, Any] = {}

    def first(self, ids: Ints) -> Any:
        """Return the state of a row that is a prompt."""
        raise NotImplementedError

    def after(self, state: Any, token: int) -> Any:
        """Return the state after one more token."""
        raise NotImplementedError

    def allowed(self, state: Any) -> Ints:
        """Return the ids of the tokens that may follow, int64[n]."""
        raise NotImplementedError

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Return the scores of the tokens that may follow, and -inf for all others."""
        rows = np.ascontiguousarray(input_ids.cpu().numpy())
        states, held = {}, scores.clone()
        for row, ids in enumerate(rows):
            before = self._states.get(ids[:-1].tobytes())
            state = self.first(ids) if before is None else self.after(before, int(ids[-1]))
            states[ids.tobytes()] = state
            held[row].masked_fill_(self._forbidden(state, scores), -np.inf)
            if bool((held[row] == -np.inf).all()):
                held[row] = scores[row]
        self._states = states
        return held

    def _forbidden(self, state: Any, scores: Any) -> Any:
        """Return bool[vocabulary], the tokens that may not follow, on the device of the scores."""
        import torch

        key = state, scores.shape[1], scores.device
        if key not in self._masks:
            mask, ids = np.ones(scores.shape[1], np.bool_), self.allowed(state)
            mask[ids[ids < len(mask)]] = False
            self._masks[key] = torch.from_numpy(mask).to(scores.device)
        return self._masks[key]


class NumberFormatProcessor(RowsProcessor):
    """Lets a model write one number of a format after its prompt, then an end token. It works as
    transformers' ``LogitsProcessor``.

    A prompt is what stands in the rows when the processor sees them first; for the next prompts the
    same processor may be used again.

    Args:
        alphabet, automaton: the numbers that may be written, from :meth:`NumberFormat.in_utf8`.
        tokenizer, leading_space, eos_token_id: as :meth:`numtok.NumberFormat.logits_processor`
            takes them.

    Shape:
        - input_ids: (rows, seq); scores: (rows, vocabulary); output: (rows, vocabulary).

    Raises:
        FormatError: for a tokenizer without an end token, or whose tokens cannot write the numbers.
    """

    def __init__(
        self,
        alphabet: str,
        automaton: Continuation,
        tokenizer: Any,
        leading_space: bool = True,
        eos_token_id: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(tokenizer, eos_token_id)
        if " " not in alphabet and leading_space:
            alphabet += " "
        self.trie = TokenTrie(token_bytes_of(tokenizer), alphabet)
        self._node_of = dict(zip(self.trie.ids.tolist(), self.trie.node.tolist(), strict=True))
        states, symbols = automaton.following.shape
        # two more rows: what comes before the number, and nowhere
        self._start, self._nowhere = states, states + 1
        self._table: Ints = np.full((states + 2, len(alphabet)), self._nowhere)
        self._table[:states, :symbols] = automaton.following
        self._table[self._table == NEVER] = self._nowhere
        self._table[self._start] = self._table[0]
        if leading_space:
            self._table[self._start, alphabet.index(" ")] = 0
        self._complete = np.append(automaton.ends, [False, False])
        self._nodes: dict[int, Ints] = {}
        self._ends_well = self._states_that_end()
        if not self._ends_well[self._start]:
            raise FormatError("the tokens of this tokenizer cannot write these numbers")

    def first(self, ids: Ints) -> int:
        """Return the state before the number."""
        return int(self._start)

    def after(self, state: int, token: int) -> int:
        """Return the state after one more token."""
        if state == ENDED or token in self.ends:
            return ENDED
        node = self._node_of.get(token)
        return self._nowhere if node is None else int(self._nodes_after(state)[node])

    def _nodes_after(self, state: int) -> Ints:
        """int64[nodes], the states that the tokens lead to."""
        if state not in self._nodes:
            self._nodes[state] = self.trie.states(self._table, state)
        return self._nodes[state]

    def allowed(self, state: int) -> Ints:
        """Return the ids of the tokens that may follow: the end tokens where no others may."""
        ends = np.array(self.ends, np.int64)  # there may be none
        if state in (ENDED, self._nowhere):
            return ends
        ids = self.trie.ids[self._ends_well[self._nodes_after(state)[self.trie.node]]]
        return np.append(ids, ends) if self._complete[state] else ids

    def _states_that_end(self) -> Any:
        """bool[states], from which tokens lead to a whole number: all, if each character of the
        numbers is a token; else those from which others do.
        """
        needed = np.flatnonzero((self._table != self._nowhere).any(0)).tolist()
        if self.trie.single_characters().issuperset(needed):
            return np.arange(len(self._table)) < self._nowhere
        ends_well = self._complete.copy()
        while True:
            tokens = (self._nodes_after(one)[self.trie.node] for one in range(self._nowhere))
            more = ends_well | np.array([*(ends_well[one].any() for one in tokens), False])
            if (more == ends_well).all():
                return ends_well
            ends_well = more


def _end_tokens(tokenizer: Any, end: int | Sequence[int] | None) -> list[int]:
    if end is None:
        end = getattr(tokenizer, "eos_token_id", None)
    if end is None and hasattr(tokenizer, "own_tokens"):
        with contextlib.suppress(TokenizerError):
            end = end_token(tokenizer)
    if end is None:
        raise FormatError("the tokenizer has no end token; give eos_token_id, or set its eos_token")
    return [end] if isinstance(end, int) else list(end)
