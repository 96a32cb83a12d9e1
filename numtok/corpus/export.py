"""Encoded files for other people's trainers: what ``numtok export`` does.

In: files that ``numtok encode`` wrote, in either layout, packed or not. Out: twin files of the ids
    and of every stream, one value per token (:mod:`numtok.corpus.indexed_files`), of the same
    lengths and order, and ``PREFIX.json``, which says what they are. Each row is a sequence.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok import locations
from numtok.arrays import memory
from numtok.corpus.decode import tokenizer_of
from numtok.corpus.indexed_files import CODES, SMALL_VOCABULARY, IndexedFile, open_indexed
from numtok.corpus.read.documents import find_inputs
from numtok.corpus.read.encoded import open_encoded
from numtok.corpus.settings import check_choice
from numtok.corpus.summary import BATCH_BYTES, Progress, Run
from numtok.errors import OutputError, SchemaError
from numtok.files import new_file
from numtok.representations.columns import Column
from numtok.representations.values import tensor_values
from numtok.tokenizer.end_token import end_token as find_end_token
from numtok.tokenizer.flat_rows import with_ends
from numtok.tokenizer.schema import flat, read_metadata
from numtok.tokenizer.stored import declared_columns
from numtok.tokenizer.token_layout import to_number_layout, to_token_layout, token_schema

_STORED = {
    "bool": "uint8",
    "uint32": "int32",
    "uint64": "int64",
}  # what the format has no code for, as the type that holds the same bits


@dataclass
class Exported:
    """What was written.

    Attributes:
        files: stream to the prefix of its two files; ``input_ids`` is the first.
        sequences, tokens: of each, end tokens included.
        left_out: rows without tokens.
        bytes: of all files. seconds: that it took.
    """

    files: dict[str, str] = field(default_factory=dict)
    sequences: int = 0
    tokens: int = 0
    left_out: int = 0
    bytes: int = 0
    seconds: float = 0.0


def export_files(
    inputs: str | Path | Sequence[str | Path],
    prefix: str | Path,
    *,
    to: Literal["megatron", "gpt-neox"] = "megatron",
    end_token: str | int | None = None,
    tokenizer: Any = None,
    overwrite: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Exported:
    """Twin ``.bin`` and ``.idx`` files of encoded rows: ``PREFIX`` has the ids,
    ``PREFIX_number_value`` and so on the streams.

    Args:
        inputs: files that :func:`numtok.encode_files` wrote, or folders of them: one, or a list.
        prefix: of all names; also ``PREFIX.json``, with the shape and the dtype of each stream and
            numtok's metadata.
        to: whose reader: ``"megatron"``, Megatron-LM; or ``"gpt-neox"``. They differ in the codes
            of floats only.
        end_token: a token or its id, put behind each document; packed rows have theirs. None for
            none.
        tokenizer: the source tokenizer, where ``end_token`` is a token of it.
        overwrite: replace files that are there already, once the new ones are complete.
        progress: called several times a second.

    Raises:
        NumtokError: if files do not belong together, or cannot be read or written; nothing new is
            left then.
    """
    check_choice("to", to, tuple(CODES))
    sources = find_inputs([inputs] if isinstance(inputs, str | Path) else inputs)
    run, exported = Run.start(sources, f"{prefix}.bin", progress), Exported()
    with contextlib.closing(open_encoded(sources[0].path)) as first:
        described = first.schema
    metadata = read_metadata(described, sources[0].path)
    if end_token is not None and metadata["pack"]:
        raise SchemaError(
            "the documents of packed rows end with their end token already; leave out end_token",
            path=sources[0].path,
        )
    end = (
        find_end_token(tokenizer_of(sources[0].path, tokenizer), end_token)
        if isinstance(end_token, str)
        else end_token
    )
    if end is not None and not 0 <= end < metadata["vocab_size"]:
        raise SchemaError(
            f"end_token={end} is no id of the tokenizer, which has {metadata['vocab_size']}",
            path=sources[0].path,
        )
    streams = _streams(described)
    with contextlib.ExitStack() as stack:
        about = stack.enter_context(new_file(f"{prefix}.json", overwrite))
        files = {}
        for name, column in streams.items():
            exported.files[name] = str(prefix) if name == "input_ids" else f"{prefix}_{name}"
            files[name] = stack.enter_context(
                open_indexed(exported.files[name], _dtype(column, metadata), to, overwrite)
            )
        for batch, path, read in _batches(sources, described, end):
            _write(batch, path, streams, files, exported)
            run.read, run.report.tokens, run.written = (
                read,
                exported.tokens,
                sum(file.bytes_written for file in files.values()),
            )
            run.tick()
        _put(
            about,
            json.dumps(_about(streams, files, exported, metadata, to), indent=1) + "\n",
            f"{prefix}.json",
        )
    exported.bytes = sum(
        locations.size(f"{name}{suffix}") or 0
        for name in exported.files.values()
        for suffix in (".bin", ".idx")
    )
    exported.seconds = run.seconds
    return exported


def _streams(schema: pa.Schema) -> dict[str, Column]:
    """All columns with one value per token in token layout, texts excepted; the ids first."""
    tokens = token_schema(schema) if read_metadata(schema)["layout"] == "number" else schema
    known = declared_columns(tokens)
    stored = (known[name] for name in tokens.names if name in known)
    return {
        column.name: column
        for column in stored
        if column.per == "token" and not pa.types.is_string(column.value_type)
    }


def _value_dtype(column: Column) -> str:
    return memory.dtype_of(column.value_type).name


def _dtype(column: Column, metadata: dict[str, Any]) -> str:
    if column.name == "input_ids":
        return "uint16" if metadata["vocab_size"] < SMALL_VOCABULARY else "int32"
    return _STORED.get(_value_dtype(column), _value_dtype(column))


def _batches(
    sources: Sequence[Any], described: pa.Schema, end: int | None
) -> Iterator[tuple[pa.RecordBatch, str, int]]:
    """(rows in token layout, their file, bytes read so far)."""
    first, done = read_metadata(described), 0
    for source in sources:
        rows = 0
        with contextlib.closing(open_encoded(source.path)) as file:
            metadata = read_metadata(file.schema, source.path)
            for key in ("tokenizer", "numbers", "pack", "frame"):
                if metadata[key] != first[key]:
                    raise SchemaError(
                        f"its {key} is not that of {sources[0].path}; export what belongs together",
                        path=source.path,
                    )
            for batch in file.batches(BATCH_BYTES):
                rows += batch.num_rows
                if end is not None:
                    batch = with_ends(to_number_layout(batch), end)
                yield (
                    to_token_layout(batch),
                    source.path,
                    done + (source.size or 0) * rows // max(file.rows or rows, 1),
                )
        done += source.size or 0


def _write(
    batch: pa.RecordBatch,
    path: str,
    streams: dict[str, Column],
    files: dict[str, IndexedFile],
    exported: Exported,
) -> None:
    sizes = np.diff(flat(batch.column("input_ids"))[1])
    exported.left_out += int(np.count_nonzero(sizes == 0))
    sizes = sizes[sizes > 0]
    for name, column in streams.items():
        if name not in batch.schema.names:
            raise SchemaError(
                f"has no column {name!r}, which other files have; export what belongs together",
                path=path,
            )
        values = _array(flat(batch.column(name))[0]).reshape(-1)
        stored = files[name].dtype
        files[name].write(
            values.astype(stored) if name == "input_ids" else values.view(stored),
            sizes * math.prod(column.shape),
        )
    exported.sequences += len(sizes)
    exported.tokens += int(sizes.sum())


def _array(values: pa.Array) -> npt.NDArray[Any]:
    return (
        tensor_values(values)
        if isinstance(values, pa.ExtensionArray)
        else memory.from_arrow(values)
    )


def _about(
    streams: dict[str, Column],
    files: dict[str, IndexedFile],
    exported: Exported,
    metadata: dict[str, Any],
    to: str,
) -> dict[str, Any]:
    """What ``PREFIX.json`` says."""
    about = {}
    for name, column in streams.items():
        types = {"stored": files[name].dtype.name, "dtype": _value_dtype(column)}
        about[name] = {
            "file": Path(exported.files[name]).name,
            **types,
            "shape": list(column.shape),
            "fill": column.fill,
        }
    return {
        "to": to,
        "sequences": exported.sequences,
        "tokens": exported.tokens,
        "streams": about,
        "numtok": metadata,
    }


def _put(file: Any, text: str, path: str) -> None:
    data = memoryview(text.encode())
    try:
        while data:
            data = data[file.write(data) :]
    except OSError as error:
        raise OutputError(
            f"cannot write {path}: {error.strerror or error}; make room, then run again"
        ) from error
