"""List all experiments, in the order of the pages."""

from __future__ import annotations

from benchmarks.evidence import (
    bits_masked_words,
    fone_arithmetic,
    fone_lengths,
    mixture,
    numeracy,
    place_fermat,
    pretrained_frozen,
    pretrained_lora,
    pretrained_words,
    tables_by_heads,
    token_counts,
    xval_expressions,
    xval_interpolation,
)
from benchmarks.evidence.experiment import Experiment

_MODULES = (
    fone_arithmetic, fone_lengths, xval_expressions, xval_interpolation, bits_masked_words, tables_by_heads, numeracy, place_fermat,
    mixture, token_counts, pretrained_frozen, pretrained_lora, pretrained_words,
)  # fmt: skip
EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT for module in _MODULES
}
