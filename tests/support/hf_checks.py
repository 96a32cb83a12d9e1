"""Check what a drop-in tokenizer has to do, one function for each behaviour; each raises
AssertionError if ``tok`` does otherwise. Of text without numbers the oracle is the source tokenizer
itself, of text with numbers :class:`hf_oracle.Oracle`.
"""

import warnings

import numpy as np
import tokenizers
import torch
import transformers
from hf_compare import ENCODING, FLAGS, attributes, compare, outcome, same

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


NAMES = ["all_special_ids", "all_special_tokens", "special_tokens_map", "extra_special_tokens"]
NAMES += ["model_max_length", "padding_side", "truncation_side", "model_input_names"]
NAMES += ["split_special_tokens", "chat_template", "is_fast", "add_bos_token", "nothing"]


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


# Text with numbers


def check_numbers(tok, oracle, text, text_pair=None, sides=None, **options):
    """Ids, masks, offsets, words and streams of text with numbers; off, the streams are not there."""
    expected = outcome(lambda: oracle.call(text, text_pair, sides, **options))
    with attributes(tok, sides or {}):
        off = outcome(lambda: tok(text, text_pair, **options))
        on = outcome(lambda: tok(text, text_pair, return_numbers=True, **options))
    if isinstance(expected, BaseException):
        same(off, expected)
        same(on, expected)
        return
    same(off if isinstance(off, BaseException) else dict(off), expected.data)
    same_rows(off, expected)
    if options.get("return_tensors") == "pt" and len({len(row.ids) for row in expected.rows}) > 1:
        return  # torch makes an empty tensor of such rows if the first is empty, which helps nobody
    if isinstance(on, BaseException):
        raise on
    assert set(on) == {*expected.data, "number_value", "number_mask", *oracle.extra_streams()}
    same({key: on[key] for key in expected.data}, expected.data)
    same_rows(on, expected)
    check_streams(on, expected, oracle)


def check_streams(got, expected, oracle):
    """The number streams, row for row."""
    ids = expected.data["input_ids"]
    dtypes = {"number_value": np.dtype(np.float64), "number_mask": np.dtype(bool)}
    for name, dtype in (dtypes | oracle.extra_streams()).items():
        value = got[name]
        if not isinstance(ids, list) and ids.dtype != object:
            assert type(value) is type(ids) and value.shape[:2] == ids.shape
            kind = np.asarray(value).dtype
            wider = dtype.kind in "iu" and kind.kind in "iu" and kind.itemsize >= dtype.itemsize
            assert kind == dtype or wider
        rows = [value] if expected.single else value
        for ours, row in zip(rows, expected.rows, strict=True):
            same_stream(ours, row.stream(name))


def same_stream(ours, theirs):
    """Check that one row of a stream is equal, also in the sign of zero; an empty row may have any
    shape.
    """
    assert len(ours) == len(theirs)
    one, other = np.asarray(ours), np.asarray(theirs)
    if other.ndim < one.ndim:  # no number in the row to know the shape from
        other = np.broadcast_to(other.reshape(-1, *[1] * (one.ndim - 1)), one.shape)
    np.testing.assert_array_equal(one, other)
    if one.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(one), np.signbit(other))


def same_rows(got, expected):
    """The encodings, with all their methods."""
    assert isinstance(got, transformers.BatchEncoding) and got.is_fast
    for k, (encoding, row) in enumerate(zip(got.encodings, expected.rows, strict=True)):
        overflowing = zip(encoding.overflowing, row.overflowing, strict=True)
        for one, other in [(encoding, row), *overflowing]:
            same_row(one, other)
        same(got.tokens(k), row.tokens)
        same(got.word_ids(k), row.word_ids)
        same(got.sequence_ids(k), row.sequence_ids)


def same_row(encoding, row):
    """Check the spans of one row: tokens of text are where they are, those of a number lie within it,
    or on the space before it.
    """
    assert isinstance(encoding, tokenizers.Encoding)
    spelled = any(one is not None and len(one[0].tokens) > 1 for one in row.numbers)
    for name in ENCODING:
        if not (spelled and name in ("offsets", "word_ids")):
            assert getattr(encoding, name) == getattr(row, name), name
    for ours, theirs, number in zip(encoding.offsets, row.offsets, row.numbers, strict=True):
        assert ours == theirs or (number and theirs[0] <= ours[0] <= ours[1] <= theirs[1])


def check_number_decode(tok, oracle, texts):
    """Ids and values back to text, with every flag, one by one and in batches; without values the
    tokens show as themselves.
    """
    expected = [oracle.call(text).rows[0] for text in texts]
    places = [place for row in expected for place, _ in filter(None, row.numbers)]
    spelled = any(place.tokens != ["[NUM]"] for place in places)
    got = [tok(text, return_numbers=True) for text in texts]
    ids, values = ([one[name] for one in got] for name in ("input_ids", "number_value"))
    for options in (FLAGS[0], FLAGS[-1]):
        written = []
        for text, row, one, stream in zip(texts, expected, ids, values, strict=True):
            firsts = [place for place, ordinal in filter(None, row.numbers) if ordinal == 0]
            surfaces = [place.canonical for place in firsts]
            written.append(oracle.decode([text], row, surfaces, **options))
            if spelled:
                assert tok.decode(one, **options) == written[-1]
                continue
            array = np.array(stream)
            for form in (stream, array, torch.tensor(array.astype(np.float64))):
                assert tok.decode(one, number_value=form, **options) == written[-1]
            bare = oracle.decode([text], row, None, **options)
            assert tok.decode(one, **options) == bare
            assert tok.decode(one, number_value=None, **options) == bare
        keywords = {} if spelled else {"number_value": values}
        for way in (tok.decode, tok.batch_decode):
            assert way(ids, **keywords, **options) == written
        if not spelled and tok.pad_token_id is not None:
            batch = tok(texts, return_numbers=True, padding=True, return_tensors="pt")
            rows, streams = batch["input_ids"], batch["number_value"]
            one_by_one = [
                tok.decode(row, number_value=value, **options)
                for row, value in zip(rows, streams, strict=True)
            ]
            assert tok.batch_decode(rows, number_value=streams, **options) == one_by_one
