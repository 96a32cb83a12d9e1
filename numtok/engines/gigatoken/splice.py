"""Put token ids together: those of a text with holes, and what belongs into each hole.

In: ``Parts``, the ids of their documents, and what to put into the holes. Out: ``Encoded``. The
    widths of the tokens tell after which of them a hole is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays.bitmarks import ONE
from numtok.arrays.kernels import kernel, merged_kernel
from numtok.engines.gigatoken.parts import APART, COMPLETE, KIND_BITS, NUMBER, Parts
from numtok.engines.gigatoken.piece_cache import MOST_IDS, PieceCache
from numtok.engines.interface import Encoded, Slots
from numtok.engines.pieces import Tokens, copy_tokens, empty_encoded, put_number
from numtok.errors import NumtokError

_TWO, _THREE, _FOUR, _KIND_BITS = (np.uint64(count) for count in (2, 3, 4, KIND_BITS))


class Sources(NamedTuple):
    """What is put together: ids of documents, of texts for the complete tokenizer, of known pieces,
    of numbers, and the bytes of each token.
    """

    tokens: Tokens
    complete: Tokens
    known: PieceCache
    slots: Slots
    widths: npt.NDArray[Any]


def splice(parts: Parts, sources: Sources) -> Encoded:
    """The ids of whole rows; NumtokError if some token lies across a hole."""
    given = sources.tokens.ids, sources.complete.ids, sources.slots.plain
    most = sum(map(len, given)) + int(parts.counts["ids"][0]) + MOST_IDS
    out = empty_encoded(most, len(parts.rows) - 1, parts.spaced)
    filled, fits = _splice(parts.holes, parts.rows, sources, out)
    if not fits:
        raise NumtokError(
            "gigatoken did not keep numbers apart from the text; use engine='tokenizers' and please"
            " report this tokenizer"
        )
    return out._replace(ids=out.ids[:filled])


@kernel
def _splice(holes, rows, sources, out):  # type: ignore[no-untyped-def]
    """(number of ids, ok); not ok if some token lies across a hole."""
    tokens, widths, known = sources.tokens, sources.widths, sources.known
    out.offsets[0] = 0
    # Unsigned indices: Numba then leaves out the check for negative ones, in the one loop that runs
    # over every token.
    filled, number, piece, at, token_at = np.uint64(0), np.uint64(0), 0, np.uint64(0), np.uint64(0)
    last = np.uint64(tokens.ids.size)
    for row in range(rows.size - 1):
        for hole in range(rows[row], rows[row + 1]):
            cut, what = np.uint64(holes[hole, 0]), holes[hole, 1]
            while at < cut and token_at < last:
                token = tokens.ids[token_at]
                out.ids[filled] = token
                at += np.uint64(widths[token])
                filled += ONE
                token_at += ONE
            if at != cut:
                return np.int64(filled), False
            filled = _put_piece(known, np.uint64(what) >> _KIND_BITS, out, filled)
            if what & NUMBER:
                filled = put_number(sources.slots, number, out, filled)
                number += ONE
            elif what & COMPLETE:
                filled = copy_tokens(sources.complete, piece, out, filled)
                piece += 1
            if what & APART:
                at += np.uint64(widths[tokens.ids[token_at]])
                token_at += ONE
                if at != cut + ONE:
                    return np.int64(filled), False
        out.offsets[row + 1] = filled
    return np.int64(filled), number == np.uint64(out.spaced.size) and token_at == last


@merged_kernel
def _put_piece(known, entry, out, filled):  # type: ignore[no-untyped-def]
    """Append the ids of a known piece; returns the new fill.

    Four are copied however few they are: nobody could predict it.
    """
    ids, to = known.ids, out.ids
    first, second, third, fourth = ids[entry, 0], ids[entry, 1], ids[entry, 2], ids[entry, 3]
    to[filled], to[filled + ONE], to[filled + _TWO], to[filled + _THREE] = (
        first, second, third, fourth,
    )  # fmt: skip
    count = np.uint64(known.counts[entry])
    for k in range(_FOUR, count):
        out.ids[filled + k] = known.ids[entry, k]
    return filled + count
