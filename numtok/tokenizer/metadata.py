"""Read the ``numtok`` key of a schema's metadata and check it once. ``FORMAT.md`` is the normative
text.

In: the bytes of the key, which anybody may have written. Out: a dictionary whose every value has
    the type and the range that readers rely on, with all options of the representations and the
    grammar filled in; or a ``SchemaError`` that names the key.
"""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Sequence
from typing import Any, Literal, Required, TypedDict

from numtok.errors import GrammarError, RepresentationError, SchemaError
from numtok.numbers.grammar import Grammar
from numtok.representations import (
    END_NUM,
    NUM,
    Representation,
    SpelledOut,
    check_combination,
    from_dict,
)

FORMAT_VERSION = 2
READ_VERSIONS = (1, 2)
# four times that of any tokenizer known; a reader makes tables of this size
LARGEST_VOCABULARY = 1 << 22
LARGEST_FRAME = 1 << 10
LEADING_SPACE = ("auto", "separate")
PACK_MODES = ("sequential", "best-fit")
MOST_TOKENS = 1 << 27  # of a document: 512 MiB, as much as the longest that is read
LARGEST_ROW = 1 << 30  # tokens of a packed row


def parse_metadata(described: bytes) -> dict[str, Any]:
    """Return the metadata as a dictionary; SchemaError if damaged, or of another format."""
    try:
        parsed = _parse(described)
    except RecursionError:
        raise _damaged("nested too deep") from None
    # what else there is may be nested deeper than deepcopy can go
    ours = _Described.__annotations__.keys() & parsed.keys()
    return parsed | {key: copy.deepcopy(parsed[key]) for key in ours}


def describe_tokenizer(metadata: dict[str, Any]) -> str:
    """Return the source tokenizer of what was encoded, as a reader may know it; of files of a
    former version the fingerprint alone.
    """
    kind, fingerprint = metadata.get("tokenizer_kind"), f"fingerprint {metadata['tokenizer']}"
    return f"{kind[:80]}, {fingerprint}" if isinstance(kind, str) else fingerprint


@functools.lru_cache(maxsize=16)
def _parse(described: bytes) -> dict[str, Any]:
    try:
        metadata = json.loads(described)
    except ValueError as error:
        raise _damaged(f"not JSON ({str(error)[:80]})") from error
    if not isinstance(metadata, dict):
        raise _damaged(f"a JSON {type(metadata).__name__} instead of an object")
    version = metadata.get("format")
    if type(version) is not int or version < 0:
        raise _damaged(f"'format' is {_shown(version)}, not a number")
    if version not in READ_VERSIONS:
        raise SchemaError(
            f"the data has format {_shown(version)}, this version of numtok reads formats up"
            f" to {FORMAT_VERSION}; upgrade numtok"
        )
    import msgspec  # takes longer to load than most starts may

    try:
        msgspec.convert(metadata, _Described)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:  # a half of a surrogate pair
        reason, _, place = " ".join(str(error).replace("`", "").split()).partition(" - at ")
        raise _damaged(f"{place.removeprefix('$.')!r}: {reason}" if place else reason) from None
    checked: dict[str, Any] = {"layout": "number", "pack": None} | metadata
    checked["numbers"], checked["grammar"] = _numbers(metadata), _grammar(metadata["grammar"])
    numbers = tuple(from_dict(options) for options in checked["numbers"])
    expected, shapes = tensor_shapes(numbers), metadata.get("shapes", {})
    for key, value, limit in (
        ("vocab_size", metadata["vocab_size"], LARGEST_VOCABULARY),
        ("pack", (checked["pack"] or {"length": 1})["length"], LARGEST_ROW),
    ):
        if not 1 <= value <= limit:
            raise _damaged(f"{key!r} is {_shown(value)}, not from 1 to {limit}")
    if max(map(len, metadata["frame"])) > LARGEST_FRAME:
        raise _damaged(f"'frame' has more than {LARGEST_FRAME} ids")
    if checked["pack"] is not None and checked["layout"] != "token":
        raise _damaged(f"rows are packed, but 'layout' is {checked['layout']!r}")
    # files that keep the Arrow type need none
    if shapes != {name: expected.get(name) for name in shapes}:
        raise _damaged(f"'shapes' is {_shown(shapes)}, but the representations have {expected}")
    _check_ids(checked, numbers)
    return checked | {"shapes": expected}


