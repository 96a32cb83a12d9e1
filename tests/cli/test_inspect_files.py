"""``numtok inspect FILE --row N``: a document of a corpus, or what is stored for one."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from numtok_cli.main import cli
from places import SAMPLE

import numtok
from numtok.corpus.look import stored_row, text_of
from numtok.errors import InputError

TEXTS = [json.loads(line)["text"] for line in SAMPLE.read_text("utf-8").splitlines()]


def inspect(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["inspect", *arguments])


@pytest.mark.parametrize("row", [1, 7, len(TEXTS)])
def test_a_document_of_a_corpus_is_inspected_as_its_text(row: int) -> None:
    assert text_of(SAMPLE, row) == TEXTS[row - 1]
    of_file, of_text = (
        inspect(str(SAMPLE), "--row", str(row), "--numbers", "xval"),
        inspect("--text", TEXTS[row - 1], "--numbers", "xval"),
    )
    assert of_file.exit_code == 0 and of_file.stdout == of_text.stdout


@pytest.mark.parametrize("numbers", ["xval,bits,fone:6,4", "place", "p10", "subword"])
@pytest.mark.parametrize("layout", ["number", "token"])
def test_a_stored_row_is_what_was_encoded(tmp_path: Path, numbers: str, layout: str) -> None:
    numtok.encode_files(
        SAMPLE,
        tmp_path / "a.parquet",
        numbers=numbers,
        keep_text=True,
        layout=layout,
        scale=1 if "xval" in numbers else None,
        dense="bits" in numbers,
    )
    found = stored_row(tmp_path / "a.parquet", 2)
    encoding = numtok.Tokenizer.from_pretrained(None, numbers)(TEXTS[1])
    assert found.text == TEXTS[1]
    assert [token.id for token in found.tokens] == encoding["input_ids"].tolist()
    assert [first for _, first in found.numbers] == encoding["number_index"].tolist()
    assert [surface for surface, _ in found.numbers] == [
        number.text for number in numtok.scan([TEXTS[1]])
    ]
    for name, values in found.columns.items():
        assert values.tolist() == encoding[name].tolist()
    shown = inspect(str(tmp_path / "a.parquet"), "--row", "2")
    assert (
        shown.exit_code == 0
        and "row 2" in shown.stdout
        and TEXTS[1] in shown.stdout
        and f"{len(TEXTS):,}" in shown.stdout
    )


def test_a_packed_row_shows_all_that_is_in_it(tmp_path: Path) -> None:
    numtok.encode_files(SAMPLE, tmp_path / "a.parquet", scale=1, pack=64)
    shown = inspect(str(tmp_path / "a.parquet")).stdout
    assert (
        "packed into rows of 64 tokens" in shown
        and "64 tokens" in shown
        and "The harbour gauge read 1.82 m" in shown
    )


def test_rows_that_there_are_not(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"has {len(TEXTS)} rows, so there is no row 99"):
        text_of(SAMPLE, 99)
    (tmp_path / "null.jsonl").write_text('{"text": null}\n', "utf-8")
    with pytest.raises(InputError, match="has no text"):
        text_of(tmp_path / "null.jsonl")
    numtok.encode_files(tmp_path / "null.jsonl", tmp_path / "null.parquet", scale=1)
    assert stored_row(tmp_path / "null.parquet").text is None
    assert "no text" in inspect(str(tmp_path / "null.parquet")).stdout
    assert inspect(str(tmp_path / "null.parquet"), "--row", "2").exit_code == 1


def test_a_parquet_file_of_texts_is_a_corpus(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"body": TEXTS, "n": list(range(len(TEXTS)))}), tmp_path / "texts.parquet"
    )
    assert text_of(tmp_path / "texts.parquet", 3) == TEXTS[2]
    assert (
        inspect(str(tmp_path / "texts.parquet"), "--row", "3", "--numbers", "xval").exit_code == 0
    )


def test_a_text_wins_where_it_is_called_one() -> None:
    assert "0 numbers" in inspect("--text", str(SAMPLE.name), "--numbers", "subword").stdout
    assert "not both" in inspect("5", "--text", "6").stderr


def test_a_folder_is_neither(tmp_path: Path) -> None:
    assert "is a folder; name a file in it" in inspect(str(tmp_path)).stderr
