"""The embedding layers, held to the formulas of the papers written in numpy, and to what must never
happen to a word vector.
"""

import dataclasses
import json
import math

import numpy as np
import pyarrow as pa
import pytest
import torch
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import numtok
import numtok_torch as layers
from numtok import Numbers
from numtok.errors import RepresentationError, SchemaError
from numtok.representations import (
    P10,
    Digits,
    ExponentBins,
    FloatBits,
    FoNE,
    LogFourier,
    PlaceValue,
    QuantileBins,
    XVal,
    own_token,
)
from numtok_torch.embeddings.fone import digits_of_features, features_of_digits
from numtok_torch.embeddings.place_values import places_when_written

D, IDS = 24, list(range(40, 50))
LITERALS = ["0", "-28.5", "70000", "0.125", "4.17", "-0.0", "999.99", "1e-4"]
EDGES = (-30.0, 0.0, 1.4, 3.4, 7.85, 80000.0)
BINS = [QuantileBins(9, soft, EDGES) for soft in (False, True)]
SINGLES = [XVal(0.5, 40.0), FloatBits(), FoNE(5, 4), ExponentBins(50), LogFourier(4), *BINS]
MAKERS = {
    "xval": lambda **o: layers.XValEmbedding(D, 0.5, 40.0, **o),
    "bits": lambda **o: layers.FloatBitsEmbedding(D, **o),
    "fone": lambda **o: layers.FoNEEmbedding(D, 5, 4, **o),
    "fone linear": lambda **o: layers.FoNEEmbedding(D, 5, 4, projection="linear", **o),
    "bins": lambda **o: layers.ExponentBinsEmbedding(D, 50, **o),
    "logfourier": lambda **o: layers.LogFourierEmbedding(D, 4, **o),
    "quantile bins": lambda **o: layers.QuantileBinsEmbedding(D, 9, **o),
    "quantile bins soft": lambda **o: layers.QuantileBinsEmbedding(D, 9, soft=True, **o),
    "place": lambda **o: layers.PlaceValueEmbedding(D, max_place=6, **({"zero_init": False} | o)),
    "fone_digits": lambda **o: layers.FoNEDigitEmbedding(D, IDS, projection="linear", **o),
}
MAKERS["sum"] = lambda **o: layers.SumEmbedding(
    [MAKERS[name](**o) for name in ("xval", "bits", "fone linear")]
)
EVERY = pytest.mark.parametrize("name", MAKERS)


def tensor(column):
    is_tensor = hasattr(column, "to_numpy_ndarray")
    array = column.to_numpy_ndarray() if is_tensor else column.to_numpy(zero_copy_only=False)
    wide = array.dtype in (np.uint32, np.int16)
    return torch.from_numpy(array.astype(np.int64) if wide else array.copy())


def batch_of(literals=LITERALS, seq=7, filler=0.0):
    """Two rows with numbers here and there, digits (of place values) beside them, and padding at
    the end of the second.
    """
    where = [(0, 0), (0, 2), (0, 3), (0, 6), (1, 1), (1, 2), (1, 3), (1, 4)][: len(literals)]
    at = tuple(torch.tensor(where).T)
    batch = {"number_mask": torch.zeros(2, seq, dtype=torch.bool)}
    batch["number_mask"][at] = True
    for representation in (*SINGLES, FoNE(5, 4, compact=True)):
        clipped = dataclasses.replace(representation, overflow="clip")
        numbers = Numbers.parse(literals)
        numbers = numbers if clipped.carries_sign else numbers.without_sign()
        for name, column in clipped.encode(numbers).items():
            rows = tensor(column)
            fill = filler if rows.is_floating_point() else 1
            batch[name] = torch.full((2, seq, *rows.shape[1:]), fill, dtype=rows.dtype)
            batch[name][at] = rows
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


# ---- Each layer is its formula


def numpy_weights(layer):
    return {name: value.detach().double().numpy() for name, value in layer.named_parameters()}


