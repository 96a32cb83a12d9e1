"""The embedding layers, held to the formulas of the papers written in numpy, and to what must never
happen to a word vector.
"""

import copy
import dataclasses
import functools
import itertools
import json
import math
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_models import check_one_graph, schema_of, tensor
from transformers import GPT2Config, GPT2LMHeadModel

import numtok_torch as layers
from numtok import Numbers
from numtok.representations import (
    Digits,
    ExponentBins,
    FloatBits,
    FoNE,
    LogFourier,
    PlaceValue,
    QuantileBins,
    XVal,
)
from numtok_torch import NumberModel
from numtok_torch.embeddings.float_bits import bits_of_words, values_of_words, words_of_bits
from numtok_torch.embeddings.fone import digits_of_features, features_of_digits

D, IDS = 64, list(range(40, 50))
LITERALS = ("0", "-28.5", "70000", "0.125", "4.17", "-0.0", "999.99", "1e-4")
EDGES = (-30.0, 0.0, 1.4, 3.4, 7.85, 80000.0)
BINS = [QuantileBins(9, soft, EDGES) for soft in (False, True)]
SINGLES = [XVal(0.5, 40.0), FoNE(5, 4), ExponentBins(50), LogFourier(4), *BINS]
BITS, FONE = partial(layers.FloatBitsEmbedding, D), partial(layers.FoNEEmbedding, D, 5, 4)
MAKERS = {
    "xval": partial(layers.XValEmbedding, D, 0.5, 40.0),
    "xval bias": lambda **o: layers.XValEmbedding(
        D, 0.5, 40.0, **({"bias": "zero_init" not in o} | o)
    ),
    "bits": BITS,
    "bits bias": partial(BITS, bias=True),
    "bits linear": partial(BITS, combine="add", projection="linear"),
    "bits zero_pad": partial(BITS, combine="zero_pad"),
    "bits:64": partial(BITS, width=64),
    "bits:64 network": partial(BITS, width=64, combine="replace"),
    "bits:64 reciprocal": partial(BITS, width=64, reciprocal=True, projection="linear"),
    "fone": FONE,
    "fone linear": partial(FONE, projection="linear"),
    "bins": partial(layers.ExponentBinsEmbedding, D, 50),
    "logfourier": partial(layers.LogFourierEmbedding, D, 4),
    "quantile bins": partial(layers.QuantileBinsEmbedding, D, 9),
    "quantile bins soft": partial(layers.QuantileBinsEmbedding, D, 9, soft=True),
    "place": lambda **o: layers.PlaceValueEmbedding(D, max_place=6, **({"zero_init": False} | o)),
    "fone_digits": partial(layers.FoNEDigitEmbedding, D, IDS, projection="linear"),
    "fone_digits replace": partial(layers.FoNEDigitEmbedding, D, IDS, combine="replace"),
}
SUMMED = ("xval", "bits", "fone linear")
MAKERS["sum"] = lambda **o: layers.SumEmbedding([MAKERS[name](**o) for name in SUMMED])
# norms as published of padded features, which do not learn: they are never made shorter
LEAST = {"bits:64": 8.0, "bits zero_pad": D**0.5, "fone": 3.0}
EVERY = pytest.mark.parametrize("name", MAKERS)
LOW = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])


@functools.cache
def rows_of(literals, representation):
    """The streams of numbers, (n, ...) each."""
    clipped = dataclasses.replace(representation, overflow="clip")
    numbers = Numbers.parse(literals)
    numbers = numbers if clipped.carries_sign else numbers.without_sign()
    return {name: tensor(column) for name, column in clipped.encode(numbers).items()}


def streams_of(name, literals):
    """The streams that a layer may read, (n, ...) each."""
    bits = FloatBits(width=64 if ":64" in name else 32, reciprocal="reciprocal" in name)
    parts = [rows_of(literals, one) for one in (*SINGLES, bits, FoNE(5, 4, compact=True))]
    return {stream: rows for part in parts for stream, rows in part.items()}


