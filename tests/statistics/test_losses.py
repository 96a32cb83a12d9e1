"""What a representation would lose, as the statistics say, is what encoding all numbers loses; and
what is recommended follows from that.
"""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import numtok
from numtok import Digits, FloatBits, FoNE, Numbers, PlaceValue, Statistics, Subword, XVal
from numtok.representations import Representation, SingleToken, SpelledOut, parse
from numtok.representations.parse import name_of
from numtok.statistics.losses import Loss, candidates, fitted_xval, losses
from numtok.statistics.report import Report


def really_lost(representation: Representation, numbers: Numbers) -> tuple[int, int, int]:
    """(left as text, clipped, read back as another decimal), of all numbers."""
    numbers = numbers if representation.carries_sign else numbers.without_sign()
    fits = representation.fits(numbers)
    held = numbers.select(fits & ~representation.clipped(numbers))
    found = held
    if isinstance(representation, SingleToken):
        found = representation.decode(representation.encode(held))
    elif isinstance(representation, SpelledOut):
        found = Numbers.parse(representation.decode(representation.encode(held)))
    changed = sum(
        abs(now) != abs(was) for now, was in zip(found.to_decimal(), held.to_decimal(), strict=True)
    )
    return int((~fits).sum()), int(representation.clipped(numbers).sum()), changed


EVERY = [
    "xval:log",
    "bits",
    "bits:64",
    "fone:4,2",
    "fone:20,9",
    "place",
    "digits",
    "p10",
    "p1000",
    "b1999",
    "fp15",
    "exponent_bins",
    "logfourier",
    "subword",
]


@pytest.mark.parametrize("name", EVERY)
def test_the_losses_are_those_of_encoding_every_number(name: str, wiki_texts: list[str]) -> None:
    (representation,) = parse(name)
    numbers = numtok.scan([text[:30_000] for text in wiki_texts[:60]])
    (loss,) = losses(Statistics.of_numbers(numbers), [representation])
    left, clipped, changed = really_lost(representation, numbers)
    assert loss.numbers == len(numbers) and (loss.left_as_text, loss.clipped) == (left, clipped)
    assert abs(loss.rounded - changed) <= 0.002 * len(numbers)
    assert (loss.worst_error > 0) == (loss.rounded > 0)


@settings(max_examples=examples(40))
@given(
    st.lists(
        st.tuples(st.integers(-(10**12), 10**12), st.integers(-20, 20)), min_size=1, max_size=4
    )
)
def test_few_values_are_told_exactly(values: list[tuple[int, int]]) -> None:
    numbers = numtok.scan([" ".join(f"{mantissa}e{power}" for mantissa, power in values)])
    chosen = [one for name in EVERY for one in parse(name)]
    for loss in losses(Statistics.of_numbers(numbers), chosen):
        left, clipped, changed = really_lost(loss.representation, numbers)
        assert (loss.left_as_text, loss.clipped, loss.rounded) == (
            left,
            clipped,
            changed,
        ), loss.name


def test_a_scale_that_is_fitted_to_the_statistics_is_that_of_the_numbers(
    wiki_texts: list[str],
) -> None:
    numbers = numtok.scan([text[:30_000] for text in wiki_texts[:60]])
    statistics = Statistics.of_numbers(numbers)
    for log in (False, True):
        exact, found = XVal.fit(numbers, log=log), fitted_xval(statistics, log)
        lost = [
            int((one.clipped(numbers) | one.vanishing(numbers)).sum()) for one in (exact, found)
        ]
        assert found.clip == 5 and lost[0] <= lost[1] <= lost[0] + 0.002 * len(numbers)
    (loss,) = losses(statistics, [fitted_xval(statistics)])
    assert abs(loss.clipped - int(loss.representation.clipped(numbers).sum())) <= 0.002 * len(
        numbers
    )
    assert abs(loss.vanishing - int(loss.representation.vanishing(numbers).sum())) <= 0.002 * len(
        numbers
    )


