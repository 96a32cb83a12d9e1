"""A frozen pretrained model that is asked for numbers. Each answer is read from the hidden state of
the last token of a question, by ridge regression.

Eight tasks, each as a question to SmolLM2-135M-Instruct, whose weights do not change. Numbers are
shown by the model's own digits, or by one token and an untrained layer of features. Two rows train
the layer through the frozen model.
"""

from __future__ import annotations

import itertools
import random
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

import numtok
from benchmarks.evidence import learning, pretrained, tables
from benchmarks.evidence.corpus import Encoded, encode
from benchmarks.evidence.experiment import Experiment
from benchmarks.evidence.learning import Schedule
from benchmarks.evidence.plots import dots, picture_link
from benchmarks.evidence.store import Result, Settings, Store
from benchmarks.evidence.tables_by_heads import line, table
from numtok_torch import NumberModel

NAME = "pretrained_frozen"
TRAINED = ", trained layer"
OWN_DIGITS = "digits:1,bare"
NUMBERS: dict[str, Any] = {
    OWN_DIGITS: numtok.Digits(1, brackets=False),
    "digits:1": "digits:1",
    "xval": "xval",
    "xval" + TRAINED: "xval",
    "xval:log": "xval:log",
    "logfourier": "logfourier",
    "bits": "bits",
    "quantile_bins:32,soft": "quantile_bins:32,soft",
    "fone:5,4": "fone:5,4",
    "fone:5,4" + TRAINED: "fone:5,4",
}
SEEDS = {"smoke": (0,), "small": (0, 1, 2), "full": (0, 1, 2, 3, 4)}
TRAINING = {"smoke": 24, "small": 300, "full": 3000}
ASKED = {"smoke": 12, "small": 400, "full": 4000}
STEPS = {"smoke": 3, "small": 100, "full": 2000}  # steps of a trained layer
BATCH, RATE = 32, 0.003
VALIDATION = 0.25  # share of the training rows on which the regression's strength is chosen
STRENGTHS = tuple(10.0**power for power in range(-2, 7))
ROWS = 50  # rows of a batch

Floats = npt.NDArray[np.float64]
Drawn = tuple[str, float]  # question and answer
UNITS = {
    ("miles", "kilometres"): 1.609344,
    ("pounds", "kilograms"): 0.45359237,
    ("inches", "centimetres"): 2.54,
    ("feet", "metres"): 0.3048,
    ("gallons", "litres"): 3.785411784,
    ("hours", "seconds"): 3600.0,
}
ORDINALS = ("first", "second", "third", "fourth")
SUFFIX = " Give the result as your final answer. Do not include units."  # of every question of GSM-Symbolic


def _operation(sign: str, apply: Callable[[int, int], float], low: int, high: int) -> Any:
    """Return a function that draws a question about two whole numbers from ``low`` up to ``high``."""

    def draw(source: random.Random) -> Drawn:
        a, b = source.randrange(low, high), source.randrange(low, high)
        return f"What is {a} {sign} {b}? Answer:", apply(a, b)

    return draw


def _larger(source: random.Random) -> Drawn:
    """Draw a question for the larger of two numbers from 1 to 10,000."""
    a, b = (round(10 ** source.uniform(0, 4), 1) for _ in range(2))
    return f"Which is larger, {a} or {b}? Answer:", max(a, b)


def _conversion(source: random.Random) -> Drawn:
    """Draw a question for a value from 1 to 10,000 in another unit."""
    (unit, other), factor = source.choice(list(UNITS.items()))
    value = float(f"{10 ** source.uniform(0, 4):.4g}")
    return f"What are {value:g} {unit} in {other}? Answer:", value * factor


TASKS: dict[str, Any] = {
    "sum": _operation("+", lambda a, b: a + b, 100, 1000),
    "product": _operation("*", lambda a, b: a * b, 10, 100),
    "ratio": _operation("/", lambda a, b: a / b, 100, 1000),
    "larger": _larger,
    "conversion": _conversion,
    "read back": None,
    "diabetes": None,
    "breast cancer": None,
}
LOG_TASKS = ("product", "ratio", "larger", "conversion", "read back")  # logarithms are predicted
PICTURED: tuple[str, ...] = ("sum", "product", "conversion")


