"""All experiments, in the order of the page."""

from __future__ import annotations

from benchmarks.evidence import (
    bits_masked_words,
    fone_addition,
    fone_lengths,
    fone_operations,
    mixture,
    place_fermat,
    token_counts,
    xval_expressions,
    xval_interpolation,
    xval_planets,
)
from benchmarks.evidence.experiment import Experiment

_MODULES = (
    fone_addition, fone_operations, fone_lengths, xval_expressions, xval_interpolation, xval_planets, bits_masked_words, place_fermat, mixture,
    token_counts,
)  # fmt: skip
EXPERIMENTS: dict[str, Experiment] = {one.EXPERIMENT.name: one.EXPERIMENT for one in _MODULES}
