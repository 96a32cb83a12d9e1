"""Teach a pretrained model arithmetic with adapters: by its own digits, by digits whose places it
sees, or by values.

Sums and differences of three digits, and word problems of one step, as :mod:`place_fermat` has
them. SmolLM2-135M-Instruct, LoRA in all its linear layers, the loss on answers alone.

``values beside``: the model's own digits, and behind each number the value that has just been
read: features of its logarithm, through a layer that starts from zeros, are added to the word
vector of the token after it. So the model starts as it was, and a token still follows from those
before it.
"""

from __future__ import annotations

import functools
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
from benchmarks.evidence.learning import Course
from benchmarks.evidence.place_fermat import is_aside, problems
from benchmarks.evidence.plots import learning_curves
from benchmarks.evidence.store import Result, Settings, Store
from numtok_torch import LogFourierEmbedding, NumberModel, metrics

NAME = "pretrained_lora"
OWN, BESIDE = "digits:1,bare", "values beside"
NUMBERS: dict[str, Any] = {
    OWN: numtok.Digits(1, brackets=False),
    BESIDE: numtok.Digits(1, brackets=False),
    "place:bare": numtok.PlaceValue(brackets=False),
    "place:lsd": "place:lsd",
    "fone:4,0": "fone:4,0",
    "xval": "xval",
}
TASKS = ("sum", "difference", "word problem")
SEEDS = {"smoke": (0,), "small": (0,), "full": (0, 1, 2)}  # up to 75 minutes of a core
STEPS = {"smoke": 3, "small": 300, "full": 5000}
SAMPLES = {"smoke": 40, "small": 8000, "full": 100_000}
ASKED = {"smoke": 3, "small": 400, "full": 4000}
WATCHED = 100  # questions for a point of a learning curve
BATCH = {"smoke": 8, "small": 32, "full": 32}
RATE, NEW_RATE = 1e-3, 3e-3
END, ANSWER = ";", " Answer:"
LONGEST = 8  # tokens of an answer
ROWS = 100  # prompts at once


def phases(size: str) -> list[list[Settings]]:
    """Every task with every representation and seed."""
    return [
        [
            {"size": size, "task": task, "numbers": numbers, "seed": seed}
            for seed in SEEDS[size]
            for task in TASKS[: 1 if size == "smoke" else None]
            for numbers in (NUMBERS if size != "smoke" else (BESIDE,))
        ]
    ]


