"""The network of the floating-point embedding, and the sum of BitTokens, held to the papers' own
lines, written out in plain torch.
"""

import itertools
import math
import struct

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import linear, relu

from numtok_torch import FloatBitsEmbedding
from numtok_torch.embeddings.float_bits import bits_of_words, values_of_words, words_of_bits

D = 24
NARROW = [0.0, -28.5, 70000.0, 0.125, 4.17, -0.0, 999.99, 1e-4]
WIDE = [0.0, -0.0, -28.5, 0.30000000000000004, 5e-324, -1.7976931348623157e308, 9007199254740994.0]


def bits_of(values, form=">f"):
    """The IEEE 754 bits, sign first, as the papers make them, with ``struct``: uint8 (n, width)."""
    packed = [struct.pack(form, value) for value in values]
    return torch.tensor([[int(bit) for byte in one for bit in f"{byte:08b}"] for one in packed])


def embedded(layer, stream, words=None):
    """What the layer makes of word vectors, one number after the other in one row: (n, D)."""
    words = torch.randn(1, len(stream), layer.d_model) if words is None else words
    mask = torch.ones(1, len(stream), dtype=torch.bool)
    return layer(words, {"number_mask": mask, "number_bits": stream[None]})[0].detach()


def network(layer, x, residual=True):
    """The paper, equation 3: x_1 = ReLU(Linear(x, W_1)), x_2 = Linear(ReLU(Linear(x_1, W_2)), W_3),
    x_3 = x_1 + x_2, embedding = ReLU(x_3); with more or fewer layers between, and its ablations.
    """
    first, *between = [(inner.weight, inner.bias) for inner in layer.layers]
    x_1 = relu(linear(x, *first))
    if not between:
        return x_1.detach()
    inner = x_1
    for weights in between[:-1]:
        inner = relu(linear(inner, *weights))
    return relu(residual * x_1 + linear(inner, *between[-1])).detach()


@pytest.mark.parametrize(
    ("depth", "bias", "residual", "signed_bits", "width"),
    [*itertools.product((1, 2, 3, 4), *[(False, True)] * 3, (32,)), (3, False, True, False, 64)],
)
def test_the_network_is_that_of_the_paper(depth, bias, residual, signed_bits, width):
    """Its default is equation 3, without a bias; bias and no residual are ablations of table 2."""
    torch.manual_seed(0)
    options = {"bias": bias, "residual": residual, "signed_bits": signed_bits}
    layer = FloatBitsEmbedding(D, depth, **options, width=width, combine="replace")
    x = bits_of(NARROW) if width == 32 else bits_of(WIDE, ">d")
    b = 2.0 * x - 1 if signed_bits else x.float()
    torch.testing.assert_close(embedded(layer, x), network(layer, b, residual))
    assert all((inner.bias is not None) == bias for inner in layer.layers)
    default = FloatBitsEmbedding(D)
    assert [tuple(one.shape) for one in default.parameters()] == [(D, 32), (D, D), (D, D)]


@pytest.mark.parametrize(
    ("options", "there"), [({}, False), ({"bias": True}, True), ({"signed_bits": True}, True)]
)
def test_plus_zero_is_the_zero_vector_only_in_the_form_of_the_paper(options, there):
    plus, minus = embedded(FloatBitsEmbedding(D, **options), bits_of([0.0, -0.0]))
    assert bool(plus.any()) == there and minus.any()


# --- Bits of 64, added


def stream_of(values, compact, reciprocal):
    """``number_bits`` as the collator gives it."""
    if compact:
        return torch.tensor([struct.unpack(">q", struct.pack(">d", value))[0] for value in values])
    inverse = [math.copysign(math.inf, one) if abs(one) < 5.6e-309 else 1 / one for one in values]
    both = [bits_of(values, ">d"), bits_of(inverse, ">d")]
    return torch.cat(both[: 1 + reciprocal], 1).to(torch.uint8)


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("reciprocal", [False, True])
@pytest.mark.parametrize("projection", ["pad", "linear"])
def test_bits_are_added_as_minus_one_and_one(compact, reciprocal, projection):
    """BitTokens, the authors' ``combine_embeds``: "sum", e + pad(2 b - 1), and "weighted_sum", e +
    W (2 b - 1).
    """
    d, e = 136, torch.randn(1, len(WIDE), 136)
    layer = FloatBitsEmbedding(d, width=64, reciprocal=reciprocal, projection=projection)
    found = embedded(layer, stream_of(WIDE, compact, reciprocal), e)
    signed = 2 * stream_of(WIDE, False, reciprocal).double() - 1
    if projection == "pad":
        added = torch.nn.functional.pad(signed, (0, d - signed.shape[1]))
    else:
        added = signed @ layer.projection.weight.double().T
    torch.testing.assert_close(found.double(), e[0].double() + added, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("reciprocal", [False, True])
def test_zero_pad_is_that_of_the_authors(reciprocal):
    """``combine_embeds``: pad(num_encoding * sqrt(n_embed / embedding_size)) for the word vector."""
    d, stream = 136, stream_of(WIDE, False, reciprocal)
    layer = FloatBitsEmbedding(d, width=64, reciprocal=reciprocal, combine="zero_pad")
    size = stream.shape[1]
    theirs = (2.0 * stream - 1) * math.sqrt(d / size)
    found = embedded(layer, stream)
    torch.testing.assert_close(found, torch.nn.functional.pad(theirs, (0, d - size)))
    torch.testing.assert_close(found.square().mean(-1), torch.ones(len(WIDE)))
    assert not list(layer.parameters())


def test_bits_of_32_can_be_added_too():
    assert FloatBitsEmbedding(64, width=64).config()["combine"] == "add"  # there the default
    x, e = bits_of(NARROW), torch.randn(1, len(NARROW), D + 8)
    found = embedded(FloatBitsEmbedding(D + 8, combine="add"), x, e)
    torch.testing.assert_close(found, e[0] + 2 * x - 1)


@given(st.lists(st.integers(0, 2**32 - 1), max_size=5))
def test_bits_words_and_values_invert_each_other(words):
    exact = torch.tensor(words, dtype=torch.int64)
    bits = bits_of_words(exact)
    assert torch.equal(words_of_bits(bits), exact)
    packed = np.array(words, ">u4").view(np.uint8)
    assert np.array_equal(bits.numpy(), np.unpackbits(packed).reshape(-1, 32))
    assert values_of_words(exact).numpy().tobytes() == np.array(words, np.uint32).tobytes()
    layer = FloatBitsEmbedding(D)
    torch.testing.assert_close(*(embedded(layer, one) for one in (exact, bits)))


def test_words_are_read_in_any_type_of_integers():
    layer, few = FloatBitsEmbedding(D), torch.arange(7)
    assert torch.equal(embedded(layer, few.to(torch.int16)), embedded(layer, few))
