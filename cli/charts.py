"""Charts as inline SVG, made by hand: nothing is loaded for them, and a table with the same figures
stands beside each.

In: rows of a label and counts. Out: HTML. Colours are the classes ``s0``, ``s1`` and so on of the
    page's style.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numtok.statistics.tables import Row

WIDTH, HEIGHT, FOOT, LEFT = 420, 190, 22, 44  # of the drawing; its labels below and on the left
LETTER = 6.7  # width of one in a label
STEPS = 4  # lines on the left


def columns(
    rows: Sequence[Row], title: str, series: Sequence[str], expected: int | None = None
) -> str:
    """Upright columns, one per row: the counts of the ``series`` on top of each other, and those of
    column ``expected``, if there is one, as a mark.
    """
    most = (
        max(
            (
                max(
                    sum(row.counts[: len(series)]),
                    row.counts[expected] if expected is not None else 0,
                )
                for row in rows
            ),
            default=0,
        )
        or 1
    )
    step = (WIDTH - LEFT) / max(len(rows), 1)
    width = min(step * 0.78, 46)
    room = HEIGHT - FOOT - 8
    parts = [*_lines(most, room)]
    labels = [row.label.split()[0] for row in rows]  # of "256 to 511", where it begins
    every = math.ceil(LETTER * (max(map(len, labels), default=0) + 1) / step)
    for place, row in enumerate(rows):
        left, top = LEFT + step * place + (step - width) / 2, float(HEIGHT - FOOT)
        told = (
            ", ".join(f"{row.counts[k]:,} {name}" for k, name in enumerate(series))
            if len(series) > 1
            else f"{row.counts[0]:,}"
        )
        parts.append(f'<g data-tip="{escape(f"{row.label}: {told}")}">')
        for k in range(len(series)):
            height = max(room * row.counts[k] / most, 1.5) if row.counts[k] else 0
            top -= height
            if height:
                parts.append(
                    f'<rect class="s{k}" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}"'
                    f' height="{height:.1f}" rx="1.5"></rect>'
                )
        parts.append("</g>")
        if expected is not None:
            y = HEIGHT - FOOT - room * row.counts[expected] / most
            parts.append(
                f'<line class="mark" x1="{left - 2:.1f}" x2="{left + width + 2:.1f}" y1="{y:.1f}"'
                f' y2="{y:.1f}"></line>'
            )
        if place % every == 0:
            parts.append(
                f'<text x="{left + width / 2:.1f}" y="{HEIGHT - 5}"'
                f' text-anchor="middle">{escape(labels[place])}</text>'
            )
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
        f' aria-label="{escape(title)}">{"".join(parts)}</svg>'
    )


def bar(parts: Sequence[float], of: float) -> str:
    """One bar on its side, its parts one behind the other; decoration beside the figures of its
    row.
    """
    drawn, left = [], 0.0
    for k, part in enumerate(parts):
        width = max(100 * part / of, 0.6) if part and of else 0.0
        if width:
            drawn.append(
                f'<rect class="s{k}" x="{left:.2f}" y="0" width="{min(width, 100 - left):.2f}"'
                ' height="10"></rect>'
            )
        left += width
    return (
        '<svg viewBox="0 0 100 10" preserveAspectRatio="none"'
        f' aria-hidden="true">{"".join(drawn)}</svg>'
    )


def key(series: Sequence[str], mark: str = "") -> str:
    """What the colours mean."""
    items = [f'<span><i class="s{k}"></i>{escape(name)}</span>' for k, name in enumerate(series)]
    if mark:
        items.append(f'<span><i class="tick"></i>{escape(mark)}</span>')
    return f'<div class="key">{"".join(items)}</div>'


def _lines(most: int, room: int) -> list[str]:
    """Lines behind the columns with what they stand for."""
    step = _round_step(most / STEPS)
    parts = []
    for value in range(0, most + 1, step):
        y = HEIGHT - FOOT - room * value / most
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}"></line>')
        parts.append(
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_short(value)}</text>'
        )
    return parts


def _round_step(step: float) -> int:
    """The next of 1, 2, 5, 10, 20 and so on."""
    size = 1
    while size * 10 < step:
        size *= 10
    return next(size * k for k in (1, 2, 5, 10) if size * k >= step)


def _short(count: int) -> str:
    for size, letter in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (1000, "k")):
        if count >= size:
            return f"{count / size:g}{letter}"
    return str(count)
