"""Rows of whole numbers that start as FoNE's features, held to fone-pretrain's formula."""

import json

import numpy as np
import pytest
import torch
import trained
from tokenizers import Tokenizer as Plain
from torch import nn

from numtok import Digits, Tokenizer
from numtok_torch import start_as_fone


def features(x):
    """As fone_features there has them."""
    periods = [2, 5, 10, 20, 50, 100, 200, 500, 1000]
    return [f(2 * np.pi * x / period) for period in periods for f in (np.cos, np.sin)]


@pytest.fixture
def tokenizer():
    """One with a token for each of 0 to 999."""
    return Tokenizer.from_pretrained(numbers=[Digits(3)])


def test_rows_are_the_features_of_their_numbers(tokenizer):
    embedding = nn.Embedding(tokenizer.vocab_size, 24)
    before = embedding.weight.detach().clone()
    rows = start_as_fone(embedding, tokenizer)
    assert set(rows.values()) == set(range(1000))
    for row, number in rows.items():
        expected = torch.tensor(features(number) + [0.0] * 6, dtype=torch.float32)
        assert torch.allclose(embedding.weight[row], expected, atol=1e-6)
    others = [row for row in range(len(before)) if row not in rows]
    assert torch.equal(embedding.weight[others], before[others])
    (ids,) = tokenizer.encode_batch(["602"])["input_ids"].to_pylist()
    assert [rows[one] for one in ids if one in rows] == [602]


@pytest.mark.parametrize("frozen", [True, False])
def test_frozen_rows_stay_and_others_learn(frozen, tokenizer):
    torch.manual_seed(0)
    embedding = nn.Embedding(tokenizer.vocab_size, 24)
    rows = list(start_as_fone(embedding, tokenizer, frozen=frozen))
    start = embedding.weight.detach().clone()
    optimizer = torch.optim.AdamW(embedding.parameters(), 0.1, weight_decay=0.0)
    for _ in range(3):
        optimizer.zero_grad()
        embedding(torch.arange(len(start))).square().sum().backward()
        optimizer.step()
    moved = (embedding.weight != start).any(1)
    assert moved[rows].any().item() is not frozen
    moved[rows] = True
    assert moved.all()


def test_any_vocabulary(tokenizer):
    source = Plain.from_str(json.dumps(trained.config("gpt2")))
    vocabulary, embedding = source.get_vocab(), nn.Embedding(source.get_vocab_size(), 18)
    plain = start_as_fone(embedding.to(torch.bfloat16), source)
    assert set(plain) == {vocabulary[str(n)] for n in range(1000) if str(n) in vocabulary}
    spaced = start_as_fone(embedding, source, spaced=True)
    assert {one: spaced[one] for one in plain} == plain
    assert len(spaced) == len(plain) + sum(f"Ġ{n}" in vocabulary for n in range(1000))
    assert torch.isfinite(embedding.weight).all()
