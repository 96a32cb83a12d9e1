"""From results to docs/evidence.md, and to what is still missing."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from benchmarks.evidence import tables
from benchmarks.evidence.experiment import Experiment
from benchmarks.evidence.store import Store
from numtok.files import write_file

DOCS = Path(__file__).parents[2] / "docs"
INTRODUCTION = """# Evidence

What the papers report, and what this package shows of it on a CPU core. Each section is one command, `python -m benchmarks.evidence NAME`, which makes the
runs that are missing; their results are kept in `benchmarks/evidence/results`, one file per run with settings, seed, losses, versions and examples of
answers. `make evidence` runs everything, `python -m benchmarks.evidence report` writes this page, `--full` takes the settings of the papers.
Every representation gets the same trunk, data, steps, and search for its learning rate. Seconds are of one core of a machine that may be busy.
"""


def overview(experiments: Iterable[Experiment], store: Store, size: str) -> str:
    """How many runs there are of each experiment, and how many of them are done."""
    rows = []
    for one in experiments:
        runs = [settings for phase in one.phases(size) for settings in phase]
        done = sum(store.get(one.name, settings) is not None for settings in runs)
        rows.append([f"`{one.name}`", one.paper, f"{done} of {len(runs)}"])
    return tables.markdown(["", "paper", "runs done"], rows)


def write(experiments: Iterable[Experiment], store: Store, docs: Path) -> Path:
    """Write docs/evidence.md; its path."""
    experiments = list(experiments)
    parts = [INTRODUCTION, overview(experiments, store, "small") + "\n"]
    for one in experiments:
        results = store.all(one.name)
        if results:
            parts.append(f"## `{one.name}`: {one.paper}\n\n**The paper:** {one.claim}\n\n{one.section(results, docs / 'images')}\n")
    path = docs / "evidence.md"
    write_file(path, "\n".join(parts))
    return path
