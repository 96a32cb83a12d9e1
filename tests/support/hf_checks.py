"""Check what a drop-in tokenizer has to do with text without numbers, one function for each behaviour;
each raises AssertionError if ``tok`` does otherwise.

The oracle is the source tokenizer itself. Text with numbers: :mod:`hf_number_checks`.
"""

import pickle
import warnings

import numpy as np
import torch
import transformers
from hf_compare import FLAGS, attributes, compare, outcome, same
from tokenizers.decoders import DecodeStream

from numtok.engines.choose import EngineWarning


def check_call(tok, source, text, pair=None, sides=None, **options):
    """A call returns what it returns on the source, in every field, type and encoding."""
    with attributes(tok, sides or {}), attributes(source, sides or {}):
        compare(tok, source, lambda one: one(text, pair, **options), (text, pair, options))


def check_other_ways_in(tok, source, text, pair, **options):
    """``encode``, ``tokenize``, keywords, ``text_target`` and the rest of what makes token ids of
    text.
    """
    ways = [
        lambda one: one.encode(text),
        lambda one: one.encode(text, pair, **options),
        lambda one: one.encode(text, add_special_tokens=False),
        lambda one: one.tokenize(text),
        lambda one: one.tokenize(text, pair=pair, add_special_tokens=True),
        lambda one: one(text=text, text_pair=pair, **options),
        lambda one: one(text_target=text, **options),
        lambda one: one(text_target=[text, pair], text_pair_target=[pair, text], **options),
        lambda one: one(text, text_target=pair, **options),
        lambda one: one(
            [text, pair],
            text_target=[pair, text],
            max_target_length=3,
            truncation=True,
            max_length=5,
        ),
        lambda one: one(
            text, tokenizer_kwargs={"add_special_tokens": False, "return_offsets_mapping": True}
        ),
        lambda one: one.convert_tokens_to_ids(one.tokenize(text)),
        lambda one: one.convert_tokens_to_string(one.tokenize(text)),
        # which knows the number token
        lambda one: one.backend_tokenizer.encode(
            text.replace("[NUM", ""), pair.replace("[NUM", "")
        ),
        lambda one: one.backend_tokenizer.encode_batch([text.replace("[NUM", "")]),
    ]
    for k, way in enumerate(ways):
        compare(tok, source, way, (k, text, pair, options))


def check_batch_encoding(tok, source, texts):
    """What can be done with the result: items, slices, conversion, pickle, copies."""
    ways = [
        lambda one: one[0],
        lambda one: one["input_ids"],
        lambda one: one.input_ids,
        lambda one: one[0:1],
        lambda one: list(one.keys()),
        lambda one: pickle.loads(pickle.dumps(one)),
        lambda one: one.copy(),
        lambda one: {**one},
        lambda one: one.to("cpu"),
        lambda one: type(one)(dict(one)).convert_to_tensors("np"),
        lambda one: type(one)(dict(one), tensor_type="pt"),
        lambda one: type(one)({"input_ids": [1, 2]}, tensor_type="np", prepend_batch_axis=True),
    ]
    for k, way in enumerate(ways):
        for options in (
            {},
            {"padding": True, "return_tensors": "pt"},
            {"padding": True, "return_tensors": "np"},
        ):
            compare(tok, source, lambda one: way(one(texts, **options)), (k, texts, options))


def check_pad(tok, source, features, **options):
    """``pad`` on features that hold no number streams."""

    def copied(one):  # `pad` changes what it is given
        return pickle.loads(pickle.dumps(one))

    compare(tok, source, lambda one: one.pad(copied(features), **options), (features, options))


def check_bad_input(tok, source, text, text_pair=None, **options):
    """The same type of exception, and none where there is none; afterwards it works as before."""
    compare(tok, source, lambda one: one(text, text_pair, **options), (text, text_pair, options))
    compare(tok, source, lambda one: one("a text"))


def check_decode(tok, source, ids):
    """``decode`` and ``batch_decode`` of ids without numbers, in every form and with every flag."""
    array, tensor = np.array(ids, np.int64), torch.tensor(ids, dtype=torch.int64)
    batch = [ids, ids[:1], ids[::-1]]
    of_one = [ids, tuple(ids), array, tensor, batch, {"input_ids": ids}, *ids[:1]]
    of_many = [batch, ids, np.array([ids, ids]), torch.tensor([ids, ids]), []]
    for options in FLAGS:
        for form in of_one:
            compare(tok, source, lambda one: one.decode(form, **options), (form, options))
        for form in of_many:
            compare(tok, source, lambda one: one.batch_decode(form, **options), (form, options))
        compare(tok, source, lambda one: one.decode(token_ids=ids, **options), (ids, options))

    def through_tokens(one):
        return one.convert_tokens_to_string(one.convert_ids_to_tokens(ids))

    compare(tok, source, through_tokens, ids)
    corrupt = {
        "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output": True,
        "clean_up_tokenization_spaces": True,
    }
    with attributes(tok, corrupt), attributes(source, corrupt):
        compare(tok, source, lambda one: one.decode(ids), ids)


