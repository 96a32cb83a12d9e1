"""Numeracy: questions of arithmetic with exact answers, at any difficulty, as a data set that torch takes too.

The ten tasks are those that BitTokens is tested on (Kreitner et al. 2025: their code has addition
and subtraction as one), as a language model is asked them. The numbers are drawn by our own rule:
a level is the most significant digits that an operand has; those of lists have up to two more.
"""

from __future__ import annotations

import functools
import itertools
import random
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from numtok.errors import InputError
from numtok.score import Policy, equal, read_numbers

MOST_DIGITS = 30  # the highest level
WIDEST = 14  # the most decimal exponent of an operand, as of those of BitTokens
LONGEST_LIST = 5
LETTERS = "ABCDE"
_LIST_MARK = re.compile(r"^[^\S\n]*(?:\d+[.)]|[-*•])\s+", re.MULTILINE)
_GROUPED = (Policy(), Policy(thousands="none"))  # 1,000 is one number; 100,200 is two
EXACT = Context(prec=4 * MOST_DIGITS + 8 * WIDEST, rounding=ROUND_HALF_EVEN)

Drawn = tuple[str, str]  # question and answer


class Tasks:
    """Questions: item ``i`` is ``{"task", "level", "prompt", "answer"}``, the same for the same
    ``seed`` on every machine.

    Sums and products are exact decimals; quotients, powers, means and deviations are rounded once,
    half to even, to ``digits`` significant digits. ``std`` is that of a population. The letter of
    an ``interval`` is A or B in two of three.

    There are few questions of few digits: another seed draws many of them again, at level 1 most
    operations. Leave prompts that were trained on out of what is asked.

    Args:
        count: of questions; ``i % len(tasks)`` is the task of item ``i``.
        tasks: some of :data:`TASKS`.
        levels: the most significant digits of an operand, each drawn as often: 1 to 30. The numbers
            of lists, which agree in their first digits, have up to two more.
        digits: significant digits of a rounded answer, 1 to 30.
        seed: another one draws anew.

    Raises:
        InputError: for an unknown task, or a level or digits out of range.

    Example:
        >>> question = Tasks(count=1, tasks=["add"], levels=[2])[0]
        >>> question["prompt"], question["answer"]
        ('What is 0.96 + 3.4?', '4.36')
    """

    def __init__(
        self,
        count: int,
        tasks: Sequence[str] | None = None,
        levels: Sequence[int] = (1, 2, 3, 5, 8, 12, 15),
        digits: int = 15,
        seed: int = 0,
    ) -> None:
        self._tasks = list(TASKS if tasks is None else tasks)
        if unknown := [task for task in self._tasks if task not in TASKS]:
            raise InputError(f"no task is called {unknown[0]!r}; there are {', '.join(TASKS)}")
        if not self._tasks or not levels or count < 0:
            raise InputError("give at least one task, one level, and a count that is not negative")
        if wrong := [one for one in (*levels, digits) if not 1 <= one <= MOST_DIGITS]:
            raise InputError(f"levels and digits are from 1 to {MOST_DIGITS}, not {wrong[0]}")
        self._count, self._levels, self._digits, self._seed = count, list(levels), digits, seed

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> dict[str, Any]:
        if not -self._count <= index < self._count:
            raise IndexError(f"question {index} of {self._count}")
        number = index % self._count
        task = self._tasks[number % len(self._tasks)]
        drawn = random.Random(f"{self._seed} {number}")
        level = drawn.choice(self._levels)
        prompt, answer = TASKS[task](drawn, level, Context(prec=self._digits))
        return {"task": task, "level": level, "prompt": prompt, "answer": answer}


def is_right(question: dict[str, Any], answer: str, tolerance: str = "0") -> bool:
    """Whether a text answers a question of :class:`Tasks`: the last capital from A to E that stands
    alone for an interval, all numbers of a sorted list in their order, or the final number as
    :func:`numtok.score.equal` has it.

    Example:
        >>> question = {"task": "add", "level": 1, "prompt": "What is 2 + 3?", "answer": "5"}
        >>> is_right(question, "2 + 3 is 5."), is_right(question, "It is 6.")
        (True, False)
    """
    if question["task"] == "interval":
        letters = re.findall(rf"\b[{LETTERS}]\b", answer)
        return letters[-1:] == [question["answer"]]
    if question["task"] == "sort":
        wanted = [one.value for one in read_numbers(question["answer"])]
        readings = itertools.product((answer, _LIST_MARK.sub("", answer)), _GROUPED)
        return wanted in ([one.value for one in read_numbers(*each)] for each in readings)
    return equal(answer, question["answer"], tolerance)


def _text(value: Decimal) -> str:
    """Write plain digits, without zeros at the end of a fraction."""
    text = f"{value:f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) if value else "0"


