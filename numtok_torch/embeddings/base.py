"""What an embedding layer for numbers is, what it has in common with a head, and the sum of
several.

In: word vectors, float (batch, seq, d_model), as the backbone's own embedding gives them, before
    positions and layer norm; and a batch, a mapping from names of streams to tensors. Out: the same
    shape and dtype, with the numbers put in. Where there is a number is said by ``number_mask``
    alone, never by a value: zero is a number, and what stands in a stream at other tokens is not
    looked at.

Every token that is no number keeps its word vector bit for bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from numtok.errors import RepresentationError, SchemaError
from numtok.representations import REPRESENTATIONS
from numtok.representations.registry import layer_of
from numtok_torch.embeddings.put import NOTHING, put

Batch = Mapping[str, Tensor]


class NumberLayer(nn.Module, ABC):
    """What an embedding and a head have in common: they are made for vectors of one size, and their
    options say all but the weights.

    Attributes:
        name: in :meth:`config`.
        d_model: dimension of the vectors.
    """

    name: ClassVar[str]

    def __init__(self, d_model: int, **options: Any) -> None:
        super().__init__()
        if d_model < 1:
            raise RepresentationError(f"{self.name}: d_model={d_model} must be positive")
        self.d_model = d_model
        self._options = options

    def config(self) -> dict[str, Any]:
        """Name and options, for JSON; ``embedding_from_config`` and ``head_from_config`` are the
        inverse.
        """
        return {
            "name": self.name,
            **{
                key: list(value) if isinstance(value, tuple) else value
                for key, value in self._options.items()
            },
        }

    @classmethod
    def options_for(cls, representation: Any) -> dict[str, Any]:
        """The options that a representation gives it: those that both have."""
        return {
            name: getattr(representation, name)
            for name in option_names(cls)
            if hasattr(representation, name)
        }

    def extra_repr(self) -> str:
        return ", ".join(
            [str(self.d_model), *(f"{key}={value!r}" for key, value in self._options.items())]
        )


class NumberEmbedding(NumberLayer):
    """Puts the numbers of a batch into its word vectors.

    Attributes:
        name: in :meth:`config`; that of the representation.
        streams: the names that it can read from a batch.
        d_model: dimension of the word vectors.

    Shape:
        - inputs_embeds: (batch, seq, d_model), any float dtype; output: the same.
    """

    streams: tuple[str, ...] = ()

    @abstractmethod
    def change(self, inputs_embeds: Tensor, batch: Batch) -> Tensor:
        """What the layer adds to each vector, (batch, seq, d_model); zero where there is no number."""

    def forward(self, inputs_embeds: Tensor, batch: Batch) -> Tensor:
        """Word vectors with numbers, (batch, seq, d_model); the argument is not changed.

        Raises:
            SchemaError: if the batch lacks a stream, or has it in another shape.
        """
        return inputs_embeds + self.change(inputs_embeds, batch)

    def read(self, inputs_embeds: Tensor, batch: Batch, *names: str) -> Tensor:
        """The first of the streams that the batch has, checked to be (batch, seq, ...)."""
        if inputs_embeds.shape[-1] != self.d_model:
            raise SchemaError(
                f"{type(self).__name__} was made for d_model={self.d_model}, the word vectors have"
                f" {inputs_embeds.shape[-1]}"
            )
        name = next((name for name in names if batch.get(name) is not None), None)
        if name is None:
            raise SchemaError(
                f"the batch has no {' or '.join(names)}, which {type(self).__name__} reads; encode"
                f" the text with numbers={self.name!r} and batch it with NumberCollator, or call"
                " the tokenizer so that it returns the number streams"
            )
        if batch[name].shape[:2] != inputs_embeds.shape[:2]:
            raise SchemaError(
                f"{name} has the shape {tuple(batch[name].shape)}, the word vectors"
                f" {tuple(inputs_embeds.shape)}: batch and sequence differ"
            )
        return batch[name]

    def at_numbers(
        self, inputs_embeds: Tensor, batch: Batch, stream: Tensor, embed: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """``embed`` of the stream's rows, (n, ...) to (n, d_model), at the numbers; 0 elsewhere:
        (batch, seq, d_model).
        """
        mask = self.read(inputs_embeds, batch, "number_mask").to(torch.bool)  # (batch, seq)
        return put(torch.full_like(inputs_embeds, NOTHING), mask, stream, embed, replace=True)


def layers(part: str) -> dict[str, Any]:
    """The classes that are registered for representations, ``"embedding"`` or ``"head"``, by their
    own names.
    """
    kinds = [layer_of(name, part) for name in REPRESENTATIONS]
    return {kind.name: kind for kind in kinds if kind is not None}


def option_names(kind: type[nn.Module]) -> list[str]:
    """The names of a layer's, or a head's, options."""
    return [name for name in kind.__init__.__annotations__ if name not in ("d_model", "return")]


def linear(features: Tensor, layer: nn.Linear) -> Tensor:
    """``layer`` of features (..., in), which are cast to its dtype only now: (..., out)."""
    projected: Tensor = layer(features.to(layer.weight.dtype))
    return projected


def projection_layer(
    name: str, width: int, d_model: int, projection: str, zero_init: bool
) -> nn.Linear | None:
    """The linear map of ``projection="linear"``, or None for ``"pad"``."""
    if projection not in ("pad", "linear"):
        raise RepresentationError(
            f"{name}: projection={projection!r} is unknown; use 'pad' or 'linear'"
        )
    if projection == "pad":
        if zero_init:
            raise RepresentationError(
                f"{name}: zero_init needs something to learn: take projection='linear' with it"
            )
        if width > d_model:
            raise RepresentationError(
                f"{name}: {width} features do not fit into d_model={d_model}; take"
                " projection='linear'"
            )
        return None
    layer = nn.Linear(width, d_model, bias=False)
    if zero_init:
        nn.init.zeros_(layer.weight)
    return layer


def project(features: Tensor, layer: nn.Linear | None, d_model: int) -> Tensor:
    """Features (..., width) to (..., d_model): through the linear map, or with zeros behind."""
    if layer is not None:
        return linear(features, layer)
    return nn.functional.pad(features, (0, d_model - features.shape[-1]))


class SumEmbedding(NumberEmbedding):
    """Several layers, each of which adds its change to the same word vectors; their order does not
    matter.

    A layer that replaces the word vector (:class:`FloatBitsEmbedding`) takes it away once, and the
    others still see it.

    Args:
        embeddings: at least one; all for the same ``d_model``.
    """

    name = "sum"

    def __init__(self, embeddings: Sequence[NumberEmbedding]) -> None:
        if len({layer.d_model for layer in embeddings}) != 1:
            raise RepresentationError("sum: needs at least one embedding, all for the same d_model")
        super().__init__(embeddings[0].d_model)
        self.embeddings = nn.ModuleList(embeddings)
        self.streams = tuple(dict.fromkeys(name for layer in embeddings for name in layer.streams))

    def _layers(self) -> list[NumberEmbedding]:
        return [layer for layer in self.embeddings if isinstance(layer, NumberEmbedding)]

    def change(self, inputs_embeds: Tensor, batch: Batch) -> Tensor:
        first, *others = self._layers()
        total = first.change(inputs_embeds, batch)  # (batch, seq, d_model)
        for layer in others:
            total = total + layer.change(inputs_embeds, batch)
        return total

    def config(self) -> dict[str, Any]:
        return {"name": self.name, "embeddings": [layer.config() for layer in self._layers()]}
