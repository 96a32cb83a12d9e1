"""The embedding layers, held to the formulas of the papers written in numpy, and to what must never
happen to a word vector.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

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
    XVal,
    own_token,
)
from numtok_torch.embeddings.float_bits import bits_of_words, values_of_words, words_of_bits
from numtok_torch.embeddings.fone import digits_of_features, features_of_digits
from numtok_torch.embeddings.place_values import places_when_written

D, IDS = 24, list(range(40, 50))
LITERALS = ["0", "-28.5", "70000", "0.125", "4.17", "-0.0", "999.99", "1e-4"]
SINGLES = [XVal(0.5, 40.0), FloatBits(), FoNE(5, 4), ExponentBins(50), LogFourier(4)]
MAKERS: dict[str, Callable[..., layers.NumberEmbedding]] = {
    "xval": lambda **o: layers.XValEmbedding(D, 0.5, 40.0, **o),
    "bits": lambda **o: layers.FloatBitsEmbedding(D, **o),
    "fone": lambda **o: layers.FoNEEmbedding(D, 5, 4, **o),
    "fone linear": lambda **o: layers.FoNEEmbedding(D, 5, 4, projection="linear", **o),
    "bins": lambda **o: layers.ExponentBinsEmbedding(D, 50, **o),
    "logfourier": lambda **o: layers.LogFourierEmbedding(D, 4, **o),
    "place": lambda **o: layers.PlaceValueEmbedding(D, max_place=6, **({"zero_init": False} | o)),
    "fone_digits": lambda **o: layers.FoNEDigitEmbedding(D, IDS, projection="linear", **o),
}
MAKERS["sum"] = lambda **o: layers.SumEmbedding(
    [MAKERS[name](**o) for name in ("xval", "bits", "fone linear")]
)
EVERY = pytest.mark.parametrize("name", MAKERS)


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Tensors this small are slower on several."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def tensor(column: pa.Array) -> Any:
    array = (
        column.to_numpy_ndarray()
        if hasattr(column, "to_numpy_ndarray")
        else column.to_numpy(zero_copy_only=False)
    )
    return torch.from_numpy(
        array.astype(np.int64) if array.dtype in (np.uint32, np.int16) else array.copy()
    )


def batch_of(literals: list[str] = LITERALS, seq: int = 7, filler: float = 0.0) -> dict[str, Any]:
    """Two rows with numbers here and there, digits (of place values) beside them, and padding at
    the end of the second.
    """
    batch: dict[str, Any] = {"number_mask": torch.zeros(2, seq, dtype=torch.bool)}
    where = [(0, 0), (0, 2), (0, 3), (0, 6), (1, 1), (1, 2), (1, 3), (1, 4)][: len(literals)]
    for row, column in where:
        batch["number_mask"][row, column] = True
    for representation in (*SINGLES, FoNE(5, 4, compact=True)):
        overflow = type(representation)(**{**representation.__dict__, "overflow": "clip"})
        numbers = Numbers.parse(literals)
        for name, column in overflow.encode(
            numbers if representation.carries_sign else numbers.without_sign()
        ).items():
            rows = tensor(column)
            stream = torch.full(
                (2, seq, *rows.shape[1:]),
                filler if rows.is_floating_point() else 1,
                dtype=rows.dtype,
            )
            for (row, at), value in zip(where, rows, strict=True):
                stream[row, at] = value
            batch[name] = stream
    batch["input_ids"] = torch.tensor([[7, 42, 40, 8, 49, 9, 7], [44, 7, 8, 45, 7, 0, 0]])
    batch["place_value"] = torch.tensor([[0, 2, 1, 0, -1, 0, 0], [1, 0, 0, -6, 0, 0, 0]])
    batch["attention_mask"] = torch.tensor([[1] * 7, [1] * 5 + [0] * 2])
    return batch


def words(dtype: Any = torch.float32, seed: int = 0) -> Any:
    return torch.randn(2, 7, D, generator=torch.Generator().manual_seed(seed)).to(dtype)


def presence(name: str, batch: dict[str, Any]) -> Any:
    if name.startswith("fone_digits"):
        return (batch["input_ids"] >= 40) & (batch["input_ids"] < 50)
    return batch["place_value"] != 0 if name == "place" else batch["number_mask"]


def made(name: str, **options: Any) -> layers.NumberEmbedding:
    torch.manual_seed(1)
    return MAKERS[name](**options)


# ---- Each layer is its formula


def numpy_weights(layer: layers.NumberEmbedding) -> dict[str, Any]:
    return {name: value.detach().double().numpy() for name, value in layer.named_parameters()}


def expected(
    name: str, layer: layers.NumberEmbedding, e: Any, literal: str, digit: int, place: int
) -> Any:
    """The vector of one number, or digit, from its text, in float64."""
    w, x = numpy_weights(layer), float(literal)
    if name == "xval":
        return e * np.clip(0.5 * x, -40, 40)
    if name == "bits":
        bits = np.array([int(bit) for bit in f"{np.float32(x).view(np.uint32):032b}"], np.float64)
        inner = np.maximum(w["layers.0.weight"] @ bits, 0)
        return np.maximum(
            inner + w["layers.2.weight"] @ np.maximum(w["layers.1.weight"] @ inner, 0), 0
        )
    if name.startswith("fone") and name != "fone_digits":
        turns = abs(round(x * 1e4)) / 10.0 ** np.arange(1, 10)
        features = np.stack([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)], 1).ravel()
        return e + (
            w["projection.weight"] @ features if "linear" in name else np.pad(features, (0, D - 18))
        )
    if name == "bins":
        edges = 1e-4 * (1e10) ** (np.arange(51) / 50)
        return (
            e
            + w["vectors.weight"][
                0 if x == 0 else int(np.searchsorted(edges, abs(x) * (1 + 1e-12), "right"))
            ]
        )
    if name == "logfourier":
        periods = 1000.0 ** (1 - np.arange(4) / 3)
        turns = np.log10(abs(x)) / periods if x else np.zeros(4)
        rows = np.stack([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)], 1) * (x != 0)
        return e + w["projection.weight"] @ np.concatenate(
            [[math.copysign(1, x), float(x == 0)], rows.ravel()]
        )
    if name == "place":
        return e + w["vectors.weight"][6 + place]
    if name == "fone_digits":
        return e + w["projection.weight"] @ [
            np.cos(2 * np.pi * digit / 10),
            np.sin(2 * np.pi * digit / 10),
        ]
    parts = [
        expected(part, one, e, literal, 0, 0) - e
        for part, one in zip(("xval", "bits", "fone linear"), layer.embeddings, strict=True)
    ]
    return e + sum(parts)


@EVERY
@pytest.mark.parametrize("compiled", [False, True])
def test_values_are_the_formula_and_words_stay_bit_for_bit(
    name: str, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for zero, which is a number, and with NaN in the streams of all other tokens."""
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
        digit, place = (
            int(batch["input_ids"][row, column]) - 40,
            int(batch["place_value"][row, column]),
        )
        literal = "0" if name in ("place", "fone_digits") else next(literals)
        formula = expected(name, layer, e[row, column].double().numpy(), literal, digit, place)
        np.testing.assert_allclose(
            found[row, column].detach().double().numpy(), formula, rtol=2e-6, atol=2e-6
        )


