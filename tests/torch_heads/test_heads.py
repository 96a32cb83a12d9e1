"""The heads, held to formulas in numpy, on the numbers' own scale."""

import dataclasses
import json
import math
import struct

import numpy as np
import pytest
import torch
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_models import check_one_graph, schema_of, tensor

import numtok_torch as heads
from numtok import Numbers
from numtok.representations import (
    ExponentBins,
    FloatBits,
    FoNE,
    LogFourier,
    QuantileBins,
    XVal,
)
from numtok_torch.heads import mixture

D, N = 24, 5
MAKERS = {
    "scalar": lambda: heads.ScalarHead(D, 16, scale=0.5),
    "mixture": lambda: heads.MixtureHead(D, 3, 16, scale=2.0),
    "mixture asinh": lambda: heads.MixtureHead(D, 3, 16, space="asinh"),
    "fone": lambda: heads.FoNEHead(D, 5, 4, layer_norm=True, linear=True),
    "fone plain": lambda: heads.FoNEHead(D, 5, 4),
    "fone wide": lambda: heads.FoNEHead(D, 20, 4),
    "fone dense": lambda: heads.FoNEHead(D, 3, 3, (2, 5, 10), chunk=4, compact=False),
    "bits": lambda: heads.BitsHead(D),
    "bits hidden": lambda: heads.BitsHead(D, 16),
    "bits of 64": lambda: heads.BitsHead(D, width=64, slope=0.25),
    "quantiles": lambda: heads.QuantileHead(D, scale=0.1),
    "quantiles asinh": lambda: heads.QuantileHead(D, scale=0.1, space="asinh"),
    "fourier": lambda: heads.FourierHead(D, 5, scale=0.1, spread=4.0),
    "fourier asinh": lambda: heads.FourierHead(D, 5, scale=0.1, space="asinh", gamma=1e3),
}
OF_VALUES = [name for name in MAKERS if name.startswith(("mixture", "quantiles", "fourier"))]
EVERY = pytest.mark.parametrize("name", MAKERS)
EVERY_OF_VALUES = pytest.mark.parametrize("name", OF_VALUES)


def made(name):
    torch.manual_seed(1)
    return MAKERS[name]()


def hidden(rows=N, seed=0):
    return torch.randn(rows, D, generator=torch.Generator().manual_seed(seed))


def target(name, rows=N):
    generator = torch.Generator().manual_seed(2)
    if name == "scalar" or name in OF_VALUES:
        wide = torch.randn(rows, generator=generator, dtype=torch.float64)
        return wide.float() if name == "scalar" else wide
    if name == "fone dense":
        digits = np.arange(rows * 6, dtype=np.uint8).reshape(rows, 6) % 10
        return torch.from_numpy(FoNE(3, 3, (2, 5, 10), chunk=4).features(digits))
    widths = {"bits of 64": (2, 64), "fone wide": (10, 24)}
    high, width = widths.get(name, (2, 32) if name.startswith("bits") else (10, 9))
    return torch.randint(high, (rows, width), generator=generator, dtype=torch.uint8)


def weights(head):
    return {key: value.detach().double().numpy() for key, value in head.named_parameters()}


def mlp(w, h):
    inner = h @ w["network.0.weight"].T + w["network.0.bias"]
    inner = inner * 0.5 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
    return inner @ w["network.2.weight"].T + w["network.2.bias"]


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def softplus(x):
    return np.log1p(np.exp(x))


def digit_logits(pairs):
    """[n, digits, 2] to [n, digits, 10]."""
    turns = 2 * np.pi * np.arange(10) / 10
    return pairs @ np.stack([np.cos(turns), np.sin(turns)])


# ---- Losses are their formulas


