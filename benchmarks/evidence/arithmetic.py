"""Sums, differences and products as in the FoNE paper, ``[operand a][operator][operand b]=``, and
how many of them a trained model gets right.

In: a task, a representation, a number of samples. Out: the share of unseen questions whose answer
    is right digit for digit. FoNE: Precise Single-Token Number Embeddings via Fourier Features
    (Zhou et al. 2025), section 4.1 and appendix G.
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
from benchmarks.evidence.learning import Schedule
from numtok_torch import NumberModel, PlaceValueEmbedding, embedding_from_schema, metrics

END = ";"
CURVE_QUESTIONS = 200  # questions for a point of a learning curve


@dataclass(frozen=True)
class Task:
    """An operation, and the size of its operands.

    Attributes:
        sign: the operator, as written.
        apply: the operation.
        digits: digits of each operand, at most.
        answer_digits: digits that answers may have before and after the point, for FoNE.
        order: ``"a<=b"``, or ``"a>=b"`` where the difference must not be negative.
        decimals: how many of the digits stand behind the point.
    """

    sign: str
    apply: Callable[[Decimal, Decimal], Decimal]
    digits: int
    answer_digits: tuple[int, int]
    order: str = "a<=b"
    decimals: int = 0


@dataclass(frozen=True)
class Row:
    """A row of the tables: a representation, and the layers that show it.

    Attributes:
        numbers: representation, as ``numtok.encode_files`` takes it.
        places: whether the model sees the decimal position of each digit, if the representation
            has positions.
        as_written: whether digits of a question have the positions that are known while it is
            written, as digits of an answer have.
        short: whether FoNE's features are scaled to the length of the word vectors.
    """

    numbers: str
    places: bool = True
    as_written: bool = False
    short: bool = False


@dataclass(frozen=True)
class Question:
    """A question, such as ``12.345+6.789=``, and its answer."""

    text: str
    answer: Decimal


def questions(task: Task, count: int, seed: int) -> list[Question]:
    """Return ``count`` different questions with operands drawn uniformly."""
    draw, limit = random.Random(seed), 10**task.digits
    operands: dict[tuple[int, int], None] = {}
    while len(operands) < count:
        a, b = sorted((draw.randrange(limit), draw.randrange(limit)), reverse=task.order == "a>=b")
        operands[a, b] = None
    pairs = [tuple(Decimal(number).scaleb(-task.decimals) for number in pair) for pair in operands]
    return [Question(f"{a}{task.sign}{b}=", task.apply(a, b)) for a, b in pairs]


def run(
    task: Task,
    row: Row,
    counts: tuple[int, int],
    schedule: Schedule,
    size: tuple[int, int],
    folder: Path,
    start: float = 0.02,
) -> dict[str, Any]:
    """Train a model on questions with their answers, and ask it others.

    Args:
        task: the operation.
        row: representation of the numbers.
        counts: questions of the training, and questions asked.
        schedule: schedule of the training.
        size: width and layers of the model.
        folder: folder for text, tokenizer and Parquet.
        start: initial standard deviation of the word vectors.
    """
    samples, held_out = counts
    every = questions(task, samples + held_out, schedule.seed)
    unseen, seen = every[:held_out], every[held_out:]
    numbers = "fone:{},{}".format(*task.answer_digits) if row.numbers == "fone" else row.numbers
    encoded = encode([_solved(question) for question in seen], numbers, folder)
    labels = encoded.answer_labels("1+1=")
    torch.manual_seed(schedule.seed)
    model = learning.build_llama(encoded, *size, places=row.places, start=start)
    if row.as_written:
        places = PlaceValueEmbedding(size[0], written="lsd", read_as_written=True)
        model = NumberModel(model.backbone, places, model.head)
    if row.short:
        # the cosine and sine of a digit have norm 1
        norm = start * (size[0] / sum(task.answer_digits)) ** 0.5
        features = embedding_from_schema(encoded.schema, size[0], amplitude=norm)
        model = NumberModel(model.backbone, features, model.head)
    batch = encoded.batch(labels=labels, objective="causal")
    few = unseen[:CURVE_QUESTIONS]
    result = learning.train(
        model,
        learning.shuffled_batches(batch, schedule),
        schedule,
        lambda: float(ask(model, encoded, few)["exact"]),
    )
    result["tokens_per_sample"] = round(int(batch["attention_mask"].sum()) / samples, 2)
    held = encoded.encode([_solved(question) for question in unseen])
    held_batch = held.batch(labels=labels, objective="causal")
    result["unseen_loss"] = learning.mean_loss(model, held_batch)
    seen_answers = {question.answer for question in seen}
    fresh = [question for question in unseen if question.answer not in seen_answers]
    result["fresh_asked"] = len(fresh)  # questions whose answer no question of the training has
    result["fresh_exact"] = ask(model, encoded, fresh)["exact"] if fresh else None
    return result | ask(model, encoded, unseen)


def _solved(question: Question) -> str:
    """Return a question with its answer, as a text to train on."""
    return f"{question.text}{question.answer}{END}"


def ask(model: NumberModel, encoded: Encoded, unseen: Sequence[Question]) -> dict[str, Any]:
    """Return the shares of right answers and of right digits, and R². Answers are rounded to as
    many decimals as the right answer has.
    """
    texts = learning.write_answers(
        model, encoded, [question.text for question in unseen], f"1+1=1{END}", 20
    )
    right = [str(question.answer) for question in unseen]
    answers = [rounded(text, question.answer) for text, question in zip(texts, unseen, strict=True)]
    unparseable = metrics.share_unparseable(answers)
    return {
        "asked": len(unseen),
        "exact": metrics.exact_match(answers, right),
        "digits_right": metrics.digit_accuracy(answers, right),
        "r2": metrics.r_squared(answers, right, invalid="skip") if unparseable < 1 else None,
        "unparseable": unparseable,
        "examples": [
            f"{question.text}{text}" for question, text in zip(unseen[:3], texts, strict=False)
        ],
    }


def rounded(text: str, answer: Decimal) -> str:
    """Return the first number of a text, rounded to as many decimals as the right answer has; the
    text itself without a number, or with one above 1e15.
    """
    numbers = numtok.extract(text)
    if not numbers or abs(numbers[0].value) > Decimal("1e15"):
        return text
    return str(numbers[0].value.quantize(answer))


def first_value(text: str) -> float:
    """Return the first number of a text; NaN without a number."""
    numbers = numtok.extract(text)
    return float(numbers[0].value) if numbers else math.nan
