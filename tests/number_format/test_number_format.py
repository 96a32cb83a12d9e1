"""Number formats: exactly the numbers between the bounds, in one language for every program."""

import functools
import itertools
import random
import re
from decimal import Decimal

import numpy as np
import pytest
from effort import examples
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from numtok import NumberFormat
from numtok.errors import FormatError
from numtok.numbers.automaton import NEVER


def texts_of(number_format):
    """Every text of a small format."""
    waiting = [(0, "")]
    while waiting:
        state, text = waiting.pop()
        if number_format.automaton.ends[state]:
            yield text
        for character, to in zip(
            number_format.alphabet, number_format.automaton.following[state].tolist(), strict=True
        ):
            if to != NEVER:
                waiting.append((to, text + character))


def is_held(text, low, high, decimals, step, sign):
    """Return whether the format holds the text, by Decimal alone."""
    if not re.fullmatch(r"[-+]?(0|[1-9][0-9]*)(\.[0-9]+)?", text):
        return False
    value = Decimal(text)
    if text[0] in "+-" and (text[0] not in sign or value == 0):
        return False
    return (
        len(text.partition(".")[2]) <= decimals
        and low <= value <= high
        and (step is None or value % step == 0)
    )


numerals = st.decimals(-120, 120, places=2, allow_nan=False)


@st.composite
def bounded(draw):
    low, high = sorted([draw(numerals), draw(numerals)])
    decimals = draw(st.integers(0, 2))
    step = draw(st.none() | st.sampled_from(["1", "0.05", "0.3", "7", "2.5"]).map(Decimal))
    return low, high, decimals, step, draw(st.sampled_from(["", "-", "+-"]))


SMALL = [
    sign + whole + fraction
    for sign in ("", "-", "+")
    for whole in [*map(str, range(0, 125)), "00", "01", ""]
    for fraction in ("", ".", ".0", ".5", ".05", ".00", ".30", ".75", ".99", ".123")
]


@given(bounded())
@example((Decimal("0.05"), Decimal("99.95"), 2, None, "-"))
@example((Decimal(-40), Decimal(60), 2, Decimal("0.05"), "+-"))
def test_everything_inside_is_accepted_and_nothing_outside(options):
    low, high, decimals, step, sign = options
    held = {text for text in SMALL if is_held(text, low, high, decimals, step, sign)}
    try:
        made = NumberFormat(low, high, decimals=decimals, step=step, sign=sign)
    except FormatError:
        assert not held
        return
    assert {text for text in SMALL if made.matches(text)} == held
    every = list(texts_of(made))
    assert all(is_held(text, low, high, decimals, step, sign) for text in every)
    assert made.longest == max(map(len, every))


@settings(max_examples=examples(40))
@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12))
def test_a_bound_is_exact(bound):
    bound = Decimal(format(bound.quantize(Decimal("1e-9")), "f"))
    next_to_it = Decimal("1e-9")
    below = NumberFormat(maximum=bound, decimals=9)
    above = NumberFormat(minimum=bound, decimals=9)
    for number in (bound - next_to_it, bound, bound + next_to_it):
        text = format(abs(number) if number == 0 else number, "f")
        assert below.matches(text) == (number <= bound)
        assert above.matches(text) == (number >= bound)


@settings(max_examples=examples(40))
@given(
    st.floats(1e-30, 1e30, allow_subnormal=False),
    st.floats(1e-30, 1e30, allow_subnormal=False),
    st.integers(1, 9999),
    st.integers(-31, 31),
)
def test_scientific_notation_is_exact(one, other, mantissa, exponent):
    low, high = sorted([Decimal(repr(one)), Decimal(repr(other))])
    digits = str(mantissa)
    text = digits[0] + ("." + digits[1:] if len(digits) > 1 else "") + f"e{exponent}"
    try:
        made = NumberFormat(low, high, decimals=3, exponent=True)
    except FormatError:
        assume(False)
    assert made.matches(text) == (low <= Decimal(text) <= high)
    assert not made.matches(text.replace("e", "e0")) and not made.matches(text.replace("e", "E"))


def test_groups_of_three_digits_are_separated():
    made = NumberFormat(-12345, 1234567, decimals=1, grouping=",")
    right = ["0", "999", "1,234", "1,234,567.0", "-12,345", "12,345.6"]
    wrong = ["1234", "1,23", ",123", "0,123", "1,234,567.1", "-12,345.1", "1.234,5", "1,234."]
    assert [text for text in right + wrong if made.matches(text)] == right
    assert made.value("1,234,567.0") == Decimal("1234567.0")


