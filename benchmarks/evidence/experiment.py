"""Describe an experiment: its runs, how a run is made, and the text of its section in
docs/evidence.md and of its page docs/evidence/NAME.md.

In: a size (``smoke``: a few steps, to see that a model learns; ``small``: minutes on a CPU;
    ``full``: the paper's settings). Out: phases, lists of settings of runs. A run may read the
    results of earlier phases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.evidence.store import Result, Settings, Store

SIZE = "small"  # of the runs that the pages show


@dataclass(frozen=True)
class Experiment:
    """Runs and page of one table or figure of a paper.

    Attributes:
        name: name of the command and of the page.
        paper: the paper, and its table or figure.
        claim: the paper's result.
        phases: the settings of all runs of a size, in phases.
        run: make one run, from its settings, the results so far and a temporary folder.
        section: write the section "Results" in Markdown, from the results of the small runs. The
            second argument is the folder for pictures.
        question: the question asked, for readers who know no paper.
        result: the answer in two sentences, for docs/evidence.md.
        confidence: the verdict in a word or two, and how sure it is.
        rows, columns: the part of a table in ``section`` that docs/evidence.md shows.
        labels: other names for these rows and columns, where a name needs the page around it.
        picture: file name of the picture in ``section`` that docs/evidence.md shows.
        setup: how our settings differ from those of the paper.
        observations: write further sentences below "Results"; empty if there are too few results.
        verdict: whether the paper's finding shows (shown, shown in part, not shown, contradicted),
            why, and what would settle it.
        results_of: name of the experiment whose results this one shows; empty for its own.
    """

    name: str
    paper: str
    claim: str
    phases: Callable[[str], list[list[Settings]]]
    run: Callable[[Settings, Store, Path], Result]
    section: Callable[[list[tuple[Settings, Result]], Path], str]
    question: str = ""
    result: str = ""
    confidence: str = ""
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    picture: str = ""
    setup: str = ""
    observations: Callable[[list[tuple[Settings, Result]]], str] = lambda results: ""
    verdict: str = ""
    results_of: str = ""

    @property
    def results(self) -> str:
        """Return the name of the folder with the results of this experiment."""
        return self.results_of or self.name
