"""A datatrove pipeline that ends in numtok's rows, with the real package: the rows of `numtok encode`."""

import json
import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import ok
from places import ROOT

pytest.importorskip("datatrove")

import dill
from datatrove.data import Document
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.filters import LambdaFilter
from datatrove.pipeline.readers import JsonlReader
from numtok_datatrove import NumtokWriter

import numtok
from numtok.errors import NumtokError

DOCUMENTS = 500


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A folder of three files with 500 documents in all, odd ones among them."""
    folder = tmp_path_factory.mktemp("corpus")
    texts = [
        f"Run {n}: {n * 37 % 1000 / 8} m at −{n}.50 °C, {n:,}00 of 1e{n % 40}"
        for n in range(DOCUMENTS)
    ]
    texts[7], texts[8], texts[9] = "-", "no number, but [NUM] and 今年", "\n12\n\n 13\r\n" * 50
    rows = [{"text": text, "id": f"d{n}", "length": len(text)} for n, text in enumerate(texts)]
    for file, (start, stop) in enumerate([(0, 100), (100, 390), (390, DOCUMENTS)]):
        lines = "".join(json.dumps(row) + "\n" for row in rows[start:stop])
        (folder / f"{file}.jsonl").write_text(lines, "utf-8")
    return folder


def pipeline(corpus, tmp_path, *steps, tasks=3):
    reader = JsonlReader(str(corpus), id_key="id")
    return LocalPipelineExecutor(
        [reader, *steps], tasks=tasks, workers=1, logging_dir=str(tmp_path / "logs")
    )


def table(folder):
    """All files of a folder, in order."""
    return pa.concat_tables(pq.read_table(path) for path in sorted(folder.glob("*.parquet")))


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("--numbers bits", {"numbers": "bits"}),
        ("--scale 1", {}),  # nothing is fitted in a pipeline
        ("--numbers digits:3 --keep-text --grammar data", {"numbers": "digits:3", "keep_text": True, "grammar": "data"}),
        ("--numbers fone:6,4 --layout token", {"numbers": "fone:6,4", "layout": "token"}),
        ("--numbers p10 --compression gzip --keep-column id --keep-column length",
         {"numbers": "p10", "compression": "gzip", "keep_columns": ["id", "length"]}),
    ],
)  # fmt: skip
def test_the_rows_are_those_of_numtok_encode(corpus, tmp_path, words, options):
    pipeline(corpus, tmp_path, NumtokWriter(tmp_path / "out", **options)).run()
    assert [path.name for path in sorted((tmp_path / "out").iterdir())] == [
        f"0000{rank}-of-00003.parquet" for rank in range(3)
    ]
    ok(f"encode {corpus} -o {tmp_path}/one.parquet -q {words}")
    wanted, found = pq.read_table(tmp_path / "one.parquet"), table(tmp_path / "out")
    assert found.num_rows == DOCUMENTS
    assert found.schema.names == wanted.schema.names and found.equals(wanted)
    meta = [one.schema.metadata[b"numtok"] for one in (found, wanted)]
    versions = [json.loads(one) for one in meta]
    assert {k: v for k, v in versions[0].items() if k != "command"} == {
        k: v for k, v in versions[1].items() if k != "command"
    }


def test_packed_rows_of_each_task(corpus, tmp_path):
    """Rows of 64 tokens, packed within a task as `numtok encode` packs its files one by one."""
    options = {"numbers": "bits", "pack": 64, "end_token": "<|endoftext|>", "batch_bytes": 1000}
    pipeline(corpus, tmp_path, NumtokWriter(tmp_path / "out", **options)).run()
    for rank in range(3):
        words = (
            f"-o {tmp_path}/{rank}.parquet --numbers bits --pack 64 --end-token '<|endoftext|>' -q"
        )
        ok(f"encode {corpus}/{rank}.jsonl {words}")
        wanted = pq.read_table(tmp_path / f"{rank}.parquet")
        assert pq.read_table(tmp_path / "out" / f"0000{rank}-of-00003.parquet").equals(wanted)


def test_filters_before_and_steps_behind(corpus, tmp_path):
    """Documents that a filter drops are not written; the step behind gets the others as they were."""
    seen = []
    executor = pipeline(
        corpus,
        tmp_path,
        LambdaFilter(lambda document: document.metadata["length"] > 40),
        NumtokWriter(tmp_path / "out", numbers="bits", keep_columns=["id"], batch_bytes=500),
        LambdaFilter(lambda document: seen.append(document.id) or True),
        tasks=1,
    )
    stats = executor.run()
    ids = table(tmp_path / "out")["id"].to_pylist()
    assert ids == seen and 0 < len(ids) < DOCUMENTS
    (writer,) = (one for one in stats.stats if "numtok" in one.name)
    rows = table(tmp_path / "out")["input_ids"].to_pylist()
    assert writer["total"].total == len(ids) and writer["tokens"].total == sum(map(len, rows))


def test_a_task_that_fails_leaves_no_file_and_is_run_again_with_the_same_bytes(corpus, tmp_path):
    broken = [True]

    def fails_once(document):
        if broken and document.id == "d250":
            raise RuntimeError("the machine went away")
        return True

    steps = [NumtokWriter(tmp_path / "out", numbers="bits"), LambdaFilter(fails_once)]
    with pytest.raises(RuntimeError):
        pipeline(corpus, tmp_path, *steps).run()
    done = {path.name for path in (tmp_path / "out").iterdir()}
    assert "00001-of-00003.parquet" not in done
    broken.clear()
    pipeline(corpus, tmp_path, *steps).run()
    pipeline(corpus, tmp_path / "whole", NumtokWriter(tmp_path / "at once", numbers="bits")).run()
    again, at_once = (
        {path.name: path.read_bytes() for path in (tmp_path / folder).glob("*.parquet")}
        for folder in ("out", "at once")
    )
    assert again == at_once and len(again) == 3


def test_a_task_without_documents_and_a_store(tmp_path):
    """An empty task writes a file without rows and the same columns; a folder may be a URL."""
    step = NumtokWriter("memory://trove", numbers="bits", keep_columns={"id": pa.string()})
    documents = [Document("is 5", "a"), Document("is 6", "b", metadata={"x": 1})]
    assert [one.id for one in step.run(iter(documents), 0, 2)] == ["a", "b"]
    assert list(step.run(None, 1, 2)) == []
    fsspec = pytest.importorskip("fsspec")
    files = fsspec.filesystem("memory").glob("trove/*.parquet")
    tables = [pq.read_table(fsspec.filesystem("memory").open(name)) for name in sorted(files)]
    assert [one.num_rows for one in tables] == [2, 0]
    assert tables[0].schema.equals(tables[1].schema, check_metadata=True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda folder: NumtokWriter(folder, numbers="nothing"), "nothing"),
        (lambda folder: NumtokWriter(folder, pack=0), "pack=0"),
        (lambda folder: NumtokWriter(folder, scale=0.01), "'scale' is no option of NumtokWriter"),
        (lambda folder: list(NumtokWriter(folder, keep_columns=["input_ids"]).run([], 0, 1)), "'input_ids' cannot be kept"),
        (lambda folder: list(NumtokWriter(folder, keep_columns=["n"], batch_bytes=1).run(
            [Document("1", "a", metadata={"n": 1}), Document("2", "b", metadata={"n": "two"})], 0, 1)), "column 'n' is int64"),
        (lambda folder: list(NumtokWriter(folder, keep_columns=["n"]).run(
            [Document("1", "a", metadata={"n": 1}), Document("2", "b", metadata={"n": "two"})], 0, 1)), "column 'n' holds several"),
    ],
)  # fmt: skip
def test_errors(tmp_path, call, message):
    with pytest.raises(NumtokError, match=message):
        call(tmp_path)
    assert list(tmp_path.glob("*.parquet")) == []


def test_an_error_names_the_document(tmp_path):
    step = NumtokWriter(tmp_path, numbers=numtok.FoNE(2, 0, overflow="error"))
    documents = [Document("is 5", "a"), Document("is 5000", "odd one")]
    with pytest.raises(NumtokError) as caught:
        list(step.run(iter(documents), 0, 1))
    assert "odd one" in "".join(caught.value.__notes__)


def test_a_step_that_was_pickled_writes_the_same_file(corpus, tmp_path):
    """As executors hand it to their tasks: those of Slurm load it from a file."""
    for folder in ("one", "other"):
        step = NumtokWriter(tmp_path / folder, numbers="bits", keep_columns={"id": pa.string()})
        documents = [Document("is 5", "a"), Document("is 6", "b")]
        step = (
            dill.loads(dill.dumps(step, fmode=dill.CONTENTS_FMODE)) if folder == "other" else step
        )
        assert list(step.run(iter(documents))) == documents
    one, other = (tmp_path / folder / "00000-of-00001.parquet" for folder in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.slow
def test_the_script_of_the_readme(corpus, tmp_path):
    """Its tasks run in processes that import the script."""
    readme = (ROOT / "integrations/datatrove/README.md").read_text("utf-8")
    (script,) = [one for one in readme.split("```") if "LocalPipelineExecutor(" in one]
    (tmp_path / "script.py").write_text(script.removeprefix("text\n"), "utf-8")
    (tmp_path / "corpus").symlink_to(corpus)
    paths = [str(ROOT / "integrations/datatrove"), str(ROOT)]
    subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, check=True, timeout=300,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
    )  # fmt: skip
    ok(
        f"encode {corpus} -o {tmp_path}/one.parquet -q --numbers xval,fone:6,4 --scale 1 --keep-column id"
    )
    assert table(tmp_path / "encoded").equals(pq.read_table(tmp_path / "one.parquet"))
