"""An option of ours that is misspelt is an error that names it; transformers' own options go
through as they come.
"""

import pytest

pytest.importorskip("transformers")

from hf_cases import ours, source

from numtok.errors import InputError
from numtok.hf import NumberTokenizer

MISSPELT = {
    "return_number": lambda tok: tok("a 5", return_number=True),
    "return_numers": lambda tok: tok.encode("a 5", return_numers=True),
    "number_vales": lambda tok: tok.decode([1], number_vales=[1.0]),
    "number": lambda tok: NumberTokenizer.from_pretrained(None, number="xval"),
    "gramar": lambda tok: NumberTokenizer.from_pretrained(None, gramar=None),
    "leading_spaces": lambda tok: NumberTokenizer.from_pretrained(None, leading_spaces="separate"),
}


@pytest.mark.parametrize("name", MISSPELT)
def test_a_misspelt_option_is_an_error(name):
    with pytest.raises(InputError, match=f"no option '{name}'; did you mean"):
        MISSPELT[name](ours("bert"))


def test_what_takes_no_options_of_others_takes_no_misspelt_ones():
    with pytest.raises(TypeError, match="gramar"):
        NumberTokenizer.from_tokenizer(source("bert"), gramar=None)  # type: ignore[call-arg]


def test_other_options_go_through():
    tok = NumberTokenizer.from_pretrained(None, padding_side="left", model_max_length=7)
    assert tok.padding_side == "left" and tok.model_max_length == 7
    plain = tok("a text", return_tensors="np")
    assert tok("a text", nonsense=5, return_tensors="np").keys() == plain.keys()
