"""A model writes free text with the tokens of any tokenizer, and no figure but those of its prompt."""

import functools

import numpy as np
import pytest
import trained
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from made_tokenizers import SlowTokenizer
from pretrained import smollm2

from numtok import Grammar, extract
from numtok.errors import FormatError
from numtok.number_format.grounded_text import NOWHERE, GroundedText, Symbols
from numtok.number_format.written_forms import digits_of_names, written_forms

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from numtok_torch import GroundedLogitsProcessor

GRAMMARS = [Grammar.prose(), Grammar.european(), Grammar.data(), Grammar.swiss(), Grammar.indian()]
PROMPTS = [
    "Sales rose from 1,234,567 to 2.5 million in 2023, i.e. by -5 or .75, in Q3 (5e3).",
    "٣ and ١٢ of 10² are 3, 12,345 and 0,5; v1.2 and 1.2.3 are names, 1,23 a list.",
    "1 and 234, 17 and 345 with 1.5, 12,34,567, 2'345'678, 1.234,5 and 5 100.",
    "No figure stands here.\n",
]
CHARACTERS = " 0123456789.,-+xeEdDkma'/½²)(%$\\T:_\u00a0\u2009’\n١٢\u2212٫٬"
BETWEEN = [", ", ". ", "; ", " (", ") ", "% ", " $", " - ", "/", ":", "km ", "\u2013", " and ", "* ",
           "\n", "[", "]", "=", " >", '"', "... ", "年", "? ", "! ", "|", " the 😀 ", " naïve "]  # fmt: skip


@functools.cache
def tokenizer(name):
    if name == "smollm2":
        return transformers.AutoTokenizer.from_pretrained(smollm2())
    source, end = trained.source(name), "<|endoftext|>"
    return transformers.PreTrainedTokenizerFast(tokenizer_object=source, eos_token=end)


@functools.cache
def processor(name):
    return GroundedLogitsProcessor(tokenizer(name))


@functools.cache
def texts_like(source, grammar):
    symbols = Symbols(grammar)
    figures = map(symbols.plain, written_forms(source, grammar))
    return GroundedText(symbols, figures, digits_of_names(source, grammar), source)


def values(text, grammar=None):
    return {number.value for number in extract(text, grammar)}


def allowed_values(source, grammar=None):
    found = values(source, grammar)
    return found | {abs(value) for value in found}


def write(name, prompts, seed, most=30):
    """Return what a model writes whose random scores prefer tokens with digits."""
    stock, rng = tokenizer(name), np.random.default_rng(seed)
    stock.pad_token, stock.padding_side = stock.eos_token, "left"
    ids = stock(prompts, return_tensors="pt", padding=True)["input_ids"]
    begin = ids.shape[1]
    digits = [any(map(str.isdigit, one)) for one in stock.convert_ids_to_tokens(range(len(stock)))]
    hold = processor(name)
    ended = [False] * len(prompts)
    for _ in range(most):
        scores = rng.normal(size=(len(prompts), len(stock))) + 4 * np.array(digits)
        held = hold(ids, torch.from_numpy(scores).float())
        chosen = held.softmax(-1).multinomial(1)
        ended = [was or int(one) in hold.ends for was, one in zip(ended, chosen, strict=True)]
        ids = torch.cat([ids, chosen], 1)
    for _ in range(most):  # on to the end of each number
        held = hold(ids, torch.zeros(len(prompts), len(stock)))
        if all((held[:, hold.ends[0]] == 0).tolist()):
            break
        ids = torch.cat([ids, held.softmax(-1).multinomial(1)], 1)
    return [stock.decode(row[begin:], skip_special_tokens=True) for row in ids]


@given(st.sampled_from(GRAMMARS), st.sampled_from(PROMPTS), st.data())
@settings(max_examples=examples(100))
@pytest.mark.thorough
def test_every_figure_of_a_text_that_may_be_written_is_one_of_the_source(grammar, source, data):
    automaton = texts_like(source, grammar)
    symbol = automaton.symbols.of
    state, text = automaton.start, ""
    for _ in range(data.draw(st.integers(1, 25))):
        may = [one for one in CHARACTERS if automaton.step(state, symbol(one)) != NOWHERE]
        digits = [one for one in may if one.isdigit()]
        text += data.draw(st.sampled_from(digits if digits and data.draw(st.booleans()) else may))
        state = automaton.step(state, symbol(text[-1]))
    while not automaton.may_end(state):
        may = [one for one in CHARACTERS if automaton.step(state, symbol(one)) != NOWHERE]
        text += data.draw(st.sampled_from(may))
        state = automaton.step(state, symbol(text[-1]))
    assert values(text, grammar) <= allowed_values(source, grammar), text


@given(st.sampled_from(GRAMMARS), st.sampled_from(PROMPTS[:3]), st.data())
@settings(max_examples=examples(100))
@pytest.mark.thorough
def test_a_text_with_figures_of_the_source_may_be_written(grammar, source, data):
    automaton, forms = texts_like(source, grammar), written_forms(source, grammar)
    between = st.sampled_from(BETWEEN)
    text = data.draw(between)
    for _ in range(data.draw(st.integers(1, 4))):
        text += data.draw(st.sampled_from(sorted(forms))) + data.draw(between)
    numbers = extract(text, grammar)
    read = sum(sum(map(str.isdigit, number.text)) for number in numbers)
    if {number.text for number in numbers} <= forms and read == sum(map(str.isdigit, text)):
        state = automaton.step(automaton.start, automaton.symbols.of(text))
        assert automaton.may_end(state), text


