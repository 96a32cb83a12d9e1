"""The marks of a grammar in place of the default's: 1.234,56 for 1,234.56.

In: the text of numbers in the default's marks, in which canonical text, values and the tokens of
    digits are written. Out: the same as the grammar writes and reads it.
"""

from __future__ import annotations

import pyarrow as pa

from numtok.numbers.grammar import Grammar


def in_marks_of(grammar: Grammar, texts: pa.LargeStringArray) -> pa.LargeStringArray:
    """Each ``.`` as the grammar's decimal mark, and each ``,``, if commas do not group digits
    there, as the first character that does.
    """
    separator = (grammar.grouping or ",")[0] if "," not in (grammar.grouping or "") else ","
    if (separator, grammar.decimal) == (",", "."):
        return texts
    import pyarrow.compute as pc

    meanwhile = "\0"
    for mark, other in ((".", meanwhile), (",", separator), (meanwhile, grammar.decimal)):
        texts = pc.replace_substring(texts, mark, other)
    return texts
