"""What a drop-in tokenizer has to do, one function for each behaviour; each raises AssertionError if ``tok`` does otherwise.

For text without numbers the oracle is the source tokenizer itself, for text with numbers :class:`hf_oracle.Oracle`.
"""

from __future__ import annotations

import contextlib
import io
import math
import pickle
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import tokenizers
import transformers
from hf_oracle import NEUTRAL, Expected, Oracle, Row, attributes, strings
from tokenizers.decoders import DecodeStream

from numtok.engines.choose import EngineWarning

Options = dict[str, Any]
RIGHT: Options = {"truncation_side": "right", "padding_side": "right"}
ENCODING = ["ids", "type_ids", "tokens", "offsets", "attention_mask", "special_tokens_mask", "word_ids", "sequence_ids", "n_sequences"]
FLAGS = [
    {"skip_special_tokens": skip, **({} if clean is None else {"clean_up_tokenization_spaces": clean})}
    for skip in (False, True)
    for clean in (None, False, True)
]


# Comparison -----------------------------------------------------------------------------------------------------------------


def outcome(call: Callable[[], Any]) -> Any:
    """What a call returns, or the exception that it raises; a panic in Rust is no ``Exception``."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            return call()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            return error


def same(ours: Any, theirs: Any, where: Any = "") -> None:
    """Equal in value, type, and as far as it goes in dtype and shape; two exceptions if ours is of the type of theirs."""
    if isinstance(theirs, BaseException):
        # Errors of tokenizers itself are bare exceptions or panics; which row of a batch comes first is a matter of its threads.
        anything = type(theirs) is Exception or type(theirs).__name__ == "PanicException"
        assert isinstance(ours, BaseException if anything else type(theirs)), f"{where}: {ours!r} instead of {theirs!r}"
        return
    assert not isinstance(ours, BaseException), f"{where}: {ours!r} instead of {theirs!r}"
    if isinstance(theirs, transformers.BatchEncoding):
        same_batch(ours, theirs, where)
    elif isinstance(theirs, tokenizers.Encoding):
        same_encoding(ours, theirs, where)
    elif isinstance(theirs, dict):
        assert list(ours) == list(theirs), f"{where}: {list(ours)} instead of {list(theirs)}"
        for key in theirs:
            same(ours[key], theirs[key], f"{where}[{key!r}]")
    elif type(theirs).__module__ in ("numpy", "torch"):
        assert type(ours) is type(theirs) and ours.dtype == theirs.dtype and ours.shape == theirs.shape, (
            f"{where}: {ours} instead of {theirs}"
        )
        if ours.dtype == object:
            same(ours.tolist(), theirs.tolist(), where)
        else:
            assert bool((ours == theirs).all()), f"{where}: {ours} instead of {theirs}"
    elif isinstance(theirs, list | tuple) and any(
        isinstance(one, list | tuple | dict | tokenizers.Encoding) or hasattr(one, "dtype") for one in theirs
    ):
        assert type(ours) is type(theirs) and len(ours) == len(theirs), f"{where}: {ours} instead of {theirs}"
        for k, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            same(one, other, f"{where}[{k}]")
    else:
        assert type(ours) is type(theirs) and ours == theirs, f"{where}: {ours!r} instead of {theirs!r}"


def same_batch(ours: Any, theirs: transformers.BatchEncoding, where: Any = "") -> None:
    assert isinstance(ours, transformers.BatchEncoding), f"{where}: {type(ours)}"
    same(dict(ours), dict(theirs), where)
    for name in ("is_fast", "n_sequences"):  # the latter is lost in a pickle
        compare(ours, theirs, lambda one: getattr(one, name), f"{where}.{name}")  # noqa: B023
    same(ours.encodings, theirs.encodings, f"{where}.encodings")


def same_encoding(ours: Any, theirs: tokenizers.Encoding, where: Any = "", depth: int = 0) -> None:
    assert isinstance(ours, tokenizers.Encoding), f"{where}: {type(ours)}"
    for name in ENCODING:
        assert getattr(ours, name) == getattr(theirs, name), f"{where}.{name}: {getattr(ours, name)} instead of {getattr(theirs, name)}"
    assert len(ours) == len(theirs)
    assert len(ours.overflowing) == len(theirs.overflowing), where
    if depth < 1:
        for k, (one, other) in enumerate(zip(ours.overflowing, theirs.overflowing, strict=True)):
            same_encoding(one, other, f"{where}.overflowing[{k}]", depth + 1)


def compare(ours: Any, theirs: Any, call: Callable[[Any], Any], where: Any = "") -> None:
    """The same call on both."""
    same(outcome(lambda: call(ours)), outcome(lambda: call(theirs)), where)


# Text without numbers: the source is the oracle ------------------------------------------------------------------------------


def check_call(tok: Any, source: Any, text: Any, text_pair: Any = None, sides: Options | None = None, **options: Any) -> None:
    """A call returns what it returns on the source, in every field, type and encoding."""
    with attributes(tok, sides or {}), attributes(source, sides or {}):
        compare(tok, source, lambda one: one(text, text_pair, **options), (text, text_pair, options))


def check_alignment(tok: Any, source: Any, text: Any, text_pair: Any = None, **options: Any) -> None:
    """Every method of ``BatchEncoding`` and ``Encoding`` that goes from tokens to words to characters, at every place and beyond."""
    ours, theirs = tok(text, text_pair, **options), source(text, text_pair, **options)
    longest = max([len(one) for one in strings((text, text_pair))], default=0)
    for batch, encoding in enumerate(theirs.encodings):
        for name in ("tokens", "word_ids", "sequence_ids"):
            compare(ours, theirs, lambda one, name=name: getattr(one, name)(batch), name)  # noqa: B023
        for name in ("token_to_chars", "token_to_word", "token_to_sequence"):
            for token in range(-1, len(encoding) + 2):
                compare(ours, theirs, lambda one: getattr(one, name)(batch, token), (text, name, batch, token))  # noqa: B023
                compare(ours[batch], theirs[batch], lambda one: getattr(one, name)(token), (text, name, token))  # noqa: B023
        for sequence in (0, 1):
            for names, top in ((("char_to_token", "char_to_word"), longest), (("word_to_tokens", "word_to_chars"), longest)):
                for name in names:
                    for at in range(top + 2):
                        where = (text, text_pair, name, batch, at, sequence)
                        compare(ours, theirs, lambda one: getattr(one, name)(batch, at, sequence), where)  # noqa: B023
                        compare(ours[batch], theirs[batch], lambda one: getattr(one, name)(at, sequence), where)  # noqa: B023
    compare(ours, theirs, lambda one: one.char_to_token(0))
    compare(ours, theirs, lambda one: one["nothing"])
    compare(ours, theirs, lambda one: one.nothing)
    compare(ours, theirs, lambda one: one[len(theirs.encodings)])


def check_other_ways_in(tok: Any, source: Any, text: str, pair: str, **options: Any) -> None:
    """``encode``, ``tokenize``, keywords, ``text_target`` and the rest of what makes token ids of text."""
    ways: list[Callable[[Any], Any]] = [
        lambda one: one.encode(text),
        lambda one: one.encode(text, pair, **options),
        lambda one: one.encode(text, add_special_tokens=False),
        lambda one: one.tokenize(text),
        lambda one: one.tokenize(text, pair=pair, add_special_tokens=True),
        lambda one: one(text=text, text_pair=pair, **options),
        lambda one: one(text_target=text, **options),
        lambda one: one(text_target=[text, pair], text_pair_target=[pair, text], **options),
        lambda one: one(text, text_target=pair, **options),
        lambda one: one([text, pair], text_target=[pair, text], max_target_length=3, truncation=True, max_length=5),
        lambda one: one(text, tokenizer_kwargs={"add_special_tokens": False, "return_offsets_mapping": True}),
        lambda one: one.convert_tokens_to_ids(one.tokenize(text)),
        lambda one: one.convert_tokens_to_string(one.tokenize(text)),
        lambda one: one.backend_tokenizer.encode(text.replace("[NUM", ""), pair.replace("[NUM", "")),  # which knows the number token
        lambda one: one._tokenizer.encode_batch([text.replace("[NUM", "")]),
    ]
    for k, way in enumerate(ways):
        compare(tok, source, way, (k, text, pair, options))


def check_batch_encoding(tok: Any, source: Any, texts: list[str]) -> None:
    """What can be done with the result: items, slices, conversion, pickle, copies."""
    ways: list[Callable[[Any], Any]] = [
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
        for options in ({}, {"padding": True, "return_tensors": "pt"}, {"padding": True, "return_tensors": "np"}):
            compare(tok, source, lambda one: way(one(texts, **options)), (k, texts, options))  # noqa: B023


def check_pad(tok: Any, source: Any, features: Any, **options: Any) -> None:
    """``pad`` on features that hold no number streams."""

    def copied(one: Any) -> Any:  # `pad` changes what it is given
        return pickle.loads(pickle.dumps(one))

    compare(tok, source, lambda one: one.pad(copied(features), **options), (features, options))


def check_bad_input(tok: Any, source: Any, text: Any, text_pair: Any = None, **options: Any) -> None:
    """The same type of exception, and none where there is none; afterwards it works as before."""
    compare(tok, source, lambda one: one(text, text_pair, **options), (text, text_pair, options))
    compare(tok, source, lambda one: one("a text"))


def check_state(tok: Any, source: Any, calls: Sequence[tuple[Any, Options]]) -> None:
    """No call changes what later ones return, nor the attributes of the tokenizer."""
    names = set(vars(tok))
    before = {name: repr(value) for name, value in vars(tok).items() if isinstance(value, str | int | bool | float | None | list | dict)}
    for text, options in calls:
        check_call(tok, source, text, **options)
        check_call(tok, source, ["a text", "another, longer text"], return_offsets_mapping=True)
    assert set(vars(tok)) <= names | {"cache", "deprecation_warnings"}, set(vars(tok)) - names
    for name, value in before.items():
        if name not in ("cache", "deprecation_warnings"):
            assert repr(getattr(tok, name)) == value, name


def check_decode(tok: Any, source: Any, ids: list[int]) -> None:
    """``decode`` and ``batch_decode`` of ids without numbers, in every form and with every flag."""
    import torch

    batch = [ids, ids[:1], ids[::-1]]
    forms = [ids, tuple(ids), np.array(ids, np.int64), torch.tensor(ids, dtype=torch.int64), batch, {"input_ids": ids}, *ids[:1]]
    for options in FLAGS:
        for form in forms:
            compare(tok, source, lambda one: one.decode(form, **options), (form, options))  # noqa: B023
        for form in (batch, ids, np.array([ids, ids]), torch.tensor([ids, ids]), []):
            compare(tok, source, lambda one: one.batch_decode(form, **options), (form, options))  # noqa: B023
        compare(tok, source, lambda one: one.decode(token_ids=ids, **options), (ids, options))  # noqa: B023
    compare(tok, source, lambda one: one.convert_tokens_to_string(one.convert_ids_to_tokens(ids)), ids)
    corrupt = {"clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output": True, "clean_up_tokenization_spaces": True}
    with attributes(tok, corrupt), attributes(source, corrupt):
        compare(tok, source, lambda one: one.decode(ids), ids)


def check_decode_stream(tok: Any, source: Any, ids: list[int]) -> None:
    """Token by token: ``DecodeStream`` as servers use it, and the streamers of transformers."""
    for skip in (False, True):
        ours, theirs = DecodeStream(skip_special_tokens=skip), DecodeStream(skip_special_tokens=skip)
        for number in ids:
            one, other = outcome(lambda: ours.step(tok._tokenizer, number)), outcome(lambda: theirs.step(source._tokenizer, number))  # noqa: B023
            same(one, other, (ids, number))
        assert stream_text(tok, ids, skip_special_tokens=skip) == stream_text(source, ids, skip_special_tokens=skip), ids


def stream_text(tok: Any, ids: list[int], **options: Any) -> list[str]:
    """The pieces that a ``TextStreamer`` prints."""
    import torch

    pieces: list[str] = []

    class Streamer(transformers.TextStreamer):
        def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
            pieces.append(text)

    streamer = Streamer(tok, **options)
    for number in ids:
        streamer.put(torch.tensor([number]))
    streamer.end()
    return pieces


def check_vocabulary(tok: Any, source: Any, number_tokens: dict[str, int]) -> None:
    """Names and ids: those of the source, and the number tokens."""
    vocabulary = source.get_vocab() | number_tokens
    assert tok.get_vocab() == vocabulary and tok.vocab == vocabulary
    new = {token: number for token, number in number_tokens.items() if token not in source.get_vocab()}
    assert len(tok) == len(vocabulary) == len(source) + len(new)
    assert tok.vocab_size == source.vocab_size
    for token, number in number_tokens.items():
        assert tok.convert_tokens_to_ids(token) == number and tok.convert_ids_to_tokens(number) == token
        assert number not in tok.all_special_ids and tok.convert_ids_to_tokens([number], skip_special_tokens=True) == [token]
        assert tok.get_special_tokens_mask([number], already_has_special_tokens=True) == [0]
    assert tok.get_added_vocab() == source.get_added_vocab() | new
    assert tok.added_tokens_encoder == source.added_tokens_encoder | new
    ours, theirs = tok.added_tokens_decoder, source.added_tokens_decoder
    assert {number: repr(token) for number, token in ours.items() if number in theirs} == {n: repr(token) for n, token in theirs.items()}
    for number in set(ours) - set(theirs):
        assert not ours[number].special and not ours[number].normalized and ours[number].content in number_tokens
    names = ["all_special_ids", "all_special_tokens", "special_tokens_map", "extra_special_tokens", "extra_special_tokens_ids"]
    names += [name + suffix for name in source.SPECIAL_TOKENS_ATTRIBUTES for suffix in ("", "_id")]
    names += [
        "model_max_length",
        "max_len_single_sentence",
        "max_len_sentences_pair",
        "padding_side",
        "truncation_side",
        "pad_token_type_id",
    ]
    names += ["model_input_names", "clean_up_tokenization_spaces", "split_special_tokens", "chat_template", "is_fast", "name_or_path"]
    names += ["add_bos_token", "add_eos_token", "add_prefix_space", "SPECIAL_TOKENS_ATTRIBUTES", "nothing"]
    for name in names:
        compare(tok, source, lambda one: getattr(one, name), name)  # noqa: B023
    tokens = [*list(source.get_vocab())[::29], "nowhere in it", "", source.unk_token]
    ids = [*range(0, len(source), 31), len(source) + 1000]
    ways: list[Callable[[Any], Any]] = [
        lambda one: [one.convert_tokens_to_ids(token) for token in tokens],
        lambda one: one.convert_tokens_to_ids(tokens),
        lambda one: one.convert_tokens_to_ids(None),
        lambda one: one.convert_tokens_to_ids(5),
        lambda one: [one.convert_ids_to_tokens(number) for number in ids],
        lambda one: one.convert_ids_to_tokens(ids),
        lambda one: one.convert_ids_to_tokens(np.array(ids)),
        lambda one: one.convert_ids_to_tokens(ids, skip_special_tokens=True),
        lambda one: one.convert_ids_to_tokens("a"),
        lambda one: one.convert_ids_to_tokens(-1),
        lambda one: one.convert_tokens_to_string(tokens[:20]),
        lambda one: one.num_special_tokens_to_add(),
        lambda one: one.num_special_tokens_to_add(pair=True),
        lambda one: one.get_special_tokens_mask(ids[:-1], already_has_special_tokens=True),
        lambda one: one.get_special_tokens_mask(ids[:-1]),
        lambda one: one.clean_up_tokenization("a . b 's"),
        lambda one: bool(one),
    ]
    for k, way in enumerate(ways):
        compare(tok, source, way, k)


def check_added_tokens(tok: Any, stock: Any, add: Callable[[Any], Any], texts: Callable[[], Iterable[str]]) -> None:
    """Adding tokens to both does the same; ``stock`` is the source with the number tokens added. Changes both; then takes the texts."""
    compare(tok, stock, add, "add")
    assert len(tok) == len(stock) and tok.get_vocab() == stock.get_vocab()
    assert {k: repr(v) for k, v in tok.added_tokens_decoder.items()} == {k: repr(v) for k, v in stock.added_tokens_decoder.items()}
    for name in ("all_special_ids", "special_tokens_map", "extra_special_tokens", "pad_token_id", "mask_token_id"):
        compare(tok, stock, lambda one: getattr(one, name), name)  # noqa: B023
    compare(tok, stock, add, "add again")
    for text in texts():
        check_call(tok, stock, text, return_offsets_mapping=True, return_special_tokens_mask=True)
        for options in FLAGS:
            compare(tok, stock, lambda one: one.decode(one(text)["input_ids"], **options), text)  # noqa: B023
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EngineWarning)  # of tokens that strip spaces
            core = tok.numtok.encode(text, parse_special=True).input_ids.tolist()
        assert core == tok.encode(text, add_special_tokens=False), text


# Text with numbers -----------------------------------------------------------------------------------------------------------


def check_numbers(tok: Any, oracle: Oracle, text: Any, text_pair: Any = None, sides: Options | None = None, **options: Any) -> None:
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
    names = ["number_values", "number_mask", *oracle.extra_streams()]
    assert set(on) == {*expected.data, *names}, f"{where}: {list(on)}"
    same({key: on[key] for key in expected.data}, expected.data, where)
    same_rows(on, expected, where)
    check_streams(on, expected, oracle, where)


def check_streams(got: Any, expected: Expected, oracle: Oracle, where: Any = "") -> None:
    """The number streams, row for row."""
    tensors = type(expected.data["input_ids"])
    wanted = {"number_values": np.dtype(np.float64), "number_mask": np.dtype(bool), **oracle.extra_streams()}
    for name, dtype in wanted.items():
        rows = [row.stream(name) for row in expected.rows]
        value = got[name]
        if tensors is not list and expected.data["input_ids"].dtype != object:
            assert type(value) is tensors, f"{where}[{name!r}]: {type(value)}"
            kind = np.asarray(value).dtype
            assert kind == dtype or (dtype.kind in "iu" and kind.kind in "iu" and kind.itemsize >= dtype.itemsize), (
                f"{where}[{name!r}]: {kind}"
            )
            assert value.shape[:2] == expected.data["input_ids"].shape, f"{where}[{name!r}]: {value.shape}"
        got_rows = [value] if expected.single else value
        assert len(got_rows) == len(rows), f"{where}[{name!r}]: {len(got_rows)} rows instead of {len(rows)}"
        for ours, theirs in zip(got_rows, rows, strict=True):
            same_stream(ours, theirs, name, where)


def same_stream(ours: Any, theirs: Any, name: str, where: Any = "") -> None:
    """One row of a stream: equal, also in the sign of zero; an empty row may have any shape."""
    assert len(ours) == len(theirs), f"{where}[{name!r}]: {len(ours)} tokens instead of {len(theirs)}"
    for k, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        one, other = np.asarray(one), np.asarray(other)
        unknown = other.ndim == 0 and not other.any() and not one.any()  # no number in the row to know the shape from
        good = one.shape == other.shape or unknown
        good = good and bool((one == other).all()) and bool((np.signbit(one) == np.signbit(other)).all() if one.dtype.kind == "f" else True)
        assert good, f"{where}[{name!r}][{k}]: {one} instead of {other}"


def same_rows(got: Any, expected: Expected, where: Any = "") -> None:
    """The encodings, with all their methods."""
    assert isinstance(got, transformers.BatchEncoding) and got.is_fast, where
    assert len(got.encodings) == len(expected.rows), f"{where}: {len(got.encodings)} encodings instead of {len(expected.rows)}"
    for k, (encoding, row) in enumerate(zip(got.encodings, expected.rows, strict=True)):
        same_row(encoding, row, f"{where}.encodings[{k}]")
        assert len(encoding.overflowing) == len(row.overflowing), where
        for one, other in zip(encoding.overflowing, row.overflowing, strict=True):
            same_row(one, other, f"{where}.encodings[{k}].overflowing")
        same(got.tokens(k), row.tokens, where)
        same(got.word_ids(k), row.word_ids, where)
        same(got.sequence_ids(k), row.sequence_ids, where)


def same_row(encoding: Any, row: Row, where: Any = "") -> None:
    assert isinstance(encoding, tokenizers.Encoding), f"{where}: {type(encoding)}"
    spelled = any(one is not None and len(one[0].tokens) > 1 for one in row.numbers)
    for name in ENCODING:
        ours, theirs = getattr(encoding, name), getattr(row, name)
        if spelled and name in ("offsets", "word_ids"):  # of the tokens of one number, only those of the whole are laid down
            continue
        assert ours == theirs, f"{where}.{name}: {ours} instead of {theirs}"
    if spelled:
        same_spelled_offsets(encoding, row, where)
    else:
        same_methods(encoding, row, where)


def same_spelled_offsets(encoding: Any, row: Row, where: Any) -> None:
    """Text tokens are where they are; those of a number lie within it, or on the space before it."""
    for k, (ours, theirs) in enumerate(zip(encoding.offsets, row.offsets, strict=True)):
        if row.numbers[k] is None:
            assert ours == theirs, f"{where}.offsets[{k}]: {ours} instead of {theirs}"
        else:
            assert theirs[0] <= ours[0] <= ours[1] <= theirs[1], f"{where}.offsets[{k}]: {ours} is not within {theirs}"


def same_methods(encoding: Any, row: Row, where: Any) -> None:
    """The methods of ``Encoding``, from their definitions; on text without numbers :func:`check_alignment` holds them to the originals."""
    for k in range(len(row.ids)):
        inside = row.sequence_ids[k] is not None
        assert encoding.token_to_chars(k) == (row.offsets[k] if inside else None), f"{where}.token_to_chars({k})"
        assert encoding.token_to_word(k) == (row.word_ids[k] if inside else None), f"{where}.token_to_word({k})"
        assert encoding.token_to_sequence(k) == row.sequence_ids[k], f"{where}.token_to_sequence({k})"
    for sequence in range(row.n_sequences):
        tokens = [k for k, one in enumerate(row.sequence_ids) if one == sequence]
        last = max([row.offsets[k][1] for k in tokens], default=0)
        for at in range(last + 2):
            found = next((k for k in tokens if row.offsets[k][0] <= at < row.offsets[k][1]), None)
            word = None if found is None else row.word_ids[found]
            assert encoding.char_to_token(at, sequence) == found, (
                f"{where}.char_to_token({at}, {sequence}): {encoding.char_to_token(at, sequence)}"
            )
            assert encoding.char_to_word(at, sequence) == word, (
                f"{where}.char_to_word({at}, {sequence}): {encoding.char_to_word(at, sequence)}"
            )
        words = {row.word_ids[k] for k in tokens} - {None}
        for word in words:
            of_word = [k for k in tokens if row.word_ids[k] == word]
            assert encoding.word_to_tokens(word, sequence) == (of_word[0], of_word[-1] + 1), f"{where}.word_to_tokens({word})"
            span = (row.offsets[of_word[0]][0], row.offsets[of_word[-1]][1])
            assert encoding.word_to_chars(word, sequence) == span, (
                f"{where}.word_to_chars({word}): {encoding.word_to_chars(word, sequence)}"
            )


def check_large_batch(tok: Any, oracle: Oracle, texts: list[str], sides: Options | None = None, **options: Any) -> None:
    """A batch of many texts: data and streams of all rows, encodings of a few."""
    expected = oracle.call(texts, None, sides, **options)
    with attributes(tok, sides or {}):
        off, on = tok(texts, **options), tok(texts, return_numbers=True, **options)
    where = (sides, options)
    for got in (off, on):
        assert type(got["input_ids"]) is type(expected.data["input_ids"]), where
        for name, wanted in expected.data.items():
            for text, one, other in zip(texts, got[name], wanted, strict=True):
                same(one, other, (where, name, text))
    assert list(off) == list(expected.data), where
    for text, values, mask, row in zip(texts, on["number_values"], on["number_mask"], expected.rows, strict=True):
        same_stream(values, row.stream("number_values"), "number_values", (where, text))
        same_stream(mask, row.stream("number_mask"), "number_mask", (where, text))
    assert set(on) - set(off) == {"number_values", "number_mask", *oracle.extra_streams()}
    assert len(on.encodings) == len(off.encodings) == len(texts)
    for k in (0, len(texts) // 2, len(texts) - 1):
        same_row(off.encodings[k], expected.rows[k], where)
        same_row(on[k], expected.rows[k], where)
        same(off.word_ids(k), expected.rows[k].word_ids, where)


def check_surfaces(tok: Any, oracle: Oracle, text: str) -> None:
    """The offsets of each number token are the number's, whatever the normalizer does: the text there reads as its value."""
    import numtok

    got = tok(text, return_numbers=True, return_offsets_mapping=True)
    places = oracle.places([text])[0]
    marked = [k for k, one in enumerate(got["number_mask"]) if one]
    assert len(marked) == len(places), f"{text!r}: {len(marked)} numbers instead of {len(places)}"
    for k, place in zip(marked, places, strict=True):
        start, stop = got["offset_mapping"][k]
        assert stop == place.stop and text[start:stop].strip(" ") == text[place.start : place.stop], f"{text!r}: {text[start:stop]!r}"
        value = numtok.Numbers.parse([text[start:stop].strip(" ")]).to_float64()[0]
        assert got["number_values"][k] == value or math.isinf(value), f"{text!r}: {got['number_values'][k]} instead of {value}"


def check_number_padding(tok: Any, oracle: Oracle, texts: list[str], side: str, **options: Any) -> None:
    """``pad`` pads every stream as it pads the ids, and gives what padding within the call gives."""
    with attributes(tok, {"padding_side": side}):
        features = [tok(text, return_numbers=True, return_special_tokens_mask=True) for text in texts]
        padded = tok.pad(features, **options)
        plain = [{key: value for key, value in one.items() if key in ("input_ids", "attention_mask")} for one in features]
        bare = tok.pad(plain, **options)
    expected = [oracle.call(text).rows[0] for text in texts]
    width = len(bare["input_ids"][0])
    for name in ["number_values", "number_mask", *oracle.extra_streams()]:
        assert name in padded, f"{texts}: {list(padded)}"
        for ours, row in zip(padded[name], expected, strict=True):
            stream = row.stream(name)
            shape = next((np.asarray(one).shape for one in stream), ())
            filling = [np.full(shape, NEUTRAL.get(name, 0))] * (width - len(stream))
            same_stream(ours, filling + stream if side == "left" else stream + filling, name, (texts, side, options))
    same(padded["input_ids"], bare["input_ids"], texts)
    same(padded["attention_mask"], bare["attention_mask"], texts)
    if options.get("return_tensors") == "pt":
        assert str(padded["number_values"].dtype) == "torch.float64" and str(padded["number_mask"].dtype) == "torch.bool"
    if options.get("return_tensors") == "np":
        assert padded["number_values"].dtype == np.float64 and padded["number_mask"].dtype == np.bool_


def check_number_decode(tok: Any, oracle: Oracle, texts: list[str]) -> None:
    """Ids and values back to text, with every flag, one by one and in batches; without values the tokens show as themselves."""
    import torch

    expected = [oracle.call(text).rows[0] for text in texts]
    spelled = any(len(place.tokens) > 1 or place.tokens != ["[NUM]"] for row in expected for place, _ in filter(None, row.numbers))
    got = [tok(text, return_numbers=True) for text in texts]
    ids = [one["input_ids"] for one in got]
    values = [one["number_values"] for one in got]
    for options in FLAGS:
        written = []
        for text, row, one, stream in zip(texts, expected, ids, values, strict=True):
            surfaces = [place.canonical for place, ordinal in filter(None, row.numbers) if ordinal == 0]
            written.append(oracle.decode([text], row, surfaces, **options))
            forms = [stream, np.array(stream), torch.tensor(np.array(stream, np.float64))]
            if spelled:
                assert tok.decode(one, **options) == written[-1], (text, options)
            else:
                for form in forms:
                    decoded = tok.decode(one, number_values=form, **options)
                    assert decoded == written[-1], f"{text!r}, {options}: {decoded!r} instead of {written[-1]!r}"
                decoded, wanted = tok.decode(one, **options), oracle.decode([text], row, None, **options)
                assert decoded == wanted, f"{text!r}, {options}: {decoded!r} instead of {wanted!r}"
                assert tok.decode(one, number_values=None, **options) == wanted
        keywords = {} if spelled else {"number_values": values}
        assert tok.decode(ids, **keywords, **options) == written, (texts, options)
        assert tok.batch_decode(ids, **keywords, **options) == written, (texts, options)
        if not spelled and tok.pad_token_id is not None:
            batch = tok(texts, return_numbers=True, padding=True, return_tensors="pt")
            one_by_one = [
                tok.decode(row, number_values=value, **options)
                for row, value in zip(batch["input_ids"], batch["number_values"], strict=True)
            ]
            whole = tok.batch_decode(batch["input_ids"], number_values=batch["number_values"], **options)
            assert whole == one_by_one, (texts, options)


def check_same_ids_as_core(tok: Any, texts: list[str]) -> None:
    """``tok.numtok`` is the tokenizer of the core with the same ids."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EngineWarning)  # of tokens that strip spaces
        core = tok.numtok.encode_batch(texts, add_special_tokens=True, parse_special=True)
    assert tok(texts)["input_ids"] == core["input_ids"].to_pylist(), texts


def check_same_tokenizer(tok: Any, other: Any, texts: list[str]) -> None:
    """Two drop-in tokenizers that are to be equal: class, settings, vocabulary and what they return."""
    assert type(other) is type(tok), type(other)
    assert other.numtok.fingerprint == tok.numtok.fingerprint
    assert other.numtok.numbers == tok.numtok.numbers and other.numtok.grammar == tok.numtok.grammar
    assert other.get_vocab() == tok.get_vocab() and other.special_tokens_map == tok.special_tokens_map
    assert {k: repr(v) for k, v in other.added_tokens_decoder.items()} == {k: repr(v) for k, v in tok.added_tokens_decoder.items()}
    for name in ("model_max_length", "padding_side", "truncation_side", "model_input_names", "chat_template", "extra_special_tokens"):
        assert getattr(other, name) == getattr(tok, name), name
    for options in (
        {},
        {"return_numbers": True, "return_offsets_mapping": True},
        {"truncation": True, "max_length": 6, "padding": "max_length"},
    ):
        same(other(texts, **options), tok(texts, **options), options)
    got = tok(texts, return_numbers=True)
    assert other.batch_decode(got["input_ids"], number_values=got["number_values"]) == tok.batch_decode(
        got["input_ids"], number_values=got["number_values"]
    )
