"""The word or symbol right behind each number, which is often its unit: ``%``, ``km``, ``°C``,
``years``, ``年``.

In: :class:`numtok.numbers.Numbers` with their text. Out: the counts of those words, of up to
    ``BYTES`` bytes of UTF-8. There may be one space between. A word is a run of letters, as in
    ``km``, with what belongs to a unit behind it (``km/h``, ``m²``); a symbol is one character of a
    list that leaves out punctuation; a character of a script without spaces stands for itself.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa

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


# What ends a word, so that of the text behind a number few different beginnings are left
_ENDS = np.array(
    [byte < 0x80 and not (chr(byte).isalpha() or byte == ord("/")) for byte in range(256)]
)


def count_units(numbers: Numbers) -> dict[str, int]:
    """How often each stands behind a number."""
    import pyarrow.compute as pc

    behind = pc.value_counts(_behind(numbers))
    found = pc.extract_regex(behind.field("values"), PATTERN).to_pylist()
    counts: Counter[str] = Counter()
    for match, times in zip(found, behind.field("counts").to_pylist(), strict=True):
        if match:
            unit = (match["word"] or match["degrees"] or match["symbol"]).encode()[:BYTES]
            counts[unit.decode(errors="ignore").removesuffix("/")] += times
    return counts


def _behind(numbers: Numbers) -> pa.LargeStringArray:
    """The first bytes of text behind each number up to the end of a word, filled with NUL."""
    width, offsets = BYTES + SPACE, numbers.rows.offsets
    first = offsets[numbers.document] + numbers.stop
    length = offsets[numbers.document + 1] - first
    text = np.concatenate([numbers.rows.text, np.zeros(width, np.uint8)])
    near = np.lib.stride_tricks.sliding_window_view(text, width)[first]
    short = np.flatnonzero(length < width)
    near[short] *= np.arange(width) < length[short, None]
    near[:, 2:] *= ~np.logical_or.accumulate(_ENDS[near[:, 2:]], axis=1)
    for k in range(1, 4):  # a character that the end cuts
        lead = near[:, -k]
        near[(lead >= 0xC0) & (2 + (lead >= 0xE0) + (lead >= 0xF0) > k), -k:] = 0
    ends = np.arange(0, near.size + 1, width, dtype=np.int64)
    data = pa.py_buffer(near.reshape(-1))
    return pa.LargeStringArray.from_buffers(len(numbers), pa.py_buffer(ends), data)
