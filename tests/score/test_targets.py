"""Targets: read by a policy of their own, exactly, and whatever form they come in."""

import json
from decimal import Decimal

import pytest
from command import ok
from hypothesis import given
from hypothesis import strategies as st

from numtok.score import POLICIES, equal, report
from numtok.score.adapters import as_digits, number_reward


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


def test_command_line(tmp_path):
    file = tmp_path / "a.jsonl"
    rows = [{"prediction": "1,5", "target": "1.5"}, {"prediction": "5", "target": "1.5"}]
    file.write_text("\n".join(map(json.dumps, rows)))
    made = json.loads(ok("score --policy european --json -", file))
    assert (made["total"], made["exact"]) == (2, 1)
    file.write_text(json.dumps({"prediction": "1,5", "target": "1.500,5"}))
    made = json.loads(ok("score --policy european --target-policy european --json -", file))
    assert (made["total"], made["exact"], made["mistakes"]) == (1, 0, [[0, "1,5", "1.500,5"]])


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
