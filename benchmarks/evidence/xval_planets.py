"""xVal, table 5: what can be read off the orbits of planets, by models that learn to fill in a
fifth of the tokens.

All encodings get the same trunk, steps, samples and rate. Models are asked for one quantity at a
time, masked: the axis, eccentricity and mass of the first planet and the step of the simulation;
for axes and steps also where they have values that the training data do not have.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.evidence import learning, tables
from benchmarks.evidence.corpus import Encoded, encode
from benchmarks.evidence.experiment import Experiment
from benchmarks.evidence.learning import Course
from benchmarks.evidence.planets import QUANTITIES, System, systems
from benchmarks.evidence.store import Result, Settings, Store
from benchmarks.evidence.xval_expressions import build, masked_values
from numtok_torch import XVAL_MASKING, NumberCollator, NumberModel, metrics

NAME = "xval_planets"
REPRESENTATIONS = ("xval", "b1999", "p1000", "p10")
STEPS = {"smoke": 6, "small": 1250, "full": 500_000}
SAMPLES = {"smoke": 60, "small": 20_000, "full": 1_000_000}
ASKED = {"smoke": 10, "small": 500, "full": 10_000}
TRUNK = {"smoke": (32, 1, 2), "small": (64, 2, 4), "full": (768, 6, 6)}  # width, layers, heads
BATCH = {"smoke": 16, "small": 16, "full": 64}
RATE, MASK, LONGEST = 0.001, "<|endoftext|>", 1024
UNSEEN = ("a", "stepsize")


def phases(size: str) -> list[list[Settings]]:
    """Every encoding once; FP15, whose 57,604 tokens take hours here, in the paper's size only."""
    names = {
        "smoke": ("xval", "p10"),
        "small": REPRESENTATIONS,
        "full": (*REPRESENTATIONS, "fp15"),
    }[size]
    return [[{"size": size, "numbers": numbers, "seed": 0} for numbers in names]]


def run(settings: Settings, store: Store, folder: Path) -> Result:
    """Train and ask."""
    size, numbers, seed = settings["size"], settings["numbers"], settings["seed"]
    seen = systems(SAMPLES[size], seed)
    options: dict[str, Any] = {"scale": 1.0} if numbers == "xval" else {}
    encoded = encode([one.text for one in seen], numbers, folder, **options)
    torch.manual_seed(seed)
    model = build(encoded, *TRUNK[size], positions=LONGEST)
    course = Course(STEPS[size], BATCH[size], RATE, seed)
    found = learning.train(model, fifths(encoded, course), course)
    known = systems(ASKED[size], seed + 1)
    asked = {name: ask(model, encoded, known, name) for name in QUANTITIES}
    asked |= {
        f"{name}, unseen": ask(model, encoded, systems(ASKED[size], seed + 1, name), name)
        for name in UNSEEN
    }
    return {
        **found,
        "tokens_per_sample": round(found["tokens"] / (course.steps * course.batch), 1),
        "quantities": asked,
    }


def fifths(encoded: Encoded, course: Course) -> Iterator[dict[str, Tensor]]:
    """Batches without end, a fifth of the tokens masked, numbers whole."""
    collator = NumberCollator.from_schema(
        encoded.schema,
        pad_token_id=0,
        mask_token_id=encoded.id_of(MASK),
        max_length=LONGEST,
        seed=course.seed,
        **XVAL_MASKING,
    )
    for chosen in learning.orders(len(encoded.rows), course):
        yield collator([encoded.rows[int(row)] for row in chosen])


def ask(model: NumberModel, encoded: Encoded, unseen: Sequence[System], name: str) -> Result:
    """The mean squared error of one quantity, and how much of what is said is no number."""
    said, right = [], []
    for first in range(0, len(unseen), 50):
        some = unseen[first : first + 50]
        batch = _masked(encoded, some, name)
        model.eval()
        with torch.no_grad():
            said += masked_values(model, encoded, model(**batch), batch)
        right += [one.quantities[name] for one in some]
    unparseable = metrics.share_unparseable(said)
    error = metrics.mean_squared_error(said, right, invalid="skip") if unparseable < 1 else None
    return {
        "error": error,
        "unparseable": unparseable,
        "spread": float(np.var([float(one) for one in right])),
    }


