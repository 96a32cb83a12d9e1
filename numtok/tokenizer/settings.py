"""``numtok.json``: what a saved tokenizer is besides its ``tokenizer.json``, read with care.

In: a folder, or JSON from one. Out: settings of which every part is what it should be, as ``Tokenizer.from_settings`` takes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numtok.engines.tokenizer_json import TOKENIZER_FILE, read_json
from numtok.errors import NumtokError, TokenizerError
from numtok.numbers.grammar import Grammar
from numtok.representations import from_dict, representations_of
from numtok.tokenizer.metadata import FORMAT_VERSION

SETTINGS_FILE = "numtok.json"
LEADING_SPACE = ("auto", "separate")


def read_settings(source: Any) -> dict[str, Any] | None:
    """The numtok.json beside a saved tokenizer, if there is one.

    Raises:
        TokenizerError: if it is damaged, or of a newer format.
    """
    if not isinstance(source, str | Path):
        return None
    path = Path(source)
    path = (path if path.is_dir() else path.parent) / SETTINGS_FILE
    if not path.is_file() or (Path(source).is_file() and Path(source).name != TOKENIZER_FILE):
        return None
    return check_settings(read_json(path), path)


def check_settings(settings: Any, where: Any) -> dict[str, Any]:
    """``settings``, if they are what :meth:`Tokenizer.saved_settings` makes; ``where`` they are from is for the message."""

    def refuse(what: str) -> TokenizerError:
        return TokenizerError(f"{where} is damaged: {what}; save the tokenizer again")

    if not isinstance(settings, Mapping):
        raise refuse(f"it holds {type(settings).__name__}, not an object")
    if missing := [name for name in ("format", "grammar", "numbers", "leading_space") if name not in settings]:
        raise refuse(f"it lacks {', '.join(missing)}")
    version = settings["format"]
    if type(version) is not int or version != FORMAT_VERSION:
        raise TokenizerError(
            f"{where} has format {str(version)[:20]}, this version of numtok reads format {FORMAT_VERSION}; upgrade numtok"
        )
    if not isinstance(settings["numbers"], list):
        raise refuse("numbers is not a list")
    if settings["leading_space"] not in LEADING_SPACE:
        raise refuse(f"leading_space is {str(settings['leading_space'])[:40]!r}")
    tokens = settings.get("tokens", [])
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise refuse("tokens is not a list of names")
    try:
        Grammar.from_dict(settings["grammar"])
        representations_of([from_dict(options) for options in settings["numbers"]])
    except NumtokError as error:
        raise refuse(str(error)) from error
    return dict(settings)
