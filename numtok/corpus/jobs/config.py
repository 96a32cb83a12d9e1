"""Options of encoding in a file: ``job.toml``, or the manifest of a job, which repeats it."""

from __future__ import annotations

import json
import os
import tomllib
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numtok import locations
from numtok.corpus.jobs.folder import FORMAT
from numtok.corpus.jobs.plan import Part, TokenizerName, content_of, numbers_of
from numtok.corpus.read.find import is_named_pipe, suffixes
from numtok.corpus.settings import FileOptions
from numtok.errors import InputError
from numtok.options import conform

_ALIASES = {"keep_column": "keep_columns", "format": "input_format"}  # on the command line
# what a job has in another form; and where its output went
_OTHERS = ("numbers", "grammar", "inputs", "output", "overwrite", "tokenizer")


@dataclass(frozen=True)
class _Input:
    path: str
    size: int
    tag: str
    parts: list[tuple[int, int | None, int, str]]  # start, stop, bytes, SHA-256

    def has_changed(self) -> bool:
        """Whether it is there, with another content."""
        kind, compression = suffixes(self.path)
        name = (self.path, kind or "jsonl", compression, self.size, self.tag)
        return locations.exists(self.path) and any(
            content_of(Part(*name, start, stop, length))[0] != sha256
            for start, stop, length, sha256 in self.parts
        )


@dataclass(frozen=True)
class _Manifest:
    options: dict[str, Any]
    tokenizer: TokenizerName
    inputs: list[_Input]

    def __post_init__(self) -> None:
        numbers_of(self.options)


def read_config(path: str | Path) -> dict[str, Any]:
    """The options in a file, with values that :func:`numtok.encode_files` takes; those of a
    manifest name the inputs one by one, and no output.
    """
    name = str(path)
    is_json = name.lower().endswith(".json")
    if is_named_pipe(name):
        told = "is a named pipe, which waits until something writes to it; give a file"
        raise InputError(told, name)
    try:
        with locations.open_file(name) as file:
            data = file.read()
        content = json.loads(data) if is_json else tomllib.loads(data.decode())
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}; check the path", name) from None
    except (ValueError, RecursionError) as error:
        told = f"is no TOML (or, if it ends in .json, no manifest): {error}"
        raise InputError(told, name) from None
    if is_json:
        return _of_manifest(content, name)
    named = {key.replace("-", "_"): value for key, value in content.items()}
    options = {_ALIASES.get(key, key): value for key, value in named.items()}
    conform(options, FileOptions, name, InputError)
    return options


def _of_manifest(content: Any, path: str) -> dict[str, Any]:
    known = isinstance(content, dict) and content.get("format") == FORMAT
    if not known or "inputs" not in content:
        raise InputError(
            "is not the manifest.json of a job of this version; give that, or a .toml file", path
        )
    job = conform(content, _Manifest, path, InputError)
    for one in job.inputs:
        if one.has_changed():
            warnings.warn(
                f"{one.path} is not what it was when this job was done: its content has another"
                " SHA-256, and so the output will be another",
                stacklevel=3,
            )
    given = {
        name: value
        for name, value in job.options.items()
        if value is not None and name not in _OTHERS
    }
    numbers, grammar = numbers_of(job.options)
    saved = locations.join(os.path.dirname(path), "tokenizer/tokenizer.json")
    source = saved if job.tokenizer.given else job.tokenizer.source
    return {
        **conform(given, FileOptions, path, InputError),
        **({} if source is None else {"tokenizer": source}),
        "numbers": numbers,
        "grammar": grammar,
        "inputs": [one.path for one in job.inputs],
    }
