"""Every number that goes out with a draft beside its counts: harmless for a positive reason, or asked about.

Where counts are hidden or rounded, a number in a title, a note, a formula or a drawing may tell one. So each needs a reason:
it is a date, an age, a reference, a limit, a label; or it can be worked out from what is printed; or no count can be it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from unround.mechanisms import Exact
from unround.release import told_range
from unround.reviews.contents import FORMULA, HINTED, NAMED, ReadCells, Saying, contents_of
from unround.reviews.decision import Unsettled
from unround.reviews.table import ReviewedTable
from unround.tables.labels import NUMBER_WORDS, WORDS, edges_of, is_time, tokens, written_age

FEW = 80
"""Letters of a text that are told."""

SMALL_SUM = 20
"""A sum of printed counts that is smaller may be a hidden count by coincidence."""


def questions_beside(files: Mapping[Path, ReadCells], tables: Sequence[ReviewedTable]) -> list[Unsettled]:
    """Ask about everything in some files that nobody has read, and about numbers beside counts that nothing explains."""
    printed = Printed(tables)
    asked = dict[str, Unsettled]()
    for path, counted in files.items():
        pieces = list(contents_of(path, counted))
        marks = {int(mark[1]) for piece in pieces if (mark := _MARK.match(piece.text))}
        for piece in pieces:
            short = piece.text if len(piece.text) <= FEW else f"{piece.text[: FEW - 1]}…"
            if piece.unread:
                asked.setdefault(piece.place, Unsettled.asked(piece.place, piece.unread, "take it out of the file"))
            elif number := printed.unexplained(piece, marks) if printed.protects or piece.place in (NAMED, HINTED) else "":
                why = f"{piece.place} says {number!r}, and nothing explains it: {short}"
                settle = "take it out, if it tells what is hidden or rounded"
                asked.setdefault(piece.place, Unsettled.asked(piece.place, why, settle))
    return list(asked.values())


_MARK = re.compile(r"[(\[]?(?:note )?(\d{1,2})[)\].:]*\s", re.I)
"""What a footnote begins with."""

_MONTH = (
    r"(?:jan|feb|f[ée]v|m[aäe]r|mrz|apr|avr|abr|may|mai|ma[gy]o|mei|jun|juin|jul|juil|giu|lug|aug|ao[uû]|ago|sep|set|o[ckt]t|"
    r"nov|d[eéi][czs]|ene)[^\W\d_]*\.?"
)
_SPAN = r"(?:years?|yrs?|ans?|jahren?|jährige[nr]?|años|anos|anni|jaar|år|months?|mois|monate?|weeks?|days?|tage|hours?)"
_OPEN = r"(?:over|older|more|above|under|younger|fewer|less|mehr|älter|darüber|plus|más|mas|più|ouder)"
_YEAR = r"(?:18|19|20|21)\d\d"
_UNIT = r"(?:[€$£¥]|EUR|USD|GBP|CHF|km²?|m²|ha|kg|km/h|°C?|bp|MB|kB|pt)"
_PEOPLE = "|".join(sorted(WORDS["people"]))

_HARMLESS: Mapping[str, tuple[str, ...]] = {
    "columns that are numbered": (r"^(?:\s*\(?1\)?\s+\(?2\)?\s+\(?3\)?[\s\d()]*)$",),
    "counts that are changed alike": (
        r"\b\d{1,2}(?:(?:, | and | or )\d{1,2})+(?= (?:are|were) (?:rounded|replaced|changed|suppressed|shown))",
    ),
    "an address": (
        r"\b(?:https?://|www\.)\S+",
        r"\S+@\S+",
        r"\b(?:doi|isbn|issn)\b\S* ?[\d\-./x]+",
        r"\b(?:tel|phone|fax|telefon|téléphone|contact|call)[^\d+(]{0,12}[+(]?\d[\d ()/-]{5,}\d",
        r"\+\d{1,3}[ \d()/-]{6,}\d",
    ),
    "a date": (
        r"\b\d{4}-\d\d?(?:-\d\d?)?(?:T[\d:.]+Z?)?\b",
        r"\b\d{1,2}([./-])\d{1,2}\1\d{2,4}\b",
        rf"\b\d{{1,2}}(?:\.|st|nd|rd|th|er)?(?: of| de)? {_MONTH}(?:(?: de)?,? ?{_YEAR})?\b",
        rf"\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? {_YEAR}\b",
        r"\b\d{1,2}(?::\d\d){1,2}\b|\b\d{1,2} ?(?:am|pm|uhr)\b",
    ),
    "a year": (rf"(?<![\d.,]){_YEAR}(?: ?[/–-] ?(?:{_YEAR}|\d\d))?(?![\d.,]*\d)(?! (?:\w+ )?(?:{_PEOPLE}))",),
    "a part of a year": (
        r"\b[qhwt][1-4]\b",
        r"\b(?:week|wk|kw|semaine|month|quarter|half|term|day|year|phase|wave|round)s?\.? \d{1,2}\b",
        r"\b[1-4](?:st|nd|rd|th|\.|er|e) (?:quarter|half|quartal|halbjahr|trimestre|semestre)",
    ),
    "a reference": (
        r"(?:\b(?:tables?|tab\.?|figures?|fig\.?|pages?|pp?\.|seite|sheet|annex|appendix|chapter|sect(?:ions?|\.)|articles?|t|"
        r"art(?:ikel|\.)|para(?:graph|\.)?|abs(?:atz|\.)|rules?|regel|act|law|regulation|directive|release|edition|issue|vol(?:ume|\.)|"
        r"part|no\.?|nr\.?|n[°º]|tabelle|tableau|tabla|tabel|abbildung|blatt|series|ver(?:sion|\.)|v\.?|rev\.?|iso|"
        r"notes?|footnotes?|fu(?:ss|ß)note|anm(?:erkung|\.)|see|siehe|voir|form|model|type|class|grade|level|stage|band|zone|id|"
        r"code)|§+)\s*[:#(]?\s*[\d.]+(?:[./–-]\d+)*[a-z]?\b",
        r"\b(?:columns?|rows?|lines?|cells?|zeilen?|spalten?) \d+(?: ?(?:to|and|–|-) ?\d+)?(?! (?:are|is|were))",
    ),
    "a base of rounding": (
        r"\b(?:base|basis|rr|(?:m[uú]ltipl\w*|vielfache[nsr]?|veelvoud\w*)(?: of| de| di| von| van)?|"
        r"nearest(?: multiple of)?|"
        r"(?:round\w*|gerundet|arrondi\w*|redonde\w*)[^.;\d]{0,40})\s?\d{1,5}(?:s|er)?\b",
        r"\b\d{1,5}(?:er)?-?(?:rundung|rounding)",
    ),
    "an age": (
        rf"\b\d{{1,3}}(?: ?(?:-|–|to|bis|à|a|or|and|und|et) ?\d{{1,3}})?[ -]{_SPAN}\b",
        r"\b(?:aged?|ages?|alter|âgée?s? de|edad|âge|età)\s*:?\s*\d{1,3}(?: ?(?:-|–|to|bis|à|a|and|und) ?\d{1,3})?",
        rf"\b\d{{1,3}} ?\+(?!\d)|\b\d{{1,3}} (?:and|or|und|et|ou|y) {_OPEN}\b|\b{_OPEN} \d{{1,3}}s\b",
    ),
    "a unit": (
        r"\b(?:per|pro|pour|por|par|je|for every|out of|×|x|in) (?:10{0,2})?(?:[ ,.\u00a0\u202f]?000)+\b",
        r"\b(?:per|pro|pour|por|je) 100\b(?![.,]\d)",
        rf"{_UNIT} ?\d[\d.,]*(?: ?(?:m|bn|k|million))?\b|\d[\d.,]* ?{_UNIT}(?!\w)|= ?100\b",
        r"\b\d (?:decimals?|decimal places?|digits?|significant|dots?|dashes|stars?|asterisks?)\b",
    ),
    "a share of a whole": (
        r"\b100(?:[.,]0+)? ?(?:%|per ?cent|prozent)",
        r"\b\d[\d.,]* ?(?:%|per ?cent|prozent)(?= (?:confidence|ci\b|significance|sample|response|coverage|margin|level))",
        r"\b(?:response|coverage|sampling|confidence|completeness)[^.;\d]{0,30}\d[\d.,]* ?(?:%|per ?cent)",
    ),
    "an identifier": (
        r"\b[^\W\d]\w*-?\d[\w-]*\b",
        r"\b\w*_\w+\([\d.]+\)|(?<![\d.,])\d{8,}(?![\d.,])|#[0-9a-f]{6}\b|\b\d+(?:st|nd|rd|th|ème)\b|\b\d+\.\d+\.\d+\b",
    ),
}
"""What makes a number harmless, and how it is written then."""
_REASONS = [re.compile(pattern, re.IGNORECASE) for patterns in _HARMLESS.values() for pattern in patterns]

_END = rf"(\d{{1,4}}(?:[.,]\d+)?|{'|'.join(NUMBER_WORDS)})"
_LIMIT = re.compile(
    r"(?:\b(?:fewer|less|under|below|smaller|lower|over|more|above|unter|weniger|kleiner|über|mehr|moins|inférieure?s?|menos|"
    r"menores|inferiores|minder|onder|up to|at most|at least|bis zu|höchstens|mindestens)"
    r"(?: (?:than|als|de|dan|à|a|que))?\s|[<>≤≥]=?)\s*"
    rf"{_END}\b|\b{_END}\s?(?:to|and|or|bis|und|oder|à|et|ou|a|y|o|-|–)\s?{_END}\b|"
    rf"\b{_END} (?:or|oder|ou|o) (?:fewer|less|weniger|moins|menos)",
    re.IGNORECASE,
)
"""A limit or a range: which counts are hidden, or which ages or sizes are meant."""
_COMPARED = re.compile(
    rf"\b(?:{_END}|half|twice|double|thrice|same|equal)\b[^.;]{{0,8}}"
    r"\b(?:fewer|more|less|higher|lower|as many|as in|(?:the )?number)\b",
    re.IGNORECASE,
)
"""A count told by another one."""
_NUMBER = re.compile(r"\d+(?:[ .,'\u00a0\u202f\u2009]\d{3})*(?:[.,]\d+)?(?: ?%)?")
_OLDEST = 120


@dataclass(frozen=True)
class Printed:
    """What some tables print and hide, as far as texts may speak of it."""

    tables: Sequence[ReviewedTable]

    @cached_property
    def protects(self) -> bool:
        """Whether any count is hidden or changed."""
        changed = (not isinstance(how, Exact) for table in self.tables for how in table.mechanisms)
        return self.hides or any(changed)

    @cached_property
    def hides(self) -> bool:
        """Whether any count is hidden."""
        return any(table.hidden.any() for table in self.tables)

    @cached_property
    def lines(self) -> dict[str, tuple[bool, set[int]]]:
        """The names of rows and columns: whether any count is hidden there, and the numbers that are printed."""
        lines: dict[str, tuple[bool, set[int]]] = {}

        def add(names: Iterable[str], hidden: np.bool_, printed: np.ndarray) -> None:
            for name in names:
                hides, numbers = lines.get(name.casefold(), (False, set()))
                lines[name.casefold()] = hides or bool(hidden), numbers | set(printed[printed >= 0].tolist())

        for table in self.tables:
            for row in range(len(table.counts)):
                names = {table.area_name(row), table.area_codes[row], *table.area_codes[row].split("/")}
                add(names, table.hidden[row].any(), table.printed[row])
            for at, column in enumerate(table.columns):
                add({column.key, column.label, *column.codes} - {""}, table.hidden[:, at].all(), table.printed[:, at])
        return lines

    @cached_property
    def labels(self) -> re.Pattern[str]:
        """Names with digits that are like other names, or say what they are: an age, a size, a time."""
        forms = Counter(re.sub(r"\d+", "0", name) for name in self.lines)
        harmless = [
            name
            for name in self.lines
            if re.search(r"\d", name)
            and not _IN_BRACKETS.search(name)
            and (forms[re.sub(r"\d+", "0", name)] > 1 or written_age(name, 10_000) or edges_of(name) or is_time(name))
        ]
        ordered = sorted(harmless, key=len, reverse=True)
        return re.compile("|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in ordered) or r"(?!)", re.IGNORECASE)

    @cached_property
    def names(self) -> re.Pattern[str]:
        """All names of rows and columns."""
        ordered = sorted((name for name in self.lines if len(name) > 1), key=len, reverse=True)
        return re.compile("|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in ordered) or r"(?!)", re.IGNORECASE)

    @cached_property
    def limits(self) -> set[int]:
        """The ends of the ranges that are told of hidden counts, and the bases of rounding."""
        ends = set[int]()
        for table in self.tables:
            for code in np.unique(table.counts[table.hidden]).tolist():
                low, high = told_range(code) or (0, 0)
                ends |= {low, high, high + 1} if high else set()
            ends |= {getattr(how, "base", 0) for how in table.mechanisms}
        return ends - {0}

    @cached_property
    def sums(self) -> set[int]:
        """Counts that are printed for all rows or all columns, and sums that anybody can add up."""
        sums = set[int]()
        for table in self.tables:
            for counts, hidden in ((table.printed, table.hidden), (table.printed.T, table.hidden.T)):
                whole = counts[:, ~(hidden | (counts < 0)).any(axis=0)]
                sums |= set(whole.sum(axis=0).tolist()) | set(counts.max(axis=0, initial=0).tolist())
        return {number for number in sums if number >= SMALL_SUM}

    @cached_property
    def sizes(self) -> set[int]:
        """How many rows, columns and hidden counts there are."""
        hidden = [table.hidden for table in self.tables]
        numbers = [int(cells.sum()) for cells in hidden] + [int(cells.any(axis=1).sum()) for cells in hidden]
        return {*numbers, *(size for cells in hidden for size in cells.shape)}

    def cannot_be(self, number: int) -> bool:
        """Whether no hidden count can be so large, and no sum with one so small; or nothing can be so large."""
        for table in self.tables:
            if not table.hidden.any():
                if not all(isinstance(how, Exact) for how in table.mechanisms):
                    return False
                continue
            ranges = [told_range(code) for code in np.unique(table.counts[table.hidden]).tolist()]
            beside = table.hidden.any(axis=1, keepdims=True) | table.hidden.any(axis=0, keepdims=True)
            counts = table.printed[beside & (table.printed > 0)]
            highest = max((ends[1] for ends in ranges if ends), default=0)
            if None in ranges or not highest < number <= counts.min(initial=number):
                return False
        return self.protects

    def unexplained(self, piece: Saying, marks: set[int]) -> str:
        """Return the first number or word of a piece that may tell a count, and that nothing explains; "" for none."""
        text = piece.text.casefold()
        label = text in self.lines
        about = [self.lines[name] for name in self.lines if not label and _names(text, name)]
        of_hidden = piece.comment or any(hides for hides, _ in about)
        rest = _LIMIT.sub(lambda limit: limit[0] if self._tells(limit, of_hidden) else " ", self.labels.sub(" ", text))
        for reason in _REASONS:
            rest = reason.sub(" ", rest)
        if (mark := _MARK.match(rest)) and not of_hidden and self.whom.isdisjoint(tokens(rest)[1:3]):
            rest = rest[mark.end() :] if set(range(1, int(mark[1]) + 1)) <= marks else rest
        shown = set[int]().union(*(numbers for _, numbers in about))
        for match in _NUMBER.finditer(rest):
            digits = re.sub(r"[ ,.'\u00a0\u202f\u2009](?=\d{3}(?!\d))", "", match[0])
            if not digits.isdecimal():
                return match[0]
            number = int(digits)
            marked = number in marks and re.search(rf"[(\[]{number}[)\]]", rest)
            in_formula = piece.place == FORMULA and number in self.limits
            if number in shown or marked or in_formula or self.cannot_be(number):
                continue
            sized = number in self.sizes and _SIZED.search(text)
            if not sized and (of_hidden or number not in self.sums):
                return match[0]
        if not label and self.hides and (compared := _COMPARED.search(rest)):
            return compared[0]
        words = [] if label else tokens(self.names.sub(" persons ", rest))
        for at, word in enumerate(words):
            counted = of_hidden or not self.whom.isdisjoint(words[at + 1 : at + 4])
            if (word in NUMBER_WORDS and counted) or (of_hidden and word in WORDS["comparing"]):
                return word
        return ""

    def _tells(self, limit: re.Match[str], of_hidden: bool) -> bool:
        """Whether a limit or a range may say more of a hidden count than its symbol does."""
        ends = {NUMBER_WORDS.get(end) or float(end.replace(",", ".")) for end in limit.groups() if end}
        if ends <= self.limits | {0, 1}:
            return False
        return of_hidden or max(ends) > _OLDEST

    @cached_property
    def whom(self) -> set[str]:
        """Words for those who are counted."""
        return {
            *WORDS["people"],
            *(word for table in self.tables for column in table.columns for word in tokens(column.label)),
        }


_SIZED = re.compile(r"\b(?:rows|columns|cells|counts|values|figures|areas|zellen|werte)\b", re.IGNORECASE)
_IN_BRACKETS = re.compile(r"\bn\s*[=:]|[(\[]\s*\d[\d ,.]*[)\]]", re.IGNORECASE)
"""A number that a label is followed by, and that is not part of it."""


def _names(text: str, name: str) -> bool:
    return name in text and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None
