"""FoNE, figure 4 and appendix F: sums longer than any that the model was trained on.

Abacus: numbers are written digit by digit, the least significant first, each digit with its place,
    and in training all places of a row are moved by one number drawn anew (McLeish et al. 2024).
    With FoNE, each digit's word vector is φ(j, 10), with zeros behind or through a linear map. All
    are trained on all pairs of short operands and asked for longer ones; the trunk knows no
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
from benchmarks.evidence.learning import Course
from benchmarks.evidence.plots import curves, learning_curves, shown
from benchmarks.evidence.store import Result, Settings, Store, reported
from numtok_torch import (
    FoNEDigitEmbedding,
    NumberEmbedding,
    NumberModel,
    PlaceValueEmbedding,
    SumEmbedding,
)

NAME = "fone_lengths"
# how φ gets its width: "either way can be used"
FILLED = {
    "Abacus with FoNE": "pad",
    "Abacus with FoNE, linear": "linear",
}
DIGITS = ("Abacus", *FILLED, "no places")
SEEDS = {"smoke": (), "small": (1, 2, 3), "full": (1, 2, 3)}  # 0 is that of the search
SHORT = {"smoke": 2, "small": 4, "full": 10}  # digits of the longest operand in training
LONG = {"smoke": 3, "small": 8, "full": 50}  # that is asked for
OFFSET = {"smoke": 2, "small": 8, "full": 100}
# 20 million in the paper; here all rows lie in memory
SAMPLES = {
    "smoke": 2000,
    "small": 50_000,
    "full": 2_000_000,
}
STEPS = {"smoke": 60, "small": 1200, "full": 300_000}
BATCH = {"smoke": 64, "small": 64, "full": 512}
TRUNK = {"smoke": (32, 1), "small": (64, 2), "full": (1024, 8)}  # width and layers
ASKED = {"smoke": 2, "small": 10, "full": 100}  # for each pair of lengths
RATE, END = 0.004, ";"
STARTS = ("0.02", "width^-0.5")  # standard deviations of the word vectors, and so of the places


def phases(size: str) -> list[list[Settings]]:
    """The search for a start, then every variant with every seed."""
    names = DIGITS[:2] if size == "smoke" else DIGITS
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
    """Different pairs of operands; as many of each pair of lengths, as far as there are so many."""
    found: list[tuple[int, int]] = []
    for a, b in lengths:
        bounds = [(10 ** (length - 1) if length > 1 else 0, 10**length) for length in (a, b)]
        pairs = {
            (draw.randrange(*bounds[0]), draw.randrange(*bounds[1])): None for _ in range(count)
        }
        found += pairs
    return found


def text(pair: tuple[int, int]) -> str:
    """``12+345=357;``"""
    return f"{pair[0]}+{pair[1]}={sum(pair)}{END}"


def questions(size: str, seed: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The sums of the training, and those that are asked; of these, only those of two long operands
    are put aside, as there are hardly any other short ones.
    """
    lengths = [
        list(itertools.product(range(1, longest + 1), repeat=2))
        for longest in (SHORT[size], LONG[size])
    ]
    asked = sums(lengths[1], ASKED[size], random.Random(seed + 1000))
    aside = {pair for pair in asked if min(pair) >= 100}
    seen = sums(lengths[0], SAMPLES[size] // len(lengths[0]), random.Random(seed))
    return [pair for pair in seen if pair not in aside], asked


def known(seed: int) -> dict[int, list[bool]]:
    """Of the small runs' questions, by the digits of the longer operand, whether each stands in the
    training in one order or the other.
    """
    seen, asked = questions("small", seed)
    both = {*seen, *((b, a) for a, b in seen)}
    return tables.gathered((len(str(max(pair))), pair in both) for pair in asked)


def run(settings: Settings, store: Store, folder: Path) -> Result:
    """Train on short sums, and ask short and long ones."""
    size, variant, seed = settings["size"], settings["variant"], settings["seed"]
    start = settings.get("start") or best_start(store, size, variant)
    trained, longest = SHORT[size], LONG[size]
    seen, unseen = questions(size, seed)
    encoded = encode([text(pair) for pair in seen], numtok.PlaceValue(order="lsd"), folder)
    torch.manual_seed(seed)
    width = TRUNK[size][0]
    model = digit_model(encoded, variant, size, 0.02 if start == "0.02" else width**-0.5)
    course = Course(STEPS[size], BATCH[size], RATE, seed)
    labels = encoded.labels_behind("1+1=")
    batch = encoded.batch(labels=labels, objective="causal")
    short = [pair for pair in unseen if len(str(max(pair))) <= trained]
    found = learning.train(
        model,
        learning.shuffled(batch, course),
        course,
        lambda: float(np.mean([*ask(model, encoded, short, trained)["exact"].values()])),
    )
    new = encoded.like([text(pair) for pair in short])
    return {
        "start": start,
        **found,
        "samples": len(seen),
        "trained_up_to": trained,
        "unseen_loss": learning.loss_of(model, new.batch(labels=labels, objective="causal")),
        **ask(model, encoded, unseen, longest),
    }


def best_start(store: Store, size: str, variant: str) -> str:
    """That of the lowest loss on unseen sums of trained lengths."""
    searched: dict[str, Settings] = {
        start: {"size": size, "variant": variant, "seed": 0, "start": start} for start in STARTS
    }
    return store.best(NAME, searched)


def digit_model(encoded: Encoded, variant: str, size: str, start: float) -> NumberModel:
    """A Llama without positions; what its digits are shown with is that of the variant. All of it
    starts as long as the word vectors, which have this standard deviation.
    """
    width, layers = TRUNK[size]
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
    ends: dict[str, Any] = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    trunk = SmolLM3ForCausalLM(
        SmolLM3Config(
            vocab_size=encoded.tokenizer.vocab_size,
            tie_word_embeddings=False,
            **sizes,
            **heads,
            **ends,
        )
    )
    words: Any = trunk.get_input_embeddings()
    torch.nn.init.normal_(words.weight, std=start)
    if variant == "no places":
        return NumberModel(trunk, None)
    places = PlaceValueEmbedding(
        width, 128, max_offset=OFFSET[size], zero_init=False, written="lsd"
    )
    embeddings: list[NumberEmbedding] = [places]
    if variant in FILLED:
        digits = [encoded.tokenizer.tokens[str(digit)] for digit in range(10)]
        embeddings.append(FoNEDigitEmbedding(width, digits, FILLED[variant], combine="replace"))
    return NumberModel(trunk, SumEmbedding(embeddings))


def ask(
    model: NumberModel, encoded: Encoded, unseen: Sequence[tuple[int, int]], longest: int
) -> Result:
    """The share of sums that are right, by the digits of the longer operand."""
    said = learning.say(
        model,
        encoded,
        [text(pair).split("=")[0] + "=" for pair in unseen],
        text((1, 1)),
        longest + 6,
    )
    right: dict[int, list[bool]] = {}
    for pair, answer in zip(unseen, said, strict=True):
        right.setdefault(len(str(max(pair))), []).append(answer.removesuffix(END) == str(sum(pair)))
    return {
        "asked": len(unseen),
        "exact": {
            str(length): round(float(np.mean(found)), 4) for length, found in sorted(right.items())
        },
        "examples": [
            f"{text(pair)} {answer}"
            for pair, answer in [*zip(unseen, said, strict=True)][:: len(unseen) // 5]
        ],
    }


def section(results: list[tuple[Settings, Result]], plots: Path) -> str:
    """Exact answers by the digits of the longer operand."""
    values = exact(results)
    lengths = sorted({length for points in values.values() for length in points})
    starts = {settings["variant"]: result["start"] for settings, result in reported(results)}
    rows = [
        [
            name,
            *(tables.mean(points.get(length, []), ".0%") for length in lengths),
            verdict(points, values["Abacus"]) if name in FILLED else "",
            starts[name],
        ]
        for name, points in values.items()
    ]
    of_seeds = [known(seed) for seed in SEEDS["small"]]
    shares = [f"{np.mean([np.mean(one[length]) for one in of_seeds]):.0%}" for length in lengths]
    counts = [f"{np.mean([len(one[length]) for one in of_seeds]):.0f}" for length in lengths]
    rows.append(["sums asked with a seed", *counts, "", ""])
    rows.append(["share of these in the training", *shares, "", ""])
    farther = f"verdict: better than Abacus, {SHORT['small'] + 1} digits"
    heads = ["exact, by digits of the longer operand", *map(str, lengths), farther, "start"]
    parts = [
        f"Models are trained on operands of up to {SHORT['small']} digits, written digit by digit.",
        tables.markdown(heads, rows),
    ]
    if values:
        picture = plots / f"{NAME}.svg"
        curves(picture, values, "digits of the longer operand", "exact")
        parts.append(shown(picture, "Exact sums against the digits of the longer operand", values))
        by = tables.gathered((one["variant"], found) for one, found in reported(results))
        y = f"exact, mean over 1 to {SHORT['small']} digits"
        picture = plots / f"{NAME}_curves.svg"
        parts.append(learning_curves(picture, by, "Exact short sums", y))
    return "\n\n".join(parts)


def verdict(points: dict[int, list[float]], abacus: dict[int, list[float]]) -> str:
    """Whether it is better than Abacus one digit beyond the training, with each seed."""
    length = SHORT["small"] + 1
    asked = (2 * length - 1) * ASKED["small"]  # pairs of lengths of which this is the longer one
    return tables.verdict(points[length], abacus[length], asked)


def exact(results: list[tuple[Settings, Result]]) -> dict[str, dict[int, list[float]]]:
    """By variant and digits of the longer operand, one for each seed."""
    by = tables.gathered(
        (settings["variant"], result["exact"]) for settings, result in reported(results)
    )
    return {
        name: tables.gathered(
            (int(length), share) for one in by[name] for length, share in one.items()
        )
        for name in DIGITS
        if name in by
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
    sure="Not shown, with three seeds; trained on 4 digits where the paper trains on 10.",
    rows=("Abacus", "Abacus with FoNE"),
    columns=("4", "5"),
    picture="fone_lengths.svg",
    differs=f"""\
| | here | the paper |
|---|---|---|
| digits in training | {SHORT["small"]} | 10 |
| digits asked | {LONG["small"]} | 50 |
| model | width {TRUNK["small"][0]}, {TRUNK["small"][1]} layers | 8 layers |
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
