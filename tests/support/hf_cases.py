"""The tokenizers that the drop-in class is held to: stock transformers tokenizers of every family,
and ours made from them.

``source(kind)`` is a ``PreTrainedTokenizerFast`` as a user has it, with special tokens, padding and
templates for pairs; ``ours(kind)`` is the drop-in made from it. Both are shared between tests;
``build_source`` and ``build_ours`` make new ones, for tests that change them."""

import pytest
import trained
from kept import kept
from places import shared_folder
from tokenizers import AddedToken, Tokenizer, pre_tokenizers, processors

pytest.importorskip("transformers")

from hf_oracle import Oracle
from transformers import PreTrainedTokenizerFast

from numtok.numbers.grammar import Grammar
from numtok.representations import (
    B1999,
    FP15,
    P10,
    P1000,
    Digits,
    ExponentBins,
    FloatBits,
    FoNE,
    LogFourier,
    PlaceValue,
    Representation,
    XVal,
)

TAKES_ALL = XVal(overflow="clip")  # no number stays text because it is too large
# a second and 100 MB each: only where the large vocabulary matters
REAL = {"real gpt2": "gpt2.json", "real neox": "gpt-neox-20b.json"}
KINDS = ["gpt2", "neox", "bert", "t5", "llama", "legacy", "roberta", "llama3"]
BYTE_LEVEL = ["gpt2", "neox", "roberta", "llama3"]  # two forms of the number token
SPECIAL_WITH_DIGITS = "<|2.5|>"

# Whatever is between {% generation %} and {% endgeneration %} is the assistant's:
# `return_assistant_tokens_mask` marks it.
CHAT_TEMPLATE = """{{ bos_token }}{% for message in messages %}{% if message['role'] == 'assistant' -%}
<|assistant|>{% generation %}{{ message['content'] }}{{ eos_token }}{% endgeneration %}{% else -%}
<|{{ message['role'] }}|>{{ message['content'] }}{% endif %}
{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"""


def shared_tokenizer(name):
    path = shared_folder() / "tokenizers" / name
    if not path.is_file():
        pytest.skip(f"the shared data lack {path}")
    return path


def _template(tokenizer, single, pair, *special):
    names = [(name, tokenizer.token_to_id(name)) for name in special]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=names
    )
    return tokenizer


IDS = ["input_ids", "attention_mask"]
TYPED_IDS = ["input_ids", "token_type_ids", "attention_mask"]


def _plain(kind):
    """As GPT-2 and Pythia are used, the latter with runs of spaces as added tokens: one special
    token for everything.
    """
    names = dict.fromkeys(["bos_token", "eos_token", "unk_token", "pad_token"], "<|endoftext|>")
    real = REAL.get(kind)
    backend = Tokenizer.from_file(str(shared_tokenizer(real))) if real else trained.source(kind)
    return PreTrainedTokenizerFast(tokenizer_object=backend, model_input_names=IDS, **names)


def _with(backend, **options):
    """With a special token that holds a digit."""
    options = {"extra_special_tokens": [SPECIAL_WITH_DIGITS], "model_input_names": IDS} | options
    return PreTrainedTokenizerFast(tokenizer_object=backend, **options)


def _bert():
    """WordPiece, lower-casing, with token types."""
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("unk", "sep", "cls", "pad", "mask")}
    options = {"model_max_length": 64, "model_input_names": TYPED_IDS}
    return _with(trained.source("bert_lower"), **names, **options)


def _t5():
    """Unigram with Metaspace: every piece of text begins with a space."""
    backend = _template(trained.source("t5"), "$A </s>", "$A </s> $B </s>", "</s>")
    return _with(backend, eos_token="</s>", unk_token="<unk>", pad_token="<pad>")


