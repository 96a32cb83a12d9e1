"""The page of ``numtok stats --html``: the recommendation, the representations, and charts of the
numbers with tables beside them.

In: a ``Report``. Out: HTML. All text goes through ``html.escape``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from .charts import bar, columns, key
from .page_frame import framed
from .page_style import STATS
from .streams import shown

if TYPE_CHECKING:
    from numtok.statistics.report import Report
    from numtok.statistics.tables import Row

MOST = 15  # values and units that are listed
OUTCOMES = ("exact", "rounded", "clipped", "left as text")


def stats_page(report: Report, source: str) -> str:
    """The whole page."""
    from numtok.statistics import tables

    of = report.statistics
    title = (
        f"{of.numbers:,} number{'s' * (of.numbers != 1)} in {of.documents:,}"
        f" document{'s' * (of.documents != 1)}"
    )
    parts = [
        f'<p class="note">{escape(shown(source))}</p>',
        *_advice(report),
        "<h2>Overview</h2>",
        (
            '<div class="card"><dl'
            f' class="tiles">{"".join(_tile(*row) for row in tables.overview(report))}</dl></div>'
        ),
    ]
    if of.numbers:
        parts += ["<h2>Representations</h2>", *_losses(report), "<h2>Numbers</h2>"]
        parts += [
            '<div class="charts"><div>',
            *_charts(report),
            "</div><div>",
            *_lists(report),
            "</div></div>",
        ]
    parts.append("<footer>Made by <code>numtok stats</code>. Shares are of all numbers.</footer>")
    return framed(title, parts, STATS)


def _advice(report: Report) -> Iterator[str]:
    """The recommendation, why, and what looks odd or is not known."""
    from numtok.statistics.tables import unknown

    advice = report.recommendation
    yield (
        '<div class="card advice"><div class="head"><h3>Recommended</h3></div><code'
        f' class="take">{escape(advice.options)}</code><ul>'
    )
    yield from (f"<li>{escape(reason)}</li>" for reason in advice.reasons)
    yield from (
        f'<li class="remark">{escape(remark)}</li>'
        for remark in (*advice.remarks, *unknown(report.statistics))
    )
    scale = f"--numbers xval --scale {report.xval.scale!r} --clip {report.xval.clip:g}"
    yield (
        '<li class="remark">The scale that xval wants:'
        f" <code>{escape(scale)}</code></li></ul></div>"
    )


def _tile(label: str, figure: str, remark: str) -> str:
    return f"<div><dt>{escape(label)}</dt><dd><b>{escape(figure)}</b><span>{escape(remark)}</span></dd></div>"


def _losses(report: Report) -> Iterator[str]:
    """A row per representation: a bar of what becomes of the numbers, and the figures."""
    from numtok.statistics.tables import LOSS_HEADINGS, loss_cells

    yield (
        '<div class="card"><div class="head"><span class="remark">What becomes of the numbers, and'
        f" what each costs</span>{key(OUTCOMES)}</div>"
    )
    yield (
        '<div class="scroll" tabindex="0" role="region"'
        ' aria-label="Representations"><table><thead><tr>'
    )
    first, *figures = LOSS_HEADINGS
    yield (
        f'<th scope="col">{first}</th><th scope="col" class="bar"><span'
        ' class="unseen">shares</span></th>'
    )
    yield (
        "".join(f'<th scope="col" class="figure">{heading}</th>' for heading in figures)
        + "</tr></thead><tbody>"
    )
    for loss in report.losses:
        name, *cells = loss_cells(loss)
        drawn = bar((loss.exact, loss.rounded, loss.clipped, loss.left_as_text), loss.numbers)
        taken = ' class="taken"' if name == report.recommendation.numbers else ""
        yield f'<tr{taken}><th scope="row">{escape(name)}</th><td class="bar">{drawn}</td>'
        yield (
            "".join(
                f'<td class="figure">{cell.replace("-", "–") if cell == "-" else escape(cell)}</td>'
                for cell in cells
            )
            + "</tr>"
        )
    yield "</tbody></table></div><details><summary>How to read this</summary><p>"
    yield (
        "<b>exact</b> numbers read back as the same decimal, <b>rounded</b> ones as another near to"
        " it: <b>worst error</b> is relative. <b>near zero</b>"
    )
    yield (
        " numbers are so small, once scaled, that a model can hardly tell them from 0."
        " <b>tokens</b> are per number, those left as text included;"
    )
    yield (
        " <b>bytes</b> are of the column that each writes beside the tokens, per number, and"
        " <b>compact</b> as files hold it.</p>"
    )
    yield (
        "<p>Exact and rounded numbers are told apart on up to four values of each count of digits"
        " and power of ten: an estimate where such numbers do not"
    )
    yield (
        " fare alike, as do those of seven to nine digits in float32. Tokens per number are an"
        " estimate too, from a part of the text.</p></details></div>"
    )


def _charts(report: Report) -> Iterator[str]:
    from numtok.statistics import tables

    of = report.statistics
    signs = (
        ("positive", "negative")
        if any(row.counts[1] for row in tables.magnitudes(of))
        else ("positive",)
    )
    yield _chart(
        "Magnitudes",
        "by power of ten, zero aside",
        tables.magnitudes(of),
        ("positive", "negative"),
        len(signs),
    )
    yield _chart(
        "First digits",
        "other than zero, and what Benford's law expects",
        tables.first_digits(of),
        ("numbers", "expected"),
        1,
        1,
    )
    yield _chart(
        "Significant digits",
        "from the first to the last that is not zero",
        tables.digits(of),
        ("significant", "integer", "fraction"),
        1,
    )
    yield _chart(
        "Years", "four digits from 1000 to 2100, by decade", tables.years(of), ("numbers",), 1
    )
    yield _chart("Numbers per document", "", tables.per_document(of), ("documents",), 1)


def _lists(report: Report) -> Iterator[str]:
    from numtok.statistics import tables

    of = report.statistics
    if of.written:
        yield _list(
            "Written forms",
            "each number has one form, and any of the marks",
            tables.forms(of) + tables.marks(of),
            of.written,
        )
    yield _list("Most frequent values", "", tables.values(of, MOST), of.numbers)
    yield _list(
        "Units",
        "the word or symbol right behind a number, function words aside",
        tables.units(of, MOST),
        of.in_text,
    )


def _chart(
    name: str,
    remark: str,
    rows: Sequence[Row],
    series: Sequence[str],
    drawn: int,
    expected: int | None = None,
) -> str:
    """A drawing of the first ``drawn`` series, and a table of all, which opens below it."""
    if not rows:
        return ""
    drawing = columns(
        rows,
        f"{name}: a column chart; the same figures are in the table below it",
        series[:drawn],
        expected,
    )
    mark = series[expected] if expected is not None else ""
    legend = key(series[:drawn], mark) if drawn > 1 or mark else ""
    body = "".join(_row(row.label, (f"{count:,}" for count in row.counts)) for row in rows)
    heads = "".join(f'<th scope="col" class="figure">{escape(one)}</th>' for one in series)
    table = (
        "<table><thead><tr><th"
        f' scope="col">{_first_heading(name)}</th>{heads}</tr></thead><tbody>{body}</tbody></table>'
    )
    opened = (
        '<details><summary>Table</summary><div class="scroll" tabindex="0" role="region"'
        f' aria-label="{escape(name)}">{table}</div></details>'
    )
    return (
        "<figure"
        f' class="card"><figcaption><h3>{name}</h3><span>{escape(remark)}</span></figcaption>{drawing}{legend}{opened}</figure>'
    )


def _list(name: str, remark: str, rows: Sequence[Row], total: int) -> str:
    """A table with a bar in each row."""
    from numtok.statistics.tables import percent

    if not rows:
        return ""
    most = max(row.counts[0] for row in rows)
    body = "".join(
        _row(
            shown(row.label),
            (f"{row.counts[0]:,}", percent(row.counts[0], total)),
            f'<td class="bar">{bar(row.counts[:1], most)}</td>',
        )
        for row in rows
    )
    heads = (
        '<th scope="col" class="bar"></th><th scope="col" class="figure">numbers</th><th'
        ' scope="col" class="figure">share</th>'
    )
    table = (
        "<table><thead><tr><th"
        f' scope="col">{_first_heading(name)}</th>{heads}</tr></thead><tbody>{body}</tbody></table>'
    )
    caption = f"<figcaption><h3>{name}</h3><span>{escape(remark)}</span></figcaption>"
    return (
        f'<figure class="card">{caption}<div class="scroll" tabindex="0" role="region"'
        f' aria-label="{escape(name)}">{table}</div></figure>'
    )


def _first_heading(name: str) -> str:
    return {
        "Magnitudes": "from",
        "First digits": "digit",
        "Significant digits": "digits",
        "Numbers per document": "numbers",
        "Years": "decade",
    }.get(
        name, "as written" if name == "Written forms" else "value" if "values" in name else "unit"
    )


def _row(label: str, figures: Iterable[str], before: str = "") -> str:
    cells = "".join(f'<td class="figure">{escape(figure)}</td>' for figure in figures)
    return f'<tr><th scope="row">{escape(label)}</th>{before}{cells}</tr>'