def phases(size: str) -> list[list[Settings]]:
    """Return every representation with every seed; a run has all tasks."""
    return [
        [
            {"size": size, "numbers": numbers, "seed": seed}
            for seed in SEEDS[size]
            for numbers in (NUMBERS if size != "smoke" else ("xval" + TRAINED,))
        ]
    ]


def questions(task: str, size: str, seed: int) -> tuple[list[Drawn], int]:
    """Return different questions with their answers, and how many of them are for the training."""
    count = TRAINING[size] + ASKED[size]
    if task in ("diabetes", "breast cancer"):
        names, values, answers = table(task)
        order = np.random.default_rng(seed).permutation(len(values))[:count]
        lines = [line(names, values[k], answers[k]) for k in order]
        pairs = [
            (re.sub(r"(?<= =).*", "", text), answers[k])
            for text, k in zip(lines, order, strict=True)
        ]
        return pairs, TRAINING[size]
    if task == "read back":
        return _read_back(count, seed), TRAINING[size]
    source, drawn = random.Random(f"{task} {seed}"), dict[str, float]()
    while len(drawn) < count:
        text, answer = TASKS[task](source)
        drawn[text] = answer
    return list(drawn.items()), TRAINING[size]


def _read_back(count: int, seed: int) -> list[Drawn]:
    """Return questions of GSM8K, each followed by the question for one of its first four numbers."""
    source, drawn = random.Random(seed), dict[str, float]()
    for question in gsm8k_questions(seed):
        values = [number.value for number in numtok.extract(question)][: len(ORDINALS)]
        if len(values) > 1 and all(0 < value < 100_000 for value in values):
            index = source.randrange(len(values))
            asked = f"{question} The {ORDINALS[index]} number of this question is:"
            drawn[asked] = float(values[index])
        if len(drawn) == count:
            break
    return list(drawn.items())


def gsm8k_questions(seed: int) -> Iterator[str]:
    """Yield questions of GSM8K with names and numbers drawn anew (GSM-Symbolic), without end."""
    try:
        from reasoning_gym import create_dataset
    except ModuleNotFoundError as error:
        raise LookupError("pip install reasoning-gym: it has the questions of GSM8K") from error
    for first in itertools.count(seed * 1_000_000, 1_000):
        for entry in create_dataset("gsm_symbolic", seed=first, size=1_000):
            yield entry["question"].removesuffix(SUFFIX)


def run(settings: Settings, store: Store, folder: Path) -> Result:
    """Ask the frozen model the questions of every task."""
    size, numbers, seed = settings["size"], settings["numbers"], settings["seed"]
    backbone, began = pretrained.backbone().to(learning.DEVICE), time.process_time()
    # a trained layer takes an hour of a core for all tasks
    tasks = PICTURED if numbers.endswith(TRAINED) else tuple(TASKS)
    if size == "smoke":
        tasks = ("sum",)
    scores = {task: ask(backbone, task, numbers, size, seed, folder / task) for task in tasks}
    seconds = round(time.process_time() - began, 1)
    return {"device": pretrained.device_name(), "seconds": seconds, "tasks": scores}


def ask(
    backbone: Any, task: str, numbers: str, size: str, seed: int, folder: Path
) -> dict[str, Any]:
    """Fit the regression to the hidden states of training questions, and score it on other
    questions.
    """
    pairs, training = questions(task, size, seed)
    texts = [text for text, _ in pairs]
    seen = encode(texts[:training], NUMBERS[numbers], folder, tokenizer=pretrained.folder())
    unseen = seen.encode(texts[training:])
    answers = np.array([answer for _, answer in pairs])
    targets = np.log10(answers) if task in LOG_TASKS else answers
    torch.manual_seed(seed)
    trained = numbers.endswith(TRAINED)
    options: dict[str, Any] = {"projection": "linear"} if trained and "fone" in numbers else {}
    options |= pretrained.published(numbers)
    model = NumberModel.build(backbone, seen.schema, seen.tokenizer, embedding=options)
    model.eval().to(learning.DEVICE)
    result: dict[str, Any] = {}
    if trained:
        schedule = Schedule(STEPS[size], BATCH, RATE, seed)
        result["losses"] = train_layer(model, seen.batch(), targets[:training], schedule)
    states = [last_states(model, encoded) for encoded in (seen, unseen)]
    predicted, strength = ridge(states[0], targets[:training], states[1])
    if task in LOG_TASKS:
        predicted = 10**predicted
    return {**result, "strength": strength, **scored(predicted, answers[training:], task)}


