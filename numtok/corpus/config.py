"""Options of encoding in a TOML file, which ``--config`` reads."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from numtok import storage
from numtok.corpus.read.find import is_named_pipe
from numtok.corpus.settings import FileOptions
from numtok.errors import InputError
from numtok.options import conform

_ALIASES = {"keep_column": "keep_columns", "format": "input_format"}  # on the command line


def read_config(path: str | Path) -> dict[str, Any]:
    """Return the options in a TOML file, with values that :func:`numtok.encode_files` takes."""
    name = str(path)
    if is_named_pipe(name):
        told = "is a named pipe, which waits until something writes to it; give a file"
        raise InputError(told, name)
    try:
        with storage.open_file(name) as file:
            content = tomllib.loads(file.read().decode())
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}; check the path", name) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"is no TOML: {error}; mend the file", name) from None
    named = {key.replace("-", "_"): value for key, value in content.items()}
    options = {_ALIASES.get(key, key): value for key, value in named.items()}
    conform(options, FileOptions, name, InputError)
    return options
