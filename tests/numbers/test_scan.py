"""The scanner: equality with the oracle on hostile text, inputs, errors and speed."""

import functools
import itertools
import random
import sys
import time
import unicodedata

import new_process
import numpy as np
import pyarrow as pa
import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st
from scanned import DAMAGED, PIECES, UUID, rows_of, rows_of_oracle, strings, surfaces

import numtok
from numtok import Grammar
from numtok.arrays.unicode_classes import ranges
from numtok.errors import GrammarError
from numtok.numbers.extract import SHORT_TEXT
from numtok.numbers.grammar import GROUPING_CHARACTERS

SEPARATORS = sorted(GROUPING_CHARACTERS.keys() - {"."})  # the point is the decimal mark here


# ---- Equality with the oracle


def test_digits_of_every_length_beside_everything():
    """Before and behind the point: what is copied eight bytes at a time, what is too long for it,
    and every end of either.
    """
    dice = random.Random(3)
    beside = [*" \t\n,.-+–−()'/:eExXaZ_é\u00a0½٤", "", "", " -"]
    beside += ["–-", "a-", "1,", "e5", "x2", "km", ".5", ",5"]
    texts = ["abcdefab-cdef-abcd-efab-123456789012 is one", "abcdefab-cdef-abcd-1234-abcdefabcdef"]
    texts += ["ab-123456789012 is", "ab-12345678901 is"]
    for whole, fraction in itertools.product(range(27), range(-1, 27)):
        digits = "".join(dice.choices("0123456789", k=whole + max(fraction, 0)))
        number = digits[:whole] + "." * (fraction >= 0) + digits[whole:]
        for _ in range(3):
            before, *after = dice.choices(beside, k=3)
            texts.append(before + number + "".join(after))
    texts.append(" " * 64)  # the last bytes of all are read otherwise
    assert rows_of(numtok.scan(texts)) == rows_of_oracle(texts, Grammar())


@pytest.mark.parametrize("unicode_digits", [True, False])
def test_characters_of_every_class_beside_a_number(unicode_digits):
    """The edges of every range of letters and digits: before a number, before its sign, after it,
    between two, and beside a dot.
    """
    classes = [pair for name in ("letter", "digit") for pair in ranges()[name]]
    edges = {edge + side for pair in classes for edge in pair for side in (-1, 0)}
    codes = [code for code in sorted(edges | set(range(256))) if not 0xD800 <= code < 0xE000]
    texts = [f"{c}1 {c}-1 1{c} 1{c}1 {c}.5 1.{c}" for c in map(chr, codes)]
    grammar = Grammar(unicode_digits=unicode_digits)
    assert rows_of(numtok.scan(texts, grammar)) == rows_of_oracle(texts, grammar)


def test_digits_of_every_script():
    digits = [
        chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) == "Nd"
    ]
    numbers = numtok.scan(digits)
    assert numbers.text().to_pylist() == digits
    assert numbers.digits.tolist() == [unicodedata.decimal(digit) for digit in digits]


# Letters, digits and symbols of all scripts; many share their first byte with a separator.
BESIDE_A_SEPARATOR = "\u00b5\u00aa\u00b2\u207f\u2071\u2090\u2160\u2167\u216f\u2102\u2c60"
any_script = st.characters(categories=["L", "M", "N", "P", "S", "Z"]) | st.sampled_from("\0\t")
among_scripts = st.lists(
    st.sampled_from([*PIECES, *BESIDE_A_SEPARATOR, *SEPARATORS, "1.234", "8B"]) | any_script,
    max_size=12,
).map("".join)
PRESETS = [Grammar(), Grammar.data(), Grammar.european(), Grammar.indian(), Grammar.swiss()]
PRESETS += [Grammar.finance(), Grammar(exponents="eEdD")]


