"""Words whose ids are kept: every text has the ids that ``tokenizers`` gives to it whole, and what
comes again is not asked for again.
"""

import numpy as np
import pytest
import trained
from effort import examples
from engine_oracle import check, oracle, tokenizer
from hypothesis import example, given, settings
from hypothesis import strategies as st

from numtok.engines import word_cache
from numtok.engines.special_rows import SpecialRowsEngine
from numtok.engines.tokenizers_engine import TokenizersEngine
from numtok.engines.word_cache import WordCacheEngine, words_of
from numtok.representations import XVal
from numtok.tokenizer.tokenizer import Tokenizer

KINDS = [*trained.KINDS, "gpt4o"]
SENTENCE = "The mass is -1.5e3 kg, i.e. about 3,300 pounds; it's 10 km away."

# What may change with what is beside it: marks, spaces of other kinds, added tokens that strip,
# what stands in for a space or a number, line ends.
WORDS = [
    *("a", "don't", "'s", "?!", "5", "-3", "x5", "½", "[NUM]", "_", "\u2581", "a\u2581", "\u2581a", "\U00100000", "\ufdd0"),
    *("é", "e\u0301", "\u0301", "\u0301a", "ﬁ", "İ", "ς", "Å", "×", "Привет", "ʼ", "\u0483", "\u0600", "一", "\u200b", "\u200d", "\ufeff", "🙂"),
    *("<left>", "<right_1>", "<mask>", "<|0.00|>", "<extra_id_7>", "<|reserved_13|>", "</s>", "[SEP]", "<unk>"),
    *("", "", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\x00", "\x85"),
]  # fmt: skip
documents = st.lists(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), max_size=4)


PAIRS = [f"{before} {after}" for before in WORDS for after in WORDS]
AROUND = [f"a {before} b 5 {after} c" for before in WORDS for after in WORDS[::5]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.thorough
@settings(max_examples=examples(15, thorough=300))
@given(rows=documents, parse_special=st.booleans())
@example(rows=PAIRS, parse_special=True)
@example(rows=AROUND, parse_special=False)
def test_words_have_the_ids_of_whole_texts(kind, rows, parse_special):
    check(tokenizer(kind), oracle(kind, parse_special), rows, parse_special=parse_special)


def test_text_is_cut_at_single_spaces_between_characters_that_stand_alone():
    text = "it is 5\u00a0km  of é ça e\u0301 e\u0301 一 d\n e f "
    data = np.frombuffer(text.encode(), np.uint8)
    spans, behind = np.array([[0, len(data)], [0, 0], [3, 5]]), np.array([True, False, False])
    words, per_piece = words_of(data, spans, behind)
    assert [word.decode("utf-8", "replace") for word in words] == [
        *("�it", " is", " 5\u00a0km  of", " é", " ça", " e\u0301 e\u0301 一 d\n e", " f "),
        *("�", "�is"),
    ]
    assert per_piece.tolist() == [0, 7, 8, 9]


@pytest.mark.parametrize("kind", KINDS)
def test_what_comes_again_is_not_asked_for_again(monkeypatch, kind):
    texts = []  # that the library is asked for
    method = TokenizersEngine.encodings

    def noted(self, given, **options):
        texts.extend(given)
        return method(self, given, **options)

    tok = Tokenizer(trained.config(kind), [XVal()], engine="tokenizers")
    monkeypatch.setattr(TokenizersEngine, "encodings", noted)
    first = tok.encode_batch([SENTENCE, None, SENTENCE])
    assert 0 < len(texts) < 20
    texts.clear()
    assert tok.encode_batch([SENTENCE, None, SENTENCE]).equals(first)
    assert not texts


@pytest.mark.parametrize(("most", "longest"), [(2, 64), (5, 64), (1 << 17, 3)])
def test_room_for_few_words_changes_nothing(monkeypatch, most, longest):
    monkeypatch.setattr(word_cache, "MOST_CACHED", most)
    monkeypatch.setattr(word_cache, "LONGEST_CACHED", longest)
    tok = Tokenizer(trained.config("t5"), [XVal()], engine="tokenizers")
    for rows in (["a 5 b"], [SENTENCE, "", SENTENCE], ["b a 5 b", "7 a 5"], ["c d e f"]):
        check(tok, oracle("t5"), rows)
    assert isinstance(tok.engine, WordCacheEngine)
    assert len(tok.engine) <= most


def test_threads_keep_the_same_words():
    rows = [f"{SENTENCE} word{k % 700} {k} of {k * 7 % 900}s" * 4 for k in range(1500)]
    one, four = (Tokenizer(trained.config("bert"), [XVal()], engine="tokenizers") for _ in range(2))
    expected = one.encode_batch(rows)
    for _ in range(2):
        assert four.encode_batch(rows, threads=4).equals(expected)


def _split(pattern):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def added(content, **flags):
    names = ["single_word", "lstrip", "rstrip", "normalized", "special"]
    return {"id": 5000, "content": content, **dict.fromkeys(names, False), **flags}


UNKNOWN = {
    "pattern": ("gpt2", {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [_split(r"\w+ \w+"), trained.config("llama3")["pre_tokenizer"]]}}),
    "no cut": ("t5", {"pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": False}}),
    "no space": ("t5", {"normalizer": {"type": "Replace", "pattern": {"String": "a b"}, "content": "c"}}),
    "token with a space inside": ("gpt2", {"added_tokens": [added("a b")]}),
    "token with a space behind": ("gpt2", {"added_tokens": [added("a ")]}),
    "a hidden token before a space": ("llama_legacy", {"added_tokens": [added("<a>", normalized=True)]}),
    "token that strips normalized text": ("neox", {"added_tokens": [added("<a>", rstrip=True, normalized=True)]}),
}  # fmt: skip


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_to_cut_is_left_whole(name):
    kind, changes = UNKNOWN[name]
    tok = Tokenizer(trained.config(kind) | changes, [XVal()], engine="tokenizers")
    assert isinstance(tok.engine, TokenizersEngine)
    assert not tok.has_fast_engine()


def test_bpe_over_whole_texts_is_left_whole_if_it_merges_across_spaces():
    config = trained.config("llama_legacy")
    assert isinstance(Tokenizer(config, [XVal()], engine="tokenizers").engine, SpecialRowsEngine)
    vocabulary, merges = config["model"]["vocab"], config["model"]["merges"]
    across = {
        "vocab": vocabulary | {"a\u2581": len(vocabulary) + 900},
        "merges": [*merges, ["a", "\u2581"]],
    }
    for change in (across, {"ignore_merges": True}, {"dropout": 0.5}):
        changed = config | {"model": config["model"] | change}
        tok = Tokenizer(changed, [XVal()], engine="tokenizers")
        assert isinstance(tok.engine, TokenizersEngine)


@pytest.mark.parametrize(
    ("kind", "token"), [("lstrip_token", "<right_1>"), ("llama_legacy", "<|0.00|>")]
)
def test_rows_with_tokens_that_change_the_space_behind_them_are_encoded_apart(kind, token):
    tok = tokenizer(kind)
    assert isinstance(tok.engine, SpecialRowsEngine)
    rows = [f"a {token} b 5", "a b 5", f"{token} 5 <left> 6"]
    check(tok, oracle(kind), rows)
