"""Split text into segments that a fast byte-level BPE can encode independently, with as few cuts at numbers as possible.

Every number separates the text around it: the pieces between numbers are encoded independently of each other. Handing each piece over as a
document of its own would be right, but the calls cost more than the encoding. Where it provably makes no difference, the text stays in one segment
and the tokens that fall on the number are dropped afterwards: the pre-tokenizer of GPT-2
(``'s|'t|... | ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+``) always cuts around a run of digits, and what it does elsewhere does not depend
on them. A number that is more than digits is overwritten with digits, in a copy of the text. It would make a difference, so the text *must be split*
there,

- beside another character of category N, which would join the run of digits,
- after two or more white-space characters, or after a space that the number token does not take along,
- beside a piece that *needs the complete tokenizer*: one that holds an added token of the tokenizer, or characters that Unicode normalisation may
  change. These pieces are encoded one by one, by the complete tokenizer (by ``tokenizers`` itself if they hold characters newer than its Unicode
  data); all other text by one without added tokens and normaliser.

In: rows of text, the slots of numbers, and the places that need the complete tokenizer (:mod:`numtok.engines.needs_complete`). Out: :class:`Split`,
which :mod:`numtok.engines.splice` puts together again when its segments are encoded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.bitmarks import ONE
from numtok.arrays.kernels import kernel, merged_kernel
from numtok.arrays.text_rows import TextRows
from numtok.arrays.unicode_classes import flags
from numtok.arrays.utf8 import class_at, class_before
from numtok.engines.interface import Ints, Slots
from numtok.engines.needs_complete import SPACE

PLAIN, NUMBER, COMPLETE, NOTHING = 0, 1, 2, 3  # kinds of segments: text, a number alone, text for the complete tokenizer, a null row
LONG = 32  # bytes; above, a number is overwritten so that it falls into many short words, as BPE is not linear in the length of one
NO_INFLUENCE, ONE_SPACE, OTHER_SPACE, LOOK_UP = 0, 1, 2, 3  # what an ASCII byte beside a number means
_ZERO, _NEWLINE = 0x30, 0x0A
_NEVER = np.uint64(0xFFFFFFFFFFFFFFFF)
_scratch = memory.Scratch()


class SplitRules(NamedTuple):
    """What decides where text must be split.

    Attributes:
        two_forms: whether a number takes the space before it along.
        stays_whole: whether text may stay in one segment at all.
        ascii_kinds: uint8[256], settles most cases without the other two.
        numeric, spaces: flags per code point: category N, white space.
    """

    two_forms: bool
    stays_whole: bool
    ascii_kinds: npt.NDArray[np.uint8]
    numeric: npt.NDArray[np.uint8]
    spaces: npt.NDArray[np.uint8]


class Text(NamedTuple):
    """Rows ``text[offsets[r]:offsets[r + 1]]``, their numbers, and the places that need the complete tokenizer. ``text`` is written to."""

    text: npt.NDArray[np.uint8]
    offsets: Ints
    valid: npt.NDArray[np.bool_]
    per_document: Ints
    start: Ints
    stop: Ints
    places: Ints


class Taken(NamedTuple):
    """What is taken out for each number: [begins, stops) in the text, and whether that includes the space before it."""

    begins: Ints
    stops: Ints
    spaced: npt.NDArray[np.bool_]


class Segments(NamedTuple):
    """Segment ``s``, of a kind, is ``text[starts[s]:starts[s + 1]]``; ``per_document`` are the offsets of each document's segments."""

    kinds: npt.NDArray[np.uint8]
    starts: Ints
    per_document: Ints


class Split(NamedTuple):
    """A text in segments; ``complete_text`` is a copy of those that need the complete tokenizer, one behind the other."""

    text: npt.NDArray[np.uint8]
    segments: Segments
    taken: Taken
    complete_text: npt.NDArray[np.uint8]

    def complete_starts(self) -> Ints:
        """int64[n + 1]: where the segments begin in ``complete_text``."""
        return memory.offsets_of(np.diff(self.segments.starts)[self.segments.kinds == COMPLETE])


