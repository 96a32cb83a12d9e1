"""Check what is counted of numbers is what a plain loop over ``numtok.extract`` counts, and adds up in
any order; of files, however they are read, and of encoded ones what can be known.
"""

import functools
import itertools
import json
import re
import unicodedata
from collections import Counter, defaultdict
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from places import SAMPLE

from numtok import Grammar, Statistics, Tokenizer, corpus_stats, encode_files, extract
from numtok.corpus.summary import Progress
from numtok.errors import SchemaError
from numtok.representations import Subword
from numtok.statistics.counters import Frequent
from numtok.statistics.report import Report

DIGITS = ("significant_digits", "integer_digits", "fraction_digits", "first_digits",
          "positive_decades", "negative_decades", "zeros")  # fmt: skip
WRITTEN = ("forms", "marks", "years")
TEXTS = [json.loads(line)["text"] for line in SAMPLE.read_text("utf-8").splitlines()]


KINDS: list[str | None] = [
    "On 5 May 2019 it was -3.50 °C, 1,234 people came; 1990's best: +7, 10km, 99%.",
    "",
    None,
    "x = [100, -200, 3e5, .5, 007]; y[3] = 0xFF + 1.5E-3  # v1.2",
    "year\tsum\n2019\t1,234.50\n2020\t-0.00\n1066\t.10\n2101\t0999",
    "価格は２０１９円、１,２３４.５０円 2020年 5月 ٤٢ كم و ٣.٥٠ १२३ ५",
    *("5", "-", "0", "-0", "٠"),
    f"{'9' * 60} 0.{'0' * 60}1 123456789012345678 1234567890123456789 -1e400 1e-400"
    " 1e99999999999999999",
    "(−5) −0 - 5 3--2 +0 =-1 (7)",
]


# The oracle: a loop over what ``numtok.extract`` finds, with Python's own decimals and strings

YEAR = re.compile(r"[0-9]{4}")
SIGNS = {"-": "minus", "+": "plus", "−": "minus U+2212", "(": "parentheses"}


def of_value(value):
    """Yield (what is counted, label) of a decimal."""
    sign, digits, exponent = value.as_tuple()
    written = "".join(map(str, digits)).lstrip("0")
    significant = written.rstrip("0")
    lowest = exponent + len(written) - len(significant)
    decade = exponent + len(written) - 1
    if not significant:
        lowest, decade = 0, -1
        yield "zeros", "-0" if sign else "0"
    else:
        yield "negative_decades" if sign else "positive_decades", min(max(decade, -50), 50)
        yield "first_digits", significant[0]
    yield "significant_digits", min(len(significant), 40)
    yield "integer_digits", min(max(decade + 1, 0), 40)
    yield "fraction_digits", min(max(-lowest, 0), 40)
    if len(significant) <= 18:
        mark = "-" if sign and significant else ""
        yield "values", f"{mark}{significant}e{lowest}" if significant else "0"


def of_form(text):
    """Yield (what is counted, label) of a number as it is written."""
    mantissa, *exponent = re.split("[eEdD]", text)
    body = mantissa.strip("-+−()").replace("٫", ".")
    whole, _, fraction = body.partition(".")
    grouped = any(unicodedata.category(character) != "Nd" for character in whole)
    form = " ".join(["grouped"] * grouped + ["decimal"] * bool(fraction)) or "plain"
    form = "scientific" if exponent else form
    yield "forms", form
    digits = [unicodedata.decimal(one) for one in whole if unicodedata.category(one) == "Nd"]
    marks = {
        SIGNS.get(mantissa[0], ""): mantissa[0] in SIGNS,
        "leading zeros": len(digits) > 1 and digits[0] == 0,
        "trailing zeros": fraction != "" and unicodedata.decimal(fraction[-1]) == 0,
        "leading point": body.startswith("."),
        "other digits": any(ord(one) > 127 and unicodedata.category(one) == "Nd" for one in body),
    }
    yield from (("marks", mark) for mark, there in marks.items() if there)
    if form == "plain" and YEAR.fullmatch(text) and 1000 <= int(text) <= 2100:
        yield "years", int(text) // 10 * 10


