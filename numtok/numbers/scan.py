"""Find every number in many texts.

In: rows of text as one byte buffer with offsets (Arrow's own layout, never copied). Out:
    :class:`numtok.Numbers`. The work is done by :mod:`numtok.numbers.scanner`, or, more slowly and
    with the same outputs, by a user's own regular expression.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from numtok.arrays.text_rows import TextRows, Texts
from numtok.errors import GrammarError
from numtok.numbers.decimals import Decimals
from numtok.numbers.grammar import (
    ARABIC_POINT,
    MAX_EXPONENT_DIGITS,
    Grammar,
    check_grammar,
    compile_pattern,
    separators_of,
)
from numtok.numbers.numbers import Numbers
from numtok.numbers.scanner import scan_decimals, whole_rows

# For one text: some hundred times what a usual pattern takes.
SECONDS, SECONDS_PER_CHARACTER = 5.0, 1e-5


def scan(texts: Texts, grammar: Grammar | str | None = None) -> Numbers:
    """Find all numbers in many texts.

    Args:
        texts: any number of ``str``, or an Arrow string array of any library (string, large_string,
            string_view, dictionary, chunked, sliced, with nulls).
        grammar: what counts as a number; ``Grammar()`` if not given.

    Returns:
        The numbers in order of document and start, with byte offsets within each document. A null
        row has none.

    Raises:
        InputError: for texts of another type or not valid UTF-8.
        GrammarError: if a user's pattern matches something that does not read as a decimal number,
            or takes longer for a text than any sensible one.

    Example:
        >>> import numtok
        >>> numtok.scan(["from 5 to 10 km", "-3.20"]).text().to_pylist()
        ['5', '10', '-3.20']
    """
    return scan_rows(TextRows.of(texts), check_grammar(grammar))


def scan_rows(rows: TextRows, grammar: Grammar) -> Numbers:
    """Find all numbers in rows of text, as :func:`scan` does."""
    if grammar.pattern is not None:
        return _scan_pattern(rows, grammar)
    return Numbers(*scan_decimals(rows, grammar), rows, grammar.decimal)


def _scan_pattern(rows: TextRows, grammar: Grammar) -> Numbers:
    """Scan by a grammar made by ``Grammar.from_pattern``: a loop over documents."""
    pattern = compile_pattern(str(grammar.pattern))
    group = "number" if "number" in pattern.groupindex else 0
    places: list[tuple[int, int, int]] = []
    surfaces: list[str] = []
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
            places.append((row, byte, stop))
            surfaces.append(text[first:last])
            byte, character = stop, last
    read = _read(surfaces, places, grammar)
    document, start, stop_at = np.array(places, np.int64).reshape(-1, 3).T.copy()
    decimals = read._replace(document=document.astype(np.int32), start=start, stop=stop_at)
    return Numbers(*decimals, rows, grammar.decimal)


def _matches(pattern: Any, row: int, text: str) -> Iterator[Any]:
    """Yield the matches in one text."""
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


def _read(surfaces: list[str], places: list[tuple[int, int, int]], grammar: Grammar) -> Decimals:
    """Return the values of numerals, read by the built-in rules after their group separators are
    removed.
    """
    import regex

    grouping = f"[{regex.escape(separators_of(grammar))}]" if grammar.grouping else "(?!)"
    mark = rf"[\{grammar.decimal}{ARABIC_POINT}]"
    literal = regex.compile(
        rf"(?=[-+\u2212]?{mark}?\d)[-+\u2212]?(?:\d|(?<=\d){grouping}(?=\d))*"
        rf"(?:{mark}\d*)?(?:[{grammar.exponents}][-+\u2212]?\d+)?"
    )
    rows = TextRows.of(
        [
            regex.sub(mark, ".", regex.sub(grouping, "", surface)).removesuffix(".")
            if literal.fullmatch(surface)
            else ""
            for surface in surfaces
        ]
    )
    decimals = scan_decimals(rows, Grammar(grouping=None, exponents=grammar.exponents))
    if not (whole := whole_rows(decimals, rows)).all():
        wrong = int(np.flatnonzero(~whole)[0])
        (row, byte, _), surface = places[wrong], surfaces[wrong]
        message = f"the pattern matched {surface!r}, which does not read as a decimal number"
        if regex.search(
            rf"[eEdD][-+\u2212]?\d{{{MAX_EXPONENT_DIGITS + 1},}}$", rows.array[wrong].as_py()
        ):
            message = f"the exponent of {surface[:40]!r} has more than {MAX_EXPONENT_DIGITS} digits"
        raise GrammarError(message, document=row, byte=byte)
    return decimals
