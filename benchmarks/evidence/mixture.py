"""xVal, section 3.4: a mixture in place of a single value, where answers are of several kinds or of
many magnitudes.

Two tasks. ``two answers``: x is followed by x in seven cases of ten, else by -x. A scalar head can
only predict their mean, 0.4 x, which is never right. ``magnitudes``: a is followed by 2 a, for a
from a millionth to a million; the error is counted in decades.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.evidence import learning, tables
from benchmarks.evidence.arithmetic import first_value
from benchmarks.evidence.corpus import Encoded, encode
from benchmarks.evidence.experiment import Experiment
from benchmarks.evidence.learning import Schedule
from benchmarks.evidence.plots import learning_curves
from benchmarks.evidence.store import Result, Settings, Store
from numtok.representations import ExponentBins
from numtok_torch import NumberModel, head_from_schema

NAME = "mixture"
TWO = "two answers"
FROM, SCALE = ", from 1e-7", 1e7  # a head that is logarithmic from 1e-7 on, not from 1 on
TASKS = {
    TWO: (("xval", "scalar"), ("xval", "mixture"), ("xval", "quantiles")),
    "magnitudes": (
        ("xval", "scalar"),
        ("xval:log", "scalar"),
        ("xval:log", "mixture"),
        ("xval:log", "mixture" + FROM),
        ("logfourier", "mixture"),
        ("logfourier", "mixture" + FROM),
        ("exponent_bins", "mixture"),
        ("exponent_bins, wide", "mixture"),
    ),
}
WIDE = {  # 20 bins a decade, as by default
    "exponent_bins, wide": ExponentBins(280, low=1e-7, high=1e7)
}
STEPS = {"smoke": 10, "small": 600, "full": 10_000}
SEEDS = {"smoke": (0,), "small": (0, 1, 2), "full": (0, 1, 2, 3, 4)}
SAMPLES = {"smoke": 150, "small": 20_000, "full": 200_000}
HELD_OUT = {"smoke": 10, "small": 1000, "full": 10_000}
CURVE_QUESTIONS = 200  # questions for a point of a learning curve


def phases(size: str) -> list[list[Settings]]:
    """Return every pair of representation and head, with every seed."""
    return [
        [
            {"size": size, "task": task, "numbers": numbers, "head": head, "seed": seed}
            for task, pairs in TASKS.items()
            for numbers, head in (pairs[1:3] if size == "smoke" else pairs)
            for seed in SEEDS[size]
        ]
    ]


def samples(task: str, count: int, seed: int) -> list[tuple[float, float]]:
    """Return pairs of question and answer."""
    draw = random.Random(f"{task} {seed}")
    if task == "magnitudes":
        values = [10 ** draw.uniform(-6, 6) for _ in range(count)]
        return [(value, 2 * value) for value in values]
    values = [draw.uniform(1, 4) for _ in range(count)]
    return [(value, value if draw.random() < 0.7 else -value) for value in values]


def text(pair: tuple[float, float]) -> str:
    """Return a question with its answer.

    >>> text((3.14159, -3.14159))
    'x: 3.142 gives -3.142;'
    """
    return f"x: {pair[0]:.4g} gives {pair[1]:.4g};"


def run(settings: Settings, store: Store, folder: Path) -> Result:
    """Train a model with a head, and ask it unseen questions."""
    size, task, seed = settings["size"], settings["task"], settings["seed"]
    seen, unseen = samples(task, SAMPLES[size], seed), samples(task, HELD_OUT[size], seed + 1000)
    numbers = settings["numbers"]
    encoded = encode([text(pair) for pair in seen], WIDE.get(numbers, numbers), folder)
    torch.manual_seed(seed)
    model = learning.build_llama(encoded, 64, 2)
    kind = settings["head"].removesuffix(FROM)
    options: dict[str, Any] = {"scale": SCALE} if kind != settings["head"] else {}
    head = head_from_schema(encoded.schema, 64, head=kind, **options)
    model = NumberModel(model.backbone, model.embedding, head)
    schedule = Schedule(STEPS[size], 128, 0.002, seed)
    result = learning.train(
        model,
        learning.shuffled_batches(encoded.batch(objective="causal"), schedule),
        schedule,
        lambda: float(ask(model, encoded, task, unseen[:CURVE_QUESTIONS])["within_10_percent"]),
    )
    return {**result, **ask(model, encoded, task, unseen)}


def ask(
    model: NumberModel, encoded: Encoded, task: str, unseen: Sequence[tuple[float, float]]
) -> Result:
    """Return the errors of the model's answers: squared, relative to a possible answer, and in
    decades. An answer that is no number counts as zero.
    """
    prompts = [text(pair).split(" gives")[0] + " gives" for pair in unseen]
    texts = learning.write_answers(model, encoded, prompts, "x: 1 gives 1;", 3)
    predicted = np.array([first_value(one) for one in texts])
    unparseable, predicted = float(np.isnan(predicted).mean()), np.nan_to_num(predicted)
    asked, right = np.array(unseen).T
    errors = np.abs(predicted - right)
    if task == TWO:  # either sign is a possible answer
        errors = np.minimum(errors, np.abs(predicted + right))
    with np.errstate(divide="ignore"):
        decades = np.abs(np.log10(np.abs(predicted)) - np.log10(np.abs(right)))
    return {
        "unparseable": unparseable,
        "squared_error": round(float(np.mean((predicted - right) ** 2)), 4),
        "within_10_percent": float(np.mean(errors / np.abs(right) < 0.1)),
        "median_of_answer_over_question": round(float(np.median(predicted / asked)), 4),
        "median_decades": round(float(np.median(decades)), 6),
        "examples": [f"{prompt}{one}" for prompt, one in zip(prompts[:3], texts, strict=False)],
    }


def section(results: list[tuple[Settings, Result]], plots: Path) -> str:
    """Return a table of errors, means over seeds, and learning curves."""
    columns = {
        "within_10_percent": "within 10% of an answer",
        "median_of_answer_over_question": "answer / x, median",
        "median_decades": "error in decades, median",
    }
    by_row = tables.group_values(
        ((settings["task"], settings["numbers"], settings["head"]), result)
        for settings, result in results
    )
    order = [(task, *pair) for task, pairs in TASKS.items() for pair in pairs]
    rows = {key: by_row[key] for key in order if key in by_row}
    lines = [
        [
            "{}: `{}`, {}".format(*key),
            *(tables.mean((run[column] for run in runs), ".3f") for column in columns),
            tables.mean((run.get("squared_error") for run in runs), ".2f") * (key[0] == TWO),
            str(len(runs)),
            verdict(rows, *key),
        ]
        for key, runs in rows.items()
    ]
    heads = ["", *columns.values(), "squared error", "seeds", "verdict: better than the scalar"]
    named = {"{}: {}, {}".format(*key): runs for key, runs in rows.items()}
    drawn = learning_curves(
        plots / f"{NAME}.svg", named, "Answers within 10%", "within 10% of an answer"
    )
    return "\n\n".join(filter(None, [tables.markdown(heads, lines), drawn]))


def verdict(
    rows: dict[tuple[str, str, str], list[Result]], task: str, numbers: str, head: str
) -> str:
    """Return whether a head is near one of two answers more often than the scalar head; "" for the
    other task, about which the paper says nothing.
    """
    if task != TWO or head == "scalar":
        return ""
    ours, scalar = (
        [run["within_10_percent"] for run in rows[task, numbers, name]] for name in (head, "scalar")
    )
    return tables.verdict(ours, scalar, HELD_OUT["small"])


EXPERIMENT = Experiment(
    NAME,
    "xVal, section 3.4 (left there for the future)",
    "No figures. Where a number has several likely values, 'we therefore suspect that generalizing"
    " the number-head such that instead of predicting a scalar for each number, it fits a mixture of"
    " Gaussians, would improve this performance'. The paper names no measure, and speaks of capturing"
    " an uncertain distribution.",
    phases,
    run,
    section,
    question="Is a mixture of Gaussians a better answer than a single value?",
    result=(
        "Where two answers are possible, a scalar head predicts their mean, which is neither; mixture"
        " and quantile heads predict one of the two. The scalar head stays ahead in squared error, as"
        " nothing is nearer than the mean."
    ),
    confidence="Shown, where two answers are possible, with three seeds.",
    rows=(f"{TWO}: `xval`, scalar", f"{TWO}: `xval`, mixture"),
    columns=("within 10% of an answer", "squared error"),
    picture="mixture.svg",
    setup=f"""\
The tasks are ours; {STEPS["small"]} steps of 128, one rate.

- **Two answers**: after x stands x in seven cases of ten, else -x. A question has four digits, and
  mostly stands in the training too, with either answer.
- **Magnitudes**: after a stands 2a, for a of twelve decades, from 1e-6 on. `exponent_bins` holds ten of
  them as it is, and all of them if made wider.
- **Heads** of a mixture are logarithmic from 1e-4 on. Heads of bins are logarithmic from the smallest
  value on that they hold, and heads named `{FROM[2:]}` from there on.""",
    verdict="""\
Shown, where two answers are possible. A scalar head predicts their mean, which is neither. A mixture
predicts one of them, and so does the median of the quantile head. In squared error the scalar stays
ahead, as it must: nothing is nearer than the mean.

The paper says nothing of many magnitudes with one answer each. There, the representation and the head
must tell small magnitudes apart:

- Behind `logfourier`, a mixture that is logarithmic from 1e-4 on has 96%, as `exponent_bins` made wide.
  From 1e-7 on, the mixture behind `logfourier` has nearly all.
- `xval:log`, which hardly shows what is below 0.1, has about 60% with either head.""",
)
