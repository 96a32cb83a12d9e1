"""The quick way of the drop-in tokenizer gives what its general way gives; whatever is asked for, both are held to the
oracle in test_numbers_in_calls.
"""

import itertools

import pytest
from effort import examples

pytest.importorskip("transformers")
import trained
from hf_cases import MIXED_TEXTS, REPRESENTATIONS, build_source
from hf_compare import compare
from hostile import texts
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kept import kept
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from numtok.hf import NumberTokenizer
from numtok.hf import batch as quick_way
from numtok.hf.general import Call, NumberBackend
from numtok.representations import FoNE

BYTE_LEVEL, OTHERS = ["gpt2", "llama3", "roberta"], ["bert", "t5", "llama", "legacy"]
KINDS = BYTE_LEVEL + OTHERS


@pytest.fixture(scope="module", autouse=True)
def every_batch_is_worth_while():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quick_way, "SMALL", 0)
        yield


@kept
def both_ways(kind, name):
    """Two tokenizers: one takes the quick way, one does not."""
    quick, general = (
        NumberTokenizer.from_tokenizer(build_source(kind), numbers=REPRESENTATIONS[name])
        for _ in range(2)
    )
    assert quick.numtok.has_fast_engine(parse_special=True)
    for tokenizer, fast in ((quick, True), (general, False)):
        tokenizer.backend_state().has_fast_engine = fast
    return quick, general


def encoded(tokenizer, text, pair, options):
    """What the quick way makes of a call; None if it takes the general way."""
    return quick_way.encode_quickly(
        tokenizer, tokenizer.backend_state(), Call(text, pair, True, options)
    )


def test_the_quick_way_is_taken():
    quick, general = both_ways("gpt2", "xval and bits")
    assert encoded(general, MIXED_TEXTS, None, {}) is None
    for options in (
        {"return_overflowing_tokens": True},
        {"is_split_into_words": True},
        {"split_special_tokens": True},
        {"stride": 1},
    ):
        assert encoded(quick, MIXED_TEXTS, None, options) is None, options
    assert encoded(quick, MIXED_TEXTS, MIXED_TEXTS, {}) is None
    assert isinstance(encoded(quick, MIXED_TEXTS[0], None, {}), quick_way.LazyBatchEncoding)
    for kind in ("gpt2", *OTHERS):
        taken = encoded(both_ways(kind, "xval and bits")[0], MIXED_TEXTS, None, {})
        assert isinstance(taken, quick_way.LazyBatchEncoding)


END = ("<|endoftext|>", 0)
SPACES = processors.ByteLevel(trim_offsets=True, add_prefix_space=False)
TRIMMING = {
    "spaces": SPACES,
    "added space": processors.ByteLevel(trim_offsets=True, add_prefix_space=True),
    "around": processors.RobertaProcessing(END, END, trim_offsets=True, add_prefix_space=False),
    "twice": processors.Sequence([SPACES] * 2),
    "none": None,
}


@kept
def trimmed(name):
    """One that takes the quick way, and one that does not; with NFC, and added tokens that are runs
    of spaces.
    """
    source = trained.source("neox")
    source.post_processor = TRIMMING[name]
    stock = PreTrainedTokenizerFast(tokenizer_object=source, pad_token="<|endoftext|>")
    made = [NumberTokenizer.from_tokenizer(stock) for _ in range(2)]
    for tokenizer, fast in zip(made, (True, False), strict=True):
        tokenizer.backend_state().has_fast_engine = fast
    return made


@pytest.mark.parametrize("name", TRIMMING)
@pytest.mark.thorough
@settings(max_examples=examples(7, thorough=20))
@given(st.lists(texts, min_size=1, max_size=4), st.booleans(), st.booleans(), st.booleans())
@example(
    ["  a 5  6 ", " e\u0301 7", "\u0301 8", "今年 9年", "         10\t\t11"], True, False, False
)
@example([" a  b  5 6", " 7  8"], True, True, True)
def test_offsets_are_general(name, rows, special, cut, left):
    quick, general = trimmed(name)
    quick.truncation_side = general.truncation_side = "left" if left else "right"
    options = {"return_offsets_mapping": True, "add_special_tokens": special}
    if cut:
        options |= {"truncation": True, "max_length": 6, "padding": True, "return_tensors": "np"}
    compare(quick, general, lambda one: one(rows, **options), (rows, options))


ODD = ["é", "e\u0301", "\u0301", "ﬁ", "İ", "½", "\u2581", "\u00a0", "", "\t", "\u200b", "一", "🙂"]
ODD += ["[MASK]", "<s>", "<extra_id_0>", "[NUM]", "\U00100000"]


