"""What is printed to people: progress, summaries, errors. Nothing here knows about numbers."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from .streams import shown

if TYPE_CHECKING:
    from numtok.corpus.summary import Progress

# seconds between two looks of the bar, and between two lines where there is no terminal
REDRAW, REPORT = 0.1, 5.0


def use_colour(stream: Any) -> bool:
    """A terminal, unless NO_COLOR is set (https://no-color.org); FORCE_COLOR wins."""
    if os.environ.get("FORCE_COLOR"):
        return True
    return (
        not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
        and bool(stream.isatty())
    )


def print_error(message: str) -> None:
    """``numtok: error: ...`` in red on stderr."""
    _label("error", "red", shown(message))


def print_warning(message: str) -> None:
    """``numtok: warning: ...`` in yellow on stderr, on one line."""
    _label("warning", "yellow", shown(" ".join(message.split())))


def _label(word: str, colour: str, message: str) -> None:
    coloured = use_colour(sys.stderr)
    click.echo(
        click.style(f"numtok: {word}: ", fg=colour, bold=True) + message, err=True, color=coloured
    )


class ProgressLine:
    """A bar that redraws itself on a terminal; elsewhere a plain line every few seconds.

    Use it as a context.
    """

    def __init__(self, quiet: bool) -> None:
        self._terminal = sys.stderr.isatty()
        self._quiet, self._drawn, self._next = quiet, False, 0.0 if self._terminal else REPORT

    def __call__(self, progress: Progress) -> None:
        if self._quiet or progress.seconds < self._next:
            return
        self._next = progress.seconds + (REDRAW if self._terminal else REPORT)
        if not self._terminal:
            click.echo(f"numtok: {_share(progress)}{_figures(progress)}", err=True)
            return
        width = shutil.get_terminal_size().columns - 1
        figures = _share(progress) + _figures(progress)
        space = width - len(figures) - 1
        line = (
            f"{_bar(progress, min(space, 40))} {figures}"
            if space >= 12 and progress.total
            else figures
        )
        sys.stderr.write(f"\r\x1b[K{line[:width] if len(figures) > width else line}")
        sys.stderr.flush()
        self._drawn = True

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _bar(progress: Progress, width: int) -> str:
    """``━━━━━╌╌╌``, the done part in colour."""
    done = round(width * min(1.0, progress.read / (progress.total or 1)))
    full, empty = "━" * done, "╌" * (width - done)
    return (
        click.style(full, fg="cyan") + click.style(empty, dim=True)
        if use_colour(sys.stderr)
        else full + empty
    )


def _share(progress: Progress) -> str:
    return f"{100 * min(1.0, progress.read / progress.total):3.0f}%  " if progress.total else ""


def _figures(progress: Progress) -> str:
    rate = (progress.read - progress.resumed) / progress.seconds if progress.seconds else 0.0
    shards = f"  {progress.shards[0]:,} of {progress.shards[1]:,} shards" if progress.shards else ""
    of = f" of {size(progress.total)}" if progress.total else ""
    left = (
        f"  {duration((progress.total - progress.read) / rate)} left"
        if progress.total and rate
        else ""
    )
    return f"{size(progress.read)}{of}  {size(rate)}/s{left}{shards}"


def size(count: float) -> str:
    """Bytes in decimal units: ``87.6 MB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" or count >= 99.95 else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError


def duration(seconds: float) -> str:
    """``12 s``, ``3:05`` or ``2:03:05``."""
    if seconds < 59.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def rate(count: float, seconds: float) -> str:
    """``3.2 s, 87.6 MB/s``."""
    return f"{duration(seconds)}, {size(count / max(seconds, 1e-9))}/s"


def print_table(rows: Sequence[tuple[str, str, str]], title: str, to_stderr: bool = False) -> None:
    """Rows of (label, figure, remark): figures right-aligned."""
    rows = [(shown(label), shown(figure), shown(remark)) for label, figure, remark in rows]
    labels, figures = max(len(row[0]) for row in rows), max(len(row[1]) for row in rows)
    coloured = use_colour(sys.stderr if to_stderr else sys.stdout)
    click.echo(click.style(shown(title), bold=True), color=coloured, err=to_stderr)
    for label, figure, remark in rows:
        line = f"  {click.style(label.ljust(labels), dim=True)}  {figure.rjust(figures)}"
        click.echo(
            line + (f"  {click.style(remark, dim=True)}" if remark else ""),
            color=coloured,
            err=to_stderr,
        )


def counts(by_name: dict[str, int]) -> str:
    """``12 by xval, 3 by bits``."""
    return ", ".join(f"{count:,} by {name}" for name, count in sorted(by_name.items()) if count)
