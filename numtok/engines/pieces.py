"""The safe way: every piece of text between two numbers is a document of its own. Right for any
byte-level pre-tokenizer, as they are encoded independently.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.bitmarks import ONE
from numtok.arrays.kernels import kernel, merged_kernel
from numtok.arrays.text_rows import TextRows
from numtok.engines.interface import Encoded, Ids, Ints, Slots

SPACE = 0x20


class Tokens(NamedTuple):
    """Ids of documents: document ``d`` has ``ids[offsets[d]:offsets[d + 1]]``."""

    ids: npt.NDArray[np.uint32]
    offsets: Ints


class Forms(NamedTuple):
    """The ids of every number in its two forms, without and with the space: number ``i`` has
    ``[offsets[i]:offsets[i + 1]]`` of either.
    """

    plain: Ids
    spaced: Ids
    offsets: Ints


class Spliced(NamedTuple):
    """What is filled: ids, the documents' offsets, and where each number's ids begin."""

    ids: Ids
    offsets: Ints
    positions: Ints


def forms_of(slots: Slots) -> Forms:
    """The ids to put into the slots."""
    return Forms(slots.plain, slots.spaced, slots.offsets)


class Pieces(NamedTuple):
    """Piece ``p`` is ``text[documents[p, 0]:documents[p, 1]]``; row ``r`` has one more than
    numbers, from ``per_document[r] + r`` on.

    ``spaced``: bool[c], whether the slot took the space before it along.
    """

    text: npt.NDArray[np.uint8]
    documents: Ints
    spaced: npt.NDArray[np.bool_]


def pieces_between(rows: TextRows, slots: Slots, two_forms: bool) -> Pieces:
    """The pieces of the rows; a null row has an empty one."""
    count = len(slots.document) + len(rows)
    first, last = int(rows.offsets[0]), int(rows.offsets[-1])
    pieces = Pieces(
        rows.text[first:last],
        memory.empty(2 * count, np.int64).reshape(-1, 2),
        memory.empty(len(slots.document), np.bool_),
    )
    numbers = slots.per_document, slots.start, slots.stop
    _pieces(rows.offsets - first, rows.valid, *numbers, two_forms, pieces)
    return pieces


def put_together(pieces: Pieces, tokens: Tokens, slots: Slots) -> Encoded:
    """The ids of whole documents from those of the pieces."""
    rows = len(slots.per_document) - 1
    count = len(slots.document)
    ids = memory.empty(len(tokens.ids) + len(slots.plain), np.int32)
    out = Spliced(ids, memory.empty(rows + 1, np.int64), memory.empty(count, np.int64))
    filled = _put_together(slots.per_document, tokens, pieces.spaced, forms_of(slots), out)
    return Encoded(out.ids[:filled], out.offsets, out.positions, pieces.spaced)


@kernel
def _pieces(offsets, valid, per_document, start, stop, two_forms, out):  # type: ignore[no-untyped-def]
    for row in range(offsets.size - 1):
        begin = offsets[row]
        end = offsets[row + 1] if valid[row] else begin
        for number in range(per_document[row], per_document[row + 1]):
            piece_end = offsets[row] + start[number]
            spaced = two_forms and piece_end > begin and out.text[piece_end - 1] == SPACE
            out.spaced[number] = spaced
            out.documents[row + number, 0], out.documents[row + number, 1] = (
                begin,
                piece_end - 1 if spaced else piece_end,
            )
            begin = offsets[row] + stop[number]
        last = row + per_document[row + 1]
        out.documents[last, 0], out.documents[last, 1] = begin, end


@kernel
def _put_together(per_document, tokens, spaced, forms, out):  # type: ignore[no-untyped-def]
    """The number of ids."""
    filled = np.uint64(0)
    out.offsets[0] = 0
    for row in range(per_document.size - 1):
        for number in range(per_document[row], per_document[row + 1]):
            filled = copy_tokens(tokens, row + number, out, filled)
            filled = put_number(forms, spaced[number], number, out, filled)
        filled = copy_tokens(tokens, row + per_document[row + 1], out, filled)
        out.offsets[row + 1] = filled
    return np.int64(filled)


@merged_kernel
def copy_tokens(tokens, which, out, filled):  # type: ignore[no-untyped-def]
    """Append the ids of one document; returns the new fill."""
    for k in range(tokens.offsets[which], tokens.offsets[which + 1]):
        out.ids[filled] = tokens.ids[k]
        filled += ONE
    return filled


@merged_kernel
def put_number(forms, spaced, number, out, filled):  # type: ignore[no-untyped-def]
    """Append one number's ids; returns the new fill."""
    out.positions[number] = filled
    if forms.plain.size == out.positions.size:  # every number is one token
        out.ids[filled] = forms.spaced[number] if spaced else forms.plain[number]
        return filled + ONE
    for k in range(forms.offsets[number], forms.offsets[number + 1]):
        out.ids[filled] = forms.spaced[k] if spaced else forms.plain[k]
        filled += ONE
    return filled
