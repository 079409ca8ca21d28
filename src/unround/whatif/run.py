"""START HERE: audit a release without and with a table, then repair the table in every cheap way, and rank what is left."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unround._version import __version__
from unround.audit import AuditFolder, Options, audit
from unround.audit.summary import CLAIMS
from unround.diff import Diff, diff
from unround.errors import InputError
from unround.mechanisms import mechanism
from unround.release import Release
from unround.spool import Spool, Stage
from unround.structure import Overrides, find_structure
from unround.whatif.exposure import SMALLNESS, SURENESS, exposure
from unround.whatif.files import AFTER, BEFORE, REPORT, whatif_workshop
from unround.whatif.join import aligned, declared, joined, original
from unround.whatif.repairs import Repair, cost, repairs
from unround.whatif.setting import Setting, check_areas, check_truth
from unround.whatif.tables import Numbers, kept, renamed, spooled
from unround.whatif.world import World, plausible

Finish = Callable[[Path, Mapping[str, Any]], None]
"""Is given the folder and what was found, before anybody sees them."""

EXACT, SIMULATED = "exact", "simulated"
"""How a repair was tried: on what is published; or on counts that were drawn to be plausible."""


@dataclass(frozen=True, eq=False)
class WhatIf:
    """What a table would expose, and what each repair of it leaves.

    Parameters
    ----------
    told : dict
        Everything, as plain data; docs/whatif.md tells what each field means.
    folder : Path or None
        Where it was written.
    """

    told: dict[str, Any] = field(repr=False)
    folder: Path | None

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return self.told


def whatif(
    release: Release,
    table: Release,
    out: Path | None = None,
    options: Options | None = None,
    *,
    overrides: Overrides | None = None,
    truth: Release | None = None,
    seed: int = 0,
    wanted: Sequence[str] | None = None,
    progress: Stage = lambda *_: None,
    command: str = "",
    finish: Finish = lambda *_: None,
) -> WhatIf:
    """Say what a table would expose of a release, and which repairs of the table leave least.

    Parameters
    ----------
    release, table : Release
        What is published already, and what may be added.
    out : Path, optional
        A folder for both audits and the result; without it, nothing is written.
    options : Options
        Of all audits.
    overrides : Overrides, optional
        The user's word on sums and mechanisms of the release.
    truth : Release, optional
        The true counts of both: repairs are published from them, and claims scored.
    seed : int
        Of everything that is drawn.
    wanted : sequence of str, optional
        The repairs to try; see `unround.whatif.repairs.REPAIRS`.
    progress : function
        Is told how far it is.
    command : str
        What was typed.
    finish : function
        Adds pages to the folder before anybody sees it.

    Raises
    ------
    InputError
        If the table cannot be joined with the release, or the truth does not fit. Nothing is left behind then.
    """
    if seed < 0:
        raise InputError(f"a seed is a whole number from 0, not {seed}.")
    options = options or Options()
    with _folders(out) as (work, made):
        # 1. Audit the release as it is, and with the table.
        progress("Reading", 0, 1)
        old = Numbers.of(release, spooled(release, work / "release.bin"))
        release = kept(release, old)
        table, new = _aligned(table, release, old, work / "table.bin")
        check_areas(release, table, old, new)
        known = None
        if truth is not None:
            truth, known = _aligned(truth, release, old, work / "truth.bin")
        progress("Reading", 1, 1)
        auditor = _Auditor(work, options, overrides, truth, known, progress, command)
        before = auditor.audit(release, made / BEFORE, "Release alone")
        release, table = _published_differently(release, table, before)
        both = joined(release, table)
        after = auditor.audit(both, made / AFTER, "With the table")
        found = diff(before.path, after.path)
        setting = Setting(release, table, old, new, both, after, found, known, seed)
        if truth is not None:
            check_truth(setting, truth.source)
        # 2. Try the repairs: on what is published where that can be, else from the truth, or a plausible one.
        chosen, refused = repairs(setting, wanted)
        tried, world = _tried(setting, chosen, refused, auditor, before)
        # 3. Rank them.
        told = _told(setting, found, after, options, truth, command, tried, refused, world)
        for side in (BEFORE, AFTER):
            told["diff"][side]["path"] = None if out is None else str(out / side)
        (made / REPORT).write_text(json.dumps(told, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        finish(made, told)
    return WhatIf(told, out)


def _aligned(table: Release, release: Release, old: Numbers, path: Path) -> tuple[Release, Numbers]:
    """Read a table onto disk, under the names of the release."""
    spool = spooled(table, path)
    table = aligned(_from(table, spool), spool.areas, release, old.spool.areas)
    again = spooled(table, path.with_suffix(".aligned"))
    numbers = Numbers.of(table, again)
    return kept(table, numbers), numbers


def _from(release: Release, spool: Spool) -> Release:
    return kept(release, Numbers.of(release, spool))


def _published_differently(release: Release, table: Release, before: AuditFolder) -> tuple[Release, Release]:
    """Say of counts that both have how each was published, where that differs: else one would be taken for the other."""
    own = find_structure(table).mechanisms
    theirs = {one["key"]: mechanism(one["mechanism"]) for one in before.told["columns"]}
    theirs |= {copy: theirs[first] for copy, first in before.told["alias"].items() if first in theirs}
    here = {c.key: how for c, how in zip(table.columns, own, strict=True) if how is not None}
    differ = {key for key, how in here.items() if key in theirs and theirs[key] != how}
    return declared(release, {key: theirs[key] for key in differ}), declared(table, {key: here[key] for key in differ})


@contextmanager
def _folders(out: Path | None) -> Iterator[tuple[Path, Path]]:
    """Lend a folder to work in, and one for the results, which are moved into `out` if all goes well."""
    with tempfile.TemporaryDirectory(prefix="unround-whatif-") as work:
        if out is None:
            made = Path(work) / "made"
            made.mkdir()
            yield Path(work), made
        else:
            with whatif_workshop(out) as made:
                yield Path(work), made


@dataclass
class _Auditor:
    """Runs one audit after the other under the same options."""

    work: Path
    options: Options
    overrides: Overrides | None
    truth: Release | None
    known: Numbers | None
    progress: Stage
    command: str
    number: int = 0

    def audit(self, release: Release, out: Path, name: str, *, score: bool = True) -> AuditFolder:
        """Audit a release into a folder; its stages are called by what it is."""

        def stage(what: str, done: int, total: int) -> None:
            self.progress(f"{name}: {what[:1].lower()}{what[1:]}", done, total)

        truth = self._truth_of(release) if score else None
        return audit(release, out, self.options, overrides=self.overrides, truth=truth, progress=stage, command=self.command)

    def compared(self, before: Path, release: Release, name: str, *, score: bool = True) -> tuple[Diff, AuditFolder]:
        """Audit a release, and compare with another audit; the folder lasts as long as the work."""
        self.number += 1
        folder = self.audit(release, self.work / f"audit{self.number}", name, score=score)
        return diff(before, folder.path), folder

    def _truth_of(self, release: Release) -> Release | None:
        """Return the truth under the names of a release: a column that both tables have stands in it twice."""
        if self.truth is None or self.known is None:
            return None
        own = {column.key: original(column.key) for column in release.columns}
        return renamed(self.truth, self.known, release, own)


def _tried(
    setting: Setting, chosen: Sequence[Repair], refused: dict[str, str], auditor: _Auditor, before: AuditFolder
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Try every repair; return what each leaves, and what is exposed in the simulated world if there is one."""
    found: list[dict[str, Any]] = []
    world: World | None = None
    alone: AuditFolder | None = None
    unrepaired: dict[str, Any] | None = None
    for at, repair in enumerate(chosen):
        auditor.progress("Repairs", at, len(chosen))
        if repair.base is not None and setting.truth is None:
            try:
                if world is None or alone is None or unrepaired is None:
                    world = plausible(setting, auditor.work)
                    alone = auditor.audit(world.release, auditor.work / "world", "Simulated release", score=False)
                    as_is = joined(world.release, world.table)
                    changes, _ = auditor.compared(alone.path, as_is, "Simulated, with the table", score=False)
                    unrepaired = {"areas": world.areas, **_exposed(changes)}
            except InputError as problem:
                refused[repair.name] = f"it needs --truth here; a plausible one cannot be made: {problem}"
                continue
            repaired = repair.applied(setting, world.table, world.truth)
            changes, folder = auditor.compared(alone.path, joined(world.release, repaired), repair.name, score=False)
            found.append(_row(repair, changes, folder, unrepaired, SIMULATED) | {"cost": cost(repair, setting, repaired)})
            continue
        repaired = repair.applied(setting, setting.table, setting.truth)
        changes, folder = auditor.compared(before.path, joined(_told_apart(setting, repair), repaired), repair.name)
        found.append(
            _row(repair, changes, folder, _exposed(setting.diff), EXACT) | {"cost": cost(repair, setting, repaired)}
        )
    auditor.progress("Repairs", len(chosen), len(chosen))
    return ranked(found), unrepaired


