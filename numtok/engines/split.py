"""The fast way: text stays in one piece over its numbers, in as few documents as possible.

Every number separates the text around it: the pieces between numbers are encoded independently of each other. Handing each piece over as a document of
its own would be right (:mod:`numtok.engines.pieces`), but the calls cost more than the encoding. Where the pre-tokenizer is a known one
(:mod:`numtok.engines.pre_tokenizers`), what is to be taken out stays in the text as a *hole*: it is overwritten, in a copy, by something that cannot
touch the words around it, and the tokens that fall on it are dropped afterwards. There are three kinds of holes.

- A *number*, with the space that its token takes along, becomes digits, or letters behind that space, where nothing joins them and digits are not kept
  with the space. Beside another character of category N, which would join the digits, the text is cut into two documents.
- *White space* that is encoded otherwise than in its context: a run of spaces that is an added token, with the white space before it; and white space before
  a number, as what is last in a piece is cut otherwise than what is followed by a digit. Its ids come from a table (:mod:`numtok.engines.white`).
- A *delicate place*: an added token, or characters that Unicode normalisation changes. From the space before the word it stands in to the space behind it
  it is encoded by the complete tokenizer, and left out of the text; all other text is encoded by one without added tokens and normaliser.

In: rows of text, the slots of numbers, and the delicate places (:mod:`numtok.engines.needs_complete`). Out: :class:`~numtok.engines.parts.Parts`, which
:mod:`numtok.engines.splice` puts together again when their documents are encoded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays.bitmarks import ONE
from numtok.arrays.kernels import kernel, merged_kernel
from numtok.arrays.text_rows import TextRows
from numtok.arrays.utf8 import class_at, class_before
from numtok.engines.interface import Ints, Slots
from numtok.engines.parts import (
    COMPLETE,
    CUT,
    DOCUMENTS,
    HOLES,
    MISSING,
    MOST_MISSING,
    NUMBER,
    NUMERIC,
    OPEN,
    SPACE,
    WHITE,
    WHITE_BYTES,
    WHITE_NUMBER,
    Given,
    Parts,
    Rules,
    empty_parts,
    filled,
)
from numtok.engines.white import UNKNOWN, Whites, key_of, place_of

LONG = 32  # bytes; above, a number is overwritten so that it falls into many short words, as BPE is not linear in the length of one
_ASCII = 0x80
_ZERO, _LETTER, _LINE_END, _RETURN, _APOSTROPHE = 0x30, 0x78, 0x0A, 0x0D, 0x27
_NEVER = np.uint64(0xFFFFFFFFFFFFFFFF)


class Tools(NamedTuple):
    """What the rarer steps work with: few arrays, as every function that is given one takes the longer to compile."""

    text: npt.NDArray[np.uint8]
    classes: npt.NDArray[np.uint8]
    line_ends: bool
    whole_runs: np.uint64
    keys: npt.NDArray[np.uint64]
    holes: Ints
    documents: Ints
    missing: npt.NDArray[np.uint64]
    counts: Ints


def split(text: npt.NDArray[np.uint8], rows: TextRows, slots: Slots, places: Ints, rules: Rules, whites: Whites) -> Parts:
    """The parts of the rows; the holes in ``text``, a copy of theirs, are overwritten. They are good until the next call, but for ``spaced``."""
    given = Given(text, rows.offsets - rows.offsets[0], rows.valid, slots.per_document, slots.start, slots.stop, places)
    out = empty_parts(len(rows), slots, places)
    tools = Tools(text, rules.classes, rules.line_ends, rules.whole_runs, whites.keys, out.holes, out.documents, out.missing, out.counts)
    _split(given, tools, rules.two_forms, out.rows, out.spaced)
    return filled(out)


@kernel
def _split(given, tools, two_forms, rows, is_spaced):  # type: ignore[no-untyped-def]
    text, counts, places, place = given.text, tools.counts, given.places, 0
    rows[0, 0] = rows[0, 1] = 0
    for row in range(given.valid.size):
        # Unsigned positions: Numba then leaves out the check for negative ones, in the one loop that sees every number.
        base, end = np.uint64(given.offsets[row]), np.uint64(given.offsets[row + 1])
        first, last = given.per_document[row], given.per_document[row + 1]
        counts[CUT] = counts[OPEN] = begin = base
        following = np.uint64(places[place]) if place < places.size else _NEVER
        if tools.whole_runs and base + ONE < end and text[base] == SPACE and text[base + ONE] == SPACE:
            following = base  # a run of spaces is marked where it begins, which may be in the row before
        for number in range(first, last + 1 if given.valid[row] else first):
            start = stop = piece_end = end
            bare = spaced = False  # a number that takes no space along, or one
            if number < last:
                start, stop = base + np.uint64(given.start[number]), base + np.uint64(given.stop[number])
                before = text[start - np.uint64(start > begin)]
                spaced = (start > begin) & two_forms & (before == SPACE)
                bare = not spaced
                piece_end = start - np.uint64(spaced)
            while following < piece_end:
                passed = np.int64(_settle(tools, np.int64(following), np.int64(piece_end), bare))
                while place < places.size and places[place] < passed:
                    place += 1
                following = np.uint64(places[place]) if place < places.size else _NEVER
            if number < last:
                kind = NUMBER
                if bare and start > begin and ((before >= _ASCII) | (tools.classes[before] != 0)):
                    kind, white_begin = _white_before(tools, np.int64(start))
                    piece_end = np.uint64(white_begin)
                elif start == begin and number > first:  # right behind another number
                    _end_document(tools, np.int64(start))
                hole = counts[HOLES]
                tools.holes[hole, 0], tools.holes[hole, 1], tools.holes[hole, 2] = piece_end, stop, kind
                counts[HOLES] = hole + 1
                counts[CUT] = begin = stop
                is_spaced[number] = spaced
                if stop < end and ((text[stop] >= _ASCII) | (tools.classes[text[stop]] == NUMERIC)):
                    _end_if_number(tools, np.int64(stop), np.int64(end))
                as_word = tools.line_ends & spaced & (stop < end) and _ends_word(text[stop])
                _overwrite(text, start, stop, np.uint8(_LETTER if as_word else _ZERO))
            else:
                _end_document(tools, np.int64(end))
        rows[row + 1, 0], rows[row + 1, 1] = counts[HOLES], counts[DOCUMENTS]


@merged_kernel
def _settle(tools, at, end, bare):  # type: ignore[no-untyped-def]
    """A hole for the delicate place ``at``, in a piece that ends at ``end``, perhaps with a bare number; up to where this settles the piece."""
    text, classes, counts = tools.text, tools.classes, tools.counts
    cut = counts[CUT]
    if text[at] == SPACE:
        stop = at
        while stop < end and text[stop] == SPACE:
            stop += 1
        if stop - at < 2:  # the other one belongs to the number
            return stop
        start = _white_begin(tools, at)
        whole = stop == end or (stop - at < 64 and (tools.whole_runs >> np.uint64(stop - at)) & ONE)
        entry = _look_up(tools, start, stop) if whole and start >= 0 else UNKNOWN
        if entry != UNKNOWN:
            if stop < end or not bare:  # else the number's hole holds it: see _white_before
                _put_white(tools, start, stop)
                _put_hole(tools, start, stop, entry)
                _end_if_number(tools, stop, end)
            return stop
    first, last = at, at + 1
    while first > cut and (text[first] != SPACE or class_before(text, first, cut, classes)[0] == WHITE):
        first -= 1
    while last < end and (text[last] != SPACE or class_before(text, last, cut, classes)[0] == WHITE):
        last += 1
    _end_document(tools, first)
    _put_hole(tools, first, last, COMPLETE)
    counts[OPEN] = last
    return last


@merged_kernel
def _white_before(tools, start):  # type: ignore[no-untyped-def]
    """(kind of hole, its begin) for the bare number at ``start``, before which a character stands that may join it or is white space."""
    text, cut = tools.text, tools.counts[CUT]
    kind, _ = class_before(text, start, cut, tools.classes)
    first = _white_begin(tools, start)
    if kind == NUMERIC or first < 0:
        _end_document(tools, start)
    elif kind == WHITE and (start - first > 1 or (start - first == 1 and text[first] == SPACE and not tools.line_ends)):
        entry = _look_up(tools, first, start)
        if entry != UNKNOWN:
            _put_white(tools, first, start)
            return WHITE_NUMBER - entry, first
        _end_document(tools, start)
    return np.int64(NUMBER), start


@merged_kernel
def _white_begin(tools, at):  # type: ignore[no-untyped-def]
    """Where the ASCII white space that ends at ``at`` begins, as far as it is cut off from what stands before it; -1 if other white space does."""
    text, cut = tools.text, tools.counts[CUT]
    while at > cut:
        before = text[at - 1]
        if before >= _ASCII:
            kind, _ = class_before(text, at, cut, tools.classes)
            return -1 if kind == WHITE else at
        if tools.classes[before] != WHITE or (tools.line_ends and (before == _LINE_END) | (before == _RETURN)):
            return at
        at -= 1
    return at


@merged_kernel
def _look_up(tools, start, stop):  # type: ignore[no-untyped-def]
    """The place in the table of the white space [start, stop), or UNKNOWN, which is noted."""
    key = key_of(tools.text, start, stop)
    if key == 0:
        return np.int64(UNKNOWN)
    place = place_of(tools.keys, key)
    if place == UNKNOWN:
        count = tools.counts[MISSING]
        known = count == MOST_MISSING
        for k in range(count):
            known = known or tools.missing[k] == key
        if not known:
            tools.missing[count] = key
            tools.counts[MISSING] = count + 1
    return place


@merged_kernel
def _put_white(tools, start, stop):  # type: ignore[no-untyped-def]
    """Overwrite white space with a space and digits: a word of its own before text, and one with a number's digits."""
    tools.counts[WHITE_BYTES] += stop - start
    tools.text[start] = SPACE
    for k in range(start + 1, stop):
        tools.text[k] = _ZERO


