"""Check what a drop-in tokenizer has to do with text without numbers, one function for each behaviour;
each raises AssertionError if ``tok`` does otherwise.

The oracle is the source tokenizer itself. Text with numbers: :mod:`hf_number_checks`.
"""

import warnings

import torch
import transformers
from hf_compare import attributes, compare, same

from numtok.engines.choose import EngineWarning


def check_call(tok, source, text, pair=None, sides=None, **options):
    """A call returns what it returns on the source, in every field, type and encoding."""
    with attributes(tok, sides or {}), attributes(source, sides or {}):
        compare(tok, source, lambda one: one(text, pair, **options), (text, pair, options))


def stream_text(tok, ids, **options):
    """The pieces that a ``TextStreamer`` prints."""
    pieces = []

    class Streamer(transformers.TextStreamer):
        def on_finalized_text(self, text, stream_end=False):
            pieces.append(text)

    streamer = Streamer(tok, **options)
    for number in ids:
        streamer.put(torch.tensor([number]))
    streamer.end()
    return pieces


NAMES = [
    "all_special_ids", "all_special_tokens", "special_tokens_map", "extra_special_tokens",
    "extra_special_tokens_ids", "model_max_length", "max_len_single_sentence",
    "max_len_sentences_pair", "padding_side", "truncation_side", "pad_token_type_id",
    "model_input_names", "clean_up_tokenization_spaces", "split_special_tokens",
    "chat_template", "is_fast", "name_or_path", "add_bos_token", "add_eos_token",
    "add_prefix_space", "SPECIAL_TOKENS_ATTRIBUTES", "nothing",
]  # fmt: skip


def added_tokens(tok):
    return {number: repr(token) for number, token in tok.added_tokens_decoder.items()}


def check_same_ids_as_core(tok, texts):
    """``tok.numtok`` is the tokenizer of the core with the same ids."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EngineWarning)  # of tokens that strip spaces
        core = tok.numtok.encode_batch(texts, add_special_tokens=True, parse_special=True)
    assert tok(texts)["input_ids"] == core["input_ids"].to_pylist(), texts


def check_same_tokenizer(tok, other, texts):
    """Two drop-in tokenizers that are to be equal: class, settings, vocabulary and what they
    return.
    """
    assert type(other) is type(tok), type(other)
    for name in ("fingerprint", "representations", "grammar"):
        assert getattr(other.numtok, name) == getattr(tok.numtok, name), name
    for name in (
        *("special_tokens_map", "model_max_length", "padding_side", "truncation_side"),
        *("model_input_names", "chat_template", "extra_special_tokens"),
    ):
        assert getattr(other, name) == getattr(tok, name), name
    assert other.get_vocab() == tok.get_vocab()
    assert added_tokens(tok) == added_tokens(other)
    for options in (
        {},
        {"return_numbers": True, "return_offsets_mapping": True},
        {"truncation": True, "max_length": 6, "padding": "max_length"},
    ):
        same(other(texts, **options), tok(texts, **options))
    got = tok(texts, return_numbers=True)
    texts_of = [
        one.batch_decode(got["input_ids"], number_value=got["number_value"]) for one in (tok, other)
    ]
    assert texts_of[0] == texts_of[1]
