"""START HERE: the whole review, from a draft table to a decision, with reasons, remedies and a page to sign."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from unround._version import __version__
from unround.audits.keys import Keys
from unround.audits.model import NoSums, NothingToInfer
from unround.audits.selfcheck import FAILED
from unround.checks import check_spool
from unround.checks.estimate import COUNTS
from unround.checks.families import FITS, UNTESTED, worst
from unround.differences import diff
from unround.errors import InputError
from unround.evidence.block import NO_UPPER_BOUND
from unround.job import AuditFolder, audit
from unround.job.folder import REVIEW, REVIEWED
from unround.mechanisms import Mechanism
from unround.options import THRESHOLD, AuditOptions
from unround.output import known_by, output_folder, write_json, write_whole
from unround.prior import Prior
from unround.release import NOT_AVAILABLE, Column, Release
from unround.release import Entry as AccountEntry
from unround.reviews.decision import DECISIONS as DECISIONS_IN_ORDER
from unround.reviews.decision import (
    EXIT_CODES,
    Ground,
    Judgement,
    Unsettled,
    decide,
    judge,
    left_open,
    reason_in_words,
    unsettled_of,
)
from unround.reviews.exposure import Exposure, exposure_of, with_findings
from unround.reviews.layout import Origin, write_back
from unround.reviews.policy import KINDS, RANGE, STOP, UNDECIDED, Policy, counts_in_words, limit_in_words, policy_in_words
from unround.reviews.questions import questions
from unround.reviews.record import (
    CELLS,
    DECISIONS,
    Entry,
    Exceptions,
    action_for,
    apply_exceptions,
    apply_ignored,
    cells_to_act_on,
    claims_under,
    example_of,
    fingerprint,
    read_decisions,
    read_entries,
    write_workbook,
    written,
)
from unround.reviews.table import ReviewedTable
from unround.reviews.together import Known, KnownBefore, Together, original, repeats, together
from unround.reviews.trying import EXACT, Excused, Setting, Worlds, given_truth, plausible_worlds, try_repairs
from unround.score.summary import SIZES
from unround.shown import Shown
from unround.small_files import sha256_of
from unround.tables.spool import Stage, survey

AUDIT, BEFORE, REPORT, PAGE = REVIEWED, "before", REVIEW, "review.html"
TABLES, TOGETHER = "tables", "together"
"""Of several tables: the folder of the reviews of each, and that of all together."""

REPAIRED = "repaired"
"""The folder of the draft with a repair, in its own layout."""

OURS = (AUDIT, BEFORE, TABLES, TOGETHER, REPAIRED, CELLS, DECISIONS, PAGE, REPORT)
"""In the order in which they are put in place."""

DRAWS, FEWEST_DRAWS = ((5_000, 5), (20_000, 3)), 2
"""Up to how many counts a repair that draws random numbers is published how often; and how often in larger tables."""

MOST_SHOWN, MOST_SHOWN_COLUMNS = 3_000, 80
"""Cells of the table, and columns, that the page shows as a table."""

LONG = 600
"""Letters of a contradiction that are told; contradictions.csv has them all."""

MOST_CELLS = 10_000
"""Cells to act on that JSON lists; the workbook has them all."""

Finish = Callable[[Path, Mapping[str, Any]], None]
"""Is given the folder and what was found, before anybody sees them."""


@dataclass(frozen=True)
class ReviewOptions:
    """What the user decides about a review, besides the policy.

    - `repairs`: The repairs to try; all, unless given.
    - `accept`, `ignore`: Cells that are accepted, and what is left aside though it is not settled; and why.
    - `reviewer`: Who says so.
    - `apply`: The repair that is written back in the layout of the draft.
    - `seed`, `draws`: Of all random numbers; how often a repair that draws some is published, see `draws_of`.
    """

    repairs: tuple[str, ...] | None = None
    accept: tuple[Entry, ...] = ()
    ignore: tuple[Entry, ...] = ()
    reviewer: str = ""
    seed: int = 0
    draws: int | None = None
    apply: str = ""

    def draws_of(self, counts: int) -> int:
        """Return how often to publish a table of so many counts: fewer times if it is large, unless the user says."""
        return self.draws or next((times for most, times in DRAWS if counts <= most), FEWEST_DRAWS)

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise InputError(f"a seed must be a whole number of 0 or more, not {self.seed}.")
        if self.draws is not None and not 1 <= self.draws <= 100:
            raise InputError(f"the number of draws must be from 1 to 100, not {self.draws}.")


@dataclass(frozen=True, eq=False)
class Review(Shown):
    """The decision on a draft table, and everything that led to it.

    - `told`: Everything, as plain data; docs/review.md tells what each field means.
    - `folder`: Where it was written.
    """

    told: dict[str, Any] = field(repr=False)
    folder: Path | None

    @property
    def decision(self) -> str:
        """What to do: "publish", "undecided", "revise" or "stop"."""
        return str(self.told["decision"])

    @property
    def exit_code(self) -> int:
        """The exit code of the command: 0, 4, 5 or 6."""
        return EXIT_CODES[self.decision]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return self.told


@dataclass(frozen=True, eq=False)
class _Draft:
    """The draft as it is: audited, and what readers can learn from it."""

    table: ReviewedTable
    exposure: Exposure
    ground: Ground
    prior: Prior
    keys: Keys | None
    folder: AuditFolder | None
    check: dict[str, Any]
    self_check: dict[str, Any] | None
    notes: list[str]
    account: tuple[AccountEntry, ...] = ()


@dataclass(frozen=True)
class _Settled:
    """What is left unsettled, what a reviewer left aside, and everything on record."""

    unsettled: list[Unsettled]
    ignored: list[dict[str, Any]]
    lines: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Draft:
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


def review(
    drafts: Release | Sequence[Draft],
    out: Path | None,
    policy: Policy,
    options: ReviewOptions | None = None,
    *,
    truth: Release | None = None,
    earlier: Sequence[Release] = (),
    joint: Draft | None = None,
    progress: Stage = lambda *_: None,
    command: str = "",
    finish: Finish = lambda *_: None,
    now: datetime | None = None,
) -> Review:
    """Decide whether one draft table, or several together, may be published.

    Arguments are documented with `unround.review`. `joint` is all drafts as one, where it is known better than by the names
    of their counts what they have in common. `finish` adds pages to the folder before anybody sees it. If it fails,
    nothing is left behind.
    """
    given = [Draft(drafts)] if isinstance(drafts, Release) else list(drafts)
    case = _Case(policy, options or ReviewOptions(), earlier, progress, command, now or datetime.now(UTC))
    with _folders(out) as (work, made):
        if len(given) == 1 and joint is None:
            told, _ = case.judged(given, truth, work, made, out)
        else:
            if truth is not None:
                raise InputError("true counts are those of one table: review the tables one by one with --truth.")
            told = case.several(given, joint, work, made, out)
            write_json(made / REPORT, told)
        if case.options.apply:
            _check_repaired(told.get("tables", [told]))
        finish(made, told)
    return Review(told, out)


@dataclass(frozen=True)
class _Case:
    """What is the same for all tables of a review."""

    policy: Policy
    options: ReviewOptions
    earlier: Sequence[Release]
    progress: Stage
    command: str
    now: datetime

    def judged(
        self,
        drafts: Sequence[Draft],
        truth: Release | None,
        work: Path,
        made: Path,
        out: Path | None,
        alone: Sequence[_Draft] = (),
    ) -> tuple[dict[str, Any], _Draft]:
        """Review one draft, or several as one, into a folder; what each of them tells `alone` does not count again."""
        policy, options = self.policy, self.options
        older, (noted, entries) = read_decisions(out), read_entries(out)
        # 1. Audit the draft as it is, beside what is already out; what can readers learn?
        release, beside = drafts[0].release, None
        if twice := {one.source for one in self.earlier} & {one.release.source for one in drafts if one.files}:
            raise InputError(f"{twice.pop()} is given twice: as a draft, and as what is out already.")
        if self.earlier or len(drafts) > 1:
            named = [replace(one.release, source=one.name or one.release.source) for one in drafts]  # sheets of one file
            beside = together(named, self.earlier, truth)
            release, truth = beside.all, beside.truth
        auditing = _Auditing(policy, self.progress, self.command)
        draft = auditing.draft(release, work, made, truth, _own(drafts[0]) if beside is None else beside.own)
        draft = _with_account(draft, drafts, beside)
        known, before = auditing.known(draft, beside, alone, made)
        # 2. What has a reviewer accepted?
        stamp = _stamp(draft.table, [path for one in drafts for path in one.files], options, self.now)
        if noted and noted != stamp["table"]:
            entries = []  # they are about another version of the table, and on record there
            draft.notes.append(
                f"{CELLS} of the last review was about another version of the table: its comments are not used."
            )
        claims = claims_under(policy, draft.exposure)
        exceptions = apply_exceptions(draft.table, claims, older, (*entries, *options.accept), stamp)
        # 3. Hold it against the policy.
        excused = Excused(frozenset(exceptions.accepted), known, drafts[0].unprinted)
        mask = excused.mask(draft.table, draft.exposure)
        judgement = judge(policy, draft.exposure, draft.ground, draft.table.published, mask)
        open_ = unsettled_of(draft.ground, judgement, policy)
        settled = _Settled(*apply_ignored(open_, exceptions.lines, options.ignore, stamp))
        # 4. Try the repairs.
        draws = options.draws_of(draft.table.published)
        setting = Setting(draft.table, draft.exposure, draft.ground, judgement, policy, excused, options.seed, draws)
        rows, refused, worlds, tables = _repairs(setting, draft, options, truth, work, self.progress)
        # 5. Decide, and write it down.
        told = _told(draft, setting, exceptions, settled, (rows, refused, worlds), options, stamp, self.now, self.command)
        told["name"] = drafts[0].name if len(drafts) == 1 else TOGETHER
        told["diff"] = _news(before, draft.folder, out)
        if options.apply and not judgement.within:
            told["repaired"] = _written_back(drafts, draft, rows, tables, options.apply, made, beside)
        _write(made, told, settled.lines)
        return told, draft

    def several(
        self, drafts: Sequence[Draft], joint: Draft | None, work: Path, made: Path, out: Path | None
    ) -> dict[str, Any]:
        """Review several drafts, each alone and all of them together: one decision, that of the worst."""
        tables: list[dict[str, Any]] = []
        alone: list[_Draft] = []
        for at, draft in enumerate([*drafts, None], 1):
            name = f"{TABLES}/{at}" if draft is not None else TOGETHER
            scratch = work / name
            scratch.mkdir(parents=True)
            (made / name).mkdir(parents=True)
            called = draft.name if draft is not None else TOGETHER
            options = replace(self.options, accept=_of(called, self.options.accept), ignore=_of(called, self.options.ignore))
            if draft is None:
                options = replace(options, apply="")
            older = None if out is None else out / name
            case = replace(self, options=options)
            if draft is not None:
                told, found = case.judged([draft], None, scratch, made / name, older)
                alone.append(found)
            else:
                try:
                    told, _ = case.judged(
                        [joint] if joint else drafts, None, scratch, made / name, older, () if joint else alone
                    )
                except InputError as problem:
                    shutil.rmtree(made / name, ignore_errors=True)
                    apart = f"What the tables tell together was not worked out: {problem}"
                    break
            tables.append(told | {"folder": name})
        else:
            apart = ""
        lost = [entry.cell for entry in (*self.options.accept, *self.options.ignore) if "|" not in entry.cell]
        if lost:
            raise InputError(f"{lost[0]!r} does not say of which table: write TABLE|{lost[0]}, as in “{drafts[0].name}|…”.")
        return _told_together(tables, drafts, apart, self)


def _own(draft: Draft) -> frozenset[str] | None:
    """Return the keys of the counts that a draft prints or hides; None for all."""
    return frozenset({column.key for column in draft.release.columns} - draft.unprinted) if draft.unprinted else None


def _of(name: str, entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return what is said about one of several tables: `TABLE|CELL`."""
    mark = f"{name}|"
    return tuple(replace(one, cell=one.cell.removeprefix(mark)) for one in entries if one.cell.startswith(mark))


