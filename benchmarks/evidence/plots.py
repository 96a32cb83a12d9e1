"""Pictures for docs/evidence.md and docs/evidence/: SVG that reads on light pages and on dark ones, and that is the
same, byte for byte, whenever it is drawn of the same values.

In: values by the name of what is compared and by where they were taken, several where there are
    several seeds. Out: a file, and Markdown that shows it.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from benchmarks.evidence.store import Result
from numtok.files import write_file

INK, FAINT = "#768390", "#76839040"  # between black and white, so that both are a ground for it
COLOURS = (
    "#2f81d6",
    "#d9822b",
    "#2a9d6f",
    "#d1495b",
    "#9b6bc4",
    "#3aa6b9",
    "#a8842c",
    "#c75fa5",
    "#768390",
    "#8c564b",
    "#5f9e3a",
    "#e377c2",
    "#bcbd22",
    "#17becf",
)
MARKERS = "osD^vPX<>*ph8d"
STYLE: Any = {  # matplotlib's own type names each of its settings
    "svg.fonttype": "none",  # text stays text: to be read, searched, and small
    "svg.hashsalt": "numtok",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": FAINT,
    **dict.fromkeys(
        ("axes.edgecolor", "axes.labelcolor", "text.color", "xtick.color", "ytick.color"), INK
    ),
}
WIDTH = 7.2  # inches
Values = Mapping[str, Mapping[Any, Sequence[float]]]


def curves(path: Path, values: Values, x: str, y: str, *, log: bool = False) -> None:
    """A line for each name through the means of shares, with what lies between the least and the
    largest shaded.
    """
    with _figure(path, 3.4) as axes:
        for index, (name, points) in enumerate(values.items()):
            at, means = sorted(points), [float(np.mean(points[place])) for place in sorted(points)]
            axes.plot(
                at, means, color=COLOURS[index], marker=MARKERS[index], markersize=4.5, label=name
            )
            if any(len(some) > 1 for some in points.values()):
                low, high = (
                    [float(choose(points[place])) for place in at] for choose in (np.min, np.max)
                )
                axes.fill_between(at, low, high, color=COLOURS[index], alpha=0.15, linewidth=0)
        every = sorted({place for points in values.values() for place in points})
        if log:
            axes.set_xscale("log")
        if len(every) <= 12:
            axes.set_xticks(every, [f"{place:,}" for place in every])
            axes.minorticks_off()
        axes.set_ylim(-0.03, 1.03)
        axes.yaxis.set_major_formatter(_percent)
        axes.set(xlabel=x, ylabel=y)
        axes.grid(axis="y")
        _legend(axes)


def learning_curves(
    path: Path,
    found: Mapping[str, Sequence[Result]],
    what: str,
    y: str,
    *,
    log: bool = False,
    share: bool = True,
    clock: str = "CPU seconds",
) -> str:
    """A line for each name through the means of its runs' ``curve``, ``[[step, seconds, value],
    ...]`` each, against steps and against seconds; what lies between the least and the largest is
    shaded. Markdown that shows it; empty if no run has one.
    """
    runs = {
        name: curves
        for name, some in found.items()
        if (curves := [one["curve"] for one in some if "curve" in one])
    }
    if not runs:
        return ""
    with _figure(path, 3.4, panels=2) as both:
        for index, (name, of_name) in enumerate(runs.items()):
            points = np.array(of_name)  # (runs, points, 3)
            means = points.mean(0)
            for axes, x in zip(both, means.T[:2], strict=True):
                style: Any = {"color": COLOURS[index], "marker": MARKERS[index], "markersize": 3.5}
                axes.plot(x, means[:, 2], label=name, **style)
                low, high = points[..., 2].min(0), points[..., 2].max(0)
                axes.fill_between(x, low, high, color=COLOURS[index], alpha=0.15, linewidth=0)
        for axes, label in zip(both, ("steps", clock), strict=True):
            if share:
                axes.set_ylim(-0.03, 1.03)
                axes.yaxis.set_major_formatter(_percent)
            if log:
                axes.set_yscale("log")
            axes.set(xlabel=label, ylabel=y)
            axes.set_xscale("log")
            axes.xaxis.set_minor_formatter(NullFormatter())  # of short axes they overlap
            axes.grid(axis="y")
        _legend(both[-1], least=1)
    return shown(path, f"{what} against steps and against {clock}", runs)


def dots(path: Path, values: Values, x: str, *, log: bool = False, share: bool = False) -> None:
    """A row for each place, in it a dot for each name at the mean, with a line from the least to
    the largest.
    """
    places = list(dict.fromkeys(place for points in values.values() for place in points))
    with _figure(path, 0.9 + 0.22 * len(places) * max(len(values), 2)) as axes:
        for index, (name, points) in enumerate(values.items()):
            rows = np.array([places.index(place) for place in points]) + _beside(index, len(values))
            means = np.array([np.mean(some) for some in points.values()])
            spread = np.abs(
                np.array([[np.min(some), np.max(some)] for some in points.values()]).T - means
            )
            axes.errorbar(
                means,
                rows,
                xerr=spread,
                fmt=MARKERS[index],
                markersize=5,
                color=COLOURS[index],
                label=name,
            )
        axes.set_xlabel(x)
        if log:
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axes.xaxis.set_major_formatter(_plain)
            axes.minorticks_off()
        if share:
            axes.xaxis.set_major_formatter(_percent)
        _rows(axes, places)


def bars(path: Path, values: Values, x: str) -> None:
    """A row for each place, in it a bar for each name, with its value."""
    places = list(dict.fromkeys(place for points in values.values() for place in points))
    with _figure(path, 0.9 + 0.19 * len(places) * max(len(values), 1.5)) as axes:
        for index, (name, points) in enumerate(values.items()):
            rows = [places.index(place) + _beside(index, len(values)) for place in points]
            drawn = axes.barh(
                rows,
                [float(np.mean(some)) for some in points.values()],
                0.8 / len(values),
                color=COLOURS[index],
                label=name,
            )
            axes.bar_label(drawn, fmt="%.2f", padding=3, fontsize=8)
        axes.set_xlabel(x)
        axes.spines.left.set_visible(False)
        _rows(axes, places)


def shown(path: Path, what: str, names: Iterable[str]) -> str:
    """Return the Markdown of a picture, for a page one folder up. Its text says what is shown of
    whom.
    """
    return f"![{what}: {'; '.join(names)}]({path.parent.name}/{path.name})"


def _percent(share: float, _: int) -> str:
    return f"{share:.0%}"


def _plain(value: float, _: int) -> str:
    return f"{value:g}"


def _beside(index: int, count: int) -> float:
    """Where a row has the mark of one of several names, from its middle."""
    return 0.8 * ((index + 0.5) / count - 0.5)


def _rows(axes: Any, places: Sequence[str]) -> None:
    axes.set_yticks(range(len(places)), places)
    axes.set_ylim(len(places) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    axes.set_axisbelow(True)
    _legend(axes)


def _legend(axes: Any, least: int = 2) -> None:
    if len(axes.get_legend_handles_labels()[1]) >= least:
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)


@contextmanager
def _figure(path: Path, height: float, panels: int = 1) -> Iterator[Any]:
    """Axes to draw on, one or several beside each other; then the file."""
    with matplotlib.rc_context(STYLE):
        figure = Figure((WIDTH, height), layout="constrained")
        yield figure.subplots(ncols=panels)
        drawn = io.StringIO()
        figure.savefig(
            drawn, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, "\n".join(line.rstrip() for line in drawn.getvalue().splitlines()) + "\n")
