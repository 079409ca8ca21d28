"""The description of a table: all that a person can say of it, in one TOML file; docs/describe.md has every key.

    value = "published"          # the column of counts; not for a table with one row per area
    default = "rounding:5"       # how counts were protected, where nothing else is said; not known if it is left out
    inferred = true              # nobody has confirmed the sums below: what follows from one is conditional

    [axes.district]              # one table an axis; `column` is its own name unless said
    [axes.age]
    header = 1                   # its codes stand in the first row of the header
    sums = [{ total = "all", parts = ["young", "old"] }]

What is said of columns ([[mechanisms]], [[exact]], [[sums]], [[repeats]], [[figures]], [[keys]], [[match]]) may name them by
their keys: then it is about a table of any format, needs no axes, and may overrule what the counts suggest.

    [[sums]]
    total = "8"
    parts = ["9", "13"]
    use = false                  # or true, whatever the counts suggest; left to them by default
    because = "residents of institutions are in neither"

Every word of the file is checked: one that is not known is an error, for a misspelt key must not pass for a missing one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any

from unround.errors import InputError
from unround.figures import Figure, figure_from
from unround.mechanisms import Exact, Mechanism, mechanism
from unround.release import (
    AREA,
    LARGEST,
    NOT_APPLICABLE,
    NOT_AVAILABLE,
    SUPPRESSED,
    UNRELIABLE,
    Column,
    Decisions,
    Entry,
    Match,
    Proposal,
    Release,
    What,
    between,
)
from unround.small_files import parsed_toml, small_text
from unround.structure.evidence import INFERRED, LABELS
from unround.tables.symbols import hidden_range

KEYS = (
    "format", "data", "sheet", "columns", "header", "rows", "skip", "percentages", "value", "status", "thousands", "decimal",
    "missing", "symbols", "default", "product", "areas", "inferred", "open", "exact", "ignore", "figures", "mechanisms",
    "axes", "counts", "sums", "repeats", "keys", "match",
)  # fmt: skip
"""What a description may say, in the order in which it is written."""

AREAS = (AREA, "area", "geo")
"""Axes called so are the rows of the table, unless a rule needs them as columns."""

CHARACTERISTIC, SEX = ("characteristic", "characteristic_id"), "sex"
"""Axes called so are columns; `characteristics` is short for the first."""

MOST_COMPARED, LONGEST_COMPARED = 5_000, 80
"""Words, and signs of each, that are compared with one that is not known."""

BY_KEY = "columns"
"""A sum over this "axis" names columns by their keys ("10/men"), and holds for them alone."""


@dataclass(frozen=True, slots=True)
class SumRule:
    """A total and its parts, as codes of one axis; it holds at every combination of the other axes' codes.

    - `where`: The codes of other axes that it is about, where these are not all.
    - `use`, `because`: The user's decision, which overrules the counts, and the reason; None where it is left to them.
    """

    axis: str
    total: str
    parts: tuple[str, ...]
    where: tuple[tuple[str, tuple[str, ...]], ...] = ()
    use: bool | None = None
    because: str = ""

    @property
    def shown(self) -> str:
        """The sum for people."""
        return f"{self.total} = {' + '.join(self.parts)}"


@dataclass(frozen=True, slots=True)
class RepeatRule:
    """Columns that show the same count, or not after all: by their keys, and whether their numbers are the same."""

    columns: tuple[str, ...]
    alike: bool
    use: bool


@dataclass(frozen=True, slots=True)
class AxisRule:
    """One axis: the column of its codes, those of what people read, and how its codes add up."""

    name: str
    column: str
    label: str | None = None
    level: str | None = None
    parent: str | None = None
    sums: tuple[SumRule, ...] = ()
    hierarchy: Path | None = None
    total: str | None = None
    within: str | None = None
    """The column of groups that tells codes apart which are there in several of them: totals of regions."""
    headings: tuple[int, ...] = ()
    """Rows of the file that name a group of those below, where its codes stand in such rows."""
    header: int | None = None
    """The row of the header that its codes stand in, counted from 1 within the header; None if they stand in a column."""
    fill: bool = False
    """Whether an empty cell of its column repeats the one above."""


@dataclass(frozen=True, slots=True)
class CellRule:
    """How the cells of some codes, or columns by their keys, were published. Of two for one cell the later one counts."""

    mechanism: Mechanism
    where: Mapping[str, tuple[str, ...]]
    inferred: bool = False
    """Whether only the counts suggest it, so that what follows from it is conditional."""


@dataclass(frozen=True, slots=True)
class Description:
    """All that a TOML says about a table. `where` is what to call the file in errors, and `text` what is in it.

    Without `axes` it is about a table of a known format, or several files as one. `value` is "" for a table with one row
    per area, whose columns hold counts. `header`, `rows` and `skip` are numbered from
    1. `ignore` are columns that are left out, each with the reason; one without a reason is still open, and so is what
    `open` lists. `inferred` says that nobody has confirmed the sums: labels and counts suggest them.
    """

    value: str
    axes: tuple[AxisRule, ...]
    areas: tuple[str, ...] | None = None
    missing: int = NOT_AVAILABLE
    symbols: Mapping[str, int] = field(default_factory=dict)
    default: Mechanism | None = None
    rules: tuple[CellRule, ...] = ()
    sums: tuple[SumRule, ...] = ()
    data: Path | None = None
    product: str | None = None
    where: str = "the description"
    sheet: str | None = None
    columns: str | None = None
    header: tuple[int, ...] = (1,)
    rows: tuple[int, int] | None = None
    counts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    ignore: Mapping[str, str] = field(default_factory=dict)
    skip: tuple[int, ...] = ()
    percentages: tuple[int, ...] = ()
    thousands: str = ""
    decimal: str = ""
    status: str | None = None
    figures: tuple[Figure, ...] = ()
    use_figures: Mapping[str, tuple[bool, str]] = field(default_factory=dict)
    """Figures to use or not, by the keys of their columns, and the reason."""
    repeats: tuple[RepeatRule, ...] = ()
    keys: Mapping[str, float | None] = field(default_factory=dict)
    matches: tuple[Match, ...] = ()
    open: tuple[Entry, ...] = ()
    inferred: bool = False
    text: str = field(default="", repr=False)
    given: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The keys and values themselves."""

    def error(self, message: str, word: str = "") -> InputError:
        """Return the error that points at the place where a word stands in quotes."""
        return pointed(message, self.text, self.where, re.escape(f'"{word}"'))

    @property
    def wide(self) -> bool:
        """Whether counts stand in many columns, one row per area."""
        return not self.value

    @property
    def placed(self) -> bool:
        """Whether the description says where in its file the table is."""
        return bool(
            self.sheet is not None or self.columns or self.rows or self.header != (1,) or self.skip or self.percentages
        )

    @property
    def laid_out(self) -> bool:
        """Whether the table has to be brought into shape before it has one count per row, written plainly."""
        stubs = any(axis.fill or axis.within or axis.headings for axis in self.axes)
        return bool(self.wide or self.placed or stubs or self.thousands or self.decimal or self.status)

    @property
    def named(self) -> set[str]:
        """The axes that some rule or sum speaks of."""
        ruled = {axis for rule in self.rules for axis in rule.where if not self.is_of_cells(rule)}
        return ruled.union(*({rule.axis, *(axis for axis, _ in rule.where)} for rule in self.sums)) - {BY_KEY}

    def is_of_cells(self, rule: CellRule) -> bool:
        """Return whether a rule is about single cells: counts that are printed as they are in some rows only."""
        return isinstance(rule.mechanism, Exact) and not set(self.areas or ()).isdisjoint(rule.where)

    def split(self) -> tuple[tuple[AxisRule, ...], tuple[AxisRule, ...]]:
        """Return the axes of the rows and those of the columns.

        Sums and mechanisms speak of columns, so that an axis they name is one of columns. Other axes are rows: areas,
        years, whatever the same table was published for again and again.
        """
        named = self.named
        if self.areas is not None:
            clash = sorted(set(self.areas) & named)
            if clash:
                raise InputError(
                    f"{self.where}: {clash[0]!r} is among `areas`, but a sum or mechanism names its codes. Sums and "
                    f"mechanisms "
                    f"are about columns: remove {clash[0]!r} from `areas`, or from the rule."
                )
            rows = set(self.areas)
        else:
            certain = {axis.name for axis in self.axes if axis.name in (*CHARACTERISTIC, SEX)}
            columns = named | certain | {a.name for a in self.axes if (a.sums or a.hierarchy) and a.name not in AREAS}
            columns |= {axis.name for axis in self.axes if axis.sums}
            if not columns:
                columns = {axis.name for axis in self.axes if axis.name not in AREAS}
            rows = {axis.name for axis in self.axes} - columns
        if len(rows) == len(self.axes):
            raise InputError(f"{self.where}: all axes are areas. Name an axis for what is counted, such as [axes.age].")
        return tuple(a for a in self.axes if a.name in rows), tuple(a for a in self.axes if a.name not in rows)


