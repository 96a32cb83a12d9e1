"""Runs the fenced blocks of a Markdown document as a reader would: from the top, in one folder and
one Python session, as they stand.

- ``sh`` runs in a shell that stops at the first error.
- ``console``: lines after ``$ `` run in a shell; what follows them is what they print, line by line.
- ``python`` runs in the document's session. A line ``expression  # [value]`` states its value, where
  ``...`` stands for anything.
- ``text`` is made to be read. Any other language, or none, is an error.
"""

import ast
import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from places import ROOT

FENCE = re.compile(r"^```(?P<language>[^\n`]*)\n(?P<source>.*?)^```$", re.M | re.S)
VALUE = re.compile(
    r"""^(?P<expression>\S.*?)  \# (?P<value>[\[({'"\d].*|True|False|None|(?:Decimal|Fraction)\(.*)$"""
)


@dataclass(frozen=True)
class Block:
    """A fenced block: of which document, at which line, in which language."""

    document: Path
    line: int
    language: str
    source: str

    def __str__(self):
        return f"{self.document.relative_to(ROOT)}:{self.line}"


def documents():
    """All that a user is given to read and may copy from."""
    pages = sorted((ROOT / "docs").rglob("*.md"))
    return [ROOT / "README.md", *pages, ROOT / "numtok" / "FORMAT.md"]


def blocks(document):
    """The fenced blocks of a document, in order."""
    text = document.read_text("utf-8")
    found = [
        Block(document, text.count("\n", 0, one.start()) + 1, one["language"], one["source"])
        for one in FENCE.finditer(text)
    ]
    fences = re.findall(r"^\s*```", text, re.M)
    assert 2 * len(found) == len(fences), f"{document}: a fence is indented or does not close"
    return found


@dataclass
class Session:
    """Where the blocks of one document run: a folder, which is the current one, and the names that
    its Python code has defined.
    """

    folder: Path
    names: dict[str, Any]

    def run(self, block):
        """What the block printed, for a text the text itself; raises if it fails, or if a result
        that it states is another.
        """
        ways = {"sh": self._sh, "console": self._console, "python": self._python}
        if block.language == "text":
            return block.source
        assert block.language in ways, f"{block}: mark it as sh, console, python or text"
        return ways[block.language](block)

    def _sh(self, block, source=None):
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        own = {"PATH": path, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "COLUMNS": "80"}
        command = ["bash", "-euo", "pipefail", "-c", source or block.source]
        how = {"cwd": self.folder, "env": {**os.environ, **own}, "timeout": 600}
        done = subprocess.run(command, capture_output=True, text=True, **how)
        assert done.returncode == 0, f"{block}: exit code {done.returncode}\n{done.stderr}"
        return done.stdout

    def _console(self, block):
        first, *rest = re.split(r"^\$ ", block.source, flags=re.M)
        assert not first and rest, f"{block}: begins with no command after '$ '"
        for part in rest:
            command, _, printed = part.partition("\n")
            found, stated = (
                # no page shows the spaces at the ends of lines
                [line.rstrip() for line in text.rstrip().splitlines()]
                for text in (self._sh(block, command), printed)
            )
            assert found == stated, f"{block}: {command} prints something else"
        return block.source

    def _python(self, block):
        source = "\n" * block.line + block.source  # tracebacks then name the lines of the document
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(source, str(block.document), "exec"), self.names)
        for line in block.source.splitlines():
            if (stated := VALUE.match(line)) and _is_expression(stated["expression"]):
                value = repr(eval(stated["expression"], self.names))
                check = doctest.OutputChecker().check_output
                assert check(stated["value"], value, doctest.ELLIPSIS), (
                    f"{block}: {line}\nis {value}"
                )
        return printed.getvalue()


def _is_expression(source):
    with contextlib.suppress(SyntaxError):
        return bool(ast.parse(source, mode="eval"))
    return False
