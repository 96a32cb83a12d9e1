"""The ten tasks of ``numtok.score.tasks``, which are those of BitTokens, at the lowest level.

One model for each representation learns all tasks at once. No set of numbers that is asked stands
in the training, in any order or task, with any signs, or with all of its numbers ten times as
large. The same digits do stand there, each with a power of ten of its own. Three guesses that need
no model are scored too.
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
from benchmarks.evidence.learning import Schedule
from benchmarks.evidence.plots import dots, learning_curves, picture_link
from benchmarks.evidence.store import Result, Settings, Store
from numtok.score.tasks import TASKS, Tasks, is_right
from numtok_torch import NumberModel

NAME = "numeracy"
GUESSES = "guesses"
NOT_A_NUMBER = ("sort", "interval")  # tasks whose answer is not one number
REPRESENTATIONS = ("xval:log", "quantile_bins:64,soft", "fone:8,8", "bits", "digits:1", "subword")
STEPS = {"smoke": 10, "small": 10_000, "full": 100_000}
LEVELS = {"smoke": (1,), "small": (1,), "full": (1, 2, 3, 5, 8)}
SEEDS = (0, 1, 2)  # seeds of the weights and of the order of the training
DRAWN = {"smoke": 1000, "small": 150_000, "full": 1_000_000}
ASKED = {"smoke": 1, "small": 100, "full": 500}  # questions of each task, at most
MODEL_SIZE = {"smoke": (32, 1), "small": (64, 2), "full": (384, 6)}
CURVE_QUESTIONS = 20  # questions of each task for a point of a learning curve
BATCH, RATE, DIGITS = 64, 0.0025, 3
HELD_OUT = 8  # one set of numbers of so many is held out
NEAR = 0.05  # relative error of an answer that counts as near

Question = dict[str, Any]
Rows = dict[str, list[Result]]


def phases(size: str) -> list[list[Settings]]:
    """Return the guesses and every representation."""
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
    """Return the questions of the training, and for each task different ones about held-out
    numbers.
    """
    drawn = Tasks(DRAWN[size], levels=LEVELS[size], digits=DIGITS)
    seen, asked = [], dict[str, dict[str, Question]]()
    for index in range(len(drawn)):
        question = drawn[index]
        if is_held_out(question["prompt"]):
            asked.setdefault(question["task"], {})[question["prompt"]] = question
        else:
            seen.append(question)
    return seen, {task: list(asked[task].values())[: ASKED[size]] for task in TASKS}


def is_held_out(prompt: str) -> bool:
    """Whether the numbers of a question are held out, regardless of their order, their signs and a
    common power of ten.
    """
    sizes = {abs(number.value) for number in numtok.extract(prompt)}
    highest = max(size.adjusted() for size in sizes)
    shape = sorted(size.scaleb(-highest).normalize() for size in sizes)
    return zlib.crc32(" ".join(map(str, shape)).encode()) % HELD_OUT == 0


def run(settings: Settings, store: Store, folder: Path) -> Result:
    """Train a model on all tasks, and ask it each of them; or score the guesses."""
    size, numbers, seed = settings["size"], settings["numbers"], settings["seed"]
    seen, asked = questions(size)
    counts = {"questions": {task: len(some) for task, some in asked.items()}}
    if numbers == GUESSES:
        return counts | {"guesses": guesses(seen, asked)}
    encoded = encode([f"{one['prompt']} = {one['answer']}{END}" for one in seen], numbers, folder)
    torch.manual_seed(seed)
    model = learning.build_llama(encoded, *MODEL_SIZE[size], positions=256)
    schedule = Schedule(STEPS[size], BATCH, RATE, seed)
    batch = encoded.batch(labels=encoded.answer_labels("1 ="), objective="causal")
    few = {task: some[:CURVE_QUESTIONS] for task, some in asked.items()}

    def exact_share() -> float:
        written = {task: answers(model, encoded, some) for task, some in few.items()}
        return float(np.mean([*scores(few, written)["exact"].values()]))

    result = learning.train(model, batches(batch, schedule), schedule, exact_share)
    written = {task: answers(model, encoded, some) for task, some in asked.items()}
    examples = [f"{asked[task][0]['prompt']} = {texts[0]}" for task, texts in written.items()]
    return counts | result | scores(asked, written) | {"examples": examples}


def batches(batch: dict[str, Tensor], schedule: Schedule) -> Iterator[dict[str, Tensor]]:
    """Yield batches without end; rows of a batch are similarly long."""
    for rows in learning.similar_rows(batch["attention_mask"].sum(1), schedule):
        yield learning.without_padding({name: stream[rows] for name, stream in batch.items()})


def answers(model: NumberModel, encoded: Encoded, asked: Sequence[Question]) -> list[str]:
    """Return the model's answers."""
    prompts = [f"{question['prompt']} =" for question in asked]
    texts = learning.write_answers(model, encoded, prompts, f"= 1{END}", 50)
    return [text.removesuffix(END) for text in texts]


