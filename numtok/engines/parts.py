"""A text with holes, in documents: what :mod:`numtok.engines.split` makes and :mod:`numtok.engines.splice` puts together again.

In: rows of text, the slots of numbers, and the delicate places. Out: empty :class:`Parts` of the right size, and the :class:`Rules` of a tokenizer.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.kernels import kernel
from numtok.arrays.text_rows import TextRows
from numtok.arrays.unicode_classes import flags
from numtok.engines.interface import Ints, Slots

SPACE = 0x20
NUMBER, COMPLETE, WHITE_NUMBER = -1, -2, -3  # kinds of holes: see Parts
NUMERIC, WHITE = 1, 2  # bits in Rules.classes
MOST_MISSING = 256  # runs of white space that are noted in one go
HOLES, DOCUMENTS, MISSING, WHITE_BYTES, CUT, OPEN = range(6)  # in Parts.counts
_scratch = memory.Scratch()


class Rules(NamedTuple):
    """What decides how text is split.

    Attributes:
        two_forms: whether a number takes the space before it along.
        line_ends: how white space is cut: see :class:`~numtok.engines.pre_tokenizers.Cuts`.
        whole_runs: bit n says whether a run of n spaces is added tokens to its last one; 0 if no run is an added token.
        classes: uint8 per code point, of the bits above: category N, white space.
    """

    two_forms: bool
    line_ends: bool
    whole_runs: np.uint64
    classes: npt.NDArray[np.uint8]


class Given(NamedTuple):
    """Rows ``text[offsets[r]:offsets[r + 1]]``, their numbers, and the delicate places. ``text`` is written to."""

    text: npt.NDArray[np.uint8]
    offsets: Ints
    valid: npt.NDArray[np.bool_]
    per_document: Ints
    start: Ints
    stop: Ints
    places: Ints


class Parts(NamedTuple):
    """What is filled.

    Attributes:
        holes: int64[n, 3]: begin and end in the text of what is taken out of it, and its kind: NUMBER; COMPLETE, for the complete tokenizer; from 0 on, white
            space, by its place in the table; or WHITE_NUMBER less such a place, white space and the number behind it.
        documents: int64[n, 2]: begin and end of all the rest, for the tokenizer without added tokens and normaliser.
        rows: int64[rows + 1, 2]: offsets of each row's holes and documents.
        spaced: bool[c], whether a number took the space before it along.
        missing: keys of white space that the table lacks.
        counts: int64[6]: of holes, documents, missing and bytes of white space, and how far the row being split is settled (CUT) and in documents (OPEN).
    """

    holes: Ints
    documents: Ints
    rows: Ints
    spaced: npt.NDArray[np.bool_]
    missing: npt.NDArray[np.uint64]
    counts: Ints


def rules_of(two_forms: bool, line_ends: bool, whole_runs: int) -> Rules:
    """The rules with their table."""
    return Rules(two_forms, line_ends, np.uint64(whole_runs), _classes())


@functools.cache
def _classes() -> npt.NDArray[np.uint8]:
    return flags("number") * np.uint8(NUMERIC) | flags("space") * np.uint8(WHITE)


def own_text(rows: TextRows) -> npt.NDArray[np.uint8]:
    """A copy of the rows' text, from the first row on, to be written to until the next call."""
    first, last = int(rows.offsets[0]), int(rows.offsets[-1])
    text = _scratch.empty("text", last - first, np.uint8)
    text[:] = rows.text[first:last]
    return text


def empty_parts(rows: int, slots: Slots, places: Ints) -> Parts:
    """Room for the parts of so many rows. It is used again by the next call, but for ``spaced``."""
    count = len(slots.document)
    most = count + len(places) + rows  # every number, every place and every row makes one hole and ends two documents, at the most
    return Parts(
        _scratch.empty("holes", 3 * most, np.int64).reshape(-1, 3),
        _scratch.empty("documents", 4 * most, np.int64).reshape(-1, 2),
        _scratch.empty("rows", 2 * (rows + 1), np.int64).reshape(-1, 2),
        memory.empty(count, np.bool_),
        np.empty(MOST_MISSING, np.uint64),
        np.zeros(6, np.int64),
    )


def filled(parts: Parts) -> Parts:
    """The parts without the room that is left."""
    counts = parts.counts
    holes, documents, missing = parts.holes[: counts[HOLES]], parts.documents[: counts[DOCUMENTS]], parts.missing[: counts[MISSING]]
    return parts._replace(holes=holes, documents=documents, missing=missing)


def closed_up(text: npt.NDArray[np.uint8], documents: Ints) -> tuple[npt.NDArray[np.uint8], Ints]:
    """(buffer, offsets) of documents in ``text``, int64[n, 2], copied only if there is something between them."""
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
