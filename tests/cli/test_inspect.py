"""``numtok inspect``: a text, a document of a corpus, or what is stored for one; on the terminal and
as a page.
"""

import json
import math
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import ok, refused
from pages import HOSTILE, page_data
from places import SAMPLE

import numtok
from numtok.corpus.row_viewer import stored_row, text_of
from numtok.errors import InputError
from numtok.representations import QuantileBins

TEXTS = [json.loads(line)["text"] for line in SAMPLE.read_text("utf-8").splitlines()]


def inspect(*arguments, **options):
    return ok("inspect", *arguments, **options)


def test_numbers_tokens_and_columns_are_listed():
    told = inspect("is 1,234.50 or −7e-3", "--numbers", "xval,bits", "--numbers", "place")
    assert "\x1b" not in told
    assert re.search(r"1,234\.50 +1234\.50 +1234\.5 +3–11\n", told)
    assert re.search(r"−7e-3 +-0\.007 +-0\.007 +15–20\n", told)
    assert "is| [NUM]| or| [NUM]|" in told and "[/NUM]|" in told
    assert "0 10001001 00110100101000000000000" in told


def test_one_representation_with_two_options_is_told_apart():
    told = inspect("is 1234567", "--numbers", "digits:3,places", "--numbers", "digits:1")
    assert re.search(r"^digits:places  6 tokens, 5.00 per number", told, re.M)
    assert re.search(r"^digits:1  ", told, re.M)
    assert " [NUM]|[NUM:1]|[NUM:234]|[NUM:567]|[/NUM]|" in told
    assert re.search(r"^ +7 +4 +1 *$", told, re.M)
    assert " [NUM]|1|2|3|4|5|6|7|[/NUM]|" in told


def test_standard_input_limits_and_colour():
    told = inspect("--limit", "2", "--numbers", "xval", input="1 2 3 4\n5\n")
    assert "5 numbers" in told and "and 3 more" in told and "⏎" in told
    assert inspect("no number at all").startswith("0 numbers")
    assert "0 numbers" in inspect("")
    assert "byte 1 is not UTF-8" in refused("inspect", input=b"a\xff")
    for force, plain in (("1", None), (None, "1")):
        told = inspect("5", "--numbers", "xval", env={"FORCE_COLOR": force, "NO_COLOR": plain})
        assert ("48;5;215m" in told) == ("\x1b" in told) == bool(force)


def test_bits_are_shown_by_their_fields(tmp_path):
    bits = "1 01111111101 0011001100110011001100110011001100110011001100110100"
    text = "is -0.30000000000000004"
    told = inspect(text, "--numbers", "bits:64", "--numbers", "xval,bits")
    assert re.search(f"-0.30000000000000004 +{bits}\n", told)
    assert "\nbits:64  " in told and "\nxval + bits  " in told, "one is told from the other"
    (tmp_path / "a.txt").write_text(text + "\n")
    for dense in (True, False):
        out = tmp_path / f"{dense}.parquet"
        numtok.encode_files(tmp_path / "a.txt", out, numbers="bits:64", dense=dense)
        assert re.search(f"-0.30000000000000004 .*{bits[:40]}", inspect(str(out)))


# Files


@pytest.mark.parametrize("row", [1, len(TEXTS)])
def test_a_document_of_a_corpus_is_inspected_as_its_text(row, tmp_path):
    of_text = inspect("--text", TEXTS[row - 1], "--numbers", "xval")
    assert inspect(str(SAMPLE), "--row", str(row), "--numbers", "xval") == of_text
    table = pa.table({"body": TEXTS, "n": list(range(len(TEXTS)))})
    pq.write_table(table, tmp_path / "texts.parquet")
    told = inspect(str(tmp_path / "texts.parquet"), "--row", str(row), "--numbers", "xval")
    assert told == of_text


@pytest.mark.parametrize(
    ("numbers", "layout"), [("xval,bits,fone:6,4", "number"), ("place", "token"), ("p10", "number")]
)
def test_a_stored_row_is_what_was_encoded(tmp_path, numbers, layout):
    path, single = tmp_path / "a.parquet", "xval" in numbers
    how: Any = {"scale": 1, "dense": True} if single else {}
    numtok.encode_files(SAMPLE, path, numbers=numbers, keep_text=True, layout=layout, **how)
    found = stored_row(path, 2)
    encoding = numtok.Tokenizer.from_pretrained(None, numbers)(TEXTS[1])
    assert found.text == TEXTS[1]
    assert [token.id for token in found.tokens] == encoding["input_ids"].tolist()
    assert [first for _, first in found.numbers] == encoding["number_index"].tolist()
    assert [text for text, _ in found.numbers] == [one.text for one in numtok.scan([TEXTS[1]])]
    for name, values in found.columns.items():
        assert values.tolist() == encoding[name].tolist()
    told = inspect(str(path), "--row", "2")
    assert "row 2" in told and TEXTS[1] in told and f"{len(TEXTS):,}" in told


def test_packed_and_null_rows_and_those_that_there_are_not(tmp_path):
    numtok.encode_files(SAMPLE, tmp_path / "a.parquet", scale=1, pack=64)
    told = inspect(str(tmp_path / "a.parquet"))
    assert "packed into rows of 64 tokens" in told and "64 tokens" in told
    assert "The harbour gauge read 1.82 m" in told
    with pytest.raises(InputError, match=f"has {len(TEXTS)} rows, so there is no row 99"):
        text_of(SAMPLE, 99)
    (tmp_path / "null.jsonl").write_text('{"text": null}\n', "utf-8")
    with pytest.raises(InputError, match="has no text"):
        text_of(tmp_path / "null.jsonl")
    numtok.encode_files(tmp_path / "null.jsonl", tmp_path / "null.parquet", scale=1)
    assert "no text" in inspect(str(tmp_path / "null.parquet"))
    refused("inspect", tmp_path / "null.parquet", "--row", "2")