def expected(name, layer, e, literal, digit, place):
    """The vector of one number, or digit, from its text, in float64."""
    w, x = numpy_weights(layer), float(literal)
    if name == "xval":
        return e * np.clip(0.5 * x, -40, 40)
    if name == "bits":
        bits = np.array([int(bit) for bit in f"{np.float32(x).view(np.uint32):032b}"], np.float64)
        inner = np.maximum(w["layers.0.weight"] @ bits, 0)
        deep = w["layers.2.weight"] @ np.maximum(w["layers.1.weight"] @ inner, 0)
        return np.maximum(inner + deep, 0)
    if name.startswith("fone") and name != "fone_digits":
        turns = abs(round(x * 1e4)) / 10.0 ** np.arange(1, 10)
        features = np.stack([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)], 1).ravel()
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
        periods = 1000.0 ** (1 - np.arange(4) / 3)
        turns = np.log10(abs(x)) / periods if x else np.zeros(4)
        rows = np.stack([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)], 1) * (x != 0)
        flags = [math.copysign(1, x), float(x == 0)]
        return e + w["projection.weight"] @ np.concatenate([flags, rows.ravel()])
    if name == "place":
        return e + w["vectors.weight"][6 + place]
    if name == "fone_digits":
        turn = 2 * np.pi * digit / 10
        return e + w["projection.weight"] @ [np.cos(turn), np.sin(turn)]
    parts = [
        expected(part, one, e, literal, 0, 0) - e
        for part, one in zip(("xval", "bits", "fone linear"), layer.embeddings, strict=True)
    ]
    return e + sum(parts)


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


PARAMETERS = {
    "bits": ["layers.0.weight", "layers.1.weight", "layers.2.weight"],
    "fone linear": ["projection.weight"],
    "bins": ["vectors.weight"],
    "logfourier": ["projection.weight"],
    "quantile bins": ["vectors.weight"],
    "quantile bins soft": ["vectors.weight"],
    "place": ["vectors.weight"],
    "fone_digits": ["projection.weight"],
    "sum": [
        *(f"embeddings.1.layers.{k}.weight" for k in range(3)),
        "embeddings.2.projection.weight",
    ],
}


@EVERY
def test_saved_weights_have_the_names_that_they_always_had(name):
    assert list(made(name).state_dict()) == PARAMETERS.get(name, [])
    gains = {"xval": ["gain"], "bits": ["gain", *PARAMETERS["bits"]]}
    if name in gains:
        assert list(made(name, zero_init=True).state_dict()) == gains[name]


@pytest.mark.parametrize("name", [*MAKERS, "xval zero", "bits zero"])
def test_gradients_are_there_and_the_same_on_either_way(name, monkeypatch):
    """At the numbers alone, and at every token: of the word vectors, and of each parameter."""
    zero = {"zero_init": True} if name.endswith("zero") else {}
    layer, batch = made(name.removesuffix(" zero"), **zero), batch_of(filler=float("nan"))
    ways = []
    for compiled in (False, True):
        monkeypatch.setattr(torch.compiler, "is_compiling", lambda compiled=compiled: compiled)
        e = words().requires_grad_()
        loss = (layer(e, batch) - words(seed=5)).square().sum()
        ways.append(torch.autograd.grad(loss, [e, *layer.parameters()]))
    assert all(torch.isfinite(one).all() and (one.any() or zero) for one in ways[0])
    torch.testing.assert_close(*ways, rtol=1e-5, atol=1e-6)


@EVERY
def test_a_batch_without_numbers_still_has_a_gradient(name):
    """Or a process of a distributed run would wait for it."""
    layer, batch = made(name), batch_of()
    for stream in ("number_mask", "place_value", "input_ids"):
        batch[stream] = torch.zeros_like(batch[stream])
    e = words().requires_grad_()
    found = layer(e, batch)
    assert torch.equal(found, e)
    found.sum().backward()
    assert all(one.grad is not None and not one.grad.any() for one in layer.parameters())


