"""From results to docs/evidence.md, and to what is still missing."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from benchmarks.evidence import tables
from benchmarks.evidence.experiment import Experiment
from benchmarks.evidence.store import Result, Settings, Store, slug
from numtok.files import write_file

DOCS = Path(__file__).parents[2] / "docs"
INTRODUCTION = """# Evidence

What the papers report, and what this package shows of it on a CPU core. Each section is one command, `python -m benchmarks.evidence NAME`, which makes the
runs that are missing; their results are kept in `benchmarks/evidence/results`, one file per run with settings, seed, losses, versions and examples of
answers. Tables and sections of xVal are those of its first version. `make evidence` runs everything, `python -m benchmarks.evidence report` writes this page,
`--full` takes the settings of the papers. Every row of a table gets the same trunk, data and steps, and the same search where there is one, but for rows that
say otherwise (`×4`, `longer`). Vectors start as long as the word vectors they are added to, but for features that do not learn, which are never shorter than
published. What stands behind ± is the standard deviation over seeds (divided by n - 1); a figure without it is of one seed. CPU seconds are of a core that had
other work beside; hours of training are those too, but for some of `mixture` and the first seed of `xval_expressions`, where they are by the clock.

**The budget is small**: models of 50,000 to 930,000 weights, a minute of one core for most runs, one to four seeds. A paper's finding that needs more is
said not to be shown, with the budget that would settle it. What is shown at this size is no proof for a larger one. Runs that are missing in the list below
were not made for want of time. A learning curve has ten points on the way of a training; how many trainings kept one stands beside each experiment, as older
ones did not. Where all rows have the same kind of loss, it is drawn in place of the missing ones.
"""


def overview(experiments: Iterable[Experiment], store: Store, size: str) -> str:
    """How many runs there are of each experiment, and how many of them are done."""
    rows = []
    for one in experiments:
        runs = [settings for phase in one.phases(size) for settings in phase]
        done = sum(store.get(one.results, settings) is not None for settings in runs)
        rows.append([f"`{one.name}`", one.paper, f"{done} of {len(runs)}"])
    return tables.markdown(["", "paper", "runs done"], rows)


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
    took = (
        f", {made[name]['seconds'] / 60:.1f} minutes of training" if "seconds" in made[name] else ""
    )
    return (
        f"`python -m benchmarks.evidence {one.name} --match {name.removeprefix('small')} --into"
        f" again`{took}.".replace("--match -", "--match=-")
    )


def write(experiments: Iterable[Experiment], store: Store, docs: Path) -> Path:
    """Write docs/evidence.md; its path."""
    experiments = list(experiments)
    hours = (
        sum(
            result.get("seconds", 0)
            for name in {one.results: None for one in experiments}
            for _, result in store.all(name)
        )
        / 3600
    )
    parts = [
        INTRODUCTION,
        overview(experiments, store, "small")
        + f"\n\nAll of it is {hours:.1f} hours of training on one core.\n",
    ]
    for one in experiments:
        results = store.all(one.results)
        if results:
            about = {
                "The paper": one.claim,
                "What differs": one.differs,
                "Runs": _runs(one, results, store),
                "Once more": _cheapest(one, results),
                "Seen": one.seen(results),
                "Verdict": one.verdict,
            }
            said = [f"**{name}:** {text}" for name, text in about.items() if text]
            parts.append(
                "\n\n".join(
                    [f"## `{one.name}`: {one.paper}", *said, one.section(results, docs / "images")]
                )
                + "\n"
            )
    path = docs / "evidence.md"
    write_file(path, "\n".join(parts))
    return path
