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
    {"skip_special_tokens": skip, **clean}
    for skip in (False, True)
    for clean in ({}, *({"clean_up_tokenization_spaces": one} for one in (False, True)))
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


def same(ours, theirs):
    """Equal in value, type, and as far as it goes in dtype and shape; two exceptions if ours is of
    the type of theirs.
    """
    if isinstance(theirs, BaseException):
        # Errors of tokenizers itself are bare exceptions or panics; which row of a batch comes
        # first is a matter of its threads.
        anything = type(theirs) is Exception or type(theirs).__name__ == "PanicException"
        assert isinstance(ours, BaseException if anything else type(theirs))
        return
    assert not isinstance(ours, BaseException), f"{ours!r} instead of {theirs!r}"
    if isinstance(theirs, transformers.BatchEncoding):
        assert isinstance(ours, transformers.BatchEncoding)
        same(dict(ours), dict(theirs))
        for name in ("is_fast", "n_sequences"):  # the latter is lost in a pickle
            compare(ours, theirs, lambda one: getattr(one, name))
        same(ours.encodings, theirs.encodings)
    elif isinstance(theirs, tokenizers.Encoding):
        pairs = zip(ours.overflowing, theirs.overflowing, strict=True)
        for one, other in [(ours, theirs), *pairs]:
            assert isinstance(one, tokenizers.Encoding)
            assert len(one.overflowing) == len(other.overflowing)
            for name in ENCODING:
                assert getattr(one, name) == getattr(other, name), name
    elif isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        for key in theirs:
            same(ours[key], theirs[key])
    elif type(theirs).__module__ in ("numpy", "torch"):
        assert type(ours) is type(theirs)
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        if ours.dtype == object:
            same(ours.tolist(), theirs.tolist())
        else:
            assert bool((ours == theirs).all()), f"{ours} instead of {theirs}"
    elif isinstance(theirs, list | tuple) and any(
        isinstance(one, list | tuple | dict | tokenizers.Encoding) or hasattr(one, "dtype")
        for one in theirs
    ):
        assert type(ours) is type(theirs)
        for one, other in zip(ours, theirs, strict=True):
            same(one, other)
    else:
        assert type(ours) is type(theirs)
        assert ours == theirs


def compare(ours, theirs, call, where=None):
    """The same call on both."""
    try:
        same(outcome(lambda: call(ours)), outcome(lambda: call(theirs)))
    except AssertionError as error:
        error.add_note(f"of {where}")
        raise


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
