"""Tables in Markdown, and what stands in them."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

Key = TypeVar("Key", bound=Hashable)
NOT_QUOTED = re.compile(r"\*\*| \(\d+ seeds?\)")  # bold, and what ``seeds`` writes


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with numbers aligned right; the first column and verdicts are aligned left.

    >>> print(markdown(["", "a", "verdict"], [["b", "1", "shown"]]))
    |  | a | verdict |
    |---|--:|---|
    | b | 1 | shown |
    """
    lines = ["| " + " | ".join(line) + " |" for line in [heads, *rows]]
    marks = ["---" if head.startswith("verdict") else "--:" for head in heads[1:]]
    return "\n".join([lines[0], "|".join(["", "---", *marks, ""]), *lines[1:]])


def excerpt(
    page: str, rows: Sequence[str], columns: Sequence[str], labels: Mapping[str, str] | None = None
) -> str:
    """Return the first table of a page that has all the columns, reduced to these rows and columns.
    Bold and counts of seeds, as in ``name (3 seeds)``, are left out, and rows that the table lacks;
    "" if there is no such table or row. ``labels`` are other names for rows and columns.

    >>> page = markdown(["", "a", "b (3 seeds)"], [["one", "1", "2"], ["two (1 seed)", "3", "4"]])
    >>> print(excerpt(page, ["two", "three"], ["b"]))
    |  | b |
    |---|--:|
    | two | 4 |
    """
    for table in re.findall(r"(?:^\|.*\|$\n?)+", NOT_QUOTED.sub("", page), re.M):
        heads, _, *lines = [line[2:-2].split(" | ") for line in table.strip().splitlines()]
        if set(columns) <= set(heads):
            indices = [0, *map(heads.index, columns)]
            by_name = {line[0]: line for line in lines}
            names = {head: head for head in (*heads, *by_name)} | dict(labels or {})
            kept = [
                [names[row], *(by_name[row][index] for index in indices[1:])]
                for row in rows
                if row in by_name
            ]
            return markdown([names[heads[index]] for index in indices], kept) if kept else ""
    return ""


def mean(values: Iterable[float | None], form: str = ".1%") -> str:
    """The mean of what is there, with the standard deviation where there are several; empty where
    there is nothing.
    """
    found = [value for value in values if value is not None]
    if not found:
        return ""
    return f"{np.mean(found):{form}}" + (
        f" ± {np.std(found, ddof=1):{form}}" if len(found) > 1 else ""
    )


def seeds(found: Sequence[Any]) -> str:
    """How many, as a word after a name."""
    return f"({len(found)} seed{'s' * (len(found) != 1)})"


def clearly(share: float, other: float, count: int) -> bool:
    """Whether a share of so many is larger than another by more than twice the standard error of
    their difference.
    """
    error = math.sqrt((share * (1 - share) + other * (1 - other)) / count)
    return share - other > 2 * error


def verdict(ours: Sequence[float], others: Sequence[float], count: int) -> str:
    """Whether a row has clearly larger shares than another, seed by seed."""
    pairs = list(zip(ours, others, strict=True))
    better = sum(clearly(a, b, count) for a, b in pairs)
    if better == len(pairs):
        return "shown"
    if all(clearly(b, a, count) for a, b in pairs):
        return "contradicted"
    name = "shown in part" if 2 * better > len(pairs) else "not shown"
    return f"{name}: better with {better} of {len(pairs)} seeds"


def gathered(pairs: Iterable[tuple[Key, Any]]) -> dict[Key, list[Any]]:
    """The values of each key, in the order in which the keys first come."""
    found: dict[Key, list[Any]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found
