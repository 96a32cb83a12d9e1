"""docs/style.py: which sentences and paragraphs of a page it lists, and when it fails."""

import doctest
import importlib.util
import sys

import pytest
from places import ROOT

SPEC = importlib.util.spec_from_file_location("docs_style", ROOT / "docs" / "style.py")
style = sys.modules[SPEC.name] = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(style)

LEFT_OUT = """# It is a title

```python
It = That  # Of code
```

| It | is |
|---|---|
| One | cell |

![It shows](a.png)

- [It](a.md)
- [One](b.md), [Of](c.md)

<img src="a.png" alt="It">

<!-- It is a
comment. -->
"""
SHORT = "Four words are here.\n" * 22
PAGES = {  # lines and rules of what is listed
    "The `numtok encode a.txt` " + "word " * 32 + "end.": [],  # a code span counts as one word
    "The `numtok encode a.txt` " + "word " * 33 + "end.": [(1, "sentence of 36 words")],
    f"# Title\n\n{SHORT}two words.\n- item\n": [],
    f"# Title\n\n{SHORT}three more words.\n- item\n": [(3, "paragraph of 91 words")],
    "It is. So is it. It's here.": [(1, "begins with 'It'")] * 2,
    "**That** helps. These do not, and those do.": [(1, "begins with 'That'")],
    "A model. Of ten.\n\n1. One token.": [(1, "begins with 'Of'"), (3, "begins with 'One'")],
    "[Those](a.md) are links.": [(1, "begins with 'Those'")],
    "Its name. Onethird. Item. Formats, e.g. It-files, i.e. One of them, weigh 1.5 kg.": [],
    "```sh\nls\nls\n```\n\nA line\nof text. It is.": [(6, "begins with 'It'")],
    LEFT_OUT: [],
}


def test_examples_in_its_docstrings():
    result = doctest.testmod(style)
    assert result.attempted and not result.failed


@pytest.mark.parametrize("page", PAGES)
def test_what_is_hard_to_read_is_listed(page):
    found, _ = style.findings("page.md", page)
    assert [(one.line, one.rule) for one in found] == PAGES[page]


@pytest.mark.parametrize(
    ("vague", "readme", "status"), [(2, "A page.", 0), (3, "A page.", 1), (0, "It is.", 1)]
)
def test_the_exit_status(vague, readme, status, monkeypatch, tmp_path, capsys):
    """Two in a hundred sentences may be listed, and none of README.md."""
    monkeypatch.setattr(style, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text(f"{readme}\n")
    page = "It is.\n\n" * vague + "A page.\n\n" * (99 - vague)
    (tmp_path / "docs" / "page.md").write_text(page)
    assert style.main([]) == status
    assert ("docs/page.md:1: begins with 'It': It is.\n" in capsys.readouterr().out) == (vague > 0)
