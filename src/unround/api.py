"""The one door: every command of the command line as a Python function of the same name, and `read`.

Those about ways of publishing are in `publishing`, which is the other half of this module.

Wherever a published table is wanted, give a path, several paths (which are read as one release), a polars or pandas frame,
or a `Release`; wherever an audit is wanted, its folder or the `AuditFolder` that `audit` returned. The command line calls
these functions and shows what they return; it does nothing else. What cannot be used, a missing argument included, is an
`InputError`.

Some arguments are the same everywhere. `table` and the keywords in `reading` are those of `read`. `plan` is a plan file (or
what `read_plan` makes of it): your decisions on sums and mechanisms, which `inspect(table).plan()` drafts. `mechanism`
says how the counts were published of which nothing is declared: "laplace:1.45". `progress` is
called with the stage, how much of it is done, and out of how much (by `simulate` and `paper`, with the number of areas
done). `command` is what was typed, to be quoted in the results.

Each function imports what it needs when it is called, so that `import unround` and `unround --help` stay quick.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unround.arguments import (
    AnyPath,
    Stage,
    Table,
    audit_folder,
    declared,
    equations_of,
    files_read,
    lent_to,
    mechanism_name,
    no_progress,
    open_table,
    paths_of,
    plan_file_of,
    prior_of,
    public,
    refuse_hopeless,
    refuse_overwriting,
    temporary_folder,
    write_text,
)
from unround.errors import ArgumentError, InputError
from unround.results.shown import as_result

if TYPE_CHECKING:
    from unround import audits
    from unround.mechanisms import Mechanism
    from unround.release import Release
    from unround.results.described import Described
    from unround.results.one_system import Expectation, Solution
    from unround.results.publishing import Review
    from unround.results.tables import AuditFolder, Check, Diff, Explanation, Inspection, Verification
    from unround.reviews import Policy
    from unround.structure import PlanFile
    from unround.system import System
    from unround.tables import Question

# -- one system -------------------------------------------------------------------------------------------------------


@public
def solve(
    system: System | AnyPath,
    *,
    base: int | None = None,
    mechanism: Mechanism | str | None = None,
    engine: str = "auto",
    top: int = 5,
    threshold: float = 0.66,
    prior: Mapping[str, Mapping[int, float]] | AnyPath | None = None,
) -> Solution:
    """Work out one system: the numbers that you see in a table, and how they add up.

    Parameters
    ----------
    system : System, str or path
        What `parse` returned; text with "=" in it, which is read as equations; or a file of equations ("-": standard input).
    base : int, optional
        The base to which counts in the text were randomly rounded; 5 by default.
    mechanism : Mechanism or str, optional
        How counts in the text were protected, such as "laplace:1.45"; in place of `base`.
    engine : str
        "auto", "tree", "cutset", "elimination", "chains", "cp-sat", "z3" or "brute".
    top : int
        How many of the best solutions to list.
    threshold : float
        Minimum probability to report a value as likely.
    prior : mapping or path, optional
        For each cell, weights of its true counts, {"men": {12: 0.5, 13: 0.5}}, or a JSON file of these; flat by default.

    Examples
    --------
    >>> [(cell.name, cell.mode, cell.kind) for cell in solve("48! = 20 + 20 + 20").cells][1:]
    [('part1', 16, 'proved'), ('part2', 16, 'proved'), ('part3', 16, 'proved')]
    """
    from unround.equations import parse
    from unround.results.one_system import Solution
    from unround.solution import solve as solve_system
    from unround.system import System

    how = mechanism_name(base, mechanism)
    if not isinstance(system, System):
        if not isinstance(system, str | os.PathLike):
            raise InputError(f"unround.solve takes a System, equations or a file of them, not {type(system).__name__}.")
        text, where = equations_of(system)
        system = parse(text, how or "rounding:5", where=where)
    elif how is not None:
        raise InputError("the cells of a System already say how they were published: leave out base and mechanism.")
    weights = prior if prior is None or isinstance(prior, Mapping) else prior_of(prior)
    found = solve_system(system, engine=engine, top=top, threshold=threshold, prior=weights)
    return as_result(Solution, found)


@public
def expect(
    parts: int,
    *,
    exact_total: bool = False,
    base: int = 5,
    zero_parts: int = 0,
    areas: int | None = None,
    threshold: float = 0.66,
) -> Expectation:
    """Say how often sums of one shape give counts away, before looking at any data.

    Parameters
    ----------
    parts, zero_parts : int
        How many parts the sum has, and how many of them are published as 0.
    exact_total : bool
        Whether the total is published exactly.
    base : int
        The base to which counts are randomly rounded.
    areas : int, optional
        In how many areas the sum is published.
    threshold : float
        Minimum probability to report a value as likely.
    """
    from unround.expectation import expectation
    from unround.results.one_system import Expectation

    found = expectation(parts, exact_total=exact_total, base=base, zero_parts=zero_parts, areas=areas, threshold=threshold)
    return as_result(Expectation, found)


# -- a whole release --------------------------------------------------------------------------------------------------


@public
def read(
    table: Table,
    *,
    file_format: str = "auto",
    description: AnyPath | Mapping[str, Any] | None = None,
    sheet: str | None = None,
    base: int | None = None,
    mechanism: Mechanism | str | None = None,
    areas: AnyPath | None = None,
    plan: PlanFile | AnyPath | None = None,
    progress: Stage = no_progress,
    **columns: Any,
) -> Release:
    """Open a published table. Functions that take a table take these arguments too.

    A table in no format that is known, and without a description, is described on the way, as `describe` would; a note of
    the release says so.

    Parameters
    ----------
    table : path, list of paths, frame or Release
        A file as downloaded (CSV, TAB, Parquet, XLSX, ODS or PX), or a frame of polars or pandas. Several become one
        release.
    file_format : str
        For files: "auto", or one of `unround.tables.FORMATS`.
    description : path or mapping, optional
        What the columns of a table are: a TOML file, as `describe` drafts it, or for a frame its keys and values.
    sheet : str, optional
        Which sheet of a spreadsheet without description; by default the one with the largest table.
    base, mechanism : int, Mechanism or str, optional
        How counts were protected, where the table does not say: the base to which they were randomly rounded, or a
        mechanism such as "laplace:1.45".
    areas : path, optional
        A file that says which area lies within which: columns child and parent, or one column per level.
    plan : PlanFile or path, optional
        Your own decisions; here only which columns of several files are the same counts ([[match]]).
    **columns
        For a frame, its description as keywords: `area`, `sums`, `exact` …; see `unround.tables.frames.from_frame`.
    progress
        See the top of this module.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"town": ["Aa", "Bo"], "all": [20, 15], "young": [5, 10], "old": [10, 10]})
    >>> [column.key for column in read(frame, area="town", sums={"all": ["young", "old"]}).columns]
    ['all', 'young', 'old']
    """
    from unround.tables import join
    from unround.tables.areas import with_areas

    tables = list(table) if isinstance(table, list | tuple) else [table]
    how, plan_file = mechanism_name(base, mechanism), plan_file_of(plan)
    matches = plan_file.matches if plan_file else ()
    if len(tables) == 1:
        if matches:
            raise InputError("[[match]] in a plan file links the columns of several files, but only one is given.")
        release = open_table(tables[0], file_format, description, columns, sheet)
    elif not tables:
        raise InputError("there is no table to read: the list is empty.")
    elif description is not None:
        raise InputError("a description is for one table: with several, give each tidy one as the TOML that describes it.")
    else:
        releases = [open_table(one, file_format, None, columns, sheet) for one in tables]
        size = sum(one.size for one in releases)
        release = join(releases, matches, lambda done: progress("Reading the files", done, size))
    release = release if how is None else declared(release, how)
    return release if areas is None else with_areas(release, Path(areas))


def _opened(
    table: Table,
    plan: PlanFile | AnyPath | None,
    mechanism: Mechanism | str | None,
    progress: Stage,
    reading: dict[str, Any],
) -> tuple[Release, PlanFile | None]:
    """Return a table that was read, and the user's decisions on it, the mechanism among them."""
    from unround.release import Release
    from unround.structure import declaring

    plan_file = plan_file_of(plan)
    if mechanism is not None and not isinstance(table, str | os.PathLike | Release | list | tuple):
        reading, mechanism = {**reading, "mechanism": mechanism}, None  # a frame takes it as a part of its description
    release = read(table, plan=plan_file, progress=progress, **reading)
    return release, declaring(plan_file, release, mechanism)


