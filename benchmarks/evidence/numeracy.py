"""The ten tasks of ``numtok.score.tasks``, which are those of BitTokens, at the lowest level.

One model for each representation learns all tasks at once. No set of numbers that is asked about
stands in the training, in any order or task, with any signs, or with all of them ten times as
large; the same digits do, each with a power of ten of its own. Beside the models stand three
guesses that need none.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import numtok
from benchmarks.evidence import learning, tables
from benchmarks.evidence.arithmetic import END
from benchmarks.evidence.corpus import Encoded, encode
from benchmarks.evidence.experiment import Experiment
from benchmarks.evidence.learning import Course
from benchmarks.evidence.plots import dots, learning_curves, shown
from benchmarks.evidence.store import Result, Settings, Store
from numtok.score.tasks import TASKS, Tasks, is_right
from numtok_torch import NumberModel

NAME = "numeracy"
GUESSES = "guesses"
REPRESENTATIONS = ("xval:log", "quantile_bins:64,soft", "fone:8,8", "bits", "digits:1", "subword")
STEPS = {"smoke": 10, "small": 10_000, "full": 100_000}
LEVELS = {"smoke": (1,), "small": (1,), "full": (1, 2, 3, 5, 8)}
SEEDS = (0, 1, 2)  # of the weights and of the order of the training
DRAWN = {"smoke": 1000, "small": 150_000, "full": 1_000_000}
ASKED = {"smoke": 2, "small": 100, "full": 500}  # of each task, at most
TRUNK = {"smoke": (32, 1), "small": (64, 2), "full": (384, 6)}
WATCHED = 20  # questions of each task for a point of a learning curve
BATCH, RATE, DIGITS = 64, 0.0025, 3
UNSEEN = 8  # one set of numbers of so many is asked about
NEAR = 0.05

Question = dict[str, Any]
Rows = dict[str, list[Result]]


def phases(size: str) -> list[list[Settings]]:
    """The guesses and every representation."""
    names = ("xval:log", "digits:1") if size == "smoke" else REPRESENTATIONS
    return [
        [
            {"size": size, "numbers": numbers, "seed": seed}
            for seed in (SEEDS if size == "small" else SEEDS[:1])
            for numbers in (GUESSES, *names)
            if seed == 0 or numbers != GUESSES
        ]
    ]


def questions(size: str) -> tuple[list[Question], dict[str, list[Question]]]:
    """Those of the training, and different ones of each task about other sets of numbers."""
    every = Tasks(DRAWN[size], levels=LEVELS[size], digits=DIGITS)
    seen, asked = [], dict[str, dict[str, Question]]()
    for index in range(len(every)):
        one = every[index]
        if is_aside(one["prompt"]):
            asked.setdefault(one["task"], {})[one["prompt"]] = one
        else:
            seen.append(one)
    return seen, {task: list(asked[task].values())[: ASKED[size]] for task in TASKS}


def is_aside(prompt: str) -> bool:
    """Whether the numbers of a question are put aside, in whatever order and with whatever signs,
    and those that are larger or smaller by the same power of ten.
    """
    sizes = {abs(one.value) for one in numtok.extract(prompt)}
    highest = max(one.adjusted() for one in sizes)
    shape = sorted(one.scaleb(-highest).normalize() for one in sizes)
    return zlib.crc32(" ".join(map(str, shape)).encode()) % UNSEEN == 0


def run(settings: Settings, store: Store, folder: Path) -> Result:
    """Train on all tasks, and ask each."""
    size, numbers = settings["size"], settings["numbers"]
    seen, asked = questions(size)
    counts = {"questions": {task: len(some) for task, some in asked.items()}}
    if numbers == GUESSES:
        return counts | {"guesses": guesses(seen, asked)}
    encoded = encode([f"{one['prompt']} = {one['answer']}{END}" for one in seen], numbers, folder)
    torch.manual_seed(settings["seed"])
    model = learning.llama(encoded, *TRUNK[size], positions=256)
    course = Course(STEPS[size], BATCH, RATE, settings["seed"])
    batch = encoded.batch(labels=encoded.labels_behind("1 ="), objective="causal")
    few = {task: some[:WATCHED] for task, some in asked.items()}

    def right() -> float:
        said = {task: answers(model, encoded, some) for task, some in few.items()}
        return float(np.mean([*scores(few, said)["exact"].values()]))

    found = learning.train(model, batches(batch, course), course, right)
    of = {task: answers(model, encoded, some) for task, some in asked.items()}
    examples = [f"{asked[task][0]['prompt']} = {said[0]}" for task, said in of.items()]
    return counts | found | scores(asked, of) | {"examples": examples}


def batches(batch: dict[str, Tensor], course: Course) -> Iterator[dict[str, Tensor]]:
    """Batches without end, each of rows that are about as long."""
    for chosen in learning.of_one_length(batch["attention_mask"].sum(1), course):
        yield learning.cut({name: stream[chosen] for name, stream in batch.items()})


def answers(model: NumberModel, encoded: Encoded, asked: Sequence[Question]) -> list[str]:
    """What the model writes behind the ``=``."""
    prompts = [f"{one['prompt']} =" for one in asked]
    return [one.removesuffix(END) for one in learning.say(model, encoded, prompts, f"= 1{END}", 50)]


def scores(asked: Mapping[str, list[Question]], said: Mapping[str, Sequence[str]]) -> Result:
    """By task, the shares of answers that are right, and that are near."""
    answered = {task: list(zip(some, said[task], strict=True)) for task, some in asked.items()}
    return {
        key: {
            task: float(np.mean([is_right(*pair, tolerance) for pair in pairs]))
            for task, pairs in answered.items()
        }
        for key, tolerance in (("exact", "0"), ("near", str(NEAR)))
    }


def guesses(seen: Sequence[Question], asked: Mapping[str, list[Question]]) -> dict[str, Result]:
    """What comes of saying the most frequent answer, the answer that is near most others, and the
    first number of the question; of a list to be sorted, the list.
    """
    known = {task: [one["answer"] for one in seen if one["task"] == task] for task in asked}
    ways: dict[str, Callable[[Question], str]] = {
        "most frequent answer": lambda one: frequent[one["task"]],
        "answer near most": lambda one: central[one["task"]],
        "first number": first_number,
    }
    frequent = {task: Counter(some).most_common(1)[0][0] for task, some in known.items()}
    central = {
        task: frequent[task] if task in ("sort", "interval") else nearest_to_most(some)
        for task, some in known.items()
    }
    return {
        name: scores(asked, {task: [way(one) for one in some] for task, some in asked.items()})
        for name, way in ways.items()
    }


def nearest_to_most(texts: Sequence[str]) -> str:
    """Of some numbers, the one that is near most of them."""
    values = np.array([float(text) for text in texts])
    near = [(np.abs(values - one) <= NEAR * np.abs(values)).sum() for one in values]
    return texts[int(np.argmax(near))]


def first_number(question: Question) -> str:
    """As it stands in the question."""
    if question["task"] == "sort":
        return str(question["prompt"]).split(": ")[1]
    return numtok.extract(question["prompt"])[0].text


def section(results: list[tuple[Settings, Result]], plots: Path) -> str:
    """Near answers where an answer is one number, guesses in the last rows; then exact ones."""
    by = by_row(results)
    if not by:
        return ""
    tasks = [one for one in TASKS if one not in ("sort", "interval")]
    parts = [
        tables.markdown([f"Within {NEAR:.0%}", *tasks], [_row(by, name, tasks) for name in by]),
        "Bold: above all guesses by more than twice the standard error of the difference.",
    ]
    picture = plots / f"{NAME}.svg"
    values = {
        name: {task: [one["exact"][task] for one in found] for task in TASKS}
        for name, found in by.items()
    }
    dots(picture, values, "exact", share=True)
    parts.append(shown(picture, "Exact answers by task", by))
    curves, what = plots / f"{NAME}_curves.svg", "Exact answers of all tasks"
    parts.append(learning_curves(curves, by, what, "exact, mean of tasks"))
    return "\n\n".join(filter(None, parts))


def _row(by: Rows, name: str, tasks: Sequence[str]) -> list[str]:
    guess = "questions" not in by[name][0]
    cells = [tables.mean((one["near"][task] for one in by[name]), ".0%") for task in tasks]
    if not guess:
        above = better(by, name)
        pairs = zip(cells, tasks, strict=True)
        cells = [f"**{cell}**" if task in above else cell for cell, task in pairs]
    return [f"guess: {name}" if guess else f"`{name}` {tables.seeds(by[name])}", *cells]


def better(by: Rows, name: str) -> list[str]:
    """The tasks in which a row has more near answers than every guess has, by twice the standard
    error of the difference; the questions, and so what is known of it, are those of every seed.
    """
    found = []
    for task, count in by[name][0]["questions"].items():
        share = float(np.mean([one["near"][task] for one in by[name]]))
        best = max(one["near"][task] for (one, *_) in by.values() if "questions" not in one)
        if tables.clearly(share, best, count):
            found.append(task)
    return found


def by_row(results: list[tuple[Settings, Result]]) -> Rows:
    """By representation, one for each seed, then by guess; nothing without the guesses."""
    by = tables.gathered(
        (one["numbers"], found) for one, found in results if one["size"] == "small"
    )
    if GUESSES not in by:
        return {}
    guessed = {name: [one] for name, one in by[GUESSES][0]["guesses"].items()}
    return {name: by[name] for name in REPRESENTATIONS if name in by} | guessed


EXPERIMENT = Experiment(
    NAME,
    "BitTokens: its ten tasks",
    "None that compares: the paper's models, data and numbers of up to 15 digits are far larger.",
    phases,
    run,
    section,
    question="Which representation learns ten tasks at once?",
    result=(
        "No row learns all ten tasks. FoNE leads in sums and differences, `digits:1` in products and"
        " quotients, and soft bins are nearest in means."
    ),
    sure="Says nothing of the paper, whose models do not compare; three seeds, one significant digit.",
    rows=("`quantile_bins:64,soft`", "`fone:8,8`", "`digits:1`"),
    columns=("add", "multiply", "mean"),
    labels={"add": "sums", "multiply": "products", "mean": "means"},
    picture="numeracy.svg",
    differs=f"""\
