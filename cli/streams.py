"""The standard streams: what may be shown on a terminal, and what happens when they are closed or
full.

In: text of any origin (documents, file names, messages). Out: the same with nothing in it that a
    terminal would act upon.
"""

from __future__ import annotations

import io
import os
import re
import sys
from typing import Any

import click

_PICTURES = {code: 0x2400 + code for code in range(32)} | {
    0x7F: "␡",
    0x0A: "⏎",
    0x0D: "␍",
    0x09: "⇥",
}
# C1 controls (U+009B begins a command as ESC [ does), line and paragraph separators, what changes
# the direction of the text around it, invisible tags, and the surrogates that stand for bytes that
# are not UTF-8 in file names.
_ACTING = re.compile(
    "[\x80-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def shown(text: str) -> str:
    """``text`` for a terminal, on one line: control characters as pictures (``␛``), what else acts
    upon a terminal as ``\\u202e``.
    """
    return _ACTING.sub(lambda match: ascii(match[0])[1:-1], text.translate(_PICTURES))


class StreamError(click.ClickException):
    """A standard stream takes no more; shown like every other error."""

    def show(self, file: Any = None) -> None:
        """``numtok: error: ...`` on stderr."""
        click.echo(f"numtok: error: {self.message}", err=True)


class _Stream(io.TextIOWrapper):
    """A standard stream that raises ``StreamError`` where the system refuses, or, for stderr, goes
    on in silence.
    """

    silent = False

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError as error:
            self._refused(error)
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            self._refused(error)

    def _refused(self, error: OSError) -> None:
        """What is still in the buffer goes nowhere, or Python would complain once more at the end."""
        if isinstance(error, BrokenPipeError) and not self.silent:
            raise error
        _discard(self.fileno())
        if not self.silent:
            reason = (
                f"{error.strerror}; send it elsewhere, or print nothing with --quiet (what was to"
                " be written to files is complete)"
            )
            raise StreamError(f"cannot write to standard output: {reason}")


def discard_output() -> None:
    """Send what is still to come on standard output nowhere, as nobody reads it."""
    _discard(sys.stdout.fileno())


def _discard(descriptor: int) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


def open_streams() -> None:
    """Give the process all three standard streams: a file opened later must not become one of them,
    and writing must tell.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        # closed; the lowest free number is taken, and the wrong direction makes its use an error
        except OSError:
            os.open(os.devnull, os.O_WRONLY if descriptor == 0 else os.O_RDONLY)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        old = getattr(sys, name)
        raw = old.detach() if old is not None else open(descriptor, "wb", closefd=False)  # noqa: SIM115
        errors = "backslashreplace" if old is None or name == "stderr" else old.errors
        made = _Stream(raw, getattr(old, "encoding", None) or "utf-8", errors, line_buffering=True)
        made.silent = name == "stderr"
        setattr(sys, name, made)