def _number(drawn: random.Random, level: int) -> Decimal:
    """Draw ±d.ddd × 10**e, with 1 to ``level`` digits, e as large as the level at most."""
    digits = drawn.randint(1, level)
    mantissa = drawn.randrange(10 ** (digits - 1), 10**digits)
    widest = min(level, WIDEST)
    value = Decimal(mantissa).scaleb(drawn.randint(-widest, widest) - digits + 1, EXACT)
    return value.copy_negate() if drawn.random() < 0.4 else value


def _list(drawn: random.Random, level: int) -> list[Decimal]:
    """Draw two to five different numbers, which agree in some of their first digits."""
    widest = min(level, WIDEST)
    exponent = drawn.randint(-widest, widest)
    unit = Decimal(1).scaleb(exponent - level, EXACT)
    middle = drawn.randrange(10**level, 10 ** (level + 1))  # in units
    spread = max(LONGEST_LIST, 10 ** drawn.randint(1, level + 1))
    count = drawn.randint(2, LONGEST_LIST)
    places: list[int] = []
    while len(places) < count:
        place = middle + drawn.randint(-spread, spread)
        places += [place] if place not in places else []
    return [EXACT.multiply(Decimal(place), unit) for place in places]


def _operation(sign: str, compute: Callable[[Context, Decimal, Decimal], Decimal]) -> Any:
    def draw(drawn: random.Random, level: int, rounded: Context) -> Drawn:
        one, other = _number(drawn, level), _number(drawn, level)
        return f"What is {_text(one)} {sign} {_text(other)}?", _text(compute(rounded, one, other))

    return draw


def _power(drawn: random.Random, level: int, rounded: Context) -> Drawn:
    base, exponent = _number(drawn, level).copy_abs(), drawn.choice([-3, -2, 2, 3, 4])
    value = rounded.plus(EXACT.power(base, exponent))
    return f"What is {_text(base)} ^ {exponent}?", _text(value)


def _statistic(name: str, compute: Callable[[list[Decimal]], Decimal]) -> Any:
    def draw(drawn: random.Random, level: int, rounded: Context) -> Drawn:
        values = _list(drawn, level)
        shown = ", ".join(map(_text, values))
        return f"What is the {name} of {shown}?", _text(rounded.plus(compute(values)))

    return draw


def _sum(values: Iterable[Decimal]) -> Decimal:
    return functools.reduce(EXACT.add, values)


def _mean(values: list[Decimal]) -> Decimal:
    return EXACT.divide(_sum(values), Decimal(len(values)))


def _deviation(values: list[Decimal]) -> Decimal:
    """Return sqrt(n Σx² - (Σx)²) / n."""
    total, count = _sum(values), Decimal(len(values))
    squares = EXACT.multiply(count, _sum(EXACT.multiply(value, value) for value in values))
    variance = EXACT.subtract(squares, EXACT.multiply(total, total))  # times count²
    return EXACT.divide(EXACT.sqrt(variance), count)


def _extreme(drawn: random.Random, level: int, rounded: Context) -> Drawn:
    name, choose = drawn.choice([("smallest", min), ("largest", max)])
    values = _list(drawn, level)
    return f"Which is the {name} of {', '.join(map(_text, values))}?", _text(choose(values))


def _sort(drawn: random.Random, level: int, rounded: Context) -> Drawn:
    name, backwards = drawn.choice([("smallest", False), ("largest", True)])
    values = _list(drawn, level)
    in_order = ", ".join(map(_text, sorted(values, reverse=backwards)))
    return f"Sort these, the {name} first: {', '.join(map(_text, values))}", in_order


def _interval(drawn: random.Random, level: int, rounded: Context) -> Drawn:
    value, *edges = _list(drawn, level)
    edges.sort()
    parts = [f"A: below {_text(edges[0])}"]
    for k, (low, high) in enumerate(itertools.pairwise(edges), 1):
        parts.append(f"{LETTERS[k]}: from {_text(low)} to below {_text(high)}")
    parts.append(f"{LETTERS[len(edges)]}: {_text(edges[-1])} or above")
    where = sum(edge <= value for edge in edges)
    return f"Where is {_text(value)}? {'; '.join(parts)}", LETTERS[where]


TASKS: dict[str, Callable[[random.Random, int, Context], Drawn]] = {
    "add": _operation("+", lambda rounded, a, b: EXACT.add(a, b)),
    "subtract": _operation("-", lambda rounded, a, b: EXACT.subtract(a, b)),
    "multiply": _operation("*", lambda rounded, a, b: EXACT.multiply(a, b)),
    "divide": _operation("/", lambda rounded, a, b: rounded.divide(a, b)),
    "power": _power,
    "mean": _statistic("mean", _mean),
    "std": _statistic("standard deviation", _deviation),
    "extreme": _extreme,
    "sort": _sort,
    "interval": _interval,
}
