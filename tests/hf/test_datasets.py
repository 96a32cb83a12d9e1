"""``datasets``: fingerprints that use does not change, and ``map`` whose results are kept."""

import copy
import pickle

import numpy as np
import pytest

pytest.importorskip("transformers")
pytest.importorskip("torch")

from hf_cases import TEXTS, build_ours

from numtok.hf import tokenizer as hf
from numtok.numbers.grammar import Grammar
from numtok.representations import FoNE, XVal


def fingerprint_of(tok):
    hasher = pytest.importorskip("datasets.fingerprint")
    return str(hasher.Hasher.hash(tok))


@pytest.mark.parametrize("kind", ["bert", "roberta", "t5"])
def test_fingerprint(kind, tmp_path):
    """Equal for equal tokenizers, another for others, and unchanged by use."""
    tok = build_ours(kind)
    before = fingerprint_of(tok)
    for same in (build_ours(kind), copy.deepcopy(tok), pickle.loads(pickle.dumps(tok))):
        assert fingerprint_of(same) == before
    numbered = tok("a 5", return_numbers=True)
    uses = [
        lambda: tok(TEXTS),
        lambda: tok(TEXTS, return_numbers=True, return_offsets_mapping=True).word_ids(1),
        lambda: tok("literal [NUM] [/NUM] 5"),
        lambda: tok(TEXTS, padding=True, truncation=True, max_length=4, return_tensors="np"),
        lambda: tok(TEXTS, split_special_tokens=True),
        lambda: tok.batch_decode(tok(TEXTS)["input_ids"]),
        lambda: tok.decode(numbered["input_ids"], number_value=numbered["number_value"]),
        lambda: tok.pad([numbered], padding="max_length", max_length=8),
        lambda: tok.numtok.encode_batch(TEXTS),
        lambda: tok("x" * 3000 + " 5"),
    ]
    for k, use in enumerate(uses):
        use()
        assert fingerprint_of(tok) == before, k
    other_options = [
        {"numbers": (XVal(scale=2.0),)},
        {"grammar": Grammar.data()},
        {"return_numbers": True},
    ]
    others = {fingerprint_of(build_ours(kind, **options)) for options in other_options}
    assert len({before, *others}) == 4
    tok.save_pretrained(tmp_path)
    loaded = {fingerprint_of(hf.NumberTokenizer.from_pretrained(tmp_path)) for _ in range(2)}
    assert len(loaded) == 1


def test_map_with_two_processes(tmp_path):
    datasets = pytest.importorskip("datasets")
    tok = build_ours("roberta", (XVal(), FoNE(6, 4, overflow="clip")))
    datasets.Dataset.from_dict({"text": TEXTS * 8}).save_to_disk(tmp_path / "data")
    dataset = datasets.load_from_disk(tmp_path / "data")

    def encode(batch):
        return tok(batch["text"], return_numbers=True, truncation=True, max_length=8)

    def files():
        return sorted((tmp_path / "data").glob("cache-*"))

    mapped = dataset.map(encode, batched=True, batch_size=5, num_proc=2)
    expected, kept = encode({"text": TEXTS * 8}), files()
    assert mapped["input_ids"][:] == expected["input_ids"]
    assert mapped["number_value"][:] == [list(map(float, row)) for row in expected["number_value"]]
    assert np.asarray(mapped[0]["number_fourier"]).shape == (len(expected["input_ids"][0]), 10, 2)
    again = dataset.map(encode, batched=True, batch_size=5, num_proc=2)
    assert kept and again.cache_files == mapped.cache_files
    assert files() == kept, "the cache was not used"