def test_plus_zero_is_the_zero_vector_only_in_the_form_of_the_paper() -> None:
    def of_zero(**options: Any) -> Any:
        return made("bits", **options)(words(), batch_of())[0, 0]

    assert not of_zero().any()
    assert of_zero(bias=True).any() and of_zero(signed_bits=True).any()
    minus_zero = made("bits")(words(), batch_of())[1, 2]
    assert minus_zero.any()


def test_zero_is_a_number() -> None:
    """The published code masks by x != 0, and so leaves the word vector as it was."""
    batch, e = batch_of(["0"]), words()
    for name in ("xval", "bits", "fone", "fone linear", "bins", "logfourier"):
        assert not torch.equal(made(name)(e, batch)[0, 0], e[0, 0]), name
        batch["number_mask"][0, 0] = False
        assert torch.equal(made(name)(e, batch), e), name
        batch["number_mask"][0, 0] = True


def test_no_bias_leaks_into_the_text() -> None:
    batch, e = batch_of(), words()
    layer = made("bits", bias=True)
    for inner in layer.layers:
        torch.nn.init.constant_(inner.bias, 1.0)
    assert torch.equal(layer(e, batch)[~batch["number_mask"]], e[~batch["number_mask"]])


@EVERY
def test_padding_and_other_rows_do_not_matter(name: str) -> None:
    layer, batch, e = made(name).eval(), batch_of(), words()
    alone = {key: value[:1] for key, value in batch.items()}
    torch.testing.assert_close(layer(e, batch)[:1], layer(e[:1], alone), rtol=1e-6, atol=1e-6)
    assert torch.equal(layer(e, batch)[1, 5:], e[1, 5:])


