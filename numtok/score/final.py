"""Find the answer of a text: in a box, after "####", after "answer is", or at the end.

Everywhere the answer is one number as a whole, or none (:mod:`numtok.score.quantities`). What a
model writes after its answer, another question and its answer, is not read; nor is what it thinks
between ``<think>`` and ``</think>``.
"""

from __future__ import annotations

import bisect
import collections
import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator

from numtok.score.policy import Policy, policy_named
from numtok.score.quantities import read_quantities
from numtok.score.reading import Answer, Reading, iterate_readings

MOST_MARKS = 50  # that are looked behind
MOST_READ = 200_000  # characters at the end of a text, from the next that is in no numeral on
MOST_BEHIND = 5_000  # characters of the line behind a mark
MOST_LINE = 200  # characters of the line before a citation
MOST_BEFORE = 2_000  # characters of the line before its last number
_WORD, _DIGIT = re.compile(r"[^\W_]"), re.compile(r"\d")
_NO_NUMERAL = re.compile(  # where no grammar has a numeral go on: a letter, 5-, ,5,
    r"[^\d.,'’_٫٬eEdD+\-\u2212]|\d[+\-\u2212]|[.,'’_٫٬]\d(?=[.,'’_٫٬])"
)
_THOUGHT = re.compile(  # <|channel|>final is how gpt-oss begins its answer
    r".*(?:</think(?:ing)?>|<\|channel\|>final<\|message\|>)", re.DOTALL
)
_THINKS = re.compile(r"<think(?:ing)?>")
_RUN_ON = re.compile(
    r"\n[^\S\n]*(?:\*\*|\#+\s*)?(?:Question|Q|Problem|Exercise|Human|User|Instruction)"
    r"\s*(?:\d+\s*)?(?:\*\*)?:"
    r"|<\|(?:im_end|im_start|endoftext|eot_id|eom_id|end_of_text|end|return|user)\|>|</s>|<eos>|\[INST\]"
    r"|<end_of_turn>|<｜end▁of▁sentence｜>"
)
_CALCULATOR = re.compile(r"<<[^<>\n]*>>")  # as GSM8K has them: 5*2=<<5*2=10>>10
_LINK = re.compile(  # what a link leads to
    r"(?<=\])\((?:https?:|[#/])[^\s()]{1,500}\)|\b(?:https?://|www\.)[^\s<>\[\]{}|\"'`\u0080-\U0010ffff]+"
)
_PRECISION = re.compile(  # 3.14 (2 d.p.), 3.14 to 2 decimal places, to the nearest 0.01
    r"(?:\b(?:to|with|in|at)\s|\()\d{1,2}\s?(?:decimals?\b(?:\s(?:places?|digits?|points?)\b)?"
    r"|sig(?:nificant|\.)?\s?(?:fig(?:ure)?|digit)s?\b|(?:d\.?p|s\.?f)\b)"
    r"|(?<=\bnearest\s)[$€£]?\d+(?:[.,/]\d+)*(?:st|nd|rd|th)?"
)
_CITATION = re.compile(  # 12 km [1], 12.[^1], 12【4†source】
    r"(?:(?<=[\w%.,;)\]\"”’*`$}°€£])|(?<=[a-z]>))(?:<sup>|[^\S\n])?\[{1,2}\^?\d{1,3}\]{1,2}"
    r"(?!\s*(?:[({}$+/^=\d-]|\*(?!\*)))|【\d+(?::\d+)?†[^】\n]{0,60}】"
)
_NO_CITATION = re.compile(  # the number of 5 + 7 is [12], of an interval, an entry of a list
    r"(?:^[^\n\d]*|\b(?:is|are|was|were|be|equals?|gives?|get|of|in|at|to|from|by|and|or|set|list|index|array))\Z",
    re.MULTILINE | re.IGNORECASE,
)
_EMPHASIS = re.compile(r"(?<![^\s*:(>\"=≈])(__?)(?=[^\s_])([^_\n]{1,80})(?<=\S)\1(?!\w)")  # __72__
_BOXED = re.compile(r"\\(?:boxed|fbox)\s*(?:\{|(?=\S))")
_HEADING = re.compile(
    r"\W*+(?:step|part|question|problem|case|example|exercise|solution|approach|method|section)\s*\d"
    r"|\s*\d{1,2}[.)]\s+[A-Z][^\n]*\n\s*\S",
    re.IGNORECASE,
)
# an answer without a number: a formula, a letter, a number in words, digits that are no numeral
_NO_NUMBER = re.compile(
    r"[\s*_`:(]*(?:\$|\\|[A-Za-zα-ω][.)\s*]*\Z|[^\W\d]*\d|(?:zero|one|two|three|four|five|six|seven|eight|nine|ten"
    r"|eleven|twelve|\w+teen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|(?:a\s)?hundred)\b)",
    re.IGNORECASE,
)
_LINE = re.compile(r"^[^\n]*[\d¼-¾⅐-⅞][^\n]*", re.MULTILINE)  # that may hold a number
_FIRST_ITEM = re.compile(r"[^\w\n]*1[.)][*_]*[^\S\n]++\S")
_MARKER = re.compile(
    r"(?:\b|(?<=final)|(?<=final_))(?:answer|(?<!\bas\sa\s)result)\s*+(?:\(s\))?(?:\*\*|__|`|\")*+\s*+"
    r"(?:(?:of|to|for)\s[^\n.!?;:=]{0,120}?\s)?"
    r"(?:\([^()\n\d]{1,40}\)\s|,\s(?:then|therefore|thus|indeed|in\sfact|of\scourse),\s|(?:that\s)?(?:I|we)\s\w+\s)?"
    r"(?:(?:is|was|are|equals|would\s+be|should\s+be|will\s+be|turns\s+out\s+to\s+be|comes\s+(?:out\s+)?to)(?![^\W_])"
    r"|[:=→⇒])"
    r"|<(?:final_)?answer>|^[^\w\n]*(?:final\s+)?answer\b[^\w\n]*?[^\S\n][-–—][^\S\n]|^[^\w\n]*final\s+answer\b[^\w\n]*$"
    r"|\bans\.?\s*[:=]"
    r"|\b(?:antwort|r[ée]ponse|respuesta|resposta|risposta|jibu)\b[^\n\d:]{0,30}?"
    r"(?:\bist\b|\blautet\b|\bwäre\b|\best\b|\bserait\b|\bes\b|\bser[ií]a\b|\bé\b|\bè\b|\bsarebbe\b|\bni\b|:)"
    r"|ответ\s*(?::|—|-)?|(?:答案|答え|答|正解)\s*(?:是|为|為|は|：|:)?|উত্তর\s*(?:হল|:)?|คำตอบ\s*(?:คือ|:)?|సమాధానం\s*:?",
    re.IGNORECASE | re.MULTILINE,
)
_CLOSES = re.compile(r"\n|</(?:final_)?answer>", re.IGNORECASE)  # what stands behind a marker


