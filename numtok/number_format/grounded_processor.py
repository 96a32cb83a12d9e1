"""A model that writes no figure but those of its prompt.

In: all ids so far, int64 (rows, seq), and the scores of the next token, float (rows, vocabulary).
Out: the scores, -inf for each token that would begin, continue or end another figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from numtok.number_format.grounded_text import GroundedText, Symbols
from numtok.number_format.grounded_tokens import Ending, GroundedTokens, Vocabulary, decode
from numtok.number_format.logits_processor import RowsProcessor
from numtok.number_format.number_format import Figure
from numtok.number_format.token_trie import Ints, token_contents_of
from numtok.number_format.written_forms import digits_of_names, forms_of_values, written_forms
from numtok.score.policy import Policy, policy_named

LAST_WORDS = 200  # characters of the prompt, at most, that an answer may go on with

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
