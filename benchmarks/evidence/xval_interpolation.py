"""xVal, figure 5, on what lies outside the training data: expressions with an answer, or with an
operand, that no model was trained on.

The models are those of xval_expressions, and so are the results: each of its runs asks for these
expressions too. An answer, or an operand, is in the gap if it lies between two values of the
training data, and an operand is beyond if it is larger than all of them. Beside the gap of the
answers lies another interval as wide, of which the training has its share.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.evidence import tables, xval_expressions
from benchmarks.evidence.experiment import Experiment
from benchmarks.evidence.expressions import ANSWERS
from benchmarks.evidence.plots import dots, shown
from benchmarks.evidence.store import Result, Settings
from benchmarks.evidence.xval_expressions import WHERE, by_row

NAME = "xval_interpolation"


def section(results: list[tuple[Settings, Result]], plots: Path) -> str:
    """Return what is predicted where the answer is in the gap, and beside it; and the errors where
    operands were seen, in the gap, and beyond.
    """
    by = by_row(results)
    heads = [
        "",
        *(f"{what}, {where}" for what in ("predicted there", "median error") for where in ANSWERS),
        *(f"median error, operand {where}" for where in WHERE),
        "no number, answer gap",
    ]
    rows = [
        [
            f"`{numbers}` {tables.seeds(found)}",
            *(tables.mean((one[where]["there"] for one in found), ".0%") for where in ANSWERS),
            *(tables.mean(_errors(found, where), ".2g") for where in (*ANSWERS, *WHERE)),
            tables.mean(one["answer gap"]["unparseable"] for one in found),
        ]
        for numbers, found in by.items()
    ]
    table = tables.markdown(heads, rows)
    values = {
        numbers: {where: some for where in (*ANSWERS, *WHERE) if (some := _errors(found, where))}
        for numbers, found in by.items()
    }
    if not values:
        return table
    picture, what = plots / f"{NAME}.svg", "Errors by where answers and operands lie"
    dots(picture, values, "median relative error, 2 operands", log=True)
    return f"{table}\n\n{shown(picture, what, values)}"


def seen(results: list[tuple[Settings, Result]]) -> str:
    """Return how often answers in the gap are predicted, over how often those beside it are."""
    said = [
        f"`{numbers}` {_there(found, 'answer gap') / beside:.2f}"
        for numbers, found in by_row(results).items()
        if (beside := _there(found, "answer beside"))
    ]
    return (
        f"Share predicted in the gap over the share beside it: {', '.join(said)}." if said else ""
    )


def _there(found: Sequence[Result], where: str) -> float:
    return float(np.mean([one[where]["there"] for one in found]))


def _errors(found: Sequence[Result], where: str) -> list[float]:
    return [one[where]["median_error"] for one in found if one[where]["median_error"] is not None]


EXPERIMENT = Experiment(
    NAME,
    "xVal, section 3.3, figure 5 (there on orbits of planets)",
    "Text-based encodings other than P10 do not predict any number that they did not see for a"
    " quantity. xVal interpolates between the numbers that it saw.",
    xval_expressions.phases,
    xval_expressions.run,
    section,
    question="Can a model predict numbers from a range that the training left out?",
    result=(
        "P1000 never predicts a number in such a range; P10, which does in the paper, predicts 0 to 2%"
        " there. xVal and `logfourier` predict as many in it as in the range next to it."
    ),
    sure="Shown in part, for P1000, with three or four seeds; B1999 and FP15 were not run.",
    rows=("`xval`", "`p10`", "`p1000`"),
    columns=("predicted there, answer gap", "predicted there, answer beside"),
    labels={
        "predicted there, answer gap": "answers in it: predictions in it",
        "predicted there, answer beside": "answers next to it: predictions next to it",
    },
    picture="xval_interpolation.svg",
    differs="""\
The runs are those of `xval_expressions`.

- **Answers.** The training has no answers between 3 and 3.5, and answers of all other sizes. 1,000
  questions ask for answers in that gap, of either sign. 1,000 others ask for answers beside it,
  between 3.5 and 4, which the training has in one of 17 samples. A prediction counts if it lies in
  the range with the right sign.
- **In the paper**, one of several quantities has a gap. In both, the tokens that the gap needs stand
  elsewhere: here in operands, and in 1% of the answers, which are a tenth as large.
- **Operands.** None lies between 2 and 2.5, nor beyond 5. The tokens of P1000 for these hardly stand
  in any operand. Errors beyond 5 are of larger answers, and so do not compare.""",
    seen=seen,
    verdict="""\
Shown in part, for P1000.

- **P1000 predicts no unseen number: shown.** Where no answer of the training lies, P1000 predicts
  none, with any of three seeds. Beside the gap it predicts 71 to 96% of the answers there. xVal and
  `logfourier` predict as many in the gap as beside it. B1999 and FP15 were not run.
- **P10 is an exception: not shown.** P10 predicts 0 to 2% in the gap, and 46 to 81% beside it.
- **Errors of answers.** In the gap, P1000 errs by 8% in the median, three times as much as beside it.
  xVal errs by 6% in both.
- **Errors where an operand lies in a gap.** The errors of xVal and `logfourier` do not grow. P1000's
  errors grow two- to sixfold.""",
    kept_in=xval_expressions.NAME,
)
