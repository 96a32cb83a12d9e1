"""A report: the statistics of a corpus, what the representations would lose of it, and which one
suits.

In: :class:`~numtok.statistics.Statistics`. Out: :class:`Report`, which the terminal, the page and
    JSON show.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numtok.representations import Representation, XVal
from numtok.statistics.candidates import fitted_xval
from numtok.statistics.losses import Loss, losses
from numtok.statistics.recommend import Recommendation, recommend
from numtok.statistics.statistics import Statistics


@dataclass(frozen=True)
class Report:
    """What there is to tell about a corpus.

    Attributes:
        statistics: that were counted.
        losses: of the representations that were asked for.
        recommendation: among all that are registered.
        xval: with the scale that xVal wants.
    """

    statistics: Statistics
    losses: tuple[Loss, ...]
    recommendation: Recommendation
    xval: XVal

    @classmethod
    def of(
        cls, statistics: Statistics, representations: Sequence[Representation] | None = None
    ) -> Report:
        """Of the statistics; ``representations`` are compared, or all that are registered if none
        are given.
        """
        known = losses(statistics)
        compared = known if representations is None else losses(statistics, representations)
        return cls(
            statistics, tuple(compared), recommend(statistics, known), fitted_xval(statistics)
        )

    def to_json(self) -> dict[str, Any]:
        """``statistics`` as :meth:`Statistics.from_json` takes them, ``representations``,
        ``recommendation``, and the ``scale`` and ``clip`` of xVal.
        """
        return {
            "statistics": self.statistics.to_json(),
            "representations": [loss.to_json() for loss in self.losses],
            "recommendation": dataclasses.asdict(self.recommendation),
            "scale": self.xval.scale,
            "clip": self.xval.clip,
        }
