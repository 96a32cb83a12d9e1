"""FoNE, figure 4 and appendices E and F: sums longer than any that the model was trained on, and
long sums in one step.

Abacus: numbers are written digit by digit, the least significant first, each digit with its place,
    and in training all places of a row are moved by one number drawn anew (McLeish et al. 2024).
    With FoNE, each digit's word vector is φ(j, 10), with zeros behind or through a linear map. All
    are trained on all pairs of short operands and asked for longer ones; the trunk knows no
    positions but these. Beside them FoNE as it is, a token a number, on long sums: with its digits
    in chunks of five, and in one piece.
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
from benchmarks.evidence.plots import curves, shown
from benchmarks.evidence.store import Result, Settings, Store
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
SEEDED = ("Abacus", "Abacus with FoNE")
DIGITS = ("Abacus", *FILLED, "no places")
CHUNK = 5
ONE_TOKEN = {"FoNE in chunks": CHUNK, "FoNE in one piece": None}
SEEDS = {"smoke": (0,), "small": (0, 1, 2), "full": (0, 1, 2)}
SHORT = {"smoke": 2, "small": 6, "full": 10}  # digits of the longest operand in training
LONG = {"smoke": 3, "small": 12, "full": 50}  # that is asked for
OFFSET = {"smoke": 2, "small": 8, "full": 100}
ONE_STEP = {"small": (6, 9), "full": (1, 60)}  # operands that are one token each, trained and asked
# 20 million in the paper; here all rows lie in memory
SAMPLES = {
    "smoke": 2000,
    "small": 100_000,
    "full": 2_000_000,
}
STEPS = {"smoke": 60, "small": 2500, "full": 300_000}
BATCH = {"smoke": 64, "small": 64, "full": 512}
TRUNK = {"smoke": (32, 1), "small": (64, 2), "full": (1024, 8)}  # width and layers
ONE_STEP_COURSE = {"small": Course(2000, 256, 0.0025, 0), "full": Course(300_000, 512, 0.0025, 0)}
ONE_STEP_TRUNK = {"small": (128, 2), "full": (1024, 8)}
ASKED = {"smoke": 2, "small": 10, "full": 100}  # for each pair of lengths
RATE, END = 0.004, ";"


def phases(size: str) -> list[list[Settings]]:
    """Abacus with and without FoNE with every seed; the other form of FoNE, what has no places and
    what takes one token once.
    """
    names = SEEDED[:2] if size == "smoke" else (*DIGITS, *ONE_TOKEN)
    return [
        [
            {"size": size, "variant": name, "seed": seed}
            for name in names
            for seed in (SEEDS[size] if name in SEEDED else (0,))
        ]
    ]


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


def run(settings: Settings, store: Store, folder: Path) -> Result:
    """Train on short sums, and ask short and long ones; or on sums of one token a number, and ask
    others.
    """
    size, variant, seed = settings["size"], settings["variant"], settings["seed"]
    one_token = variant in ONE_TOKEN
    low, trained, longest = (
        (*ONE_STEP[size], ONE_STEP[size][1]) if one_token else (1, SHORT[size], LONG[size])
    )
    lengths = list(itertools.product(range(low, trained + 1), repeat=2))
    unseen = sums(
        itertools.product(range(low, longest + 1), repeat=2),
        ASKED[size],
        random.Random(seed + 1000),
    )
    # of shorter ones there are hardly any others to be trained on
    held = {pair for pair in unseen if min(pair) >= 100}
    seen = [
        pair
        for pair in sums(lengths, SAMPLES[size] // len(lengths), random.Random(seed))
        if pair not in held
    ]
    # digits; a sum may have one more than its operands
    whole_chunks = -(-(longest + 1) // CHUNK) * CHUNK
    numbers = (
        numtok.FoNE(whole_chunks, 0, compact=True, chunk=ONE_TOKEN[variant])
        if one_token
        else numtok.PlaceValue(order="lsd")
    )
    encoded = encode([text(pair) for pair in seen], numbers, folder)
    torch.manual_seed(seed)
    model = (
        learning.llama(encoded, *ONE_STEP_TRUNK[size])
        if one_token
        else digit_model(encoded, variant, size)
    )
    course = ONE_STEP_COURSE[size] if one_token else Course(STEPS[size], BATCH[size], RATE, seed)
    batch = encoded.batch(labels=encoded.labels_behind("1+1="), objective="causal")
    found = learning.train(model, learning.shuffled(batch, course), course)
    return {
        **found,
        "samples": len(seen),
        "trained_up_to": trained,
        **ask(model, encoded, unseen, longest),
    }


def digit_model(encoded: Encoded, variant: str, size: str) -> NumberModel:
    """A Llama without positions; what its digits are shown with is that of the variant."""
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
    if variant == "no places":
        return NumberModel(trunk, None)
    places = PlaceValueEmbedding(width, 128, max_offset=OFFSET[size], written="lsd")
    # as long as φ(j, 10), so that a digit does not hide its place
    torch.nn.init.normal_(places.vectors.weight, std=width**-0.5)
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
    """Exact answers by the digits of the longer operand: what is written digit by digit, then what
    is one token a number.
    """
    parts = [
        f"Written digit by digit, models are trained on operands of up to {SHORT['small']} digits."
    ]
    for names in (DIGITS, tuple(ONE_TOKEN)):
        values = exact(results, names)
        lengths = sorted({length for points in values.values() for length in points})
        rows = [
            [name, *(tables.mean(points.get(length, []), ".0%") for length in lengths)]
            for name, points in values.items()
        ]
        if rows:
            parts.append(
                tables.markdown(
                    ["exact, by digits of the longer operand", *map(str, lengths)], rows
                )
            )
        if rows and names == DIGITS:
            picture = plots / f"{NAME}.svg"
            curves(picture, values, "digits of the longer operand", "exact")
            parts.append(
                shown(picture, "Exact sums against the digits of the longer operand", values)
            )
    return "\n\n".join(parts)


def exact(
    results: list[tuple[Settings, Result]], names: Sequence[str]
) -> dict[str, dict[int, list[float]]]:
    """By variant and digits of the longer operand, one for each seed."""
    by = {
        name: [
            result["exact"]
            for settings, result in results
            if (settings["size"], settings["variant"]) == ("small", name)
        ]
        for name in names
    }
    return {
        name: tables.gathered(
            (int(length), share) for one in found for length, share in one.items()
        )
        for name, found in by.items()
        if found
    }


def seen(results: list[tuple[Settings, Result]]) -> str:
    """The means over lengths that were trained on, and over longer ones."""
    said = []
    for name, points in exact(results, DIGITS).items():
        parts = [
            np.mean(
                [
                    share
                    for length, some in points.items()
                    if (length <= SHORT["small"]) == short
                    for share in some
                ]
            )
            for short in (True, False)
        ]
        said.append(f"{name} {parts[0]:.1%} and {parts[1]:.1%}")
    return (
        f"Up to {SHORT['small']} digits and beyond, means over lengths: {'; '.join(said)}."
        if said
        else ""
    )


EXPERIMENT = Experiment(
    NAME,
    "FoNE, figures 4, 9 and 10",
    "Trained on sums of up to 10 digits and asked for up to 50, Abacus is better with FoNE than"
    " without with each of three seeds; sums of up to 60 digits in chunks of five are 97.42% exact,"
    " in one step.",
    phases,
    run,
    section,
    differs=(
        f"Operands of up to {SHORT['small']} digits in training and of up to {LONG['small']} asked,"
        f" in place of 10 and 50; one token a number for {ONE_STEP['small'][0]} to"
        f" {ONE_STEP['small'][1]} digits in place of 60. Width {TRUNK['small'][0]} and"
        f" {TRUNK['small'][1]} layers in place of 8; {SAMPLES['small']:,} samples in place of 20"
        f" million; {STEPS['small']:,} steps of {BATCH['small']} sums in place of a day on a GPU."
    ),
    seen=seen,
)
