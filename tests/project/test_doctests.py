"""The examples in docstrings print what they show."""

import doctest
import importlib
import re
import shutil

import pytest
from places import ROOT, SAMPLE

MODULES = sorted(
    path.relative_to(ROOT).with_suffix("")
    for package in ("numtok", "numtok_torch")
    for path in (ROOT / package).rglob("*.py")
    if ">>>" in path.read_text("utf-8")
)
OPTIONAL = {  # a package, and the modules that need it
    "torch": "torch|numtok_torch",
    "transformers": r"transformers|numtok\.hf",
    "hypothesis": "hypothesis",
}


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_examples_in_docstrings(module, tmp_path, monkeypatch):
    source = (ROOT / module).with_suffix(".py").read_text("utf-8")
    for package, modules in OPTIONAL.items():
        if re.search(rf"^ *(>>> )?(import|from) .*\b({modules})\b", source, re.M):
            pytest.importorskip(package)
    shutil.copy(SAMPLE, tmp_path / "sample.jsonl")
    monkeypatch.chdir(tmp_path)
    name = ".".join(module.parts).removesuffix(".__init__")
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert found.attempted and not found.failed
