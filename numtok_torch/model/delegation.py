"""What a Trainer, accelerate and peft ask of a model, for :class:`~numtok_torch.model.model.NumberModel`: handed on to its backbone."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from numtok_torch.model import adapters
from numtok_torch.model import backbone as middle


class Delegating(nn.Module):
    """A module around a backbone that answers for it."""

    backbone: Any  # by its methods, which differ from model to model

    @property
    def transformer(self) -> Any:
        """The backbone itself, where peft's ``get_peft_model`` has wrapped it; else the same as ``backbone``."""
        return middle.inner(self.backbone)

    def merge_and_unload(self) -> Any:
        """Merge the backbone's adapters (peft) into its weights, in place: from then on, and on disk, it is a model like any other.

        The weights that the adapters kept frozen stay so; ``requires_grad_()`` lets them go.

        Raises:
            ModelError: if it has none.
        """
        self.backbone = adapters.merged(self.backbone)
        return self

    @property
    def prepare_inputs_for_generation(self) -> Any:
        """The backbone's; peft looks it up where a config names a task. To generate, call :func:`numtok_torch.generate`."""
        return self.transformer.prepare_inputs_for_generation

    @property
    def generation_config(self) -> Any:
        """The backbone's."""
        return self.transformer.generation_config

    @generation_config.setter
    def generation_config(self, value: Any) -> None:
        self.transformer.generation_config = value

    @property
    def config(self) -> Any:
        """Of the backbone; the Trainer reads it."""
        return self.transformer.config

    @property
    def device(self) -> torch.device:
        """Where the word vectors are."""
        found: torch.device = next(middle.word_embedding(self.transformer).parameters()).device
        return found

    def get_input_embeddings(self) -> Any:
        """The backbone's word embedding."""
        return middle.word_embedding(self.transformer)

    def get_output_embeddings(self) -> Any:
        """The backbone's layer from hidden states to logits."""
        return middle.output_layer(self.transformer)

    def gradient_checkpointing_enable(self, gradient_checkpointing_kwargs: dict[str, Any] | None = None, **options: Any) -> None:
        """Trade time for memory in the backbone, as the method of the same name of a Hugging Face model."""
        self.activation_checkpointing_enable(gradient_checkpointing_kwargs, **options)

    def activation_checkpointing_enable(self, activation_checkpointing_kwargs: dict[str, Any] | None = None, **options: Any) -> None:
        """The same by its newer name."""
        if hasattr(self.transformer, "activation_checkpointing_enable"):
            self.transformer.activation_checkpointing_enable(activation_checkpointing_kwargs=activation_checkpointing_kwargs, **options)
        else:
            self.transformer.gradient_checkpointing_enable(gradient_checkpointing_kwargs=activation_checkpointing_kwargs)

    def gradient_checkpointing_disable(self) -> None:
        """The opposite."""
        getattr(self.transformer, "activation_checkpointing_disable", self.transformer.gradient_checkpointing_disable)()
