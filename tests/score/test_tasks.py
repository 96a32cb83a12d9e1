"""Questions of arithmetic: their answers, computed once more as fractions from the words of the
question, and how answers are judged.
"""

import math
import re
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numtok.score.tasks import TASKS, Tasks, is_right

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def rounded(value, digits):
    """To significant digits, half to even; by 300 digits of the quotient."""
    wide = Context(prec=300)
    quotient = wide.divide(Decimal(value.numerator), Decimal(value.denominator))
    return Fraction(Context(prec=digits, rounding=ROUND_HALF_EVEN).plus(quotient))


def recomputed(question, digits):
    """The answer by fractions; None for a task without a single exact number."""
    one, *others = map(Fraction, NUMBER.findall(question["prompt"]))
    numbers = [one, *others]
    match question["task"]:
        case "add":
            return one + others[0]
        case "subtract":
            return one - others[0]
        case "multiply":
            return one * others[0]
        case "divide":
            return rounded(one / others[0], digits)
        case "power":
            return rounded(one ** int(others[0]), digits)
        case "mean":
            return rounded(sum(numbers) / len(numbers), digits)
        case "extreme":
            return min(numbers) if "smallest" in question["prompt"] else max(numbers)
    return None


@given(st.sampled_from(list(TASKS)), st.integers(1, 30), st.integers(1, 30), st.integers(0, 10**9))
def test_answers_are_right(task, level, digits, seed):
    question = Tasks(1, [task], [level], digits, seed)[0]
    answer, numbers = question["answer"], list(map(Fraction, NUMBER.findall(question["prompt"])))
    expected = recomputed(question, digits)
    if task == "sort":
        ordered = sorted(numbers, reverse="largest" in question["prompt"])
        assert list(map(Fraction, NUMBER.findall(answer))) == ordered
    elif task == "std":
        mean = sum(numbers) / len(numbers)
        variance = sum((value - mean) ** 2 for value in numbers) / len(numbers)
        root = Fraction(math.isqrt(variance.numerator * 10**200 // variance.denominator), 10**100)
        assert abs(Fraction(answer) - root) <= root * Fraction(51, 100) / 10 ** (digits - 1)
    elif task == "interval":
        value = numbers[0]
        edges = sorted(set(numbers[1:]))
        assert answer == "ABCDE"[sum(edge <= value for edge in edges)]
    else:
        assert Fraction(answer) == expected
    assert is_right(question, f"It is {answer}") and not is_right(question, "It is 8123.25 Z")


@pytest.mark.parametrize("level", [1, 2, 7, 30])
def test_numbers_have_the_digits_of_their_level(level):
    for question in Tasks(600, levels=[level], seed=level):
        numbers = NUMBER.findall(question["prompt"])
        single = question["task"] in ("add", "subtract", "multiply", "divide", "power")
        operands = numbers[:1] if question["task"] == "power" else numbers
        digits = max(len(Decimal(one).normalize().as_tuple().digits) for one in operands)
        assert digits <= level + (0 if single else 2), question


@pytest.mark.parametrize("said", ["B", "It is **B**.", "B: from 1 to below 2", "A value in (B)"])
def test_letters_are_read_as_models_write_them(said):
    question = {"task": "interval", "answer": "B"}
    assert is_right(question, said)
    assert not is_right(question, said.replace("B", "C"))
    assert not is_right(question, "1.2E-5") and not is_right(question, "")


@pytest.mark.parametrize(
    "said", ["-3, 200, 1,500", "-3,200,1500", "1. -3\n2. 200\n3. 1500", "- -3\n- 200\n- 1500"]
)
def test_lists_are_read_as_models_write_them(said):
    assert is_right({"task": "sort", "answer": "-3, 200, 1500"}, said)
    assert not is_right({"task": "sort", "answer": "200, -3, 1500"}, said)


def test_items_depend_on_the_seed_and_their_number_alone():
    few, many = Tasks(30), Tasks(300)
    assert [few[k] for k in range(30)] == [many[k] for k in range(30)]
    assert few[-1] == few[29] and {one["task"] for one in few} == set(TASKS)
    assert few[3] != Tasks(30, seed=1)[3]