@EVERY
def test_state_and_config_come_back(name):
    layer, batch, e = made(name), batch_of(), words()
    torch.manual_seed(99)
    other = layers.embedding_from_config(json.loads(json.dumps(layer.config())), D)
    assert type(other) is type(layer) and other.config() == layer.config()
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other(e, batch), layer(e, batch))
    assert repr(layer).startswith(type(layer).__name__)


# ---- Constants survive


@EVERY
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_low_precision_rounds_once(name, dtype):
    """The layer in float32 on the same rounded weights and words, then rounded, is the layer in low
    precision within a few roundings.
    """
    low, batch, e = made(name).to(dtype), batch_of(), words(dtype)
    high = made(name)
    high.load_state_dict({key: value.float() for key, value in low.state_dict().items()})
    found = low(e, batch)
    assert found.dtype == dtype
    unit = torch.finfo(dtype).eps
    torch.testing.assert_close(found.float(), high(e.float(), batch), rtol=6 * unit, atol=20 * unit)


def test_no_layer_has_a_buffer_of_floats():
    buffers = [buffer for kind in MAKERS for buffer in made(kind).buffers()]
    assert not any(buffer.is_floating_point() for buffer in buffers)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_forty_digits_survive_a_cast_of_the_module(dtype):
    """Frequencies in a buffer, or a float of the number, would not."""
    generator = torch.Generator().manual_seed(3)
    digits = torch.randint(10, (1, 200, 40), generator=generator, dtype=torch.uint8)
    batch = {"number_mask": torch.ones(1, 200, dtype=torch.bool), "number_digits": digits}
    layer = layers.FoNEEmbedding(80, 20, 20).to(dtype)
    found = layer(torch.zeros(1, 200, 80, dtype=dtype), batch)
    assert torch.equal(digits_of_features(found.unflatten(-1, (40, 2)), 40), digits)
    with torch.autocast("cpu", torch.bfloat16):
        features = layers.FoNEEmbedding(80, 20, 20)(torch.zeros(1, 200, 80), batch)
    np.testing.assert_allclose(features[0, :, :2], _phi(digits[0, :, 0]), atol=1e-6)


def _phi(digits):
    turns = digits.double().numpy() / 10
    return np.stack([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)], 1)


def test_values_beyond_float16_are_multiplied_in_float32():
    """70000 as float16 is infinite, and 2049 is 2048; their products with small word vectors are
    neither.
    """
    batch = {
        "number_mask": torch.ones(1, 2, dtype=torch.bool),
        "number_scaled": torch.tensor([[70000.0, 2049.0]]),
    }
    found = layers.XValEmbedding(1)(torch.tensor([[[0.001], [1.0]]], dtype=torch.float16), batch)
    assert torch.isfinite(found).all()
    assert found[0, 0, 0].item() == pytest.approx(70, rel=1e-3)


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
        ours, theirs = (one(e, batch) for one in (compiled, embed))
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)
        goal = torch.randn(ours.shape, generator=torch.Generator().manual_seed(rows))
        gradients = [
            torch.autograd.grad((found * goal).sum(), [e, *parameters]) for found in (ours, theirs)
        ]
        torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-6)
    assert counter.frame_count == 1


# ---- Zero-initialised variants

ZERO = [name for name in MAKERS if name != "fone"]  # features that are padded have nothing to learn


@pytest.mark.parametrize("name", ZERO)
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


# ---- FoNE on the device