@public
def describe(
    table: Table,
    out: AnyPath | None = None,
    *,
    sheet: str | None = None,
    header: Sequence[int] | None = None,
    value: str | None = None,
    base: int | None = None,
    mechanism: str | None = None,
    ask: Callable[[Question], str] | None = None,
) -> Described:
    """Look at a table of your own and draft its description: axes, totals, sexes, signs, base and exact counts.

    Sums that names suggest are verified on the counts. The result has `toml()`, the text of the description, and `release`.

    Parameters
    ----------
    table : path or frame
        A CSV, Parquet, XLSX, ODS or PX file; or a frame of polars or pandas, long or wide.
    out : path, optional
        The TOML file to write; it must not exist yet.
    sheet : str, optional
        Which sheet of a spreadsheet; by default the one with the largest table.
    header : sequence of int, optional
        The rows of the header, counted from 1, if they are not to be looked for.
    value : str, optional
        The column of counts, where several columns hold numbers.
    base : int, optional
        The base to which counts were randomly rounded, if the agency says so; inferred from the counts by default.
    mechanism : str, optional
        How counts were published, such as "sample:5"; in place of `base`.
    ask : function, optional
        Called with each `Question` that the table leaves open; returns the answer. By default, defaults are taken.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"town": ["Aa", "Bo"], "Total": [21, 15], "Men": [6, 9], "Women": [12, 9]})
    >>> [(one.candidate.shown, one.used) for one in describe(frame).verdicts]
    [('Total = Men + Women', True)]
    """
    from unround.results.described import Described
    from unround.tables import census_format
    from unround.tables import describe as describe_table
    from unround.tables.questions import take_default

    how = mechanism_name(base, mechanism)
    given = Path(table) if isinstance(table, str | os.PathLike) else table
    target = None if out is None else Path(out)
    refuse_overwriting(target)
    if isinstance(given, Path) and given.suffix.lower() == ".toml":
        raise InputError(f"{given} is a description, not a table. To see what comes of it, run: unround inspect {given}")
    if (known := census_format(given)) is not None:
        inspect = f"Run: unround inspect {given}" if isinstance(given, Path) else "Call: unround.inspect(frame)"
        said = given if isinstance(given, Path) else "the frame"
        raise InputError(f"{said} is in the format {known}, which needs no description. {inspect}")
    found = describe_table(given, sheet=sheet, header=header, value=value, mechanism=how, ask=ask or take_default)
    if target is not None:
        write_text(target, found.toml(target))
    return as_result(Described, found)


