"""Ask a frozen pretrained model for numbers: each answer is read out of the hidden state of the last
token of a question, by ridge regression.

Eight tasks, each as a question to SmolLM2-135M-Instruct, whose weights do not change. Numbers are
shown by its own digits, or by one token and a layer of features that no training has touched; two
rows train the layer through the frozen model.
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
from benchmarks.evidence.learning import Course
from benchmarks.evidence.plots import dots, shown
from benchmarks.evidence.store import Result, Settings, Store
from benchmarks.evidence.tables_by_heads import line, table
from numtok_torch import NumberModel

NAME = "pretrained_frozen"
TRAINED = ", trained layer"
OWN = "digits:1,bare"
NUMBERS: dict[str, Any] = {
    OWN: numtok.Digits(1, brackets=False),
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
STEPS = {"smoke": 3, "small": 100, "full": 2000}  # of a trained layer
BATCH, RATE = 32, 0.003
VALIDATION = 0.25  # of the rows to learn from, on which the regression's strength is chosen
STRENGTHS = tuple(10.0**power for power in range(-2, 7))
ROWS = 50  # at once through the model

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
UNASKED = " Give the result as your final answer. Do not include units."  # what GSM-Symbolic ends with here


def _operation(sign: str, apply: Callable[[int, int], float], low: int, high: int) -> Any:
    def draw(drawn: random.Random) -> Drawn:
        a, b = drawn.randrange(low, high), drawn.randrange(low, high)
        return f"What is {a} {sign} {b}? Answer:", apply(a, b)

    return draw


def _larger(drawn: random.Random) -> Drawn:
    a, b = (round(10 ** drawn.uniform(0, 4), 1) for _ in range(2))
    return f"Which is larger, {a} or {b}? Answer:", max(a, b)


def _conversion(drawn: random.Random) -> Drawn:
    (one, other), factor = drawn.choice(list(UNITS.items()))
    value = float(f"{10 ** drawn.uniform(0, 4):.4g}")
    return f"What are {value:g} {one} in {other}? Answer:", value * factor


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
MAGNITUDES = ("product", "ratio", "larger", "conversion", "read back")  # answers are logarithms
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
    """Return different questions with their answers, and how many of them are to learn from."""
    if task in ("diabetes", "breast cancer"):
        names, values, answers = table(task)
        order = np.random.default_rng(seed).permutation(len(values))
        lines = [line(names, values[k], answers[k]) for k in order]
        pairs = [
            (re.sub(r"(?<= =).*", "", text), answers[k])
            for text, k in zip(lines, order, strict=True)
        ]
        return pairs[: TRAINING[size] + ASKED[size]], TRAINING[size]
    count = TRAINING[size] + ASKED[size]
    if task == "read back":
        return _read_back(count, seed), TRAINING[size]
    drawn, found = random.Random(f"{task} {seed}"), dict[str, float]()
    while len(found) < count:
        text, answer = TASKS[task](drawn)
        found[text] = answer
    return list(found.items()), TRAINING[size]


def _read_back(count: int, seed: int) -> list[Drawn]:
    drawn, found = random.Random(seed), dict[str, float]()
    for question in gsm8k_questions(seed):
        values = [one.value for one in numtok.extract(question)][: len(ORDINALS)]
        if len(values) > 1 and all(0 < value < 100_000 for value in values):
            which = drawn.randrange(len(values))
            asked = f"{question} The {ORDINALS[which]} number of this question is:"
            found[asked] = float(values[which])
        if len(found) == count:
            break
    return list(found.items())


def gsm8k_questions(seed: int) -> Iterator[str]:
    """Yield questions of GSM8K with names and numbers drawn anew (GSM-Symbolic), without end."""
    try:
        from reasoning_gym import create_dataset
    except ModuleNotFoundError as error:
        raise LookupError("pip install reasoning-gym: it has the questions of GSM8K") from error
    for first in itertools.count(seed * 1_000_000, 1_000):
        for one in create_dataset("gsm_symbolic", seed=first, size=1_000):
            yield one["question"].removesuffix(UNASKED)


def run(settings: Settings, store: Store, folder: Path) -> Result:
    """Ask every task."""
    size, numbers, seed = settings["size"], settings["numbers"], settings["seed"]
    backbone, began = pretrained.backbone().to(learning.DEVICE), time.process_time()
    tasks = PICTURED if numbers.endswith(TRAINED) else tuple(TASKS)  # an hour of a core for all
    if size == "smoke":
        tasks = ("sum",)
    found = {task: asked(backbone, task, numbers, size, seed, folder / task) for task in tasks}
    seconds = round(time.process_time() - began, 1)
    return {"device": pretrained.device_name(), "seconds": seconds, "tasks": found}


def asked(
    backbone: Any, task: str, numbers: str, size: str, seed: int, folder: Path
) -> dict[str, Any]:
    """Read the hidden states once, fit the regression on them, and ask it."""
    pairs, known = questions(task, size, seed)
    texts = [text for text, _ in pairs]
    seen = encode(texts[:known], NUMBERS[numbers], folder, tokenizer=pretrained.folder())
    unseen = seen.like(texts[known:])
    answers = np.array([answer for _, answer in pairs])
    targets = np.log10(answers) if task in MAGNITUDES else answers
    torch.manual_seed(seed)
    trained = numbers.endswith(TRAINED)
    options: dict[str, Any] = {"projection": "linear"} if trained and "fone" in numbers else {}
    options |= pretrained.published(numbers)
    model = NumberModel.build(backbone, seen.schema, seen.tokenizer, embedding=options)
    model.eval().to(learning.DEVICE)
    found: dict[str, Any] = {}
    if trained:
        course = Course(STEPS[size], BATCH, RATE, seed)
        found["losses"] = train_layer(model, seen.batch(), targets[:known], course)
    states = [last_states(model, one) for one in (seen, unseen)]
    said, strength = ridge(states[0], targets[:known], states[1])
    if task in MAGNITUDES:
        said = 10**said
    return {**found, "strength": strength, **scored(said, answers[known:], task)}


def last_states(model: NumberModel, encoded: Encoded) -> Floats:
    """Return the hidden state of each row's last token, float64 (rows, width)."""
    batch = encoded.batch()
    by_length = batch["attention_mask"].sum(1).argsort()  # so that a batch is hardly padded
    states = np.empty((len(by_length), pretrained.WIDTH))
    with torch.no_grad():
        for rows in by_length.split(ROWS):
            some = {name: stream[rows] for name, stream in batch.items()}
            states[rows.numpy()] = _last(model, learning.cut(some)).double().cpu().numpy()
    return states


