"""Put token ids together: those of a text's segments, with the ids of each number in its slot.

In: a :class:`~numtok.engines.split.Split`, the ids of its segments, and the slots. Out: :class:`~numtok.engines.interface.Encoded`. In a segment that
runs on over numbers, the widths of the tokens tell which of them fall on a number; those are dropped.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.bitmarks import ONE
from numtok.arrays.kernels import inline_kernel, kernel, merged_kernel
from numtok.engines.interface import Encoded, Ids, Ints, Slots
from numtok.engines.split import COMPLETE, NUMBER, PLAIN, Split
from numtok.errors import NumtokError


class Tokens(NamedTuple):
    """Ids of segments: segment ``s`` has ``ids[offsets[s]:offsets[s + 1]]``."""

    ids: npt.NDArray[np.uint32]
    offsets: Ints


class Forms(NamedTuple):
    """The ids of every number in its two forms, without and with the space: number ``i`` has ``[offsets[i]:offsets[i + 1]]`` of either."""

    plain: Ids
    spaced: Ids
    offsets: Ints


class Spliced(NamedTuple):
    """What is filled: the ids, the documents' offsets into them, and the position of each number's first id."""

    ids: Ids
    offsets: Ints
    positions: Ints


def splice(split: Split, tokens: Tokens, complete: Tokens, widths: npt.NDArray[Any], slots: Slots) -> Encoded:
    """The ids of whole documents.

    Args:
        split: the text in segments.
        tokens: of all its segments; those of numbers, and of pieces that need the complete tokenizer, are not used.
        complete: of the segments that need the complete tokenizer.
        widths: the bytes of each token; empty if no segment runs on over a number: then no token is looked up, as a normaliser or a prefix space may
            make the bytes of the tokens others than those of the text.
        slots: the ids to put in.

    Raises:
        NumtokError: if some token lies across the edge of a number.
    """
    count = len(slots.document)
    out = Spliced(
        memory.empty(len(tokens.ids) + len(complete.ids) + len(slots.plain), np.int32),
        memory.empty(len(split.segments.per_document), np.int64),
        memory.empty(count, np.int64),
    )
    filled, fits = _splice(split.segments, split.taken, tokens, complete, widths, Forms(slots.plain, slots.spaced, slots.offsets), out)
    if not fits:
        raise NumtokError("gigatoken did not keep numbers apart from the text; use engine='tokenizers' and please report this tokenizer")
    return Encoded(out.ids[:filled], out.offsets, out.positions, split.taken.spaced)


@kernel
def _splice(segments, taken, tokens, complete, widths, forms, out):  # type: ignore[no-untyped-def]
    """(number of ids, ok); not ok if some token lies across the edge of a number."""
    count = taken.begins.size
    out.offsets[0] = 0
    filled, number, piece = np.uint64(0), 0, 0
    for row in range(segments.per_document.size - 1):
        for segment in range(segments.per_document[row], segments.per_document[row + 1]):
            kind = segments.kinds[segment]
            if kind == NUMBER:
                if number == count:  # widths that do not add up consumed it before
                    return np.int64(filled), False
                filled = _put(forms, taken.spaced[number], number, out, filled)
                number += 1
            elif kind == COMPLETE:
                filled = _copy(complete, piece, out, filled)
                piece += 1
            elif kind == PLAIN and widths.size == 0:
                filled = _copy(tokens, segment, out, filled)
            elif kind == PLAIN:
                filled, number, fits = _copy_between_numbers(segments, segment, taken, tokens, widths, forms, out, (filled, number))
                if not fits:
                    return np.int64(filled), False
        out.offsets[row + 1] = filled
    return np.int64(filled), number == count


@merged_kernel
def _copy(tokens, which, out, filled):  # type: ignore[no-untyped-def]
    """Append the ids of one segment; returns the new fill."""
    for k in range(tokens.offsets[which], tokens.offsets[which + 1]):
        out.ids[filled] = tokens.ids[k]
        filled += ONE
    return filled


@merged_kernel
def _put(forms, spaced, number, out, filled):  # type: ignore[no-untyped-def]
    """Append one number's ids; returns the new fill."""
    out.positions[number] = filled
    if forms.plain.size == out.positions.size:  # every number is one token
        out.ids[filled] = forms.spaced[number] if spaced else forms.plain[number]
        return filled + ONE
    for k in range(forms.offsets[number], forms.offsets[number + 1]):
        out.ids[filled] = forms.spaced[k] if spaced else forms.plain[k]
        filled += ONE
    return filled


@merged_kernel
def _copy_between_numbers(segments, segment, taken, tokens, widths, forms, out, state):  # type: ignore[no-untyped-def]
    """Append the ids of a segment that runs on over numbers; (new fill, next number, whether no token lies across the edge of a number)."""
    # Unsigned indices: Numba then leaves out the check for negative ones, in the one loop that runs over every token.
    filled, number = state
    at, end = np.uint64(segments.starts[segment]), np.uint64(segments.starts[segment + 1])
    token_at, last = np.uint64(tokens.offsets[segment]), np.uint64(tokens.offsets[segment + 1])
    while True:
        following = min(end, np.uint64(taken.begins[number])) if number < taken.begins.size else end
        while at < following and token_at < last:
            token = tokens.ids[token_at]
            out.ids[filled] = token
            at += np.uint64(widths[token])
            filled += ONE
            token_at += ONE
        if following == end or at != following:
            return filled, number, at == following and token_at == last
        filled = _put(forms, taken.spaced[number], number, out, filled)
        at, token_at = _skip(tokens.ids, token_at, last, widths, at, np.uint64(taken.stops[number]))
        if at != np.uint64(taken.stops[number]):
            return filled, number, False
        number += 1


@inline_kernel
def _skip(ids, token_at, last, widths, at, stop):  # type: ignore[no-untyped-def]
    """(place in the text, token) behind the tokens up to ``stop``."""
    while at < stop and token_at < last:
        at += np.uint64(widths[ids[token_at]])
        token_at += ONE
    return at, token_at
