"""The cache of words: what comes again is not asked for again, and whatever room there is changes
nothing. That every text has the ids that ``tokenizers`` gives to it whole: ``test_contract.py``.
"""

import numpy as np
import pytest
import trained
from engine_oracle import TAKES_ALL, check, oracle

from numtok.engines import words
from numtok.engines.chunks import Chunks
from numtok.engines.words import words_of
from numtok.tokenizer.tokenizer import Tokenizer

SENTENCE = "The mass is -1.5e3 kg, i.e. about 3,300 pounds; it's 10 km away."
ROWS = [SENTENCE, None, "", SENTENCE]


def test_text_is_cut_at_single_spaces_between_characters_that_stand_alone():
    text = "it is 5\u00a0km  of é ça e\u0301 e\u0301 一 d\n e f "
    data = np.frombuffer(text.encode(), np.uint8)
    spans, begins = np.array([[0, len(data)], [0, 0], [3, 5]]), np.array([True, False, False])
    found, starts, per_piece = words_of(Chunks(data, spans, begins, begins))
    assert [word.decode("utf-8", "replace") for word in found] == [
        *("�it", " is", " 5\u00a0km  of", " é", " ça", " e\u0301 e\u0301 一 d\n e", " f "),
        *("�", "�is"),
    ]
    assert per_piece.tolist() == [0, 7, 8, 9]
    assert text.encode()[starts[4] :].startswith(" ça".encode())
    assert starts[[0, 7, 8]].tolist() == [0, 0, 3]


@pytest.mark.parametrize(
    "kind", ["bert", "t5", "t5_words", "lstrip_token", "gpt4o", "llama_legacy"]
)
def test_what_comes_again_is_not_asked_for_again(kind):
    """A word is cached once, in the order in which words first came."""
    tok = Tokenizer(trained.config(kind), [TAKES_ALL], engine="tokenizers")
    cache = getattr(tok.engine, "fast", tok.engine)
    first = tok.encode_batch(ROWS)
    cached = len(cache)
    assert 2 < cached < 25
    assert tok.encode_batch(ROWS).equals(first) and len(cache) == cached
    check(tok, oracle(kind), [*ROWS, SENTENCE.replace("mass", "weight")])
    assert cached < len(cache) <= cached + 1


def test_room_for_few_words_changes_nothing(monkeypatch):
    """More words than are cached, some of them too long to be."""
    monkeypatch.setattr(words, "MOST_CACHED", 3000)
    tok = Tokenizer(trained.config("t5"), [TAKES_ALL], engine="tokenizers")
    rare = [f"{k:x}ab{k * 7919:x}" for k in range(words.MOST_CACHED + 900)]
    many = [" ".join(rare[at : at + 50]) for at in range(0, len(rare), 50)]
    long = "c" * (words.LONGEST_CACHED + 1)
    last = ["b a 5 b", f"7 a 5 {long}", *many[-9:]]
    for rows in (["a 5 b"], [SENTENCE, long, SENTENCE], many, last):
        check(tok, oracle("t5"), rows)
    assert len(tok.engine) <= words.MOST_CACHED
