"""The engines read Unicode data of different years: on text that normalisation may change, both
must still give the same ids.
"""

import numpy as np
import pytest
from engine_oracle import tokenizer
from hostile import matching

from numtok.arrays.unicode_classes import flags

# Marks of many combining classes, old and new, and second characters of compositions: what stands
# beside them may change place, or join them.
PARTNERS = "\u0301\u0345\u0323\u0327\u0338\u093c\u094d\u0f71\u0f81\u302a\u3099\u05b0\u11a8\u1161\u0eba\u1abf\U00011d44\U00011930\U00016d67"
AROUND = ["{}", "a{}", "{}b", "a{}b", "a {} b", "{}{}", "5{}", "{}5", "a {}5{} 7", "½{}-5"]


def differing(kind, texts):
    fast, slow = (
        tokenizer(kind, engine).encode_batch(texts)["input_ids"]
        for engine in ("gigatoken", "tokenizers")
    )
    if fast.equals(slow):
        return []
    rows = zip(texts, fast.to_pylist(), slow.to_pylist(), strict=True)
    return [text for text, a, b in rows if a != b]


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_every_mark_beside_everything(step):
    """All of category M, all with a combining class, and all that NFC may change, beside letters,
    numbers and marks in both orders.
    """
    marks = matching(
        r"[[\p{M}\P{Canonical_Combining_Class=0}\p{NFC_Quick_Check=No}\p{NFC_Quick_Check=Maybe}]--\p{Cn}]"
    )
    assert len(marks) > 3000
    marks = marks[::step]
    pairs = [
        f"a{first}{second}"
        for mark in marks
        for other in PARTNERS
        for first, second in ((mark, other), (other, mark))
    ]
    assert differing("neox", pairs) == []
    assert differing("neox", [form.replace("{}", mark) for mark in marks for form in AROUND]) == []


def test_every_composed_character_beside_marks():
    """All with a canonical or compatibility decomposition, Hangul syllables among them."""
    composed = matching(r"[\p{NFKD_Quick_Check=No}--\p{Cn}]")
    assert len(composed) > 13_000
    texts = [f"a{one}" for one in composed]
    for step, mark in enumerate("\u0301\u11a8\u1abf"):
        texts += [f"{one}{mark}" for one in composed[step::3]]
    assert differing("neox", texts) == []


def test_what_is_newer():
    """The flag finds characters that are known to be newer than the data of ``tokenizers``, and
    spares those that French, Hindi or Korean is made of.
    """
    newer = flags("nfc_newer")
    assert all(newer[ord(mark)] for mark in "\u0c3c\u0eba\u1abf\U00011d44\u0378")
    assert not any(
        newer[ord(mark)]
        for mark in "\u0301\u0308\u093c\u094d\u0e38\u05b0\u11a8\u1161\u3099\ufb1d가é"
    )


@pytest.mark.parametrize("kind", ["gpt2", "neox", "llama3", "gpt4o"])
def test_every_character_on_whose_category_libraries_disagree(kind):
    """They cut words by the categories of different years: beside a contraction, letters, numbers
    and marks the ids are those of ``tokenizers``.
    """
    characters = np.flatnonzero(flags("unsettled"))
    assigned = [chr(code) for code in characters if flags("nfc_unsafe")[code] == 0]
    assert {"\U000323b0", "\U00031350", "\u0295", "\u0c5c"} <= set(assigned)
    assert len(assigned) > 10_000
    forms = ["{}'s", "a{} 5", "{}a", " {}!", "5{}5", "{}{}5"]
    texts = [
        form.replace("{}", one) for one in [*assigned[::16], "\u0295", "\u0378"] for form in forms
    ]
    assert differing(kind, texts) == []
