"""Text in which a digit stands in for each number, for gigatoken, and its tokens with those of the
numbers in their places.

Every known pre-tokenizer (``byte_level.cuts_at_digits``) cuts before and after a run of
digits, whatever the digits are, so the text around is cut as it is around the number's token.
Behind white space, digits and the like the digit has a space before it: white space before a space
and a digit is cut as at the end of a text. The same stands between two rows, so that all rows of a
batch are mostly one document. Walking the tokens by their width in bytes finds the digits again.

Behind a run of spaces that is an added token it needs none. Where a digit would not do, the document
ends, and another one begins: before a character of category N, which would be one run with the
digit; and after a single space, where that and the space before the digit would be such a run.

Words with *unsafe* characters (:mod:`numtok.engines.gigatoken.byte_level`) are left out of
the text, from the space before to the space after, and their ids are inserted.

In: rows of text, the slots of numbers, unsafe positions. Out: ``Written``; then ``Encoded``.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.bitmarks import BLOCK, ONE, copy_block
from numtok.arrays.kernels import inlined_kernel, inner_kernel, kernel
from numtok.arrays.text_rows import TextRows
from numtok.arrays.unicode_classes import flags
from numtok.arrays.utf8 import class_at, class_before
from numtok.engines.chunks import SPACE, Tokens, copy_tokens, put_number
from numtok.engines.engine import Encoded, Ints, Slots
from numtok.errors import NumtokError

Bytes = npt.NDArray[np.uint8]

DIGIT = ord("7")
NUMERIC, WHITE = 1, 2  # bits in Rules.classes: category N, white space
NUMBER, ROW, WORD = 0, 1, 2  # kinds of events
TEXT, STAND_IN, ROW_END = 0, 1, 2  # what the open document ends with
FILLED, OPEN, DOCUMENTS, EVENTS, WORDS, END, COUNTERS = range(7)  # see Written.counters
_BLOCK = np.uint64(BLOCK)
_scratch = memory.Scratch()


class Rules(NamedTuple):
    """Properties of the tokenizer that decide where a digit may stand in."""

    two_forms: bool  # whether a number takes the space before it along
    # of spaces that is an added token, as all shorter ones are; 0 without such tokens, else 1
    longest_run: int
    classes: Bytes  # uint8 by code point, of the bits above


class WriteInput(NamedTuple):
    """Rows ``text[offsets[r]:offsets[r + 1]]``, their slots, and the unsafe positions."""

    text: Bytes
    offsets: Ints
    valid: npt.NDArray[np.bool_]
    slots: Slots
    unsafe: Ints


class Written(NamedTuple):
    """Text for gigatoken."""

    text: Bytes
    documents: Ints  # int64[d], where in it each document ends
    # int64[e, 3], in order: where something stands in, or is to be inserted; NUMBER, ROW (between
    # two rows) or WORD; and the bytes there that stand in for it: 0, 1, or 2 with the space
    events: Ints
    words: Ints  # int64[w, 2], begin and end in the given text of those with unsafe characters
    rows: Ints  # int64[rows, 2]: the number of events before each row's end, and where it ends
    spaced: npt.NDArray[np.bool_]  # bool[c], whether a number took the space before it along
    # int64: bytes of text, where the open document begins, documents, events, words, and what the
    # open document ends with
    counters: Ints


@functools.cache
def classes() -> Bytes:
    """Return the table of ``Rules.classes``."""
    numeric: Bytes = flags("number") * np.uint8(NUMERIC)
    return numeric | flags("space") * np.uint8(WHITE)


def write(text: Bytes, rows: TextRows, slots: Slots, unsafe: Ints, rules: Rules) -> Written:
    """Return the rows, whose text is ``text``, with digits in place of the slots. Good until the
    next call, but for ``spaced``.
    """
    count = len(slots.start)
    events = count + len(rows) + len(unsafe)
    out = Written(
        _scratch.empty("text", len(text) + count + 2 * len(rows) + BLOCK, np.uint8),
        _scratch.empty("documents", 2 * events + 1, np.int64),
        _scratch.empty("events", 3 * events, np.int64).reshape(-1, 3),
        _scratch.empty("words", 2 * len(unsafe), np.int64).reshape(-1, 2),
        _scratch.empty("rows", 2 * len(rows), np.int64).reshape(-1, 2),
        memory.empty(count, np.bool_),
        np.zeros(COUNTERS, np.int64),
    )
    source = WriteInput(text, rows.offsets - rows.offsets[0], rows.valid, slots, unsafe)
    _write(source, rules, out)
    counters = out.counters.tolist()
    return out._replace(
        text=out.text[: counters[FILLED]],
        documents=out.documents[: counters[DOCUMENTS]],
        events=out.events[: counters[EVENTS]],
        words=out.words[: counters[WORDS]],
    )


class Sources(NamedTuple):
    """Inputs of :func:`put_in`: the tokens of the text, those of the words that were left out,
    those of the numbers, and the bytes of each token.
    """

    tokens: Tokens
    words: Tokens
    slots: Slots
    widths: npt.NDArray[Any]


def put_in(written: Written, sources: Sources) -> Encoded:
    """Return the ids of whole rows; NumtokError if a token reaches over the edge of a number."""
    most = sum(map(len, (sources.tokens.ids, sources.words.ids, sources.slots.unspaced)))
    out = Encoded.empty(most + 1, len(written.rows), written.spaced)
    filled = _put_in(written.events, written.rows, sources, out)
    if filled < 0:
        raise NumtokError(
            "gigatoken did not keep numbers apart from the text; use engine='tokenizers' (--engine"
            " tokenizers) and please report this tokenizer"
        )
    return out._replace(ids=out.ids[:filled])


@kernel
def _write(source, rules, out):  # type: ignore[no-untyped-def]
    text, slots, counters, unsafe, at = source.text, source.slots, out.counters, source.unsafe, 0
    for row in range(source.valid.size):
        base, end = source.offsets[row], source.offsets[row + 1]
        begin, last = base, slots.per_document[row + 1]
        first = slots.per_document[row] if source.valid[row] else last + 1
        while at < unsafe.size and unsafe[at] < base:
            at += 1
        for number in range(first, last + 1):
            chunk_end, spaced = end, False
            if number < last:
                chunk_end = base + slots.start[number]
                spaced = rules.two_forms and chunk_end > begin and text[chunk_end - 1] == SPACE
                chunk_end -= np.int64(spaced)
            while at < unsafe.size and unsafe[at] < chunk_end:
                begin = _leave_out(source, rules, out, begin, unsafe[at], chunk_end)
                while at < unsafe.size and unsafe[at] < begin:
                    at += 1
            if begin < chunk_end:
                _append(source, rules, out, begin, chunk_end)
            if number < last:
                out.spaced[number] = spaced
                _stand_in(rules, out, NUMBER, spaced)
                begin = base + slots.stop[number]
                while at < unsafe.size and unsafe[at] < begin:  # within the number
                    at += 1
        if counters[FILLED] > counters[OPEN] and counters[END] == TEXT:
            counters[END] = ROW_END
        out.rows[row, 0], out.rows[row, 1] = counters[EVENTS], counters[FILLED]
    _end_document(out)


@inlined_kernel
def _end_document(out):  # type: ignore[no-untyped-def]
    """End the open document, if there is something in it."""
    counters = out.counters
    if counters[FILLED] > counters[OPEN]:
        out.documents[counters[DOCUMENTS]] = counters[OPEN] = counters[FILLED]
        counters[DOCUMENTS] += 1
    counters[END] = TEXT


@inlined_kernel
def _note(out, kind, size):  # type: ignore[no-untyped-def]
    """Add an event at the end of the text, and so many bytes of a space and a digit."""
    counters = out.counters
    event, filled = counters[EVENTS], counters[FILLED]
    out.events[event, 0], out.events[event, 1], out.events[event, 2] = filled, kind, size
    counters[EVENTS] = event + 1
    if size:
        out.text[filled] = SPACE
        out.text[filled + size - 1] = DIGIT
        counters[FILLED] = filled + size
        counters[END] = STAND_IN


@inlined_kernel
def _stand_in(rules, out, kind, spaced):  # type: ignore[no-untyped-def]
    """Write what stands in for a number or between two rows, with a space if wanted or needed; or
    end the document there.
    """
    begin, stop = out.counters[OPEN], out.counters[FILLED]
    before, _ = class_before(out.text, stop, begin, rules.classes)
    spaced |= before & (NUMERIC | WHITE) != 0
    first = stop
    while rules.longest_run and spaced and first > begin and out.text[first - 1] == SPACE:
        first -= 1
    is_run = first < stop and (stop - first - 1) % rules.longest_run != 0
    if first < stop and not is_run:
        _end_document(out)
        _note(out, kind, 0)
    else:
        _note(out, kind, 1 + np.int64(spaced and not is_run))


@inlined_kernel
def _append(source, rules, out, first, last):  # type: ignore[no-untyped-def]
    """Append a chunk of the source text."""
    text, counters = source.text, out.counters
    if counters[END] != TEXT:
        if class_at(text, first, last, rules.classes)[0] & NUMERIC:
            _end_document(out)
        elif counters[END] == ROW_END:
            _stand_in(rules, out, ROW, False)
        counters[END] = TEXT
    start, to, length = np.uint64(first), np.uint64(counters[FILLED]), np.uint64(last - first)
    if start + length + _BLOCK > np.uint64(text.size):
        for k in range(length):
            out.text[to + k] = text[start + k]
    else:
        for k in range(np.uint64(0), length, _BLOCK):
            copy_block(text, start + k, out.text, to + k)
    counters[FILLED] += last - first


@inner_kernel
def _leave_out(source, rules, out, begin, unsafe, end):  # type: ignore[no-untyped-def]
    """Append the chunk up to the space before an unsafe position, and leave out what follows, up to
    the space after it; returns where that is. No word is cut by that: the characters before these
    spaces are not white.
    """
    text, counters = source.text, out.counters
    first, last = unsafe, unsafe + 1
    while first > begin and not _is_cut(text, first, begin, rules.classes):
        first -= 1
    while last < end and not _is_cut(text, last, begin, rules.classes):
        last += 1
    if begin < first:
        _append(source, rules, out, begin, first)
    _end_document(out)
    _note(out, WORD, 0)
    word = counters[WORDS]
    out.words[word, 0], out.words[word, 1] = first, last
    counters[WORDS] = word + 1
    return last


@inlined_kernel
def _is_cut(text, at, begin, classes):  # type: ignore[no-untyped-def]
    """Whether there is a space here, after a character that is not white."""
    return text[at] == SPACE and not class_before(text, at, begin, classes)[0] & WHITE


@kernel
def _put_in(events, rows, sources, out):  # type: ignore[no-untyped-def]
    """Fill in the ids; returns their number, -1 if some token reaches over the edge of a number."""
    ids, widths, slots = sources.tokens.ids, sources.widths, sources.slots
    # the state: ids that are there, bytes and tokens of the text that are done
    filled, at, token = np.uint64(0), np.int64(0), np.uint64(0)
    event, number, word = 0, np.uint64(0), 0
    out.offsets[0] = 0
    for row in range(rows.shape[0]):
        while True:
            at_event = event < rows[row, 0]
            stop = events[event, 0] if at_event else rows[row, 1]
            while at < stop:
                if token == np.uint64(ids.size):
                    return -1
                one = ids[token]
                at += np.int64(widths[one])
                token += ONE
                out.ids[filled] = one
                filled += ONE
            if at != stop:
                return -1
            if not at_event:
                break
            stop += events[event, 2]
            while at < stop and token < np.uint64(ids.size):
                at += np.int64(widths[ids[token]])
                token += ONE
            if at != stop:
                return -1
            if events[event, 1] == NUMBER:
                filled = put_number(slots, number, out, filled)
                number += ONE
            elif events[event, 1] == WORD:
                filled = copy_tokens(sources.words, word, out, filled)
                word += 1
            event += 1
        out.offsets[row + 1] = filled
    complete = number == np.uint64(out.spaced.size) and token == np.uint64(ids.size)
    return np.int64(filled) if complete else -1