def batch_of(name, filler=0.0):
    """Two rows with numbers here and there, digits (of place values) beside them, and padding at
    the end of the second.
    """
    at = tuple(torch.tensor([[0, 0, 0, 0, 1, 1, 1, 1], [0, 2, 3, 6, 1, 2, 3, 4]]))
    batch = {"number_mask": torch.zeros(2, 7, dtype=torch.bool)}
    batch["number_mask"][at] = True
    for stream, rows in streams_of(name, LITERALS).items():
        fill = filler if rows.is_floating_point() else 1
        batch[stream] = torch.full((2, 7, *rows.shape[1:]), fill, dtype=rows.dtype)
        batch[stream][at] = rows
    batch["input_ids"] = torch.tensor([[7, 42, 40, 8, 49, 9, 7], [44, 7, 8, 45, 7, 0, 0]])
    batch["place_value"] = torch.tensor([[0, 2, 1, 0, -1, 0, 0], [1, 0, 0, -6, 0, 0, 0]])
    return batch


def words(dtype=torch.float32, seed=0):
    return torch.randn(2, 7, D, generator=torch.Generator().manual_seed(seed)).to(dtype)


def presence(name, batch):
    if name.startswith("fone_digits"):
        return (batch["input_ids"] >= 40) & (batch["input_ids"] < 50)
    return batch["place_value"] != 0 if name == "place" else batch["number_mask"]


def made(name, **options):
    torch.manual_seed(1)
    return MAKERS[name](**options)


# ---- What every layer holds to


def phases(turns):
    """(n,) to (2 n,): the cosine and the sine of each turn."""
    return np.stack([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)], 1).ravel()


def bits_of(x, width):
    """The IEEE 754 bits, sign first."""
    word = np.float32(x).view(np.uint32) if width == 32 else np.float64(x).view(np.uint64)
    return np.array([int(bit) for bit in f"{word:0{width}b}"], np.float64)


def of_bits(name, layer, e, x):
    """The floating-point embedding's network, equation 3: x_1 = ReLU(Linear(x, W_1)), x_2 =
    Linear(ReLU(Linear(x_1, W_2)), W_3), embedding = ReLU(x_1 + x_2), with more or fewer layers
    between and its ablations (table 2); or as in BitTokens' ``combine_embeds``: "sum", e + pad(2 b -
    1), "weighted_sum", e + W (2 b - 1), and pad(num_encoding * sqrt(n_embed / embedding_size)).
    """
    options = layer.config()
    b = bits_of(x, options["width"])
    if options["reciprocal"]:
        inverse = math.copysign(math.inf, x) if abs(x) < 5.6e-309 else 1 / x
        b = np.concatenate([b, bits_of(inverse, 64)])
    signed = 2 * b - 1
    if options["combine"] == "zero_pad":
        return np.pad(signed, (0, D - len(b))) * math.sqrt(D / len(b))
    if options["combine"] == "add" and layer.projection is None:
        return e + np.pad(signed, (0, D - len(b)))
    if options["combine"] == "add":
        return e + layer.projection.weight.detach().double().numpy() @ signed

    def linear(inner, one):
        shift = 0.0 if one.bias is None else one.bias.detach().double().numpy()
        return one.weight.detach().double().numpy() @ inner + shift

    first, *between = layer.layers
    x_1 = np.maximum(linear(signed if options["signed_bits"] else b, first), 0)
    if not between:
        return x_1
    inner = x_1
    for one in between[:-1]:
        inner = np.maximum(linear(inner, one), 0)
    return np.maximum(options["residual"] * x_1 + linear(inner, between[-1]), 0)


def expected(name, layer, e, literal, digit, place):
    """The vector of one number, or digit, from its text, in float64."""
    w = {key: value.detach().double().numpy() for key, value in layer.named_parameters()}
    x = float(literal)
    if name == "xval":
        return e * np.clip(0.5 * x, -40, 40)
    if name == "xval bias":
        return e * np.clip(0.5 * x, -40, 40) + w["bias"]
    if name.startswith("bits"):
        return of_bits(name, layer, e, x)
    if name in ("fone", "fone linear"):
        features = phases(abs(round(x * 1e4)) / 10.0 ** np.arange(1, 10))
        padded = np.pad(features, (0, D - 18))
        return e + (w["projection.weight"] @ features if "linear" in name else padded)
    if name == "bins":
        edges = 1e-4 * (1e10) ** (np.arange(51) / 50)
        index = 0 if x == 0 else int(np.searchsorted(edges, abs(x) * (1 + 1e-12), "right"))
        return e + w["vectors.weight"][index]
    if name == "quantile bins":
        return e + w["vectors.weight"][min(np.searchsorted(EDGES, x, "right"), 5) - 1]
    if name == "quantile bins soft":  # a linear map of the piecewise linear encoding
        parts = np.clip((x - np.array(EDGES[:-1])) / np.diff(EDGES), 0, 1)
        vectors = w["vectors.weight"][: len(EDGES)]
        return e + vectors[0] + parts @ np.diff(vectors, axis=0)
    if name == "logfourier":
        turns = np.log10(abs(x)) / 1000.0 ** (1 - np.arange(4) / 3) if x else np.zeros(4)
        flags = [math.copysign(1, x), float(x == 0)]
        return e + w["projection.weight"] @ np.concatenate([flags, phases(turns) * (x != 0)])
    if name == "place":
        return e + w["vectors.weight"][6 + place]
    if name == "fone_digits":
        return e + w["projection.weight"] @ phases(np.array([digit / 10]))
    if name == "fone_digits replace":
        return np.pad(phases(np.array([digit / 10])), (0, D - 2))
    parts = zip(SUMMED, layer.embeddings, strict=True)
    return e + sum(expected(part, one, e, literal, 0, 0) - e for part, one in parts)


