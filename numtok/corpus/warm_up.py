"""Everything that a first run does for later ones, done beforehand: for images of containers, and
for the nodes of a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from numtok.arrays.kernel_cache import kernel_folder
from numtok.corpus.pack import PackedRows
from numtok.corpus.stats import counted
from numtok.engines.choose import SELF_CHECK
from numtok.errors import OutputError
from numtok.numbers.scan import scan
from numtok.representations.registry import REPRESENTATIONS, Representations, default_instances
from numtok.statistics import Statistics
from numtok.statistics.report import Report
from numtok.tokenizer.inspect import subword_spans
from numtok.tokenizer.metadata import PACK_MODES
from numtok.tokenizer.packing import end_token
from numtok.tokenizer.tokenizer import Tokenizer
from numtok.tokenizer.tokenizer_json import load_source, numbered

WITH_OPTIONS = ("fone:6,4",)  # those that there are not without
LONG = " ".join(SELF_CHECK) * 100  # enough that a text is read in more than one turn
_SPACES = {
    "content": " " * 256,
    "single_word": False,
    "lstrip": False,
    "rstrip": False,
    "normalized": True,
    "special": False,
}


def warm_up(
    source: Any = None,
    numbers: Iterable[Representations] | None = None,
    step: Callable[[str], object] = lambda name: None,
) -> Path:
    """Compile what encoding to these representations, or to all, and decoding takes, and compare the
    tokenizer's engines; ``step`` is called with the name of what is next. OutputError if nothing can be kept.
    """
    try:
        folder = kernel_folder()
    except OSError as error:
        raise OutputError(
            f"no folder takes what is compiled ({error}); set NUMBA_CACHE_DIR to one that is yours"
            " alone"
        ) from error
    every = (
        *(one.spec() for kind in REPRESENTATIONS.values() for one in default_instances(kind)),
        *WITH_OPTIONS,
    )
    for chosen in every if numbers is None else numbers:
        step(str(chosen))
        _use(Tokenizer.from_pretrained(source, chosen))
    step("other tokenizers")
    default_config = load_source(None)
    normalizing = default_config | {
        "normalizer": {"type": "NFC"},
        "added_tokens": [*default_config["added_tokens"], _SPACES],
    }
    for engine in ("auto", "tokenizers"):
        _use(Tokenizer(numbered(normalizing, "warm-up"), "xval", engine=engine))
    step("packed rows")
    tokenizer = Tokenizer.from_pretrained()
    batch = tokenizer.encode_batch(["one 2 three 4.5", None, "-6"])
    for mode in PACK_MODES:
        rows = PackedRows(batch.schema, 4, mode, end_token(tokenizer))
        for _ in (*rows.arrange(batch), *rows.rest()):
            pass
    step("statistics")
    texts = pa.array(["one -2 km, 3.50e3", None, "1" * 30 + " 7,5"], pa.large_string())
    counts = counted(texts, tokenizer)
    Report.of(Statistics.merge([counts, counts]))
    return folder


def _use(tokenizer: Tokenizer) -> None:
    for texts, keep_text in ((SELF_CHECK, True), (SELF_CHECK, False), ([LONG, None], True)):
        tokenizer.decode_batch(tokenizer.encode_batch(texts, keep_text=keep_text))
    tokenizer.selector.in_short_text(SELF_CHECK[0].encode())  # as the drop-in does
    numbers = scan(SELF_CHECK, tokenizer.grammar)[::2]
    subword_spans(tokenizer, numbers)  # as ``inspect`` does
    numbers.format()
