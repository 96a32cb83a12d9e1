"""Show a row of a file: the text of a document, or the tokens and columns that ``numtok encode``
stored for it, read as they are in the file without encoding again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.corpus.decode import tokenizer_of
from numtok.corpus.encode_options import EncodeOptions
from numtok.corpus.pipeline import Reader
from numtok.corpus.read.documents import check_formats, find_inputs, suffixes
from numtok.corpus.read.encoded import open_encoded
from numtok.errors import InputError
from numtok.representations import from_dict
from numtok.tokenizer import schema
from numtok.tokenizer.inspect import Token, tokens_of
from numtok.tokenizer.layout import to_number_layout
from numtok.tokenizer.metadata import describe_tokenizer

PIECE_BYTES = 1 << 20
MOST_TOKENS = 1 << 20  # of a row; each takes some hundred bytes here


@dataclass(frozen=True)
class StoredRow:
    """A row of an encoded file."""

    path: str
    row: int  # from 1
    facts: tuple[tuple[str, str], ...]  # (what, value) of the whole file
    text: str | None  # of the document, or of all in a packed row; None for a null row
    tokens: tuple[Token, ...]
    numbers: tuple[tuple[str, int], ...]  # (text, first token) of each
    columns: dict[str, npt.NDArray[Any]]  # a value per number each


def is_name_of_file(text: str) -> bool:
    """Whether it ends as a file or a URL that can be read does; another one is a text."""
    return not any(map(str.isspace, text)) and suffixes(text)[0] is not None


def text_of(
    path: str | Path,
    row: int = 1,
    text_column: str | None = None,
    input_format: str | None = None,
    delimiter: str | None = None,
) -> str:
    """Return the text of a row of a corpus; InputError if there is none."""
    (source,) = find_inputs([path], input_format)
    check_formats([source], "line", delimiter)
    options = EncodeOptions(text_column=text_column, delimiter=delimiter, batch_bytes=PIECE_BYTES)
    texts = (chunk.batch.texts for chunk in Reader([source], options).chunks())
    text = _nth(texts, row, source.name)[0].as_py()
    if text is None:
        raise InputError(
            "has no text: it is missing or null; choose another row", source.name, row=row
        )
    return str(text)


def stored_row(path: str | Path, row: int = 1, source: Any = None) -> StoredRow:
    """Return a row of an encoded file, in any layout; ``source`` is the source tokenizer.
    InputError if there is no such row, SchemaError if it was encoded with another tokenizer.
    """
    path, tokenizer = str(path), tokenizer_of(path, source)
    with closing(open_encoded(path)) as file:
        stored, facts = _nth(file.batches(PIECE_BYTES), row, path), _facts(file.schema, file.rows)
    if (count := len(memory.flat(schema.column(stored, "input_ids"))[0])) > MOST_TOKENS:
        raise InputError(
            f"has {count:,} tokens, more than the {MOST_TOKENS:,} that are shown one by one; choose"
            " another row, or decode the file",
            path,
            row=row,
        )
    text = tokenizer.decode_batch(stored)[0].as_py()
    if text is None:
        return StoredRow(path, row, facts, None, (), (), {})
    batch = to_number_layout(stored)
    ids, index = _values(batch, "input_ids"), _values(batch, "number_index").tolist()
    declared = (one for kind in tokenizer.representations for one in kind.columns().values())
    columns = {"number_value": _values(batch, "number_value")}
    columns |= {one.name: _values(batch, one.name) for one in declared if one.per == "number"}
    spelled = {first: (stop, surface) for first, stop, surface in tokenizer.numbers_in(ids)}
    if "number_text" in batch.schema.names:
        surfaces = memory.flat(batch.column("number_text"))[0].to_pylist()
    else:
        surfaces = [
            spelled[first][1] if first in spelled else repr(value).removesuffix(".0")
            for first, value in zip(index, columns["number_value"].tolist(), strict=True)
        ]
    stops = (spelled[first][0] if first in spelled else first + 1 for first in index)
    has_places = "place_value" in tokenizer.per_token_columns
    places = _values(batch, "place_value").tolist() if has_places else None
    spans = zip(itertools.count(), index, stops, strict=False)
    tokens = tokens_of(tokenizer, ids.tolist(), places, spans)
    numbers = tuple(zip(surfaces, index, strict=True))
    return StoredRow(path, row, facts, str(text), tokens, numbers, columns)


def _nth(batches: Iterable[Any], row: int, path: str) -> Any:
    """Return the row with this number, from 1, as a slice of one of the batches or arrays."""
    rows = 0
    for batch in batches:
        if row <= rows + len(batch):
            return batch.slice(row - 1 - rows, 1)
        rows += len(batch)
    raise InputError(f"has {rows:,} rows, so there is no row {row:,}", path)


def _facts(described: pa.Schema, rows: int | None) -> tuple[tuple[str, str], ...]:
    metadata = schema.read_metadata(described)
    layout = f"one value per {metadata['layout'] or 'number'}"
    if packing := metadata["pack"]:
        layout = f"packed into rows of {packing['length']:,} tokens"
    return (
        ("rows", "not counted" if rows is None else f"{rows:,}"),
        ("tokenizer", describe_tokenizer(metadata)),
        ("numbers as", ", ".join(repr(from_dict(options)) for options in metadata["numbers"])),
        ("layout", layout),
        ("columns", ", ".join(f"{field.name}: {field.type}" for field in described)),
    )


def _values(batch: pa.RecordBatch, name: str) -> npt.NDArray[Any]:
    values = memory.flat(schema.column(batch, name))[0]
    if isinstance(values.type, pa.FixedShapeTensorType):
        return np.asarray(values.to_numpy_ndarray())
    return np.asarray(values.to_numpy(zero_copy_only=False))
