"""The outline: counts as lines with levels, as they were published, one column per sex; and where each area is, in words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unround.audits import Model
from unround.tables.profile import indented_below

if TYPE_CHECKING:
    import polars as pl

SEX = "sex"
UNNAMED = "Other counts"
"""What a table without a name is called."""


@dataclass(frozen=True, slots=True)
class OutlineLine:
    """One characteristic.

    - `at`: Its place in the outline.
    - `label`, `code`: What it counts, and its code.
    - `level`: How deep it stands under the first line of its table.
    - `parent`: The line it stands under.
    - `cells`: Its cell for each of the outline's variants; None where there is none.
    """

    at: int
    label: str
    code: str
    level: int
    parent: int | None
    cells: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class OutlineTable:
    """One table of the release: its name and its lines, parents before children."""

    at: int
    name: str
    lines: tuple[OutlineLine, ...]

    @property
    def parents(self) -> frozenset[int]:
        """The lines that have others under them."""
        return frozenset(line.parent for line in self.lines if line.parent is not None)


@dataclass(frozen=True)
class Outline:
    """All tables of a release.

    - `variants`: The sexes, or ("",) for tables that are not by sex.
    - `tables`: In the order in which they were published.
    - `table_of`: For every cell, the table that it stands in.
    """

    variants: tuple[str, ...]
    tables: tuple[OutlineTable, ...]
    table_of: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many lines there are."""
        return sum(len(table.lines) for table in self.tables)

    @property
    def lines(self) -> tuple[OutlineLine, ...]:
        """All lines, in order."""
        return tuple(line for table in self.tables for line in table.lines)


def outline_of(model: Model, axes: list[str]) -> Outline:
    """Put the cells of a model into lines: indentation tells which stands under which, and sums where there is none."""
    at = axes.index(SEX) if SEX in axes and len(axes) > 1 else None
    variants = tuple(dict.fromkeys(column.codes[at] for column in model.columns)) if at is not None else ("",)
    rows: dict[tuple[str, tuple[str, ...]], dict[str, int]] = {}
    for cell, column in enumerate(model.columns):
        codes = column.codes if at is None else column.codes[:at] + column.codes[at + 1 :]
        rows.setdefault((column.block, codes), {})[column.codes[at] if at is not None else ""] = cell
    blocks: dict[str, list[tuple[str, dict[str, int]]]] = {}
    for (block, codes), cells in rows.items():
        blocks.setdefault(block, []).append((", ".join(codes), cells))
    tables: list[OutlineTable] = []
    table_of, number = [0] * len(model.columns), 0
    for block, lines_of in blocks.items():
        placed = _placed(model, [next(iter(cells.values())) for _, cells in lines_of])
        lines: list[OutlineLine] = []
        where: dict[int, int] = {}
        for old, parent, level in placed:
            code, cells = lines_of[old]
            label = model.columns[next(iter(cells.values()))].label or code
            where[old] = number
            above = where[parent] if parent is not None else None
            lines.append(OutlineLine(number, label, code, level, above, tuple(cells.get(variant) for variant in variants)))
            number += 1
            for cell in cells.values():
                table_of[cell] = len(tables)
        tables.append(OutlineTable(len(tables), block or UNNAMED, tuple(lines)))
    return Outline(variants, tuple(tables), tuple(table_of))


def _placed(model: Model, cells: list[int]) -> list[tuple[int, int | None, int]]:
    """Return the order of a table's lines, and for each its parent and level."""
    depths = [model.columns[cell].depth for cell in cells]
    below = indented_below(depths) if any(depths) else _by_sums(model, cells)
    above = {child: line for line, children in below.items() for child in children}
    order: list[tuple[int, int | None, int]] = []
    waiting = [(line, 0) for line in reversed(range(len(cells))) if line not in above]
    while waiting:
        line, level = waiting.pop()
        order.append((line, above.get(line), level))
        waiting += [(child, level + 1) for child in sorted(below.get(line, []), reverse=True)]
    return order


def _by_sums(model: Model, cells: list[int]) -> dict[int, list[int]]:
    """Return every line that is the total of a sum, with its parts; each stands under the total of its smallest sum."""
    at = {cell: line for line, cell in enumerate(cells)}
    below: dict[int, list[int]] = {}
    above: dict[int, int] = {}
    sums = [(total, parts) for total, parts in model.equations if total in at and len(parts) > 1]
    for total, parts in sorted(sums, key=lambda pair: len(pair[1])):
        for part in (at[part] for part in parts if part in at):
            if part not in above and not _stands_under(above, at[total], part):
                above[part] = at[total]
                below.setdefault(at[total], []).append(part)
    return below


def _stands_under(above: Mapping[int, int], line: int | None, other: int) -> bool:
    """Whether a line is another one, or stands somewhere under it."""
    while line is not None and line != other:
        line = above.get(line)
    return line is not None


