"""The network of the floating-point embedding, held to the paper's own lines, written out in plain torch."""

from __future__ import annotations

import struct
from typing import Any

import pytest
import torch
from torch.nn.functional import linear, relu

from numtok_torch import FloatBitsEmbedding

D = 24
LITERALS = ["0", "-28.5", "70000", "0.125", "4.17", "-0.0", "999.99", "1e-4"]


def bits_of(literals: list[str]) -> Any:
    """The IEEE 754 bits, sign first, as the paper makes them, with ``struct``: float32 (n, 32)."""
    words = [struct.unpack(">I", struct.pack(">f", float(literal)))[0] for literal in literals]
    return torch.tensor([[int(bit) for bit in f"{word:032b}"] for word in words], dtype=torch.float32)


def made(depth: int = 3, **options: Any) -> tuple[FloatBitsEmbedding, list[Any], list[Any]]:
    """(layer, weights, biases): no bias is zero where there is one."""
    torch.manual_seed(0)
    layer = FloatBitsEmbedding(D, depth, **options)
    biases = [torch.randn(D) * 0.3 if inner.bias is not None else None for inner in layer.layers]
    for inner, bias in zip(layer.layers, biases, strict=True):
        if bias is not None:
            inner.bias.data.copy_(bias)
    return layer, [inner.weight.detach() for inner in layer.layers], biases


def embedded(layer: FloatBitsEmbedding, x: Any) -> Any:
    """What the layer puts in place of random word vectors, one number after the other in one row: (n, D)."""
    batch = {"number_mask": torch.ones(1, len(x), dtype=torch.bool), "number_bits": x.to(torch.uint8)[None]}
    return layer(torch.randn(1, len(x), D), batch)[0].detach()


def test_equation_3() -> None:
    """The paper, equation 3, where Linear(x, W) has no bias ("The bias of all linear layers is uniformly set to 0"):

    x_1 = ReLU(Linear(x, W_1)),
    x_2 = Linear(ReLU(Linear(x_1, W_2)), W_3),
    x_3 = x_1 + x_2,
    embedding_{floating-point} = ReLU(x_3).
    """
    layer, (w_1, w_2, w_3), _ = made()
    assert [tuple(w.shape) for w in (w_1, w_2, w_3)] == [(D, 32), (D, D), (D, D)] and len(list(layer.parameters())) == 3
    x = bits_of(LITERALS)
    assert "".join(str(int(bit)) for bit in x[1]) == "1" + "10000011" + "11001000000000000000000"  # -28.5, the paper's example
    x_1 = relu(linear(x, w_1))
    x_2 = linear(relu(linear(x_1, w_2)), w_3)
    x_3 = x_1 + x_2
    embedding = relu(x_3)
    torch.testing.assert_close(embedded(layer, x), embedding)
    assert (x_2 < 0).any() and (x_3 < 0).any()  # so each ReLU that is misplaced would show


def test_the_ablation_with_bias() -> None:
    """The paper, table 2, "float (w/bias)": "we compare the results when introducing bias and removing residual connections from our method"."""
    layer, (w_1, w_2, w_3), (b_1, b_2, b_3) = made(bias=True)
    x = bits_of(LITERALS)
    x_1 = relu(linear(x, w_1, b_1))
    x_2 = linear(relu(linear(x_1, w_2, b_2)), w_3, b_3)
    torch.testing.assert_close(embedded(layer, x), relu(x_1 + x_2))


def test_the_ablation_without_residual() -> None:
    """The paper, table 2, "float (w/o residual)": linear, ReLU, three times."""
    layer, (w_1, w_2, w_3), _ = made(residual=False)
    x = bits_of(LITERALS)
    torch.testing.assert_close(embedded(layer, x), relu(linear(relu(linear(relu(linear(x, w_1)), w_2)), w_3)))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("signed_bits", [False, True])
def test_other_depths(bias: bool, residual: bool, signed_bits: bool) -> None:
    """As equation 3, with fewer or more layers between the first and the last."""
    x = bits_of(LITERALS)
    given = 2 * x - 1 if signed_bits else x
    options = {"bias": bias, "residual": residual, "signed_bits": signed_bits}

    layer, (w_1,), (b_1,) = made(1, **options)
    torch.testing.assert_close(embedded(layer, x), relu(linear(given, w_1, b_1)))

    layer, (w_1, w_2), (b_1, b_2) = made(2, **options)
    x_1 = relu(linear(given, w_1, b_1))
    torch.testing.assert_close(embedded(layer, x), relu(residual * x_1 + linear(x_1, w_2, b_2)))

    layer, (w_1, w_2, w_3, w_4), (b_1, b_2, b_3, b_4) = made(4, **options)
    x_1 = relu(linear(given, w_1, b_1))
    inner = relu(linear(relu(linear(x_1, w_2, b_2)), w_3, b_3))
    torch.testing.assert_close(embedded(layer, x), relu(residual * x_1 + linear(inner, w_4, b_4)))


def test_zeros_in_the_last_layer_are_no_zero_init() -> None:
    """They leave x_1 and not the word vector: the reason that ``zero_init`` is a gain of its own."""
    layer, (w_1, _, w_3), _ = made()
    w_3.zero_()
    x = bits_of(LITERALS)
    torch.testing.assert_close(embedded(layer, x), relu(linear(x, w_1)))
    layer = FloatBitsEmbedding(D, zero_init=True)
    words = torch.randn(1, len(x), D)
    batch = {"number_mask": torch.ones(1, len(x), dtype=torch.bool), "number_bits": x.to(torch.uint8)[None]}
    assert torch.equal(layer(words, batch), words)
    layer(words, batch).sum().backward()
    assert layer.gain.grad.abs().sum() > 0