def held_to_the_oracle(texts, grammar=None):
    plain, number_bytes = defaultdict(Counter), 0
    for text in texts:
        numbers = extract(text or "", grammar)
        plain["per_document"][str(1 << (len(numbers).bit_length() - 1) if numbers else 0)] += 1
        for number in numbers:
            number_bytes += len(number.text.encode())
            for what, label in (*of_value(number.value), *of_form(number.text)):
                plain[what][str(label)] += 1
            before = re.search("[0-9A-Za-z_\x80-\U0010ffff] $", text[: number.start])
            if number.text[0] == "-" and before:
                plain["marks"]["minus after a word"] += 1
    count = plain["forms"].total()
    data = Statistics.of_batch(texts, grammar).to_json()
    sizes = [len((text or "").encode()) for text in texts]
    assert (data["documents"], data["numbers"]) == (len(texts), count)
    assert (data["without_text"], data["bytes"]) == (texts.count(None), sum(sizes))
    assert data["number_bytes"] == number_bytes
    for name in (*DIGITS, *WRITTEN, "per_document"):
        assert data[name] == plain[name], name
    assert sum(one for *_, one, _ in data["examples"]) == count
    if not data["values"]["missed"]:
        listed = {Decimal(text): one for text, one in data["values"]["counts"].items()}
        assert listed == {Decimal(text): one for text, one in plain["values"].items()}


GRAMMARS = (Grammar(), Grammar.data(), Grammar(accounting=True, grouping="_"),
            Grammar(unicode_digits=False))  # fmt: skip


@pytest.mark.parametrize("grammar", GRAMMARS)
def test_the_counts_are_those_of_a_plain_loop(grammar):
    for texts in (*([text] for text in KINDS), KINDS, []):
        held_to_the_oracle(texts, grammar)


def test_of_pages_too(wiki_texts):
    held_to_the_oracle([text[:8000] for text in wiki_texts[:80:4]])


some_text = st.text(alphabet="0123456789.,-+eE ()٤−_x", max_size=40)


@given(st.lists(st.one_of(st.none(), some_text), max_size=5))
@example(["1.e5 007 0.0 .0 -.5e-3 1,000.10 1e0000005"])
def test_of_anything(texts):
    held_to_the_oracle(texts)


UNITS = """10km away=km|10 km/h=km/h|5 km² of=km²|5 m/=m|20 °C=°C|45°N=°N|3°Celsius=°|5%=%|5 ‰=‰
7 $=$|3 €=€|2019年に=年|5 µs=µs|5\u202fΩ=Ω|5\u00a0лет=лет|5  km=|5, km=|5 (km)=|5=|5 _km=|5 – 6=
5 “km”=|5 Donaudampfschiffe=Donaudampfschiff|5 длиннохвостый=длиннохв|5 aaaaaaaaaaaaaa年年=aaaaaaaaaaaaaa"""


def test_the_word_behind_a_number_is_counted():
    for case in UNITS.replace("\n", "|").split("|"):
        text, _, word = case.rpartition("=")
        for where in (text, f"{text}\n{text}"):
            units = Statistics.of_batch([where, ""]).to_json()["units"]["counts"]
            assert units == ({word: where.count(text)} if word else {}), case


HINTS = {
    "decimal comma": ["3,14", "-1.234,56", "€3,14", "3,14,"],
    "grouped by space": ["12 345"],
    "grouped by thin space": ["12\u202f345", "12\u00a0345"],
    "grouped by apostrophe": ["12'345", "12’345"],
    "grouped in lakhs": ["12,34,567", "-1,23,45,678.90"],
    "": ["1,2,3", "1,23,4,5", "1, 2", "1234 567", "12 34", "1.5 345", "12,34,56", "123,45,678",
         "(3,14)", "f(3,14", "3,14]", '"3,14"', "\n3,14\n", "a,3,14", "3,14\n"],
}  # fmt: skip


@pytest.mark.parametrize("hint", HINTS)
def test_numbers_that_another_grammar_would_read_as_one_are_told(hint):
    for text in HINTS[hint]:
        found = Statistics.of_batch([f"x {text} y"]).to_json()["side_by_side"]
        assert found == ({hint: 1} if hint else {}), text


