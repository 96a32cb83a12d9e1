"""Numbers in JAX: the columns are plain arrays, so that a layer in any framework takes ten lines.

A small Flax model reads sums such as ``12.5 + 3.25 =``, one token per number, and predicts the
result. Neither torch nor transformers is needed: ``pip install numtok flax``.
"""

from __future__ import annotations

import argparse
import random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pyarrow as pa
from flax import nnx

import numtok

WIDTH, HEADS = 64, 4


class XValEmbedding(nnx.Module):
    """Layer that multiplies the word vector of a number by its value, as ``XValEmbedding`` of
    numtok_torch.
    """

    def __init__(self, vocabulary: int, rngs: nnx.Rngs) -> None:
        self.words = nnx.Embed(vocabulary, WIDTH, rngs=rngs)

    def __call__(self, ids: Any, scaled: Any) -> Any:
        return self.words(ids) * scaled[..., None]  # scaled is 1 where there is no number


class Adder(nnx.Module):
    """A layer of a transformer, and a head that predicts a value at the last token."""

    def __init__(self, vocabulary: int, length: int, rngs: nnx.Rngs) -> None:
        self.numbers = XValEmbedding(vocabulary, rngs)
        self.places = nnx.Embed(length, WIDTH, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(HEADS, WIDTH, decode=False, rngs=rngs)
        self.first = nnx.Linear(WIDTH, 4 * WIDTH, rngs=rngs)
        self.second = nnx.Linear(4 * WIDTH, WIDTH, rngs=rngs)
        self.head = nnx.Linear(WIDTH, 1, rngs=rngs)

    def __call__(self, ids: Any, scaled: Any) -> Any:
        x = self.numbers(ids, scaled) + self.places(jnp.arange(ids.shape[1]))
        x = x + self.attention(x)  # (batch, seq, WIDTH)
        x = x + self.second(nnx.gelu(self.first(x)))
        return self.head(x[:, -1])[:, 0]  # (batch,)


def sums(count: int, seed: int) -> tuple[list[str], np.ndarray]:
    """Return questions, and the right answers."""
    drawn = random.Random(seed)
    pairs = [(drawn.randint(-999, 999) / 4, drawn.randint(-999, 999) / 4) for _ in range(count)]
    return [f"{a} + {b} =" for a, b in pairs], np.array([a + b for a, b in pairs])


def arrays(batch: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
    """Return ids and scaled values, (rows, seq) each. All rows must have equally many tokens."""
    ids = np.array(batch["input_ids"].to_pylist())
    scaled = np.ones(ids.shape, np.float32)
    for row, (index, values) in enumerate(
        zip(batch["number_index"].to_pylist(), batch["number_scaled"].to_pylist(), strict=True)
    ):
        scaled[row, index] = values
    return ids, scaled


def main(arguments: list[str] | None = None) -> list[float]:
    """Train the model, print its answers to sums that it has not seen, and return the losses."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--samples", type=int, default=4096)
    options = parser.parse_args(arguments)
    texts, answers = sums(options.samples, seed=0)
    xval = numtok.XVal.fit(numtok.scan(texts))
    tokenizer = numtok.Tokenizer.from_pretrained(numbers=[xval])
    ids, scaled = arrays(tokenizer.encode_batch(texts))
    model = Adder(tokenizer.vocab_size, ids.shape[1], nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(2e-3), wrt=nnx.Param)

    @nnx.jit
    def step(model: Adder, optimizer: nnx.Optimizer, ids: Any, scaled: Any, right: Any) -> Any:
        def loss_of(model: Adder) -> Any:
            return jnp.mean((model(ids, scaled) - right) ** 2)

        loss, gradients = nnx.value_and_grad(loss_of)(model)
        optimizer.update(model, gradients)
        return loss

    losses, order = [], np.random.default_rng(0)
    for number in range(options.steps):
        some = order.integers(0, len(ids), 64)
        right = jnp.asarray(answers[some] * xval.scale, jnp.float32)
        losses.append(float(step(model, optimizer, ids[some], scaled[some], right)))
        if number % 100 == 0:
            print(f"step {number}: loss {losses[-1]:.4f}")
    texts, answers = sums(8, seed=1)
    predicted = model(*map(jnp.asarray, arrays(tokenizer.encode_batch(texts)))) / xval.scale
    for text, answer, value in zip(texts, answers, jax.device_get(predicted), strict=True):
        print(f"{text} {value:.1f} (right: {answer})")
    print("mean error", float(np.abs(np.asarray(predicted) - answers).mean()))
    return losses


if __name__ == "__main__":
    main()
