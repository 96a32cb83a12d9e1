"""Check what a drop-in tokenizer may be called with: every shape of input and every option, for
hypothesis; and what it must refuse.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hf_oracle import rebuild
from hostile import FRAGMENTS, texts
from hypothesis import strategies as st

NUMBER_TEXTS = [
    "It is -28.5 or 10,000", "5", " 5", "no number", "", "  -0 and 0, 1e400 1.5e-300",
    "a\n\n7 b  8 [NUM] 9 [/NUM]10",
    "10km 1st (−5) ½5 ٤٢ Ä3 naïve −0.50 <|0.00|>12<extra_id_7> 6 <mask> 4",
    "1,234,567.89 and 1, 2,3; 10-20 12:30 2020-01-02",
]  # fmt: skip
NOT_NUMBERS = ["B2B", "1.2.3", "x_3", "0x1F", "7R32", "192.168.0.1", "covid-19x2", "<|2.5|>"]
NOT_NUMBERS += ["[NUM:602]"]


@dataclass
class Call:
    """The arguments of one call."""

    text: Any
    text_pair: Any = None
    sides: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)

    def without_numbers(self, oracle):
        split = bool(self.options.get("split_special_tokens"))

        def strip(text):
            return oracle.strip_numbers(text, split)

        return Call(
            rebuild(self.text, strip), rebuild(self.text_pair, strip), self.sides, self.options
        )


few = st.one_of(
    texts, st.lists(st.sampled_from([*FRAGMENTS, *NOT_NUMBERS]), max_size=6).map("".join)
)
words = st.lists(
    st.one_of(few, st.sampled_from(["", "a", "5", "-5", "5.", "[NUM]", " 5", "x", "1", ",234"])),
    max_size=4,
)
pairs = st.tuples(few, few)


@st.composite
def batches(draw, of, paired):
    rows = draw(st.lists(st.tuples(of, of), min_size=1, max_size=3))
    first = [row[0] for row in rows]
    return (first, [row[1] for row in rows]) if paired else (first, None)


text_shapes = st.one_of(
    st.tuples(few, st.none()),
    pairs,
    batches(few, False),
    batches(few, True),
    st.tuples(st.lists(pairs, min_size=1, max_size=3), st.none()),
)
word_shapes = st.one_of(
    st.tuples(words, st.none()),
    st.tuples(words, words.filter(bool)),
    batches(words, False),
    batches(words, True),
    st.tuples(st.lists(st.tuples(words, words), min_size=1, max_size=2), st.none()),
)
sides = st.fixed_dictionaries(
    {
        "truncation_side": st.sampled_from(["right", "left"]),
        "padding_side": st.sampled_from(["right", "left"]),
    }
)
TRUNCATIONS = [None, False, True, "longest_first", "only_first", "only_second", "do_not_truncate"]
PADDINGS = [False, True, "longest", "max_length", "do_not_pad"]
options = st.fixed_dictionaries(
    {},
    optional={
        "add_special_tokens": st.booleans(),
        "truncation": st.sampled_from(TRUNCATIONS),
        "padding": st.sampled_from(PADDINGS),
        "max_length": st.one_of(st.integers(0, 12), st.none()),
        "stride": st.integers(0, 3),
        "pad_to_multiple_of": st.sampled_from([None, 2, 8]),
        "padding_side": st.sampled_from([None, "left", "right"]),
        "return_tensors": st.sampled_from([None, "np", "pt"]),
        "return_token_type_ids": st.sampled_from([None, True, False]),
        "return_attention_mask": st.sampled_from([None, True, False]),
        "return_overflowing_tokens": st.booleans(),
        "return_special_tokens_mask": st.booleans(),
        "return_offsets_mapping": st.booleans(),
        "return_length": st.booleans(),
        "split_special_tokens": st.booleans(),
    },
)


@st.composite
def calls(draw):
    """Any call."""
    split = draw(st.booleans())
    text, pair = draw(word_shapes if split else text_shapes)
    return Call(
        text, pair, draw(sides), draw(options) | ({"is_split_into_words": True} if split else {})
    )


@st.composite
def cuts(draw):
    """Calls that cut and fill: short limits, every strategy and side, strides."""
    call = draw(calls())
    limit = draw(st.integers(3, 10))
    call.options |= {
        "truncation": draw(st.sampled_from(TRUNCATIONS[2:6])),
        "max_length": limit,
        "return_overflowing_tokens": draw(st.booleans()),
        "stride": draw(st.integers(0, 2)),
    }
    call.options.pop("pad_to_multiple_of", None)
    return call


class Shout(str):
    """A kind of ``str``."""


# Whatever the source does with these, the drop-in does: most it refuses, some it takes.
BAD = [(5, None), (5.0, None), (None, None), (None, "a"), (b"a b", None), ({"a": 5}, None)]
BAD += [([None], None), (["a", 5], None), ([["a", None], "b"], None), ([], None), ((), None)]
BAD += [([[]], None), ([["a", "b", "c"]], None), ([["a"], "b"], None), (["a", ["b"]], None)]
BAD += [([[["a", "b"]]], None), ([(["a"], ["b"])], None), (np.array(["a", "b"]), None)]
BAD += [(np.str_("a b"), None), ([np.str_("a"), Shout("b")], None), (Shout("a"), Shout("b"))]
BAD += [("a", 5), ("a", ["b"]), (["a"], "b"), (["a"], ["b", "c"]), (["a"], []), ([""], [""])]
BAD += [("\ud800", None), (["a", "b \ud800"], None), ("a", "\ud800"), (iter(["a"]), None)]
BAD_OPTIONS = [
    {"padding": "nonsense"},
    {"truncation": "nonsense"},
    {"return_tensors": "nonsense"},
    {"return_tensors": "pt"},  # rows of different lengths
    {"return_tensors": "np"},
    {"max_length": -1},
    {"max_length": 5.0, "truncation": True},
    {"max_length": 4, "truncation": True, "stride": 9},
    {"max_length": 1, "truncation": True},
    {"max_length": 5, "truncation": True, "padding": True, "pad_to_multiple_of": 4},
    {"padding": True, "pad_to_multiple_of": 0},
    {"padding": True, "padding_side": "middle"},
    {"truncation": "only_second", "max_length": 3},
    {"nonsense": 5},
    {"is_split_into_words": "yes"},
    {"stride": "1"},
]
