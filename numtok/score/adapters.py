"""The same scoring inside other people's harnesses: lm-evaluation-harness, inspect_ai, and the
trainers of TRL. Each function imports its harness when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from numtok.score.compare import equal
from numtok.score.final import final_number
from numtok.score.policy import Policy, policy_named

INVALID = "[invalid]"  # what lm-evaluation-harness' own filters say where they find nothing


def register_lm_eval() -> None:
    """Make the filter ``numtok`` and the metric ``numtok_equal`` known to lm-evaluation-harness, for
    tasks in Python and in YAML.

    The filter turns each response into the number it gives, as digits, and takes ``policy:``; the
    metric is 1 where a response and the target give the same number, and takes ``policy`` and
    ``tolerance``.

    Raises:
        ImportError: if lm_eval is not installed.
    """
    import lm_eval.api.metrics  # noqa: F401  # registers the mean
    from lm_eval.api.filter import Filter
    from lm_eval.api.registry import register_filter, register_metric

    class NumberFilter(Filter):  # type: ignore[misc]  # it has no types
        """Each response as the digits of its number, or ``[invalid]``."""

        def __init__(self, policy: str = "default", **options: Any) -> None:
            super().__init__(**options)
            self.policy = policy_named(policy)

        def apply(self, resps: Iterable[Sequence[str]], docs: Sequence[Any]) -> list[list[str]]:
            """(responses of a document) for each document."""
            return [[as_digits(one, self.policy) for one in responses] for responses in resps]

    def number_metric(
        references: Sequence[Any],
        predictions: Sequence[Any],
        policy: str = "default",
        tolerance: float = 0,
        **_: Any,
    ) -> dict[str, float]:
        pairs = list(zip(predictions, references, strict=True))
        right = sum(equal(one, other, tolerance, policy) for one, other in pairs)
        return {"numtok_equal": right / len(pairs) if pairs else 0.0}

    register_filter("numtok")(NumberFilter)
    register_metric(
        metric="numtok_equal",
        higher_is_better=True,
        output_type=["generate_until"],
        aggregation="mean",
    )(number_metric)


def as_digits(text: str, policy: Policy | str = "default") -> str:
    """A text's final number in plain digits, or as a fraction; ``[invalid]`` if there is none."""
    found = final_number(text, policy)
    if found is None:
        return INVALID
    if isinstance(found.value, Fraction):
        return str(found.value)
    few = -20 <= found.value.adjusted() <= 20
    return f"{found.value:f}" if few else str(found.value)


def inspect_scorer(policy: Policy | str = "default", tolerance: float = 0) -> Any:
    """A scorer of inspect_ai: correct where the output's number is the target's.

    Raises:
        ImportError: if inspect_ai is not installed. NumtokError: for an unknown policy.
    """
    from inspect_ai.scorer import CORRECT, INCORRECT, Score, accuracy, scorer, stderr

    chosen = policy_named(policy)

    @scorer(metrics=[accuracy(), stderr()], name="numtok")  # type: ignore[untyped-decorator]
    def number() -> Any:
        async def score(state: Any, target: Any) -> Any:
            completion = state.output.completion
            right = any(equal(completion, one, tolerance, chosen) for one in target)
            return Score(
                value=CORRECT if right else INCORRECT,
                answer=as_digits(completion, chosen),
                explanation=completion,
            )

        return score

    return number()


def number_reward(
    target: str = "answer", policy: Policy | str = "default", tolerance: float = 0
) -> Callable[..., list[float]]:
    """A reward function for TRL's GRPOTrainer and its kin: 1.0 where a completion gives the number
    of the data set's column, else 0.0.

    Args:
        target: the column; its texts are read like the completions.
        policy: how texts are read and what may differ.
        tolerance: relative to the target.

    Raises:
        NumtokError: for an unknown policy. KeyError: when called without that column.
    """
    chosen = policy_named(policy)

    def numtok_reward(completions: Sequence[Any], **columns: Any) -> list[float]:
        return [
            float(equal(_text(one), wanted, tolerance, chosen))
            for one, wanted in zip(completions, columns[target], strict=True)
        ]

    return numtok_reward


def _text(completion: Any) -> str:
    """A completion may be a text or a chat, whose last message counts."""
    return completion if isinstance(completion, str) else str(completion[-1]["content"])
