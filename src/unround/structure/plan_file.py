"""The structure as a file that a person can read, edit and give back, and its decisions applied.

Whatever was decided stands in it, with its reason as a comment: mechanisms, sums that are used, sums that are not, repeats,
and what figures are of.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, NoReturn

from unround.errors import ArgumentError, InputError
from unround.figures import FIGURE_KEYS, Figure, figure_from
from unround.mechanisms import Exact, Mechanism, mechanism
from unround.release import Column, Match, Proposal, Release, What
from unround.small_files import parsed_toml, toml_comment, toml_value
from unround.structure.evidence import (
    INFERRED,
    LABELS,
    OPTION,
    JudgedFigure,
    JudgedSum,
    Name,
    PlanFile,
    PlannedFigure,
    PlannedSum,
    Structure,
)
from unround.structure.residuals import SumTally
from unround.structure.verify import areas_


def planned_figure(entry: Mapping[str, Any], line: int, wrong: Callable[[str, str], InputError]) -> PlannedFigure:
    """Read one entry: `columns` and `use`, or a whole description of one figure."""
    use = entry.get("use", True)
    if not isinstance(use, bool):
        raise wrong("use must be true or false.", "use")
    if "columns" in entry:
        for key in entry:
            if key not in ("use", "columns"):
                raise wrong(f"{key!r} is about one figure: write column = in place of columns =.", key)
        columns = entry["columns"]
        if not isinstance(columns, list) or not columns or not all(isinstance(one, str | int) for one in columns):
            raise wrong('columns must be a list of keys, in quotes, such as ["345", "346"].', "columns")
        return PlannedFigure(tuple(str(one) for one in columns), use, None, line)
    told = {key: value for key, value in entry.items() if key != "use"}
    if "column" in told and len(told) == 1:
        return PlannedFigure((str(told["column"]),), use, None, line)
    if not set(told) <= set(FIGURE_KEYS):
        odd = next(key for key in told if key not in FIGURE_KEYS)
        raise wrong(
            f"{odd!r} has no meaning in [[structure.figures]]; the keys are use, columns, {', '.join(FIGURE_KEYS)}.", odd
        )
    figure = figure_from(told, wrong)
    return PlannedFigure((figure.name,), use, figure, line)


def with_planned(
    figures: Sequence[Figure],
    planned: Sequence[PlannedFigure],
    counts: Collection[str],
    wrong: Callable[[str, int], InputError],
) -> tuple[Figure, ...]:
    """Return the figures of a release, with what a plan says they are of.

    Raises `InputError` where the plan names figures or counts that are not there.
    """
    known = {figure.name: figure for figure in figures}
    for one in planned:
        for name in one.columns:
            if name not in known:
                raise wrong(f"there is no rate, mean or median {name!r} in the release.", one.line)
        if one.figure is not None:
            gone = next((key for key in (*one.figure.counts, one.figure.numerator) if key and key not in counts), None)
            if gone is not None:
                raise wrong(f"there is no count {gone!r} in the release.", one.line)
            known[one.figure.name] = replace(one.figure, label=known[one.figure.name].label)
    return tuple(known.values())


def overruled(judged: Sequence[JudgedFigure], planned: Sequence[PlannedFigure], where: str) -> tuple[JudgedFigure, ...]:
    """Return verdicts as a plan has them.

    What published counts give tells nothing, and a sample has no whole numbers, whatever the plan says; unless it is certain
    that a figure was computed from true counts.
    """
    decided = {name: one.use for one in planned for name in one.columns}
    certain = {name for one in planned if one.certain for name in one.columns}
    found = []
    for one in judged:
        use = decided.get(one.figure.name)
        if use is False and one.verdict == "evidence":
            one = replace(one, verdict="unclear", why=f"left out by {where}; the data suggest: {one.why}")
        elif one.figure.name in certain:
            one = replace(one, verdict="evidence", why="it was computed from true counts.", reveals=())
        elif use is True and one.verdict == "unclear" and one.figure.is_complete and not one.figure.sampled:
            one = replace(one, verdict="evidence", why=f"used because {where} says so; the data suggest: {one.why}")
        found.append(one)
    return tuple(found)


def figure_entries(figures: Sequence[JudgedFigure]) -> list[tuple[str, bool, list[str]]]:
    """Return the verdicts for a plan: a comment, whether they are used, and the columns, those of one verdict together."""
    groups: dict[tuple[str, bool], list[JudgedFigure]] = {}
    for one in figures:
        groups.setdefault((one.verdict, one.is_evidence), []).append(one)
    return [
        (f"{verdict}: {some[0].figure.name}: {some[0].why}", use, [one.figure.name for one in some])
        for (verdict, use), some in groups.items()
    ]


CENSUS_AXES = ("characteristic_id", "sex")
ORIGINS = ("indentation", "sex", "names", "universe", "data", "file", "labels", "files")

_HEADER = """\
# What unround found out about the structure of {source},
# from {areas:,} areas. Edit this file and pass it to audit --plan: it overrules what the counts suggest.
# Whatever is not in this file is decided by the counts, so to leave something out, write use = false.
#
# mechanisms: how columns were published ({examples} …)
# sums:       a total and the parts that make it up; use = false for those that do not hold.
#             With `sexes`, total and parts are characteristics; with `characteristics`, they are sexes.
# repeats:    columns that show the same count; alike = true if their published numbers are the same as well, so that
#             the first is used for all; alike = false if the count was rounded anew for each.
# figures:    rates, means and medians, and whether to use them: those computed from true counts. To say what one is of,
#             write column = "345" in place of columns, and kind, numerator and universe, or groups (docs/figures.md).
# match:      [[match]], for several files: which columns of one file are also in earlier files.
# keys:       a table whose random numbers add up, and the constant of its sums: table = "Age", constant = 0.31;
#             without a constant, every count of the table has a random number of its own.
"""


def write_plan(structure: Structure, release: Release, matches: Sequence[Match] = ()) -> str:
    """Return a structure as the text of a TOML file."""
    head = _HEADER.format(source=release.source, areas=structure.areas, examples="exact, rounding:5, sample:5, nearest:3")
    keys = [column.key for column in structure.columns]
    pieces = [head, "[structure]\n"]
    for evidence in structure.how:
        names = [keys[at] for at in evidence.columns]
        comment = _comment(f"{evidence.block}: {evidence.why}" if evidence.block else evidence.why)
        if evidence.mechanism is None:
            pieces.append(f"{comment}# not audited: {_comment(', '.join(names))[2:]}")
        else:
            how = toml_value(evidence.mechanism.name)
            entry = f"[[structure.mechanisms]]\nmechanism = {how}\ncolumns = {toml_value(names)}\n"
            if evidence.condition:  # what a plan declares is no condition any more
                entry = "".join(map(_comment, ["If the agency says so, uncomment this:", *entry.splitlines()]))
            pieces.append(f"{comment}{entry}")
    census = release.axes == CENSUS_AXES
    for checked in (structure.sums, structure.rejected):
        pieces += [_sum_entry(group, structure.columns, census) for group in _groups(checked, structure.columns, census)]
    pieces += [_match_entry(match) for match in matches]
    for why, use, columns in figure_entries(structure.figures):
        entry = f"use = {toml_value(use)}\ncolumns = {toml_value(columns)}\n"
        pieces.append(f"{_comment(why)}[[structure.figures]]\n{entry}")
    for repeat in structure.repeats:
        names = [keys[at] for at in repeat.columns]
        written = f"use = true\nalike = {toml_value(repeat.alike)}\ncolumns = {toml_value(names)}\n"
        pieces.append(f"{_comment(repeat.why)}[[structure.repeats]]\n{written}")
    return "\n".join(pieces)


def _match_entry(match: Match) -> str:
    tables = (("columns", match.columns), ("characteristics", match.characteristics))
    lines = [
        f"{name} = {{ {', '.join(f'{toml_value(key)} = {toml_value(other)}' for key, other in pairs.items())} }}"
        for name, pairs in tables
        if pairs
    ]
    return "\n".join(("[[match]]", f"file = {toml_value(match.file)}", *lines)) + "\n"


def _groups(checked: Sequence[JudgedSum], columns: Sequence[Column], census: bool) -> list[list[JudgedSum]]:
    """Put sums together that differ in their sex only, or in their characteristic only."""
    groups: dict[object, list[JudgedSum]] = {}
    for at, one in enumerate(checked):
        key: object = at
        if census:
            codes = [columns[cell].codes for cell in (one.total, *one.parts)]
            for axis in (0, 1):
                if len({code[1 - axis] for code in codes}) == 1:
                    # Sums by sex are many and alike; each of the others has a reason of its own to be shown.
                    reason = one.why.split(":")[0] if axis == 1 and not one.kept else ""
                    key = (axis, tuple(code[axis] for code in codes), one.origin, reason)
                    break
        groups.setdefault(key, []).append(one)
    return list(groups.values())


def _sum_entry(group: list[JudgedSum], columns: Sequence[Column], census: bool) -> str:
    """Write one sum, or several that differ in one code only."""
    first = group[0]
    codes = [columns[cell].codes for cell in (first.total, *first.parts)]
    names = [columns[cell].key for cell in (first.total, *first.parts)]
    more = ""
    if census and len(first.parts) > 0:
        for axis, word in ((0, "sexes"), (1, "characteristics")):
            if len({code[1 - axis] for code in codes}) == 1 and len({code[axis] for code in codes}) > 1:
                names = [code[axis] for code in codes]
                more = f"{word} = {toml_value([columns[one.total].codes[1 - axis] for one in group])}\n"
                break
    labels = f"{columns[first.total].label} ({columns[first.total].block})" if len(group) < 4 else f"{len(group)} sums"
    lines = [labels, *dict.fromkeys(one.why for one in group[:3])]
    if len(group) > 3:
        lines = [f"{len(group)} sums; the first: {first.why}", _summary(group)]
    comment = "".join(_comment(line) for line in lines)
    return (
        f"{comment}[[structure.sums]]\nuse = {toml_value(first.kept)}\ntotal = {toml_value(names[0])}\n"
        f"parts = {toml_value(names[1:])}\n{more}origin = {toml_value(first.origin)}\n"
    )


def _summary(group: Sequence[JudgedSum]) -> str:
    means = [one.mean for one in group]
    return (
        f"over all of these the residual averages {min(means):.2f} to {max(means):.2f}, "
        f"and is impossible in at most {max(one.impossible for one in group):,} areas"
    )


def _comment(text: str) -> str:
    return f"{toml_comment(text)}\n"


def read_plan(text: str, where: str = "<plan>") -> PlanFile:
    r"""Read a plan file, as `write_plan` writes it.

    Raises `InputError` where it is no TOML, has keys that mean nothing, or values that cannot be.

    Examples
    --------
    >>> plan = read_plan('[[structure.sums]]\nuse = false\ntotal = "8"\nparts = ["9", "13", "24"]')
    >>> plan.sums[0].use, plan.sums[0].parts
    (False, ('9', '13', '24'))
    """
    return _PlanReader(text, where).read()


def declaring(release: Release, how: Mechanism | str, plan_file: PlanFile | None = None) -> Release:
    """Return a release of which the user says how rounded counts were published, where neither file nor plan says so.

    Raises `InputError` if there is no such mechanism, or nothing left to declare.
    """
    kind = mechanism(how) if isinstance(how, str) else how
    told = {key for _, keys, _ in (plan_file or PlanFile()).mechanisms for key in keys}
    known = [one.mechanism is not None and one.basis != INFERRED for one in release.columns]
    open_ = [at for at, one in enumerate(release.columns) if not known[at] and one.key not in told]
    if not open_:
        raise ArgumentError(
            "{mechanism} is for counts of which nothing is declared, and here everything is: change the description or the "
            "plan file instead."
        )
    columns = list(release.columns)
    for at in open_:
        columns[at] = replace(columns[at], mechanism=None, documented=(kind,), basis=OPTION)
    account = [
        replace(one, what=What.NOTE, why=f"{kind.name}, as you say", used=True, settle="")
        if one.settle.startswith("--base")
        else one
        for one in release.account
    ]
    return replace(release, columns=tuple(columns), account=tuple(account), obstacle="")  # what was missing is said


def declaring_exact(release: Release, names: Sequence[str]) -> Release:
    """Return a release of which the user says that some counts are exact, whatever else is said of them.

    A name is a column's key; else a label; else a code, and then all columns with that code are meant.

    Raises `InputError` if there is no such column.
    """
    columns = list(release.columns)
    for name in names:
        ways = (
            [at for at, one in enumerate(columns) if one.key == name],
            [at for at, one in enumerate(columns) if one.label == name],
            [at for at, one in enumerate(columns) if name in one.codes],
        )
        meant = next((those for those in ways if those), None)
        if meant is None:
            known = sorted({text for one in columns for text in (one.key, one.label, *one.codes)})
            close = get_close_matches(name, known, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else " `unround check` lists the columns."
            raise ArgumentError(f"{{exact}} names {name!r}, and there is no such column.{hint}")
        for at in meant:
            columns[at] = replace(columns[at], mechanism=Exact(), documented=(), basis=OPTION)
    return replace(release, columns=tuple(columns))


class _PlanReader:
    """Reads one plan file; knows where each of its tables stands."""

    def __init__(self, text: str, where: str) -> None:
        self._text, self._where = text, where
        self._lines = text.splitlines()

    def _fail(self, message: str, line: int, key: str = "") -> NoReturn:
        """Raise an error at a line, or at the line of a key below it."""
        for at in range(line - 1, len(self._lines)):
            if at >= line and self._lines[at].lstrip().startswith("[["):
                break
            if key and re.match(rf'\s*"?{re.escape(key)}"?\s*=', self._lines[at]):
                line = at + 1
                break
        raise InputError(message, source=self._text, line=line, column=1, where=self._where)

    def _headings(self, name: str) -> list[int]:
        """Return the lines of the headings of a section's entries."""
        heading = re.compile(rf"\s*\[\[\s*{name}\s*\]\]")
        return [at + 1 for at, line in enumerate(self._lines) if heading.match(line)]

    def read(self) -> PlanFile:
        plan = parsed_toml(self._text, self._where)
        if "axes" not in plan:  # else it is a description, which may hold decisions on the structure too
            self._only(plan, ("structure", "match"), 1, "a plan")
        matches, lines = plan.get("match", []), self._headings("match")
        if not isinstance(matches, list) or not all(isinstance(entry, dict) for entry in matches):
            self._fail("match must be a list of tables: write [[match]] above each.", 1, "match")
        structure = plan.get("structure", {} if matches else None)
        if not isinstance(structure, dict):
            self._fail("a plan needs a table [structure]; `unround check FILE --write plan.toml` drafts one.", 1)
        self._only(structure, ("mechanisms", "sums", "repeats", "keys", "figures"), 1, "[structure]")
        return PlanFile(
            mechanisms=tuple(self._mechanism(entry, line) for entry, line in self._entries(structure, "mechanisms")),
            sums=tuple(ruling for entry, line in self._entries(structure, "sums") for ruling in self._sums(entry, line)),
            repeats=tuple(self._repeat(entry, line) for entry, line in self._entries(structure, "repeats")),
            matches=tuple(self._match(entry, lines[at] if at < len(lines) else 1) for at, entry in enumerate(matches)),
            keys=tuple(self._keys(entry, line) for entry, line in self._entries(structure, "keys")),
            figures=tuple(self._figure(entry, line) for entry, line in self._entries(structure, "figures")),
            text=self._text,
            where=self._where,
        )

    def _entries(self, structure: Mapping[str, Any], section: str) -> Iterable[tuple[dict[str, Any], int]]:
        entries = structure.get(section, [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            self._fail(f"{section} must be a list of tables: write [[structure.{section}]] above each.", 1, section)
        lines = self._headings(rf"structure\s*\.\s*{section}")
        return [(entry, lines[number] if number < len(lines) else 1) for number, entry in enumerate(entries)]

    def _only(self, table: Mapping[str, Any], known: Sequence[str], line: int, what: str) -> None:
        for key in table:
            if key not in known:
                self._fail(f"{key!r} has no meaning in {what}; the keys are {', '.join(known)}.", line, key)

    def _word(self, table: Mapping[str, Any], key: str, line: int, default: str | None = None) -> str:
        value = table.get(key, default)
        if isinstance(value, int) and not isinstance(value, bool):
            value = self._number(value, key, line)  # codes are often numbers; people leave the quotes out
        if not isinstance(value, str):
            self._fail(f"{key} is needed here, as text in quotes.", line, key)
        return value

    def _words(self, table: Mapping[str, Any], key: str, line: int, least: int = 1) -> tuple[str, ...]:
        values = table.get(key)
        if not isinstance(values, list) or len(values) < least or not all(isinstance(v, str | int) for v in values):
            self._fail(f'{key} must be a list of at least {least}, in quotes, such as ["9", "13"].', line, key)
        words = tuple(value if isinstance(value, str) else self._number(value, key, line) for value in values)
        if len(set(words)) < len(words):
            twice = next(word for word, times in Counter(words).items() if times > 1)
            self._fail(f"{key} lists {twice!r} twice.", line, key)
        return words

    def _number(self, value: int, key: str, line: int) -> str:
        try:
            return str(value)
        except ValueError:  # 0x… can write what has too many digits in decimals
            self._fail(f"{key} holds a number with thousands of digits, which is not a code.", line, key)

    def _yes(self, table: Mapping[str, Any], key: str, line: int, default: bool | None) -> bool:
        value = table.get(key, default)
        if not isinstance(value, bool):
            self._fail(f"{key} must be true or false.", line, key)
        return value

    def _mechanism(self, entry: dict[str, Any], line: int) -> tuple[Mechanism, tuple[str, ...], int]:
        self._only(entry, ("mechanism", "columns"), line, "[[structure.mechanisms]]")
        try:
            kind = mechanism(self._word(entry, "mechanism", line))
        except InputError as error:
            self._fail(error.message, line, "mechanism")
        return kind, self._words(entry, "columns", line), line

    def _match(self, entry: dict[str, Any], line: int) -> Match:
        self._only(entry, ("file", "columns", "characteristics"), line, "[[match]]")
        given: dict[str, dict[str, str]] = {}
        for kind in ("columns", "characteristics"):
            pairs = entry.get(kind, {})
            if not isinstance(pairs, dict) or not all(isinstance(other, str | int) for other in pairs.values()):
                self._fail(f'{kind} must be a table such as {{ "m_0_4" = "10/men" }}.', line, kind)
            given[kind] = {key: str(other) for key, other in pairs.items()}
        if not any(given.values()):
            self._fail('a match needs columns = { "its key" = "key in an earlier file" }, or characteristics.', line)
        return Match(self._word(entry, "file", line), given["columns"], given["characteristics"], line)

    def _sums(self, entry: dict[str, Any], line: int) -> list[PlannedSum]:
        known = ("use", "total", "parts", "sexes", "characteristics", "origin")
        self._only(entry, known, line, "[[structure.sums]]")
        use = self._yes(entry, "use", line, True)
        total, parts = self._word(entry, "total", line), self._words(entry, "parts", line)
        origin = self._word(entry, "origin", line, "file")
        if origin not in ORIGINS:
            self._fail(f"there is no origin {origin!r}: choose from {', '.join(ORIGINS)}.", line, "origin")
        if total in parts:
            self._fail(f"the total {total!r} is among its own parts.", line, "parts")
        if "sexes" in entry and "characteristics" in entry:
            self._fail(
                "a sum is along the characteristics (give sexes) or the sexes (give characteristics), not both.", line
            )
        names: list[list[Name]] = [[total, *parts]]
        if "sexes" in entry:
            names = [[(code, sex) for code in (total, *parts)] for sex in self._words(entry, "sexes", line)]
        elif "characteristics" in entry:
            names = [[(code, sex) for sex in (total, *parts)] for code in self._words(entry, "characteristics", line)]
        return [PlannedSum(first, tuple(others), use, origin, line) for first, *others in names]

    def _figure(self, entry: dict[str, Any], line: int) -> PlannedFigure:
        def wrong(message: str, key: str) -> InputError:
            self._fail(message, line, key)

        return planned_figure(entry, line, wrong)

    def _keys(self, entry: dict[str, Any], line: int) -> tuple[str, float | None, int]:
        self._only(entry, ("table", "constant"), line, "[[structure.keys]]")
        table, constant = self._word(entry, "table", line), entry.get("constant")
        fine = isinstance(constant, int | float) and not isinstance(constant, bool) and 0 <= constant < 1
        if constant is not None and not fine:
            self._fail("constant must be a number from 0 to below 1, such as 0.31.", line, "constant")
        return table, None if constant is None else float(constant), line

    def _repeat(self, entry: dict[str, Any], line: int) -> tuple[tuple[str, ...], bool, bool, int]:
        self._only(entry, ("use", "alike", "columns"), line, "[[structure.repeats]]")
        columns = self._words(entry, "columns", line, least=2)
        return columns, self._yes(entry, "alike", line, None), self._yes(entry, "use", line, True), line


MOST = 0.5
"""A sum that is impossible in a larger share of areas than this is refused, whoever asks for it."""

Pair = tuple[int, int]


class AppliedPlan:
    """A plan file's overrides, with positions of columns instead of their keys.

    - `plan_file`: The plan.
    - `release`: The release that it is about.
    - `insist`: Whether an impossible sum in the user's plan is an error; if not, it is rejected like others.
    """

    def __init__(self, plan_file: PlanFile, release: Release, insist: bool = True) -> None:
        self._insist = insist
        self.unknown: frozenset[int] = frozenset()
        """Columns that turned out to be perturbed, nobody knows how: no sum of theirs is insisted on."""
        self._overrides, self._names = plan_file, [column.key for column in release.columns]
        self._index: dict[Name, int] = {}
        for at, column in enumerate(release.columns):
            self._index |= {column.key: at, column.codes: at}
        self.mechanisms: dict[int, Mechanism] = {}
        for how, keys, line in plan_file.mechanisms:
            self.mechanisms |= dict.fromkeys(self._places(keys, line), how)
        self.proposals: list[Proposal] = []
        self._use: dict[tuple[int, frozenset[int]], tuple[bool, int]] = {}
        for ruling in plan_file.sums:
            total, *parts = self._places((ruling.total, *ruling.parts), ruling.line)
            self.proposals.append(Proposal(total, tuple(parts), ruling.origin))
            self._use[total, frozenset(parts)] = ruling.use, ruling.line
        self.alike: set[Pair] = set()
        self.anew: set[Pair] = set()
        self.apart: set[Pair] = set()
        for keys, alike, use, line in plan_file.repeats:
            first, *others = self._places(keys, line)
            for other in others:
                self.proposals.append(Proposal(other, (first,), "file"))
                (self.apart if not use else self.alike if alike else self.anew).add((other, first))
                if not alike:
                    self._use.setdefault((other, frozenset((first,))), (use, line))

    def figures(self, figures: Sequence[Figure]) -> tuple[Figure, ...]:
        """Return the figures of the release, with what the plan says they are of."""

        def wrong(message: str, line: int) -> InputError:
            return InputError(message, source=self._overrides.text, line=line, column=1, where=self._overrides.where)

        return with_planned(figures, self._overrides.figures, set(self._names), wrong)

    def judge_figures(self, judged: Sequence[JudgedFigure]) -> tuple[JudgedFigure, ...]:
        """Return the verdicts on figures as the plan has them."""
        return overruled(judged, self._overrides.figures, self._overrides.where)

    def _places(self, names: Sequence[Name], line: int) -> list[int]:
        missing = next((name for name in names if name not in self._index), None)
        if missing is not None:
            shown = missing if isinstance(missing, str) else ", ".join(missing)
            close = get_close_matches(shown, self._names, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else " `unround check` lists the columns."
            spot = missing if isinstance(missing, str) else missing[0]
            raise self._error(f"there is no column {shown!r} in this release.{hint}", line, spot)
        return [self._index[name] for name in names]

    def _error(self, message: str, line: int, spot: str = "") -> InputError:
        if not line:
            return InputError(message)
        text = self._overrides.text
        lines = text.splitlines()
        column = 1
        for at in range(line - 1, len(lines)):  # the key may be a few lines below its heading
            if at > line - 1 and lines[at].lstrip().startswith("["):
                break
            if spot and f'"{spot}"' in lines[at]:
                line, column = at + 1, lines[at].index(f'"{spot}"') + 1
                break
        return InputError(message, source=text or None, line=line, column=column, where=self._overrides.where)

    def judge(self, judged: Sequence[tuple[SumTally, JudgedSum]]) -> list[JudgedSum]:
        """Return the verdicts, with the user's decisions in place of those of the counts.

        Raises `InputError` where the user insists on a sum that is impossible in most areas, or cannot be used.
        """
        return [self._one(result, checked) for result, checked in judged]

    def _one(self, result: SumTally, checked: JudgedSum) -> JudgedSum:
        use, line = self._use.get((checked.total, frozenset(checked.parts)), (None, 0))
        if use is None:
            if checked.origin not in ("file", LABELS) or checked.kept or checked.exactly:
                return checked
            if self.unknown & {checked.total, *checked.parts}:
                return checked
            use = True
        insist = self._insist and (bool(line) or checked.origin == "file")
        if use and not insist and self._complaint(result, checked, ""):
            return checked
        if use:
            self._complain(result, checked, line)
        if use == checked.kept:
            return checked
        says = self._overrides.where if line else "the file"
        words = (
            f"labels suggest it; the counts: {checked.why}"
            if use and not line and checked.origin == LABELS
            else f"{says} says so; the counts suggest: {checked.why}"
            if use
            else f"left out by {says}; the counts suggest: {checked.why}"
        )
        return replace(checked, kept=use, why=words)

    def _complaint(self, result: SumTally, checked: JudgedSum, leave: str) -> str | None:
        """Return why a sum cannot be used, whoever wants it, and how to `leave` it out; None if it can."""
        names = self._names
        shown = f"{names[checked.total]} = {' + '.join(names[part] for part in checked.parts)}"
        if not result.known:
            return f"the sum {shown} cannot be used: {checked.why}. Declare their mechanism, or {leave}."
        if result.areas and result.impossible > MOST * result.areas:
            return (
                f"{shown} cannot be a sum: no true counts fit {result.impossible:,} of {areas_(result.areas)} "
                f"(the residual averages {result.all_mean:.2f}). Correct its parts (is one missing?), or {leave}."
            )
        return None

    def _complain(self, result: SumTally, checked: JudgedSum, line: int) -> None:
        # A line is that of a plan, in which sums can be switched off; a description of a table has no such switch.
        leave = "leave the sum out (use = false)" if line else "remove it from the file"
        complaint = self._complaint(result, checked, leave)
        if complaint:
            raise self._error(complaint, line, self._names[checked.total])
