"""Reports on answers: the errors of estimates, answers that look cut; and targets and rewards, read by
a policy of their own, exactly, and whatever form they come in.
"""

import json
import math
import statistics
from decimal import Decimal
from fractions import Fraction

import pytest
from command import ok
from hypothesis import given
from hypothesis import strategies as st

from numtok.score import POLICIES, Policy, equal, looks_cut, report
from numtok.score.adapters import as_digits, number_reward

VALUES = st.integers(-(10**6), 10**6).map(lambda whole: whole / 1000)


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=30))
def test_errors_of_estimates(pairs):
    """They are those of the usual formulas, in fractions."""
    told = report([f"about {found:.3f}" for found, _ in pairs], [wanted for _, wanted in pairs])
    exactly = [tuple(Fraction(f"{one:.3f}") for one in pair) for pair in pairs]
    errors = [abs(found - wanted) for found, wanted in exactly]
    assert told.compared == len(pairs)
    assert told.mean_absolute_error == pytest.approx(float(sum(errors) / len(pairs)))
    relative = [e / abs(wanted) for e, (_, wanted) in zip(errors, exactly, strict=True) if wanted]
    median = statistics.median(relative) if relative else math.nan
    assert told.median_relative_error == pytest.approx(float(median), nan_ok=True)
    mean = sum(wanted for _, wanted in exactly) / len(pairs)
    spread = sum((wanted - mean) ** 2 for _, wanted in exactly)
    squared = 1 - sum(e**2 for e in errors) / spread if spread else math.nan
    assert told.r_squared == pytest.approx(float(squared), nan_ok=True)


def test_only_what_can_be_compared_has_an_error():
    policy = Policy(units="match")
    told = report(["5 km", "no idea", "7 m", "1"], ["4 km", "2", "7 km", "none"], policy)
    assert (told.total, told.compared, told.unparseable) == (3, 1, 1)
    assert (told.mean_absolute_error, told.median_relative_error) == (1, 0.25)
    assert math.isnan(told.r_squared)
    rows = [" ".join(line.split()) for line in str(told).splitlines()]
    assert "unparseable 1 33.3%" in rows and "no target 1" in rows
    assert "median relative error 25% of 1 answers" in rows
    assert "target 4: no number in 'none'" in rows and "answer 2: no number in 'no idea'" in rows
    nothing = json.loads(json.dumps(report(["?"], ["5"]).to_dict(), allow_nan=False))
    assert nothing["mean_absolute_error"] is nothing["r_squared"] is None


def test_a_per_cent_is_compared_as_it_is_read():
    told = report(["24%", "30%"], ["0.25", "0.3"], "finance")
    assert told.mean_absolute_error == pytest.approx(0.005)
    assert told.median_relative_error == pytest.approx(0.02)
    assert told.same_magnitude == 2 and told.digits_right > 8


def test_huge_numbers_are_no_obstacle():
    far = "1e999999999999999999", "-1e999999999999999999", "1e-999999999999999999"
    huge = [*map(Decimal, far), "1/3", "70"]
    for found in huge:
        for wanted in huge:
            assert equal(found, wanted, "0.1", absolute="0.1") == (
                huge.index(found) == huge.index(wanted)
            )
            json.dumps(report([found, "1"], [wanted, "2"]).to_dict(), allow_nan=False)
    assert report(["2e400", "1"], ["1e400", "1"]).median_relative_error == 0.5


CUT = [
    "The total is 1,00", "It costs $1,234,5", "1,00", r"So it is \boxed{7", r"So it is \boxed",
    r"It is \frac{3}", r"\frac{3}{", r"So \(x = 5", r"\[ 48 + 24", "48 + 24 =", "48/2 = 24, 48 +",
    "She sold 48/", "There are 3, 4,", "The steps:", "In all she has (12", "2.5e-", "a total of $",
    "<think>She sold 48", "<think>5</think> It is 6. <think>no, 7",
    "She sold 48 clips. In May she sold half as many, so she", "She sold 48 clips. In all 72",
    "She sold 48. In all she sold 7", "It cost 5 dollars. With tax 12%", "彼は3個。合計は7",
]  # fmt: skip
WHOLE = [
    "", "?", "72", "$72", "72 clips", "x = 72", "It is 72", "It is 72.", "She sold 48. In all 72.",
    "She sold 48 clips.\n#### 72", r"She sold 48. \boxed{72}", r"\boxed{\frac{1}{2}}", r"\(72\)",
    "She sold 48.\nAnswer: 72", "She sold 48.\n**Final answer:** 72 clips", "She sold 48. So x = 72",
    "She sold 48.\nAnswer: 72\n\nQuestion: There are", "She sold 48. In all 72<|im_end|>",
    "I sold 48. In all</s>", "<think>She sold 48. So</think>72", "1. 48/2 = 24\n2. add 48 to it\n72",
    "He paid 5.50 of 7", "It is 72 (see above)", "**72**", "48/2 = 24\n48 + 24 = 72", "1,000", "0,5",
    "so 12,345", "1.00", "It is in (0, 5]", "Rs. 1,599", "3 * 3? The answer is 9",
]  # fmt: skip


