"""The drafts: what disclosure officers are given, in short entries. All places and numbers are invented.

Each entry is leaky (a count follows that was to be hidden, or a count of 1 or 2 is printed as it is), healthy (nothing
follows), or open (nobody could decide it without asking).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.drafts import files
from tests.drafts.files import Dialect, Layout, Sheet
from tests.drafts.judge import Cell, Facts
from tests.drafts.tables import NARROW, Axis, Hide, Labels, Percent, Table


@dataclass(frozen=True)
class Draft:
    """A file, what it is, and what a reader is meant to see in it."""

    name: str
    kind: str
    tables: tuple[Table, ...]
    write: Callable[[Path], None]
    why: str = ""
    same: tuple[tuple[int, str, int, str], ...] = ()
    """Tables that share counts: the column of one is the column of the other, in every row."""

    def facts(self) -> Facts:
        """Return all tables as one integer program."""
        joint = Facts()
        for at, table in enumerate(self.tables):
            facts = table.facts()
            joint.windows |= {(at, *cell): window for cell, window in facts.windows.items()}
            joint.facts += [
                ({(at, *cell): factor for cell, factor in factors.items()}, low, high) for factors, low, high in facts.facts
            ]
        for one, column, other, its in self.same:
            for row in self.tables[one].axes[0].printed:
                joint.adds((one, row, column), [(other, row, its)])
        return joint

    def judged(self) -> tuple[str, list[tuple[Cell, int]]]:
        """Return leaky, healthy or narrow (neither: some count has hardly more than one value left), and what follows."""
        facts = self.facts()
        printed = [(at, *cell) for at, table in enumerate(self.tables) for cell in table.cells]
        out, widths = [], [NARROW]
        for cell, (low, high) in facts.bounds(printed, NARROW).items():
            was_open = facts.windows[cell][0] < facts.windows[cell][1]
            if (low == high and (was_open or low in (1, 2))) or 0 < low < high <= 2:
                out.append((cell, low))
            if was_open:
                widths.append(high - low)
        return "leaky" if out else "healthy" if min(widths) >= NARROW else "narrow", out


DRAFTS: dict[str, Draft] = {}


PLAIN, COMMAS = Layout(), Dialect()


def add(
    name: str,
    kind: str,
    table: Table | tuple[Table, ...],
    layout: Layout | tuple[Layout, ...] = PLAIN,
    *,
    why: str = "",
    same: tuple[tuple[int, str, int, str], ...] = (),
    sheets: tuple[str, ...] = ("Table 1",),
    dialect: Dialect = COMMAS,
    first: Sheet | None = None,
    change: Callable[[Sheet], None] | None = None,
) -> None:
    """Enter a draft: its tables below each other, or each on a sheet of its own; after a first sheet of text, if any."""
    tables = table if isinstance(table, tuple) else (table,)
    layouts = layout if isinstance(layout, tuple) else (layout,) * len(tables)

    def write(path: Path) -> None:
        pages = {"Contents": first} if first else {}
        for at, (content, form) in enumerate(zip(tables, layouts, strict=True)):
            page = pages.setdefault(sheets[min(at, len(sheets) - 1)], Sheet())
            if page.rows:
                page.rows += [[], []]
            files.place(page, content, form)
            if change:
                change(page)
        kinds = {".xlsx": files.xlsx, ".ods": files.ods, ".csv": lambda path, pages: files.csv(path, pages, dialect)}
        kinds[path.suffix](path, pages)

    DRAFTS[name] = Draft(name, kind, tables, write, why, same)


NAMES = [
    *("Ashford", "Barrow Hill", "Castle Ward", "Dunmore", "Eastgate", "Fairfield", "Greenlea", "Harbour", "Ironbridge"),
    *("Jesmond", "Kingsley", "Larkhill", "Moorside", "Northgate", "Oakwood", "Parkside", "Quarry Bank", "Riverside"),
    *("Southfield", "Thornhill", "Upper Vale", "Vauxhall", "Westbury", "Yarrow"),
]


def places(number: int, total: str = "", last: bool = True, name: str = "District") -> Axis:
    """So many districts, under a total if one is named."""
    labels = NAMES[:number] if number <= len(NAMES) else [f"Ward {at + 1}" for at in range(number)]
    return Axis(name, [(total, labels)] if total else labels, last)


def in_regions(
    total: str = "", regions: tuple[tuple[str, int], ...] = (("North", 4), ("Centre", 3), ("South", 5)), last: bool = False
) -> Axis:
    names, tree = iter(NAMES), []
    for region, number in regions:
        tree.append((region, [next(names) for _ in range(number)]))
    return Axis("Area", [(total, tree)] if total else tree, last)


SEX = Axis("Sex", [("Total", ["Men", "Women"])])
BOTH = Axis("Sex", [("Both sexes", ["Male", "Female"])])
AGES = Axis("Age", [("All ages", ["0-14 years", "15-29 years", "30-44 years", "45-64 years", "65-79 years", "80+ years"])])
AGES3 = Axis("Age", [("Total", ["0-14 years", "15-64 years", "65+ years"])])
AGES4 = Axis("Age group", [("All ages", ["0 to 14", "15 to 39", "40 to 64", "65 and over"])])
NESTED = Axis("Age", [("All ages", ["0-14", ("15-64", ["15-24", "25-44", "45-64"]), "65+"])])
TENURE = Axis(
    "Tenure",
    [("All households", ["Owned outright", "Owned with a mortgage", "Social rented", "Private rented", "Living rent free"])],
)
RANDOM3 = "Counts are randomly rounded to base 3."
RANDOM5 = "Counts have been randomly rounded to base 5; totals may not add."
CONFIDENTIAL = "c = confidential"
TITLE = ("Table 1: Population by age and sex, 2021 Census",)
POPULATION = ("All ages", "Total")


def people(rows: Axis, *across: Axis, **more: object) -> Table:
    return Table((rows, *across), **more)  # type: ignore[arg-type]


class Beside(Axis):
    """Sexes and ages side by side under one total: two partitions of the same people."""

    def __init__(self, total: str, one: list[str], other: list[str], name: str = "Group") -> None:
        super().__init__(name, [total, *one, *other])
        self.one, self.other, self.head = one, other, total

    @property
    def sums(self) -> list[tuple[str, list[str]]]:
        return [(self.head, self.one), (self.head, self.other)]

    @property
    def total(self) -> str:
        return self.head


@dataclass(frozen=True)
class SideBySide(Table):
    """A table whose columns are a total, its parts, and its parts in another way."""

    @property
    def truth(self) -> dict[Labels, int]:  # type: ignore[override]
        rng = np.random.default_rng(self.seed)
        axis = self.axes[1]
        assert isinstance(axis, Beside)
        out = {}
        for row in self.axes[0].leaves:
            size = int(rng.poisson(self.mean * rng.uniform(0.6, 1.6)))
            for parts in (axis.one, axis.other):
                out |= {
                    (row, part): int(number)
                    for part, number in zip(parts, rng.multinomial(size, rng.dirichlet([9.0] * len(parts))), strict=True)
                }
            out[row, axis.head] = size
        for total, parts in self.axes[0].parts.items():
            out |= {(total, label): sum(out[part, label] for part in parts) for label in axis.labels}
        return out

    @property
    def sums(self) -> list[tuple[Labels, list[Labels]]]:  # type: ignore[override]
        axis = self.axes[1]
        assert isinstance(axis, Beside)
        inner = [
            ((row, axis.head), [(row, part) for part in parts])
            for row in self.axes[0].labels
            for parts in (axis.one, axis.other)
        ]
        return inner + [
            ((total, label), [(part, label) for part in parts])
            for total, parts in self.axes[0].parts.items()
            for label in axis.labels
        ]


def beside(rows: Axis, total: str, one: str, other: str, **more: object) -> Table:
    return SideBySide((rows, Beside(total, one.split(","), other.split(","))), **more)  # type: ignore[arg-type]


def special(name: str, kind: str, table: Table, write: Callable[[Path, Table], None]) -> None:
    DRAFTS[name] = Draft(name, kind, (table,), lambda path: write(path, table))


def changed(where: Callable[[int, object], object]) -> Callable[[Sheet], None]:
    """Change every value of a sheet that a function gives another one."""

    def change(sheet: Sheet) -> None:
        for at, row in enumerate(sheet.rows):
            sheet.rows[at] = [where(column, value) for column, value in enumerate(row)]

    return change


def heads(**other: str) -> Callable[[Sheet], None]:
    """Call some labels otherwise, wherever they stand."""
    return changed(lambda _, value: other.get(value.replace(" ", "_"), value) if isinstance(value, str) else value)


def shifted(sheet: Sheet) -> None:
    """Begin in the second column, after two empty rows."""
    sheet.rows[:] = [[], [], *([None, *row] for row in sheet.rows)]


def units(sheet: Sheet) -> None:
    """Say below the headings what the numbers are."""
    sheet.rows.insert(1, [None, *("number" for _ in sheet.rows[0][1:])])


def paged(sheet: Sheet) -> None:
    """Repeat the headings in the middle, as after a page."""
    sheet.rows.insert(len(sheet.rows) // 2, list(sheet.rows[0]))


def with_regions(sheet: Sheet) -> None:
    """Put the region of every district beside it."""
    names = ["Region", *["North"] * 6, *["South"] * (len(sheet.rows) - 8), ""]
    sheet.rows[:] = [[name, *row] for name, row in zip(names, sheet.rows, strict=True)]


def alternating(sheet: Sheet) -> None:
    """Put the number and the percentage of every category side by side, under its name."""
    names = [str(value) for value in sheet.rows[0]]
    number = (len(names) - 2) // 2
    top: list[object] = [None, names[1], *(cell for name in names[2 : 2 + number] for cell in (name, None))]
    below: list[object] = [names[0], "Number", *("Number", "%") * number]
    body = [[*row[:2], *(row[at] for part in range(2, 2 + number) for at in (part, part + number))] if len(row) > 2 else row
            for row in sheet.rows[1:]]  # fmt: skip
    sheet.merged += [(0, 2 + 2 * part, 0, 3 + 2 * part) for part in range(number)]
    sheet.rows[:] = [top, below, *body]  # type: ignore[list-item]


# An entry is wrapped where a line is full: a line for every word would hide what differs.
# fmt: off
# --- merged headings -------------------------------------------------------------------------------------------------
add("ages-over-sex.xlsx", "leaky", people(places(22), AGES, SEX, how="rounding:3", exact=(POPULATION,), mean=12),
    Layout(above=(*TITLE, ""), below=("", RANDOM3, "Source: invented.")))
add("ages-over-sex-healthy.xlsx", "healthy", people(places(8), AGES4, SEX, how="rounding:5", seed=4, mean=60),
    Layout(above=TITLE, below=(RANDOM5,)))
add("sex-over-ages.xlsx", "leaky", people(places(14), BOTH, AGES4, how="rounding:3", seed=1, mean=15), Layout(above=TITLE,
    below=("", RANDOM3)))
add("sex-over-ages-healthy.ods", "healthy", people(places(7), BOTH, AGES4, how="rounding:5", mean=50),
    Layout(above=("Population", ""), below=(RANDOM5,)))
add("ages-over-sex-blank.xlsx", "leaky", people(places(12, "All districts"), AGES3, Axis("Sex", [("Persons", ["Males",
    "Females"])]), mean=30, hide=Hide(also=(("Dunmore", "65+ years", "Males"),))), Layout(head="blank",
    below=(CONFIDENTIAL,)))
add("ages-over-sex.ods", "leaky", people(places(16), AGES, SEX, how="rounding:3", exact=(POPULATION,), mean=10),
    Layout(above=TITLE, below=(RANDOM3,)))
add("joined-headings.csv", "healthy", people(places(9), AGES4, SEX, how="rounding:5", mean=70), Layout(head=" - "))
add("joined-with-spaces.csv", "leaky", people(places(15), AGES3, Axis("Sex", [("Persons", ["Men", "Women"])]),
    how="rounding:3", exact=(("Total", "Persons"),), seed=2, mean=14), Layout(head=" "))

# --- one heading, ages and sexes side by side ------------------------------------------------------------------------
add("years-in-last-heading.csv", "leaky", beside(places(20), "Total", "Men,Women", "0-14 years,15-64 years,65+ years",
    how="rounding:3", exact=("Total",), mean=65))
add("open-age-without-years.csv", "leaky", beside(places(20), "Total", "Men,Women", "0-14 years,15-64 years,65+",
    how="rounding:3", exact=("Total",), mean=65))
add("and-over.csv", "leaky", beside(places(20), "All persons", "Males,Females", "Under 15,15 to 64,65 and over",
    how="rounding:3", exact=("All persons",), seed=1, mean=80))
add("beside-healthy.xlsx", "healthy", beside(places(10), "Persons", "Males,Females", "Under 20,20-59,60 or over",
    how="rounding:5", mean=200), Layout(above=("Persons by sex and by age", ""), below=(RANDOM5,)))

# --- hidden counts under margins -------------------------------------------------------------------------------------
add("one-row-hidden.csv", "leaky", people(places(14, "Total"), SEX, hide=Hide(also=(("Fairfield", "Men"), ("Fairfield",
    "Women"))), true={("Fairfield", "Men"): 1, ("Fairfield", "Women"): 24}))
add("one-row-hidden-no-margin.csv", "healthy", people(places(14), SEX, hide=Hide(also=(("Fairfield", "Men"), ("Fairfield",
    "Women"))), true={("Fairfield", "Men"): 3, ("Fairfield", "Women"): 24}))
add("all-districts.xlsx", "leaky", people(places(12, "All districts"), SEX, hide=Hide(also=(("Eastgate", "Men"),
    ("Eastgate", "Women")))), Layout(above=("Claimants",), below=("", "c: suppressed")))
add("whole-country.csv", "leaky", people(places(11, "Whole country", last=False), AGES3, mean=25, hide=Hide(5, "x",
    also=(("Harbour", "65+ years"), ("Harbour", "0-14 years")))), Layout(below=("x = confidential",)))
add("england.xlsx", "leaky", people(places(9, "England"), AGES4, mean=30, hide=Hide(5, "c", also=(("Greenlea",
    "65 and over"), ("Greenlea", "0 to 14")))), Layout(below=(CONFIDENTIAL,)))
add("margins-leaky.xlsx", "leaky", people(places(22, "Total"), AGES, mean=14, weights={"80+ years": 0.3}, hide=Hide(5)),
    Layout(above=(*TITLE, ""), below=("c = fewer than 5",)), why="primary suppression alone")
add("margins-proper.xlsx", "healthy", people(places(22, "Total"), AGES, mean=20, weights={"80+ years": 0.4}, hide=Hide(5,
    complements=True)), Layout(above=(*TITLE, ""), below=(CONFIDENTIAL,)))
add("margins-proper.csv", "healthy", people(places(12, "All districts"), AGES4, mean=15, weights={"65 and over": 0.4},
    hide=Hide(5, "..", complements=True)), Layout(below=(".. = suppressed",)))
add("secondary-leaks.csv", "leaky", people(places(10, "Total"), AGES4, mean=30, true={("Dunmore", "65 and over"): 2},
    hide=Hide(5, "c", also=(("Dunmore", "0 to 14"), ("Harbour", "65 and over")))),
    why="the second count of a row is hidden, of the columns only one")
add("two-signs.xlsx", "healthy", people(places(10, "Total"), AGES4, mean=22, weights={"65 and over": 0.3}, hide=Hide(5,
    "<5", 1, 4, complements=True, second="x")), Layout(below=("<5: a count from 1 to 4",
    "x: suppressed to protect another count")))
add("less-than-five.csv", "leaky", people(places(12), AGES4, mean=14, weights={"65 and over": 0.3}, hide=Hide(5, "<5", 1,
    4)), why="one <5 in a row is the row's total less the others")
add("one-to-four.xlsx", "leaky", people(places(13, "Total"), SEX, mean=9, hide=Hide(5, "1-4", 1, 4)),
    Layout(below=("Counts from 1 to 4 are shown as 1-4.",)))
add("less-than-no-margin.csv", "healthy", people(places(15), Axis("Offence", ["Theft", "Fraud", "Assault", "Arson"]),
    mean=14, weights={"Arson": 0.3}, hide=Hide(5, "<5", 1, 4)))
add("dots-not-available.csv", "healthy", people(places(12), SEX, mean=40, hide=Hide(0, "..", also=(("Greenlea", "Total"),
    ("Greenlea", "Men"), ("Greenlea", "Women")))), Layout(below=(".. = not available",)))
add("sexes-and-margin.xlsx", "leaky", people(places(11, "Total"), AGES3, Axis("Sex", [("All", ["Men", "Women"])]), mean=20,
    hide=Hide(0, "c", also=(("Eastgate", "65+ years", "Men"), ("Eastgate", "65+ years", "Women"), ("Harbour", "65+ years",
    "Men"), ("Harbour", "0-14 years", "Men")))), Layout(below=(CONFIDENTIAL,)))
add("hundred-wards.csv", "leaky", people(places(130, "All wards", name="Ward"), SEX, hide=Hide(0, "c", also=(("Ward 77",
    "Men"), ("Ward 77", "Women")))))
add("hundred-wards-proper.csv", "healthy", people(places(130, "All wards", name="Ward"), SEX, hide=Hide(0, "c",
    also=tuple((f"Ward {at}", sex) for at in (12, 77) for sex in ("Men", "Women")))))
add("star-suppressed.csv", "leaky", people(places(10, "Total"), TENURE, mean=25, weights={"Living rent free": 0.2},
    hide=Hide(5, "*")), Layout(below=("* = suppressed",)))

# --- regions ---------------------------------------------------------------------------------------------------------
add("regions-indented.xlsx", "leaky", people(in_regions("Country"), SEX, hide=Hide(0, "c", also=(("Barrow Hill", "Men"),
    ("Barrow Hill", "Women")))), Layout(indent=True, below=(CONFIDENTIAL,)))
add("regions-indented.csv", "leaky", people(in_regions(), AGES4, mean=25, hide=Hide(0, "c", also=(("Harbour", "0 to 14"),
    ("Harbour", "65 and over")))), Layout(indent=True))
add("regions-healthy.xlsx", "healthy", people(in_regions("Country"), SEX, how="rounding:5", mean=150), Layout(indent=True,
    below=(RANDOM5,)))
add("regions-subtotals-below.xlsx", "leaky", people(in_regions("Whole country", last=True), AGES3, mean=40, hide=Hide(0,
    "c", also=(("Larkhill", "65+ years"), ("Larkhill", "0-14 years")))), Layout(blank_rows=5))

# --- notes, signs, flags ---------------------------------------------------------------------------------------------
add("dash-is-nil.csv", "leaky", people(places(14, "Total"), AGES4, mean=12, zero="-", weights={"65 and over": 0.12},
    hide=Hide(3, "c", also=())), Layout(below=("- = nil", CONFIDENTIAL)))
add("dash-is-nil-healthy.xlsx", "healthy", people(places(10), AGES4, how="rounding:5", mean=60, zero="–", true={("Dunmore",
    "65 and over"): 0}), Layout(below=("– = nil", RANDOM5)))
add("flags.csv", "healthy", people(places(12), AGES4, how="rounding:5", mean=60, flags={"*": 4, "p": 3, "r": 3}),
    Layout(below=("* estimate  p provisional  r revised", RANDOM5)))
add("flags-leaky.xlsx", "leaky", people(places(18), AGES3, how="rounding:3", exact=("Total",), seed=7, mean=18,
    flags={"*": 4, "r": 3, " p": 2}), Layout(below=("p = provisional, r = revised", RANDOM3)))
add("unrounded-one.csv", "leaky", people(places(12), AGES4, how="rounding:5", mean=60, true={("Jesmond",
    "65 and over"): 1}, marks={("Jesmond", "65 and over"): ("1*", 1, 1)}), Layout(below=("* not rounded", RANDOM5)))
add("unrounded-one-plain.csv", "leaky", people(places(14), SEX, how="rounding:3", mean=60, true={("Jesmond", "Men"): 1},
    marks={("Jesmond", "Men"): ("1", 1, 1)}))
add("bracketed-one.xlsx", "leaky", people(places(12), AGES4, how="rounding:5", mean=60, true={("Jesmond",
    "65 and over"): 1}, marks={("Jesmond", "65 and over"): ("(1)", 1, 1)}),
    Layout(below=("Figures in brackets are based on few cases.",)))
add("nought-one.csv", "leaky", people(places(12), SEX, how="rounding:5", mean=60, true={("Jesmond", "Men"): 1},
    marks={("Jesmond", "Men"): ("01", 1, 1)}))
add("footnote-signs.csv", "healthy", people(places(12), SEX, how="rounding:5", seed=1, mean=90, flags={" (1)": 3,
    " (2)": 2}), Layout(below=("(1) Boundary change in 2018.", "(2) Includes the garrison.")))
add("nearest-five.xlsx", "leaky", people(places(14), Axis("Sex", [("Persons", ["Male", "Female"])]), how="nearest:5",
    exact=("Persons",), seed=2, mean=30), Layout(above=("Claimants by sex",),
    below=("Male and female are rounded to the nearest 5.",)))
add("nearest-ten-healthy.csv", "healthy", people(places(14), AGES4, how="nearest:10", mean=80),
    Layout(below=("All figures are rounded to the nearest 10.",)))
add("nearest-ten-leaky.csv", "leaky", people(places(20), SEX, how="nearest:10", exact=("Total",), mean=40),
    Layout(below=("Men and women are rounded to the nearest 10; totals are not rounded.",)))

# --- bases -----------------------------------------------------------------------------------------------------------
add("base-6.csv", "healthy", people(places(16), AGES4, how="rounding:6", mean=70),
    Layout(below=("Counts are randomly rounded to base 6.",)))
add("base-10.xlsx", "healthy", people(places(12), AGES4, SEX, how="rounding:10", mean=80),
    Layout(below=("Counts were randomly rounded to base 10.",)))
add("base-10-exact-total.csv", "leaky", people(places(24), Axis("Sex", [("Persons", ["Men", "Women"])]), how="rounding:10",
    exact=("Persons",), mean=30, true={("Dunmore", "Men"): 31, ("Dunmore", "Women"): 41}, drawn={("Dunmore", "Men"): 40,
    ("Dunmore", "Women"): 50}), Layout(below=("Men and women are randomly rounded to base 10.",)))
add("base-3-unsaid.csv", "leaky", people(places(20), SEX, how="rounding:3", exact=("Total",), seed=2, mean=25))
add("base-5-unsaid-healthy.csv", "healthy", people(places(20), AGES4, how="rounding:5", mean=60))
add("controlled-3.xlsx", "healthy", people(places(10, "Total"), AGES4, how="controlled:3", mean=60),
    Layout(below=("Counts are rounded to base 3 so that all tables add up (controlled rounding).",)))
add("controlled-5.csv", "healthy", people(places(14, "All districts"), BOTH, how="controlled:5", mean=90),
    Layout(below=("Controlled rounding to base 5: figures add to their totals.",)))
add("exact-healthy.csv", "healthy", people(places(15, "Total"), AGES4, mean=90))
add("exact-small.csv", "leaky", people(places(15, "Total"), AGES4, mean=9, true={("Dunmore", "0 to 14"): 1}),
    why="a count of one, as it is")

# --- percentages, rates, medians -------------------------------------------------------------------------------------
add("percent.xlsx", "leaky", people(places(22), TENURE, how="rounding:5", exact=("All households",), mean=40,
    percent=Percent("All households")), Layout(above=("Table 7: Households by tenure",),
    below=("Counts are randomly rounded to base 5; percentages are of unrounded counts.",)))
add("percent-whole.csv", "leaky", people(places(14), TENURE, how="rounding:5", exact=("All households",), mean=15,
    percent=Percent("All households", 0, heading="% {}")), Layout(below=(RANDOM5,)))
add("percent-of-rounded.csv", "healthy", people(places(14), TENURE, how="rounding:5", mean=60,
    percent=Percent("All households", 1, true=False)), Layout(below=("Percentages are calculated from rounded counts.",
    RANDOM5)))
add("percent-of-exact.xlsx", "healthy", people(places(14), TENURE, mean=60, percent=Percent("All households")))
add("rate-per-1000.csv", "leaky", people(places(18), Axis("Status", [("Population", ["Unemployed", "Other"])]),
    how="rounding:5", exact=("Population",), mean=300, weights={"Unemployed": 0.1}, percent=Percent("Population", 1,
    heading="{} per 1,000", per=1000)),
    Layout(below=("Unemployed and other are randomly rounded to base 5. Rates are of unrounded counts.",)))
add("medians.xlsx", "healthy", people(places(12), TENURE, how="rounding:5", mean=60), Layout(extra=(("Median rent ($)",
    lambda at: 1150 + 13 * at), ("Average household size", lambda at: round(2.1 + at / 10, 1))), below=(RANDOM5,)))
add("density.csv", "healthy", people(places(12), SEX, how="rounding:5", mean=900), Layout(extra=(("Area (km²)",
    lambda at: round(12.5 + at * 3.7, 1)),), below=(RANDOM5,)))

# --- several tables --------------------------------------------------------------------------------------------------
HIDDEN_ROW = Hide(0, "c", also=(("Dunmore", "Men"), ("Dunmore", "Women")))
add("two-sheets.xlsx", "leaky", (people(places(8), AGES4, how="rounding:5", mean=60), people(places(12, "Total"), SEX,
    hide=HIDDEN_ROW)), sheets=("Age", "Sex"), why="the second sheet is the leaky one")
add("two-sheets-healthy.xlsx", "healthy", (people(places(8), AGES4, how="rounding:5", mean=60), people(places(8), TENURE,
    how="rounding:5", mean=60)), (Layout(below=(RANDOM5,)), Layout(below=(RANDOM5,))), sheets=("Age", "Tenure"))
add("contents-first.xlsx", "leaky", people(places(12, "Total"), SEX, hide=HIDDEN_ROW), Layout(above=TITLE),
    first=Sheet([["Contents"], ["Table 1", "Population by sex"], ["Contact: statistics@example.org"]]))
add("two-on-a-sheet.xlsx", "leaky", (people(places(8), AGES4, how="rounding:5", mean=60), people(places(12, "Total"), SEX,
    hide=HIDDEN_ROW)), (Layout(above=("Table 1: by age",), below=(RANDOM5,)), Layout(above=("Table 2: by sex",),
    below=(CONFIDENTIAL,))))
add("two-on-a-sheet.csv", "healthy", (people(places(8), AGES4, how="rounding:5", mean=60), people(places(8), TENURE,
    how="rounding:5", mean=60)), (Layout(above=("Table 1: by age",)), Layout(above=("Table 2: by tenure",))))
_ages = people(places(9, "Total"), AGES4, mean=30, hide=Hide(0, "c", also=(("Dunmore", "All ages"), ("Dunmore", "0 to 14"),
    ("Greenlea", "All ages"), ("Greenlea", "0 to 14"))))
_sexes = people(places(9, "Total"), SEX, true={(row, sex): _ages.truth[row,
    "All ages"] // 2 if sex == "Men" else -(-_ages.truth[row, "All ages"] // 2) for row in NAMES[:9] for sex in ("Men",
    "Women")})
add("together-they-tell.xlsx", "leaky", (_ages, _sexes), sheets=("Age", "Sex"), same=((0, "All ages", 1, "Total"),),
    why="the total that one sheet hides is on the other")

# --- languages and dialects ------------------------------------------------------------------------------------------
FRENCH = Axis("Âge", [("Ensemble", ["Moins de 15 ans", "15 à 64 ans", "65 à 84 ans", "85 ans et plus"])])
SEXE = Axis("Sexe", [("Ensemble", ["Hommes", "Femmes"])])
GERMAN = Axis("Alter", [("Insgesamt", ["unter 15 Jahre", "15 bis 64 Jahre", "65 Jahre und älter"])])
add("ensemble.csv", "leaky", people(places(12, "Ensemble", name="Commune"), SEXE, mean=800, hide=Hide(0, "c",
    also=(("Dunmore", "Hommes"), ("Dunmore", "Femmes")))), Layout(below=("c : secret statistique",)), dialect=Dialect(";",
    ",", "\u202f", "utf-8"))
add("ages-en-francais.csv", "leaky", people(places(20, name="Commune"), FRENCH, how="rounding:3", exact=("Ensemble",),
    mean=14, true=dict.fromkeys([("Dunmore", age) for age in FRENCH.leaves], 13), drawn=dict.fromkeys([("Dunmore",
    age) for age in FRENCH.leaves], 15)), Layout(below=("Effectifs arrondis aléatoirement à un multiple de 3.",)),
    dialect=Dialect(";", ",", "", "latin-1"))
add("francais-sain.xlsx", "healthy", people(places(10, name="Commune"), FRENCH, how="rounding:5", mean=70),
    Layout(above=("Population par âge",), below=("Arrondi aléatoire à la base 5.",)))
add("gesamt.csv", "leaky", people(places(12, "Gesamt", name="Kreis"), Axis("Geschlecht", [("Insgesamt", ["männlich",
    "weiblich"])]), mean=700, hide=Hide(0, "x", also=(("Dunmore", "männlich"), ("Dunmore", "weiblich")))),
    Layout(below=("x = Wert geheim gehalten",)), dialect=Dialect(";", ",", ".", "latin-1"))
add("alter.xlsx", "healthy", people(places(10, name="Gemeinde"), GERMAN, how="rounding:5", mean=70),
    Layout(above=("Bevölkerung nach Alter",), below=("Die Werte sind auf Vielfache von 5 gerundet (Zufallsrundung).",)))
add("spanish.csv", "leaky", people(places(20, name="Municipio"), Axis("Edad", [("Total", ["0 a 14 años", "15 a 64 años",
    "65 años y más"])]), how="rounding:3", exact=("Total",), mean=16, true=dict.fromkeys([("Dunmore",
    age) for age in ("0 a 14 años", "15 a 64 años", "65 años y más")], 16), drawn=dict.fromkeys([("Dunmore",
    age) for age in ("0 a 14 años", "15 a 64 años", "65 años y más")], 18)), dialect=Dialect(";", ","))
add("portuguese.csv", "healthy", people(places(12, "Total", name="Concelho"), Axis("Sexo", [("Total", ["Homens",
    "Mulheres"])]), mean=700), dialect=Dialect(";", ",", " ", "latin-1"))
add("dutch.xlsx", "leaky", people(places(12, "Totaal", name="Gemeente"), Axis("Geslacht", [("Totaal", ["Mannen",
    "Vrouwen"])]), hide=Hide(0, "x", also=(("Dunmore", "Mannen"), ("Dunmore", "Vrouwen")))), Layout(below=("x = geheim",)))
add("thousands-comma.csv", "healthy", people(places(10, "Total"), AGES4, how="exact", mean=900),
    dialect=Dialect(thousands=",", quote=True))
add("thousands-space.csv", "leaky", people(places(10, "Total"), SEX, mean=900, hide=HIDDEN_ROW),
    dialect=Dialect(thousands=" "))

# --- other layouts ---------------------------------------------------------------------------------------------------
add("long.csv", "leaky", people(places(18), AGES3, Axis("Sex", [("Both", ["Men", "Women"])]), how="rounding:3",
    exact=(("Total", "Both"),), seed=1, mean=12), Layout(-1))
add("long-healthy.csv", "healthy", people(places(9), AGES4, SEX, how="rounding:5", seed=1, mean=60), Layout(-1,
    value="Count"))
add("tidy-notes.csv", "leaky", people(places(12, "All districts"), SEX, hide=HIDDEN_ROW), Layout(-1, notes=True,
    value="count"))
add("areas-across.xlsx", "leaky", Table((AGES3, places(9, "Total", name="District")), mean=25, hide=Hide(0, "c",
    also=(("65+ years", "Dunmore"), ("0-14 years", "Dunmore")))), Layout(above=("Population by age and district",),
    below=(CONFIDENTIAL,)))
add("areas-across-healthy.csv", "healthy", Table((AGES4, places(8)), how="rounding:5", mean=80), Layout(below=(RANDOM5,)))
add("two-stubs.xlsx", "leaky", people(places(10), AGES4, Axis("Sex", [("Persons", ["Males", "Females"])]),
    how="rounding:3", exact=(("All ages", "Persons"),), seed=2, mean=14), Layout(2, below=(RANDOM3,)))
add("codes-beside.csv", "leaky", people(places(14, "Total"), SEX, hide=HIDDEN_ROW), Layout(codes="E0600"))
add("codes-healthy.xlsx", "healthy", people(places(12), AGES4, how="rounding:5", mean=70), Layout(codes="5900",
    below=(RANDOM5,)))
add("years.csv", "leaky", people(places(12, "Total"), Axis("Year", ["2016", "2021"]), hide=Hide(0, "c", also=(("Dunmore",
    "2021"),))), why="the total of 2021 less the others")
add("years-healthy.xlsx", "healthy", people(places(12, "Total"), Axis("Year", ["2016", "2021"]), how="rounding:5",
    mean=400), Layout(below=(RANDOM5,)))
add("subtotals.csv", "leaky", people(places(16), NESTED, how="rounding:3", exact=("All ages",), seed=19, mean=12),
    Layout(below=(RANDOM3,)))
add("subtotals-healthy.xlsx", "healthy", people(places(8), NESTED, how="rounding:5", mean=70), Layout(below=(RANDOM5,)))
add("blank-rows.xlsx", "leaky", people(places(15, "Total"), SEX, hide=HIDDEN_ROW), Layout(blank_rows=5))
add("hidden-column.xlsx", "leaky", people(places(18), Axis("Tenure", [("Total", ["Owned", "Rented", "Other"])]),
    how="rounding:3", exact=("Total",), seed=7, mean=18), Layout(hide_columns=(1,), below=(RANDOM3,)),
    why="the exact total is in a column that is hidden from view only")
add("hidden-row.xlsx", "leaky", people(places(12, "Total"), SEX, hide=HIDDEN_ROW), Layout(hide_rows=(3,)))
add("formulas-stored.xlsx", "healthy", people(places(12, "Total"), SEX, mean=60), Layout(formulas="stored"))
add("third-sex.csv", "healthy", people(places(12), Axis("Sex", [("Total", ["Men", "Women", "~X"])]), how="rounding:3",
    mean=60, weights={"~X": 0.02}), Layout(below=("The total includes persons of another gender, who are not shown.",
    RANDOM3)))
add("several-answers.csv", "healthy", people(places(14), Axis("Language", ["All persons", "English", "French",
    "Other languages"]), how="rounding:3", mean=60, weights={"All persons": 1.7}),
    Layout(below=("Several answers were possible: categories do not add to the total.", RANDOM3)))

# --- what else is done to a sheet ------------------------------------------------------------------------------------
SECRET = people(places(12, "Total"), SEX, hide=HIDDEN_ROW)
add("tabs.csv", "leaky", SECRET, dialect=Dialect("\t"))
add("utf-8-with-mark.csv", "leaky", SECRET, dialect=Dialect(";", encoding="utf-8-sig"))
add("utf-16.csv", "leaky", SECRET, dialect=Dialect(";", encoding="utf-16"))
add("starts-at-b3.xlsx", "leaky", SECRET, change=shifted)
add("units-row.xlsx", "leaky", SECRET, change=units)
add("headings-again.csv", "leaky", SECRET, change=paged)
add("footnoted-headings.xlsx", "leaky", SECRET, Layout(below=("1 Usually resident.",)),
    change=heads(Men="Men¹", Total="Total (1)"))
add("regions-beside.csv", "leaky", SECRET, change=with_regions)
add("text-numbers.xlsx", "leaky", people(places(12, "Total"), SEX, mean=900, hide=HIDDEN_ROW),
    change=changed(lambda _, value: f"{value:,}".replace(",", "\u00a0") if isinstance(value, int) else value))
add("total-at-the-right.csv", "leaky", people(places(12, "Total"), Axis("Sex", [("Total", ["Men", "Women"])], last=True),
    hide=HIDDEN_ROW))
add("of-which.csv", "healthy", people(places(12),
    Axis("Age", [("Total", ["0-14", "15-64", ("65+", ["of which 85+", "~"])])]),
    how="rounding:5", mean=80), Layout(below=(RANDOM5,)))
add("number-and-percent.xlsx", "leaky", people(places(14), TENURE, how="rounding:5", exact=("All households",), mean=40,
    percent=Percent("All households")), change=alternating, why="percentages of the true counts")
add("percent-format.xlsx", "leaky", people(places(14), TENURE, how="rounding:5", exact=("All households",), mean=30,
    percent=Percent("All households", heading="% {}")),
    change=changed(lambda _, value: files.Share(value) if isinstance(value, float) else value))
add("one-place.xlsx", "leaky", Table((AGES, Axis("Sex", [("Persons", ["Males", "Females"])])), how="rounding:3", mean=15,
    seed=2, exact=(("All ages", "Persons"),)), Layout(above=("Ashford: population by age and sex",), below=(RANDOM3,)))
add("one-place-healthy.csv", "healthy", Table((AGES4, SEX), how="rounding:5", mean=90), Layout(below=(RANDOM5,)))
add("rank.csv", "healthy", people(places(12), AGES4, how="rounding:5", mean=70), Layout(extra=(("Rank",
    lambda at: at + 1),)))

# --- formats ---------------------------------------------------------------------------------------------------------


CODES = Axis("SEX", [("_T", ["M", "F"])])
special("hidden.px", "leaky", people(places(12, "Total"), SEX, hide=Hide(0, "..", also=HIDDEN_ROW.also)), lambda path,
    table: files.px(path, table, "Population by district and sex", "Two dots: confidential"))
special("rounded.px", "healthy", people(places(10), AGES4, SEX, how="rounding:5", seed=3, mean=60), lambda path,
    table: files.px(path, table, "Population", RANDOM5))
special("hidden-sdmx.csv", "leaky", people(Axis("REF_AREA", [("AA", [f"AA{at:02d}" for at in range(1, 13)])]), CODES,
    hide=Hide(0, "c", also=(("AA04", "M"), ("AA04", "F")))), lambda path, table: files.sdmx(path, table, {"c": "Q"}))
special("rounded-sdmx.csv", "healthy", people(Axis("REF_AREA", [f"AA{at:02d}" for at in range(1, 11)]), CODES,
    how="rounding:5", seed=1, mean=90), lambda path, table: files.sdmx(path, table, {}))

# --- nobody could decide these without asking ------------------------------------------------------------------------
add("formulas-empty.xlsx", "open", people(places(12, "Total"), SEX, mean=60, hide=HIDDEN_ROW), Layout(formulas="empty"),
    why="the totals are formulas that nobody has calculated")
add("wrong-note.csv", "open", people(places(16), AGES4, how="rounding:3", mean=60), Layout(below=(RANDOM5,)),
    why="the note says base 5, the counts base 3")
add("unknown-numbers.csv", "open", people(places(14), AGES4, how="rounding:5", mean=60), Layout(extra=(("Ref",
    lambda at: 41 + 7 * at % 13), ("", lambda at: 17 + 5 * at)), below=(RANDOM5,)),
    why="two columns of numbers of which nothing says what they are")
add("in-words.xlsx", "open", people(places(12, "Total"), SEX, mean=60), change=changed(lambda column,
    value: f"about {value}" if column == 2 and isinstance(value, int) else value), why="a column of counts in words")
add("errors.xlsx", "open", people(places(12, "Total"), SEX, mean=60), change=changed(lambda column,
    value: "#REF!" if column == 3 and isinstance(value, int) else value),
    why="the spreadsheet's own errors in place of counts")
_years = people(places(12), Axis("Year", ["2016", "2021"]), how="rounding:5", mean=40)
add("change.csv", "open", _years, Layout(extra=(("Change", lambda at: _years.truth[NAMES[at],
    "2021"] - _years.truth[NAMES[at],
    "2016"]),), below=(RANDOM5,)), why="the change of the unrounded counts")
add("index.csv", "open", people(places(12), Axis("Year", ["2016", "2021"]), how="rounding:5", mean=400),
    Layout(extra=(("Index (2016 = 100)", lambda at: round(97.3 + 1.7 * at, 1)),), below=(RANDOM5,)),
    why="an index of the unrounded counts, perhaps")
# fmt: on


def build(folder: Path, names: list[str] | None = None) -> list[Path]:
    """Write the drafts into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    out = []
    for name in names or DRAFTS:
        DRAFTS[name].write(folder / name)
        out.append(folder / name)
    return out
