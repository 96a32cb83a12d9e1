"""Token ids back to text, with the numbers put in.

In: token ids, the positions of number tokens and the text of each number. Out: one text per
    document. Byte-level tokenizers are decoded here, byte for byte; the others by ``tokenizers``,
    whose decoders put spaces where they think they belong.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays.kernels import allocating_kernel
from numtok.arrays.text_rows import TextRows
from numtok.engines.interface import is_byte_level
from numtok.engines.tokenizers_engine import TokenizersEngine
from numtok.errors import InputError

Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]


class TokenBytes(NamedTuple):
    """The bytes of every token: token ``t`` is ``values[offsets[t]:offsets[t + 1]]``."""

    values: npt.NDArray[np.uint8]
    offsets: Ints


class TokenRows(NamedTuple):
    """Token ids of many documents: document ``r`` has ``ids[offsets[r] + before:offsets[r + 1] -
    after]`` beside its special tokens.
    """

    ids: Ids
    offsets: Ints
    before: int
    after: int


class NumberSpans(NamedTuple):
    """The tokens [positions, stops) of every number, and whether they stand for a space before it
    too.
    """

    positions: Ints
    stops: Ints
    spaced: Mask


def is_lossless(config: dict[str, Any]) -> bool:
    """Whether the bytes of the tokens are the bytes of the text: byte-level BPE, encoded and
    decoded.
    """
    decoder = config.get("decoder") or {}
    return is_byte_level(config) and decoder.get("type") == "ByteLevel"


def byte_of_character() -> dict[str, int]:
    """GPT-2's printable stand-ins for bytes: printable Latin-1 characters are themselves, the other
    bytes follow from U+0100 on.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    return {chr(byte): byte for byte in printable} | {
        chr(256 + k): byte for k, byte in enumerate(others)
    }


def token_bytes(config: dict[str, Any]) -> TokenBytes:
    """The bytes of every token of a byte-level tokenizer; ids without a token are empty."""
    contents = contents_of(config)
    lengths = np.zeros(max(contents) + 2, np.int64)
    for number, content in contents.items():
        lengths[number + 1] = len(content)
    values = b"".join(contents.get(number, b"") for number in range(max(contents) + 1))
    return TokenBytes(np.frombuffer(values, np.uint8), np.cumsum(lengths))


def contents_of(config: dict[str, Any], wanted: Collection[int] | None = None) -> dict[int, bytes]:
    """The bytes of the tokens of a byte-level tokenizer by their ids: of all, or of those that are
    wanted.
    """
    table = byte_of_character()
    tokens = [
        (token, number)
        for token, number in config["model"]["vocab"].items()
        if wanted is None or number in wanted
    ]
    contents = {
        number: bytes(map(table.__getitem__, token))
        for token, number in tokens
        if table.keys() >= set(token)
    }
    return contents | {token["id"]: token["content"].encode() for token in config["added_tokens"]}


class AsNumpy(Protocol):
    """What numpy takes as an array: a tensor, for one."""

    def __array__(self) -> npt.NDArray[Any]: ...


TokenIds: TypeAlias = Iterable[int] | AsNumpy


def given_ids(ids: TokenIds) -> Ids:
    """int32[n] of token ids as a user gives them: a list, an array, a tensor; -1 for what is beyond
    32 bits, which is no token.

    Raises:
        InputError: for anything else.
    """
    try:
        array = np.asarray(ids if hasattr(ids, "__array__") else list(ids))
    except (TypeError, ValueError):
        array = np.empty(0, object)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu") or array.dtype == object:
        raise InputError(
            f"expected the token ids of one text, a list of integers, got {str(ids)[:60]}"
        )
    return np.where((array < 0) | (array > np.iinfo(np.int32).max), -1, array).astype(np.int32)


def byte_level(
    table: TokenBytes, rows: TokenRows, spans: NumberSpans, surfaces: pa.LargeStringArray
) -> pa.LargeStringArray:
    """Texts of byte-level ids, with the surfaces of the numbers.

    Bytes that are not UTF-8, which only ids out of order can give, become U+FFFD.
    """
    given, ids = TextRows.of(surfaces), rows.ids
    known = len(table.offsets) - 1
    table = table._replace(
        offsets=np.append(table.offsets, table.offsets[-1])
    )  # one more, empty token: ids that are none, as a model may give
    if len(ids) and (ids.max() >= known or ids.min() < 0):
        rows = rows._replace(ids=np.where((ids < 0) | (ids >= known), known, ids).astype(np.int32))
    out, out_offsets = _byte_level(table, rows, spans, TokenBytes(given.text, given.offsets))
    texts = pa.LargeStringArray.from_buffers(
        len(rows.offsets) - 1, pa.py_buffer(out_offsets), pa.py_buffer(out)
    )
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        texts = pa.array(
            [value.as_py().decode("utf-8", "replace") for value in texts.cast(pa.large_binary())],
            pa.large_string(),
        )
    return texts


def by_tokenizers(
    engine: TokenizersEngine, rows: TokenRows, spans: NumberSpans, surfaces: pa.LargeStringArray
) -> pa.LargeStringArray:
    """Texts of any tokenizer's ids: decode with a stand-in for each number, then put the numbers
    in.
    """
    texts = []
    stand_ins = np.where(spans.spaced, engine.tokens.spaced, engine.tokens.plain).tolist()
    ids, offsets, spoken, first = rows.ids, rows.offsets.tolist(), surfaces.to_pylist(), 0
    for begin, end in itertools.pairwise(offsets):
        last, at = first, begin + rows.before
        pieces: list[int] = []
        while last < len(spans.positions) and spans.positions[last] < end:
            pieces += [*ids[at : spans.positions[last]].tolist(), stand_ins[last]]
            at = int(spans.stops[last])
            last += 1
        pieces += ids[at : max(at, end - rows.after)].tolist()
        texts.append(
            engine.decode([token for token in pieces if token >= 0], spoken[first:last])
        )  # a model may give ids that are no token
        first = last
    return pa.array(texts, pa.large_string())


@allocating_kernel
def _byte_level(table, rows, spans, surfaces):  # type: ignore[no-untyped-def]
    """(bytes, offsets) of the texts. Two passes over the tokens: sizes, then bytes."""
    out_offsets = np.zeros(rows.offsets.size, np.int64)
    out = np.empty(0, np.uint8)
    for writing in range(2):
        number, filled = 0, np.int64(0)
        for row in range(rows.offsets.size - 1):
            at, end = rows.offsets[row] + rows.before, rows.offsets[row + 1] - rows.after
            while at < end:
                if number < spans.positions.size and spans.positions[number] == at:
                    if spans.spaced[number]:
                        if writing:
                            out[filled] = 0x20
                        filled += 1
                    source, first, last = (
                        surfaces.values,
                        surfaces.offsets[number],
                        surfaces.offsets[number + 1],
                    )
                    at = spans.stops[number]
                    number += 1
                else:
                    source, first, last = (
                        table.values,
                        table.offsets[rows.ids[at]],
                        table.offsets[rows.ids[at] + 1],
                    )
                    at += 1
                if writing:
                    for k in range(first, last):
                        out[filled + k - first] = source[k]
                filled += last - first
            out_offsets[row + 1] = filled
        if not writing:
            out = np.empty(filled, np.uint8)
    return out, out_offsets
