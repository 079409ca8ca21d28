"""What is documented of the Canadian profile of 2021, by CHARACTERISTIC_ID: its tables, how they add up, what they count.

The profile's own list has 2,631 characteristics; `canada_2021.txt` has the shape of every table: how deep each row is
indented, what kind of number it holds, whom it counts. A shape is a string of rows, one digit each for the depth, and a
letter where the row is not an ordinary count: `m` a median and `a` an average of money, `n` an average of something else,
`p` a percentage, `s` a count of some of its parent's people that is not part of a partition. `(12m)7` repeats what is in
brackets seven times; spaces only help the eye. What counts the same people, households or families in tables of their own
is in `canada_2021.toml`, and so are rates, means and medians. CensusMapper numbers the same characteristics in the same
order, one vector each or three by sex.

This is for formats without indentation, or without labels at all, and for simulated censuses. A file that someone put
together rarely has everything: where it has the parts of two tables that count the same people, and the total of neither,
both must still add to the same number, and that total becomes a column without a published count.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unround.figures import Figure, FigureKind
from unround.mechanisms import Unpublished
from unround.release import SUPPRESSED, Column, Counts, Proposal
from unround.tables.labels import finest
from unround.tables.profile import COUNT, KINDS, FigureMeaning, TableLine, above, figures_for, is_sampled, key_of

LAST = 2631
"""The last CHARACTERISTIC_ID."""

FULL, SAMPLE = " - 100% data", " - 25% sample data"
"""What the titles of tables end in: whether everybody was asked, or every fourth household."""


@dataclass(frozen=True, slots=True)
class ProfileBlock:
    """Rows that count the same universe, from one "Total" to the next."""

    first: int  # the characteristic ID of its first row
    universe: str  # whom it counts: a name that `people` defines, or `=12+13`, the people counted in rows 12 and 13
    rule: str  # split: parts add up; any: several answers; stats: no parts; within: some of another block; core; figures
    source: str  # full, sample, or exact
    sex: bool  # whether men and women are shown
    name: str  # what the table is called here; "" for one that goes on with the table above it
    shape: str  # depth and kind of each row; see the module
    title: str = ""  # what the total and the numbered entries are called
    noun: str = ""
    labels: tuple[str, ...] = ()  # all names, where they are not numbered
    weights: tuple[float, ...] = ()  # the shares of the leaves
    skew: float = 0.6  # the exponent of that fall
    clump: float = 60.0  # how alike areas are

    @property
    def counted_rows(self) -> tuple[int, ...]:
        """The rows whose people it counts, where its universe is given by rows."""
        return tuple(int(row) for row in self.universe.removeprefix("=").split("+"))

    @property
    def sexes(self) -> slice:
        """Which of total, men and women are drawn; the total of men and women is added up."""
        return slice(1, 3) if self.sex else slice(0, 1)

    @property
    def mechanism(self) -> str:
        """How its counts are published."""
        return {"full": "rounding:5", "sample": "sample:5", "exact": "exact"}[self.source]

    def parts(self) -> dict[int, tuple[int, ...]]:
        """Return the partitions inside it, by ID; statistics and multiple responses have none."""
        parts: dict[int, tuple[int, ...]] = {}
        shape = expand(self.shape)
        for at, parent in enumerate(above([depth for depth, _ in shape])):
            if parent >= 0 and not shape[at][1] and self.rule in ("split", "core", "within") and self.source != "exact":
                parts[self.first + parent] = (*parts.get(self.first + parent, ()), self.first + at)
        return parts


def expand(shape: str) -> list[tuple[int, str]]:
    """Return the depth and the letter of each row of a shape.

    >>> expand("0(12m)2")
    [(0, ''), (1, ''), (2, 'm'), (1, ''), (2, 'm')]
    """
    flat = re.sub(r"\(([^)]*)\)(\d+)", lambda repeated: repeated[1] * int(repeated[2]), shape)
    return [(int(depth), letter) for depth, letter in re.findall(r"(\d)([a-z]?)", flat)]


def _blocks() -> Iterator[ProfileBlock]:
    """Read the tables from the text beside this module, which says how it is written."""
    lines = Path(__file__).with_name("canada_2021.txt").read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("#")).strip()
    for block in re.split(r"\n(?! )", text):
        line, *labels = (part.strip() for part in block.split("\n"))
        head, name, shape, title, noun, settings = ([field.strip() for field in line.split("|")] + [""] * 3)[:6]
        first, universe, rule, source, sexes = head.split()
        more = dict(setting.split("=") for setting in settings.split())
        shares = tuple(float(share) for share in more.pop("shares", "").split(",") if share)
        yield ProfileBlock(
            int(first), universe, rule, source, sexes == "sexes", name, shape, title, noun, tuple(labels), shares,
            **{setting: float(value) for setting, value in more.items()},
        )  # fmt: skip


BLOCKS = tuple(_blocks())

AGED_15 = -15
"""Stands for everybody aged 15 and over, who are not a line of the table of ages."""

_SAID: Mapping[str, Any] = tomllib.loads(Path(__file__).with_name("canada_2021.toml").read_text(encoding="utf-8"))
"""What is documented beside the tables; the file says what each of its keys is."""

DATASET = "CA21"
"""What CensusMapper calls this census."""


def _ids(text: str) -> tuple[int, ...]:
    """Return the numbers of a list such as "3 6-8"; a minus in front is part of a number."""
    numbers = list[int]()
    for part in text.split():
        first, dash, last = part.partition("-") if not part.startswith("-") else (part, "", "")
        numbers += range(int(first), int(last) + 1) if dash else [int(first)]
    return tuple(numbers)


TABLES: Mapping[int, str] = {
    block.first: block.name + {"full": FULL, "sample": SAMPLE, "exact": ""}[block.source] for block in BLOCKS if block.name
}
"""The tables' names, by the ID of their first line; like the titles of the profile they tell the source of the counts."""
PARTS: Mapping[int, tuple[int, ...]] = {AGED_15: (13, 24)} | {
    total: parts for block in BLOCKS if block.first not in _SAID["left_to_labels"] for total, parts in block.parts().items()
}
"""The parts of every total that has any."""
SAME: tuple[tuple[int, ...], ...] = tuple(map(_ids, _SAID["same"]))
"""IDs that count the same, one published exactly first."""
_LABELS = {block.first + at: label for block in BLOCKS for at, label in enumerate(block.labels)}
FIVE_YEARS: Mapping[int, int] = {number: int(_LABELS[number].split()[0]) for number in _ids(_SAID["five_years"])}
"""The lines of five years of age, and the youngest of each."""

