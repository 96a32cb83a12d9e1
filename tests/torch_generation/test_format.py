"""Texts that are one number of a format."""

import pytest
import trained

from numtok import NumberFormat, Tokenizer
from numtok_torch import NumberModel, generate

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

PROMPTS = ["It is", "The price of 12 apples is $"]


def made(numbers):
    tokenizer = Tokenizer.from_pretrained(trained.source("gpt2"), numbers=numbers)
    torch.manual_seed(0)
    size = tokenizer.vocab_size
    config = transformers.GPT2Config(
        n_embd=16, n_layer=1, n_head=2, vocab_size=size, n_positions=64, eos_token_id=size - 1
    )
    return NumberModel(transformers.GPT2LMHeadModel(config).eval(), None), tokenizer


@pytest.mark.parametrize("numbers", ["subword", "digits:1,bare"])
def test_each_text_is_one_number(numbers):
    model, tokenizer = made(numbers)
    number_format = NumberFormat(-50, 999, step="0.25")
    torch.manual_seed(1)
    for options in ({}, {"num_beams": 3}, {"do_sample": True, "num_return_sequences": 20}):
        texts = generate(model, tokenizer, PROMPTS, format=number_format, **options)
        assert all(number_format.matches(text.removeprefix(" ")) for text in texts), texts
    assert len(set(texts)) > 10
    free = generate(model, tokenizer, PROMPTS)
    assert not any(number_format.matches(text.removeprefix(" ")) for text in free)