def final_number(text: str, policy: Policy | str = "default") -> Answer | None:
    """Return the number that a text gives as its answer.

    Args:
        text: plain or LaTeX; at most its last 200,000 characters are read.
        policy: where it stands and how it is written, see :class:`Policy`, or the name of one.

    Returns:
        The number with its exact value; None if there is none, or if the answer is more than one
        number as a whole (a tuple, a formula, a range, a choice).

    Raises:
        NumtokError: for a policy that does not exist.

    Examples:
        >>> final_number("The answer is 1,072 clips.").value
        Decimal('1072')
        >>> final_number("The answer is 3 or 4.") is None
        True
    """
    chosen = policy_named(policy)
    start, stop = answer_span(text)
    body = text[start:stop]
    for no_answer in (_CALCULATOR, _LINK, _PRECISION):
        body = no_answer.sub(_blank, body)
    body = _CITATION.sub(lambda match: _blank(match) if _is_citation(match) else match[0], body)
    if chosen.latex:
        body = _EMPHASIS.sub(lambda match: match[0].replace("_", "*"), body)
    answer = _answer(_Text(body, chosen))
    if answer is None:
        return None
    first, last = start + answer.start, start + answer.stop
    return dataclasses.replace(answer, text=text[first:last], start=first, stop=last)