KINDS = {
    "csd": "subdivision",
    "cma": "metropolitan area",
    "cd": "division",
    "pr": "province",
    "sa2": "statistical area",
    "ta": "territorial authority",
    "rc": "region",
}
"""Columns that name a place around an area, in the order in which they are said; nobody knows a tract."""
FACETS = ("cma", "csd", "ta", "rc", "cd", "pr")
"""The columns by which findings are sorted into places: the first that there is."""
LEVELS = {
    "DA": "Dissemination area",
    "DB": "Dissemination block",
    "CT": "Census tract",
    "CSD": "Census subdivision",
    "CD": "Census division",
    "CMA": "Metropolitan area",
    "CA": "Census agglomeration",
    "PR": "Province",
    "C": "Country",
    "FSA": "Postal area",
    "EA": "Enumeration area",
}
"""Levels that files call by their initials."""
METROPOLITAN = dict(
    re.findall(
        r"(\d+) ([^;]+);",
        """
    001 St. John's; 105 Charlottetown; 205 Halifax; 225 Cape Breton; 305 Moncton; 310 Saint John; 320 Fredericton;
    408 Saguenay; 421 Québec; 433 Sherbrooke; 442 Trois-Rivières; 462 Montréal; 505 Ottawa–Gatineau; 521 Kingston;
    532 Oshawa; 535 Toronto; 537 Hamilton; 539 St. Catharines–Niagara; 541 Kitchener–Cambridge–Waterloo;
    543 Brantford; 550 Guelph; 555 London; 556 Chatham-Kent; 559 Windsor; 568 Barrie; 580 Greater Sudbury;
    595 Thunder Bay; 602 Winnipeg; 705 Regina; 725 Saskatoon; 825 Calgary; 830 Red Deer; 835 Edmonton; 915 Kelowna;
    925 Kamloops; 932 Abbotsford–Mission; 933 Vancouver; 935 Victoria;
    """,
    )
)
"""Canada's metropolitan areas and larger agglomerations, by the last three digits of the codes that files have in place of
their names (Standard Geographical Classification 2021)."""
MOST_SAID = 2
"""Places around an area that are said."""


def level_named(level: str) -> str:
    """Return a level in words.

    >>> level_named("DA"), level_named("ward")
    ('Dissemination area', 'ward')
    """
    return LEVELS.get(level, level)


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """Areas sorted into places.

    - `word`: What the places are: "metropolitan area".
    - `keys`, `names`: Their codes, and what they are called.
    - `of`: For every area the position of its place; the last one, "elsewhere", where the file names none.
    """

    word: str
    keys: list[str]
    names: list[str]
    of: NDArray[np.int64]


class Places:
    """The names of areas, and of the places around them.

    - `areas`: The areas of an audit.
    - `codes`, `names`: Of every area; a name is "" where there is none but the code.
    """

    def __init__(self, areas: pl.DataFrame, codes: Sequence[str], names: Sequence[str]) -> None:
        import polars as pl

        self.codes, self.names = codes, names
        texts = [name for name, kind in areas.schema.items() if kind == pl.String]
        text = {name: areas[name].fill_null("").to_list() for name in texts}
        blank = [""] * len(codes)
        self.short = [short or code for short, code in zip(text.get("code", blank), codes, strict=True)]
        self.levels = [level_named(level) for level in text.get("level", blank)]
        self._known = {code: name for code, name in zip(codes, names, strict=True) if name}
        self._known |= {short: name for short, name in zip(self.short, names, strict=True) if name}
        self._parents = text.get("parent", blank)
        named = {_prefix(column): texts for column, texts in text.items() if _prefix(column)}
        if "cma" in text and "cma" not in named and "csd" in text:
            named["cma"] = [METROPOLITAN.get(code[-3:], "") for code in text["cma"]]
        self._columns = [
            (kind, word, text.get(kind, blank), named.get(kind, blank))
            for kind, word in KINDS.items()
            if kind in text or kind in named
        ]

    def title(self, row: int) -> str:
        """Return what an area is called in headings: its name, or its level and code.

        A code alone would say nothing.
        """
        if self.names[row]:
            return self.names[row]
        return f"{self.levels[row]} {self.short[row]}" if self.levels[row] else self.short[row]

    def around(self, row: int) -> str:
        """Say in which places an area lies; nothing where the file does not tell."""
        said = []
        parent = self._parents[row]
        if parent and parent in self._known and self._known[parent] != self.names[row]:
            said.append(self._known[parent])
        for _, word, codes, names in self._columns:
            code, name = codes[row], names[row]
            name = name or self._known.get(code, "")
            if (not code and not name) or code == self.short[row] or name in said or (name and name == self.names[row]):
                continue
            if not name and said and code == parent:
                continue
            said.append(name or f"{word} {code}")
        return ", ".join(said[:MOST_SAID])

    def grouping(self) -> Grouping | None:
        """Sort areas into the places that findings are filtered by; None where the file names no two."""
        for kind in FACETS:
            column = next(((word, codes, names) for k, word, codes, names in self._columns if k == kind), None)
            if (
                column is not None
                and len({place for place in column[1] if place} or {place for place in column[2] if place}) > 1
            ):
                word, codes, names = column
                keys = [code or name for code, name in zip(codes, names, strict=True)]
                called = {key: name or self._known.get(key, "") for key, name in zip(keys, names, strict=True)}
                return _grouped(word, keys, {key: name or f"{word} {key}" for key, name in called.items()})
        known = [parent if parent in self._known else "" for parent in self._parents]
        if len(set(known) - {""}) > 1:
            return _grouped("place", known, self._known)
        return None


def _prefix(column: str) -> str:
    """Return the kind of place that a column names: "csd" for "CSD_NAME" and "CSD_2018_NAME", "" for others."""
    match = re.fullmatch(r"([a-z0-9]+?)[ _](?:\d{4}[ _])?name", column.lower())
    return match[1] if match and match[1] in KINDS else ""


def _grouped(word: str, keys: list[str], names: dict[str, str]) -> Grouping:
    """Give every place a number, in the order of the file."""
    order = [key for key in dict.fromkeys(keys) if key]
    at = {key: k for k, key in enumerate(order)}
    of = np.array([at.get(key, len(order)) for key in keys], dtype=np.int64)
    return Grouping(word, [*order, "elsewhere"], [*(names[key] for key in order), "elsewhere"], of)
