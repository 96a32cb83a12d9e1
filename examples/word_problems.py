"""Arithmetic word problems from our own templates, to fine-tune on: ``finetune_fermat.py`` uses
them.

The published FERMAT data are test sets. These questions ask for the same nine expressions, with
numbers written in the same ways: whole, with one or two decimals, without the leading zero, in
groups, in words. The sentences are our own.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

ONES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
ONES += [
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
NAMES = [
    "Ada",
    "Ben",
    "Carla",
    "Deepak",
    "Elif",
    "Farid",
    "Grace",
    "Hugo",
    "Imani",
    "Jonas",
    "Keiko",
    "Liam",
    "Maria",
    "Omar",
    "Priya",
    "Rosa",
]
THINGS = [
    "apples",
    "balloons",
    "books",
    "candies",
    "cards",
    "cookies",
    "eggs",
    "games",
    "marbles",
    "oranges",
    "shells",
    "stamps",
]
# ways to write numbers; plain digits twice as often
WRITINGS = (
    "plain",
    "plain",
    "one decimal",
    "two decimals",
    "bare",
    "comma",
    "space",
    "words",
)
TEMPLATES = {
    "a+b": (
        (
            "{name} has {a} {things}. {other} gives {name} {b} more. How many {things} does {name}"
            " have in all?"
        ),
        (
            "There are {a} {things} in one box and {b} in another. How many {things} are there"
            " altogether?"
        ),
        "What is the sum of {a} and {b}?",
    ),
    "a-b": (
        (
            "{name} had {a} {things} and gave {b} of them to {other}. How many {things} does {name}"
            " have left?"
        ),
        "{name} has {a} {things}, {other} has {b}. How many more {things} does {name} have?",
        "What is {a} minus {b}?",
    ),
    "a*b": (
        "{name} buys {a} boxes with {b} {things} in each. How many {things} are there in all?",
        "One of the {things} costs {a} dollars. What do {b} of them cost?",
        "What is {a} times {b}?",
    ),
    "a/b": (
        "{name} puts {a} {things} into bags of {b} each. How many bags does {name} need?",
        "{a} {things} are shared equally by {b} children. How many does each of them get?",
        "What is {a} divided by {b}?",
    ),
    "a+b-c": (
        (
            "{name} had {a} {things}, found {b} more, and lost {c}. How many {things} does {name}"
            " have now?"
        ),
        (
            "{name} has {a} {things} and {other} has {b}. Together they sold {c}. How many {things}"
            " are left?"
        ),
        (
            "There were {a} {things} in a shop. {b} more came in and {c} were sold. How many"
            " {things} are in the shop?"
        ),
    ),
    "(a+b)/c": (
        (
            "{name} had {a} {things} and bought {b} more, which fill bags of {c} each. How many"
            " bags are there?"
        ),
        (
            "{name} earned {a} dollars and then {b} dollars. How many {things} at {c} dollars each"
            " is that enough for?"
        ),
    ),
    "(a-b)/c": (
        (
            "{name} had {a} {things}, ate {b}, and put the others into boxes of {c} each. How many"
            " boxes are there?"
        ),
        (
            "Of {a} {things}, {b} were lost; {c} children share the others. How many does each of"
            " them get?"
        ),
    ),
    "a*(b+c)": (
        (
            "At {a} dollars each, {name} bought {b} {things} on Monday and {c} on Tuesday. How many"
            " dollars did {name} spend?"
        ),
        "{a} bags hold {b} red and {c} blue {things} each. How many {things} are there in all?",
    ),
    "a*(b-c)": (
        (
            "{name} had {b} {things}, of which {c} were broken, and sold the others for {a} dollars"
            " each. How many dollars did {name} earn?"
        ),
        (
            "Each of {a} boxes held {b} {things} until {c} were taken out of every one. How many"
            " {things} are left?"
        ),
    ),
}


@dataclass(frozen=True)
class Problem:
    """A question and its answer, an exact decimal. Problems of :func:`problems` have the answer in
    its shortest form, and the equation.
    """

    question: str
    answer: str
    equation: str = ""


def problems(count: int, seed: int) -> list[Problem]:
    """Return ``count`` problems, always the same for a seed."""
    made = _problems(random.Random(seed))
    return [next(made) for _ in range(count)]


def _problems(draw: random.Random) -> Iterator[Problem]:
    """Yield problems without end."""
    while True:
        form, writing = draw.choice(list(TEMPLATES)), draw.choice(WRITINGS)
        places = {"one decimal": 1, "two decimals": 2, "bare": draw.choice([1, 2])}.get(writing, 0)
        numbers, answer = _numbers(form, writing, draw)
        name, other = draw.sample(NAMES, 2)
        written = {
            letter: write(value, places, writing)
            for letter, value in zip("abc", numbers, strict=False)
        }
        question = draw.choice(TEMPLATES[form]).format(
            name=name, other=other, things=draw.choice(THINGS), **written
        )
        # decimals of the answer: tenths times tenths are hundredths
        decimals = places * (1 + form.count("*") - form.count("/"))
        equation = "".join(
            write(numbers["abc".index(sign)], places, "plain") if sign in "abc" else sign
            for sign in form
        )
        yield Problem(question[0].upper() + question[1:], shortest(answer, decimals), equation)


def _numbers(form: str, writing: str, draw: random.Random) -> tuple[tuple[int, ...], int]:
    """Return the numbers and the answer, whole, in units of their last decimal. Divisions have no
    remainder.
    """
    digits = {"comma": (4, 6), "space": (4, 6), "words": (1, 3), "bare": (1, 2)}.get(
        writing, (1, 4)
    )

    def number(most: int = 6) -> int:
        size = min(draw.randint(*digits), most)
        return draw.randint(10 ** (size - 1), 10**size - 1)

    if form == "a+b":
        a, b = number(), number()
        return (a, b), a + b
    if form == "a-b":
        b, a = sorted((number(), number()))
        return (a, b), a - b
    if form == "a*b":
        a, b = number(), number(2)
        return (a, b), a * b
    c, quotient = number(2), number(3)
    if form == "a/b":
        return (c * quotient, c), quotient
    if form == "a+b-c":
        a, b = number(), number()
        c = draw.randint(1, a + b)
        return (a, b, c), a + b - c
    if form == "(a+b)/c":
        a = draw.randint(0, c * quotient)
        return (a, c * quotient - a, c), quotient
    if form == "(a-b)/c":
        b = number()
        return (c * quotient + b, b, c), quotient
    a, (small, large) = number(2), sorted((number(), number()))
    return (
        ((a, small, large), a * (small + large))
        if form == "a*(b+c)"
        else ((a, large, small), a * (large - small))
    )


def write(value: int, places: int, writing: str) -> str:
    """Return ``value`` · 10^-places, written in one of :data:`WRITINGS`."""
    if writing == "words":
        return in_words(value)
    if writing in ("comma", "space"):
        return f"{value:,}".replace(",", " " if writing == "space" else ",")
    text = format(Decimal(value).scaleb(-places), "f")
    return text.removeprefix("0") if writing == "bare" else text


def shortest(value: int, places: int) -> str:
    """Return ``value`` · 10^-places without zeros at the end."""
    text = format(Decimal(value).scaleb(-places), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def in_words(value: int) -> str:
    """Return a number from 0 to 999,999 in English.

    >>> in_words(2315)
    'two thousand, three hundred and fifteen'
    """
    if value < 20:
        return ONES[value]
    if value < 100:
        return TENS[value // 10 - 2] + (f"-{ONES[value % 10]}" if value % 10 else "")
    size, unit, link = (
        (100, "hundred", " and ")
        if value < 1000
        else (1000, "thousand", ", " if value % 1000 >= 100 else " and ")
    )
    rest = f"{link}{in_words(value % size)}" if value % size else ""
    return f"{in_words(value // size)} {unit}{rest}"
