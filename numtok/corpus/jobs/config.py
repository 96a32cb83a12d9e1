"""Options of encoding in a file: ``job.toml``, or the manifest or the plan of a job, which repeats it.

In: a TOML file with options by their names; or the JSON that a job left. Out: a dict of options, with values that :func:`numtok.encode_files` takes.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from numtok.errors import InputError
from numtok.numbers.grammar import Grammar
from numtok.representations import from_dict


def read_config(path: str | Path) -> dict[str, Any]:
    """The options in a file; those of a manifest or a plan name the inputs one by one, and no output.

    Raises:
        InputError: if the file cannot be read, or is neither.
    """
    path = Path(path)
    try:
        text = path.read_text("utf-8")
        content = json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}; check the path", str(path)) from None
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        raise InputError(f"is no TOML (or, if it ends in .json, no manifest): {error}", str(path)) from None
    return _of_job(content, path) if path.suffix.lower() == ".json" else content


def _of_job(content: Any, path: Path) -> dict[str, Any]:
    """What a manifest or a plan was made with."""
    try:
        options = {name: value for name, value in content["options"].items() if value is not None}
        given = content["tokenizer"]
        saved = str(path.parent / "tokenizer" / "tokenizer.json") if given["given"] else None
        tokenizer = {"tokenizer": given["source"] or saved} if given["source"] or saved else {}
        inputs = [str(one["path"]) for one in content["inputs"]]
        made = {"numbers": [from_dict(one) for one in options["numbers"]], "grammar": Grammar.from_dict(options["grammar"])}
    except (LookupError, TypeError, AttributeError):
        raise InputError("is not the manifest.json or the plan.json of a job; give one of these, or a .toml file", str(path)) from None
    return options | made | tokenizer | {"inputs": inputs}
