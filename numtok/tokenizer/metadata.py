"""What the ``numtok`` key of a schema's metadata holds, checked once, where it is read.
``FORMAT.md`` is the normative text.

In: the bytes of the key, which anybody may have written. Out: a dictionary whose every value has
    the type and the range that readers rely on, with all options of the representations and the
    grammar filled in; or a ``SchemaError`` that names the key.
"""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Callable, Sequence
from typing import Any

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
LAYOUTS = ("number", "token")
PACK_MODES = ("sequential", "best-fit")
MOST_TOKENS = 1 << 28  # of a document: one for every other byte of the longest that is read
LARGEST_ROW = 1 << 30  # tokens of a packed row


def parse_metadata(described: bytes) -> dict[str, Any]:
    """The metadata as a dictionary; SchemaError if damaged, or of another format."""
    try:
        parsed = _parse(described)
    except RecursionError:
        raise _damaged("nested too deep") from None
    # what else there is may be nested deeper than deepcopy can go
    ours = (*_CHECKS, "symbols", "shapes", "pack")
    return parsed | {key: copy.deepcopy(parsed[key]) for key in ours if key in parsed}


def tokenizer_told(metadata: dict[str, Any]) -> str:
    """The source tokenizer of what was encoded, as a reader may know it; of files of a former
    version the fingerprint alone.
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
    if not _is_integer(version, 0, None):
        raise _damaged(f"'format' is {_shown(version)}, not a number")
    if version not in READ_VERSIONS:
        raise SchemaError(
            f"the data has format {_shown(version)}, this version of numtok reads formats up"
            f" to {FORMAT_VERSION}; upgrade numtok"
        )
    if missing := [key for key in _CHECKS if key not in metadata]:
        raise _damaged(f"there is no {missing[0]!r}")
    checked = metadata | {key: check(metadata[key]) for key, check in _CHECKS.items()}
    numbers = tuple(from_dict(options) for options in checked["numbers"])
    _check_ids(checked, numbers)
    checked["shapes"] = _check_shapes(metadata.get("shapes", {}), numbers)
    return checked | _check_layout(metadata.get("layout", "number"), metadata.get("pack"))


def _damaged(what: str) -> SchemaError:
    what = what if len(what) <= 300 else f"{what[:297]}..."
    return SchemaError(
        f"the 'numtok' schema metadata is damaged: {what}; encode again, or restore the metadata"
        " that numtok wrote"
    )


def _shown(value: Any) -> str:
    """A value in a message, which may be anything, of any size."""
    try:
        shown = repr(value)
    except (ValueError, RecursionError):  # an integer of many thousand digits; lists within lists
        return f"a very large {type(value).__name__}"
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def _is_integer(value: Any, low: int, high: int | None) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole and low <= value and (high is None or value < high)


def _numbers(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(options, dict) for options in value):
        raise _damaged(f"'numbers' is {_shown(value)}, not a list of objects")
    try:
        chosen = tuple(from_dict(options) for options in value)
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


def _is_frame(value: Any) -> bool:
    two = isinstance(value, list) and len(value) == 2
    return two and all(isinstance(ids, list) and len(ids) <= LARGEST_FRAME for ids in value)


def _of_kind(key: str, is_good: Callable[[Any], bool], kind: str) -> Callable[[Any], Any]:
    """The value as it is, if it is good."""

    def check(value: Any) -> Any:
        if not is_good(value):
            raise _damaged(f"{key!r} is {_shown(value)}, not {kind}")
        return value

    return check


_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "tokenizer": (lambda value: isinstance(value, str), "a fingerprint"),
    "leading_space": (LEADING_SPACE.__contains__, "one of 'auto', 'separate'"),
    "vocab_size": (
        lambda value: _is_integer(value, 1, LARGEST_VOCABULARY + 1),
        f"a number from 1 to {LARGEST_VOCABULARY}",
    ),
    "tokens": (lambda value: isinstance(value, dict), "an object of ids"),
    "frame": (_is_frame, f"two lists of ids, at most {LARGEST_FRAME} each"),
}
_CHECKS: dict[str, Callable[[Any], Any]] = {"numbers": _numbers, "grammar": _grammar} | {
    key: _of_kind(key, *kind) for key, kind in _KINDS.items()
}


def _check_ids(metadata: dict[str, Any], numbers: Sequence[Representation]) -> None:
    """Every id is one of the vocabulary, and every token that the representations need is named."""
    size, tokens, first = metadata["vocab_size"], metadata["tokens"], numbers[0]
    for key, ids in (("tokens", tokens.values()), *(("frame", side) for side in metadata["frame"])):
        if wrong := [one for one in ids if not _is_integer(one, 0, size)]:
            raise _damaged(
                f"{key!r} has the id {_shown(wrong[0])}, which is none of the {size} of the"
                " vocabulary"
            )
    needed, _, together = first.added_tokens(two_forms=False)
    brackets = [content for content in (NUM, END_NUM) if content in needed]
    if missing := [content for content in brackets if content not in tokens]:
        raise _damaged(f"'tokens' has no {missing[0]!r}, which {first.name} needs")
    symbols = metadata.get("symbols")
    if isinstance(first, SpelledOut) and not first.bracketed:
        _check_symbols(symbols, size, len(first.token_strings), len(first.first_symbols))
    elif together and "symbols" in metadata:
        _check_symbols(symbols, size, len(together), 0)
    elif metadata.get("symbols", {}) != {}:
        raise _damaged(f"there are 'symbols', which {first.name} has not")


def _check_symbols(symbols: Any, size: int, plain: int, spaced: int) -> None:
    """Runs [first id, count]: as many ids in all as there are symbols."""
    if not isinstance(symbols, dict) or set(symbols) != {"plain", "spaced"}:
        raise _damaged(f"'symbols' is {_shown(symbols)}, not an object with 'plain' and 'spaced'")
    for form, wanted in (("plain", (plain,)), ("spaced", (0, spaced))):
        runs = symbols[form]
        if not isinstance(runs, list) or not all(_is_run(run, size) for run in runs):
            raise _damaged(
                f"'symbols', {form!r}: {_shown(runs)} is not a list of [first id, count] within the"
                " vocabulary"
            )
        if (total := sum(count for _, count in runs)) not in wanted:
            raise _damaged(f"'symbols', {form!r}: {total} ids for {wanted[-1]} symbols")


def _is_run(run: Any, size: int) -> bool:
    pair = isinstance(run, list) and len(run) == 2 and _is_integer(run[0], 0, size)
    return pair and _is_integer(run[1], 1, size - run[0] + 1)


def _check_shapes(shapes: Any, numbers: Sequence[Representation]) -> dict[str, list[int]]:
    """Of the columns that hold tensors; files that keep the Arrow type need none."""
    expected = tensor_shapes(numbers)
    if not isinstance(shapes, dict) or shapes != {k: expected.get(k) for k in shapes}:
        raise _damaged(f"'shapes' is {_shown(shapes)}, but the representations have {expected}")
    return expected


def _check_layout(layout: Any, pack: Any) -> dict[str, Any]:
    """The layout, and how rows are packed; None if they are not."""
    if layout not in LAYOUTS:
        raise _damaged(f"'layout' is {_shown(layout)}, not one of {', '.join(map(repr, LAYOUTS))}")
    if pack is None:
        return {"layout": layout, "pack": None}
    rows = isinstance(pack, dict) and _is_integer(pack.get("length"), 1, LARGEST_ROW + 1)
    if not rows or pack.get("mode") not in PACK_MODES:
        raise _damaged(
            f"'pack' is {_shown(pack)}, not an object with a 'length' and one of the modes"
            f" {', '.join(map(repr, PACK_MODES))}"
        )
    if layout != "token":
        raise _damaged(f"rows are packed, but 'layout' is {layout!r}")
    return {"layout": layout, "pack": pack}


def tensor_shapes(numbers: Sequence[Representation]) -> dict[str, list[int]]:
    """Column to the shape of one number's tensor, for the columns that hold tensors."""
    columns = (column for representation in numbers for column in representation.columns().values())
    return {column.name: list(column.shape) for column in columns if column.shape}
