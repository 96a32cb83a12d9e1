"""The fast way: text without its numbers stays in one piece, in as few documents as possible.

Every number separates the text around it: the pieces between numbers are encoded independently of
    each other. Handing each piece over as a document of its own would be right
    (:mod:`numtok.engines.pieces`), but the calls cost more than the encoding. Where the
    pre-tokenizer is a known one (:mod:`numtok.engines.pre_tokenizers`), less is handed over, in one
    text with *holes*, where something was taken out that is put back afterwards:

- A *number*, with the space that its token takes along.
- A short *piece* before a number or the end of a row (a comma, a line end and tabs), or the end of
  a long one from its last letter on. Its ids come from a table
  (:mod:`numtok.engines.gigatoken.piece_cache`).
- *White space* with a run of spaces that is an added token, by the same table.
- An *unsafe place*: an added token, or characters that Unicode normalisation changes. From the
  space before the word it stands in to the space after it, it is encoded by the complete tokenizer;
  all other text is encoded by one without added tokens and normaliser.

What is left on both sides of a hole is closed up, over the ends of rows too, as the pre-tokenizer
cuts there by itself: after a letter, before what joins no letters. Where it does not, a digit is
put between, which nothing joins, but for category N and white space before it (no line ends, if
pieces end with them). A piece that ends in these is therefore an unsafe place too, in a long text;
in a short one, or where category N follows, the text is cut into two documents.

In: rows of text, the slots of numbers, and the unsafe places
    (:mod:`numtok.engines.gigatoken.unsafe_spans`). Out: ``Parts``, which ``splice`` puts together
    again when their documents are encoded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays.bitmarks import BLOCK, ONE, copy_block
from numtok.arrays.kernels import inner_kernel, kernel, merged_kernel
from numtok.arrays.text_rows import TextRows
from numtok.arrays.utf8 import class_at, class_before
from numtok.engines.gigatoken.encoders import SMALL_TEXT
from numtok.engines.gigatoken.parts import (
    AFTER_LETTERS,
    APART,
    ASCII_LETTER,
    COMPLETE,
    KIND_BITS,
    LETTER,
    NUMBER,
    NUMERIC,
    PIECE,
    WHITE,
    Given,
    Parts,
    SplitRules,
    empty_parts,
    filled,
)
from numtok.engines.gigatoken.piece_cache import (
    ASCII,
    EMPTY,
    LONGEST,
    MOST_SPACES,
    UNKNOWN,
    PieceCache,
    bytes_before,
    cached_end,
    ends_openly,
    ends_piece,
    key_of,
    look_up,
)
from numtok.engines.interface import Ints, Slots
from numtok.engines.pieces import SPACE

_ZERO = 0x30
_NEVER = np.uint64(0xFFFFFFFFFFFFFFFF)
_NONE, _BLOCK = np.uint64(0), np.uint64(BLOCK)


class Tools(NamedTuple):
    """What the steps work with."""

    given: npt.NDArray[np.uint8]
    classes: npt.NDArray[np.uint8]
    line_ends: bool
    whole_runs: np.uint64
    one_text: bool
    known: PieceCache
    out: Parts


def split(
    text: npt.NDArray[np.uint8],
    rows: TextRows,
    slots: Slots,
    places: Ints,
    rules: SplitRules,
    known: PieceCache,
) -> Parts:
    """The parts of the rows, whose text is ``text``.

    They are good until the next call, but for ``spaced``.
    """
    given = Given(text, rows.offsets - rows.offsets[0], rows.valid, slots, places)
    out = empty_parts(len(rows), slots, places, len(text))
    one_text = len(text) > SMALL_TEXT  # it is worth what that costs
    cuts = rules.classes, rules.line_ends, rules.whole_runs
    _split(given, Tools(text, *cuts, one_text, known, out), rules.two_forms)
    return filled(out)


@kernel
def _split(given, tools, two_forms):  # type: ignore[no-untyped-def]
    text, out, counts, places, place = given.text, tools.out, tools.out.counts[0], given.places, 0
    out.rows[0] = 0
    to, ids, hole = _NONE, np.int64(0), 0  # how much there is: text, known ids and holes
    for row in range(given.valid.size):
        # Unsigned positions: Numba then leaves out the check for negative ones, in the one loop
        # that sees every number.
        base, end = np.uint64(given.offsets[row]), np.uint64(given.offsets[row + 1])
        last = given.slots.per_document[row + 1]
        begin = base
        place, following = _next_place(places, place, base)
        spaces = base + ONE < end and text[base] == SPACE and text[base + ONE] == SPACE
        if tools.whole_runs and spaces:
            following = base  # a run is marked where it begins, which may be in the row before
        numbers = last + 1 - given.slots.per_document[row] if given.valid[row] else 0
        for number in range(last + 1 - numbers, last + 1):
            stop = piece_end = end
            if number < last:
                piece_end, stop = _number_at(given, out.spaced, number, base, begin, two_forms)
            count, entry = cached_end(tools, begin, piece_end)
            if following < piece_end:
                counts.begin, counts.filled, counts.holes = np.int64(begin), np.int64(to), hole
                place, count, entry = _take_out_all(
                    tools, places, place, following, piece_end, count, entry
                )
                begin, to, hole = np.uint64(counts.begin), np.uint64(counts.filled), counts.holes
                place, following = _next_place(places, place, piece_end)
            left = piece_end - count
            if tools.one_text and begin < left and ends_openly(tools, begin, left):
                counts.needed += entry == UNKNOWN
                counts.begin, counts.filled, counts.holes = np.int64(begin), np.int64(to), hole
                begin = np.uint64(_set_apart(tools, np.int64(left - ONE), np.int64(left)))
                to, hole = np.uint64(counts.filled), counts.holes
            if begin < left:
                to = _append(tools, begin, left, to, hole)
            entry = max(entry, np.int64(EMPTY))
            what = NUMBER if number < last else PIECE
            out.holes[hole, 0], out.holes[hole, 1] = to, entry << KIND_BITS | what
            hole += 1
            ids += tools.known.counts[entry]
            begin = stop
            if following < stop:  # in the number itself, whose digits libraries may not all know
                place, following = _next_place(places, place, stop)
        out.rows[row + 1] = hole
    _end_document(tools, to)
    counts.filled, counts.holes = np.int64(to), hole
    counts.ids += ids


@merged_kernel
def _next_place(places, place, at):  # type: ignore[no-untyped-def]
    """(number of the first place from ``at`` on, that place)."""
    while place < places.size and np.uint64(places[place]) < at:
        place += 1
    return place, (np.uint64(places[place]) if place < places.size else _NEVER)


@merged_kernel
def _number_at(given, spaced, number, base, begin, two_forms):  # type: ignore[no-untyped-def]
    """(where the piece before the number ends, where the number does)."""
    start = base + np.uint64(given.slots.start[number])
    space = (start > begin) & two_forms & (given.text[start - np.uint64(start > begin)] == SPACE)
    spaced[number] = space
    return start - np.uint64(space), base + np.uint64(given.slots.stop[number])


@merged_kernel
def _take_out_all(tools, places, place, following, end, count, entry):  # type: ignore[no-untyped-def]
    """Take out the unsafe places from ``following`` on in the piece that ends at ``end``, but for
    those in its known end of ``count`` bytes; (number of the next place, bytes and entry of the
    known end of what is left).
    """
    counts = tools.out.counts[0]
    while True:
        while following < end - count:
            passed = _take_out(tools, np.int64(following), np.int64(end))
            place, following = _next_place(places, place, np.uint64(passed))
        begin = np.uint64(counts.begin)
        if begin <= end - count:
            return place, count, entry
        count, entry = cached_end(tools, begin, end)


@merged_kernel
def _append(tools, first, last, to, hole):  # type: ignore[no-untyped-def]
    """Append [first, last) after ``to`` and the holes that are there; the new end."""
    text, out = tools.given, tools.out
    if to > np.uint64(out.counts[0].open) and not (
        tools.classes[out.text[to - ONE]] & ASCII_LETTER
        and text[first] < ASCII
        and tools.classes[text[first]] & AFTER_LETTERS
    ):
        to = _keep_apart(tools, np.int64(first), np.int64(last), to, hole)
    length = last - first
    if last + _BLOCK > np.uint64(text.size):
        for k in range(length):
            out.text[to + k] = text[first + k]
    else:
        for k in range(_NONE, length, _BLOCK):
            copy_block(text, first + k, out.text, to + k)
    return to + length


@merged_kernel
def _keep_apart(tools, first, stop, to, hole):  # type: ignore[no-untyped-def]
    """Between what ends at ``to`` and what begins at ``first``, if need be a digit in the hole that
    is there, or an end of the document; the new end.
    """
    out = tools.out
    before, _ = class_before(out.text, np.int64(to), out.counts[0].open, tools.classes)
    after, _ = class_at(tools.given, first, stop, tools.classes)
    if before & LETTER and after & (AFTER_LETTERS | NUMERIC):
        return to
    joins = before & (NUMERIC | WHITE) and not ends_piece(tools, out.text[to - ONE])
    if joins or after & NUMERIC:
        _end_document(tools, to)
        return to
    out.text[to] = _ZERO
    out.holes[hole - 1, 1] |= APART
    return to + ONE


@merged_kernel
def _end_document(tools, to):  # type: ignore[no-untyped-def]
    """End the open document at ``to``, where the next one begins."""
    counts = tools.out.counts[0]
    if np.int64(to) > counts.open:
        tools.out.documents[counts.documents] = to
        counts.documents += 1
        counts.open = np.int64(to)


@merged_kernel
def _take_out(tools, at, end):  # type: ignore[no-untyped-def]
    """A hole for the unsafe place ``at`` in a piece; up to where the piece is done."""
    text, counts = tools.given, tools.out.counts[0]
    if text[at] == SPACE:
        stop = at
        while stop < end and text[stop] == SPACE:
            stop += 1
        if stop - at < 2:  # the other one belongs to the number
            return stop
        start = _white_begin(tools, at)
        whole = stop == end or (stop - at < 64 and (tools.whole_runs >> np.uint64(stop - at)) & ONE)
        if whole and start >= 0 and at - start <= LONGEST and stop - at <= MOST_SPACES and at >= 8:
            word = bytes_before(text, np.uint64(at))
            entry = look_up(tools, key_of(word, np.uint64(at - start), np.uint64(stop - at)))
            if entry >= 0:
                _put_hole(tools, counts.begin, start, entry << KIND_BITS | PIECE)
                counts.ids += tools.known.counts[entry]
                counts.begin = stop
                return stop
            counts.needed += entry == UNKNOWN
    return _set_apart(tools, at, end)


@inner_kernel
def _set_apart(tools, at, end):  # type: ignore[no-untyped-def]
    """A hole for the complete tokenizer, from the space before ``at`` to the space after it, in a
    piece that ends at ``end``; up to where it reaches.
    """
    text, classes, out, counts = tools.given, tools.classes, tools.out, tools.out.counts[0]
    begin, first, last = counts.begin, at, at + 1
    while first > begin and (
        text[first] != SPACE or class_before(text, first, begin, classes)[0] & WHITE
    ):
        first -= 1
    while last < end and (
        text[last] != SPACE or class_before(text, last, begin, classes)[0] & WHITE
    ):
        last += 1
    _put_hole(tools, begin, first, COMPLETE)
    out.complete[counts.completes, 0], out.complete[counts.completes, 1] = first, last
    counts.completes += 1
    counts.begin = last
    return last


@merged_kernel
def _put_hole(tools, begin, first, what):  # type: ignore[no-untyped-def]
    """Append what is before a hole at ``first``, and the hole."""
    out, counts = tools.out, tools.out.counts[0]
    if begin < first:
        to = np.uint64(counts.filled)
        to = _append(tools, np.uint64(begin), np.uint64(first), to, counts.holes)
        counts.filled = np.int64(to)
    hole = counts.holes
    out.holes[hole, 0], out.holes[hole, 1] = counts.filled, what
    counts.holes = hole + 1


@merged_kernel
def _white_begin(tools, at):  # type: ignore[no-untyped-def]
    """Where the ASCII white space that ends at ``at`` begins, as far as it is cut off from what
    stands before it; -1 if other white space does.
    """
    text, begin = tools.given, tools.out.counts[0].begin
    while at > begin:
        before = text[at - 1]
        if before >= ASCII:
            kind, _ = class_before(text, at, begin, tools.classes)
            return -1 if kind & WHITE else at
        if not tools.classes[before] & WHITE or ends_piece(tools, before):
            return at
        at -= 1
    return at