@public
def inspect(
    table: Table,
    *,
    plan: PlanFile | AnyPath | None = None,
    base: int | None = None,
    mechanism: Mechanism | str | None = None,
    progress: Stage = no_progress,
    **reading: Any,
) -> Inspection:
    """Say what is in a table: its areas and counts, how they were rounded, and which sums hold."""
    from unround.inspection import inspect as inspect_release
    from unround.results.tables import Inspection

    release, plan_file = _opened(table, plan, mechanism_name(base, mechanism), progress, reading)
    return as_result(Inspection, inspect_release(release, plan_file, progress))


@public
def check(
    table: Table,
    *,
    plan: PlanFile | AnyPath | None = None,
    base: int | None = None,
    mechanism: Mechanism | str | None = None,
    progress: Stage = no_progress,
    **reading: Any,
) -> Check:
    """Test on the data themselves whether counts were published as declared, or as inferred where nothing is declared."""
    from unround.checks import check_release
    from unround.results.tables import Check

    release, plan_file = _opened(table, plan, mechanism_name(base, mechanism), progress, reading)
    refuse_hopeless(release, plan_file)
    return as_result(Check, check_release(release, plan_file, progress))


@public
def audit(
    table: Table,
    out: AnyPath | None = None,
    *,
    threshold: float = 0.66,
    prior: str = "fitted",
    population: str = "exact",
    rounding: str = "auto",
    link: bool = True,
    estimates: bool | str = False,
    doubtful: bool = False,
    bom: bool = False,
    figures: str = "verified",
    truth: Table | None = None,
    boundaries: AnyPath | None = None,
    plan: PlanFile | AnyPath | None = None,
    base: int | None = None,
    mechanism: Mechanism | str | None = None,
    cluster: str | None = None,
    block: int | None = None,
    progress: Stage = no_progress,
    command: str = "",
    **reading: Any,
) -> AuditFolder:
    """Work out every count of a table that can be inferred, and write the findings and two reports into a folder.

    An audit of files that was stopped resumes where it was when it is asked for again.

    Parameters
    ----------
    out : path, optional
        The folder. Files appear in it when all are complete, and replace those of an older audit. Without it, the folder is
        a temporary one that goes away with the result.
    threshold : float
        Minimum probability to report a count as likely; the lowest of all priors that were tried must reach it.
    prior : str
        "fitted" to this release, or "flat" (the paper's).
    population : str
        "exact", or "within5" where populations of small areas may have been adjusted by up to 5.
    rounding : str
        "auto" uses the keys that the data show, random numbers that add up as counts do; "independent" none.
    link : bool
        Whether areas within areas are inferred together.
    estimates : bool or str
        Whether to write an estimate of every count, too: True or "means", or "distributions" to add the probability of
        every possible count.
    doubtful : bool
        Whether to list conditional claims even if the check finds that the data contradict the mechanism.
    bom : bool
        Whether CSV files begin with a byte-order mark, by which Excel tells that they are UTF-8.
    figures : str
        "verified" uses the rates, means and medians that the data show to be computed from true counts; "off" none.
    truth : table, optional
        The unrounded table, if you have it: scores every claim.
    boundaries : path, optional
        The shapes of the areas, GeoJSON or TopoJSON: report and explorer show a map, on which codes are matched to areas.
    cluster : str, optional
        The address of a Dask scheduler whose workers share the work.
    block : int, optional
        How many areas to work on at a time; by default as many as fit into memory.
    table, plan, base, mechanism, progress, command, **reading
        See the top of this module.
    """
    from unround.audits import AuditOptions
    from unround.audits import audit as audit_into
    from unround.boundaries import keep_boundaries, read_shapes
    from unround.results.tables import AuditFolder
    from unround.show.report import write_pages
    from unround.tables import with_truth

    options = AuditOptions(threshold, prior, population, estimates, rounding, link, doubtful, block, bom, figures)
    true_counts = None if truth is None else read(truth)
    shapes = None if boundaries is None else read_shapes(Path(boundaries))  # a fault in it shows before anything takes long
    release, plan_file = _opened(table, plan, mechanism_name(base, mechanism), progress, reading)
    refuse_hopeless(release, plan_file)
    if true_counts is not None and any(proposal.origin == "files" for proposal in release.proposals):
        true_counts = with_truth(true_counts, release)

    def report_on(folder: audits.AuditFolder) -> None:
        progress("Reporting", 0, 1)
        if boundaries is not None:
            keep_boundaries(folder, Path(boundaries), shapes)
        write_pages(folder)
        progress("Reporting", 1, 1)

    into = Path(out) if out is not None else temporary_folder()
    done = audit_into(
        release,
        into,
        options,
        plan_file=plan_file,
        truth=true_counts,
        progress=progress,
        command=command,
        finish=report_on,
        files_used=paths_of(table, truth, plan, reading.get("description"), reading.get("areas")),
        cluster=cluster,
    )
    folder = as_result(AuditFolder, done)
    return folder if out is not None else lent_to(folder, into)


