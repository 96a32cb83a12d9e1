"""The backbone as transformers' ``generate`` calls it: with numbers in what it sees, and the head's
reading of what it says kept.

In: a number model and the memory of one call (:mod:`numtok_torch.generation.state`). Out: an object
    of a class made from the backbone's own, which shares all its modules and can ``generate``.
"""

from __future__ import annotations

import copy
import functools
from typing import Any

import torch
from torch import Tensor

from numtok_torch.generation.state import Writing
from numtok_torch.model.model import NumberModel


def encoded(model: NumberModel, prompt: dict[str, Tensor]) -> Any:
    """What the encoder makes of the prompts."""
    vectors = model.embed(prompt["input_ids"], prompt)  # (batch, seq, d_model)
    with torch.no_grad():
        return model.transformer.get_encoder()(
            inputs_embeds=vectors, attention_mask=prompt["attention_mask"], return_dict=True
        )


def encoded_alone(model: NumberModel, prompt: dict[str, Tensor], number: int) -> dict[str, Any]:
    """What the decoder is given of one prompt that the encoder read without padding or other rows."""
    shown = prompt["attention_mask"][number] > 0  # (seq,)
    row = {
        name: stream[number : number + 1, shown] for name, stream in prompt.items()
    }  # (1, tokens, ...)
    return {"encoder_outputs": encoded(model, row), "attention_mask": row["attention_mask"]}


def writer(model: NumberModel, writing: Writing) -> Any:
    """A copy of the backbone, sharing all modules, that can ``generate`` with numbers; ``writing``
    is its memory.
    """
    copied = copy.copy(model.transformer)
    copied.__dict__.pop(
        "forward", None
    )  # what accelerate puts there; the backbone itself is called, with it
    kind: Any = type(model.transformer)
    copied.__class__ = _writer_class(kind)
    copied.__dict__["_writing"] = writing
    return copied


@functools.lru_cache(maxsize=32)
def _writer_class(base: Any) -> Any:
    """A class like ``base`` whose instances see numbers."""

    class Writer(base):  # type: ignore[misc]
        @functools.wraps(base.forward)  # generate reads the signature
        def forward(self, input_ids: Tensor | None = None, **kwargs: Any) -> Any:
            return self._writing.forward(kwargs.pop("decoder_input_ids", input_ids), **kwargs)

        def prepare_inputs_for_generation(
            self, input_ids: Tensor, *args: Any, **kwargs: Any
        ) -> Any:
            self._writing.see(input_ids)
            return super().prepare_inputs_for_generation(input_ids, *args, **kwargs)

    Writer.__name__ = base.__name__  # generate takes the kind of cache by it, of Mamba and MiniMax
    return Writer
