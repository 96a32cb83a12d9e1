"""Teach a pretrained model arithmetic with adapters: by its own digits, by digits whose decimal
positions it sees, or by values.

Sums and differences of three digits, and word problems of one step, as in :mod:`place_fermat`.
SmolLM2-135M-Instruct, LoRA in all its linear layers, the loss on answers alone.

``values beside`` keeps the model's own digits. A layer that starts from zeros adds the value of
each number, as features of its logarithm, to the word vector of the token after the number. So the
model starts unchanged, and a token still depends only on tokens before it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import numtok
from benchmarks.evidence import learning, pretrained, tables
from benchmarks.evidence.arithmetic import Question, rounded
from benchmarks.evidence.corpus import Encoded, encode
from benchmarks.evidence.experiment import Experiment
from benchmarks.evidence.learning import Schedule
from benchmarks.evidence.place_fermat import is_held_out, problems
from benchmarks.evidence.plots import learning_curves
from benchmarks.evidence.store import Result, Settings, Store
from numtok_torch import LogFourierEmbedding, NumberModel, metrics

NAME = "pretrained_lora"
OWN_DIGITS, BESIDE = "digits:1,bare", "values beside"
NUMBERS: dict[str, Any] = {
    OWN_DIGITS: numtok.Digits(1, brackets=False),
    BESIDE: numtok.Digits(1, brackets=False),
    "place:bare": numtok.PlaceValue(brackets=False),
    "place:lsd": "place:lsd",
    "fone:4,0": "fone:4,0",
    "xval": "xval",
}
TASKS = ("sum", "difference", "word problem")
SEEDS = {"smoke": (0,), "small": (0,), "full": (0, 1, 2)}  # a run takes up to 75 minutes of a core
STEPS = {"smoke": 3, "small": 300, "full": 5000}
SAMPLES = {"smoke": 4, "small": 8000, "full": 100_000}
ASKED = {"smoke": 1, "small": 400, "full": 4000}
CURVE_QUESTIONS = 100  # questions for a point of a learning curve
BATCH = {"smoke": 4, "small": 32, "full": 32}
RATE, NEW_RATE = 1e-3, 3e-3
END, ANSWER = ";", " Answer:"
ANSWER_TOKENS = 8  # tokens of an answer, at most
ROWS = 100  # prompts in a batch


def phases(size: str) -> list[list[Settings]]:
    """Return every task with every representation and seed."""
    return [
        [
            {"size": size, "task": task, "numbers": numbers, "seed": seed}
            for seed in SEEDS[size]
            for task in TASKS[: 1 if size == "smoke" else None]
            for numbers in (NUMBERS if size != "smoke" else (BESIDE,))
        ]
    ]


def questions(task: str, size: str, seed: int) -> tuple[list[Question], list[Question]]:
    """Return the questions asked, and those of the training. No question is in both, and no
    equation of a word problem.
    """
    count = SAMPLES[size] + ASKED[size]
    if task == "word problem":
        drawn = problems("small", count * 8 // 7, seed)
        asked, seen = (
            [
                Question(problem.question + ANSWER, Decimal(problem.answer))
                for problem in drawn
                if is_held_out(problem) == held_out
            ]
            for held_out in (True, False)
        )
        return asked[: ASKED[size]], seen[: SAMPLES[size]]
    source, answers = random.Random(f"{task} {seed}"), dict[str, Decimal]()
    while len(answers) < count:
        a, b = source.randrange(1000), source.randrange(1000)
        sign, answer = ("+", a + b) if task == "sum" else ("-", a - b)
        answers[f"What is {a} {sign} {b}?{ANSWER}"] = Decimal(answer)
    every = [Question(text, answer) for text, answer in answers.items()]
    return every[: ASKED[size]], every[ASKED[size] :]


def run(settings: Settings, store: Store, folder: Path) -> Result:
    """Train adapters on questions with their answers, and ask others."""
    size, task, numbers, seed = (settings[key] for key in ("size", "task", "numbers", "seed"))
    unseen, seen = questions(task, size, seed)
    solved = [f"{question.text} {question.answer}{END}" for question in seen]
    encoded = encode(solved, NUMBERS[numbers], folder, tokenizer=pretrained.folder())
    torch.manual_seed(seed)
    options = {"zero_init": True} if numbers.startswith("place") else pretrained.published(numbers)
    model = pretrained.with_adapters(encoded, **options)
    if numbers == BESIDE:
        digits = [encoded.last_token(f"a{digit}") for digit in "0123456789."]
        layer = ValuesBeside(pretrained.WIDTH, digits)
        model = NumberModel(model.backbone, layer, tokenizer=encoded.tokenizer)
    schedule = Schedule(STEPS[size], BATCH[size], RATE, seed, new_rate=NEW_RATE)
    batch = encoded.batch(labels=encoded.answer_labels(ANSWER.strip()), objective="causal")
    began = time.perf_counter()
    result = learning.train(
        model,
        learning.shuffled_batches(batch, schedule),
        schedule,
        lambda: float(ask(model, encoded, unseen[:CURVE_QUESTIONS])["exact"]),
    )
    return {
        **result,
        "wall_seconds": round(time.perf_counter() - began, 1),
        "device": pretrained.device_name(),
        "tokens_per_sample": round(int(batch["attention_mask"].sum()) / len(seen), 2),
        **ask(model, encoded, unseen),
    }


class ValuesBeside(LogFourierEmbedding):
    """Layer that adds a linear map, from zeros, of :func:`log_features` of a number's value to the
    word vector of the token after the number: (batch, seq, d_model).

    Args:
        d_model: dimension of the word vectors.
        digits: ids of the tokens that numbers are written with.
    """

    streams = ("number_value",)

    def __init__(self, d_model: int, digits: Sequence[int]) -> None:
        super().__init__(d_model, zero_init=True)
        self.digits = digits

    def find(self, inputs_embeds: Tensor, batch: Any) -> tuple[Tensor, Tensor]:
        """Return the tokens that follow a number, bool (batch, seq), and its value there, float64
        (batch, seq).
        """
        ids, length = batch["input_ids"], inputs_embeds.shape[1]
        is_digit = torch.isin(ids, torch.tensor(self.digits, device=ids.device))
        positions = torch.arange(length, device=ids.device).expand_as(ids)
        not_digit = positions.masked_fill(is_digit, length)
        next_other = (
            not_digit.flip(1).cummin(1).values.flip(1)
        )  # position of the next token that is no digit
        row, start = batch["number_mask"].nonzero(as_tuple=True)
        inside = start + 1 < length
        row, start = row[inside], start[inside]
        end = next_other[row, start + 1]
        row, start, end = (index[end < length] for index in (row, start, end))
        follows = torch.zeros_like(is_digit)
        values = torch.ones_like(batch["number_value"])
        follows[row, end], values[row, end] = True, batch["number_value"][row, start]
        return follows, values

    def embed(self, words: Tensor, rows: Tensor) -> Tensor:
        """Return word vectors (n, d_model) plus the map of their values (n,)."""
        return words + self.project(log_features(rows).to(words.dtype))


def log_features(values: Tensor) -> Tensor:
    """Return the features that ``logfourier`` shows of values (n,): sign and zero flag, then cosine
    and sine of 2 pi log10(abs(x)) / T for its eight periods T, (n, 18).
    """
    zero = values == 0
    logarithms = values.abs().masked_fill(zero, 1.0).log10()
    periods = torch.tensor(numtok.LogFourier().periods, device=values.device)
    turns = 2 * torch.pi * logarithms[:, None] / periods  # (n, 8)
    waves = torch.stack([turns.cos(), turns.sin()], -1) * ~zero[:, None, None]
    signs = torch.where(values < 0, -1.0, 1.0).to(values.dtype)
    flags = torch.stack([signs, zero.to(values.dtype)], -1)[:, None]
    return torch.cat([flags, waves], 1).flatten(1)


def ask(model: NumberModel, encoded: Encoded, unseen: Sequence[Question]) -> Result:
    """Return the shares of right answers and of answers that are no number."""
    prompts = [question.text for question in unseen]
    if isinstance(model.embedding, ValuesBeside):
        texts = write_with_values(model, encoded, prompts)
    else:
        texts = learning.write_answers(model, encoded, prompts, f"1{END}", ANSWER_TOKENS, ROWS)
    right = [str(question.answer) for question in unseen]
    answers = [rounded(text, question.answer) for text, question in zip(texts, unseen, strict=True)]
    return {
        "asked": len(unseen),
        "exact": metrics.exact_match(answers, right),
        "unparseable": metrics.share_unparseable(answers),
        "examples": [
            f"{question.text}{text}" for question, text in zip(unseen[:3], texts, strict=False)
        ],
    }


def write_with_values(model: NumberModel, encoded: Encoded, prompts: Sequence[str]) -> list[str]:
    """Return the text that a model with :class:`ValuesBeside` writes after each prompt, greedily.
    Only numbers of the prompt have values, as nothing is read after the answer.
    """
    model.eval()
    texts = []
    for first in range(0, len(prompts), ROWS):
        rows = learning.to_device(encoded.encode(prompts[first : first + ROWS]).batch())
        ends = rows["attention_mask"].sum(1)  # (rows,)
        rows = {
            name: nn.functional.pad(stream, (0, ANSWER_TOKENS), value=int(name == "number_value"))
            for name, stream in rows.items()
        }
        each = torch.arange(len(ends), device=ends.device)
        for step in range(ANSWER_TOKENS):
            with torch.no_grad():
                logits = model(**rows).logits
            rows["input_ids"][each, ends + step] = logits[each, ends + step - 1].argmax(-1)
            rows["attention_mask"][each, ends + step] = 1
        for ids, end in zip(rows["input_ids"].tolist(), ends.tolist(), strict=True):
            texts.append(encoded.tokenizer.decode(ids[end : end + ANSWER_TOKENS]).split(END)[0])
    return texts


def section(results: list[tuple[Settings, Result]], plots: Path) -> str:
    """Return a table of right answers, means over seeds, and learning curves."""
    runs = tables.group_values(
        ((settings["task"], settings["numbers"]), result) for settings, result in results
    )
    rows = []
    for numbers in NUMBERS:
        by_task = {task: runs.get((task, numbers), []) for task in TASKS}
        rows.append(
            [
                f"`{OWN_DIGITS}`, {BESIDE}" if numbers == BESIDE else f"`{numbers}`",
                *(tables.mean(run["exact"] for run in some) for some in by_task.values()),
                *(
                    tables.mean((run["tokens_per_sample"] for run in by_task[task][:1]), ".1f")
                    for task in ("sum", "word problem")
                ),
                str(len(by_task["sum"])),
            ]
        )
    heads = ["right answers", *TASKS, "tokens of a sum", "of a word problem", "seeds"]
    parts = [tables.markdown(heads, rows)]
    for task in TASKS:
        named = {
            numbers: [against_tokens(run) for run in runs[task, numbers]]
            for numbers in NUMBERS
            if (task, numbers) in runs
        }
        picture, title = plots / f"{NAME}_{task.replace(' ', '_')}.svg", f"Right answers, {task}"
        parts.append(learning_curves(picture, named, title, "right answers", clock="tokens read"))
    return "\n\n".join(filter(None, parts))


def against_tokens(result: Result) -> Result:
    """Return the result with the tokens read so far in its curve, in place of seconds: some runs
    had a GPU, others a CPU.
    """
    last = result["curve"][-1][0]
    curve = [[step, result["tokens"] * step / last, value] for step, _, value in result["curve"]]
    return {**result, "curve": curve}


EXPERIMENT = Experiment(
    NAME,
    "a pretrained model that learns arithmetic",
    "No paper, for a pretrained model. FoNE and place values were shown to help models that learn"
    " arithmetic from scratch.",
    phases,
    run,
    section,
    question="By what does a pretrained model learn arithmetic soonest?",
    result=(
        "`place:lsd`, places with the least significant digit first, has all sums, 95% of the differences"
        " and 96% of the word problems; the model's own digits have 91%, 42% and 76%."
        " Values do not help here."
    ),
    confidence="Likely, by digits that know their places; one seed each.",
    rows=(f"`{OWN_DIGITS}`", "`place:lsd`", "`fone:4,0`", "`xval`"),
    columns=("sum", "difference", "word problem"),
    picture="pretrained_lora_difference.svg",
    setup=f"""\
- **Model**: SmolLM2-135M-Instruct, LoRA of rank {pretrained.RANK} in all linear layers at {RATE:g}, the layer
  and the head at {NEW_RATE:g}. Some runs had a GPU, others a CPU.
- **Training**: {STEPS["small"]} steps of {BATCH["small"]} answers, {SAMPLES["small"]:,} questions.
- **Word problems** are of our own templates, one sum or difference of whole numbers of up to three
  digits, with equations that are held out.""",
    verdict=f"""\
Likely by digits that know their places, the least significant first.

- **Places.** `place:lsd` has all sums, 95% of the differences and 96% of the word problems right, where
  the model's own digits have 91%, 42% and 76%. Places on the model's own digits, most significant
  first, do not help: the position of a digit is not known while it is written.
- **Values do not help here.** `xval` predicts sums to within a few units, not exactly. `fone` has hardly
  begun to learn in {STEPS["small"]} steps. Values beside the model's own digits start the model as it was,
  and change nothing afterwards.

Each row has one seed.""",
)
