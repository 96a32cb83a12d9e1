"""Every error that numtok raises on purpose.

Each message says what is wrong, where (file, line, column, document, byte) and what to do about it. All of them are
``NumtokError``; each also derives from the built-in exception a caller would otherwise expect.
"""

from __future__ import annotations


class NumtokError(Exception):
    """Base of all errors raised by numtok; the command line prints it without a traceback."""


class GrammarError(NumtokError, ValueError):
    """A grammar option or a user's pattern that cannot be used."""


class RepresentationError(NumtokError, ValueError):
    """A representation that is wrongly configured, or, with ``overflow="error"``, a number it cannot hold."""


class TokenizerError(NumtokError, ValueError):
    """A tokenizer source that cannot be found, read or combined with number tokens."""


class SchemaError(NumtokError, ValueError):
    """A record batch or file that does not follow ``FORMAT.md``, or lacks what the call needs."""


class InputError(NumtokError, ValueError):
    """Input that cannot be read; ``str()`` of it starts with ``file:line:column``, as far as known.

    Args:
        message: what is wrong and the way out.
        path: the file, or ``<stdin>``.
        line: 1-based line (or row) number.
        column: 1-based column, in characters of that line.
    """

    def __init__(self, message: str, path: str | None = None, line: int | None = None, column: int | None = None) -> None:
        self.path, self.line, self.column = path, line, column
        place = ":".join(str(part) for part in (path, line, column) if part is not None)
        super().__init__(f"{place}: {message}" if place else message)


class OutputError(NumtokError, OSError):
    """Output that cannot be written; nothing half-written is left under the final name."""


class MissingDependencyError(NumtokError, ImportError):
    """An optional package is not installed; the message names the extra that brings it."""
