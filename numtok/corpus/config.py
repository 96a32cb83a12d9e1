"""Options of encoding in a TOML file, which ``--config`` reads."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, TypedDict

from numtok import storage
from numtok.corpus import encode_options
from numtok.corpus.read.find import is_named_pipe
from numtok.errors import InputError
from numtok.options import COMMAND_LINE_NAMES, conform

# what a file holds where a call may take objects
_AS_TEXT = {
    **dict.fromkeys(("output", "tokenizer", "numbers", "grammar", "pattern", "shard"), str),
    "inputs": str | list[str],
    "shard_size": int | str,
}
_ALIASES = {name.replace("-", "_"): option for option, name in COMMAND_LINE_NAMES.items()}


def read_config(path: str | Path) -> dict[str, Any]:
    """Return the options in a TOML file, held to the types of
    :class:`numtok.corpus.encode_options.EncodeOptions`.
    """
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
    types = {name: kind for name, kind in encode_options.hints().items() if name != "progress"}
    conform(options, TypedDict("FileOptions", types | _AS_TEXT, total=False), name, InputError)  # type: ignore[operator]  # made of the dataclass
    return options
