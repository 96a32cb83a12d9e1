"""Encoded files for Megatron-LM and GPT-NeoX: what ``numtok export`` does. Each row is a sequence,
and a document; each stream has one value per token. ``write.streams`` has the format.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.corpus.decode import tokenizer_of
from numtok.corpus.encode_options import check_choice
from numtok.corpus.read.encoded import schema_of
from numtok.corpus.read.find import find_inputs
from numtok.corpus.read.sources import Source
from numtok.corpus.summary import BATCH_BYTES, Progress, Run
from numtok.corpus.unpack import EncodedChunk, encoded_rows
from numtok.corpus.write.streams import AS_BITS, CODES, Streams, open_streams
from numtok.errors import SchemaError
from numtok.options import shown_option
from numtok.representations.columns import Column
from numtok.representations.values import tensor_values
from numtok.tokenizer.layout import to_number_layout, to_token_layout, token_schema
from numtok.tokenizer.packing import end_token as find_end_token
from numtok.tokenizer.packing import with_ends
from numtok.tokenizer.schema import declared_columns, read_metadata

SMALL_VOCABULARY = 65500  # both programs take uint16 for fewer tokens


@dataclass
class Exported:
    """Files and counts of an export.

    Attributes:
        files: the prefix of the two files of each column; ``input_ids`` is the first.
        sequences: in each of them.
        tokens: in each of them, end tokens included.
        left_out: rows without tokens, of empty or null documents, which are not written.
        bytes: the size of all files.
        seconds: how long it took.
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
    """Write the ``.bin`` and ``.idx`` files of Megatron-LM and GPT-NeoX from encoded files.

    ``PREFIX`` has the token ids, ``PREFIX_number_value`` and so on one number column each.
    ``PREFIX.json`` says the shape and the dtype of each, and has numtok's metadata.

    Args:
        inputs: a file that :func:`numtok.encode_files` wrote, a folder of them, or a list.
        prefix: with which all names begin.
        to: the program that is to read the files, ``"megatron"`` or ``"gpt-neox"``: they number
            float32 and float64 differently.
        end_token: a token, or its id, to put after each document, also an empty one; None for none,
            with a warning where nothing then tells the documents apart. Packed rows have
            theirs already.
        tokenizer: the source tokenizer, if ``end_token`` is one of its tokens.
        overwrite: replace files that are there already, once the new ones are complete.
        progress: called several times a second.

    Raises:
        NumtokError: if files do not belong together, or cannot be read or written; nothing new is
            left then.

    Example:
        >>> import numtok
        >>> _ = numtok.encode_files("sample.jsonl", "corpus.parquet")
        >>> sorted(numtok.export_files("corpus.parquet", "corpus", end_token="<|endoftext|>").files)
        ['input_ids', 'number_mask', 'number_scaled', 'number_value']
    """
    check_choice("to", to, tuple(CODES))
    sources = find_inputs(inputs)
    run = Run(sources, prefix, progress)
    path = sources[0].path
    described = schema_of(path)
    metadata = read_metadata(described, path)
    end = _end(end_token, tokenizer, metadata, path)
    if end is None and not (metadata["pack"] or metadata["frame"][1]):
        warnings.warn(
            f"nothing separates the documents, which {to} joins end to end; put an end token after"
            " each by end_token=... (--end-token), such as '<|endoftext|>'",
            stacklevel=2,
        )
    columns = _columns(described)
    dtypes = {name: _stored(one, metadata) for name, one in columns.items()}
    with open_streams(str(prefix), to, dtypes, overwrite) as out:
        exported = Exported(dict(out.files))
        for batch, of, run.read in _in_token_layout(sources, metadata, end):
            ends = _write(batch, of, columns, dtypes, out)
            sizes = np.diff(ends, prepend=0)
            exported.left_out += int(np.count_nonzero(sizes == 0))
            exported.sequences += int(np.count_nonzero(sizes))
            exported.tokens += int(sizes.sum())
            run.report.tokens, run.written = exported.tokens, out.bytes_written
            run.tick()
        told: Any = {"to": to, "sequences": exported.sequences, "tokens": exported.tokens}
        told |= {"left_out": exported.left_out}
        told |= {"streams": _about(columns, dtypes, out.files), "numtok": metadata}
        out.finish(f"{json.dumps(told, indent=1)}\n")
    exported.bytes, exported.seconds = out.bytes_written, run.seconds
    if exported.left_out:
        kept = (
            ""
            if end is not None or metadata["pack"]
            else "; end_token=... (--end-token) writes the empty ones"
        )
        warnings.warn(
            f"empty and null documents, {exported.left_out:,}, are not written{kept}",
            stacklevel=2,
        )
    return exported


