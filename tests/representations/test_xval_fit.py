"""xVal's scale: fitted to a corpus, given by hand, and what becomes of the numbers it loses."""

import json
import re
import sys
from decimal import Decimal

import command
import numpy as np
import pyarrow.parquet as pq
import pytest
import trained
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from input_files import write_texts
from places import SAMPLE

import numtok
from numtok import Numbers
from numtok.corpus import fit as fitting
from numtok.corpus import tokenizer_of
from numtok.corpus.encode import encode_corpus
from numtok.corpus.encode_options import EncodeOptions
from numtok.corpus.fit import ScaleFit
from numtok.errors import RepresentationError
from numtok.representations import FloatBits, FoNE, XVal, parse
from numtok.representations.xval import VANISHING

ODD = st.sampled_from([0.0, 1.0, 2014.0, 5e-324, 1.7e308, -1e-310])
AVOGADRO = [*(f"{k}" for k in range(1, 1000)), "6.02e23"]


def test_fit_keeps_all_where_it_can():
    numbers = Numbers.parse(["1", "-200", "0", "1e400", "50"])
    xval = XVal.fit(numbers)
    assert xval == XVal(scale=5.0 / 200, clip=5.0)
    kept = numbers.select(np.array([0, 1, 2, 4]))
    assert not xval.clipped(kept).any() and not xval.near_zero(kept).any()
    columns = xval.encode(kept)
    assert columns["number_scaled"].to_pylist() == pytest.approx([0.025, -5, 0, 1.25])
    assert xval.decode(columns).to_float64().tolist() == pytest.approx([1, -200, 0, 50], rel=1e-7)


def test_scale():
    numbers, xval = Numbers.parse(["250", "-0", "0.5", "1e38"]), XVal(scale=0.01)
    scaled = xval.encode(numbers)["number_scaled"]
    assert scaled.to_pylist() == [2.5, -0.0, np.float32(0.005), np.float32(1e36)]
    back = xval.decode({"number_scaled": scaled})
    assert back.format().to_pylist() == ["250", "-0", "0.5", "1e+38"]
    for scale, literal, fits in [
        (1e-10, "1e40", True),
        (1e-10, "1e-40", False),
        (1e-10, "1e300", False),
        (1e-10, "0", True),
        (1e10, "1e35", False),
        (1e10, "1e-50", True),
        (1e10, "-1e20", True),
    ]:
        assert XVal(scale=scale).fits(Numbers.parse([literal])).tolist() == [fits]


@pytest.mark.parametrize(
    ("scale", "literal"),
    [(1e30, "1.5e-45"), (1e30, "-2e-60"), (1e-30, "1e60"), (8.6269e-299, "1.7976931348623157e308")],
)
def test_decodes_numbers_that_float32_holds_only_when_they_are_scaled(scale, literal):
    numbers, xval = Numbers.parse([literal]), XVal(scale=scale)
    (back,) = xval.decode(xval.encode(numbers)).to_decimal()
    assert abs(back / Decimal(literal) - 1) < Decimal("2e-7")


def test_clip():
    numbers = Numbers.parse(["5", "5.0001", "-7", "-5", "0", "1e400", "-1e400", "1e-60"])
    clipping, kept = XVal(clip=5.0, overflow="clip"), XVal(clip=5.0)
    assert clipping.encode(numbers)["number_scaled"].to_pylist()[:7] == [5, 5, -5, -5, 0, 5, -5]
    assert clipping.clipped(numbers).tolist() == [False, True, True, False, False, True, True, True]
    # A value beyond the clip is clipped, as the paper has it; one beyond float64, which no column
    # would hold, follows the overflow policy.
    assert kept.fits(numbers).tolist() == [True] * 5 + [False] * 3
    large = Numbers.parse(["1e300", "-1e39", "2"])
    assert kept.fits(large).all() and kept.clipped(large).tolist() == [True, True, False]
    # 0.1 as float32 is the clip itself
    assert XVal(scale=1.0, clip=0.1).clipped(Numbers.parse(["0.1"])).tolist() == [False]


# XVal.fit


