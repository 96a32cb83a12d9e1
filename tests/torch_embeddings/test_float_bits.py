"""The network of the floating-point embedding, and the sum of BitTokens, held to the papers' own
lines, written out in plain torch.
"""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import pytest
import torch
from torch.nn.functional import linear, relu

from numtok import FloatBits, Tokenizer
from numtok.errors import RepresentationError, SchemaError
from numtok_torch import BitsHead, FloatBitsEmbedding, embedding_from_config, embedding_from_schema

D = 24
LITERALS = ["0", "-28.5", "70000", "0.125", "4.17", "-0.0", "999.99", "1e-4"]


def bits_of(literals: list[str]) -> Any:
    """The IEEE 754 bits, sign first, as the paper makes them, with ``struct``: float32 (n, 32)."""
    words = [struct.unpack(">I", struct.pack(">f", float(literal)))[0] for literal in literals]
    return torch.tensor(
        [[int(bit) for bit in f"{word:032b}"] for word in words], dtype=torch.float32
    )


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
    """What the layer puts in place of random word vectors, one number after the other in one row:
    (n, D).
    """
    batch = {
        "number_mask": torch.ones(1, len(x), dtype=torch.bool),
        "number_bits": x.to(torch.uint8)[None],
    }
    return layer(torch.randn(1, len(x), D), batch)[0].detach()


def test_equation_3() -> None:
    """The paper, equation 3, where Linear(x, W) has no bias ("The bias of all linear layers is
    uniformly set to 0"):

    x_1 = ReLU(Linear(x, W_1)),
    x_2 = Linear(ReLU(Linear(x_1, W_2)), W_3),
    x_3 = x_1 + x_2,
    embedding_{floating-point} = ReLU(x_3).
    """
    layer, (w_1, w_2, w_3), _ = made()
    assert [tuple(w.shape) for w in (w_1, w_2, w_3)] == [(D, 32), (D, D), (D, D)] and len(
        list(layer.parameters())
    ) == 3
    x = bits_of(LITERALS)
    assert (
        "".join(str(int(bit)) for bit in x[1]) == "1" + "10000011" + "11001000000000000000000"
    )  # -28.5, the paper's example
    x_1 = relu(linear(x, w_1))
    x_2 = linear(relu(linear(x_1, w_2)), w_3)
    x_3 = x_1 + x_2
    embedding = relu(x_3)
    torch.testing.assert_close(embedded(layer, x), embedding)
    assert (x_2 < 0).any() and (x_3 < 0).any()  # so each ReLU that is misplaced would show


def test_the_ablation_with_bias() -> None:
    """The paper, table 2, "float (w/bias)": "we compare the results when introducing bias and
    removing residual connections from our method".
    """
    layer, (w_1, w_2, w_3), (b_1, b_2, b_3) = made(bias=True)
    x = bits_of(LITERALS)
    x_1 = relu(linear(x, w_1, b_1))
    x_2 = linear(relu(linear(x_1, w_2, b_2)), w_3, b_3)
    torch.testing.assert_close(embedded(layer, x), relu(x_1 + x_2))


def test_the_ablation_without_residual() -> None:
    """The paper, table 2, "float (w/o residual)": linear, ReLU, three times."""
    layer, (w_1, w_2, w_3), _ = made(residual=False)
    x = bits_of(LITERALS)
    torch.testing.assert_close(
        embedded(layer, x), relu(linear(relu(linear(relu(linear(x, w_1)), w_2)), w_3))
    )


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
    batch = {
        "number_mask": torch.ones(1, len(x), dtype=torch.bool),
        "number_bits": x.to(torch.uint8)[None],
    }
    assert torch.equal(layer(words, batch), words)
    layer(words, batch).sum().backward()
    assert layer.gain.grad.abs().sum() > 0


# Bits of 64, added
# ------------------------------------------------------------------------------------------------------

VALUES = [
    0.0,
    -0.0,
    -28.5,
    0.30000000000000004,
    5e-324,
    -1.7976931348623157e308,
    9007199254740994.0,
]


def wide_bits(value: float) -> list[int]:
    """The IEEE 754 bits of a float64, sign first."""
    return [int(bit) for bit in f"{int.from_bytes(struct.pack('>d', value), 'big'):064b}"]


def wide_stream(values: list[float], compact: bool, reciprocal: bool) -> Any:
    """``number_bits`` as the collator gives it."""
    if compact:
        return torch.tensor(
            [[struct.unpack(">q", struct.pack(">d", value))[0] for value in values]]
        )
    inverse = [
        math.copysign(math.inf, value) if abs(value) < 5.6e-309 else 1 / value for value in values
    ]
    return torch.tensor(
        [
            [
                wide_bits(one) + (wide_bits(other) if reciprocal else [])
                for one, other in zip(values, inverse, strict=True)
            ]
        ],
        dtype=torch.uint8,
    )


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("reciprocal", [False, True])
@pytest.mark.parametrize("projection", ["pad", "linear"])
def test_bits_are_added_as_minus_one_and_one(
    compact: bool, reciprocal: bool, projection: str
) -> None:
    """BitTokens, the authors' ``combine_embeds``: "sum", e + pad(2 b - 1), and "weighted_sum", e +
    W (2 b - 1).
    """
    d, e = 136, torch.randn(1, len(VALUES) + 1, 136)
    layer = FloatBitsEmbedding(
        d, width=64, reciprocal=reciprocal, projection=projection, compact=compact
    )
    stream = wide_stream([*VALUES, 1.0], compact, reciprocal)
    mask = torch.tensor([[True] * len(VALUES) + [False]])
    found = layer(e, {"number_mask": mask, "number_bits": stream})
    assert torch.equal(found[0, -1], e[0, -1])
    both = wide_stream(VALUES, False, reciprocal)[0].double()
    signed = 2 * both - 1
    added = (
        torch.nn.functional.pad(signed, (0, d - signed.shape[1]))
        if projection == "pad"
        else signed @ layer.projection.weight.double().T
    )
    torch.testing.assert_close(
        found[0, :-1].double(), e[0, :-1].double() + added, rtol=1e-5, atol=1e-5
    )
    assert [name for name, _ in layer.named_parameters()] == (
        ["projection.weight"] if projection == "linear" else []
    )