@public
def review(
    table: Table,
    out: AnyPath | None = None,
    *,
    policy: Policy | AnyPath | None = None,
    truth: Table | None = None,
    earlier: Table | None = None,
    repairs: Sequence[str] | None = None,
    accept: Mapping[str, str] | None = None,
    reviewer: str = "",
    seed: int = 0,
    draws: int | None = None,
    plan: PlanFile | AnyPath | None = None,
    base: int | None = None,
    mechanism: Mechanism | str | None = None,
    progress: Stage = no_progress,
    command: str = "",
    **reading: Any,
) -> Review:
    """Decide whether a draft table may be published: publish, revise or stop, with reasons and repairs.

    Parameters
    ----------
    out : path, optional
        A folder for review.html, cells.xlsx, review.json and the audit; without it, nothing is written.
    policy : Policy or path, optional
        What may be published: a TOML file, as `unround review --show-policy` prints one; the default policy, unless given.
    truth : table, optional
        The true counts: repairs are published from them, in place of plausible ones, and claims are scored.
    earlier : table, optional
        A release that is already out: the draft is judged by what both together tell beyond what that one does alone.
    repairs : sequence of str, optional
        The repairs to try, as `unround review --help` lists them; all by default, none if it is empty.
    accept : mapping, optional
        Cells that are accepted as they are, "AREA:KEY", each with the reason. They are kept in decisions.jsonl in `out`, and
        apply to every later review of the same table there.
    reviewer : str
        Who accepts them.
    seed, draws : int
        Of all random numbers; and how many times a repair that draws some is published: 5, fewer in large tables.
    table, plan, base, mechanism, progress, command, **reading
        See the top of this module.
    """
    from unround.results.publishing import Review
    from unround.reviews import policy_of
    from unround.reviews import review as decide_on
    from unround.reviews.exceptions import Entry
    from unround.reviews.run import ReviewOptions
    from unround.show.review import write_review
    from unround.tables import with_truth

    if accept and out is None:
        raise ArgumentError("{accept} is recorded in a folder: give one with {out}.")
    rules = policy_of(policy)
    entries = tuple(Entry(cell, because) for cell, because in (accept or {}).items())
    options = ReviewOptions(None if repairs is None else tuple(repairs), entries, reviewer, seed, draws)
    true_counts = None if truth is None else read(truth)
    release, plan_file = _opened(table, plan, mechanism_name(base, mechanism), progress, reading)
    refuse_hopeless(release, plan_file)
    if true_counts is not None and any(proposal.origin == "files" for proposal in release.proposals):
        true_counts = with_truth(true_counts, release)
    found = decide_on(
        release,
        None if out is None else Path(out),
        rules,
        options,
        plan_file=plan_file,
        truth=true_counts,
        earlier=None if earlier is None else read(earlier),
        files=files_read(table, release),
        progress=progress,
        command=command,
        finish=no_progress if out is None else write_review,
    )
    return as_result(Review, found)