def test_what_looks_cut():
    assert [text for text in CUT if not looks_cut(text)] == []
    assert [text for text in WHOLE if looks_cut(text)] == []
    assert looks_cut("1.00", "european") and not looks_cut("1,00", "european")
    for thousands, cut, whole in (
        ("lakhs", "12,34,5", "12,34,567"),
        ("apostrophe", "1'2", "1'234"),
    ):
        policy = Policy(thousands=thousands)
        assert looks_cut(cut, policy) and not looks_cut(whole, policy)
        assert report([whole], [whole], policy, policy).exact == 1
    told = report([*CUT, *WHOLE], ["72"] * len(CUT + WHOLE))
    assert (told.total, told.looks_cut) == (len(CUT + WHOLE), len(CUT))
    assert "answer 4: looks cut, " in str(told)


def test_integers_that_python_does_not_write():
    long = 10**5000
    assert equal(long, long) and not equal(long, long + 1) and equal(Fraction(1, long), "1e-5000")
    scored = report([long, Fraction(1, long)], [long + 1, 1])
    assert scored.total == 2 and scored.exact == 0 and scored.mistakes[0][1].startswith("1000")


def test_an_answer_of_another_kind_has_no_right_digits():
    told = report(["5 miles", "5 km"], ["5 km", "5 km"], Policy(units="match"))
    assert (told.exact, told.within_10_percent, told.same_magnitude) == (1, 1, 1)
    assert told.digits_right == 7.5


@pytest.mark.parametrize("policy", POLICIES)
@given(value=st.decimals(allow_nan=False, allow_infinity=False))
def test_a_plain_decimal_is_itself_whatever_reads_the_answers(policy, value):
    assert equal(value, f"{value}", 0, policy) and equal(value, f"{value:f}", 0, policy)


def test_targets_that_are_no_plain_decimals_need_a_policy():
    told = report(["1,5", "5"], ["1.5", "1.5"], "european")
    assert (told.total, told.exact) == (2, 1)
    told = report(["5", "5"], ["1,5", "1.234,5"], "european")  # no plain decimals: neither is 5
    assert (told.total, told.without_target) == (0, 2)
    assert told.target_examples == [(0, "1,5"), (1, "1.234,5")]
    told = report(["1,5"], ["1,5"], "european", "european")
    assert (told.total, told.exact) == (1, 1)


@pytest.mark.parametrize(
    "number", ["12345678901234567890.5", "2e400", "-1e-400", "0.1", "7" * 5_000, "1E+5"]
)
def test_numbers_in_json_are_exact(tmp_path, number):
    file = tmp_path / "a.jsonl"
    nearby = str(Decimal(number) * Decimal("1.0000000000000000001"))
    right = f'{{"prediction": "It is {number}.", "target": {number}}}'
    wrong = f'{{"prediction": "It is {nearby}.", "target": {number}}}'
    swapped = f'{{"prediction": {number}, "target": "{number}"}}'
    file.write_text("\n".join([right, wrong, swapped]))
    made = json.loads(ok("score --json -", file))
    assert (made["total"], made["exact"]) == (3, 2)


def test_a_number_in_json_beyond_any_is_none(tmp_path):
    file = tmp_path / "a.jsonl"
    targets = ["1e99999999999999999999", "NaN", "Infinity", "-Infinity", "null"]
    file.write_text("\n".join(f'{{"prediction": "5", "target": {one}}}' for one in targets))
    made = json.loads(ok("score --json -", file))
    assert (made["total"], made["without_target"]) == (0, 5)


SAID = {"role": "assistant", "content": "It is 5."}
PARTS = [{"type": "text", "text": "It "}, {"type": "text", "text": "is 5."}]
READ = ["It is 5.", SAID, [{"role": "user", "content": "6?"}, SAID], (SAID,),
        [{"role": "assistant", "content": PARTS}]]  # fmt: skip
WITHOUT_TEXT = [None, [], "", {}, [None], [[]], [{}], [{"role": "assistant"}], 3.5, object(),
                [{"role": "assistant", "content": None, "tool_calls": [{"id": 5}]}],
                [{"role": "assistant", "content": [{"type": "image", "index": 5}]}]]  # fmt: skip


@pytest.mark.parametrize("completion", [*READ, *WITHOUT_TEXT])
def test_a_reward_of_completions_of_any_form(completion):
    rewards = number_reward()(completions=[completion, completion, "5"], answer=["5", None, "5"])
    assert rewards == [float(completion in READ), 0.0, 1.0]


def test_options_of_a_reward():
    reward = number_reward("gold", tolerance=0.01)
    assert reward(completions=["#### 9.95", "9", "none"], gold=[10, "10", "10"]) == [1.0, 0.0, 0.0]
    reward = number_reward(policy="european")
    assert reward(completions=["1,5", "5"], answer=["1.5", "1.5"]) == [1.0, 0.0]
    reward = number_reward(policy="european", target_policy="european")
    assert reward(completions=["1,5"], answer=["1,5"]) == [1.0]


def test_the_digits_of_an_answer():
    told = [as_digits(text) for text in ("$1,000.50", "2 1/2", "?", None)]
    assert told == ["1000.50", "5/2", "[invalid]", "[invalid]"]