def _blank(match: re.Match[str]) -> str:
    """Return as many characters that no number needs."""
    return "\u200b" * len(match[0])


def _is_citation(match: re.Match[str]) -> bool:
    """Whether [1] cites a source: behind a number of its line, and no word that leads to a number."""
    text, start = match.string, match.start()
    return match[0][0] == "【" or not _NO_CITATION.search(text, max(0, start - MOST_LINE), start)


def answer_span(text: str) -> tuple[int, int]:
    """Return the span of what is neither thought nor run on."""
    cut = _NO_NUMERAL.search(text, len(text) - MOST_READ) if len(text) > MOST_READ else None
    start = cut.start() if cut else 0
    thought = _THOUGHT.match(text, start)
    before = start + len("</think")  # a mark that is cut is read too
    if thought is None and text.rfind("<think", 0, before) > text.rfind("</think", 0, before):
        return len(text), len(text)  # the thought has no end
    start = thought.end() if thought else start
    unclosed = _THINKS.search(text, start)
    stop = unclosed.start() if unclosed else len(text)
    digit = _DIGIT.search(text, start, stop)
    run_on = _RUN_ON.search(text, digit.end(), stop) if digit else None
    return start, run_on.start() if run_on else stop


class _Text:
    """A text and its numbers."""

    def __init__(self, text: str, policy: Policy) -> None:
        self.text, self.policy = text, policy
        self.read: dict[tuple[int, int], list[Reading]] = {}  # by the span of whole lines

    def readings(self, start: int, stop: int) -> list[Reading]:
        """Return the numbers that text[start:stop] has a part of: those of -\\boxed{5} and \\boxed{5}\\% too."""
        first = self.text.rfind("\n", 0, start) + 1
        last = self.text.find("\n", stop)
        lines = first, len(self.text) if last < 0 else last
        if lines not in self.read:
            self.read[lines] = list(iterate_readings(self.text, self.policy, *lines))
        read = self.read[lines]
        begin = bisect.bisect_right(read, start, key=lambda one: one.stop)
        return read[begin : bisect.bisect_left(read, stop, begin, key=lambda one: one.start)]

    def quantities(self, start: int, stop: int, boxed: bool = False) -> Iterator[Answer | None]:
        """Yield the quantities of text[start:stop]."""
        return read_quantities(self.text, self.readings(start, stop), start, stop, boxed)

    def whole(self, start: int, stop: int) -> Answer | None:
        """Return the one quantity of text[start:stop], None if there are several."""
        quantities = list(itertools.islice(self.quantities(start, stop, boxed=True), 2))
        return quantities[0] if len(quantities) == 1 else None


def _answer(text: _Text) -> Answer | None:
    """Return the answer of the first place that the text has; with ``several="none"`` only if all
    places agree.
    """
    asked = text.policy.answer
    ways = ("boxed", "hash", "marker", "last") if asked == "auto" else (asked,)
    strict = text.policy.several == "none"
    answers: list[Answer | None] = []
    for way in ways:
        if way == "last" and answers:
            break
        answers += _WAYS[way](text) if strict else itertools.islice(_WAYS[way](text), 1)
        if answers and not strict:
            break
    return _one_number(answers) if answers else None


