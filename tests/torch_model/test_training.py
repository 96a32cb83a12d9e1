"""What the layers are for: small transformers that learn numbers through them. Seeded, on one
thread of a CPU.

Each model is a plain module around two layers of ``nn.TransformerEncoderLayer``, so that what is
tested is the embedding and the head."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from numtok.representations import FoNE
from numtok_torch import FoNEEmbedding, FoNEHead

NUM, PLUS, MINUS, TIMES, EQUALS, MASK = range(6)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(before)


class Transformer(nn.Module):
    """Word vectors, the numbers, positions, two layers; (batch, seq) to hidden states (batch, seq,
    d).
    """

    def __init__(self, d: int, embedding: nn.Module, vocabulary: int = 16) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, d)
        nn.init.normal_(self.words.weight, std=0.1)  # small beside the features of a number
        self.embedding = embedding
        self.positions = nn.Parameter(torch.randn(8, d) * 0.02)
        layer = nn.TransformerEncoderLayer(
            d, 4, 4 * d, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(d)

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        ids = batch["input_ids"]
        # (batch, seq, d)
        vectors = self.embedding(self.words(ids), batch) + self.positions[: ids.shape[1]]
        return self.norm(self.blocks(vectors))


def train(
    parameters: list[nn.Parameter], loss: Callable[[], Tensor], steps: int, lr: float
) -> float:
    """Adam with a warm-up and a cosine; the last loss."""
    optimizer = torch.optim.Adam(parameters, lr=lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, steps, pct_start=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        found = loss()
        found.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
    return found.item()


def test_fone_adds_two_digit_numbers_exactly() -> None:
    """``[NUM] + [NUM] =``: at ``=`` the head reads the sum.

    99% of unseen sums right in every digit, on decimal strings.
    """
    fone, d = FoNE(3, 0, compact=True), 32
    model, head = Transformer(d, FoNEEmbedding(d, 3, 0)), FoNEHead(d, 3, 0, linear=True)
    generator = torch.Generator().manual_seed(1)
    pairs = torch.randperm(10_000, generator=generator)
    unseen, seen = pairs[:2500], pairs[2500:]
    powers = 10 ** torch.arange(3)

    def digits(values: Tensor) -> Tensor:
        return (values.unsqueeze(-1) // powers % 10).to(torch.uint8)

    def batch_of(pair: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        a, b = pair // 100, pair % 100
        stream = torch.zeros(len(pair), 4, 3, dtype=torch.uint8)
        stream[:, 0], stream[:, 2] = digits(a), digits(b)
        ids = torch.tensor([NUM, PLUS, NUM, EQUALS]).repeat(len(pair), 1)
        return {"input_ids": ids, "number_mask": ids == NUM, "number_digits": stream}, a + b

    def loss() -> Tensor:
        batch, total = batch_of(seen[torch.randint(len(seen), (128,), generator=generator)])
        return head.loss(model(batch)[:, -1], digits(total))

    train([*model.parameters(), *head.parameters()], loss, steps=220, lr=8e-3)
    batch, total = batch_of(unseen)
    with torch.no_grad():
        found = head.predict(model(batch)[:, -1])
    said = fone.numbers(found.streams["number_digits"].numpy()).format().to_pylist()
    right = np.mean([one == str(value) for one, value in zip(said, total.tolist(), strict=True)])
    assert right >= 0.99, right
    assert found.values.tolist() == [float(one) for one in said]
