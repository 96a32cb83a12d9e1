"""Calls into libraries written in Rust, whose panics are no ``Exception``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from numtok.errors import NumtokError, TokenizerError


@contextlib.contextmanager
def tokenizer_errors(what: str) -> Iterator[None]:
    """Whatever the library raises or panics with, as a TokenizerError that says ``what`` could not
    be done.
    """
    try:
        yield
    except (NumtokError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        reason = str(error).strip().splitlines()
        raise TokenizerError(f"{what}: {reason[0] if reason else type(error).__name__}") from error
