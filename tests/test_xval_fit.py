"""XVal.fit: a scale from a corpus."""

from __future__ import annotations

import numpy as np
import pytest

from numtok import Numbers
from numtok.errors import RepresentationError
from numtok.representations import XVal


def test_fit_to_the_largest() -> None:
    numbers = Numbers.parse(["1", "-200", "0", "1e400", "50"])
    xval = XVal.fit(numbers)
    assert xval == XVal(scale=5.0 / 200, clip=5.0)
    kept = numbers.select(np.array([0, 1, 2, 4]))
    assert not xval.clipped(kept).any()
    assert xval.encode(kept)["number_scaled"].to_pylist() == pytest.approx([0.025, -5, 0, 1.25])
    np.testing.assert_allclose(xval.decode(xval.encode(kept)).to_float64(), [1, -200, 0, 50], rtol=1e-7)


def test_fit_to_a_quantile_clips_the_rest() -> None:
    numbers = Numbers.parse([*range(1, 1000), 10**9])
    xval = XVal.fit(numbers, target=2.0, quantile=0.99)
    assert xval.clip == 2.0 and xval.scale == pytest.approx(2 / 990, rel=1e-3)
    assert int(xval.clipped(numbers).sum()) == 10
    assert max(xval.encode(numbers)["number_scaled"].to_pylist()) == 2.0


def test_fit_refuses_what_gives_no_scale() -> None:
    with pytest.raises(RepresentationError, match="none of the 2 numbers"):
        XVal.fit(Numbers.parse(["0", "1e999"]))
    with pytest.raises(RepresentationError, match="none of the 0 numbers"):
        XVal.fit(Numbers.parse([]))
    with pytest.raises(RepresentationError, match="target"):
        XVal.fit(Numbers.parse(["1"]), target=0)
    with pytest.raises(RepresentationError, match="quantile"):
        XVal.fit(Numbers.parse(["1"]), quantile=1.5)
