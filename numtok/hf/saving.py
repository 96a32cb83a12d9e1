"""What transformers writes into a folder, each file in one step (``numtok.files``); and beside it
``numtok.json``, and one line of Python with which AutoTokenizer finds the class.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numtok.engines.tokenizer_json import SETTINGS_FILE, sealed
from numtok.errors import NumtokError, OutputError
from numtok.files import write_file
from numtok.tokenizer.saving import write_json

SHIM = "numtok_tokenizer"  # the module in a saved folder that imports the class, for AutoTokenizer


def seal(file: str) -> None:
    """Make a tokenizer.json one that only numtok reads."""
    path = Path(file)
    path.write_text(sealed(path.read_text("utf-8")), "utf-8")


def write_own_files(folder: str | os.PathLike[str], settings: Any) -> tuple[str, str]:
    """What transformers does not write; returns the names."""
    made, shim = Path(folder, SETTINGS_FILE), Path(folder, f"{SHIM}.py")
    write_json(made, settings)
    shim.write_text("from numtok.hf import NumberTokenizer as NumberTokenizer\n", "utf-8")
    return str(made), str(shim)


def save_whole(
    folder: str | os.PathLike[str], save: Callable[[str], tuple[str, ...] | None]
) -> tuple[str, ...]:
    """Let ``save`` write into a temporary folder, then bring its files into ``folder``; returns the
    names that it returned, there.

    transformers and ``tokenizers`` write straight into the folder they are given, and so leave half
    a file on a full disk. OutputError if the system refuses; no file is left half-written.
    """
    with tempfile.TemporaryDirectory(prefix="numtok-") as made:
        names = _named(lambda: save(made), folder) or ()
        for path in sorted(Path(made).rglob("*")):
            if path.is_file():
                write_file(Path(folder, path.relative_to(made)), path.read_bytes())
        return tuple(str(Path(folder, Path(name).relative_to(made))) for name in names)


def _named(save: Callable[[], Any], folder: str | os.PathLike[str]) -> Any:
    """The result, or an ``OutputError`` in place of the bare ``Exception`` of ``tokenizers``."""
    try:
        return save()
    except NumtokError:
        raise
    except Exception as error:
        if isinstance(error, OSError) or type(error) is Exception:
            raise OutputError(
                f"cannot save to {folder}: {error}; make room for temporary files, then run again"
            ) from error
        raise