def _boxed(text: _Text) -> Iterator[Answer | None]:
    """Yield the number of each box, the last one first. Boxes that "and", "or" or a comma joins
    are one answer: their number if all hold the same one, else None.
    """
    joined: list[Answer | None] = []
    after = -1  # where the box after this one begins
    for box in reversed(collections.deque(_BOXED.finditer(text.text), MOST_MARKS)):
        stop, answer = _box(text, box.end())
        if joined and not (stop < after and _JOINT.fullmatch(text.text, stop, after)):
            yield _one_number(joined)
            joined = []
        joined.append(answer)
        after = box.start()
    if joined:
        yield _one_number(joined)


def _box(text: _Text, start: int) -> tuple[int, Answer | None]:
    """Return where a box ends that begins before ``start``, and its number."""
    if text.text[start - 1] == "{":
        stop = _closing(text.text, start)
        return stop, text.whole(start, stop)
    line = text.text.find("\n", start)
    stop = len(text.text) if line < 0 else line
    return stop, next(text.quantities(start, stop), None)


def _one_number(answers: list[Answer | None]) -> Answer | None:
    """Return the first answer if all are the same number, written alike or not: 0.5 is 1/2."""
    numbers = {one and (one.value, one.percent) for one in answers}
    return answers[0] if len(numbers) == 1 else None


_GAP = r"(?:[\s$~]|\\[ ,;:!()\[\]]|\\q?quad(?![A-Za-z]))*+"
_JOINT = re.compile(  # }\% and y =
    rf"\}}{_GAP}(?:\\?%{_GAP})?(?:(?:,{_GAP})?(?:and|or|\\text(?:rm|bf|normal)?\s?\{{\s*(?:and|or|,)\s*\}})|,)"
    rf"{_GAP}(?:[A-Za-z](?:_\w)?{_GAP}={_GAP})?"
)


_BRACE = re.compile(r"[{}]")


def _closing(text: str, start: int) -> int:
    """Return where the brace closes that opens before ``start``, else the end of the text."""
    depth = 1
    for brace in _BRACE.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return brace.start()
    return len(text)


def _hash(text: _Text) -> Iterator[Answer | None]:
    """Yield what stands after each ``####`` that is no heading."""
    marks = itertools.islice(re.finditer("####", text.text), MOST_MARKS)
    places = (mark.end() for mark in marks)
    return _behind((place for place in places if not _HEADING.match(text.text, place)), text)


def _marker(text: _Text) -> Iterator[Answer | None]:
    """Yield what stands after each word for an answer, the last one first."""
    marks = collections.deque(_MARKER.finditer(text.text), MOST_MARKS)
    return _behind((mark.end() for mark in reversed(marks)), text)


def _behind(places: Iterable[int], text: _Text) -> Iterator[Answer | None]:
    """Yield the first quantity of the first line after each place that has more than marks; None
    for an answer that is no number, nothing for words that only lead to one.
    """
    for place in places:
        word = _WORD.search(text.text, place)
        if word is None:
            continue
        line = text.text.rfind("\n", place, word.start()) + 1
        if line and _FIRST_ITEM.match(text.text, line):  # of some steps, say
            continue
        place = max(place, line)
        closing = _CLOSES.search(text.text, word.end(), place + MOST_BEHIND)
        end = closing.start() if closing else min(len(text.text), place + MOST_BEHIND)
        quantities = list(itertools.islice(text.quantities(place, end), 1))
        if not quantities and not text.readings(place, end):
            quantities += [None] * bool(_NO_NUMBER.match(text.text, place, end))
        yield from quantities


def _last(text: _Text) -> Iterator[Answer | None]:
    """Yield the last quantity of the last line that holds a number."""
    for line in reversed(list(_LINE.finditer(text.text))):
        if readings := text.readings(*line.span()):
            start = max(line.start(), readings[-1].start - MOST_BEFORE)
            yield from collections.deque(text.quantities(start, line.end()), 1)
            return


_WAYS = {"boxed": _boxed, "hash": _hash, "marker": _marker, "last": _last}