def _with_account(draft: _Draft, drafts: Sequence[Draft], beside: Together | None) -> _Draft:
    """Add what was not read, or is not used beside other tables."""
    account = tuple(entry for one in drafts for entry in one.release.account)
    more = [open_ for one in drafts for open_ in one.unread]
    if beside is not None:
        more += left_open(account)
        settle = (
            'if one leaves out people that the other counts, the difference is their number: print one; or --ignore "{}"'
        )
        more += [
            Unsettled(place := f"difference {at}", why, settle.format(place)) for at, why in enumerate(beside.differ, 1)
        ]
        if shown := beside.shown:
            named = ", ".join(shown[:5]) + (" …" if len(shown) > 5 else "")
            why = f"one table prints what another one hides: {named} ({len(shown):,} in all)"
            settle = 'hide them in both, or print them in both; or --ignore "hidden here, printed there" --because "…"'
            more.append(Unsettled("hidden here, printed there", why, settle))
        figures = sum(len(one.release.figures) for one in drafts)
        if figures and len(drafts) == 1:
            why = f"{figures:,} rates, means or medians of the draft are not used beside other tables"
            more.append(
                Unsettled("figures", why, 'review the draft without --earlier too, then --ignore figures --because "…"')
            )
    ground = replace(draft.ground, unsettled=(*draft.ground.unsettled, *more))
    return replace(draft, ground=ground, account=account)


