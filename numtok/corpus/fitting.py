"""xVal's scale from the files that are to be encoded.

In: files. Out: an ``XVal`` whose scaled values lie within ±5 on the first of the documents, and what it was found on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from numtok.corpus.readers import find_inputs, read_batches
from numtok.errors import InputError, RepresentationError
from numtok.grammar import Grammar
from numtok.representations import Representation, XVal
from numtok.scan import scan

DOCUMENTS = 100_000
MOST_NUMBERS = 1 << 23  # 64 MB of them


@dataclass(frozen=True)
class Fit:
    """What a scale was found on.

    Attributes:
        xval: with the scale and the clip that were found.
        documents, numbers: that were looked at.
        largest: the magnitude that is scaled to the clip.
        vanishing: the share of the numbers that are zero as float32 once they are scaled, without being zero.
    """

    xval: XVal
    documents: int
    numbers: int
    largest: float
    vanishing: float


def fit_xval(
    inputs: Sequence[str | Path],
    numbers: Sequence[Representation],
    grammar: Grammar | None = None,
    *,
    target: float = 5.0,
    quantile: float | None = None,
    documents: int = DOCUMENTS,
    text_column: str | None = None,
    input_format: str | None = None,
    text_unit: Literal["line", "file"] = "line",
    on_error: Literal["raise", "skip"] = "raise",
) -> tuple[list[Representation], Fit]:
    """``numbers`` with the scale and the clip of its xVal fitted to the first documents, by :meth:`XVal.fit`.

    Args:
        inputs: as for :func:`numtok.corpus.pipeline.encode_corpus`.
        numbers: the representations; one of them is xVal.
        grammar: what counts as a number.
        target: what the largest magnitude is scaled to, and clipped at.
        quantile: take this quantile of the magnitudes for the largest; None for the largest there is.
        documents: how many to look at; fewer if they hold more than eight million numbers.
        text_column: where the text is.
        input_format: of the inputs, whatever their suffix.
        text_unit: in ``.txt``, whether a line or the whole file is a document.
        on_error: ``"skip"`` leaves out bad rows.

    Raises:
        RepresentationError: if there is no xVal, or no number to fit it to.
        InputError: for standard input, which can be read only once.
    """
    place = next((k for k, one in enumerate(numbers) if isinstance(one, XVal)), None)
    if place is None:
        raise RepresentationError(f"only xval has a scale to fit, and {', '.join(one.name for one in numbers)} does not include it")
    sources = find_inputs(inputs, input_format)
    if any(source.path == "-" for source in sources):
        raise InputError("standard input can be read only once, so no scale can be fitted to it; put it into a file first")

    def values() -> Iterator[tuple[int, npt.NDArray[np.float64]]]:
        for source in sources:
            for batch in read_batches(source, text_column, text_unit=text_unit, on_error=on_error):
                yield len(batch.texts), scan(batch.texts, grammar or Grammar()).to_float64()

    seen, found, count = 0, [], 0
    for rows, some in values():
        seen, count = seen + rows, count + len(some)
        found.append(some)
        if seen >= documents or count >= MOST_NUMBERS:
            break
    every = np.concatenate(found) if found else np.empty(0)
    xval = XVal.fit_values(every, target, quantile, numbers[place].overflow)
    with np.errstate(under="ignore", over="ignore"):
        vanishing = (every != 0) & ((every * xval.scale).astype(np.float32) == 0)
    chosen = [*numbers[:place], xval, *numbers[place + 1 :]]
    return chosen, Fit(xval, seen, len(every), target / xval.scale, float(vanishing.mean()))
