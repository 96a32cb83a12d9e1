"""The wheel and the sdist: they hold what the repository holds, and what they install works away
from the checkout, with every extra.

Needs the package index that pip is set up for, as ``make test`` itself does.
"""

import email
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest
from environments import Environment, index_variables, interpreter, repository_files
from places import ROOT

EXAMPLES = ROOT / "examples"
INSTALLED_AS = {"numtok": "numtok", "numtok_torch": "numtok_torch", "cli": "numtok_cli"}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The two archives, from a copy of the repository's files: the sdist, and the wheel that is
    made from it.
    """
    folder = tmp_path_factory.mktemp("built")
    for name in repository_files():
        (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / "source" / name)
    options = ["--installer", "uv", "--outdir", str(folder), str(folder / "source")]
    command = [sys.executable, "-m", "build", *options]
    done = subprocess.run(
        command, cwd=folder, env=os.environ | index_variables(), capture_output=True, text=True
    )
    assert done.returncode == 0, (
        f"python -m build fails; it needs a package index\n{done.stdout}{done.stderr}"
    )
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return {"sdist": sdist, "wheel": wheel}


def contents(archive):
    """The names of the files in it, in an sdist without the folder that holds all."""
    if archive.suffix == ".whl":
        return set(zipfile.ZipFile(archive).namelist())
    with tarfile.open(archive) as file:
        return {
            str(PurePosixPath(*PurePosixPath(member.name).parts[1:]))
            for member in file
            if member.isfile()
        }


def test_every_file_of_the_packages_is_in_both(built):
    parts = [name.split("/") for name in repository_files()]
    parts = [one for one in parts if len(one) > 1 and one[0] in INSTALLED_AS]
    files = {"/".join(one) for one in parts}
    data = {"numtok/arrays/unicode_ranges.json", "numtok/default/tokenizer.json", "numtok/py.typed"}
    assert {"cli/main.py", *data} <= files <= contents(built["sdist"])
    in_wheel = {name for name in contents(built["wheel"]) if ".dist-info/" not in name}
    assert in_wheel == {"/".join([INSTALLED_AS[first], *rest]) for first, *rest in parts}


def metadata(built):
    with zipfile.ZipFile(built["wheel"]) as file:
        (name,) = (name for name in file.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(file.read(name))


def test_what_the_metadata_promise_is_tested(built):
    found = metadata(built)
    # dev is what these tests run in, and it has what "testing", "onnx" and "serve" have; `make docs`
    # and `make release-check` install theirs
    others = ["dev", "docs", "evidence", "onnx", "release", "serve", "testing"]
    assert set(found.get_all("Provides-Extra") or ()) == {*EXTRAS, *others}
    classified = " ".join(found.get_all("Classifier") or ())
    assert re.findall(r"Python :: (3\.\d+)", classified) == ["3.11", *OTHER_PYTHONS]


# Installed


@pytest.mark.parametrize("kind", ["sdist", "wheel"])
def test_the_core_and_the_extras_work_away_from_the_checkout(kind, built, tmp_path):
    """The wheel alone, then the extras, one upon the other, each installed as the error says that
    names it; the sdist with the drop-in at once.
    """
    environment = Environment(tmp_path)
    if kind == "sdist":
        environment.install(f"numtok[hf] @ {built['sdist'].as_uri()}")
        check_core(environment)
        environment.run("python", "-c", DROP_IN)
    else:
        environment.install(str(built["wheel"]))
        check_core(environment)
        for extra, check in EXTRAS.items():
            check(environment, f"numtok[{extra}]")


OTHER_PYTHONS = ("3.12", "3.13", "3.14")


@pytest.mark.parametrize("version", OTHER_PYTHONS)
def test_other_pythons(version, built, tmp_path):
    python = interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version} here")
    environment = Environment(tmp_path, python)
    environment.install(str(built["wheel"]))
    assert environment.run("python", "--version").startswith(f"Python {version}.")
    check_round_trip(environment)


@pytest.mark.parametrize("resolution", ["lowest-direct", "highest"])
def test_the_lowest_and_the_newest_declared_versions(resolution, built, tmp_path):
    """Of the core alone: the lowest pyarrow has no pandas beside it."""
    environment = Environment(tmp_path)
    declared = metadata(built).get_all("Requires-Dist") or []
    core = [requirement for requirement in declared if "extra ==" not in requirement]
    install = ("pip", "install", "--quiet", "--python", str(environment.home))
    environment.uv(*install, "--resolution", resolution, str(built["wheel"]), *core)
    names = [re.split("[<>=]", requirement)[0] for requirement in core]
    asked = f"from importlib.metadata import version; print(*map(version, {names}))"
    found = environment.run("python", "-c", asked).split()
    constraints = (ROOT / "constraints.txt").read_text().splitlines()
    if all(f"{name}=={one}" in constraints for name, one in zip(names, found, strict=True)):
        pytest.skip("these versions are the tested ones")
    check_core(environment)


def check_round_trip(environment):
    place = Path(environment.run("python", "-c", "import numtok; print(numtok.__file__)").strip())
    assert place.is_relative_to(environment.home)
    shutil.copy(EXAMPLES / "sample.jsonl", environment.work)
    encode = "numtok encode sample.jsonl -o a.parquet --numbers xval:log,bits --keep-text"
    environment.run(*encode.split())
    environment.run("numtok", "decode", "a.parquet", "-o", "back.jsonl")
    assert texts(environment.work / "back.jsonl") == texts(EXAMPLES / "sample.jsonl")


def texts(path):
    return [json.loads(line)["text"] for line in path.read_text("utf-8").splitlines()]


def check_core(environment):
    """Encode, decode, inspect, train, and the demo."""
    check_round_trip(environment)
    shutil.copy(EXAMPLES / "demo.py", environment.work)
    for command in (
        "numtok train sample.jsonl -o trained --vocab-size 500",
        "numtok encode sample.jsonl -o t.arrow --tokenizer trained --numbers place --keep-text",
        "numtok decode t.arrow -o trained.jsonl --tokenizer trained",
    ):
        environment.run(*command.split())
    assert texts(environment.work / "trained.jsonl") == texts(EXAMPLES / "sample.jsonl")
    assert "1,234.5" in environment.run("numtok", "inspect", "not 1,234.5", "--numbers", "xval")
    assert environment.run("python", "demo.py").endswith("Decoded: every byte is the same.\n")


# Extras

TORCH = """
import sys
import torch
from torch import nn
from numtok_torch import NumberCollator, NumberDataset, NumberModel, embedding_from_schema, head_from_schema

