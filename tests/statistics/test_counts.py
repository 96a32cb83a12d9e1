"""What is counted of numbers is what a plain loop over ``numtok.extract`` counts, and adds up in
any order.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections import Counter
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pytest
import trained
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from places import SAMPLE
from plain_statistics import plain_statistics

from numtok import Grammar, Statistics, Tokenizer
from numtok.errors import InputError
from numtok.representations import Subword
from numtok.statistics.frequent import Frequent

HISTOGRAMS = (
    "significant_digits",
    "integer_digits",
    "fraction_digits",
    "positive_decades",
    "negative_decades",
    "zeros",
    "first_digits",
    "forms",
    "marks",
)

KINDS: dict[str, list[str | None]] = {
    "prose": [
        "On 5 May 2019 it was -3.50 °C, 1,234 people came; 1990's best: +7, 10km, 99%.",
        "",
        "no numbers at all",
        None,
    ],
    "code": [
        "x = [100, -200, 3e5, .5, 007]; y[3] = 0xFF + 1.5E-3  # v1.2",
        "for i in range(10): print(i * 2.0)",
    ],
    "table": ["year\tsum\n2019\t1,234.50\n2020\t-0.00\n1066\t.10\n2101\t0999"],
    "other scripts": ["価格は２０１９円、１,２３４.５０円 2020年 5月", "٤٢ كم و ٣.٥٠", "१२३ ५"],
    "one character": ["5", "-", "0", "-0", "٠"],
    "long": [
        "9" * 60
        + " 0."
        + "0" * 60
        + "1 123456789012345678 1234567890123456789 -1e400 1e-400 1e99999999999999999"
    ],
    "signs": ["(−5) −0 - 5 3--2 +0 =-1 (7)"],
    "nothing": [],
}


def held_to_the_oracle(texts: list[str | None], grammar: Grammar | None = None) -> None:
    plain, counted = plain_statistics(texts, grammar), Statistics.of_batch(texts, grammar)
    data = counted.to_json()
    assert (data["documents"], data["numbers"], data["number_bytes"]) == (
        len(texts),
        plain.numbers,
        plain.number_bytes,
    )
    assert data["without_text"] == texts.count(None) and data["bytes"] == sum(
        len((text or "").encode()) for text in texts
    )
    for name in (*HISTOGRAMS, "per_document", "years"):
        assert data[name] == plain[name], name
    listed = {Decimal(text): count for text, count in data["values"]["counts"].items()}
    assert sum(count for *_, count, _ in data["examples"]) == plain.numbers
    if not data["values"]["missed"]:
        assert listed == {Decimal(text): count for text, count in plain["values"].items()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "grammar",
    [
        Grammar(),
        Grammar.data(),
        Grammar(accounting=True, grouping="_"),
        Grammar(unicode_digits=False),
    ],
)
def test_the_counts_are_those_of_a_plain_loop(kind: str, grammar: Grammar) -> None:
    held_to_the_oracle(KINDS[kind], grammar)


def test_of_pages_too(wiki_texts: list[str]) -> None:
    held_to_the_oracle([text[:8000] for text in wiki_texts[:80:4]])


@given(
    st.lists(
        st.one_of(st.none(), st.text(alphabet="0123456789.,-+eE ()٤−_x", max_size=40)), max_size=5
    )
)
@example(["1.e5 007 0.0 .0 -.5e-3 1,000.10 1e0000005"])
def test_of_anything(texts: list[str | None]) -> None:
    held_to_the_oracle(texts)


# Units
# ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("10km away", "km"),
        ("10 km/h", "km/h"),
        ("5 km² of", "km²"),
        ("5 m/", "m"),
        ("20 °C", "°C"),
        ("45°N", "°N"),
        ("3°Celsius", "°"),
        ("5%", "%"),
        ("5 ‰", "‰"),
        ("7 $", "$"),
        ("3 €", "€"),
        ("2019年に", "年"),
        ("5 µs", "µs"),
        ("5\u202fΩ", "Ω"),
        ("5\u00a0лет", "лет"),
        ("5  km", None),
        ("5, km", None),
        ("5 (km)", None),
        ("5", None),
        ("5 _km", None),
        ("5 – 6", None),
        ("5 “km”", None),
        ("5 Donaudampfschiffe", "Donaudampfschiff"),
        ("5 длиннохвостый", "длиннохв"),
    ],
)
def test_the_word_behind_a_number_is_counted(text: str, word: str | None) -> None:
    units = Statistics.of_batch([text]).to_json()["units"]["counts"]
    assert units == ({} if word is None else {word: 1})


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("3,14", "decimal comma"),
        ("-1.234,56", "decimal comma"),
        ("1,2,3", None),
        ("1,23,4,5", None),
        ("1, 2", None),
        ("12 345", "grouped by space"),
        ("1234 567", None),
        ("12 34", None),
        ("12\u202f345", "grouped by thin space"),
        ("12\u00a0345", "grouped by thin space"),
        ("12'345", "grouped by apostrophe"),
        ("12’345", "grouped by apostrophe"),
        ("1.5 345", None),
        ("12,34,567", "grouped in lakhs"),
        ("-1,23,45,678.90", "grouped in lakhs"),
        ("12,34,56", None),
        ("123,45,678", None),
        ("(3,14)", None),
        ("f(3,14", None),
        ("3,14]", None),
        ('"3,14"', None),
        ("\n3,14\n", None),
        ("a,3,14", None),
        ("3,14\n", None),
        ("€3,14", "decimal comma"),
        ("3,14,", "decimal comma"),
    ],
)
def test_numbers_that_another_grammar_would_read_as_one_are_told(
    text: str, hint: str | None
) -> None:
    assert Statistics.of_batch([f"x {text} y"]).to_json()["side_by_side"] == (
        {} if hint is None else {hint: 1}
    )


# Adding up
# --------------------------------------------------------------------------------------------------------------

documents = st.lists(st.text(alphabet="0123456789.,- km%", max_size=30), max_size=4)


@settings(max_examples=examples(40))
@given(st.lists(documents, min_size=3, max_size=3))
def test_parts_add_up_to_the_whole_in_any_order(parts: list[list[str]]) -> None:
    counted = [Statistics.of_batch(part) for part in parts]
    whole = Statistics.of_batch([text for part in parts for text in part])
    for order in itertools.permutations(counted):
        assert Statistics.merge(order) == whole
    one, two, three = counted
    assert (one + two) + three == one + (two + three) == whole
    assert whole + Statistics() == whole == Statistics() + whole
    assert Statistics.from_json(json.loads(json.dumps(whole.to_json()))) == whole


def test_pages_cut_anywhere_add_up_to_the_whole(wiki_texts: list[str]) -> None:
    texts = [text[:20_000] for text in wiki_texts[:40]]
    whole = Statistics.of_batch(texts).to_json()
    for cut in (1, 17, 39):
        parts = [Statistics.of_batch(texts[cut:]), Statistics.of_batch(texts[:cut])]
        for merged in (
            Statistics.merge(parts),
            Statistics.merge(Statistics.from_json(part.to_json()) for part in parts),
        ):
            data = merged.to_json()
            assert {name: data[name] for name in data if name not in ("values", "units")} == {
                name: whole[name] for name in whole if name not in ("values", "units")
            }


pairs = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 50)), max_size=30)


@given(st.lists(pairs, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_the_most_frequent_are_within_their_bound_however_they_are_merged(
    parts: list[list[tuple[int, int]]], random: object
) -> None:
    capacity, true = 4, dict.fromkeys(range(13), 0)
    summaries = []
    for part in parts:
        for value, times in part:
            true[value] += times
        counts: Counter[str] = Counter()
        for value, times in part:
            counts[str(value)] += times
        summaries.append(Frequent.of(counts, capacity))
    random.shuffle(summaries)  # type: ignore[attr-defined]
    merged = functools.reduce(lambda one, other: one + other, summaries)
    listed = {int(value): times for value, times in merged.counts.items()}
    assert len(listed) <= capacity and merged.missed <= sum(true.values()) / (capacity + 1)
    for value, times in true.items():
        assert listed.get(value, 0) <= times <= listed.get(value, 0) + merged.missed


def test_statistics_of_two_tokenizers_are_not_added_up() -> None:
    tokenizers = (
        Tokenizer.from_pretrained(None, [Subword()]),
        Tokenizer(trained.config("gpt2"), [Subword()]),
    )
    ours, other = (Statistics.of_batch(["a 5"], tokenizer=tokenizer) for tokenizer in tokenizers)
    with pytest.raises(InputError, match="two tokenizers"):
        ours + other


def test_json_of_the_sample_is_golden(golden: Callable[[str, str], None]) -> None:
    texts = [json.loads(line)["text"] for line in SAMPLE.read_text("utf-8").splitlines()]
    golden(
        "statistics.json",
        json.dumps(Statistics.of_batch(texts).to_json(), indent=1, ensure_ascii=False) + "\n",
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "no statistics"),
        ({"forms": {"odd": 1}}, "damaged"),
        ({"numbers": None}, "damaged"),
        ({"first_digits": {"10": 1}}, "damaged"),
    ],
)
def test_json_of_something_else_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Statistics.from_json(Statistics.of_batch(["5 km"]).to_json() | change)
    with pytest.raises(InputError, match="no statistics"):
        Statistics.from_json([1])  # type: ignore[arg-type]


# Size and tokens
# ----------------------------------------------------------------------------------------------------------


def test_a_number_of_a_million_digits_and_many_values_stay_small() -> None:
    many = " ".join(str(value * 7919) for value in range(30_000))
    counted = Statistics.of_batch(["7" * 1_000_000 + " 1e-99999", many])
    assert counted.numbers == 30_002 and counted.to_json()["significant_digits"]["40"] == 1
    assert len(json.dumps(counted.to_json())) < 60_000
    assert Statistics.from_json(counted.to_json()) == counted


def test_tokens_are_those_that_overlap_numbers() -> None:
    tok = Tokenizer.from_pretrained(None, [Subword()])
    texts = ["It weighs 12345.678 kg", "none", "1 and 22"]
    counted = Statistics.of_batch(pa.array(texts), tokenizer=tok).tokens
    encoded = [tok.encode(text) for text in texts]
    assert counted.tokens == sum(map(len, encoded)) and counted.numbers == 3
    spelled = Tokenizer.from_pretrained(None, "place").encode_batch(texts)
    assert counted.spelled["p1000"] == 9 and counted.spelled["place"] == 2 * 3 + len("12345.678122")
    text_ids = sum(len(row) for row in spelled["input_ids"].to_pylist()) - counted.spelled["place"]
    assert text_ids <= counted.tokens - counted.before + 3
