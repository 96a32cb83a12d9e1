"""The embedding layers, held to the formulas of the papers written in numpy, and to what must never
happen to a word vector.
"""

import dataclasses
import json
import math
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_models import schema_of

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
from numtok_torch.embeddings.fone import digits_of_features, features_of_digits

D, IDS = 24, list(range(40, 50))
LITERALS = ["0", "-28.5", "70000", "0.125", "4.17", "-0.0", "999.99", "1e-4"]
EDGES = (-30.0, 0.0, 1.4, 3.4, 7.85, 80000.0)
BINS = [QuantileBins(9, soft, EDGES) for soft in (False, True)]
SINGLES = [XVal(0.5, 40.0), FloatBits(), FoNE(5, 4), ExponentBins(50), LogFourier(4), *BINS]
MAKERS = {
    "xval": partial(layers.XValEmbedding, D, 0.5, 40.0),
    "xval bias": lambda **o: layers.XValEmbedding(
        D, 0.5, 40.0, **({"bias": "zero_init" not in o} | o)
    ),
    "bits": partial(layers.FloatBitsEmbedding, D),
    "fone": partial(layers.FoNEEmbedding, D, 5, 4),
    "fone linear": partial(layers.FoNEEmbedding, D, 5, 4, projection="linear"),
    "bins": partial(layers.ExponentBinsEmbedding, D, 50),
    "logfourier": partial(layers.LogFourierEmbedding, D, 4),
    "quantile bins": partial(layers.QuantileBinsEmbedding, D, 9),
    "quantile bins soft": partial(layers.QuantileBinsEmbedding, D, 9, soft=True),
    "place": lambda **o: layers.PlaceValueEmbedding(D, max_place=6, **({"zero_init": False} | o)),
    "fone_digits": partial(layers.FoNEDigitEmbedding, D, IDS, projection="linear"),
}
SUMMED = ("xval", "bits", "fone linear")
MAKERS["sum"] = lambda **o: layers.SumEmbedding([MAKERS[name](**o) for name in SUMMED])
EVERY = pytest.mark.parametrize("name", MAKERS)
LOW = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])


def tensor(column):
    is_tensor = hasattr(column, "to_numpy_ndarray")
    array = column.to_numpy_ndarray() if is_tensor else column.to_numpy(zero_copy_only=False)
    wide = array.dtype in (np.uint32, np.int16)
    return torch.from_numpy(array.astype(np.int64) if wide else array.copy())


def batch_of(filler=0.0):
    """Two rows with numbers here and there, digits (of place values) beside them, and padding at
    the end of the second.
    """
    at = tuple(torch.tensor([[0, 0, 0, 0, 1, 1, 1, 1], [0, 2, 3, 6, 1, 2, 3, 4]]))
    batch = {"number_mask": torch.zeros(2, 7, dtype=torch.bool)}
    batch["number_mask"][at] = True
    for representation in (*SINGLES, FoNE(5, 4, compact=True)):
        clipped = dataclasses.replace(representation, overflow="clip")
        numbers = Numbers.parse(LITERALS)
        numbers = numbers if clipped.carries_sign else numbers.without_sign()
        for name, column in clipped.encode(numbers).items():
            rows = tensor(column)
            fill = filler if rows.is_floating_point() else 1
            batch[name] = torch.full((2, 7, *rows.shape[1:]), fill, dtype=rows.dtype)
            batch[name][at] = rows
    batch["input_ids"] = torch.tensor([[7, 42, 40, 8, 49, 9, 7], [44, 7, 8, 45, 7, 0, 0]])
    batch["place_value"] = torch.tensor([[0, 2, 1, 0, -1, 0, 0], [1, 0, 0, -6, 0, 0, 0]])
    return batch


def words(dtype=torch.float32, seed=0):
    return torch.randn(2, 7, D, generator=torch.Generator().manual_seed(seed)).to(dtype)


def presence(name, batch):
    if name == "fone_digits":
        return (batch["input_ids"] >= 40) & (batch["input_ids"] < 50)
    return batch["place_value"] != 0 if name == "place" else batch["number_mask"]


def made(name, **options):
    torch.manual_seed(1)
    return MAKERS[name](**options)


# ---- What every layer holds to


def phases(turns):
    """(n,) to (2 n,): the cosine and the sine of each turn."""
    return np.stack([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)], 1).ravel()


