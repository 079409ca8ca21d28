"""From a file of true counts to a folder with a protected table, its description and a note."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.errors import InputError
from unround.mechanisms import HIDDEN, Exact, Mechanism
from unround.mechanisms.base import IntArray
from unround.mechanisms.sampling import SystemGenerator
from unround.options import Protect
from unround.output import known_by, output_folder
from unround.protection.table import ALIKE, KEYED, Protection, ProtectionScore, keepable, publish_in_steps
from unround.regions import published_exactly
from unround.release import AREA, SUPPRESSED, Column, Release
from unround.shown import Shown
from unround.simulation.files import ABOUT, TABLE
from unround.structure import Structure
from unround.sums.forest import Equations
from unround.tables import SIMULATED
from unround.tables.spool import Spool, survey
from unround.tables.written import VALUE, TidyWriter, tidy_toml

NOTE = "PROTECTED.txt"
NOTE_TITLE = "Protected by unround: not to be published with the table"
PUBLISHED = "published"  # the folder of the protected table in the layout of the true counts

OURS = (TABLE, ABOUT, PUBLISHED, NOTE)
"""In the order in which they are put in place: where there is a note, all files belong together."""

_CENSUS = ("characteristic_id", "sex")


def _codes(release: Release) -> dict[str, pl.Series]:
    """Return what names the counts of an area in the tidy table."""
    columns = release.columns
    codes = {axis: pl.Series([column.codes[place] for column in columns]) for place, axis in enumerate(release.axes)}
    if release.axes == _CENSUS:
        codes["characteristic"] = pl.Series([column.label for column in columns])
    return codes


def release_toml(release: Release, areas: Sequence[str], how: Mechanism, exact: Iterable[int], sums: Equations) -> str:
    """Describe the table: its axes, how counts were protected, which are exact, and which sums hold among true counts."""
    columns = release.columns
    names = {axis: "characteristic" if release.axes == _CENSUS and axis == _CENSUS[0] else axis for axis in release.axes}
    axes: dict[str, dict[str, Any]] = {}
    for axis in release.areas:
        axes[axis] = {"name": f"{axis}_name"} if f"{axis}_name" in areas else {}
        axes[axis] |= {key: key for key in ("level", "parent") if axis == AREA and key in areas}
    axes |= {name: {"column": axis, "name": None if name == axis else "characteristic"} for axis, name in names.items()}
    return tidy_toml(
        "A table protected by `unround protect`. A count that is missing exists, and was not published.",
        TABLE,
        default=how.name,
        areas=list(release.areas),
        axes=axes,
        exact=[dict(zip(names.values(), columns[at].codes, strict=True)) for at in sorted(exact)],
        sums=[
            {"axis": "columns", "total": columns[total].key, "parts": [columns[part].key for part in parts]}
            for total, parts in sums
        ],
    )


AREAS_AT_ONCE = 2048
_ENOUGH, _MOST = 100, 0.9
"""Counts above 0 from which on, and the share of multiples from which on, a table looks rounded already."""


def _generator(seed: int | None) -> np.random.Generator:
    """Return where chance comes from; without a seed every draw comes from the operating system."""
    return SystemGenerator() if seed is None else np.random.default_rng(seed)


def _refuse_idle_keys(given: Protect, how: Protection) -> None:
    """Raise if something is said of keys that the mechanism does not use."""
    if given.key_sums is not None and not how.keys:
        raise InputError(f"sums of keys are for tables rounded by keys, and {how.name} uses none.")
    if given.constant is not None and how.keys != KEYED:
        raise InputError(f"a constant is that of tables rounded by keys, and {how.name} uses none.")


@dataclass(frozen=True)
class Protected(Shown):
    """What `protect` wrote.

    - `constants`: Where counts are rounded by keys, the constant of every table, by its name ("" where it has none).
    """

    table: Path  # the published table, the TOML that describes it, and the note for those who made it
    about: Path
    note: Path
    source: str  # where the true counts are from
    how: Protection  # what was done
    seed: int | None  # what the user asked for
    clamp: bool
    additive: bool
    command: str
    declared: str  # the mechanism that the TOML tells readers to assume
    areas: int  # how many areas and columns there are, and how many sums an area has
    columns: int
    sums: int
    exact: tuple[str, ...]  # the keys of the columns that were published as they are
    steps: dict[str, ProtectionScore]  # after each step, how far the table is from the truth
    notes: tuple[str, ...]  # what the user should know
    constants: dict[str, float] = field(default_factory=dict)

    @property
    def chance(self) -> str:
        """Where random numbers came from, for people."""
        if self.seed is None:
            return "the operating system's cryptographic generator, so the draw cannot be repeated"
        return (
            f"seed {self.seed}: anyone who knows it can draw the same numbers, so keep it secret, or use it for trials only"
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "files": [str(self.table), str(self.about), str(self.note)],
            "mechanism": self.how.name,
            "sentence": self.how.sentence,
            "declared": self.declared,
            "seed": self.seed,
            "chance": self.chance,
            "clamp": self.clamp,
            "additive": self.additive,
            "exact": list(self.exact),
            "keys": self.how.keys or None,
            "constants": self.constants,
            "areas": self.areas,
            "columns": self.columns,
            "sums": self.sums,
            "steps": [{"step": name} | score.to_json() for name, score in self.steps.items()],
            "notes": list(self.notes),
        }


def protect(truth: Release, how: Protection, given: Protect, finish: Callable[[Path, Protected], object]) -> Protected:
    """Publish a table of true counts into a folder.

    Options are documented with `unround.protect`; `finish` adds files to the folder before anybody sees it, among them the
    note. How the truth says that its counts were published is not listened to.
    If it fails, nothing is left behind.
    """
    _refuse_idle_keys(given, how)
    rng, out, progress = _generator(given.seed), Path(given.out), given.progress
    notes = _doubts(truth)
    plain = with_labels(truth)
    plain = replace(plain, columns=tuple(replace(column, mechanism=Exact(), adjusted=0) for column in plain.columns))
    exact = exact_columns(given.exact, plain.columns)
    if len(exact) == len(plain.columns):
        raise InputError("--exact names every column, so nothing is left to protect: leave some out.")
    with output_folder(out, "protect", known_by(NOTE, NOTE_TITLE, OURS, "protect")) as output:
        # 1. Read the table: which sums hold among true counts?
        spool, structure = survey(plain, output.work, progress)
        sums = true_sums(structure)
        notes += _notes(how, given, sums, plain, exact, spool)
        numbers, constants = _numbers(how, given, plain, spool, sums, exact, rng)
        # 2. Publish, a few areas at a time, and see what every step costs.
        table, steps = TidyWriter(output.done / TABLE, _codes(plain)), dict[str, ProtectionScore]()
        about_areas = {*plain.areas, *(f"{axis}_name" for axis in plain.areas), "level", "parent"}
        for done, block in enumerate(spool.blocks(AREAS_AT_ONCE)):
            progress("Protecting", done * AREAS_AT_ONCE, spool.rows)
            true = block.counts.astype(np.int64)
            u = numbers(done * AREAS_AT_ONCE, true) if numbers is not None else None
            for name, published in publish_in_steps(
                true, how, sums, rng, exact=exact, clamp=given.clamp, additive=given.additive, numbers=u
            ):
                steps.setdefault(name, ProtectionScore()).add(published, true, sums, exact)
            # What exists but was not published has an empty cell; what does not exist has no row.
            hidden = published == HIDDEN
            there = ~hidden | (block.counts >= 0) | (block.counts == SUPPRESSED)
            areas = block.areas.select(name for name in block.areas.columns if name in about_areas)
            table.add(areas, {VALUE: (published, hidden)}, there)
        progress("Protecting", spool.rows, spool.rows)
        # 3. Describe it.
        table.close()
        farthest = list(steps.values())[-1].farthest
        declared = how.declared(clamp=given.clamp, additive=given.additive, farthest=farthest)
        about = release_toml(plain, spool.areas.columns, declared, exact, sums)
        (output.done / ABOUT).write_text(about, encoding="utf-8")
        made = Protected(
            table=out / TABLE,
            about=out / ABOUT,
            note=out / NOTE,
            source=truth.source,
            how=how,
            seed=given.seed,
            clamp=given.clamp,
            additive=given.additive,
            command=given.command,
            declared=declared.name,
            areas=spool.rows,
            columns=len(plain.columns),
            sums=len(sums),
            exact=tuple(plain.columns[at].key for at in sorted(exact)),
            steps=steps,
            notes=tuple(notes),
            constants=constants,
        )
        finish(output.done, made)
        output.publish(OURS)
    return made


Numbers = Callable[[int, IntArray], NDArray[np.uint64]]
"""The random numbers that areas from a position on are rounded by, for their true counts."""


def _numbers(
    how: Protection,
    given: Protect,
    table: Release,
    spool: Spool,
    sums: Equations,
    exact: frozenset[int],
    rng: np.random.Generator,
) -> tuple[Numbers | None, dict[str, float]]:
    """Return where the random numbers come from, and the constants of the tables, if counts are rounded by keys."""
    if not how.keys:
        return None, {}
    from unround.protection.key_sums import GivenKeys, NestedKeys
    from unround.protection.keys import CellKeys, constants_of, secret_from, shifted

    secret = secret_from(rng)
    tables = tables_of(table)
    constants = constants_of(tables, secret, 0.0 if how.keys == ALIKE else given.constant)
    if given.key_sums is not None:
        keys: GivenKeys | NestedKeys = GivenKeys(Path(given.key_sums), table, spool, exact)
    else:
        keys = NestedKeys(CellKeys(tuple(column.key for column in table.columns), sums, secret), spool, table.areas)
    return lambda start, true: shifted(keys.of(start, true), tables, constants), constants


def tables_of(release: Release) -> list[str]:
    """Return the table that each column stands in, as far as the file says; those of the simulated profile are known."""
    if release.product != SIMULATED or any(column.block for column in release.columns):
        return [column.block for column in release.columns]
    return [table_of_row(column.codes[0]) for column in release.columns]


def table_of_row(row: str) -> str:
    """Return the table of the simulated profile that a row stands in, by the ID of its first row; "" for any other row."""
    from unround.simulation.profile import BLOCKS, table_of

    before = [block for block in BLOCKS if row.isdecimal() and block.first <= int(row)]
    return str(table_of(before[-1])) if before else ""


def true_sums(structure: Structure) -> Equations:
    """Return the sums that hold among true counts; two columns that always show the same are a sum of one part."""
    sums = dict.fromkeys(judged.equation for judged in structure.sums)
    return (*sums, *((copy, (first,)) for copy, first in structure.alias.items() if (copy, (first,)) not in sums))


def _doubts(truth: Release) -> list[str]:
    """Say so where a file calls its counts anything but true."""
    declared = sorted({how.name for column in truth.columns if (how := column.mechanism) is not None and how != Exact()})
    if not declared:
        return []
    return [f"the file declares its counts as {', '.join(declared)}; here they are treated as true counts."]


def _notes(
    how: Protection, given: Protect, sums: Equations, truth: Release, exact: frozenset[int], spool: Spool
) -> list[str]:
    """Say what the user should know about the table and the choices."""
    notes = _looks_rounded(spool)
    if not sums and (how.controlled or given.additive):
        asked = how.name if how.controlled else "--additive"
        raise InputError(
            f"no sum holds in {truth.source}, so {asked} has nothing to preserve. Describe its sums in a TOML file "
            "(see docs/audit-reference.md), or choose another mechanism." + "".join(f" Also, {note}" for note in notes)
        )
    if not sums:
        notes.append("no sum was found among the true counts.")
    off = 0
    for block in spool.blocks(AREAS_AT_ONCE):
        true = block.counts.astype(np.int64)
        there = np.stack([(true[:, [total, *parts]] >= 0).all(axis=1) for total, parts in sums], axis=1) if sums else None
        off += 0 if there is None else int((there & ~keepable(true, sums)).sum())
    if off:
        notes.append(f"{off:,} sums do not hold among the true counts of some area; they are not preserved there.")
    if how.controlled and given.additive:
        notes.append("--additive does nothing here: after controlled rounding all sums add up.")
    if given.clamp and not how.noisy:
        notes.append(f"--clamp does nothing here: {how.name} produces no negative counts.")
    if given.additive and not how.controlled:
        notes.append(
            f"after --additive no mechanism describes the counts exactly. {ABOUT} declares "
            + ("the noise that was added first." if how.noisy else "how far they can be from the true counts.")
        )
    mixed = sum(0 < len(exact & {total, *parts}) < 1 + len(parts) for total, parts in sums)
    if how.controlled and mixed:
        sums_ = "1 sum contains" if mixed == 1 else f"{mixed:,} sums contain"
        notes.append(
            f"{sums_} an unrounded count and cannot add up; the other counts are rounded to a neighbouring multiple "
            f"of {how.base}."
        )
    return notes


def _looks_rounded(spool: Spool) -> list[str]:
    """Doubt counts that are nearly all multiples of something."""
    counts = spool.counts(0, min(spool.rows, AREAS_AT_ONCE))
    above = counts[counts > 0]
    for base in (10, 5, 3):
        if above.size >= _ENOUGH and np.mean(above % base == 0) > _MOST:
            share = f"{100 * np.mean(above % base == 0):.1f}%"
            return [
                f"{share} of the counts are multiples of {base}: this table appears to be rounded already. Errors are "
                "measured against the counts in the file."
            ]
    return []


POPULATION, DWELLINGS = "population", "dwellings"


def with_labels(truth: Release) -> Release:
    """Return a release whose columns have names: those of the simulated profile for its truth, which has only numbers."""
    if truth.product != SIMULATED or any(column.label != column.codes[0] for column in truth.columns):
        return truth
    from unround.simulation import schema

    names = {str(row.id): row.name for row in schema("all").rows}
    columns = tuple(replace(column, label=names.get(column.codes[0], column.label)) for column in truth.columns)
    return replace(truth, columns=columns)


def exact_columns(names: Iterable[str], columns: Sequence[Column]) -> frozenset[int]:
    """Return the columns that people mean.

    >>> columns = [Column("1", ("1", "total"), "Population, 2021"), Column("10/men", ("10", "men"), "0 to 4 years")]
    >>> exact_columns(["population"], columns), exact_columns(["0 to 4 Years"], columns)
    (frozenset({0}), frozenset({1}))
    """
    places: set[int] = set()
    for given in names:
        whole = _fitting(given.strip(), columns)
        # A name may hold commas itself; only one that fits nothing is taken for several.
        for name in [given] if whole else given.split(","):
            here = whole or _fitting(name.strip(), columns)
            if not here:
                few = ", ".join(_called(column) for column in columns[:5])
                raise InputError(
                    f"--exact {name.strip()}: there is no such column. Give a column's key or name, {POPULATION} or "
                    f"{DWELLINGS}; columns are {few} …; `unround check --all` lists them all."
                )
            places |= here
    return frozenset(places)


def _fitting(name: str, columns: Sequence[Column]) -> set[int]:
    """Return the columns with this key; if there are none, with this code; else with this label; else of this kind."""
    tests: tuple[Callable[[Column], bool], ...] = (
        lambda column: column.key == name,
        lambda column: name in column.codes,
        lambda column: column.label.lower() == name.lower(),
        lambda column: _counts(name.lower(), column.label),
    )
    matches = ({at for at, column in enumerate(columns) if test(column)} for test in tests)
    return next((fits for fits in matches if fits), set())


def _counts(kind: str, label: str) -> bool:
    exact, _ = published_exactly(label)
    return exact is not None and kind == (POPULATION if label.strip().lower().startswith(POPULATION) else DWELLINGS)


def _called(column: Column) -> str:
    return column.key if column.label in (column.key, column.codes[0]) else f"{column.key} ({column.label})"