@pytest.mark.parametrize("kind", OTHERS)
def test_offsets_of_words_are_general(kind):
    """Where tokens stand is told by the words that were encoded before, between numbers too, and by
    the general way where that is not enough.
    """
    quick, general = both_ways(kind, "xval and bits")
    odd = [f"a {before} b 5{after} c 1,234" for before in ODD for after in ODD]
    offsets = {"return_offsets_mapping": True}
    for rows in [*[MIXED_TEXTS, odd, ["", "7 8", "no number"]] * 2, ["x" * 70_000 + " 5 y"]]:
        compare(quick, general, lambda one: one(rows, return_numbers=True, **offsets), rows)
    for rows in (["a 5 é", " 6"], ["x" * 70_000]):
        assert encoded(quick, rows, None, offsets) is not None


SENTENCES = [
    "In 2019 the 3 of them had 1,234 or 3.5.", "-5 or 5-6, A330 and 5e3",
    "<mask> 5 [NUM] 6 <|endoftext|>", "no number", "7", "\ue000 \U00100000 5", "٤٢ 5 \ud800",
]  # fmt: skip
CLOSE = ["1-2", "12:30  1, 2\u30003", "_4 1e40 [NUM] 5<s>6"]


@pytest.mark.parametrize(
    ("kind", "name", "sentences"),
    [
        *(("gpt2", name, SENTENCES) for name in (*REPRESENTATIONS, "fone")),
        *((kind, "xval and bits", SENTENCES) for kind in ("roberta", "bert", "t5", "legacy")),
        *((kind, name, CLOSE) for kind in ("bert", "t5", "llama") for name in ("p10", "fone")),
    ],
)
def test_short_is_general(kind, name, sentences):
    """A short text or pair alone, encoded without spans and with the arrays that spans need: what is
    returned, and encodings made later; a second time as its numbers are known.
    """
    numbers = REPRESENTATIONS.get(name, [FoNE(3, 2)])
    ours, general = (
        NumberTokenizer.from_tokenizer(build_source(kind), numbers=numbers) for _ in range(2)
    )
    cut = {"max_length": 9, "truncation": True}
    padded = cut | {"padding": "max_length"}
    calls = [{}, padded, padded | {"return_tensors": "np"}]
    calls += [cut | {"return_length": True, "add_special_tokens": False}]
    calls += [{"return_special_tokens_mask": True, "return_token_type_ids": True}]
    for case in itertools.product([*sentences, *sentences], calls, (None, sentences[0])):
        text, options, pair = case

        def encode(one, text=text, options=options, pair=pair):
            if one is ours:
                return one(text, pair, **options)
            out = one(text, pair, return_offsets_mapping=True, **options)
            del out["offset_mapping"]
            return out

        compare(ours, general, encode, case)


def test_a_short_text_needs_no_spans():
    for name in ("xval and bits", "p10"):
        ours = NumberTokenizer.from_tokenizer(build_source("bert"), numbers=REPRESENTATIONS[name])

        def is_short(text, short=True):
            made = NumberBackend(ours.backend_state(), ours.backend_tokenizer, False, short)
            made.encode_batch([text], True, False)
            return made.marked_shortly

        assert is_short("The 5 of 1,234") and is_short("1e40") and is_short(("a 5", "b"))
        assert not is_short("a 5", short=False) and not is_short("a 5" * 1000)


@pytest.mark.filterwarnings("ignore:using the slower engine")
def test_offsets_leave_out_the_spaces_at_both_ends_of_a_token():
    """As a post-processor that trims has it, also where words are not cut before their spaces, so
    that tokens end with them.
    """
    tokens = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "aĠ", "Ġb", "ĠbĠ"]
    merges = [("a", "Ġ"), ("Ġ", "b"), ("Ġb", "Ġ")]
    backend = Backend(models.BPE({token: number for number, token in enumerate(tokens)}, merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.post_processor, backend.decoder = SPACES, decoders.ByteLevel()
    stock = PreTrainedTokenizerFast(tokenizer_object=backend)
    tok = NumberTokenizer.from_tokenizer(stock)
    tok.backend_state().has_fast_engine = True  # the quick way, whether worth while or not
    plain = ["a b ", " b c", "a  b  a ", ""]
    expected = stock(plain, return_offsets_mapping=True)["offset_mapping"]
    assert expected[0] == [(0, 1), (2, 3), (4, 4)]
    assert tok([*plain, "x 7"], return_offsets_mapping=True)["offset_mapping"][:-1] == expected