def _last(model: NumberModel, rows: dict[str, Tensor]) -> Tensor:
    hidden = model(**learning.placed(rows)).hidden  # (rows, tokens, width)
    ends = rows["attention_mask"].sum(1) - 1  # (rows,)
    last: Tensor = hidden[torch.arange(len(ends)), ends]
    return last


def train_layer(
    model: NumberModel, batch: dict[str, Tensor], targets: Floats, course: Course
) -> list[float]:
    """Train the layer, through the frozen model, with a linear head on the last hidden state; return
    the losses.
    """
    for one in model.backbone.parameters():
        one.requires_grad_(False)
    head = nn.Sequential(nn.LayerNorm(pretrained.WIDTH), nn.Linear(pretrained.WIDTH, 1))
    head.to(learning.DEVICE)
    wanted = torch.tensor((targets - targets.mean()) / targets.std(), dtype=torch.float32)
    assert model.embedding is not None
    weights = [*model.embedding.parameters(), *head.parameters()]
    optimizer, losses = torch.optim.AdamW(weights, course.rate, weight_decay=0.0), []
    for step, chosen in zip(
        range(course.steps), learning.orders(len(wanted), course), strict=False
    ):
        for group in optimizer.param_groups:
            group["lr"] = course.rate * min((step + 1) / (0.2 * course.steps), 1.0)
        rows = learning.cut({name: stream[chosen] for name, stream in batch.items()})
        said = head(_last(model, rows))[:, 0]
        loss = nn.functional.mse_loss(said, wanted[chosen].to(learning.DEVICE))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        losses.append(loss.item())
    return learning.shown(losses)


def ridge(states: Floats, targets: Floats, unseen: Floats) -> tuple[Floats, float]:
    """Return what ridge regression says of unseen states, and its strength, which is chosen on the
    last quarter of the rows to learn from.
    """
    kept = round(len(states) * (1 - VALIDATION))
    errors = {
        strength: float(
            np.mean((_fitted(states[:kept], targets[:kept], states[kept:], strength) - targets[kept:]) ** 2)
        )
        for strength in STRENGTHS
    }  # fmt: skip
    best = min(errors, key=errors.__getitem__)
    return _fitted(states, targets, unseen, best), best


def _fitted(states: Floats, targets: Floats, unseen: Floats, strength: float) -> Floats:
    mean, spread = states.mean(0), states.std(0) + 1e-6
    known, asked = (states - mean) / spread, (unseen - mean) / spread
    kernel = known @ known.T + strength * np.eye(len(known))
    weights = known.T @ np.linalg.solve(kernel, targets - targets.mean())
    return np.asarray(asked @ weights + targets.mean(), np.float64)


def scored(said: Floats, answers: Floats, task: str) -> Result:
    """Return R², of logarithms where magnitudes are asked, and the median error."""
    errors = np.abs(said - answers)
    scale = np.log10 if task in MAGNITUDES else np.asarray
    left, spread = scale(said) - scale(answers), scale(answers) - scale(answers).mean()
    return {
        "asked": len(answers),
        "r2": round(float(1 - np.sum(left**2) / np.sum(spread**2)), 4),
        "median_error": round(float(np.median(errors)), 4),
        "median_relative_error": round(float(np.median(errors / np.abs(answers))), 5),
    }


def section(results: list[tuple[Settings, Result]], plots: Path) -> str:
    """Return tables of median relative errors and R², means over seeds, and a picture of the errors."""
    by = tables.gathered(
        ((settings["numbers"], task), found)
        for settings, result in results
        if settings["size"] == "small"
        for task, found in result["tasks"].items()
    )
    parts = []
    for key, form, said in (
        ("median_relative_error", ".1%", "Median relative error of the answers, unseen questions"),
        ("r2", ".2f", "R², of the logarithms where answers are of many magnitudes"),
    ):
        rows = [
            [f"`{numbers}`".replace(TRAINED + "`", "`" + TRAINED),
             *(tables.mean((one[key] for one in by.get((numbers, task), [])), form) for task in TASKS)]
            for numbers in NUMBERS
        ]  # fmt: skip
        parts += [f"{said}:", tables.markdown(["", *TASKS], rows)]
    values = {
        task: {
            numbers: [one["median_relative_error"] for one in by[numbers, task]]
            for numbers in NUMBERS
            if (numbers, task) in by
        }
        for task in PICTURED
    }
    if any(values.values()):
        picture = plots / f"{NAME}.svg"
        dots(picture, values, "median relative error", log=True)
        parts.append(shown(picture, "Median relative error by representation", values))
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
    sure="Likely, for estimates, with three seeds.",
    rows=(f"`{OWN}`", "`xval`", "`logfourier`", "`bits`"),
    columns=("sum", "conversion"),
    picture="pretrained_frozen.svg",
    differs=f"""\
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
