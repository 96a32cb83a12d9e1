"""Check what reading, comparing and looking up numbers in answers refuse."""

import errors

from numtok.errors import InputError, NumtokError
from numtok.score import Policy, equal, grounded, grounded_report, report
from numtok.score.adapters import grounded_reward
from numtok.score.tasks import Tasks

ERRORS = {
    NumtokError: [
        (lambda: equal("1", "1", -1), "tolerance is a number from 0"),
        (lambda: equal("1", "1", 0, "maths"), "no policy is called 'maths'; there are default"),
        (lambda: equal([1], "1"), "neither a text nor a number"),
        (lambda: Policy(percent="drop"), "percent='drop' is not known"),
        (lambda: report(["1"], []), "a target for each"),
        (lambda: grounded("1", "1", tolerance=-1), "tolerance=-1 is neither"),
        (lambda: grounded("1", "1", tolerance="near"), "tolerance='near' is neither"),
        (lambda: grounded("1", ["1", None]), "source 2 is NoneType, not a text"),
        (lambda: grounded(5, "1"), "the answer is int, not a text"),
        (lambda: grounded("1", "1", policy="x"), "no policy is called 'x'"),
        (
            lambda: grounded("1", "1", ignore=["months"]),
            "'months' is no kind of figure; use any of count, date",
        ),
        (lambda: grounded_report(["1"], []), "there must be sources for each answer"),
    ],
    InputError: [
        (lambda options=options: Tasks(1, **options), "")
        for options in ({"tasks": ["sum"]}, {"levels": [0]}, {"digits": 31}, {"tasks": []})
    ],
    KeyError: [(lambda: grounded_reward("docs")(["5"], context=["5"]), "docs")],
    IndexError: [(lambda: Tasks(30)[30], "")],
}


@errors.rows(ERRORS)
def test_errors(call, kind, told, fields):
    errors.check(call, kind, told, fields)
