"""QuantileBins: edges and places as rtdl-num-embeddings has them, bounds, and fitting."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from input_files import write_texts
from spelling import column_values

import numtok
from numtok import FoNE, Numbers, QuantileBins
from numtok.corpus import tokenizer_of
from numtok.representations import from_dict, parse
from numtok.statistics import Statistics
from numtok.statistics.losses import losses

VALUES = ["0", "0", "0", "1", "2", "4", "8", "16", "-3", "2.5", "100", "7.25"]
EDGES = (-3.0, 0.0, 1.4, 3.4, 7.85, 100.0)
# of PiecewiseLinearEncoding, the sum over the bins
PLACES = {-3.0: 0, -1.5: 0.5, 0.0: 1, 1.0: 1.7142857, 3.3: 2.95, 8.0: 4.0016278, 50.0: 4.4574064, 100.0: 5}  # fmt: skip


def test_edges_and_places_are_those_of_rtdl_num_embeddings():
    """Version 0.0.12; it computes the quantiles' steps in float32."""
    bins = QuantileBins.fit(Numbers.parse(VALUES), 5, soft=True)
    assert bins.edges == pytest.approx(EDGES, abs=1e-6)
    assert column_values(bins, [repr(one) for one in PLACES]) == pytest.approx(
        list(PLACES.values()), abs=1e-6
    )
    assert len(QuantileBins.fit(Numbers.parse(["0"] * 90 + ["1", "2"]), 50).edges) < 10


def test_bins_are_half_open_and_end_at_both_edges():
    bins = QuantileBins(5, edges=EDGES)
    inside = ["-3", "-0.01", "-0", "0", "7.8499", "7.85", "100"]
    assert bins.fits(Numbers.parse(inside)).all()
    assert column_values(bins, inside) == [0, 0, 1, 1, 3, 4, 4]


@pytest.mark.thorough
@settings(max_examples=examples(100))
@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=40), st.integers(1, 50), st.booleans())
def test_what_is_read_back_is_as_near_as_it_says(values, n, soft):
    bins = QuantileBins(n, soft).fit_to(np.array(values))
    numbers = Numbers.parse(values)
    assert bins.fits(numbers).all()
    edges, back = np.array(bins.edges), bins.decode(bins.encode(numbers)).to_float64()
    k = np.clip(np.searchsorted(edges, values, "right") - 1, 0, len(edges) - 2)
    width = np.diff(edges)[k]
    bound = width * (1 + 1e-9) * (2.0**-24 * len(edges) if soft else 0.5)
    least = np.finfo(np.float64).smallest_subnormal
    assert np.all(np.abs(back - values) <= bound + 1e-9 * np.abs(values) + least)


@pytest.mark.parametrize(
    ("values", "edges"),
    [([], (0.0, 1.0)), ([np.nan, np.inf], (0.0, 1.0)), ([0.0], (0.0, 1.0)), ([-7.0], (-7.0, 0.0))],
)
def test_too_little_to_fit_to(values, edges):
    assert QuantileBins().fit_to(np.array(values)).edges == edges


@pytest.mark.parametrize("output", ["out.parquet", "shards/"])
def test_encode_fits_the_edges(output, tmp_path):
    out = tmp_path / output
    source = write_texts(tmp_path / "in.jsonl", [f"v {one} kg" for one in VALUES])
    summary = numtok.encode_files(
        source, f"{tmp_path}/{output}", numbers="xval,quantile_bins:5,soft"
    )
    (_, bins) = summary.representations
    assert bins == QuantileBins.fit(Numbers.parse(VALUES), 5, soft=True)
    assert summary.fit is not None and summary.fit.xval is not None
    assert (summary.fit.numbers, summary.left_as_text) == (12, {})
    table = pq.read_table(next(out.glob("*.parquet")) if out.is_dir() else out)
    assert [row[0] for row in table["number_quantile"].to_pylist()] == column_values(bins, VALUES)
    again = tokenizer_of(out).encode_batch(["v 3.4 kg", "v 1e9 kg"])
    assert again["number_quantile"].to_pylist() == [[pytest.approx(3)], []]


def test_edges_are_of_magnitudes_beside_a_representation_without_sign(tmp_path):
    source = write_texts(tmp_path / "in.jsonl", [f"v {one} kg" for one in VALUES])
    numbers = [QuantileBins(5), FoNE(2, 2)]
    summary = numtok.encode_files(source, tmp_path / "out.arrow", numbers=numbers)
    held = [text.removeprefix("-") for text in VALUES if text != "100"]
    (given, _) = summary.representations
    assert given == QuantileBins.fit(Numbers.parse(held), 5)
    summary = numtok.encode_files(source, tmp_path / "2.arrow", numbers=[given])
    assert summary.fit is None and summary.representations == (given,)


def test_names_and_statistics():
    (bins,) = parse("quantile_bins:7,soft")
    assert bins == QuantileBins(7, True) and from_dict(bins.to_dict()) == bins
    statistics = Statistics.of_numbers(Numbers.parse(VALUES))
    found = {loss.name: loss for loss in losses(statistics)}
    assert found["quantile_bins"].left_as_text == 0
    assert found["quantile_bins:32,soft"].worst_error < found["quantile_bins"].worst_error
    assert losses(Statistics.of_numbers(Numbers.parse([])))
