"""The cache of words: what comes again is not asked for again, and whatever room there is changes
nothing. That every text has the ids that ``tokenizers`` gives to it whole: ``test_contract.py``.
"""

import numpy as np
import pytest
import trained
from engine_oracle import TAKES_ALL, check, oracle

from numtok.engines import word_cache
from numtok.engines.chunks import Chunks
from numtok.engines.word_cache import words_of
from numtok.tokenizer.tokenizer import Tokenizer

SENTENCE = "The mass is -1.5e3 kg, i.e. about 3,300 pounds; it's 10 km away."
ROWS = [SENTENCE, None, "", SENTENCE]


def test_text_is_cut_at_single_spaces_between_characters_that_stand_alone():
    text = "it is 5\u00a0km  of é ça e\u0301 e\u0301 一 d\n e f "
    data = np.frombuffer(text.encode(), np.uint8)
    spans, begins = np.array([[0, len(data)], [0, 0], [3, 5]]), np.array([True, False, False])
    words, per_piece = words_of(Chunks(data, spans, begins, begins))
    assert [word.decode("utf-8", "replace") for word in words] == [
        *("�it", " is", " 5\u00a0km  of", " é", " ça", " e\u0301 e\u0301 一 d\n e", " f "),
        *("�", "�is"),
    ]
    assert per_piece.tolist() == [0, 7, 8, 9]


@pytest.mark.parametrize(
    "kind", ["bert", "t5", "t5_words", "lstrip_token", "gpt4o", "llama_legacy"]
)
def test_what_comes_again_is_not_asked_for_again(kind):
    """A word is cached once, in the order in which words first came."""
    tok = Tokenizer(trained.config(kind), [TAKES_ALL], engine="tokenizers")
    cache = getattr(tok.engine, "fast", tok.engine)
    first = tok.encode_batch(ROWS)
    words = len(cache)
    assert 2 < words < 25
    assert tok.encode_batch(ROWS).equals(first) and len(cache) == words
    check(tok, oracle(kind), [*ROWS, SENTENCE.replace("mass", "weight")])
    assert words < len(cache) <= words + 1


def test_room_for_few_words_changes_nothing(monkeypatch):
    """More words than are cached, some of them too long to be."""
    monkeypatch.setattr(word_cache, "MOST_CACHED", 3000)
    tok = Tokenizer(trained.config("t5"), [TAKES_ALL], engine="tokenizers")
    words = [f"{k:x}ab{k * 7919:x}" for k in range(word_cache.MOST_CACHED + 900)]
    many = [" ".join(words[at : at + 50]) for at in range(0, len(words), 50)]
    long = "c" * (word_cache.LONGEST_CACHED + 1)
    last = ["b a 5 b", f"7 a 5 {long}", *many[-9:]]
    for rows in (["a 5 b"], [SENTENCE, long, SENTENCE], many, last):
        check(tok, oracle("t5"), rows)
    assert len(tok.engine) <= word_cache.MOST_CACHED


def test_threads_keep_the_same_words():
    rows = [f"{SENTENCE} word{k % 700} {k} of {k * 7 % 900}s" * 4 for k in range(1500)]
    one, four = (Tokenizer(trained.config("bert"), [TAKES_ALL], engine="tokenizers") for _ in "12")
    expected = one.encode_batch(rows)
    for _ in range(2):
        assert four.encode_batch(rows, threads=4).equals(expected)