@pytest.mark.parametrize("bases", [(10,), (2, 5, 10), (5,), (2, 5), (3, 7)])
@pytest.mark.parametrize("chunk", [None, 5, 4])
def test_features_and_digits_are_those_of_numtok(bases, chunk):
    fone = FoNE(7, 6, bases, chunk=chunk)

    @settings(max_examples=30)
    @given(st.lists(st.lists(st.integers(0, 9), min_size=13, max_size=13), min_size=1, max_size=4))
    def check(rows):
        digits = np.array(rows, np.uint8)
        found = features_of_digits(torch.from_numpy(digits), bases, chunk)
        np.testing.assert_allclose(found.numpy(), fone.features(digits), atol=1e-6, rtol=0)
        assert torch.equal(digits_of_features(found, 13, bases, chunk), torch.from_numpy(digits))
        assert torch.equal(
            digits_of_features(found.to(torch.bfloat16), 13, bases, chunk), torch.from_numpy(digits)
        )

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
    phases = torch.stack([turns.cos(), turns.sin()], 1).float()
    padded = torch.nn.functional.pad(phases, (0, D - 2))
    expected = padded if digits.projection is None else digits.projection(phases)
    found = digits(e, batch)
    torch.testing.assert_close(found[at], expected)
    assert torch.equal(found[~at], e[~at])
    # Abacus: the place is added to what the digit's vector now is
    both = layers.SumEmbedding([place, digits])(e, batch)
    torch.testing.assert_close(both[at], expected + (place(e, batch) - e)[at])
    assert layers.embedding_from_config(digits.config(), D).combine == "replace"
    torch.testing.assert_close(layers.FoNEDigitEmbedding(D, IDS)(e, batch)[at], e[at] + padded)


def test_a_sum_does_not_depend_on_its_order():
    batch, e = batch_of(), words()
    parts = [made(name) for name in ("xval", "bits", "fone", "bins")]
    torch.testing.assert_close(
        layers.SumEmbedding(parts)(e, batch), layers.SumEmbedding(parts[::-1])(e, batch)
    )


# ---- Place values


def test_places_move_in_training_only_each_row_by_its_own_offset():
    torch.manual_seed(0)
    layer = layers.PlaceValueEmbedding(1, max_place=40, max_offset=30)
    with torch.no_grad():
        layer.vectors.weight.copy_(torch.arange(-40.0, 41).unsqueeze(1))
    place = torch.tensor([[3, 2, 1, 0, -1, -2]]).repeat(64, 1)
    e = torch.zeros(64, 6, 1)
    found = layer(e, {"place_value": place})[..., 0].detach()
    offsets = found[:, 2] - 1
    assert torch.equal(found, place + offsets.unsqueeze(1) * place.sign())
    assert len(offsets.unique()) > 10 and offsets.min() >= 0 and offsets.max() <= 30
    assert torch.equal(layer.eval()(e, {"place_value": place})[..., 0], place.float())


def test_coupled_positions_are_those_of_the_authors():
    """``AdditionDatasetWithCoupledPositions`` of src/data/addition.py, which counts them down from
    ``end``, the position of the marks; ours are counted up from it.
    """
    a, b, total = "71", "9", "80"
    end = 1 + max(len(a), len(b)) + 1
    theirs = [*range(end - len(a), end + 1), *range(end - len(b), end + 1)]
    theirs += range(end - len(total), end)
    tokenizer = numtok.Tokenizer.from_pretrained(None, [PlaceValue()])
    batch = tokenizer.encode_batch([f"{a}+{b}={total}"])
    brackets = [tokenizer.tokens["[NUM]"], tokenizer.tokens["[/NUM]"]]
    place = torch.tensor(batch["place_value"].to_pylist())
    shown = ~np.isin(batch["input_ids"][0].as_py(), brackets)
    torch.manual_seed(0)
    layer = layers.PlaceValueEmbedding(1, max_place=40, max_offset=30, coupled=True)
    layer.vectors.weight.data[:, 0] = torch.arange(-40.0, 41.0)  # each position shows itself
    found = layer(torch.zeros(64, place.shape[1], 1), {"place_value": place.repeat(64, 1)})[..., 0]
    offsets = found[:, 0]  # of a bracket
    assert torch.equal(
        found[:, shown] - offsets[:, None], (end - torch.tensor(theirs)).repeat(64, 1)
    )
    assert len(offsets.unique()) > 20 and offsets.min() >= 0 and offsets.max() <= 30
    still = layer.eval()(torch.zeros(1, place.shape[1], 1), {"place_value": place})[..., 0]
    assert torch.equal(still, place.float())
    again = layers.embedding_from_config(layer.config(), 1)
    assert isinstance(again, layers.PlaceValueEmbedding) and again.coupled