def expected(name, layer, e, literal, digit, place):
    """The vector of one number, or digit, from its text, in float64."""
    w = {key: value.detach().double().numpy() for key, value in layer.named_parameters()}
    x = float(literal)
    if name == "xval":
        return e * np.clip(0.5 * x, -40, 40)
    if name == "xval bias":
        return e * np.clip(0.5 * x, -40, 40) + w["bias"]
    if name == "bits":
        bits = np.array([int(bit) for bit in f"{np.float32(x).view(np.uint32):032b}"], np.float64)
        inner = np.maximum(w["layers.0.weight"] @ bits, 0)
        deep = w["layers.2.weight"] @ np.maximum(w["layers.1.weight"] @ inner, 0)
        return np.maximum(inner + deep, 0)
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
    parts = zip(SUMMED, layer.embeddings, strict=True)
    return e + sum(expected(part, one, e, literal, 0, 0) - e for part, one in parts)


@EVERY
@pytest.mark.parametrize("compiled", [False, True])
def test_values_are_the_formula_and_words_stay_bit_for_bit(name, compiled, monkeypatch):
    """Also for zero, which is a number, though published code masks by x != 0; and with NaN in the
    streams of all other tokens.
    """
    if compiled:  # the path without data-dependent shapes
        monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    layer, batch, e = made(name), batch_of(filler=float("nan")), words()
    e[..., ::5] = -0.0
    before = e.clone()
    found = layer(e, batch)
    assert found.shape == e.shape and found.dtype == e.dtype and torch.equal(e, before)
    at = presence(name, batch)
    assert torch.equal(found[~at].view(torch.int32), e[~at].view(torch.int32))  # -0.0 is not 0.0
    literals = iter(LITERALS)
    for row, column in at.nonzero().tolist():
        digit = int(batch["input_ids"][row, column]) - 40
        place = int(batch["place_value"][row, column])
        literal = "0" if name in ("place", "fone_digits") else next(literals)
        formula = expected(name, layer, e[row, column].double().numpy(), literal, digit, place)
        vector = found[row, column].detach().double().numpy()
        np.testing.assert_allclose(vector, formula, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", [*MAKERS, "xval zero", "bits zero"])
def test_gradients_are_there_and_the_same_on_either_way(name, monkeypatch):
    """At the numbers alone, and at every token: of the word vectors, and of each parameter. Without
    numbers they are zeros, or a process of a distributed run would wait for them.
    """
    zero = {"zero_init": True} if name.endswith("zero") else {}
    layer, batch = made(name.removesuffix(" zero"), **zero), batch_of(filler=float("nan"))
    ways = []
    for compiled in (False, True):
        with monkeypatch.context() as patch:
            patch.setattr(torch.compiler, "is_compiling", lambda compiled=compiled: compiled)
            e = words().requires_grad_()
            loss = (layer(e, batch) - words(seed=5)).square().sum()
            ways.append(torch.autograd.grad(loss, [e, *layer.parameters()]))
    assert all(torch.isfinite(one).all() and (one.any() or zero) for one in ways[0])
    torch.testing.assert_close(*ways, rtol=1e-5, atol=1e-6)
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
    low, batch, e = made(name).to(dtype), batch_of(), words(dtype)
    torch.manual_seed(99)
    high = layers.embedding_from_config(json.loads(json.dumps(low.config())), D)
    assert type(high) is type(low) and high.config() == low.config()
    assert repr(low).startswith(type(low).__name__)
    high.load_state_dict({key: value.float() for key, value in low.state_dict().items()})
    found, unit = low(e, batch), torch.finfo(dtype).eps
    assert found.dtype == dtype
    torch.testing.assert_close(found.float(), high(e.float(), batch), rtol=6 * unit, atol=20 * unit)
    assert not any(buffer.is_floating_point() for buffer in low.buffers())


# features that are padded have nothing to learn
@pytest.mark.parametrize("name", [name for name in MAKERS if name != "fone"])
def test_zero_init_changes_nothing_and_learns(name):
    layer, batch, e = made(name, zero_init=True), batch_of(), words()
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
    """Forward and backward, without a break, and compiled once."""
    # half a second, which a quick run has no use for
    from torch._dynamo.testing import CompileCounterWithBackend

    alone = [made(name) for name in MAKERS if name not in ("fone", "sum")]  # parts of the others
    written = layers.PlaceValueEmbedding(D, zero_init=False, written="lsd")
    every = [*alone, layers.SumEmbedding(alone[:2]), written]

    def embed(e, batch):
        return torch.stack([layer(e, batch) for layer in every])

    torch.compiler.reset()
    counter = CompileCounterWithBackend("eager")
    compiled = torch.compile(embed, fullgraph=True, dynamic=True, backend=counter)
    parameters = [parameter for layer in every for parameter in layer.parameters()]
    for rows, length in [(3, 7), (4, 6), (8, 5)]:
        chosen = torch.arange(rows) % 2
        batch = {key: stream[chosen, :length] for key, stream in batch_of().items()}
        e = words()[chosen, :length].requires_grad_()
        batch["labels"] = batch["input_ids"]
        both = [one(e, batch) for one in (compiled, embed)]
        torch.testing.assert_close(*both, rtol=1e-6, atol=1e-6)
        goal = torch.randn(both[0].shape, generator=torch.Generator().manual_seed(rows))
        gradients = [torch.autograd.grad((one * goal).sum(), [e, *parameters]) for one in both]
        torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-6)
    assert counter.frame_count == 1


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


