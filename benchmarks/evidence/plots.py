"""Draw the SVG pictures of docs/evidence.md and docs/evidence/. They are readable on light and dark
pages, and the same values give the same bytes.

In: values by series (the name of a row of a table) and by position on the axis, one value per seed.
    Out: a file, and Markdown that shows it.
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

INK, FAINT = "#768390", "#76839040"  # readable on white and on black
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
STYLE: Any = {  # matplotlib's type for these options names each of them
    "svg.fonttype": "none",  # text stays text: searchable, and a small file
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
Values = Mapping[str, Mapping[Any, Sequence[float]]]  # by series, then by position


def curves(path: Path, values: Values, x: str, y: str) -> None:
    """Draw a line per series through the means of its shares, and shade from the least to the
    largest.
    """
    with _figure(path, 3.4) as axes:
        for index, (name, points) in enumerate(values.items()):
            positions = sorted(points)
            means, low, high = (
                [float(reduce(points[position])) for position in positions]
                for reduce in (np.mean, np.min, np.max)
            )
            style: Any = {"color": COLOURS[index], "marker": MARKERS[index], "markersize": 4.5}
            axes.plot(positions, means, label=name, **style)
            if low != high:
                axes.fill_between(
                    positions, low, high, color=COLOURS[index], alpha=0.15, linewidth=0
                )
        ticks = sorted({position for points in values.values() for position in points})
        axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        axes.minorticks_off()
        axes.set_ylim(-0.03, 1.03)
        axes.yaxis.set_major_formatter(_percent)
        axes.set(xlabel=x, ylabel=y)
        axes.grid(axis="y")
        _legend(axes)


def learning_curves(
    path: Path,
    results: Mapping[str, Sequence[Result]],
    title: str,
    y: str,
    *,
    log: bool = False,
    share: bool = True,
    clock: str = "CPU seconds",
) -> str:
    """Draw the mean learning curve of each series against steps and against seconds, shade from the
    least to the largest, and return Markdown that shows the picture.

    Args:
        path: the file.
        results: runs by series. Their ``curve`` is ``[[step, seconds, value], ...]``.
        title: begins the picture's text.
        y: label of the values.
        log: whether the value axis is logarithmic.
        share: whether the values are shares, 0 to 1.
        clock: what the second number of a point counts.

    Returns:
        "" if no run has a curve.
    """
    curves_of = {
        name: curves
        for name, runs in results.items()
        if (curves := [run["curve"] for run in runs if "curve" in run])
    }
    if not curves_of:
        return ""
    with _figure(path, 3.4, panels=2) as both:
        for index, (name, curves) in enumerate(curves_of.items()):
            points = np.array(curves)  # (runs, points, 3)
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
            axes.xaxis.set_minor_formatter(NullFormatter())  # minor labels overlap on short axes
            axes.grid(axis="y")
        _legend(both[-1], least=1)
    return picture_link(path, f"{title} against steps and against {clock}", curves_of)


def dots(path: Path, values: Values, x: str, *, log: bool = False, share: bool = False) -> None:
    """Draw a group of rows per position, and in it a dot for the mean of each series, with a line
    from the least to the largest.
    """
    labels = _labels(values)
    with _figure(path, 0.9 + 0.22 * len(labels) * max(len(values), 2)) as axes:
        for index, (name, points) in enumerate(values.items()):
            rows = np.array([labels.index(label) for label in points]) + _shift(index, len(values))
            means = np.array([np.mean(seeds) for seeds in points.values()])
            ends = np.array([[np.min(seeds), np.max(seeds)] for seeds in points.values()])
            spread = np.abs(ends.T - means)
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
        _label_rows(axes, labels)


def bars(path: Path, values: Values, x: str) -> None:
    """Draw a group of rows per position, and in it a bar with its value for each series."""
    labels = _labels(values)
    with _figure(path, 0.9 + 0.19 * len(labels) * max(len(values), 1.5)) as axes:
        for index, (name, points) in enumerate(values.items()):
            rows = [labels.index(label) + _shift(index, len(values)) for label in points]
            drawn = axes.barh(
                rows,
                [float(np.mean(seeds)) for seeds in points.values()],
                0.8 / len(values),
                color=COLOURS[index],
                label=name,
            )
            axes.bar_label(drawn, fmt="%.2f", padding=3, fontsize=8)
        axes.set_xlabel(x)
        axes.spines.left.set_visible(False)
        _label_rows(axes, labels)


def picture_link(path: Path, title: str, names: Iterable[str]) -> str:
    """Return the Markdown of a picture, for a page one folder up. Its text is the title and the
    series.
    """
    return f"![{title}: {'; '.join(names)}]({path.parent.name}/{path.name})"


def _percent(share: float, _: int) -> str:
    return f"{share:.0%}"


def _plain(value: float, _: int) -> str:
    return f"{value:g}"


def _labels(values: Values) -> list[Any]:
    """Return the positions of all series, ordered by their first occurrence."""
    return list(dict.fromkeys(label for points in values.values() for label in points))


def _shift(index: int, count: int) -> float:
    """Return how far below the middle of a row the mark of one of ``count`` series stands."""
    return 0.8 * ((index + 0.5) / count - 0.5)


def _label_rows(axes: Any, labels: Sequence[str]) -> None:
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    axes.set_axisbelow(True)
    _legend(axes)


def _legend(axes: Any, least: int = 2) -> None:
    if len(axes.get_legend_handles_labels()[1]) >= least:
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)


@contextmanager
def _figure(path: Path, height: float, panels: int = 1) -> Iterator[Any]:
    """Yield axes to draw on, one or several side by side, and write the file afterwards."""
    with matplotlib.rc_context(STYLE):
        figure = Figure((WIDTH, height), layout="constrained")
        yield figure.subplots(ncols=panels)
        drawn = io.StringIO()
        figure.savefig(
            drawn, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, "\n".join(line.rstrip() for line in drawn.getvalue().splitlines()) + "\n")
