"""The final number of an answer, comparing, reporting: on odd answers, on what the tests of other
scorers ask about, and by properties; of an answer that is no number as a whole nothing is read.

In ``peers.jsonl`` are our words for cases of Math-Verify, inspect_ai (``match(numeric=True)`` and
``math()``), HELM (``final_number_exact_match``) and TRL (``accuracy_reward``), with our reading and why;
``theirs`` is their verdict where ours differs.
"""

import dataclasses
import json
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import numtok
from numtok.score import (
    POLICIES,
    Policy,
    equal,
    final_number,
    looks_cut,
    read_numbers,
    report,
)
from numtok.score.final import MOST_READ

ODD, PEERS = (
    [json.loads(line) for line in Path(__file__).with_name(name).read_text("utf-8").splitlines()]
    for name in ("answers.jsonl", "peers.jsonl")
)
SHORT = st.decimals(min_value=-(10**12), max_value=10**12, places=4)


@pytest.mark.parametrize("why", sorted({case["why"] for case in ODD}))
def test_odd_answers(why):
    for case in (case for case in ODD if case["why"] == why):
        named = case["policy"]
        found = final_number(case["text"], named if isinstance(named, str) else Policy(**named))
        wanted = case["value"] and Fraction(case["value"])
        assert (found and Fraction(found.value)) == wanted, case["text"]
        if found is not None:
            assert case["text"][found.start : found.stop] == found.text


# An answer is one number as a whole, or none, wherever it stands.
PLACES = ["\\boxed{%s}", "The answer is %s", "The answer is %s.", "#### %s", "%s", "So we get %s.",
          "Answer: **%s**", "The answer is $%s$", "It took 3 steps.\nThe result is \\( %s \\)."]  # fmt: skip