def check_formula(name, layer, found, batch, e):
    """Each number, or digit, has the vector of the formula, and all else its own bit for bit."""
    at = presence(name, batch)
    assert torch.equal(found[~at].view(torch.int32), e[~at].view(torch.int32))  # -0.0 is not 0.0
    literals = iter(LITERALS)
    for row, column in at.nonzero().tolist():
        digit = int(batch["input_ids"][row, column]) - 40
        place = int(batch["place_value"][row, column])
        literal = "0" if name.startswith(("place", "fone_digits")) else next(literals)
        formula = expected(name, layer, e[row, column].double().numpy(), literal, digit, place)
        vector = found[row, column].detach().double().numpy()
        np.testing.assert_allclose(vector, formula, rtol=2e-6, atol=3e-6)


@EVERY
def test_values_are_the_formula_and_words_stay_bit_for_bit(name):
    """Also for zero, which is a number, though published code masks by x != 0; and with NaN in the
    streams of all other tokens.
    """
    layer, batch, e = made(name), batch_of(name, filler=float("nan")), words()
    e[..., ::5] = -0.0
    before = e.clone()
    found = layer(e, batch)
    assert found.shape == e.shape and found.dtype == e.dtype and torch.equal(e, before)
    check_formula(name, layer, found, batch, e)


@pytest.mark.parametrize(
    ("depth", "bias", "residual", "signed_bits"),
    [*itertools.product((1, 2, 3, 4), *[(False, True)] * 3)],
)
def test_the_network_of_bits_with_its_ablations(depth, bias, residual, signed_bits):
    """In the form of the paper, which is the default, +0 is the zero vector."""
    layer, batch, e = BITS(depth, bias, residual, signed_bits), batch_of("bits"), words()
    found = layer(e, batch)
    check_formula("bits", layer, found, batch, e)
    assert all((inner.bias is not None) == bias for inner in layer.layers)
    assert found[0, 0].any().item() == (bias or signed_bits) == (not layer.may_be_zero)
    assert [tuple(one.shape) for one in BITS().parameters()] == [(D, 32), (D, D), (D, D)]


@pytest.mark.parametrize("name", [*MAKERS, "xval zero", "bits zero"])
def test_gradients_reach_all_that_is_learnt_and_no_other_token(name):
    """With NaN in the streams of all other tokens. Without numbers they are zeros, or a process of a
    distributed run would wait for them.
    """
    zero = {"zero_init": True} if name.endswith("zero") else {}
    layer, batch = made(name.removesuffix(" zero"), **zero), batch_of(name, filler=float("nan"))
    e, goal = words().requires_grad_(), words(seed=5)
    (layer(e, batch) - goal).square().sum().backward()
    assert all(torch.isfinite(one.grad).all() for one in (e, *layer.parameters()))
    assert zero or all(one.grad.any() for one in layer.parameters())
    elsewhere = ~presence(name, batch)
    torch.testing.assert_close(e.grad[elsewhere], 2 * (e - goal)[elsewhere])
    layer.zero_grad()
    for stream in ("number_mask", "place_value", "input_ids"):
        batch[stream] = torch.zeros_like(batch[stream])
    found = layer(e, batch)
    assert torch.equal(found, e)
    found.sum().backward()
    assert all(one.grad is not None and not one.grad.any() for one in layer.parameters())