def test_places_beyond_the_table_share_the_last_vector():
    layer = layers.PlaceValueEmbedding(3, max_place=2, zero_init=False)
    found = layer(torch.zeros(1, 4, 3), {"place_value": torch.tensor([[2, 900, -900, -2]])})
    assert torch.equal(found[0, 0], found[0, 1]) and torch.equal(found[0, 2], found[0, 3])
    assert not torch.equal(found[0, 0], found[0, 2])


def test_an_offset_leaves_places_apart():
    """Of the longest number that the table has room for, no two digits ever share a place."""
    with pytest.raises(RepresentationError, match="max_offset=100 must be below max_place=64"):
        layers.PlaceValueEmbedding(D, max_offset=100)
    layer = layers.embedding_from_schema(schema_of(PlaceValue()), D, max_offset=100)
    assert isinstance(layer, layers.PlaceValueEmbedding) and layer.max_place == 164
    with torch.no_grad():
        layer.vectors.weight.copy_(torch.arange(-164.0, 165).unsqueeze(1).expand(-1, D))
    place = torch.tensor([[*range(64, 0, -1), 0, *range(-1, -65, -1)]]).repeat(64, 1)
    seen = layer(torch.zeros(64, 129, D), {"place_value": place})[..., 0]
    assert all(len(row.unique()) == 129 for row in seen)


SYMBOLS = {symbol: 10 + k for k, symbol in enumerate(Digits().alphabet)} | {
    "[NUM]": 1,
    " [NUM]": 2,
    "[/NUM]": 3,
}


def spelled(literals, representation):
    """(ids, places) of a text of these numbers, with words between."""
    ids, places = [5], [0]
    for literal in literals:
        found = representation.encode(Numbers.parse([literal]))
        ids += [1, *(SYMBOLS[representation.alphabet[symbol]] for symbol in found.symbols), 3, 5]
        places += [0, *found.stream.tolist(), 0, 0]
    return ids, places


LITERAL = st.from_regex(r"-?(0|[1-9][0-9]{0,5})(\.[0-9]{1,4})?", fullmatch=True)


@pytest.mark.parametrize(
    "representation",
    [PlaceValue(), PlaceValue(order="lsd"), Digits(places=True), Digits(2, "left", places=True)],
)
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.thorough
def test_what_is_seen_in_training_is_what_is_seen_when_writing(representation, own):
    vocabulary = {
        own_token(name) if own and name.isdigit() else name: number
        for name, number in SYMBOLS.items()
    }

    @settings(max_examples=examples(25, thorough=100))
    @given(st.lists(LITERAL, max_size=4))
    def check(literals):
        ids, places = spelled(literals, representation)
        tracker = layers.PlaceTracker(vocabulary, representation.order)
        written = [int(tracker.step([one])[0]) for one in ids]
        known = places_when_written(torch.tensor([places]), representation.order)
        assert known[0].tolist() == written

    check()


def test_least_significant_first_integers_are_known_when_written():
    _, places = spelled(["417", "-20600"], PlaceValue(order="lsd"))
    assert places_when_written(torch.tensor([places]), "lsd")[0].tolist() == places
    _, places = spelled(["417.25"], PlaceValue())
    assert places == [0, 0, 3, 2, 1, 0, -1, -2, 0, 0]
    seen = places_when_written(torch.tensor([places]), "msd")[0].tolist()
    assert seen == [0, 0, 0, 0, 0, 0, -1, -2, 0, 0]


