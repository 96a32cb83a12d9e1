"""Check what a drop-in tokenizer has to do with text with numbers, one function for each behaviour; each
raises AssertionError if ``tok`` does otherwise.

The oracle is :class:`hf_oracle.Oracle`.
"""

import math

import numpy as np
import tokenizers
import torch
import transformers
from hf_compare import ENCODING, FLAGS, attributes, outcome, same
from hf_oracle import NEUTRAL


def check_numbers(tok, oracle, text, text_pair=None, sides=None, **options):
    """Ids, masks, offsets, words and streams of text with numbers; off, the streams are not there."""
    expected = outcome(lambda: oracle.call(text, text_pair, sides, **options))
    with attributes(tok, sides or {}):
        off = outcome(lambda: tok(text, text_pair, **options))
        on = outcome(lambda: tok(text, text_pair, return_numbers=True, **options))
    where = (text, text_pair, sides, options)
    if isinstance(expected, BaseException):
        same(off, expected, where)
        same(on, expected, where)
        return
    same(off if isinstance(off, BaseException) else dict(off), expected.data, where)
    same_rows(off, expected, where)
    if options.get("return_tensors") == "pt" and len({len(row.ids) for row in expected.rows}) > 1:
        return  # torch makes an empty tensor of such rows if the first is empty, which helps nobody
    assert not isinstance(on, BaseException), f"{where}: {on!r}"
    names = ["number_value", "number_mask", *oracle.extra_streams()]
    assert set(on) == {*expected.data, *names}, f"{where}: {list(on)}"
    same({key: on[key] for key in expected.data}, expected.data, where)
    same_rows(on, expected, where)
    check_streams(on, expected, oracle, where)


def check_streams(got, expected, oracle, where=""):
    """The number streams, row for row."""
    tensors = type(expected.data["input_ids"])
    wanted = {
        "number_value": np.dtype(np.float64),
        "number_mask": np.dtype(bool),
        **oracle.extra_streams(),
    }
    for name, dtype in wanted.items():
        rows = [row.stream(name) for row in expected.rows]
        value = got[name]
        if tensors is not list and expected.data["input_ids"].dtype != object:
            assert type(value) is tensors, f"{where}[{name!r}]: {type(value)}"
            kind = np.asarray(value).dtype
            assert kind == dtype or (
                dtype.kind in "iu" and kind.kind in "iu" and kind.itemsize >= dtype.itemsize
            ), f"{where}[{name!r}]: {kind}"
            assert value.shape[:2] == expected.data["input_ids"].shape, (
                f"{where}[{name!r}]: {value.shape}"
            )
        got_rows = [value] if expected.single else value
        assert len(got_rows) == len(rows), (
            f"{where}[{name!r}]: {len(got_rows)} rows instead of {len(rows)}"
        )
        for ours, theirs in zip(got_rows, rows, strict=True):
            same_stream(ours, theirs, name, where)


def same_stream(ours, theirs, name, where=""):
    """One row of a stream: equal, also in the sign of zero; an empty row may have any shape."""
    assert len(ours) == len(theirs), (
        f"{where}[{name!r}]: {len(ours)} tokens instead of {len(theirs)}"
    )
    one, other = np.asarray(ours), np.asarray(theirs)
    if other.ndim < one.ndim:  # no number in the row to know the shape from
        other = np.broadcast_to(other.reshape(-1, *[1] * (one.ndim - 1)), one.shape)
    np.testing.assert_array_equal(one, other, f"{where}[{name!r}]")
    if one.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(one), np.signbit(other), f"{where}[{name!r}]")


def same_rows(got, expected, where=""):
    """The encodings, with all their methods."""
    assert isinstance(got, transformers.BatchEncoding) and got.is_fast, where
    assert len(got.encodings) == len(expected.rows), (
        f"{where}: {len(got.encodings)} encodings instead of {len(expected.rows)}"
    )
    for k, (encoding, row) in enumerate(zip(got.encodings, expected.rows, strict=True)):
        same_row(encoding, row, f"{where}.encodings[{k}]")
        assert len(encoding.overflowing) == len(row.overflowing), where
        for one, other in zip(encoding.overflowing, row.overflowing, strict=True):
            same_row(one, other, f"{where}.encodings[{k}].overflowing")
        same(got.tokens(k), row.tokens, where)
        same(got.word_ids(k), row.word_ids, where)
        same(got.sequence_ids(k), row.sequence_ids, where)


