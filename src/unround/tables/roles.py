"""Roles: which columns of a table hold codes, which hold names of these, which hold counts, and which neither."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.errors import InputError
from unround.release import ABSENT, UNREADABLE
from unround.tables.cells import code_text
from unround.tables.derived import Way, works_out
from unround.tables.grid import HeadedTable
from unround.tables.labels import (
    SDMX_OTHERS,
    SDMX_STATUS,
    SDMX_VALUE,
    WORDS,
    about,
    bare_label,
    counts_people,
    is_total,
    tokens,
    written_age,
)
from unround.tables.layout import Writing, are_counts, are_numbers, are_signs, bare_text, find_writing
from unround.tables.profile import COUNT, DECIMALS, kind_of
from unround.tables.symbols import FRACTIONS, RANGED, as_counts, plain_numbers

GROUPED = 1 / 3
"""A column with so many empty cells below its first one names groups of rows: a cell holds until the next."""
SPARSE = "mostly empty"
"""Why a column of text is left out that holds remarks."""
LONGEST_STATUS = 3
"""Characters of a symbol beside a count."""
TEXT_SHARE = 0.2
"""A column in which more of the filled cells than this are text holds no numbers."""


@dataclass(frozen=True, slots=True)
class RowAxis:
    """A column of codes that tells rows apart, with the column of their names, if there is one.

    `within` is the column of groups that tells codes apart which are there in several of them, such as totals of regions.
    """

    at: int
    label: int | None = None
    fill: bool = False
    within: int | None = None


@dataclass(frozen=True, slots=True)
class Roles:
    """What the columns of a table are, by their places.

    `left_out` gives a reason for every column that is neither axis nor counts; `unknown` for every column of numbers, or of
    what should be numbers, where nothing tells what it is. `rates` are columns of figures, each with the column of the
    counts that it is of and with what a rate of one is printed as; `ways` how to work out others.
    `status` is the column of signs beside the counts of an SDMX table.
    """

    axes: tuple[RowAxis, ...]
    values: tuple[int, ...]
    writing: Writing
    status: int | None = None
    left_out: dict[int, str] = field(default_factory=dict)
    unknown: dict[int, str] = field(default_factory=dict)
    rates: dict[int, tuple[int, int]] = field(default_factory=dict)
    ways: dict[int, Way] = field(default_factory=dict)
    sdmx: bool = False


def find_roles(table: HeadedTable, value: str | None = None, unknown: Mapping[int, str] | None = None) -> Roles:
    """Find out what every column of a table is; `unknown` are columns that nothing explains, as is known by now."""
    names = table.names
    there = [at for at, name in enumerate(names) if not table.column(at).is_null().all()]
    if value is not None and value not in names:
        known = ", ".join(names[at] for at in there)
        raise InputError(f"{table.source} has no column {value!r}; its columns are {known}.")
    sdmx = {_sdmx_name(names[at]): at for at in there}
    if SDMX_VALUE in sdmx and value in (None, names[sdmx[SDMX_VALUE]]):
        return _sdmx(table, sdmx)
    numeric = [at for at in there if _is_numeric(table.column(at), names[at])]
    codes = [at for at in numeric if names[at] != value and _is_code(names[at], table.column(at))]
    values = [at for at in numeric if at not in codes]
    left_out: dict[int, str] = {}
    unknown = dict(unknown or {})
    if len(values) > 1 and value is None:
        # Among counts "School" is a category; right of all of them it may be one, or a code.
        right = [at for at in codes if at > values[0]]
        inner = [
            at for at in right if (at < values[-1] and _is_area(names[at])) or _sums_periods(names[at], table.column(at))
        ]
        unknown |= {at: "called like a code, and right of the counts" for at in right if at not in inner}
        values = sorted((*values, *inner))
    rates: dict[int, tuple[int, int]] = {}
    ways: dict[int, Way] = {}
    if value is not None:
        chosen = names.index(value)
        left_out |= {at: "not the column of counts that was chosen" for at in values if at != chosen}
        values = [chosen]
    writing = find_writing([table.column(at) for at in values])
    if value is None:
        figures = {at: why for at in values if (why := _no_count(names[at], table.column(at), writing))}
        if values and len(figures) == len(values):
            why = next(iter(figures.values()))
            raise InputError(
                f"{table.source} has no column of counts: every column of numbers holds {why}. There is nothing to audit "
                "in a table without counts; give the table of counts that these figures come from. If one of its columns "
                f"holds counts all the same, name it: unround describe {table.source} --value COLUMN"
            )
        left_out |= figures
        values = [at for at in values if at not in figures]
        unknown |= {at: "the header does not name it" for at in values if not table.is_named(at) and at not in unknown}
        values = [at for at in values if at not in unknown]
        whole = [at for at in figures if set(bare_text(table.column(at)).drop_nulls()) <= {"100", "100.0", "100,0", "100%"}]
        rates = _rates(table, values, [at for at in figures if at not in whole])
        kinds = ("median", "average", "amount", "standard error", "area")
        silent = [at for at in figures if kind_of(names[at]) in kinds]
        ways = worked_out(table, values, [at for at in figures if at not in rates], writing, silent)
        explained = {at: f"it tells nothing more where that is printed: {way.how}" for at, way in ways.items()}
        left_out |= {at: why for at, why in explained.items() if at not in silent}  # these may explain each other
        lost = {
            at: f"{figures[at]}, and nothing says which counts they are of"
            for at in figures
            if at not in rates and left_out[at] == figures[at]
        }
        unknown |= {at: why for at, why in lost.items() if at not in silent}
    if not values:
        raise InputError(
            f"{table.source} has no column of counts: its columns ({', '.join(names[at] for at in there)}) hold codes and "
            f"text. If one of them holds counts, name it: unround describe {table.source} --value COLUMN"
        )
    varied = [at for at in values if table.column(at).n_unique() > 1]
    if len(varied) == 1 < len(values) and about(names[varied[0]], "values"):
        left_out |= {at: f"the same in every row: {table.column(at)[0]}" for at in values if at not in varied}
        values = varied
    unknown |= {at: why for at in there if at not in numeric and (why := _in_words(names[at], table.column(at), at, values))}
    texts = [at for at in there if at not in values and at not in left_out and at not in unknown]
    status = next((at for at in texts if len(values) == 1 and _is_status(names[at], table.column(at))), None)
    axes, others = _row_axes(table, [at for at in texts if at != status])
    left_out = {at: why for at, why in left_out.items() if at not in rates and at not in unknown}
    return Roles(axes, tuple(values), writing, status, {**left_out, **others}, unknown, rates, ways)


_FIGURE_WORDS = re.compile(
    r"\bin %|%|\bper ?cents?\b|\bpercentages?(?: of)?\b|\bpct\b|\bshares?(?: of)?\b|\bproportions?(?: of)?\b|\bprozent\b|"
    r"\banteil(?: in)?\b|\bpourcentages?\b|\bpor ?ciento\b|\bporcentaje\b|\brates?(?: of)?\b|\bpro (?:tausend|1[ .]?000)\b|"
    r"\b(?:per|pour) ([\d][\d, .\u00a0\u202f]*)(?: ?(?:people|persons|population|inhabitants|households|residents))?|"
    r"\bnumbers?(?: of)?\b|\bno\.|\bcounts?(?: of)?\b|\banzahl\b|\beffectifs?\b|\(n\)"
)


_OF_A_WHOLE = re.compile(r"(?<=\w)[, (]+(?:as )?(?:an? )?(?:%|per ?cent|percentage|share|proportion) of .*")


def _rates(table: HeadedTable, values: Sequence[int], figures: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Return the rates whose counts stand beside them: the columns called alike, but for what makes a rate of them."""
    names = table.names

    def bare(name: str) -> str:
        return " ".join(re.findall(r"[\w+<>-]+", _FIGURE_WORDS.sub(" ", _OF_A_WHOLE.sub("", bare_label(name)))))

    counted: dict[str, list[int]] = {}
    for at in values:
        counted.setdefault(bare(names[at]), []).append(at)
    rates = {}
    for at in figures:
        of = counted.get(bare(names[at]), [])
        before = [column for column in values if column < at]
        if not bare(names[at]) and before:
            of = [before[-1]]  # a column that is only called "%" belongs to the one before it
        per = next((match[1] for match in _FIGURE_WORDS.finditer(names[at].lower()) if match[1]), "100")
        if len(of) == 1 and kind_of(names[at]) in (COUNT, "percentage", "rate"):
            shown = table.column(at).cast(pl.Float64, strict=False).max()
            small = isinstance(shown, float) and shown <= 1  # a spreadsheet shows 0.213 as 21.3%
            rates[at] = of[0], 1 if small and per == "100" else int(re.sub(r"\D", "", per))
    return rates


