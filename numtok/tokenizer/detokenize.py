"""Token ids back to text, with the numbers put in.

In: token ids, the positions of number tokens and the text of each number. Out: one text per document. Byte-level tokenizers are decoded
here, byte for byte; the others by ``tokenizers``, whose decoders put spaces where they think they belong.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays.kernels import allocating_kernel
from numtok.engines.choose import TokenizersEngine, is_byte_level
from numtok.errors import InputError

Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]


class TokenBytes(NamedTuple):
    """The bytes of every token: token ``t`` is ``values[offsets[t]:offsets[t + 1]]``."""

    values: npt.NDArray[np.uint8]
    offsets: Ints


def is_lossless(config: dict[str, Any]) -> bool:
    """Whether the bytes of the tokens are the bytes of the text: byte-level BPE, encoded and decoded."""
    decoder = config.get("decoder") or {}
    return is_byte_level(config) and decoder.get("type") == "ByteLevel"


def byte_of_character() -> dict[str, int]:
    """GPT-2's printable stand-ins for bytes: printable Latin-1 characters are themselves, the other bytes follow from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    return {chr(byte): byte for byte in printable} | {chr(256 + k): byte for k, byte in enumerate(others)}


def token_bytes(config: dict[str, Any]) -> TokenBytes:
    """The bytes of every token of a byte-level tokenizer; ids without a token are empty."""
    table = byte_of_character()
    contents = {
        number: bytes(table[c] for c in token) for token, number in config["model"]["vocab"].items() if all(c in table for c in token)
    }
    contents |= {token["id"]: token["content"].encode() for token in config["added_tokens"]}
    lengths = np.zeros(max(contents) + 2, np.int64)
    for number, content in contents.items():
        lengths[number + 1] = len(content)
    values = b"".join(contents.get(number, b"") for number in range(max(contents) + 1))
    return TokenBytes(np.frombuffer(values, np.uint8), np.cumsum(lengths))


def given_ids(ids: Any) -> Ids:
    """int32[n] of token ids as a user gives them: a list, an array, a tensor; -1 for what is beyond 32 bits, which is no token.

    Raises:
        InputError: for anything else.
    """
    try:
        array = np.asarray(ids if hasattr(ids, "__array__") else list(ids))
    except (TypeError, ValueError):
        array = np.empty(0, object)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu") or array.dtype == object:
        raise InputError(f"expected the token ids of one text, a list of integers, got {str(ids)[:60]}")
    return np.where((array < 0) | (array > np.iinfo(np.int32).max), -1, array).astype(np.int32)


def byte_level(
    table: TokenBytes,
    ids: Ids,
    offsets: Ints,
    positions: Ints,
    stops: Ints,
    surfaces: pa.LargeStringArray,
    spaced: Mask,
    before: int,
    after: int,
) -> pa.LargeStringArray:
    """Texts of byte-level ids; ``spaced`` says which numbers have a space before them.

    Bytes that are not UTF-8, which only ids out of order can give, become U+FFFD.
    """
    text, text_offsets = _buffers(surfaces)
    known = len(table.offsets) - 1
    starts = np.append(table.offsets, table.offsets[-1])  # ids that are no token, which a model may give, are one more, empty one
    if len(ids) and (ids.max() >= known or ids.min() < 0):
        ids = np.where((ids < 0) | (ids >= known), known, ids).astype(np.int32)
    out, out_offsets = _byte_level(table.values, starts, ids, offsets, positions, stops, text, text_offsets, spaced, before, after)
    texts = pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(out_offsets), pa.py_buffer(out))
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        texts = pa.array([value.as_py().decode("utf-8", "replace") for value in texts.cast(pa.large_binary())], pa.large_string())
    return texts


def by_tokenizers(
    engine: TokenizersEngine,
    ids: Ids,
    offsets: Ints,
    positions: Ints,
    stops: Ints,
    surfaces: pa.LargeStringArray,
    spaced: Mask,
    before: int,
    after: int,
) -> pa.LargeStringArray:
    """Texts of any tokenizer's ids: decode with a stand-in for each number, then put the numbers in."""
    texts = []
    stand_ins = np.where(spaced, engine.tokens.spaced, engine.tokens.plain).tolist()
    first = 0
    spoken = surfaces.to_pylist()
    for row in range(len(offsets) - 1):
        last = first
        pieces: list[int] = []
        at = int(offsets[row]) + before
        while last < len(positions) and positions[last] < offsets[row + 1]:
            pieces += [*ids[at : positions[last]].tolist(), stand_ins[last]]
            at = int(stops[last])
            last += 1
        pieces += ids[at : max(at, int(offsets[row + 1]) - after)].tolist()
        texts.append(engine.decode([token for token in pieces if token >= 0], spoken[first:last]))  # a model may give ids that are no token
        first = last
    return pa.array(texts, pa.large_string())


def _buffers(texts: pa.LargeStringArray) -> tuple[npt.NDArray[np.uint8], Ints]:
    from numtok.arrays.text_rows import TextRows

    rows = TextRows.of(texts)
    return rows.text, rows.offsets


@allocating_kernel
def _byte_level(values, starts, ids, offsets, positions, stops, text, text_offsets, spaced, before, after):  # type: ignore[no-untyped-def]
    """Two passes over the tokens: sizes, then bytes."""
    rows = offsets.size - 1
    out_offsets = np.zeros(rows + 1, np.int64)
    out = np.empty(0, np.uint8)
    for writing in range(2):
        number, filled = 0, np.int64(0)
        for row in range(rows):
            at, end = offsets[row] + before, offsets[row + 1] - after
            while at < end:
                if number < positions.size and positions[number] == at:
                    if spaced[number]:
                        if writing:
                            out[filled] = 0x20
                        filled += 1
                    first, last = text_offsets[number], text_offsets[number + 1]
                    at = stops[number]
                    number += 1
                    source = text
                else:
                    first, last = starts[ids[at]], starts[ids[at] + 1]
                    at += 1
                    source = values
                if writing:
                    for k in range(first, last):
                        out[filled + k - first] = source[k]
                filled += last - first
            out_offsets[row + 1] = filled
        if not writing:
            out = np.empty(filled, np.uint8)
    return out, out_offsets
