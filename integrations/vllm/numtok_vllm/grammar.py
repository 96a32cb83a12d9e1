"""``--logits-processors numtok_vllm.grammar:NumberGrammar``: numbers that are written token by token
stay numbers, as in ``numtok_torch.generate``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from vllm.v1.sample.logits_processor import LogitsProcessor
from vllm.v1.sample.logits_processor.builtin import process_dict_updates

from numtok import Tokenizer
from numtok.tokenizer.well_formed import NumberRules
from numtok_torch import NumberLogitsProcessor
from numtok_vllm.number_ids import NumberIds, check_saved

SEEN = 256  # tokens of a row that are looked at: more than a number has
# of a request, what looks tokens up by their ids, which numbers with values have none for; and what
# says nothing
REFUSED: dict[str, Any] = {
    "repetition_penalty": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "bad_words": [],
    "prompt_logprobs": None,
    "structured_outputs": None,
}


class NumberGrammar(LogitsProcessor):
    """:class:`numtok_torch.NumberLogitsProcessor` for the rows of vLLM: what may not follow gets no
    probability, and no number is begun that the request's ``max_tokens`` would cut.
    """

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        model = vllm_config.model_config
        check_saved(model.tokenizer)
        tokenizer = Tokenizer.from_pretrained(model.tokenizer)
        self.numbers, self.longest = NumberIds(tokenizer), model.max_model_len
        self.held = NumberLogitsProcessor(tokenizer) if NumberRules.of(tokenizer) else None
        self.rows: dict[int, tuple[int, list[int], list[int]]] = {}

    def is_argmax_invariant(self) -> bool:
        """Whether the most likely token stays so: it does not, as it may be none of a number."""
        return False

    def update_state(self, batch_update: Any) -> None:
        """Update the requests that there are."""
        process_dict_updates(self.rows, batch_update, self._row)

    def _row(
        self, params: Any, prompt: list[int] | None, written: list[int]
    ) -> tuple[int, list[int], list[int]]:
        """Return (how many tokens are to be written, the end of the prompt, those written)."""
        before = [] if prompt is None else prompt
        room = self.longest - len(before)
        return min(params.max_tokens or room, room), list(before[-SEEN:]), written

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Change the scores (rows, vocabulary) in place, and return them."""
        if self.held is None or not self.rows:
            return logits
        places = sorted(self.rows)
        ids = np.full((len(places), SEEN), -1, np.int64)  # padding is text
        ends = np.empty(len(places), np.int64)
        for row, (room, before, written) in enumerate(self.rows[place] for place in places):
            last = (before + written)[-SEEN:]
            ids[row, SEEN - len(last) :] = last
            ends[row] = SEEN + room - len(written)
        known = torch.from_numpy(self.numbers.plain(ids))
        logits[places] = self.held.within(ends)(known, logits[places])  # type: ignore[arg-type]
        return logits


class NumberGrammarWithValues(NumberGrammar):
    """For models whose numbers are one token with a value: what vLLM would look up by an id beyond
    the vocabulary is refused.
    """

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Raise ValueError, which the server answers as 400."""
        for name, neutral in REFUSED.items():
            if getattr(sampling_params, name) not in (neutral, None):
                raise ValueError(f"{name} is not supported for this model: its numbers have values")