def test_one_freak_number_does_not_make_the_others_vanish():
    numbers = Numbers.parse(AVOGADRO)
    xval = XVal.fit(numbers)
    assert xval.scale == pytest.approx(5 / 999, rel=1e-3)
    assert (int(xval.clipped(numbers).sum()), int(xval.near_zero(numbers).sum())) == (1, 0)
    largest = XVal.fit(numbers, quantile=1)
    assert largest.scale == pytest.approx(5 / 6.02e23, rel=1e-3)
    assert (int(largest.clipped(numbers).sum()), int(largest.near_zero(numbers).sum())) == (0, 999)


@pytest.mark.thorough
@settings(max_examples=examples(50))
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False) | ODD, max_size=30), st.booleans())
@example(values=[1.7972681524083397e308], log=False)
@example(values=[1.0, 5e-324, 5e-324], log=True)
def test_fit_loses_the_fewest(values, log):
    """No other of the magnitudes, scaled to 5, loses fewer, and the logarithm of none is clipped;
    the scale is a number like others, whatever the corpus.
    """
    numbers = Numbers.parse([repr(value) for value in values])
    magnitudes = [abs(value) for value in values if value]
    if not magnitudes:
        with pytest.raises(RepresentationError, match="so there is no scale to fit"):
            XVal.fit(numbers)
        return
    xval = XVal.fit(numbers, log=log)
    assert 0 < xval.scale < np.inf and xval.clip == 5 and xval.log == log
    assert xval.scale == float(f"{xval.scale:.4g}")  # so that it can be typed again
    assert np.isfinite(xval.encode(numbers)["number_scaled"].to_numpy()).all()
    units = [float(np.log1p(one) / np.log(10)) if log else one for one in magnitudes]

    def lost(most, least):
        return sum(one > most or one < least for one in units)

    # the scale is rounded down, so this may be beyond the largest double
    at = min(5 / xval.scale, sys.float_info.max)
    if log:
        assert at * 1.002 >= max(units) or xval.scale >= 1e300
        return
    fewest = min(lost(largest, largest * (VANISHING / 5)) for largest in units)
    assert lost(at * 1.002, at * VANISHING / 5 * 0.998) <= fewest or xval.scale >= 1e300


def test_fit_to_a_quantile_clips_the_rest():
    numbers = Numbers.parse([*range(1, 1000), 10**9])
    xval = XVal.fit(numbers, target=2.0, quantile=0.99)
    assert xval.clip == 2.0 and xval.scale == pytest.approx(2 / 990, rel=1e-3)
    assert int(xval.clipped(numbers).sum()) == 10
    assert max(xval.encode(numbers)["number_scaled"].to_pylist()) == 2.0


def test_vanishing_is_what_a_model_can_hardly_tell_from_zero():
    xval = XVal(scale=1e-3)
    assert xval.near_zero(Numbers.parse(["0.9", "-0.9", "1e-30"])).all()
    assert not xval.near_zero(Numbers.parse(["0", "-0", "1.1", "1e30"])).any()
    assert not FloatBits().near_zero(Numbers.parse(["1e-30"])).any()


# xval:log


@pytest.mark.thorough
@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([1.0, 0.21, 5.0, 1e-3]))
def test_log_is_the_formula_and_comes_back_within_the_stated_error(value, scale):
    xval, x = XVal(scale=scale, log=True), abs(value)
    numbers = Numbers.parse([repr(value)])
    exact = (1 + Decimal(x)).log10() * Decimal(scale)
    if x < 1e-20:  # 28 digits are too few for 1 + x; the series is x / ln 10
        exact = Decimal(x) / Decimal(10).ln() * Decimal(scale)
    if value and exact < Decimal("1.2e-38"):  # subnormal or zero
        return
    assert xval.fits(numbers).all()
    (stored,) = xval.encode(numbers)["number_scaled"].to_pylist()
    assert abs(Decimal(abs(stored)) - exact) <= exact * Decimal(2**-24 * 1.001)
    (back,) = xval.decode(xval.encode(numbers)).to_float64()
    bound = 2**-24 * (1 + 1 / x) * np.log1p(x) if x and 1 / x < np.inf else 2**-24
    assert abs(back - value) <= x * bound * 1.001
    assert np.signbit(stored) == np.signbit(back) == np.signbit(value)