def last_states(model: NumberModel, encoded: Encoded) -> Floats:
    """Return the hidden state of each row's last token, float64 (rows, width)."""
    batch = encoded.batch()
    by_length = batch["attention_mask"].sum(1).argsort()  # batches then have little padding
    states = np.empty((len(by_length), pretrained.WIDTH))
    with torch.no_grad():
        for rows in by_length.split(ROWS):
            part = learning.without_padding({name: stream[rows] for name, stream in batch.items()})
            states[rows.numpy()] = _last(model, part).double().cpu().numpy()
    return states


def _last(model: NumberModel, rows: dict[str, Tensor]) -> Tensor:
    """Return the hidden state of the last token of each row of a batch, (rows, width)."""
    hidden = model(**learning.to_device(rows)).hidden  # (rows, tokens, width)
    ends = rows["attention_mask"].sum(1) - 1  # (rows,)
    last: Tensor = hidden[torch.arange(len(ends)), ends]
    return last


def train_layer(
    model: NumberModel, batch: dict[str, Tensor], targets: Floats, schedule: Schedule
) -> list[float]:
    """Train the embedding layer through the frozen model, with a linear head on the last hidden
    state, and return the losses.
    """
    for parameter in model.backbone.parameters():
        parameter.requires_grad_(False)
    head = nn.Sequential(nn.LayerNorm(pretrained.WIDTH), nn.Linear(pretrained.WIDTH, 1))
    head.to(learning.DEVICE)
    wanted = torch.tensor((targets - targets.mean()) / targets.std(), dtype=torch.float32)
    assert model.embedding is not None
    weights = [*model.embedding.parameters(), *head.parameters()]
    optimizer, losses = torch.optim.AdamW(weights, schedule.rate, weight_decay=0.0), []
    shuffled = learning.shuffled_rows(len(wanted), schedule)
    for step, rows in zip(range(schedule.steps), shuffled, strict=False):
        for group in optimizer.param_groups:
            group["lr"] = schedule.rate * min((step + 1) / (0.2 * schedule.steps), 1.0)
        part = learning.without_padding({name: stream[rows] for name, stream in batch.items()})
        predicted = head(_last(model, part))[:, 0]
        loss = nn.functional.mse_loss(predicted, wanted[rows].to(learning.DEVICE))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        losses.append(loss.item())
    return learning.mean_losses(losses)


def ridge(states: Floats, targets: Floats, unseen: Floats) -> tuple[Floats, float]:
    """Return the predictions of ridge regression for unseen states, and its strength, which is
    chosen on the last quarter of the training rows.
    """
    first = round(len(states) * (1 - VALIDATION))
    errors = {}
    for strength in STRENGTHS:
        predicted = _fitted(states[:first], targets[:first], states[first:], strength)
        errors[strength] = float(np.mean((predicted - targets[first:]) ** 2))
    best = min(errors, key=errors.__getitem__)
    return _fitted(states, targets, unseen, best), best


def _fitted(states: Floats, targets: Floats, unseen: Floats, strength: float) -> Floats:
    """Return the predictions for unseen states of a ridge regression with this strength."""
    mean, spread = states.mean(0), states.std(0) + 1e-6
    known, asked = (states - mean) / spread, (unseen - mean) / spread
    kernel = known @ known.T + strength * np.eye(len(known))
    weights = known.T @ np.linalg.solve(kernel, targets - targets.mean())
    return np.asarray(asked @ weights + targets.mean(), np.float64)


