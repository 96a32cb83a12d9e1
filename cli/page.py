"""The page of ``numtok inspect --html``.

In: an ``Inspection``. Out: HTML. All text goes through ``html.escape``.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

from .page_frame import framed
from .page_style import INSPECT
from .values import holds_bits, shown_float, shown_value

if TYPE_CHECKING:
    from numtok.tokenizer.inspect import Inspection, NumberInText, Token, View

VISIBLE = {"\n": "⏎", "\t": "⇥", "\r": "␍"}
LEGEND = (
    ("var(--shade2)", "text token", None),
    ("var(--number-line)", "token of a number", None),
    (
        "",
        "place of a digit, or of the last one of a group, below it: 1 ones, 2 tens, −1 tenths",
        "places",
    ),
    ("var(--sign)", "sign bit", "bits"),
    ("var(--exponent)", "exponent bits", "bits"),
    ("var(--mantissa)", "mantissa bits", "bits"),
)


def page(inspection: Inspection) -> str:
    """The whole page."""
    count = len(inspection.numbers)
    title = f"{count:,} number{'s' * (count != 1)} in {len(inspection.text):,} characters"
    parts = [
        f'<div class="card text">{_text(inspection)}</div>',
        *_costs(inspection),
        *_numbers(inspection),
        "<h2>Representations</h2>",
        _legend(inspection),
        *(_view(inspection, view) for view in inspection.views),
        (
            "<footer>Point at a number to see it everywhere. Made by <code>numtok"
            " inspect</code>.</footer>"
        ),
    ]
    return framed(title, parts, INSPECT)


def _text(inspection: Inspection) -> str:
    """The text with its numbers marked."""
    pieces, at = [], 0
    for index, number in enumerate(inspection.numbers):
        pieces.append(escape(inspection.text[at : number.start]))
        pieces.append(
            f'<span class="n" data-n="{index}"'
            f' data-tip="{_number_tip(number)}">{escape(number.text)}</span>'
        )
        at = number.stop
    return "".join([*pieces, escape(inspection.text[at:])])


def _number_tip(number: NumberInText) -> str:
    lines = [
        f"exact    {_short(str(number.value))}",
        f"float64  {shown_float(number.as_float)}",
        f"place    characters {number.start} to {number.stop}",
    ]
    return escape("\n".join(lines))


def _costs(inspection: Inspection) -> Iterator[str]:
    """One bar per representation: how many tokens, and how many of them are numbers'."""
    most = max(len(view.tokens) for view in inspection.views) or 1
    yield '<h2>Tokens</h2><div class="card cost">'
    for view in inspection.views:
        of_numbers = sum(token.number is not None for token in view.tokens)
        widths = [100 * count / most for count in (of_numbers, len(view.tokens) - of_numbers)]
        bar = (
            f'<u class="num" style="width:{widths[0]:.2f}%"></u><u'
            f' style="width:{widths[1]:.2f}%"></u>'
        )
        told = f"{of_numbers:,} for numbers, {len(view.tokens) - of_numbers:,} for text"
        yield (
            f'<div>{escape(_name(view))}</div><div class="bar" data-tip="{told}">{bar}</div><div'
            f' class="mono">{len(view.tokens):,}</div>'
        )
    yield "</div>"


def _numbers(inspection: Inspection) -> Iterator[str]:
    if not inspection.numbers:
        return
    yield (
        '<h2>Numbers</h2><div class="card"><div class="scroll"><table><tr><th>as written</th><th'
        ' class="figure">exact value</th>'
    )
    yield '<th class="figure">float64</th><th class="figure">characters</th></tr>'
    for index, number in enumerate(inspection.numbers):
        figures = (
            _short(str(number.value)),
            shown_float(number.as_float),
            f"{number.start}–{number.stop}",
        )
        cells = "".join(f'<td class="figure">{escape(figure)}</td>' for figure in figures)
        yield f"<tr><td>{_pill(inspection, index)}</td>{cells}</tr>"
    yield "</table></div></div>"


