"""A folder of shards from somebody else: what it says of itself is checked, and no link or pipe in it
makes numtok read, write or wait for anything elsewhere.
"""

import json
import os

import jobs
import pytest

import numtok
from numtok.errors import JobError, NumtokError

OPTIONS = {"keep_columns": ["id"], "keep_text": True, "shards": 7}
corpus, unbroken = jobs.fixtures(60, **OPTIONS)
done = jobs.done


def encode(corpus, folder, **options):
    return numtok.encode_files(corpus, folder, **({"workers": 1} | OPTIONS | options))


def ways_to_use(corpus, folder):
    """Going on with a job, and finishing it."""
    return (lambda: encode(corpus, folder), lambda: numtok.finish_job(folder, check=True))


FIT = {"fitted": [numtok.XVal(0.5).to_dict()], "documents": 1, "numbers": 2, "largest": 1.5}
FORGED = [
    ("shards", 5, "shards: Expected array"),
    ("shards", [[0, [["a.jsonl", "jsonl", None, 1, "", 0, "1", 1]]]], "Expected int"),
    ("options", {"numbers": 7, "grammar": {}, "output_format": "parquet"}, "make no sense"),
    ("tokenizer", "gpt2", "tokenizer: Expected object"),
    ("kept", "?", "options that make no sense"),
    ("fit", FIT | {"largest": "5"}, "fit: largest='5': Expected float"),
    ("fit", FIT | {"fitted": [{"name": "xval", "scale": [[1]]}]}, "options that make no sense"),
    ("format", 1, "is of another version of numtok .format 1.*overwrite=True"),
    ("format", 9, "is of another version of numtok"),
]


@pytest.mark.parametrize(("field", "value", "told"), FORGED)
def test_a_forged_plan_is_told_by_its_field(done, field, value, told):
    plan = done / "__numtok" / "plan.json"
    plan.write_bytes(jobs.signed(json.loads(plan.read_bytes()) | {field: value}))
    with pytest.raises(JobError, match=told):
        numtok.finish_job(done)


def test_a_damaged_plan_or_tokenizer_is_named(corpus, done):
    settings, plan = (done / "__numtok" / name for name in ("tokenizer/numtok.json", "plan.json"))
    whole = settings.read_bytes()
    settings.write_bytes(whole.replace(b'"scale": ', b'"scale": 1'))
    with pytest.raises(JobError, match="not the tokenizer that the job was planned with; run the"):
        numtok.finish_job(done, check=True)
    encode(corpus, done)
    assert settings.read_bytes() == whole
    plan.write_bytes(plan.read_bytes().replace(b"zstd", b"zstf"))
    with pytest.raises(JobError, match=r"plan\.json: is damaged or was changed by hand"):
        encode(corpus, done)
    assert encode(corpus, done, overwrite=True).resumed == 0


@pytest.mark.parametrize("kind", ["link", "itself", "pipe", "folder"])
@pytest.mark.parametrize(
    "name", ["plan.json", "lock", "manifest.json", "00003.json", "../00003-of-00007.parquet"]
)
def test_links_pipes_and_folders_are_not_followed(corpus, unbroken, done, tmp_path, name, kind):
    """They could name any file, or wait for ever: what is read is refused, what is written replaces
    them.
    """
    path, victim = done / "__numtok" / name, tmp_path / "victim"
    victim.write_bytes(b"precious")
    path.unlink(missing_ok=True)
    if kind in ("pipe", "folder"):
        os.mkfifo(path) if kind == "pipe" else path.mkdir()
    else:
        path.symlink_to(victim if kind == "link" else path)
    if name == "plan.json":
        for call in ways_to_use(corpus, done):
            with pytest.raises(NumtokError, match=r"is a symbolic link|is no plain file"):
                call()
    else:
        encode(corpus, done)
        assert jobs.shards(done) == jobs.shards(unbroken) and not path.is_symlink()
    assert victim.read_bytes() == b"precious"


@pytest.mark.parametrize(
    "name", [".", "tokenizer", "tokenizer/tokenizer.json", "tokenizer/numtok.json"]
)
def test_the_inner_folder_and_the_tokenizer_are_no_links(name, corpus, done, tmp_path):
    there = done / "__numtok" / name
    there.rename(tmp_path / "elsewhere")
    there.symlink_to(tmp_path / "elsewhere")
    told = "/".join(["__numtok", *([] if name == "." else [name])])
    for call in ways_to_use(corpus, done):
        with pytest.raises(JobError, match=f"{told}: is a symbolic link"):
            call()
