"""Whether an answer stops before its end, as one does that reached the limit of new tokens."""

from __future__ import annotations

import re

from numtok.score.final import answer_span
from numtok.score.policy import Policy, policy_named

_TAIL = 100  # characters at the end that tell whether a number or a formula goes on
_END_TOKEN = re.compile(
    r"(?:<\|[^|<>]{1,30}\|>|</s>|<eos>|<end_of_turn>|<｜end▁of▁sentence｜>)\s*\Z"
)
_GOES_ON = re.compile(
    r"(?:[,;:(\[{+×·÷≈<&^]|(?<!=)=|(?<!/)/|(?<![-\u2212])[-\u2212]|\s\$|\\"
    r"|\\[dtc]?frac\s*(?:\{[^{}]*\})?|\\(?:boxed|fbox|sqrt|text|mathrm|times|cdot|div|pm|approx|leq?|geq?)"
    r"|\d[eE][-+]?)\Z"
)
_CUT_GROUP = {  # of three digits
    "comma": re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})*,\d{1,2}\Z"),
    "point": re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:\.\d{3})*\.\d{1,2}\Z"),
    "apostrophe": re.compile(r"(?<![\d.,'’])[1-9]\d{0,2}(?:['’]\d{3})*['’]\d{1,2}\Z"),
    "lakhs": re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{2,3})*,\d{1,2}\Z"),
    "none": re.compile(r"(?!)"),
}
_LABELLED = re.compile(r"####|\\(?:boxed|fbox)|[:：=]\W*(?:\S+\s+){0,2}\S+\Z")
_NO_END = re.compile(r"[\w%€£¥°]\Z")
# a question may be the prompt's; what stands after a number of a line, or Mr and the like, ends none
_SENTENCE_END = re.compile(
    r"(?<!^\d)(?<!^\d\d)(?<!\b[A-Z])(?<!\b[A-Z][a-z])(?<!\b[A-Z][a-z]{2})"
    r"[.!…][\"'”’)\]*_]*(?=\s)|[。！।]",
    re.MULTILINE,
)


def looks_cut(text: str, policy: Policy | str = "default") -> bool:
    """Whether an answer seems to stop before its end.

    So does one that ends

    - within a number (``1,00``), a formula, a bracket or a thought, or behind an operator or a comma;
    - with a sentence without an end, such as a number at the very end, where an earlier sentence
      has one. A line that gives its answer behind ``####``, a box, ``=`` or a colon needs none.

    A token that ends a turn, and the beginning of another question, end an answer.

    Args:
        text: plain or LaTeX.
        policy: which mark groups digits, see :class:`Policy`, or the name of one.

    Raises:
        NumtokError: for a policy that does not exist.

    Example:
        >>> looks_cut("She sold 24. In all the clips cost $1,00")
        True
        >>> looks_cut("She sold 24.\\n#### 72")
        False
    """
    group = _CUT_GROUP[policy_named(policy).thousands]
    if text.rfind("<think") > text.rfind("</think"):
        return True
    start, stop = answer_span(text)
    if stop < len(text) or _END_TOKEN.search(text[-2 * _TAIL :]):
        return False
    body = text[start:].rstrip()
    line = body[body.rfind("\n") + 1 :]
    tail = line[-_TAIL:]
    if _is_open(body, line) or _GOES_ON.search(tail) or group.search(tail):
        return True
    if not _NO_END.search(tail) or _LABELLED.search(tail):
        return False
    return _SENTENCE_END.search(body) is not None


def _is_open(body: str, line: str) -> bool:
    """Whether a formula, or a bracket of the last line, is not closed."""
    formulas = any(body.rfind(f"\\{one}") > body.rfind(f"\\{end}") for one, end in ("()", "[]"))
    # an interval may be (0, 5]
    brackets = sum(map(line.count, "([")) > sum(map(line.count, ")]"))
    return formulas or brackets or line.count("{") > line.count("}")
