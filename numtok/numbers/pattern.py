"""Find numbers by a user's own regular expression: the slow twin of :mod:`numtok.numbers.scan`,
with the same outputs.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from numtok.arrays.text_rows import TextRows
from numtok.errors import GrammarError
from numtok.numbers.grammar import Grammar, compile_pattern
from numtok.numbers.numbers import Numbers
from numtok.numbers.rules import MAX_EXPONENT_DIGITS

SECONDS, SECONDS_PER_CHARACTER = (
    5.0,
    1e-5,
)  # for one text: some hundred times what a usual pattern takes


def scan_pattern(rows: TextRows, grammar: Grammar) -> Numbers:
    """:func:`scan` for a grammar made by ``Grammar.from_pattern``: a loop over documents, with the
    same outputs.

    Raises:
        GrammarError: if the pattern takes longer for a text than any sensible one, or its matches
            are not numbers.
    """
    pattern = compile_pattern(str(grammar.pattern))
    group = "number" if "number" in pattern.groupindex else 0
    surfaces: list[tuple[int, int, int, str]] = []
    for row, text in enumerate(rows.array.to_pylist()):
        byte = character = 0
        for match in _matches(pattern, row, text or ""):
            first, last = match.span(group)
            if first == last:
                continue
            if first < character:
                message = (
                    f"the pattern's matches overlap at character {first}; keep the group `number`"
                    " out of look-arounds"
                )
                raise GrammarError(message, document=row)
            byte += len(text[character:first].encode())
            stop = byte + len(text[first:last].encode())
            surfaces.append((row, byte, stop, text[first:last]))
            byte, character = stop, last
    return _read_surfaces(surfaces, rows, grammar)


def _matches(pattern: Any, row: int, text: str) -> Iterator[Any]:
    """The matches in one text."""
    limit = SECONDS + SECONDS_PER_CHARACTER * len(text)
    try:
        yield from pattern.finditer(text, timeout=limit)
    except TimeoutError as error:
        raise GrammarError(
            f"the number pattern {pattern.pattern[:60]!r} did not come to an end within {limit:.3g}"
            f" seconds on this text of {len(text)} characters, {text[:40]!r}...; it backtracks too"
            " much: use possessive quantifiers (\\d++) or atomic groups (?>...)",
            document=row,
        ) from error


def _power(written: str) -> int | None:
    """An exponent in digits of any script, with or without a sign; None if it has more digits than
    a number may have, zeros before them aside.
    """
    digits = "".join(str(_digit(digit)) for digit in written.lstrip("-+\u2212")).lstrip("0")
    if len(digits) > MAX_EXPONENT_DIGITS:
        return None
    return int(digits or "0") * (-1 if written[0] in "-\u2212" else 1)


@functools.cache
def _digit(character: str) -> int:
    """The value of what ``\\d`` matches, by the same library: Python may not know it yet."""
    import regex

    return next(
        value for value in range(10) if regex.match(rf"\p{{Numeric_Value={value}}}", character)
    )


def _read_surfaces(
    surfaces: list[tuple[int, int, int, str]], rows: TextRows, grammar: Grammar
) -> Numbers:
    """Numbers from (document, start, stop, surface) quadruples."""
    import regex

    grouping = f"[{regex.escape(grammar.grouping)}]" if grammar.grouping else "(?!)"
    literal = regex.compile(
        rf"([-+\u2212]?)((?:\d|(?<=\d){grouping}(?=\d))*)(?:\{grammar.decimal}(\d*))?(?:[eE]([-+\u2212]?\d+))?"
    )
    negative, exponent, digits, ends = [], [], bytearray(), []
    for row, start, _, surface in surfaces:
        match = literal.fullmatch(surface)
        whole = regex.sub(grouping, "", match[2]) if match else ""
        fraction = (match[3] or "") if match else ""
        if not match or not whole + fraction:
            raise GrammarError(
                f"the pattern matched {surface!r}, which does not read as a decimal number",
                document=row,
                byte=start,
            )
        power = _power(match[4] or "0")
        if power is None:
            message = f"the exponent of {surface[:40]!r} has more than {MAX_EXPONENT_DIGITS} digits"
            raise GrammarError(message, document=row, byte=start)
        negative.append(match[1] in ("-", "\u2212"))
        exponent.append(power - len(fraction))
        digits.extend(_digit(digit) for digit in whole + fraction)
        ends.append(len(digits))
    columns = np.array([quadruple[:3] for quadruple in surfaces], np.int64).reshape(-1, 3)
    return Numbers(
        columns[:, 0].astype(np.int32),
        np.ascontiguousarray(columns[:, 1]),
        np.ascontiguousarray(columns[:, 2]),
        np.array(negative, np.bool_),
        np.frombuffer(bytes(digits), np.uint8),
        np.array([0, *ends], np.int64),
        np.array(exponent, np.int64),
        rows,
        grammar.decimal,
    )
