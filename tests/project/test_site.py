"""Check what the site stands on, without building it: every public name is on one page of the reference
and says what it is, and every link of the documentation leads somewhere.
"""

import importlib
import inspect
import re
import sys
from functools import cached_property

from docs_runner import FENCE, documents
from places import ROOT

PUBLIC = ("numtok", "numtok.score", "numtok.hf", "numtok_torch", "numtok_torch.metrics")
ALIASES = {"numtok.hf.DecodeStream"}  # of numtok.DecodeStream
PAGES = [
    *documents(),
    *(ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
]
LINK = re.compile(r"""(?:\]\(|<img src=")([^)\s":#]*)(?:#([^)\s":]*))?[)"]""")
METHODS = (property, cached_property, classmethod, staticmethod)


def public_names():
    names = []
    for module in PUBLIC:
        names += [f"{module}.{name}" for name in importlib.import_module(module).__all__]
    return sorted(set(names) - ALIASES)


def undocumented(path):
    """The name, if it is a class or a function whose docstring shows no example, and the methods
    without a docstring.
    """
    module, name = path.rsplit(".", 1)
    found = getattr(importlib.import_module(module), name)
    if not (inspect.isclass(found) or inspect.isroutine(found)):
        return
    if ">>>" not in (found.__doc__ or ""):
        yield path
    for kind in getattr(found, "__mro__", ()):
        if not kind.__module__.startswith("numtok"):
            continue
        for member, value in vars(kind).items():
            is_method = inspect.isfunction(value) or isinstance(value, METHODS)
            if is_method and not member.startswith("_") and not _doc(found, member, value):
                yield f"{kind.__module__}.{kind.__name__}.{member}"


def _doc(kind, member, value):
    is_data = isinstance(value, property | cached_property)
    return inspect.getdoc(value if is_data else getattr(kind, member))


def test_every_public_name_says_what_it_is_and_shows_an_example():
    assert sorted({bare for path in public_names() for bare in undocumented(path)}) == []


def test_every_public_name_is_in_the_reference_once():
    pages = "".join(page.read_text("utf-8") for page in (ROOT / "docs/reference").glob("*.md"))
    listed, public = re.findall(r"^::: (\S+)", pages, re.M), set(public_names())
    assert sorted(set(listed)) == sorted(listed)
    # a function that is named as its module, which the site would show in its place
    assert [path for path in listed if path in sys.modules] == []
    assert sorted(public - {re.sub(r"\.(\w+)\.\1$", r".\1", path) for path in listed}) == []


def headings(page):
    """The anchors of a page, as its site and the repository's pages make them."""
    prose = FENCE.sub("", page.read_text("utf-8"))
    titles = re.findall(r"^#+ +(.*?) *$", prose, re.M)
    plain = [re.sub(r"`|\[([^]]*)\]\([^)]*\)", r"\1", title).lower() for title in titles]
    named = re.findall(r"^::: (\S+)", prose, re.M)
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in plain} | set(named)


def test_every_link_leads_somewhere():
    assert {page.name: links for page in PAGES if (links := [*broken(page)])} == {}


def broken(page):
    prose = re.sub(r"`[^`\n]+`", "", FENCE.sub("", page.read_text("utf-8")))
    for target, anchor in LINK.findall(prose):
        path = (page.parent / target).resolve() if target else page
        if not path.exists() or (anchor and anchor not in headings(path)):
            yield f"{target}#{anchor}"