- **Numbers** have one significant digit. Lists have two to five numbers of two or three digits.
- **Model**: one Llama of width {TRUNK["small"][0]} with {TRUNK["small"][1]} layers for each row, for all tasks
  at once; {STEPS["small"]:,} steps of {BATCH}, one rate.
- **Questions**: one set of numbers in {UNSEEN} is held out, with any signs and up to a common power of
  ten. {ASKED["small"]} questions of a task are asked, fewer of `power`.
- **Known digits**: the digits of every product and quotient do stand in the training, each with a
  power of ten of its own.
- **Rounding**: right answers are rounded to {DIGITS} digits, so that heads of real numbers are hardly
  ever exact.""",
    verdict="""\
Says nothing of the paper, whose models do not compare. No row here learns all ten tasks. The table
has the least and the largest share of three seeds:

| exact | sums and differences | products | quotients | lists sorted |
|---|--:|--:|--:|--:|
| `fone:8,8` | 94 to 98% | 34 to 49% | 8 to 10% | 3 to 27% |
| `digits:1` | 72 to 78% | 94 to 99% | 68 to 87% | 41 to 74% |
| `subword` | 51 to 59% | 60 to 63% | 6 to 17% | 16 to 37% |
| `bits` | 5 to 9% | 19 to 20% | 8 to 10% | 2 to 8% |

- **Products and quotients.** Their digits all stand in the training. What is learnt may be the tables
  of one digit.
- **Estimates.** Soft bins are within 5% in 70 to 86% of sums, differences, products and quotients, in
  the mean of the seeds. In means they are ahead of all others. `xval:log` is within 5% in only 16 to
  46%.
- **Lists to be sorted.** 17% of them are sorted already.
- **Positions in an interval.** `xval:log` has most, 62 to 73%; a guess has 31%.""",
)
