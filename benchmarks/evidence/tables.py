"""Tables in Markdown, and what stands in them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

Key = TypeVar("Key", bound=Hashable)


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column is aligned left, the others right."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def mean(values: Iterable[float | None], form: str = ".1%") -> str:
    """The mean of what is there, with the standard deviation where there are several; empty where
    there is nothing.
    """
    found = [value for value in values if value is not None]
    if not found:
        return ""
    return f"{np.mean(found):{form}}" + (f" ± {np.std(found):{form}}" if len(found) > 1 else "")


def seeds(found: Sequence[Any]) -> str:
    """How many, as a word after a name."""
    return f"({len(found)} seed{'s' * (len(found) != 1)})"


def gathered(pairs: Iterable[tuple[Key, Any]]) -> dict[Key, list[Any]]:
    """The values of each key, in the order in which the keys first come."""
    found: dict[Key, list[Any]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found
