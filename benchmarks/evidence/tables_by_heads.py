"""Predict a column of a real table from the others, as text. Yardsticks get the columns themselves.

Each row of a table of scikit-learn becomes a line, ``age 59, bmi 32.1 = 151;``. A model is trained
on four folds, and writes the number after the ``=`` for the fifth.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch

from benchmarks.evidence import learning, tables
from benchmarks.evidence.arithmetic import END, first_value
from benchmarks.evidence.corpus import encode
from benchmarks.evidence.experiment import Experiment
from benchmarks.evidence.learning import Schedule
from benchmarks.evidence.plots import dots, learning_curves, picture_link
from benchmarks.evidence.store import Result, Settings, Store
from numtok_torch import NumberHead, NumberModel, head_from_config, head_from_schema

NAME = "tables_by_heads"
BOOSTING, LINEAR = "gradient boosting", "linear regression"
YARDSTICKS = (BOOSTING, LINEAR)  # read the columns, not text
LOG, BINS = "xval:log", "quantile_bins:32,soft"
SWAPPED = {  # the two best representations, each with the head of the other
    f"{LOG}, head of the bins": (LOG, BINS),
    f"{BINS}, head of {LOG}": (BINS, LOG),
}
REPRESENTATIONS = (
    "xval",
    LOG,
    BINS,
    *SWAPPED,
    "fone:4,4",
    "fone:4,7",
    "bits",
    "digits:1",
)
TABLES = {"diabetes": "progression", "wine": "alcohol", "breast cancer": "worst compactness"}
SEEDS = {"smoke": (0,), "small": (0, 1, 2), "full": (0, 1, 2)}  # seeds of the folds and the weights
STEPS = {"smoke": 10, "small": 250, "full": 5000}
ROWS = {"smoke": 40, "small": None, "full": None}  # rows of a table; None for all
FOLDS = {"smoke": 2, "small": 5, "full": 5}
MODEL_SIZE = {"smoke": (32, 1), "small": (32, 2), "full": (128, 4)}
BATCH, RATE = 32, 0.002

Floats = npt.NDArray[np.float64]


def phases(size: str) -> list[list[Settings]]:
    """Return the yardsticks, then every representation, for every table and seed."""
    names = ("wine",) if size == "smoke" else tuple(TABLES)
    if size == "small":
        names = ("diabetes", "breast cancer")
    return [
        [
            {"size": size, "table": table, "numbers": numbers, "seed": seed}
            for seed in SEEDS[size]
            for table in names
            for numbers in ((BOOSTING, "xval", "digits:1") if size == "smoke" else rows_of(table))
        ]
    ]


def rows_of(table: str) -> list[str]:
    """Return the yardsticks and representations that are compared on a table. ``fone:4,4`` holds
    all numbers of diabetes, and leaves some numbers of the other tables as text.
    """
    rows = (*YARDSTICKS, *REPRESENTATIONS)
    return [row for row in rows if row != "fone:4,7" or table != "diabetes"]


def table(name: str) -> tuple[list[str], Floats, Floats]:
    """Return the names of the columns, their values (rows, columns), and the column to predict."""
    from sklearn import datasets

    load: dict[str, Callable[[], Any]] = {
        "diabetes": lambda: datasets.load_diabetes(scaled=False),
        "wine": datasets.load_wine,
        "breast cancer": datasets.load_breast_cancer,
    }
    loaded = load[name]()
    names = [str(column).replace("/", " ").replace("_", " ") for column in loaded.feature_names]
    values = np.asarray(loaded.data, np.float64)
    if name == "diabetes":
        return names, values, np.asarray(loaded.target, np.float64)
    target = names.index(TABLES[name])
    # breast cancer has each quantity as mean, error and worst; the means are kept
    kept = [k for k, column in enumerate(names) if k != target and not column.startswith("worst")]
    kept = [k for k in kept if not names[k].endswith("error")]
    return [names[k] for k in kept], values[:, kept], values[:, target]


def run(settings: Settings, store: Store, folder: Path) -> Result:
    """Train on all folds but one, and predict that one, for every fold."""
    size, numbers, seed = settings["size"], settings["numbers"], settings["seed"]
    names, values, answers = table(settings["table"])
    values, answers = values[: ROWS[size]], answers[: ROWS[size]]
    folds = np.random.default_rng(seed).permutation(len(values)) % FOLDS[size]
    lines = np.array([line(names, *row) for row in zip(values, answers, strict=True)], dtype=object)
    scores, trainings = [], []
    for fold in range(FOLDS[size]):
        seen = folds != fold
        score = functools.partial(scored, right=answers[~seen], known=answers[seen])
        if numbers in YARDSTICKS:
            scores.append(score(by_columns(numbers, values[seen], answers[seen], values[~seen])))
        else:
            texts = list(lines[seen]), list(lines[~seen])
            trainings.append(train_on_text(numbers, *texts, score, (size, seed), folder))
            scores.append(trainings[-1]["scores"])
    result = {key: [round(one[key], 4) for one in scores] for key in scores[0]}
    if trainings:
        result["losses"] = list(np.mean([one["losses"] for one in trainings], axis=0).round(5))
        result["seconds"] = round(sum(one["seconds"] for one in trainings), 1)
        result["curve"] = np.mean([one["curve"] for one in trainings], axis=0).round(4).tolist()
    return {"rows": len(values), **result}


def line(names: list[str], values: Floats, answer: float) -> str:
    """Return a row of a table as text."""
    columns = (f"{name} {value:.5g}" for name, value in zip(names, values, strict=True))
    return f"{', '.join(columns)} = {answer:.5g}{END}"


def by_columns(name: str, values: Floats, answers: Floats, unseen: Floats) -> Floats:
    """Return the predictions of a yardstick for unseen rows of columns."""
    from sklearn.ensemble import GradientBoostingRegressor
    from sklearn.linear_model import LinearRegression

    model = LinearRegression() if name == LINEAR else GradientBoostingRegressor(random_state=0)
    return np.asarray(model.fit(values, answers).predict(unseen), np.float64)


def train_on_text(
    numbers: str,
    seen: list[str],
    unseen: list[str],
    score: Callable[[Floats], dict[str, float]],
    size_and_seed: tuple[str, int],
    folder: Path,
) -> Result:
    """Train a model on the text of rows, and score what it writes for unseen rows.

    Args:
        numbers: row of the page's table.
        seen: texts of the training.
        unseen: texts whose last number is asked.
        score: returns the scores of the answers.
        size_and_seed: size of the runs, and seed of the weights.
        folder: folder for text, tokenizer and Parquet.
    """
    size, seed = size_and_seed
    representation, of_head = SWAPPED.get(numbers, (numbers, numbers))
    encoded = encode(seen, representation, folder / "own")
    torch.manual_seed(seed)
    width = MODEL_SIZE[size][0]
    model = learning.build_llama(encoded, *MODEL_SIZE[size], positions=512)
    if of_head != representation:
        other = encode(seen, of_head, folder / "other").schema
        model = NumberModel(model.backbone, model.embedding, other_head(other, width))
    schedule = Schedule(STEPS[size], BATCH, RATE, seed)
    batch = encoded.batch(labels=encoded.answer_labels("1 ="), objective="causal")
    prompts = [text[: text.index("=") + 1] for text in unseen]

    def scores() -> dict[str, float]:
        texts = learning.write_answers(model, encoded, prompts, f"= 1{END}", 12)
        return score(np.array([first_value(text) for text in texts]))

    result = learning.train(
        model, learning.shuffled_batches(batch, schedule), schedule, lambda: scores()["error"]
    )
    return {**result, "scores": scores()}


def other_head(schema: pa.Schema, width: int) -> NumberHead:
    """Return the head of another representation, with what was fitted to its data, for the values
    of any representation.
    """
    config = head_from_schema(schema, width).config()
    return head_from_config(
        config | ({"target": "number_value"} if "target" in config else {}), width
    )


def scored(predicted: Floats, right: Floats, known: Floats) -> dict[str, float]:
    """Return the mean absolute error relative to that of the median of ``known``, the share of
    answers that are no number, and R².

    Args:
        predicted: answers. NaN counts as the mean of ``known``; others are clipped to its range.
        right: right answers.
        known: answers of the training.
    """
    no_number = float(np.isnan(predicted).mean())
    predicted = np.where(np.isnan(predicted), known.mean(), predicted)
    left = predicted.clip(known.min(), known.max()) - right
    return {
        "error": float(np.abs(left).mean() / np.abs(np.median(known) - right).mean()),
        "no_number": no_number,
        "r2": float(1 - np.square(left).mean() / np.square(right - right.mean()).mean()),
    }


def section(results: list[tuple[Settings, Result]], plots: Path) -> str:
    """Return a table of errors and R², means over folds and seeds, and pictures."""
    rows = by_row(results)
    names = [name for name in TABLES if any(name in scores for scores in rows.values())]
    lines = [
        [
            numbers if numbers in YARDSTICKS else f"`{numbers}`",
            *(cell for name in names for cell in _cells(scores.get(name))),
        ]
        for numbers, scores in rows.items()
    ]
    seeds = complete(results)
    heads = [
        head
        for name in names
        for head in (
            f"{name} {tables.seed_count(seeds[name])}, error",
            "R²",
            "better than the median",
        )
    ]
    table_of_all = tables.markdown(["", *heads], lines)
    if not rows:
        return table_of_all
    picture = plots / f"{NAME}.svg"
    errors = {
        numbers: {name: score["error"] for name, score in scores.items()}
        for numbers, scores in rows.items()
    }
    dots(picture, errors, "mean absolute error, 1 for always saying the median")
    parts = [table_of_all, picture_link(picture, "Errors by table, with their spread", rows)]
    for name in names:
        runs = tables.group_values(
            (settings["numbers"], result)
            for settings, result in results
            if settings["table"] == name
        )
        curves, y = plots / f"{NAME}_{name.replace(' ', '_')}.svg", f"Error on {name}"
        parts.append(learning_curves(curves, runs, y, "error", share=False))
    return "\n\n".join(filter(None, parts))


def _cells(scores: Result | None) -> list[str]:
    """Return the cells of a table for a row."""
    if scores is None:
        return ["", "", ""]
    better = f"in {sum(error < 1 for error in scores['error'])} of {len(scores['error'])} folds"
    return [*(tables.mean(scores[key], ".2f") for key in ("error", "r2")), better]


def by_row(results: list[tuple[Settings, Result]]) -> dict[str, dict[str, Result]]:
    """Return the scores of all folds and complete seeds, by representation, then by table."""
    seeds = complete(results)
    runs = tables.group_values(
        ((settings["numbers"], settings["table"]), result)
        for settings, result in results
        if settings["seed"] in seeds[settings["table"]]
    )
    rows: dict[str, dict[str, Result]] = {name: {} for name in (*YARDSTICKS, *REPRESENTATIONS)}
    for (numbers, name), some in runs.items():
        rows[numbers][name] = {
            key: [value for run in some for value in run[key]] for key in ("error", "r2")
        }
    return {numbers: scores for numbers, scores in rows.items() if scores}


def complete(results: list[tuple[Settings, Result]]) -> dict[str, list[int]]:
    """Return the seeds for which every row of a table has a result, by table."""
    runs = Counter((settings["table"], settings["seed"]) for settings, _ in results)
    return {
        name: [seed for seed in SEEDS["small"] if runs[name, seed] == len(rows_of(name))]
        for name in TABLES
    }


EXPERIMENT = Experiment(
    NAME,
    "no paper: columns of real tables",
    "None. The question is whether a number in text says as much as a number in a table.",
    phases,
    run,
    section,
    question="Can a model predict a column of a table that it reads as text?",
    result=(
        "No model is as good as a straight line through the columns. Soft quantile bins come nearest on"
        " diabetes; on breast cancer `xval:log` is as near."
    ),
    confidence="Not shown, with three seeds of five folds; two tables of some 500 rows.",
    rows=(LINEAR, "`xval:log`", "`quantile_bins:32,soft`", "`digits:1`"),
    columns=("diabetes, error", "breast cancer, error"),
    labels={
        "diabetes, error": "diabetes: error over the median's",
        "breast cancer, error": "breast cancer: error over the median's",
    },
    picture="tables_by_heads.svg",
    setup=f"""\