def formula(name, head, h, y):
    w = weights(head)
    if name == "scalar":
        return float(np.mean((mlp(w, h)[:, 0] - y) ** 2))
    if name.startswith("mixture"):
        out, y = mlp(w, h), np.arcsinh(y) if "asinh" in name else 2 * y
        weight, mean = np.exp(log_softmax(out[:, :3])), out[:, 3:6]
        std = softplus(out[:, 6:]) + 1e-3
        z = (y[:, None] - mean) / std
        density = (weight * np.exp(-0.5 * z**2) / std / math.sqrt(2 * math.pi)).sum(1)
        return float(-np.log(density).mean())
    if name.startswith(("quantiles", "fourier")):
        out = h @ w["network.weight"].T + w["network.bias"]
        y = np.arcsinh(0.1 * y) if "asinh" in name else 0.1 * y
    if name.startswith("quantiles"):  # the pinball loss
        off, shares = y[:, None] - out, np.array([0.05, 0.25, 0.5, 0.75, 0.95])
        return float(np.maximum(shares * off, (shares - 1) * off).mean())
    if name.startswith("fourier"):  # as the authors' code has it, with its penalty
        a, spread, k = out[:, :6] + 1j * out[:, 6:], head.spread, np.arange(6)
        c = np.stack([np.correlate(one, one, "full")[5:] for one in a])
        waves = np.exp(1j * np.pi * np.outer(y / spread, k[1:]))
        p = 0.5 + (c[:, 1:] / c[:, :1].real * waves).sum(-1).real
        loss = -np.log((p + 1e-5) / (1 + 2e-5) / spread).mean()
        return float(loss + head.gamma * 2 * (2 * (np.pi * k) ** 2 * abs(c) ** 2).sum(-1).mean())
    if name.startswith("bits"):
        logits = mlp(w, h) if "hidden" in name else h @ w["network.weight"].T + w["network.bias"]
        each = softplus(logits) - y * logits
        if name == "bits of 64":  # as the code of BitTokens has it, line by line
            line = np.linspace(1, 1 + 64 * 0.25, 64)
            line = line - line.min() + 1
            each = each * line / line.mean()
        return float(np.mean(each))
    if name == "fone dense":
        digits = np.arange(N * 6).reshape(N, 6) % 10
        places = (h @ w["map.weight"].T).reshape(N, 6, 3, 2)
        turns = 2 * np.pi * np.arange(10)[:, None] / np.array([2, 5, 10])
        logits = np.einsum("ndbc,jbc->ndj", places, np.stack([np.cos(turns), np.sin(turns)], -1))
        return float(-np.take_along_axis(log_softmax(logits), digits[..., None], -1).mean())
    if name == "fone":
        h = (h - h.mean(1, keepdims=True)) / np.sqrt(h.var(1, keepdims=True) + 1e-5)
        h = h * w["norm.weight"] + w["norm.bias"]
    places = h[:, :18] if name == "fone plain" else h @ w["map.weight"].T
    logits = digit_logits(places.reshape(N, -1, 2))
    return float(-np.take_along_axis(log_softmax(logits), y[..., None].astype(int), -1).mean())


@EVERY
def test_the_loss_is_the_formula_and_its_gradients_reach_everything(name):
    """Without numbers the loss is 0, with a graph."""
    head, h, y = made(name), hidden().requires_grad_(), target(name)
    found = head.loss(h, y)
    assert found.shape == () and found.dtype == torch.float32
    expected = formula(name, head, h.detach().double().numpy(), y.double().numpy())
    assert found.item() == pytest.approx(expected, rel=1e-5)
    found.backward()
    for key, one in [*head.named_parameters(), ("hidden", h)]:
        assert torch.isfinite(one.grad).all() and one.grad.any(), key
    head.zero_grad()
    loss = head.loss(hidden(0).requires_grad_(), target(name, 0))
    loss.backward()
    assert loss.item() == 0
    assert all(one.grad is not None and not one.grad.any() for one in head.parameters())
    assert head.predict(hidden(0)).values.shape == (0,)


@EVERY
def test_predictions_of_any_shape(name):
    head, h = made(name), hidden(6)
    flat, cube, single = head.predict(h), head.predict(h.view(2, 3, D)), head.predict(h[4])
    assert flat.values.shape == (6,) and flat.values.dtype == torch.float64
    assert not flat.values.requires_grad
    torch.testing.assert_close(cube.values.flatten(), flat.values)
    # what is no choice among few was computed in float32, in another order
    kind = torch.float64 if flat.bounds is None else torch.float32
    torch.testing.assert_close(single.values.to(kind), flat.values[4].to(kind))
    for key, stream in flat.streams.items():
        assert torch.equal(cube.streams[key].flatten(0, 1), stream)
    if flat.confidence is not None:
        assert flat.confidence.shape == (6,)
        assert ((flat.confidence >= 0) & (flat.confidence <= 1)).all()
    if flat.interval is not None:
        assert cube.interval.shape == (2, 3, 2) and cube.interval.dtype == torch.float64
        assert torch.isfinite(cube.interval).all() and (cube.interval.diff() > 0).all()


