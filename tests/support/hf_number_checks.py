"""Check what a drop-in tokenizer has to do with text with numbers, one function for each behaviour; each
raises AssertionError if ``tok`` does otherwise.

The oracle is :class:`hf_oracle.Oracle`.
"""

import numpy as np
import tokenizers
import torch
import transformers
from hf_compare import ENCODING, FLAGS, attributes, outcome, same


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
    """One row of a stream: equal, also in the sign of zero; an empty row may have any shape."""
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
    """Of the tokens of one number, only the span of the whole is laid down: text tokens are where
    they are, those of a number lie within it, or on the space before it.
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
    for options in FLAGS:
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
