"""The store of results: one JSON file per run, so that an interrupted experiment goes on where it
stopped.

In: an experiment's name, the settings of one run, its result. Out:
    ``results/EXPERIMENT/SETTINGS.json``, written whole or not at all.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping
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
        folder: folder with a folder for each experiment.
    """

    def __init__(self, folder: Path = RESULTS) -> None:
        self.folder = folder

    def path(self, experiment: str, settings: Settings) -> Path:
        """Return the path of the file for the result of a run."""
        return self.folder / experiment / f"{slug(settings)}.json"

    def get(self, experiment: str, settings: Settings) -> Result | None:
        """Return the result of a run; None if the run has none yet."""
        path = self.path(experiment, settings)
        if not path.is_file():
            return None
        content = json.loads(path.read_text("utf-8"))
        return dict(content["found"]) if content["settings"] == settings else None

    def put(self, experiment: str, settings: Settings, result: Result) -> None:
        """Store the result of a run, with the versions of the packages that made it."""
        path = self.path(experiment, settings)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "experiment": experiment,
            "settings": settings,
            "found": result,
            "versions": versions(),
        }
        write_file(path, json.dumps(content, indent=1) + "\n")

    def best(self, experiment: str, search: Mapping[Key, Settings]) -> Key:
        """Return the value (a learning rate, say) whose run in a search has the lowest loss on data
        that was held out.

        Raises:
            LookupError: if a run of the search has no result.
        """
        results = {value: self.get(experiment, settings) for value, settings in search.items()}
        losses = {
            value: float(result["unseen_loss"])
            for value, result in results.items()
            if result is not None
        }
        if missing := [value for value in search if value not in losses]:
            raise LookupError(f"{experiment}: no result for {missing}; run the search first")
        return min(losses, key=losses.__getitem__)

    def all(self, experiment: str, size: str) -> list[tuple[Settings, Result]]:
        """Return settings and result of every run of a size, ordered by file name."""
        return [
            (content["settings"], content["found"]) for content in self._contents(experiment, size)
        ]

    def versions_used(self, experiment: str, size: str) -> dict[str, list[str]]:
        """Return the versions of each package that the runs of an experiment were made with."""
        used = [content["versions"] for content in self._contents(experiment, size)]
        return {name: sorted({one[name] for one in used}) for name in (used[0] if used else {})}

    def _contents(self, experiment: str, size: str) -> list[dict[str, Any]]:
        paths = sorted((self.folder / experiment).glob("*.json"))
        contents = [json.loads(path.read_text("utf-8")) for path in paths]
        return [content for content in contents if content["settings"]["size"] == size]


def without_search(results: list[tuple[Settings, Result]]) -> list[tuple[Settings, Result]]:
    """Return the results but those of a search for a rate or a start. A search has a seed, and so
    questions, of its own.
    """
    return [one for one in results if not {"rate", "start"} & one[0].keys()]


def slug(settings: Settings) -> str:
    """Return a file name for settings: their values in order, such as ``decimal-fone-6400-0``."""
    return re.sub(r"[^\w.=-]+", "_", "-".join(str(value) for value in settings.values()))


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that a result may depend on."""
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in ("numtok", "torch", "transformers", "numpy")},
    }
