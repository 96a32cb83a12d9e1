"""Numbers written token by token stay numbers: what may not follow gets no probability.

In: all ids so far, int64 (rows, seq), and the scores of the next token, float (rows, vocabulary).
Out: the scores, -inf for each token that may not follow (:mod:`numtok.tokenizer.well_formed`).
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor

from numtok.tokenizer.well_formed import FAR, LONGEST, NumberRules
from numtok_torch.data.tokens import numtok_of
from numtok_torch.model.backbone import ModelError


class NumberLogitsProcessor:
    """Lets a model write no number that is not well-formed: ``model.generate(...,
    logits_processor=[NumberLogitsProcessor(tokenizer)])``, any model.

    Spelled-out numbers go on as their representation says, also one that a prompt ends in. No
    number begins where it would not be read as one, as directly after a letter or another number,
    and no text follows one that would change it, as a digit. Where other constraints, such as
    ``suppress_tokens``, leave nothing that may follow, they alone hold. It works as transformers'
    ``LogitsProcessor``, which it is not derived from, so that transformers is not needed.

    Args:
        tokenizer: the ``numtok.Tokenizer`` of the model, or a transformers tokenizer made from one.
        longest: how many symbols a number has at most, brackets not included; one that is longer
            already, in a prompt, ends as soon as it can. Not for numbers that all have the same
            length.
        max_length: how many tokens a row has at most, prompt and padding included, as in
            ``generate(max_length=...)``: no number is begun that could not end by then. None: the
            row may be cut within a number.

    Shape:
        - input_ids: (rows, seq); scores: (rows, vocabulary), where ids beyond the tokenizer's are
          text; output: (rows, vocabulary).

    Raises:
        ModelError: for a tokenizer without such rules; when called, if the model has no scores for
            the number tokens.

    Example:
        >>> import numtok, torch
        >>> from numtok_torch import NumberLogitsProcessor
        >>> tokenizer = numtok.Tokenizer.from_pretrained(numbers="digits:1")
        >>> ids = torch.from_numpy(tokenizer.encode("5.0").input_ids)[None, :-2]  # [NUM] 5 .
        >>> scores = NumberLogitsProcessor(tokenizer)(ids, torch.zeros(1, tokenizer.vocab_size))
        >>> tokenizer.decode(scores[0].isfinite().nonzero().flatten())  # tokens that may follow
        '0123456789Ee'
    """

    supports_continuous_batching = False  # there, several requests are one row

    def __init__(
        self, tokenizer: Any, longest: int = LONGEST, max_length: int | None = None
    ) -> None:
        numtok_tokenizer = numtok_of(tokenizer, ModelError)
        rules = NumberRules.of(numtok_tokenizer)
        if rules is None:
            raise ModelError(
                f"{numtok_tokenizer.representations[0].name} has no rules for how numbers go on in this"
                " tokenizer; leave the processor out"
            )
        if not 1 <= longest < FAR - rules.brackets:
            raise ModelError(f"longest={longest} must be from 1 to {FAR - rules.brackets - 1}")
        self.rules, self.longest, self.max_length = rules, longest, max_length

    def within(self, max_length: int) -> NumberLogitsProcessor:
        """Return a processor with the same rules for rows of at most ``max_length`` tokens."""
        processor = copy.copy(self)
        processor.max_length = max_length
        return processor

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        width = scores.shape[-1]
        if width < len(self.rules.column) - 1:
            raise ModelError(
                f"the model scores {width} tokens, and those of numbers go up to"
                f" {len(self.rules.column) - 2}; call numtok_torch.add_number_rows(model,"
                " tokenizer)"
            )
        allowed = self.rules.allowed(input_ids.cpu().numpy(), width, self.longest, self.max_length)
        held = scores.masked_fill(~torch.from_numpy(allowed).to(scores.device), -torch.inf)
        stuck = held.amax(-1, keepdim=True) == -torch.inf  # (rows, 1)
        return torch.where(stuck, scores, held) if stuck.any() else held
