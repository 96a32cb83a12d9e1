"""docs/style.py: which sentences and paragraphs of a page it lists, and when it fails."""

import doctest
import importlib.util
import sys

import pytest
from places import ROOT


@pytest.fixture(scope="module")
def style():
    spec = importlib.util.spec_from_file_location("docs_style", ROOT / "docs" / "style.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def rules(style, markdown):
    """Return (line, rule) of each finding, and the number of sentences."""
    found, count = style.findings("page.md", markdown)
    return [(one.line, one.rule) for one in found], count


def test_examples_in_its_docstrings(style):
    result = doctest.testmod(style)
    assert result.attempted and not result.failed


@pytest.mark.parametrize("count", [35, 36])
def test_a_sentence_may_have_35_words(style, count):
    """A code span counts as one word, whatever it holds."""
    text = "The `numtok encode a.txt` " + "word " * (count - 3) + "end."
    expected = [(1, "sentence of 36 words")] if count == 36 else []
    assert rules(style, text) == (expected, 1)


@pytest.mark.parametrize("count", [90, 91])
def test_a_paragraph_may_have_90_words(style, count):
    """Lines that follow each other are one paragraph; a list item is one of its own."""
    text = "\n".join("Four words are here." for _ in range(22)) + "\n" + "word " * (count - 88)
    expected = [(3, "paragraph of 91 words")] if count == 91 else []
    assert rules(style, f"# Title\n\n{text}\n- item\n")[0] == expected


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("It is. So is it.", ["It"]),
        ("**That** helps. These do not, and those do.", ["That"]),
        ("A model reads. Of ten, two are right.\n\n1. One token.", ["Of", "One"]),
        ("[Those](a.md) are links.", ["Those"]),
        ("Its name. Onethird. Item.", []),
        ("It's here.", ["It"]),
        ("Formats, e.g. It-files, i.e. One of them, weigh 1.5 kg. It's so.", ["It"]),
    ],
)
def test_vague_subjects_are_listed_at_the_beginning_of_a_sentence(style, text, starts):
    assert [rule for _, rule in rules(style, text)[0]] == [f"begins with {one!r}" for one in starts]


def test_code_tables_headings_pictures_and_lists_of_links_are_left_out(style):
    text = """# It is a title

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
    assert rules(style, text) == ([], 0)


def test_the_line_is_that_of_the_page(style):
    assert rules(style, "```sh\nls\nls\n```\n\nA line\nof text. It is.") == (
        [(6, "begins with 'It'")],
        2,
    )


def test_the_exit_status(style, monkeypatch, tmp_path, capsys):
    """Two in a hundred sentences may be listed, and none of README.md."""
    monkeypatch.setattr(style, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    page, readme = tmp_path / "docs" / "page.md", tmp_path / "README.md"
    readme.write_text("A page.\n")
    page.write_text("It is.\n\n" * 2 + "A page.\n\n" * 97)
    assert style.main([]) == 0
    assert "docs/page.md:1: begins with 'It': It is.\n" in capsys.readouterr().out
    page.write_text("It is.\n\n" * 3 + "A page.\n\n" * 97)
    assert style.main([]) == 1
    page.write_text("A page.\n\n" * 99)
    readme.write_text("It is.\n")
    assert style.main([]) == 1