def _told_together(tables: list[dict[str, Any]], drafts: Sequence[Draft], apart: str, case: _Case) -> dict[str, Any]:
    """Put the reviews of several tables into one: the decision is that of the worst."""
    unsettled = [one | {"what": f"{told['name']}|{one['what']}"} for told in tables for one in told["unsettled"]]
    if apart:
        settle = (
            'describe the tables with the same areas and axes; or, if they are about other people, --ignore "together|apart"'
        )
        aside = [one for one in _of(TOGETHER, case.options.ignore) if one.cell.strip().lower() == "apart"]
        if not _share_nothing(drafts) and not aside:
            unsettled.append(Unsettled("together|apart", apart, settle).to_json())
    decisions = [told["decision"] for told in tables] + [UNDECIDED] * bool(unsettled)
    decision = max(decisions, key=DECISIONS_IN_ORDER.index)
    return {
        "decision": decision,
        "exit_code": EXIT_CODES[decision],
        "tables": tables,
        "unsettled": unsettled,
        "reasons": [one | {"table": told["name"]} for told in tables for one in told["reasons"]],
        "cells": [one | {"table": told["name"]} for told in tables for one in told["cells"]][:MOST_CELLS],
        "cells_to_act_on": sum(told["cells_to_act_on"] for told in tables),
        "policy": tables[0]["policy"],
        "limits": tables[0]["limits"],
        "exceptions": [one | {"table": told["name"]} for told in tables for one in told["exceptions"]],
        "ignored": [one | {"table": told["name"]} for told in tables for one in told["ignored"]],
        "files": list({one["sha256"]: one for told in tables[: len(drafts)] for one in told["files"]}.values()),
        "reviewer": case.options.reviewer,
        "date": case.now.date().isoformat(),
        "seed": case.options.seed,
        "unround": __version__,
        "command": case.command,
        "notes": [apart] if apart else [],
    }