@merged_kernel
def _put_hole(tools, begin, stop, kind):  # type: ignore[no-untyped-def]
    """The next hole; what is before its end is settled."""
    hole = tools.counts[HOLES]
    tools.holes[hole, 0], tools.holes[hole, 1], tools.holes[hole, 2] = begin, stop, kind
    tools.counts[HOLES] = hole + 1
    tools.counts[CUT] = stop


@merged_kernel
def _end_document(tools, at):  # type: ignore[no-untyped-def]
    """End the open document at ``at``, where the next one begins."""
    counts = tools.counts
    if at > counts[OPEN]:
        count = counts[DOCUMENTS]
        tools.documents[count, 0], tools.documents[count, 1] = counts[OPEN], at
        counts[DOCUMENTS] = count + 1
        counts[OPEN] = at


@merged_kernel
def _end_if_number(tools, at, end):  # type: ignore[no-untyped-def]
    """End the open document at ``at`` if a character of category N stands there, which would join the digits before it."""
    kind, _ = class_at(tools.text, at, end, tools.classes)
    if kind == NUMERIC:
        _end_document(tools, at)


@merged_kernel
def _ends_word(byte):  # type: ignore[no-untyped-def]
    """Whether no pre-tokenizer takes this character to the letters before it; some do that with apostrophes."""
    letter = np.uint8((byte | np.uint8(0x20)) - np.uint8(0x61)) < np.uint8(26)
    digit = np.uint8(byte - np.uint8(_ZERO)) < np.uint8(10)
    return (byte < _ASCII) & (not letter) & (not digit) & (byte != _APOSTROPHE)


@merged_kernel
def _overwrite(text, start, stop, filler):  # type: ignore[no-untyped-def]
    """Make the number at [start, stop) zeros or letters, mostly one token: as one run, or if it is long as many, with one at both ends."""
    if stop - start <= np.uint64(8) and start + np.uint64(8) <= np.uint64(text.size):
        for k in range(np.uint64(8)):  # eight selects instead of a loop whose length nobody can predict
            at = start + k
            text[at] = filler if at < stop else text[at]
    else:
        for at in range(start, stop):
            text[at] = filler
        if stop - start > np.uint64(LONG):
            for at in range(start + ONE, stop - ONE, np.uint64(2)):
                text[at] = _LINE_END
