"""Print progress, tables, warnings and errors, with nothing in them that acts upon a terminal."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from numtok.corpus.summary import Progress

# seconds between two looks of the bar, and between two lines where there is no terminal
REDRAW, REPORT = 0.1, 5.0
BAR = 40
CLEAR = "\r\x1b[K"
_PICTURES = {code: 0x2400 + code for code in range(32)} | {0x7F: "␡", 10: "⏎", 13: "␍", 9: "⇥"}
# C1 controls (U+009B begins a command as ESC [ does), line and paragraph separators, what changes
# the direction of the text around it, invisible tags, and the surrogates that stand for bytes that
# are not UTF-8 in file names.
_ACTING = re.compile(
    "[\x80-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
Row = tuple[str, str, str]  # label, figure, remark


def shown(text: str) -> str:
    """Escape ``text`` for a terminal, on one line: control characters as pictures (``␛``), what
    else acts upon a terminal as ``\\u202e``.
    """
    return _ACTING.sub(lambda match: ascii(match[0])[1:-1], text.translate(_PICTURES))


def all_shown(data: Any) -> Any:
    """Return data for JSON, with each text in it as :func:`shown`."""
    if isinstance(data, dict):
        return {name: all_shown(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [all_shown(one) for one in data]
    return shown(data) if isinstance(data, str) else data


def use_colour(stream: Any) -> bool:
    """Whether to print in colour: on a terminal, unless NO_COLOR is set (https://no-color.org);
    FORCE_COLOR wins.
    """
    wanted = stream.isatty() and not os.environ.get("NO_COLOR")
    return bool(wanted or os.environ.get("FORCE_COLOR"))


def echo(line: str, err: bool = False, nl: bool = True) -> None:
    """Print to standard output; or to standard error, if it takes anything."""
    colour = use_colour(sys.stderr if err else sys.stdout) if nl else None
    try:
        click.echo(line, nl=nl, err=err, color=colour)
    except OSError:
        if not err:
            raise
        discard(2)


def discard(descriptor: int) -> None:
    """Discard what is still in the buffer, or Python would complain once more at the end."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


def flush_or_discard() -> None:
    """Flush the buffer of standard output; discard it if that fails."""
    try:
        if sys.stdout is not None and not sys.stdout.closed:
            sys.stdout.flush()
    except OSError:
        discard(1)


def print_error(message: str) -> None:
    """Print ``numtok: error: ...`` in red on stderr."""
    echo(click.style("numtok: error: ", fg="red", bold=True) + shown(message), err=True)


def print_warning(message: str) -> None:
    """Print ``numtok: warning: ...`` in yellow on stderr, on one line."""
    prefix = click.style("numtok: warning: ", fg="yellow", bold=True)
    echo(prefix + shown(" ".join(message.split())), err=True)


class ProgressLine:
    """A bar that redraws itself on a terminal; elsewhere a plain line every few seconds."""

    def __init__(self, quiet: bool) -> None:
        self.quiet, self._terminal = quiet, sys.stderr.isatty()
        self._drawn, self._next = False, 0.0 if self._terminal else REPORT

    def __call__(self, progress: Progress) -> None:
        if self.quiet or progress.seconds < self._next:
            return
        self._next = progress.seconds + (REDRAW if self._terminal else REPORT)
        figures = _figures(progress)
        if not self._terminal:
            echo(f"numtok: {figures}", err=True)
            return
        width = shutil.get_terminal_size().columns - 1
        bar = min(width - len(figures) - 1, BAR)
        if progress.total and bar >= 12:
            done = round(bar * min(1.0, progress.read / progress.total))
            figures = f"{'━' * done}{'╌' * (bar - done)} {figures}"
        echo(CLEAR + figures[:width], err=True, nl=False)
        self._drawn = True

    def clear(self) -> None:
        """Take the bar away."""
        if self._drawn:
            echo(CLEAR, err=True, nl=False)
        self._drawn = False


def _figures(progress: Progress) -> str:
    total, seconds = progress.total, progress.seconds
    speed = (progress.read - progress.resumed) / seconds if seconds else 0.0
    share = f"{100 * min(1.0, progress.read / total):3.0f}%  " if total else ""
    of = f" of {size(total)}" if total else ""
    left = f"  {duration((total - progress.read) / speed)} left" if total and speed else ""
    shards = f"  {progress.shards[0]:,} of {progress.shards[1]:,} shards" if progress.shards else ""
    return f"{share}{size(progress.read)}{of}  {size(speed)}/s{left}{shards}"


def size(count: float) -> str:
    """Format bytes in decimal units: ``87.6 MB``."""
    unit = 0
    while count >= 999.5 and unit < 3:
        count, unit = count / 1000, unit + 1
    whole = unit == 0 or count >= 99.95
    return f"{count:.{0 if whole else 1}f} {('B', 'kB', 'MB', 'GB')[unit]}"


def duration(seconds: float) -> str:
    """Format seconds: ``12 s``, ``3:05`` or ``2:03:05``."""
    if seconds < 59.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def rate(count: float, seconds: float) -> str:
    """Format a duration and a speed: ``3.2 s, 87.6 MB/s``."""
    return f"{duration(seconds)}, {size(count / max(seconds, 1e-9))}/s"


def counted(number: int, name: str) -> str:
    """Format a count: ``1 number``, ``1,234 numbers``."""
    return f"{number:,} {name}{'s' * (number != 1)}"


def print_table(rows: Sequence[Row], title: str, err: bool = False) -> None:
    """Print figures right-aligned between their labels and remarks."""
    rows = all_shown(rows)
    labels, figures = max(len(row[0]) for row in rows), max(len(row[1]) for row in rows)
    echo(click.style(shown(title), bold=True), err)
    for label, figure, remark in rows:
        line = f"  {click.style(label.ljust(labels), dim=True)}  {figure.rjust(figures)}"
        echo(line + (f"  {click.style(remark, dim=True)}" if remark else ""), err)


def print_summary(rows: Sequence[Row], output: str) -> None:
    """Print what was written to ``output``. If that is standard output, print to standard error."""
    piped = output == "-"
    print_table(rows, "standard output" if piped else output, err=piped)