@EVERY
@LOW
def test_it_comes_back_from_its_config_and_rounds_once(name, dtype):
    """The layer in float32 on the same rounded weights and words, then rounded, is the layer in low
    precision within a few roundings. No buffer of floats is there to be rounded.
    """
    low, batch, e = made(name).to(dtype), batch_of(name), words(dtype)
    torch.manual_seed(99)
    high = layers.embedding_from_config(json.loads(json.dumps(low.config())), D)
    assert type(high) is type(low) and high.config() == low.config()
    assert repr(low).startswith(type(low).__name__)
    high.load_state_dict({key: value.float() for key, value in low.state_dict().items()})
    found, unit = low(e, batch), torch.finfo(dtype).eps
    assert found.dtype == dtype
    torch.testing.assert_close(found.float(), high(e.float(), batch), rtol=6 * unit, atol=20 * unit)
    assert not any(buffer.is_floating_point() for buffer in low.buffers())


# padded features have nothing to learn
LEARNT = [name for name in MAKERS if name not in (*LEAST, "fone_digits replace")]


@pytest.mark.parametrize("name", LEARNT)
def test_zero_init_changes_nothing_and_learns(name):
    layer, batch, e = made(name, zero_init=True), batch_of(name), words()
    assert torch.equal(layer(e, batch), e)
    goal = words(seed=5)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        (layer(e, batch) - goal).square().sum().backward()
        optimizer.step()
    assert all(parameter.grad.any() for parameter in layer.parameters())


@pytest.mark.slow
def test_every_layer_compiles_to_one_graph_for_batches_of_any_size():
    # the others are parts of these, or read other streams
    skipped = ("fone", "sum", "bits:64", "bits:64 network", "bits:64 reciprocal")
    alone = [made(name) for name in MAKERS if name not in skipped]
    written = layers.PlaceValueEmbedding(D, zero_init=False, written="lsd")
    every = [*alone, layers.SumEmbedding(alone[:2]), written]

    def inputs(rows, length):
        chosen = torch.arange(rows) % 2
        batch = {key: stream[chosen, :length] for key, stream in batch_of("bits").items()}
        return words()[chosen, :length], batch | {"labels": batch["input_ids"]}

    check_one_graph(
        lambda e, batch: [layer(e, batch) for layer in every],
        [inputs(rows, length) for rows, length in [(3, 7), (4, 6), (8, 5)]],
        [parameter for layer in every for parameter in layer.parameters()],
    )


def test_values_beyond_float16_are_multiplied_in_float32():
    """70000 as float16 is infinite, and 2049 is 2048; their products with small word vectors are
    neither.
    """
    mask, scaled = torch.ones(1, 2, dtype=torch.bool), torch.tensor([[70000.0, 2049.0]])
    small = torch.tensor([[[0.001], [1.0]]], dtype=torch.float16)
    found = layers.XValEmbedding(1)(small, {"number_mask": mask, "number_scaled": scaled})
    assert torch.isfinite(found).all()
    assert found[0, 0, 0].item() == pytest.approx(70, rel=1e-3)


# ---- FoNE on the device


@LOW
def test_forty_digits_survive_a_cast_of_the_module(dtype):
    """Frequencies in a buffer, or a float of the number, would not."""
    generator = torch.Generator().manual_seed(3)
    digits = torch.randint(10, (1, 200, 40), generator=generator, dtype=torch.uint8)
    batch = {"number_mask": torch.ones(1, 200, dtype=torch.bool), "number_digits": digits}
    found = layers.FoNEEmbedding(80, 20, 20).to(dtype)(torch.zeros(1, 200, 80, dtype=dtype), batch)
    assert torch.equal(digits_of_features(found.unflatten(-1, (40, 2)), 40), digits)
    with torch.autocast("cpu", torch.bfloat16):
        features = layers.FoNEEmbedding(80, 20, 20)(torch.zeros(1, 200, 80), batch)
    first = phases(digits[0, :, 0].double().numpy() / 10).reshape(-1, 2)
    np.testing.assert_allclose(features[0, :, :2], first, atol=1e-6)


