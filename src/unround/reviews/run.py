"""START HERE: the whole review, from a draft table to a decision, with reasons, remedies and a page to sign."""

from __future__ import annotations

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
from unround.differences import diff
from unround.errors import InputError
from unround.evidence.block import NO_UPPER_BOUND
from unround.job import AuditFolder
from unround.job.folder import REVIEW, REVIEWED
from unround.output import known_by, output_folder, write_json, write_whole
from unround.release import Release
from unround.reviews.applying import apply_repair
from unround.reviews.decision import DECISIONS as DECISIONS_IN_ORDER
from unround.reviews.decision import Judgement, Unsettled, decide, judge, unsettled_of
from unround.reviews.drafts import (
    BEFORE,
    AuditedDraft,
    Auditing,
    DraftTable,
    own_keys,
    questions_of_files,
    share_nothing,
    with_account,
)
from unround.reviews.exposure import Exposure
from unround.reviews.policy import KINDS, RANGE, STOP, UNDECIDED, Policy, counts_in_words, limit_in_words
from unround.reviews.record import (
    CELLS,
    DECISIONS,
    Exceptions,
    Remark,
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
from unround.reviews.result import (
    MOST_CELLS,
    TOGETHER,
    ColumnRead,
    JointReview,
    LimitFound,
    PictureRow,
    ReadingOfTable,
    Review,
    TableFacts,
    TablePicture,
    TableReview,
)
from unround.reviews.table import ReviewedTable
from unround.reviews.together import Together, added_up_elsewhere, together
from unround.reviews.trying import EXACT, Excused, Setting, Trials, given_truth, plausible_worlds, try_repairs
from unround.score.summary import SIZES
from unround.small_files import sha256_of
from unround.tables.spool import Stage

AUDIT, REPORT, PAGE = REVIEWED, REVIEW, "review.html"
TABLES, REPAIRED = "tables", "repaired"
"""Of several tables, the folder of the reviews of each; and that of the draft with a repair, in its own layout."""

OURS = (AUDIT, BEFORE, TABLES, TOGETHER, REPAIRED, CELLS, DECISIONS, PAGE, REPORT)
"""In the order in which they are put in place."""

DRAWS, FEWEST_DRAWS = ((5_000, 5), (20_000, 3)), 2
"""Up to how many counts a repair that draws random numbers is published how often; and how often in larger tables."""

MOST_SHOWN, MOST_SHOWN_COLUMNS = 3_000, 80
"""Cells of the table, and columns, that the page shows as a table."""

LONG = 600
"""Letters of a contradiction that are told; contradictions.csv has them all."""

Finish = Callable[[Path, Review], None]
"""Is given the folder and what was found, before anybody sees them."""


class RepairError(InputError):
    """A repair cannot be written back in the layout of the draft."""


@dataclass(frozen=True)
class ReviewOptions:
    """What the user decides about a review, besides the policy.

    - `repairs`: The repairs to try; all, unless given.
    - `accept`, `ignore`: Cells that are accepted, and what is left aside though it is not settled; and why.
    - `reviewer`: Who says so.
    - `apply`: The repair that is written back in the layout of the draft.
    - `seed`, `draws`: Of all random numbers; how often a repair that draws some is published, see `draws_of`.
    - `now`: When the review is made, as it is written down.
    """

    repairs: tuple[str, ...] | None = None
    accept: tuple[Remark, ...] = ()
    ignore: tuple[Remark, ...] = ()
    reviewer: str = ""
    seed: int = 0
    draws: int | None = None
    apply: str = ""
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def draws_of(self, counts: int) -> int:
        """Return how often to publish a table of so many counts: fewer times if it is large, unless the user says."""
        return self.draws or next((times for most, times in DRAWS if counts <= most), FEWEST_DRAWS)

    def about(self, table: str) -> ReviewOptions:
        """Return what is said about one of several tables: `TABLE|CELL`."""
        accept, ignore = (
            tuple(replace(entry, cell=entry.cell.removeprefix(f"{table}|")) for entry in entries if entry.is_about(table))
            for entries in (self.accept, self.ignore)
        )
        return replace(self, accept=accept, ignore=ignore)

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise InputError(f"a seed must be a whole number of 0 or more, not {self.seed}.")
        if self.draws is not None and not 1 <= self.draws <= 100:
            raise InputError(f"the number of draws must be from 1 to 100, not {self.draws}.")


def review(
    drafts: Release | Sequence[DraftTable],
    out: Path | None,
    auditing: Auditing,
    options: ReviewOptions | None = None,
    *,
    truth: Release | None = None,
    earlier: Sequence[Release] = (),
    joint: DraftTable | None = None,
    finish: Finish = lambda *_: None,
) -> Review:
    """Decide whether one draft table, or several together, may be published.

    Arguments are documented with `unround.review`. `joint` is all drafts as one, where it is known better than by the names
    of their counts what they have in common. `finish` adds pages to the folder before anybody sees it. If it fails,
    nothing is left behind.
    """
    given = [DraftTable(drafts)] if isinstance(drafts, Release) else list(drafts)
    options = options or ReviewOptions()
    case = _Case(auditing, options, earlier, len(given) > 1 or joint is not None)
    with _folders(out) as (work, made):
        if len(given) == 1 and joint is None:
            reviewed: Review = case.judged(given, truth, work, made, out)[0]
        else:
            if truth is not None:
                raise InputError("true counts are those of one table: review the tables one by one with --truth.")
            reviewed = case.several(given, joint, work, made, out)
            write_json(made / REPORT, reviewed.to_json())
        if options.apply:
            _check_repaired(reviewed.tables)
        finish(made, reviewed)
    return replace(reviewed, folder=out)


@dataclass(frozen=True)
class _Case:
    """What is the same for all tables of a review."""

    auditing: Auditing
    options: ReviewOptions
    earlier: Sequence[Release]
    several_tables: bool = False

    def judged(
        self,
        drafts: Sequence[DraftTable],
        truth: Release | None,
        work: Path,
        made: Path,
        out: Path | None,
        alone: Sequence[AuditedDraft] = (),
    ) -> tuple[TableReview, AuditedDraft]:
        """Review one draft, or several as one, into a folder; what each of them tells `alone` does not count again."""
        policy, options = self.auditing.policy, self.options
        older, (noted, entries) = read_decisions(out), read_entries(out)
        # 1. Audit the draft as it is, beside what is already out; what can readers learn?
        release, beside = drafts[0].release, None
        if twice := {table.source for table in self.earlier} & {table.release.source for table in drafts if table.files}:
            raise InputError(f"{twice.pop()} is given twice: as a draft, and as what is out already.")
        if self.earlier or len(drafts) > 1:
            named = [
                replace(table.release, source=table.name or table.release.source) for table in drafts
            ]  # sheets of one file
            beside = together(named, self.earlier, truth)
            release, truth = beside.all, beside.truth
        draft = self.auditing.draft(release, work, made, truth, own_keys(drafts[0]) if beside is None else beside.own)
        draft = with_account(draft, drafts, beside, not self.several_tables)
        known, before = self.auditing.known(draft, beside, alone, made)
        # 2. What has a reviewer accepted?
        stamp = _stamp(draft.table, [path for table in drafts for path in table.files], options)
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
        open_ = unsettled_of(draft.ground, judgement)
        unsettled, ignored, lines = apply_ignored(open_, exceptions.lines, options.ignore, stamp)
        # 4. Try the repairs.
        draws = options.draws_of(draft.table.published)
        setting = Setting(draft.table, draft.exposure, draft.ground, judgement, policy, excused, options.seed, draws)
        trials = _trials(setting, draft, options, truth, work, self.auditing.progress)
        # 5. Decide, and write it down.
        reviewed = self._decided(draft, setting, exceptions, tuple(unsettled), trials, stamp)
        reviewed = replace(
            reviewed,
            name=drafts[0].name if len(drafts) == 1 else TOGETHER,
            ignored=tuple(ignored),
            diff=_news(before, draft.folder, out),
        )
        if options.apply and not judgement.within:
            try:
                reviewed = replace(reviewed, repaired=_written_back(drafts, draft, trials, options.apply, made, beside))
            except InputError as problem:
                raise RepairError(str(problem)) from problem
        _write(made, reviewed, lines)
        return reviewed, draft

    def _decided(
        self,
        draft: AuditedDraft,
        setting: Setting,
        exceptions: Exceptions,
        unsettled: tuple[Unsettled, ...],
        trials: Trials,
        stamp: Mapping[str, Any],
    ) -> TableReview:
        """Decide, and put everything worth knowing about a review into one object."""
        table, policy, judgement, worlds = draft.table, setting.policy, setting.judgement, trials.worlds
        decision = decide(judgement, bool(trials.tables), unsettled)
        cells = cells_to_act_on(table, draft.exposure, policy, judgement.act_on)
        cells = [
            replace(
                cell,
                action=action_for(cell, decision, trials.repairs),
                comment=exceptions.comments.get(cell.cell, ""),
            )
            for cell in cells
        ]
        return TableReview(
            decision=decision,
            unsettled=unsettled,
            policy=policy,
            reviewer=self.options.reviewer,
            date=self.options.now.date().isoformat(),
            seed=self.options.seed,
            command=self.auditing.command,
            notes=tuple(draft.notes),
            name="",
            reasons=judgement.reasons,
            cells=tuple(cells),
            example=example_of(draft.folder, cells),
            limits=_limits(policy, judgement, table.published),
            claims=_claims(draft.exposure),
            likely_alone=draft.exposure.alone,
            repairs=trials.repairs,
            not_tried=trials.not_tried,
            worlds=None if worlds is None else {"method": worlds.method, "number": len(worlds.counts)},
            check=_check(draft),
            selfcheck=draft.self_check,
            exceptions=tuple(dict(line) for line in exceptions.accepted.values()),
            exceptions_not_applied=exceptions.unused,
            ignored=(),
            table=_facts(draft, stamp["table"]),
            reading=_reading(draft).signed(stamp["table"]),
            picture=_picture(draft, judgement, exceptions),
            files=tuple(stamp["files"]),
            draws=setting.draws,
        )

    def several(
        self, drafts: Sequence[DraftTable], joint: DraftTable | None, work: Path, made: Path, out: Path | None
    ) -> Review:
        """Review several drafts, each alone and all of them together: one decision, that of the worst."""
        lost = [entry.cell for entry in (*self.options.accept, *self.options.ignore) if "|" not in entry.cell]
        if lost:
            raise InputError(f"{lost[0]!r} does not name its table: write TABLE|{lost[0]}, as in “{drafts[0].name}|…”.")
        tables, alone, places, apart = list[TableReview](), list[AuditedDraft](), list[str](), ""

        def reviewed(
            some: Sequence[DraftTable], called: str, place: str, known: Sequence[AuditedDraft] = ()
        ) -> AuditedDraft:
            (work / place).mkdir(parents=True)
            (made / place).mkdir(parents=True)
            options = self.options.about(called)
            if called == TOGETHER and (joint or any(table.repaired for table in tables)):
                options = replace(options, apply="")  # first each by itself
            case, older = replace(self, options=options), None if out is None else out / place
            reviewed_table, draft = case.judged(some, None, work / place, made / place, older, known)
            tables.append(reviewed_table)
            places.append(place)
            return draft

        for at, draft in enumerate(drafts, 1):
            alone.append(reviewed([draft], draft.name, f"{TABLES}/{at}"))
        try:
            reviewed([joint] if joint else drafts, TOGETHER, TOGETHER, () if joint else alone)
        except InputError as problem:
            if isinstance(problem, RepairError):
                raise
            shutil.rmtree(made / TOGETHER, ignore_errors=True)
            apart = f"What the tables tell together was not worked out: {problem}"
        unsettled = [replace(matter, what=f"{table.name}|{matter.what}") for table in tables for matter in table.unsettled]
        aside = {entry.cell.strip().casefold() for entry in self.options.about(TOGETHER).ignore}
        beside = list(added_up_elsewhere([(draft.name, matter.table) for draft, matter in zip(drafts, alone, strict=True)]))
        beside += questions_of_files(drafts, [audited.table for audited in alone])
        # The sum of one table may be the total that a table of one column lacks.
        lacking = any(
            draft.release.sumless and 1 in audited.table.counts.shape for draft, audited in zip(drafts, alone, strict=True)
        )
        if apart and (lacking or not share_nothing(drafts)):
            settle = "describe the tables with the same areas and axes"
            beside.append(Unsettled.asked("apart", f"{apart.rstrip('.')}; they may be about other people", settle))
        unsettled += [
            replace(matter, what=f"{TOGETHER}|{matter.what}", settle=matter.settle.replace('"', f'"{TOGETHER}|', 1))
            for matter in beside
            if matter.what.casefold() not in aside
        ]
        decisions = [table.decision for table in tables] + [UNDECIDED] * bool(unsettled)
        return JointReview(
            decision=max(decisions, key=DECISIONS_IN_ORDER.index),
            unsettled=tuple(unsettled),
            policy=self.auditing.policy,
            reviewer=self.options.reviewer,
            date=self.options.now.date().isoformat(),
            seed=self.options.seed,
            command=self.auditing.command,
            notes=(apart,) if apart else (),
            each=tuple(tables),
            places=tuple(places),
        )


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


def _news(before: AuditFolder | None, after: AuditFolder | None, out: Path | None) -> dict[str, Any] | None:
    """Return what the draft tells that was not known before, as `diff` does; the folders are called as they will be."""
    if before is None or after is None:
        return None
    news = diff(before.path, after.path).to_json()
    for side, name in (("before", BEFORE), ("after", AUDIT)):
        news[side]["path"] = None if out is None else str(out / name)
    return news


def _stamp(table: ReviewedTable, files: Sequence[Path], options: ReviewOptions) -> dict[str, Any]:
    """Return what is written down with every decision: when, by whom, about which table."""
    return {
        "table": fingerprint(table),
        "files": [{"name": path.name, "sha256": sha256_of(path), "bytes": path.stat().st_size} for path in files],
        "reviewer": options.reviewer,
        "time": options.now.isoformat(timespec="seconds"),
        "unround": __version__,
    }


def _trials(
    setting: Setting, draft: AuditedDraft, options: ReviewOptions, truth: Release | None, work: Path, progress: Stage
) -> Trials:
    """Try repairs where the draft needs one, and one may help."""
    worlds, why = None, ""
    if truth is not None:  # also where nothing is to be repaired: a truth that does not fit is an error
        worlds, notes = given_truth(draft.table, truth, work)
        draft.notes.extend(notes)
    judgement = setting.judgement
    if judgement.within or any(reason.action == STOP for reason in judgement.reasons):
        return Trials()
    if worlds is None:
        try:
            worlds = plausible_worlds(draft.table, draft.prior, draft.keys, setting.draws, options.seed)
        except InputError as problem:
            why = f"it needs --truth, because plausible true counts cannot be drawn: {str(problem).rstrip('.')}"
    return try_repairs(setting, options.repairs, worlds, why, progress)


def _written_back(
    drafts: Sequence[DraftTable], draft: AuditedDraft, trials: Trials, name: str, made: Path, beside: Together | None
) -> dict[str, str]:
    """Write the draft with a repair in its own layout, ready to be published; and say where it is."""
    if name not in trials.tables:
        fit = ", ".join(trials.tables) or "none is"
        raise InputError(f"{name!r} is not a repair that brings the table within policy: {fit}.")
    if any(repair.name == name and repair.method != EXACT for repair in trials.repairs):
        raise InputError(f"{name} prints numbers that only the true counts tell: give them with --truth FILE.")
    alias = draft.folder.schema["alias"] if draft.folder is not None else {}
    files: dict[Path, Path] = {}
    for at, table in enumerate(drafts):
        if table.origin is None:
            raise InputError(f"{name} cannot be written back: that takes a file.")
        keys = {key: key for key in table.release.index} if beside is None else beside.names[at]
        called = {key: alias.get(joined, joined) for key, joined in keys.items()}
        # Of a file with several tables, each is changed in what the one before it has left.
        origin = replace(table.origin, path=files.get(table.origin.path, table.origin.path))
        folder = made / REPAIRED / str(at)
        new = apply_repair(name, origin, table.release, draft.table, trials.tables[name], called, folder)
        files[table.origin.path] = new.replace(made / REPAIRED / new.name)
        folder.rmdir()
    return {"name": name, "file": ", ".join(f"{REPAIRED}/{file.name}" for file in files.values())}


def _check_repaired(tables: Sequence[TableReview]) -> None:
    """Complain where there was nothing to repair; and where two tables of one file were, each in a copy of its own."""
    files = [table.repaired["file"] for table in tables if table.repaired is not None]
    if not files:
        raise InputError("there is nothing to apply: no table breaks a limit of the policy.")
    if len(set(files)) < len(files):
        raise InputError("several tables of one file need a repair: apply it to one at a time, with --sheet NAME.")


# -- what is said -----------------------------------------------------------------------------------------------------


def _check(draft: AuditedDraft) -> dict[str, Any]:
    ground, table = draft.ground, draft.table
    return draft.check | {
        "judged": ground.verdict,
        "contradictions": ground.contradictions,
        "self_check_failed": ground.self_check_failed,
        "not_weighed": ground.not_weighed,
        "clashes": [clash if len(clash) <= LONG else f"{clash[:LONG]} …" for clash in draft.exposure.clashes],
        "sums_for_bounds_only": len(table.model.compiled.unused) if table.equations else 0,
    }


def _facts(draft: AuditedDraft, digest: str) -> TableFacts:
    table = draft.table
    return TableFacts(
        source=draft.check["source"],
        product=draft.check["product"],
        areas=len(table.counts),
        columns=len(table.columns),
        counts=table.published,
        hidden=int(table.hidden.sum()),
        mechanisms={how.name: how.sentence for how in dict.fromkeys(table.mechanisms)},
        sums=len(table.equations),
        fingerprint=digest,
    )


def _reading(draft: AuditedDraft) -> ReadingOfTable:
    """Return how the table was read: what each column is, which sums hold, and what was left out."""
    table = draft.table
    return ReadingOfTable(
        columns=tuple(
            ColumnRead(column.key, table.what(at), table.mechanisms[at].name) for at, column in enumerate(table.columns)
        ),
        sums=tuple(table.model.sum_in_short(e) for e in range(len(table.equations))),
        over_areas=table.nested is not None,
        figures=tuple(figure.figure.label or figure.figure.name for figure in table.figures),
        hidden=int(table.hidden.sum()),
        account=draft.account[:MOST_CELLS],
    )


def _picture(draft: AuditedDraft, judgement: Judgement, exceptions: Exceptions) -> TablePicture | None:
    """Return the table itself with the kind of every cell, for the page; of a large one, the rows with cells to act on."""
    table, exposure = draft.table, draft.exposure
    columns, rows = list(table.mine), np.arange(len(table.counts))
    if len(rows) * len(columns) > MOST_SHOWN:
        rows = np.flatnonzero(judgement.act_on.any(axis=1))[: max(1, MOST_SHOWN // max(1, len(columns)))]
    if not len(rows) or len(columns) > MOST_SHOWN_COLUMNS:
        return None

    def kind(row: int, at: int) -> str:
        if (table.area_codes[row], table.columns[at].key) in exceptions.accepted:
            return "accepted"
        if judgement.act_on[row, at]:
            return KINDS[exposure.kinds[row, at]] if exposure.kinds[row, at] else RANGE
        return "hidden" if table.hidden[row, at] else ""

    def cell(row: int, at: int) -> tuple[int | None, str, tuple[int, int | None]]:
        printed, low, high = (int(array[row, at]) for array in (table.printed, exposure.low, exposure.high))
        return printed if printed >= 0 else None, kind(row, at), (low, None if high >= NO_UPPER_BOUND else high)

    shown = tuple(PictureRow(table.area_name(row), [cell(row, at) for at in columns]) for row in rows.tolist())
    return TablePicture(tuple(table.what(at) for at in columns), shown, len(table.counts) - len(rows))


def _limits(policy: Policy, judgement: Judgement, published: int) -> tuple[LimitFound, ...]:
    """Return every limit with how many counts fall under it."""
    each = zip(policy.limits, judgement.numbers, judgement.accepted, strict=True)
    rows = [(limit, number, accepted, limit.allowed(published)) for limit, number, accepted in each]
    return tuple(
        LimitFound(
            limit_in_words(limit_found),
            limit_found.name,
            counts_in_words(limit_found, number, accepted),
            number,
            accepted,
            most,
            number > most,
        )
        for limit_found, number, accepted, most in rows
    )


def _claims(exposure: Exposure) -> dict[str, dict[str, int]]:
    """Count what readers can learn, by kind and size."""
    return {
        kind: {name: int(((exposure.kinds == at) & (exposure.sizes == size)).sum()) for size, (_, name) in enumerate(SIZES)}
        for at, kind in enumerate(KINDS)
        if at
    }


def _write(made: Path, reviewed: TableReview, lines: Sequence[Mapping[str, Any]]) -> None:
    """Write the workbook, the decisions and the JSON."""
    how = "Write yes under accept and the reason under comment, save, and run the review again (same -o)."
    facts = {
        "decision": reviewed.decision,
        "file": reviewed.table.source,
        "date": reviewed.date,
        "policy": reviewed.policy.name,
    }
    write_workbook(made / CELLS, reviewed.cells, reviewed.table.fingerprint, [*facts.items(), ("to accept a cell", how)])
    if lines:
        write_whole(made / DECISIONS, written(lines))
    write_json(made / REPORT, reviewed.to_json())