def _told_apart(setting: Setting, repair: Repair) -> Release:
    """Return the release with its own mechanisms declared where the repaired table publishes the same count otherwise."""
    keys = {setting.table.columns[at].key: how for at, how in repair.mechanisms(setting).items()}
    known = {key: setting.published_by[key] for key in keys if key in setting.published_by}
    return declared(setting.release, {key: how for key, how in known.items() if how != keys[key]})


def _exposed(found: Diff) -> dict[str, Any]:
    told = found.to_json()
    return {
        "exposure": exposure(found),
        "newly": told["newly"],
        "newly_small": told["by_value"]["1-2"]["newly"],
        "newly_of_known_cells": told["newly_of_known_cells"],
        "now_published_exactly": told["now_published_exactly"],
    }


def _row(repair: Repair, found: Diff, folder: AuditFolder, unrepaired: Mapping[str, Any], method: str) -> dict[str, Any]:
    told = _exposed(found)
    whole = unrepaired["exposure"]
    row = {
        "name": repair.name,
        "sentence": repair.sentence,
        "method": method,
        **told,
        "left": told["exposure"] / whole if whole else None,
        "contradictions": folder.summary["contradictions"],
    }
    if "truth" in folder.summary:
        row["truth"] = {name: folder.summary["truth"][name] for name in ("checked", "wrong")}
    return row