@EVERY
def test_gradients_reach_every_parameter_and_the_words(name: str) -> None:
    layer, e = made(name), words().requires_grad_()
    layer(e, batch_of(filler=float("nan"))).square().sum().backward()
    assert torch.isfinite(e.grad).all() and e.grad.any()
    for key, parameter in layer.named_parameters():
        assert (
            parameter.grad is not None
            and torch.isfinite(parameter.grad).all()
            and parameter.grad.any()
        ), key


PARAMETERS = {
    "bits": ["layers.0.weight", "layers.1.weight", "layers.2.weight"],
    "fone linear": ["projection.weight"],
    "bins": ["vectors.weight"],
    "logfourier": ["projection.weight"],
    "place": ["vectors.weight"],
    "fone_digits": ["projection.weight"],
    "sum": [
        *(f"embeddings.1.layers.{k}.weight" for k in range(3)),
        "embeddings.2.projection.weight",
    ],
}


@EVERY
def test_saved_weights_have_the_names_that_they_always_had(name: str) -> None:
    assert list(made(name).state_dict()) == PARAMETERS.get(name, [])
    gains = {"xval": ["gain"], "bits": ["gain", *PARAMETERS["bits"]]}
    if name in gains:
        assert list(made(name, zero_init=True).state_dict()) == gains[name]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, {}) for name in MAKERS),
        ("xval", {"zero_init": True}),
        ("bits", {"zero_init": True}),
    ],
)
def test_the_ways_to_compute_have_the_same_gradients(
    name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the numbers alone, and at every token: of the word vectors, and of each parameter."""
    layer, batch, goal = made(name, **options), batch_of(filler=float("nan")), words(seed=5)
    gradients: list[list[Any]] = []
    for compiled in (False, True):
        monkeypatch.setattr(torch.compiler, "is_compiling", lambda compiled=compiled: compiled)
        e = words().requires_grad_()
        found = torch.autograd.grad(
            (layer(e, batch) - goal).square().sum(), [e, *layer.parameters()]
        )
        gradients.append(list(found))
    for few, every in zip(*gradients, strict=True):
        torch.testing.assert_close(few, every, rtol=1e-5, atol=1e-6)


@EVERY
def test_a_batch_without_numbers_still_has_a_gradient(name: str) -> None:
    """Or a process of a distributed run would wait for it."""
    layer, batch = made(name), batch_of()
    for stream in ("number_mask", "place_value", "input_ids"):
        batch[stream] = torch.zeros_like(batch[stream])
    e = words().requires_grad_()
    found = layer(e, batch)
    assert torch.equal(found, e)
    found.sum().backward()
    assert all(
        parameter.grad is not None and not parameter.grad.any() for parameter in layer.parameters()
    )


@EVERY
def test_state_and_config_come_back(name: str) -> None:
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
def test_low_precision_rounds_once(name: str, dtype: Any) -> None:
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


def test_no_layer_has_a_buffer_of_floats() -> None:
    assert not [
        name
        for kind in MAKERS
        for name, buffer in made(kind).named_buffers()
        if buffer.is_floating_point()
    ]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_forty_digits_survive_a_cast_of_the_module(dtype: Any) -> None:
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


def _phi(digits: Any) -> Any:
    turns = digits.double().numpy() / 10
    return np.stack([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)], 1)


def test_values_beyond_float16_are_multiplied_in_float32() -> None:
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
def test_every_layer_compiles_to_one_graph_for_batches_of_any_size() -> None:
    """Forward and backward, without a break, and compiled once."""
    from torch._dynamo.testing import (
        CompileCounterWithBackend,
    )  # half a second, which a quick run has no use for

    alone = [
        made(name) for name in MAKERS if name not in ("fone", "sum")
    ]  # which are parts of the others
    every = [
        *alone,
        layers.SumEmbedding(alone[:2]),
        layers.PlaceValueEmbedding(D, zero_init=False, written="lsd"),
    ]

    def embed(e: Any, batch: dict[str, Any]) -> Any:
        return torch.stack([layer(e, batch) for layer in every])

    torch.compiler.reset()
    counter = CompileCounterWithBackend("eager")
    compiled = torch.compile(embed, fullgraph=True, dynamic=True, backend=counter)
    parameters = [parameter for layer in every for parameter in layer.parameters()]
    for rows, length in [(3, 7), (4, 6), (8, 5)]:
        chosen = torch.arange(rows) % 2
        batch, e = (
            {key: stream[chosen, :length] for key, stream in batch_of().items()},
            words()[chosen, :length].requires_grad_(),
        )
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
def test_zero_init_changes_nothing_and_learns(name: str) -> None:
    layer, batch, e = made(name, zero_init=True), batch_of(), words()
    assert torch.equal(layer(e, batch), e)
    goal = words(seed=5)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        (layer(e, batch) - goal).square().sum().backward()
        optimizer.step()
    assert all(parameter.grad.any() for parameter in layer.parameters())


def _tiny(kind: str) -> Any:
    transformers = pytest.importorskip("transformers")
    common = {
        "vocab_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "hidden_size": D,
        "intermediate_size": 32,
    }
    configs = {
        "gpt2": lambda: transformers.GPT2Config(
            vocab_size=64, n_layer=1, n_head=2, n_embd=D, n_positions=32
        ),
        "gpt_neox": lambda: transformers.GPTNeoXConfig(**common, max_position_embeddings=32),
        "llama": lambda: transformers.LlamaConfig(
            **common, num_key_value_heads=2, max_position_embeddings=32
        ),
        "bert": lambda: transformers.BertConfig(**common, max_position_embeddings=32),
        "roberta": lambda: transformers.RobertaConfig(**common, max_position_embeddings=40),
    }
    torch.manual_seed(0)
    return transformers.AutoModel.from_config(configs[kind]()).eval()


@pytest.mark.parametrize("kind", ["gpt2", "gpt_neox", "llama", "bert", "roberta"])
def test_zero_init_leaves_a_model_as_it_was(kind: str) -> None:
    model, batch = _tiny(kind), batch_of()
    e = model.get_input_embeddings()(batch["input_ids"])
    plain = model(inputs_embeds=e, attention_mask=batch["attention_mask"]).last_hidden_state
    for name in ZERO:
        with_numbers = made(name, zero_init=True)(e, batch)
        assert torch.equal(
            model(
                inputs_embeds=with_numbers, attention_mask=batch["attention_mask"]
            ).last_hidden_state,
            plain,
        ), name
    changed = made("fone")(e, batch)
    assert not torch.allclose(
        model(inputs_embeds=changed, attention_mask=batch["attention_mask"]).last_hidden_state,
        plain,
    )


# ---- FoNE on the device


@pytest.mark.parametrize("bases", [(10,), (2, 5, 10), (5,), (2, 5), (3, 7)])
@pytest.mark.parametrize("chunk", [None, 5, 4])
def test_features_and_digits_are_those_of_numtok(bases: tuple[int, ...], chunk: int | None) -> None:
    fone = FoNE(7, 6, bases, chunk=chunk)

    @settings(max_examples=30)
    @given(st.lists(st.lists(st.integers(0, 9), min_size=13, max_size=13), min_size=1, max_size=4))
    def check(rows: list[list[int]]) -> None:
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
def test_digits_and_features_embed_alike(chunk: int | None, projection: str) -> None:
    fone = FoNE(8, 4, chunk=chunk)
    numbers = Numbers.parse(["12345678.9012", "0", "7.5"])
    dense = tensor(fone.encode(numbers)["number_fourier"]).unsqueeze(0)
    compact = tensor(
        FoNE(8, 4, chunk=chunk, compact=True).encode(numbers)["number_digits"]
    ).unsqueeze(0)
    torch.manual_seed(0)
    layer = layers.FoNEEmbedding(40, 8, 4, chunk=chunk, projection=projection)
    mask, e = torch.tensor([[True, True, True]]), torch.randn(1, 3, 40)
    found = layer(e, {"number_mask": mask, "number_digits": compact})
    torch.testing.assert_close(
        found, layer(e, {"number_mask": mask, "number_fourier": dense}), rtol=0, atol=2e-6
    )
    if chunk:  # rows of digits, as a batch holds them, and in chunks, as a file does
        flat = compact.flatten(2)[..., :12]
        assert torch.equal(found, layer(e, {"number_mask": mask, "number_digits": flat}))


def test_fone_with_abacus_is_a_sum() -> None:
    layer, batch, e = layers.SumEmbedding([made("place"), made("fone_digits")]), batch_of(), words()
    parts = made("place")(e, batch) + made("fone_digits")(e, batch) - e
    torch.testing.assert_close(layer(e, batch), parts)
    batch["input_ids"][0, 1] = 3  # a digit that is masked has lost its id
    assert torch.equal(made("fone_digits")(e, batch)[0, 1], e[0, 1])


@pytest.mark.parametrize("projection", ["pad", "linear"])
def test_fone_replaces_the_digits_of_abacus(projection: str) -> None:
    """FoNE, section 5, Q3: "the embeddings for each digit (0-9) are replaced with their
    corresponding Fourier Number Embeddings".
    """
    torch.manual_seed(0)
    digits = layers.FoNEDigitEmbedding(D, IDS, projection=projection, combine="replace")
    batch, e, place = batch_of(), words(), made("place")
    at = presence("fone_digits", batch)
    turns = 2 * math.pi * (batch["input_ids"][at] - 40).double() / 10
    phases = torch.stack([turns.cos(), turns.sin()], 1).float()
    expected = (
        torch.nn.functional.pad(phases, (0, D - 2))
        if digits.projection is None
        else digits.projection(phases)
    )
    found = digits(e, batch)
    torch.testing.assert_close(found[at], expected)
    assert torch.equal(found[~at], e[~at])
    both = layers.SumEmbedding([place, digits])(
        e, batch
    )  # Abacus: the place is added to what the digit's vector now is
    torch.testing.assert_close(both[at], expected + (place(e, batch) - e)[at])
    assert layers.embedding_from_config(digits.config(), D).combine == "replace"
    torch.testing.assert_close(
        layers.FoNEDigitEmbedding(D, IDS)(e, batch)[at],
        e[at] + torch.nn.functional.pad(phases, (0, D - 2)),
    )


def test_a_digit_is_embedded_alike_whether_its_place_is_known_or_not() -> None:
    """While a number is written most significant digit first, the places of its digits are 0."""
    batch, e = batch_of(), words()
    known = made("fone_digits")(e, batch)
    assert torch.equal(
        made("fone_digits")(e, batch | {"place_value": torch.zeros_like(batch["place_value"])}),
        known,
    )


def test_a_sum_does_not_depend_on_its_order() -> None:
    batch, e = batch_of(), words()
    parts = [made(name) for name in ("xval", "bits", "fone", "bins")]
    torch.testing.assert_close(
        layers.SumEmbedding(parts)(e, batch), layers.SumEmbedding(parts[::-1])(e, batch)
    )
    assert set(layers.SumEmbedding(parts).streams) >= {
        "number_scaled",
        "number_bits",
        "number_digits",
        "number_bin",
    }


# ---- Place values


def test_places_move_in_training_only_each_row_by_its_own_offset() -> None:
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


def test_places_beyond_the_table_share_the_last_vector() -> None:
    layer = layers.PlaceValueEmbedding(3, max_place=2, zero_init=False)
    found = layer(torch.zeros(1, 4, 3), {"place_value": torch.tensor([[2, 900, -900, -2]])})
    assert (
        torch.equal(found[0, 0], found[0, 1])
        and torch.equal(found[0, 2], found[0, 3])
        and not torch.equal(found[0, 0], found[0, 2])
    )


def test_an_offset_leaves_places_apart() -> None:
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


def spelled(literals: list[str], representation: Any) -> tuple[list[int], list[int]]:
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
def test_what_is_seen_in_training_is_what_is_seen_when_writing(
    representation: Any, own: bool
) -> None:
    vocabulary = {
        own_token(name) if own and name.isdigit() else name: number
        for name, number in SYMBOLS.items()
    }

    @settings(max_examples=examples(25, thorough=100))
    @given(st.lists(LITERAL, max_size=4))
    def check(literals: list[str]) -> None:
        ids, places = spelled(literals, representation)
        tracker = layers.PlaceTracker(vocabulary, representation.order)
        written = [int(tracker.step(torch.tensor([one]))[0]) for one in ids]
        assert (
            places_when_written(torch.tensor([places]), representation.order)[0].tolist() == written
        )

    check()


def test_least_significant_first_integers_are_known_when_written() -> None:
    _, places = spelled(["417", "-20600"], PlaceValue(order="lsd"))
    assert places_when_written(torch.tensor([places]), "lsd")[0].tolist() == places
    _, places = spelled(["417.25"], PlaceValue())
    assert places == [0, 0, 3, 2, 1, 0, -1, -2, 0, 0]
    assert places_when_written(torch.tensor([places]), "msd")[0].tolist() == [
        0,
        0,
        0,
        0,
        0,
        0,
        -1,
        -2,
        0,
        0,
    ]


def test_only_digits_with_a_label_are_shown_as_written() -> None:
    layer = layers.PlaceValueEmbedding(1, max_place=9, written="msd")
    with torch.no_grad():
        layer.vectors.weight.copy_(torch.arange(-9.0, 10).unsqueeze(1))
    place = torch.tensor([[3, 2, 1, 0, 2, 1, 0, -1]])
    labels = torch.tensor([[-100, -100, -100, -100, 7, 7, 7, 7]])
    seen = layer(torch.zeros(1, 8, 1), {"place_value": place, "labels": labels})[0, :, 0]
    assert seen.tolist() == [3, 2, 1, 0, 0, 0, 0, -1]
    assert (
        layer(torch.zeros(1, 8, 1), {"place_value": place})[0, :, 0].tolist() == place[0].tolist()
    )
    masked = {
        "place_value": place,
        "labels": labels,
        "place_value_labels": place,
    }  # a masked model does not write from left to right
    assert layer(torch.zeros(1, 8, 1), masked)[0, :, 0].tolist() == place[0].tolist()


def test_the_tracker_keeps_a_state_for_each_row_and_beam() -> None:
    tracker = layers.PlaceTracker(SYMBOLS, "lsd")
    one, dot, word = SYMBOLS["1"], SYMBOLS["."], 5
    assert tracker.step(torch.tensor([1, 2, one])).tolist() == [
        0,
        0,
        0,
    ]  # a digit outside a number has no place
    assert tracker.step(torch.tensor([one, one, one])).tolist() == [1, 1, 0]
    assert tracker.step(torch.tensor([one, dot, one])).tolist() == [2, 0, 0]
    tracker.reorder(torch.tensor([1, 0, 0]))
    assert tracker.step(torch.tensor([one, one, word])).tolist() == [1, 3, 0]
    assert tracker.step(torch.tensor([SYMBOLS["e"], one, one])).tolist() == [0, 4, 0]
    assert tracker.step(torch.tensor([one, 3, one])).tolist() == [0, 0, 0]


# ---- Bits, words and values


@given(st.lists(st.integers(0, 2**32 - 1), max_size=5))
def test_bits_words_and_values_invert_each_other(words: list[int]) -> None:
    exact = torch.tensor(words, dtype=torch.int64)
    bits = bits_of_words(exact)
    assert torch.equal(words_of_bits(bits), exact)
    assert np.array_equal(
        bits.numpy(), np.unpackbits(np.array(words, ">u4").view(np.uint8)).reshape(-1, 32)
    )
    assert values_of_words(exact).numpy().tobytes() == np.array(words, np.uint32).tobytes()


def test_compact_bits_embed_as_dense_ones() -> None:
    layer, batch, e = made("bits"), batch_of(), words()
    compact = batch | {"number_bits": words_of_bits(batch["number_bits"])}
    torch.testing.assert_close(layer(e, compact), layer(e, batch))


# ---- From a file, and errors


def schema_of(*numbers: Any) -> pa.Schema:
    return (
        numtok.Tokenizer.from_pretrained(numbers=list(numbers)).encode_batch(["1 is -2.5"]).schema
    )


@pytest.mark.parametrize("compact", [False, True])
def test_the_layer_follows_from_the_file(compact: bool) -> None:
    numbers = [
        XVal(0.5, 40.0),
        FloatBits(compact=compact),
        FoNE(5, 4, compact=compact, chunk=5),
        ExponentBins(50),
        LogFourier(4),
    ]
    layer = layers.embedding_from_schema(
        schema_of(*numbers), 32, zero_init=True, projection="linear", depth=2
    )
    kinds = [
        "XValEmbedding",
        "FloatBitsEmbedding",
        "FoNEEmbedding",
        "ExponentBinsEmbedding",
        "LogFourierEmbedding",
    ]
    assert [type(one).__name__ for one in layer.embeddings] == kinds
    xval, bits, fone, bins, _ = (one.config() for one in layer.embeddings)
    assert (xval["scale"], xval["clip"], xval["zero_init"]) == (0.5, 40.0, True)
    assert (bits["compact"], bits["depth"]) == (compact, 2)
    assert (fone["int_digits"], fone["chunk"], fone["compact"], fone["projection"]) == (
        5,
        5,
        compact,
        "linear",
    )
    assert bins["n"] == 50


def test_the_former_name_in_a_saved_layer_is_read() -> None:
    layer = layers.embedding_from_config({"name": "bins", "n": 50}, D)
    assert (
        isinstance(layer, layers.ExponentBinsEmbedding)
        and layer.config()["name"] == "exponent_bins"
    )


def test_one_representation_gives_one_layer() -> None:
    assert isinstance(layers.embedding_from_schema(schema_of(XVal()), D), layers.XValEmbedding)
    groups = layers.embedding_from_schema(schema_of(Digits(places=True)), D)
    assert isinstance(groups, layers.PlaceValueEmbedding) and (
        groups.max_place,
        groups.written,
    ) == (64, "msd")
    place = layers.embedding_from_schema(schema_of(PlaceValue(max_offset=20)), D)
    assert (
        isinstance(place, layers.PlaceValueEmbedding)
        and place.max_place >= 64 + 20
        and place.written == "msd"
    )
    for order in ("msd", "lsd"):
        assert (
            layers.embedding_from_schema(schema_of(PlaceValue(order=order)), D).config()["written"]
            == order
        )
        assert (
            layers.embedding_from_schema(
                schema_of(PlaceValue(order=order)), D, written=None
            ).config()["written"]
            is None
        )


def test_a_file_without_anything_to_embed_or_an_unknown_option() -> None:
    for one in (P10(), Digits()):
        with pytest.raises(SchemaError, match="tokens alone"):
            layers.embedding_from_schema(schema_of(one), D)
    with pytest.raises(RepresentationError, match="none of xval has the option depth"):
        layers.embedding_from_schema(schema_of(XVal()), D, depth=3)
    with pytest.raises(SchemaError, match="not written by numtok"):
        layers.embedding_from_schema(pa.schema([]), D)


@EVERY
def test_a_missing_stream_is_named(name: str) -> None:
    layer, batch = made(name), batch_of()
    wanted = [stream for stream in layer.streams if stream != "number_mask"][-1]
    for stream in layer.streams:
        if stream != "number_mask":
            del batch[stream]
    with pytest.raises(SchemaError, match=r"the batch has no .*which \w+ reads; encode the text"):
        layer(words(), batch)
    assert wanted not in batch


def test_streams_of_another_shape_are_refused() -> None:
    batch = batch_of()
    with pytest.raises(SchemaError, match="batch and sequence differ"):
        made("xval")(words()[:, :3], batch)
    with pytest.raises(SchemaError, match="made for d_model=24"):
        made("xval")(torch.zeros(2, 7, 5), batch)
    with pytest.raises(SchemaError, match="made for 12 digits"):
        layers.FoNEEmbedding(32, 6, 6)(torch.zeros(2, 7, 32), batch)
    with pytest.raises(SchemaError, match="made for 8 digits"):
        layers.FoNEEmbedding(32, 4, 4)(torch.zeros(2, 7, 32), batch)
    with pytest.raises(SchemaError, match="of 32 bits"):
        made("bits")(words(), batch | {"number_bits": batch["number_bits"][..., :31]})
    with pytest.raises(SchemaError, match="number_log_fourier"):
        layers.LogFourierEmbedding(D, 7)(words(), batch)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: layers.FoNEEmbedding(10, 5, 4), "18 features do not fit into d_model=10"),
        (lambda: layers.FoNEEmbedding(D, 5, 4, zero_init=True), "projection='linear'"),
        (lambda: layers.FoNEEmbedding(D, 5, 4, projection="mlp"), "'mlp' is unknown"),
        (lambda: layers.FloatBitsEmbedding(D, depth=0), "depth=0"),
        (lambda: layers.PlaceValueEmbedding(D, max_place=0), "max_place=0"),
        (lambda: layers.PlaceValueEmbedding(D, written="up"), "'up' is unknown"),
        (lambda: layers.FoNEDigitEmbedding(D, [1, 2]), "ten ids"),
        (lambda: layers.FoNEDigitEmbedding(D, IDS, combine="mean"), "'mean' is unknown"),
        (
            lambda: layers.FoNEDigitEmbedding(
                D, IDS, projection="linear", zero_init=True, combine="replace"
            ),
            "combine='add'",
        ),
        (
            lambda: layers.PlaceValueEmbedding(D, max_place=30, max_offset=30),
            "max_offset=30 must be below max_place=30",
        ),
        (lambda: layers.SumEmbedding([]), "at least one"),
        (
            lambda: layers.SumEmbedding([layers.XValEmbedding(2), layers.XValEmbedding(3)]),
            "same d_model",
        ),
        (
            lambda: layers.embedding_from_config({"name": "word2vec"}, D),
            "unknown embedding 'word2vec'",
        ),
        (lambda: layers.embedding_from_config({"name": "xval", "colour": 1}, D), "colour"),
    ],
)
def test_what_cannot_be_made(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(RepresentationError, match=message):
        make()
