"""Well-formed numbers while a model writes: whatever a random model would rather say, each number
that it writes is one.
"""

import functools

import numpy as np
import pytest
import torch
import torch_generators
import torch_models as tiny
import trained
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_generators import WAYS

import numtok
from numtok import Tokenizer
from numtok.representations import (
    B1999,
    FP15,
    P10,
    P1000,
    Digits,
    NumeroLogic,
    PlaceValue,
    XVal,
)
from numtok.tokenizer.generated_numbers import number_ids
from numtok_torch import NumberModel, generate
from numtok_torch.generation.well_formed import NumberLogitsProcessor

SPELLED = {
    "p10": P10(2, (-3, 3)),
    "p1000": P1000(1, (-3, 3)),
    "b1999": B1999(1, (-3, 3), "decimal"),
    "fp15": FP15(1, (-1, 1)),
    "place": PlaceValue(),
    "numerologic": NumeroLogic(),
    "place lsd": PlaceValue(order="lsd"),
    "digits": Digits(2),
    "bare": Digits(1, brackets=False),
    "bare groups": Digits(2, brackets=False),
}
PROMPTS = torch_generators.PROMPTS[:3]
PAD = 3


@functools.cache
def tokenizer_of(name):
    return Tokenizer.from_pretrained(trained.source("gpt2"), [SPELLED[name]])


@functools.cache
def model_of(name, seed):
    return tiny.backbone("gpt2", seed, vocab_size=tokenizer_of(name).vocab_size, n_layer=1)


def prompt_ids(tokenizer):
    return [tokenizer.encode(prompt).input_ids.tolist() for prompt in PROMPTS]


def bias(tokenizer, amount):
    """Towards the tokens of numbers, and those that only begin one above all, so that about every
    other one is.
    """
    return [
        [[number], amount * (1.5 if content.strip() == "[NUM]" else 1)]
        for content, number in tokenizer.tokens.items()
    ]


def mistakes(tokenizer, ids):
    """What is wrong with the numbers in ids: those that are no whole number, and tokens of numbers
    outside of any.
    """
    spelling = tokenizer.spelling
    assert spelling is not None
    if spelling.reading is not None and "\ufffd" in tokenizer.decode(ids):
        return []  # halves of characters, beside which nobody can tell what is read
    found, inside = [], np.zeros(len(ids), np.bool_)
    for start, stop, text in tokenizer.numbers_in(np.array(ids, np.int32)):
        inside[start:stop] = True
        read = numtok.scan([text], tokenizer.grammar).text().to_pylist()
        whole = stop - start == spelling.length
        if spelling.bracketed:
            whole = ids[stop - 1] == spelling.brackets[2]
        if spelling.reading is not None:  # of the tokens that the text itself has
            expected = tokenizer.encode(text).input_ids.tolist()
            whole = expected[1:] == ids[start + 1 : stop]
            # a sign or a point may end a token of text, `` -`` and `` (-`` of GPT-2
            first, written_first = tokenizer.decode(expected[:1]), tokenizer.decode([ids[start]])
            whole &= written_first.endswith(first)
        if not whole or read != [text]:
            found.append(f"{text!r} at {start}")
    if spelling.reading is not None:
        return found
    own = {*spelling.ids.tolist(), *spelling.spaced.tolist()}
    if spelling.bracketed:
        own &= set(tokenizer.own_tokens.values())
    own |= {*spelling.brackets}
    outside = [at for at, number in enumerate(ids) if number in own and not inside[at]]
    return found + [f"{ids[at]} at {at} outside" for at in outside]


def written(name, way, new, seed=0, amount=4.0, **options):
    """Return what a random model writes after each prompt, as ``generate`` returns it."""
    tokenizer = tokenizer_of(name)
    options |= WAYS[way] | {"eos_token_id": 9, "sequence_bias": bias(tokenizer, amount)}
    model = NumberModel(model_of(name, seed), None)
    torch.manual_seed(seed)
    return generate(model, tokenizer, PROMPTS, max_new_tokens=new, details=True, **options)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SPELLED)
@given(seed=st.integers(0, 2), new=st.integers(1, 14), amount=st.sampled_from([0.0, 3.0, 8.0]))
@settings(max_examples=examples(2))
def test_a_random_model_writes_only_numbers(name, way, seed, new, amount):
    """However many tokens there is room for: no number is begun that would be cut, or gets longer;
    each has a value.
    """
    tokenizer, found = tokenizer_of(name), written(name, way, new, seed, amount, longest=8)
    befores = [ids for ids in prompt_ids(tokenizer) for _ in found.ids[:: len(PROMPTS)]]
    for before, ids, values in zip(befores, found.ids, found.values, strict=True):
        assert mistakes(tokenizer, before + ids) == [] and not np.isnan(values).any()
        for start, stop, _ in tokenizer.numbers_in(np.array(before + ids, np.int32)):
            assert start < len(before) or stop - start <= 8 + 2  # which are brackets


# of fp15 and bare digits, hardly anything is a mistake
@pytest.mark.parametrize("name", [name for name in SPELLED if name not in ("fp15", "bare")])
def test_without_rules_it_writes_other_things_too(name):
    loose = written(name, "sampling", 16, well_formed=False)
    assert any(mistakes(tokenizer_of(name), ids) for ids in loose.ids)
    assert sum(map(len, written(name, "sampling", 16).values)) >= 3


# Not 0,125, which is two numbers: where the second stays text, it is not written behind a comma.
LITERAL = st.from_regex(r"-?(?!0,)[0-9]{1,3}(,[0-9]{3})?(\.[0-9]{1,2})?(e-?[0-9])?", fullmatch=True)


