"""A draft as it is: audited, alone or beside other tables; what readers can learn from it, and what is not settled."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from unround.audits.keys import Keys
from unround.audits.model import NoSums, NothingToInfer
from unround.audits.selfcheck import FAILED
from unround.checks import check_spool
from unround.checks.estimate import COUNTS
from unround.checks.families import FITS, UNTESTED, worst
from unround.errors import InputError
from unround.job import AuditFolder, audit
from unround.job.folder import REVIEWED
from unround.mechanisms import Exact, Mechanism
from unround.options import THRESHOLD, AuditOptions
from unround.prior import Prior
from unround.release import Column, Entry, Release
from unround.reviews.decision import CheckResults, Unsettled, left_open
from unround.reviews.exposure import Exposure, exposure_of, with_findings
from unround.reviews.layout import Origin, opened, value_places
from unround.reviews.numbers import Printed, questions_beside
from unround.reviews.policy import Policy
from unround.reviews.questions import columns_left, questions
from unround.reviews.table import ReviewedTable
from unround.reviews.together import Held, Known, KnownBefore, Together
from unround.tables.spool import Stage, survey
from unround.tables.spreadsheet import Workbook, is_spreadsheet

BEFORE = "before"
"""The folder of the audit of what is out already."""


@dataclass(frozen=True)
class DraftTable:
    """A table that may be published.

    - `release`: What was read.
    - `name`: What it is called in a list of tables.
    - `files`, `origin`: The files that it was read from, and where it stands in them.
    - `unread`: What stands beside it in its file, and was not read.
    - `unprinted`: The keys of counts that nobody prints, and that only link others: what is known of them does not count.
    """

    release: Release
    name: str = ""
    files: tuple[Path, ...] = ()
    origin: Origin | None = None
    unread: tuple[Unsettled, ...] = ()
    unprinted: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class AuditedDraft:
    """The draft as it is: audited, and what readers can learn from it."""

    table: ReviewedTable
    exposure: Exposure
    ground: CheckResults
    prior: Prior
    keys: Keys | None
    folder: AuditFolder | None
    check: dict[str, Any]
    self_check: dict[str, Any] | None
    notes: list[str]
    account: tuple[Entry, ...] = ()


@dataclass(frozen=True)
class Auditing:
    """How the draft is audited."""

    policy: Policy
    progress: Stage = lambda *_: None
    command: str = ""

    def audit(self, release: Release, out: Path, truth: Release | None) -> AuditFolder:
        """Audit a release into a folder."""
        options = AuditOptions(threshold=min(THRESHOLD, self.policy.least_probability))
        return audit(release, out, options, truth=truth, progress=self.progress, command=self.command)

    def draft(
        self, release: Release, work: Path, made: Path, truth: Release | None, own: frozenset[str] | None
    ) -> AuditedDraft:
        """Audit the draft, and work out what readers can learn, by the highest probability found."""
        try:
            if release.obstacle:
                raise NoSums(release.obstacle)
            folder = self.audit(release, made / REVIEWED, truth)
        except NothingToInfer as problem:
            shutil.rmtree(made / REVIEWED, ignore_errors=True)
            return self._without_sums(release, work, problem)
        table, summary = ReviewedTable.of_audit(folder, own), folder.summary
        self.progress("Weighing under every prior", 0, 1)
        exposure = exposure_of(table, self.policy.least_probability, folder.prior, folder.keys, lowest=True)
        exposure = with_findings(exposure, table, folder)
        self.progress("Weighing under every prior", 1, 1)
        predicted, check = summary.get("selfcheck"), summary["check"]
        failed = sum(listed["verdict"] == FAILED for listed in predicted["tables"]) if predicted else 0
        contradictions = max(exposure.contradictions, summary["contradictions"])
        open_ = _unsettled(
            release, (*table.columns, *(release.columns[release.index[key]] for key in folder.schema["alias"]))
        )
        open_ += [
            Unsettled(listed["what"], listed["why"], listed["settle"])
            for listed in summary["unsettled"]
            if "check" not in listed  # a policy decides on these, or the account has named them
        ]
        open_ += questions(table)
        ground = CheckResults(judged_verdict(check), contradictions, failed, exposure.unknown, unsettled=tuple(open_))
        notes = list(summary["notes"])
        if table.rounded_together.any():
            notes.append(
                "All sums of rounded counts add up exactly: counts were rounded together, or totals added up afterwards. "
                "What such sums make likely is not counted."
            )
        wrong = summary["truth"]["wrong"]["proved"] if "truth" in summary else 0
        if wrong:
            ground = replace(ground, contradictions=ground.contradictions + wrong)
            notes.append(f"{wrong:,} proved claims are wrong by the truth: a documented fact does not hold.")
        return AuditedDraft(
            table, exposure, ground, folder.prior, folder.keys, folder, check, predicted, notes, release.account
        )

    def _without_sums(self, release: Release, work: Path, problem: NothingToInfer) -> AuditedDraft:
        """Take in a draft whose sums tell nothing: only what is printed unrounded is known of it."""
        spool, structure = survey(release, work, self.progress)
        checked = check_spool(release, spool, structure, self.progress)
        how = [known or Exact() if release.sumless else known for known in structure.mechanisms]  # which tells most
        used = [c for c, known in enumerate(how) if known is not None and c not in structure.alias]
        mechanisms: list[Mechanism] = [known for c in used if (known := how[c]) is not None]
        columns, counts = tuple(structure.columns[c] for c in used), spool.counts(0, spool.rows)[:, used]
        table = ReviewedTable(spool.areas, release.areas, columns, tuple(mechanisms), (), np.ascontiguousarray(counts))
        exposure = exposure_of(table, self.policy.least_probability)
        said = str(problem)
        notes = [*release.notes, *structure.notes, f"{said[:1].upper()}{said[1:]}".split(" `unround")[0]]
        check = checked.to_json()
        open_ = _unsettled(release, (*columns, *(structure.columns[c] for c in structure.alias)))
        open_ += questions(table)
        for judged in structure.figures:
            if judged.verdict != "recomputable" and not judged.left_out:
                what = judged.figure.label or judged.figure.name
                settle = "hide it, too, where a count that it is of is hidden"
                tells = "tells" if judged.is_evidence else "may tell"
                why = f"{what} {tells} something of the counts, and is used beside sums only: {judged.why.rstrip('.')}"
                open_.append(Unsettled.asked(what, why, settle))
        notes += [release.sumless] if release.sumless else []
        no_sums = isinstance(problem, NoSums)
        ground = CheckResults(judged_verdict(check), no_sums=no_sums, sumless=bool(release.sumless), unsettled=tuple(open_))
        return AuditedDraft(table, exposure, ground, Prior.flat(), None, None, check, None, notes)

    def known(
        self, draft: AuditedDraft, beside: Together | None, alone: Sequence[AuditedDraft], made: Path
    ) -> tuple[KnownBefore | None, AuditFolder | None]:
        """Return what is known without the draft, from what is out already or from tables alone; and the audit of it."""
        if beside is None:
            return None, None
        tables: list[Known] = [
            (audited.table, (audited.exposure,), names) for audited, names in zip(alone, beside.names, strict=False)
        ]
        folder = None
        if beside.before is not None and not alone:
            try:
                folder = self.audit(beside.before, made / BEFORE, None)
            except InputError:  # nothing can be inferred from it alone
                shutil.rmtree(made / BEFORE, ignore_errors=True)
                return None, None
            older = ReviewedTable.of_audit(folder)
            # Under the prior of its audit; and under one that is fitted as for repaired tables, which are compared with it.
            least = self.policy.least_probability
            tables.append((older, tuple(exposure_of(older, least, prior) for prior in (folder.prior, None)), {}))
        known = KnownBefore(tuple(tables))
        claims = int(known.mask(draft.table, draft.exposure).sum())
        if claims:
            whose = "the tables alone" if alone else "the earlier release alone"
            draft.notes.append(f"{claims:,} claims follow from {whose}: they are not counted here.")
        return known, folder


def questions_of_files(drafts: Sequence[DraftTable], known: Sequence[ReviewedTable]) -> list[Unsettled]:
    """Ask about everything in the files of some drafts that was not read as a count, and is not harmless for a reason."""
    files: dict[Path, dict[str | None, set[tuple[int, int]]] | None] = {}
    tables, asked = [as_printed(draft, table) for draft, table in zip(drafts, known, strict=True)], list[Unsettled]()
    for draft in drafts:
        if draft.origin is None:
            files |= dict.fromkeys(draft.files)
            continue
        try:
            path, table, description = opened(draft.origin)
        except InputError:  # a known format, which says itself where its counts stand
            files |= dict.fromkeys(draft.files)
            continue
        sheet = (description.sheet or draft.origin.sheet or Workbook(path).names[0]) if is_spreadsheet(path) else None
        columns, width = value_places(table, description), len(table.names)
        cells = {(table.number(row), at) for row in range(table.cells.height) for at in columns}
        cells |= {(row, at) for row in description.percentages for at in range(width)}
        if (sheets := files.setdefault(path, {})) is not None:
            sheets.setdefault(sheet, set()).update(cells)
        asked += columns_left(table, description, columns, Printed(tables).protects)
    return [*asked, *questions_beside(files, tables)]


def as_printed(draft: DraftTable, known: ReviewedTable) -> ReviewedTable:
    """Return everything that a draft prints and hides, also counts that were published nobody knows how."""
    held, how = (
        Held.of(draft.release),
        {column.key: how for column, how in zip(known.columns, known.mechanisms, strict=True)},
    )
    places = [at for at, column in enumerate(draft.release.columns) if column.is_in_file]
    columns = tuple(draft.release.columns[at] for at in places)
    mechanisms = tuple(how.get(column.key, column.mechanism or Exact()) for column in columns)
    return ReviewedTable(
        held.areas, draft.release.areas, columns, mechanisms, (), np.ascontiguousarray(held.counts[:, places])
    )


def with_account(draft: AuditedDraft, drafts: Sequence[DraftTable], beside: Together | None, alone: bool) -> AuditedDraft:
    """Add what was not read, or is not used beside other tables; of a draft that is reviewed `alone`, what its file says."""
    account = tuple(entry for table in drafts for entry in table.release.account)
    more = [open_ for table in drafts for open_ in table.unread]
    known = {open_.what for open_ in draft.ground.unsettled}  # some texts are asked about where they were read
    if alone:
        asked = questions_of_files(drafts, [draft.table])
        more += [open_ for open_ in asked if open_.what not in known]
    if beside is not None:
        more += left_open(account)
        settle = "if one leaves out people that the other counts, the difference is their number: print one"
        more += [Unsettled.asked(f"difference {at}", why, settle) for at, why in enumerate(beside.differ, 1)]
        if shown := beside.shown:
            named = ", ".join(shown[:5]) + (" …" if len(shown) > 5 else "")
            why = f"one table prints what another one hides: {named} ({len(shown):,} in all)"
            more.append(Unsettled.asked("hidden here, printed there", why, "hide them in both, or print them in both"))
        figures = sum(len(table.release.figures) for table in drafts)
        if figures and len(drafts) == 1:
            why = f"{figures:,} rates, means or medians of the draft are not used beside other tables"
            more.append(Unsettled.asked("figures", why, "review the draft without --earlier, too"))
    ground = replace(draft.ground, unsettled=(*draft.ground.unsettled, *more))
    return replace(draft, ground=ground, account=account)


def own_keys(draft: DraftTable) -> frozenset[str] | None:
    """Return the keys of the counts that a draft prints or hides; None for all."""
    return frozenset({column.key for column in draft.release.columns} - draft.unprinted) if draft.unprinted else None


def share_nothing(drafts: Sequence[DraftTable]) -> bool:
    """Whether no two tables have an area in common, so that there is nothing to be told together."""
    seen: set[str] = set()
    for draft in drafts:
        names = {
            str(name).strip().lower()
            for block in draft.release.blocks()
            for axis in (*draft.release.areas, "region_name")
            if axis in block.areas.columns
            for name in block.areas[axis].to_list()
        }
        if names & seen:
            return False
        seen |= names
    return True


def judged_verdict(check: Mapping[str, Any]) -> str:
    """Return the verdict of the mechanism check, without families of sums that all add up exactly.

    Counts that were rounded together, or totals that were added up afterwards, depart from independent rounding; but such
    sums tell nothing, and are not used.
    """
    families = [family for family in check["families"] if set(map(int, family["observed"])) != {0}]
    if len(families) == len(check["families"]):
        return str(check["verdict"])
    verdict = worst([family["verdict"] for family in families]) if families else UNTESTED
    return verdict if verdict != FITS or any(not family["family"].startswith(COUNTS) for family in families) else UNTESTED


def _unsettled(release: Release, used: Sequence[Column]) -> list[Unsettled]:
    """Return what of a table was not understood, or not used."""
    keys = {column.key for column in used}
    matters = left_open(release.account)
    left = [column.key for column in release.columns if column.key not in keys and column.is_in_file]
    if left:
        named = f"column {left[0]}" if len(left) == 1 else f"{len(left):,} columns ({', '.join(left[:3])} …)"
        why = f"{named} {'is' if len(left) == 1 else 'are'} not used: how the counts were published is not known"
        matters.append(Unsettled(named, why, "say how: --mechanism, --base or --exact, or `mechanism` in the description"))
    return matters
