"""FoNE, table 1: sums, differences and products, as learning curves.

All rows get the same model, samples, steps and search: two rates are tried on sums at seed 0. The
rate with the lower loss on unseen sums serves for all tasks, and for sums at other seeds. The main
rows have three seeds.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.evidence import arithmetic, tables
from benchmarks.evidence.arithmetic import Row, Task
from benchmarks.evidence.experiment import Experiment
from benchmarks.evidence.learning import Schedule
from benchmarks.evidence.plots import learning_curves
from benchmarks.evidence.store import Result, Settings, Store, without_search

NAME = "fone_arithmetic"
SHORT = ", short"  # suffix of a control row, for sums
AS_WRITTEN = ", as written"  # suffix of a row for decimals; changes nothing for whole numbers
ROWS: dict[str, Row] = {
    "fone": Row("fone"),
    "digits": Row("digits:1"),
    "digits, reversed": Row("place:lsd", places=False),
    "digits, reversed, places": Row("place:lsd"),
    "digits, reversed, places" + AS_WRITTEN: Row("place:lsd", as_written=True),
    "subword": Row("subword"),
    "xval": Row("xval"),
    "xval:log": Row("xval:log"),  # the paper's xVal, by the authors' code
    "bits": Row("bits"),
    "fone" + SHORT: Row("fone", short=True),
}
MAIN_ROWS = ("fone", "digits", "digits, reversed, places")  # rows with products and all seeds
ADD, SUBTRACT, MULTIPLY = "addition", "subtraction", "multiplication"
DECIMALS = "addition of decimals"
TASKS = {
    "smoke": {ADD: Task("+", operator.add, 2, (3, 0))},
    "small": {
        ADD: Task("+", operator.add, 3, (4, 0)),
        DECIMALS: Task("+", operator.add, 3, (3, 1), decimals=1),
        SUBTRACT: Task("-", operator.sub, 3, (3, 0), "a>=b"),
        MULTIPLY: Task("*", operator.mul, 2, (4, 0)),
    },
    "full": {
        ADD: Task("+", operator.add, 6, (7, 0)),
        DECIMALS: Task("+", operator.add, 6, (4, 3), decimals=3),
        SUBTRACT: Task("-", operator.sub, 5, (5, 0), "a>=b"),
        MULTIPLY: Task("*", operator.mul, 4, (8, 0)),
    },
}
PAPER = {  # the paper's shares of exact answers
    ADD: {"fone": 1.0},
    DECIMALS: {"fone": 1.0, "digits": 0.9985, "subword": 0.9794, "xval:log": 0.0044},
    SUBTRACT: {"fone": 1.0, "digits": 0.9971, "subword": 0.9166, "xval:log": 0.0341},
    MULTIPLY: {"fone": 0.9856, "digits": 0.8121, "subword": 0.0805, "xval:log": 0.0},
}
RATES = (0.0025, 0.001)
STEPS = {"smoke": 250, "small": 1200, "full": 140_600}  # full: 100 epochs of 720,000
FRESH = "where no other question has the answer"
LONGER, LONGEST = 4, 16  # factors of the steps
STARTS = ("0.02", "width^-0.5")  # standard deviations of the word vectors
HARD_ROWS = ("digits", "digits, reversed, places", "subword")  # rows with a search for a start
BATCH = {"smoke": 128, "small": 64, "full": 512}
SAMPLES = {"smoke": 2000, "small": 12_800, "full": 720_000}
PRODUCTS = 4500  # samples of products, of 5,050 possible pairs
HELD_OUT = {"smoke": 50, "small": 500, "full": 10_000}
ENOUGH_SEEDS = 3  # seeds that a verdict needs
FAILED, LEARNT = 0.05, 0.95  # shares below and above which a model has not learnt, or has
MODEL_SIZE = {
    "smoke": (64, 2),
    "small": (64, 2),
    "full": (384, 6),
}  # width and layers; FoNE, table 6


def phases(size: str) -> list[list[Settings]]:
    """Return the search on sums, then all tasks with every seed, then some rows for longer."""
    names = ("fone", "digits") if size == "smoke" else tuple(ROWS)
    if size == "smoke":
        return [[_settings(size, ADD, row) | {"rate": 0.005} for row in names]]
    searched = [row for row in names if not row.endswith((AS_WRITTEN, SHORT))]
    search = [_settings(size, ADD, row) | {"rate": rate} for row in searched for rate in RATES]
    runs = [
        _settings(size, task, row, seed)
        for task in TASKS[size]
        for row in names
        if task == DECIMALS or not row.endswith(AS_WRITTEN)
        if task == ADD or not row.endswith(SHORT)
        if size == "full" or task != MULTIPLY or row in MAIN_ROWS
        for seed in seeds(task)[: None if row in MAIN_ROWS else ENOUGH_SEEDS]
    ]
    return [search, runs, *(_longer() if size == "small" else [])]


def seeds(task: str) -> tuple[int, ...]:
    """Return the seeds of a task's table. The seed of the search is left out for sums, as the
    search draws the same sums.
    """
    return {ADD: (1, 2, 3, 4), DECIMALS: (1, 2, 3)}.get(task, (0, 1, 2))


def _longer() -> list[list[Settings]]:
    """Return rows with 4 and 16 times the steps, after a search for their start."""
    starts = [settings for row in HARD_ROWS for settings in _starts(row).values()]
    rows = {
        ADD: ("digits", "subword"),
        SUBTRACT: HARD_ROWS,
        DECIMALS: HARD_ROWS,
        MULTIPLY: (*MAIN_ROWS, "subword"),
    }
    longer = [
        _settings("small", task, row, seed) | {"times": LONGER}
        for task, rows_of_task in rows.items()
        for row in rows_of_task
        for seed in ((1, 2, 3) if task == SUBTRACT else seeds(task)[:ENOUGH_SEEDS])
    ]
    longest = [
        _settings("small", MULTIPLY, row, seed) | {"times": LONGEST}
        for row in MAIN_ROWS
        for seed in seeds(MULTIPLY)
    ]
    return [starts, longer, longest]


def _starts(row: str) -> dict[str, Settings]:
    """Return the runs of the search for the start of a row, by start."""
    shared = _settings("small", SUBTRACT, row) | {"times": LONGER}
    return {start: shared | {"start": start, "rate": RATES[0]} for start in STARTS}


def _settings(size: str, task: str, row: str, seed: int = 0) -> Settings:
    return {"size": size, "task": task, "numbers": row, "seed": seed}


def run(settings: Settings, store: Store, folder: Path) -> Result:
    """Train a model on a task, and ask it unseen questions."""
    size, row = settings["size"], settings["numbers"]
    base = _settings(size, ADD, row.removesuffix(AS_WRITTEN).removesuffix(SHORT))
    search = {rate: base | {"rate": rate} for rate in RATES}
    rate = settings["rate"] if "rate" in settings else store.best(NAME, search)
    task: Task = TASKS[size][settings["task"]]
    samples = SAMPLES[size]
    if size == "small" and settings["task"] == MULTIPLY:
        samples = PRODUCTS
    steps = STEPS[size] * settings.get("times", 1)
    schedule = Schedule(steps, BATCH[size], rate, settings["seed"])
    counts, model_size = (samples, HELD_OUT[size]), MODEL_SIZE[size]
    start = settings.get("start", STARTS[0])
    if settings["task"] == SUBTRACT and settings.keys() & {"times", "start"} == {"times"}:
        start = store.best(NAME, _starts(row))
    std = 0.02 if start == STARTS[0] else model_size[0] ** -0.5
    result = arithmetic.run(task, ROWS[row], counts, schedule, model_size, folder, std)
    return {"rate": rate, "steps": steps, "samples": samples, "start": std, **result}


def section(results: list[tuple[Settings, Result]], plots: Path) -> str:
    """Return a table and learning curves for each task."""
    parts = []
    for name, task in TASKS["small"].items():
        rows = _by_row(results, name)
        if not rows:
            continue
        longest = {row.split(" ×")[0]: row for row in rows}
        claims = {longest[row]: share for row, share in PAPER[name].items() if row in longest}
        lines = [_table_row(row, runs, claims.get(row)) for row, runs in rows.items()]
        heads = [name, "exact", FRESH, "CPU seconds", "tokens", "the paper", "verdict"]
        if not any(line[2] for line in lines):
            lines, heads = [[*line[:2], *line[3:]] for line in lines], [*heads[:2], *heads[3:]]
        picture = plots / f"{NAME}_{name.replace(' ', '_')}.svg"
        point = f", of which {task.decimals} behind the point" * (task.decimals > 0)
        parts.append(f"### {name.capitalize()}, {task.digits} digits{point}")
        parts.append(tables.markdown(heads, lines))
        parts.append(learning_curves(picture, rows, f"Exact {name}", "exact"))
    return "\n\n".join(parts)


def _table_row(row: str, runs: list[Result], claimed: float | None) -> list[str]:
    """Return the cells of a row; ``claimed`` is the paper's share of exact answers."""
    exact = [run["exact"] for run in runs]
    return [
        f"`{row}` {tables.seed_count(runs)}",
        tables.mean(exact),
        _fresh_share(runs),
        tables.mean((run["seconds"] for run in runs), ".0f"),
        f"{runs[0]['tokens_per_sample']:.1f}",
        "" if claimed is None else f"{claimed:.1%}",
        "" if claimed is None else verdict(exact, claimed, runs[0]["steps"]),
    ]