@EVERY
def test_it_comes_back_from_its_config_and_is_not_rounded(name):
    """Not under autocast, as a value in bfloat16 has three digits; nor has it a buffer of floats."""
    head, h, y = made(name), hidden(), target(name)
    torch.manual_seed(9)
    other = heads.head_from_config(json.loads(json.dumps(head.config())), D)
    assert type(other) is type(head) and other.target == head.target
    assert other.config() == head.config()
    other.load_state_dict(head.state_dict())
    assert not [key for key, buffer in head.named_buffers() if buffer.is_floating_point()]
    loss, values = head.loss(h, y), head.predict(h).values
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(other.loss(h, y), loss)
        assert torch.equal(other.predict(h).values, values)
    low = other.to(torch.bfloat16).loss(h.to(torch.bfloat16), y)
    assert low.dtype == torch.float32 and low.item() == pytest.approx(loss.item(), rel=0.1)


@pytest.mark.slow
def test_every_head_compiles_to_one_graph_for_any_number_of_numbers(monkeypatch):
    """Losses and predictions."""
    # which the others hold, or of which 50 halvings are a part
    held = ("mixture", "fone plain", "bits", "quantiles", "fourier", "fourier asinh")
    every = {name: made(name) for name in MAKERS if name not in held}

    def run(states, targets):
        found = [head.loss(states, targets[name]) for name, head in every.items()]
        for head in every.values():
            said = head.predict(states)
            found += [said.values, said.confidence, said.bounds, *said.streams.values()]
        return [one for one in found if one is not None]

    monkeypatch.setattr(mixture, "STEPS", 1)  # each of the 30 is a part of the graph
    check_one_graph(
        run,
        [(hidden(rows), {name: target(name, rows) for name in every}) for rows in (7, 11)],
        [parameter for head in every.values() for parameter in head.parameters()],
    )


def test_the_layer_norm_that_a_model_adds_is_on_the_device_of_the_head_and_of_its_dtype():
    head = heads.ScalarHead(D).to("meta", torch.float64)
    head.fit_to(pretrained=True)
    assert {(one.device.type, one.dtype) for one in head.norm.parameters()} == {
        ("meta", torch.float64)
    }


# ---- ScalarHead


def test_scalar_predictions_are_unscaled():
    head, h = made("scalar"), hidden()
    expected = mlp(weights(head), h.double().numpy())[:, 0] / 0.5
    np.testing.assert_allclose(head.predict(h).values.numpy(), expected, rtol=1e-5)
    assert torch.isfinite(heads.ScalarHead(D, scale=1e-300).predict(1e20 * h).values).all()
    logarithms = heads.ScalarHead(D, 16, scale=0.5, log=True)
    logarithms.load_state_dict(head.state_dict())
    expected = np.sign(expected) * (10 ** abs(expected) - 1)
    np.testing.assert_allclose(logarithms.predict(h).values.numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("value", "scale"), [(70000.0, 1e-4), (1e-9, 1e9), (2049.0, 1.0)])
def test_scalar_predictions_go_beyond_the_range_of_the_module(value, scale, dtype):
    """70000 is infinite in float16, and 1e-9 is 0: the number's own scale comes after the cast back."""
    head = heads.ScalarHead(1, scale=scale)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.zero_()
        head.network[2].bias.fill_(value * scale)
    found = head.to(dtype).predict(torch.zeros(1, 1, dtype=dtype)).values
    assert found.item() == pytest.approx(value, rel=float(torch.finfo(dtype).eps))


# ---- FoNEHead


