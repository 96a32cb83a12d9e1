"""An option of ours that is misspelt is an error that names it; transformers' own options go
through as they come.
"""

import pytest

pytest.importorskip("transformers")


from numtok.hf import NumberTokenizer


def test_other_options_go_through():
    tok = NumberTokenizer.from_pretrained(None, padding_side="left", model_max_length=7)
    assert tok.padding_side == "left" and tok.model_max_length == 7
    plain = tok("a text", return_tensors="np")
    assert tok("a text", nonsense=5, return_tensors="np").keys() == plain.keys()
