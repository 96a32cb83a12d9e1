"""Texts that are one number of a format."""

import pytest
import torch
import torch_models as tiny
import trained

from numtok import NumberFormat, Tokenizer
from numtok_torch import NumberModel, generate

PROMPTS = ["It is", "The price of 12 apples is $"]


@pytest.mark.parametrize("numbers", ["subword", "digits:1,bare"])
def test_each_text_is_one_number(numbers):
    tokenizer = Tokenizer.from_pretrained(trained.source("gpt2"), numbers=numbers)
    backbone = tiny.backbone("gpt2", vocab_size=tokenizer.vocab_size)
    model = NumberModel(backbone, None).eval()
    number_format = NumberFormat(-50, 999, step="0.25")
    torch.manual_seed(1)
    for options in ({}, {"num_beams": 3}, {"do_sample": True, "num_return_sequences": 20}):
        texts = generate(model, tokenizer, PROMPTS, format=number_format, **options)
        assert all(number_format.matches(text.removeprefix(" ")) for text in texts), texts
    assert len(set(texts)) > 10
    free = generate(model, tokenizer, PROMPTS)
    assert not any(number_format.matches(text.removeprefix(" ")) for text in free)
