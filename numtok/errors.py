"""Every error that numtok raises on purpose.

Each message says what is wrong, where (file, line, column, document, byte) and what to do about it.
All of them are ``NumtokError``; each also derives from the built-in exception a caller would
otherwise expect.
"""

from __future__ import annotations


class NumtokError(Exception):
    """The base class of all errors that numtok raises. The command line prints them without a
    traceback.

    ``str(error)`` gives the place, as far as it is known, and the message:
    ``file:line:column: ...``, ``file, row 4: byte 17: ...``, ``document 3, byte 17: ...``.

    Attributes:
        message: what is wrong and the way out, without the place.
        path: the file, or ``<stdin>``.
        line, column: 1-based; the column in characters.
        row: of the file, counted as the message says.
        document: 0-based, among the texts or rows that the call was given.
        byte, character: 0-based, in the document.

    Example:
        >>> import numtok
        >>> try:
        ...     numtok.FoNE(0, 0)
        ... except numtok.NumtokError as error:
        ...     print(error)
        fone: int_digits=0, frac_digits=0 must not be negative, nor both 0, nor above 4096 together
    """

    def __init__(
        self,
        message: str = "",
        path: str | None = None,
        line: int | None = None,
        column: int | None = None,
        *,
        row: int | None = None,
        document: int | None = None,
        byte: int | None = None,
        character: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path, self.line, self.column, self.row = path, line, column, row
        self.document, self.byte, self.character = document, byte, character
        self._near = False

    def __str__(self) -> str:
        row = None if self.row is None else f"{'near ' if self._near else ''}row {self.row}"
        if row is None:
            place = ":".join(
                str(part) for part in (self.path, self.line, self.column) if part is not None
            )
        else:
            place = row if self.path is None else f"{self.path}, {row}"
        inside = (("document", self.document), ("byte", self.byte), ("character", self.character))
        within = ", ".join(f"{name} {number}" for name, number in inside if number is not None)
        return ": ".join(part for part in (place, within, self.message) if part)

    def move_to_file(self, path: str, row: int | None = None, near: bool = False) -> None:
        """Say where in a file it is, in place of which document of the call.

        Args:
            path: of the file.
            row: in the file; None leaves what is known.
            near: whether the row is only about the one.
        """
        self.path = path
        if row is not None:
            self.row, self.document, self._near = row, None, near


class GrammarError(NumtokError, ValueError):
    """A grammar option or a user's pattern that cannot be used."""


class FormatError(NumtokError, ValueError):
    """A number format that holds no number or cannot be made, or a grammar of another program that
    cannot state it.
    """


class RepresentationError(NumtokError, ValueError):
    """A representation that is wrongly configured, or, with ``overflow="error"``, a number it
    cannot hold.
    """


class TokenizerError(NumtokError, ValueError):
    """A tokenizer source that cannot be found, read or combined with number tokens."""


class SchemaError(NumtokError, ValueError):
    """A record batch or file that does not follow ``FORMAT.md``, or lacks what the call needs."""


class InputError(NumtokError, ValueError):
    """Input that cannot be read; ``str()`` of it starts with ``file:line:column``, as far as known."""


class MissingInputError(InputError):
    """An input that must be there before any row is read is missing: the file, access to it, the
    column asked for, or one type for a kept column. No row is to blame, so ``on_error="skip"`` does
    not skip it.
    """


class OutputError(NumtokError, OSError):
    """Output that cannot be written; nothing half-written is left under the final name."""


class JobError(NumtokError, RuntimeError):
    """A job that cannot go on, or shards of it that could not be made; what is finished stays."""

    failures: dict[int, str]  # of shards: number to the reason

    def __init__(
        self, message: str = "", path: str | None = None, failures: dict[int, str] | None = None
    ) -> None:
        super().__init__(message, path=path)
        self.failures = failures or {}


class MissingDependencyError(NumtokError, ImportError):
    """An optional package is not installed; the message names the extra that brings it."""
