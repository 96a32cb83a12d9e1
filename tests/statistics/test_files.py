"""Statistics of files: however they are read, and of encoded ones what can be known is what was in
the texts.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from numtok_cli.main import cli
from places import SAMPLE

from numtok import Grammar, Statistics, corpus_stats, encode_files
from numtok.corpus.summary import Progress
from numtok.errors import InputError, SchemaError

VALUES = ("documents", "numbers", "per_document", "smallest", "largest", "values", "examples")
DIGITS = (
    "significant_digits",
    "integer_digits",
    "fraction_digits",
    "first_digits",
    "positive_decades",
    "negative_decades",
    "magnitudes",
)
WRITTEN = ("forms", "marks", "years", "written")


def sample_texts() -> list[str]:
    return [json.loads(line)["text"] for line in SAMPLE.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("layout", ["number", "token"])
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_an_encoded_file_has_the_numbers_of_its_texts(
    layout: Any, suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"a.{suffix}"
    encode_files(SAMPLE, path, numbers="place", keep_text=True, layout=layout)
    encoded, raw = corpus_stats(path).to_json(), corpus_stats(SAMPLE).to_json()
    for name in (*VALUES, *DIGITS, *WRITTEN, "zeros", "beyond_float64"):
        assert encoded[name] == raw[name], name
    assert (
        encoded["in_text"] == encoded["bytes"] == encoded["number_bytes"] == 0
        and encoded["units"]["counts"] == {}
    )
    assert encoded["tokens"]["numbers"] == 0


def test_without_the_text_its_float64_is_known(tmp_path: Path) -> None:
    encode_files(SAMPLE, tmp_path / "a.parquet", numbers="place")
    encoded, raw = corpus_stats(tmp_path / "a.parquet").to_json(), corpus_stats(SAMPLE).to_json()
    assert encoded["written"] == 0 and encoded["forms"] == {}
    for name in ("documents", "numbers", "per_document", "smallest", "largest", "magnitudes"):
        assert encoded[name] == raw[name], name
    assert (
        sum(encoded["zeros"].values()) == sum(raw["zeros"].values()) + raw["beyond_float64"]["zero"]
    )


def test_what_a_representation_leaves_as_text_is_not_in_the_file(tmp_path: Path) -> None:
    summary = encode_files(SAMPLE, tmp_path / "a.parquet", numbers="fone:3,1", keep_text=True)
    counted = corpus_stats(tmp_path / "a.parquet")
    assert counted.numbers == summary.numbers - sum(summary.left_as_text.values())
    assert counted.negative == 0  # the sign is text


def test_a_column_of_an_encoded_file_that_is_named_is_read_as_text(tmp_path: Path) -> None:
    encode_files(SAMPLE, tmp_path / "a.parquet", numbers="xval", keep_columns=["id"])
    assert corpus_stats(tmp_path / "a.parquet", text_column="id") == corpus_stats(
        SAMPLE, text_column="id"
    )


def test_null_rows_and_infinite_values(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "5 -1e400 1e400"}\n{"text": null}\n{"text": "7"}\n')
    encode_files(tmp_path / "a.jsonl", tmp_path / "a.parquet", numbers="place")
    counted = corpus_stats(tmp_path / "a.parquet").to_json()
    assert (counted["documents"], counted["without_text"], counted["numbers"]) == (3, 1, 4)
    assert counted["beyond_float64"] == {"infinite": 2} and (
        counted["smallest"],
        counted["largest"],
    ) == (5, 7)


def test_a_file_that_lacks_the_values_is_refused(tmp_path: Path) -> None:
    encode_files(SAMPLE, tmp_path / "a.parquet")
    pq.write_table(
        pq.read_table(tmp_path / "a.parquet").drop_columns(["number_value"]), tmp_path / "b.parquet"
    )
    with pytest.raises(SchemaError, match="number_value"):
        corpus_stats(tmp_path / "b.parquet")


def test_the_folder_of_a_job_is_read_as_one(tmp_path: Path) -> None:
    encode_files(SAMPLE, f"{tmp_path}/job/", numbers="place", keep_text=True, shards=2, workers=1)
    encode_files(SAMPLE, tmp_path / "a.parquet", numbers="place", keep_text=True)
    assert corpus_stats(tmp_path / "job") == corpus_stats(tmp_path / "a.parquet")


def test_a_job_keeps_the_statistics_of_its_texts(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    summary = encode_files(
        SAMPLE, f"{folder}/", numbers="fone:3,1", shards=3, workers=1, stats=True
    )
    raw, kept = corpus_stats(SAMPLE).to_json(), corpus_stats(folder).to_json()
    assert summary.statistics == corpus_stats(folder) and {
        name: raw[name] for name in raw if name != "tokens"
    } == {name: kept[name] for name in kept if name != "tokens"}
    assert {name: kept["tokens"][name] for name in ("numbers", "tokens", "before")} == {
        name: raw["tokens"][name] for name in ("numbers", "tokens", "before")
    }, "by the source tokenizer alone, whatever the numbers become"
    receipts = [json.loads((folder / "__numtok" / f"00000{k}.json").read_text()) for k in range(3)]
    assert (
        Statistics.merge(Statistics.from_json(receipt["statistics"]) for receipt in receipts)
        == summary.statistics
    )
    assert corpus_stats([folder, SAMPLE]).numbers == 2 * raw["numbers"]
    assert corpus_stats(folder, input_format="parquet").numbers < raw["numbers"], (
        "what the shards hold"
    )


def test_one_file_tells_them_too(tmp_path: Path) -> None:
    summary = encode_files(SAMPLE, tmp_path / "a.parquet", stats=True)
    assert summary.statistics is not None and summary.statistics.numbers == summary.numbers
    assert encode_files(SAMPLE, tmp_path / "b.parquet").statistics is None
    told = (
        CliRunner()
        .invoke(cli, ["encode", str(SAMPLE), "-o", str(tmp_path / "c.parquet"), "--stats"])
        .stdout
    )
    assert "recommended: --numbers fone:16,16" in told and "output" in told


# Reading
# ----------------------------------------------------------------------------------------------------------------


def test_batches_and_workers_change_nothing(tmp_path: Path) -> None:
    whole = Statistics.of_batch(sample_texts())
    for workers, batch_bytes in ((1, 1 << 20), (3, 300), (2, 1)):
        counted = corpus_stats(SAMPLE, workers=workers, batch_bytes=batch_bytes)
        assert counted.to_json() | {"tokens": None} == whole.to_json() | {"tokens": None}
    assert corpus_stats(SAMPLE, workers=1, batch_bytes=300) == corpus_stats(
        SAMPLE, workers=4, batch_bytes=300
    )


def test_files_of_every_kind_add_up(tmp_path: Path) -> None:
    texts = [text.replace("\n", " ") for text in sample_texts()]
    (tmp_path / "a.txt").write_text("\n".join(texts))
    pq.write_table(pa.table({"body": texts}), tmp_path / "b.parquet")
    encode_files(SAMPLE, tmp_path / "c.arrow", numbers="place", keep_text=True)
    counted = corpus_stats(tmp_path)
    assert counted.numbers == 3 * 183 and counted.in_text == 2 * 183 and counted.written == 3 * 183
    assert counted.tokens.bytes == 2 * sum(len(text.encode()) for text in texts)


def test_the_grammar_is_that_which_is_given() -> None:
    assert corpus_stats(SAMPLE, grammar=Grammar.data()) != corpus_stats(SAMPLE)


def test_progress_is_told() -> None:
    told: list[Progress] = []
    corpus_stats(SAMPLE, progress=told.append)
    assert told[-1].read == told[-1].total == SAMPLE.stat().st_size and told[-1].documents == 31


def test_an_empty_corpus_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("")
    assert corpus_stats(tmp_path / "a.jsonl").to_json() | {
        "tokens": None
    } == Statistics().to_json() | {"tokens": None}
    with pytest.raises(InputError, match="no such file"):
        corpus_stats(tmp_path / "no.jsonl")
