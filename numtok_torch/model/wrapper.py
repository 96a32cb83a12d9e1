"""What a number model consists of, and what a Trainer, accelerate and peft ask of it: they are
answered by its backbone.

In: attributes that the class below sets. Out: those of the backbone.
:class:`~numtok_torch.model.model.NumberModel` adds how it is made and run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from numtok_torch.embeddings.base import NumberEmbedding
from numtok_torch.heads.base import NumberHead
from numtok_torch.model import adapters
from numtok_torch.model.backbone import output_layer, unwrapped, word_embedding


class BackboneWrapper(nn.Module):
    """A backbone with an embedding in front and a head behind it, which answers as the backbone
    would.

    Attributes: those of :class:`~numtok_torch.NumberModel`, by the names of its arguments.
    """

    backbone: Any  # by its methods, which differ from model to model
    embedding: NumberEmbedding | None
    head: NumberHead | None
    number_weight: float
    token_weight: float
    causal: bool
    backbone_frozen: bool | str

    @property
    def transformer(self) -> Any:
        """The backbone itself, where peft's ``get_peft_model`` has wrapped it; else the same as
        ``backbone``.
        """
        return unwrapped(self.backbone)

    def merge_and_unload(self) -> Any:
        """Merge the backbone's adapters (peft) into its weights, in place: from then on, and on
        disk, it is a model like any other.

        The weights that the adapters kept frozen stay so; ``requires_grad_()`` lets them go.

        Raises:
            ModelError: if it has none.
        """
        self.backbone = adapters.merged(self.backbone)
        return self

    @property
    def prepare_inputs_for_generation(self) -> Any:
        """The backbone's; peft looks it up where a config names a task.

        To generate, call :func:`numtok_torch.generate`.
        """
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

    def leave_out_of_evaluation(self, names: Sequence[str]) -> None:
        """Tell evaluation loops, by the backbone's config, which outputs they need not collect."""
        if (config := getattr(self.transformer, "config", None)) is not None:
            kept = getattr(config, "keys_to_ignore_at_inference", None) or []
            config.keys_to_ignore_at_inference = [*dict.fromkeys([*kept, *names])]

    @property
    def device(self) -> torch.device:
        """Where the word vectors are."""
        place: torch.device = next(word_embedding(self.transformer).parameters()).device
        return place

    def get_input_embeddings(self) -> Any:
        """The backbone's word embedding."""
        return word_embedding(self.transformer)

    def get_output_embeddings(self) -> Any:
        """The backbone's layer from hidden states to logits."""
        return output_layer(self.transformer)

    def gradient_checkpointing_enable(
        self, gradient_checkpointing_kwargs: dict[str, Any] | None = None, **options: Any
    ) -> None:
        """Trade time for memory in the backbone, as the method of the same name of a Hugging Face
        model.
        """
        self.activation_checkpointing_enable(gradient_checkpointing_kwargs, **options)

    def activation_checkpointing_enable(
        self, activation_checkpointing_kwargs: dict[str, Any] | None = None, **options: Any
    ) -> None:
        """The same by its newer name."""
        if hasattr(self.transformer, "activation_checkpointing_enable"):
            self.transformer.activation_checkpointing_enable(
                activation_checkpointing_kwargs=activation_checkpointing_kwargs, **options
            )
        else:
            self.transformer.gradient_checkpointing_enable(
                gradient_checkpointing_kwargs=activation_checkpointing_kwargs
            )

    def gradient_checkpointing_disable(self) -> None:
        """The opposite."""
        getattr(
            self.transformer,
            "activation_checkpointing_disable",
            self.transformer.gradient_checkpointing_disable,
        )()
