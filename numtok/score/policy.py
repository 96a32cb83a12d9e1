"""Policies of scoring: what counts as the answer, and how far it may differ. Each policy is a name
for a few options.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from numtok.errors import NumtokError
from numtok.numbers.grammar import Grammar

_GRAMMARS = {  # of numtok.numbers.grammar, by how thousands are written
    "comma": Grammar.prose(),
    "point": Grammar.european(),
    "none": Grammar.data(),
    "apostrophe": Grammar.swiss(),
    "lakhs": Grammar.indian(),
}
_CHOICES = {
    "answer": ("auto", "last", "boxed", "hash", "marker"),
    "percent": ("ignore", "divide", "either", "match"),
    "several": ("one", "none"),
    "thousands": tuple(_GRAMMARS),
    "units": ("ignore", "match"),
    "currency": ("ignore", "match"),
}


@dataclass(frozen=True)
class Policy:
    """Options of reading and comparing answers.

    Attributes:
        answer: where the final number stands. ``last``: the last number of the text; ``boxed``: in
            the last ``\\boxed{}``; ``hash``: after the first ``####``; ``marker``: after the last
            "answer is", "Answer:" and their like in thirteen languages; ``auto``: the first of
            boxed, hash, marker, last that the text has.
        several: ``one``: of several answers the one that ``answer`` names counts, such as the last
            box; ``none``: a text has no answer if its boxes, ``####`` and words for an answer do
            not all give the same number.
        thousands: the grammar of the numerals. ``comma``: 1,234.5, :meth:`numtok.Grammar.prose`;
            ``point``: 1.234,5, :meth:`~numtok.Grammar.european`; ``apostrophe``: 1'234.5,
            :meth:`~numtok.Grammar.swiss`; ``lakhs``: 12,34,567, :meth:`~numtok.Grammar.indian`;
            ``none``: no digits are grouped, :meth:`~numtok.Grammar.data`.
        percent: what 25% equals; its ``value`` stays 25. ``ignore``: 25; ``divide``: 0.25;
            ``either``: both, and another per cent only as such; ``match``: only a per cent.
        fractions: read ``3/4``, ``2 1/2``, ``½`` and ``\\frac{3}{4}`` as one number.
        scales: read ``3.5 million`` and ``$20k`` as 3,500,000 and 20,000.
        latex: read ``\\times 10^{5}``, ``10^{5}``, ``10,\\!000``, ``10{,}000`` and ``\\frac``
            (where the comma is the decimal mark, ``2{,}5`` is 2.5); what is raised or lowered, as in
            ``x_{2}``, is no number.
        signs: read ``- 5``, ``-$5``, ``= –5``, ``minus 5``, ``negative 5`` and 负5 as -5.
        units, currency: ``match``: another unit or currency than the target's is another answer.

    Raises:
        NumtokError: for a value that an option does not have.

    Example:
        >>> from numtok.score import final_number
        >>> final_number("1.234,5 Euro", Policy(thousands="point")).value
        Decimal('1234.5')
    """

    answer: str = "auto"
    several: str = "one"
    thousands: str = "comma"
    percent: str = "ignore"
    fractions: bool = True
    scales: bool = True
    latex: bool = True
    signs: bool = True
    units: str = "ignore"
    currency: str = "ignore"

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise NumtokError(
                    f"{name}={getattr(self, name)!r} is not known to a policy; use one of"
                    f" {', '.join(choices)}"
                )

    @property
    def grammar(self) -> Grammar:
        """The grammar that says what a numeral is. Without ``fractions``, ``scales``, ``latex`` and
        ``signs``, a policy reads what :func:`numtok.extract` finds with it, and nothing else.
        """
        return _GRAMMARS[self.thousands]


POLICIES = MappingProxyType(
    {
        "default": Policy(),
        "strict": Policy(
            answer="last",
            percent="match",
            fractions=False,
            scales=False,
            latex=False,
            signs=False,
            units="match",
            currency="match",
        ),
        "gsm8k": Policy(),
        "math": Policy(scales=False),
        "finance": Policy(percent="either"),
        "european": Policy(thousands="point"),
    }
)


def policy_named(policy: Policy | str) -> Policy:
    """Return the policy itself, or the policy of that name.

    Raises:
        NumtokError: if there is none.
    """
    if isinstance(policy, Policy):
        return policy
    if policy not in POLICIES:
        raise NumtokError(f"no policy is called {policy!r}; there are {', '.join(POLICIES)}")
    return POLICIES[policy]