def _share_nothing(drafts: Sequence[Draft]) -> bool:
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


@contextmanager
def _folders(out: Path | None) -> Iterator[tuple[Path, Path]]:
    """Lend a folder to work in, and one for the results, which are moved into `out` if all goes well."""
    if out is None:
        with tempfile.TemporaryDirectory(prefix="unround-review-") as work:
            done = Path(work) / "done"
            done.mkdir()
            yield Path(work), done
    else:
        with output_folder(out, "review", known_by(REPORT, '"decision"', OURS, "review")) as output:
            yield output.work, output.done
            output.publish(OURS)


# -- the draft --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Auditing:
    """How the draft is audited."""

    policy: Policy
    progress: Stage
    command: str

    def audit(self, release: Release, out: Path, truth: Release | None) -> AuditFolder:
        """Audit a release into a folder."""
        options = AuditOptions(threshold=min(THRESHOLD, self.policy.least_probability))
        return audit(release, out, options, truth=truth, progress=self.progress, command=self.command)

    def draft(self, release: Release, work: Path, made: Path, truth: Release | None, own: frozenset[str] | None) -> _Draft:
        """Audit the draft, and work out what readers can learn, by the highest probability found."""
        try:
            if release.obstacle:
                raise NoSums(release.obstacle)
            folder = self.audit(release, made / AUDIT, truth)
        except NothingToInfer as problem:
            shutil.rmtree(made / AUDIT, ignore_errors=True)
            return self._without_sums(release, work, problem)
        table, summary = ReviewedTable.of_audit(folder, own), folder.summary
        self.progress("Weighing under every prior", 0, 1)
        exposure = exposure_of(table, self.policy.least_probability, folder.prior, folder.keys, lowest=True)
        exposure = with_findings(exposure, table, folder)
        self.progress("Weighing under every prior", 1, 1)
        predicted, check = summary.get("selfcheck"), summary["check"]
        failed = sum(one["verdict"] == FAILED for one in predicted["tables"]) if predicted else 0
        contradictions = max(exposure.contradictions, summary["contradictions"])
        open_ = _unsettled(release, (*table.columns, *(release.columns[release.index[key]] for key in folder.told["alias"])))
        open_ += [
            Unsettled(one["what"], one["why"], one["settle"])
            for one in summary["unsettled"]
            if "check" not in one  # a policy decides on these, or the account has named them
        ]
        open_ += questions(table)
        ground = Ground(judged_verdict(check), contradictions, failed, exposure.unknown, unsettled=tuple(open_))
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
        return _Draft(table, exposure, ground, folder.prior, folder.keys, folder, check, predicted, notes, release.account)

    def _without_sums(self, release: Release, work: Path, problem: NothingToInfer) -> _Draft:
        """Take in a draft whose sums tell nothing: only what is printed unrounded is known of it."""
        spool, structure = survey(release, work, self.progress)
        checked = check_spool(release, spool, structure, self.progress)
        used = [c for c, how in enumerate(structure.mechanisms) if how is not None and c not in structure.alias]
        mechanisms: list[Mechanism] = [how for c in used if (how := structure.mechanisms[c]) is not None]
        columns, counts = tuple(structure.columns[c] for c in used), spool.counts(0, spool.rows)[:, used]
        table = ReviewedTable(
            spool.areas, release.areas, columns, tuple(mechanisms), (), (), (), np.ascontiguousarray(counts)
        )
        exposure = exposure_of(table, self.policy.least_probability)
        said = str(problem)
        notes = [*release.notes, *structure.notes, f"{said[:1].upper()}{said[1:]}".split(" `unround")[0]]
        check = checked.to_json()
        open_ = _unsettled(release, (*columns, *(structure.columns[c] for c in structure.alias)))
        open_ += questions(table)
        for judged in structure.figures:
            if judged.is_evidence:
                what, settle = (
                    judged.figure.label or judged.figure.name,
                    "hide it, too, where a count that it is of is hidden",
                )
                why = f"{what} tells something of the counts, and is used beside sums only: {judged.why.rstrip('.')}"
                open_.append(Unsettled(what, why, f'{settle}; or leave it aside: --ignore "{what}" --because "…"'))
        notes += [release.sumless] if release.sumless else []
        no_sums = isinstance(problem, NoSums)
        ground = Ground(judged_verdict(check), no_sums=no_sums, sumless=bool(release.sumless), unsettled=tuple(open_))
        return _Draft(table, exposure, ground, Prior.flat(), None, None, check, None, notes, release.account)

    def known(
        self, draft: _Draft, beside: Together | None, alone: Sequence[_Draft], made: Path
    ) -> tuple[KnownBefore | None, AuditFolder | None]:
        """Return what is known without the draft, from what is out already or from tables alone; and the audit of it."""
        if beside is None:
            return None, None
        tables: list[Known] = [(one.table, (one.exposure,), names) for one, names in zip(alone, beside.names, strict=False)]
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


