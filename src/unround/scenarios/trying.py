"""One audit after the other: with the table as every repair leaves it, and what is exposed each time."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unround.differences import Diff, diff
from unround.errors import InputError
from unround.job import AuditFolder, audit
from unround.options import AuditOptions
from unround.release import Release
from unround.scenarios.repairs import Repair, cost, exposure
from unround.scenarios.scenario import Scenario
from unround.scenarios.tables import Numbers, declared, joined, original, renamed
from unround.scenarios.world import World, plausible
from unround.score.summary import SIZES
from unround.structure import PlanFile
from unround.tables.spool import Stage

EXACT, SIMULATED = "exact", "simulated"
"""How a repair was tried: on what is published; or on counts that were drawn to be plausible."""


@dataclass
class Auditing:
    """Runs one audit after the other under the same options.

    - `work`: A folder for audits that nobody will see.
    - `options`, `plan_file`, `progress`, `command`: Of all of them.
    - `truth`, `known`: The true counts, if there are any, as a release and as numbers.
    """

    work: Path
    options: AuditOptions
    plan_file: PlanFile | None
    truth: Release | None
    known: Numbers | None
    progress: Stage
    command: str

    def audit(self, release: Release, out: Path, name: str, *, score: bool = True) -> AuditFolder:
        """Audit a release into a folder; its stages are called by what it is."""

        def stage(what: str, done: int, total: int) -> None:
            self.progress(f"{name}: {what[:1].lower()}{what[1:]}", done, total)

        truth = self._truth_of(release) if score else None
        return audit(release, out, self.options, plan_file=self.plan_file, truth=truth, progress=stage, command=self.command)

    def compared(self, before: Path, release: Release, name: str, *, score: bool = True) -> tuple[Diff, dict[str, Any]]:
        """Audit a release, and compare with another audit; return that, and the summary."""
        folder = self.audit(release, self.work / "repaired", name, score=score)
        found = diff(before, folder.path), folder.summary
        shutil.rmtree(folder.path)
        return found

    def _truth_of(self, release: Release) -> Release | None:
        """Return the truth under the names of a release: a column that both tables have stands in it twice."""
        if self.truth is None or self.known is None:
            return None
        own = {column.key: original(column.key) for column in release.columns}
        return renamed(self.truth, self.known, release, own)


@dataclass(frozen=True, eq=False)
class _Simulated:
    """A plausible world, what the release alone gives away in it, and the table as it is besides."""

    world: World
    alone: AuditFolder
    changes: Diff

    @classmethod
    def of(cls, setting: Scenario, auditing: Auditing) -> _Simulated:
        world = plausible(setting, auditing.work)
        alone = auditing.audit(world.release, auditing.work / "world", "Simulated release", score=False)
        both = joined(world.release, world.table)
        return cls(world, alone, auditing.compared(alone.path, both, "Simulated, with the table", score=False)[0])

    def to_json(self) -> dict[str, Any]:
        """Return what is exposed there, for as many areas as there are."""
        return {"areas": self.world.areas, "times": self.world.times, **exposed(self.changes, self.world.scale)}


def tried(
    setting: Scenario, chosen: Sequence[Repair], refused: dict[str, str], auditing: Auditing, before: AuditFolder
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Try every repair: on what is published where that can be, else from the truth, or a plausible one.

    What each repair leaves, in order; and what is exposed in the simulated world, if one was needed. A repair for
    which none can be made is added to `refused`.
    """
    rows: list[dict[str, Any]] = []
    simulated: _Simulated | None = None
    whole = exposure(setting.diff)
    for at, repair in enumerate(chosen):
        auditing.progress("Repairs", at, len(chosen))
        if repair.base is None or setting.truth is not None:
            repaired = repair.applied(setting, setting.table, setting.truth)
            both = joined(_told_apart(setting, repair), repaired)
            changes, summary = auditing.compared(before.path, both, repair.name)
            rows.append(_row(repair, changes, summary, whole, EXACT) | {"cost": cost(repair, setting, repaired)})
            continue
        try:
            simulated = simulated or _Simulated.of(setting, auditing)
        except InputError as problem:
            refused[repair.name] = f"it needs --truth, because plausible true counts cannot be drawn: {problem}"
            continue
        world = simulated.world
        repaired = repair.applied(setting, world.table, world.truth)
        changes, summary = auditing.compared(simulated.alone.path, joined(world.release, repaired), repair.name, score=False)
        row = _row(repair, changes, summary, exposure(simulated.changes), SIMULATED, world.scale)
        rows.append(row | {"cost": cost(repair, setting, repaired)})
    auditing.progress("Repairs", len(chosen), len(chosen))
    return ranked(rows), simulated.to_json() if simulated is not None else None


def _told_apart(setting: Scenario, repair: Repair) -> Release:
    """Return the release with its own mechanisms declared where the repaired table publishes the same count otherwise."""
    keys = {setting.table.columns[at].key: how for at, how in repair.mechanisms(setting).items()}
    known = {key: setting.published_by[key] for key in keys if key in setting.published_by}
    return declared(setting.release, {key: how for key, how in known.items() if how != keys[key]})


def exposed(found: Diff, scale: float = 1.0) -> dict[str, Any]:
    """Return what is exposed; of simulated areas, scaled to as many as there are. The later audit may be gone by now."""
    import polars as pl

    small = pl.col("class") == [name for _, name in SIZES].index("1-2")

    def scaled(numbers: Mapping[str, int]) -> dict[str, int]:
        return {kind: round(scale * number) for kind, number in numbers.items()}

    return {
        "exposure": round(scale * exposure(found)),
        "newly": scaled(found.newly()),
        "newly_small": scaled(found.newly(small)),
        "newly_of_known_cells": scaled(found.newly(pl.col("known"))),
        "now_published_exactly": round(scale * sum(found.laid_open.values())),
    }


def _row(
    repair: Repair, found: Diff, summary: Mapping[str, Any], whole: int, method: str, scale: float = 1.0
) -> dict[str, Any]:
    """Return what a repair leaves of an exposure."""
    row = {
        "name": repair.name,
        "sentence": repair.sentence,
        "method": method,
        **exposed(found, scale),
        "left": exposure(found) / whole if whole else None,
        "contradictions": summary["contradictions"],
    }
    return row | ({"truth": score_of(summary)} if "truth" in summary else {})


def score_of(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return how many claims could be checked against the truth, and how many were wrong."""
    return {name: summary["truth"][name] for name in ("checked", "wrong")}


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
