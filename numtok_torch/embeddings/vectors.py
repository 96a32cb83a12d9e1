"""Layers that give each number, or digit, a vector of its own: it is added to the word vector, or
takes its place.

In: word vectors, float (batch, seq, d_model), where the numbers are, bool (batch, seq), and a
    stream (batch, seq, ...). Out: the shape and dtype of the word vectors. What it costs is said in
    ``put``.
"""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from numtok_torch.embeddings.base import Batch, NumberEmbedding
from numtok_torch.embeddings.put import NOTHING, put


class VectorEmbedding(NumberEmbedding):
    """Gives a vector to each number, or digit.

    Attributes:
        replaces: whether the vector takes the place of the word vector; else it is added.
    """

    replaces = False

    @abstractmethod
    def find(self, inputs_embeds: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Where the vectors go, bool (batch, seq), and the stream that they are made from, (batch,
        seq, ...).
        """

    @abstractmethod
    def embed(self, stream: Tensor) -> Tensor:
        """Rows of the stream, (n, ...), to their vectors, (n, d_model)."""

    def change(self, inputs_embeds: Tensor, batch: Batch) -> Tensor:
        at, stream = self.find(inputs_embeds, batch)
        vectors = put(
            torch.full_like(inputs_embeds, NOTHING), at, stream, self.embed, replace=True
        )  # (batch, seq, d_model)
        return (
            torch.where(at.unsqueeze(-1), vectors - inputs_embeds, NOTHING)
            if self.replaces
            else vectors
        )

    def forward(self, inputs_embeds: Tensor, batch: Batch) -> Tensor:
        at, stream = self.find(inputs_embeds, batch)
        return put(inputs_embeds, at, stream, self.embed, self.replaces)

    def at_mask(self, inputs_embeds: Tensor, batch: Batch, *names: str) -> tuple[Tensor, Tensor]:
        """What :meth:`find` gives if there is one vector for each number: ``number_mask``, and the
        first of these streams that the batch has.
        """
        stream = self.read(inputs_embeds, batch, *names)  # (batch, seq, ...)
        return self.read(inputs_embeds, batch, "number_mask").to(torch.bool), stream
