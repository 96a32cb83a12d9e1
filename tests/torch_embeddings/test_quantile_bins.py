"""The layer for QuantileBins: the linear map of the piecewise linear encoding that it says it is."""

import torch

import numtok
from numtok import QuantileBins
from numtok_torch import (
    MixtureHead,
    NumberCollator,
    NumberDataset,
    QuantileBinsEmbedding,
    embedding_from_schema,
    head_from_schema,
)

EDGES = (-3.0, 0.0, 1.4, 3.4, 7.85, 100.0)
TEXTS = ["-3 and -1.5 and 0 and 1", "3.3 or 8 or 50 or 100"]


def layer_and_batch(bins):
    batch = numtok.Tokenizer.from_pretrained(numbers=[bins]).encode_batch(TEXTS)
    rows = NumberDataset(batch)
    collator = NumberCollator.from_schema(batch.schema, 0, objective=None)
    layer = embedding_from_schema(batch.schema, 8)
    assert isinstance(layer, QuantileBinsEmbedding)
    assert isinstance(head_from_schema(batch.schema, 8), MixtureHead)
    return layer, collator([rows[0], rows[1]])


def test_soft_is_a_linear_map_of_the_piecewise_linear_encoding():
    layer, batch = layer_and_batch(QuantileBins(9, True, EDGES))
    values = torch.tensor([-3, -1.5, 0, 1, 3.3, 8, 50, 100])
    edges = torch.tensor(EDGES)
    parts = ((values[:, None] - edges[:-1]) / edges.diff()).clamp(0, 1)  # [n, m]
    vectors = layer.vectors.weight[: len(EDGES)]
    expected = vectors[0] + parts @ vectors.diff(dim=0)
    words = torch.zeros(*batch["input_ids"].shape, 8)
    found = layer(words, batch)
    assert torch.allclose(found[batch["number_mask"]], expected, atol=1e-6)
    assert not found[~batch["number_mask"]].any()
    found.sum().backward()
    assert layer.vectors.weight.grad is not None
    assert layer.vectors.weight.grad[len(EDGES) :].abs().sum() == 0


def test_hard_adds_the_vector_of_the_bin():
    layer, batch = layer_and_batch(QuantileBins(9, False, EDGES))
    words = torch.ones(*batch["input_ids"].shape, 8, dtype=torch.bfloat16)
    found = layer(words, batch)[batch["number_mask"]]
    expected = (1 + layer.vectors.weight[torch.tensor([0, 0, 1, 1, 2, 4, 4, 4])]).bfloat16()
    assert torch.equal(found, expected)