def test_hyphens_that_read_as_signs_are_counted():
    """What stands behind a word and a space: where a hyphen was meant, the value has a wrong sign."""
    text = "EF 75 -300mm, COVID -19, é -1; not (-5), = -5, 10-20,  -5 or 1 +5"
    counted = Statistics.of_batch([text, "-7", " -7"]).to_json()["marks"]["minus after a word"]
    assert counted == 3
    told = " ".join(Report.of(Statistics.of_batch([text])).recommendation.remarks)
    assert "3 have a minus sign after a word and a space" in told and "75 -300mm" in told


# Adding up

documents = st.lists(st.text(alphabet="0123456789.,- km%", max_size=30), max_size=4)


@settings(max_examples=examples(20))
@given(st.lists(documents, min_size=3, max_size=3))
def test_parts_add_up_to_the_whole_in_any_order(parts):
    counted = [Statistics.of_batch(part) for part in parts]
    whole = Statistics.of_batch([text for part in parts for text in part])
    for order in itertools.permutations(counted):
        assert Statistics.merge(order) == whole
    one, two, three = counted
    assert (one + two) + three == one + (two + three) == whole
    assert whole + Statistics() == whole == Statistics() + whole
    assert Statistics.from_json(json.loads(json.dumps(whole.to_json()))) == whole


pairs = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 50)), max_size=30)


@given(st.lists(pairs, min_size=1, max_size=4))
def test_the_most_frequent_are_within_their_bound_however_they_are_merged(parts):
    capacity, true = 4, Counter[str]()
    summaries = []
    for part in parts:
        counts = Counter[str]()
        for value, times in part:
            counts[str(value)] += times
        true += counts
        summaries.append(Frequent.of(counts, capacity))
    for order in itertools.permutations(summaries):
        merged = functools.reduce(lambda one, other: one + other, order)
        assert len(merged.counts) <= capacity
        assert merged.missed <= sum(true.values()) / (capacity + 1)
        for value, times in true.items():
            listed = merged.counts.get(value, 0)
            assert listed <= times <= listed + merged.missed


