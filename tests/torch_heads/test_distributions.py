"""The heads that predict a distribution, quantiles and a Fourier series: what they learn and say."""

import math

import numpy as np
import pytest
import torch

import numtok
from numtok_torch import FourierHead, MixtureHead, QuantileHead, head_from_schema
from numtok_torch.heads.fourier import coefficients, cumulative, density, quantile

D = 12


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(3)


def hidden(rows=6):
    return torch.randn(rows, D)


def trained(head, target, rate=0.05):
    """The one hidden state that the head has learnt the targets from."""
    state = torch.ones(1, D)
    optimizer = torch.optim.Adam(head.parameters(), lr=rate)
    for _ in range(300):
        optimizer.zero_grad()
        head.loss(state.expand(len(target), D), target).backward()
        optimizer.step()
    return state


def test_quantiles_are_learnt_and_read_in_order():
    target = torch.randn(4000, dtype=torch.float64) * 2 + 5
    head = QuantileHead(D)
    state = trained(head, target)
    expected = torch.quantile(target, torch.tensor(head.shares, dtype=torch.float64))
    assert torch.allclose(head.quantiles(state)[0], expected, atol=0.25)
    said = head.predict(state)
    assert said.interval is not None and said.interval.shape == (1, 2)
    inside = (target > said.interval[0, 0]) & (target < said.interval[0, 1])
    assert inside.double().mean().item() == pytest.approx(0.9, abs=0.03)
    assert said.values.item() == pytest.approx(5, abs=0.25)
    drawn = head.sample(state.expand(4000, D))
    assert drawn.median().item() == pytest.approx(5, abs=0.3)
    crossed = QuantileHead(D, (0.2, 0.6, 0.7))
    torch.nn.init.zeros_(crossed.network.weight)
    crossed.network.bias.data = torch.tensor([3.0, 1.0, 2.0])
    assert crossed.quantiles(hidden(2)).tolist() == [[1, 2, 3]] * 2
    assert crossed.predict(hidden(1)).values.item() == pytest.approx(1.75)  # 3/4 from 0.2 to 0.6
    alone = QuantileHead(D, (0.9,))
    assert torch.equal(alone.predict(state).values, alone.quantiles(state)[:, 0])


def test_the_density_is_the_series_of_the_authors_code():
    """Their autocorrelation is a convolution, ours a sum; the series is theirs."""
    head, h = FourierHead(D, 5), hidden(3)
    found = head.network(h).double()
    a = torch.complex(*found.chunk(2, -1)).detach().numpy()
    y = np.linspace(-1, 1, 4001)
    for row in range(3):
        c = np.correlate(a[row], a[row], "full")[5:]
        k = np.arange(1, 6)
        series = 0.5 + ((c[1:] / c[0].real) * np.exp(1j * np.pi * np.outer(y, k))).sum(-1).real
        ours = density(found[row], torch.from_numpy(y)).detach().numpy()
        assert np.allclose(ours, series) and series.min() >= -1e-12
        real, imaginary = coefficients(found[row])
        assert np.allclose(real.detach().numpy() + 1j * imaginary.detach().numpy(), c)
        below = np.concatenate([[0], np.cumsum((series[1:] + series[:-1]) / 2 * (y[1] - y[0]))])
        assert np.allclose(cumulative(found[row], torch.from_numpy(y)).detach(), below, atol=1e-5)
        at = quantile(found[row], torch.tensor([0.0, 0.05, 0.5, 1.0], dtype=torch.float64))
        assert np.allclose(np.interp(at.detach(), y, below), [0, 0.05, 0.5, 1], atol=1e-5)
        mean = FourierHead(D, 5, point="mean")
        mean.load_state_dict(head.state_dict())
        exact = float((series * y).sum() * (y[1] - y[0])) * 5
        assert mean.predict(h[row]).values.item() == pytest.approx(exact, abs=0.01)


