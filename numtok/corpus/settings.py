"""The options of encoding files: their names and types for callers (:class:`EncodeOptions`), their defaults within (:class:`EncodeSettings`)."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from numtok.corpus.summary import BATCH_BYTES
from numtok.errors import InputError


class EncodeOptions(TypedDict, total=False):
    """What :func:`numtok.encode_files` and :func:`numtok.corpus.encode_corpus` take by keyword.

    Attributes:
        text_column: where the text is; by default ``text``, ``content``, ``document``, ``body``, or the only column of strings.
        keep_columns: other columns of the input, stored after numtok's own.
        keep_text: also store what it takes to give back every byte.
        add_special_tokens: put the source tokenizer's special tokens around each text.
        parse_special: read special tokens that are written in the text as such.
        input_format: of the inputs, whatever their suffix.
        output_format: parquet or arrow, whatever the suffix.
        compression: of the output; see :func:`numtok.corpus.write.encoded.open_writer`.
        text_unit: in ``.txt``, whether a line or the whole file is a document.
        workers: threads that encode; by default one per processor.
        batch_bytes: about how much text is encoded at once.
        overwrite: replace an output that is there already, once the new one is complete.
        tensors: how Parquet stores them; see :func:`numtok.corpus.write.encoded.open_writer`.
        on_error: ``"skip"`` leaves out bad rows of JSON lines and text files, and counts them.
        layout: ``"number"`` has a value per number, which is smallest; ``"token"`` one per token in every column, so that rows can be sliced and joined.
    """

    text_column: str | None
    keep_columns: Sequence[str]
    keep_text: bool
    add_special_tokens: bool
    parse_special: bool
    input_format: str | None
    output_format: str | None
    compression: str | None
    text_unit: Literal["line", "file"]
    workers: int | None
    batch_bytes: int
    overwrite: bool
    tensors: Literal["lists", "extension"]
    on_error: Literal["raise", "skip"]
    layout: Literal["number", "token"]


@dataclass(frozen=True)
class EncodeSettings:
    """The same with the defaults; TypeError for a name that is none of them, InputError for a value that is none of those there are."""

    text_column: str | None = None
    keep_columns: Sequence[str] = ()
    keep_text: bool = False
    add_special_tokens: bool = False
    parse_special: bool = False
    input_format: str | None = None
    output_format: str | None = None
    compression: str | None = "zstd"
    text_unit: Literal["line", "file"] = "line"
    workers: int | None = None
    batch_bytes: int = BATCH_BYTES
    overwrite: bool = False
    tensors: Literal["lists", "extension"] = "lists"
    on_error: Literal["raise", "skip"] = "raise"
    layout: Literal["number", "token"] = "number"

    def __post_init__(self) -> None:
        if isinstance(self.keep_columns, str):
            raise InputError(f"keep_columns={self.keep_columns!r} must be a list of names")
        for name in ("text_unit", "on_error", "layout"):
            check_choice(name, getattr(self, name), typing.get_args(typing.get_type_hints(EncodeSettings)[name]))


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Raise InputError if the value is none of the choices."""
    if value not in choices:
        raise InputError(f"{name}={value!r} is unknown; use one of {', '.join(map(repr, choices))}")
