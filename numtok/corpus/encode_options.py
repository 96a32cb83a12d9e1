"""The options of encoding files, declared once. :func:`numtok.encode_files` takes them by name, the
command line and ``--config`` by the same names with dashes, and the plan of a job holds those that
change a byte of the output.
"""

from __future__ import annotations

import functools
import tomllib
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict

from numtok import storage
from numtok.corpus.read.template import Template
from numtok.corpus.summary import Progress
from numtok.errors import InputError
from numtok.numbers.grammar import Grammar
from numtok.options import COMMAND_LINE_NAMES, conform, shown_option
from numtok.representations import Representation
from numtok.tokenizer.metadata import LARGEST_ROW


@dataclass(frozen=True, kw_only=True)
class EncodeOptions:
    """Options of :func:`numtok.encode_files` and ``numtok encode``.

    Example:
        >>> EncodeOptions(layout="token", keep_columns=["id"]).layout
        'token'

    Attributes:
        numbers: representations, or their names, ``"xval,fone:6,4"``; ``"xval:log"`` if not given.
        grammar: what counts as a number, or its name, ``"european"``; prose if not given.
        overflow: what to do with numbers that a representation cannot hold, for all representations
            that have this option.
        dense: write the tensors of bits and fone instead of integers and digits, of which
            ``numtok.expand`` and the torch layers make tensors.
        scale: xVal's values are multiplied by it. If not given, one is fitted where xVal is given by
            name.
        clip: the largest magnitude of xVal's scaled values. If not given, 5, or none if ``scale`` is
            given.
        fit: fit the scale even if xVal is given as ``XVal(...)``.
        fit_quantile: fit the scale so that this quantile of the magnitudes becomes 5.
        tokenizer: what :meth:`numtok.Tokenizer.from_pretrained` takes; or a ``Tokenizer``, with its
            own numbers, so that none of ``numbers``, ``grammar``, ``overflow``, ``dense`` and
            ``leading_space`` goes with it.
        engine, leading_space: as :meth:`numtok.Tokenizer.from_pretrained` takes them.
        text_column: where the text is; by default ``text``, ``content``, ``document``, ``body``, or
            the only column of strings.
        template: in place of a text column, ``"{name} costs {price}"``: columns in braces, joined
            to a text; or ``"row"``, a line ``column: value`` for each.
        input_format: of the inputs, whatever their suffix.
        delimiter: between the columns of CSV and TSV, as ``";"``; by default a comma, a tab in TSV.
        text_unit: in ``.txt``, whether a line or the whole file is a document.
        add_special_tokens: put the source tokenizer's special tokens around each text.
        parse_special: read special tokens that are written in the text as such.
        on_error: ``"skip"`` skips bad rows, and counts them.
        output_format: parquet or arrow, whatever the suffix; jsonl (the default there) or arrow for
            standard output.
        keep_text: also store what it takes to give back every byte.
        keep_columns: other columns of the input, stored after numtok's own.
        layout: ``"number"`` has a value per number, which is smallest; ``"token"`` one per token in
            every column, so that rows can be sliced and joined.
        compression: of the output: ``"zstd"``, ``"lz4"`` or ``"none"``, for Parquet also
            ``"snappy"`` and ``"gzip"``.
        tensors: how Parquet stores them: ``"lists"``, which every program reads, or
            ``"extension"``, Arrow's tensor type.
        overwrite: replace an output that is there already, once the new one is complete.
        pack: write rows of at most so many tokens, in token layout: documents joined with the end
            token and cut, but not inside a number that fits a row.
        pack_mode: ``"sequential"`` fills row after row; ``"best-fit"`` puts whole documents where
            they leave the least room, and cuts only longer ones.
        end_token: a token of the tokenizer, or its id, after every packed document; by default
            ``<|endoftext|>``, ``</s>`` or the like.
        split: ``"train=0.98,validation=0.02"``: a folder of shards for each; a document's place
            depends on its text and ``split_seed`` alone.
        split_seed: of the hash by which a document belongs to a split.
        shards: how many files a folder has at most; each is made of about as much input.
        shard_size: about how many bytes of input a shard has; 256 MiB if neither is given.
        shard: ``(i, n)``: write only every n-th shard, from the i-th on, counted from 1, as one of n
            machines. Call ``finish_job`` when all are done.
        ray: the address of a Ray cluster that is to write the shards: ``auto``, ``local``, or
            ``host:port``. All nodes must see the same files.
        card: also write a README.md that the Hugging Face hub and ``datasets`` read, once the folder
            is finished.
        workers: threads that encode, and processes that write shards; by default one per processor.
        batch_bytes: about how much text is encoded at once, by default 4 MiB, and 2 MiB in shards.
        progress: called from the calling thread, several times a second.

    Raises:
        InputError: for a value that is none of those there are, or options that exclude each other.
    """

    numbers: str | Representation | Sequence[Representation | str] | None = None
    grammar: Grammar | str | None = None
    overflow: Literal["text", "clip", "error"] | None = None
    dense: bool = False
    scale: float | None = None
    clip: float | None = None
    fit: bool = False
    fit_quantile: float | None = None

    tokenizer: Any = None
    engine: Literal["auto", "gigatoken", "tokenizers"] = "auto"
    leading_space: Literal["auto", "separate"] | None = None
    text_column: str | None = None
    template: str | None = None
    input_format: str | None = None
    delimiter: str | None = None
    text_unit: Literal["line", "file"] = "line"
    add_special_tokens: bool = False
    parse_special: bool = False
    on_error: Literal["raise", "skip"] = "raise"

    output_format: str | None = None
    keep_text: bool = False
    keep_columns: Sequence[str] = ()
    layout: Literal["number", "token"] | None = None
    compression: str | None = "zstd"
    tensors: Literal["lists", "extension"] = "lists"
    overwrite: bool = False
    pack: int | None = None
    pack_mode: Literal["sequential", "best-fit"] = "sequential"
    end_token: str | int | None = None

    split: str | None = None
    split_seed: int = 0
    shards: int | None = None
    shard_size: int | None = None
    shard: tuple[int, int] | None = None
    ray: str | None = None
    card: bool = False

    workers: int | None = None
    batch_bytes: int | None = None
    progress: Callable[[Progress], None] | None = None

    def __post_init__(self) -> None:
        for name, hint in hints().items():
            value = getattr(self, name)
            if name in _WHOLE:
                check_whole(name, value)
            elif choices := _choices(hint):
                check_choice(name, value, choices)
            elif (plain := _plain_types(hint)) and not isinstance(value, plain):
                kind = getattr(hint, "__name__", hint)
                raise InputError(f"{shown_option(name, value)} must be of type {kind}")
        names = self.keep_columns
        if not isinstance(names, list | tuple) or not all(isinstance(one, str) for one in names):
            raise InputError(f"{shown_option('keep_columns', names)} must be a list of names")
        if self.template is not None:
            Template(self.template)
            if self.text_column is not None:
                raise InputError(
                    "template=... (--template) and text_column=... (--text-column) both tell the"
                    " text; leave out one"
                )
        object.__setattr__(self, "delimiter", _checked_delimiter(self.delimiter))
        self._check_packing()
        self._check_shards()

    def _check_packing(self) -> None:
        if self.pack is None:
            name = "end_token" if self.pack_mode == "sequential" else "pack_mode"
            if name == "pack_mode" or self.end_token is not None:
                raise InputError(
                    f"{shown_option(name, getattr(self, name))} is for packed rows; give pack=..."
                    " (--pack) too, the tokens of a row"
                )
            return
        if self.layout == "number":
            raise InputError(
                "packed rows are in token layout, as their columns are cut with them; leave out"
                " layout='number' (--layout number)"
            )
        if self.keep_columns:
            raise InputError(
                f"column {self.keep_columns[0]!r} cannot be kept: a packed row holds pieces of"
                " several documents, and has no value of each"
            )

    def _check_shards(self) -> None:
        if self.shards is not None and self.shard_size is not None:
            raise InputError(
                "shards=... (--shards) and shard_size=... (--shard-size) both say how large a shard"
                " is; leave out one of them"
            )
        pair: Any = self.shard
        whole = isinstance(pair, list | tuple) and [type(one) for one in pair] == [int, int]
        if pair is not None and not (whole and 1 <= pair[0] <= pair[1]):
            raise InputError(
                f"{shown_option('shard', pair)} must be (i, n), where i is from 1 to n"
            )
        if self.split_seed and self.split is None:
            raise InputError(
                f"{shown_option('split_seed', self.split_seed)} is of the hash that split=..."
                " (--split) goes by; give that too"
            )

    @property
    def asks_for_shards(self) -> bool:
        """Whether an option says that the output is a folder of shards."""
        others = (self.split, self.shards, self.shard_size, self.shard, self.ray)
        return self.card or any(one is not None for one in others)


