"""Let one call of a fast byte-level BPE encode the text between numbers, without taking the numbers out.

Every number separates the text around it: the pieces between numbers are encoded independently of each other. Handing each piece over as a
document of its own would be right, but the calls cost more than the encoding. Where it provably makes no difference, the pieces stay joined and
the tokens that fall on the number are dropped afterwards: the pre-tokenizer of GPT-2
(``'s|'t|... | ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+``) always cuts around a run of digits, and what it does elsewhere does not depend
on them. A number that is more than digits is overwritten with digits, in a copy of the text. It would make a difference, so the text is cut in
two there (a *hard* cut),

- beside another character of category N, which would join the run of digits,
- after two or more white-space characters, or after a space that the number token does not take along,
- beside a *delicate* piece: one that holds an added token of the tokenizer, or characters that Unicode normalisation may change. These
  pieces are encoded one by one, by the complete tokenizer (by ``tokenizers`` itself if they hold characters newer than its Unicode data); all
  other text by one without added tokens and normaliser.

In: a text buffer and the cuts (see :mod:`numtok.engines.choose`). Out: segments of text, and after encoding, the ids put together.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.bitmarks import ONE, lowest_bit
from numtok.arrays.kernels import inline_kernel, kernel
from numtok.arrays.utf8 import class_before, decode

PLAIN, NUMBER, DELICATE, NOTHING = 0, 1, 2, 3  # kinds of segments: text, a number on its own, a delicate piece, a null row
LONG = 32  # bytes; above, a number is overwritten so that it falls into many short words, as BPE is not linear in the length of one
_ZERO, _SPACE, _NEWLINE = 0x30, 0x20, 0x0A
_NEVER = np.uint64(0xFFFFFFFFFFFFFFFF)


@kernel
def _suspects(text, double_space, marks):  # type: ignore[no-untyped-def]
    """Bit k of ``marks[b]`` says that ``text[64 * b + k]`` may be a delicate event: two spaces in a row, or a character from U+0300 on.

    As in ``scan._mark``, the loop over whole blocks becomes vector compares.
    """
    whole = (text.size - 1) // 64  # so that there is always a next byte
    space = np.uint8(0x20) if double_space else np.uint8(0xFF)  # no byte of UTF-8
    for block in range(whole):
        bits = np.uint64(0)
        for k in range(64):
            byte, following = text[block * 64 + k], text[block * 64 + k + 1]
            bits |= np.uint64((byte >= 0xCC) | ((byte == space) & (following == space))) << np.uint64(k)
        marks[block] = bits
    bits = np.uint64(0)
    for at in range(whole * 64, text.size):
        if text[at] >= 0xCC or (text[at] == space and at + 1 < text.size and text[at + 1] == space):
            bits |= np.uint64(1) << np.uint64(at - whole * 64)
    marks[whole] = bits


def delicate_places(text: npt.NDArray[np.uint8], double_space: bool, unsafe: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Positions in ``text`` of delicate events: two spaces in a row, and characters flagged in ``unsafe`` (if not empty)."""
    if text.size == 0 or not (double_space or unsafe.size):
        return np.empty(0, np.int64)
    marks = memory.empty((text.size - 1) // 64 + 1, np.uint64)
    _suspects(text, double_space, marks)
    places = memory.empty(int(np.bitwise_count(marks).sum()), np.int64)
    return places[: _delicate_places(text, unsafe, marks, places)]


@kernel
def _delicate_places(text, unsafe, marks, places):  # type: ignore[no-untyped-def]
    """Fill ``places``; returns their count. No character below U+0300 is changed by NFC."""
    count = 0
    for block in range(marks.size):
        bits = marks[block]
        while bits != 0:
            at = block * 64 + np.int64(lowest_bit(bits))
            bits &= bits - ONE
            event = text[at] == _SPACE
            if not event and unsafe.size and not (text[at] == 0xE2 and text[at + 1] == 0x80 and text[at + 2] > 0x81):  # dashes, quotes
                code, _ = decode(text, at)
                event = unsafe[code] != 0
            if event:
                places[count] = at
                count += 1
    return count


@kernel
def _hard_after(text, stop, numeric):  # type: ignore[no-untyped-def]
    """Whether the character at ``stop`` would join a run of digits before it."""
    if text[stop] < 0x80:
        return numeric[text[stop]] != 0
    code, _ = decode(text, stop)
    return numeric[code] != 0


@kernel
def _hard_before(text, begin, start, numeric, spaces):  # type: ignore[no-untyped-def]
    """Whether the character before ``start``, in the piece from ``begin``, would join a run of digits, or be split off a run of white space."""
    kind, width = class_before(text, start, begin, numeric)
    if kind:
        return True
    kind, _ = class_before(text, start, begin, spaces)
    if not kind:
        return False
    if text[start - 1] == _SPACE:
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
        return
    for at in range(start, stop):
        text[at] = _ZERO
    if stop - start > np.uint64(LONG):
        for at in range(start + ONE, stop - ONE, np.uint64(2)):
            text[at] = _NEWLINE


@inline_kernel
def _is_hard(text, begin, start, stop, end, first, two_forms, ascii_kinds, numeric, spaces):  # type: ignore[no-untyped-def]
    """(hard cut?, takes the space before it along?) for the number at [start, stop), its piece before from ``begin``, its document to ``end``.

    ``numeric`` and ``spaces`` are flags per code point (category N, white space); ``ascii_kinds`` settles most cases without them.
    """
    if start == begin:  # at the start of the document, or right behind another number
        hard, spaced = not first, False
    else:
        # No branches where text decides: nobody could predict them.
        last = ascii_kinds[text[start - ONE]]
        inner = np.uint64(2) if start - begin >= np.uint64(2) else ONE
        more = ascii_kinds[text[start - inner]]
        more = more if inner > ONE else np.uint8(0)
        spaced = (last == 1) & two_forms
        hard = (last == 2) & ((more == 1) | (more == 2))
        if (last == 3) | ((last == 1) & (not two_forms)) | ((last == 2) & (more == 3)):
            hard = _hard_before(text, np.int64(begin), np.int64(start), numeric, spaces)
    if stop < end and ascii_kinds[text[stop]] == 3:
        hard = hard or _hard_after(text, np.int64(stop), numeric)
    return hard, spaced


@kernel
def divide(  # type: ignore[no-untyped-def]
    text,
    offsets,
    valid,
    per_document,
    start,
    stop,
    places,
    two_forms,
    joins,
    ascii_kinds,
    numeric,
    spaces,
    kinds,
    ends,
    begins,
    stops,
    spaced,
    document_segments,
    delicate_text,
):
    """Divide rows of ``text`` (a copy: it is written to) into segments.

    Fills ``kinds`` and ``ends`` (place in ``text``) of the segments, and per cut ``begins`` (its space included if it takes one along:
    ``spaced``) and ``stops``, ``document_segments``, the segments' document offsets, and ``delicate_text``, the text of the delicate pieces.
    Returns (number of segments, bytes of delicate text).
    ``ascii_kinds``: see :func:`ascii_kinds`.
    """
    rows = offsets.size - 1
    document_segments[0] = 0
    count, rest, place = 0, 0, 0
    following = np.uint64(places[0]) if places.size else _NEVER  # the next delicate place
    for row in range(rows):
        begin, end = np.uint64(offsets[row]), np.uint64(offsets[row + 1])
        base, first, last = begin, per_document[row], per_document[row + 1]
        was_delicate, joined = False, True
        for cut in range(first, last + 1):
            # The piece from `begin` to this cut or the end. It belongs to the segment that is open, if the cut before it is joined.
            piece_end = end
            if cut < last:
                number_start, number_stop = base + np.uint64(start[cut]), base + np.uint64(stop[cut])
                hard, is_spaced = _is_hard(
                    text, begin, number_start, number_stop, end, cut == first, two_forms, ascii_kinds, numeric, spaces
                )
                piece_end = number_start - ONE if is_spaced else number_start
            is_delicate = False
            if following < piece_end:
                while place < places.size and places[place] < np.int64(begin):
                    place += 1
                k = place
                while k < places.size and places[k] < np.int64(piece_end) and not is_delicate:
                    # A pair of spaces counts only if both lie in the piece.
                    is_delicate = text[places[k]] != _SPACE or places[k] + 1 < np.int64(piece_end)
                    k += 1
                following = np.uint64(places[place]) if place < places.size else _NEVER
            if cut > first and (not joined or is_delicate or was_delicate):  # close the segment before the last cut, and the number's own
                kinds[count], ends[count] = DELICATE if was_delicate else PLAIN, begins[cut - 1]
                kinds[count + 1], ends[count + 1] = NUMBER, begin
                count += 2
            if is_delicate:
                for k in range(begin, piece_end):
                    delicate_text[rest] = text[k]
                    rest += 1
            was_delicate = is_delicate
            if cut < last:
                begins[cut], stops[cut], spaced[cut] = piece_end, number_stop, is_spaced
                joined = joins and not hard
                _overwrite(text, number_start, number_stop)
                begin = number_stop
        kinds[count], ends[count] = DELICATE if was_delicate else PLAIN, end
        if not valid[row]:
            kinds[count] = NOTHING
        count += 1
        document_segments[row + 1] = count
    return count, rest


def ascii_kinds() -> npt.NDArray[np.uint8]:
    """uint8[256] of what a byte beside a number means for a cut: 0 nothing, 1 a space, 2 other white space, 3 a digit or not ASCII."""
    table = np.full(256, 3, np.uint8)
    table[:128] = 0
    table[[ord(character) for character in "\t\n\v\f\r"]] = 2
    table[ord(" ")] = 1
    table[ord("0") : ord("9") + 1] = 3
    return table


ASCII_KINDS = ascii_kinds()


@kernel
def _put(out, filled, spaced, plain_form, spaced_form, first, last):  # type: ignore[no-untyped-def]
    """Append one cut's ids; returns the new fill."""
    filled = np.int64(filled)
    for k in range(first, last):
        out[filled] = spaced_form[k] if spaced else plain_form[k]
        filled += 1
    return filled


@kernel
def splice(  # type: ignore[no-untyped-def]
    kinds,
    document_segments,
    segment_starts,
    begins,
    stops,
    spaced,
    ids,
    id_offsets,
    rest_ids,
    rest_offsets,
    widths,
    plain_form,
    spaced_form,
    form_offsets,
    out,
    offsets,
    positions,
):
    """Put the ids together: those of the segments, with the ids of cut ``c``'s form, ``form_offsets[c]:form_offsets[c + 1]``, in place of its number.

    ``ids`` are those of all segments (delicate pieces and lone numbers too, then not used), ``rest_ids`` those of the delicate pieces.
    ``begins`` and ``stops`` are the cuts' places in the text, ``widths`` the bytes of each token, empty if no cut
    is joined: then no token is looked up, as a normaliser or a prefix space may make the bytes of the tokens others than those of the text.
    Fills ``out``, the document ``offsets`` and the ``positions`` of the cuts. Returns (number of ids, ok); not ok if some token lies across the edge
    of a number.
    """
    rows, cuts = document_segments.size - 1, begins.size
    single = plain_form.size == cuts  # every number is one token
    offsets[0] = 0
    filled, cut, odd, ok = np.int64(0), 0, 0, True
    for row in range(rows):
        for segment in range(document_segments[row], document_segments[row + 1]):
            kind = kinds[segment]
            if kind == NUMBER:
                if cut == cuts:  # widths that do not add up consumed it before
                    return filled, False
                positions[cut] = filled
                filled = _put(out, filled, spaced[cut], plain_form, spaced_form, form_offsets[cut], form_offsets[cut + 1])
                cut += 1
            elif kind == DELICATE:
                for k in range(rest_offsets[odd], rest_offsets[odd + 1]):
                    out[filled] = rest_ids[k]
                    filled += 1
                odd += 1
            elif kind == PLAIN and widths.size == 0:
                for k in range(id_offsets[segment], id_offsets[segment + 1]):
                    out[filled] = ids[k]
                    filled += 1
            elif kind == PLAIN:
                # Unsigned indices: Numba then leaves out the check for negative ones, in the one loop that runs over every token.
                at, token_at, last = np.uint64(segment_starts[segment]), np.uint64(id_offsets[segment]), np.uint64(id_offsets[segment + 1])
                end = np.uint64(segment_starts[segment + 1])
                fill = np.uint64(filled)
                while True:
                    following = min(end, np.uint64(begins[cut])) if cut < cuts else end
                    while at < following and token_at < last:
                        token = ids[token_at]
                        out[fill] = token
                        at += np.uint64(widths[token])
                        fill += ONE
                        token_at += ONE
                    ok = ok and at == following
                    if token_at >= last:
                        break
                    positions[cut] = fill
                    if single:
                        out[fill] = spaced_form[cut] if spaced[cut] else plain_form[cut]
                        fill += ONE
                    else:
                        fill = np.uint64(_put(out, fill, spaced[cut], plain_form, spaced_form, form_offsets[cut], form_offsets[cut + 1]))
                    stop = np.uint64(stops[cut])
                    while at < stop and token_at < last:
                        at += np.uint64(widths[ids[token_at]])
                        token_at += ONE
                    ok = ok and at == stop
                    cut += 1
                filled = np.int64(fill)
                ok = ok and at == end
        offsets[row + 1] = filled
    return filled, ok and cut == cuts
