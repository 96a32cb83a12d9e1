"""The list of promises names tests that are there, and says each thing once."""

import ast
import re

from places import ROOT

PAGE = ROOT / "tests" / "PROMISES.md"


def test_each_promise_has_its_test():
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("- ")]
    lost = []
    for line in lines:
        held_by = re.findall(r"`([\w/]+\.py)::(\w+)`", line)
        assert held_by, f"no test holds: {line}"
        for file, name in held_by:
            path = ROOT / "tests" / file
            body = ast.parse(path.read_text("utf-8")).body if path.is_file() else []
            if name not in [one.name for one in body if isinstance(one, ast.FunctionDef)]:
                lost.append(f"{file}::{name}")
    assert lost == []
    promises = [line.partition(": `")[0] for line in lines]
    assert len(set(promises)) == len(promises) > 80
    assert len(PAGE.read_text("utf-8").splitlines()) <= 120, "the list is to stay short"