def worked_out(
    table: HeadedTable, values: Sequence[int], figures: Sequence[int], writing: Writing, others: Sequence[int] = ()
) -> dict[int, Way]:
    """Return the figures that anybody can work out from counts and other numbers beside them, and how."""

    def plain(at: int) -> pl.Series:
        return plain_numbers(table.column(at).cast(pl.String).fill_null(""), writing.thousands, writing.decimal)

    def numbers(at: int) -> NDArray[np.float64]:
        if at not in values:
            return plain(at).cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
        counts = as_counts(plain(at))[0]
        return np.where(counts > ABSENT, counts, np.nan).astype(np.float64)

    columns = {at: numbers(at) for at in (*values, *others)} if figures else {}
    ways = {}
    for at in figures:
        ways[at] = works_out(
            plain(at).to_list(), {table.names[column]: held for column, held in columns.items() if column != at}
        )
    return {at: way for at, way in ways.items() if way}


LONGEST_SPAN, LEAST_MEANS = 12, 3
"""Rows that a moving mean is of, at most; and means that must be so before it is believed."""


def moving_means(table: HeadedTable, roles: Roles) -> Iterator[tuple[int, int]]:
    """Go through the columns that are moving means of counts where one is not printed, with the first row that tells it."""
    for at in (at for at in roles.left_out if kind_of(table.names[at]) == "average"):
        texts = plain_numbers(table.column(at).cast(pl.String).fill_null(""), roles.writing.thousands, roles.writing.decimal)
        means = texts.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
        step = 10.0 ** -max((len(text.partition(".")[2]) for text in texts.to_list()), default=0)
        for value in roles.values:
            plain = plain_numbers(table.column(value).cast(pl.String).fill_null(""), roles.writing.thousands)
            counts = as_counts(plain)[0]
            numbers = np.where(counts > ABSENT, counts, np.nan).astype(np.float64)
            for span in range(2, min(LONGEST_SPAN, len(numbers)) + 1):
                windows = np.lib.stride_tricks.sliding_window_view(numbers, span)
                for first in range(span):  # the mean stands in the last row of those that it is of, or in the middle
                    there = means[first : first + len(windows)]
                    off = np.abs(windows.mean(axis=1) - there)[~np.isnan(windows).any(axis=1) & ~np.isnan(there)]
                    telling = np.flatnonzero((np.isnan(windows).sum(axis=1) == 1) & ~np.isnan(there))
                    if len(off) >= LEAST_MEANS and (off <= step / 2 + 1e-9).all() and telling.size:
                        yield at, int(telling[0]) + first
                        break
                else:
                    continue
                break


