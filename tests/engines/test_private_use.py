"""Texts that hold private-use characters, of which one stands in for numbers while ``tokenizers``
has the text: whatever the text holds, another is found.
"""

import hf_cases
import pytest
import trained
from engine_oracle import check, oracle, tokenizer

from numtok.engines.private_use import RANGES, unused, used_in
from numtok.errors import InputError
from numtok.representations import FP15

BASIC = "".join(map(chr, range(0xE000, 0xF900)))
HIGHEST = [0x10_0000, 0x10_0001, 0x10_0002, 0x10_8000, 0xF_8000]
HIGH = "".join(
    map(chr, [*range(0x10_0000, 0x10_FFFE, 7), *range(0xF_0000, 0xF_FFFE, 97), *HIGHEST])
)
TEXTS = [
    f"a 5 {BASIC[:16]} b -7.5",
    f"x {BASIC} 12 y",
    f"1 {HIGH} 2\ue000 3",
    "".join(f"{c}{k % 10}" for k, c in enumerate(BASIC[::16] + HIGH[:300])),
]


@pytest.mark.parametrize("kind", trained.KINDS)
def test_core_takes_any_of_them(kind):
    batch = check(tokenizer(kind), oracle(kind), TEXTS, keep_text=True)
    assert tokenizer(kind).decode_batch(batch).to_pylist() == TEXTS


def private(text):
    return "".join(character for character in text if ord(character) >= 0xE000)


@pytest.mark.filterwarnings("ignore::numtok.engines.choose.EngineWarning")
@pytest.mark.parametrize("kind", hf_cases.KINDS)
def test_drop_in_takes_any_of_them(kind):
    ours, source = hf_cases.ours(kind), hf_cases.source(kind)
    for text in TEXTS:
        got = ours(text, add_special_tokens=False, return_numbers=True)
        ids = ours.numtok.encode(text, parse_special=True)["input_ids"].tolist()
        assert got["input_ids"] == ids
        decoded = ours.decode(ids, number_value=got["number_value"])
        as_source = source.decode(source(text, add_special_tokens=False)["input_ids"])
        assert private(decoded) == private(as_source)


def test_many_marks_beside_a_few_characters():
    """A representation of tens of thousands of tokens finds room between characters that lie far
    apart.
    """
    ours = hf_cases.build_ours("llama", numbers=(FP15(overflow="clip"),))
    text = "a 5 \U00100000\U000f0000\U00108000\U000f8000 b"
    got = ours(text, add_special_tokens=False)["input_ids"]
    assert got == ours.numtok.encode(text)["input_ids"].tolist()


def test_used_and_unused():
    text = "a\ue000é\uf8ff中\U000f0000🙂\U0010fffd5\uffff"
    assert used_in(text).tolist() == sorted(map(ord, private(text)))
    taken = used_in(HIGH + BASIC)
    assert not set(unused(taken, 1000).tolist()) & set(taken.tolist())
    everything = "".join(chr(code) for first, last in RANGES for code in range(first, last))
    assert unused(used_in(everything[1:])).tolist() == [ord(everything[0])]
    with pytest.raises(InputError, match="hold 137468 of the 137468 private-use characters"):
        unused(used_in(everything))
