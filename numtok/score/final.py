"""Where the answer of a text stands: in a box, after "####", after "answer is", or last.

What a model writes after its answer, another question and its answer, is not read; nor is what it
thinks between ``<think>`` and ``</think>``.
"""

from __future__ import annotations

import collections
import itertools
import re
from collections.abc import Iterable

from numtok.score.policy import Policy, policy_named
from numtok.score.reading import Answer, iterate_numbers

MOST_MARKS = 50  # that are looked behind
MOST_BETWEEN = 200  # characters between two numbers of an equation
MOST_READ = 1_000_000  # characters at the end of a text, from the next white space on
_WORD, _SPACE, _DIGIT = re.compile(r"[^\W_]"), re.compile(r"\s"), re.compile(r"\d")
_THOUGHT = re.compile(r".*</think(?:ing)?>", re.DOTALL)
_RUN_ON = re.compile(
    r"\n[^\S\n]*(?:\*\*|\#+\s*)?(?:Question|Q|Problem|Exercise|Human|User|Instruction)"
    r"\s*(?:\d+\s*)?(?:\*\*)?:"
    r"|<\|(?:im_end|im_start|endoftext|eot_id|end_of_text|end)\|>|</s>|<eos>|\[INST\]"
)
_BOXED = re.compile(r"\\(?:boxed|fbox)\s*(?:\{|(?=\S))")
_MARKER = re.compile(
    r"\b(?:final\s+)?(?:answer|result)\s*+(?:\(s\))?(?:\*\*|__|`|\")*+\s*+"
    r"(?:is|was|are|equals|would\s+be"
    r"|should\s+be|will\s+be|comes\s+(?:out\s+)?to|[:=]|of)"
    r"|\b(?:antwort|r[ée]ponse|respuesta|resposta|risposta|jibu)\b[^\n\d:]{0,30}?"
    r"(?:\bist\b|\best\b|\bes\b|\bé\b|\bè\b|\bni\b|:)"
    r"|ответ\s*(?::|—|-)?|(?:答案|答え|答|正解)\s*(?:是|为|為|は|：|:)?|উত্তর\s*(?:হল|:)?|คำตอบ\s*(?:คือ|:)?|సమాధానం\s*:?",
    re.IGNORECASE,
)
# a word is taken from its first letter on: else there are exponentially many ways
_BETWEEN = re.compile(
    r"(?:[\s$€£()*{}]|\\[()\[\],;! ]|\\(?:text|mathrm)\{[^{}]*\}"
    r"|(?<![^\W\d_])[^\W\d_]{2,}\.?)*"
)
_OPERATOR = r"(?:[-+*/×÷·^]|\u2212|\\times|\\cdot|\\div|x(?=[\s$(\\]))"
_LINK = re.compile(rf"{_BETWEEN.pattern}(?P<sign>=|≈|{_OPERATOR}){_BETWEEN.pattern}")
_WORDS = re.compile(
    r"\\(?:text|mathrm|mbox|textbf|textrm|mathbf|bf|rm|left|right|displaystyle|quad|qquad|circ|degree"
    r"|approx|dollar)\b|\\[ ,;:!$%()\[\]]|\^\s*\{?\\circ\}?|\^[23]|/|-(?=[^\W\d_])"
    r"|[\s$€£{}().,;:?*~`'\"°¢%≈]|(?<![^\W_])[^\W\d_](?![^\W_])|[^\W\d_]{2,}"
)


def final_number(text: str, policy: Policy | str = "default") -> Answer | None:
    """The number that a text gives as its answer.

    Args:
        text: plain or LaTeX; of a longer one the last ``MOST_READ`` characters are read.
        policy: where it stands and how it is written, see :class:`Policy`, or the name of one.

    Returns:
        The number with its exact value; None if there is none, or if what is boxed is no single
        number (a tuple, a formula, a letter).

    Raises:
        NumtokError: for a policy that does not exist.
    """
    chosen = policy_named(policy)
    start, stop = answer_span(text)
    ways = ("boxed", "hash", "marker", "last") if chosen.answer == "auto" else (chosen.answer,)
    for way in ways:
        found = _WAYS[way](text, start, stop, chosen)
        if found is not _ABSENT:
            return found
    return None


