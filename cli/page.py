"""The pages of ``--html``: what is on them as JSON, put into ``page.html``, which draws it and loads
nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .inspection import bit_fields, short, shown_float, shown_value
from .streams import shown

if TYPE_CHECKING:
    from numtok.corpus.look import StoredRow
    from numtok.statistics.report import Report
    from numtok.tokenizer.inspect import Inspection, Token

MOST = 15  # values and units that are listed


def check_folder(path: str) -> None:
    """Refuse a file whose folder is not there."""
    from numtok.errors import OutputError

    folder = Path(path).parent
    if "://" not in path and not folder.is_dir():
        raise OutputError(
            f"cannot write {path}: there is no folder {folder}; make it, or choose another place"
        )


def write_page(data: dict[str, Any], path: str) -> None:
    """Write a page, replacing what is there in one step."""
    from numtok.files import write_file

    check_folder(path)
    write_file(path, page(data))


def page(data: dict[str, Any]) -> str:
    """The page; nothing in the data can end the script that holds it."""
    held = json.dumps(data)
    for character in "<>&":
        held = held.replace(character, f"\\u{ord(character):04x}")
    return Path(__file__).with_name("page.html").read_text("utf-8").replace("{{data}}", held)


def stats_data(report: Report, source: str) -> dict[str, Any]:
    """What ``numtok stats`` shows."""
    from numtok.statistics import tables

    of, advice = report.statistics, report.recommendation
    charts = [table for table in tables.charts(of) if table.rows and of.numbers]
    lists = [table for table in tables.lists(of, MOST) if table.rows]
    return {
        "kind": "stats",
        "title": f"{_count(of.numbers, 'number')} in {_count(of.documents, 'document')}",
        "source": shown(source),
        "options": advice.options,
        "reasons": advice.reasons,
        "remarks": tables.remarks(report),
        "tiles": tables.overview(report),
        "headings": tables.LOSS_HEADINGS,
        "losses": [
            {
                "cells": tables.loss_cells(loss),
                "parts": [loss.exact, loss.rounded, loss.clipped, loss.left_as_text],
                "taken": loss.name == advice.numbers,
            }
            for loss in (report.losses if of.numbers else ())
        ],
        "charts": [_table(table) for table in charts],
        "lists": [
            _table(table)
            | {"shares": [tables.percent(row.counts[0], table.total) for row in table.rows]}
            for table in lists
        ],
    }


def _table(table: Any) -> dict[str, Any]:
    rows = [[shown(row.label), *row.counts] for row in table.rows]
    made: dict[str, Any] = table._asdict()
    return made | {"rows": rows}


def inspect_data(inspection: Inspection) -> dict[str, Any]:
    """What ``numtok inspect`` shows of a text."""
    numbers = [
        {
            "text": number.text,
            "start": number.start,
            "stop": number.stop,
            "cells": [
                short(str(number.value), 40),
                shown_float(number.as_float),
                f"{number.start}–{number.stop}",
            ],
        }
        for number in inspection.numbers
    ]
    views = []
    for view in inspection.views:
        cost = "" if view.per_number is None else f", {view.per_number:.2f} per number"
        left = len(numbers) - len(view.taken)
        remark = f"{_count(view.tokens, 'token')}{cost}" + (f", {left:,} left as text" * bool(left))
        name = " + ".join(view.names)
        views.append(_view(name, remark, view.tokens, view.taken, view.columns))
    return {
        "kind": "inspect",
        "title": f"{_count(numbers, 'number')} in {_count(inspection.text, 'character')}",
        "text": inspection.text,
        "headings": ["exact value", "float64", "characters"],
        "numbers": numbers,
        "views": views,
    }


def row_data(row: StoredRow) -> dict[str, Any]:
    """What ``numtok inspect`` shows of a row of an encoded file."""
    numbers = [{"text": text, "cells": [f"{first:,}"]} for text, first in row.numbers]
    taken = range(len(numbers))
    return {
        "kind": "inspect",
        "title": f"{_count(numbers, 'number')} in row {row.row:,} of {shown(row.path)}",
        "text": row.text or "",
        "facts": [(label, shown(value)) for label, value in row.facts],
        "headings": ["at token"],
        "numbers": numbers,
        "views": [_view("as stored", _count(row.tokens, "token"), row.tokens, taken, row.columns)],
    }


def _view(
    name: str, remark: str, tokens: Any, taken: Any, columns: dict[str, Any]
) -> dict[str, Any]:
    """One representation: tokens as [text, id, number, place], and a row of values per number."""

    def token(one: Token) -> list[Any]:
        return [one.text, one.id, one.number, one.place]

    rows = [
        [number, *(_value(column, values[at]) for column, values in columns.items())]
        for at, number in enumerate(taken)
    ]
    return {
        "name": name,
        "remark": remark,
        "tokens": [token(one) for one in tokens],
        "columns": list(columns),
        "rows": rows,
    }


def _value(name: str, value: Any) -> dict[str, Any]:
    """A value as text; bits by field and phases as pairs besides."""
    import numpy as np

    array = np.asarray(value)
    made: dict[str, Any] = {"text": shown_value(name, array)}
    if bits := bit_fields(name, array):
        made["bits"] = bits
    elif array.ndim == 2:
        made["phases"] = [[round(one, 3) for one in pair] for pair in array.tolist()]
    return made


def _count(things: Any, name: str) -> str:
    number = things if isinstance(things, int) else len(things)
    return f"{number:,} {name}{'s' * (number != 1)}"
