"""Encoded files for Megatron-LM and GPT-NeoX: what ``numtok export`` does. Each row is a sequence,
and a document; each stream has one value per token. Both programs map pairs of files into memory,
which appear once every file is whole.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.corpus.decode import tokenizer_of
from numtok.corpus.encode_options import check_choice
from numtok.corpus.read.documents import find_inputs
from numtok.corpus.read.encoded import schema_of
from numtok.corpus.read.sources import Source
from numtok.corpus.summary import BATCH_BYTES, Progress, Run
from numtok.corpus.unpack import EncodedChunk, encoded_rows
from numtok.errors import OutputError, SchemaError
from numtok.files import new_file
from numtok.options import shown_option
from numtok.representations.columns import Column, tensor_values
from numtok.storage import is_url
from numtok.tokenizer.layout import to_number_layout, to_token_layout, token_schema
from numtok.tokenizer.packing import NumberTokens, with_ends
from numtok.tokenizer.packing import end_token as find_end_token
from numtok.tokenizer.schema import declared_columns, read_metadata

Values = npt.NDArray[Any]
Dtypes = Mapping[str, np.dtype[Any]]

MAGIC = b"MMIDIDX\x00\x00"
_COMMON = {"uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint16": 8}
CODES = {  # of dtypes; those of the two floats are not the same in the two programs
    "megatron": {**_COMMON, "float64": 6, "float32": 7},
    "gpt-neox": {**_COMMON, "float32": 6, "float64": 7},
}
# The dtypes for which neither program has a code are stored as others of the same bits.
AS_BITS = {"bool": "uint8", "uint32": "int32", "uint64": "int64"}
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

    Example:
        >>> import numtok
        >>> _ = numtok.encode_files("sample.jsonl", "encoded.parquet")
        >>> exported = numtok.export_files("encoded.parquet", "megatron", end_token=0)
        >>> exported.sequences, exported.files["input_ids"]
        (31, 'megatron')
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
    run, columns = Run(sources, prefix, progress), _columns(described)
    dtypes = {name: _stored(one, metadata) for name, one in columns.items()}
    with open_streams(str(run.output), to, dtypes, overwrite) as out:
        exported = Exported(dict(out.files))
        for batch, path, run.read in _in_token_layout(sources, metadata, end):
            ends = _write(batch, path, columns, dtypes, out)
            sizes = np.diff(ends, prepend=0)
            exported.left_out += int(np.count_nonzero(sizes == 0))
            exported.sequences += int(np.count_nonzero(sizes))
            exported.tokens += int(sizes.sum())
            run.report.tokens, run.written = exported.tokens, out.bytes_written
            run.tick()
        about = {
            "to": to,
            "sequences": exported.sequences,
            "tokens": exported.tokens,
            "left_out": exported.left_out,
            "streams": _about(columns, dtypes, out.files),
            "numtok": metadata,
        }
        out.finish(f"{json.dumps(about, indent=1)}\n")
    exported.bytes, exported.seconds = out.bytes_written, run.seconds
    if exported.left_out:
        separated = end is not None or metadata["pack"]
        kept = "" if separated else "; end_token=... (--end-token) writes the empty ones"
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
    if end is not None and end not in range(metadata["vocab_size"]):
        raise SchemaError(
            f"{shown_option('end_token', end)} is no id of the tokenizer, which has"
            f" {metadata['vocab_size']}",
            path=path,
        )
    if end in NumberTokens.from_metadata(metadata).ids:
        raise SchemaError(
            f"{shown_option('end_token', end)} is a token that numbers are made of; choose one that"
            " ends documents",
            path=path,
        )
    return end


def _columns(schema: pa.Schema) -> dict[str, Column]:
    """Return all columns with one value per token in token layout, texts excepted; the ids first."""
    tokens = token_schema(schema) if read_metadata(schema)["layout"] == "number" else schema
    declared = declared_columns(tokens)
    stored = (declared[name] for name in tokens.names if name in declared)
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
    for chunk in encoded_rows(sources, BATCH_BYTES):
        if chunk.path != path:
            path, metadata = chunk.path, read_metadata(chunk.batch.schema, chunk.path)
            for key in ("tokenizer", "numbers", "pack", "frame"):
                if metadata[key] != first[key]:
                    raise SchemaError(
                        f"its {key} is not that of {sources[0].path}; export what belongs together",
                        path=path,
                    )
        rows = chunk.batch if end is None else with_ends(to_number_layout(chunk.batch), end)
        yield chunk._replace(batch=to_token_layout(rows))


def _write(
    batch: pa.RecordBatch,
    path: str,
    columns: Mapping[str, Column],
    dtypes: Mapping[str, np.dtype[Any]],
    out: Streams,
) -> npt.NDArray[np.int64]:
    """Write rows, and return int64[rows]: after how many tokens each of them ends."""
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
    """Return what ``PREFIX.json`` says of each stream."""
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


# The files
# -------------------------------------------------------------------------------------------------


class Streams:
    """Streams that are being written. For each stream ``NAME.bin``, the values of all sequences end to end, little-endian, and
    ``NAME.idx``: magic, version (uint64), code of the dtype (uint8), n (uint64), n + 1 (uint64);
    then the values of each sequence (int32[n]), the byte at which it begins (int64[n]), and the
    sequence with which each document begins, and n (int64[n + 1]). Each sequence is a document.
    """

    def __init__(
        self, prefix: str, to: str, dtypes: Dtypes, opened: Callable[[str], BinaryIO]
    ) -> None:
        self.bytes_written = 0
        self.files = {
            name: prefix if name == "input_ids" else f"{prefix}_{name}" for name in dtypes
        }
        self._dtypes, self._codes = dtypes, CODES[to]
        paths = [f"{prefix}.json"]  # the index gets its name last
        paths += [f"{base}.{kind}" for base in self.files.values() for kind in ("idx", "bin")]
        self._open = {path: opened(path) for path in paths}
        self._sizes = {name: [np.empty(0, np.int32)] for name in dtypes}

    def write(self, streams: Mapping[str, Values], ends: npt.NDArray[np.int64]) -> None:
        """Append rows, which end after so many tokens."""
        tokens = np.diff(ends, prepend=0)
        for name, values in streams.items():
            sizes = tokens[tokens > 0] * int(np.prod(values.shape[1:]))
            if sizes.max(initial=0) > np.iinfo(np.int32).max:
                raise OutputError(
                    f"{self.files[name]}.bin: a sequence has {sizes.max():,} values, more than the"
                    " format can tell; export shorter rows, encoded with pack=... (--pack)"
                )
            self._sizes[name].append(sizes.astype(np.int32))
            self._put(f"{self.files[name]}.bin", values, self._dtypes[name].newbyteorder("<"))

    def finish(self, about: str) -> None:
        """Write the index of each stream, and ``about`` beside them."""
        for name, base in self.files.items():
            dtype, sizes = self._dtypes[name], np.concatenate(self._sizes[name])
            header = struct.pack("<QBQQ", 1, self._codes[dtype.name], len(sizes), len(sizes) + 1)
            begins = (np.cumsum(sizes, dtype=np.int64) - sizes) * dtype.itemsize
            self._put(f"{base}.idx", np.frombuffer(MAGIC + header, np.uint8))
            self._put(f"{base}.idx", sizes, "<i4")
            self._put(f"{base}.idx", begins, "<i8")
            self._put(f"{base}.idx", np.arange(len(sizes) + 1), "<i8")
            for kind in ("bin", "idx"):
                os.fsync(self._open[f"{base}.{kind}"].fileno())
        summary = np.frombuffer(about.encode(), np.uint8)
        self._put(next(iter(self._open)), summary)
        self.bytes_written -= summary.nbytes

    def _put(self, path: str, values: Values, dtype: npt.DTypeLike = np.uint8) -> None:
        """Write all values; OutputError if the system refuses."""
        left = np.ascontiguousarray(values, dtype).reshape(-1).view(np.uint8).data
        self.bytes_written += left.nbytes
        try:
            while left:
                left = left[self._open[path].write(left) :]
        except OSError as error:
            raise OutputError(
                f"cannot write {path}: {error.strerror or error}; nothing is left under that name:"
                " make room, then run again"
            ) from error


@contextlib.contextmanager
def open_streams(prefix: str, to: str, dtypes: Dtypes, overwrite: bool) -> Iterator[Streams]:
    """Open the files of all streams, which get their names when the context ends well."""
    if not is_url(prefix):  # it names several files, as a folder does, which is made too
        with contextlib.suppress(OSError):  # told with the name of the first file
            Path(prefix).parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        yield Streams(
            prefix, to, dtypes, lambda path: stack.enter_context(new_file(path, overwrite))
        )