def test_range_of_log():
    numbers = Numbers.parse(["0", "1.7e-45", "1.7976931348623157e308", "1e-46", "1e309", "-1e400"])
    xval, clipping = XVal(log=True), XVal(log=True, overflow="clip")
    assert xval.fits(numbers).tolist() == [True, True, True, False, False, False]
    assert clipping.clipped(numbers).tolist() == [False, False, False, True, True, True]
    columns = clipping.encode(numbers)
    values = columns["number_scaled"].to_numpy()
    assert np.isfinite(values).all() and values[3] > 0
    assert values[4] == -values[5] == pytest.approx(308.25, rel=1e-4)
    back = clipping.decode(columns).to_float64()
    assert np.isfinite(back).all() and back[2] == pytest.approx(1.7976931348623157e308, rel=5e-5)


# Corpora


def fitted(folder, paths, numbers, **options):
    """(summary, table) of the files encoded with a fitted scale."""
    tokenizer = numtok.Tokenizer.from_pretrained(trained.source("gpt2"), numbers)
    out, fit = folder / "out.parquet", ScaleFit(**options)
    summary = encode_corpus(paths, out, tokenizer, EncodeOptions(overwrite=True), fit=fit)
    return summary, pq.read_table(folder / "out.parquet")


def test_fit_looks_at_all_files(tmp_path):
    paths = [
        write_texts(tmp_path / "a.jsonl", ["a 250 -1000", "none", "b 1e400"]),
        write_texts(tmp_path / "b.jsonl", ["4 5 6 0"]),
    ]
    summary, table = fitted(tmp_path, paths, [FloatBits(), XVal(overflow="clip")])
    described = json.loads(table.schema.metadata[b"numtok"])["numbers"][1]
    assert described == XVal(0.004887, 5.0, overflow="clip").to_dict()
    assert (summary.fit.documents, summary.fit.numbers) == (4, 6)
    assert 1000 <= summary.fit.largest < 1000 * 33 / 32
    summary, _ = fitted(tmp_path, paths, [XVal()], quantile=0.5)
    assert summary.fit.largest == pytest.approx(6, rel=1 / 31)
    summary, _ = fitted(tmp_path, paths, [XVal()], quantile=0.5, clip=20.0)
    assert summary.fit.xval.clip == 20 and summary.clipped == {"xval": 2}
    # a number that stays text for another representation does not count
    paths = [write_texts(tmp_path / "in.jsonl", ["12345678 1 2 300"])]
    summary, _ = fitted(tmp_path, paths, [XVal(), FoNE(3, 0)])
    assert summary.fit.largest == pytest.approx(300, rel=1 / 31)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (fitting.FIT_FILES + 8, 1),
        pytest.param(4, fitting.FIT_BYTES // 1000, marks=pytest.mark.slow),
    ],
    ids=["many", "large"],
)
def test_fit_reaches_the_last_of_many_files(files, words, tmp_path):
    """And looks at a part only, of many files or of large ones."""
    numbers = [*range(10, 10 + files - 1), 1000]
    texts = {number: f"{number}{' and more' * words}" for number in numbers}
    paths = [write_texts(tmp_path / f"{number}.jsonl", [texts[number]] * 50) for number in numbers]
    summary, _ = fitted(tmp_path, paths, [XVal()])
    assert summary.fit.largest == pytest.approx(1000, rel=1 / 31)
    assert summary.fit.documents < 50 * files


@pytest.mark.parametrize(
    "literals", [["none", ""], ["0 and 0.0 and -0"], ["1e-320", "5e-324"], ["1.7e308", "-1"]]
)
@pytest.mark.parametrize("numbers", ["xval", "xval:log"])
def test_odd_corpora(numbers, literals, tmp_path):
    summary, table = fitted(
        tmp_path, [write_texts(tmp_path / "in.jsonl", literals)], [*parse(numbers)]
    )
    xval = summary.fit.xval
    assert 0 < xval.scale < np.inf and xval.clip == 5 and len(table) == len(literals)
    if not re.search("[1-9]", "".join(literals)):
        assert summary.fit.largest is None and xval.scale == 1
    found = [value for row in table["number_scaled"].to_pylist() for value in row]
    assert all(np.isfinite(found)) and all(abs(value) <= 5 for value in found)


