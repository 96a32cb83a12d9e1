"""Score numbers in answers: find the final number of a text, compare it exactly or within a
tolerance, and report on many; check the figures of a text against its sources. Pure Python: loads
in a few hundredths of a second.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from numtok.score.compare import digits_right, equal
from numtok.score.cut import looks_cut
from numtok.score.final import final_number
from numtok.score.policy import POLICIES, Policy
from numtok.score.reading import Answer, read_numbers
from numtok.score.report import Report, report

if TYPE_CHECKING:  # "as" makes them names of this module
    from numtok.score.figures import Place as Place
    from numtok.score.grounding import Figure as Figure
    from numtok.score.grounding import Sources as Sources
    from numtok.score.grounding import grounded as grounded
    from numtok.score.grounding_report import (
        GroundedReport as GroundedReport,
    )
    from numtok.score.grounding_report import (
        grounded_report as grounded_report,
    )

_LATER = {  # where the names are that are loaded when they are first used
    "Place": "figures",
    "Figure": "grounding",
    "Sources": "grounding",
    "grounded": "grounding",
    "GroundedReport": "grounding_report",
    "grounded_report": "grounding_report",
}
__all__ = [
    "POLICIES",
    "Answer",
    "Figure",
    "GroundedReport",
    "Place",
    "Policy",
    "Report",
    "Sources",
    "digits_right",
    "equal",
    "final_number",
    "grounded",
    "grounded_report",
    "looks_cut",
    "read_numbers",
    "report",
]


def __getattr__(name: str) -> Any:
    """A name of ``_LATER``, from where it is."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
    return value
