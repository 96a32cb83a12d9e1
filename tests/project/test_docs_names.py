"""The prose of the documentation: the paths and the names that it gives in backticks are there."""

import functools
import pkgutil
import re

from docs_runner import documents
from places import ROOT

PAGES = [*documents(), ROOT / "CONTRIBUTING.md"]
TOPS = [
    "numtok",
    "numtok_torch",
    "cli",
    "tests",
    "benchmarks",
    "examples",
    "docs",
    "integrations",
    ".ci",
    ".github",
]
# lie beside the checkout, or in what is written
NOT_OURS = ("../shared", "tokenizers/gpt", "corpora/wiki.jsonl", "__numtok/", "build/site")
PATH = re.compile(r"\.?[\w.-]+(/[\w.-]+)+/?|[\w-]+\.(py|md|toml|txt)")
NAME = re.compile(r"(numtok(?:_torch)?(?:\.\w+)+)(?:\(.*\))?")


def named(prose, pattern):
    """What stands in backticks and matches, fenced blocks aside."""
    prose = re.sub(r"^ *```.*?^ *```", "", prose, flags=re.DOTALL | re.MULTILINE)
    return [
        word
        for span in re.findall(r"`([^`\n]+)`", prose)
        for word in span.split()
        if pattern.fullmatch(word)
    ]


@functools.cache
def tree():
    """Every file and folder of the repository from its root, modules without their ending too."""
    paths = [*ROOT.iterdir(), *(path for top in TOPS for path in (ROOT / top).rglob("*"))]
    found = [str(path.relative_to(ROOT)) for path in paths if "__pycache__" not in path.parts]
    return frozenset([*found, *(path.removesuffix(".py") for path in found)])


def is_there(path):
    """From the root, or, if it does not begin there, at the end of a path: ``choose.py``,
    ``corpus/pipeline``.
    """
    path = path.rstrip("/")
    return path in tree() or (
        path.split("/")[0] not in TOPS and any(known.endswith(f"/{path}") for known in tree())
    )


def test_the_paths_and_names_of_the_prose_are_there():
    lost = []
    for page in PAGES:
        prose = page.read_text("utf-8")
        paths = (path for path in named(prose, PATH) if not path.startswith(NOT_OURS))
        lost += [(page.name, path) for path in paths if not is_there(path)]
        for written in named(prose, NAME):
            try:
                pkgutil.resolve_name(NAME.fullmatch(written)[1])
            except (AttributeError, ImportError):
                lost.append((page.name, written))
    assert lost == []
