"""Every known pattern cuts around a digit that stands in for a number, whatever the text around it
is: the gigatoken engine relies on this.
"""

import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, pre_tokenizers

from numtok.arrays.unicode_classes import flags
from numtok.engines.gigatoken.byte_level import GPT2, GPT4O, LLAMA3, QWEN2

characters = st.one_of(
    st.sampled_from([*" \t\n\r'sdABé½/.-_\u0301\u00a0\u2028年"]), st.characters(codec="utf-8")
)
around = st.text(characters, max_size=8)
white = st.text(" \t\n\r\x0b\x0c", max_size=4)


def is_number(character):
    """Whether it is of category N for the engine; Python knows fewer such characters."""
    return bool(character and flags("number")[ord(character)])


@functools.cache
def cut(pattern):
    pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")
    return lambda text: [word for word, _ in pre_tokenizer.pre_tokenize_str(text)]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "pattern", [GPT2, LLAMA3, QWEN2, GPT4O], ids=["gpt2", "llama3", "qwen2", "gpt4o"]
)
@given(before=around, run=white, after=around)
def test_known_patterns_cut_where_it_is_relied_on(pattern, before, run, after):
    words = cut(pattern)
    if before and not before[-1].isspace():
        # between a word and a space
        assert words(f"{before} {after}") == words(before) + words(f" {after}")
    if not is_number(after[:1]):
        digits = words("7")
        assert words(f"x7{after}") == ["x", *digits, *words(after)]  # around a digit
        if before and not is_number(before[-1]) and not before[-1].isspace():
            assert words(f"{before}7{after}") == words(before) + digits + words(after)
        # and around a digit with a space, behind anything
        text = before + run
        assert words(f"{text} 7{after}") == words(text) + words(" 7") + words(after)
