"""Adapters of scoring for other harnesses: lm-evaluation-harness, inspect_ai, and the trainers of
TRL. Each function imports its harness when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from numtok.score.claims import KINDS, check_kinds
from numtok.score.compare import TARGETS, equal
from numtok.score.final import final_number
from numtok.score.grounding_report import grounded_report
from numtok.score.policy import Policy, policy_named

INVALID = "[invalid]"  # what lm-evaluation-harness' own filters say where they find nothing


def register_lm_eval() -> None:
    """Make the filter ``numtok`` and the metric ``numtok_equal`` known to lm-evaluation-harness, for
    tasks in Python and in YAML.

    The filter turns each response into the number it gives, as digits, and takes ``policy:``; the
    metric is 1 where a response and the target give the same number, and takes ``policy``,
    ``target_policy`` and ``tolerance``. What the filter gives is read without a ``policy``.

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
            """Return (responses of a document) for each document."""
            return [[as_digits(one, self.policy) for one in responses] for responses in resps]

    def number_metric(
        references: Sequence[Any],
        predictions: Sequence[Any],
        policy: str = "default",
        tolerance: float = 0,
        target_policy: str = TARGETS,
        **_: Any,
    ) -> dict[str, float]:
        pairs = list(zip(predictions, references, strict=True))
        policies = {"policy": policy, "target_policy": target_policy}
        right = sum(equal(one, other, tolerance, **policies) for one, other in pairs)
        return {"numtok_equal": right / len(pairs) if pairs else 0.0}

    register_filter("numtok")(NumberFilter)
    register_metric(
        metric="numtok_equal",
        higher_is_better=True,
        output_type=["generate_until"],
        aggregation="mean",
    )(number_metric)


def as_digits(text: str | None, policy: Policy | str = "default") -> str:
    """Return a text's final number in plain digits, or as a fraction; ``[invalid]`` if there is
    none, or no text.
    """
    number = final_number(text, policy) if isinstance(text, str) else None
    if number is None:
        return INVALID
    if isinstance(number.value, Fraction):
        return str(number.value)
    few = -20 <= number.value.adjusted() <= 20
    return f"{number.value:f}" if few else str(number.value)


def inspect_scorer(
    policy: Policy | str = "default", tolerance: float = 0, target_policy: Policy | str = TARGETS
) -> Any:
    """Return a scorer of inspect_ai: correct where the output's number is the target's.

    Args:
        policy: how outputs are read, and what may differ.
        tolerance: relative to the target.
        target_policy: how targets are read.

    Raises:
        ImportError: if inspect_ai is not installed. NumtokError: for an unknown policy.
    """
    from inspect_ai.scorer import CORRECT, INCORRECT, Score, accuracy, scorer, stderr

    chosen, of_targets = policy_named(policy), policy_named(target_policy)

    @scorer(metrics=[accuracy(), stderr()], name="numtok")  # type: ignore[untyped-decorator]
    def number() -> Any:
        async def score(state: Any, target: Any) -> Any:
            completion = state.output.completion
            right = any(
                equal(completion, one, tolerance, chosen, target_policy=of_targets)
                for one in target
            )
            return Score(
                value=CORRECT if right else INCORRECT,
                answer=as_digits(completion, chosen),
                explanation=completion,
            )

        return score

    return number()


def number_reward(
    target: str = "answer",
    policy: Policy | str = "default",
    tolerance: float = 0,
    target_policy: Policy | str = TARGETS,
) -> Callable[..., list[float]]:
    """Return a reward function for TRL's GRPOTrainer and its kin: 1.0 where a completion gives the
    number of the data set's column, else 0.0, also where it has no text.

    Args:
        target: the column, of texts or numbers.
        policy: how completions are read, and what may differ.
        tolerance: relative to the target.
        target_policy: how targets that are texts are read.

    Raises:
        NumtokError: for an unknown policy. KeyError: when called without that column.
    """
    chosen, of_targets = policy_named(policy), policy_named(target_policy)

    def numtok_reward(completions: Sequence[Any], **columns: Any) -> list[float]:
        return [
            float(equal(text_of(one), wanted, tolerance, chosen, target_policy=of_targets))
            for one, wanted in zip(completions, columns[target], strict=True)
        ]

    return numtok_reward


def grounded_reward(
    sources: str = "context",
    tolerance: str | float = "rounding",
    policy: Policy | str = "default",
    ignore: Iterable[str] | None = None,
    compute: bool = True,
    without_figures: float = 1.0,
) -> Callable[..., list[float]]:
    """Return a reward function for TRL's trainers: the share of a completion's figures that its
    sources have, see :func:`numtok.score.grounded`.

    Args:
        sources: the column of the data set that has them, a text or a list of texts in each row.
        tolerance: what a figure may differ.
        policy: how figures are written, in completions and sources.
        ignore: the kinds of figures that do not count; None for all kinds.
        compute: whether a figure may be computed from two of the sources.
        without_figures: the reward of a completion without figures or without text. With 1 a model
            may learn to write none; add a reward for the answer, or lower this one.

    Raises:
        NumtokError: for a policy or kind that does not exist. KeyError: when called without the
            column.
    """
    chosen, kinds = policy_named(policy), check_kinds(KINDS if ignore is None else ignore)

    def share(completion: Any, texts: Any) -> float:
        of_one = [text_of(completion)], [texts], tolerance, chosen, kinds
        report = grounded_report(*of_one, compute=compute)
        return report.share if report.figures else without_figures

    def numtok_grounded_reward(completions: Sequence[Any], **columns: Any) -> list[float]:
        return [share(*pair) for pair in zip(completions, columns[sources], strict=True)]

    return numtok_grounded_reward


def text_of(completion: Any) -> str | None:
    """Return the text of a completion: a text, a message, or the last message of a chat; None if
    there is no text in it.
    """
    if isinstance(completion, str):
        return completion
    if isinstance(completion, Mapping):
        content = completion.get("content")
        if isinstance(content, str) or not isinstance(content, Sequence):
            return text_of(content)
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        return "".join(part for part in parts if isinstance(part, str)) or None
    if isinstance(completion, Sequence) and completion:
        return text_of(completion[-1])
    return None