def _sentencepiece(kind, **options):
    backend = _template(trained.source(kind), "<s> $A", "<s> $A <s>:1 $B:1", "<s>")
    return _with(backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>", **options)


def _llama():
    """SentencePiece BPE with Metaspace and byte fallback, padded on the left, with a chat template."""
    roles = ["<|user|>", "<|system|>", "<|assistant|>"]
    return _sentencepiece(
        "metaspace_first",
        pad_token="<unk>",
        padding_side="left",
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
        extra_special_tokens=[SPECIAL_WITH_DIGITS, *roles],
    )


def _legacy():
    """SentencePiece BPE whose normalizer prepends a space and replaces all others; cut off on the
    left.
    """
    options = {"truncation_side": "left", "model_input_names": TYPED_IDS}
    return _sentencepiece("llama_legacy", pad_token="</s>", **options)


def _roberta():
    """Byte-level BPE with a prefix space, offsets without the spaces, and a mask token that eats
    the space before it.
    """
    backend, end = trained.source("roberta"), "<|endoftext|>"
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    edge = (end, backend.token_to_id(end))
    backend.post_processor = processors.RobertaProcessing(
        edge, edge, trim_offsets=True, add_prefix_space=True
    )
    names = {f"{name}_token": end for name in ("bos", "eos", "cls", "sep", "unk")}
    mask = AddedToken("<mask>", lstrip=True, normalized=False, special=True)
    names |= {"pad_token": "<pad>", "mask_token": mask}
    return _with(backend, add_prefix_space=True, model_max_length=128, **names)


def _llama3():
    """Byte-level BPE with a pattern of its own and a token in front."""
    begin, end = "<|endoftext|>", "<|reserved_12|>"
    backend = trained.source("llama3")
    _template(backend, f"{begin} $A", f"{begin} $A {begin}:1 $B:1", begin)
    steps = [processors.ByteLevel(trim_offsets=True), backend.post_processor]
    backend.post_processor = processors.Sequence(steps)
    return _with(backend, bos_token=begin, eos_token=end, pad_token=end)


def build_source(kind):
    """A new stock tokenizer; skips the test if it needs shared data that are not there."""
    makers = {"bert": _bert, "t5": _t5, "llama": _llama, "legacy": _legacy}
    makers |= {"roberta": _roberta, "llama3": _llama3}
    return makers[kind]() if kind in makers else _plain(kind)


@kept
def source(kind):
    """The stock tokenizer of a kind, shared: calls only."""
    return build_source(kind)


def build_ours(kind, numbers=(TAKES_ALL,), grammar=None, leading_space="auto", **options):
    """A new drop-in tokenizer."""
    from numtok.hf import NumberTokenizer

    return NumberTokenizer.from_tokenizer(
        build_source(kind),
        numbers=list(numbers),
        grammar=grammar,
        leading_space=leading_space,
        **options,
    )


@kept
def ours(kind, numbers=(TAKES_ALL,), grammar=None, leading_space="auto"):
    """The drop-in tokenizer of a kind, shared: calls only."""
    return build_ours(kind, numbers, grammar, leading_space)


# Large batches take another way than small ones, once a tokenizer has encoded so much that it is worth
# to make the engine for it.
MUCH = "a word " * 80_000
FILLER = " a few words" * 400


def experienced(tok):
    """Return the tokenizer after it has encoded a long text, so that its quick way is on."""
    tok([MUCH])
    return tok


@kept
def ours_experienced(kind, numbers=(TAKES_ALL,), grammar=None, leading_space="auto"):
    """Return the tokenizer of numtok, experienced; tests share it."""
    return experienced(build_ours(kind, numbers, grammar, leading_space))


def enlarged(text):
    """A text or a batch of texts, so large that it takes the other way; anything else as it is."""
    if isinstance(text, str):
        return text + FILLER
    is_batch = isinstance(text, list) and all(isinstance(one, str) for one in text)
    return [*text, FILLER] if is_batch else text


# What is encoded, and with which settings
# ------------------------------------------------------------------------------------

Numbers = tuple[Representation, ...]
SINGLE = {
    "xval": (XVal(scale=0.5, clip=5.0),),
    "bits": (FloatBits(width=64),),
    "compact bits": (FloatBits(compact=True),),
    "fone": (FoNE(6, 4, overflow="clip"),),
    "compact fone": (FoNE(3, 2, compact=True),),
    "bins": (ExponentBins(),),
    "log fourier": (LogFourier(4),),
    "all": (
        XVal(),
        FloatBits(),
        FoNE(6, 4, overflow="clip"),
        ExponentBins(overflow="clip"),
        LogFourier(3, overflow="clip"),
    ),
}
SPELLED = {
    "place value": (PlaceValue(overflow="clip"),),
    "digits": (Digits(2, places=True, overflow="clip"),),
    "bare digits": (Digits(1, places=True, overflow="clip", brackets=False),),
    "p10": (P10(overflow="clip"),),
    "p1000": (P1000(digits=2, overflow="clip"),),
    "b1999": (B1999(digits=2),),
    "fp15": (FP15(digits=2, overflow="clip"),),
}
SETTINGS = {
    "default": {},
    "combined": {"numbers": (XVal(scale=0.5), FoNE(6, 4, overflow="clip")), "return_numbers": True},
    "spelled": {"numbers": (PlaceValue(overflow="clip"),), "grammar": Grammar.data()},
    "separate": {"leading_space": "separate", "grammar": Grammar(signs=False)},
    "bare": {"numbers": (Digits(1, places=True, brackets=False),)},
}
TEXTS = ["a 5 and -1,234.5 of them", "no numbers [NUM]", "  ½ 7 <|0.00|> <mask> b"]
MIXED_TEXTS = [
    "a -1.5e3 kg",
    "",
    "none [NUM] <|0.00|>12",
    "1,234.5 é 7 8 9\n\n  10km <mask> 3",
    "5",
    "x" * 40 + " 1e400",
]


@kept
def oracle(kind, numbers=(TAKES_ALL,), grammar=None, leading_space="auto"):
    return Oracle(source(kind), ours(kind, numbers, grammar, leading_space).numtok)
