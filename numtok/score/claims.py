"""Tell which figures of an answer claim nothing about the world: dates, years, list numbers, labels,
citations, ordinals, counts of what the answer lists, names and factors.

Each kind is a list of expressions. A figure that lies within a match is of that kind; years are
told by the words around them. Rules are lexical and for English, with the months of German, French
and Spanish.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

from numtok.errors import NumtokError

_MONTHS = (
    r"(?:Jan(?:uary|uar)?|Feb(?:ruary|ruar)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sept?(?:ember)?|O[ck]t(?:ober)?|Nov(?:ember)?|De[cz](?:ember)?|März|Mai|Juni|Juli"
    r"|janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre"
    r"|enero|febrero|marzo|abril|mayo|junio|julio|agosto|sep?tiembre|octubre|noviembre|diciembre)\b\.?"
)
_DAY = r"(?:0?[1-9]|[12]\d|3[01])(?!\d|[.,]\d)(?:st|nd|rd|th|\.|er)?"
_YEAR = r"(?:1[5-9]|20)\d\d(?!\d|[.,]\d)"
_AND = r"\s{0,3}(?:[,;&/\u2013-]|(?:,\s{0,3})?\b(?:and|or|to|through)\b)\s{0,3}"
_LABEL_WORDS = (
    r"(?:figures?|figs?\.?|tables?|sections?|sec\.|chapters?|steps?|parts?|items?|questions?|problem|example"
    r"|exercise|equations?|eqs?\.|appendix|annex|articles?|art\.|paragraphs?|para\.|clauses?|rules?|notes?"
    r"|footnotes?|options?|choice|case|scenario|phases?|stages?|level|tiers?|grade|type|class|versions?"
    r"|volumes?|vol\.|issue|pages?|pp?\.|lines?|rows?|columns?|slides?|exhibits?|schedule|sources?|documents?"
    r"|docs?|passages?|contexts?|references?|refs?\.|nos?\.|nr\.|room|flight|route|highway|interstate"
    r"|gate|episode|season|act|scene|ids?)"
)
_NAMES = (
    r"Fortune|S&P|FTSE|Nasdaq|NASDAQ|Russell|Dow|Nikkei|CAC|DAX|Stoxx|Forbes|Global|Formula|Area|Apollo"
    r"|Windows|World\sWar|iPhone|Galaxy|Pixel|Boeing|Airbus|Falcon|Android|iOS|Python|Xbox|PlayStation"
    r"|ISO|RFC|IEEE|IEC|DIN|IFRS|IAS|ASC|ISBN|ISSN|PMID|Vitamin|Rule|Title|Agenda|Vision"
)
_SUPERLATIVES = (
    r"(?:largest|biggest|smallest|highest|lowest|longest|shortest|fastest|slowest|oldest|youngest|newest"
    r"|latest|earliest|best|worst|greatest|strongest|weakest|richest|poorest|cheapest|nearest|closest"
    r"|tallest|heaviest|lightest|busiest|warmest|coldest|hottest|most|least|main|key|principal)\b"
)
_NO_QUANTITY = r"(?!\d|[.,]\d|\s*(?:%|per\s?cent|million|billion|thousand|hundred|[kK]\b|bn\b))"

_COUNTED = (  # what a figure measures or counts
    r"\s*(?:%|per\s?cent|°|million|billion|thousand)|[-\s]+(?:k?m|k?g|mm|cm|mg|lbs?|[kMGT]?Wh?|[KMGT]B|[kMG]?Hz|people"
    r"|employees|persons|units|copies|votes|dollars|euros|calories|kcal|points|miles|feet|metres|meters|tons|tonnes"
    r"|hours|minutes|seconds|days|weeks|months|dB|m²|[mdc]?[lL]|mcg|[µμ]g|g|IU|[kM]?J|mmol|[km]?mol|[kMh]?Pa|psi"
    r"|rpm|mph|km/h|BTU|mAh|hp|ft|oz|ppm|ppb|px|USD|EUR|GBP|yen|yuan|pounds|litres|liters|gallons|hectares|acres|square|sq"
    r"|men|women|children)(?![^\W_])"
)
HYPHENS = dict.fromkeys((0x2010, 0x2011), "-")  # that models write in COVID-19 and 2019-2021
# of each kind: (expression, flags)
_EXPRESSIONS: dict[str, list[tuple[str, int]]] = {
    "thought": [
        (r"\A.*</think(?:ing)?>|<think(?:ing)?>.*", re.DOTALL),
    ],
    "date": [
        (r"(?<![\d/.-])(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2\d{2,4})(?![\d/-]|\.\d)", 0),
        (rf"\b{_MONTHS}\s+{_DAY}(?:{_AND}{_DAY})?(?!\s*%)(?:,?\s+{_YEAR})?", 0),
        (rf"(?<![\d.,]){_DAY}(?:{_AND}{_DAY})?(?:\s+of|\s+de)?\s+{_MONTHS}(?:\s+de)?(?:,?\s+{_YEAR})?", 0),
        (rf"\b{_MONTHS},?\s+(?:of\s+)?(?:{_YEAR}|['\u2019]\d\d)", 0),
        (r"\d{1,4}\s?[年月日号]", 0),
        (rf"\b(?:[QH][1-4]|FY)[\s/-]*(?:{_YEAR}|['\u2019]?\d\d\b{_NO_QUANTITY})", 0),
    ],
    "time": [
        (r"(?<![\d:])(?<!\bratio\s)(?<!\bratio\sof\s)(?<!\bodds\sof\s)\d{1,2}:[0-5]\d(?::[0-5]\d)?(?![\d:])", 0),
        (r"(?<![\d.,])\d{1,2}\s*(?:[ap]\.m\.|[ap]m\b|o['\u2019]clock|Uhr\b)", re.I),
        (r"\b(?:UTC|GMT)\s*[-+\u2212]\s*\d{1,2}", 0),
    ],
    "list": [
        (r"^[ \t>*_\-•]*\(?\d{1,2}[.)](?:\*\*|__)?(?=[^\S\n]+\S)", re.M),
        (r"^[ \t]*#+[ \t]*\(?\d{1,2}(?:\.\d{1,2})*[.):]?(?=\s)", re.M),
        (r"^[ \t]*\d{1,2}(?:\.\d{1,2})+\.(?=\s)", re.M),
    ],
    "label": [
        (rf"(?<!\bthis\s)(?<!\bthat\s)(?<!\beach\s)(?<!\bany\s)(?<!\bwhich\s)"
         rf"\b{_LABEL_WORDS}\s*(?:#\s*)?\(?\d{{1,4}}(?:\.\d{{1,2}})*{_NO_QUANTITY}(?!(?!\s+points\b)(?:{_COUNTED}))"
         rf"(?:{_AND}\d{{1,4}}(?:\.\d{{1,2}})*{_NO_QUANTITY})*", re.I),
        (r"(?:[#§№]|\bCh\.|\bNo\b\.?)\s*\d+(?:\.\d+)*", 0),
    ],
    "reference": [
        (r"(?<![=:]\s)(?<!\bCI\s)(?<!\bof\s)(?<!\bin\s)(?<!\bis\s)(?<!\bare\s)(?<!range\s)(?<!interval\s)"
         r"(?<![\w=])\[\^?\d{1,3}(?:\s*[,;\u2013-]\s*\^?\d{1,3})*\]", 0),
        (r"(?<=[a-z.,;\"\u201d)])\[\^?\d{1,3}(?:\s*[,;\u2013-]\s*\d{1,3})*\]", 0),
        (r"【\d+[^】\n]{0,40}】", 0),
    ],
    "ordinal": [
        (r"(?<![\d.,])\d[\d,]*-?(?:st|nd|rd|th|º|ª)(?![^\W_])", 0),
    ],
    "count": [
        (rf"\b(?:top|first|last|next|following|these|those|both)\s+\d{{1,2}}{_NO_QUANTITY}", re.I),
        (rf"(?<![\d.,$€£])\d{{1,3}}\s+(?:(?!(?:at|the|as|and|is|was|are)\s)\w+\s+)?{_SUPERLATIVES}", re.I),
        (rf"(?<![\d.,$€£])\d{{1,2}}{_NO_QUANTITY}\s+[^\n\d.:%]{{1,60}}:\s*$", re.M),
        (r"\b(?:in|of|within|under)\s+\d{1,3}\s+(?:words|sentences|bullets?(?:\spoints)?|paragraphs)\b", re.I),
        (rf"\b[Hh]ere\s+are\s+(?:the\s+)?\d{{1,2}}{_NO_QUANTITY}", 0),
    ],
    "name": [
        (r"\b(?!(?:mid|pre|post|sub|non|over|under|early|late|plus|minus|about|year|years|the|and|to|of|or|from|by|at"
         r"|is|was|in|up|down|near|than|rose|fell)-)[A-Za-z]+-\d+(?![\d%]|[.,]\d)", re.I),
        (r"\b(?:https?://|www\.)\S+|\S{1,64}@\S{1,200}|\b[\w-]{1,80}\.(?:pdf|csv|html?|docx?|xlsx?|txt|md|json)\b", 0),
        (rf"\b(?:{_NAMES})[\s-]+\d+(?:[.-]\d+)*\b{_NO_QUANTITY}", 0),
        (r"\b(?:24/7|50/50|50-50|9/11|80/20|401\(?k\)?|10-[KQ]\b|8-K\b|20-F\b|[23]D\b|[2-6]G\b|[48]K\b|911\b)", 0),
        (r"(?<!\d)(?:(?:\+\d{1,3}[\s.-])\(?\d{3}\)?[\s.-]|\(\d{3}\)\s?|\d{3}[.-])\d{3}[\s.-]\d{4}(?!\d)", 0),
        (r"\b(?:doi|DOI|arXiv|CVE|ID)[:\s#-]*[\d./-]+", 0),
    ],
    "factor": [
        (r"(?:[×*·]|\\times|\btimes|\bx)\s*100\b%?(?![.,]\d)", 0),
        (r"\bper\s+(?:100|1,?000|10,?000|100,?000)\b(?![.,]\d)", re.I),
    ],
}  # fmt: skip
KINDS = ("year", *_EXPRESSIONS)

_YEAR_WORDS = re.compile(
    r"(?:\b(?:in|since|until|till|by|during|before|after|from|to|through|between|year|years|fiscal|early|late"
    r"|mid|spring|summer|autumn|fall|winter|circa|ca\.|FY|[QH][1-4]|quarter|half|end|start|beginning|class|back"
    r"|season|census|pre|post|vs\.?|versus|\w+ber|\w+uary|of|and|or|the|its|their|our|his|her)"
    r"|['\u2019]s?|[(\[\-\u2013/,;|©]|[.!?:]|\A)[\s*_]*-?\Z",
    re.IGNORECASE,
)
_COUNT_WORDS = re.compile(
    r"(?:\b(?:has|have|had|having|with|employs|employed|about|around|approximately|roughly|over|than|nearly|almost"
    r"|some|only|total|least|most|all|another|additional|sold|bought|includes?|including|contains?|were|was|reached"
    r"|hit|totall?ed|averag\w+|costs?|price|worth|paid|spent|equals?|amount(?:s|ed)?\sto"
    r"|(?:total|sum|number|capacity|average|maximum|minimum)\s(?:of|is|was)"
    r"|(?:rose|risen|grew|grown|fell|fallen|increased|decreased|declined|dropped|climbed|jumped|shrank)\sto)"
    r"|\bprice:|[~≈<>=+$€£×])\s*\Z",
    re.IGNORECASE,
)
_MEASURED = re.compile(_COUNTED)
_PLURAL = re.compile(  # what a figure counts: 2024 seats; not 2024 is
    r"\s+(?!(?:is|was|has|does|as|its|this|thus|plus|versus|vs|sees|shows|marks|remains|brings)\b)[a-z]+(?<!s)s\b"
)


def check_kinds(ignore: Iterable[str]) -> frozenset[str]:
    """Return the kinds as a set.

    Raises:
        NumtokError: for one that does not exist.
    """
    kinds = frozenset([ignore] if isinstance(ignore, str) else ignore)
    if unknown := sorted(kinds - set(KINDS)):
        raise NumtokError(
            f"ignore={unknown[0]!r} is no kind of figure; use any of {', '.join(sorted(KINDS))}"
        )
    return kinds


class NonClaims:
    """The spans of a text that hold dates, labels and other figures that claim nothing."""

    def __init__(self, text: str) -> None:
        self._text = text = text.translate(HYPHENS)
        self._marks = bytearray(len(text))  # 1 + the index in KINDS, 0 for none
        for kind, expressions in reversed(_compiled().items()):
            for expression in expressions:
                for match in expression.finditer(text):
                    self._mark(*match.span(), kind)
        for span in _enumerated(text):
            self._mark(*span, "list")

    def _mark(self, start: int, stop: int, kind: str) -> None:
        self._marks[start:stop] = bytes([1 + KINDS.index(kind)]) * (stop - start)

    def kind(self, start: int, stop: int) -> str:
        """Return the kind of the figure text[start:stop], or an empty string for a claim.

        Example:
            >>> NonClaims("Table 3 has 12 rows").kind(6, 7)
            'label'
        """
        marks = set(self._marks[start:stop])
        if len(marks) == 1 and (mark := marks.pop()):
            return KINDS[mark - 1]
        return "year" if _is_year(self._text, start, stop) else ""


@functools.cache
def _compiled() -> dict[str, list[re.Pattern[str]]]:
    return {
        kind: [re.compile(expression, flags) for expression, flags in expressions]
        for kind, expressions in _EXPRESSIONS.items()
    }


def _enumerated(text: str) -> list[tuple[int, int]]:
    """Return the marks ``(1)``, ``(2)`` or ``1)``, ``2)`` within lines, if they count up from 1."""
    spans = []
    for mark in (r"\((\d{1,2})\)(?=\s)", r"(?<![\w(.])(\d{1,2})\)(?=\s)"):
        matches = list(re.finditer(mark, text))
        if len(matches) > 1 and [int(one[1]) for one in matches] == list(
            range(1, len(matches) + 1)
        ):
            spans += [one.span() for one in matches]
    return spans


_YEAR_FIGURE = re.compile(rf"{_YEAR}(?:\s?[-\u2013/]\s?(?:{_YEAR}|\d\d(?![\d%]|[.,]\d)))?")


def _is_year(text: str, start: int, stop: int) -> bool:
    """Whether the figure text[start:stop] is a year, or the end of a span of years, by the words
    around it.
    """
    short = re.search(rf"{_YEAR}\s?[-\u2013/]\s?\Z", text[max(0, start - 8) : start])
    if short and re.fullmatch(r"\d\d(?:\d\d)?", text[start:stop]):
        start -= len(short[0])
    elif not _YEAR_FIGURE.fullmatch(text, start, stop):
        return False
    before, after = text[max(0, start - 30) : start], text[stop : stop + 30]
    if _COUNT_WORDS.search(before) or _MEASURED.match(after):
        return False
    if re.match(r"['\u2019]?s\b|[)\]]", after) or _YEAR_WORDS.search(before):
        is_round = text[start:stop].endswith("00") and before.strip()
        return not (is_round and _PLURAL.match(after))
    earlier = text[start : start + 2] not in ("19", "20")
    return not earlier and not _PLURAL.match(after)