_ABSENT = Answer(None, "", 0, 0)  # type: ignore[arg-type]  # stands for a text without such a mark


def answer_span(text: str) -> tuple[int, int]:
    """What is neither thought nor run on; all of the text if that would leave nothing."""
    cut = _SPACE.search(text, len(text) - MOST_READ) if len(text) > MOST_READ else None
    start = cut.start() if cut else 0
    thought = _THOUGHT.match(text, start)
    start = thought.end() if thought and text[thought.end() :].strip() else start
    digit = _DIGIT.search(text, start)
    run_on = _RUN_ON.search(text, digit.end()) if digit else None
    return start, run_on.start() if run_on else len(text)


def _boxed(text: str, start: int, stop: int, policy: Policy) -> Answer | None:
    """Of the last box; None if it holds no single number."""
    boxes = list(_BOXED.finditer(text, start, stop))
    if not boxes:
        return _ABSENT
    first = boxes[-1].end()
    if text[first - 1] != "{":
        return next(iterate_numbers(text, policy, first, stop), None)
    depth, end = 1, first
    while end < stop and depth:
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
    return read_answer(text, policy, first, end - 1 if not depth else end)


def read_answer(
    text: str, policy: Policy, start: int = 0, stop: int | None = None
) -> Answer | None:
    """A stretch that is the answer as a whole, such as ``x = 5 \\text{ cm}``: its number after the
    last sign of equality, if there is but one and nothing else but words.
    """
    stop = len(text) if stop is None else stop
    for sign in ("=", "\\approx", "≈"):
        at = text.rfind(sign, start, stop)
        if at >= 0:
            start = at + len(sign)
    numbers = list(iterate_numbers(text, policy, start, stop))
    if len(numbers) != 1:
        return None
    before, after = text[start : numbers[0].start], text[numbers[0].stop : stop]
    glued = re.match(r"[^\W\d_](?![^\W_])", after) and not numbers[0].currency
    rest = _WORDS.sub("", before) + _WORDS.sub("", after)
    return None if rest or glued else numbers[0]


def _hash(text: str, start: int, stop: int, policy: Policy) -> Answer | None:
    """After the first ``####`` that has a number after it."""
    marks = itertools.islice(re.compile("####").finditer(text, start, stop), MOST_MARKS)
    return _first_behind((mark.end() for mark in marks), text, stop, policy)


def _marker(text: str, start: int, stop: int, policy: Policy) -> Answer | None:
    """After the last word for an answer that has a number after it."""
    marks = collections.deque(_MARKER.finditer(text, start, stop), MOST_MARKS)
    return _first_behind((mark.end() for mark in reversed(marks)), text, stop, policy)


def _first_behind(places: Iterable[int], text: str, stop: int, policy: Policy) -> Answer | None:
    """What stands after the first of the places that has something after it."""
    found = (_behind(text, place, stop, policy) for place in places)
    return next((one for one in found if one is not _ABSENT), _ABSENT)


def _behind(text: str, start: int, stop: int, policy: Policy) -> Answer | None:
    """The first number of the first line that has more than marks; of an equation, what it comes
    to; None for a sum without its result.
    """
    word, found, sign = _WORD.search(text, start, stop), _ABSENT, None
    end = text.find("\n", word.end(), stop) if word else start
    for number in iterate_numbers(text, policy, start, stop if end < 0 else end):
        if found is not _ABSENT:
            near = number.start - found.stop <= MOST_BETWEEN
            link = _LINK.fullmatch(text, found.stop, number.start) if near else None
            if link is None:
                break
            sign = link["sign"]
        found = number
    return found if sign in (None, "=", "≈") else None


def _last(text: str, start: int, stop: int, policy: Policy) -> Answer | None:
    """The last number of all."""
    last = None
    for last in iterate_numbers(text, policy, start, stop):  # noqa: B007
        pass
    return last


_WAYS = {"boxed": _boxed, "hash": _hash, "marker": _marker, "last": _last}