def _fresh_share(runs: list[Result]) -> str:
    """Return the share of right answers to questions whose answer no question of the training has;
    "" if a run lacks it.
    """
    exact = [run.get("fresh_exact") for run in runs]
    return "" if None in exact else tables.mean(exact)


def verdict(exact: Sequence[float], claimed: float, steps: int) -> str:
    """Return how a row's shares of exact answers, one per seed, compare with the paper's share.

    A share below the paper's is always "in so many steps": the rate falls to a tenth in every run,
    so a curve that is flat at its end might rise with more steps.
    """
    ours = float(np.mean(exact))
    if len(exact) < ENOUGH_SEEDS:
        return "none: too few seeds"
    if max(ours, claimed) < FAILED:
        return "says nothing: fails as in the paper, in few steps"
    if abs(ours - claimed) <= 0.02:
        return "shown"
    if ours > claimed:
        return "says nothing: more than in the paper, whose numbers are longer"
    return f"{'shown in part' if ours > claimed / 2 else 'not shown'} in {steps:,} steps"


def _by_row(results: list[tuple[Settings, Result]], task: str) -> dict[str, list[Result]]:
    """Return the results of a task by row, one per seed."""
    rows = tables.group_values(
        (settings["numbers"] + f" ×{settings.get('times')}" * ("times" in settings), result)
        for settings, result in without_search(results)
        if settings["task"] == task
    )
    longer = (f"{name} ×{times}" for times in (LONGER, LONGEST) for name in ROWS)
    return {name: rows[name] for name in (*ROWS, *longer) if name in rows}