def _masked(encoded: Encoded, some: Sequence[System], name: str) -> dict[str, Tensor]:
    """Rows with the number after the first ``"name":`` masked."""
    mask = encoded.id_of(MASK)
    rows = []
    new = encoded.like([one.text for one in some])
    for index, one in enumerate(some):
        row, before = new.rows[index], re.split(rf'(?<="{name}":)', one.text, maxsplit=1)[0]
        start = len(encoded.tokenizer.encode(before).input_ids)
        stop = start + len(encoded.tokenizer.encode(one.quantities[name]).input_ids)
        rows.append({**row, "mask_spans": np.array([[start, stop]])})
    options: dict[str, Any] = {**XVAL_MASKING, "mask": "spans", "mask_token_id": mask}
    return NumberCollator.from_schema(encoded.schema, pad_token_id=0, **options)(rows)


def section(results: list[tuple[Settings, Result]], plots: Path) -> str:
    """Mean squared errors, and the variance of what is asked for: what always saying the mean would
    give.
    """
    by = tables.gathered(
        (settings["numbers"], result["quantities"])
        for settings, result in results
        if settings["size"] == "small"
    )
    tokens = tables.gathered(
        (settings["numbers"], result["tokens_per_sample"])
        for settings, result in results
        if settings["size"] == "small"
    )
    names = [*QUANTITIES, *(f"{name}, unseen" for name in UNSEEN)]
    rows = [
        [
            f"`{numbers}`",
            *(_cell([one[name] for one in by[numbers]]) for name in names),
            tables.mean(tokens[numbers], ".0f"),
        ]
        for numbers in REPRESENTATIONS
        if numbers in by
    ]
    if by:
        rows.append(
            [
                "variance",
                *(f"{next(iter(by.values()))[0][name]['spread']:.2g}" for name in names),
                "",
            ]
        )
    return tables.markdown(["mean squared error", *names, "tokens a sample"], rows)


def seen(results: list[tuple[Settings, Result]]) -> str:
    """Which encoding has the lowest error of each quantity, if that is lower than what always
    saying the mean would give.
    """
    by = tables.gathered(
        (settings["numbers"], result["quantities"])
        for settings, result in results
        if settings["size"] == "small"
    )
    said, unlearnt = [], []
    for name in (*QUANTITIES, *(f"{name}, unseen" for name in UNSEEN)):
        errors = {
            numbers: float(np.mean([one[name]["error"] for one in found]))
            for numbers, found in by.items()
            if all(one[name]["error"] is not None for one in found)
        }
        best = min(errors, key=errors.__getitem__, default="")
        if best and errors[best] < next(iter(by.values()))[0][name]["spread"]:
            said.append(f"{name} `{best}`")
        else:
            unlearnt.append(name)
    if not by:
        return ""
    found = f"The lowest error, where it is below the variance: {', '.join(said) or 'none'}."
    return found + (
        f" None is better than always saying the mean for {', '.join(unlearnt)}."
        if unlearnt
        else ""
    )


def _cell(found: Sequence[Result]) -> str:
    share = float(np.mean([one["unparseable"] for one in found]))
    return tables.mean((one["error"] for one in found), ".2g") + (
        f" ({share:.1%} no number)" if share > 0.0001 else ""
    )


EXPERIMENT = Experiment(
    NAME,
    "xVal, table 5",
    "Mean squared errors of a, a unseen, e, Δt, Δt unseen, m: P10 7.6e-4, 0.0076, 0.20, 0.0,"
    " 0.0036, 1.5; P1000 4.5e-6, 0.048, 0.0067, 0.0, 0.011, 0.74; B1999 3.6e-6, 0.11, 0.0057, 0.0,"
    " 0.022, 0.44; xVal 6.4e-5, 0.0010, 0.0020, 6.6e-5, 0.0021, 1.4.",
    phases,
    run,
    section,
    differs=(
        f"Width {TRUNK['small'][0]} and {TRUNK['small'][1]} layers in place of 768 and 6;"
        f" {STEPS['small']:,} steps in place of 500,000; {SAMPLES['small']:,} systems in place of a"
        f" million; {ASKED['small']:,} unseen ones are asked for. FP15 is left out."
    ),
    seen=seen,
)
