"""Write results as aligned text, Markdown or JSON."""

from __future__ import annotations

import dataclasses
import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.corpus import Corpus
from benchmarks.timing import Goal, Row, Section

PACKAGES = (
    "numtok",
    "numpy",
    "numba",
    "pyarrow",
    "tokenizers",
    "tiktoken",
    "gigatoken",
    "regex",
    "awkward",
)
ROW_HEADERS = ("", "median", "min – max", "rate", "time / ours")
GOAL_HEADERS = ("budget", "measured", "floor", "aim", "")


def machine() -> dict[str, Any]:
    """Return processor, cores and system."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the compared packages."""
    return {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def as_dict(corpus: Corpus, sections: dict[str, Section]) -> dict[str, Any]:
    """Return all results as a dict for JSON."""
    return {
        "format": 1,
        "machine": machine(),
        "versions": versions(),
        "corpus": {
            "name": corpus.name,
            "documents": len(corpus.texts),
            "bytes": corpus.nbytes,
            "tokenizer": corpus.tokenizer_name,
        },
        "quick": corpus.quick,
        "sections": {
            name: {
                "title": section.title,
                "error": section.error,
                "checks": section.checks,
                "notes": section.notes,
                "rows": [_row_as_dict(row) for row in section.rows],
                "budgets": [
                    dataclasses.asdict(goal) | {"verdict": goal.verdict} for goal in section.goals
                ],
            }
            for name, section in sections.items()
        },
    }


def _row_as_dict(row: Row) -> dict[str, Any]:
    timing = row.timing
    return {
        "name": row.name,
        "seconds": {
            "median": timing.median,
            "min": timing.low,
            "max": timing.high,
            "turns": len(timing.seconds),
        },
        "rate": row.rate,
        "unit": f"{row.unit}/s",
        "time_over_ours": row.ratio,
    }


def as_text(corpus: Corpus, sections: dict[str, Section], markdown: bool = False) -> str:
    """Return all results as text: one table per section, then the budgets."""
    computer = machine()
    lines = [
        (
            f"{corpus.name}: {len(corpus.texts):,} documents, {corpus.megabytes:.1f} MB; tokenizer:"
            f" {corpus.tokenizer_name}"
        ),
        f"{computer['processor']}, {computer['cores']} cores, {computer['system']}",
        ", ".join(f"{name} {number}" for name, number in versions().items()),
    ]
    if markdown:
        lines = [line + "  " for line in lines]
    if corpus.quick:
        lines.append("--quick: enough to see that everything runs, not to be quoted")
    for section in sections.values():
        lines += ["", f"### {section.title}" if markdown else section.title, ""]
        if section.error:
            lines.append(f"WRONG RESULT, not timed: {section.error}")
            continue
        lines += table(ROW_HEADERS, [_row_cells(row) for row in section.rows], markdown)
        lines += ["", *(f"{'- ' if markdown else '  '}checked: {line}" for line in section.checks)]
        lines += [f"{'- ' if markdown else '  '}note: {line}" for line in section.notes]
    goals = [goal for section in sections.values() for goal in section.goals if not section.error]
    if goals:
        lines += [
            "",
            "### Budgets" if markdown else "Budgets",
            "",
            *table(GOAL_HEADERS, [_goal_cells(goal) for goal in goals], markdown),
        ]
    return "\n".join(lines)


def _row_cells(row: Row) -> tuple[str, ...]:
    timing = row.timing
    rate = f"{_digits(row.rate)} {row.unit}/s" if row.rate is not None else ""
    ratio = f"{_digits(row.ratio)} x" if row.ratio is not None else ""
    return (
        row.name,
        _seconds(timing.median),
        f"{_seconds(timing.low)} – {_seconds(timing.high)}",
        rate,
        ratio,
    )


def _goal_cells(goal: Goal) -> tuple[str, ...]:
    sign = "≤" if goal.at_most else "≥"
    aim = f"{sign} {goal.aim:g}" if goal.aim is not None else ""
    return (
        goal.what,
        f"{_digits(goal.value)} {goal.unit}",
        f"{sign} {goal.floor:g}",
        aim,
        goal.verdict,
    )


def _seconds(value: float) -> str:
    if value < 1e-3:
        return f"{value * 1e6:.0f} µs"
    return (
        f"{value * 1e3:.2f} ms"
        if value < 0.1
        else f"{value * 1e3:.0f} ms"
        if value < 1
        else f"{value:.2f} s"
    )


def _digits(value: float) -> str:
    """Return a number with three significant digits, or all digits before the point."""
    return (
        f"{value:,.0f}"
        if value >= 100
        else f"{value:.1f}"
        if value >= 10
        else f"{value:.2f}"
        if value >= 0.1
        else f"{value:.2g}"
    )


def table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], markdown: bool = False
) -> list[str]:
    """Return the lines of an aligned table: the first column to the left, the others to the right."""
    widths = [max(len(row[k]) for row in [headers, *rows]) for k in range(len(headers))]

    def line(row: Sequence[str]) -> str:
        cells = [
            row[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
        ]
        return f"| {' | '.join(cells)} |" if markdown else "  " + "  ".join(cells).rstrip()

    rule = [
        "-" * widths[0],
        *("-" * (width - 1) + (":" if markdown else "-") for width in widths[1:]),
    ]
    return [line(headers), line(rule), *map(line, rows)]
