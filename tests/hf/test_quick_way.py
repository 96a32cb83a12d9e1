"""The quick ways of the drop-in tokenizer, for large batches and for one short text, held to the oracle
where they are most likely to differ: zeros, and numbers close to one another.

Calls of any kind: ``test_numbers_in_calls.py``.
"""

import itertools

import pytest

pytest.importorskip("transformers")
pytest.importorskip("torch")
import hf_checks as checks
from hf_cases import FILLER, experienced, oracle, ours
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from numtok.hf import NumberTokenizer
from numtok.representations import B1999, FP15, P10, FloatBits, FoNE, PlaceValue, Subword, XVal

SENTENCES = [
    "In 2019 the 3 of them had 1,234 or 3.5.", "-5 or 5-6, A330 and 5e3",
    "<mask> 5 [NUM] 6 <|endoftext|>", "no number", "7", "\ue000 \U00100000 5",
]  # fmt: skip
REPRESENTATIONS = {
    "xval and bits": (XVal(scale=0.5), FloatBits(compact=True)),
    "bits and fone": (FloatBits(), FoNE(6, 4)),
    "fone": (FoNE(3, 2),),
    "place": (PlaceValue(),),
    "bare": (PlaceValue(brackets=False),),
    "p10": (P10(),),
    "p10 without hundreds": (P10(decades=(-7, 1)),),
    "b1999 of thousands": (B1999(decades=(3, 8)),),
    "fp15": (FP15(digits=2),),
}
ZEROS = ["It is 0.", "-0.00 and 000e-4", "0e5 and 2e5"]
CLOSE = ["1-2", "12:30  1, 2\u30003", "_4 1e40 [NUM] 5<s>6"]
CUT = {"max_length": 9, "truncation": True}
CALLS = [
    {},
    CUT | {"padding": "max_length", "return_tensors": "np"},
    CUT | {"return_length": True, "add_special_tokens": False},
    {"return_special_tokens_mask": True, "return_token_type_ids": True},
]


@pytest.mark.parametrize(
    ("kind", "name", "sentences"),
    [
        *(("gpt2", name, SENTENCES) for name in REPRESENTATIONS),
        *((kind, "xval and bits", SENTENCES) for kind in ("roberta", "bert", "t5", "legacy")),
        *(("gpt2", name, ZEROS) for name in ("p10 without hundreds", "b1999 of thousands")),
        *((kind, name, CLOSE) for kind in ("bert", "t5", "llama") for name in ("p10", "fone")),
    ],
)
def test_short_texts(kind, name, sentences):
    """A short text or pair alone; its numbers are known from the second call on."""
    tok, reference = (make(kind, REPRESENTATIONS[name]) for make in (ours, oracle))
    for text, options, pair in itertools.product(sentences, CALLS, (None, sentences[0])):
        checks.check_numbers(tok, reference, text, pair, **options)


def test_of_numbers_that_begin_in_one_token_the_first_has_the_value():
    """By either way: where numbers stay text, ``10-20`` may be one word of the vocabulary."""
    words = {word: k for k, word in enumerate(["[UNK]", "10-20", "a", "7"])}
    source = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    source.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    stock = PreTrainedTokenizerFast(tokenizer_object=source, unk_token="[UNK]")
    tok = experienced(NumberTokenizer.from_tokenizer(stock, numbers=[Subword()]))
    for rows in (["a 10-20 a 7"], ["a 10-20 a 7", FILLER]):
        assert tok(rows, return_numbers=True)["number_value"][0] == [1.0, 10.0, 1.0, 7.0]
