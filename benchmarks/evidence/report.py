"""From results to docs/evidence.md, and to what is still missing."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from pathlib import Path

from benchmarks.evidence import tables
from benchmarks.evidence.experiment import Experiment
from benchmarks.evidence.store import Result, Settings, Store, slug
from numtok.files import write_file

DOCS = Path(__file__).parents[2] / "docs"
INTRODUCTION = """# Evidence

What do papers on numbers find, and does it show in small models on one core of a CPU? And what helps a pretrained model? In short:

"""
READING = """
How to read this page:

- **The models are small**: 50,000 to 930,000 weights, mostly a minute of training. That of `pretrained_...` has 135 million,
  and ran on a GPU. `Shown` is no proof for larger ones, `not shown` none against the paper.
- **`Likely`** is what fewer than three seeds say.
- **±** is the standard deviation over seeds (divided by n - 1). A figure without it is of one seed.
- **Every row** of a table gets the same transformer, data, steps and search, unless it says otherwise (`×4`, `longer`).
- **Vectors start** as long as the word vectors that they are added to; but those of places start from zeros, outside of `fone_lengths`, as do
  those of `bits_masked_words`, and FoNE's features, which do not learn, are as published.
- **CPU seconds** are of cores that had other work beside, of more than one machine: compare them roughly.
- **Once more**: `python -m benchmarks.evidence NAME` makes the runs of an experiment that are missing. Each is a file in `benchmarks/evidence/results`,
  with settings, seed, losses, versions and mostly examples of answers. `report` writes this page. Tables and sections of xVal are of its first version.
"""
GPU = """## What would one hour of one GPU settle?

`--full` takes the papers' settings. Models are then trained on a GPU, where PyTorch finds one. None of these has been yet.
Times are estimated, from 15 to 25 ms a step.

| question | command | takes |
| --- | --- | --- |
| Six encodings, width 768, 100,000 steps: whose R² is the paper's? | `xval_expressions --full --match=-2-0-0.001 --jobs 6` | an hour |
| 720,000 sums, width 384, 140,600 steps: do digits end below FoNE? | `fone_arithmetic --full --jobs 5` | an hour for a run; a day for sums |
| BERT-base: does a value help the words around it? | `bits_masked_words --full` | hours, and more than these 420 pages |

So an hour settles the first. The small models of this page would hardly gain from one.
"""


def overview(experiments: Iterable[Experiment], store: Store, size: str) -> str:
    """How many runs there are of each experiment, how many of them are done, and in a word what
    they say.
    """
    rows = []
    for one in experiments:
        runs = [settings for phase in one.phases(size) for settings in phase]
        done = sum(store.get(one.results, settings) is not None for settings in runs)
        said = re.split("[.:,]| of ", one.verdict)[0]
        rows.append([one.question, f"`{one.name}`", said, f"{done} of {len(runs)}"])
    return tables.markdown(["", "experiment", "verdict", "runs done"], rows)


def _runs(one: Experiment, results: list[tuple[Settings, Result]], store: Store) -> str:
    """How many, which seeds, how long, and on what."""
    seeds = sorted({settings["seed"] for settings, _ in results if "seed" in settings})
    hours = sum(result.get("seconds", 0) for _, result in results) / 3600
    trained = [result for _, result in results if "seconds" in result]
    curves = sum("curve" in result for result in trained)
    said = [
        f"{len(results)}",
        *([f"seeds {', '.join(map(str, seeds))}" if seeds[1:] else "one seed"] if seeds else []),
        *([f"{hours:.1f} hours of training"] if hours else []),
        *([f"learning curves of {curves} of {len(trained)} trainings"] if trained else []),
        *(
            f"{name} {', '.join(versions)}"
            for name, versions in store.made_with(one.results).items()
        ),
    ]
    return "; ".join(said) + "."


def _cheapest(one: Experiment, results: list[tuple[Settings, Result]]) -> str:
    """How to make the quickest of its trainings once more."""
    made = {slug(settings): result for settings, result in results if settings["size"] == "small"}
    if not made:
        return ""
    name = min(made, key=lambda name: made[name].get("seconds", math.inf))
    return (
        f" The quickest once more: `python -m benchmarks.evidence {one.name} --match"
        f" {name.removeprefix('small')} --into again`.".replace("--match -", "--match=-")
    )


def write(experiments: Iterable[Experiment], store: Store, docs: Path) -> Path:
    """Write docs/evidence.md; its path."""
    experiments = list(experiments)
    hours = (
        sum(
            result.get("seconds", 0)
            for name in {one.results: None for one in experiments}
            for _, result in store.all(name)
            if "device" not in result
        )
        / 3600
    )
    parts = [
        INTRODUCTION
        + overview(experiments, store, "small")
        + f"\n\nAll of it is {hours:.1f} hours of training on one core, and the pretrained model's on a GPU.\n"
        + READING
    ]
    for one in experiments:
        results = store.all(one.results)
        if results:
            said = {
                "Verdict": one.verdict,
                "The paper": one.claim,
                "": one.section(results, docs / "images"),
                "Seen": one.seen(results),
                "What differs": one.differs,
                "Runs": _runs(one, results, store) + _cheapest(one, results),
            }
            told = [f"**{name}:** {text}" if name else text for name, text in said.items() if text]
            parts.append("\n\n".join([f"## `{one.name}`: {one.paper}", *told]) + "\n")
    parts.append(GPU)
    path = docs / "evidence.md"
    write_file(path, "\n".join(parts))
    return path