PARTS = r"""
(-2)^2 | {3}^2 | \frac{1}{2}^2 | 2^{3^2} | x/2 | 2/x | 1/n | 5*x | 3xy | 2 x | 5 x^2 | 3\,i | f(2) | (x,5)
y = x -1 | \text{Option } 3 | 2\pi | 2 pi | 3 root 2 | 5 halves | 3 quarters of it | 3 fifths of 10
(3.2) million | ($1,234) thousand | n = 5, m = 3 | x = 5, A = 3 | 2\sqrt{3} | 3x | x > 3 | (1,2) | [0,1) | \{1,2\} | 3 \text{ or } 4
\pm 3 | 14:30 | \frac{x}{3} | 2\times3 | \gcd(12, 18) | 0.\overline{3} | 100! | 101_{2} | 10-20 | 5–6
<0.1 | 12.5 ± 0.3 | not 7 | between 3 and 5 | 3 or 4 | log 5 | 10^-3.5 | 2**0.5 | 4 10/3 | 12,34,567 | 0,5
1,57% | 3 + 4 | 12 - x | 3 plus 4 | 5 hundredths | x = 2, y = 3 | -(5) | |-5| | 5 mod 3 | more than 3
2 hours and 30 minutes | 5 ft 3 in | 1 in 6 | 20% of 30 | twice 5 | the square root of 2 | 5 to the power of 2
3 \times 10^{x} | \begin{pmatrix} 1 \\ 2 \end{pmatrix} | 5 \pmod 7 | x \in \{5\} | \left(\frac{1}{2}\right)^3
5 and a half | 5 ln 2 | +/-5 | 5; 6 | 5 km to 7 km | 5x3 | below 5 | 5 (mod 7) | C(5,2) | 1 and 1/2
x = 5 or x = -3 | 3/(-4) | 3 or (4) | 1..2 | 1..2..3 | 20 dozen | 5 mil | 0.333... | 3:4 | \binom{5}{2} | 3, 4 | 3/0 | sqrt(2) | 2π | ∛5 | 1.2.3 and 4
5 cm x 3 cm | 0.(3) | 0.3(3) | 0.3̅ | ⌊5.5⌋ | 2020 1/3 | 1010₂ | 77₈ | 5 to the 3rd power
2 hours 30 minutes 15 seconds | 1h 30m 20s | 5 lb 3 oz 2 dr | 1 day, 2 hours, 3 minutes | 2時間30分15秒 | 2024年3月5日 | 3 à 4 | 3 à 4 heures | 3 out of 4
a third of 9 | two thirds of the 9 | a quarter of 8 | the square of 3 | the factorial of 5 | the reciprocal of 4
20 Dutzend | 3 douzaines | más de 3 | menos de 3 manzanas | moins de 3 | mehr als 3 | weniger als 3 Äpfel | più di 3 | больше 3
"""
WHOLE = {
    r"5 hundred thousand": 500000, r"minus 5": -5, "− 5": -5, "- 5": -5, "= - 5": -5, "negative 5": -5,
    r"\text{minus }5": -5, "$5 bn": 5 * 10**9, "$5 M": 5 * 10**6, "$20 K": 20000, "$5.2 bn": 52 * 10**8,
    "$5M": 5 * 10**6, r"\frac{-3}{4}": Fraction(-3, 4), r"\frac{3}{-4}": Fraction(-3, 4),
    r"\frac{1.5}{2}": Fraction(3, 4), r"\displaystyle\frac12": Fraction(1, 2),
    r"5\,\mathrm{cm}^{2}": 5, r"11,\! 111": 11111, r"10\ 000": 10000, r"x\approx11": 11,
    "2½": Fraction(5, 2), r"x = \frac{6}{8} = \frac{3}{4}": Fraction(3, 4), "48/2 = 24": 24, "5 lakh": 500000, "5万": 50000, "5 kg·m/s": 5,
    "\u20115": -5, "= – 5": -5, "5 × 10^(-3)": Fraction("0.005"), "2^(10)": 1024, "5 M€": 5 * 10**6, "$1.5MM": 15 * 10**5,
    "5 quadrillion": 5 * 10**15, r"25\,\%": 25, r"25\text{\%}": 25, "12 1/3": Fraction(37, 3), "5 x 3 = 15": 15,
    r"5!=120": 120, r"\sqrt{16} = 4": 4, "8 litres per 100 km": 8, "$5 per 100 g": 5,
    "3 ⋅ 10⁶": 3 * 10**6, "R$ 5": 5, "18 cm": 18, "3 m/s^2": 3, "90°": 90, "25%": 25, "(5)": 5,
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_a_part_does_not_stand_for_the_whole(place):
    texts = [place.replace("%s", part) for part in PARTS.strip().replace("\n", " | ").split(" | ")]
    assert [text for text in texts if final_number(text) is not None] == []


@pytest.mark.parametrize("place", PLACES[:6] + PLACES[8:])
def test_a_number_with_what_belongs_to_it_is_read(place):
    texts = {place.replace("%s", written): value for written, value in WHOLE.items()}
    found = {text: final_number(text) for text in texts}
    assert {text: one and one.value for text, one in found.items()} == texts


def test_dollars_around_a_formula_are_no_money():
    match = Policy(currency="match")
    assert equal("$29$", "29", policy=match) and equal(r"$29\text{ cm}$", "29", policy=match)
    assert not equal("$29", "29", policy=match) and equal("$29 or so", "$29", policy=match)
    assert [one.currency for one in read_numbers("$20 for $3")] == ["$", "$"]


@pytest.mark.parametrize("policy", POLICIES)
def test_ambiguous_marks_of_thousands_are_no_answer(policy):
    for text in ("1,5,3", "1.2.3"):
        assert final_number(text, policy) is None


@pytest.mark.parametrize("scorer", sorted({case["scorer"] for case in PEERS}))
def test_cases_of_other_scorers(scorer):
    asked = [case for case in PEERS if case["scorer"] == scorer]
    assert len(asked) > 5
    wrong = [one for one in asked if equal(one["prediction"], one["target"]) is not one["equal"]]
    assert wrong == []


@given(
    SHORT, st.sampled_from(["{:f}", "{:,}", "${:,}", "\\boxed{{{:f}}}", "#### {:,}", "**{:f}**"])
)
def test_a_number_is_read_as_it_was_written(value, form):
    text = f"First 7, then 8.\n{form.format(value)}"
    found = final_number(text)
    assert found is not None and found.value == value
    assert equal(text, value) and equal(value, text) and equal(text, text)


@given(st.integers(-999, 999), st.integers(1, 999))
def test_fractions(top, bottom):
    sign = "-" if top < 0 else ""
    for text in (f"{top}/{bottom}", f"{sign}\\frac{{{abs(top)}}}{{{bottom}}}"):
        found = final_number(f"The answer is {text}.")
        assert found is not None and found.value == Fraction(top, bottom)
        assert equal(text, Fraction(top, bottom))


@given(st.text(max_size=200) | st.lists(st.sampled_from(
    ["1", "2.5", "/", "-", "\\frac", "{", "}", "^", "10", "\\boxed{", "####", " ", "=", "%", "$",
     "answer is", "\n", "½", "×", ",", "e5", "million", "</think>", "Question:"]), max_size=20
).map("".join))  # fmt: skip
def test_any_text(text):
    for policy in POLICIES:
        for one in read_numbers(text, policy):
            assert text[one.start : one.stop] == one.text
        found = final_number(text, policy)
        assert equal(text, text, 0, policy, target_policy=policy) == (found is not None)
        report([text], [text], policy)


PLAIN = {
    name: dataclasses.replace(POLICIES["strict"], thousands=name)
    for name in ("comma", "point", "none", "apostrophe", "lakhs")
}
PIECES = st.lists(st.sampled_from(
    ["1", "0", "25", "125", "1000", "10", ".", ",", "'", " ", "\u00a0", "\u2009", "-", "+", "\u2212", "/", "^",
     "e5", "E-3", "x", "a", "km", "m2", "%", "$", "€", "USD ", "(", ")", "{", "}", "\\frac", "\\times", "½",
     "²", "_", ":", "٣", "٫", "٬", "１", "é", "个", "minus ", "negative ", "million", "\n", "T", "0x", "="]
), max_size=14).map("".join)  # fmt: skip


@pytest.mark.parametrize("thousands", PLAIN)
@given(text=PIECES | st.text(max_size=60))
@example(text="1.5 0.25 192.168.100.200 1.234,5")
@example(text="minus 5 - 5 -$5 1/2 2½ 10^3 5 million 20k 0,125 10\u00a0000 \\times10 x_{2} $US5")
@pytest.mark.thorough
def test_a_plain_policy_reads_what_extract_finds(thousands, text):
    """For every grammar, with nothing read beyond numerals."""
    policy = PLAIN[thousands]
    found = [(one.value, one.start, one.text) for one in numtok.extract(text, policy.grammar)]
    read = read_numbers(text, policy)
    assert [one.value for one in read] == [value for value, *_ in found]
    for one, (_, start, numeral) in zip(read, found, strict=True):  # $, % and € are read with it
        assert one.start <= start and start + len(numeral) <= one.stop


@given(PIECES | st.text(max_size=60))
@example("x =\\,5, 12\\,500")
@pytest.mark.thorough
def test_every_policy_joins_numerals_and_cuts_none(text):
    """What a policy reads beyond numerals holds them whole, or has none in it (½)."""
    for policy in POLICIES.values():
        numerals = [(one.start, one.stop) for one in numtok.extract(text, policy.grammar)]
        for one in read_numbers(text, policy):
            cut = [
                numeral
                for numeral in numerals
                if numeral[0] < one.start < numeral[1] or numeral[0] < one.stop < numeral[1]
            ]
            thin_space = [start for start, _ in cut if text[max(0, start - 1) : start + 1] == "\\,"]
            assert not cut or text[cut[0][0]] in "+-\u2212" or thin_space, (one, cut)


@pytest.mark.parametrize(
    ("prediction", "target", "options", "same"),
    [
        ("99", "100", {"tolerance": 0.01}, True),
        ("98.9", "100", {"tolerance": 0.01}, False),
        ("101", 100, {"tolerance": "0.01"}, True),
        ("0.1", 0.1, {}, True),
        ("0.1", 0.1000000001, {}, False),
        ("0.1", np.float32(0.1), {}, True),  # printed in its own width
        ("0.1", np.float16(0.1), {}, True),
        ("7", np.int8(7), {}, True),
        ("0.1", np.float32("inf"), {}, False),
        ("1/3", 0.333, {}, False),
        ("1/3", 0.333, {"tolerance": 0.01}, True),
        ("0.5", "1/2", {}, True),
        ("0", 0.001, {"absolute": 0.01}, True),
        ("0.001", 0, {"tolerance": 0.5}, False),
        ("1e999999999", "1e999999999", {}, True),
        ("1e999999999", "1e-999999999", {"tolerance": 0.1}, False),
        ("1.01e999999999", "1e999999999", {"tolerance": 0.1}, True),
        ("-5", "5", {"tolerance": 1}, False),
        ("0", "5", {"tolerance": 1}, True),
        ("0", "1/3", {"tolerance": 0.99}, False),
        ("5", "0", {"tolerance": 1}, False),
        ("25%", "0.25", {"policy": "finance"}, True),
        ("25%", "25", {"policy": "finance"}, True),
        ("0.25%", "25%", {"policy": "finance"}, False),
        ("25 percent", "25%", {"policy": "finance"}, True),
        ("**25**%", "0.25", {"policy": "finance"}, True),
        (r"\boxed{25}\%", "0.25", {"policy": "finance"}, True),
        ("$25$ percent", "0.25", {"policy": Policy(percent="divide")}, True),
        (r"\boxed{25}\%", "25%", {"policy": Policy(percent="match")}, True),
        ("25%", "0.25", {}, False),
        ("25%", "0.25", {"policy": Policy(percent="divide")}, True),
        ("25%", "25", {"policy": Policy(percent="match")}, False),
        ("5 km", "5 m", {"policy": Policy(units="match")}, False),
        ("5 apples", "5 apple", {"policy": Policy(units="match")}, True),
        ("5 inches", "5 inch", {"policy": Policy(units="match")}, True),
        ("5 glasses", "5 glass", {"policy": Policy(units="match")}, True),
        ("5 m", "5 m^2", {"policy": Policy(units="match")}, False),
        ("5 m/s^2", "5 m/s²", {"policy": Policy(units="match")}, True),
        (r"5\text{ cm}^{2}", "5 cm2", {"policy": Policy(units="match")}, True),
        (r"\boxed{5}\text{ cm}", r"5 \mathrm{~cm}", {"policy": Policy(units="match")}, True),
        ("**5** km", "5 km", {"policy": Policy(units="match")}, True),
        ("5 square feet", "5 square meters", {"policy": Policy(units="match")}, False),
        ("It is 5 in total.\nDone", "5", {"policy": Policy(units="match")}, True),
        ("5 in", "5 cm", {"policy": Policy(units="match")}, False),
        ("12,5 Prozent", "0.125", {"policy": Policy(thousands="point", percent="divide")}, True),
        (r"25\,\%", "0.25", {"policy": "finance"}, True),
        ("$5", "€5", {"policy": Policy(currency="match")}, False),
        ("none", "none", {}, False),
        (None, 5, {}, False),
        (float("nan"), float("nan"), {}, False),
        ("1,5", "1.5", {"policy": "european"}, True),
        ("5", "1.5", {"policy": "european"}, False),
        ("1.234,5", "#### 1,234.5", {"policy": "european"}, True),
        ("1,5", "1,5", {"policy": "european", "target_policy": "european"}, True),
        # what an answer has to be marked with, a target need not have
        (r"\boxed{5}", "5", {"policy": Policy(answer="boxed")}, True),
        ("1.000 km", "1,000 km", {"policy": Policy(thousands="point", units="match")}, True),
        ("1.000 km", "1,000 m", {"policy": Policy(thousands="point", units="match")}, False),
    ],
)  # fmt: skip
def test_equal(prediction, target, options, same):
    assert equal(prediction, target, **options) is same


LONG, MANY = "9" * MOST_READ, 12_000
HOSTILE = [
    f"{LONG}/{LONG}", f"{LONG}^{LONG}", "9^9^9^9", "1e" + LONG, "-" * 10**5 + "5", "1," * MANY,
    "\\boxed{" * 5_000 + "5", "answer is " * 5_000, "#### " * 5_000, "5" + "\n" * MANY,
    "\nQ:" * MANY + "5", "5\nQ" + " " * MANY, "answer" + " " * MANY, f"answer is 5{'*' * MANY}a 6",
    f"answer is 5{'s' * 60}6", "5²" * MANY, "-" * MANY + "5", "#### " * MANY + "a5",
    "a1\n" * MANY, "answer is " * MANY + "a5", "\n" * MANY + "- 5", "5 minus " * 5_000,
    "\\frac{" * MANY, *(f"550e8400-e29b-41d4-a716-44665544{n:04} 5 " * 9 for n in range(2)),
]  # fmt: skip
HOSTILE += [
    one * (MANY // len(one))
    for one in ("5 ", "5,", "5-", "5", "½", "#", "\\boxed{5} and ", "5\n", "5 [1]", "_5", "answer (",
                ":", "= a ", "{", "\n", "a. ", "<think>", "$ ")
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:12])
def test_hostile_texts_end_soon(text):
    start = time.process_time()
    final_number(text)
    final_number(text, Policy(several="none"))
    looks_cut(text)
    assert time.process_time() - start < 2


def test_report():
    told = report(["100", "101", "120", "no idea", "900", "5"], ["100"] * 5 + ["none"])
    assert (told.total, told.exact, told.within_1_percent, told.within_10_percent) == (5, 1, 2, 2)
    assert (told.same_magnitude, told.unparseable, told.without_target) == (4, 1, 1)
    assert told.accuracy == 0.2 and told.examples == [(3, "no idea")]
    assert told.digits_right == pytest.approx((15 + 2 + 0.69897 + 0) / 4)
    json.dumps(told.to_dict())


def test_of_a_very_long_text_the_end_is_read():
    text = "1 a " * MOST_READ + "the answer is 12,345."
    found = final_number(text)
    assert found is not None and found.value == 12345 and found.start == len(text) - 7
    whole = final_number("7" * (MOST_READ + 5))  # not a part of a number
    assert whole is not None and whole.text == "7" * (MOST_READ + 5)
    thought = "<think>" + "1 a " * MOST_READ
    assert final_number(thought + "the answer is 5") is None  # which has no end
    found = final_number(thought + "</think>It is 5.")
    assert found is not None and found.value == 5
