"""Check what the drop-in tokenizer refuses: misspelt options, sources, values that do not go with ids."""

import errors
import pytest
import trained

pytest.importorskip("transformers")

from functools import partial

import transformers
from hf_cases import ours, source

from numtok.errors import (
    GrammarError,
    InputError,
    OutputError,
    RepresentationError,
    TokenizerError,
)
from numtok.hf import DecodeStream, NumberTokenizer
from numtok.representations import Digits, XVal

MADE = NumberTokenizer.from_pretrained
MISSPELT = {
    "return_number": lambda: ours("bert")("a 5", return_number=True),
    "return_numers": lambda: ours("bert").encode("a 5", return_numers=True),
    "number_vales": lambda: ours("bert").decode([1], number_vales=[1.0]),
    "number": partial(MADE, None, number="xval"),
    "gramar": partial(MADE, None, gramar=None),
    "leading_spaces": partial(MADE, None, leading_spaces="separate"),
}


def export(kind, numbers, times=1):
    tokenizer = NumberTokenizer.from_tokenizer(source(kind), numbers=[numbers])
    for _ in range(times):
        tokenizer.export("new")


def some_values():
    """Give a stream the value of one number, and none of the next."""
    tokenizer, stream = ours("gpt2", (XVal(),)), DecodeStream()
    number = tokenizer.convert_tokens_to_ids(" [NUM]")
    stream.step(tokenizer, number, 5.0)
    stream.step(tokenizer, number)


ERRORS = {
    InputError: [
        *((call, f"no option '{name}'; did you mean") for name, call in MISSPELT.items()),
        (some_values, "give all, or none"),
    ],
    TypeError: [(lambda: NumberTokenizer.from_tokenizer(source("bert"), gramar=None), "gramar")],
    RepresentationError: [
        (lambda: MADE(None, numbers=[5]), "no representation"),
        (lambda: ours("bert", (XVal(overflow="error"),))("a 1e300"), "1e300"),
        (lambda: export("llama", XVal()), "xval is more than a cut"),
    ],
    GrammarError: [(lambda: MADE(None, grammar="x"), "Grammar")],
    TokenizerError: [(lambda: MADE("/nowhere/tokenizer"), "does not exist; give")],
    OutputError: [(lambda: export("llama", Digits(3), times=2), "exists already")],
}


@errors.rows(ERRORS)
def test_errors(call, kind, told, fields, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    errors.check(call, kind, told, fields)


def test_warning_of_lost_methods():
    """Models of translation switch languages, and CodeGen decodes, in Python."""
    vocab = trained.config("t5")["model"]["vocab"]
    mbart = transformers.MBartTokenizer(vocab=[tuple(one) for one in vocab], tgt_lang="fr_XX")
    with pytest.warns(UserWarning, match="_switch_to_target_mode, src_lang"):
        NumberTokenizer.from_tokenizer(mbart)
    with pytest.warns(UserWarning, match="own decode"):
        NumberTokenizer.from_tokenizer(transformers.CodeGenTokenizer(vocab={"a": 0}, merges=[]))
