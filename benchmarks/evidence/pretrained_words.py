"""The cost of another representation of numbers for a pretrained model: how well the model still
predicts words, before any training and while it adapts.

SmolLM2-135M-Instruct on pages of an encyclopedia; every weight is trained. The words are the same
tokens in every representation. Their loss is that of all tokens that belong to no number.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch

import numtok
from benchmarks.corpus import shared_folder
from benchmarks.evidence import learning, pretrained, tables
from benchmarks.evidence.corpus import Encoded, encode
from benchmarks.evidence.experiment import Experiment
from benchmarks.evidence.learning import Schedule
from benchmarks.evidence.plots import learning_curves
from benchmarks.evidence.store import Result, Settings, Store
from numtok.representations import END_NUM, NUM
from numtok_torch import NumberDataset, NumberModel
from numtok_torch.data.masking import IGNORED

NAME = "pretrained_words"
OWN_DIGITS = "digits:1,bare"
NUMBERS: dict[str, Any] = {
    OWN_DIGITS: numtok.Digits(1, brackets=False),
    "place:bare": numtok.PlaceValue(brackets=False),
    "digits:1": "digits:1",
    "place:lsd": "place:lsd",
    "xval": "xval",
    "logfourier": "logfourier",
    "bits": "bits",
    "quantile_bins:32,soft": "quantile_bins:32,soft",
    "fone:6,4": "fone:6,4",
}
SEEDS = {"smoke": (0,), "small": (0,), "full": (0, 1, 2)}  # a run takes 12 minutes of a core
STEPS = {"smoke": 3, "small": 200, "full": 2000}
PAGES = {"smoke": 2, "small": 300, "full": 420}
HELD_OUT = 8  # one page of so many is held out
ASKED = {"smoke": 100, "small": 600, "full": None}  # characters of a held-out page
BLOCK = {"smoke": 32, "small": 128, "full": 512}
BATCH = {"smoke": 4, "small": 2, "full": 8}
RATE, NEW_RATE = 1e-4, 3e-3


def phases(size: str) -> list[list[Settings]]:
    """Return every representation with every seed."""
    return [
        [
            {"size": size, "numbers": numbers, "seed": seed}
            for seed in SEEDS[size]
            for numbers in (NUMBERS if size != "smoke" else ("digits:1",))
        ]
    ]


def pages(size: str) -> tuple[list[str], list[str]]:
    """Return the pages of the training, and held-out pages."""
    folder = shared_folder()
    if folder is None:
        raise LookupError(
            "the encyclopedia's pages, corpora/wiki.jsonl of the shared data, are absent"
        )
    lines = (folder / "corpora" / "wiki.jsonl").read_text("utf-8").splitlines()[: PAGES[size]]
    texts = [json.loads(one)["text"][: 400 if size == "smoke" else None] for one in lines]
    held_out = [one[: ASKED[size]] for k, one in enumerate(texts) if k % HELD_OUT == 0]
    return [one for k, one in enumerate(texts) if k % HELD_OUT], held_out


def run(settings: Settings, store: Store, folder: Path) -> Result:
    """Train the model on text, and measure the cost of words on the way."""
    size, numbers, seed = settings["size"], settings["numbers"], settings["seed"]
    seen_texts, unseen_texts = pages(size)
    encoded = encode(seen_texts, NUMBERS[numbers], folder, tokenizer=pretrained.folder())
    seen, unseen = (blocks(encoded, texts, BLOCK[size]) for texts in (seen_texts, unseen_texts))
    torch.manual_seed(seed)
    layer = {"zero_init": True} if numbers.startswith("place") else {}
    model = NumberModel.build(
        pretrained.backbone(), seen.schema, seen.tokenizer, embedding=layer
    ).to(learning.DEVICE)
    batch = seen.batch(objective="causal")
    asked = unseen.batch(objective="causal")
    words = words_alone(unseen, asked, unseen_texts)
    bytes_asked = sum(len(text.encode()) for text in unseen_texts)
    words_before, all_before = bits(model, words, bytes_asked), bits(model, asked, bytes_asked)
    schedule = Schedule(STEPS[size], BATCH[size], RATE, seed, new_rate=NEW_RATE, bfloat16=True)
    result = learning.train(
        model,
        learning.shuffled_batches(batch, schedule),
        schedule,
        lambda: bits(model, words, bytes_asked),
    )
    spelled = model.head is None  # numbers are tokens, which the same loss covers
    return {
        **result,
        "device": pretrained.device_name(),
        "words_before": words_before,
        "words_after": result["curve"][-1][2],
        "all_before": all_before if spelled else None,
        "all_after": bits(model, asked, bytes_asked) if spelled else None,
        "tokens_of_held_out": sum(
            len(unseen.rows[row]["input_ids"]) for row in range(len(unseen.rows))
        ),
    }


def blocks(encoded: Encoded, texts: list[str], size: int) -> Encoded:
    """Return the texts as rows of ``size`` tokens, encoded by the same tokenizer."""
    batch = encoded.tokenizer.encode_batch(texts)
    rows = NumberDataset(batch, tokenizer=encoded.tokenizer, block_size=size)
    return Encoded(encoded.tokenizer, encoded.schema, rows)


def words_alone(encoded: Encoded, batch: dict[str, Any], texts: list[str]) -> dict[str, Any]:
    """Return the batch with labels for words alone: none for a token of a number, nor for the space
    before it.
    """
    ids, tokens = batch["input_ids"].numpy(), encoded.tokenizer.tokens
    opening = np.isin(ids, [tokens[name] for name in (NUM, " " + NUM) if name in tokens])
    if END_NUM in tokens:  # digits stand between
        closing = ids == tokens[END_NUM]
        numbers = (opening.cumsum(1) > closing.cumsum(1)) | closing
    else:
        numbers = opening if opening.any() else _digits(encoded, batch, texts)
    labels = batch["labels"].masked_fill(torch.from_numpy(numbers), IGNORED)
    return {**batch, "labels": labels}


def _digits(encoded: Encoded, batch: dict[str, Any], texts: list[str]) -> Any:
    """Return which tokens are digits of a number, one token per character, or the space before it:
    bool (rows, tokens).
    """
    ids, starts = batch["input_ids"].numpy(), np.argwhere(batch["number_mask"].numpy())
    lengths = [len(number.text) for text in texts for number in numtok.extract(text)]
    if len(lengths) != len(starts):
        raise ValueError(f"{len(lengths)} numbers in the text, {len(starts)} in the rows")
    space = encoded.tokenizer.encode("is 1").input_ids[-2]
    numbers = np.zeros(ids.shape, bool)
    for (row, start), length in zip(starts, lengths, strict=True):
        numbers[row, start : start + length] = True
        if start and ids[row, start - 1] == space:
            numbers[row, start - 1] = True
    return numbers


def bits(model: NumberModel, batch: dict[str, Any], count: int) -> float:
    """Return the loss on the labelled tokens of a batch, in bits, divided by ``count`` bytes."""
    model.eval()
    total = 0.0
    for first in range(0, len(batch["input_ids"]), 16):
        rows = {name: stream[first : first + 16] for name, stream in batch.items()}
        with torch.no_grad():
            logits = model(**learning.to_device(rows)).logits
        targets = rows["labels"][:, 1:].to(logits.device).flatten()
        total += torch.nn.functional.cross_entropy(
            logits[:, :-1].flatten(0, 1).float(), targets, ignore_index=IGNORED, reduction="sum"
        ).item()
    return round(total / math.log(2) / count, 5)


def section(results: list[tuple[Settings, Result]], plots: Path) -> str:
    """Return a table of bits before and after, means over seeds, and learning curves."""
    by_row = tables.group_values((settings["numbers"], result) for settings, result in results)
    plain = by_row[OWN_DIGITS][0]["words_before"] if OWN_DIGITS in by_row else math.nan
    measures = ("words_before", "words_after", "all_before", "all_after")
    rows = [
        [
            f"`{numbers}`",
            *(
                tables.mean((run[measure] for run in by_row[numbers]), ".4f")
                for measure in measures
            ),
            _paid_back(by_row[numbers], plain),
            f"{by_row[numbers][0]['tokens_of_held_out']:,}",
            str(len(by_row[numbers])),
        ]
        for numbers in NUMBERS
        if numbers in by_row
    ]
    after = f"words, after {STEPS['small']} steps"
    heads = ["bits per byte", "words, before", after, "words and numbers, before", "after"]
    heads += ["words as before, from step", "tokens", "seeds"]
    drawn = learning_curves(
        plots / f"{NAME}.svg",
        by_row,
        "Bits per byte of words",
        "bits per byte",
        share=False,
        clock="seconds of a processor",
    )
    return "\n\n".join(filter(None, [tables.markdown(heads, rows), drawn]))


def _paid_back(runs: list[Result], plain: float) -> str:
    """Return the step of the curve from which on words cost at most ``plain``, the cost with the
    model's own digits before any training.
    """
    means = np.mean([run["curve"] for run in runs], axis=0)
    if np.mean([run["words_before"] for run in runs]) <= plain:
        return "0"
    return next((f"{step:.0f}" for step, _, cost in means if cost <= plain), "not yet")


EXPERIMENT = Experiment(
    NAME,
    "a pretrained model that gets used to another representation",
    "No paper.",
    phases,
    run,
    section,
    question="What does another representation cost a pretrained model's words?",
    result=(
        "Before training, words cost nothing more with the model's own digits, and 9 to 12% more in other"
        f" forms. After {STEPS['small']} steps it is 0 to 6% more, with `logfourier` 14%."
    ),
    confidence="Likely little; one seed each.",
    rows=("`digits:1,bare`", "`digits:1`", "`fone:6,4`"),
    columns=("words, before", f"words, after {STEPS['small']} steps"),
    picture="pretrained_words.svg",
    setup=f"""\
- **Model**: SmolLM2-135M-Instruct, all weights at {RATE:g}, the layer and the head at {NEW_RATE:g}. The forward
  pass is in bfloat16, on a processor with other work.
- **Text**: {BATCH["small"]} rows of {BLOCK["small"]} tokens a step; {PAGES["small"]} pages of an encyclopedia, of
  which one in {HELD_OUT} is held out: its first {ASKED["small"]} characters.
- **Start**: rows for number tokens start from the model's own, layers of places from zeros.
- **Words** are all tokens that belong to no number. Their bits are counted over all bytes of the text,
  numbers included.

Layers of values start at random, as long as the word vectors.""",
    verdict="""\
Likely little, and not for long.

- `digits:1,bare`, and places on it, cost nothing before training, as the ids are the model's own.
- With brackets around digits, or with values, words are 9 to 12% more expensive before training. After
  20 to 80 steps they cost less than before, as the training text helps too. After 200 steps they cost as
  much as with the model's own digits (`bits`) or up to 6% more (`fone`).
- `logfourier` was as good until step 100. Then words became more expensive again, to 14% more. We have not
  looked into why; its head learns at 3e-3 here, three times the rate that the pages take.

Each row has one seed.""",
)