- **Tables**: two of scikit-learn as text. Diabetes has 442 rows; the progression is predicted from 10
  columns. Breast cancer has 569 rows; the worst compactness is predicted from 10 means.
- **Model**: a Llama of width {MODEL_SIZE["small"][0]} with {MODEL_SIZE["small"][1]} layers and random weights,
  {STEPS["small"]:,} steps of {BATCH}, one rate.
- **Folds**: {FOLDS["small"]} with each seed; ± is over all of these.
- **Error**: the mean absolute error, over that of always answering the median. Answers are clipped to
  the range of the answers in training. An answer that is no number counts as their mean.
- **Scales and bins** are fitted for each fold, to all numbers of its training rows, whatever their
  column. `fone:4,4` has digits for all numbers of diabetes, `fone:4,7` for all of breast cancer.""",
    verdict="""\
Not shown: no model is as good as a straight line through the columns.

- **Diabetes.** Soft quantile bins come nearest, with their own head and with that of `xval:log` alike.
  `xval:log` is hardly better than always answering the median.
- **Breast cancer.** Soft bins and `xval:log` are alike, with either head.
- **Digits, `bits` and FoNE** are no better than the median. The exception is `fone:4,4` on breast
  cancer, which leaves a third of the numbers as text.

More rows and longer training may change it.""",
)