@pytest.mark.thorough
@given(st.lists(among_scripts, max_size=4), st.sampled_from(PRESETS))
@example(["1.234\u00b55", "6", "7 8"], Grammar.european())
@example(["1.234\u00b55", "x", "6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7"], Grammar("\u00a0"))
@example(
    ["9B\u21674", " and so many words behind it that there is room to read on"], Grammar.swiss()
)
@example(["a\x005 \x00-7", " and so many words behind it"], Grammar(leading_dot=False))
def test_a_text_has_its_numbers_whatever_lies_beside_it(texts, grammar):
    """Alone too, where ``extract`` tells places in characters."""
    together = rows_of(numtok.scan(texts, grammar))
    alone = [rows_of(numtok.scan([text], grammar)) for text in texts]
    assert together == [(row, *found[1:]) for row, each in enumerate(alone) for found in each]
    assert together == rows_of_oracle(texts, grammar)
    for text in texts:
        assert numtok.extract(text, grammar) == list(numtok.scan([text], grammar))
    long = texts[0] + " " * (SHORT_TEXT + 1) if texts else ""
    assert numtok.extract(long, grammar) == numtok.extract(long.rstrip(" "), grammar)


# Arabic letters are marked as digits are.
@pytest.mark.parametrize("joint", [" ", ",", "x", "-", "\n", " \u0639\u0649 "])
def test_numbers_as_dense_as_they_can_be_are_all_found(joint):
    some, rows = ["1", "23", "4.5", "1e3", "\u0669\u0660"], 50
    numbers = numtok.scan([joint.join(some * 1000)] * rows)
    assert numbers.text().to_pylist() == some * 1000 * rows
    assert numbers.per_document().tolist() == [5000 * row for row in range(rows + 1)]
    assert numbers.digits.tobytes() == bytes([1, 2, 3, 4, 5, 1, 9, 0]) * 1000 * rows


TO_CUT = [
    "1,234,567.89e-12x3",
    "(1,234)",
    "v1.2.3",
    "1e5.5",
    "abc1",
    "é −.5",
    "a 0x1F",
    "２３，年4",
]


@pytest.mark.parametrize("text", [f"a {UUID}", *TO_CUT])
@pytest.mark.parametrize("grammar", [Grammar(), Grammar(accounting=True)])
def test_rows_do_not_see_each_other(text, grammar):
    """Rows lie side by side in memory: cut one anywhere, and each part is read as if alone."""
    for cut in range(len(text) + 1):
        texts = [text[:cut], text[cut:], text[:cut]]
        assert rows_of(numtok.scan(texts, grammar)) == rows_of_oracle(texts, grammar)


@pytest.mark.parametrize("separator", ["-", ":"])
def test_uuid_with_digits_anywhere(separator):
    """However few of its characters are digits, a UUID is recognised from any of them."""
    forms = ["abcdefab-cdef-abcd-efab-cdefabcdefab", "abcdabcd-abcd-abcd-abcd-dcbadcbadcba"]
    masks = [range(k, k + 1) for k in range(36)]
    masks += itertools.starmap(range, itertools.combinations((0, 8, 13, 18, 23, 24, 36), 2))
    texts = [
        "".join("7" if k in mask and c != "-" else c for k, c in enumerate(form))
        for form, mask in itertools.product(forms, masks)
    ]
    texts = [text.replace("-", separator) for text in texts]
    assert rows_of(numtok.scan(texts)) == rows_of_oracle(texts, Grammar())
    assert (len(numtok.scan(texts)) == 0) == (separator == "-")


# ---- Inputs


TEXTS = ["a 1", None, "", "−2.5 é 3", "4", "nothing", "年5", None, "6,000"]
EXPECTED = [(0, "1"), (3, "−2.5"), (3, "3"), (4, "4"), (6, "5"), (8, "6,000")]


TEXT_TYPES = [pa.string(), pa.large_string(), pa.string_view()]
ODD = [pa.nulls(3), pa.chunked_array([], pa.string()), pa.nulls(2, pa.string())]


def with_documents(numbers):
    return list(zip(numbers.document.tolist(), numbers.text().to_pylist(), strict=True))


def as_dictionary(texts, kind):
    known = sorted({text for text in texts if text is not None})
    indices = pa.array([None if text is None else known.index(text) for text in texts], pa.int32())
    return pa.DictionaryArray.from_arrays(indices, pa.array(known, kind))


def in_chunks(texts, kind):
    return pa.chunked_array([texts[:2], [], texts[2:5], texts[5:]], kind)