@pytest.mark.parametrize("bases", [(10,), (2, 5, 10), (5,), (2, 5), (3, 7)])
@pytest.mark.parametrize("chunk", [None, 5, 4])
def test_features_and_digits_are_those_of_numtok(bases, chunk):
    fone = FoNE(7, 6, bases, chunk=chunk)

    @settings(max_examples=30)
    @given(st.lists(st.lists(st.integers(0, 9), min_size=13, max_size=13), min_size=1, max_size=4))
    def check(rows):
        digits = torch.tensor(rows, dtype=torch.uint8)
        found = features_of_digits(digits, bases, chunk)
        np.testing.assert_allclose(found.numpy(), fone.features(digits.numpy()), atol=1e-6, rtol=0)
        for features in (found, found.to(torch.bfloat16)):
            assert torch.equal(digits_of_features(features, 13, bases, chunk), digits)

    check()


def test_fone_replaces_the_digits_of_abacus():
    """FoNE, section 5, Q3: "the embeddings for each digit (0-9) are replaced with their
    corresponding Fourier Number Embeddings"; and the place is added to what the vector now is.
    """
    place, digits = made("place"), made("fone_digits replace")
    batch, e = batch_of("place"), words()
    at = presence("fone_digits", batch)
    both = layers.SumEmbedding([place, digits])(e, batch)
    torch.testing.assert_close(both[at], digits(e, batch)[at] + (place(e, batch) - e)[at])


# ---- Bits, words and values


@given(st.lists(st.integers(0, 2**32 - 1), max_size=5))
def test_bits_words_and_values_invert_each_other(words):
    exact = torch.tensor(words, dtype=torch.int64)
    bits = bits_of_words(exact)
    assert torch.equal(words_of_bits(bits), exact)
    packed = np.array(words, ">u4").view(np.uint8)
    assert np.array_equal(bits.numpy(), np.unpackbits(packed).reshape(-1, 32))
    assert values_of_words(exact).numpy().tobytes() == np.array(words, np.uint32).tobytes()


def test_words_are_read_in_any_type_of_integers():
    layer, few, e = BITS(), torch.arange(7).expand(2, 7), words()
    batch = {"number_mask": torch.ones(2, 7, dtype=torch.bool), "number_bits": few}
    assert torch.equal(layer(e, batch | {"number_bits": few.to(torch.int16)}), layer(e, batch))


# ---- How long vectors are when training starts

OF_AMPLITUDE = [name for name in MAKERS if name not in ("xval", "quantile bins soft", "sum")]
EVERY_AMPLITUDE = pytest.mark.parametrize("name", OF_AMPLITUDE)
MANY = tuple(f"{10**exponent:.6g}" for exponent in np.linspace(-3, 5, 120))


def in_front_of(layer, std=0.02):
    """A model whose word vectors have this standard deviation."""
    torch.manual_seed(1)
    sizes = {"vocab_size": 60, "n_embd": D, "n_layer": 1, "n_head": 2, "n_positions": len(MANY)}
    config = GPT2Config(**sizes, initializer_range=std)
    return NumberModel(GPT2LMHeadModel(config), layer).eval()


def length(layer, name):
    """Root mean square of the norms of what the layer adds, or puts in the words' place, for numbers
    of many magnitudes.
    """
    torch.manual_seed(2)
    batch = {stream: rows[None] for stream, rows in streams_of(name, MANY).items()}
    batch["number_mask"] = torch.ones(1, len(MANY), dtype=torch.bool)
    batch["place_value"] = torch.randint(1, 7, (1, len(MANY)))
    batch["input_ids"] = torch.randint(40, 50, (1, len(MANY)))
    with torch.no_grad():
        vectors = layer(torch.zeros(1, len(MANY), D), batch)
    return float(vectors.square().sum(-1).mean().sqrt())


def of_words(model, name):
    """The length that a layer's vectors should have."""
    vectors = model.get_input_embeddings().weight.detach()
    return max(float(vectors.square().sum(-1).mean().sqrt()), LEAST.get(name, 0.0))


@EVERY_AMPLITUDE
@pytest.mark.parametrize("std", [0.02, 1.0])
def test_a_number_starts_as_long_as_a_word_once(name, std):
    """A second model does not change what was trained."""
    model = in_front_of(made(name), std)
    before = length(model.embedding, name)
    assert before == pytest.approx(of_words(model, name), rel=0.15)
    assert length(in_front_of(model.embedding, std=1.5).embedding, name) == before