_FIRST = tuple(TABLES)
_VECTOR_OF = {
    first + at: vector + at * step for first, last, vector, step in _SAID["vectors"] for at in range(last - first + 1)
}
_ID_OF = {vector: number for number, vector in _VECTOR_OF.items()}
_HEADS = {_VECTOR_OF[first]: first for first in _FIRST if first in _VECTOR_OF}
_HEAD_VECTORS = tuple(sorted(_HEADS))


def table_of(number: int) -> str:
    """Return the name of the table in which a characteristic stands.

    >>> table_of(10), table_of(2615), table_of(AGED_15)
    ('Age - 100% data', 'Commuting duration - 25% sample data', 'Age - 100% data')
    """
    return TABLES[_FIRST[bisect_right(_FIRST, number) - 1]] if number > 0 else table_of(PARTS[number][0])


def table_of_vector(vector: int) -> str:
    """Return the name of the table in which a vector of CensusMapper stands, single years of age among them.

    >>> table_of_vector(14), table_of_vector(17), table_of_vector(1949)
    ('Age - 100% data', 'Age - 100% data', 'Mother tongue - 100% data')
    """
    return TABLES[_HEADS[_HEAD_VECTORS[bisect_right(_HEAD_VECTORS, vector) - 1]]]


def vector_of(number: int) -> int | None:
    """Return the vector of a characteristic's total; None where CensusMapper has none, or it is not known.

    >>> vector_of(8), vector_of(58), vector_of(1949)
    (8, 453, 5670)
    """
    return _VECTOR_OF.get(number)


def id_of(vector: int) -> int | None:
    """Return the characteristic of a vector that holds a total; None for single years of age and what is not known."""
    return _ID_OF.get(vector)


def partition(total: int, there: Mapping[int, int]) -> tuple[int, ...] | None:
    """Return the parts of a total that a release has.

    In place of parts that it has not come theirs; None where some of these lack too.

    >>> there = dict.fromkeys((9, *range(14, 29), 30, 31, 32, 33, 1), 0)
    >>> partition(24, there)
    (25, 26, 27, 28, 30, 31, 32, 33)
    >>> partition(8, there)[:3], partition(41, there)
    ((9, 14, 15), None)
    """
    parts: list[int] = []
    for part in PARTS.get(total, ()):
        finer = (part,) if part in there else partition(part, there)
        if finer is None:
            return None
        parts += finer
    return tuple(parts) or None


