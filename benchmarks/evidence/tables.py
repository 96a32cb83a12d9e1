"""Tables in Markdown, and the figures in their cells."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

Key = TypeVar("Key", bound=Hashable)
NOT_QUOTED = re.compile(r"\*\*| \(\d+ seeds?\)")  # bold, and counts of seeds


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
    """Return the first table of a page that has all ``columns``, reduced to ``rows`` and
    ``columns``.

    Bold and counts of seeds, as in ``name (3 seeds)``, are left out. Rows that the table lacks are
    skipped. The result is "" without such a table or row.

    Args:
        page: Markdown.
        rows: names in the first column.
        columns: heads.
        labels: other names for rows and columns.

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
    """Return the mean of the values that are not None, and their standard deviation if there are
    several; "" if there is none.

    >>> mean([0.5, None, 0.7])
    '60.0% ± 14.1%'
    """
    known = [value for value in values if value is not None]
    if not known:
        return ""
    spread = f" ± {np.std(known, ddof=1):{form}}" if len(known) > 1 else ""
    return f"{np.mean(known):{form}}{spread}"


def seed_count(runs: Sequence[Any]) -> str:
    """Return the count of runs as a suffix of a row's name, such as ``(3 seeds)``."""
    return f"({len(runs)} seed{'s' * (len(runs) != 1)})"


def is_clearly_larger(share: float, other: float, count: int) -> bool:
    """Whether one share of right answers to ``count`` questions exceeds another by more than twice
    the standard error of their difference.

    >>> is_clearly_larger(0.6, 0.5, 100), is_clearly_larger(0.65, 0.5, 100)
    (False, True)
    """
    error = math.sqrt((share * (1 - share) + other * (1 - other)) / count)
    return share - other > 2 * error


def verdict(ours: Sequence[float], others: Sequence[float], count: int) -> str:
    """Return "shown" if the shares of a row clearly exceed those of another with every seed,
    "contradicted" if the reverse holds, else with how many seeds they do.

    Args:
        ours: shares of right answers, one per seed.
        others: shares of the other row, with the same seeds.
        count: questions asked with a seed.

    >>> verdict([0.5, 0.6], [0.1, 0.59], 100)
    'not shown: better with 1 of 2 seeds'
    """
    pairs = list(zip(ours, others, strict=True))
    better = sum(is_clearly_larger(a, b, count) for a, b in pairs)
    if better == len(pairs):
        return "shown"
    if all(is_clearly_larger(b, a, count) for a, b in pairs):
        return "contradicted"
    name = "shown in part" if 2 * better > len(pairs) else "not shown"
    return f"{name}: better with {better} of {len(pairs)} seeds"


def group_values(pairs: Iterable[tuple[Key, Any]]) -> dict[Key, list[Any]]:
    """Return the list of values of each key; keys are ordered by their first occurrence.

    >>> group_values([("a", 1), ("b", 2), ("a", 3)])
    {'a': [1, 3], 'b': [2]}
    """
    groups: dict[Key, list[Any]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups
