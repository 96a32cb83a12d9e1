"""Two results of tokenizers, held to be the same: in value, type, dtype, shape, and every field of
their encodings; and attributes set for a while.
"""

import contextlib
import io
import warnings

import tokenizers
import transformers

ENCODING = ["ids", "type_ids", "tokens", "offsets", "attention_mask", "special_tokens_mask"]
ENCODING += ["word_ids", "sequence_ids", "n_sequences"]

FLAGS = [
    {
        "skip_special_tokens": skip,
        **({} if clean is None else {"clean_up_tokenization_spaces": clean}),
    }
    for skip in (False, True)
    for clean in (None, False, True)
]


def outcome(call):
    """What a call returns, or the exception that it raises; a panic in Rust is no ``Exception``."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            return call()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            return error


def same(ours, theirs, where=""):
    """Equal in value, type, and as far as it goes in dtype and shape; two exceptions if ours is of
    the type of theirs.
    """
    if isinstance(theirs, BaseException):
        # Errors of tokenizers itself are bare exceptions or panics; which row of a batch comes
        # first is a matter of its threads.
        anything = type(theirs) is Exception or type(theirs).__name__ == "PanicException"
        assert isinstance(ours, BaseException if anything else type(theirs)), (
            f"{where}: {ours!r} instead of {theirs!r}"
        )
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
        assert (
            type(ours) is type(theirs) and ours.dtype == theirs.dtype and ours.shape == theirs.shape
        ), f"{where}: {ours} instead of {theirs}"
        if ours.dtype == object:
            same(ours.tolist(), theirs.tolist(), where)
        else:
            assert bool((ours == theirs).all()), f"{where}: {ours} instead of {theirs}"
    elif isinstance(theirs, list | tuple) and any(
        isinstance(one, list | tuple | dict | tokenizers.Encoding) or hasattr(one, "dtype")
        for one in theirs
    ):
        assert type(ours) is type(theirs) and len(ours) == len(theirs), (
            f"{where}: {ours} instead of {theirs}"
        )
        for k, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            same(one, other, f"{where}[{k}]")
    else:
        assert type(ours) is type(theirs) and ours == theirs, (
            f"{where}: {ours!r} instead of {theirs!r}"
        )


def same_batch(ours, theirs, where=""):
    assert isinstance(ours, transformers.BatchEncoding), f"{where}: {type(ours)}"
    same(dict(ours), dict(theirs), where)
    for name in ("is_fast", "n_sequences"):  # the latter is lost in a pickle
        compare(ours, theirs, lambda one: getattr(one, name), f"{where}.{name}")
    same(ours.encodings, theirs.encodings, f"{where}.encodings")


def same_encoding(ours, theirs, where="", depth=0):
    assert isinstance(ours, tokenizers.Encoding), f"{where}: {type(ours)}"
    for name in ENCODING:
        assert getattr(ours, name) == getattr(theirs, name), (
            f"{where}.{name}: {getattr(ours, name)} instead of {getattr(theirs, name)}"
        )
    assert len(ours) == len(theirs)
    assert len(ours.overflowing) == len(theirs.overflowing), where
    if depth < 1:
        for k, (one, other) in enumerate(zip(ours.overflowing, theirs.overflowing, strict=True)):
            same_encoding(one, other, f"{where}.overflowing[{k}]", depth + 1)


def compare(ours, theirs, call, where=""):
    """The same call on both."""
    same(outcome(lambda: call(ours)), outcome(lambda: call(theirs)), where)


@contextlib.contextmanager
def attributes(subject, values):
    """Sets attributes of a tokenizer, and puts back those it had."""
    before = {name: getattr(subject, name) for name in values}
    for name, value in values.items():
        setattr(subject, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(subject, name, value)