def ranked(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put repairs into order: what leaves the smaller share first; among equals the cheaper one, then by name."""

    def key(row: Mapping[str, Any]) -> tuple[Any, ...]:
        costs = row["cost"]
        return (
            row["left"] if row["left"] is not None else row["exposure"],
            costs["counts_lost"],
            costs["counts_lost_but_in_release"],
            costs["mean_added_error"] if costs["mean_added_error"] is not None else float("inf"),
            row["name"],
        )

    return [{"rank": at, **row} for at, row in enumerate(sorted(rows, key=key), 1)]


def _told(
    setting: Setting,
    found: Diff,
    after: AuditFolder,
    options: Options,
    truth: Release | None,
    command: str,
    tried: list[dict[str, Any]],
    refused: Mapping[str, str],
    world: dict[str, Any] | None,
) -> dict[str, Any]:
    numbers = setting.table_numbers
    return {
        "unround": __version__,
        "command": command,
        "release": setting.release.source,
        "table": setting.table.source,
        "truth": None if truth is None else truth.source,
        "seed": setting.seed,
        "threshold": options.threshold,
        "table_areas": numbers.spool.rows,
        "table_columns": len(setting.table.columns),
        "table_columns_in_release": len(setting.shared),
        "as_it_is": _exposed(found)
        | {"share_of_claims": sum(found.newly().values()) / max(1, sum(after.summary[kind] for kind in CLAIMS))}
        | ({"truth": {k: after.summary["truth"][k] for k in ("checked", "wrong")}} if "truth" in after.summary else {}),
        "weights": {"sureness": SURENESS, "smallness": SMALLNESS},
        "repairs": tried,
        "not_tried": [{"name": name, "why": why} for name, why in refused.items()],
        "simulated": world,
        "notes": setting.notes,
        "diff": found.to_json(),
    }