def scored(predicted: Floats, answers: Floats, task: str) -> Result:
    """Return R², of logarithms for :data:`LOG_TASKS`, and the median error, absolute and relative."""
    errors = np.abs(predicted - answers)
    scale = np.log10 if task in LOG_TASKS else np.asarray
    left, spread = scale(predicted) - scale(answers), scale(answers) - scale(answers).mean()
    return {
        "asked": len(answers),
        "r2": round(float(1 - np.sum(left**2) / np.sum(spread**2)), 4),
        "median_error": round(float(np.median(errors)), 4),
        "median_relative_error": round(float(np.median(errors / np.abs(answers))), 5),
    }


def section(results: list[tuple[Settings, Result]], plots: Path) -> str:
    """Return tables of median relative errors and R², means over seeds, and a picture of the
    errors.
    """
    scores = tables.group_values(
        ((settings["numbers"], task), score)
        for settings, result in results
        for task, score in result["tasks"].items()
    )
    parts = []
    for key, form, title in (
        ("median_relative_error", ".1%", "Median relative error of the answers, unseen questions"),
        ("r2", ".2f", "R², of the logarithms where answers are of many magnitudes"),
    ):
        rows = []
        for numbers in NUMBERS:
            runs = [scores.get((numbers, task), []) for task in TASKS]
            cells = [tables.mean((run[key] for run in some), form) for some in runs]
            rows.append([f"`{numbers}`".replace(TRAINED + "`", "`" + TRAINED), *cells])
        parts += [f"{title}:", tables.markdown(["", *TASKS], rows)]
    errors = {
        task: {
            numbers: [run["median_relative_error"] for run in scores[numbers, task]]
            for numbers in NUMBERS
            if (numbers, task) in scores
        }
        for task in PICTURED
    }
    if any(errors.values()):
        picture = plots / f"{NAME}.svg"
        dots(picture, errors, "median relative error", log=True)
        parts.append(picture_link(picture, "Median relative error by representation", errors))
    return "\n\n".join(parts)


EXPERIMENT = Experiment(
    NAME,
    "a pretrained model, frozen",
    "No paper. What does a pretrained model make of a value that it is shown, before anything in it is"
    " trained?",
    phases,
    run,
    section,
    question="Does a frozen pretrained model estimate better when it is shown values?",
    result=(
        "With `xval` or `logfourier`, the hidden state gives sums, products, ratios and conversions 10 to 40"
        " times nearer than with the model's own digits. With `bits`, `quantile_bins` and fixed `fone`"
        " features, most answers are worse than with digits."
    ),
    confidence="Likely, for estimates, with three seeds.",
    rows=(f"`{OWN_DIGITS}`", "`xval`", "`logfourier`", "`bits`"),
    columns=("sum", "conversion"),
    picture="pretrained_frozen.svg",
    setup=f"""\
- **Model**: SmolLM2-135M-Instruct, its weights as published. Some runs were on a GPU, others on a CPU, both with other work.
- **Answers** are read from the hidden state of the question's last token by ridge regression. The
  regression is fitted to {TRAINING["small"]} questions, its strength is chosen on a quarter of them, and
  {ASKED["small"]} others are asked; of the tables, all other rows.
- **The layer of a value** starts at random, as long as the word vectors, and is not trained. For
  `{TRAINED[2:]}` it is trained in {STEPS["small"]} steps of {BATCH} through the frozen model, on three tasks
  (one seed of `xval` on all but the number that is read back).
- **The number that is read back** stands in a question of GSM8K, with names and numbers drawn anew
  (GSM-Symbolic). These runs were on a CPU.""",
    verdict="""\
Likely, for estimates. Nothing is trained but the regression.

- **Values help.** Where the model is shown `xval` or `logfourier`, its hidden state gives sums,
  products, ratios and conversions 10 to 40 times nearer than with its own digits. Columns of tables are
  better too. `[NUM]` and `[/NUM]` around digits change nothing.
- **Not every value helps.** With `bits`, `quantile_bins` and fixed `fone` features most answers are
  worse than with digits, as a model that is not trained cannot read them.
- **Numbers earlier in a text** are not found by any row: half of the answers are off by over 70%. The
  last hidden state does not hold them.

- **A trained layer** lets `fone` give sums and products to 0.7% and 0.9%, four times nearer than digits, and
  conversions to 34%. `xval` hardly gains by one.

Each row has three seeds. `xval` with a trained layer has one outside of sum, product and conversion.""",
)