@pytest.mark.parametrize(("before", "after"), [(3, 2), (12, 3), (9, 8), (0, 6), (30, 10)])
def test_values_are_the_nearest_doubles(before, after):
    """From φ of each digit by itself; not the encoder's features, which the paper's head does not
    invert.
    """
    head = heads.FoNEHead(2 * (before + after), before, after)

    @settings(max_examples=examples(25))
    @given(st.lists(st.integers(0, 9), min_size=before + after, max_size=before + after))
    def check(row):
        turns = 2 * math.pi * torch.tensor([row]) / 10
        found = head.predict(torch.stack([turns.cos(), turns.sin()], -1).flatten(1))
        text = "".join(map(str, reversed(row)))
        assert found.streams["number_digits"].tolist() == [row]
        assert found.values.tolist() == [float(f"{text[:before]}.{text[before:]}")]

    check()


def test_confidence_is_the_probability_of_all_digits():
    head, h = made("fone plain"), hidden()
    p = np.exp(log_softmax(digit_logits(h[:, :18].double().numpy().reshape(N, 9, 2))))
    np.testing.assert_allclose(head.predict(h).confidence.numpy(), p.max(-1).prod(-1), rtol=1e-4)


# ---- BitsHead


def bits_of(values, width=32):
    """(n, width), sign first."""
    packed = [struct.pack({32: ">f", 64: ">d"}[width], value) for value in values]
    return torch.tensor([[int(bit) for byte in one for bit in f"{byte:08b}"] for one in packed])


def identity(width=32):
    """A head whose logits are the hidden states."""
    head = heads.BitsHead(width, width=width)
    with torch.no_grad():
        head.network.weight.copy_(torch.eye(width))
        head.network.bias.zero_()
    return head


FLOATS = {
    width: st.floats(allow_nan=False, allow_infinity=False, width=width) for width in (32, 64)
}


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_bits_come_back(width, dtype):
    """Minus zero as well, and whatever the precision of the hidden states: each logit is a choice
    of two.
    """
    head = identity(width).to(dtype)

    @settings(max_examples=examples(40))
    @given(st.lists(FLOATS[width], min_size=1, max_size=5))
    def check(values):
        bits = bits_of(values, width)
        hidden = (3.0 * (2 * bits - 1)).to(dtype)
        words = torch.tensor(np.array(values, f"f{width // 8}").view(f"i{width // 8}"))
        assert torch.equal(head.loss(hidden, words), head.loss(hidden, bits))
        found = head.predict(hidden)
        assert found.values.dtype == torch.float64
        assert found.values.numpy().tobytes() == np.array(values).tobytes()
        assert found.streams["number_bits"].tolist() == bits.tolist()

    check()


@pytest.mark.parametrize("width", [32, 64])
def test_any_logits_are_a_finite_number_and_the_most_probable(width):
    """Also where all bits of the exponent are 1, which is infinity or NaN."""
    head, exponent = identity(width), slice(1, 9 if width == 32 else 12)
    logit = st.floats(-9, 9, width=32)

    @settings(max_examples=examples(40))
    @given(st.lists(logit, min_size=width, max_size=width), st.booleans())
    def check(row, hostile):
        logits = torch.tensor([row])
        if hostile:
            logits[0, exponent] = logits[0, exponent].abs() + 0.25
        found = head.predict(logits)
        assert torch.isfinite(found.values).all()
        chosen = found.streams["number_bits"][0].bool()
        cost = (logits[0].abs() * ((logits[0] > 0) != chosen)).sum().item()
        every = (logits[0, exponent] > 0).all()
        assert cost == pytest.approx(float(logits[0, exponent].min()) if every else 0.0)
        sure = torch.where(chosen, logits[0], -logits[0]).sigmoid().prod().item()
        assert found.confidence.item() == pytest.approx(sure, rel=1e-4)

    check()


@pytest.mark.parametrize("slope", [0.0, 0.25, -0.25, 30.0])
def test_weights_of_bits_lie_on_a_line_and_their_mean_is_1(slope):
    weights = heads.BitsHead(D, width=64, slope=slope).bit_weights(
        torch.zeros((), dtype=torch.float64)
    )
    assert weights.mean().item() == pytest.approx(1) and (weights > 0).all()
    ends = (weights[-1] / weights[0]).item()
    assert ends == pytest.approx(1 + 64 * slope if slope >= 0 else 1 / (1 - 64 * slope))
    assert torch.allclose(weights.diff(), weights.diff()[0])


