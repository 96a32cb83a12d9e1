"""Refuse docstrings that do not begin with what a thing does or is (`make check` runs this)."""

import ast
import re
import sys

from places import ROOT

FOLDERS = ("numtok", "numtok_torch", "cli", "benchmarks", "examples", "docs")
REFUSED = re.compile("(Of|Likewise|The same|See|What|Those|That|One|How|As)\\b")


def refused_in(source):
    """Yield (line, first line of the docstring) of each docstring that begins with a refused word."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node) or ""
            if REFUSED.match(text):
                yield getattr(node, "lineno", 1), text.partition("\n")[0]


def main():
    """Print the docstrings that are refused, and return how many there are."""
    count = 0
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        for line, text in refused_in(path.read_text("utf-8")):
            print(f"{path.relative_to(ROOT)}:{line}: begin with a verb, or name the thing: {text}")
            count += 1
    return count


if __name__ == "__main__":
    sys.exit(main() > 0)