def test_other_options_need_the_same_tokens():
    tok = numtok.Tokenizer.from_pretrained(numbers=[XVal(), FloatBits()])
    options = [XVal(0.5), FloatBits(compact=True)]
    other, made = tok.with_options(options), numtok.Tokenizer.from_pretrained(numbers=options)
    assert other.fingerprint == made.fingerprint != tok.fingerprint and other.engine is tok.engine
    assert other.encode_batch(["5 or 6"]).equals(made.encode_batch(["5 or 6"]), check_metadata=True)


# The command line


def run(*arguments, **options):
    return command.run("encode", *arguments, **options)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def metadata(name="a.parquet", which=0):
    return json.loads(pq.read_schema(name).metadata[b"numtok"])["numbers"][which]


def test_xval_is_fitted_unless_told_otherwise(folder):
    write_texts(folder / "in.jsonl", [" ".join(AVOGADRO)])
    linear = ("in.jsonl", "--numbers", "xval", "-o")
    result = run(*linear, "a.parquet")
    assert result.exit_code == 0 and result.stderr == ""
    assert metadata()["scale"] == 0.004887 and metadata()["clip"] == 5
    for line in (
        r"xval's scale +0\.004887 +1023 becomes 5 \(1,000 numbers of 1 documents\)",
        r"clipped +1 +1 by xval",
    ):
        assert re.search(line, result.stdout)
    again = re.search(r"for more files: (--scale .*)", result.stdout)
    assert again
    for options in (again[1].split(), ["--fit"]):
        assert run(*linear, "b.parquet", *options, "-q", "--overwrite").exit_code == 0
        assert metadata("b.parquet") == metadata()
    assert run(*linear, "d.parquet", "--scale", "1", "-q").exit_code == 0
    assert (metadata("d.parquet")["scale"], metadata("d.parquet")["clip"]) == (1.0, None)
    assert run("in.jsonl", "-o", "e.parquet", "--numbers", "bits,xval:log", "-q").exit_code == 0
    described = metadata("e.parquet", 1)
    assert described["log"] is True and described["scale"] == pytest.approx(5 / 23.78, rel=1 / 31)


def test_a_scale_that_loses_numbers_is_told(folder):
    """The largest number, scaled to 5, leaves 8e-24 of a one: no zero as float32, and nothing for a
    model.
    """
    write_texts(folder / "in.jsonl", [" ".join(AVOGADRO)])
    told = "{} of the numbers are nearly zero for the model and {} are clipped"
    linear = ("in.jsonl", "--numbers", "xval", "-o")
    result = run(*linear, "a.parquet", "--fit-quantile", "1")
    expected = f"{told.format('99.9%', '0.0%')}; --numbers xval:log holds more of them"
    assert expected in result.stderr
    assert re.search(r"nearly zero +999 +below 0\.001 once scaled: 999 by xval", result.stdout)
    result = run(*linear, "b.parquet", "--fit-quantile", "0.5")
    assert told.format("0.0%", "48.9%") in result.stderr


@pytest.mark.parametrize("large", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_pipe_is_read_once(large, folder, monkeypatch):
    """Also where much text comes after the sample that the scale is fitted to."""
    data = SAMPLE.read_bytes()
    data *= 2 * fitting.FIT_BYTES // len(data) if large else 1
    monkeypatch.setattr(sys, "stdin", None)
    result = run(
        *("-", "-o", "a.parquet", "--numbers", "xval:log", "--keep-column", "id", "--keep-text"),
        input=data,
    )
    assert result.exit_code == 0, result.output
    table = pq.read_table("a.parquet")
    rows = [json.loads(line) for line in data.splitlines()]
    assert table["id"].to_pylist() == [row["id"] for row in rows]
    tokenizer = tokenizer_of("a.parquet")
    decoded = [tokenizer.decode_batch(batch).to_pylist() for batch in table.to_batches()]
    assert [text for batch in decoded for text in batch] == [row["text"] for row in rows]
    assert 0 < metadata()["scale"] < 1
    if not large:
        shown = run(str(SAMPLE), "-o", "b.parquet", "--numbers", "xval:log", "-q")
        assert shown.exit_code == 0 and metadata("b.parquet") == metadata()


def test_no_numbers_is_said(folder):
    write_texts(folder / "in.jsonl", ["none"])
    result = run("in.jsonl", "-o", "a.parquet")
    assert re.search(r"xval's scale +1\.0 +there is no number but zero to fit it to", result.stdout)
