"""Describe an experiment: which runs it has, how a run is made, and what its pages say, a section
of docs/evidence.md, and docs/evidence/NAME.md.

In: a size (``smoke``: a few steps, to see that it learns; ``small``: a CPU, minutes each; ``full``:
    the paper's settings). Out: phases of settings; the runs of a phase may look up what those
    before it found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.evidence.store import Result, Settings, Store

SIZES = ("smoke", "small", "full")


@dataclass(frozen=True)
class Experiment:
    """One table or figure of a paper.

    Attributes:
        name: of the command and of its folder of results.
        paper: which paper, and which table or figure of it.
        claim: what the paper reports.
        phases: for a size, lists of settings, the cheapest first.
        run: settings, the results so far, and a folder that is removed afterwards; what was found.
        section: Markdown of the results, without a heading; it may draw plots into the folder
            given.
        question: the question asked, for readers who know no paper.
        result: the answer in two sentences, for docs/evidence.md.
        sure: the verdict in a word or two, and how sure it is.
        rows, columns: of the tables in ``section``, what docs/evidence.md shows.
        labels: what docs/evidence.md calls rows and columns whose names need the page around them.
        picture: the file name of the picture in ``section`` that docs/evidence.md shows.
        differs: how the settings of the results differ from those of the paper.
        seen: what the results say to the claim; empty if there are too few.
        verdict: of the paper's finding: shown, shown in part, not shown or contradicted, why, and
            what would settle it.
        kept_in: the experiment whose runs these are, and in whose folder the results lie; empty for
            its own.
    """

    name: str
    paper: str
    claim: str
    phases: Callable[[str], list[list[Settings]]]
    run: Callable[[Settings, Store, Path], Result]
    section: Callable[[list[tuple[Settings, Result]], Path], str]
    question: str = ""
    result: str = ""
    sure: str = ""
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    picture: str = ""
    differs: str = ""
    seen: Callable[[list[tuple[Settings, Result]]], str] = lambda results: ""
    verdict: str = ""
    kept_in: str = ""

    @property
    def results(self) -> str:
        """The name of its folder of results."""
        return self.kept_in or self.name