def test_in_float64_nothing_is_rounded_to_float32():
    nodes, weights = np.polynomial.legendre.leggauss(64)
    head, h = FourierHead(D, 5, spread=1.0, point="median").double(), hidden(3).double()
    for found, median in zip(head.say(h), head.predict(h).values, strict=True):
        half = (median + 1) / 2  # of the way from -1
        below = half * density(found, half * (torch.tensor(nodes) + 1) - 1) @ torch.tensor(weights)
        assert below.item() == pytest.approx(0.5, abs=1e-13)
    head, value = MixtureHead(D, 2).double(), torch.tensor([1234567.1], dtype=torch.float64)
    with torch.no_grad():
        head.network[-1].weight.zero_()
        head.network[-1].bias[2:4] = value
    deviation = head.mixture(h[:1])[2][0, 0].item()
    expected = -math.log(deviation * math.sqrt(2 * math.pi))
    assert head.log_prob(h[:1], value).item() == pytest.approx(expected, abs=1e-13)


def test_two_answers_are_two_peaks():
    target = torch.tensor([-2.0, 3.0, 3.0] * 40, dtype=torch.float64)
    head = FourierHead(D, 12)
    state = trained(head, target, 0.01)
    said = head.predict(state)
    assert said.values.item() == pytest.approx(3, abs=0.3)
    assert said.interval is not None and said.interval[0].tolist() == pytest.approx(
        [-2, 3], abs=0.7
    )
    drawn = head.sample(state.expand(3000, D))
    near = (drawn - 3).abs() < (drawn + 2).abs()
    assert near.double().mean().item() == pytest.approx(2 / 3, abs=0.1)
    wide = FourierHead(D, 12, within=1.0)
    wide.load_state_dict(head.state_dict())
    confidence = wide.predict(state).confidence
    assert confidence is not None and confidence.item() == pytest.approx(2 / 3, abs=0.1)


@pytest.mark.parametrize(
    ("numbers", "low", "high"),
    [
        (numtok.ExponentBins(), 1e-4, 1e6),
        (numtok.ExponentBins(280, low=1e-7, high=1e7), 1e-7, 1e7),
        (numtok.LogFourier(), 1e-4, 1e8),
        (numtok.QuantileBins(4, edges=(-2.5, 0.0, 0.5, 30.0, 450000.0)), 0.5, 450000.0),
        (numtok.XVal(log=True), 1e-4, 1e8),
    ],
)
@pytest.mark.parametrize("kind", ["mixture", "fourier"])
def test_by_default_decades_lie_alike_from_the_smallest_magnitude_to_the_largest(
    numbers, low, high, kind
):
    schema = numtok.Tokenizer.from_pretrained(numbers=numbers).batch_schema()
    head = head_from_schema(schema, D, head=kind)
    decades = torch.logspace(math.log10(low), math.log10(high), 50, dtype=torch.float64)
    y = head.to_space(decades)
    assert y[-1].item() == pytest.approx(head.config()["spread"])  # where a density ends
    steps = y.diff()
    assert torch.allclose(steps[5:], steps[-1], rtol=0.05)
    assert (steps > 0.6 * steps[-1]).all()  # the first ones are on the way from linear
    assert torch.equal(head.to_space(-decades), -y)
    ends = torch.tensor([0.0, -0.0, 5e-324, 1.7e308, -1.7e308], dtype=torch.float64)
    assert head.to_space(ends).abs().max().item() < 711  # asinh of the largest float64


@pytest.mark.parametrize("kind", ["mixture", "quantiles", "fourier"])
@pytest.mark.parametrize(("low", "high"), [(1e-200, 1e200), (5e-324, 1.0)])
def test_bins_whose_ends_are_further_apart_than_float64_reaches_have_a_head(kind, low, high):
    tokenizer = numtok.Tokenizer.from_pretrained(numbers=[numtok.ExponentBins(20, low, high)])
    head = head_from_schema(tokenizer.batch_schema(), D, head=kind)
    target = torch.tensor([low, 0.0, 0.5, high], dtype=torch.float64)
    head.loss(hidden(4), target).backward()
    assert all(torch.isfinite(one.grad).all() for one in head.parameters())
    assert torch.isfinite(head.predict(hidden(4)).values).all()