@EVERY_AMPLITUDE
def test_an_amplitude_that_is_given_is_kept(name):
    """1.0 is the published start, whatever the word vectors."""
    published = length(in_front_of(made(name, amplitude=1.0), std=1.0).embedding, name)
    assert published == pytest.approx(length(made(name), name))
    double = in_front_of(made(name, amplitude=2.0)).embedding
    assert length(double, name) == pytest.approx(2 * published, rel=1e-4)


@pytest.mark.parametrize("name", [*OF_AMPLITUDE, "sum"])
def test_what_is_saved_is_as_long_when_it_is_loaded(name, tmp_path):
    model = in_front_of(made(name), std=0.3)
    before = length(model.embedding, name)
    model.save_pretrained(tmp_path)
    assert length(NumberModel.from_pretrained(tmp_path).embedding, name) == before
    resumed = in_front_of(made(name), std=0.02)  # as a Trainer that resumes loads it
    resumed.load_state_dict(copy.deepcopy(model.state_dict()))
    assert length(resumed.embedding, name) == before


def test_each_part_of_a_sum_is_as_long_as_a_word():
    names = ("bins", "fone")
    model = in_front_of(layers.SumEmbedding([made(name) for name in names]), std=0.3)
    for part, name in zip(model.embedding.embeddings, names, strict=True):
        assert length(part, name) == pytest.approx(of_words(model, name), rel=0.15)


# ---- From a file


@pytest.mark.parametrize(
    "one",
    [
        *(FoNE(8, 4, chunk=chunk) for chunk in (None, 5)),
        *(FloatBits(), FloatBits(width=64), FloatBits(width=64, reciprocal=True)),
    ],
)
@pytest.mark.parametrize("projection", ["pad", "linear"])
def test_both_forms_of_a_file_embed_alike(one, projection):
    torch.manual_seed(0)
    layer, e = layers.embedding_from_schema(schema_of(one), 136, projection=projection), None
    found = []
    for compact in (False, True):
        streams = rows_of(LITERALS[1:6:2], dataclasses.replace(one, compact=compact))
        batch = {name: rows[None] for name, rows in streams.items()}
        batch["number_mask"] = torch.ones(1, 3, dtype=torch.bool)
        e = torch.randn(1, 3, 136) if e is None else e
        found.append(layer(e, batch))
    torch.testing.assert_close(*found, rtol=0, atol=2e-6)
    if getattr(one, "chunk", None):  # rows of digits, as a batch holds them too
        flat = batch | {"number_digits": batch["number_digits"].flatten(2)[..., :12]}
        assert torch.equal(found[1], layer(e, flat))


LINEAR = {"projection": "linear"}
SEVERAL = [XVal(0.5, 40.0), FloatBits(), FoNE(5, 4, compact=True, chunk=5), ExponentBins(50)]
WANTED = [
    {"name": "xval", "scale": 0.5, "clip": 40.0, "zero_init": True},
    {"name": "bits", "compact": False, "depth": 2},
    {"name": "fone", "int_digits": 5, "chunk": 5, "compact": True, **LINEAR},
    {"name": "exponent_bins", "n": 50},
]


@pytest.mark.parametrize(
    ("numbers", "options", "wanted"),
    [
        (SEVERAL, {"zero_init": True, "depth": 2, **LINEAR}, WANTED),
        ([LogFourier(4)], {}, [{"name": "logfourier", "n_frequencies": 4}]),
        ([Digits(places=True)], {}, [{"name": "place", "max_place": 64, "written": "msd"}]),
        ([PlaceValue(max_offset=20)], {}, [{"max_place": 84, "written": "msd"}]),
        ([PlaceValue()], {"max_offset": 100}, [{"max_place": 164}]),
        ([PlaceValue(order="lsd")], {}, [{"written": "lsd"}]),
        ([PlaceValue(order="lsd")], {"written": None}, [{"written": None}]),
        (BINS[1:], {}, [{"name": "quantile_bins", "n": 9, "soft": True}]),
        ([FloatBits()], LINEAR, [{"combine": "replace"}]),
        ([FloatBits(width=64, reciprocal=True)], LINEAR, [{"reciprocal": True, "combine": "add"}]),
    ],
)
def test_the_layers_follow_from_the_file(numbers, options, wanted):
    config = layers.embedding_from_schema(schema_of(*numbers), D, **options).config()
    for one, some in zip(config.get("embeddings", [config]), wanted, strict=True):
        assert some.items() <= one.items()