def documented(there: Mapping[int, int]) -> Iterator[tuple[int, tuple[int, ...], str, tuple[int, ...]]]:
    """Go through the sums that are documented among the characteristics that a release has, as in `Proposal`.

    A total, which may not be in `there`; what it is made of (one ID for the same count in another table); "names" or
    "universe"; and where it was not published, the parts of another table that make up the same total.

    >>> for total, parts, origin, against in documented(dict.fromkeys((59, 66, *range(67, 71), 13, 24), 0)):
    ...     print(total, parts, origin, against)
    66 (67, 68, 69, 70) names ()
    58 (59, 66) universe (13, 24)
    58 (13, 24) universe (59, 66)
    """
    for total in PARTS:
        parts = partition(total, there) if total in there else None
        if parts:
            yield total, parts, "names", ()
    for group in SAME:
        shown = [number for number in group if number in there]
        made_up = [parts for number in group if number not in there and (parts := partition(number, there))]
        if shown:
            yield from ((shown[0], (again,), "universe", ()) for again in shown[1:])
            yield from ((shown[0], parts, "universe", ()) for parts in made_up)
        elif len(made_up) > 1:
            yield group[0], made_up[0], "universe", made_up[1]
            yield from ((group[0], parts, "universe", made_up[0]) for parts in made_up[1:])


def with_documented(
    columns: Sequence[Column], counts: Counts, places: Mapping[tuple[int, str], int], codes: Mapping[int, str]
) -> tuple[list[Column], Counts, list[Proposal]]:
    """Propose what is documented, and add columns at the end for totals that two tables share and the file has not."""
    columns, hidden, proposals = list(columns), dict[tuple[int, str], int](), list[Proposal]()
    for sex in dict.fromkeys(sex for _, sex in places):
        at = {number: place for (number, its_sex), place in places.items() if its_sex == sex}
        for total, parts, origin, against in documented(at):
            if total not in at:
                whole = hidden.setdefault((total, sex), len(columns))
                if whole == len(columns):
                    table, name = table_of(total), codes[total]
                    label = f"Total of {table.removesuffix(FULL).removesuffix(SAMPLE)} (not in the file)"
                    columns.append(Column(key_of(name, sex), (name, sex), label, table, mechanism=Unpublished()))
            head = at[total] if total in at else hidden[total, sex]
            others = tuple(at[part] for part in against)
            proposals.append(Proposal(head, tuple(at[part] for part in parts), origin, others))
    nothing = np.full((len(counts), len(hidden)), SUPPRESSED, dtype=np.int32)
    return columns, np.hstack([counts, nothing]) if hidden else counts, proposals


_ROWS = {
    block.first + at: (letter, block.first + parent if parent >= 0 else 0)
    for block in BLOCKS
    for shape in (expand(block.shape),)
    for at, ((_, letter), parent) in enumerate(zip(shape, above([depth for depth, _ in shape]), strict=True))
}
"""The letter of every characteristic, and the one that it is indented under, or 0."""
_LETTERS = {"m": "median", "a": "average", "n": "average", "p": "rate"}
KIND_OF: Mapping[int, str] = {
    number: "figure" if number in _ids(_SAID["silent"]) else _LETTERS[letter]
    for number, (letter, _) in _ROWS.items()
    if letter in _LETTERS
}
"""What is not a count, by kind."""

_RATES = {rate: (part, whole) for rate, part, whole in _SAID["rates"]}


def documented_figures(lines: Mapping[int, TableLine]) -> list[Figure]:
    """Return the figures among the characteristics that a release has."""
    counts = {key_of(line.id, sex) for line in lines.values() if line.kind == COUNT for sex in line.sexes}
    figures: list[Figure] = []
    for number, line in lines.items():
        meaning = _meaning(number, line, lines)
        if meaning is not None:
            figures += figures_for(line, meaning, counts, is_sampled(line))
    return figures


def _meaning(number: int, line: TableLine, lines: Mapping[int, TableLine]) -> FigureMeaning | None:
    def there(*ids: int) -> str:
        return next((lines[other].id for other in ids if other in lines and lines[other].kind == COUNT), "")

    if number in _RATES:
        numerator, universe = _RATES[number]
        within = there(1) if universe in _SAID["nearly_everybody"] else ""
        return FigureMeaning(FigureKind.RATE, there(universe), there(numerator), within=within)
    if (of := _SAID["grouped"].get(str(number))) is not None:
        groups = [(lines[other].id, label_of(other) or lines[other].label) for other in _below(of["total"]) if there(other)]
        whole, persons = there(*of["units"]), there(of.get("persons", 0))
        return FigureMeaning(FigureKind(of["kind"]), whole, persons, finest(groups, of["of"]))
    kind = KINDS.get(line.kind)
    if kind is None or kind is FigureKind.RATE:
        return None
    return FigureMeaning(kind, there(_ROWS[number][1]))


def _below(total: int) -> Sequence[int]:
    """Return everything that a total consists of, in all levels."""
    return [number for part in PARTS.get(total, ()) for number in (part, *_below(part))]


def label_of(number: int) -> str:
    """Return the label of a line of ages, or of one that is not rounded, where the file has none; "" for all others.

    >>> label_of(10), label_of(33), label_of(29), label_of(41)
    ('0 to 4 years', '100 years and over', '85 years and over', '')
    """
    return _LABELS[number] if number in (*_SAID["exact"], *_ids(_SAID["named"])) else ""