@given(
    st.lists(st.tuples(st.floats(1e-30, 1e30), st.integers(1, 9)), min_size=1, max_size=20),
    st.booleans(),
)
def test_a_fit_to_counted_values_is_that_to_all_of_them(
    values: list[tuple[float, int]], log: bool
) -> None:
    each, counts = (np.array(column) for column in zip(*values, strict=True))
    for quantile in (None, 0.5, 0.99, 1.0):
        fitted = XVal.fit_values(each, quantile=quantile, log=log, counts=counts)
        assert fitted == XVal.fit_values(np.repeat(each, counts), quantile=quantile, log=log)


def test_quantiles_are_within_three_percent(wiki_texts: list[str]) -> None:
    numbers = numtok.scan(wiki_texts[:40])
    magnitudes = np.abs(numbers.to_float64())
    magnitudes = magnitudes[(magnitudes > 0) & np.isfinite(magnitudes)]
    shares = (0.001, 0.01, 0.5, 0.9, 0.999)
    expected = np.quantile(magnitudes, shares, method="inverted_cdf")
    assert np.allclose(Statistics.of_numbers(numbers).quantiles(shares), expected, rtol=1 / 32)


def test_costs_are_tokens_and_bytes_per_number() -> None:
    tok = numtok.Tokenizer.from_pretrained(None, [Subword()])
    statistics = Statistics.of_batch(["1 -22 333", "4444.5"], tokenizer=tok)
    found = {
        loss.name: loss
        for loss in losses(
            statistics,
            [
                XVal(),
                FloatBits(),
                FoNE(2, 1),
                PlaceValue(),
                Digits(),
                Digits(1),
                Subword(),
                *parse("p1000"),
            ],
        )
    }
    before = statistics.tokens.before / 4
    assert (found["xval"].tokens, found["xval"].bytes, found["xval"].compact_bytes) == (1, 4, None)
    assert (found["bits"].bytes, found["bits"].compact_bytes) == (32, 4)
    assert (
        found["fone:2,1"].tokens == pytest.approx(1.25 * 0.5 + before * 0.5)
        and found["fone:2,1"].bytes == 24
    )
    assert found["place"].tokens == pytest.approx(2 + (1 + 3 + 3 + 6) / 4) and found[
        "place"
    ].bytes == pytest.approx(2 * found["place"].tokens)
    assert (
        found["digits"].tokens == pytest.approx(2 + (1 + 2 + 1 + 4) / 4)
        and found["digits"].bytes == 0
    )
    assert found["digits:1"].tokens is None, "what was counted is that of groups of three"
    assert found["p1000"].tokens == 3 and found["subword"].tokens == before
    untold = {
        loss.name: loss
        for loss in losses(
            dataclasses.replace(statistics, tokens=Statistics().tokens),
            [XVal(), PlaceValue(), Subword()],
        )
    }
    assert (untold["xval"].tokens, untold["place"].tokens, untold["subword"].tokens) == (
        1,
        None,
        None,
    )


@pytest.mark.parametrize(
    "name",
    [
        "xval",
        "xval:log",
        "bits",
        "fone:16,9",
        "fone:3,0",
        "place",
        "digits",
        "digits:1,places",
        "p10",
        "p10:5",
        "logfourier",
        "exponent_bins",
    ],
)
def test_names_are_those_that_the_command_line_takes(name: str) -> None:
    (representation,) = parse(name)
    assert name_of(representation) == name


def test_one_of_a_users_own_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    from numtok.representations.registry import REPRESENTATIONS

    @dataclasses.dataclass(frozen=True)
    class Own(FloatBits):
        name = "own"

    monkeypatch.setitem(REPRESENTATIONS, "own", Own)
    assert "own" in {one.name for one in candidates(Statistics.of_batch(["5"]))}


# What is recommended
# --------------------------------------------------------------------------------------------------------