def pointed(message: str, text: str, where: str, pattern: str, start: int = 0) -> InputError:
    r"""Return an error at what a pattern finds in a TOML, outside comments; from `start` on, within one entry.

    >>> print(pointed("there is no column 'x'.", '[[sums]]\ntotal = "x"', "a.toml", '"x"'))
    a.toml, line 2, column 9: there is no column 'x'.
        total = "x"
                ^
    """
    end = text.find("\n[", start + 1) if start else -1
    matched = re.compile(rf"(?m)^[^#\n]*?(?P<here>{pattern})").search(text, start, end if end >= 0 else len(text))
    if matched is None and not start:
        return InputError(f"{where}: {message}")
    at = start if matched is None else matched.start("here")
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return InputError(message, source=text, line=line, column=column, where=where)


def near(word: str, known: Iterable[str]) -> str:
    """Return a hint at what may have been meant, or nothing.

    >>> near("hierachy", ["hierarchy", "total"])
    " Did you mean 'hierarchy'?"
    """
    from difflib import get_close_matches  # only here: it takes a while to import

    # Words are compared letter by letter: beyond some thousands of them nobody would wait for the hint.
    few = [name for name in islice(known, MOST_COMPARED) if len(name) <= LONGEST_COMPARED]
    close = get_close_matches(word[:LONGEST_COMPARED], few, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


MISSING: Mapping[str, int] = {
    "suppressed": SUPPRESSED,
    "not applicable": NOT_APPLICABLE,
    "not available": NOT_AVAILABLE,
    "unreliable": UNRELIABLE,
}
"""What an empty cell, or a symbol in place of a count, can mean."""


_OF_COLUMNS = ("data", "mechanisms", "exact", "sums", "figures", "repeats", "keys", "match", "open", "product", "inferred")
"""What may be said of a table that needs no axes: one of a known format, or several files as one."""
_SUM = ("total", "parts", "where", "use", "because", "why")
_AXIS = ("column", "name", "level", "parent", "sums", "hierarchy", "total", "header", "headings", "within", "fill")
_MATCHED = ("columns", "characteristics")
THOUSANDS, DECIMALS = (".", ",", " ", "'"), (",", ".")
"""What may group the digits of a number, and what may part its decimals."""


def read_description(path: Path) -> Description:
    """Read the TOML that describes a table."""
    if not os.path.exists(path):
        raise InputError(f"there is no file {path}; check the name of the TOML.")
    text = small_text(path, "TOML")
    return make_description(parsed_toml(text, str(path)), text=text, where=str(path), folder=path.parent)


def make_description(
    table: Mapping[str, Any], *, text: str = "", where: str = "the description", folder: Path | None = None
) -> Description:
    """Make a description of the keys of a TOML, wherever they come from.

    >>> age = {"sums": [{"total": "all", "parts": ["young", "old"]}]}
    >>> description = make_description({"value": "n", "axes": {"town": "town", "age": age}})
    >>> [[axis.name for axis in side] for side in description.split()]
    [['town'], ['age']]
    """
    return _DescriptionReader(text, where, folder or Path()).description(table)


def without_decisions(path: Path, toml: Path | None) -> tuple[Path, Path | None]:
    """Return a table, and the TOML that says what its columns are: None where the one that is given says other things."""
    about = toml or (path if path.suffix.lower() == ".toml" else None)
    description = None if about is None else read_description(about)
    if description is None or description.axes:
        return path, toml
    return (description.data or path) if about == path else path, None


def says_axes(table: Mapping[str, Any]) -> bool:
    """Return whether keys say what the columns of a table are, not only what is to be thought of those of a known format."""
    return any(key not in _OF_COLUMNS for key in table)


def _shown(value: object) -> str:
    """Return a value of a TOML for an error, which has room for a line."""
    try:
        shown = repr(value)
    except (ValueError, RecursionError):
        return f"a {type(value).__name__} that is too large to show"
    return shown if len(shown) <= 80 else f"{shown[:79]}…"


class _DescriptionReader:
    """Turns tables of TOML into rules; every complaint says where."""

    def __init__(self, text: str, where: str, folder: Path) -> None:
        self.text, self.where, self.folder = text, where, folder
        self.start = 0
        """Where the entry begins that is being read; 0 for the file as a whole."""

    def error(self, message: str, key: str = "") -> InputError:
        """Make the error that points at the line of a key, within the entry that is being read."""
        pattern = rf"""(?<![\w-])(?P<key>{re.escape(key)})["']?\s*[=\].]""" if key else "(?!)"
        return pointed(message, self.text, self.where, pattern, self.start)

    def no_axis(self, name: str, names: Iterable[str], who: str, key: str) -> InputError:
        """Make the error for an axis that is not there."""
        return self.error(f"{who} {name!r}, which is not an axis.{near(name, names)} Axes are {', '.join(names)}.", key)

    def known(self, table: Mapping[str, Any], keys: Iterable[str], place: str) -> None:
        """Refuse keys that mean nothing here."""
        keys = tuple(keys)
        for key in table:
            if key not in keys:
                raise self.error(
                    f"there is no key {key!r} in {place}.{near(key, keys)} The keys are {', '.join(keys)}.", key
                )

    def word(self, table: Mapping[str, Any], key: str) -> str | None:
        """Return a piece of text, or None where it is not given."""
        value = table.get(key)
        if value is not None and not isinstance(value, str):
            raise self.error(f"{key} must be text in quotes, not {_shown(value)}.", key)
        return value

    def code(self, value: object, key: str) -> str:
        """Return a code, which may be written as a whole number."""
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            raise self.error(f"{key} must hold codes, as text in quotes or whole numbers; not {_shown(value)}.", key)
        try:
            return str(value).strip()
        except ValueError:  # 0x… can write what has too many digits in decimals
            raise self.error(f"{key} holds a number with thousands of digits, which is not a code.", key) from None

    def codes(self, value: object, key: str) -> tuple[str, ...]:
        """Return a list of codes; a single one needs no brackets."""
        codes = tuple(self.code(item, key) for item in (value if isinstance(value, list | tuple) else [value]))
        if not codes:
            raise self.error(f"{key} is empty: list the codes it applies to.", key)
        return codes

    def tables(self, table: Mapping[str, Any], key: str, place: str = "", keys: Iterable[str] = ()) -> Iterator[Any]:
        """Go through the tables of [[key]], with no other keys than these."""
        value = table.get(key, [])
        if not isinstance(value, list | tuple) or not all(isinstance(item, Mapping) for item in value):
            raise self.error(f"{key} must be a list of tables: write [[{key}]].", key)
        headings = re.finditer(rf"(?m)^[ \t]*\[\[\s*{key}\s*\]\]", "" if place else self.text)
        for item, start in zip(value, chain((heading.start() for heading in headings), repeat(0)), strict=False):
            self.start = start
            self.known(item, keys or item, place or f"[[{key}]]")
            yield item
        self.start = 0

    def mechanism(self, table: Mapping[str, Any], key: str) -> Mechanism | None:
        """Return the mechanism that a key names, given as text or, from Python, as itself."""
        value = table.get(key)
        if isinstance(value, Mechanism):
            return value
        text = self.word(table, key)
        if text is None:
            return None
        family, colon, file = (part.strip() for part in text.partition(":"))
        if family == "transition" and colon and os.path.isfile(self.folder / file):
            text = f"{family}:{self.folder / file}"  # files are looked for beside the TOML
        try:
            return mechanism(text)
        except InputError as error:
            raise self.error(error.message, key) from None

    def description(self, table: Mapping[str, Any]) -> Description:
        self.known(table, KEYS, "this file")
        if table.get("format", "tidy") != "tidy":
            raise self.error(
                f'format = {_shown(table["format"])} is not described by a TOML; only "tidy" tables are.', "format"
            )
        axes = self.axes(table) if says_axes(table) else ()
        names = [axis.name for axis in axes]
        value, counts = self.word(table, "value"), self.counts(table, names)
        wide = bool(counts) or any(axis.header is not None for axis in axes)
        if value is None and not wide and axes:
            raise self.error(
                'say which column holds the counts: value = "…". If counts stand in many columns, one row per area, give '
                "the axis of these columns header = 1."
            )
        if value is not None and wide:
            raise self.error(
                "`value` is for a table with one count per row; with counts in many columns, leave it out.", "value"
            )
        given = table.get("areas")
        # None of the axes may be one of rows: a table of a single area has none.
        areas = None if given is None else () if given == [] else self.codes(given, "areas")
        for name in areas or ():
            if name not in names:
                raise self.no_axis(name, names, "areas names", "areas")
        rules = [self.cells(item, "mechanisms", names) for item in self.tables(table, "mechanisms")]
        rules += [self.cells(item, "exact", names) for item in self.tables(table, "exact")]
        figures, use_figures = self.figures(table)
        data = self.word(table, "data")
        return Description(
            value=value or "",
            axes=axes,
            areas=areas,
            missing=self.meaning(table.get("missing", "not available"), "missing"),
            symbols=self.symbols(table),
            default=self.mechanism(table, "default"),
            rules=tuple(rules),
            sums=tuple(self.sum(item, self.axis_of_sums(item, axes, areas)) for item in self.tables(table, "sums")),
            data=self.folder / data if data is not None else None,
            product=self.word(table, "product"),
            where=self.where,
            sheet=self.word(table, "sheet"),
            columns=self.word(table, "columns"),
            header=self.numbers(table, "header", [1]),
            rows=self.ends(table),
            counts=counts,
            ignore=self.ignored(table),
            skip=self.numbers(table, "skip", []) if table.get("skip") else (),
            percentages=self.numbers(table, "percentages", []) if table.get("percentages") else (),
            thousands=self.sign(table, "thousands", THOUSANDS),
            decimal=self.sign(table, "decimal", DECIMALS),
            status=self.word(table, "status"),
            figures=figures,
            use_figures=use_figures,
            repeats=tuple(
                self.repeat(item) for item in self.tables(table, "repeats", keys=("columns", "alike", "use", "why"))
            ),
            keys=dict(self.constant(item) for item in self.tables(table, "keys", keys=("table", "constant", "why"))),
            matches=tuple(self.match(item) for item in self.tables(table, "match", keys=("file", *_MATCHED))),
            open=tuple(self.question(item) for item in self.tables(table, "open", keys=("place", "why", "settle"))),
            inferred=bool(self.yes(table, "inferred")),
            text=self.text,
            given=table,
        )

    def yes(self, table: Mapping[str, Any], key: str) -> bool | None:
        """Return what is true or false; None where it is not given."""
        value = table.get(key)
        if value is not None and not isinstance(value, bool):
            raise self.error(f"{key} must be true or false, not {_shown(value)}.", key)
        return value

    def figures(self, table: Mapping[str, Any]) -> tuple[tuple[Figure, ...], dict[str, tuple[bool, str]]]:
        """Return what figures are of, and which to use."""
        figures, use_figures = list[Figure](), dict[str, tuple[bool, str]]()
        for item in self.tables(table, "figures"):
            use, because = self.yes(item, "use"), self.word(item, "because") or ""
            said = {key: value for key, value in item.items() if key not in ("use", "because")}
            columns = self.codes(said["columns"], "columns") if "columns" in said else ()
            if "columns" in said and len(said) > 1:
                raise self.error("`columns` are to be used or not: to say what a figure is of, write column = …", "columns")
            if said.keys() == {"column"}:
                columns = self.codes(said["column"], "column")
            if columns and use is None:
                raise self.error("say whether to use it: use = true or use = false; or what it is of: kind = …", "figures")
            if not columns:
                figures.append(figure_from(said, self.error))
                columns = (figures[-1].name,)
            use_figures |= dict.fromkeys(columns if use is not None else (), (bool(use), because))
        return tuple(figures), use_figures

    def repeat(self, table: Mapping[str, Any]) -> RepeatRule:
        """Return columns that show the same count, or do not."""
        columns, use, alike = (
            self.codes(table.get("columns", ()), "columns"),
            self.yes(table, "use"),
            self.yes(table, "alike"),
        )
        if len(set(columns)) < max(2, len(columns)):
            raise self.error('[[repeats]] needs at least two columns, each once: columns = ["1", "8"].', "columns")
        if alike is None and use is not False:
            raise self.error("say whether the numbers are the same everywhere (alike = true) or were rounded anew.", "alike")
        return RepeatRule(columns, bool(alike), use is not False)

    def constant(self, table: Mapping[str, Any]) -> tuple[str, float | None]:
        """Return a table whose random numbers add up, with the constant of its sums."""
        constant = table.get("constant")
        fine = isinstance(constant, int | float) and not isinstance(constant, bool) and 0 <= constant < 1
        if constant is not None and not fine:
            raise self.error("constant must be a number from 0 to below 1, such as 0.31.", "constant")
        return self.code(table.get("table"), "table"), None if constant is None else float(constant)

    def match(self, table: Mapping[str, Any]) -> Match:
        """Return which columns of a file are columns of earlier files."""
        said: dict[str, dict[str, str]] = {}
        for kind in _MATCHED:
            pairs = table.get(kind, {})
            if not isinstance(pairs, Mapping) or not all(isinstance(other, str | int) for other in pairs.values()):
                raise self.error(f'{kind} must be a table such as {{ "m_0_4" = "10/men" }}.', kind)
            said[kind] = {key: str(other) for key, other in pairs.items()}
        if not any(said.values()):
            raise self.error('a match needs columns = { "its key" = "key in an earlier file" }, or characteristics.')
        return Match(self.code(table.get("file"), "file"), **said)

    def question(self, table: Mapping[str, Any]) -> Entry:
        """Return something that nobody has answered yet."""
        place = self.word(table, "place")
        if not place:
            raise self.error('[[open]] needs the place that it is about, such as place = "row Total".', "open")
        settle = self.word(table, "settle") or "answer it, and delete it from the description"
        return Entry(place, What.UNKNOWN, self.word(table, "why") or "left open in the description", False, settle)

    def ignored(self, table: Mapping[str, Any]) -> Mapping[str, str]:
        """Return the columns that are left out, each with the reason."""
        reasons = {}
        for item in self.tables(table, "ignore", keys=("column", "because")):
            column = self.word(item, "column")
            if not column:
                raise self.error('[[ignore]] needs a column, such as column = "Ref".', "ignore")
            reasons[column] = self.word(item, "because") or ""
        return reasons

    def numbers(self, table: Mapping[str, Any], key: str, default: list[int]) -> tuple[int, ...]:
        """Return numbers of rows, from 1; a single one needs no brackets."""
        value = table.get(key, default)
        rows = list(value) if isinstance(value, list | tuple) else [value]
        if not rows or not all(isinstance(row, int) and not isinstance(row, bool) and row >= 1 for row in rows):
            raise self.error(f"{key} must be numbers of rows, counted from 1, such as [4, 5]; not {_shown(value)}.", key)
        return tuple(sorted(set(rows)))

    def ends(self, table: Mapping[str, Any]) -> tuple[int, int] | None:
        """Return the first and the last row of the table, where they are given."""
        if table.get("rows") is None:
            return None
        rows = self.numbers(table, "rows", [])
        if len(rows) > 2:
            raise self.error(
                f"rows must be the first and the last row of the table, such as [6, 45]; not {list(rows)}.", "rows"
            )
        return rows[0], rows[-1]

    def sign(self, table: Mapping[str, Any], key: str, known: tuple[str, ...]) -> str:
        """Return a sign within numbers, or "" where none is given."""
        value = self.word(table, key) or ""
        if value and value not in known:
            raise self.error(f"{key} must be one of {', '.join(map(repr, known))}; not {_shown(value)}.", key)
        return value

    def counts(self, table: Mapping[str, Any], names: list[str]) -> Mapping[str, Mapping[str, str]]:
        """Return the columns that hold counts, each with its codes, where they are listed."""
        given = table.get("counts", {})
        example = 'write [counts], and below it "name of a column" = { age = "0-14", sex = "men" }.'
        if not isinstance(given, Mapping) or not all(isinstance(codes, Mapping) and codes for codes in given.values()):
            raise self.error(f"counts must be a table of columns and their codes: {example}", "counts")
        columns: dict[str, Mapping[str, str]] = {}
        first: Mapping[str, Any] = next(iter(given.values()), {})
        for column, codes in given.items():
            for axis in codes:
                if axis not in names:
                    raise self.no_axis(axis, names, f"counts.{column} names", axis)
            if set(codes) != set(first):
                raise self.error(f"counts: every column needs a code of {', '.join(first)}; {column!r} differs.", column)
            columns[column] = {axis: self.code(code, axis) for axis, code in codes.items()}
        return columns

    def meaning(self, value: object, key: str) -> int:
        ends = hidden_range(value) if isinstance(value, str) else None
        if ends is not None:
            return between(*ends)
        if not isinstance(value, str) or value not in MISSING:
            raise self.error(
                f"{key} = {_shown(value)} has no meaning here. Use one of {', '.join(map(repr, MISSING))}; or a range of "
                'hidden counts, such as "1-4".',
                key,
            )
        return MISSING[value]

    def symbols(self, table: Mapping[str, Any]) -> Mapping[str, int]:
        """Return what stands in place of counts: a reason, or a count (some agencies write 0 as a dash)."""
        given = table.get("symbols", {})
        if not isinstance(given, Mapping):
            raise self.error('symbols must be a table: symbols = { x = "suppressed" }.', "symbols")
        return {
            symbol.strip(): means
            if isinstance(means, int) and not isinstance(means, bool) and 0 <= means <= LARGEST
            else self.meaning(means, symbol)
            for symbol, means in given.items()
        }

    def axes(self, table: Mapping[str, Any]) -> tuple[AxisRule, ...]:
        given = table.get("axes")
        if isinstance(given, list | tuple):
            given = {self.code(name, "axes"): {} for name in given}
        if not isinstance(given, Mapping) or not given:
            raise self.error("name the axes of the table: one [axes.NAME] for each column of codes.", "axes")
        return tuple(self.axis(name, {"column": item} if isinstance(item, str) else item) for name, item in given.items())

    def axis(self, name: str, table: object) -> AxisRule:
        if not isinstance(table, Mapping):
            raise self.error(f'axes.{name} must be a table, or the name of a column: {name} = "…".', name)
        if name == BY_KEY:
            raise self.error(
                f'an axis cannot be called {BY_KEY!r}: choose another name, and write column = "{BY_KEY}".', name
            )
        self.known(table, _AXIS, f"[axes.{name}]")
        hierarchy = self.word(table, "hierarchy")
        if hierarchy is not None and not os.path.isfile(self.folder / hierarchy):
            raise self.error(f"there is no file {self.folder / hierarchy}; check its name.", "hierarchy")
        total = self.code(table["total"], "total") if table.get("total") is not None else None
        header = self.numbers(table, "header", [1])[0] if table.get("header") is not None else None
        if header is not None and any(key in table for key in ("column", "name", "level", "parent", "fill")):
            raise self.error(f"axes.{name} stands in the header, so it has no column: leave out one of the two.", name)
        if table.get("fill", "down") != "down":
            raise self.error(
                f'fill must be "down": an empty cell repeats the one above. Not {_shown(table["fill"])}.', "fill"
            )
        if total is not None and hierarchy is None:
            raise self.error(f"axes.{name} has a `total` but no `hierarchy`. Add one, or write sums.", "total")
        return AxisRule(
            name=name,
            column=self.word(table, "column") or name,
            label=self.word(table, "name"),
            level=self.word(table, "level"),
            parent=self.word(table, "parent"),
            sums=tuple(self.sum(item, name) for item in self.tables(table, "sums", f"the sums of {name}", _SUM)),
            hierarchy=self.folder / hierarchy if hierarchy is not None else None,
            total=total,
            header=header,
            within=self.word(table, "within"),
            headings=self.numbers(table, "headings", []) if table.get("headings") else (),
            fill="fill" in table,
        )

    def sum(self, table: Mapping[str, Any], axis: str) -> SumRule:
        for key in ("total", "parts"):
            if key not in table:
                raise self.error(f'a sum of {axis} has no {key}. Write total = "…" and parts = ["…", "…"].', "sums")
        total, parts = self.code(table["total"], "total"), self.codes(table["parts"], "parts")
        if total in parts or len(set(parts)) < len(parts):
            raise self.error(
                f"{total} = {' + '.join(parts)} names a code twice: each code may occur only once in a sum.", total
            )
        where = table.get("where", {})
        if not isinstance(where, Mapping):
            raise self.error('where must be a table of axes and codes: where = { sex = ["men", "women"] }.', "where")
        narrowed = tuple((name, self.codes(codes, name)) for name, codes in where.items())
        return SumRule(axis, total, parts, narrowed, self.yes(table, "use"), self.word(table, "because") or "")

    def axis_of_sums(self, table: Mapping[str, Any], axes: tuple[AxisRule, ...], areas: tuple[str, ...] | None) -> str:
        """Return the axis that a [[sums]] is about: as said, or the only one that it can be about."""
        self.known(table, ("axis", *_SUM), "[[sums]]")
        names = [axis.name for axis in axes]
        axis = self.word(table, "axis")
        if not axes:  # it is about a table of a known format
            return axis or BY_KEY
        if axis is not None:
            if axis not in (*names, BY_KEY):
                raise self.no_axis(axis, names, "a sum is over", "axis")
            return axis
        likely = [name for name in names if name in CHARACTERISTIC]
        counted = [name for name in names if name not in (*AREAS, *(areas or ()))]
        likely = likely or [name for name in counted if name != SEX] or counted
        if len(likely) != 1:
            raise self.error(f'say which axis a sum is over: axis = "…", one of {", ".join(names)}.', "sums")
        return likely[0]

    def cells(self, table: Mapping[str, Any], kind: str, names: list[str]) -> CellRule:
        """Return the rule of one [[mechanisms]] or [[exact]]."""
        short = [name for name in names if name in CHARACTERISTIC][:1]
        where = {axis: codes for axis, codes in table.items() if axis not in ("why", "inferred")}
        how: Mechanism | None = Exact()
        if kind == "mechanisms":
            self.known(table, ("mechanism", "where", "why", "characteristics", BY_KEY, "inferred"), "[[mechanisms]]")
            how = self.mechanism(table, "mechanism")
            if how is None:
                raise self.error('[[mechanisms]] needs a mechanism, such as mechanism = "rounding:5".')
            where = table.get("where", {})
            if not isinstance(where, Mapping):
                raise self.error('where must be a table of axes and codes: where = { age = ["…"] }.', "where")
            where = {**where, **{key: table[key] for key in ("characteristics", BY_KEY) if key in table}}
        else:
            if not where:
                raise self.error(
                    '[[exact]] needs codes, such as age = ["total"]. If everything is exact, write default = "exact".'
                )
        if "characteristics" in where and names and not short:
            raise self.error("there is no axis called characteristic; name the axis instead.", "characteristics")
        wanted: dict[str, tuple[str, ...]] = {}
        for axis, codes in where.items():
            name = (*short, CHARACTERISTIC[0])[0] if axis == "characteristics" else axis
            if names and name not in (*names, BY_KEY):
                raise self.no_axis(axis, names, f"[[{kind}]] names", axis)
            wanted[name] = self.codes(codes, axis)
        if BY_KEY in wanted and len(wanted) > 1:
            raise self.error(f"[[{kind}]] names columns by their keys or by codes of axes, not by both.", BY_KEY)
        return CellRule(how or Exact(), wanted, bool(self.yes(table, "inferred")))


# What a description says of the columns of a release, however it was read


def decided(release: Release, description: Description, sums: Sequence[SumRule] | None = None) -> Release:
    """Return a release with what a description says of its columns; `sums` are those of its axes, if it was read by them."""
    listed = description.sums if sums is None else [*sums, *(rule for rule in description.sums if rule.axis == BY_KEY)]
    columns = _Columns(release, description)
    notes: list[str] = []
    proposals = [proposal for sum_rule in listed for proposal in columns.proposals(sum_rule, notes)]
    for rule in description.repeats:
        first, *others = columns.places(rule.columns)
        proposals += [Proposal(other, (first,), "file", use=rule.use, alike=rule.alike) for other in others]
    ruled = columns.ruled()
    release.notes.extend(notes)
    return replace(
        release,
        columns=ruled,
        proposals=tuple(dict.fromkeys((*proposals, *release.proposals))),
        figures=_figures(release, description) if not description.axes else release.figures,
        account=(*release.account, *left_out(description)) if not description.axes else release.account,
        obstacle="" if proposals or ruled != release.columns else release.obstacle,
        decisions=Decisions(
            figures={name: use for name, (use, _) in description.use_figures.items()},
            keys={**release.decisions.keys, **description.keys},
            matches=release.decisions.matches or description.matches,
            where=description.where,
        ),
        described={**release.described, **_placed(release, description)},
    )


def _placed(release: Release, description: Description) -> dict[str, Any]:
    """Return what was given, with files as they are found from anywhere."""
    given = dict(description.given)
    if "axes" in given:
        files = {axis.name: {"hierarchy": str(axis.hierarchy)} for axis in description.axes if axis.hierarchy is not None}
        axes = given["axes"]
        plain = axes.items() if isinstance(axes, Mapping) else ((name, {}) for name in axes)
        given["axes"] = {
            name: {**({"column": axis} if isinstance(axis, str) else axis), **files.get(name, {})} for name, axis in plain
        }
        given["data"] = release.source
    return given


def left_out(description: Description) -> Iterable[Entry]:
    """Return an entry for everything that the user decided not to use; without a reason it stays open."""
    dropped = {f"sum {rule.shown}": rule.because for rule in _sums(description) if rule.use is False}
    dropped |= {f"figure {name}": because for name, (use, because) in description.use_figures.items() if not use}
    for place, because in dropped.items():
        if because:
            yield Entry(place, What.NOTE, f"left out by {description.where}: {because}", used=False)
        else:
            why = f"left out by {description.where}, which does not say why"
            yield Entry(place, What.UNKNOWN, why, used=False, settle='because = "…" below use = false')


def _sums(description: Description) -> list[SumRule]:
    return [*(rule for axis in description.axes for rule in axis.sums), *description.sums]


class _Columns:
    """The columns of a release, by what a description calls them."""

    def __init__(self, release: Release, description: Description) -> None:
        self.columns, self.description = release.columns, description
        self.index = {column.key: at for at, column in enumerate(release.columns)}
        self.axes = release.axes

    def places(self, keys: Iterable[str]) -> list[int]:
        """Return columns by their keys."""
        for key in keys:
            if key not in self.index:
                raise self.description.error(
                    f"there is no column {key!r} in this release.{near(key, self.index) or ' `unround check` lists them.'}",
                    key,
                )
        return [self.index[key] for key in keys]

    def axis(self, name: str) -> int | None:
        """Return the place of an axis of columns; that of characteristics goes by two names."""
        names = CHARACTERISTIC if name in CHARACTERISTIC else (name,)
        return next((place for place, axis in enumerate(self.axes) if axis in names), None)

    def chosen(self, where: Iterable[tuple[str, Sequence[str]]]) -> list[tuple[int, frozenset[str]]]:
        """Return the axes and codes that a rule is about, as places; every code must be there."""
        places = []
        for name, codes in where:
            place = self.axis(name)
            if place is None:
                raise self.description.error(
                    f"{name!r} is not an axis of the columns of this release, which are {', '.join(self.axes)}.", name
                )
            known = dict.fromkeys(column.codes[place] for column in self.columns)
            for code in codes:
                if code not in known:
                    raise self.description.error(f"there is no {name} {code!r} in this release.{near(code, known)}", code)
            places.append((place, frozenset(codes)))
        return places

    def ruled(self) -> tuple[Column, ...]:
        """Return the columns with the mechanisms that the description says they have; the last rule counts."""
        description, columns = self.description, list(self.columns)
        if description.default is not None:
            columns = [replace(column, mechanism=description.default, basis="") for column in columns]
        for rule in description.rules:
            if description.is_of_cells(rule):
                continue
            if BY_KEY in rule.where:
                meant: Iterable[int] = self.places(rule.where[BY_KEY])
            else:
                chosen = self.chosen(rule.where.items())
                meant = [
                    at for at, column in enumerate(columns) if all(column.codes[place] in codes for place, codes in chosen)
                ]
            basis = INFERRED if rule.inferred else ""
            for at in meant:
                columns[at] = replace(columns[at], mechanism=rule.mechanism, documented=(), basis=basis)
        return tuple(columns)

    def proposals(self, rule: SumRule, notes: list[str]) -> Iterable[Proposal]:
        """Spread a sum over all combinations of the other axes' codes at which its total and parts are there."""
        origin = LABELS if self.description.inferred else "file"
        if rule.axis == BY_KEY:
            total, *parts = self.places((rule.total, *rule.parts))
            return [Proposal(total, tuple(parts), origin, use=rule.use)]
        if not self.description.axes:
            self.chosen([(rule.axis, (rule.total, *rule.parts))])
        chosen, along = self.chosen(rule.where), self.axis(rule.axis)
        if along is None:  # an axis of rows
            return []
        groups: dict[tuple[str, ...], dict[str, int]] = {}
        for at, column in enumerate(self.columns):
            if all(column.codes[place] in codes for place, codes in chosen):
                others = column.codes[:along] + column.codes[along + 1 :]
                groups.setdefault(others, {})[column.codes[along]] = at
        proposals, broken = list[Proposal](), list[str]()
        for others, group in groups.items():
            there = [group[part] for part in rule.parts if part in group]
            if rule.total in group and len(there) == len(rule.parts):
                proposals.append(Proposal(group[rule.total], tuple(there), origin, use=rule.use))
            elif rule.total in group and there:
                broken.append("/".join(others) or "all")
        if broken:
            notes.append(
                f"The sum {rule.shown} is skipped at {', '.join(broken[:5])}: some of its parts are not in the file."
            )
        elif not proposals:
            notes.append(f"The sum {rule.shown} is skipped: its codes never occur together.")
        return proposals


def _figures(release: Release, description: Description) -> tuple[Figure, ...]:
    """Return the figures of a release of a known format, with what the description says they are of."""
    known: Mapping[str, Figure] = {figure.name: figure for figure in release.figures}
    for name in (*description.use_figures, *(figure.name for figure in description.figures)):
        if name not in known:
            raise description.error(f"there is no rate, mean or median {name!r} in the release.", name)
    for figure in description.figures:
        gone = next((key for key in (*figure.counts, figure.numerator) if key and key not in release.index), None)
        if gone is not None:
            raise description.error(f"there is no count {gone!r} in the release.", gone)
    said = {figure.name: replace(figure, label=known[figure.name].label) for figure in description.figures}
    return tuple(said.get(figure.name, figure) for figure in release.figures)