@pytest.mark.parametrize("name", SPELLED)
@given(numbers=st.lists(LITERAL, min_size=1, max_size=3))
@settings(max_examples=examples(15))
def test_whatever_is_encoded_may_be_written(name, numbers):
    """Token by token, by rows in any order, that are padded; the scores are left as they were."""
    tokenizer = tokenizer_of(name)
    ids = tokenizer.encode(f"It is {' or '.join(numbers)}, not").input_ids.tolist()
    width = len(ids) - 1
    befores = torch.tensor([[PAD] * (width - at) + ids[:at] for at in range(1, len(ids))])
    scores = torch.zeros(len(befores), tokenizer.vocab_size)
    held = NumberLogitsProcessor(tokenizer, longest=40)(befores.flip(0), scores).flip(0)
    assert held[torch.arange(len(befores)), ids[1:]].tolist() == [0] * len(befores)
    assert not scores.any()


def test_scores_stay_and_ids_beyond_the_tokenizer_are_text():
    """Of models whose table of words was rounded up."""
    tokenizer = tokenizer_of("place")
    size, of = tokenizer.vocab_size, tokenizer.tokens
    wide = torch.randn(2, size + 30)
    held = NumberLogitsProcessor(tokenizer)(
        torch.tensor([[5, of["[NUM]"], of["4"]], [5, 6, size + 2]]), wide
    )
    kept = held != -torch.inf
    assert torch.equal(held[kept], wide[kept])
    assert kept.sum(1).tolist() == [10 + len(".eE,") + 1, size + 29]


def test_other_constraints_hold_too():
    """Where they leave nothing that may follow, they alone are kept to."""
    tokenizer, model = tokenizer_of("place"), model_of("place", 0)
    of, processor = tokenizer.tokens, NumberLogitsProcessor(tokenizer, max_length=8)
    prompt, barred = torch.tensor([[5, of["[NUM]"]]]), [of[one] for one in "012345678"]

    def generated(new, **options):
        return list(
            model.generate(prompt, max_new_tokens=new, logits_processor=[processor], **options)[0]
        )

    ids = [int(one) for one in generated(6, suppress_tokens=barred)]
    assert of["9"] in ids and not set(ids) & set(barred) and mistakes(tokenizer, ids) == []
    forced = [of["4"], 77]
    ids = generated(2, prefix_allowed_tokens_fn=lambda _, before: [forced[len(before) - 2]])
    assert ids == [5, of["[NUM]"], *forced]


def test_a_decoder_that_is_made_to_end():
    """BART's last token is always its end token, so a number has one token less."""
    tokenizer = tokenizer_of("place")
    bart = tiny.backbone("bart", vocab_size=tokenizer.vocab_size, forced_eos_token_id=2)
    assert bart.generation_config.forced_eos_token_id == 2
    model, count = NumberModel(bart, None), 0
    options = {"details": True, "sequence_bias": bias(tokenizer, 30.0)}
    for new in range(3, 12):
        found = generate(model, tokenizer, PROMPTS, max_new_tokens=new, **options)
        assert [mistakes(tokenizer, ids) for ids in found.ids] == [[]] * 3
        count += sum(map(len, found.values))
    assert count >= 20


WRITTEN = {
    "xval": XVal(),
    "place": PlaceValue(),
    "digits": Digits(1),
    "p10": P10(2, (-3, 3)),
}
BESIDE = ["(", "z", "e", "kg", "7", "42", ".", "-", ")"]


def all_read(found, prompt):
    """Whether each number that was written is read from the text behind the prompt, whatever its
    sign; also digits that are text may be read as numbers.
    """
    for text, values in zip(found.texts, found.values, strict=True):
        read = iter([abs(float(number.value)) for number in numtok.extract(prompt + text)])
        if not all(abs(value) in read for value in values):
            return False
    return True


@pytest.mark.parametrize("source", ["gpt2", "t5", "t5_words", "bert"])
@pytest.mark.parametrize("name", WRITTEN)
def test_as_many_numbers_are_read_as_were_written(name, source):
    """By a model that would write numbers back to back, in either form, and words, letters, digits
    and marks beside them.
    """
    tokenizer = Tokenizer.from_pretrained(trained.source(source), [WRITTEN[name]])
    layers = (tiny.embedding("xval"), tiny.head("scalar")) if name == "xval" else ()
    model = torch_generators.model_for(tokenizer, *layers)
    beside = [tokenizer.encode(f"a{one}").input_ids.tolist()[-1] for one in BESIDE]
    beside += tokenizer.encode("a 7").input_ids.tolist()  # with a space, where that is a token
    if name in ("place", "digits"):
        beside += [tokenizer.tokens[one] for one in [*"123", "[/NUM]"]]
    elif name != "xval":
        beside += [*tokenizer.tokens.values()]
    # six numbers and more where a model writes fewest, with T5
    options = {"do_sample": True, "details": True}
    options |= {"max_new_tokens": 32, "temperature": 3.0}
    options["num_return_sequences"] = 8 if name == "xval" else 32
    tokens = [*number_ids(tokenizer), *beside]
    options["prefix_allowed_tokens_fn"] = lambda *_: tokens
    for well_formed in (True, False):
        torch.manual_seed(1)
        found = generate(model, tokenizer, ["It is"], well_formed=well_formed, **options)
        assert sum(map(len, found.values)) >= 6
        assert all_read(found, "It is") == well_formed