# ---- MixtureHead


def fixed(log_weights, means, stds, **options):
    """A head that gives this mixture whatever the hidden state."""
    head = heads.MixtureHead(2, len(means), **options)
    last = head.network[-1]
    with torch.no_grad():
        last.weight.zero_()
        raw = [math.log(math.expm1(std - 1e-3)) for std in stds]
        last.bias.copy_(torch.tensor([*log_weights, *means, *raw]))
    return head


@pytest.mark.parametrize(
    ("shares", "means", "stds"),
    [
        ([0.3, 0.7], [-2.0, 2.0], [0.1, 0.2]),
        # two that overlap make a higher peak than the tallest single one
        ([0.36, 0.32, 0.32], [4.0, -0.3, 0.3], [0.7, 0.6, 0.6]),
        ([0.7, 0.3], [0.0, 0.8], [1.0, 0.6]),
        ([0.5, 0.3, 0.2], [0.0, 0.5, -0.5], [2.0, 0.5, 0.3]),
    ],
)
def test_mode_mean_and_mass_are_of_the_mixture(shares, means, stds):
    """Not of a component: on a grid."""
    logs, h = [math.log(one) for one in shares], torch.zeros(1, 2)
    grid = np.linspace(-12, 12, 240001)
    parts = zip(shares, means, stds, strict=True)
    density = sum(w * np.exp(-0.5 * ((grid - m) / s) ** 2) / s for w, m, s in parts)
    found = fixed(logs, means, stds).predict(h)
    assert found.values.item() == pytest.approx(grid[density.argmax()], abs=1e-3)
    within = density[abs(grid - found.values.item()) < 0.1].sum() / density.sum()
    assert found.confidence.item() == pytest.approx(within, rel=2e-3)
    mean = fixed(logs, means, stds, point="mean").predict(h).values.item()
    assert mean == pytest.approx(np.dot(shares, means), abs=1e-5)


@pytest.mark.parametrize("space", ["linear", "asinh"])
def test_samples_follow_the_mixture(space):
    head = fixed([math.log(0.25), math.log(0.75)], [-3.0, 1.0], [0.05, 0.5], scale=4.0, space=space)
    values = head.sample(torch.zeros(20000, 2), torch.Generator().manual_seed(0)) * 4
    y = torch.asinh(values) if space == "asinh" else values
    low = y[y < -1.5]
    assert len(low) / len(y) == pytest.approx(0.25, abs=0.01)
    assert (low.mean().item(), low.std().item()) == pytest.approx((-3.0, 0.05), abs=0.01)
    high = y[y > -1.5]
    assert (high.mean().item(), high.std().item()) == pytest.approx((1.0, 0.5), abs=0.02)
    assert head.sample(torch.zeros(2)).shape == ()
    assert head.sample(torch.zeros(2, 3, 2)).shape == (2, 3)


@EVERY_OF_VALUES
def test_far_away_targets_are_finite(name):
    """Densities underflow there; their logarithm does not."""
    head, far = made(name), torch.tensor([0, 1e3, -1e308, 1e308, -1e-300], dtype=torch.float64)
    loss = head.loss(hidden(), far)
    assert torch.isfinite(loss)
    loss.backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in head.parameters())


@pytest.mark.parametrize("name", [name for name in OF_VALUES if name != "fourier asinh"])
def test_infinite_targets_are_left_out(name):
    """But for the penalty of a series, which is of no target."""
    head, h = made(name), hidden()
    y = torch.tensor([0.5, math.inf, -1.0, math.nan, 2.0], dtype=torch.float64)
    some = torch.tensor([0, 2, 4])
    torch.testing.assert_close(head.loss(h, y), head.loss(h[some], y[some]))


def test_components_start_apart():
    _, means, stds = heads.MixtureHead(D, 5, spread=4.0).mixture(torch.zeros(1, D))
    torch.testing.assert_close(means.diff(), torch.full((1, 4), 2.0), atol=0.5, rtol=0)
    assert (stds > 1).all()


# ---- From a file