@pytest.mark.parametrize("chunk", [None, 5])
@pytest.mark.parametrize("projection", ["pad", "linear"])
def test_digits_and_features_embed_alike(chunk, projection):
    fone = FoNE(8, 4, chunk=chunk)
    numbers = Numbers.parse(["12345678.9012", "0", "7.5"])
    digits = dataclasses.replace(fone, compact=True).encode(numbers)["number_digits"]
    dense, compact = tensor(fone.encode(numbers)["number_fourier"])[None], tensor(digits)[None]
    torch.manual_seed(0)
    layer = layers.FoNEEmbedding(40, 8, 4, chunk=chunk, projection=projection)
    mask, e = torch.tensor([[True, True, True]]), torch.randn(1, 3, 40)
    found = layer(e, {"number_mask": mask, "number_digits": compact})
    other = layer(e, {"number_mask": mask, "number_fourier": dense})
    torch.testing.assert_close(found, other, rtol=0, atol=2e-6)
    if chunk:  # rows of digits, as a batch holds them, and in chunks, as a file does
        flat = compact.flatten(2)[..., :12]
        assert torch.equal(found, layer(e, {"number_mask": mask, "number_digits": flat}))


@pytest.mark.parametrize("projection", ["pad", "linear"])
def test_fone_replaces_the_digits_of_abacus(projection):
    """FoNE, section 5, Q3: "the embeddings for each digit (0-9) are replaced with their
    corresponding Fourier Number Embeddings".
    """
    torch.manual_seed(0)
    digits = layers.FoNEDigitEmbedding(D, IDS, projection=projection, combine="replace")
    batch, e, place = batch_of(), words(), made("place")
    at = presence("fone_digits", batch)
    turns = 2 * math.pi * (batch["input_ids"][at] - 40).double() / 10
    features = torch.stack([turns.cos(), turns.sin()], 1).float()
    padded = torch.nn.functional.pad(features, (0, D - 2))
    replaced = padded if digits.projection is None else digits.projection(features)
    torch.testing.assert_close(digits(e, batch)[at], replaced)
    # Abacus: the place is added to what the digit's vector now is
    both = layers.SumEmbedding([place, digits])(e, batch)
    torch.testing.assert_close(both[at], replaced + (place(e, batch) - e)[at])
    torch.testing.assert_close(layers.FoNEDigitEmbedding(D, IDS)(e, batch)[at], e[at] + padded)


# ---- From a file, and errors


@pytest.mark.parametrize("compact", [False, True])
def test_the_layers_follow_from_the_file(compact):
    bits, fone = FloatBits(compact=compact), FoNE(5, 4, compact=compact, chunk=5)
    schema = schema_of(XVal(0.5, 40.0), bits, fone, ExponentBins(50), LogFourier(4))
    options = {"zero_init": True, "projection": "linear", "depth": 2}
    layer = layers.embedding_from_schema(schema, 32, **options)
    wanted = [
        {"name": "xval", "scale": 0.5, "clip": 40.0, "zero_init": True},
        {"name": "bits", "compact": compact, "depth": 2},
        {"name": "fone", "int_digits": 5, "chunk": 5, "compact": compact, "projection": "linear"},
        {"name": "exponent_bins", "n": 50},
        {"name": "logfourier", "n_frequencies": 4},
    ]
    for one, options in zip(layer.embeddings, wanted, strict=True):
        assert options.items() <= one.config().items()


@pytest.mark.parametrize(
    ("one", "options", "wanted"),
    [
        (Digits(places=True), {}, {"name": "place", "max_place": 64, "written": "msd"}),
        (PlaceValue(max_offset=20), {}, {"max_place": 84, "written": "msd"}),
        (PlaceValue(), {"max_offset": 100}, {"max_place": 164}),
        (PlaceValue(order="lsd"), {}, {"written": "lsd"}),
        (PlaceValue(order="lsd"), {"written": None}, {"written": None}),
        (BINS[1], {}, {"name": "quantile_bins", "n": 9, "soft": True}),
        (FloatBits(), {"projection": "linear"}, {"combine": "replace"}),
        (
            FloatBits(width=64, reciprocal=True),
            {"projection": "linear"},
            {"width": 64, "reciprocal": True, "combine": "add", "projection": "linear"},
        ),
    ],
)
def test_the_layer_follows_from_the_file(one, options, wanted):
    layer = layers.embedding_from_schema(schema_of(one), D, **options)
    assert wanted.items() <= layer.config().items()