def split_rules(two_forms: bool, stays_whole: bool) -> SplitRules:
    """The rules with their tables."""
    kinds = np.full(256, LOOK_UP, np.uint8)
    kinds[:128] = NO_INFLUENCE
    kinds[[ord(character) for character in "\t\n\v\f\r"]] = OTHER_SPACE
    kinds[ord(" ")] = ONE_SPACE
    kinds[ord("0") : ord("9") + 1] = LOOK_UP
    return SplitRules(two_forms, stays_whole, kinds, flags("number"), flags("space"))


def own_text(rows: TextRows) -> npt.NDArray[np.uint8]:
    """A copy of the rows' text, from the first row on, to be written to until the next call."""
    first, last = int(rows.offsets[0]), int(rows.offsets[-1])
    text = _scratch.empty("text", last - first, np.uint8)
    text[:] = rows.text[first:last]
    return text


def split(text: npt.NDArray[np.uint8], rows: TextRows, slots: Slots, places: Ints, rules: SplitRules) -> Split:
    """Split the :func:`own_text` of the rows; the numbers in it are overwritten. Its arrays, but ``spaced``, are good until the next call."""
    count = len(slots.document)
    most = 2 * count + len(rows)
    taken = Taken(_scratch.empty("begins", count, np.int64), _scratch.empty("stops", count, np.int64), memory.empty(count, np.bool_))
    starts = _scratch.empty("starts", most + 1, np.int64)
    segments = Segments(_scratch.empty("kinds", most, np.uint8), starts, memory.empty(len(rows) + 1, np.int64))
    complete_text = memory.empty(len(text) if len(places) else 0, np.uint8)
    given = Text(text, rows.offsets - rows.offsets[0], rows.valid, slots.per_document, slots.start, slots.stop, places)
    used, copied = _split(given, rules, taken, segments, complete_text)
    return Split(text, Segments(segments.kinds[:used], starts[: used + 1], segments.per_document), taken, complete_text[:copied])


@kernel
def _split(given, rules, taken, segments, complete_text):  # type: ignore[no-untyped-def]
    """(number of segments, bytes of ``complete_text``)."""
    segments.starts[0] = segments.per_document[0] = 0
    count, copied, place = 0, 0, 0
    for row in range(given.offsets.size - 1):
        count, copied, place = _split_row(given, rules, taken, segments, complete_text, row, (count, copied, place))
        if not given.valid[row]:
            segments.kinds[count - 1] = NOTHING
        segments.per_document[row + 1] = count
    return count, copied


@merged_kernel
def _split_row(given, rules, taken, segments, complete_text, row, filled):  # type: ignore[no-untyped-def]
    """One row's part of all outputs; (segments, bytes of ``complete_text``, index of the next of the places) behind it."""
    count, copied, place = filled
    text, places = given.text, given.places
    begin, end = np.uint64(given.offsets[row]), np.uint64(given.offsets[row + 1])
    base, first, last = begin, given.per_document[row], given.per_document[row + 1]
    following = np.uint64(places[place]) if place < places.size else _NEVER
    kind, stays = PLAIN, True
    for number in range(first, last + 1):
        # The piece from `begin` to this number or the end. It belongs to the open segment, if the text may stay whole at the number before it.
        piece_end, must_split = end, False
        if number < last:
            start, stop = base + np.uint64(given.start[number]), base + np.uint64(given.stop[number])
            must_split, spaced = _edges(text, begin, start, stop, end, number == first, rules)
            piece_end = start - ONE if spaced else start
        kind_before, kind = kind, PLAIN
        if following < piece_end:
            kind, place = _kind_of_piece(text, begin, piece_end, places, place)
            following = np.uint64(places[place]) if place < places.size else _NEVER
        if number > first and (not stays or kind == COMPLETE or kind_before == COMPLETE):  # close the open segment, and the number's own
            segments.kinds[count], segments.starts[count + 1] = kind_before, taken.begins[number - 1]
            segments.kinds[count + 1], segments.starts[count + 2] = NUMBER, begin
            count += 2
        if kind == COMPLETE:
            for k in range(begin, piece_end):
                complete_text[copied] = text[k]
                copied += 1
        if number < last:
            taken.begins[number], taken.stops[number], taken.spaced[number] = piece_end, stop, spaced
            stays = rules.stays_whole and not must_split
            _overwrite(text, start, stop)
            begin = stop
    segments.kinds[count], segments.starts[count + 1] = kind, end
    return count + 1, copied, place


