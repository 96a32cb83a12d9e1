"""Chunks of text between numbers, and the ids of whole rows from those of their chunks and numbers.

In: rows and slots. Out: ``Chunks``, spans of the text, and their text with a mark before each;
then, from the tokens of each, ``Encoded``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.bitmarks import ONE
from numtok.arrays.kernels import inlined_kernel, kernel
from numtok.arrays.text_rows import TextRows
from numtok.engines.engine import Encoded, Ints, Mask, Slots

SPACE = 0x20
# no bytes of UTF-8: marks before the first chunk of a row, and before one behind a number
BEGIN, BEHIND = 0xFE, 0xFF


class Tokens(NamedTuple):
    """Ids of documents: document ``d`` has ``ids[offsets[d]:offsets[d + 1]]``."""

    ids: npt.NDArray[np.uint32]
    offsets: Ints


class Chunks(NamedTuple):
    """Chunk ``k`` is ``text[spans[k, 0]:spans[k, 1]]``; row ``r`` has one more than numbers, from
    ``per_document[r] + r`` on.

    ``begins``: whether a chunk begins a row. ``spaced``: bool[c], whether the slot took the space
    before it along.
    """

    text: npt.NDArray[np.uint8]
    spans: Ints
    begins: Mask
    spaced: Mask


class Prefix(NamedTuple):
    """Where SentencePiece puts a space before text that has none."""

    row: bool = False  # before a row
    number: bool = False  # before the text behind a number
    always: bool = False  # before a space, too
    as_text: bool = False  # whether numbers are text to the tokenizer, and may begin a row


def chunks_between(rows: TextRows, slots: Slots, two_forms: bool) -> Chunks:
    """Return the chunks of the rows; a null row has an empty one."""
    count = len(slots.start) + len(rows)
    first, last = int(rows.offsets[0]), int(rows.offsets[-1])
    chunks = Chunks(
        rows.text[first:last],
        memory.empty(2 * count, np.int64).reshape(-1, 2),
        np.zeros(count, np.bool_),
        memory.empty(len(slots.start), np.bool_),
    )
    _chunks(rows.offsets - first, rows.valid, slots, two_forms, chunks)
    return chunks


def marked(
    chunks: Chunks, prefix: Prefix, begin: int = BEGIN, behind: int = BEHIND
) -> npt.NDArray[np.uint8]:
    """Return the text of the chunks, each behind its mark, ``begin`` or ``behind``, and the space
    that the tokenizer would put there.
    """
    out = memory.empty(len(chunks.text) + 2 * len(chunks.spans), np.uint8)
    return out[: _mark(chunks, prefix, begin, behind, out)]


def joined(text: npt.NDArray[np.uint8], spans: Ints) -> tuple[npt.NDArray[np.uint8], Ints]:
    """Return (text, offsets) of the spans, int64[n, 2], one after another."""
    offsets = memory.offsets_of(spans[:, 1] - spans[:, 0])
    out = memory.empty(int(offsets[-1]), np.uint8)
    _join(text, spans, offsets, out)
    return out, offsets


def interleave(tokens: Tokens, spaced: Mask, slots: Slots) -> Encoded:
    """Return the ids of whole rows from those of the chunks."""
    out = Encoded.empty(len(tokens.ids) + len(slots.unspaced), len(slots.per_document) - 1, spaced)
    return out._replace(ids=out.ids[: _interleave(tokens, slots, out)])


@kernel
def _join(text, spans, offsets, out):  # type: ignore[no-untyped-def]
    for k in range(spans.shape[0]):
        there = out[offsets[k] : offsets[k + 1]]
        here = text[spans[k, 0] : spans[k, 1]]
        for at in range(there.size):
            there[at] = here[at]


@kernel
def _chunks(offsets, valid, slots, two_forms, out):  # type: ignore[no-untyped-def]
    """Fill ``out``, the chunks of all rows."""
    for row in range(offsets.size - 1):
        begin = offsets[row]
        end = offsets[row + 1] if valid[row] else begin
        out.begins[row + slots.per_document[row]] = True
        for number in range(slots.per_document[row], slots.per_document[row + 1]):
            chunk_end = offsets[row] + slots.start[number]
            spaced = two_forms and chunk_end > begin and out.text[chunk_end - 1] == SPACE
            out.spaced[number] = spaced
            out.spans[row + number, 0] = begin
            out.spans[row + number, 1] = chunk_end - 1 if spaced else chunk_end
            begin = offsets[row] + slots.stop[number]
        last = row + slots.per_document[row + 1]
        out.spans[last, 0], out.spans[last, 1] = begin, end


@kernel
def _mark(chunks, prefix, begin, behind, out):  # type: ignore[no-untyped-def]
    """Fill in the marked text; returns its bytes."""
    text, begins, filled = chunks.text, chunks.begins, 0
    for chunk in range(begins.size):
        first, last = chunks.spans[chunk, 0], chunks.spans[chunk, 1]
        out[filled] = begin if begins[chunk] else behind
        filled += 1
        has_text = first < last
        if prefix.as_text and begins[chunk]:  # a number may be what follows
            has_text = has_text or (chunk + 1 < begins.size and not begins[chunk + 1])
        has_prefix = has_text and (prefix.row if begins[chunk] else prefix.number)
        if has_prefix and (prefix.always or not _begins_with_space(text[first:last])):
            out[filled] = SPACE
            filled += 1
        for k in range(first, last):
            out[filled] = text[k]
            filled += 1
    return filled


@inlined_kernel
def _begins_with_space(text):  # type: ignore[no-untyped-def]
    """Whether there is a space, or what SentencePiece writes for one, at the front of a chunk."""
    is_mark = text.size > 2 and text[0] == 0xE2 and text[1] == 0x96 and text[2] == 0x81
    return is_mark or (text.size > 0 and text[0] == SPACE)


@kernel
def _interleave(tokens, slots, out):  # type: ignore[no-untyped-def]
    """Fill in the ids; returns their number."""
    filled = np.uint64(0)
    out.offsets[0] = 0
    for row in range(slots.per_document.size - 1):
        for number in range(slots.per_document[row], slots.per_document[row + 1]):
            filled = copy_tokens(tokens, row + number, out, filled)
            filled = put_number(slots, number, out, filled)
        filled = copy_tokens(tokens, row + slots.per_document[row + 1], out, filled)
        out.offsets[row + 1] = filled
    return np.int64(filled)


@inlined_kernel
def copy_tokens(tokens, which, out, filled):  # type: ignore[no-untyped-def]
    """Append the ids of one document; returns the new fill."""
    for k in range(tokens.offsets[which], tokens.offsets[which + 1]):
        out.ids[filled] = tokens.ids[k]
        filled += ONE
    return filled


@inlined_kernel
def put_number(slots, number, out, filled):  # type: ignore[no-untyped-def]
    """Append one number's ids; returns the new fill."""
    spaced = out.spaced[number]
    out.positions[number] = filled
    if slots.unspaced.size == out.positions.size:  # every number is one token
        out.ids[filled] = slots.spaced[number] if spaced else slots.unspaced[number]
        return filled + ONE
    for k in range(slots.offsets[number], slots.offsets[number + 1]):
        out.ids[filled] = slots.spaced[k] if spaced else slots.unspaced[k]
        filled += ONE
    return filled