_WHOLE = {  # least, most
    "pack": (1, LARGEST_ROW),
    "split_seed": (0, (1 << 32) - 1),
    "shards": (1, (1 << 62) - 1),
    "shard_size": (1, (1 << 62) - 1),
    "workers": (1, 1 << 16),
    "batch_bytes": (1, 1 << 40),
}


def check_whole(name: str, value: Any) -> None:
    """Raise InputError for an option that is neither a whole number within its limits nor, where
    that is its default, None.
    """
    least, most = _WHOLE[name]
    wrong = type(value) is not int or not least <= value <= most
    if wrong and not (value is None and getattr(EncodeOptions, name) is None):
        allowed = f"a whole number from {least} to {most:,}"
        raise InputError(f"{shown_option(name, value)} must be {allowed}")


@functools.cache
def hints() -> dict[str, Any]:
    """Return the type of each option, by its name.

    >>> hints()["text_unit"]
    typing.Literal['line', 'file']
    """
    return typing.get_type_hints(EncodeOptions)


def _choices(hint: Any) -> tuple[Any, ...]:
    """Return the values that ``Literal[...]`` and ``Literal[...] | None`` allow; empty for others."""
    if typing.get_origin(hint) is Literal:
        return typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        literal, *others = typing.get_args(hint)
        if typing.get_origin(literal) is Literal and others == [type(None)]:
            return (None, *typing.get_args(literal))
    return ()