def _news(before: AuditFolder | None, after: AuditFolder | None, out: Path | None) -> dict[str, Any] | None:
    """Return what the draft tells that was not known before, as `diff` does; the folders are called as they will be."""
    if before is None or after is None:
        return None
    told = diff(before.path, after.path).to_json()
    for side, name in (("before", BEFORE), ("after", AUDIT)):
        told[side]["path"] = None if out is None else str(out / name)
    return told


def judged_verdict(check: Mapping[str, Any]) -> str:
    """Return the verdict of the mechanism check, without families of sums that all add up exactly.

    Counts that were rounded together, or totals that were added up afterwards, depart from independent rounding; but such
    sums tell nothing, and are not used.
    """
    families = [one for one in check["families"] if set(map(int, one["observed"])) != {0}]
    if len(families) == len(check["families"]):
        return str(check["verdict"])
    verdict = worst([one["verdict"] for one in families]) if families else UNTESTED
    return verdict if verdict != FITS or any(not one["family"].startswith(COUNTS) for one in families) else UNTESTED


def _unsettled(release: Release, used: Sequence[Column]) -> list[Unsettled]:
    """Return what of a table was not understood, or not used."""
    keys = {column.key for column in used}
    found = left_open(release.account)
    left = [column.key for column in release.columns if column.key not in keys and column.is_in_file]
    if left:
        named = f"column {left[0]}" if len(left) == 1 else f"{len(left):,} columns ({', '.join(left[:3])} …)"
        why = f"{named} {'is' if len(left) == 1 else 'are'} not used: how the counts were published is not known"
        found.append(Unsettled(named, why, "say how: --mechanism, --base or --exact, or `mechanism` in the description"))
    return found