KINDS = {
    **{
        "list": list,
        "tuple": tuple,
        "generator": iter,
        "numpy": lambda texts: np.array(texts, "O"),
    },
    **{str(kind): functools.partial(pa.array, type=kind) for kind in TEXT_TYPES},
    **{f"dictionary of {kind}": functools.partial(as_dictionary, kind=kind) for kind in TEXT_TYPES},
    **{f"chunks of {kind}": functools.partial(in_chunks, kind=kind) for kind in TEXT_TYPES[::2]},
    "one chunk": lambda texts: pa.chunked_array([pa.array(texts)]),
    "chunks of dictionaries": lambda texts: pa.chunked_array(
        [as_dictionary(texts[:4], pa.string()), as_dictionary(texts[4:], pa.string())]
    ),
    "table column": lambda texts: pa.table({"text": pa.array(texts)})["text"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_input(kind):
    """And slices of those of Arrow."""
    whole = KINDS[kind](TEXTS)
    numbers = numtok.scan(whole)
    assert rows_of(numbers) == rows_of_oracle(TEXTS, Grammar())
    assert with_documents(numbers) == EXPECTED
    assert numbers.per_document().tolist() == [0, 1, 1, 1, 3, 4, 4, 5, 5, 6]
    ends = range(len(TEXTS) + 1) if isinstance(whole, pa.Array | pa.ChunkedArray) else ()
    for first, last in itertools.combinations_with_replacement(ends, 2):
        expected = [(row - first, text) for row, text in EXPECTED if first <= row < last]
        assert with_documents(numtok.scan(whole[first:last])) == expected


@pytest.mark.parametrize("kind", [*KINDS, "odd"])
def test_nothing(kind):
    texts = [[], [None], [""], ["", None, ""]]
    for column in ODD if kind == "odd" else map(KINDS[kind], texts):
        numbers = numtok.scan(column)
        assert len(numbers) == 0
        assert numbers.per_document().tolist() == [0] * (len(numbers.rows) + 1)
        assert numbers.to_float64().shape == numbers.to_float32().shape == (0,)
        assert numbers.to_decimal() == numbers.format().to_pylist() == []


def test_a_null_row_hides_its_bytes():
    assert with_documents(numtok.scan(strings([0, 1, 3], b"1\xff2", b"\x01"))) == [(0, "1")]
    # and what is not valid UTF-8 outside of a slice is not read
    assert with_documents(numtok.scan(DAMAGED[:1])) == [(0, "1")]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_arrow_text_is_not_copied(kind):
    array = pa.array(["12 apples", "7 pears", "x" * 100], kind)
    memory = np.frombuffer(array.buffers()[2], np.uint8)
    for given_array in (array, array[1:], pa.chunked_array([array])):
        assert np.shares_memory(numtok.scan(given_array).rows.text, memory)


@pytest.mark.parametrize("shift", [1, 2])
def test_foreign_memory_that_is_not_aligned(shift):
    data = pa.py_buffer(b"?" + b"abc 12345678 defg 9").slice(shift)
    places = pa.py_buffer(np.array([0, data.size], np.int32))
    array = pa.StringArray.from_buffers(1, places, data)
    assert surfaces(array[0].as_py()) == ["12345678", "9"]
    assert numtok.scan(array).text().to_pylist() == ["12345678", "9"]


# ---- Linear time


MILLION = 1_000_000
LONG = {
    "digits": ("7" * MILLION, 1),
    "fraction": ("0." + "7" * MILLION, 1),
    "list": (",".join("1234567890"[i % 10] for i in range(MILLION)), MILLION),
    "grouped": ("1" + ",234" * (MILLION // 4), 1),
    "grouped, broken at the end": ("1" + ",234" * (MILLION // 4) + ",5", MILLION // 4 + 2),
    "chain": ("x".join("1" * MILLION), MILLION),
    "chain, broken at the end": ("x".join("1" * MILLION) + ".2.3", 0),
    "hexadecimal chain": ("1x" * (MILLION // 2) + "0xF", 0),
    "dots": (".".join("1" * MILLION), 0),
    "leading dots": ("." * MILLION + "1", 1),
    "exponents": ("e".join("1" * MILLION), 0),
    "signed exponents": ("e-".join("1" * MILLION), 0),
    "exponent": ("1e" + "0" * MILLION + "5", 1),
    "long exponent": ("1e" + "5" * MILLION, 0),
    "words": ("a1" * MILLION, 0),
    "letters": ("a" * MILLION + "1", 0),
    "letters after": ("1" + "a" * MILLION, 1),
    "letters, then a digit": ("1" + "a" * MILLION + "1", 0),
    "hyphens": ("-" * MILLION + "1", 1),
    "hexadecimal": ("1a-" * (MILLION // 2), MILLION // 2),
    "UUIDs": (f"{UUID} " * (MILLION // 37), 0),
    "half UUIDs": ("12345678-1234-1234-" * (MILLION // 19), MILLION // 19 * 3),
    "wide digits": ("７" * (MILLION // 2), 1),
    "underscores": ("1" + "_1" * MILLION, 0),
}


@pytest.mark.parametrize("name", LONG)
def test_linear_time(name):
    """Two million bytes; anything that goes back over what it has read would take minutes."""
    text, count = LONG[name]
    numtok.scan(["1"])  # compile
    begin = time.process_time()
    assert len(numtok.scan([text])) == count
    assert time.process_time() - begin < 2


# ---- A user's own pattern


SIMPLE = r"[-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?"


def test_pattern_with_context():
    prices = Grammar.from_pattern(r"\$(?P<number>\d+(?:\.\d\d)?)")
    found = numtok.extract("é: $5, 6, $7.25", prices)
    assert [(number.text, number.start) for number in found] == [("5", 4), ("7.25", 11)]
    rows = numtok.scan(pa.array(["$1", None, "2", "$3"]), prices)
    assert with_documents(rows) == [(0, "1"), (3, "3")]
    swiss = Grammar.from_pattern(r"\d+(?:'\d{3})*", grouping="'")
    assert numtok.extract("1'234'567", swiss)[0].value == 1234567


@pytest.mark.slow
def test_pattern_that_backtracks_without_end():
    endless = Grammar.from_pattern(r"(?:\d|\d\d)+(?=x)|\d{2}")
    assert rows_of(numtok.scan(["12 13x"], endless))
    message = (
        r"document 1: the number pattern .* did not come to an end within 5 seconds on this"
        r" text of 62 characters, '1111"
    )
    with pytest.raises(GrammarError, match=message):
        numtok.scan(["12", "1" * 60 + "yx"], endless)


@pytest.mark.skipif(
    regex.fullmatch(r"\d", "\U00011de2") is None, reason="this regex knows no Unicode 17"
)
def test_a_pattern_reads_digits_that_python_does_not_know_yet():
    text = "5 \U00010d43\U00010d40e\U00011de2 \u0663"  # Unicode 16 and 17
    numbers = numtok.extract(text, Grammar.from_pattern(SIMPLE))
    assert [number.value for number in numbers] == [5, 3000, 3]


# ---- Options


OWN_PATTERN = Grammar.from_pattern(SIMPLE, grouping=None)


@pytest.mark.parametrize("grammar", [*PRESETS, OWN_PATTERN])
def test_options_round_trip(grammar):
    """Later options are saved only where they say something, which keeps older fingerprints."""
    options = grammar.to_dict()
    assert Grammar.from_dict(options) == grammar
    as_ever = "grouping signs exponent leading_dot unicode_digits accounting pattern"
    later = {"decimal": ".", "lakhs": False, "exponents": "eE", "currency_codes": False}
    said = {name for name, usual in later.items() if getattr(grammar, name) != usual}
    assert set(options) == set(as_ever.split()) | said


# ---- extract


def test_a_short_text_needs_neither_numba_nor_arrow(tmp_path):
    """What makes the first call of a process short."""
    new_process.run(
        "import sys, numtok\n"
        "[number] = numtok.extract('es sind ٣,5 km', 'european')\n"
        "assert (number.start, number.stop, str(number.value)) == (8, 11, '3.5')\n"
        "assert not {'numba', 'pyarrow', 'torch'} & sys.modules.keys()",
        tmp_path,
    )