@pytest.mark.parametrize("metadata", [b"{", b'{"format": 99}'])
def test_an_encoded_file_whose_metadata_cannot_be_read_is_no_corpus(metadata, tmp_path):
    table = pa.table({"text": ["a 5"], "number_index": [[0]]}, metadata={"numtok": metadata})
    pq.write_table(table, tmp_path / "a.parquet")
    for command in ("inspect", "stats"):
        told = refused(command, tmp_path / "a.parquet")
        assert "metadata is damaged" in told or "the data has format 99" in told


def test_of_a_folder_the_first_file_is_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    job, corpus = Path("job"), Path("corpus")
    numtok.encode_files(SAMPLE, job, scale=1, shards=2, keep_text=True, workers=1)
    corpus.mkdir()
    (corpus / "b.jsonl").write_text('{"text": "last 9"}\n')
    (corpus / "a.jsonl").write_text('{"text": "first 5"}\n{"text": "second 6"}\n')
    for name in ("job", "job/"):
        told = inspect(name, "--row", "2")
        assert "row 2 of job/00000-of-00002.parquet" in told and TEXTS[1][:40] in told
    assert inspect("job", "--limit", "3") == inspect("job/00000-of-00002.parquet", "--limit", "3")
    told = inspect("corpus/", "--row", "2", "--numbers", "subword")
    assert "1 number in 8 characters" in told and "econd|" in told
    Path("empty").mkdir()
    assert "holds no file of a known kind" in refused("inspect", "empty")
    assert "1 number" in inspect("--text", "job 5", "--numbers", "subword")


@pytest.mark.parametrize("text", ["misspelt.jsonl", "./5", "data.parquet.zst", "/5/6"])
def test_what_looks_like_a_file_is_no_text(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert f"no such file: {text}; check the path, or give" in refused("inspect", text)
    assert "in " in inspect("--text", text, "--numbers", "subword")
    for other in ("1/2", "km/h", "see a.jsonl 5", "5.txtx"):
        inspect(other, "--numbers", "subword")


def test_the_page_has_a_text_and_a_row_of_an_encoded_file(tmp_path):
    page = tmp_path / "a.html"
    told = inspect(HOSTILE[0], "--numbers", "xval,fone:2,1", "--html", str(page))
    data = page_data(page)
    assert data["text"] == HOSTILE[0] and "open it in a browser" in told
    for one in data["numbers"]:
        assert data["text"][one["start"] : one["stop"]] == one["text"]
    (view,) = data["views"]
    assert view["columns"] == ["number_scaled", "number_fourier"]
    assert view["rows"][0][2]["phases"][0] == [1.0, 0.0]
    encoded = tmp_path / "a.parquet"
    numtok.encode_files(SAMPLE, encoded, numbers="xval,bits", scale=1, keep_text=True)
    inspect(str(encoded), "--row", "2", "--html", str(page))
    data = page_data(page)
    assert data["text"] == TEXTS[1] and dict(data["facts"])["rows"] == "31"
    assert dict(data["facts"])["tokenizer"].startswith("byte-level BPE of 16,000 tokens, fingerp")
    assert {"number_scaled", "number_bits"} < set(data["views"][0]["columns"])
    assert data["views"][0]["rows"][0][-1]["bits"]


@pytest.mark.parametrize(
    "numbers", ["quantile_bins:4", "quantile_bins:2,soft", "bits,quantile_bins:4"]
)
def test_bins_are_fitted_to_the_numbers_shown_and_that_is_said(numbers, tmp_path):
    text = "It costs 309900 or 3, 4 and 5"
    told = inspect(text, "--numbers", numbers)
    assert "fitted to the numbers shown" in told and "4 numbers" in told
    (tmp_path / "a.txt").write_text(text)
    assert inspect(str(tmp_path / "a.txt"), "--numbers", numbers) == told
    bins = QuantileBins.fit(numtok.scan([text]), 4).encode(numtok.scan([text]))
    if numbers.endswith(":4"):
        shown = re.findall(r"^  (?:309900|3|4|5) .* (\d)$", told.partition("quantile_bin")[2], re.M)
        assert shown == [str(one) for one in bins["number_quantile_bin"].to_pylist()]
    assert "fitted" in inspect("no number", "--numbers", numbers)
    fitted = tmp_path / "a.parquet"
    numtok.encode_files(tmp_path / "a.txt", fitted, numbers="quantile_bins:4")
    assert "numbers shown" not in inspect(str(fitted)), "that has its own bins"


def test_every_column_of_a_page_is_explained(tmp_path):
    """What each representation writes for a number, in words, and the powers of FoNE's clocks."""
    for names in ("xval,bits,fone:2,1", "logfourier", "exponent_bins", "quantile_bins", "fone:2,1"):
        inspect("It is 90", "--numbers", names, "--html", str(tmp_path / "a.html"))
        (view,) = page_data(tmp_path / "a.html")["views"]
        assert [column for column, _ in view["explained"]] == view["columns"] != []
        if "fone" in names:
            assert view["labels"][-1] == ["10⁰", "10¹", "10²"]
            clock = dict(zip(view["labels"][-1], view["rows"][0][-1]["phases"], strict=True))
            turn = math.atan2(*clock["10²"][::-1]) / (2 * math.pi) % 1
            assert turn == pytest.approx(0.9, abs=1e-3), "as the page says"
