"""Options of encoding in a file: ``job.toml``."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from numtok import locations
from numtok.corpus.settings import FileOptions
from numtok.errors import InputError
from numtok.options import conform

_ALIASES = {"keep_column": "keep_columns", "format": "input_format"}  # on the command line


def read_config(path: str | Path) -> dict[str, Any]:
    """The options in a TOML file, by the names of the command line or of
    :func:`numtok.encode_files`.

    Raises:
        InputError: if the file cannot be read, or an option is of another type.
    """
    name = str(path)
    try:
        with locations.open_file(name) as file:
            content = tomllib.loads(file.read().decode())
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}; check the path", name) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"is no TOML: {error}", name) from None
    named = {key.replace("-", "_"): value for key, value in content.items()}
    options = {_ALIASES.get(key, key): value for key, value in named.items()}
    conform(options, FileOptions, name, InputError)
    return content
