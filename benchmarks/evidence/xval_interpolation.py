"""xVal, figures on what lies outside the training data: expressions with an operand that no model
was trained on.

The models are those of xval_expressions, and so are the results: each of its runs asks for both
kinds of expressions. An operand is in the gap if it lies between two values of the training data,
and beyond if it is larger than all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.evidence import tables, xval_expressions
from benchmarks.evidence.experiment import Experiment
from benchmarks.evidence.plots import dots, shown
from benchmarks.evidence.store import Result, Settings
from benchmarks.evidence.xval_expressions import WHERE, by_row

NAME = "xval_interpolation"


def section(results: list[tuple[Settings, Result]], plots: Path) -> str:
    """R², the median of the relative error and the share that is no number, where operands were
    seen, in the gap, and beyond.
    """
    by = by_row(results)
    columns = {
        "r2": ("R²", ".4f"),
        "median_error": ("median error", ".2g"),
        "unparseable": ("no number", ".1%"),
    }
    rows = [
        [f"`{numbers}` {tables.seeds(found)}"]
        + [
            tables.mean((one[where][key] for one in found), form)
            for key, (_, form) in columns.items()
            for where in WHERE
        ]
        for numbers, found in by.items()
    ]
    table = tables.markdown(
        ["", *(f"{head}, {where}" for head, _ in columns.values() for where in WHERE)], rows
    )
    values = {
        numbers: {where: some for where in WHERE if (some := _errors(found, where))}
        for numbers, found in by.items()
    }
    if not values:
        return table
    picture = plots / f"{NAME}.svg"
    dots(picture, values, "median relative error, 2 operands", log=True)
    return f"{table}\n\n{shown(picture, 'Errors where operands were seen, in the gap, and beyond', values)}"


def seen(results: list[tuple[Settings, Result]]) -> str:
    """How many times the error with seen operands that in the gap and that beyond are."""
    said = []
    for numbers, found in by_row(results).items():
        errors = [_errors(found, where) for where in WHERE]
        if all(errors):
            known, gap, beyond = (float(np.mean(some)) for some in errors)
            said.append(f"`{numbers}` {gap / known:.1f} and {beyond / known:.1f} times")
    return (
        f"Median errors in the gap and beyond, over those of seen operands: {', '.join(said)}."
        if said
        else ""
    )


def _errors(found: Sequence[Result], where: str) -> list[float]:
    return [one[where]["median_error"] for one in found if one[where]["median_error"] is not None]


EXPERIMENT = Experiment(
    NAME,
    "xVal, section 3.3, figure 5 (there on orbits of planets)",
    "Text-based encodings other than P10 do not predict any number that they did not see for a"
    " quantity; xVal interpolates between those that it saw.",
    xval_expressions.phases,
    xval_expressions.run,
    section,
    question="And where the training left numbers out?",
    differs=(
        "The runs are those of `xval_expressions`. In the paper the gap is in what is predicted, here"
        " in an operand that is read: the training has answers of all sizes. Tokens of P1000 that the"
        " gap needs hardly stand in any input of the training; in the paper other quantities have"
        " them."
    ),
    seen=seen,
    verdict=(
        "Says nothing of what is predicted, which the paper asks: that takes a gap in the answers. Of"
        " what is read: the errors of xVal and `logfourier` do not grow in the gap; that of P1000 grows"
        " several times, as it has to read tokens that it hardly ever saw; P10 fills the gap too."
    ),
    kept_in=xval_expressions.NAME,
)
