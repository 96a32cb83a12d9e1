"""xVal's scale, and the edges of quantile bins, from a sample of the texts that are to be encoded:
from all over the inputs, or from the front of a stream that can be read only once. The scale is
found as ``numtok stats`` finds it (:mod:`numtok.representations.magnitudes`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.corpus.read.batches import ReadOptions, TextBatch
from numtok.corpus.read.documents import read_batches
from numtok.corpus.read.sources import Source
from numtok.errors import RepresentationError
from numtok.numbers.grammar import Grammar
from numtok.numbers.numbers import Numbers
from numtok.numbers.scan import scan
from numtok.options import check_options
from numtok.representations import Representation, XVal, from_dict, magnitudes
from numtok.representations.magnitudes import ColumnMagnitudes, refuse_clipping

FIT_BYTES = 32 << 20  # of text; scanning it takes a tenth of a second
FIT_BATCH = 1 << 20
FIT_FILES = 32


@dataclass(frozen=True)
class ScaleFit:
    """Options of fitting xVal's scale and other parameters of representations, such as the edges of
    quantile bins.
    """

    quantile: float | None = None  # of the magnitudes, is scaled to 5; None: the fewest are lost
    clip: float | None = None  # the largest magnitude after scaling; None for 5
    scale: bool = True  # whether xVal's scale is to be found

    def __call__(
        self,
        representations: Sequence[Representation],
        grammar: Grammar,
        batches: Iterable[TextBatch],
    ) -> tuple[list[Representation], Fit]:
        """Return ``representations`` fitted to the texts, and the counts of what they were fitted
        to. RepresentationError if there is no xVal whose scale to find, or if the scale would clip
        more than :mod:`numtok.representations.magnitudes` lets pass and ``clip`` was not given.
        """
        place = xval_place(representations) if self.scale else None
        needs_fit = [one for one in representations if one.needs_fit]
        counts, documents, values_counted = np.zeros(magnitudes.BINS, np.int64), 0, 0
        kept, columns = [np.empty(0)], ColumnMagnitudes()
        for batch in batches:
            numbers, held = _held(scan(batch.texts, grammar), representations)
            values = numbers.to_float64()[held]
            documents, values_counted = documents + len(batch.texts), values_counted + len(values)
            counts += magnitudes.counted(values)
            kept += [values] if needs_fit else []
            if place is not None and batch.cells is not None:
                places = batch.cells.column_of(numbers.document[held], numbers.stop[held])
                columns += ColumnMagnitudes.of(batch.cells.names, places, values)
        fitted = [one.fit_to(np.concatenate(kept)) for one in needs_fit]
        largest = None
        if place is not None:
            unfitted: XVal = representations[place]  # type: ignore[assignment]  # by xval_place
            xval = magnitudes.fitted_xval(counts, self.quantile, unfitted.log, unfitted.overflow)
            largest = xval.largest if counts.any() else None
            if self.clip is None and self.quantile is None and unfitted.overflow != "clip":
                refuse_clipping(xval, counts, values_counted, columns)
            clip = xval.clip if self.clip is None else self.clip
            fitted.append(dataclasses.replace(xval, clip=clip))
        fit = Fit(tuple(fitted), documents, values_counted, largest)
        return fit.put_into(representations), fit


@dataclass(frozen=True)
class Fit:
    """Fitted representations, and the number of documents and numbers they were fitted to."""

    fitted: tuple[Representation, ...]
    documents: int
    numbers: int
    largest: float | None  # about what is scaled to 5; None without numbers other than zero

    @property
    def xval(self) -> XVal | None:
        """With the scale and the clip that were found; None if none was to be found."""
        return next((one for one in self.fitted if one.has_scale), None)  # type: ignore[return-value]  # XVal alone has one

    def put_into(self, representations: Iterable[Representation]) -> list[Representation]:
        """Return the representations with those that were fitted in place of those of the same name."""
        by_name = {one.name: one for one in self.fitted}
        return [by_name.get(one.name, one) for one in representations]

    def to_json(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return vars(self) | {"fitted": [one.to_dict() for one in self.fitted]}

    @classmethod
    def from_json(cls, written: dict[str, Any]) -> Fit:
        """Read what :meth:`to_json` writes; ValueError for anything else."""
        fit = cls(**written | {"fitted": tuple(map(from_dict, written["fitted"]))})
        check_options(fit, "fit", ValueError)
        return fit


def xval_place(representations: Sequence[Representation]) -> int:
    """Return where xVal is among the representations; RepresentationError if it is not."""
    for place, representation in enumerate(representations):
        if representation.has_scale:
            return place
    raise RepresentationError(
        "only xval has a scale, and"
        f" {', '.join(representation.name for representation in representations)} does not"
        " include it"
    )


def _held(
    numbers: Numbers, representations: Sequence[Representation]
) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """Return the n numbers, without their signs if one of the representations has none; and
    bool[n], which of them the others do not leave as text.
    """
    if not all(one.carries_sign for one in representations):
        numbers = numbers.without_sign()
    keep = np.ones(len(numbers), np.bool_)
    for one in representations:
        if not (one.has_scale or one.needs_fit) and one.overflow == "text":
            keep &= one.fits(numbers)
    return numbers, keep


def sample_files(sources: Sequence[Source], options: ReadOptions) -> Iterator[TextBatch]:
    """Yield texts of about ``FIT_BYTES``: from the front of each file, or of ``FIT_FILES`` of them
    at even distances if there are more. All files are read again afterwards.
    """
    count = min(len(sources), FIT_FILES)
    chosen = [sources[k * (len(sources) - 1) // max(count - 1, 1)] for k in range(count)]
    left = FIT_BYTES
    for k, source in enumerate(chosen):
        share = left // (count - k)  # what short files leave over goes to the others
        size = min(FIT_BATCH, max(share, 1))
        for batch in read_batches(source, dataclasses.replace(options, batch_bytes=size)):
            yield batch
            share -= batch.texts.nbytes
            left -= batch.texts.nbytes
            if share <= 0:
                break