@kernel
def _kind_of_piece(text, begin, end, places, place):  # type: ignore[no-untyped-def]
    """(PLAIN or COMPLETE, index of the first of the places from ``begin`` on) of the piece [begin, end); ``place`` is that of a piece before."""
    begin, end = np.int64(begin), np.int64(end)
    while place < places.size and places[place] < begin:
        place += 1
    at = place
    while at < places.size and places[at] < end:
        if text[places[at]] != SPACE or places[at] + 1 < end:  # a pair of spaces counts only if both lie in the piece
            return COMPLETE, place
        at += 1
    return PLAIN, place


@merged_kernel
def _edges(text, begin, start, stop, end, first, rules):  # type: ignore[no-untyped-def]
    """(must split?, takes the space before it along?) for the number at [start, stop), its piece before from ``begin``, its document to ``end``."""
    if start == begin:  # at the start of the document, or right behind another number
        must_split, spaced = not first, False
    else:
        # No branches where text decides: nobody could predict them.
        last = rules.ascii_kinds[text[start - ONE]]
        inner = np.uint64(2) if start - begin >= np.uint64(2) else ONE
        more = rules.ascii_kinds[text[start - inner]]
        more = more if inner > ONE else np.uint8(NO_INFLUENCE)
        spaced = (last == ONE_SPACE) & rules.two_forms
        must_split = (last == OTHER_SPACE) & ((more == ONE_SPACE) | (more == OTHER_SPACE))
        if (last == LOOK_UP) | ((last == ONE_SPACE) & (not rules.two_forms)) | ((last == OTHER_SPACE) & (more == LOOK_UP)):
            must_split = _must_split_before(text, np.int64(begin), np.int64(start), rules.numeric, rules.spaces)
    if stop < end and rules.ascii_kinds[text[stop]] == LOOK_UP:
        kind, _ = class_at(text, np.int64(stop), np.int64(end), rules.numeric)
        must_split = must_split or kind != 0
    return must_split, spaced


@kernel
def _must_split_before(text, begin, start, numeric, spaces):  # type: ignore[no-untyped-def]
    """Whether the character before ``start``, in the piece from ``begin``, would join a run of digits, or be split off a run of white space."""
    kind, width = class_before(text, start, begin, numeric)
    if kind:
        return True
    kind, _ = class_before(text, start, begin, spaces)
    if not kind:
        return False
    if text[start - 1] == SPACE:
        return True
    kind, _ = class_before(text, start - width, begin, spaces)
    return kind != 0


@kernel
def _overwrite(text, start, stop):  # type: ignore[no-untyped-def]
    """Make the number at [start, stop) zeros, mostly one token: as one run, or if it is long as many, with a digit at both ends."""
    if stop - start <= np.uint64(8) and start + np.uint64(8) <= np.uint64(text.size):
        for k in range(np.uint64(8)):  # eight selects instead of a loop whose length nobody can predict
            at = start + k
            text[at] = _ZERO if at < stop else text[at]
    else:
        for at in range(start, stop):
            text[at] = _ZERO
        if stop - start > np.uint64(LONG):
            for at in range(start + ONE, stop - ONE, np.uint64(2)):
                text[at] = _NEWLINE
