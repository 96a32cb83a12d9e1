"""What runs over whole files compile beside what encoding takes: packing and statistics. See
:mod:`numtok.tokenizer.warm_up`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from numtok.corpus.pack import PackedRows
from numtok.corpus.stats import counted
from numtok.representations.parse import Representations
from numtok.statistics import Statistics
from numtok.statistics.report import Report
from numtok.tokenizer import warm_up as encoding
from numtok.tokenizer.end_token import end_token
from numtok.tokenizer.metadata import PACK_MODES
from numtok.tokenizer.tokenizer import Tokenizer


def warm_up(
    source: Any = None,
    numbers: Iterable[Representations] | None = None,
    step: Callable[[str], object] = lambda name: None,
) -> Path:
    """:func:`numtok.tokenizer.warm_up.warm_up`, packing, and statistics."""
    folder = encoding.warm_up(source, numbers, step)
    step("packed rows")
    tokenizer = Tokenizer.from_pretrained()
    batch = tokenizer.encode_batch(["one 2 three 4.5", None, "-6"])
    for mode in PACK_MODES:
        rows = PackedRows(batch.schema, 4, mode, end_token(tokenizer))
        for _ in (*rows.arrange(batch), *rows.rest()):
            pass
    step("statistics")
    counts = counted(
        pa.array(["one -2 km, 3.50e3", None, "1" * 30 + " 7,5"], pa.large_string()), tokenizer
    )
    Report.of(Statistics.merge([counts, counts]))
    return folder