def _stamp(table: ReviewedTable, files: Sequence[Path], options: ReviewOptions, now: datetime) -> dict[str, Any]:
    """Return what is written down with every decision: when, by whom, about which table."""
    return {
        "table": fingerprint(table),
        "files": [{"name": path.name, "sha256": sha256_of(path), "bytes": path.stat().st_size} for path in files],
        "reviewer": options.reviewer,
        "time": now.isoformat(timespec="seconds"),
        "unround": __version__,
    }


def _repairs(
    setting: Setting, draft: _Draft, options: ReviewOptions, truth: Release | None, work: Path, progress: Stage
) -> tuple[list[dict[str, Any]], list[dict[str, str]], Worlds | None, dict[str, ReviewedTable]]:
    """Try repairs where the draft needs one, and one may help."""
    worlds, why, notes = None, "", list[str]()
    if truth is not None:  # also where nothing is to be repaired: a truth that does not fit is an error
        worlds, notes = given_truth(draft.table, truth, work)
        draft.notes.extend(notes)
    judgement = setting.judgement
    if judgement.within or any(reason.action == STOP for reason in judgement.reasons):
        return [], [], None, {}
    if worlds is None:
        try:
            worlds = plausible_worlds(draft.table, draft.prior, draft.keys, setting.draws, options.seed)
        except InputError as problem:
            why = f"it needs --truth, because plausible true counts cannot be drawn: {str(problem).rstrip('.')}"
    rows, refused, tables = try_repairs(setting, options.repairs, worlds, why, progress, repeats(draft.table))
    return rows, refused, worlds, tables


def _written_back(
    drafts: Sequence[Draft],
    draft: _Draft,
    rows: Sequence[Mapping[str, Any]],
    tables: Mapping[str, ReviewedTable],
    name: str,
    made: Path,
    beside: Together | None,
) -> dict[str, str]:
    """Write the draft with a repair in its own layout, ready to be published; and say where it is."""
    row = next((one for one in rows if one["name"] == name), None)
    if row is None or name not in tables:
        fit = ", ".join(tables) or "none is"
        raise InputError(f"{name!r} is not a repair that brings the table within policy: {fit}.")
    if row["method"] != EXACT:
        raise InputError(f"{name} prints numbers that only the true counts tell: give them with --truth FILE.")
    origin, after, table = drafts[0].origin, tables[name], draft.table
    if len(drafts) > 1 or origin is None:
        raise InputError(f"{name} cannot be written back: that takes one file. Review the tables one by one.")
    own = {key: key for key in drafts[0].release.index} if beside is None else beside.names[0]
    before = {column.key: at for at, column in enumerate(table.columns)}
    now = {after.columns[at].key: at for at in after.mine}
    alias = draft.folder.told["alias"] if draft.folder is not None else {}
    cells: dict[tuple[str, str], int] = {}
    for key, joined in own.items():
        first = alias.get(joined, joined)
        if first not in before:  # it took no part in the review
            continue
        # With the same numbers as before, the earlier column stands for both.
        at, there = before[first], now.get(first, now.get(original(first)))
        if there is None:
            raise _another_layout(row, tables, table, origin)
        there_now, here = after.counts[:, there], table.counts[:, at]
        for place in np.flatnonzero((there_now != here) & (here != NOT_AVAILABLE)).tolist():
            cells[table.area_codes[place], key] = int(there_now[place])
    file = write_back(origin, drafts[0].release, cells, made / REPAIRED)
    return {"name": name, "file": f"{REPAIRED}/{file.name}"}


def _check_repaired(tables: Sequence[Mapping[str, Any]]) -> None:
    """Complain where there was nothing to repair; and where two tables of one file were, each in a copy of its own."""
    files = [one["repaired"]["file"] for one in tables if "repaired" in one]
    if not files:
        raise InputError("there is nothing to apply: no table breaks a limit of the policy.")
    if len(set(files)) < len(files):
        raise InputError("several tables of one file need a repair: apply it to one at a time, with --sheet NAME.")