def scores(asked: Mapping[str, list[Question]], answers: Mapping[str, Sequence[str]]) -> Result:
    """Return the shares of right and of near answers by task."""
    pairs = {task: list(zip(some, answers[task], strict=True)) for task, some in asked.items()}
    return {
        key: {
            task: float(np.mean([is_right(*pair, tolerance) for pair in of_task]))
            for task, of_task in pairs.items()
        }
        for key, tolerance in (("exact", "0"), ("near", str(NEAR)))
    }


def guesses(seen: Sequence[Question], asked: Mapping[str, list[Question]]) -> dict[str, Result]:
    """Return the scores of three guesses: the most frequent answer, the answer that is near most
    others, and the first number of the question. The last guess for a list to be sorted is the
    list.
    """
    known = {task: [one["answer"] for one in seen if one["task"] == task] for task in asked}
    frequent = {task: Counter(some).most_common(1)[0][0] for task, some in known.items()}
    central = {
        task: frequent[task] if task in NOT_A_NUMBER else nearest_to_most(some)
        for task, some in known.items()
    }
    guess_of: dict[str, Callable[[Question], str]] = {
        "most frequent answer": lambda question: frequent[question["task"]],
        "answer near most": lambda question: central[question["task"]],
        "first number": first_number,
    }
    return {
        name: scores(asked, {task: [guess(one) for one in some] for task, some in asked.items()})
        for name, guess in guess_of.items()
    }


def nearest_to_most(texts: Sequence[str]) -> str:
    """Return the number that is near most of the numbers."""
    values = np.array([float(text) for text in texts])
    near = [(np.abs(values - value) <= NEAR * np.abs(values)).sum() for value in values]
    return texts[int(np.argmax(near))]


def first_number(question: Question) -> str:
    """Return the first number of a question, as written; the list, if the question is to sort one."""
    if question["task"] == "sort":
        return str(question["prompt"]).split(": ")[1]
    return numtok.extract(question["prompt"])[0].text


def section(results: list[tuple[Settings, Result]], plots: Path) -> str:
    """Return a table of near answers, for tasks whose answer is one number, and pictures of exact
    ones.
    """
    rows = by_row(results)
    if not rows:
        return ""
    tasks = [task for task in TASKS if task not in NOT_A_NUMBER]
    parts = [
        tables.markdown(
            [f"Within {NEAR:.0%}", *tasks], [_cells(rows, name, tasks) for name in rows]
        ),
        "Bold: above all guesses by more than twice the standard error of the difference.",
    ]
    picture = plots / f"{NAME}.svg"
    exact = {
        name: {task: [run["exact"][task] for run in runs] for task in TASKS}
        for name, runs in rows.items()
    }
    dots(picture, exact, "exact", share=True)
    parts.append(picture_link(picture, "Exact answers by task", rows))
    curves, title = plots / f"{NAME}_curves.svg", "Exact answers of all tasks"
    parts.append(learning_curves(curves, rows, title, "exact, mean of tasks"))
    return "\n\n".join(filter(None, parts))


def _cells(rows: Rows, name: str, tasks: Sequence[str]) -> list[str]:
    """Return the cells of a row; shares that exceed all guesses are bold."""
    runs = rows[name]
    shares = [tables.mean((run["near"][task] for run in runs), ".0%") for task in tasks]
    if "questions" not in runs[0]:
        return [f"guess: {name}", *shares]
    above = better_than_guesses(rows, name)
    marked = [
        f"**{share}**" if task in above else share
        for task, share in zip(tasks, shares, strict=True)
    ]
    return [f"`{name}` {tables.seed_count(runs)}", *marked]


def better_than_guesses(rows: Rows, name: str) -> list[str]:
    """Return the tasks in which a row has more near answers than every guess, by twice the standard
    error of the difference. All seeds are asked the same questions, so their count is that of one
    seed.
    """
    tasks = []
    for task, count in rows[name][0]["questions"].items():
        share = float(np.mean([run["near"][task] for run in rows[name]]))
        best = max(run["near"][task] for (run, *_) in rows.values() if "questions" not in run)
        if tables.is_clearly_larger(share, best, count):
            tasks.append(task)
    return tasks


def by_row(results: list[tuple[Settings, Result]]) -> Rows:
    """Return the results by representation, one per seed, and then by guess; {} without the
    guesses.
    """
    rows = tables.group_values((settings["numbers"], result) for settings, result in results)
    if GUESSES not in rows:
        return {}
    guessed = {name: [one] for name, one in rows[GUESSES][0]["guesses"].items()}
    return {name: rows[name] for name in REPRESENTATIONS if name in rows} | guessed


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
    confidence="Says nothing of the paper, whose models do not compare; three seeds, one significant digit.",
    rows=("`quantile_bins:64,soft`", "`fone:8,8`", "`digits:1`"),
    columns=("add", "multiply", "mean"),
    labels={"add": "sums", "multiply": "products", "mean": "means"},
    picture="numeracy.svg",
    setup=f"""\
- **Numbers** have one significant digit. Lists have two to five numbers of two or three digits.
- **Model**: one Llama of width {MODEL_SIZE["small"][0]} with {MODEL_SIZE["small"][1]} layers for each row, for all tasks
  at once; {STEPS["small"]:,} steps of {BATCH}, one rate.
- **Questions**: one set of numbers in {HELD_OUT} is held out, with any signs and up to a common power of
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