def _in_words(name: str, cells: pl.Series, at: int, values: Sequence[int]) -> str:
    """Return why a column of text should have been one of counts, or "": it is called like one, or it is full of numbers."""
    called = counts_people(name)
    bare = bare_text(cells).drop_nulls()
    numbers = int(bare.str.contains(r"[0-9]").sum())
    if not len(bare) or not values or (at < min(values) and not (called and are_numbers(bare).sum() > len(bare) / 2)):
        return ""
    ages = sum(written_age(text) is not None or is_total(text) for text in bare)
    if bare.n_unique() == len(bare) and ages > len(bare) / 2:
        return ""  # the ages of a pyramid stand between its sexes
    if called or (
        numbers > len(bare) / 2 and bare.n_unique() > len(bare) / 2 and not about(name, "codes") and not about(name, "notes")
    ):
        return f"its cells are texts, such as {bare[0]!r}, where numbers were expected"
    return ""


def _is_status(name: str, cells: pl.Series) -> bool:
    """Return whether a column holds symbols beside the counts."""
    bare = bare_text(cells).drop_nulls()
    return about(name, "status") and bool((bare.str.len_chars() <= LONGEST_STATUS).all())


def _sdmx_name(name: str) -> str:
    """Return a dimension's identifier; with labels, SDMX-CSV writes "REF_AREA: Reference area"."""
    return name.partition(":")[0].strip().upper()


def _sdmx(table: HeadedTable, named: dict[str, int]) -> Roles:
    """Return the roles of SDMX-CSV, where names tell."""
    value = named[SDMX_VALUE]
    status = next((named[name] for name in SDMX_STATUS if name in named), None)
    left_out = {at: "an attribute of SDMX" for name, at in named.items() if name in SDMX_OTHERS}
    texts = [at for name, at in named.items() if at != value and at not in left_out]
    axes, others = _row_axes(table, texts)
    writing = find_writing([table.column(value)])
    if why := _no_count("", table.column(value), writing):
        raise InputError(f"{table.source} has no counts: {SDMX_VALUE} holds {why}, so there is nothing to audit.")
    return Roles(axes, (value,), writing, status, {**left_out, **others}, sdmx=True)


