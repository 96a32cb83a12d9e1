"""xVal, figure 5, on values outside the training data: expressions with an answer or an operand
from a range that the training left out.

The models and the results are those of xval_expressions, whose runs ask for these expressions too.
An answer or operand is in the gap if it lies between values of the training, and an operand is
beyond if it is larger than all of them. Beside the gap of the answers lies a range of equal width
of which the training has answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.evidence import tables, xval_expressions
from benchmarks.evidence.experiment import Experiment
from benchmarks.evidence.expressions import ANSWERS
from benchmarks.evidence.plots import dots, picture_link
from benchmarks.evidence.store import Result, Settings
from benchmarks.evidence.xval_expressions import OPERANDS, by_row

NAME = "xval_interpolation"


def section(results: list[tuple[Settings, Result]], plots: Path) -> str:
    """Return a table of predictions and errors by the range of the answer or operand, and a
    picture.
    """
    rows = by_row(results)
    heads = [
        "",
        *(f"{what}, {kind}" for what in ("predicted there", "median error") for kind in ANSWERS),
        *(f"median error, operand {kind}" for kind in OPERANDS),
        "no number, answer gap",
    ]
    lines = [
        [
            f"`{numbers}` {tables.seed_count(runs)}",
            *(tables.mean((run[kind]["there"] for run in runs), ".0%") for kind in ANSWERS),
            *(tables.mean(_errors(runs, kind), ".2g") for kind in (*ANSWERS, *OPERANDS)),
            tables.mean(run["answer gap"]["unparseable"] for run in runs),
        ]
        for numbers, runs in rows.items()
    ]
    table = tables.markdown(heads, lines)
    errors = {
        numbers: {kind: some for kind in (*ANSWERS, *OPERANDS) if (some := _errors(runs, kind))}
        for numbers, runs in rows.items()
    }
    if not errors:
        return table
    picture, title = plots / f"{NAME}.svg", "Errors by where answers and operands lie"
    dots(picture, errors, "median relative error, 2 operands", log=True)
    return f"{table}\n\n{picture_link(picture, title, errors)}"


def observations(results: list[tuple[Settings, Result]]) -> str:
    """Return the share of predictions in the gap over that beside the gap, for each row."""
    ratios = [
        f"`{numbers}` {_there(runs, 'answer gap') / beside:.2f}"
        for numbers, runs in by_row(results).items()
        if (beside := _there(runs, "answer beside"))
    ]
    if not ratios:
        return ""
    return f"Share predicted in the gap over the share beside it: {', '.join(ratios)}."


def _there(runs: Sequence[Result], kind: str) -> float:
    """Return the mean share of predictions that lie in a range of answers, when that is asked."""
    return float(np.mean([run[kind]["there"] for run in runs]))


def _errors(runs: Sequence[Result], kind: str) -> list[float]:
    """Return the median errors of runs on a kind of questions."""
    return [run[kind]["median_error"] for run in runs if run[kind]["median_error"] is not None]


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
    confidence="Shown in part, for P1000, with three or four seeds; B1999 and FP15 were not run.",
    rows=("`xval`", "`p10`", "`p1000`"),
    columns=("predicted there, answer gap", "predicted there, answer beside"),
    labels={
        "predicted there, answer gap": "answers in it: predictions in it",
        "predicted there, answer beside": "answers next to it: predictions next to it",
    },
    picture="xval_interpolation.svg",
    setup="""\
The runs are those of `xval_expressions`.

- **Answers.** The training has no answers between 3 and 3.5, and answers of all other sizes. 1,000
  questions ask for answers in that gap, of either sign. 1,000 others ask for answers beside it,
  between 3.5 and 4, which the training has in one of 17 samples. A prediction counts if it lies in
  the range with the right sign.
- **In the paper**, one of several quantities has a gap. In both, the tokens that the gap needs stand
  elsewhere: here in operands, and in 1% of the answers, which are a tenth as large.
- **Operands.** None lies between 2 and 2.5, nor beyond 5. The tokens of P1000 for these hardly stand
  in any operand. Errors beyond 5 are of larger answers, and so do not compare.""",
    observations=observations,
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
    results_of=xval_expressions.NAME,
)
