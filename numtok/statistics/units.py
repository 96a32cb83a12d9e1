"""The word or symbol right after each number, or after one space, which is often its unit: ``%``,
``km/h``, ``m²``, ``°C``, ``years``. Symbols are those of a list that leaves out punctuation; a
character of a script without spaces (``年``) stands for itself.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa

from numtok.arrays import memory
from numtok.arrays.kernels import kernel
from numtok.numbers.columns import take
from numtok.numbers.numbers import Numbers

BYTES, SPACE = 16, 3  # of a word, and of what may stand before it
_WITHOUT_SPACES = (
    r"\x{e00}-\x{eff}\x{1000}-\x{109f}\x{1780}-\x{17ff}\x{3040}-\x{30ff}\x{3300}-\x{9fff}"
    r"\x{ac00}-\x{d7a3}\x{20000}-\x{10ffff}"
)
_SYMBOL = rf"%$¢-¥°\x{{2030}}-\x{{2034}}\x{{20a0}}-\x{{20cf}}\x{{2100}}-\x{{214f}}{_WITHOUT_SPACES}"
_LETTERS = rf"[^\PL{_WITHOUT_SPACES}](?:[^\PL{_WITHOUT_SPACES}]|\pM)*"
# RE2, which runs without Python; a word with digits, as in 5 m2, ends before them
PATTERN = (
    rf"^[ \x{{a0}}\x{{2009}}\x{{202f}}]?(?:(?P<word>{_LETTERS}(?:/{_LETTERS})?[²³]?)"
    rf"|(?P<degrees>°[A-Za-z])(?:$|[\x00-@\[-`{{-\x7f]|[^\x00-\x7f\pL])|(?P<symbol>[{_SYMBOL}]))"
)
# What ends a word, so that of the text after a number few different beginnings are left
_ENDS = np.array(
    [byte < 0x80 and not (chr(byte).isalpha() or byte == ord("/")) for byte in range(256)]
)


def count_units(numbers: Numbers) -> dict[str, int]:
    """Return how often each unit stands after a number."""
    import pyarrow.compute as pc

    behind = pc.value_counts(_behind(numbers))
    found = pc.extract_regex(behind.field("values"), PATTERN)
    matched = pc.is_valid(found)
    one_of_three = found.filter(matched).flatten()
    units = pc.binary_join_element_wise(*one_of_three, pa.scalar("", one_of_three[0].type))
    times = behind.field("counts").filter(matched)
    counts: Counter[str] = Counter()
    for unit, count in zip(units.to_pylist(), times.to_pylist(), strict=True):
        counts[unit.encode()[:BYTES].decode(errors="ignore").removesuffix("/")] += count
    return counts


def _behind(numbers: Numbers) -> pa.LargeStringArray:
    """Return the text after each number, up to the end of a word."""
    rows, lengths = numbers.rows, memory.empty(len(numbers), np.int64)
    first = rows.offsets[numbers.document] + numbers.stop
    _to_the_end(rows.text, first, rows.offsets[numbers.document + 1], _ENDS, lengths)
    words = take(rows.text, np.stack([first, first + lengths], 1))
    buffers = [None, pa.py_buffer(memory.offsets_of(lengths)), pa.py_buffer(words)]
    return pa.Array.from_buffers(pa.large_string(), len(numbers), buffers)


@kernel
def _to_the_end(text, first, stop, ends, lengths):  # type: ignore[no-untyped-def]
    for i in range(first.size):
        most = min(first[i] + BYTES + SPACE, stop[i])
        at = min(first[i] + 2, most)  # a space, and what may be a symbol
        while at < most and not ends[text[at]]:
            at += 1
        while first[i] < at < stop[i] and text[at] & 0xC0 == 0x80:  # not within a character
            at -= 1
        lengths[i] = at - first[i]
