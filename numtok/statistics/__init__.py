"""Statistics: what numbers texts hold, what each representation would lose of them, and which one
suits. :class:`Statistics` merge over batches, shards and machines and go through JSON. ``values``,
``surfaces`` and ``units`` look at each number, ``counters`` adds up, ``tokens`` says what numbers
cost; ``losses`` tries the representations on that, ``recommend`` chooses one and doubts the grammar,
``report`` tells. Knows nothing of files. May import every room up to :mod:`numtok.tokenizer`.
"""

from numtok.statistics.statistics import Statistics

__all__ = ["Statistics"]
