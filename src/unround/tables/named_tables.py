"""Tables by name: to which table a column of a wide file belongs, where only labels and their order tell.

CensusMapper lets people choose columns, of any census since 1996: heads of tables may be missing, and so may any line. What
is left are the titles that are there ("Total - …", "… by structural type"), ranges that go on from one line to the next
(ages, incomes, minutes), figures such as medians that stand between tables, and gaps in the numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from unround.tables.labels import ALL, EVER, AgeRun, Range, age_range, edges_of, tile

_TITLE = re.compile(
    r"total\s*[-–—:].*|.+ by (?!the\b).+|.+ for (?:the )?.*(?:population|households|families|labour force)\b.*"
    r"|(?:marital status|household type|age groups?)\b.*",
    re.IGNORECASE,
)
_RECIPIENTS = re.compile(r"number of .*recipients\b.*?((?:19|20)\d\d)?(?: - .*)?", re.IGNORECASE)
_OCCUPATION = re.compile(r"\d .*\boccupations?\b.*", re.IGNORECASE)
_FAR = 90
"""Numbers between two lines of one table: those of a religion's denominations, say, that nobody asked for."""


def range_in(measure: str, first: int = 0) -> Callable[[str], Range | None]:
    """Return what tells the range that a label names, in whole units of something, counted from the first possible value.

    >>> range_in("money")("Under $10,000 (including loss)"), range_in("persons", 1)("1 person"), range_in("money")("5 years")
    ((0, 9999), (0, 0), None)
    """

    def told(label: str) -> Range | None:
        edges = edges_of(label)
        if edges is None or edges.of != measure:
            return None
        after = edges.high is not None and measure == "money"  # 20,000 for what ends with 19,999
        return int(edges.low or first) - first, EVER if edges.high is None else int(edges.high) - first - after

    return told


RANGES = {
    "Age": age_range,
    "Income groups": range_in("money"),
    "Commuting duration": range_in("minutes"),
    "Size": range_in("persons", 1),
}
"""What can be told by ranges, and what such a table is called if it has no title."""


def tables_by_name(lines: Sequence[tuple[int, str, bool]]) -> list[str]:
    """Return the table of every line, given its number, its label, and whether it is a count; others stand in none.

    >>> labels = ["0 to 14 years", "15 years and over", "Average age", "Marital status for the population", "Married"]
    >>> tables_by_name([(at, label, label != "Average age") for at, label in enumerate(labels)])
    ['Age', 'Age', '', 'Marital status for the population', 'Marital status for the population']
    """
    tables = _Tables()
    return [tables.take(*line) for line in lines]


class _Tables:
    """Goes through lines, and says when a new table begins."""

    def __init__(self) -> None:
        self._name, self._kind, self._number = "", "", 0
        self._seen: set[Range] = set()
        self._often: dict[str, int] = {}

    def take(self, number: int, label: str, counts: bool) -> str:
        """Return the table of the next line."""
        if not counts:
            self._name = self._name if self._kind == "recipients" else ""
            return ""
        kind, reach = _kind(label)
        far = number - self._number > _FAR
        self._number = number
        if reach == ALL or (kind == "" and _TITLE.fullmatch(label)):
            self._begin(label.removeprefix("Total - "), "")
        elif kind == "recipients":
            year = _RECIPIENTS.fullmatch(label)
            name = f"Income recipients in {year[1]}" if year and year[1] else "Income recipients"
            if self._name != name:
                self._begin(name, kind)
        elif not self._goes_on(kind, reach, far):
            self._begin(kind or label, kind)
        self._kind = kind
        if reach is not None:
            self._seen.add(reach)
        return self._name

    def _goes_on(self, kind: str, reach: Range | None, far: bool) -> bool:
        if not self._name or (far and not kind):
            return False
        if kind != self._kind:
            return not self._kind and not far and not self._seen
        return reach is None or reach not in self._seen

    def _begin(self, name: str, kind: str) -> None:
        """Begin a table; names that occur before are told apart."""
        self._often[name] = self._often.get(name, 0) + 1
        self._name = name if self._often[name] == 1 else f"{name} ({self._often[name]})"
        self._kind, self._seen = kind, set()


def _kind(label: str) -> tuple[str, Range | None]:
    for name, range_of in RANGES.items():
        if (reach := range_of(label)) is not None:
            return name, reach
    if _RECIPIENTS.fullmatch(label):
        return "recipients", None
    return ("Occupation", None) if _OCCUPATION.fullmatch(label) else ("", None)


_NAMED = (
    (r"married or living common[- ]law", ("married", "living common[- ]law")),
    (r"not married and not living common[- ]law", ("never married", "separated", "divorced", "widowed")),
    (r".*knowledge of official languages\b.*", ("english only", "french only", "english and french", "neither .*")),
    (r"in the labour force", ("employed", "unemployed")),
    (r".*\bimmigrant status\b.*", ("non-immigrants", "immigrants", "non-permanent residents")),
    (r".*\bvisible minority for the population\b.*", ("total visible minority population", "not a visible minority")),
    (r"movers", ("non-migrants", "migrants")),
    (r"migrants", ("internal migrants", "external migrants")),
    (r"internal migrants", ("intraprovincial migrants", "interprovincial migrants")),
)
"""Totals whose names, and those of their parts, say that these make them up: in this order, and nothing else does."""


def partitions_by_name(lines: Sequence[tuple[str, str, str]]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the sums that names document among the lines of tables.

    The keys of totals and of their parts.

    >>> labels = ["Not married and not living common law", "Never married", "Separated", "Divorced", "Widowed"]
    >>> partitions_by_name([(str(at), label, "Marital status") for at, label in enumerate(labels)])
    [('0', ('1', '2', '3', '4'))]
    >>> groups = ["Household income groups for private households", "Under $5,000", "$5,000 to $9,999", "$10,000 and over"]
    >>> partitions_by_name([(str(at), label, "Income") for at, label in enumerate(groups)])
    [('0', ('1', '2', '3'))]
    """
    tables: dict[str, list[tuple[str, str]]] = {}
    for key, label, table in lines:
        tables.setdefault(table, []).append((key, label))
    found = [one for table, members in tables.items() if table for one in (*_named(members), *_tiled(members))]
    return list(dict.fromkeys(found))


def _named(lines: Sequence[tuple[str, str]]) -> list[tuple[str, tuple[str, ...]]]:
    """Return totals with all the parts that `_NAMED` lists for them, each the first of its name behind the total."""
    found = []
    for at, (key, label) in enumerate(lines):
        for total, parts in _NAMED:
            if not re.fullmatch(total, label, re.IGNORECASE):
                continue
            ahead = lines[at + 1 :]
            keys = [
                next((k for k, name in ahead if re.fullmatch(rf"(?:.* - )?{part}", name, re.IGNORECASE)), None)
                for part in parts
            ]
            if None not in keys and len(set(keys)) == len(keys):
                found.append((key, tuple(one for one in keys if one is not None)))
    return found


def _tiled(lines: Sequence[tuple[str, str]]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the title of a table and the ranges that tile everything; and ranges that others tile."""
    found = []
    for name, range_of in RANGES.items():
        if name == "Age":
            continue
        title = next((key for key, label in lines if _kind(label)[0] == ""), None)
        for run in AgeRun.find(lines, range_of):
            for total, parts in tile(run):
                whole = total or (title if lines[0][0] == title else None)
                if whole is not None:
                    found.append((whole, parts))
    return found