def _end(
    token: str | int | None, tokenizer: Any, metadata: dict[str, Any], path: str
) -> int | None:
    if token is not None and metadata["pack"]:
        raise SchemaError(
            "the documents of packed rows end with their end token already; leave out end_token",
            path=path,
        )
    end = find_end_token(tokenizer_of(path, tokenizer), token) if isinstance(token, str) else token
    if end is not None and not 0 <= end < metadata["vocab_size"]:
        raise SchemaError(
            f"{shown_option('end_token', end)} is no id of the tokenizer, which has"
            f" {metadata['vocab_size']}",
            path=path,
        )
    return end


def _columns(schema: pa.Schema) -> dict[str, Column]:
    """Return all columns with one value per token in token layout, texts excepted; the ids first."""
    tokens = token_schema(schema) if read_metadata(schema)["layout"] == "number" else schema
    known = declared_columns(tokens)
    stored = (known[name] for name in tokens.names if name in known)
    return {
        column.name: column
        for column in stored
        if column.per == "token" and not pa.types.is_string(column.value_type)
    }


def _stored(column: Column, metadata: dict[str, Any]) -> np.dtype[Any]:
    """Return the dtype of a stream in the files."""
    dtype = memory.dtype_of(column.value_type).name
    if column.name == "input_ids":
        dtype = "uint16" if metadata["vocab_size"] < SMALL_VOCABULARY else "int32"
    return np.dtype(AS_BITS.get(dtype, dtype))


def _in_token_layout(
    sources: Sequence[Source], first: dict[str, Any], end: int | None
) -> Iterator[EncodedChunk]:
    """Yield all rows, with the end token after each, if there is one."""
    path = ""
    for piece in encoded_rows(sources, BATCH_BYTES):
        if piece.path != path:
            path, metadata = piece.path, read_metadata(piece.batch.schema, piece.path)
            for key in ("tokenizer", "numbers", "pack", "frame"):
                if metadata[key] != first[key]:
                    raise SchemaError(
                        f"its {key} is not that of {sources[0].path}; export what belongs together",
                        path=path,
                    )
        rows = piece.batch if end is None else with_ends(to_number_layout(piece.batch), end)
        yield piece._replace(batch=to_token_layout(rows))


def _write(
    batch: pa.RecordBatch,
    path: str,
    columns: Mapping[str, Column],
    dtypes: Mapping[str, np.dtype[Any]],
    out: Streams,
) -> npt.NDArray[np.int64]:
    """Write rows; after how many tokens each of them ends."""
    streams = {}
    for name, column in columns.items():
        if name not in batch.schema.names:
            raise SchemaError(
                f"has no column {name!r}, which other files have; export what belongs together",
                path=path,
            )
        values = memory.flat(batch.column(name))[0]
        is_tensor = isinstance(values, pa.ExtensionArray)
        array = tensor_values(values) if is_tensor else memory.from_arrow(values)
        streams[name] = array.reshape(-1, *column.shape).astype(dtypes[name], copy=False)
    offsets = memory.flat(batch.column("input_ids"))[1]
    ends: npt.NDArray[np.int64] = offsets[1:] - offsets[0]
    out.write(streams, ends)
    return ends


def _about(
    columns: Mapping[str, Column], dtypes: Mapping[str, np.dtype[Any]], files: Mapping[str, str]
) -> dict[str, Any]:
    return {
        name: {
            "file": Path(files[name]).name,
            "stored": dtypes[name].name,
            "dtype": memory.dtype_of(column.value_type).name,
            "shape": list(column.shape),
            "fill": column.fill,
        }
        for name, column in columns.items()
    }
