"""Text built to hurt a tokenizer that takes numbers out: what stands beside numbers in it changes
how the text around them is cut.
"""

import regex
from hypothesis import strategies as st

from numtok.engines.hf_tokenizers import is_version_1

SPACES = [
    *(" ", "  ", "    ", "\t", "\t\t", "\n", "\n\n", "\r\n", " \n", "\n ", "\u00a0", " \u00a0",
    "\u00a0 ", "\u2028", "\u2009\u2009", "\u3000", "\u0085", "\x0b"),
]  # fmt: skip
NOT_QUITE_SPACES = ["\x1c", "\x1f", "\u180e", "\u200b", "\ufeff", "\x00", "\x7f"]
NORMALISED = [
    *("e\u0301", "\u0301", "\u212b", "\u1100\u1161\u11a8", "가\u11a8", "\u0338", "ﬁ", "\u0344",
    "a\u0323\u0307", "\u2126"),
]  # fmt: skip
NUMERIC = ["½", "²", "Ⅻ", "①", "x₂", "〇", "\U00010d46"]
MARKS = [
    *("'s", "'ll", "'S", "'", "-", "+", "−", ".", ",", "(", ")", "%", "$", "=", "…", " (", "--",
    "/", "x", "_", "#", "E", "▁", "##"),
]  # fmt: skip
WORDS = [
    *("a", " the", "number", " Don't", "Ä", "ß", "今年", "年", "한국", "ไทย", "Привет", "🙂",
    "👩\u200d👩", "\ufe0f\u20e3", "=" * 40, "nation" * 9),
]  # fmt: skip
# `tokenizers` 1.0 has the Unicode data of another year than 0.23, which tests hold it to
SETTLED_ONLY = is_version_1()
WORDS += [] if SETTLED_ONLY else ["\U000323b0"]
CHARACTERS = st.characters(codec="utf-8", exclude_categories=["Cn"] if SETTLED_ONLY else [])
TOKENS = [
    *("[NUM]", " [NUM]", "[/NUM]", "[NUM", "<|endoftext|>", "<|0.00|>", "<extra_id_7>",
    "<|reserved_12|>", " <|reserved_13|>"),
]  # fmt: skip
MORE_TOKENS = [
    *("<mask>", "<left>", "<right_1>", "[CLS]", "[UNK]", "<s>", "</s>", "<unk>", "<0x35>",
    "\ue000", " \ue000", "\ue001"),
]  # fmt: skip
FRAGMENTS = SPACES + NOT_QUITE_SPACES + NORMALISED + NUMERIC + MARKS + WORDS + TOKENS + MORE_TOKENS

NUMBERS = ["5", "-3", "1,234", ".5", "1e5", "٤٢", "−0.50", "+7" + "0" * 45]

# texts with so many private-use characters that the first one that might stand in for a number is not
# free, nor any of the lowest plane
_BASIC = "".join(map(chr, range(0xE000, 0xF900)))
_HIGH = [*range(0x10_0000, 0x10_FFFE, 7), *range(0xF_0000, 0xF_FFFE, 97), 0x10_0001, 0x10_0002]
_HIGH = "".join(map(chr, [*_HIGH, 0x10_8000, 0xF_8000]))
PRIVATE_USE = [
    f"a 5 {_BASIC[:16]} b -7.5",
    f"x {_BASIC} 12 y",
    f"1 {_HIGH} 2\ue000 3",
    "".join(f"{c}{k % 10}" for k, c in enumerate(_BASIC[::16] + _HIGH[:300])),
]

texts = st.lists(
    st.one_of(
        st.sampled_from(FRAGMENTS),
        st.sampled_from(NUMBERS),
        st.text(CHARACTERS, max_size=3),
    ),
    max_size=12,
).map("".join)
rows = st.lists(st.one_of(texts, texts, texts, st.none()), max_size=4)
# A batch of twelve texts costs little more than one of two: as many texts in fewer examples.
many_rows = st.lists(st.one_of(texts, texts, texts, st.none()), max_size=12)


def triples(numbers=NUMBERS):
    """Every fragment before and after every number: all there is to know about one number's
    surroundings, two fragments deep.
    """
    return [
        before + number + after
        for number in numbers
        for before in ["", *FRAGMENTS]
        for after in ["", *FRAGMENTS]
    ]


def matching(pattern):
    """Every character that matches."""
    match = regex.compile(f"(?V1){pattern}").match
    return [
        chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000 and match(chr(code))
    ]