def check_decode_stream(tok, source, ids):
    """Token by token: ``DecodeStream`` as servers use it, and the streamers of transformers."""
    for skip in (False, True):
        flag = {"skip_special_tokens": skip}
        ours, theirs = DecodeStream(**flag), DecodeStream(**flag)
        for number in ids:
            one = outcome(lambda: ours.step(tok.backend_tokenizer, number))
            other = outcome(lambda: theirs.step(source.backend_tokenizer, number))
            same(one, other)
        assert stream_text(tok, ids, **flag) == stream_text(source, ids, **flag), ids


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


def check_vocabulary(tok, source, number_tokens):
    """Names and ids: those of the source, and the number tokens."""
    vocabulary, old = source.get_vocab() | number_tokens, source.get_vocab()
    new = {token: number for token, number in number_tokens.items() if token not in old}
    assert tok.get_vocab() == tok.vocab == vocabulary
    assert len(tok) == len(vocabulary) == len(source) + len(new)
    assert tok.vocab_size == source.vocab_size
    for token, number in number_tokens.items():
        assert tok.convert_tokens_to_ids(token) == number not in tok.all_special_ids
        assert tok.convert_ids_to_tokens(number) == token
        assert tok.convert_ids_to_tokens([number], skip_special_tokens=True) == [token]
        assert tok.get_special_tokens_mask([number], already_has_special_tokens=True) == [0]
    assert tok.get_added_vocab() == source.get_added_vocab() | new
    assert tok.added_tokens_encoder == source.added_tokens_encoder | new
    assert added_tokens(tok).items() >= added_tokens(source).items()
    for number in added_tokens(tok).keys() - added_tokens(source).keys():
        token = tok.added_tokens_decoder[number]
        assert not token.special and not token.normalized and token.content in number_tokens
    names = [name + part for name in source.SPECIAL_TOKENS_ATTRIBUTES for part in ("", "_id")]
    for name in [*NAMES, *names]:
        compare(tok, source, lambda one: getattr(one, name), name)
    tokens = [*list(old)[::29], "nowhere in it", "", source.unk_token]
    ids = [*range(0, len(source), 31), len(source) + 1000]
    ways = [
        *(lambda one, token=token: one.convert_tokens_to_ids(token) for token in (tokens, None, 5)),
        *(lambda one, which=which: one.convert_ids_to_tokens(which) for which in (ids, "a", -1)),
        lambda one: [one.convert_tokens_to_ids(token) for token in tokens],
        lambda one: [one.convert_ids_to_tokens(number) for number in ids],
        lambda one: one.convert_ids_to_tokens(np.array(ids)),
        lambda one: one.convert_ids_to_tokens(ids, skip_special_tokens=True),
        lambda one: one.convert_tokens_to_string(tokens[:20]),
        lambda one: one.num_special_tokens_to_add(),
        lambda one: one.num_special_tokens_to_add(pair=True),
        lambda one: one.get_special_tokens_mask(ids[:-1], already_has_special_tokens=True),
        lambda one: one.get_special_tokens_mask(ids[:-1]),
        lambda one: one.clean_up_tokenization("a . b 's"),
        bool,
    ]
    for k, way in enumerate(ways):
        compare(tok, source, way, k)


def check_added_tokens(tok, stock, add, texts):
    """Adding tokens to both does the same; ``stock`` is the source with the number tokens added.

    Changes both; then takes the texts.
    """
    compare(tok, stock, add, "add")
    assert len(tok) == len(stock) and tok.get_vocab() == stock.get_vocab()
    assert added_tokens(tok) == added_tokens(stock)
    for name in (*NAMES[:4], "pad_token_id", "mask_token_id"):
        compare(tok, stock, lambda one: getattr(one, name), name)
    compare(tok, stock, add, "add again")
    for text in texts():
        check_call(tok, stock, text, return_offsets_mapping=True, return_special_tokens_mask=True)
        for options in FLAGS:
            compare(tok, stock, lambda one: one.decode(one(text)["input_ids"], **options), text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EngineWarning)  # of tokens that strip spaces
            core = tok.numtok.encode(text, parse_special=True).input_ids.tolist()
        assert core == tok.encode(text, add_special_tokens=False), text


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