def _is_numeric(cells: pl.Series, name: str) -> bool:
    """Return whether a column holds numbers, perhaps with flags, or with symbols and ranges in place of some."""
    if cells.dtype != pl.String:
        return cells.dtype.is_numeric()
    bare = bare_text(cells).drop_nulls()
    bare = bare.filter(bare != "")
    numbered, counted, signed = are_numbers(bare), are_counts(bare), are_signs(bare)
    plain, counts, signs = int(numbered.sum()), int(counted.sum()), int((signed & ~counted).sum())
    if signs == len(bare) > 0:  # everything is hidden, or lost
        return not bool(bare.str.contains(RANGED).any()) and not about(name, "notes") and not about(name, "status")
    texts = len(bare) - counts - signs
    others = bare.filter(~counted & ~signed)
    if texts <= counts / 2 and others.n_unique() == 1 and len(others[0]) <= LONGEST_STATUS:
        texts = 0  # a symbol of this table's own
    flags = bare.filter(counted & ~numbered).str.replace_all("[0-9]", "").n_unique()
    return counts > 0 and (plain >= counts / 2 or flags == 1) and texts <= TEXT_SHARE * (counts + texts)


def _is_code(name: str, cells: pl.Series) -> bool:
    """Return whether a column of numbers holds codes: by its name, by leading zeros, or because they are years."""
    if kind_of(name) not in (COUNT, "area"):
        return False  # a median age is not an age
    if counts_people(name):
        return False  # "65+ years" counts people, and is not a number of years
    if set(tokens(name)) <= {"no", "nr"}:  # a number of the row, or those who answered no
        numbers = bare_text(cells).drop_nulls().to_list()
        return numbers == [str(number) for number in range(1, len(numbers) + 1)]
    words = tokens(name)
    if words[:1] == ["no"] and len(words) > 1:
        return False  # "No religion" is a category
    # Full-time students are counted, and so is what happened in the year to date.
    timed = about(name, "times") and not {"full", "part", "voll", "teil"} & set(words) and words[-2:] != ["to", "date"]
    named = timed or any(about(name, those) for those in ("codes", "sexes", "ages")) or _is_area(name)
    # "Persons aged 15" and "Region 01" may well hold counts: the name has to be about the code, not mention it.
    counted = about(name, "values") or any(word.isdigit() for word in words)
    if named and len(words) <= 3 and not counted:
        return True
    bare = bare_text(cells).drop_nulls()
    zeros = int(bare.str.contains("^0[0-9]+$").sum()) if cells.dtype == pl.String else 0
    if zeros and (zeros > len(bare) / 4 or bare.str.len_chars().n_unique() == 1):
        return True  # a single 01 among counts is a count
    years = bare.str.contains(r"^(?:18|19|20)\d\d(?:\.0)?$")
    return len(bare) > 0 and bool(years.all()) and bare.n_unique() <= max(2, len(bare) // 2) and not name.isdigit()


def _sums_periods(name: str, cells: pl.Series) -> bool:
    """Return whether a column is called "Year" and holds no years: it counts what happened in one."""
    numbers = bare_text(cells).cast(pl.Int64, strict=False).drop_nulls()
    return (
        bare_label(name) in WORDS["years"] and bool((numbers > 53).any()) and not bool(numbers.is_between(1800, 2199).all())
    )


def _is_area(name: str) -> bool:
    """Return whether a column of numbers is called like codes of areas, and not like a place: "Ward", not "Castle Ward"."""
    words = set(tokens(name))
    around = WORDS["areas"] | WORDS["codes"] | WORDS["names"] | {"of", "the"}
    return bool(words & WORDS["areas"]) and words <= around and not words <= {"area", "areas"}


_PER = re.compile(r"\bper (?:\d|hundred|thousand|million|head|capita)|\b(?:pro|pour|por|par|je|per) \d[\d., ]*0\b|‰")


def _no_count(name: str, cells: pl.Series, writing: Writing) -> str:
    """Return what a column of numbers holds instead of counts, or ""."""
    kind = kind_of(name) if name else COUNT
    text = plain_numbers(cells, writing.thousands, writing.decimal) if cells.dtype == pl.String else cells
    percent = cells.dtype == pl.String and bool(bare_text(cells).str.ends_with("%").fill_null(False).any())
    counts, decimals = as_counts(text.fill_null("") if text.dtype == pl.String else text)
    broken = int((decimals & (counts == UNREADABLE)).sum())
    numbers = broken + int((counts > ABSENT).sum())
    if percent:
        return "percentages"
    if _PER.search(name.lower()):
        return "rates"
    if about(name, "ranks"):
        return "ranks"
    if about(name, "changes"):
        return "changes"
    if kind not in (COUNT, "area"):
        return f"figures that are not counts ({kind})"
    return DECIMALS if broken > FRACTIONS * max(1, numbers) else ""


def _row_axes(table: HeadedTable, columns: Sequence[int]) -> tuple[tuple[RowAxis, ...], dict[int, str]]:
    """Return the columns that tell rows apart, and the reasons why other columns of text do not."""
    names = table.names
    left_out: dict[int, str] = {}
    cells: dict[int, pl.Series] = {}
    filled: set[int] = set()
    for at in columns:
        text = code_text(table.column(at)).replace("", None)
        if text.null_count() and text.null_count() < len(text):
            if (
                text[0] is not None
                and len(columns) > 1
                and text.null_count() >= GROUPED * len(text)
                and not about(names[at], "notes")
            ):
                text = text.fill_null(strategy="forward")
                filled.add(at)
            elif about(names[at], "notes") or text.null_count() > len(text) / 2:
                left_out[at] = SPARSE
                continue
        if text.n_unique() == 1 and table.cells.height > 1:
            left_out[at] = f"the same in every row: {text[0]}"
            continue
        cells[at] = text
    for at in _row_numbers(cells, table.cells.height):
        left_out[at] = "a number of the row"
        del cells[at]
    kept = list(cells)
    labels: dict[int, int] = {}
    for first in list(kept):
        for other in list(kept):
            if first != other and first in kept and other in kept and _tells(cells[first], cells[other]):
                if _tells(cells[other], cells[first]):  # one to one: a code and its name
                    code, name = _code_and_name(first, other, names, cells)
                    if code in labels:
                        left_out[name] = f"another name of {names[code]}"
                    labels.setdefault(code, name)
                    kept.remove(name)
                else:
                    for same in (other, labels.pop(other, other)):
                        left_out[same] = f"the same wherever {names[first]} is"
                    kept.remove(other)
    axes = tuple(RowAxis(at, labels.get(at), at in filled) for at in kept)
    if len(axes) == 2:
        for inner, outer in (axes, axes[::-1]):
            if _nests(cells[inner.at], cells[outer.at]) and inner.label is None:
                return (replace(inner, within=outer.at),), left_out
    return axes, left_out


def _nests(inner: pl.Series, outer: pl.Series) -> bool:
    """Return whether every code lies in one group, but for totals, which most groups have one of."""
    pairs = pl.DataFrame({"inner": inner, "outer": outer}).unique()
    often = pairs["inner"].value_counts().filter(pl.col("count") > 1)["inner"].to_list()
    groups, codes = outer.n_unique(), inner.n_unique()
    return 0 < len(often) <= 2 and all(code is not None and is_total(code) for code in often) and codes > groups > 1


def _row_numbers(cells: dict[int, pl.Series], height: int) -> list[int]:
    """Return columns that only number the rows: others, of which none does by itself, tell the rows apart as well."""
    single = [at for at, text in cells.items() if text.n_unique() == height > 1]
    rest = [text.alias(str(at)) for at, text in cells.items() if at not in single]
    return single if len(rest) > 1 and pl.DataFrame(rest).n_unique() == height else []


def _tells(telling: pl.Series, other: pl.Series) -> bool:
    """Return whether a column tells what stands in another."""
    together = pl.DataFrame({"one": telling, "other": other}).n_unique()
    return together == telling.n_unique() and telling.n_unique() > 1


def _code_and_name(first: int, other: int, names: Sequence[str], cells: dict[int, pl.Series]) -> tuple[int, int]:
    """Tell a column of codes from that of their names: by what they are called, or by length."""
    for code, name in ((first, other), (other, first)):
        if (about(names[name], "names") and not about(names[code], "names")) or (
            about(names[code], "codes") and not about(names[name], "codes")
        ):
            return code, name
    length = {at: float(cells[at].str.len_chars().cast(pl.Float64).mean() or 0.0) for at in (first, other)}  # type: ignore[arg-type]
    return (first, other) if (length[first], first) <= (length[other], other) else (other, first)
