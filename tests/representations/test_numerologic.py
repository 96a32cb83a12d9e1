"""NumeroLogic: the strings of its code, what may follow what, and what a model gets wrong."""

import re

import pytest
from spelling import read, symbols

from numtok import Grammar, NumeroLogic
from numtok.representations.numerologic import MOST_WRITTEN
from numtok.testing import accepts

ONE = NumeroLogic()


@pytest.mark.parametrize("line", ["{2:71}*{2:63}={", "sin({1.1:0.5})={"])
def test_the_strings_of_the_authors_code(line):
    """``response_template_with_context`` in train.py, which stands in place of ``2*...=``."""
    for written in re.findall(r"\{([^{}]+)\}", line):
        assert symbols(ONE, [written.split(":")[1]]) == [[*written]]
        assert read(ONE, [[*written]]) == [written.split(":")[1]]


@pytest.mark.parametrize(
    ("literal", "written"),
    [
        ("-1,234", "4:-1,234"),
        (".5e-10", "0.1:.5e-10"),
        ("5.e3", "1.0:5.e3"),
        ("+007", "3:+007"),
        ("0", "1:0"),
        ("1" * 1234 + ".25", "1234.2:" + "1" * 1234 + ".25"),
    ],
)
def test_what_is_counted(literal, written):
    assert symbols(ONE, [literal]) == [[*written]]
    assert read(ONE, [[*written]]) == [literal]


def test_what_stands_behind_the_last_colon_is_read():
    """As where the authors score answers: what was announced does not matter then."""
    rows = [[*row] for row in ("3:42", "42", "1:2:3", "2:", "")]
    assert read(ONE, rows) == ["42", "42", "3", "", ""]


def test_only_what_was_announced_may_follow():
    rules = ONE.continuation(Grammar())

    def passes(text):
        return accepts(rules, [ONE.alphabet.index(one) for one in text])

    longest = "9" * MOST_WRITTEN
    good = ["2:71", "1.1:0.5", "4:-1,234", "0.1:.5e-1", "1.0:5.e3", f"{MOST_WRITTEN}:{longest}"]
    bad = ["2:7", "2:711", "02:71", "2:7.1", "1.1:5", "1.1:0.55", "71", "2:", "0:", "2.:71"]
    bad += [f"{MOST_WRITTEN + 1}:{longest}9"]
    assert [text for text in good + bad if passes(text)] == good
