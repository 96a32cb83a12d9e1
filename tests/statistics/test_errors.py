"""Check what statistics refuse to add up, to read, or to advise on."""

import errors
import trained

from numtok import Tokenizer, corpus_stats
from numtok.errors import InputError
from numtok.representations import Subword
from numtok.statistics import Statistics
from numtok.statistics.report import Report

GOOD = Statistics.of_batch(["5 km"]).to_json()
DAMAGED = [{"forms": {"odd": 1}}, {"numbers": None}, {"first_digits": {"10": 1}}]


def of(source):
    """Count one text with numbers as the tokens of a tokenizer."""
    return Statistics.of_batch(["a 5"], tokenizer=Tokenizer(source, [Subword()]))


ERRORS = {
    InputError: [
        (lambda: of(trained.config("gpt2")) + of(trained.config("bert")), "two tokenizers"),
        (lambda: Statistics.from_json([1]), "no statistics"),
        (lambda: Statistics.from_json(GOOD | {"format": "other"}), "no statistics"),
        *((lambda one=one: Statistics.from_json(GOOD | one), "damaged") for one in DAMAGED),
        (lambda: Report.of(Statistics.of_batch(["5 km"]), task="nope"), "'nope'…'arithmetic'"),
        (lambda: corpus_stats("no.jsonl"), "no.jsonl: no such file"),
    ]
}


@errors.rows(ERRORS)
def test_errors(call, kind, told, fields):
    errors.check(call, kind, told, fields)
