"""FoNE, figures 2 and 3(a): exact sums against training samples.

Every representation gets the same trunk, steps, batches and search: two rates at 6,400 samples; the
one with the lowest loss on unseen sums is taken for all sizes. (The same search for a fifth of the
steps took a rate for FoNE that is worse in the end.) Digits as tokens, which are near 99%, are also
trained for twice the steps: what they lack may be those, and not samples.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.evidence import arithmetic, tables
from benchmarks.evidence.experiment import Experiment
from benchmarks.evidence.learning import Course
from benchmarks.evidence.plots import curves, shown
from benchmarks.evidence.store import Result, Settings, Store, taken

NAME = "fone_addition"
REPRESENTATIONS = (
    "fone",
    "xval",
    "xval:log",
    "bits",
    "bits:64",
    "digits:3",
    "subword",
    "digits:1",
    "place",
)
# get the most samples too; FoNE gets every number of them
GROWING = (
    "digits:3",
    "subword",
    "digits:1",
)
SEEDS = (0, 1, 2)  # of FoNE at 6,400 samples
RATES = (0.001, 0.0025)
SAMPLES = {
    "small": (1600, 6400, 25_600, 102_400),
    "full": (1600, 6400, 25_600, 102_400, 409_600, 720_000),
}
STEPS = {"smoke": 250, "small": 2000, "full": 140_600}  # full: 100 epochs of 720,000
BATCH = {"smoke": 128, "small": 128, "full": 512}
HELD_OUT = {"smoke": 200, "small": 1000, "full": 10_000}
TRUNK = {"smoke": (64, 2), "small": (128, 2), "full": (384, 6)}  # width and layers; FoNE, table 6
# names of the settings of runs with the same trunk
SHARED = {
    "size",
    "task",
    "numbers",
    "samples",
    "seed",
}
OTHER_TRUNKS = {1: (64, 1), 3: (192, 3)}  # by layers: FoNE, table 6
OF_ALL_SIZES = ("fone", "subword")  # are trained with these too, at 6,400 samples
LONGER = {"fone": (1600,), "digits:1": (6400, 25_600)}  # samples, for twice the steps
TASK, SMOKE_TASK = "decimal addition, 6 digits", "integer addition, 2 digits"


def phases(size: str) -> list[list[Settings]]:
    """The search for rates at 6,400 samples, then other numbers of samples, seeds and models, and
    more steps.
    """
    if size == "smoke":
        return [
            [
                _settings(size, numbers, 2000, 0.005) | {"task": SMOKE_TASK}
                for numbers in ("fone", "digits:1")
            ]
        ]
    search = [_settings(size, numbers, 6400, rate) for numbers in REPRESENTATIONS for rate in RATES]
    runs = [_settings(size, numbers, SAMPLES[size][-1]) for numbers in GROWING]
    runs += [_settings(size, "fone", samples) for samples in SAMPLES[size] if samples != 6400]
    runs += [_settings(size, "fone", 6400) | {"seed": seed} for seed in SEEDS[1:]]
    models = [
        _settings(size, numbers, 6400) | {"layers": layers}
        for numbers in OF_ALL_SIZES
        for layers in OTHER_TRUNKS
        if size == "small"
    ]
    longer = [
        _settings(size, numbers, samples) | {"times": 2}
        for numbers in LONGER
        for samples in LONGER[numbers]
        if size == "small"
    ]
    return [search, runs, models, longer]


def _settings(size: str, numbers: str, samples: int, rate: float | None = None) -> Settings:
    """Of one run; with a rate it is one of the search."""
    found: Settings = {
        "size": size,
        "task": TASK,
        "numbers": numbers,
        "samples": samples,
        "seed": 0,
    }
    return found if rate is None else {**found, "rate": rate}


def run(settings: Settings, store: Store, folder: Path) -> Result:
    """Train and ask."""
    size, steps = settings["size"], STEPS[settings["size"]] * settings.get("times", 1)
    rate = settings["rate"] if "rate" in settings else best_rate(store, size, settings["numbers"])
    course = Course(steps, BATCH[size], rate, settings["seed"])
    task, trunk = (
        arithmetic.TASKS[settings["task"]],
        OTHER_TRUNKS[settings["layers"]] if "layers" in settings else TRUNK[size],
    )
    found = arithmetic.run(
        task, settings["numbers"], settings["samples"], HELD_OUT[size], course, trunk, folder
    )
    return {"rate": rate, "steps": steps, **found}


def best_rate(store: Store, size: str, numbers: str) -> float:
    """That of the lowest loss on unseen sums."""
    return store.best(NAME, {rate: _settings(size, numbers, 6400, rate) for rate in RATES})


def section(results: list[tuple[Settings, Result]], plots: Path) -> str:
    """Exact answers by samples, and by parameters where there are models of several sizes."""
    by, parts = by_samples(results), []
    sizes = [samples for samples in SAMPLES["small"] if any(key[1] == samples for key in by)]
    rows = []
    for numbers in (name for name in REPRESENTATIONS if any(key[0] == name for key in by)):
        at = by.get((numbers, 6400), [])
        cells = [
            tables.mean(one["exact"] for one in by.get((numbers, samples), [])) for samples in sizes
        ]
        about = [("digits_right", ".1%"), ("r2", ".4f"), ("tokens_per_sample", ".1f")]
        rates = sorted({f"{one['rate']:g}" for one in at})
        rows.append(
            [
                f"`{numbers}`",
                *cells,
                *(tables.mean((one[key] for one in at), form) for key, form in about),
                ", ".join(rates),
            ]
        )
    heads = [
        "exact",
        *(f"{samples:,} samples" for samples in sizes),
        "digits right, 6,400",
        "R², 6,400",
        "tokens a sample",
        "rate",
    ]
    parts.append(tables.markdown(heads, rows))
    for what in ("samples", "parameters"):
        values = _exact_by(what, results)
        if any(len(points) > 1 for points in values.values()):
            picture = plots / f"{NAME}_{what}.svg"
            curves(picture, values, what, "exact", log=True)
            parts.append(shown(picture, f"Exact sums against {what}", values))
    if any("times" in settings for settings, _ in results):
        parts.append(_longer(results))
    return "\n\n".join(parts)


def _longer(results: list[tuple[Settings, Result]]) -> str:
    """What twice the steps change."""
    shared, rows = by_samples(results), []
    for settings, result in taken(results):
        if "times" in settings:
            once = tables.mean(
                one["exact"] for one in shared.get((settings["numbers"], settings["samples"]), [])
            )
            rows.append(
                [
                    f"`{settings['numbers']}`, {settings['samples']:,} samples",
                    once,
                    f"{result['exact']:.1%}",
                ]
            )
    return tables.markdown(
        ["exact", f"{STEPS['small']:,} steps", f"{2 * STEPS['small']:,} steps"], rows
    )


def by_samples(results: list[tuple[Settings, Result]]) -> dict[tuple[str, int], list[Result]]:
    """Of the trunk that all share, by representation and samples; one result for each seed."""
    runs = [(settings, result) for settings, result in taken(results) if settings.keys() == SHARED]
    return tables.gathered(
        ((settings["numbers"], settings["samples"]), result) for settings, result in runs
    )


def _exact_by(
    key: str, results: list[tuple[Settings, Result]]
) -> dict[str, dict[int, list[float]]]:
    """By representation, then by samples; or by the parameters of all models at 6,400 samples."""
    chosen = [
        (settings, result[key] if key == "parameters" else settings[key], result["exact"])
        for settings, result in taken(results)
        if (
            settings["samples"] == 6400 and "times" not in settings
            if key == "parameters"
            else settings.keys() == SHARED
        )
    ]
    return {
        numbers: tables.gathered(
            (at, exact) for settings, at, exact in chosen if settings["numbers"] == numbers
        )
        for numbers in REPRESENTATIONS
        if any(settings["numbers"] == numbers for settings, *_ in chosen)
    }


def seen(results: list[tuple[Settings, Result]]) -> str:
    """The fewest samples with which each representation is 99% exact, and how many times those of
    the best.
    """
    means = {
        key: sum(one["exact"] for one in found) / len(found)
        for key, found in by_samples(results).items()
    }
    enough = tables.gathered(
        (numbers, samples) for (numbers, samples), exact in means.items() if exact >= 0.99
    )
    if not enough:
        return ""
    least = min(min(found) for found in enough.values())
    needed = sorted((min(found), numbers) for numbers, found in enough.items())
    said = [
        f"`{numbers}` {samples:,}"
        + (f" (up to {samples / least:g} times as many)" if samples > least else "")
        for samples, numbers in needed
    ]
    tried = {
        numbers: max(samples for name, samples in means if name == numbers)
        for numbers in REPRESENTATIONS
        if any(numbers == name for name, _ in means)
    }
    short = [
        f"`{numbers}` with"
        f" {samples:,}{f', {samples / least:g} times as many' if samples > least else ''}"
        f" ({means[numbers, samples]:.1%})"
        for numbers, samples in tried.items()
        if numbers not in enough
    ]
    return f"Fewest samples, of those that were tried, for 99% exact: {', '.join(said)}." + (
        f" Not reached in these steps: {'; '.join(short)}." if short else ""
    )


EXPERIMENT = Experiment(
    NAME,
    "FoNE, figures 2(a) and 3(a)",
    "99% of 6-digit decimal sums exact from 6,400 samples with 37.55 M parameters, which digit-wise"
    " and subword tokens need 409,600 samples for; xVal stays below 1%.",
    phases,
    run,
    section,
    differs=(
        f"A Llama of width {TRUNK['small'][0]} with {TRUNK['small'][1]} layers in place of 37.55 M"
        f" parameters; {STEPS['small']:,} steps of {BATCH['small']} questions, whatever the"
        f" samples, in place of 100 epochs; {HELD_OUT['small']:,} unseen sums in place of 200,000."
    ),
    seen=seen,
)
