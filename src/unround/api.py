"""The one door: every command of the command line as a Python function of the same name, and a few more.

Wherever a published table is wanted, give a path, several paths (which are read as one release), a polars or pandas frame,
or a `Release`; wherever an audit is wanted, its folder or the `AuditFolder` that `audit` returned. The command line calls
these functions and shows what they return; it does nothing else. What cannot be used, a missing argument included, is an
`InputError`.

What each function takes is declared in `options`: a function is given one object that holds all of it. Each imports what
it needs when it is called, so that `import unround` and `unround --help` stay quick.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from unround import options
from unround.errors import ArgumentError, InputError, UnknownFormat
from unround.options import AnyPath, AuditOptions, Table, takes
from unround.output import output_folder, refuse_overwriting, write_json, write_text, write_whole
from unround.small_files import require_unchanged, watching

if TYPE_CHECKING:
    from unround import job
    from unround.comparison import Comparison
    from unround.differences import Diff
    from unround.expectation import Expectation
    from unround.explanation.cell import Explanation
    from unround.inspection import Inspection
    from unround.job.verify import Verification
    from unround.mechanisms import Mechanism
    from unround.protection.release import Protected
    from unround.reconciliation import Reconciled
    from unround.reconstruction import Reconstruction
    from unround.release import Release
    from unround.results import AuditFolder
    from unround.reviews import DraftTable, Review
    from unround.reviews.rate_steps import RateSteps
    from unround.simulation import Simulated
    from unround.solution import Solution
    from unround.system import System
    from unround.tables import Described
    from unround.tables.description import Description

_Result = TypeVar("_Result")

# -- one system -------------------------------------------------------------------------------------------------------


def _system(given: options.OneSystem) -> System:
    """Return a system as it was given, or as its text says."""
    from unround.equations import parse
    from unround.system import System

    how, system = mechanism_name(given.base, given.mechanism), given.system
    if isinstance(system, System):
        if how is not None:
            raise InputError("the cells of a System already say how they were published: leave out base and mechanism.")
        return system
    text, where = equations_of(system)
    return parse(text, how or "rounding:5", where=where)


@takes(options.Solve)
def solve(given: options.Solve) -> Solution:
    """Work out one system: a few published numbers, and how they add up.

    Examples
    --------
    >>> [(cell.name, cell.mode, cell.kind) for cell in solve("48! = 20 + 20 + 20").cells][1:]
    [('part1', 16, 'proved'), ('part2', 16, 'proved'), ('part3', 16, 'proved')]
    """
    from unround.solution import solve as solve_system

    system = _system(given)
    weights = given.prior if isinstance(given.prior, Mapping) else prior_of(given.prior)
    return solve_system(system, engine=given.engine, top=given.top, threshold=given.threshold, prior=weights)


@takes(options.Expect)
def expect(given: options.Expect) -> Expectation:
    """Return how often sums of one shape give counts away, before looking at any data.

    The shape is that of a sum in a system: how many parts it has, how many of them are published as 0, and whether the
    total is exact. Its other numbers do not matter.

    Examples
    --------
    >>> expect("87! = 35 + 45", areas=61010).expected_proofs
    195.232
    """
    from unround.expectation import expectation, shape_of

    return expectation(**shape_of(_system(given)), areas=given.areas, threshold=given.threshold)


# -- a whole release --------------------------------------------------------------------------------------------------


@takes(options.Read)
def read(given: options.Read) -> Release:
    """Open a published table. Functions that take a table take these arguments too.

    A table in no format that is known, and without a description, is described on the way, as `describe` would; a note of
    the release says so.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"town": ["Aa", "Bo"], "all": [20, 15], "young": [5, 10], "old": [10, 10]})
    >>> about = {"area": "town", "sums": {"all": ["young", "old"]}}
    >>> [column.key for column in read(frame, describe=about).columns]
    ['all', 'young', 'old']
    """
    return _opened(given.table, given)


def _read(table: Table, given: options.Opening, progress: options.Stage = lambda *_: None) -> Release:
    """Open a table, or several as one, as the options say."""
    from unround.tables import join
    from unround.tables.description import decided
    from unround.tables.hierarchy import with_areas

    tables = _listed(table)
    if len(tables) == 1:
        release = open_table(tables[0], given)
        if release.decisions.matches:
            raise InputError("[[match]] links the columns of several files, but only one is given.")
    elif not tables:
        raise InputError("there is no table to read: the list is empty.")
    else:
        said = None if given.describe is None else said_of_columns(given.describe)
        if given.describe is not None and said is None:
            raise InputError("axes are those of one table: with several, give each tidy one as the TOML that describes it.")
        releases = [open_table(table, options.Opening(format=given.format, sheet=given.sheet)) for table in tables]
        size = sum(release.size for release in releases)
        matches = said.matches if said else ()
        release = join(releases, matches, lambda done: progress("Reading the files", done, size))
        release = release if said is None else decided(release, said)
    return release if given.nesting is None else with_areas(release, Path(given.nesting))


def _opened(table: Table, given: options.Reading) -> Release:
    """Return a table that was read, with what is said of how its counts were published."""
    from unround.structure import declaring, declaring_exact

    release = _read(table, given, given.progress)
    how = mechanism_name(given.base, given.mechanism)
    if how is not None:
        release = declaring(release, how)
    return declaring_exact(release, given.exact)


def _truth(table: Table | None, release: Release) -> Release | None:
    """Return the true counts, if they are given, in the columns of a release that was made from several files."""
    from unround.tables import with_truth

    true_counts = None if table is None else read(table)
    if true_counts is not None and any(proposal.origin == "files" for proposal in release.proposals):
        return with_truth(true_counts, release)
    return true_counts


@takes(options.Describe)
def describe(given: options.Describe) -> Described:
    """Look at a table of your own, say what is taken for what, and draft its description.

    Sums that names suggest are verified on the counts. The result has `toml()`, the text of the description, and `release`.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"town": ["Aa", "Bo"], "Total": [21, 15], "Men": [6, 9], "Women": [12, 9]})
    >>> [(one.shown, one.used) for one in describe(frame).verdicts]
    [('Total = Men + Women', True)]
    """
    from unround.tables import census_format
    from unround.tables import describe as describe_table
    from unround.tables.tidy import take_default

    how = mechanism_name(given.base, given.mechanism)
    table = Path(given.table) if isinstance(given.table, str | os.PathLike) else given.table
    target = path_of(given.out)
    refuse_overwriting(target)
    if isinstance(table, Path) and table.suffix.lower() == ".toml":
        raise InputError(f"{table} is a description, not a table. To see what comes of it, run: unround check {table}")
    if (known := census_format(table)) is not None:
        look = f"Run: unround check {table}" if isinstance(table, Path) else "Call: unround.check(frame)"
        said = table if isinstance(table, Path) else "the frame"
        raise InputError(f"{said} is in the format {known}, which needs no description. {look}")
    described = describe_table(
        table,
        sheet=given.sheet,
        header=header_rows(given.header),
        columns=given.columns,
        value=given.value,
        mechanism=how,
        ask=given.ask or take_default,
    )
    if target is not None:
        write_text(target, described.toml(target))
    return described


@takes(options.Read)
def check(given: options.Read) -> Inspection:
    """Look at a file: how it was read, which sums hold, and whether the data fit the way in which counts were published."""
    from unround.inspection import inspect

    return inspect(_opened(given.table, given), given.progress)


@takes(options.Audit)
def audit(given: options.Audit) -> AuditFolder:
    """Find every count of a release that can be inferred, and write the findings into a folder.

    An audit of files that was stopped resumes where it was when it is asked for again. Without a folder to write into, a
    temporary one is used, which goes away with the result. Of a finished audit, the pages are written again.
    """
    from unround.boundaries import keep_boundaries, read_shapes
    from unround.job import AuditRun
    from unround.job import audit as audit_into
    from unround.results import AuditFolder
    from unround.show.report import write_pages

    boundaries = path_of(given.boundaries)
    shapes = None if boundaries is None else read_shapes(boundaries)  # a fault in it shows before anything takes long

    def report_on(folder: job.AuditFolder) -> None:
        given.progress("Reporting", 0, 1)
        if boundaries is not None:
            keep_boundaries(folder, boundaries, shapes)
        write_pages(folder)
        given.progress("Reporting", 1, 1)

    if (finished := finished_audit(given.table)) is not None:
        report_on(finished)
        return AuditFolder.open(finished.path)
    into = path_of(given.out) or temporary_folder()
    with watching():  # what is read here must be what is read again, and what is kept for another run
        release = _opened(given.table, given)
        if release.obstacle:
            raise InputError(release.obstacle)
        done = audit_into(
            release,
            into,
            given.part(AuditOptions),
            truth=_truth(given.truth, release),
            progress=given.progress,
            command=given.command,
            finish=report_on,
            run=AuditRun(paths_of(given.table, given.truth, given.describe, given.nesting), given.cluster),
        )
    folder = AuditFolder(**{field.name: getattr(done, field.name) for field in fields(done)})
    return folder if given.out is not None else lent_to(folder, into)


@takes(options.ReviewRequest)
def review(given: options.ReviewRequest) -> Review:
    """Decide whether a draft table may be published: publish, revise, stop or undecided, with reasons and repairs."""
    from unround.reviews import policy_of
    from unround.reviews import review as decide_on
    from unround.reviews.drafts import Auditing
    from unround.reviews.record import Remark
    from unround.reviews.run import ReviewOptions
    from unround.show.review import write_review

    if given.table is None or not _listed(given.table):
        raise InputError("no table is given: unround review FILE -o DIR. `unround review --help` shows examples.")
    if (given.accept or given.ignore) and given.out is None:
        raise ArgumentError("{accept} and {ignore} are recorded in a folder: give one with {out}.")
    auditing = Auditing(policy_of(given.policy), given.progress, given.command)
    entries = tuple(Remark(*said) for said in reasons_of((*given.accept, *given.ignore), given.because))
    accepted, ignored = entries[: len(given.accept)], entries[len(given.accept) :]
    repairs = None if given.repairs is None else tuple(given.repairs)
    with watching() as opened:
        drafts, joint = _drafts(given)
        truth = _truth(given.truth, drafts[0].release)
        earlier = [] if given.earlier is None else [read(table) for table in _listed(given.earlier)]

    def finish(folder: Path, reviewed: Review) -> None:
        if given.out is not None:
            write_review(folder, reviewed)
        require_unchanged(opened)  # else the page would sign a file that nobody looked at

    return decide_on(
        drafts,
        path_of(given.out),
        auditing,
        ReviewOptions(repairs, accepted, ignored, given.reviewer, given.seed, given.draws, given.apply),
        truth=truth,
        earlier=earlier,
        joint=joint,
        finish=finish,
    )


def _listed(tables: Table) -> list[Table]:
    return list(tables) if isinstance(tables, list | tuple) else [tables]


def _drafts(given: options.ReviewRequest) -> tuple[list[DraftTable], DraftTable | None]:
    """Read every table that is given; of a file of one's own, every table on every sheet. What is not read is named.

    The last is all of them as one, where they are what a research environment finalised together.
    """
    from unround.reviews import DraftTable, Origin
    from unround.tables.acro import is_acro

    tables = _listed(given.table)
    if len(tables) == 1 and isinstance(tables[0], str | os.PathLike) and is_acro(Path(tables[0])):
        drafts, joint = _outputs(Path(tables[0]), given)
        return drafts, joint
    everything: list[DraftTable] = []
    for table in _listed(given.table):
        name = Path(table).name if isinstance(table, str | os.PathLike) else "the table"
        drafts = _tables_in(Path(table), given) if name != "the table" and given.describe is None else []
        if not drafts:
            release = _opened(table, given)
            files = tuple(files_read(table, release))
            origin = Origin(Path(table), path_of(given.describe), given.sheet) if name != "the table" else None
            drafts = [DraftTable(release, name, files, origin)]
        everything += drafts
    return everything, None


def _outputs(folder: Path, given: options.ReviewRequest) -> tuple[list[DraftTable], DraftTable]:
    """Read a folder that ACRO finalised: its tables of counts, and all of them as one; what is neither is not settled."""
    from unround.reviews import DraftTable, Unsettled
    from unround.reviews.result import TOGETHER
    from unround.tables.acro import NOT_PRINTED, read_acro

    if given.apply:
        raise ArgumentError("{apply} writes a draft back as it came; a folder of ACRO is changed in ACRO alone.")

    def draft(release: Release, name: str, files: list[Path], unread: Iterable[Unsettled] = ()) -> DraftTable:
        unprinted = frozenset(column.key for column in release.columns if column.key.endswith(NOT_PRINTED))
        return DraftTable(release, name, tuple(files), unread=tuple(unread), unprinted=unprinted)

    def open_(what: str, why: str) -> Unsettled:
        return Unsettled(what, why, f'look at it by hand, then --ignore "{TOGETHER}|{what}" --because "…"')

    outputs = read_acro(folder)
    drafts = [
        draft(replace(release, notes=[*release.notes, table.about]), table.name, [table.file])
        for table, release in zip(outputs.tables, outputs.releases(), strict=True)
    ]
    aside = [open_(name, f"{why}: it was not looked at") for name, why in outputs.others.items()]
    aside += [open_(f"categories {at}", why) for at, why in enumerate(outputs.unlike(), 1)]
    return drafts, draft(outputs.together(), TOGETHER, [table.file for table in outputs.tables], aside)


def _tables_in(path: Path, given: options.ReviewRequest) -> list[DraftTable]:
    """Return the tables of a file that holds several and that nobody described; one that is not read is not settled."""
    from unround.reviews import DraftTable, Origin, Unsettled
    from unround.tables import describe
    from unround.tables import read as read_file
    from unround.tables.spreadsheet import is_spreadsheet
    from unround.tables.tidy import tables_of

    if not os.path.isfile(path) or given.sheet is not None or given.format != "auto":
        return []
    try:
        if not is_spreadsheet(path):
            read_file(path)
            return []  # a known format, or one that a description says
    except UnknownFormat:
        pass
    except InputError:
        return []
    try:
        places = tables_of(path)
    except InputError:
        return []
    drafts, unread = list[DraftTable](), list[Unsettled]()
    for place in places if len(places) > 1 else ():
        try:
            release = describe(path, sheet=place.sheet, header=place.header, columns=place.letters).release
            release = _opened(release, replace(given, describe=None))
        except InputError as problem:
            settle = f"describe it (`unround describe {path} {place.options}`)"
            unread.append(Unsettled.asked(place.name, f"the table on {place.name} was not read: {problem}", settle))
            continue
        origin = Origin(path, None, place.sheet, place.header, place.letters)
        name = f"{path.name}, {place.sheet or place.name}"
        drafts.append(DraftTable(release, name, tuple(files_read(path, release)), origin))
    names = [draft.name for draft in drafts]
    others = {place.name for place in places}  # each is reviewed, or among the unread
    for at, draft in enumerate(drafts):
        account = tuple(entry for entry in draft.release.account if entry.place not in others)
        name = draft.name if names.count(draft.name) == 1 else f"{draft.name} ({at + 1})"
        drafts[at] = replace(draft, release=replace(draft.release, account=account), name=name)
    return [*drafts[:-1], replace(drafts[-1], unread=tuple(unread))] if drafts else []


# -- an audit ---------------------------------------------------------------------------------------------------------


@takes(options.Explain)
def explain(given: options.Explain) -> Explanation:
    """Give the argument for one count of an audit, as arithmetic, and its histogram."""
    from unround.explanation.cell import explain as explain_cell

    return explain_cell(audit_folder(given.folder), given.area, given.characteristic, given.sex)


@takes(options.Verify)
def verify(given: options.Verify) -> Verification:
    """Check an audit folder: every file against its hash, every certificate against what was published."""
    from unround.job import AuditFolder
    from unround.job.verify import verify as verify_audit

    folder = given.folder.path if isinstance(given.folder, AuditFolder) else Path(given.folder)
    return verify_audit(folder, given.progress)


@takes(options.Serve)
def serve(given: options.Serve) -> None:
    """Explore an audit in a browser: areas, counts and their histograms, findings, sums; and try numbers of your own."""
    from unround.web.serve import serve as serve_pages

    def started(address: str) -> None:
        given.started(address)
        if given.open:
            import webbrowser

            webbrowser.open(address)

    serve_pages(folder_to_show(given.folder), given.host, given.port, started, path_of(given.boundaries))


@takes(options.View)
def view(given: options.View) -> tuple[int, bytes]:
    """Return the status and content of one page that `serve` would show, such as "/findings.json", without a server."""
    from unround.web.serve import get

    if not given.address.startswith("/"):
        raise InputError(f"an address starts with a slash, as in /findings.json; not {given.address!r}.")
    return get(folder_to_show(given.folder), given.address, path_of(given.boundaries))


@takes(options.DiffRequest)
def diff(given: options.DiffRequest) -> Diff:
    """Compare two audits of the same people: which counts are newly proved or likely, small counts first."""
    from unround.differences import diff as compare_audits
    from unround.show.report import write_pages

    difference = compare_audits(audit_folder(given.before).path, audit_folder(given.after).path, given.progress)
    if given.report:
        write_pages(difference.match.after, diff=difference.to_json())
    return difference


# -- ways of publishing -----------------------------------------------------------------------------------------------


@takes(options.Rates)
def rate_steps(given: options.Rates) -> RateSteps:
    """Find out how coarse rates must be printed to add nothing to what counts give away."""
    from unround.reviews.rate_steps import rate_steps as find_steps

    release = _opened(given.table, given)
    return find_steps(
        release,
        given.rates,
        truth=None if given.truth is None else read(given.truth),
        seed=given.seed,
        progress=given.progress,
        command=given.command,
    )


@takes(options.Protect)
def protect(given: options.Protect) -> Protected:
    """Publish a table of true counts under a mechanism, and say what that costs."""
    from unround.protection.release import NOTE, NOTE_TITLE, PUBLISHED
    from unround.protection.release import protect as publish
    from unround.protection.table import by_keys, parse_protection
    from unround.reviews.layout import SUFFIXES, Origin, counts_by_name, write_back
    from unround.show import text
    from unround.show.compare import protection_note
    from unround.simulation.files import ABOUT

    how = mechanism_name(given.base, given.mechanism)
    if how is None:
        raise ArgumentError("say how to protect the counts: {mechanism}, such as rounding:5 or controlled:5, or {base}.")
    protection = by_keys(parse_protection(how)) if given.keys else parse_protection(how)
    release = _read(given.table, given, given.progress)

    def finish(folder: Path, made: Protected) -> None:
        """Write the note, and the table in the layout of the true counts, too, where that is known."""
        note = f"{NOTE_TITLE}\n{'=' * len(NOTE_TITLE)}\n\n{text(protection_note(made))}\n"
        (folder / NOTE).write_text(note, encoding="utf-8")
        if not isinstance(given.table, str | os.PathLike) or Path(release.source).suffix.lower() not in SUFFIXES:
            return
        if release.file_format in ("tidy", "described"):
            counts = counts_by_name(read(folder / ABOUT))
            write_back(Origin(Path(given.table), path_of(given.describe), given.sheet), release, counts, folder / PUBLISHED)

    return publish(release, protection, given, finish)


@takes(options.Reconcile)
def reconcile(given: options.Reconcile) -> Reconciled:
    """Make a table add up: every count moved to where all sums hold, as near to the true counts as can be told.

    The result has every count with its mean, standard error and bounds (`to_polars`), and the tables as they came, as frames
    (`tables`). Work on files that was stopped goes on where it was when the same is asked for again.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"town": ["Aa", "Bo"], "all": [20, 15], "young": [5, 10], "old": [10, 10]})
    >>> made = reconcile(frame, describe={"area": "town", "sums": {"all": ["young", "old"]}}, base=5)
    >>> made.summary["sums_off_before"], made.summary["sums_off_after"]
    (2, 0)
    """
    from unround.reconciliation import ReconcileOptions
    from unround.reconciliation import reconcile as reconcile_into
    from unround.reconciliation.layout import tables_of

    reading = replace(given.part(options.Reading), format="auto")
    release = _opened(given.table, reading)
    if release.obstacle:
        raise InputError(release.obstacle)
    into = path_of(given.out) or temporary_folder()
    if any(path.resolve().parent == into.resolve() for path in files_read(given.table, release)):
        raise InputError(f"the result would replace the table in {into}: choose another folder with -o.")
    matches = release.decisions.matches
    written = tables_of(_listed(given.table), given.describe, given.sheet, path_of(given.describe), matches, given.format)
    made = reconcile_into(
        release,
        into,
        ReconcileOptions(given.real, given.round),
        truth=_truth(given.truth, release),
        write=written,
        progress=given.progress,
        command=given.command,
        files_used=paths_of(given.table, given.truth, given.describe, given.nesting),
    )
    return made if given.out is not None else lent_to(made, into)


@takes(options.Compare)
def compare(given: options.Compare) -> Comparison:
    """Publish the same table in several ways, infer what can be inferred from each, and compare it with the truth."""
    from unround.comparison import DEFAULT, TODAY, WHAT_IFS, cell_key_designs, from_release, practice, simulated
    from unround.comparison import compare as compare_practices
    from unround.comparison import what_if as changed

    refuse_file(given.out)
    truth = None if given.truth is None else _read(given.truth, given, given.progress)
    if truth is None:
        material = simulated(2000 if given.areas is None else given.areas, given.seed, given.rows or "age")
    else:
        material = from_release(truth, None if given.exact is None else tuple(given.exact))
    if given.what_if is None:
        named = DEFAULT if given.mechanism is None else given.mechanism
        chosen = named if given.designs is None else cell_key_designs(given.designs)
        practices = [practice(name, material) for name in chosen]
    else:
        wanted = WHAT_IFS if tuple(given.what_if) == ("all",) else given.what_if
        practices = [practice(TODAY, material), *(changed(name, material) for name in wanted if name != TODAY)]
    compared = compare_practices(
        material,
        practices,
        given.seed,
        given.seeds,
        given.threshold,
        given.progress,
    )
    compared = replace(compared, designs=given.designs is not None)
    if given.out is not None:
        from unround.show.compare import comparison
        from unround.show.page import page

        write_result(given.out, "compare", compared.to_json(), page(comparison(compared)))
    return compared


# -- research ---------------------------------------------------------------------------------------------------------


@takes(options.Simulate)
def simulate(given: options.Simulate) -> Simulated:
    """Write a synthetic census, rounded as declared, together with its true counts; or records, and tables of them."""
    from unround.simulation import census
    from unround.simulation.persons import simulate_persons

    if given.format not in (None, "tidy") and given.persons:
        raise ArgumentError("{format} is tidy for {persons}: leave it out.")
    given = replace(given, mechanism=mechanism_name(None, given.mechanism))
    return (simulate_persons if given.persons else census)(given)


@takes(options.Reconstruct)
def reconstruct(given: options.Reconstruct) -> Reconstruction:
    """Measure how much of each person could be reconstructed from tables, on people whose truth is known.

    Without the true records it refuses: reconstructed persons of a real release are never written. From records that
    `simulate` did not draw, aggregates alone are written.
    """
    from unround.reconstruction import reconstruct as measure
    from unround.show.reconstruct import write_page

    if given.truth is None:
        raise ArgumentError(
            "reconstruct needs {truth}: the true records, one row per person. It measures how much of them tables give "
            "away; without a truth there is nothing to measure, only persons to be guessed at, and unround does not write "
            "reconstructed persons about a real release. `unround simulate --persons` draws records to try it on."
        )
    reading = vars(given.part(options.Reading))
    return measure([read(table, **reading) for table in _listed(given.table)], given, paths_of(given.table), write_page)


# -- what is given, and what it stands for ----------------------------------------------------------------------------


def open_table(table: Table, given: options.Opening) -> Release:
    """Return one table as a release. A table that nobody described is described on the way."""
    release = _release_of(table, given)
    if not release.columns:
        figures = "; ".join(f"{len(those):,} columns of {why}" for why, those in release.left_out.items())
        raise InputError(
            f"{release.source} has no counts{f': it has {figures}' if figures else ''}. There is nothing to audit in a "
            "table without counts; give the table of counts that its figures come from."
        )
    return release


def _release_of(table: Table, given: options.Opening) -> Release:
    from unround.release import Release
    from unround.tables import describe, read_frame
    from unround.tables import read as read_file
    from unround.tables.description import decided
    from unround.tables.frames import from_frame

    description, exact = given.describe, getattr(given, "exact", ())
    if isinstance(table, str | os.PathLike):
        if not os.fspath(table):
            raise InputError("the name of the file is empty.")
        if isinstance(description, Mapping):
            raise InputError("a file is described by a TOML file; only a frame is described by keys and values.")
        said = said_of_columns(table if description is None else description)
        if said is not None:
            data = _data_of(said) if description is None else table
            return decided(_release_of(data, replace(given, describe=None)), said)
        try:
            if given.sheet is None:
                return read_file(Path(table), given.format, path_of(description))
        except UnknownFormat:
            pass
        return describe(Path(table), sheet=given.sheet, exact=exact).release
    if given.sheet is not None:
        raise ArgumentError("{sheet} is for spreadsheets, and this is not a file: leave it out.")
    if given.format != "auto":
        raise ArgumentError("{format} is for files, and this is not a file: leave it out.")
    if isinstance(table, Release):
        said = None if description is None else said_of_columns(description)
        if description is not None and said is None:
            raise InputError("axes are those of a table that is yet to be read, not of a Release.")
        return table if said is None else decided(table, said)
    if description is not None and not isinstance(description, Mapping):
        raise InputError("a frame is described by keys and values, not by a file.")
    if description is None:
        return read_frame(table) or describe(table, exact=exact).release
    return from_frame(table, description)


def _data_of(said: Description) -> Path:
    """Return the file that a TOML is about."""
    if said.data is None:
        raise InputError(f'{said.where} does not say which file it is about: add data = "…", or give the table too.')
    return said.data


def mechanism_name(base: int | None, mechanism: Mechanism | str | None) -> str | None:
    """Return the name of the mechanism that a base or a mechanism stands for; None where neither is given."""
    from unround.mechanisms import Mechanism, Rounding

    if base is not None:
        return Rounding(base).name
    return mechanism.name if isinstance(mechanism, Mechanism) else mechanism


def said_of_columns(description: object) -> Description | None:
    """Return what a TOML, or keys and values, say of the columns of a table that needs no axes to be read; else None."""
    from unround.small_files import parsed_toml, small_text
    from unround.tables.description import make_description, read_description, says_axes

    if isinstance(description, Mapping):
        return None if says_axes(description) else make_description(description)
    if not isinstance(description, str | os.PathLike) or Path(description).suffix.lower() != ".toml":
        return None
    path = Path(description)
    if not os.path.isfile(path) or says_axes(parsed_toml(small_text(path, "TOML"), str(path))):
        return None
    return read_description(path)


def audit_folder(folder: job.AuditFolder | AnyPath) -> job.AuditFolder:
    """Return an audit by its folder."""
    from unround.job import AuditFolder

    return folder if isinstance(folder, AuditFolder) else AuditFolder.open(Path(folder))


def folder_to_show(folder: Any) -> Path:
    """Return the folder of an audit, or of a table that was made to add up."""
    from unround.reconciliation import Reconciled
    from unround.web.reconciled import is_reconciled

    given = folder.folder if isinstance(folder, Reconciled) else folder
    return Path(given) if isinstance(given, str | os.PathLike) and is_reconciled(Path(given)) else audit_folder(given).path


def finished_audit(table: Table) -> job.AuditFolder | None:
    """Return the finished audit that stands in the place of a table; None if it is a table."""
    from unround.job import AuditFolder

    single = table[0] if isinstance(table, list | tuple) and len(table) == 1 else table
    is_folder = isinstance(single, str | os.PathLike) and os.path.isdir(single)
    return audit_folder(single) if is_folder or isinstance(single, AuditFolder) else None


def equations_of(source: AnyPath) -> tuple[str, str]:
    """Return the text of a system, and what to call it in errors."""
    from unround.small_files import SMALL, decoded, plain_text

    if isinstance(source, str) and ("=" in source or not source.strip()):
        return source, "<text>"
    if source == "-":
        content = sys.stdin.buffer.read(SMALL + 1)
        if len(content) > SMALL:
            raise InputError(f"standard input has more than {SMALL:,} bytes, more than a system can have.")
        return decoded(content, "standard input"), "standard input"
    return plain_text(source, 'To type equations, use =, as in "48! = 20 + 20 + 20".'), os.fspath(source)


def prior_of(source: AnyPath) -> dict[str, dict[int, float]] | None:
    """Return the weights in a JSON file; None for a flat prior."""
    from unround.small_files import plain_text

    if source == "flat":
        return None
    example = 'It should look like {"men": {"12": 0.5, "13": 0.5}}: for each cell, weights of its true counts.'
    text = plain_text(source, 'The prior is "flat" or a JSON file.')
    try:
        loaded = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"{source} is not JSON. {example}") from None
    try:
        return {str(name): {int(v): float(p) for v, p in weights.items()} for name, weights in loaded.items()}
    except (ValueError, AttributeError, TypeError, OverflowError):
        raise InputError(f"{source} cannot be used as a prior. {example}") from None


def header_rows(given: Sequence[int] | str | None) -> list[int] | None:
    """Return the rows of a header: numbers, or text such as 4, 4-5 or 4,5."""
    if given is None or not isinstance(given, str):
        return None if given is None else list(given)
    first, dash, last = (part.strip() for part in given.partition("-"))
    pieces = [part.strip() for part in given.split(",")] if not dash else [first, last]
    if not all(piece.isdigit() and 0 < int(piece) < 10_000 for piece in pieces) or (dash and int(first) > int(last)):
        raise ArgumentError(f"{{header}} must be rows, counted from 1, such as 4 or 4-5; not {given!r}.")
    return list(range(int(first), int(last) + 1)) if dash else sorted({int(piece) for piece in pieces})


def reasons_of(cells: Sequence[str], because: Sequence[str]) -> Iterable[tuple[str, str]]:
    """Return everything that is accepted or left aside with its reason."""
    if cells and len(because) not in (1, len(cells)):
        raise ArgumentError(
            f"{{accept}} and {{ignore}} name {len(cells)}, with {len(because)} reasons: give {{because}} once for all, or "
            "once for each."
        )
    return zip(cells, tuple(because) * len(cells) if len(because) == 1 else because, strict=True)


def path_of(given: object) -> Path | None:
    """Return a path, if it is one."""
    return Path(given) if isinstance(given, str | os.PathLike) else None


def paths_of(*given: Any) -> list[Path] | None:
    """Return all files that take part in an audit; None if something is not a file, so that its state cannot be told."""
    flat = [path for item in given if item is not None for path in (item if isinstance(item, list | tuple) else [item])]
    return [Path(item) for item in flat] if all(isinstance(item, str | os.PathLike) for item in flat) else None


def files_read(table: Table, release: Release) -> list[Path]:
    """Return the files that a table was read from: those that were given, and what a description of it names."""
    given = paths_of(table) or []
    return list(dict.fromkeys(path for path in (*given, *map(Path, release.source.split(" + "))) if os.path.isfile(path)))


def refuse_file(out: AnyPath | None) -> None:
    """Raise if a file is where a folder is to be: before a long run, not after it."""
    if out is not None and os.path.exists(out) and not os.path.isdir(out):
        raise InputError(f"{out} is a file: choose a folder to write into.")


def temporary_folder() -> Path:
    """Return a folder to write into that nobody named; it goes away with the process at the latest."""
    parent = tempfile.mkdtemp(prefix="unround-")
    atexit.register(shutil.rmtree, parent, ignore_errors=True)
    return Path(parent) / "audit"


def lent_to(result: _Result, folder: Path) -> _Result:
    """Let a temporary folder last as long as a result that lies in it."""
    weakref.finalize(result, shutil.rmtree, folder.parent, ignore_errors=True)
    return result


def write_result(out: AnyPath, name: str, data: Mapping[str, Any], page: str) -> None:
    """Write a result as JSON and as a page: both, in place of older ones, or neither."""
    names = f"{name}.json", f"{name}.html"
    with output_folder(Path(out), name, lambda _: names) as output:
        write_json(output.done / names[0], data)
        write_whole(output.done / names[1], page)
        output.publish(names)
