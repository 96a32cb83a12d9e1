"""Prompts of requests to vLLM, with a stricter look at ids that come from outside."""

from __future__ import annotations

from collections.abc import Sequence

from vllm.exceptions import VLLMValidationError
from vllm.renderers.hf import HfRenderer

from numtok_vllm.number_ids import FIRST


class NumtokRenderer(HfRenderer):
    """vLLM's renderer, for ``--tokenizer-mode numtok``."""

    def validate_token_ids(self, token_ids: Sequence[int], *, parameter: str | None = None) -> None:
        """Raise VLLMValidationError for an id that is neither of the vocabulary nor a number with its
        value.
        """
        super().validate_token_ids(token_ids, parameter=parameter)
        size, numbers = self.model_config.get_vocab_size(), self.get_tokenizer().numbers.tokens
        for one in token_ids:
            if size <= one < FIRST or one in numbers:
                raise VLLMValidationError(
                    f"Token id {one} is out of vocabulary, or a number without a value; send text",
                    parameter=parameter,
                )
