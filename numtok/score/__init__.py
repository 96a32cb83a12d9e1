"""Score numbers in answers: find the final number of a text, compare it exactly or within a
tolerance, and report on many. Pure Python: loads in a few hundredths of a second.
"""

from __future__ import annotations

from numtok.score.compare import digits_right, equal
from numtok.score.cut import looks_cut
from numtok.score.final import final_number
from numtok.score.policy import POLICIES, Policy
from numtok.score.reading import Answer, read_numbers
from numtok.score.report import Report, report

__all__ = [
    "POLICIES",
    "Answer",
    "Policy",
    "Report",
    "digits_right",
    "equal",
    "final_number",
    "looks_cut",
    "read_numbers",
    "report",
]
