"""A hint for users whose tokenizer writes numbers already as the representation that they chose
does, so that brackets are all that it would add.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from numtok.representations import Representation, SpelledOut
from numtok.tokenizer.vocabulary import Spelling

PROBES = ("a 7", "a 98", "a 605", "a 1234567890")  # whose last word is a number
ADVICE = (
    "this tokenizer cuts the digits of numbers already as %r does, which only puts [NUM] and [/NUM]"
    " around them; with numbers=%r a pretrained model keeps its ids and needs no new rows"
)


def advise_bare(
    representations: Sequence[Representation],
    spelling: Spelling | None,
    encode: Callable[[list[str]], Sequence[Sequence[int]]],
) -> None:
    """Log the hint, where it holds.

    Args:
        representations: as the user chose them.
        spelling: the tokens of the first.
        encode: gives the ids that the source tokenizer itself has for texts.
    """
    first = representations[0]
    if not isinstance(first, SpelledOut) or spelling is None:
        return
    if (bare := first.without_brackets()) is None:
        return
    numbers = (first.encode_one(probe.split()[1].encode(), ".") for probe in PROBES)
    spelled = [[] if one is None else spelling.ids[one].tolist() for one in numbers]
    pairs = zip(encode(list(PROBES)), spelled, strict=True)
    if all(own and [*ids][-len(own) :] == own for ids, own in pairs):
        logging.getLogger("numtok").warning(ADVICE, first.spec(), bare.spec())