@pytest.mark.parametrize("name", ["neox", "gpt2", "llama3", "llama_legacy", "smollm2"])
@pytest.mark.parametrize("seed", range(2))
def test_rows_with_random_scores_keep_to_the_figures_of_their_own_prompts(name, seed):
    torch.manual_seed(seed)
    prompts = [f"{one}\n" for one in PROMPTS]
    for prompt, text in zip(prompts, write(name, prompts, seed), strict=True):
        assert values(text) <= allowed_values(prompt), text


def read_on(name, hold, prompt, text):
    """Return whether all tokens of a text may follow a prompt, and the scores behind the text."""
    stock, may = tokenizer(name), True
    ids, scores = stock(prompt)["input_ids"], torch.zeros(1, len(stock))
    for token in stock(text, add_special_tokens=False)["input_ids"]:
        may = may and bool(hold(torch.tensor([ids]), scores)[0, token] == 0)
        ids.append(token)
    return may, hold(torch.tensor([ids]), scores)[0]


@pytest.mark.parametrize("name", ["neox", "gpt2", "smollm2"])
@pytest.mark.parametrize(
    "text", [PROMPTS[0], "From 1234567 😀 to 2023, and naïve: 5%", "٣, 10² and 12,345! "]
)
def test_prompts_may_be_written_again_token_by_token(name, text):
    assert read_on(name, processor(name), f"{PROMPTS[0]}{PROMPTS[1]}\n", text)[0]


ROOMS = "It has 17 rooms, 1,250 m and Q3.\n"
LIST, EURO = {"allow": range(1, 11)}, {"policy": "european"}
FOLLOWING = [  # prompt, options, text, digits that may follow, whether the text may end
    (ROOMS, {}, "It has ", "1", True), (ROOMS, {}, "It has 1", "27", False), (ROOMS, {}, "It has 17", "", True),
    (ROOMS, {}, "It has 17.", "", True), (ROOMS, {}, "It has 17, ", "1", True), (ROOMS, {}, "It has 12", "5", False),
    (ROOMS, {}, "It has 1,", "2", False), (ROOMS, {}, "It has 17,", "", True), (ROOMS, {}, "It has -", "", True),
    (ROOMS, {}, "In Q", "3", True), (ROOMS, {}, "In Q3", "", True), (ROOMS, {}, "It is a", "3", True),
    ("It has 17,50 and 17.\n", {}, "It has 17,", "5", True),
    # a number at the end of the prompt goes on
    ("It has 17 and 175 rooms, that is 17", {}, "", "5", True), ("It has 1.2.3", {"sources": "17"}, "", "", True),
    ("It has 17 and 175 rooms, that is 1", {"sources": "17, 175"}, "", "7", False),
    (ROOMS, LIST, "\n", "123456789", True), (ROOMS, LIST, "\n1", "027", True),
    ("x", {"allow": ["-0.5", 7]}, "\n", "07", True),
    ("Es sind 1.250,5 km.\n", EURO, "1.2", "5", False), ("Es sind 1.250,5 km.\n", EURO, "1", "2", False),
    ("Es sind 1.250,5 km.\n", EURO, "1250,", "5", False),
]  # fmt: skip


@pytest.mark.parametrize(("prompt", "options", "text", "digits", "may_end"), FOLLOWING)
def test_what_may_follow(prompt, options, text, digits, may_end):
    """Numbers end where a figure ends."""
    stock = tokenizer("gpt2")
    hold = GroundedLogitsProcessor(stock, **options) if options else processor("gpt2")
    _, held = read_on("gpt2", hold, prompt, text)
    single = {one: stock(one, add_special_tokens=False)["input_ids"][0] for one in "0123456789"}
    assert "".join(digit for digit, token in single.items() if held[token] == 0) == digits
    assert bool(held[hold.ends[0]] == 0) == may_end


@pytest.mark.parametrize(
    ("prompt", "text", "may"),
    [("It is 12.\n", "١", False), ("١٢ of 3\n", "١", True), ("It is 10.\n", "²", False),
     ("It is 10².\n", "²", True)],
)  # fmt: skip
def test_other_numerals_are_written_only_if_the_prompt_has_them(prompt, text, may):
    assert read_on("gpt2", processor("gpt2"), prompt, text)[0] == may


def test_special_tokens_neither_cut_figures_nor_join_them():
    """Decoded without special tokens, 17 and 17 around one are 1717."""
    stock = tokenizer("gpt2")
    hold = GroundedLogitsProcessor(stock, eos_token_id=stock("a")["input_ids"])
    special = stock.eos_token_id
    one, seven = (stock(text, add_special_tokens=False)["input_ids"][0] for text in "17")
    rows = [stock("It has 17 rooms.\n")["input_ids"]]
    scores = torch.zeros(1, len(stock))
    may = []
    for token in (one, seven, special, None):
        held = hold(torch.tensor(rows), scores)[0]
        may.append((bool(held[one] == 0), bool(held[special] == 0)))
        rows = [[*rows[0], token]]
    assert may == [(True, True), (False, False), (False, True), (False, True)]


def test_a_tokenizer_without_digits_is_refused():
    with pytest.raises(FormatError, match="no token for each digit"):
        GroundedLogitsProcessor(SlowTokenizer("</s>", "a", "12"))


def test_a_figure_of_a_million_digits_is_not_laid_out():
    """Refuse it, and let other figures of the source be written."""
    forms = written_forms(f"{'7' * 1_000_000} and 1,250, B{'7' * 1_000_000}", Grammar())
    assert forms == {"1,250", "+1,250", "1250", "+1250"}
