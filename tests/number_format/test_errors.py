"""Check what number formats and their logits processor refuse."""

import errors
import pytest
import trained

from numtok import NumberFormat, Tokenizer
from numtok.errors import FormatError
from numtok.number_format.grounded_processor import GroundedLogitsProcessor

transformers = pytest.importorskip("transformers")
from numtok.hf import NumberTokenizer

ENDLESS = trained.stock("gpt2")
DIGIT = NumberFormat(0, 9)


def ours(numbers):
    return NumberTokenizer.from_pretrained(numbers=numbers, eos_token="<|endoftext|>")


OPTIONS = [
    ({"minimum": 3, "maximum": 2}, "no number is left"),
    ({"maximum": -1, "sign": ""}, "no number is left"),
    ({"minimum": "nan"}, "finite"),
    ({"minimum": True}, "finite"),
    ({"step": 0}, "above 0"),
    ({"decimals": -1}, "from 0 to 400"),
    ({"sign": "+"}, "sign="),
    ({"grouping": "."}, "grouping="),
    ({"texts": ("1",), "decimals": 2}, "leave the other options out"),
    ({"maximum": 10**12, "step": 10**6 + 3}, "states"),
]
ERRORS = {
    FormatError: [
        *((lambda options=options: NumberFormat(**options), told) for options, told in OPTIONS),
        *(
            (lambda one=one: NumberFormat.of([one]), "is not one number")
            for one in ("", "12 apples", "1 2", "x")
        ),
        (lambda: NumberFormat.of([]), "give some"),
        (lambda: NumberFormat.of("123"), "give a list"),
        (lambda: NumberFormat(0, "0.12345678901234567891").json_schema(), "string=True"),
        (lambda: NumberFormat(0, 10**12, step=7).regex(), "gbnf"),
        (lambda: DIGIT.logits_processor(5, eos_token_id=0), "got int"),
        (lambda: DIGIT.logits_processor(ENDLESS), "no end token"),
        *(
            (lambda hold=hold, numbers=numbers: hold(ours(numbers)), "tokens of its own")
            for hold in (DIGIT.logits_processor, GroundedLogitsProcessor)
            for numbers in ("digits:1", "digits:3,bare", "place:lsd", "xval", "p10")
        ),
        (lambda: DIGIT.logits_processor(Tokenizer.from_pretrained()), "tokens of its own"),
    ]
}


@errors.rows(ERRORS)
def test_errors(call, kind, told, fields):
    errors.check(call, kind, told, fields)