def test_the_published_form_of_each_width_is_the_default() -> None:
    assert FloatBitsEmbedding(D).config()["combine"] == "replace" and not hasattr(
        FloatBitsEmbedding(D), "projection"
    )
    assert FloatBitsEmbedding(64, width=64).config()["combine"] == "add"
    narrow, x, e = (
        FloatBitsEmbedding(D + 8, combine="add"),
        bits_of(LITERALS),
        torch.randn(1, len(LITERALS), D + 8),
    )
    batch = {
        "number_mask": torch.ones(1, len(x), dtype=torch.bool),
        "number_bits": x.to(torch.uint8)[None],
    }
    torch.testing.assert_close(narrow(e, batch), e + 2 * x - 1)


def test_the_network_takes_64_bits_too() -> None:
    torch.manual_seed(0)
    layer = FloatBitsEmbedding(D, width=64, combine="replace")
    x = torch.tensor([wide_bits(value) for value in VALUES]).float()
    w_1, w_2, w_3 = (inner.weight.detach() for inner in layer.layers)
    x_1 = relu(linear(x, w_1))
    torch.testing.assert_close(embedded(layer, x), relu(x_1 + linear(relu(linear(x_1, w_2)), w_3)))


def test_a_linear_map_that_starts_from_zeros_changes_nothing_and_learns() -> None:
    layer = FloatBitsEmbedding(D, width=64, projection="linear", zero_init=True)
    e, batch = (
        torch.randn(1, len(VALUES), D),
        {
            "number_mask": torch.ones(1, len(VALUES), dtype=torch.bool),
            "number_bits": wide_stream(VALUES, True, False),
        },
    )
    assert torch.equal(layer(e, batch), e)
    layer(e, batch).sum().backward()
    assert layer.projection.weight.grad.abs().sum() > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 16}, "width=16 must be 32 or 64"),
        ({"reciprocal": True}, "take width=64"),
        ({"combine": "sum"}, "combine='sum' is unknown"),
        ({"width": 64, "bias": True}, "take combine='replace'"),
        ({"width": 64}, "64 features do not fit into d_model=24"),
        ({"width": 64, "projection": "both"}, "projection='both' is unknown"),
    ],
)
def test_what_cannot_be_made(options: dict[str, Any], message: str) -> None:
    with pytest.raises(RepresentationError, match=message):
        FloatBitsEmbedding(D, **options)


@pytest.mark.parametrize("compact", [False, True])
def test_the_layer_of_a_file(compact: bool) -> None:
    """``embedding_from_schema``: as wide as the data, with the reciprocal, and saved and made
    again.
    """
    tokenizer = Tokenizer.from_pretrained(
        numbers=FloatBits(width=64, reciprocal=True, compact=compact)
    )
    layer = embedding_from_schema(tokenizer.encode_batch(["1"]).schema, D, projection="linear")
    assert layer.projection.weight.shape == (D, 128)  # type: ignore[union-attr]
    again = embedding_from_config(json.loads(json.dumps(layer.config())), D)
    assert again.config() == layer.config() and again.config()["width"] == 64
    assert (
        embedding_from_config({"name": "bits", "depth": 3, "compact": True}, D).config()["combine"]
        == "replace"
    ), "as it was saved before"
    narrow = Tokenizer.from_pretrained(numbers="bits").encode_batch(["1"]).schema
    assert embedding_from_schema(narrow, D, projection="linear").config()["combine"] == "replace", (
        "what other layers take does not disturb it"
    )


def test_words_of_64_bits_are_not_read_as_32() -> None:
    """By a layer or a head that somebody made for the other width."""
    e, mask = torch.randn(1, len(VALUES), D), torch.ones(1, len(VALUES), dtype=torch.bool)
    wide = wide_stream(VALUES, True, False)
    for refused in (
        lambda: FloatBitsEmbedding(D)(e, {"number_mask": mask, "number_bits": wide}),
        lambda: BitsHead(D).loss(e[0], wide[0]),
    ):
        with pytest.raises(SchemaError, match=r"more than 32 bits.*width=64"):
            refused()
    BitsHead(D).loss(e[0], torch.tensor([0, 2**32 - 1, 1, 2, 3, 4, 5]))
    BitsHead(D).loss(e[0], torch.arange(7, dtype=torch.int16))
