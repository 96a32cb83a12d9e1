"""All experiments, in the order of the page."""

from __future__ import annotations

from benchmarks.evidence import (
    bits_masked_words,
    fone_addition,
    fone_operations,
    mixture,
    place_fermat,
    token_counts,
    xval_expressions,
    xval_planets,
)
from benchmarks.evidence.experiment import Experiment

_MODULES = (fone_addition, fone_operations, xval_expressions, xval_planets, bits_masked_words, place_fermat, mixture, token_counts)
EXPERIMENTS: dict[str, Experiment] = {one.EXPERIMENT.name: one.EXPERIMENT for one in _MODULES}
