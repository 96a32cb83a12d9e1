"""The results: one JSON file per run, so that what was cut off goes on where it stopped.

In: an experiment's name, the settings of one run, what it found. Out:
    ``results/EXPERIMENT/SETTINGS.json``, written whole or not at all.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from numtok.files import write_file

RESULTS = Path(__file__).parent / "results"
Settings = dict[str, Any]  # names to str, int, float or bool
Result = dict[str, Any]
Key = TypeVar("Key")


class Store:
    """Results by settings.

    Args:
        folder: gets a folder for each experiment.
    """

    def __init__(self, folder: Path = RESULTS) -> None:
        self.folder = folder

    def path(self, experiment: str, settings: Settings) -> Path:
        """Where the result of a run is, or will be."""
        return self.folder / experiment / f"{slug(settings)}.json"

    def get(self, experiment: str, settings: Settings) -> Result | None:
        """What a run found; None if it did not take place."""
        path = self.path(experiment, settings)
        if not path.is_file():
            return None
        kept = json.loads(path.read_text("utf-8"))
        return dict(kept["found"]) if kept["settings"] == settings else None

    def put(self, experiment: str, settings: Settings, found: Result) -> None:
        """Keep what a run found, with the versions that it ran on."""
        path = self.path(experiment, settings)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "experiment": experiment,
            "settings": settings,
            "found": found,
            "versions": versions(),
        }
        write_file(path, json.dumps(content, indent=1) + "\n")

    def best(
        self,
        experiment: str,
        searched: Mapping[Key, Settings],
        loss: Callable[[Result], float] = lambda found: float(found["unseen_loss"]),
    ) -> Key:
        """Of the rates, or other values, of a search, that of the run with the lowest loss, on what
        it was not trained on if nothing else is said.

        Raises:
            LookupError: if a run of the search has no result.
        """
        found = {rate: self.get(experiment, settings) for rate, settings in searched.items()}
        losses = {rate: loss(result) for rate, result in found.items() if result is not None}
        if missing := [rate for rate in searched if rate not in losses]:
            raise LookupError(f"{experiment}: no result for {missing}; run the search first")
        return min(losses, key=losses.__getitem__)

    def all(self, experiment: str) -> list[tuple[Settings, Result]]:
        """Every run that there is, by name of its file."""
        return [(one["settings"], one["found"]) for one in self._contents(experiment)]

    def made_with(self, experiment: str) -> dict[str, list[str]]:
        """The versions that its runs had."""
        every = [one["versions"] for one in self._contents(experiment)]
        return {name: sorted({one[name] for one in every}) for name in (every[0] if every else {})}

    def _contents(self, experiment: str) -> list[dict[str, Any]]:
        return [
            json.loads(path.read_text("utf-8"))
            for path in sorted((self.folder / experiment).glob("*.json"))
        ]


def reported(results: list[tuple[Settings, Result]]) -> list[tuple[Settings, Result]]:
    """The small runs but those of a search, which have a seed, and so questions, of their own."""
    return [
        (settings, result)
        for settings, result in results
        if settings["size"] == "small" and not {"rate", "start"} & settings.keys()
    ]


def slug(settings: Settings) -> str:
    """A file name for settings: their values in their order, ``decimal-fone-6400-0``."""
    return re.sub(r"[^\w.=-]+", "_", "-".join(str(value) for value in settings.values()))


def versions() -> dict[str, str]:
    """Of what a result may depend on."""
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in ("numtok", "torch", "transformers", "numpy")},
    }
