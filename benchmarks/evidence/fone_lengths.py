"""FoNE, figure 4 and appendix F: sums longer than any sum of the training.

With Abacus, numbers are written digit by digit, the least significant first. Each digit has its
position, and in training the positions of a row are shifted by one random offset (McLeish et al.
2024). With FoNE, the word vector of a digit is φ(j, 10), padded with zeros or through a linear map.
All models are trained on pairs of short operands, and asked for longer ones. The backbone knows no
positions but these.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import SmolLM3Config, SmolLM3ForCausalLM

import numtok
from benchmarks.evidence import learning, tables
from benchmarks.evidence.corpus import Encoded, encode
from benchmarks.evidence.experiment import Experiment
from benchmarks.evidence.learning import Schedule
from benchmarks.evidence.plots import curves, learning_curves, picture_link
from benchmarks.evidence.store import Result, Settings, Store, without_search
from numtok_torch import (
    FoNEDigitEmbedding,
    NumberEmbedding,
    NumberModel,
    PlaceValueEmbedding,
    SumEmbedding,
)

NAME = "fone_lengths"
FILLED = {  # how φ gets the model's width: "either way can be used"
    "Abacus with FoNE": "pad",
    "Abacus with FoNE, linear": "linear",
}
VARIANTS = ("Abacus", *FILLED, "no places")
SEEDS = {"smoke": (), "small": (1, 2, 3), "full": (1, 2, 3)}  # the search has seed 0
TRAINED = {"smoke": 2, "small": 4, "full": 10}  # digits of the longest operand in training
LONGEST = {"smoke": 3, "small": 8, "full": 50}  # digits of the longest operand asked
OFFSET = {"smoke": 2, "small": 8, "full": 100}  # the largest shift of the positions
SAMPLES = {"smoke": 2000, "small": 50_000, "full": 2_000_000}  # the paper has 20 million
STEPS = {"smoke": 60, "small": 1200, "full": 300_000}
BATCH = {"smoke": 64, "small": 64, "full": 512}
MODEL_SIZE = {"smoke": (32, 1), "small": (64, 2), "full": (1024, 8)}  # width and layers
ASKED = {"smoke": 2, "small": 10, "full": 100}  # for each pair of lengths
RATE, END = 0.004, ";"
STARTS = ("0.02", "width^-0.5")  # standard deviations of the vectors of words and positions


def phases(size: str) -> list[list[Settings]]:
    """Return the search for a start, then every variant with every seed."""
    names = VARIANTS[:2] if size == "smoke" else VARIANTS
    search = [
        {"size": size, "variant": name, "seed": 0, "start": start}
        for name in names
        for start in (STARTS[1:] if size == "smoke" else STARTS)
    ]
    runs = [{"size": size, "variant": name, "seed": seed} for seed in SEEDS[size] for name in names]
    return [search, runs]


def sums(
    lengths: Iterable[tuple[int, ...]], count: int, draw: random.Random
) -> list[tuple[int, int]]:
    """Return different pairs of operands: ``count`` draws for each pair of lengths, without
    repetitions.
    """
    drawn: list[tuple[int, int]] = []
    for a, b in lengths:
        bounds = [(10 ** (length - 1) if length > 1 else 0, 10**length) for length in (a, b)]
        pairs = {
            (draw.randrange(*bounds[0]), draw.randrange(*bounds[1])): None for _ in range(count)
        }
        drawn += pairs
    return drawn


def text(pair: tuple[int, int]) -> str:
    """Return a sum as text.

    >>> text((12, 345))
    '12+345=357;'
    """
    return f"{pair[0]}+{pair[1]}={sum(pair)}{END}"


def questions(size: str, seed: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the sums of the training, and the sums asked.

    Only sums of two operands of at least three digits are held out, as nearly all shorter ones are
    needed for the training.
    """
    lengths = [
        list(itertools.product(range(1, longest + 1), repeat=2))
        for longest in (TRAINED[size], LONGEST[size])
    ]
    asked = sums(lengths[1], ASKED[size], random.Random(seed + 1000))
    held_out = {pair for pair in asked if min(pair) >= 100}
    seen = sums(lengths[0], SAMPLES[size] // len(lengths[0]), random.Random(seed))
    return [pair for pair in seen if pair not in held_out], asked


def in_training(seed: int) -> dict[int, list[bool]]:
    """Return whether each sum asked in the small runs stands in the training, in either order, by
    the digits of the longer operand.
    """
    seen, asked = questions("small", seed)
    both = {*seen, *((b, a) for a, b in seen)}
    return tables.group_values((len(str(max(pair))), pair in both) for pair in asked)


def run(settings: Settings, store: Store, folder: Path) -> Result:
    """Train a model on short sums, and ask it short and long ones."""
    size, variant, seed = settings["size"], settings["variant"], settings["seed"]
    start = settings.get("start") or best_start(store, size, variant)
    trained = TRAINED[size]
    seen, unseen = questions(size, seed)
    encoded = encode([text(pair) for pair in seen], numtok.PlaceValue(order="lsd"), folder)
    torch.manual_seed(seed)
    width = MODEL_SIZE[size][0]
    model = digit_model(encoded, variant, size, 0.02 if start == "0.02" else width**-0.5)
    schedule = Schedule(STEPS[size], BATCH[size], RATE, seed)
    labels = encoded.answer_labels("1+1=")
    batch = encoded.batch(labels=labels, objective="causal")
    short = [pair for pair in unseen if len(str(max(pair))) <= trained]
    result = learning.train(
        model,
        learning.shuffled_batches(batch, schedule),
        schedule,
        lambda: float(np.mean([*ask(model, encoded, short, trained)["exact"].values()])),
    )
    held = encoded.encode([text(pair) for pair in short])
    return {
        "start": start,
        **result,
        "samples": len(seen),
        "trained_up_to": trained,
        "unseen_loss": learning.mean_loss(model, held.batch(labels=labels, objective="causal")),
        **ask(model, encoded, unseen, LONGEST[size]),
    }


def best_start(store: Store, size: str, variant: str) -> str:
    """Return the start with the lowest loss on unseen sums of trained lengths."""
    search: dict[str, Settings] = {
        start: {"size": size, "variant": variant, "seed": 0, "start": start} for start in STARTS
    }
    return store.best(NAME, search)


def digit_model(encoded: Encoded, variant: str, size: str, start: float) -> NumberModel:
    """Return a Llama without positions, and the layers of a variant that show its digits.

    Args:
        encoded: training data.
        variant: one of :data:`VARIANTS`.
        size: size of the runs.
        start: standard deviation of the vectors of words and positions at the start.
    """
    width, layers = MODEL_SIZE[size]
    sizes: dict[str, Any] = {
        "hidden_size": width,
        "intermediate_size": 4 * width,
        "num_hidden_layers": layers,
    }
    heads: dict[str, Any] = {
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "no_rope_layers": [0] * layers,
    }
    no_ends: dict[str, Any] = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    backbone = SmolLM3ForCausalLM(
        SmolLM3Config(
            vocab_size=encoded.tokenizer.vocab_size,
            tie_word_embeddings=False,
            **sizes,
            **heads,
            **no_ends,
        )
    )
    words: Any = backbone.get_input_embeddings()
    torch.nn.init.normal_(words.weight, std=start)
    if variant == "no places":
        return NumberModel(backbone, None)
    places = PlaceValueEmbedding(
        width, 128, max_offset=OFFSET[size], zero_init=False, written="lsd"
    )
    embeddings: list[NumberEmbedding] = [places]
    if variant in FILLED:
        digits = [encoded.tokenizer.tokens[str(digit)] for digit in range(10)]
        embeddings.append(FoNEDigitEmbedding(width, digits, FILLED[variant], combine="replace"))
    return NumberModel(backbone, SumEmbedding(embeddings))


def ask(
    model: NumberModel, encoded: Encoded, unseen: Sequence[tuple[int, int]], longest: int
) -> Result:
    """Return the share of right sums by the digits of the longer operand."""
    prompts = [text(pair).split("=")[0] + "=" for pair in unseen]
    answers = learning.write_answers(model, encoded, prompts, text((1, 1)), longest + 6)
    right = tables.group_values(
        (len(str(max(pair))), answer.removesuffix(END) == str(sum(pair)))
        for pair, answer in zip(unseen, answers, strict=True)
    )
    examples = [f"{text(pair)} {answer}" for pair, answer in zip(unseen, answers, strict=True)]
    return {
        "asked": len(unseen),
        "exact": {
            str(length): round(float(np.mean(are_right)), 4)
            for length, are_right in sorted(right.items())
        },
        "examples": examples[:: max(len(examples) // 5, 1)],
    }


def section(results: list[tuple[Settings, Result]], plots: Path) -> str:
    """Return a table and pictures of exact answers by the digits of the longer operand."""
    shares = exact(results)
    lengths = sorted({length for points in shares.values() for length in points})
    starts = {settings["variant"]: result["start"] for settings, result in without_search(results)}
    rows = [
        [
            name,
            *(tables.mean(points.get(length, []), ".0%") for length in lengths),
            verdict(points, shares["Abacus"]) if name in FILLED else "",
            starts[name],
        ]
        for name, points in shares.items()
    ]
    by_seed = [in_training(seed) for seed in SEEDS["small"]]
    seen = [f"{np.mean([np.mean(one[length]) for one in by_seed]):.0%}" for length in lengths]
    counts = [f"{np.mean([len(one[length]) for one in by_seed]):.0f}" for length in lengths]
    rows.append(["sums asked with a seed", *counts, "", ""])
    rows.append(["share of these in the training", *seen, "", ""])
    farther = f"verdict: better than Abacus, {TRAINED['small'] + 1} digits"
    heads = ["exact, by digits of the longer operand", *map(str, lengths), farther, "start"]
    parts = [
        f"Models are trained on operands of up to {TRAINED['small']} digits, written digit by digit.",
        tables.markdown(heads, rows),
    ]
    if shares:
        picture, title = (
            plots / f"{NAME}.svg",
            "Exact sums against the digits of the longer operand",
        )
        curves(picture, shares, "digits of the longer operand", "exact")
        parts.append(picture_link(picture, title, shares))
        runs = tables.group_values(
            (settings["variant"], result) for settings, result in without_search(results)
        )
        y = f"exact, mean over 1 to {TRAINED['small']} digits"
        picture = plots / f"{NAME}_curves.svg"
        parts.append(learning_curves(picture, runs, "Exact short sums", y))
    return "\n\n".join(parts)


def verdict(points: dict[int, list[float]], abacus: dict[int, list[float]]) -> str:
    """Return whether a variant is better than Abacus one digit beyond the training, with each seed."""
    length = TRAINED["small"] + 1
    asked = (2 * length - 1) * ASKED["small"]  # pairs of lengths whose longer one is this
    return tables.verdict(points[length], abacus[length], asked)


def exact(results: list[tuple[Settings, Result]]) -> dict[str, dict[int, list[float]]]:
    """Return the shares of exact answers by variant and by digits of the longer operand, one per
    seed.
    """
    by_variant = tables.group_values(
        (settings["variant"], result["exact"]) for settings, result in without_search(results)
    )
    return {
        name: tables.group_values(
            (int(length), share) for run in by_variant[name] for length, share in run.items()
        )
        for name in VARIANTS
        if name in by_variant
    }


EXPERIMENT = Experiment(
    NAME,
    "FoNE, figure 4",
    "Models are trained on sums of up to 10 digits and asked for up to 50. Abacus with FoNE is better"
    " than Abacus without, with each of three seeds.",
    phases,
    run,
    section,
    question="Does FoNE help with sums longer than those of the training?",
    result=(
        "With one digit more than in training, few sums are right, and the seeds differ by more than FoNE"
        " adds. With more digits, no sum is right."
    ),
    confidence="Not shown, with three seeds; trained on 4 digits where the paper trains on 10.",
    rows=("Abacus", "Abacus with FoNE"),
    columns=("4", "5"),
    picture="fone_lengths.svg",
    setup=f"""\
| | here | the paper |
|---|---|---|
| digits in training | {TRAINED["small"]} | 10 |
| digits asked | {LONGEST["small"]} | 50 |
| model | width {MODEL_SIZE["small"][0]}, {MODEL_SIZE["small"][1]} layers | 8 layers |
| training | 40,700 samples, {STEPS["small"]:,} steps of {BATCH["small"]} | a day on a GPU |

Each row chose between word vectors of two lengths, by the loss on sums of trained lengths. The choice
was made at seed 0, which is not shown.

Sums of one and two digits are too few to hold any out. The last two rows of the table count the sums
that are asked, and the share of them that stands in the training.""",
    verdict="""\
Not shown. A digit beyond the training, hardly anything is right, and the seed decides more than
FoNE does. Farther beyond, nothing is right with any row. All rows with places learn the trained
lengths. The paper's 10 digits and a day of a GPU would settle it.""",
)
