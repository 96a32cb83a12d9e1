"""Token ids back to text, with the numbers put in.

In: token ids, the positions of number tokens and the text of each number. Out: one text per document. Byte-level tokenizers are decoded
here, byte for byte; the others by ``tokenizers``, whose decoders put spaces where they think they belong. The symbols of spelled-out numbers
become token ids here too, so that the two directions stand side by side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays.kernels import allocating_kernel
from numtok.engines.choose import TokenizersEngine, is_byte_level
from numtok.errors import InputError
from numtok.representations import Spelled

Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]


class TokenBytes(NamedTuple):
    """The bytes of every token: token ``t`` is ``values[offsets[t]:offsets[t + 1]]``."""

    values: npt.NDArray[np.uint8]
    offsets: Ints


class Spelling(NamedTuple):
    """The tokens of a spelled-out representation.

    Attributes:
        ids: int32[symbols], the token of each symbol.
        first: the symbols that begin a number that has no frame; empty if there is a frame.
        spaced: int32[len(first)], the second form of their tokens, with the space before; empty if there is one form.
        length: symbols per number; None for as many as follow.
        frame: ids of ``[NUM]``, `` [NUM]`` and ``[/NUM]``; -1 where there is none.
    """

    ids: Ids
    first: range
    spaced: Ids
    length: int | None
    frame: tuple[int, int, int]

    @property
    def framed(self) -> bool:
        return self.frame[0] >= 0


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


def frame_symbols(symbols: npt.NDArray[np.uint16], offsets: Ints, spelling: Spelling) -> tuple[Ids, Ids, Ints]:
    """(flat ids without space, with space, offsets) of spelled-out numbers; the forms differ in each number's first id."""
    if not spelling.framed:
        flat = spelling.ids[symbols]
        with_space = flat.copy()
        if len(spelling.spaced):
            starts = offsets[:-1]
            with_space[starts] = spelling.spaced[symbols[starts].astype(np.int64) - spelling.first.start]
        return flat, with_space, offsets
    plain, spaced, end = spelling.frame
    counts = np.diff(offsets)
    out_offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts + 2)])
    flat = np.full(out_offsets[-1], end, np.int32)
    places = np.arange(len(symbols)) + np.repeat(out_offsets[:-1] - offsets[:-1] + 1, counts)
    flat[places] = spelling.ids[symbols]
    flat[out_offsets[:-1]] = plain
    with_space = flat.copy()
    with_space[out_offsets[:-1]] = spaced
    return flat, with_space, out_offsets


def read_symbols(ids: Ids, positions: Ints, spelling: Spelling) -> Spelled:
    """The inverse of :func:`frame_symbols`: the symbols at each position, up to the first token that does not belong to the number."""
    beyond = int(max(spelling.ids.max(initial=-1), spelling.spaced.max(initial=-1))) + 1  # a model may give any id; the table ends here
    symbol_of = np.full(beyond + 1, -1, np.int32)
    symbol_of[spelling.ids] = np.arange(len(spelling.ids))
    symbol_of[spelling.spaced] = np.arange(spelling.first.start, spelling.first.start + len(spelling.spaced))
    known = np.where((ids < 0) | (ids > beyond), beyond, ids)
    most = len(ids) if spelling.length is None else spelling.length
    symbols, offsets = _read_symbols(known, positions + spelling.framed, symbol_of, most, spelling.first.start, spelling.first.stop)
    return Spelled(symbols, offsets)


def number_stops(ids: Ids, positions: Ints, spelling: Spelling | None) -> Ints:
    """Where each number's tokens end: after its one token, or after its symbols and ``[/NUM]``."""
    if spelling is None:
        return positions + 1
    stops = positions + spelling.framed + np.diff(read_symbols(ids, positions, spelling).offsets)
    if spelling.framed:
        stops += np.append(ids, -1)[np.minimum(stops, len(ids))] == spelling.frame[2]
    return np.maximum(stops, positions + 1)


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
def _read_symbols(ids, starts, symbol_of, most, first, last):  # type: ignore[no-untyped-def]
    """Two passes: sizes, then symbols. A symbol from ``first`` up to ``last`` begins the next number."""
    offsets = np.zeros(starts.size + 1, np.int64)
    symbols = np.empty(0, np.uint16)
    for writing in range(2):
        for i in range(starts.size):
            at, filled = starts[i], offsets[i]
            while 0 <= at < ids.size and at < starts[i] + most:
                symbol = symbol_of[ids[at]]
                if symbol < 0 or (at > starts[i] and first <= symbol < last):
                    break
                if writing:
                    symbols[filled] = symbol
                filled += 1
                at += 1
            offsets[i + 1] = filled
        if not writing:
            symbols = np.empty(offsets[-1], np.uint16)
    return symbols, offsets


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
