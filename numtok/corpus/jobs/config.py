"""Options of encoding in a file: ``job.toml``, or the manifest or the plan of a job, which repeats
it.

In: a TOML file with options by their names; or the JSON that a job left. Out: a dict of options,
    with values that :func:`numtok.encode_files` takes.
"""

from __future__ import annotations

import json
import os
import tomllib
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numtok import locations
from numtok.corpus.jobs.plan import FORMAT, Part, Shard, TokenizerName
from numtok.corpus.jobs.shards import content_of
from numtok.corpus.read.find import suffixes
from numtok.corpus.settings import FileOptions
from numtok.errors import InputError, NumtokError
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


@dataclass(frozen=True)
class _Input:
    """As a manifest has it; see :func:`numtok.corpus.jobs.job.manifest`."""

    path: str
    size: int
    tag: str
    parts: list[tuple[int, int | None, int, str]]


@dataclass(frozen=True)
class _Job:
    """What a manifest or a plan was made with; of a plan, the inputs are in the shards."""

    options: dict[str, Any]
    tokenizer: TokenizerName
    inputs: list[_Input] = field(default_factory=list)
    shards: list[Any] = field(default_factory=list)
    numbers: Any = None

    def __post_init__(self) -> None:
        """ValueError for options that make no sense."""
        try:
            numbers = [from_dict(one) for one in self.options["numbers"]]
            grammar = Grammar.from_dict(self.options["grammar"])
        except (NumtokError, TypeError, LookupError, AttributeError) as error:
            raise ValueError(f"options that make no sense ({error})") from None
        object.__setattr__(self, "numbers", {"numbers": numbers, "grammar": grammar})


def _of_job(content: Any, path: str) -> dict[str, Any]:
    """What a manifest or a plan was made with: neither where it went, nor whether that replaced
    anything.
    """
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(
            "is not the manifest.json or the plan.json of a job of this version; give one of these,"
            " or a .toml file",
            path,
        )
    job = conform(content, _Job, path, InputError)
    others = ("numbers", "grammar", "inputs", "output", "overwrite", "tokenizer")
    given = {
        name: value
        for name, value in job.options.items()
        if value is not None and name not in others
    }
    options = dict(conform(given, FileOptions, path, InputError))
    saved = locations.join(os.path.dirname(path), "tokenizer/tokenizer.json")
    source = saved if job.tokenizer.given else job.tokenizer.source
    inputs = [one.path for one in job.inputs]
    if not inputs:
        shards = conform(job.shards, list[Shard], path, InputError)
        inputs = sorted({part.path for shard in shards for part in shard.parts})
    for one in job.inputs:
        _tell_if_changed(one)
    tokenizer = {} if source is None else {"tokenizer": source}
    return {**options, **job.numbers, **tokenizer, "inputs": inputs}


def _tell_if_changed(given: _Input) -> None:
    """A warning, as what comes of the job will be another."""
    kind, compression = suffixes(given.path)
    name = (given.path, kind or "jsonl", compression, given.size, given.tag)
    if not locations.exists(given.path) or all(
        content_of(Part(*name, start, stop, length))[0] == sha256
        for start, stop, length, sha256 in given.parts
    ):
        return
    warnings.warn(
        f"{given.path} is not what it was when this job was done: its content has another SHA-256,"
        " and so the output will be another",
        stacklevel=4,
    )