def test_only_digits_with_a_label_are_shown_as_written():
    layer = layers.PlaceValueEmbedding(1, max_place=9, written="msd")
    with torch.no_grad():
        layer.vectors.weight.copy_(torch.arange(-9.0, 10).unsqueeze(1))
    place = torch.tensor([[3, 2, 1, 0, 2, 1, 0, -1]])
    labels = torch.tensor([[-100, -100, -100, -100, 7, 7, 7, 7]])
    seen = layer(torch.zeros(1, 8, 1), {"place_value": place, "labels": labels})[0, :, 0]
    assert seen.tolist() == [3, 2, 1, 0, 0, 0, 0, -1]
    # one that is only read, and a masked model, which does not write from left to right
    masked = {"place_value": place, "labels": labels, "place_value_labels": place}
    for batch in ({"place_value": place}, masked):
        assert layer(torch.zeros(1, 8, 1), batch)[0, :, 0].tolist() == place[0].tolist()


def test_a_question_is_shown_as_its_answer_if_asked_for():
    """12.5 and 9.25, least significant first, as they are while they are written: with labels or
    none, token by token, and in a masked model not.
    """
    with pytest.raises(RepresentationError, match="read_as_written needs an order of writing"):
        layers.PlaceValueEmbedding(1, read_as_written=True)
    options = {"max_place": 9, "written": "lsd", "read_as_written": True}
    layer = layers.embedding_from_config({"name": "place"} | options, 1)
    assert isinstance(layer, layers.PlaceValueEmbedding)
    assert layers.embedding_from_config(layer.config(), 1).config() == layer.config()
    with torch.no_grad():
        layer.vectors.weight.copy_(torch.arange(-9.0, 10).unsqueeze(1))
    place = torch.tensor([[-1, 0, 1, 2, 0, -2, -1, 0, 1]])
    shown = torch.tensor([[1, 0, 1, 2, 0, 1, 2, 0, 1]])
    labels = torch.tensor([[-100] * 5 + [7] * 4])
    for batch in (
        {"place_value": place},
        {"place_value": shown},
        {"place_value": place, "labels": labels},
    ):
        assert torch.equal(layer(torch.zeros(1, 9, 1), batch)[..., 0], shown)
    masked = {"place_value": place, "labels": labels, "place_value_labels": place}
    assert torch.equal(layer(torch.zeros(1, 9, 1), masked)[..., 0], place)


def test_the_tracker_keeps_a_state_for_each_row_and_beam():
    tracker = layers.PlaceTracker(SYMBOLS, "lsd")
    one, dot, word = SYMBOLS["1"], SYMBOLS["."], 5
    # a digit outside a number has no place
    assert tracker.step([1, 2, one]).tolist() == [0, 0, 0]
    assert tracker.step([one, one, one]).tolist() == [1, 1, 0]
    assert tracker.step([one, dot, one]).tolist() == [2, 0, 0]
    tracker.reorder([1, 0, 0])
    assert tracker.step([one, one, word]).tolist() == [1, 3, 0]
    assert tracker.step([SYMBOLS["e"], one, one]).tolist() == [0, 4, 0]
    assert tracker.step([one, 3, one]).tolist() == [0, 0, 0]


# ---- From a file, and errors


def schema_of(*numbers):
    return numtok.Tokenizer.from_pretrained(numbers=list(numbers)).batch_schema()


@pytest.mark.parametrize("compact", [False, True])
def test_the_layer_follows_from_the_file(compact):
    bits, fone = FloatBits(compact=compact), FoNE(5, 4, compact=compact, chunk=5)
    schema = schema_of(XVal(0.5, 40.0), bits, fone, ExponentBins(50), LogFourier(4))
    options = {"zero_init": True, "projection": "linear", "depth": 2}
    layer = layers.embedding_from_schema(schema, 32, **options)
    expected = [
        {"name": "xval", "scale": 0.5, "clip": 40.0, "zero_init": True},
        {"name": "bits", "compact": compact, "depth": 2},
        {"name": "fone", "int_digits": 5, "chunk": 5, "compact": compact, "projection": "linear"},
        {"name": "exponent_bins", "n": 50},
        {"name": "logfourier", "n_frequencies": 4},
    ]
    for one, options in zip(layer.embeddings, expected, strict=True):
        assert options.items() <= one.config().items()