def observations(results: list[tuple[Settings, Result]]) -> str:
    """Return a list of the rows that are nearly always right, by task, and from which step on."""
    lines = []
    for task in TASKS["small"]:
        learnt, rows = [], _by_row(results, task)
        for name, runs in rows.items():
            curve = np.mean([run["curve"] for run in runs], axis=0)
            below = np.flatnonzero(curve[:, 2] < LEARNT)
            after = int(below[-1]) + 1 if len(below) else 0
            if after < len(curve):
                learnt.append(f"`{name}` from step {curve[after, 0]:,.0f} on")
        if rows:
            lines.append(f"- {task}: {', '.join(learnt) or 'none'}")
    head = f"Rows with {LEARNT:.0%} exact answers, and from which step on:\n"
    return "\n".join([head, *lines]) if lines else ""


EXPERIMENT = Experiment(
    NAME,
    "FoNE, table 1",
    """\
Exact answers after training from scratch:

| | sums of decimals | differences | products |
|---|--:|--:|--:|
| FoNE | 100% | 100% | 98.56% |
| digits | 99.85% | 99.71% | 81.21% |
| subword | 97.94% | 91.66% | 8.05% |
| xVal | 0.44% | 3.41% | 0% |""",
    phases,
    run,
    section,
    question="With one token per number, are answers right to the last digit?",
    result=(
        "With FoNE, models learn sums and differences exactly, in fewer steps than with digits."
        " After 16 times the steps, FoNE has 60% of unseen products, plain digits 33%, and reversed"
        " digits with places 61 to 97%."
    ),
    confidence="Shown in part: sums and differences yes, products partly, with three or four seeds.",
    rows=("`fone`", "`digits`", "`digits, reversed, places`", "`digits ×4`"),
    columns=("exact",),
    labels={
        "`digits`": "`digits:1`",
        "`digits, reversed, places`": "`place:lsd`",
        "`digits ×4`": "`digits:1`, four times the steps",
    },
    picture="fone_arithmetic_addition.svg",
    setup=f"""\
| | here | the paper |
|---|---|---|
| digits of a number | 3, in products 2 | 6 in sums, 5 in differences, 4 in products |
| model | width {MODEL_SIZE["small"][0]}, {MODEL_SIZE["small"][1]} layers | 37.55 M parameters |
| training | {STEPS["small"]:,} steps of {BATCH["small"]} | 140,000 steps of 512 |
| samples | {SAMPLES["small"]:,}; of products {PRODUCTS:,} of 5,050 | 720,000 |
| rates | 0.0025 and 0.001 are tried | 0.005; 0.0001 for xVal |

Each row answers {HELD_OUT["small"]} unseen questions, which cannot tell 100% from 99.8%.

The rows:

- `digits, reversed` writes the ones first. `places` adds the decimal position of each digit.
- The positions of a fraction are known only once its point is written. A question then shows other
  positions than its answer. With `as written` both show the same.
- `xval:log` is the paper's xVal, by the authors' code.
- `subword` has groups of three digits. Each group stands in some 25 samples, far fewer than in the
  paper.
- Rows with ×{LONGER} and ×{LONGEST} are trained for {LONGER} and {LONGEST} times the steps.

The search:

- Every row chooses its rate on sums at seed 0, which is in no table of sums. `fone, short` and
  `as written` take the rate of the row that they vary.
- All rows took 0.0025 except `digits, reversed`, which neither rate had taught anything.
- For differences, the rows with ×{LONGER} also chose between word vectors of 0.02 and of 0.125.
  `subword` took 0.125; longer vectors helped no other row.
- FoNE's features start 12 times as long as a word vector of 0.02. The features of `fone, short`
  are as short as the word vector.

A verdict takes {ENOUGH_SEEDS} seeds. `shown`: within 2 points of the paper. `shown in part`: more than half
of the paper's share. Where both are below {FAILED:.0%}, the verdict says nothing: a model that has not
begun to learn is there too.""",
    observations=observations,
    verdict="""\
Shown in part.

- **FoNE has all sums and differences: shown.** FoNE needs fewer steps and less time than any row
  without it. Sums of decimals are for FoNE the same run as sums of whole numbers. On sums, longer
  start vectors are not the reason: `fone, short` starts as short as others, and has them too.
- **Digits end below FoNE: shown in part, on products.** After 16 times the steps, all rows know their
  4,500 training products by heart. Plain digits have 33% of the other products, and FoNE 60%. After
  four times the steps, plain digits have nearly all sums. They have 81% of the differences and are
  still learning; reversed digits with places have all differences.
- **The seed decides when digits begin to learn.** In 1,200 steps, plain digits had 1 to 29% of the
  whole sums with four seeds, and 80% with the seed of the search.
- **FoNE has nearly all products: shown in part.** FoNE has 60%. Reversed digits with places have 61,
  79 and 97% with three seeds.
- **Known answers flatter products.** For 62 to 64% of the products asked, the answer stands in the
  training with other operands. After 4,800 steps, FoNE has 49% of the rest, as of all. Reversed
  digits with places have 47%, which with three seeds is no difference. Plain digits have 21%,
  `subword` 16%.
- **Subword ends below digits: shown in part, on sums and differences.** There `subword` sees each
  group of three digits in some 25 samples. On products: not shown. `subword` has twice as many products as
  digits, as it knows the answers of the training. Where the answer is new, `subword` has fewer than
  digits with two seeds of three, and clearly fewer with one.
- **xVal fails: says nothing.** Other rows fail too in 1,200 steps.

The paper's samples, 56 times as many (`--full`), would settle it.""",
)
