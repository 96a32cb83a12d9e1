"""Quantile bins: one ``[NUM]`` per number, shown by its place among the quantiles of a corpus,
which ``numtok encode`` fits.

In: n numbers, and m + 1 edges e_0 < … < e_m. Out, for x in bin k, e_k <= x < e_(k+1):

    number_quantile_bin, int16[n]    k                                   hard
    number_quantile, float32[n]      k + (x - e_k) / (e_(k+1) - e_k)     ``soft``

e_m itself is in the last bin. Inverse: the middle of the bin, off by half of its width at most; or
the place between its edges, off by 2^-24 m of its width at most. The soft form is what piecewise
linear encoding says of x, all k ones, one fraction and then zeros, as one number: a linear map of
that encoding goes from one vector of an edge to the next as ``QuantileBinsEmbedding`` does. On
Embeddings for Numerical Features in Tabular Deep Learning (Gorishniy et al. 2022), equation 1 and
section 3.2.1, as in the authors' package rtdl-num-embeddings, whose ``compute_bins`` has the edges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.errors import RepresentationError
from numtok.numbers.numbers import Numbers
from numtok.representations.base import Mask, SingleToken
from numtok.representations.columns import Column, numbers_from_floats

MAX_BINS = 2**15 - 1
LARGEST = 8e307  # in magnitude, of an edge: the distance of any two is finite

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class QuantileBins(SingleToken):
    """The bin of each number, between quantiles of a corpus, or with ``soft`` its place in the bin.

    Zero is a number like any other; minus zero is zero.

    Attributes:
        n: how many bins there are at most; equal quantiles make fewer.
        soft: also say where in its bin a number lies.
        edges: the edges of the bins, rising, 2 to n + 1 of them; empty until ``numtok encode`` or
            :meth:`fit` has fitted them.
        overflow: for numbers below the first edge or above the last (``"clip"``: that edge).

    Example:
        >>> import numtok
        >>> numbers = numtok.Numbers.parse(["1", "2", "3", "40", "50"])
        >>> numtok.QuantileBins.fit(numbers, n=2).edges
        (1.0, 3.0, 50.0)
    """

    n: int = 64
    soft: bool = False
    edges: tuple[float, ...] = ()
    overflow: str = "text"
    name = "quantile_bins"
    declared = (
        Column("number_quantile_bin", pa.int16(), np.int64, encoding="split"),
        Column("number_quantile", pa.float32(), np.float32, encoding="split"),
    )
    positional = ("n",)
    exact_at_edges = True
    limits: ClassVar[Mapping[str, tuple[int, int]]] = {"n": (1, MAX_BINS)}
    words: ClassVar[Mapping[str, Mapping[str, Any]]] = {"soft": {"soft": True}}
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({"soft": True},)

    def __post_init__(self) -> None:
        super().__post_init__()
        edges = np.array(self.edges)
        rising = np.all(np.diff(edges) > 0) and np.all(np.abs(edges) <= LARGEST)
        if self.edges and not (rising and 2 <= len(edges) <= self.n + 1):
            raise self.refused(
                f"edges must be 2 to n + 1 = {self.n + 1} numbers within ±{LARGEST},"
                " each larger than the one before"
            )

    @classmethod
    def fit(
        cls, numbers: Numbers, n: int = 64, soft: bool = False, overflow: str = "text"
    ) -> QuantileBins:
        """Return bins whose edges are the quantiles 0, 1/n, … 1 of the numbers, equal ones once."""
        return cls(n, soft, (), overflow).fit_to(numbers.to_float64())

    @property
    def needs_fit(self) -> bool:
        return not self.edges

    @property
    def low(self) -> float | None:
        """Return the smallest magnitude of an edge but 0; None without edges."""
        return min((abs(edge) for edge in self.edges if edge), default=None)

    @property
    def high(self) -> float | None:
        """Return the largest magnitude of an edge; None without edges."""
        return max((abs(edge) for edge in self.edges), default=None)

    def fit_to(self, values: Floats, counts: npt.NDArray[np.float64] | None = None) -> QuantileBins:
        """Return a copy whose edges are fitted to ``values``, float64[n], each of which occurs once
        or ``counts`` times. The edges are 0 and 1 if there are no values, and begin at 0 if there
        is one value only.

        As in ``compute_bins``: quantiles lie between neighbours in proportion, and equal ones are
        one. Where there are ``counts``, each is one of the values.
        """
        usable = np.abs(values) <= LARGEST
        values, counts = values[usable], None if counts is None else counts[usable]
        if not len(values):
            values, counts = np.zeros(1), None
        method: Any = "linear" if counts is None else "inverted_cdf"
        steps = np.linspace(0, 1, self.n + 1)
        edges = np.unique(np.quantile(values, steps, method=method, weights=counts) + 0.0)
        if len(edges) == 1:
            edges = np.unique([0.0, edges[0] or 1.0])
        return QuantileBins(self.n, self.soft, tuple(edges.tolist()), self.overflow)

    def columns(self) -> dict[str, Column]:
        column = self.declared[self.soft]
        return {column.name: column}

    def fits(self, numbers: Numbers) -> Mask:
        edges, values = self._edges(), numbers.to_float64()
        return np.asarray((values >= edges[0]) & (values <= edges[-1]))

    def nearest_in_range(self, numbers: Numbers) -> Numbers:
        edges = self._edges()  # not the middle of the first or the last bin
        return numbers_from_floats(np.clip(numbers.to_float64(), edges[0], edges[-1]), self.name)

    def encode(self, numbers: Numbers) -> dict[str, pa.Array]:
        edges = self._edges()
        values = np.clip(numbers.to_float64(), edges[0], edges[-1])
        bins = np.searchsorted(edges[1:-1], values, "right")
        (name,) = self.columns()
        if not self.soft:
            return {name: memory.to_arrow(bins.astype(np.int16))}
        inside = (values - edges[bins]) / (edges[bins + 1] - edges[bins])
        return {name: memory.to_arrow((bins + inside).astype(np.float32))}

    def decode(self, columns: Mapping[str, pa.Array]) -> Numbers:
        edges, (name,) = self._edges(), self.columns()
        places = columns[name].to_numpy(zero_copy_only=False).astype(np.float64)
        last = len(edges) - 2 + self.soft
        if wrong := places[~((places >= 0) & (places <= last))].tolist():
            raise self.refused(
                f"{name} holds {wrong[0]:g}, expected 0 to {last}, as it has {len(edges)} edges"
            )
        bins = np.minimum(places.astype(np.int64), len(edges) - 2)
        inside = places - bins if self.soft else 0.5
        values = edges[bins] + inside * (edges[bins + 1] - edges[bins])
        return numbers_from_floats(np.minimum(values, edges[bins + 1]), self.name)

    def _edges(self) -> Floats:
        """Return float64[m + 1]."""
        if self.needs_fit:
            raise RepresentationError(
                f"{self.name} has no edges yet: numtok.encode_files fits them to its input, and"
                " QuantileBins.fit(numtok.scan(texts)) to texts"
            )
        return np.array(self.edges)
