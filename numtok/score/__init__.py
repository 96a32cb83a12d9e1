"""Score numbers in answers: find the final number of a text, compare it exactly or within a
tolerance, and report on many; check the figures of a text against its sources. Pure Python: NumPy
is not loaded.
"""

from numtok.score.compare import digits_right, equal
from numtok.score.cut import looks_cut
from numtok.score.figures import Place
from numtok.score.final import final_number
from numtok.score.grounding import Figure, Sources, grounded
from numtok.score.grounding_report import GroundedReport, grounded_report
from numtok.score.policy import POLICIES, Policy
from numtok.score.reading import Answer, read_numbers
from numtok.score.report import Report, report

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
