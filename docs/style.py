"""List sentences and paragraphs of README.md and docs/ that are hard to read at once.

``python docs/style.py`` checks README.md, docs/*.md, docs/evidence/ and the tutorials; with paths,
those pages alone. Listed are sentences of more than 35 words, paragraphs of more than 90 words, and
sentences that begin with It, That, Those, One or Of. Code, tables, headings, pictures and lists of
links are skipped. The exit status is 1 where more than 2% of all sentences are listed, or any
sentence of README.md or docs/start.md.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SENTENCE_WORDS = 35
PARAGRAPH_WORDS = 90
VAGUE_SUBJECTS = {"It", "That", "Those", "One", "Of"}
SHARE = 0.02
STRICT = ("README.md", "docs/start.md")
FOLDERS = ("docs", "docs/evidence", "docs/tutorials")

FENCE = re.compile(r"^ *```.*?^ *```", re.M | re.S)
COMMENT = re.compile(r"<!--.*?-->", re.S)
CODE = re.compile(r"(`+)[^`].*?\1", re.S)
PICTURE = re.compile(r"!\[[^]]*\]\([^)]*\)")
LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
NO_PROSE = re.compile(r" *(#|\||<|::: |---)")  # heading, table, HTML, reference, rule
ITEM = re.compile(r"^ *([-*+]|\d+\.) +")
SENTENCE_END = re.compile(r"""(?<=[.?!])["'”)]*\s+(?=["'“(]?[A-Z0-9`])""")
ABBREVIATION = re.compile(r"\b(e\.g|i\.e|etc|vs|cf|Fig|al|approx|no)\.$")


@dataclass(frozen=True)
class Paragraph:
    """A paragraph or list item without inline markup, and the number of its first line."""

    line: int
    text: str

    def sentences(self) -> list[str]:
        """Return the sentences; an abbreviation does not end a sentence."""
        parts = SENTENCE_END.split(self.text)
        sentences = [parts[0]]
        for part in parts[1:]:
            if ABBREVIATION.search(sentences[-1]):
                sentences[-1] += f" {part}"
            else:
                sentences.append(part)
        return [sentence for sentence in sentences if words(sentence)]


@dataclass(frozen=True)
class Finding:
    """A sentence or paragraph that breaks a rule."""

    page: str
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        """Return ``page:line: rule: text``, the text cut to one line of the terminal."""
        return f"{self.page}:{self.line}: {self.rule}: {self.text[:90]}"


def words(text: str) -> list[str]:
    """Return the words of a text. A code span is one word, a dash none.

    >>> words("Encode `a b c` - once")
    ['Encode', '`code`', 'once']
    """
    return [word for word in CODE.sub("`code`", text).split() if re.search(r"\w", word)]


def paragraphs(markdown: str) -> Iterator[Paragraph]:
    """Yield the paragraphs and list items of a page that hold prose.

    >>> [one.text for one in paragraphs("# Head\\n\\nA *b*\\nc.\\n\\n- [d](e.md)\\n- f [g](h.md)")]
    ['A b c.', 'f g']
    """
    kept_lines = lambda match: "\n" * match[0].count("\n")  # noqa: E731
    markdown = COMMENT.sub(kept_lines, FENCE.sub(kept_lines, markdown))
    first, lines = 0, list[str]()
    for number, line in enumerate([*markdown.split("\n"), ""], 1):
        starts_item = bool(ITEM.match(line))
        if lines and (starts_item or not line.strip() or NO_PROSE.match(line)):
            if text := _prose(lines):
                yield Paragraph(first, text)
            lines = []
        if line.strip() and not NO_PROSE.match(line):
            first = first if lines else number
            lines.append(line)


def _prose(lines: list[str]) -> str:
    """Return the text of a paragraph without inline markup; "" for a list item of links alone."""
    item = ITEM.match(lines[0])
    text = " ".join([ITEM.sub("", lines[0]), *lines[1:]])
    text = PICTURE.sub("", text)
    if item and not re.search(r"\w", LINK.sub("", text)):
        return ""
    text = re.sub(r"\*\*|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)", "", LINK.sub(r"\1", text))
    return " ".join(text.split()).lstrip("> ")


def findings(page: str, markdown: str) -> tuple[list[Finding], int]:
    """Return the findings on a page, in order, and how many sentences the page has.

    >>> listed, sentences = findings("a.md", "One token is enough. Two are not.")
    >>> str(listed[0]), sentences
    ("a.md:1: begins with 'One': One token is enough.", 2)
    """
    listed, count = list[Finding](), 0
    for paragraph in paragraphs(markdown):
        length = len(words(paragraph.text))
        if length > PARAGRAPH_WORDS:
            rule = f"paragraph of {length} words"
            listed.append(Finding(page, paragraph.line, rule, paragraph.text))
        for sentence in paragraph.sentences():
            count += 1
            rules = list[str]()
            if len(words(sentence)) > SENTENCE_WORDS:
                rules.append(f"sentence of {len(words(sentence))} words")
            first = re.split(r"\W", sentence.lstrip("\"'“("), maxsplit=1)[0]
            if first in VAGUE_SUBJECTS:
                rules.append(f"begins with {first!r}")
            if rules:
                listed.append(Finding(page, paragraph.line, ", ".join(rules), sentence))
    return listed, count


def pages() -> list[Path]:
    """Return README.md and the pages of docs/ with prose of their own; reference pages have none."""
    return [
        ROOT / "README.md",
        *(path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.md"))),
    ]


def main(paths: list[str]) -> int:
    """Print the findings and their share of all sentences, and return the exit status."""
    listed, count = list[Finding](), 0
    for path in [Path(finding).resolve() for finding in paths] or pages():
        page = str(path.relative_to(ROOT))
        on_page, sentences = findings(page, path.read_text("utf-8"))
        listed += on_page
        count += sentences
    for finding in listed:
        print(finding)
    strict = sum(finding.page in STRICT for finding in listed)
    print(
        f"{len(listed)} of {count} sentences, {len(listed) / max(count, 1):.1%}; at most {SHARE:.0%},"
        f" and none in {' and '.join(STRICT)} ({strict} now)"
    )
    return int(len(listed) > SHARE * count or strict > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
