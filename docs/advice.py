"""Write the tables of advice in README.md and docs/choosing.md from ``numtok.statistics.advice``:
``python docs/advice.py``.
"""

from __future__ import annotations

import re
from pathlib import Path

from numtok.statistics.advice import ADVICE

ROOT = Path(__file__).resolve().parent.parent
KINDS = {
    "tokens": "tokens",
    "tokens, layer": "tokens, and a layer in front of your model",
    "value": "value",
}


def readme_table() -> str:
    """Return the table of README.md, in Markdown."""
    rows = [("you have, and want", "take", "kind, and how it works")]
    rows += [
        (one.wanted, f"`{one.take}`", f"{KINDS[one.kind]}: {one.how}")
        for one in ADVICE
        if one.wanted
    ]
    return _markdown(rows)


def choosing_table() -> str:
    """Return the table of docs/choosing.md, in Markdown."""
    rows = [("the model has to", "take", "`numtok stats --task`")]
    for one in ADVICE:
        if one.model:
            take = f"`{one.take}`" + (f", {one.more}" if one.more else "")
            rows.append(
                (f"[{one.model}](#{one.section})", take, f"`{one.task}`" if one.task else "")
            )
    return _markdown(rows)


def _markdown(rows: list[tuple[str, str, str]]) -> str:
    """Return rows, the first of which are heads, as a Markdown table."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|---|---|---|", *lines[1:]]).replace("|  |", "| |") + "\n"


TABLES = {
    ROOT / "README.md": (r"\| you have, and want \|.*\n(?:\|.*\n)+", readme_table),
    ROOT / "docs" / "choosing.md": (r"\| the model has to \|.*\n(?:\|.*\n)+", choosing_table),
}


def with_table(path: Path) -> str:
    """Return a page with its table as the code has it."""
    pattern, table = TABLES[path]
    text, count = re.subn(pattern, lambda _: table(), path.read_text("utf-8"))
    if count != 1:
        raise ValueError(f"{path} has {count} tables of advice in place of one")
    return text


if __name__ == "__main__":
    for page in TABLES:
        page.write_text(with_table(page), "utf-8")
