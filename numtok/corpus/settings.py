"""The options of encoding files: their names and types for callers (:class:`EncodeOptions`), their
defaults within (:class:`EncodeSettings`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from numtok.corpus.read.template import Template
from numtok.corpus.split import HashRange
from numtok.corpus.summary import BATCH_BYTES, SHARD_BATCH_BYTES
from numtok.errors import InputError
from numtok.tokenizer.metadata import LARGEST_ROW


class EncodeOptions(TypedDict, total=False):
    """Further options of :func:`numtok.encode_files` and :func:`numtok.corpus.encode_corpus`.

    Attributes:
        text_column: where the text is; by default ``text``, ``content``, ``document``, ``body``, or
            the only column of strings.
        template: in place of a text column, ``"{name} costs {price}"``: columns in braces, joined
            to a text; or ``"row"``, a line ``column: value`` for each.
        keep_columns: other columns of the input, stored after numtok's own.
        keep_text: also store what it takes to give back every byte.
        add_special_tokens: put the source tokenizer's special tokens around each text.
        parse_special: read special tokens that are written in the text as such.
        input_format: of the inputs, whatever their suffix.
        delimiter: between the columns of CSV and TSV, as ``";"``; by default a comma, a tab in TSV.
        output_format: parquet or arrow, whatever the suffix; jsonl (the default there) or arrow for
            standard output.
        compression: of the output: ``"zstd"``, ``"lz4"`` or ``"none"``, for Parquet also
            ``"snappy"`` and ``"gzip"``.
        text_unit: in ``.txt``, whether a line or the whole file is a document.
        workers: threads that encode; by default one per processor.
        batch_bytes: about how much text is encoded at once, by default 4 MiB, and 2 MiB in shards.
        overwrite: replace an output that is there already, once the new one is complete.
        tensors: how Parquet stores them: ``"lists"``, which every program reads, or
            ``"extension"``, Arrow's tensor type.
        on_error: ``"skip"`` leaves out bad rows of JSON, CSV and text files, and counts them.
        layout: ``"number"`` has a value per number, which is smallest; ``"token"`` one per token in
            every column, so that rows can be sliced and joined.
        pack: write rows of at most so many tokens, in token layout: documents joined with the end
            token and cut, but not inside a number that fits a row.
        pack_mode: ``"sequential"`` fills row after row; ``"best-fit"`` puts whole documents where
            they leave the least room, and cuts only longer ones.
        end_token: a token of the tokenizer, or its id, after every packed document; by default
            ``<|endoftext|>``, ``</s>`` or the like.
        split_seed: of the hash by which a document belongs to a split.
    """

    text_column: str | None
    template: str | None
    keep_columns: Sequence[str]
    keep_text: bool
    add_special_tokens: bool
    parse_special: bool
    input_format: str | None
    delimiter: str | None
    output_format: str | None
    compression: str | None
    text_unit: Literal["line", "file"]
    workers: int | None
    batch_bytes: int
    overwrite: bool
    tensors: Literal["lists", "extension"]
    on_error: Literal["raise", "skip"]
    layout: Literal["number", "token"] | None
    pack: int | None
    pack_mode: Literal["sequential", "best-fit"]
    end_token: str | int | None
    split_seed: int


class FileOptions(EncodeOptions, total=False):
    """What a ``--config`` file may hold: those, and what else ``numtok encode`` takes, by the names
    of :func:`numtok.encode_files`, as written on the command line.
    """

    inputs: str | list[str]
    output: str
    tokenizer: str
    numbers: str
    grammar: str
    pattern: str
    overflow: Literal["text", "clip", "error"]
    dense: bool
    scale: float
    clip: float
    fit: bool
    fit_quantile: float
    engine: Literal["auto", "gigatoken", "tokenizers"]
    leading_space: Literal["auto", "separate"]
    shards: int
    shard_size: int | str
    shard: str
    ray: str
    card: bool
    split: str


_CHOICES: dict[str, Sequence[Any]] = {
    "layout": (None, "number", "token"),
    "text_unit": ("line", "file"),
    "on_error": ("raise", "skip"),
    "pack_mode": ("sequential", "best-fit"),
    "tensors": ("lists", "extension"),
}
_WHOLE = (  # (name, least, most)
    ("workers", 1, 1 << 16),
    ("batch_bytes", 1, 1 << 40),
    ("split_seed", 0, (1 << 32) - 1),
)


@dataclass(frozen=True)
class EncodeSettings:
    """The same with the defaults; TypeError for a name that is none of them, InputError for a value
    that is none of those there are.
    """

    text_column: str | None = None
    template: str | None = None
    keep_columns: Sequence[str] = ()
    keep_text: bool = False
    add_special_tokens: bool = False
    parse_special: bool = False
    input_format: str | None = None
    delimiter: str | None = None
    output_format: str | None = None
    compression: str | None = "zstd"
    text_unit: Literal["line", "file"] = "line"
    workers: int | None = None
    batch_bytes: int = BATCH_BYTES
    overwrite: bool = False
    tensors: Literal["lists", "extension"] = "lists"
    on_error: Literal["raise", "skip"] = "raise"
    layout: Literal["number", "token"] | None = None
    pack: int | None = None
    pack_mode: Literal["sequential", "best-fit"] = "sequential"
    end_token: str | int | None = None
    split_seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.keep_columns, str):
            raise InputError(f"keep_columns={self.keep_columns!r} must be a list of names")
        for name, least, most in _WHOLE:
            value = getattr(self, name)
            wrong = type(value) is not int or not least <= value <= most
            if wrong and not (value is None and name == "workers"):
                allowed = f"a whole number from {least} to {most:,}"
                raise InputError(f"{name}={value!r} must be {allowed}")
        if self.template is not None:
            Template(self.template)
            if self.text_column is not None:
                raise InputError(
                    "template=... and text_column=... both tell the text; leave out one"
                )
        check_delimiter(self.delimiter)
        if self.split_seed and self.documents is None:
            raise InputError(
                f"split_seed={self.split_seed} is of the hash that split=... goes by; give that too"
            )
        for name, choices in _CHOICES.items():
            check_choice(name, getattr(self, name), choices)
        self._check_packing()

    @property
    def documents(self) -> HashRange | None:
        """The documents that are encoded; None for all."""
        return None

    def _check_packing(self) -> None:
        if self.pack is None:
            name = "end_token" if self.pack_mode == "sequential" else "pack_mode"
            if name == "pack_mode" or self.end_token is not None:
                raise InputError(
                    f"{name}={getattr(self, name)!r} is for packed rows; give pack=... too, the"
                    " tokens of a row"
                )
            return
        if type(self.pack) is not int or not 0 < self.pack <= LARGEST_ROW:
            wrong = f"pack={self.pack!r} must be the tokens of a row, a whole number from 1 to"
            raise InputError(f"{wrong} {LARGEST_ROW}")
        if self.layout == "number":
            raise InputError(
                "packed rows are in token layout, as their columns are cut with them; leave out"
                " layout='number'"
            )
        if self.keep_columns:
            raise InputError(
                f"column {self.keep_columns[0]!r} cannot be kept: a packed row holds pieces of"
                " several documents, and has no value of each"
            )


@dataclass(frozen=True)
class ShardSettings(EncodeSettings):
    """The settings of a job, with smaller batches, as many processes encode at once."""

    batch_bytes: int = SHARD_BATCH_BYTES
    hash_range: str | None = None  # of the documents of a split; None for all documents

    @property
    def documents(self) -> HashRange | None:
        """The documents that are encoded; None for all."""
        return (
            None if self.hash_range is None else HashRange.parse(self.hash_range, self.split_seed)
        )


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Raise InputError if the value is none of the choices."""
    if value not in choices:
        raise InputError(f"{name}={value!r} is unknown; use one of {', '.join(map(repr, choices))}")


def check_delimiter(given: Any) -> str | None:
    """Return the character between columns, a backslash with a t as a tab; InputError if it cannot
    be one.

    >>> check_delimiter(";")
    ';'
    """
    if given is None:
        return None
    delimiter = "\t" if given == "\\t" else str(given)
    fits = isinstance(given, str) and len(delimiter) == 1 and delimiter.isascii()
    if not fits or delimiter.isalnum() or delimiter in '"\r\n\0':
        raise InputError(
            f"delimiter={given!r} must be one character of ASCII, but no letter, digit, quote or line"
            " break, as in ';'"
        )
    return delimiter