def _another_layout(
    row: Mapping[str, Any], tables: Mapping[str, ReviewedTable], draft: ReviewedTable, origin: Origin
) -> InputError:
    """Say what to do where a repair takes columns away: that is for the people who know the layout."""
    others = [name for name, table in tables.items() if len(table.columns) == len(draft.columns)]
    instead = f", or apply one that keeps the layout: {', '.join(others)}" if others else ""
    return InputError(
        f"{row['name']} changes the layout, which is for you to do: {row['action'].rstrip('.')} in {origin.path.name}, and "
        f"review the result{instead}."
    )


# -- what is told -----------------------------------------------------------------------------------------------------


def _told(
    draft: _Draft,
    setting: Setting,
    exceptions: Exceptions,
    settled: _Settled,
    tried: tuple[list[dict[str, Any]], list[dict[str, str]], Worlds | None],
    options: ReviewOptions,
    stamp: Mapping[str, Any],
    now: datetime,
    command: str,
) -> dict[str, Any]:
    """Put everything worth knowing about a review into one object."""
    table, policy, judgement, (rows, refused, worlds) = draft.table, setting.policy, setting.judgement, tried
    decision = decide(judgement, rows, settled.unsettled)
    cells = cells_to_act_on(table, draft.exposure, policy, judgement.act_on)
    for cell in cells:
        cell["action"] = action_for(cell, decision, rows)
        cell["comment"] = exceptions.comments.get(cell["cell"], "")
    return {
        "decision": decision,
        "exit_code": EXIT_CODES[decision],
        "unsettled": [open_.to_json() for open_ in settled.unsettled],
        "policy": policy.to_json() | {"sentences": policy_in_words(policy)},
        "reasons": [one.to_json() | {"sentence": reason_in_words(one, policy)} for one in judgement.reasons],
        "cells_to_act_on": len(cells),
        "cells": [{name: value for name, value in one.items() if name not in ("row", "column")} for one in cells],
        "example": example_of(draft.folder, cells),
        "limits": _limits(policy, judgement, table.published),
        "claims": _claims(draft.exposure),
        "likely_alone": draft.exposure.alone,
        "repairs": rows,
        "not_tried": refused,
        "worlds": None if worlds is None else {"method": worlds.method, "number": len(worlds.counts)},
        "check": draft.check
        | {
            "judged": draft.ground.verdict,
            "contradictions": draft.ground.contradictions,
            "self_check_failed": draft.ground.self_check_failed,
            "not_weighed": draft.ground.not_weighed,
            "clashes": [clash if len(clash) <= LONG else f"{clash[:LONG]} …" for clash in draft.exposure.clashes],
            "sums_for_bounds_only": len(table.model.compiled.unused) if table.equations else 0,
        },
        "selfcheck": draft.self_check,
        "exceptions": [dict(line) for line in exceptions.accepted.values()],
        "exceptions_not_applied": list(exceptions.unused),
        "ignored": settled.ignored,
        "table": {
            "source": draft.check["source"],
            "product": draft.check["product"],
            "areas": len(table.counts),
            "columns": len(table.columns),
            "counts": table.published,
            "hidden": int(table.hidden.sum()),
            "mechanisms": {how.name: how.sentence for how in dict.fromkeys(table.mechanisms)},
            "sums": len(table.equations),
            "fingerprint": stamp["table"],
        },
        "reading": _reading(draft),
        "picture": _picture(draft, judgement, exceptions),
        "files": stamp["files"],
        "reviewer": options.reviewer,
        "date": now.date().isoformat(),
        "seed": options.seed,
        "draws": setting.draws,
        "unround": __version__,
        "command": command,
        "notes": draft.notes,
    }


def _reading(draft: _Draft) -> dict[str, Any]:
    """Return how the table was read: what each column is, which sums hold, and what was left out; and the hash of it."""
    table = draft.table
    told: dict[str, Any] = {
        "columns": [
            {"key": column.key, "what": table.what(at), "mechanism": table.mechanisms[at].name}
            for at, column in enumerate(table.columns)
        ],
        "sums": [table.model.sum_in_short(e) for e in range(len(table.equations))],
        "over_areas": table.nested is not None,
        "figures": [figure.figure.label or figure.figure.name for figure in table.figures],
        "hidden": int(table.hidden.sum()),
        "account": [entry.to_json() for entry in draft.account[:MOST_CELLS]],
    }
    digest = hashlib.sha256(json.dumps(told, ensure_ascii=False, sort_keys=True).encode())
    digest.update(fingerprint(table).encode())
    return told | {"sha256": digest.hexdigest()}


