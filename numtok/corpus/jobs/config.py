"""Options of encoding in a file: ``job.toml``, or the manifest or the plan of a job, which repeats
it.

In: a TOML file with options by their names; or the JSON that a job left. Out: a dict of options,
    with values that :func:`numtok.encode_files` takes.
"""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

from numtok import locations
from numtok.corpus.settings import FileOptions
from numtok.errors import InputError
from numtok.numbers.grammar import Grammar
from numtok.options import conform
from numtok.representations import from_dict

_ALIASES = {"keep_column": "keep_columns", "format": "input_format"}  # on the command line


def read_config(path: str | Path) -> dict[str, Any]:
    """The options in a file; those of a manifest or a plan name the inputs one by one, and no
    output.

    Raises:
        InputError: if the file cannot be read, or is neither.
    """
    name = str(path)
    is_json = name.lower().endswith(".json")
    try:
        with locations.open_file(name) as file:
            data = file.read()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}; check the path", name) from None
    try:
        content = json.loads(data) if is_json else tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        raise InputError(
            f"is no TOML (or, if it ends in .json, no manifest): {error}", name
        ) from None
    if is_json:
        return _of_job(content, name)
    named = {key.replace("-", "_"): value for key, value in content.items()}
    conform(
        {_ALIASES.get(key, key): value for key, value in named.items()},
        FileOptions,
        name,
        InputError,
    )
    return content


def _of_job(content: Any, path: str) -> dict[str, Any]:
    """What a manifest or a plan was made with."""
    try:
        options = {name: value for name, value in content["options"].items() if value is not None}
        given = content["tokenizer"]
        saved = (
            locations.join(os.path.dirname(path), "tokenizer/tokenizer.json")
            if given["given"]
            else None
        )
        tokenizer = {"tokenizer": given["source"] or saved} if given["source"] or saved else {}
        inputs = [str(one["path"]) for one in content["inputs"]]
        made = {
            "numbers": [from_dict(one) for one in options["numbers"]],
            "grammar": Grammar.from_dict(options["grammar"]),
        }
    except (LookupError, TypeError, AttributeError):
        raise InputError(
            "is not the manifest.json or the plan.json of a job; give one of these, or a .toml"
            " file",
            path,
        ) from None
    return options | made | tokenizer | {"inputs": inputs}