COMMON = {"name": "quantiles", "quantiles": [0.1, 0.9], "layer_norm": None}


@pytest.mark.parametrize(
    ("numbers", "options", "wanted"),
    [
        ([XVal(0.5), FoNE(3, 2)], {}, {"name": "scalar", "target": "number_scaled", "scale": 0.5}),
        ([XVal(0.5), FoNE(3, 2)], {"head": "fone", "layer_norm": True}, {"name": "fone"}),
        ([XVal(0.5)], {"head": "mixture", "components": 2}, {"name": "mixture", "scale": 0.5}),
        ([FoNE(3, 2, chunk=2)], {}, {"name": "fone", "compact": False, "chunk": 2}),
        ([FoNE(3, 2, compact=True)], {}, {"name": "fone", "compact": True, "chunk": None}),
        ([FloatBits()], {}, {"name": "bits", "width": 32}),
        ([FloatBits(width=64, reciprocal=True)], {}, {"name": "bits", "reciprocal": True}),
        ([ExponentBins()], {}, {"name": "mixture", "space": "asinh"}),
        ([QuantileBins()], {}, {"name": "mixture"}),
        ([LogFourier()], {}, {"name": "mixture"}),
        (
            [XVal()],
            {"head": "quantiles", "quantiles": (0.1, 0.9)},
            COMMON | {"scale": 1.0, "space": "linear"},
        ),
        (
            [FoNE(6, 4)],
            {"head": "quantiles", "quantiles": (0.1, 0.9)},
            COMMON | {"scale": 1e4, "space": "asinh"},
        ),
        ([XVal()], {"head": "fourier"}, {"name": "fourier", "space": "linear"}),
        ([FoNE(6, 4)], {"head": "fourier"}, {"name": "fourier", "space": "asinh"}),
    ],
)
def test_the_head_follows_from_the_file(numbers, options, wanted):
    head = heads.head_from_schema(schema_of(*numbers), 32, **options)
    assert wanted.items() <= head.config().items()


@pytest.mark.parametrize(
    "one",
    [
        *(FoNE(3, 2), FoNE(3, 2, chunk=2), FloatBits()),
        *(FloatBits(width=64), FloatBits(width=64, reciprocal=True)),
    ],
)
def test_both_forms_of_a_file_are_the_same_target(one):
    """Also of bits, whose words hold no reciprocal, which is no target."""
    torch.manual_seed(0)
    numbers, head = Numbers.parse(["496.37", "0", "999.99"]), None
    losses = []
    for compact in (False, True):
        form = dataclasses.replace(one, compact=compact)
        made = heads.head_from_schema(schema_of(form), D)
        made.load_state_dict((head or made).state_dict())
        head = made
        (column,) = form.encode(numbers).values()
        losses.append(made.loss(hidden(3), tensor(column)))
    assert torch.equal(*losses)


@pytest.mark.parametrize("log", [False, True])
def test_a_scalar_head_scales_the_values_of_any_representation_as_xval_does(log):
    head = heads.head_from_schema(schema_of(LogFourier()), D, "scalar", scale=0.2, log=log)
    assert head.config()["target"] == "number_value"
    own = heads.ScalarHead(D, scale=0.2, log=log)
    own.load_state_dict(head.state_dict())
    numbers = Numbers.parse(["0", "-17.25", "3e-5", "123456", "-0.5"])
    values, scaled = (
        torch.tensor(of.tolist())
        for of in (numbers.to_float64(), XVal(0.2, log=log).encode(numbers)["number_scaled"])
    )
    expected = own.loss(hidden(5), scaled)
    torch.testing.assert_close(head.loss(hidden(5), values.double()), expected)
    far = torch.cat([values.double(), torch.tensor([torch.inf, -torch.inf])])
    torch.testing.assert_close(head.loss(torch.cat([hidden(5), hidden(2)]), far), expected)
    torch.testing.assert_close(head.predict(hidden()).values, own.predict(hidden()).values)


def test_a_scalar_head_saved_without_a_target_is_that_of_xval():
    config = {"name": "scalar", "hidden": None, "scale": 0.2, "log": False}
    assert heads.head_from_config(config, D).target == "number_scaled"
