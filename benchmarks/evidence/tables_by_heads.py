"""A real task: a column of a table from the others, as text, beside yardsticks that get the columns.

Each row of a table of scikit-learn becomes a line, ``age 59, bmi 32.1 = 151;``, and a model that is
trained on four folds writes the number behind the ``=`` for the fifth.
"""

from __future__ import annotations

import functools
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
from benchmarks.evidence.learning import Course
from benchmarks.evidence.plots import dots, learning_curves, shown
from benchmarks.evidence.store import Result, Settings, Store
from numtok_torch import NumberHead, NumberModel, head_from_config, head_from_schema

NAME = "tables_by_heads"
BOOSTING, LINEAR = "gradient boosting", "linear regression"
YARDSTICKS = (BOOSTING, LINEAR)  # get the columns
LOG, BINS = "xval:log", "quantile_bins:32,soft"
SWAPPED = {  # the two that come nearest, each with the head of the other
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
SEEDS = {"smoke": (0,), "small": (0, 1, 2), "full": (0, 1, 2)}  # of the folds and the weights
STEPS = {"smoke": 10, "small": 250, "full": 5000}
FOLDS = {"smoke": 2, "small": 5, "full": 5}
TRUNK = {"smoke": (32, 1), "small": (32, 2), "full": (128, 4)}
BATCH, RATE = 32, 0.002

Floats = npt.NDArray[np.float64]


def phases(size: str) -> list[list[Settings]]:
    """The yardsticks, then every representation."""
    tables_of = {"smoke": ("wine",), "small": ("diabetes", "breast cancer")}.get(
        size, tuple(TABLES)
    )
    return [
        [
            {"size": size, "table": table, "numbers": numbers, "seed": seed}
            for seed in SEEDS[size]
            for table in tables_of
            for numbers in ((BOOSTING, "xval", "digits:1") if size == "smoke" else rows_of(table))
        ]
    ]


def rows_of(table: str) -> list[str]:
    """What is compared on a table: the yardsticks, and every representation; ``fone:4,4`` holds all
    numbers of diabetes, and leaves some of the others as text.
    """
    every = (*YARDSTICKS, *REPRESENTATIONS)
    return [one for one in every if one != "fone:4,7" or table != "diabetes"]


def table(name: str) -> tuple[list[str], Floats, Floats]:
    """Names of the columns, their values (rows, columns), and the column that is asked for."""
    from sklearn import datasets

    load: dict[str, Callable[[], Any]] = {
        "diabetes": lambda: datasets.load_diabetes(scaled=False),
        "wine": datasets.load_wine,
        "breast cancer": datasets.load_breast_cancer,
    }
    found = load[name]()
    names = [str(one).replace("/", " ").replace("_", " ") for one in found.feature_names]
    values = np.asarray(found.data, np.float64)
    if name == "diabetes":
        return names, values, np.asarray(found.target, np.float64)
    chosen = names.index(TABLES[name])
    # of breast cancer, the means say what is asked of the worst
    kept = [k for k, one in enumerate(names) if k != chosen and not one.startswith("worst")]
    kept = [k for k in kept if not names[k].endswith("error")]
    return [names[k] for k in kept], values[:, kept], values[:, chosen]


def run(settings: Settings, store: Store, folder: Path) -> Result:
    """Train on all folds but one, and ask that one; each once."""
    size, numbers, seed = settings["size"], settings["numbers"], settings["seed"]
    names, values, answers = table(settings["table"])
    folds = np.random.default_rng(seed).permutation(len(values)) % FOLDS[size]
    scores, about = [], []
    for fold in range(FOLDS[size]):
        seen = folds != fold
        if numbers in YARDSTICKS:
            said = by_columns(numbers, values[seen], answers[seen], values[~seen])
            scores.append(scored(said, answers[~seen], answers[seen]))
        else:
            lines = [line(names, one, y) for one, y in zip(values, answers, strict=True)]
            some = np.array(lines, dtype=object)
            parts = list(some[seen]), list(some[~seen])
            score = functools.partial(scored, right=answers[~seen], known=answers[seen])
            found = written(numbers, *parts, score, (size, seed), folder)
            about.append(found)
            scores.append(found["scores"])
    found = {key: [round(one[key], 4) for one in scores] for key in scores[0]}
    if about:
        found["losses"] = list(np.mean([one["losses"] for one in about], axis=0).round(5))
        found["seconds"] = round(sum(one["seconds"] for one in about), 1)
        found["curve"] = np.mean([one["curve"] for one in about], axis=0).round(4).tolist()
    return {"rows": len(values), **found}


def line(names: list[str], values: Floats, answer: float) -> str:
    """A row as text."""
    columns = (f"{name} {value:.5g}" for name, value in zip(names, values, strict=True))
    return f"{', '.join(columns)} = {answer:.5g}{END}"


def by_columns(name: str, values: Floats, answers: Floats, unseen: Floats) -> Floats:
    """What a yardstick says."""
    from sklearn.ensemble import GradientBoostingRegressor
    from sklearn.linear_model import LinearRegression

    kind = LinearRegression() if name == LINEAR else GradientBoostingRegressor(random_state=0)
    return np.asarray(kind.fit(values, answers).predict(unseen), np.float64)


def written(
    numbers: str,
    seen: list[str],
    unseen: list[str],
    score: Callable[[Floats], dict[str, float]],
    size_and_seed: tuple[str, int],
    folder: Path,
) -> Result:
    """Train, and score what the model writes behind the ``=``."""
    size, seed = size_and_seed
    own, of_head = SWAPPED.get(numbers, (numbers, numbers))
    encoded = encode(seen, own, folder / "own")
    torch.manual_seed(seed)
    model = learning.llama(encoded, *TRUNK[size], positions=512)
    if of_head != own:
        other = encode(seen, of_head, folder / "other").schema
        model = NumberModel(model.backbone, model.embedding, other_head(other, TRUNK[size][0]))
    course = Course(STEPS[size], BATCH, RATE, seed)
    batch = encoded.batch(labels=encoded.labels_behind("1 ="), objective="causal")
    prompts = [one[: one.index("=") + 1] for one in unseen]

    def scores() -> dict[str, float]:
        said = learning.say(model, encoded, prompts, f"= 1{END}", 12)
        return score(np.array([first_value(one) for one in said]))

    found = learning.train(
        model, learning.shuffled(batch, course), course, lambda: scores()["error"]
    )
    return {**found, "scores": scores()}


def other_head(schema: pa.Schema, width: int) -> NumberHead:
    """The head of other data, with all that these give it, for the values of any representation."""
    config = head_from_schema(schema, width).config()
    return head_from_config(
        config | ({"target": "number_value"} if "target" in config else {}), width
    )


def scored(said: Floats, right: Floats, known: Floats) -> dict[str, float]:
    """The mean absolute error over that of always saying the median of what is known, and R², of
    what is said; it is held to the range of what is known, whose mean is taken for NaN.
    """
    no_number = float(np.isnan(said).mean())
    said = np.where(np.isnan(said), known.mean(), said).clip(known.min(), known.max())
    error = np.abs(said - right).mean() / np.abs(np.median(known) - right).mean()
    return {
        "error": float(error),
        "no_number": no_number,
        "r2": float(1 - np.square(said - right).mean() / np.square(right - right.mean()).mean()),
    }


def section(results: list[tuple[Settings, Result]], plots: Path) -> str:
    """Errors and R² of all tables, means over folds and seeds, and their spread."""
    by = by_row(results)
    named = [name for name in TABLES if any(name in found for found in by.values())]
    rows = [
        [
            numbers if numbers in YARDSTICKS else f"`{numbers}`",
            *(cell for name in named for cell in _cells(found.get(name))),
        ]
        for numbers, found in by.items()
    ]
    kept = complete(results)
    heads = [
        head
        for name in named
        for head in (f"{name} {tables.seeds(kept[name])}, error", "R²", "better than the median")
    ]
    table_of_all = tables.markdown(["", *heads], rows)
    if not rows:
        return table_of_all
    picture = plots / f"{NAME}.svg"
    values = {
        numbers: {name: one["error"] for name, one in found.items()}
        for numbers, found in by.items()
    }
    dots(picture, values, "mean absolute error, 1 for always saying the median")
    parts = [table_of_all, shown(picture, "Errors by table, with their spread", by)]
    for name in TABLES:
        of = tables.gathered(
            (one["numbers"], found) for one, found in results if one["table"] == name
        )
        if all("curve" in one for some in of.values() for one in some if "losses" in one):
            curves = plots / f"{NAME}_{name.replace(' ', '_')}.svg"
            parts.append(learning_curves(curves, of, f"Error on {name}", "error", share=False))
    return "\n\n".join(filter(None, parts))


def _cells(found: Result | None) -> list[str]:
    if found is None:
        return ["", "", ""]
    better = f"in {sum(error < 1 for error in found['error'])} of {len(found['error'])} folds"
    return [*(tables.mean(found[key], ".2f") for key in ("error", "r2")), better]


def by_row(results: list[tuple[Settings, Result]]) -> dict[str, dict[str, Result]]:
    """By representation, then by table: what each fold of each complete seed gave."""
    kept = complete(results)
    by = tables.gathered(
        ((settings["numbers"], settings["table"]), result)
        for settings, result in results
        if settings["size"] == "small" and settings["seed"] in kept[settings["table"]]
    )
    found: dict[str, dict[str, Result]] = {name: {} for name in (*YARDSTICKS, *REPRESENTATIONS)}
    for (numbers, name), some in by.items():
        found[numbers][name] = {
            key: [value for one in some for value in one[key]] for key in ("error", "r2")
        }
    return {numbers: of for numbers, of in found.items() if of}


def complete(results: list[tuple[Settings, Result]]) -> dict[str, list[int]]:
    """By table, the seeds that every row has."""
    there = [settings for settings, _ in results if settings["size"] == "small"]
    return {
        name: [
            seed
            for seed in SEEDS["small"]
            if sum((one["table"], one["seed"]) == (name, seed) for one in there)
            == len(rows_of(name))
        ]
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
    sure="Not shown, with three seeds of five folds; two tables of some 500 rows.",
    rows=(LINEAR, "`xval:log`", "`quantile_bins:32,soft`", "`digits:1`"),
    columns=("diabetes, error", "breast cancer, error"),
    labels={
        "diabetes, error": "diabetes: error over the median's",
        "breast cancer, error": "breast cancer: error over the median's",
    },
    picture="tables_by_heads.svg",
    differs=f"""\
- **Tables**: two of scikit-learn as text. Diabetes has 442 rows; the progression is predicted from 10
  columns. Breast cancer has 569 rows; the worst compactness is predicted from 10 means.
- **Model**: a Llama of width {TRUNK["small"][0]} with {TRUNK["small"][1]} layers and random weights,
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