@pytest.mark.parametrize(
    ("one", "options", "expected"),
    [
        (Digits(places=True), {}, {"name": "place", "max_place": 64, "written": "msd"}),
        (PlaceValue(max_offset=20), {}, {"max_place": 84, "written": "msd"}),
        (PlaceValue(order="lsd"), {}, {"written": "lsd"}),
        (PlaceValue(order="lsd"), {"written": None}, {"written": None}),
        (XVal(), {}, {"name": "xval"}),
        (BINS[1], {}, {"name": "quantile_bins", "n": 9, "soft": True}),
    ],
)
def test_one_representation_gives_one_layer(one, options, expected):
    layer = layers.embedding_from_schema(schema_of(one), D, **options)
    assert expected.items() <= layer.config().items()


def test_a_file_without_anything_to_embed_or_an_unknown_option():
    for one in (P10(), Digits()):
        with pytest.raises(SchemaError, match="tokens alone"):
            layers.embedding_from_schema(schema_of(one), D)
    with pytest.raises(RepresentationError, match="none of xval has the option depth"):
        layers.embedding_from_schema(schema_of(XVal()), D, depth=3)
    with pytest.raises(SchemaError, match="not written by numtok"):
        layers.embedding_from_schema(pa.schema([]), D)


@EVERY
def test_a_missing_stream_is_named(name):
    layer, batch = made(name), batch_of()
    for stream in layer.streams:
        del batch[stream]
    with pytest.raises(SchemaError, match=r"the batch has no .*which \w+ reads; encode the text"):
        layer(words(), batch)


def test_streams_of_another_shape_are_refused():
    batch = batch_of()
    cases = [
        (made("xval"), words()[:, :3], {}, "batch and sequence differ"),
        (made("xval"), torch.zeros(2, 7, 5), {}, "made for d_model=24"),
        (layers.FoNEEmbedding(32, 6, 6), torch.zeros(2, 7, 32), {}, "made for 12 digits"),
        (layers.FoNEEmbedding(32, 4, 4), torch.zeros(2, 7, 32), {}, "made for 8 digits"),
        (made("bits"), words(), {"number_bits": batch["number_bits"][..., :31]}, "of 32 bits"),
        (layers.LogFourierEmbedding(D, 7), words(), {}, "number_log_fourier"),
    ]
    for layer, e, other, message in cases:
        with pytest.raises(SchemaError, match=message):
            layer(e, batch | other)


PLACES, OF_DIGITS = layers.PlaceValueEmbedding, layers.FoNEDigitEmbedding
ZERO_REPLACED = {"projection": "linear", "zero_init": True, "combine": "replace"}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: layers.FoNEEmbedding(10, 5, 4), "18 features do not fit into d_model=10"),
        (lambda: layers.FoNEEmbedding(D, 5, 4, zero_init=True), "projection='linear'"),
        (lambda: layers.FoNEEmbedding(D, 5, 4, projection="mlp"), "'mlp' is unknown"),
        (lambda: layers.FloatBitsEmbedding(D, depth=0), "depth=0"),
        (lambda: PLACES(D, max_place=0), "max_place=0"),
        (lambda: PLACES(D, written="up"), "'up' is unknown"),
        (
            lambda: PLACES(D, max_place=30, max_offset=30),
            "max_offset=30 must be below max_place=30",
        ),
        (lambda: OF_DIGITS(D, [1, 2]), "ten ids"),
        (lambda: OF_DIGITS(D, IDS, combine="mean"), "'mean' is unknown"),
        (lambda: OF_DIGITS(D, IDS, **ZERO_REPLACED), "combine='add'"),
        (lambda: layers.SumEmbedding([]), "at least one"),
        (lambda: layers.SumEmbedding([*map(layers.XValEmbedding, (2, 3))]), "same d_model"),
        (
            lambda: layers.embedding_from_config({"name": "word2vec"}, D),
            "unknown embedding 'word2v",
        ),
        (lambda: layers.embedding_from_config({"name": "xval", "colour": 1}, D), "colour"),
    ],
)
def test_what_cannot_be_made(make, message):
    with pytest.raises(RepresentationError, match=message):
        make()
