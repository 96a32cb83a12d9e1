"""Corpora of mixed formats, and folders of shards to look into."""

import hashlib
import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numtok
from numtok.corpus.jobs.folder import digest

ROWS = 240


def row(name, number):
    """A document, some without a number, a null one now and then."""
    text = f"{name}: {number * 1.5} of 1,234.{number} or -{number}e-3 é"
    if number % 5 == 0:
        text = f"{name} row {number}"
    return {"id": f"{name}{number}", "text": None if number % 97 == 13 else text}


def make_corpus(folder, rows=ROWS):
    """A file of each kind that can be cut, and some that cannot."""
    folder.mkdir(parents=True)

    def lines(name):
        """With a blank one after every seventh."""
        ends = ("\n\n" if number % 7 == 0 else "\n" for number in range(rows))
        written = (json.dumps(row(name, number)) + end for number, end in enumerate(ends))
        return "".join(written).encode()

    (folder / "a.jsonl").write_bytes(lines("a"))
    (folder / "b.jsonl").write_bytes(b"\xef\xbb\xbf" + lines("b").removesuffix(b"\n"))
    (folder / "c.jsonl.zst").write_bytes(pa.compress(lines("c"), "zstd", asbytes=True))
    table = pa.Table.from_pylist([row("d", number) for number in range(rows)])
    pq.write_table(table, folder / "d.parquet", row_group_size=rows // 8)
    cells = (f'e{number},"e {number}, {number / 8}"\n' for number in range(rows))
    (folder / "e.csv").write_text("id,text\n" + "".join(cells), "utf-8")
    (folder / "f.jsonl").touch()
    return folder


def fixtures(rows=ROWS, **options):
    """Two of a module: a corpus; and the folder of its job, in one run and one process."""

    @pytest.fixture(scope="module")
    def corpus(tmp_path_factory):
        return make_corpus(tmp_path_factory.mktemp("corpus") / "in", rows)

    @pytest.fixture(scope="module")
    def unbroken(corpus, tmp_path_factory):
        folder = tmp_path_factory.mktemp("unbroken") / "out"
        numtok.encode_files(corpus, folder, workers=1, **options)
        return folder

    return corpus, unbroken


@pytest.fixture
def done(unbroken, tmp_path):
    """A copy of the folder of the job, to be spoilt."""
    shutil.copytree(unbroken, tmp_path / "out")
    return tmp_path / "out"


def shards(folder):
    """The SHA-256 of every shard."""
    paths = [path for path in sorted(folder.iterdir()) if path.is_file()]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def files(folder):
    """All that a job leaves, by its names in the folder."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def table(folder):
    """All rows of all shards."""
    return pa.concat_tables([pq.read_table(path) for path in sorted(folder.glob("*.parquet"))])


def manifest(folder):
    return json.loads((folder / "__numtok" / "manifest.json").read_bytes())


def signed(content):
    """A file of a job as a forger would write it who knows how."""
    content.pop("check", None)
    return json.dumps(content | {"check": digest(content)}).encode()