def _plain_types(hint: Any) -> tuple[type, ...]:
    """Return the classes of a type that is made of Python's own alone; empty for others."""
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    plain = all(kind in (bool, int, float, str, type(None)) for kind in kinds)
    return (*kinds, int) if plain and float in kinds else kinds if plain else ()


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Raise InputError if the value is none of the choices."""
    if value not in choices:
        listed = ", ".join(map(repr, choices))
        raise InputError(f"{shown_option(name, value)} is unknown; use one of {listed}")


def _checked_delimiter(value: Any) -> str | None:
    """Return the character between columns, a backslash with a t as a tab; InputError if it cannot
    be one.
    """
    if value is None:
        return None
    delimiter = "\t" if value == "\\t" else str(value)
    fits = isinstance(value, str) and len(delimiter) == 1 and delimiter.isascii()
    if not fits or delimiter.isalnum() or delimiter in '"\r\n\0':
        raise InputError(
            f"{shown_option('delimiter', value)} must be one character of ASCII, but no letter,"
            " digit, quote or line break, as in ';'"
        )
    return delimiter


# Options in a file
# -------------------------------------------------------------------------------------------------

# what a file holds where a call may take objects
_AS_TEXT = {
    **dict.fromkeys(("output", "tokenizer", "numbers", "grammar", "pattern", "shard"), str),
    "inputs": str | list[str],
    "shard_size": int | str,
}
_ALIASES = {name.replace("-", "_"): option for option, name in COMMAND_LINE_NAMES.items()}


def read_config(path: str | Path) -> dict[str, Any]:
    """Return the options in a TOML file, held to the types of :class:`EncodeOptions`."""
    name = str(path)
    try:
        with storage.open_file(name) as file:
            content = tomllib.loads(file.read().decode())
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}; check the path", name) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"is no TOML: {error}; mend the file", name) from None
    named = {key.replace("-", "_"): value for key, value in content.items()}
    options = {_ALIASES.get(key, key): value for key, value in named.items()}
    types = {name: kind for name, kind in hints().items() if name != "progress"}
    conform(options, TypedDict("FileOptions", types | _AS_TEXT, total=False), name, InputError)  # type: ignore[operator]  # made of the dataclass
    return options
