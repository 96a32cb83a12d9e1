"""The settings of a drop-in tokenizer as JSON: those of ``numtok.json``, and ``return_numbers``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numtok.numbers.grammar import Grammar, check_grammar
from numtok.representations import Representation, XVal, representations_of


def given_settings(
    numbers: Sequence[Representation | str] | Representation | str | None,
    grammar: Grammar | None,
    leading_space: str | None,
    return_numbers: bool | None,
) -> dict[str, Any]:
    """The settings that were given."""
    given = {
        "numbers": None if numbers is None else [one.to_dict() for one in representations_of(numbers)],
        "grammar": None if grammar is None else check_grammar(grammar).to_dict(),
        "leading_space": leading_space,
        "return_numbers": return_numbers,
    }
    return {name: value for name, value in given.items() if value is not None}


def complete_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings with the defaults for what is not given."""
    defaults = {"numbers": [XVal().to_dict()], "grammar": Grammar().to_dict(), "leading_space": "auto", "return_numbers": False}
    return defaults | settings
