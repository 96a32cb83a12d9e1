"""Sums, differences and products as the FoNE paper has them: ``[operand a][operator][operand b]=``,
and what models make of them.

In: a task, a representation, a number of samples. Out: how many unseen answers are right, digit for
    digit. FoNE: Precise Single-Token Number Embeddings via Fourier Features (Zhou et al. 2025),
    section 4.1 and appendix G.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import torch

import numtok
from benchmarks.evidence import learning
from benchmarks.evidence.corpus import Encoded, encode
from benchmarks.evidence.learning import Course
from numtok_torch import NumberModel, PlaceValueEmbedding, embedding_from_schema, metrics

END = ";"
WATCHED = 200  # questions for a point of a learning curve


@dataclass(frozen=True)
class Task:
    """Pairs of numbers of so many digits, of which some stand behind the point.

    Attributes:
        sign: of the operation, as it is written.
        apply: what it does to the operands.
        digits: of each operand, at most.
        answer: digits that answers may have before and after the point, for FoNE.
        ordered: ``"a<=b"``, or ``"a>=b"`` where the difference must not be negative.
        behind: digits of each operand behind the point.
    """

    sign: str
    apply: Callable[[Decimal, Decimal], Decimal]
    digits: int
    answer: tuple[int, int]
    ordered: str = "a<=b"
    behind: int = 0


@dataclass(frozen=True)
class Row:
    """What is compared: numbers as ``numtok.encode_files`` takes them, whether the model sees the
    places of digits that have them, whether those of a question are shown as they would be while
    it is written, as those of an answer are, and whether features that do not learn are as short
    as the word vectors.
    """

    numbers: str
    places: bool = True
    as_written: bool = False
    short: bool = False


@dataclass(frozen=True)
class Question:
    """``12.345+6.789=``, and its answer."""

    text: str
    answer: Decimal


def questions(task: Task, count: int, seed: int) -> list[Question]:
    """Different ones, drawn evenly."""
    draw, side = random.Random(seed), 10**task.digits
    found: dict[tuple[int, int], None] = {}
    while len(found) < count:
        a, b = sorted((draw.randrange(side), draw.randrange(side)), reverse=task.ordered == "a>=b")
        found[a, b] = None
    pairs = [tuple(Decimal(one).scaleb(-task.behind) for one in pair) for pair in found]
    return [Question(f"{a}{task.sign}{b}=", task.apply(a, b)) for a, b in pairs]


def run(
    task: Task,
    row: Row,
    counts: tuple[int, int],
    course: Course,
    size: tuple[int, int],
    folder: Path,
    start: float = 0.02,
) -> dict[str, Any]:
    """Train on questions with their answers, and ask others.

    Args:
        task: what is asked.
        row: how numbers are shown.
        counts: questions in the training data, and to be asked.
        course: of the training.
        size: width and layers of the model.
        folder: for text, tokenizer and Parquet.
        start: standard deviation of the word vectors.
    """
    samples, held_out = counts
    every = questions(task, samples + held_out, course.seed)
    unseen, seen = every[:held_out], every[held_out:]
    digits = f"fone:{task.answer[0]},{task.answer[1]}"
    name = digits if row.numbers == "fone" else row.numbers  # a scale of xval is fitted
    encoded = encode([f"{one.text}{one.answer}{END}" for one in seen], name, folder)
    answers_only = encoded.labels_behind("1+1=")
    torch.manual_seed(course.seed)
    model = learning.llama(encoded, *size, places=row.places, start=start)
    if row.as_written:
        places = PlaceValueEmbedding(size[0], written="lsd", read_as_written=True)
        model = NumberModel(model.backbone, places, model.head)
    if row.short:
        # a digit has a cosine and a sine, of norm 1
        norm = start * (size[0] / sum(task.answer)) ** 0.5
        features = embedding_from_schema(encoded.schema, size[0], amplitude=norm)
        model = NumberModel(model.backbone, features, model.head)
    batch = encoded.batch(labels=answers_only, objective="causal")
    some = unseen[:WATCHED]
    found = learning.train(
        model,
        learning.shuffled(batch, course),
        course,
        lambda: float(ask(model, encoded, some)["exact"]),
    )
    found["tokens_per_sample"] = round(int(batch["attention_mask"].sum()) / samples, 2)
    new = encoded.like([f"{one.text}{one.answer}{END}" for one in unseen])
    found["unseen_loss"] = learning.loss_of(
        model, new.batch(labels=answers_only, objective="causal")
    )
    known = {one.answer for one in seen}
    fresh = [one for one in unseen if one.answer not in known]
    found["fresh_asked"] = len(fresh)  # whose answer is none of another question in the training
    found["fresh_exact"] = ask(model, encoded, fresh)["exact"] if fresh else None
    return found | ask(model, encoded, unseen)


def ask(model: NumberModel, encoded: Encoded, unseen: Sequence[Question]) -> dict[str, Any]:
    """The share of answers that are right, of digits that are right, and R²; values are rounded to
    the decimals of the task.
    """
    said = learning.say(model, encoded, [one.text for one in unseen], f"1+1=1{END}", 20)
    right = [str(one.answer) for one in unseen]
    answers = [rounded(text, one.answer) for text, one in zip(said, unseen, strict=True)]
    unparseable = metrics.share_unparseable(answers)
    return {
        "asked": len(unseen),
        "exact": metrics.exact_match(answers, right),
        "digits_right": metrics.digit_accuracy(answers, right),
        "r2": metrics.r_squared(answers, right, invalid="skip") if unparseable < 1 else None,
        "unparseable": unparseable,
        "examples": [f"{one.text}{text}" for one, text in zip(unseen[:3], said, strict=False)],
    }


def rounded(text: str, answer: Decimal) -> str:
    """The first number of a text, with as many decimals as the answer has; the text itself if there
    is none.
    """
    found = numtok.extract(text)
    if not found or abs(found[0].value) > Decimal("1e15"):
        return text
    return str(found[0].value.quantize(answer))


def first_value(text: str) -> float:
    """The first number of a text; NaN if there is none."""
    found = numtok.extract(text)
    return float(found[0].value) if found else math.nan
