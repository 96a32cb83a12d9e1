"""xVal's scale from a sample of the texts that are to be encoded: from all over the inputs, or from
the front of a stream that can be read only once. It is found as ``numtok stats`` finds it
(:mod:`numtok.representations.magnitudes`).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from numtok.corpus.read.documents import Source, read_batches
from numtok.errors import RepresentationError
from numtok.numbers.grammar import Grammar
from numtok.numbers.numbers import Numbers
from numtok.numbers.scan import scan
from numtok.representations import Representation, XVal, magnitudes

FIT_BYTES = 32 << 20  # of text; scanning it takes a tenth of a second
FIT_BATCH = 1 << 20
FIT_FILES = 32

Item = TypeVar("Item")


@dataclass(frozen=True)
class ScaleFit:
    """How to find xVal's scale.

    Attributes:
        quantile: of the magnitudes, which is scaled to 5; None for the one with which the fewest
            numbers are lost (:meth:`XVal.fit`).
        clip: the largest magnitude after scaling; None for 5.
    """

    quantile: float | None = None
    clip: float | None = None

    def __call__(
        self, representations: Sequence[Representation], grammar: Grammar, texts: Iterable[pa.Array]
    ) -> tuple[list[Representation], Fit]:
        """``representations`` with the scale and the clip of its xVal fitted to the texts, and what
        that was found on.

        Where the texts have no number but zero, the scale is 1; the clip bounds whatever comes
        later.

        Raises:
            RepresentationError: if there is no xVal, or an option is out of range.
        """
        place = xval_place(representations)
        counts, documents, found = np.zeros(magnitudes.BINS, np.int64), 0, 0
        for some in texts:
            values = _magnitudes(scan(some, grammar), representations)
            documents, found = documents + len(some), found + len(values)
            counts += magnitudes.counted(values)
        given: XVal = representations[place]  # type: ignore[assignment]  # by xval_place
        fitted = magnitudes.fitted_xval(counts, self.quantile, given.log, given.overflow)
        largest = fitted.largest if counts.any() else None
        fitted = dataclasses.replace(fitted, clip=fitted.clip if self.clip is None else self.clip)
        return [*representations[:place], fitted, *representations[place + 1 :]], Fit(
            fitted, documents, found, largest
        )


@dataclass(frozen=True)
class Fit:
    """What a scale was found on.

    Attributes:
        xval: with the scale and the clip that were found.
        documents, numbers: that were looked at.
        largest: about the magnitude that is scaled to 5 (the scale is rounded down); None if there
            was no number but zero.
    """

    xval: XVal
    documents: int
    numbers: int
    largest: float | None


def xval_place(representations: Sequence[Representation]) -> int:
    """Where xVal is among the representations.

    Raises:
        RepresentationError: if it is not.
    """
    for place, representation in enumerate(representations):
        if representation.has_scale:
            return place
    raise RepresentationError(
        "only xval has a scale, and"
        f" {', '.join(representation.name for representation in representations)} does not"
        " include it"
    )


def _magnitudes(numbers: Numbers, representations: Sequence[Representation]) -> Any:
    """float64[n], the magnitudes of those numbers that the other representations do not leave as
    text.
    """
    unsigned = numbers.without_sign()
    keep = np.ones(len(unsigned), np.bool_)
    for representation in representations:
        if not representation.has_scale and representation.overflow == "text":
            keep &= representation.fits(unsigned)
    return unsigned.to_float64()[keep]


def sample_files(sources: Sequence[Source], **reading: Any) -> Iterator[pa.Array]:
    """Texts of about ``FIT_BYTES``: from the front of each file, or of ``FIT_FILES`` of them at
    even distances if there are more.

    Args:
        sources: files, which are read again afterwards.
        reading: as for :func:`numtok.corpus.read.documents.read_batches`.
    """
    count = min(len(sources), FIT_FILES)
    chosen = [sources[k * (len(sources) - 1) // max(count - 1, 1)] for k in range(count)]
    left = FIT_BYTES
    for k, source in enumerate(chosen):
        share = left // (count - k)  # what short files leave over goes to the others
        for batch in read_batches(
            source, **(reading | {"batch_bytes": min(FIT_BATCH, max(share, 1))})
        ):
            yield batch.texts
            share -= batch.texts.nbytes
            left -= batch.texts.nbytes
            if share <= 0:
                break


def sample_stream(
    items: Iterable[Item], texts_of: Callable[[Item], pa.Array]
) -> tuple[list[pa.Array], Iterator[Item]]:
    """(texts of the first items, about ``FIT_BYTES`` of them; all items): nothing is read twice."""
    source, first, size = iter(items), [], 0
    for item in source:
        first.append(item)
        size += texts_of(item).nbytes
        if size >= FIT_BYTES:
            break
    return [texts_of(item) for item in first], itertools.chain(_released(first), source)


def _released(items: list[Item]) -> Iterator[Item]:
    """Each item, and no reference to it afterwards."""
    items.reverse()
    while items:
        yield items.pop()
