"""Estimates of one number for a prompt, from many texts that a model wrote: what lies in their
middle, and how far they are apart.

Regression by decoding, as RegressLM does it, which draws 128 answers to a query (README of
google-deepmind/regress-lm). The median of them has the least absolute error, the mean the least
squared one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from numtok_torch.model.backbone import ModelError

REDUCTIONS = ("median", "mean")


@dataclass(frozen=True)
class Estimate:
    """Summarises the numbers in the texts of one prompt.

    Attributes:
        value: the median or the mean of ``samples``; NaN if there are none.
        interval: (lower, upper), between which the middle ``coverage`` of the samples lies.
        samples: the first number of each text that holds one.

    Example:
        >>> numbers_of_texts = [[5.0], [7.0, 99.0], [6.0]]
        >>> Estimate.of(numbers_of_texts, reduce="median", coverage=0.5)
        Estimate(value=6.0, interval=(5.5, 6.5), samples=[5.0, 7.0, 6.0])
    """

    value: float
    interval: tuple[float, float]
    samples: list[float]

    @classmethod
    def of(cls, values: Sequence[Sequence[float]], reduce: str, coverage: float) -> Estimate:
        """Estimate from the numbers of each text, NaN for what is no number."""
        firsts = [one[0] for one in values if one and np.isfinite(one[0])]
        if not firsts:
            return cls(np.nan, (np.nan, np.nan), [])
        low, high = np.quantile(firsts, [(1 - coverage) / 2, (1 + coverage) / 2]).tolist()
        value = np.median(firsts) if reduce == "median" else np.mean(firsts)
        return cls(float(value), (low, high), firsts)


def options_of_samples(
    samples: int, reduce: str, coverage: float, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the options of transformers' ``generate`` under which so many texts are drawn.
    ModelError for options that make no sense together.
    """
    if reduce not in REDUCTIONS or samples < 1 or not 0 < coverage < 1:
        raise ModelError(
            f"samples={samples} must be positive, reduce={reduce!r} one of"
            f" {', '.join(map(repr, REDUCTIONS))}, coverage={coverage} between 0 and 1"
        )
    several = {"num_return_sequences", "num_beams"} & options.keys()
    if several or not options.get("do_sample", True):
        raise ModelError(
            "samples says how many texts to draw for each prompt; leave out num_return_sequences,"
            " num_beams and do_sample=False"
        )
    return {"num_return_sequences": samples, "do_sample": True}