def corpus(kind: str) -> list[str]:
    random = np.random.default_rng(0)
    texts = {
        "years": [f"In {1900 + k % 120} there were {k % 300} of them" for k in range(500)],
        "prices": [f"{random.uniform(3, 900):.2f} €" for _ in range(500)],
        "measured": [f"{random.uniform(1, 99):.1f} m" for _ in range(500)],
        "coordinates": [f"{random.uniform(-90, 90):.12f}" for _ in range(500)],
        "hashes": [str(10**59 + int(random.integers(10**9)) * 7919) for _ in range(300)],
        "physics": [
            f"{random.uniform(1, 9.99):.2f}e{random.integers(-30, 30)}" for _ in range(500)
        ],
        "beyond": ["1e80", "-2e-70", "3e60"] + [f"{k}e{k % 30 - 15}" for k in range(1, 999)],
        "counts": [str(int(10 ** random.uniform(3, 7))) for _ in range(500)],
        "none": ["no numbers here"],
    }
    return texts[kind]


@pytest.mark.parametrize(
    ("kind", "chosen", "reason"),
    [
        ("none", "subword", "no numbers"),
        ("years", "fone:4,0", "integers of up to four digits"),
        ("prices", "xval", "have a fraction"),
        ("measured", "xval", "have a fraction"),
        ("coordinates", "fone:2,12", "float32 does not keep"),
        ("hashes", "place", "too long"),
        ("physics", "bits", "powers of ten"),
        ("beyond", "logfourier", "float32 cannot hold"),
        ("counts", "fone:7,0", "7 digits hold 99%"),
    ],
)
def test_the_first_rule_that_holds_decides(kind: str, chosen: str, reason: str) -> None:
    report = Report.of(Statistics.of_batch(corpus(kind)))
    assert report.recommendation.numbers == chosen
    assert reason in " ".join(report.recommendation.reasons)
    assert report.recommendation.options["numbers"] == chosen
    assert (
        report.recommendation == Report.of(report.statistics, [Subword()]).recommendation
    )  # whatever is compared


def test_the_options_that_are_recommended_encode(tmp_path: object) -> None:
    import shlex

    from click.testing import CliRunner
    from numtok_cli.main import cli

    for kind in ("years", "prices", "physics"):
        recommendation = Report.of(Statistics.of_batch(corpus(kind))).recommendation
        rows = "".join(json.dumps({"text": text}) + "\n" for text in corpus(kind)[:5])
        done = CliRunner().invoke(
            cli,
            [
                "encode",
                "-",
                "-o",
                f"{tmp_path}/{kind}.parquet",
                *shlex.split(recommendation.options),
            ],
            input=rows,
        )
        assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        ("007 008 12", "leading zeros"),
        ("say 3,14 or 2,71 kg", "2 times numbers look like one: 3,14"),
        ("12 345", "grouped by spaces"),
        ("-5 -6 7", "sign is a token of text"),
        ("5 1e999", "beyond float64"),
    ],
)
def test_what_looks_odd_is_remarked(text: str, remark: str) -> None:
    assert remark in " ".join(Report.of(Statistics.of_batch([text])).recommendation.remarks)
    assert Report.of(Statistics.of_batch(["1 and 2"])).recommendation.remarks == ()


def test_a_report_of_nothing_has_all_its_parts() -> None:
    for statistics in (
        Statistics(),
        Statistics.of_batch(["0 -0 0.0"]),
        Statistics.of_batch(["1e99999999999999999"]),
    ):
        report = Report.of(statistics)
        assert json.loads(json.dumps(report.to_json()))["recommendation"]["options"]
        assert all(loss.numbers == statistics.numbers for loss in report.losses)


def test_a_loss_says_its_options() -> None:
    (loss,) = losses(Statistics.of_batch(["5"]), [FoNE(3, 1)])
    assert (
        isinstance(loss, Loss)
        and loss.to_json()["options"] == FoNE(3, 1).to_dict()
        and loss.to_json()["name"] == "fone:3,1"
    )