# -- an audit ---------------------------------------------------------------------------------------------------------


@public
def report(folder: audits.AuditFolder | AnyPath, *, boundaries: AnyPath | None = None) -> tuple[Path, Path]:
    """Write report.html and report-public.html of an audit again, and return their paths.

    Parameters
    ----------
    folder : AuditFolder or path
        What `audit` returned, or the folder it wrote.
    boundaries : path, optional
        The shapes of the areas, GeoJSON or TopoJSON. They are kept in the folder, for the map of the explorer too.
    """
    from unround.boundaries import keep_boundaries
    from unround.show.report import write_pages

    opened = audit_folder(folder)
    if boundaries is not None:
        keep_boundaries(opened, Path(boundaries))
    return write_pages(opened)


@public
def explain(folder: audits.AuditFolder | AnyPath, area: str, characteristic: str, sex: str | None = None) -> Explanation:
    """Give the argument for one count of an audit, as arithmetic, and its histogram.

    Parameters
    ----------
    folder : AuditFolder or path
        What `audit` returned, or the folder it wrote.
    area : str
        An area's code, the end of it, or its name.
    characteristic : str
        Its ID, its key or its name.
    sex : str, optional
        For tables by sex: "total" (the default), "men" or "women".
    """
    from unround.explanation.cell import explain as explain_cell
    from unround.results.tables import Explanation

    return as_result(Explanation, explain_cell(audit_folder(folder), area, characteristic, sex))


@public
def verify(folder: audits.AuditFolder | AnyPath, *, progress: Stage = no_progress) -> Verification:
    """Check every file of an audit against its hash, and every certificate against the model and the published counts.

    Parameters
    ----------
    folder : AuditFolder or path
        What `audit` returned, or the folder it wrote.
    progress : function
        Is told what is being done, and how far it is.
    """
    from unround.audits.verification import verify as verify_audit
    from unround.results.tables import Verification

    return as_result(Verification, verify_audit(folder.path if hasattr(folder, "path") else Path(folder), progress))


@public
def serve(
    folder: audits.AuditFolder | AnyPath,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    boundaries: AnyPath | None = None,
    started: Callable[[str], None] = no_progress,
) -> None:
    """Serve an audit as a local web page until it is interrupted.

    Parameters
    ----------
    folder : AuditFolder or path
        What `audit` returned, or the folder it wrote.
    host, port
        Where to listen; port 0 takes any that is free.
    boundaries : path, optional
        The shapes of the areas, GeoJSON or TopoJSON, for a map; without it, those that the audit was given.
    started : function
        Called with the page's address once it answers.
    """
    from unround.web.serve import serve as serve_pages

    serve_pages(audit_folder(folder).path, host, port, started, None if boundaries is None else Path(boundaries))


@public
def view(folder: audits.AuditFolder | AnyPath, address: str, *, boundaries: AnyPath | None = None) -> tuple[int, bytes]:
    """Return the status and content of one page that `serve` would show, such as "/findings.json", without a server."""
    from unround.web.serve import get

    if not address.startswith("/"):
        raise InputError(f"an address starts with a slash, as in /findings.json; not {address!r}.")
    return get(audit_folder(folder).path, address, None if boundaries is None else Path(boundaries))


@public
def diff(
    before: audits.AuditFolder | AnyPath,
    after: audits.AuditFolder | AnyPath,
    *,
    report: bool = False,
    progress: Stage = no_progress,
) -> Diff:
    """Compare two audits of the same people: which counts are newly proved or likely.

    Parameters
    ----------
    before, after : AuditFolder or path
        The two audits: without and with a further table, for instance.
    report : bool
        Whether to write the reports of `after` again, with a section on what changed.
    progress
        See the top of this module.
    """
    from unround.differences import diff as compare_audits
    from unround.results.tables import Diff
    from unround.show.report import write_pages

    found = compare_audits(audit_folder(before).path, audit_folder(after).path, progress)
    if report:
        write_pages(found.match.after, diff=found.to_json())
    return as_result(Diff, found)