def same_row(encoding, row, where=""):
    assert isinstance(encoding, tokenizers.Encoding), f"{where}: {type(encoding)}"
    spelled = any(one is not None and len(one[0].tokens) > 1 for one in row.numbers)
    for name in ENCODING:
        ours, theirs = getattr(encoding, name), getattr(row, name)
        # of the tokens of one number, only those of the whole are laid down
        if spelled and name in ("offsets", "word_ids"):
            continue
        assert ours == theirs, f"{where}.{name}: {ours} instead of {theirs}"
    if spelled:
        same_spelled_offsets(encoding, row, where)


def same_spelled_offsets(encoding, row, where):
    """Text tokens are where they are; those of a number lie within it, or on the space before it."""
    for k, (ours, theirs) in enumerate(zip(encoding.offsets, row.offsets, strict=True)):
        if row.numbers[k] is None:
            assert ours == theirs, f"{where}.offsets[{k}]: {ours} instead of {theirs}"
        else:
            assert theirs[0] <= ours[0] <= ours[1] <= theirs[1], (
                f"{where}.offsets[{k}]: {ours} is not within {theirs}"
            )


def check_surfaces(tok, oracle, text):
    """The offsets of each number token are the number's, whatever the normalizer does: the text
    there reads as its value.
    """
    import numtok

    got = tok(text, return_numbers=True, return_offsets_mapping=True)
    places = oracle.places([text])[0]
    marked = [k for k, one in enumerate(got["number_mask"]) if one]
    assert len(marked) == len(places), f"{text!r}: {len(marked)} numbers instead of {len(places)}"
    for k, place in zip(marked, places, strict=True):
        start, stop = got["offset_mapping"][k]
        assert (
            stop == place.stop and text[start:stop].strip(" ") == text[place.start : place.stop]
        ), f"{text!r}: {text[start:stop]!r}"
        value = numtok.Numbers.parse([text[start:stop].strip(" ")]).to_float64()[0]
        assert got["number_value"][k] == value or math.isinf(value), (
            f"{text!r}: {got['number_value'][k]} instead of {value}"
        )


def check_number_padding(tok, oracle, texts, side, **options):
    """``pad`` pads every stream as it pads the ids, and gives what padding within the call gives."""
    flags = {"return_numbers": True, "return_special_tokens_mask": True}
    with attributes(tok, {"padding_side": side}):
        features = [tok(text, **flags) for text in texts]
        padded = tok.pad(features, **options)
        names = ("input_ids", "attention_mask")
        plain = [{key: one[key] for key in names if key in one} for one in features]
        bare = tok.pad(plain, **options)
    expected = [oracle.call(text).rows[0] for text in texts]
    width = len(bare["input_ids"][0])
    for name in ["number_value", "number_mask", *oracle.extra_streams()]:
        assert name in padded, f"{texts}: {list(padded)}"
        for ours, row in zip(padded[name], expected, strict=True):
            stream = row.stream(name)
            shape = next((np.asarray(one).shape for one in stream), ())
            filling = [np.full(shape, NEUTRAL.get(name, 0))] * (width - len(stream))
            theirs = filling + stream if side == "left" else stream + filling
            same_stream(ours, theirs, name, (texts, side, options))
    for name in names:
        same(padded[name], bare[name], texts)
    if "return_tensors" in options:
        dtypes = [str(padded[name].dtype) for name in ("number_value", "number_mask")]
        assert [one.removeprefix("torch.") for one in dtypes] == ["float64", "bool"]


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
                assert tok.decode(one, **options) == written[-1], (text, options)
                continue
            array = np.array(stream)
            for form in (stream, array, torch.tensor(array.astype(np.float64))):
                decoded = tok.decode(one, number_value=form, **options)
                assert decoded == written[-1], (
                    f"{text!r}, {options}: {decoded!r} instead of {written[-1]!r}"
                )
            wanted = oracle.decode([text], row, None, **options)
            for decoded in (
                tok.decode(one, **options),
                tok.decode(one, number_value=None, **options),
            ):
                assert decoded == wanted, f"{text!r}, {options}: {decoded!r} instead of {wanted!r}"
        keywords = {} if spelled else {"number_value": values}
        for way in (tok.decode, tok.batch_decode):
            assert way(ids, **keywords, **options) == written, (texts, options)
        if not spelled and tok.pad_token_id is not None:
            batch = tok(texts, return_numbers=True, padding=True, return_tensors="pt")
            rows, streams = batch["input_ids"], batch["number_value"]
            one_by_one = [
                tok.decode(row, number_value=value, **options)
                for row, value in zip(rows, streams, strict=True)
            ]
            whole = tok.batch_decode(rows, number_value=streams, **options)
            assert whole == one_by_one, (texts, options)
