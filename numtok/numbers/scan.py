"""Find every number in many texts.

In: rows of text as one byte buffer with offsets (Arrow's own layout, never copied). Out:
    :class:`numtok.Numbers`. The work is done by :mod:`numtok.numbers.scanner`, or, for a user's own
    expression, by :mod:`numtok.numbers.pattern`.
"""

from __future__ import annotations

from numtok.arrays.text_rows import TextRows, Texts
from numtok.numbers.grammar import Grammar, check_grammar
from numtok.numbers.numbers import Numbers
from numtok.numbers.pattern import scan_pattern
from numtok.numbers.scanner import scan_columns


def scan(texts: Texts, grammar: Grammar | str | None = None) -> Numbers:
    """Find all numbers in many texts.

    Args:
        texts: any number of ``str``, or an Arrow string array of any library (string, large_string,
            string_view, dictionary, chunked, sliced, with nulls).
        grammar: what counts as a number; ``Grammar()`` if not given.

    Returns:
        The numbers in order of document and place, with byte offsets within each document. A null
        row has none.

    Raises:
        InputError: for texts of another type or not valid UTF-8.
        GrammarError: if a user's pattern matches something that does not read as a decimal number.
    """
    grammar = check_grammar(grammar)
    rows = TextRows.of(texts)
    if grammar.pattern is not None:
        return scan_pattern(rows, grammar)
    return Numbers.of_columns(scan_columns(rows, grammar), rows, grammar.decimal)
