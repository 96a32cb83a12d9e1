"""Metrics: how well numbers are predicted, as texts, digit by digit, as values.

May import numtok only.
"""

from numtok_torch.metrics.metrics import (
    digit_accuracy,
    exact_match,
    log_error,
    mean_absolute_error,
    mean_squared_error,
    number_metrics,
    numbers_only,
    perplexity,
    r_squared,
    share_unparseable,
    token_losses,
    top_k_accuracy,
)

__all__ = [
    "digit_accuracy",
    "exact_match",
    "log_error",
    "mean_absolute_error",
    "mean_squared_error",
    "number_metrics",
    "numbers_only",
    "perplexity",
    "r_squared",
    "share_unparseable",
    "token_losses",
    "top_k_accuracy",
]
