"""An answer is one number as a whole, or none: in boxes, behind marks and at the end of a text."""

from decimal import Decimal
from fractions import Fraction

import pytest

from numtok.score import POLICIES, Policy, equal, final_number, read_numbers

PLACES = ["\\boxed{%s}", "The answer is %s", "The answer is %s.", "#### %s", "%s", "So we get %s.",
          "Answer: **%s**", "The answer is $%s$", "It took 3 steps.\nThe result is \\( %s \\)."]  # fmt: skip
PARTS = r"""
(-2)^2 | {3}^2 | \frac{1}{2}^2 | 2^{3^2} | x/2 | 2/x | 1/n | 5*x | 3xy | 2 x | 5 x^2 | 3\,i | f(2) | (x,5)
y = x -1 | \text{Option } 3 | 2\pi | 2 pi | n = 5, m = 3 | x = 5, A = 3 | 2\sqrt{3} | 3x | x > 3 | (1,2) | [0,1) | \{1,2\} | 3 \text{ or } 4
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
SENTENCES = {
    "The answer is 71, not 72": 71,
    "The answer is 72, because 48 + 24 is 72": 72,
    "#### 72 because 48 + 24 = 72": 72,
    "The answer is 12 pairs (x, y) with x + y = 5.": 12,
    "The answer is 42 (from 6 and 7).": 42,
    "The answer is $18 a day.": 18,
    "The answer is 20+ people.": 20,
    "The answer is 5 km; that is 5,000 m.": 5,
    "The answer is 20 and that is final.": 20,
    "The answer is 12 at x = 3.": 12,
    "The answer is 99 of 100.": 99,
    "Max has 5 apples": 5,
    "The difference between 3 and 5 is 2": 2,
    "16 - 3 - 4 = 9 eggs are left": 9,
    "Step 3: 4 * 5 = 20": 20,
    "A third of 9 is 3": 3,
    "The consumption is 8 litres per 100 km.": 8,
    "On the third day 9 are left": 9,
    "GPT-4o says 7": 7,
    "La réponse est 12 à la fin": 12,
    "1) 72": 72,
    "5 m = 500 cm": 500,
    "The circumference is 4 pi = 12.57 m": Decimal("12.57"),
    "7 + 8 = 15\n__72__": 72,
    "7 + 8 = 15\n_72 km_": 72,
    "So it is __$1,072.50__.": Decimal("1072.50"),
    "∴ 72": 72,
    "- 20 apples\n- 5 pears": 5,
    "Total - 42": 42,
    "所以 48 + 24 = 72 个。": 72,
    "<answer>5</answer>": 5,
    r"\begin{align*} x &= 2 + 3 \\ &= 5 \end{align*}": 5,
    # a dash that no word stands before is a minus
    "The answer is –5.": -5,
    "x = –$5.00": -5,
    "–5": -5,
    "Total – 42": 42,
    "The range is 3–5.": None,
    "So 8 is left\n– 5 pears": 5,
    "Answer:\n\n1. First, 2 + 3 = 5\n2. Then 5 * 2 = 10": 10,  # 1 numbers a step
    "Answer:\n1. 42": 42,
}


def value_of(text, policy="default"):
    found = final_number(text, policy)
    return found and found.value


@pytest.mark.parametrize("place", PLACES)
def test_a_part_does_not_stand_for_the_whole(place):
    texts = [place.replace("%s", part) for part in PARTS.strip().replace("\n", " | ").split(" | ")]
    assert [text for text in texts if final_number(text) is not None] == []


@pytest.mark.parametrize("place", PLACES[:6] + PLACES[8:])
def test_a_number_with_what_belongs_to_it_is_read(place):
    texts = {place.replace("%s", written): value for written, value in WHOLE.items()}
    assert {text: value_of(text) for text in texts} == texts


MARKED = {
    "the result of multiplying 12 by 3 is 36": 36,
    "the result of 2 + 3 is 5": 5,
    "The result of 2 + 3 is 5. It has 1 digit.": 5,
    "As a result of 3 discounts he pays 12 dollars": 12,
    "#### Step 1: Add": None,
    "#### Step 1: Add 2 and 2\n2 + 2 = 4\n#### 4": 4,
    "#### 1. Add the apples\n2 + 2 = 4\n#### 4": 4,
    "<think>The answer is 5": None,
    "The answer is 4.\n<think>or 5": 4,
    "<think>5</think>": None,
    "Answer: Let us see.\nApril and May are 48 + 24 = 72 clips.": 72,  # words lead to an answer
}
MARKED |= {f"It took 3 steps. {answer}\nThere are 5 steps.": 72 for answer in (
    '{"final_answer": 72, "confidence": 0.5}', '{"finalAnswer": 72}', "<answer>72</answer> 0.5", "<final_answer>\n72\n</final_answer>",
    "The answer turns out to be 72.", "The answer, then, is 72.", "The answer I get is 72.", "The answer (rounded) is 72.",
    "\nFinal Answer\n72", "\n### Final Answer\n\n**72**\n", "\nAnswer - 72", "\n**Final answer** — 72", "Answer → 72", "Ans: 72", "Ans. = 72",
    "Die Antwort lautet 72.", "Die Antwort wäre 72.", "La réponse serait 72.", "La respuesta sería 72.",
)}  # fmt: skip
MARKED |= {
    "<answer>twelve</answer> 5": None,
    "\n## Answer\nWe compute 5 + 3 = 8.\nThen 8 × 9 = 72.": 72,
    "my_result = 5\nreturn 72": 72,
    "Answer\n- apples: 3\n- pears: 4\nTotal: 72": 72,
    "Answer: -72": -72,
}
# an answer without a number is not sought elsewhere
NO_NUMBER = ["twelve", r"$\pi$", "5h30", "B", "$x$", "1.2.3", "H2O"]
MARKED |= {f"It took 3 steps. The answer is {answer}.": None for answer in NO_NUMBER}


READ = {  # of each group: a policy, and the value of each text
    "a clause ends an answer": ("default", SENTENCES),
    "marks": ("default", MARKED),
    "scales in other languages": ("european", {
        "5 Mio. Euro": 5e6, "3,4 Mrd. €": 3.4e9, "5 Billionen": 5e12, "3 milhões": 3e6, "2,5 млрд рублей": 2.5e9,
        "5 тыс.": 5e3, "3 mila euro": 3e3, "1,5억": 1.5e8, "2천 명": 2e3, "3兆円": 3e12, "₹5 Cr": 5e7, "€5 mn": 5e6,
        "5 Tsd. Euro": 5e3, "5 Mds €": 5e9, "5 Md€": 5e9, "5 milliers": 5e3, "R$ 2,5 bi": 2.5e9, "5 लाख रुपये": 5e5,
        "5十万": 5e5, "5 lacs": 5e5,
    }),
    "citations are no answers": ("default", {
        "The total is 12 [1].": 12, "The total is 12 km.[1][2]": 12, "Answer: 12[^1]": 12,
        "The total is **12**【4†source】.": 12, "5 + 7 is [12]": 12, "5 + 7 = [12]": 12, "[12]": 12,
        r"\boxed{2[3]}": None, "It lies in [1, 5]": None,
    }),
    "latex of a decimal comma": ("european", {
        r"\boxed{70{,}000}": 70, r"$2{,}5$": 2.5, r"$12\,345{,}75$": 12345.75, r"12\,500": 12500,
        r"\boxed{-3{,}05 \cdot 10^{3}\,\text{m}}": -3050, r"1,5{,}3": None, r"2{,}500.000": None,
    }),
    "formulas": ("default", {
        r"\( - 5 \)": -5, r"$x\approx11$": 11, "$29$": 29, r"\boxed{- 5}": -5, "-$40": -40, "$-40$": -40,
    }),
    "what a grammar leaves alone": ("european", {
        "1.5": None, "0.25": None, "192.168.100.200": None, "1,5": 1.5, "1 234,5": 1234.5, "1.234,5": 1234.5,
    }),
    "apostrophes": (Policy(thousands="apostrophe"), {"1'234.5": 1234.5}),
    "lakhs": (Policy(thousands="lakhs"), {"1,23,456": 123456}),
    "no groups": (Policy(thousands="none"), {"1234.5": 1234.5}),
    "the answer that stands first": ("default", {
        r"\boxed{5} or \boxed{6}": None, "The answer is 5. No, the answer is 6.": 6, "#### 5\n#### 6": 5,
        r"The answer is 5. \boxed{6}": 6, r"\boxed{5}. \boxed{6}": 6,
    }),
    "contradictions refused": (Policy(several="none"), {
        r"\boxed{5} or \boxed{6}": None, "The answer is 5. No, the answer is 6.": None, "#### 5\n#### 6": None,
        r"The answer is 5. \boxed{6}": None, r"\boxed{5} and \boxed{x}": None, r"The answer is \boxed{5}.": 5,
        r"\boxed{5}, \boxed{5.0}": 5, r"It is 0.5, so \boxed{\frac{1}{2}}. The answer is 0.5.": 0.5,
        "The answer is 5.": 5, "6, no, 5": 5, r"\boxed{5}. \boxed{6}": None,
    }),
}  # fmt: skip


@pytest.mark.parametrize("group", READ)
def test_values(group):
    policy, values = READ[group]
    assert {text: value_of(text, policy) for text in values} == values


def test_dollars_around_a_formula_are_no_money():
    match = Policy(currency="match")
    assert equal("$29$", "29", policy=match) and equal(r"$29\text{ cm}$", "29", policy=match)
    assert not equal("$29", "29", policy=match) and equal("$29 or so", "$29", policy=match)
    assert [one.currency for one in read_numbers("$20 for $3")] == ["$", "$"]


@pytest.mark.parametrize("policy", POLICIES)
def test_ambiguous_marks_of_thousands_are_no_answer(policy):
    for text in ("1,5,3", "1.2.3"):
        assert final_number(text, policy) is None
