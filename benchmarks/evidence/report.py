"""Write docs/evidence.md, a page of short answers, and docs/evidence/, a page for each experiment,
from the stored results.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from pathlib import Path

from benchmarks.evidence import tables
from benchmarks.evidence.experiment import SIZE, Experiment
from benchmarks.evidence.store import Result, Settings, Store, slug
from numtok.files import write_file

DOCS = Path(__file__).parents[2] / "docs"
METHOD = "method.md"
INTRODUCTION = f"""# Evidence

This page repeats what papers on numbers in language models found, in small models on one core of a
CPU, and says what helps a pretrained model.

- **`Shown`**: our models did what the paper found, which is no proof for larger ones. `Not shown` is
  no proof against the paper.
- **±** is the standard deviation over seeds. `Likely` is what fewer than three seeds say.
- [How the experiments are run](evidence/{METHOD}) says the rest.
"""
RUNNING = """# How the experiments are run

The rules that all experiments of [Evidence](../evidence.md) share.

- **Models** have 50,000 to 930,000 weights, and mostly train for a minute. The model of the
  `pretrained_...` experiments has 135 million, and ran on a GPU or a CPU.
- **`Shown`** is no proof for larger models. `Not shown` is none against the paper. **`Likely`** is what
  fewer than three seeds say.
- **±** is the standard deviation over seeds (divided by n - 1). A figure without ± is of a single seed.
- **Every row** of a table gets the same transformer, data, steps and search, unless its name says
  otherwise (`×4`, `longer`).
- **Vectors start** as long as the word vectors that they are added to. Vectors of places start
  from zeros, except in `fone_lengths`, and so do the layers of `bits_masked_words`. FoNE's features, which do
  not learn, are as published.
- **CPU seconds** are of cores of more than one machine that had other work too. Compare them roughly.
- **xVal** is cited by the tables and sections of its first version.

All of it took {hours:.1f} hours of training on one core, without the experiments of the pretrained model.

## Run an experiment again

`python -m benchmarks.evidence NAME` makes the missing runs of an experiment. Each run is a file in
`benchmarks/evidence/results` with settings, seed, losses, versions and mostly examples of answers.
`python -m benchmarks.evidence report` writes these pages.

## What would one hour of one GPU settle?

`--full` takes the papers' settings. Models are then trained on a GPU, where PyTorch finds one. None of
these runs has been made yet. The times are estimates, from 15 to 25 ms a step.

| question | command | takes |
|---|---|---|
| Six encodings, width 768, 100,000 steps: whose R² is the paper's? | `xval_expressions --full --match=-2-0-0.001 --jobs 6` | an hour |
| 720,000 sums, width 384, 140,600 steps: do digits end below FoNE? | `fone_arithmetic --full --jobs 5` | an hour for a run; a day for sums |
| BERT-base: does a value help the words around it? | `bits_masked_words --full` | hours, and more than these 420 pages |

