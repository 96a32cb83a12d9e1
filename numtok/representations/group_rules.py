"""Rules of digits one by one to rules of digits in groups: the automaton of the characters, walked
group by group.

In: a :class:`Continuation` over the ten digits and the marks. Out: one over the groups too, which
    passes what that passes, cut as :mod:`numtok.representations.as_written` cuts it: of a run of
    digits only the first group may be short or, cut from the left, the last.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from numtok.representations.as_written import LOWER_E, POINT, UPPER_E
from numtok.representations.continuation import NEVER, Continuation

# What may come within a run of digits: any group, as it begins or all of its groups were full; a
# full one; none.
ANY, FULL, NONE = range(3)

States = npt.NDArray[np.int64]


def in_groups(characters: Continuation, group: int, left: bool) -> Continuation:
    """Of groups of at most so many digits, in front of the point cut from the left or from the
    right.
    """
    walked, width = _walked(
        characters.following.astype(np.int64), group
    )  # [states, symbols], [symbols]
    count, symbol = len(walked), np.arange(len(width))
    following = np.full(
        (2, 3, *walked.shape), NEVER, np.int64
    )  # [cut from the left, ANY ... NONE, states, symbols]
    for from_left in (0, 1):
        cut = np.where(
            symbol == POINT, 1, np.where(np.isin(symbol, (LOWER_E, UPPER_E)), int(left), from_left)
        )  # behind each symbol
        inside = np.where(width == group, ANY, NONE) if from_left else FULL
        behind = count * (3 * cut + np.where(width > 0, inside, ANY))
        for run, may_come in (
            (ANY, width >= 0),
            (FULL, (width == 0) | (width == group)),
            (NONE, width == 0),
        ):
            following[from_left, run] = np.where(
                may_come & (walked != NEVER), walked + behind, NEVER
            )
    return _used(
        following.reshape(-1, len(width)), np.tile(characters.ends, 6), count * 3 * int(left)
    )


def _walked(following: States, group: int) -> tuple[States, npt.NDArray[np.int64]]:
    """(the state of the characters behind each symbol, [states, symbols]; the digits of each
    symbol, 0 for a mark).
    """
    digits, marks = following[:, :10], following[:, 10:]
    tables, widths = [digits, marks], [1, 0]
    for width in range(2, group + 1):
        last = digits if width == 2 else tables[-1]  # [states, 10 ** (width - 1)]
        tables.append(
            np.where(last[..., None] == NEVER, NEVER, digits[last]).reshape(len(following), -1)
        )
        widths.append(width)
    return np.concatenate(tables, 1), np.repeat(widths, [table.shape[1] for table in tables])


def _used(following: States, ends: npt.NDArray[np.bool_], begin: int) -> Continuation:
    """Of states from which a number can be ended, those that ``begin`` leads to, which becomes the
    first.
    """
    alive = ends
    for _ in ends:
        onward = (following != NEVER) & alive[following]
        alive = ends | onward.any(1)
    following = np.where(onward, following, NEVER)
    order, new = [begin], np.full(len(ends), NEVER, np.int16)
    new[begin] = 0
    for state in order:
        for other in np.unique(following[state]).tolist():
            if other != NEVER and new[other] == NEVER:
                new[other] = len(order)
                order.append(other)
    kept = following[order]
    return Continuation(np.where(kept == NEVER, np.int16(NEVER), new[kept]), ends[order])