def questions(task: str, size: str, seed: int) -> tuple[list[Question], list[Question]]:
    """Return what is asked and what is learnt from; no question is in both, nor, of word problems,
    an equation.
    """
    if task == "word problem":
        every = problems("small", (SAMPLES[size] + ASKED[size]) * 8 // 7, seed)
        made = [[Question(one.question + ANSWER, Decimal(one.answer)) for one in every
                 if is_aside(one) == aside] for aside in (True, False)]  # fmt: skip
        return made[0][: ASKED[size]], made[1][: SAMPLES[size]]
    drawn, found = random.Random(f"{task} {seed}"), dict[str, Decimal]()
    while len(found) < SAMPLES[size] + ASKED[size]:
        a, b = drawn.randrange(1000), drawn.randrange(1000)
        sign, answer = ("+", a + b) if task == "sum" else ("-", a - b)
        found[f"What is {a} {sign} {b}?{ANSWER}"] = Decimal(answer)
    every = [Question(text, answer) for text, answer in found.items()]
    return every[: ASKED[size]], every[ASKED[size] :]


def run(settings: Settings, store: Store, folder: Path) -> Result:
    """Train adapters on questions with their answers, and ask others."""
    size, task, numbers, seed = (settings[key] for key in ("size", "task", "numbers", "seed"))
    unseen, seen = questions(task, size, seed)
    solved = [f"{one.text} {one.answer}{END}" for one in seen]
    encoded = encode(solved, NUMBERS[numbers], folder, tokenizer=pretrained.folder())
    torch.manual_seed(seed)
    options = {"zero_init": True} if numbers.startswith("place") else pretrained.published(numbers)
    model = pretrained.with_adapters(encoded, **options)
    if numbers == BESIDE:
        digits = [encoded.token(f"a{digit}") for digit in "0123456789."]
        layer = ValuesBeside(pretrained.WIDTH, digits)
        model = NumberModel(model.backbone, layer, tokenizer=encoded.tokenizer)
    course = Course(STEPS[size], BATCH[size], RATE, seed, new_rate=NEW_RATE)
    batch = encoded.batch(labels=encoded.labels_behind(ANSWER.strip()), objective="causal")
    asked = functools.partial(ask, model, encoded)
    began = time.perf_counter()
    found = learning.train(
        model,
        learning.shuffled(batch, course),
        course,
        lambda: float(asked(unseen[:WATCHED])["exact"]),
    )
    found["wall_seconds"] = round(time.perf_counter() - began, 1)
    about = {
        "device": pretrained.device_name(),
        "tokens_per_sample": round(int(batch["attention_mask"].sum()) / len(seen), 2),
    }
    return {**found, **about, **asked(unseen)}


class ValuesBeside(LogFourierEmbedding):
    """Adds what the value of a finished number says, a linear map from zeros of
    :func:`log_features`, to the word vector of the token after it: (batch, seq, d_model).

    Args:
        d_model: dimension of the word vectors.
        digits: ids of the tokens that numbers are written with.
    """

    streams = ("number_value",)

    def __init__(self, d_model: int, digits: Sequence[int]) -> None:
        super().__init__(d_model, zero_init=True)
        self.digits = digits

    def find(self, inputs_embeds: Tensor, batch: Any) -> tuple[Tensor, Tensor]:
        """Return the tokens that follow a number, bool (batch, seq), and its value there."""
        ids, length = batch["input_ids"], inputs_embeds.shape[1]
        written = torch.isin(ids, torch.tensor(self.digits, device=ids.device))
        places = torch.arange(length, device=ids.device).expand_as(ids)
        others = places.masked_fill(written, length)
        following = others.flip(1).cummin(1).values.flip(1)  # the next token that is no digit
        row, start = batch["number_mask"].nonzero(as_tuple=True)
        inside = start + 1 < length
        row, start = row[inside], start[inside]
        ends = following[row, start + 1]
        row, start, ends = (one[ends < length] for one in (row, start, ends))
        behind = torch.zeros_like(written)
        values = torch.ones_like(batch["number_value"])
        behind[row, ends], values[row, ends] = True, batch["number_value"][row, start]
        return behind, values

    def embed(self, words: Tensor, rows: Tensor) -> Tensor:
        return words + self.project(log_features(rows).to(words.dtype))


def log_features(values: Tensor) -> Tensor:
    """Return what ``logfourier`` shows of values (n,): sign and zero flag, then cosine and sine of
    2 pi log10(abs(x)) / T for its eight periods T, (n, 18).
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
    """Return the share of answers that are right, digit for digit, and R²."""
    prompts = [one.text for one in unseen]
    if isinstance(model.embedding, ValuesBeside):
        said = say_beside(model, encoded, prompts)
    else:
        said = learning.say(model, encoded, prompts, f"1{END}", LONGEST, ROWS)
    right = [str(one.answer) for one in unseen]
    answers = [rounded(text, one.answer) for text, one in zip(said, unseen, strict=True)]
    return {
        "asked": len(unseen),
        "exact": metrics.exact_match(answers, right),
        "unparseable": metrics.share_unparseable(answers),
        "examples": [f"{one.text}{text}" for one, text in zip(unseen[:3], said, strict=False)],
    }


def say_beside(model: NumberModel, encoded: Encoded, prompts: Sequence[str]) -> list[str]:
    """Return what a model with values beside writes, greedily: the values are those of the prompt,
    as nothing is read behind the answer.
    """
    model.eval()
    said = []
    for first in range(0, len(prompts), ROWS):
        batch = encoded.like(prompts[first : first + ROWS]).batch()
        rows = learning.placed(batch)
        ends = rows["attention_mask"].sum(1)  # (rows,)
        rows = {
            name: nn.functional.pad(stream, (0, LONGEST), value=int(name == "number_value"))
            for name, stream in rows.items()
        }
        each = torch.arange(len(ends), device=ends.device)
        for step in range(LONGEST):
            with torch.no_grad():
                logits = model(**rows).logits
            rows["input_ids"][each, ends + step] = logits[each, ends + step - 1].argmax(-1)
            rows["attention_mask"][each, ends + step] = 1
        for ids, end in zip(rows["input_ids"].tolist(), ends.tolist(), strict=True):
            said.append(encoded.tokenizer.decode(ids[end : end + LONGEST]).split(END)[0])
    return said


def section(results: list[tuple[Settings, Result]], plots: Path) -> str:
    """Right answers, means over seeds, and learning curves."""
    by = tables.gathered(
        ((settings["task"], settings["numbers"]), result)
        for settings, result in results
        if settings["size"] == "small"
    )
    rows = [
        [f"`{numbers}`" if numbers != BESIDE else f"`{OWN}`, {BESIDE}",
         *(tables.mean(one["exact"] for one in by.get((task, numbers), [])) for task in TASKS),
         *(tables.mean((one["tokens_per_sample"] for one in by.get((task, numbers), [])[:1]), ".1f") for task in TASKS[::2]),
         str(len(by.get((TASKS[0], numbers), [])))]
        for numbers in NUMBERS
    ]  # fmt: skip
    heads = ["right answers", *TASKS, "tokens of a sum", "of a word problem", "seeds"]
    parts = [tables.markdown(heads, rows)]
    for task in TASKS:
        named = {
            numbers: [against_tokens(one) for one in by[task, numbers]]
            for numbers in NUMBERS
            if (task, numbers) in by
        }
        picture = plots / f"{NAME}_{task.replace(' ', '_')}.svg"
        parts.append(
            learning_curves(
                picture, named, f"Right answers, {task}", "right answers", clock="tokens read"
            )
        )
    return "\n\n".join(filter(None, parts))


def against_tokens(found: Result) -> Result:
    """Return the result with the tokens read so far in its curve, in place of seconds: some runs had
    a GPU, others a CPU.
    """
    last = found["curve"][-1][0]
    curve = [[step, found["tokens"] * step / last, value] for step, _, value in found["curve"]]
    return {**found, "curve": curve}


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
    sure="Likely, by digits that know their places; one seed each.",
    rows=(f"`{OWN}`", "`place:lsd`", "`fone:4,0`", "`xval`"),
    columns=("sum", "difference", "word problem"),
    picture="pretrained_lora_difference.svg",
    differs=f"""\
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
