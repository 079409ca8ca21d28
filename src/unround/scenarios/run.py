"""START HERE: audit a release without and with a table, then repair the table in every cheap way, and rank what is left."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unround._version import __version__
from unround.differences import Diff, diff
from unround.errors import InputError
from unround.job import AuditFolder
from unround.mechanisms import mechanism
from unround.options import AuditOptions
from unround.output import known_by, output_folder, scratch_folder
from unround.release import Release
from unround.scenarios.repairs import SMALLNESS, SURENESS, repairs
from unround.scenarios.scenario import Scenario, check_areas, check_truth
from unround.scenarios.tables import Numbers, aligned, declared, joined, kept, spooled
from unround.scenarios.trying import Auditing, exposed, tried
from unround.score.summary import CLAIMS
from unround.shown import Shown
from unround.structure import PlanFile, find_structure
from unround.tables.spool import Spool, Stage

BEFORE, AFTER, REPORT, PAGE = "before", "after", "whatif.json", "whatif.html"
OURS = (BEFORE, AFTER, PAGE, REPORT)
"""In the order in which they are put in place."""


Finish = Callable[[Path, Mapping[str, Any]], None]
"""Is given the folder and what was found, before anybody sees them."""


@dataclass(frozen=True, eq=False)
class WhatIf(Shown):
    """What a table would expose, and what each repair of it leaves.

    - `told`: Everything, as plain data; docs/whatif.md tells what each field means.
    - `folder`: Where it was written.
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
    options: AuditOptions | None = None,
    *,
    plan_file: PlanFile | None = None,
    truth: Release | None = None,
    seed: int = 0,
    wanted: Sequence[str] | None = None,
    progress: Stage = lambda *_: None,
    command: str = "",
    finish: Finish = lambda *_: None,
) -> WhatIf:
    """Say what a table would expose of a release, and which repairs of the table leave least.

    Arguments are documented with `unround.whatif`. `wanted` names repairs, see `REPAIRS`; `finish` adds pages to the folder
    before anybody sees it. If it fails, nothing is left behind.
    """
    if seed < 0:
        raise InputError(f"a seed must be a whole number of 0 or more, not {seed}.")
    options = options or AuditOptions()
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
        auditor = Auditing(work, options, plan_file, truth, known, progress, command)
        before = auditor.audit(release, made / BEFORE, "Release alone")
        release, table = _published_differently(release, table, before)
        both = joined(release, table)
        after = auditor.audit(both, made / AFTER, "With the table")
        found = diff(before.path, after.path)
        setting = Scenario(release, table, old, new, both, after, found, known, seed)
        if truth is not None:
            check_truth(setting, truth.source)
        # 2. Try the repairs: on what is published where that can be, else from the truth, or a plausible one.
        chosen, refused = repairs(setting, wanted)
        rows, world = tried(setting, chosen, refused, auditor, before)
        # 3. Rank them.
        told = _told(setting, found, after, options, truth, command, rows, refused, world)
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
    if out is None:
        with scratch_folder("whatif") as work:
            done = work / "done"
            done.mkdir()
            yield work, done
    else:
        with output_folder(out, "whatif", known_by(REPORT, '"repairs"', OURS, "review --more")) as output:
            yield output.work, output.done
            output.publish(OURS)


def _told(
    setting: Scenario,
    found: Diff,
    after: AuditFolder,
    options: AuditOptions,
    truth: Release | None,
    command: str,
    rows: list[dict[str, Any]],
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
        "as_it_is": exposed(found)
        | {"share_of_claims": sum(found.newly().values()) / max(1, sum(after.summary[kind] for kind in CLAIMS))}
        | ({"truth": {k: after.summary["truth"][k] for k in ("checked", "wrong")}} if "truth" in after.summary else {}),
        "weights": {"sureness": SURENESS, "smallness": SMALLNESS},
        "repairs": rows,
        "not_tried": [{"name": name, "why": why} for name, why in refused.items()],
        "simulated": world,
        "notes": setting.notes,
        "diff": found.to_json(),
    }