def _legend(inspection: Inspection) -> str:
    shown = {
        None: True,
        "places": any(
            token.place is not None for view in inspection.views for token in view.tokens
        ),
        "bits": any(holds_bits(name) for view in inspection.views for name in view.columns),
    }
    swatches = [
        (f'<em style="background:{colour}"></em>' if colour else "<small>2</small>", label)
        for colour, label, needs in LEGEND
        if shown[needs]
    ]
    items = (f"<span>{swatch}{label}</span>" for swatch, label in swatches)
    return f'<div class="legend">{"".join(items)}</div>'


def _view(inspection: Inspection, view: View) -> str:
    cost = "" if view.per_number is None else f", {view.per_number:.2f} per number"
    left = len(inspection.numbers) - len(view.taken)
    remark = f"{len(view.tokens):,} tokens{cost}" + (f", {left:,} left as text" if left else "")
    places = any(token.place for token in view.tokens)
    tokens = "".join(_token(token, view, places) for token in view.tokens)
    head = (
        f'<div class="head"><h3>{escape(_name(view))}</h3><span'
        f' class="remark">{remark}</span></div>'
    )
    return (
        f'<div class="card">{head}<div'
        f' class="tokens">{tokens}</div>{_columns(inspection, view)}</div>'
    )


def _token(token: Token, view: View, places: bool) -> str:
    """A chip, with the place value below it where the representation has them."""
    shown = "".join(
        f"<i>{VISIBLE[c]}</i>" if c in VISIBLE else "<i>·</i>" if c == " " else escape(c)
        for c in token.text
    )
    part = token.text.startswith("\\x") and len(token.text) >= 4
    kind = "t num" if token.number is not None else "t part" if part else "t"
    number = "" if token.number is None else f' data-n="{token.number}"'
    tip = f"id     {token.id}\ntoken  {token.text!r}" + (
        f"\nplace  {token.place}" if token.place else ""
    )
    below = (
        f"<small>{str(token.place).replace('-', '−') if token.place else ''}</small>"
        if places
        else ""
    )
    return f'<span class="{kind}"{number} data-tip="{escape(tip)}"><b>{shown}</b>{below}</span>'


def _columns(inspection: Inspection, view: View) -> str:
    """The tensors, a row per number."""
    if not view.columns or not view.taken:
        return ""
    rows = [
        "<tr><th>number</th>"
        + "".join(f"<th>{escape(name)}</th>" for name in view.columns)
        + "</tr>"
    ]
    for place, number in enumerate(view.taken):
        cells = "".join(
            f"<td>{_value(name, column[place])}</td>" for name, column in view.columns.items()
        )
        rows.append(f"<tr><td>{_pill(inspection, number)}</td>{cells}</tr>")
    return f'<div class="columns scroll"><table>{"".join(rows)}</table></div>'


def _value(name: str, value: Any) -> str:
    """Bits as cells, phases as dials, all else as figures."""
    shown = shown_value(name, value)
    if holds_bits(name):
        fields = (
            "".join("<s></s>" if bit == "1" else '<s class="o"></s>' for bit in field)
            for field in shown.split()
        )
        cells = "".join(f"<u>{field}</u>" for field in fields)
        return f'<span class="bits" data-tip="{shown}">{cells}</span>'
    if getattr(value, "ndim", 0) == 2:
        return (
            '<span class="dials"'
            f' data-tip="{escape(shown)}">{"".join(_dial(x, y) for x, y in value.tolist())}</span>'
        )
    return f'<span class="mono">{escape(shown)}</span>'


def _dial(cosine: float, sine: float) -> str:
    hand = f'<line x1="12" y1="12" x2="{12 + 9 * cosine:.2f}" y2="{12 - 9 * sine:.2f}"/>'
    return f'<svg viewBox="0 0 24 24"><circle cx="12" cy="12" r="10.5"/>{hand}</svg>'


def _pill(inspection: Inspection, index: int) -> str:
    number = inspection.numbers[index]
    return (
        f'<span class="n mono" data-n="{index}"'
        f' data-tip="{_number_tip(number)}">{escape(_short(number.text))}</span>'
    )


def _name(view: View) -> str:
    return " + ".join(view.names)


def _short(text: str, most: int = 40) -> str:
    return text if len(text) <= most else f"{text[: most - 12]}…({len(text):,} characters)"