So an hour settles the first question. The small models here would hardly gain from an hour.
"""


def overview(experiments: Iterable[Experiment], store: Store, size: str) -> str:
    """Return a Markdown table of all experiments: question, name, verdict in a word, and runs done."""
    rows = []
    for experiment in experiments:
        done, total = _done(experiment, store, size)
        verdict = re.split("[.:,]| of ", experiment.confidence)[0]
        rows.append([experiment.question, f"`{experiment.name}`", verdict, f"{done} of {total}"])
    return tables.markdown(["", "experiment", "verdict", "runs done"], rows)


def write(experiments: Iterable[Experiment], store: Store, docs: Path) -> list[Path]:
    """Write docs/evidence.md and the pages of docs/evidence/, and return their paths. Experiments
    without results get no page.
    """
    experiments = list(experiments)
    answers, pages = [INTRODUCTION], {METHOD: RUNNING.format(hours=_cpu_hours(experiments, store))}
    for experiment in experiments:
        if results := store.all(experiment.results, SIZE):
            section = experiment.section(results, docs / "images")
            answers.append(_answer(experiment, section, store))
            pages[f"{experiment.name}.md"] = _page(experiment, section, results, store)
    paths = {docs / "evidence.md": "\n".join(answers)}
    paths |= {docs / "evidence" / name: page for name, page in pages.items()}
    (docs / "evidence").mkdir(parents=True, exist_ok=True)
    for path, text in paths.items():
        write_file(path, text)
    return list(paths)


def _answer(experiment: Experiment, section: str, store: Store) -> str:
    """Return the section about an experiment in docs/evidence.md."""
    picture = re.search(rf"!\[([^]:]*)[^]]*\]\((\w+/{re.escape(experiment.picture)})\)", section)
    done, total = _done(experiment, store, SIZE)
    missing = f" {done} of {total} runs are done." * (done < total)
    parts = [
        f"## {experiment.question}",
        experiment.result,
        tables.excerpt(section, experiment.rows, experiment.columns, experiment.labels),
        f"![{re.sub(' and against .*', '', picture[1])}]({picture[2]})" if picture else "",
        f"**How sure:** {experiment.confidence}{missing} [All figures](evidence/{experiment.name}.md).",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _page(
    experiment: Experiment, section: str, results: list[tuple[Settings, Result]], store: Store
) -> str:
    """Return the page docs/evidence/NAME.md of an experiment."""
    parts = [
        f"# {experiment.question}",
        f"Experiment `{experiment.name}`: {experiment.paper}. All questions: [Evidence](../evidence.md)."
        f" Rules of all experiments: [How the experiments are run]({METHOD}).",
        f"## Verdict\n\n{experiment.verdict}",
        f"## The paper's result\n\n{experiment.claim}",
        f"## Results\n\n{section.replace('](images/', '](../images/')}",
        experiment.observations(results),
        f"## Settings\n\n{experiment.setup}",
        f"## Runs\n\n{_runs(experiment, results, store)}",
        _shortest(experiment, results),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _runs(experiment: Experiment, results: list[tuple[Settings, Result]], store: Store) -> str:
    """Return a table with the count of runs, their seeds, hours of training, and versions."""
    seeds = sorted({settings["seed"] for settings, _ in results if "seed" in settings})
    hours = sum(result.get("seconds", 0) for _, result in results) / 3600
    trained = [result for _, result in results if "seconds" in result]
    done, total = _done(experiment, store, SIZE)
    rows = [["runs", f"{done} of {total}"]]
    if seeds:
        rows.append(["seeds", ", ".join(map(str, seeds))])
    if trained:
        curves = sum("curve" in result for result in trained)
        rows.append(["training", f"{hours:.1f} hours"])
        rows.append(["learning curves", f"of {curves} of {len(trained)} trainings"])
    rows += [
        [name, ", ".join(versions)]
        for name, versions in store.versions_used(experiment.results, SIZE).items()
    ]
    return tables.markdown(rows[0], rows[1:])


def _shortest(experiment: Experiment, results: list[tuple[Settings, Result]]) -> str:
    """Return a sentence with the command that repeats the shortest run."""
    seconds = {slug(settings): result.get("seconds", math.inf) for settings, result in results}
    name = min(seconds, key=seconds.__getitem__).removeprefix(SIZE)
    match = f"--match={name}" if name.startswith("-") else f"--match {name}"
    return (
        "The shortest run once more:"
        f" `python -m benchmarks.evidence {experiment.name} {match} --into again`."
    )


def _done(experiment: Experiment, store: Store, size: str) -> tuple[int, int]:
    """Return how many runs of a size have a result, and how many runs there are."""
    runs = [settings for phase in experiment.phases(size) for settings in phase]
    return sum(store.get(experiment.results, settings) is not None for settings in runs), len(runs)


def _cpu_hours(experiments: list[Experiment], store: Store) -> float:
    """Return the hours of training on a CPU core in all small runs but those of the pretrained
    model.
    """
    names = {experiment.results: None for experiment in experiments}
    seconds = (
        result.get("seconds", 0)
        for name in names
        for _, result in store.all(name, SIZE)
        if "device" not in result
    )
    return float(sum(seconds)) / 3600