def test_json_of_the_sample_is_golden(golden):
    data = Statistics.of_batch(TEXTS).to_json()
    golden("statistics.json", json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def test_a_number_of_a_million_digits_and_many_values_stay_small():
    many = " ".join(str(value * 7919) for value in range(30_000))
    counted = Statistics.of_batch(["7" * 1_000_000 + " 1e-99999", many])
    assert counted.numbers == 30_002 and counted.to_json()["significant_digits"]["40"] == 1
    assert len(json.dumps(counted.to_json())) < 60_000
    assert Statistics.from_json(counted.to_json()) == counted


@pytest.mark.parametrize(
    ("number", "example"),
    [
        ("1234567890123456789012", "1.23456789012345678e+21"),
        ("-1000000000000000000001", "1e+21"),
        ("123456789012345678", "1.23456789012345678e+17"),
    ],
)
def test_examples_have_the_first_eighteen_digits_and_as_many_as_the_number(number, example):
    counted = Statistics.of_batch([number])
    ((*_, count, values),) = counted.to_json()["examples"]
    assert (count, values) == (1, {example: 1})
    digits = number.strip("-")
    (found,) = counted.examples.numbers().to_decimal()
    longer = len(digits) - 19
    assert found == (int(digits) if longer < 0 else int(digits[:18] + "0" * longer + "1"))


def test_tokens_are_those_that_overlap_numbers():
    tok = Tokenizer.from_pretrained(None, [Subword()])
    texts = ["It weighs 12345.678 kg", "none", "1 and 22"]
    counted = Statistics.of_batch(pa.array(texts), tokenizer=tok).tokens
    assert counted.tokens == sum(len(tok.encode(text)) for text in texts) and counted.numbers == 3
    assert counted.spelled["p1000"] == 9 and counted.spelled["place"] == 2 * 3 + len("12345.678122")
    spelled = Tokenizer.from_pretrained(None, "place").encode_batch(texts)
    text_ids = sum(map(len, spelled["input_ids"].to_pylist())) - counted.spelled["place"]
    assert text_ids <= counted.tokens - counted.before + 3


# Files

OF_VALUES = ("documents", "numbers", "per_document", "smallest", "largest", "magnitudes")


@pytest.mark.parametrize(
    ("layout", "suffix", "keep_text"),
    [("number", "parquet", True), ("token", "arrow", True), ("number", "arrow", False)],
)
def test_an_encoded_file_has_what_it_stores_of_the_numbers_of_its_texts(
    layout, suffix, keep_text, tmp_path
):
    path = tmp_path / f"a.{suffix}"
    encode_files(SAMPLE, path, numbers="place", keep_text=keep_text, layout=layout)
    encoded, raw = corpus_stats(path).to_json(), corpus_stats(SAMPLE).to_json()
    del raw["marks"][
        "minus after a word"
    ]  # the word stands in the text around, which is not stored
    exact = (*DIGITS, *WRITTEN, "values", "examples", "beyond_float64", "written")
    for name in (*OF_VALUES, *(exact if keep_text else ())):
        assert encoded[name] == raw[name], name
    assert encoded["in_text"] == encoded["bytes"] == encoded["number_bytes"] == 0
    assert encoded["units"]["counts"] == {} and encoded["tokens"]["numbers"] == 0
    if not keep_text:
        zeros = sum(raw["zeros"].values()) + raw["beyond_float64"]["zero"]
        assert encoded["written"] == 0 and encoded["forms"] == {}
        assert sum(encoded["zeros"].values()) == zeros


def test_what_an_encoded_file_does_not_tell(tmp_path):
    path = tmp_path / "a.parquet"
    summary = encode_files(SAMPLE, path, numbers="fone:3,1", keep_text=True, keep_columns=["id"])
    counted = corpus_stats(path)
    assert counted.numbers == summary.numbers - sum(summary.left_as_text.values())
    assert counted.negative == 0  # the sign is text
    assert corpus_stats(path, text_column="id") == corpus_stats(SAMPLE, text_column="id")
    pq.write_table(pq.read_table(path).drop_columns(["number_value"]), tmp_path / "b.parquet")
    with pytest.raises(SchemaError, match="number_value"):
        corpus_stats(tmp_path / "b.parquet")


def test_null_rows_and_infinite_values(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "5 -1e400 1e400"}\n{"text": null}\n{"text": "7"}\n')
    encode_files(tmp_path / "a.jsonl", tmp_path / "a.parquet", numbers="place")
    counted = corpus_stats(tmp_path / "a.parquet")
    assert (counted.documents, counted.without_text, counted.numbers) == (3, 1, 4)
    assert counted.counts["beyond_float64"].tolist() == [2, 0]
    assert (counted.smallest, counted.largest) == (5, 7)


def test_batches_workers_and_kinds_of_files_change_nothing(tmp_path):
    whole = Statistics.of_batch(TEXTS).to_json() | {"tokens": None}
    for workers, batch_bytes in ((1, 1 << 20), (3, 300), (2, 1)):
        counted = corpus_stats(SAMPLE, workers=workers, batch_bytes=batch_bytes)
        assert counted.to_json() | {"tokens": None} == whole
    assert corpus_stats(SAMPLE, grammar="data").to_json() | {"tokens": None} != whole
    lines = [text.replace("\n", " ") for text in TEXTS]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    pq.write_table(pa.table({"body": lines}), tmp_path / "b.parquet")
    encode_files(SAMPLE, tmp_path / "c.arrow", numbers="place", keep_text=True)
    counted = corpus_stats(tmp_path)
    assert (counted.numbers, counted.in_text, counted.written) == (549, 366, 549)
    assert counted.tokens.bytes == 2 * sum(len(text.encode()) for text in lines)


def test_progress_and_an_empty_corpus(tmp_path):
    told: list[Progress] = []
    corpus_stats(SAMPLE, progress=told.append)
    assert told[-1].read == told[-1].total == SAMPLE.stat().st_size and told[-1].documents == 31
    (tmp_path / "a.jsonl").write_text("")
    assert corpus_stats(tmp_path / "a.jsonl").numbers == 0