class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.layer, self.out = nn.Embedding(16_100, 16), nn.Linear(16, 16), nn.Linear(16, 16_100)
    def get_input_embeddings(self):
        return self.words
    def get_output_embeddings(self):
        return self.out
    def forward(self, inputs_embeds, attention_mask=None):
        return self.layer(inputs_embeds).relu()

data = NumberDataset("a.parquet")
batch = NumberCollator.from_schema(data.schema, pad_token_id=0, objective="causal")([data[0], data[1]])
torch.manual_seed(0)
model = NumberModel(Backbone(), embedding_from_schema(data.schema, 16), head_from_schema(data.schema, 16), causal=True)
loss = model(**batch).loss
loss.backward()
assert loss.isfinite() and model.backbone.words.weight.grad.any()
model.save_pretrained("plain")
assert "transformers" not in sys.modules
"""
DROP_IN = """
import numtok
from numtok.hf import NumberTokenizer

tokenizer = NumberTokenizer.from_pretrained("trained", numbers=[numtok.XVal()])
batch = tokenizer(["It weighs -1.5e3 kg"], return_numbers=True)
assert [v for v, there in zip(batch["number_value"][0], batch["number_mask"][0]) if there] == [-1500]
assert tokenizer.batch_decode(batch["input_ids"], number_value=batch["number_value"]) == ["It weighs -1500 kg"]
tokenizer.save_pretrained("drop-in")
assert NumberTokenizer.from_pretrained("drop-in")("a 5").input_ids == tokenizer("a 5").input_ids
"""


REMOTE = """
import numtok
numtok.encode_files("sample.jsonl", "memory://bucket/data/", numbers="xval:log,bits", keep_text=True, shards=2)
numtok.decode_files("memory://bucket/data/", "from-store.jsonl")
"""


def check_remote(environment, requirement):
    """A job in an object store, and back.

    (Without the extra it may run as well: tokenizers brings fsspec today, in some version.)
    """
    environment.install(requirement)
    environment.run("python", "-c", REMOTE)
    assert texts(environment.work / "from-store.jsonl") == texts(EXAMPLES / "sample.jsonl")


def check_torch(environment, requirement):
    assert environment.advised("import numtok_torch") == requirement
    environment.install(requirement)
    environment.run("python", "-c", TORCH)


def check_hf(environment, requirement):
    assert environment.advised("import numtok.hf") == requirement
    environment.install(requirement)
    environment.run("python", "-c", DROP_IN)
    shutil.copy(EXAMPLES / "huggingface.py", environment.work)
    environment.run("python", "huggingface.py", "--steps", "2", "--batch-size", "4")


def check_report(environment, requirement):
    """It draws the pictures of the documentation."""
    environment.install(requirement)
    shutil.copy(ROOT / "docs" / "plots.py", environment.work)
    environment.run("python", "plots.py", "images")
    drawn, kept = (
        {path.name for path in folder.glob("*.png")}
        for folder in (environment.work / "images", ROOT / "docs" / "images")
    )
    # those are of pages in a browser
    assert drawn == kept - {"inspect.png", "playground.png", "stats.png"} and drawn


def check_ray(environment, requirement):
    """A cluster that is started for the command writes the shards."""
    job = shlex.split("numtok encode sample.jsonl -o parts/ --shards 2 --ray local --scale 1")
    refused = environment.start(*job)
    assert refused.returncode != 0 and f"pip install '{requirement}'" in refused.stderr
    environment.install(requirement)
    environment.run(*job)
    assert "done      2 of 2 shards" in environment.run("numtok", "status", "parts/")


EXTRAS: dict[str, Callable[[Environment, str], None]] = {
    "remote": check_remote,
    "torch": check_torch,
    "hf": check_hf,
    "report": check_report,
    "ray": check_ray,
}
