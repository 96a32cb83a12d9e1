"""Translate docstrings for griffe: roles such as ``:class:`numtok.Grammar``` become links,
arguments that share a description, ``start, stop: ...``, become one entry each, and ``Example:``
becomes the section ``Examples:``, whose code is shown as code.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:mod|class|func|meth|attr|data|exc):`(~?)([\w.]+)`")
EXAMPLE = re.compile(r"^Example:$", re.M)
TOGETHER = re.compile(r"^    (\w+)((?:, \w+)+): (.*(?:\n {8}.*)*)", re.M)


class Roles(griffe.Extension):
    """Extension of griffe that translates every docstring."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Translate the docstring of a module, class, function or attribute; griffe calls this."""
        if obj.docstring is not None:
            text = EXAMPLE.sub("Examples:", TOGETHER.sub(_apart, obj.docstring.value))
            obj.docstring.value = ROLE.sub(_link, text)


def _apart(match: re.Match[str]) -> str:
    """Return an entry for each of several arguments; the later ones refer to the first."""
    first, others, description = match.groups()
    more = [f"    {name}: see ``{first}``." for name in others.split(", ")[1:]]
    return "\n".join([f"    {first}: {description}", *more])


def _link(match: re.Match[str]) -> str:
    """Return a link to an object of the site; ``optional`` leaves plain code for other objects."""
    label = match[2].rsplit(".", 1)[-1] if match[1] else match[2]
    return f'<autoref identifier="{match[2]}" optional><code>{label}</code></autoref>'
