"""The README.md of a folder of shards: read by the programs that it is for, the same whoever writes
it, and never over somebody else's.
"""

import os
from pathlib import Path

import jobs
import pytest

import numtok
from numtok.errors import JobError

OPTIONS = {"numbers": "xval", "shards": 4, "card": True}
ODD = 'of "x": 1e-05,\x85\n|`é\U0001f600'  # a name of a column that needs quotes, and more


corpus, unbroken = jobs.fixtures(60, **OPTIONS)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_the_hub_and_datasets_read_it(kind, tmp_path, monkeypatch):
    hub, datasets = pytest.importorskip("huggingface_hub"), pytest.importorskip("datasets")
    monkeypatch.chdir(tmp_path)
    header = f'text,"{ODD.replace(chr(34), chr(34) * 2)}"\n'
    Path("in.csv").write_text(header + "it is 5 or 1e99,x\n" * 1200, "utf-8")
    how = {"keep_columns": [ODD], "output_format": kind, "card": True}
    how |= {"numbers": "xval", "scale": 1e-5}
    numtok.encode_files("in.csv", "out/", **how)
    card = hub.DatasetCard.load("out/README.md").data.to_dict()
    own, made, told = card["numtok"], jobs.manifest(Path("out")), card["numtok"]["report"]
    assert card["size_categories"] == ["1K<n<10K"]
    assert own["options"]["numbers"][0]["scale"] == 1e-5 and own["options"]["keep_columns"] == [ODD]
    assert (told["documents"], told["numbers"]) == (1200, 2400)
    assert told["left_as_text"] == made["report"]["left_as_text"] == {"xval": 1200}
    assert own["tokenizer"]["fingerprint"] == made["tokenizer"]["fingerprint"]
    loaded = datasets.load_dataset("out", cache_dir="cache")["train"]
    assert [column["name"] for column in own["columns"]] == loaded.column_names
    assert loaded[ODD][:] == ["x"] * 1200


def test_it_is_the_same_after_an_interruption(corpus, unbroken, tmp_path):
    """Shares, a kill before or behind the card, and ``finish``."""
    out = tmp_path / "out"
    numtok.encode_files(corpus, out, **OPTIONS, shard=(1, 2))
    assert not (out / "README.md").exists()
    numtok.encode_files(corpus, out, **OPTIONS, shard=(2, 2))
    assert jobs.files(out) == jobs.files(unbroken)
    for lost in ("README.md", "__numtok/manifest.json", "__numtok/00002.json"):
        (out / lost).unlink()
    numtok.encode_files(corpus, out, **OPTIONS)
    assert jobs.files(out) == jobs.files(unbroken)
    (out / "README.md").unlink()
    numtok.finish_job(out, check=True)
    assert jobs.files(out) == jobs.files(unbroken)


def test_it_follows_the_job(corpus, tmp_path):
    """Write the card later where it is asked for, and remove it where it is not."""
    out = tmp_path / "out"
    plain = {**OPTIONS, "card": False}
    numtok.encode_files(corpus, out, **plain)
    assert not (out / "README.md").exists()
    assert numtok.encode_files(corpus, out, **OPTIONS).resumed == 4
    assert '"documents": 300' in (out / "README.md").read_text()
    assert numtok.encode_files(corpus, out, **plain).resumed == 4
    assert not (out / "README.md").exists()


def test_what_somebody_wrote_stays(corpus, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    for own in ("# My corpus\n", "x" * (2 << 20)):
        (out / "README.md").write_text(own)
        numtok.encode_files(corpus, out, **OPTIONS, overwrite=True)
        assert (out / "README.md").read_text() == own
    (out / "README.md").unlink()
    os.symlink(tmp_path / "elsewhere.md", out / "README.md")
    with pytest.raises(JobError, match=r"README.md: is a symbolic link.*remove it"):
        numtok.finish_job(out)
    assert not (tmp_path / "elsewhere.md").exists()