def _picture(draft: _Draft, judgement: Judgement, exceptions: Exceptions) -> dict[str, Any] | None:
    """Return the table itself with the kind of every cell, for the page; of a large one, the rows with cells to act on."""
    table, exposure = draft.table, draft.exposure
    columns = list(table.mine)
    rows = np.arange(len(table.counts))
    if len(rows) * len(columns) > MOST_SHOWN:
        rows = np.flatnonzero(judgement.act_on.any(axis=1))[: max(1, MOST_SHOWN // max(1, len(columns)))]
    if not len(rows) or len(columns) > MOST_SHOWN_COLUMNS:
        return None
    accepted = set(exceptions.accepted)

    def kind(row: int, at: int) -> str:
        if (table.area_codes[row], table.columns[at].key) in accepted:
            return "accepted"
        if judgement.act_on[row, at]:
            return KINDS[exposure.kinds[row, at]] if exposure.kinds[row, at] else RANGE
        return "hidden" if table.hidden[row, at] else ""

    names = table.areas["region_name"].to_list() if "region_name" in table.areas.columns else table.area_codes
    return {
        "columns": [table.what(at) for at in columns],
        "rows": [
            {
                "area": str(names[row] or table.area_codes[row]),
                "cells": [
                    [n if (n := int(table.printed[row, at])) >= 0 else None, kind(row, at), _learned(exposure, row, at)]
                    for at in columns
                ],
            }
            for row in rows.tolist()
        ],
        "left_out": len(table.counts) - len(rows),
    }


def _learned(exposure: Exposure, row: int, at: int) -> list[int | None]:
    """Return the least and the greatest value that readers can tell; None where there is no greatest."""
    low, high = int(exposure.low[row, at]), int(exposure.high[row, at])
    return [low, None if high >= NO_UPPER_BOUND else high]


def _limits(policy: Policy, judgement: Judgement, published: int) -> list[dict[str, Any]]:
    """Return every limit with how many counts fall under it."""
    return [
        {
            "sentence": limit_in_words(limit),
            "name": limit.name,
            "found": counts_in_words(limit, number, accepted),
            "number": number,
            "accepted": accepted,
            "allowed": limit.allowed(published),
            "exceeded": number > limit.allowed(published),
        }
        for limit, number, accepted in zip(policy.limits, judgement.numbers, judgement.accepted, strict=True)
    ]


def _claims(exposure: Exposure) -> dict[str, dict[str, int]]:
    """Count what readers can learn, by kind and size."""
    return {
        kind: {name: int(((exposure.kinds == at) & (exposure.sizes == size)).sum()) for size, (_, name) in enumerate(SIZES)}
        for at, kind in enumerate(KINDS)
        if at
    }


def _write(made: Path, told: dict[str, Any], lines: Sequence[Mapping[str, Any]]) -> None:
    """Write the workbook, the decisions and the JSON."""
    about = [
        ("decision", told["decision"]),
        ("file", told["table"]["source"]),
        ("date", told["date"]),
        ("policy", told["policy"]["name"]),
        (
            "to accept a cell",
            "Write yes under accept and the reason under comment, save, and run the review again (same -o).",
        ),
    ]
    shown = [{**cell, **_for_people(cell)} for cell in told["cells"]]
    write_workbook(made / CELLS, shown, told["table"]["fingerprint"], about)
    told["cells"] = told["cells"][:MOST_CELLS]
    if lines:
        write_whole(made / DECISIONS, written(lines))
    write_json(made / REPORT, told)


def _for_people(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the workbook says of a cell in words."""
    said = {
        "unrounded": "it is printed unrounded",
        "proved": f"it is {cell['value']:,}: proved",
        "conditional": f"it is {cell['value']:,}: proved under an assumption",
        "likely": f"it is likely {cell['value']:,}",
        RANGE: "its size",
    }
    low, high = cell["low"], cell["high"]
    return {
        "rule": "; ".join(cell["rules"]),
        "said": said[cell["claim"]],
        "range": f"{low:,} or more" if high is None else f"{low:,}" if low == high else f"{low:,} to {high:,}",
    }