def _damaged(what: str) -> SchemaError:
    what = what if len(what) <= 300 else f"{what[:297]}..."
    return SchemaError(
        f"the 'numtok' schema metadata is damaged: {what}; encode again, or restore the metadata"
        " that numtok wrote"
    )


def _shown(value: Any) -> str:
    """Return a value in a message, which may be anything, of any size."""
    try:
        shown = repr(value)
    except (ValueError, RecursionError):  # an integer of many thousand digits; lists within lists
        return f"a very large {type(value).__name__}"
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


class _Pack(TypedDict):
    length: int
    mode: Literal["sequential", "best-fit"]


class _Symbols(TypedDict):
    plain: list[tuple[int, int]]  # runs, [first id, count]
    spaced: list[tuple[int, int]]


class _Described(TypedDict, total=False):
    """The keys and their types; ranges are checked by :func:`_parse`."""

    numbers: Required[list[dict[str, Any]]]
    grammar: Required[Any]
    tokenizer: Required[str]
    leading_space: Required[Literal["auto", "separate"]]
    vocab_size: Required[int]
    tokens: Required[dict[str, int]]
    frame: Required[tuple[list[int], list[int]]]
    symbols: _Symbols
    shapes: dict[str, list[int]]
    layout: Literal["number", "token"]
    pack: _Pack | None


def _numbers(metadata: dict[str, Any]) -> list[dict[str, Any]]:
    try:
        chosen = tuple(map(from_dict, metadata["numbers"]))
        check_combination(chosen)
    except RepresentationError as error:
        raise _damaged(f"'numbers': {error}") from error
    described = json.dumps([representation.to_dict() for representation in chosen])
    read: list[dict[str, Any]] = json.loads(described)  # tuples as lists, as in JSON
    return read


def _grammar(value: Any) -> dict[str, Any]:
    try:
        return Grammar.from_dict(value).to_dict()
    except GrammarError as error:
        raise _damaged(f"'grammar': {error}") from error


def _check_ids(metadata: dict[str, Any], numbers: Sequence[Representation]) -> None:
    """Check that every id is one of the vocabulary, and that every token that the representations
    need is named.
    """
    size, tokens, first = metadata["vocab_size"], metadata["tokens"], numbers[0]
    for key, ids in (("tokens", tokens.values()), *(("frame", side) for side in metadata["frame"])):
        if wrong := [one for one in ids if not 0 <= one < size]:
            raise _damaged(
                f"{key!r} has the id {_shown(wrong[0])}, which is none of the {size} of the"
                " vocabulary"
            )
    needed, shared, together = first.added_tokens(two_forms=False)
    named = [content for content in (NUM, END_NUM) if content in needed]
    if isinstance(first, SpelledOut) and not first.marks_begin:  # read by all of their tokens
        named += [*shared, *(() if "symbols" in metadata else together)]
    if missing := [content for content in named if content not in tokens]:
        raise _damaged(f"'tokens' has no {missing[0]!r}, which {first.name} needs")
    allowed = {"plain": (0, len(together)), "spaced": (0,)}
    if isinstance(first, SpelledOut) and not first.shares_vocabulary:
        allowed = {"plain": (len(first.token_strings),), "spaced": (0, len(first.first_symbols))}
    elif "symbols" in metadata:
        allowed["plain"] = (len(together),)
    symbols = metadata.get("symbols", {"plain": [], "spaced": []})
    for form, counts in allowed.items():
        runs = symbols[form]
        if not all(0 <= begin < begin + count <= size for begin, count in runs):
            raise _damaged(
                f"'symbols', {form!r}: {_shown(runs)} is not a list of [first id, count] within the"
                " vocabulary"
            )
        if (total := sum(count for _, count in runs)) not in counts:
            raise _damaged(f"'symbols', {form!r}: {total} ids for {counts[-1]} symbols")


def tensor_shapes(numbers: Sequence[Representation]) -> dict[str, list[int]]:
    """Return the shape of one number's tensor for each column that holds tensors."""
    columns = (column for representation in numbers for column in representation.columns().values())
    return {column.name: list(column.shape) for column in columns if column.shape}
