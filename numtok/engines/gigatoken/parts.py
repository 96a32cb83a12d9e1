"""A text with holes, in documents: what :mod:`numtok.engines.gigatoken.split` makes and
:mod:`numtok.engines.gigatoken.splice` puts together again.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.bitmarks import BLOCK
from numtok.arrays.kernels import kernel
from numtok.arrays.unicode_classes import flags
from numtok.engines.interface import Ints, Slots

PIECE, NUMBER, COMPLETE, APART = 0, 1, 2, 4  # what is in a hole: see Parts
KIND_BITS = 3  # for these; the entry of a piece stands above them
NUMERIC, WHITE, ASCII_LETTER, LETTER, AFTER_LETTERS = 1, 2, 4, 8, 16  # bits in SplitRules.classes
MISSING_SLOTS = 1 << 10  # for pieces that are noted in one go
_NO_LETTERS = (
    (0, 0x27), (0x28, 0x41), (0x5B, 0x61), (0x7B, 0x80), (0xA0, 0xAA), (0xAB, 0xB2),
    (0x2000, 0x2040), (0x3000, 0x3004), (0xFF01, 0xFF10),
)  # fmt: skip
_scratch = memory.Scratch()

COUNTS = np.dtype(
    [
        ("holes", np.int64),
        ("documents", np.int64),
        ("completes", np.int64),  # texts for the complete tokenizer
        ("missing", np.int64),  # notes of missing pieces
        ("needed", np.int64),  # those of them for which text is given to the complete tokenizer
        ("ids", np.int64),  # of cached pieces
        ("begin", np.int64),  # where in the given text the open piece begins
        ("open", np.int64),  # where in what is left the open document begins
        ("filled", np.int64),  # the end of what is left
    ]
)


class SplitRules(NamedTuple):
    """What decides how text is split."""

    two_forms: bool  # whether a number takes the space before it along
    line_ends: bool  # how white space is cut: see :class:`~numtok.engines.pre_tokenizers.Cuts`
    # bit n says whether a run of n spaces is added tokens to its last one; 0 if no run is an added
    # token
    whole_runs: np.uint64
    # uint8 per code point, of the bits above: category N, white space, letters of ASCII, letters of
    # all that all libraries know, and, not complete, what surely begins a word after a letter: no
    # letter, no mark on one, no apostrophe
    classes: npt.NDArray[np.uint8]


class Given(NamedTuple):
    """Rows ``text[offsets[r]:offsets[r + 1]]``, their slots, and the unsafe places."""

    text: npt.NDArray[np.uint8]
    offsets: Ints
    valid: npt.NDArray[np.bool_]
    slots: Slots
    places: Ints


class Parts(NamedTuple):
    """What is filled."""

    text: npt.NDArray[np.uint8]  # uint8, what is left of the text
    documents: Ints  # int64, where in it each document ends
    # int64[n, 2]: where in it something was taken out, and what: the entry of a known piece, times
    # eight, and PIECE, NUMBER or COMPLETE, for nothing else, a number after that piece, or a text
    # for the complete tokenizer; with APART if a digit stands there, to keep apart what is around
    holes: Ints
    # int64[n, 2]: begin and end in the given text of those for the complete tokenizer
    complete: Ints
    rows: Ints  # int64[rows + 1]: offsets of each row's holes; the last one is where it ends
    spaced: npt.NDArray[np.bool_]  # bool[c], whether a number took the space before it along
    # keys of pieces that the table lacks, each in a slot that its hash tells, so that the last one
    # stays of those with the same; 0 for none
    missing: npt.NDArray[np.uint64]
    counts: Any  # the one record of :data:`COUNTS`


def rules_of(two_forms: bool, line_ends: bool, whole_runs: int) -> SplitRules:
    """The rules with their table."""
    return SplitRules(two_forms, line_ends, np.uint64(whole_runs), _classes())


@functools.cache
def _classes() -> npt.NDArray[np.uint8]:
    classes: npt.NDArray[np.uint8] = (
        flags("number") * np.uint8(NUMERIC)
        | flags("space") * np.uint8(WHITE)
        | flags("old_letter") * np.uint8(LETTER)
    )
    classes[:0x80] |= (classes[:0x80] & LETTER != 0) * np.uint8(ASCII_LETTER)
    for first, last in _NO_LETTERS:
        classes[first:last] |= AFTER_LETTERS
    return classes


def empty_parts(rows: int, slots: Slots, places: Ints, size: int) -> Parts:
    """Room for the parts of so many rows of ``size`` bytes.

    It is used again by the next call, but for ``spaced``.
    """
    count = len(slots.document)
    # in every row a run of spaces may begin that is marked in the row before
    runs = len(places) + rows
    # and each piece may end so that it goes to the complete tokenizer
    apart = runs + count + rows
    return Parts(
        # a digit may stand after a row of which nothing was taken out; it is copied in blocks
        _scratch.empty("text", size + rows + BLOCK, np.uint8),
        # a hole may end one with what is after it
        _scratch.empty("documents", count + rows + apart + 1, np.int64),
        _scratch.empty("holes", 2 * (count + rows + apart), np.int64).reshape(-1, 2),
        _scratch.empty("complete", 2 * apart, np.int64).reshape(-1, 2),
        _scratch.empty("rows", rows + 1, np.int64),
        memory.empty(count, np.bool_),
        np.zeros(MISSING_SLOTS, np.uint64),
        np.zeros(1, COUNTS),
    )


def filled(parts: Parts) -> Parts:
    """The parts without the room that is left."""
    counts = parts.counts[0]
    return parts._replace(
        text=parts.text[: counts["filled"]],
        documents=parts.documents[: counts["documents"]],
        holes=parts.holes[: counts["holes"]],
        complete=parts.complete[: counts["completes"]],
        missing=parts.missing[parts.missing != 0],
    )


def closed_up(text: npt.NDArray[np.uint8], documents: Ints) -> tuple[npt.NDArray[np.uint8], Ints]:
    """(buffer, offsets) of documents in ``text``, int64[n, 2], copied only if it must be."""
    starts, stops = documents[:, 0], documents[:, 1]
    if len(documents) and starts[0] == 0 and np.array_equal(starts[1:], stops[:-1]):
        return text[: stops[-1]], np.append(starts, stops[-1])
    offsets = memory.offsets_of(stops - starts)
    buffer = _scratch.empty("closed_up", int(offsets[-1]), np.uint8)
    _copy(text, documents, offsets, buffer)
    return buffer, offsets


@kernel
def _copy(text, documents, offsets, out):  # type: ignore[no-untyped-def]
    for k in range(documents.shape[0]):
        there = out[offsets[k] : offsets[k + 1]]
        here = text[documents[k, 0] : documents[k, 1]]
        for at in range(there.size):
            there[at] = here[at]