@pytest.mark.parametrize("step", [10**6, 25 * 10**7, 999_983, 10**29])
def test_large_steps_take_few_states(step):
    made = NumberFormat(0, 1000 * step, step=step)
    right = [k * step for k in (0, 1, 7, 40, 999, 1000)]
    assert all(made.matches(str(one)) for one in right)
    wrong = [one + more for one in right for more in (1, 10, step // 2 + 1)] + [1001 * step]
    assert not any(made.matches(str(one)) for one in wrong)
    assert made.json_schema()["type"] == "integer"


def test_digits_are_counted_without_a_lone_zero():
    made = NumberFormat(max_digits=3, decimals=2)
    right = ["999", "99.9", "9.99", "0.99", "-0.01"]
    assert [text for text in [*right, "1000", "99.99", "0.999"] if made.matches(text)] == right
    assert NumberFormat().longest == 16 and NumberFormat(decimals=2).longest == 17


@given(st.lists(st.integers() | st.floats(-1e9, 1e9) | numerals, min_size=1, max_size=8))
def test_given_figures_are_all_that_may_be_written(values):
    made = NumberFormat.of(values)
    assert set(texts_of(made)) == set(made.texts)
    assert {made.value(text) for text in made.texts} == {
        Decimal(repr(one)) if isinstance(one, float) else Decimal(one) for one in values
    }


def test_the_value_of_a_figure_has_its_sign_and_digits():
    texts = ["-0", "0.00", "0.50"]
    assert [str(NumberFormat.of(texts).value(text)) for text in texts] == texts
    with pytest.raises(FormatError, match="'abc' is not a number"):
        NumberFormat(texts=("abc",)).value("abc")


@pytest.mark.parametrize("value", ["1e9999999", "-1e-9999999", "1" * 5000])
def test_what_is_too_long_to_lay_out_is_refused_at_once(value):
    for make in (NumberFormat, lambda one: NumberFormat(step=one.copy_abs())):
        with pytest.raises(FormatError, match="more than 1,000 digits"):
            make(Decimal(value))
    for figure in (Decimal(value), "1" * 5000):
        with pytest.raises(FormatError, match="more than 1,000"):
            NumberFormat.of([figure])


def test_numbers_of_numpy_are_figures_and_bounds():
    figures = [np.int64(7), np.float32(0.1), np.float16(0.2), np.float64(0.3)]
    assert NumberFormat.of(figures).texts == ("0.1", "0.2", "0.3", "7")
    assert NumberFormat(np.float32(0.1), np.int8(7)).matches("0.1")


def test_figures_stay_as_they_are_written():
    figures = ["1,234", "+7", 7, Decimal("1E+3")]
    assert NumberFormat.of(figures).texts == ("+7", "1,234", "1000", "7")


def random_format(draw):
    """A format whose regular expression is short."""
    low, high = sorted(
        Decimal(draw.randint(-30_000, 30_000)).scaleb(-draw.randint(0, 2)) for _ in "ab"
    )
    options = {"minimum": low, "maximum": high, "sign": draw.choice(["-", "+-", "-", ""])}
    options["decimals"] = draw.randint(0, 3)
    options["step"] = draw.choice([None, None, "0.5", "2", "25", "3"])
    options["grouping"] = draw.choice([None, None, ",", "_"])
    options["exponent"] = draw.random() < 0.1
    if draw.random() < 0.15:
        return NumberFormat.of([low, high, draw.randint(0, 99), "1,234"])
    try:
        return NumberFormat(**options)
    except FormatError:
        return random_format(draw)


def candidates(draw, number_format):
    """Texts of a format, and texts that differ from them in one character."""
    found = []
    following, ends = number_format.automaton.following, number_format.automaton.ends
    for _ in range(3):
        state, text = 0, ""
        while not (ends[state] and (draw.random() < 0.4 or (following[state] == NEVER).all())):
            symbol = draw.choice(np.flatnonzero(following[state] != NEVER).tolist())
            state, text = int(following[state, symbol]), text + number_format.alphabet[symbol]
        at = draw.randrange(len(text))
        other = draw.choice("0123456789.-+,e_")
        found += [text, text[:at] + other + text[at + 1 :], text + other, text[:-1]]
    return found


def regular_expression():
    def reader(made):
        expression = re.compile(made.regex())
        assert made.json_schema(string=True)["pattern"] == f"^{expression.pattern}$"
        return lambda text: expression.fullmatch(text) is not None

    return reader


def xgrammar():
    xgrammar = pytest.importorskip("xgrammar")
    info = xgrammar.TokenizerInfo(["</s>", *map(chr, range(32, 127))], stop_token_ids=[0])
    compiler = xgrammar.GrammarCompiler(info, max_threads=1)

    def reader(made):
        compiled = compiler.compile_grammar(made.ebnf())

        def accepts(text):
            matcher = xgrammar.GrammarMatcher(compiled, terminate_without_stop_token=False)
            return matcher.accept_string(text) and matcher.accept_token(0)

        return accepts

    return reader


def llguidance(notation):
    llguidance = pytest.importorskip("llguidance")
    tokenizer = llguidance.LLTokenizer("byte")

    def reader(made):
        read = made.lark if notation == "lark" else made.gbnf
        lark = read() if notation == "lark" else llguidance.gbnf_to_lark.any_to_lark(read())
        grammar = llguidance.LLMatcher.grammar_from_lark(lark)

        def accepts(text):
            matcher = llguidance.LLMatcher(tokenizer, grammar)
            assert not matcher.is_error(), matcher.get_error()
            tokens = tokenizer.tokenize_str(text)
            return matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting()

        return accepts

    return reader


def outlines():
    """outlines-core 0.2.14 drops a token that leads from a whole text to one that is not whole, as the
    point of 1.5 from 1, whatever the expression. There it is only held to accept nothing outside.
    """
    outlines = pytest.importorskip("outlines_core")
    vocabulary = outlines.Vocabulary(0, {chr(n): [n] for n in range(32, 127)})

    def reader(made):
        index = outlines.Index(made.regex(), vocabulary)

        def accepts(text):
            state = index.get_initial_state()
            for character in text:
                state = None if state is None else index.get_next_state(state, ord(character))
            if state is not None and index.is_final_state(state):
                return True
            whole = [made.matches(text[:stop]) for stop in range(len(text) + 1)]
            return whole[-1] and any(a and not b for a, b in itertools.pairwise(whole))

        return accepts

    return reader


READERS = {
    "re": regular_expression,
    "xgrammar": xgrammar,
    "llguidance": functools.partial(llguidance, "lark"),
    "llguidance by GBNF": functools.partial(llguidance, "gbnf"),
    "outlines": outlines,
}


@pytest.mark.parametrize("count", [40, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("program", READERS)
def test_other_programs_read_the_same(program, count):
    """Each accepts the texts of a format and no others."""
    draw, accepted = random.Random(7), 0
    reader = READERS[program]()
    for _ in range(count):
        made = random_format(draw)
        accepts = reader(made)
        for text in candidates(draw, made):
            assert accepts(text) == made.matches(text), (made, text)
            accepted += made.matches(text)
    assert accepted >= 3 * count


def test_a_schema_states_the_values():
    assert NumberFormat(0, 100, step=5).json_schema() == {
        "type": "integer", "minimum": 0, "maximum": 100, "multipleOf": 5,
    }  # fmt: skip
    assert NumberFormat.of([7, "0.50"]).json_schema() == {"enum": [0.5, 7]}
    made = NumberFormat(0, 2, step="0.25", decimals=1)  # 0.25 has more decimals
    assert made.json_schema()["multipleOf"] == 0.5 and set(texts_of(made)) >= {"0.5", "1.5"}


@pytest.mark.parametrize("sign", ["", "-"])
def test_a_json_schema_has_an_end_where_the_digits_do(sign):
    for made in (NumberFormat(sign=sign), NumberFormat(max_digits=3, decimals=1, sign=sign)):
        schema = made.json_schema()
        assert made.matches(str(schema["minimum"])) and made.matches(str(schema["maximum"]))
        assert not made.matches(str(schema["minimum"] - 1))
        assert not made.matches(str(schema["maximum"] + 1))


def test_a_grammar_is_short_where_an_expression_would_be_too_long():
    assert len(NumberFormat(0, 10**12, step=7).gbnf()) < 20_000


@pytest.mark.parametrize("notation", ["lark", "gbnf"])
def test_a_grammar_of_many_digits_nests_no_deeper_than_programs_read(notation):
    """llguidance refuses about 30 groups in each other, and llama.cpp an optional group that stands
    for more than 2,000 rules.
    """
    made = NumberFormat("-" + "7" * 40, "3" * 40 + "." + "2" * 40)
    grammar = getattr(made, notation)()
    nesting = itertools.accumulate({"(": 1, ")": -1}.get(one, 0) for one in grammar)
    assert max(nesting) < 10
    llguidance = pytest.importorskip("llguidance")
    read = grammar if notation == "lark" else llguidance.gbnf_to_lark.any_to_lark(grammar)
    grammar = llguidance.LLMatcher.grammar_from_lark(read)
    matcher = llguidance.LLMatcher(llguidance.LLTokenizer("byte"), grammar)
    assert not matcher.is_error(), matcher.get_error()
