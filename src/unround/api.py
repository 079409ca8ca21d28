"""The one door: every command of the command line as a Python function of the same name, and `read`.

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
from typing import TYPE_CHECKING, Any, overload

from unround.arguments import (
    AnyPath,
    Stage,
    Table,
    audit_folder,
    equations_of,
    material_of,
    names_of,
    no_progress,
    open_table,
    paths_of,
    plan_file_of,
    prior_of,
    public,
    refuse_file,
    write_result,
)
from unround.errors import ArgumentError, InputError

if TYPE_CHECKING:
    from typing import Literal

    from unround.audits import AuditFolder
    from unround.audits.verification import Verification
    from unround.checks import Check
    from unround.comparison import Comparison
    from unround.comparison.worlds import Calibrations
    from unround.differences import Diff
    from unround.expectation import Expectation
    from unround.explanation.cell import Explanation
    from unround.inspection import Inspection
    from unround.mechanisms import Mechanism
    from unround.protection.release import Protected
    from unround.release import Release
    from unround.replication import Claim, Experiment
    from unround.replication.compound import Compound
    from unround.replication.release import ReleaseSearches
    from unround.scenarios import WhatIf
    from unround.simulation import Simulated
    from unround.solution import Solution
    from unround.structure import PlanFile
    from unround.system import System

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
        "auto", "tree", "cutset", "cp-sat", "z3" or "brute".
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
    from unround.mechanisms import Rounding
    from unround.solution import solve as solve_system
    from unround.system import System

    if base is not None and mechanism is not None:
        raise ArgumentError("{base} and {mechanism} exclude each other: give one of them.")
    if not isinstance(system, System):
        if not isinstance(system, str | os.PathLike):
            raise InputError(f"unround.solve takes a System, equations or a file of them, not {type(system).__name__}.")
        text, where = equations_of(system)
        system = parse(text, mechanism or Rounding(5 if base is None else base), where=where)
    elif base is not None or mechanism is not None:
        raise InputError("the cells of a System already say how they were published: leave out base and mechanism.")
    weights = prior if prior is None or isinstance(prior, Mapping) else prior_of(prior)
    return solve_system(system, engine=engine, top=top, threshold=threshold, prior=weights)


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

    return expectation(parts, exact_total=exact_total, base=base, zero_parts=zero_parts, areas=areas, threshold=threshold)


# -- a whole release --------------------------------------------------------------------------------------------------


@public
def read(
    table: Table,
    *,
    file_format: str = "auto",
    description: AnyPath | Mapping[str, Any] | None = None,
    areas: AnyPath | None = None,
    plan: PlanFile | AnyPath | None = None,
    progress: Stage = no_progress,
    **columns: Any,
) -> Release:
    """Open a published table. Functions that take a table take these arguments too.

    Parameters
    ----------
    table : path, list of paths, frame or Release
        A file as downloaded (CSV, TAB or Parquet, also zipped), or a frame of polars or pandas. Several become one release.
    file_format : str
        For files: "auto", or one of `unround.readers.FORMATS`.
    description : path or mapping, optional
        What the columns of a tidy table are: a TOML file, or for a frame its keys and values.
    areas : path, optional
        A file that says which area lies within which: columns child and parent, or one column per level.
    plan : PlanFile or path, optional
        Your own decisions; here only which columns of several files are the same counts ([[match]]).
    **columns
        For a frame, its description as keywords: `area`, `sums`, `mechanism` …; see `unround.readers.frames.from_frame`.
    progress
        See the top of this module.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"town": ["Aa", "Bo"], "all": [20, 15], "young": [5, 10], "old": [10, 10]})
    >>> [column.key for column in read(frame, area="town", sums={"all": ["young", "old"]}).columns]
    ['all', 'young', 'old']
    """
    from unround.join import join
    from unround.readers.areas import with_areas

    tables = list(table) if isinstance(table, list | tuple) else [table]
    plan_file = plan_file_of(plan)
    matches = plan_file.matches if plan_file else ()
    if len(tables) == 1:
        if matches:
            raise InputError("[[match]] in a plan file links the columns of several files, but only one is given.")
        release = open_table(tables[0], file_format, description, columns)
    elif not tables:
        raise InputError("there is no table to read: the list is empty.")
    elif description is not None:
        raise InputError("a description is for one table: with several, give each tidy one as the TOML that describes it.")
    else:
        releases = [open_table(one, file_format, None, columns) for one in tables]
        size = sum(one.size for one in releases)
        release = join(releases, matches, lambda done: progress("Reading the files", done, size))
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
def inspect(
    table: Table,
    *,
    plan: PlanFile | AnyPath | None = None,
    mechanism: Mechanism | str | None = None,
    progress: Stage = no_progress,
    **reading: Any,
) -> Inspection:
    """Say what is in a table: its areas and counts, how they were rounded, and which sums hold."""
    from unround.inspection import inspect as inspect_release

    return inspect_release(*_opened(table, plan, mechanism, progress, reading), progress)


@public
def check(
    table: Table,
    *,
    plan: PlanFile | AnyPath | None = None,
    mechanism: Mechanism | str | None = None,
    progress: Stage = no_progress,
    **reading: Any,
) -> Check:
    """Test on the data themselves whether counts were published as declared, or as inferred where nothing is declared."""
    from unround.checks import check_release

    return check_release(*_opened(table, plan, mechanism, progress, reading), progress)


@public
def audit(
    table: Table,
    out: AnyPath,
    *,
    threshold: float = 0.66,
    prior: str = "fitted",
    population: str = "exact",
    rounding: str = "auto",
    link: bool = True,
    estimates: bool = False,
    doubtful: bool = False,
    truth: Table | None = None,
    plan: PlanFile | AnyPath | None = None,
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
    out : path
        The folder. Files appear in it when all are complete, and replace those of an older audit.
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
    estimates : bool
        Whether to write an estimate of every count, too.
    doubtful : bool
        Whether to list conditional claims even if the check finds that the data contradict the mechanism.
    truth : table, optional
        The unrounded table, if you have it: scores every claim.
    cluster : str, optional
        The address of a Dask scheduler whose workers share the work.
    block : int, optional
        How many areas to work on at a time; by default as many as fit into memory.
    table, plan, mechanism, progress, command, **reading
        See the top of this module.
    """
    from unround.audits import AuditOptions
    from unround.audits import audit as audit_into
    from unround.join import with_truth
    from unround.presentation.report import write_pages

    options = AuditOptions(threshold, prior, population, estimates, rounding, link, doubtful, block)
    true_counts = None if truth is None else read(truth)
    release, plan_file = _opened(table, plan, mechanism, progress, reading)
    if true_counts is not None and any(proposal.origin == "files" for proposal in release.proposals):
        true_counts = with_truth(true_counts, release)

    def report_on(folder: AuditFolder) -> None:
        progress("Reporting", 0, 1)
        write_pages(folder)
        progress("Reporting", 1, 1)

    return audit_into(
        release,
        Path(out),
        options,
        plan_file=plan_file,
        truth=true_counts,
        progress=progress,
        command=command,
        finish=report_on,
        files_used=paths_of(table, truth, plan, reading.get("description"), reading.get("areas")),
        cluster=cluster,
    )


# -- an audit ---------------------------------------------------------------------------------------------------------


@public
def report(folder: AuditFolder | AnyPath) -> tuple[Path, Path]:
    """Write report.html and report-public.html of an audit again, and return their paths."""
    from unround.presentation.report import write_pages

    return write_pages(audit_folder(folder))


@public
def explain(folder: AuditFolder | AnyPath, area: str, characteristic: str, sex: str | None = None) -> Explanation:
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

    return explain_cell(audit_folder(folder), area, characteristic, sex)


@public
def verify(folder: AuditFolder | AnyPath, *, progress: Stage = no_progress) -> Verification:
    """Check every file of an audit against its hash, and every certificate against the model and the published counts.

    Parameters
    ----------
    folder : AuditFolder or path
        What `audit` returned, or the folder it wrote.
    progress : function
        Is told what is being done, and how far it is.
    """
    from unround.audits.verification import verify as verify_audit

    return verify_audit(folder.path if hasattr(folder, "path") else Path(folder), progress)


@public
def serve(
    folder: AuditFolder | AnyPath,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    started: Callable[[str], None] = no_progress,
) -> None:
    """Serve an audit as a local web page until it is interrupted.

    Parameters
    ----------
    folder : AuditFolder or path
        What `audit` returned, or the folder it wrote.
    host, port
        Where to listen; port 0 takes any that is free.
    started : function
        Called with the page's address once it answers.
    """
    from unround.web.serve import serve as serve_pages

    serve_pages(audit_folder(folder).path, host, port, started)


@public
def view(folder: AuditFolder | AnyPath, address: str) -> tuple[int, bytes]:
    """Return the status and content of one page that `serve` would show, such as "/findings.json", without a server."""
    from unround.web.serve import get

    if not address.startswith("/"):
        raise InputError(f"an address starts with a slash, as in /findings.json; not {address!r}.")
    return get(audit_folder(folder).path, address)


@public
def diff(
    before: AuditFolder | AnyPath,
    after: AuditFolder | AnyPath,
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
    from unround.presentation.report import write_pages

    found = compare_audits(audit_folder(before).path, audit_folder(after).path, progress)
    if report:
        write_pages(found.match.after, diff=found.to_json())
    return found


# -- other ways of publishing -----------------------------------------------------------------------------------------


@public
def whatif(
    table: Table,
    add: Table,
    out: AnyPath | None = None,
    *,
    truth: Table | None = None,
    repairs: Sequence[str] | None = None,
    seed: int = 0,
    threshold: float = 0.66,
    prior: str = "fitted",
    population: str = "exact",
    plan: PlanFile | AnyPath | None = None,
    progress: Stage = no_progress,
    command: str = "",
    **reading: Any,
) -> WhatIf:
    """Say what publishing one more table would expose, and which inexpensive repairs of it expose least.

    Parameters
    ----------
    table, **reading
        What is published already, as for `read`.
    add : table
        What may be published in addition.
    out : path, optional
        A folder for both audits, whatif.json and whatif.html; without it, nothing is written.
    truth : table, optional
        The true counts of both: repairs are published from them, and claims are scored.
    repairs : sequence of str, optional
        The repairs to try, as `unround whatif --help` lists them; all by default, none if it is empty.
    seed : int
        Of all random draws.
    threshold, prior, population
        Of all audits, as for `audit`.
    plan, progress, command
        See the top of this module.
    """
    from unround.audits import AuditOptions
    from unround.presentation.whatif import write_whatif
    from unround.scenarios import whatif as try_out

    plan_file = plan_file_of(plan)
    return try_out(
        read(table, plan=plan_file, **reading),
        read(add),
        None if out is None else Path(out),
        AuditOptions(threshold, prior, population),
        plan_file=plan_file,
        truth=None if truth is None else read(truth),
        seed=seed,
        wanted=repairs,
        progress=progress,
        command=command,
        finish=no_progress if out is None else write_whatif,
    )


@public
def simulate(
    out: AnyPath,
    *,
    areas: int = 1000,
    seed: int = 1,
    file_format: str | None = None,
    rows: str | None = None,
    zipped: bool = False,
    levels: str | None = None,
    apart: bool = False,
    repeat: int = 1,
    keys: bool = False,
    constants: str = "",
    weighted: bool = False,
    world: str | None = None,
    mechanism: str | None = None,
    rounded_total: bool = False,
    progress: Callable[[int], None] = no_progress,
) -> Simulated:
    """Write a synthetic census, published as Canada's is, or another world; together with its true counts.

    Parameters
    ----------
    out : path
        The folder. Files appear in it when all are complete.
    areas, seed : int
        How many areas, of all levels; and the seed: the same one gives the same census.
    file_format : str
        "statcan" (bulk CSV, the default), "censusmapper" (wide) or "tidy" (Parquet, the only one for other worlds).
    rows : str
        "age" (33 rows, the default), "short" (462), "sample" (150, most of them sample tables) or "all" (2,631).
    zipped : bool
        Whether to zip the bulk CSV together with its companion files.
    levels : str, optional
        The levels to write, separated by commas, such as "da,csd,cd,province"; also writes areas.csv.
    apart : bool
        Whether to write one file per level.
    repeat : int
        How many times to publish, each time rounded anew and into files of its own.
    keys : bool
        Whether every record has a key, and a count is rounded by the sum of its records' keys and a constant of its table.
        Also writes constants.csv, and the sums of keys into truth.parquet.
    constants : str
        With `keys`: the constants of the tables, as "0" for all or "8=0.31,58=0.19" for some; the others are drawn.
    weighted : bool
        Whether sample tables show weighted estimates, which are not whole before they are rounded.
    world : str, optional
        A world in place of the census, as `unround calibrate --list-worlds` names them.
    mechanism : str, optional
        With a world: how it is published; "rounding:5" by default.
    rounded_total : bool
        With a world: whether the total of all is rounded too, in place of published exactly.
    progress
        See the top of this module.
    """
    from unround.simulation import Constants, Rounds
    from unround.simulation import simulate as write_census

    if world is not None:
        from unround.simulation.worlds import world as world_named
        from unround.simulation.worlds.write import simulate_world

        of_census = (rows is not None, zipped, levels, apart, repeat != 1, keys, constants, weighted)
        if file_format not in (None, "tidy") or any(of_census):
            raise ArgumentError(
                "{file_format}, {rows}, {zipped}, {levels}, {apart}, {repeat}, {keys}, {constants} and {weighted} are for "
                "the census: leave them out if you give {world}."
            )
        return simulate_world(
            Path(out), world_named(world), areas, seed, mechanism or "rounding:5", rounded_total=rounded_total
        )
    if mechanism is not None or rounded_total:
        raise ArgumentError("the census is published as Canada's is: {mechanism} and {rounded_total} go with {world}.")
    if constants.strip() and not keys:
        raise ArgumentError("{constants} are those of tables that are rounded by keys: give {keys} too.")
    return write_census(
        Path(out),
        areas,
        seed,
        file_format or "statcan",
        rows or "age",
        zipped,
        progress,
        levels=levels,
        apart=apart,
        repeat=repeat,
        rounds=Rounds(Constants.parse(constants) if keys else None, weighted),
    )


@public
def protect(
    table: Table,
    out: AnyPath,
    mechanism: str,
    *,
    seed: int | None = None,
    clamp: bool = False,
    additive: bool = False,
    exact: Sequence[str] = (),
    keys: bool = False,
    constant: float | None = None,
    key_sums: AnyPath | None = None,
    plan: PlanFile | AnyPath | None = None,
    progress: Stage = no_progress,
    command: str = "",
    **reading: Any,
) -> Protected:
    """Publish a table of true counts under a mechanism, and say what that costs.

    Parameters
    ----------
    table, **reading
        The true counts, as for `read`; a frame's own `mechanism` or `exact` can only be in its `description`.
    out : path
        The folder. Files appear in it when all are complete, and replace those of an older protected table.
    mechanism : str
        Such as "rounding:5", "controlled:5" or "laplace:1.45".
    seed : int, optional
        Draw the same random numbers again; without it, they come from the operating system.
    clamp : bool
        Whether to publish negative counts as 0.
    additive : bool
        Whether to move counts afterwards to the nearest whole numbers that add up.
    exact : sequence of str
        What to publish exactly: population, dwellings, keys or names of columns.
    keys : bool
        Whether counts are rounded by the sum of their records' keys and a constant of the table, in place of each by a
        random number of its own. Keys follow from the seed and the names of area and column.
    constant : float, optional
        With `keys`: the constant of all tables, from 0 to 1; without it, one is drawn for each.
    key_sums : path, optional
        With `keys`: a table with the columns that name areas and counts in `table`, and `key`: the sum of the keys of a
        count's records. Without it, sums of keys are drawn that could be theirs.
    plan, progress, command
        See the top of this module.
    """
    from unround.protection.release import ProtectOptions
    from unround.protection.release import protect as publish
    from unround.protection.table import by_keys, parse_protection

    how = parse_protection(mechanism)
    how = by_keys(how) if keys else how
    sums = None if key_sums is None else Path(key_sums)
    options = ProtectOptions(how, seed, names_of(exact, "exact"), clamp, additive, constant, sums)
    plan_file = plan_file_of(plan)
    release = read(table, plan=plan_file, **reading)
    return publish(release, Path(out), options, plan_file=plan_file, progress=progress, command=command)


@public
def compare(
    out: AnyPath | None = None,
    *,
    mechanisms: Sequence[str] | None = None,
    what_if: Sequence[str] | None = None,
    truth: Table | None = None,
    exact: Sequence[str] | None = None,
    areas: int | None = None,
    rows: str | None = None,
    seed: int = 11,
    seeds: int = 5,
    threshold: float = 0.66,
    progress: Stage = no_progress,
) -> Comparison:
    """Publish the same table in several ways, infer what can be inferred from each, and judge both by the truth.

    Parameters
    ----------
    out : path, optional
        A folder for compare.json and compare.html; without it, nothing is written.
    mechanisms : sequence of str, optional
        Ways of publishing; the first is what the others are compared with.
    what_if : sequence of str, optional
        Changes to today's practice, in place of `mechanisms`: "drop-invariants", "base=10" … or ["all"].
    truth : table, optional
        True counts of your own, in place of simulated ones.
    exact : sequence of str, optional
        With `truth`: what is published exactly today; by default population and dwellings.
    areas, rows
        How many areas to simulate (2,000), and which rows ("age" or "short").
    seed, seeds : int
        Of the simulated census and of all draws; and how many times to publish in each way.
    threshold : float
        Minimum probability to report a count as likely.
    progress
        See the top of this module.
    """
    from unround.comparison import DEFAULT, TODAY, WHAT_IFS, practice
    from unround.comparison import compare as compare_practices
    from unround.comparison import what_if as changed

    if mechanisms is not None and what_if is not None:
        raise ArgumentError("{mechanisms} and {what_if} exclude each other: give one of them.")
    refuse_file(out)
    material = material_of(truth, exact, areas, rows, seed)
    if what_if is None:
        names = DEFAULT if mechanisms is None else names_of(mechanisms, "mechanisms")
        practices = [practice(name, material) for name in names]
    else:
        wanted = names_of(what_if, "what_if")
        wanted = WHAT_IFS if wanted == ("all",) else wanted
        practices = [practice(TODAY, material), *(changed(name, material) for name in wanted if name != TODAY)]
    found = compare_practices(material, practices, seed, seeds, threshold, progress)
    if out is not None:
        from unround.presentation.compare import comparison_page

        write_result(out, "compare", found.to_json(), comparison_page)
    return found


@public
def calibrate(
    out: AnyPath | None = None,
    *,
    worlds: Sequence[str] | None = None,
    release: Table | None = None,
    truth: Table | None = None,
    mechanism: str | None = None,
    areas: int | None = None,
    rows: str | None = None,
    rounded_total: bool = False,
    seed: int = 11,
    progress: Stage = no_progress,
) -> Calibrations:
    """Say how often claims are right, by the count claimed and the probability stated, on worlds of several kinds.

    Parameters
    ----------
    out : path, optional
        A folder for calibrate.json and calibrate.html; without it, nothing is written.
    worlds : sequence of str, optional
        Worlds to draw, publish and audit, as `unround calibrate --list-worlds` names them, or ["all"]; a few by default.
    release, truth : table, optional
        A published table and its true counts, in place of worlds.
    mechanism : str, optional
        How to publish worlds; "rounding:5" by default.
    areas, rows
        How many areas to draw (2,000) of each world, and which rows of the census ("age" or "short").
    rounded_total : bool
        Whether the total of all is rounded too, in place of published exactly; not in the census.
    seed : int
        Of the worlds and of all draws.
    progress
        See the top of this module.
    """
    from unround.comparison import TODAY
    from unround.comparison.calibration import calibrate_release
    from unround.comparison.worlds import Calibrations, calibrate_worlds

    if (release is None) != (truth is None):
        raise ArgumentError("{release} and {truth} go together: the published table, and its true counts.")
    if release is not None and (areas, rows, mechanism, worlds, rounded_total) != (None, None, None, None, False):
        raise ArgumentError(
            "{worlds}, {areas}, {rows}, {mechanism} and {rounded_total} are for simulated counts: leave them out if you "
            "give {release}."
        )
    if seed < 0:
        raise InputError(f"a seed is a whole number from 0, not {seed}.")
    refuse_file(out)
    if release is not None:
        found = Calibrations.of([calibrate_release(read(release), read(truth), progress)])
    else:
        found = calibrate_worlds(
            None if worlds is None else names_of(worlds, "worlds"),
            areas,
            seed,
            mechanism or TODAY,
            rows,
            rounded_total=rounded_total,
            progress=progress,
        )
    if out is not None:
        from unround.presentation.calibrate import calibration_page

        write_result(out, "calibrate", found.to_json(), calibration_page)
    return found


@overload
def paper(
    *,
    simulate: Literal[False] = False,
    areas: int | None = ...,
    seed: int | None = ...,
    rows: str | None = ...,
    keys: bool = ...,
) -> tuple[Claim, ...]: ...
@overload
def paper(
    *,
    simulate: Literal[True],
    areas: int | None = ...,
    seed: int | None = ...,
    rows: str | None = ...,
    keys: bool = ...,
    progress: Callable[[int], None] = ...,
) -> tuple[Experiment, Compound]: ...
@overload
def paper(
    *,
    release: Table,
    simulate: bool = ...,
    areas: int | None = ...,
    seed: int | None = ...,
    rows: str | None = ...,
    keys: bool = ...,
    plan: PlanFile | AnyPath | None = ...,
    progress: Stage = ...,
    **reading: Any,
) -> ReleaseSearches: ...
@public
def paper(
    *,
    simulate: bool = False,
    areas: int | None = None,
    seed: int | None = None,
    rows: str | None = None,
    keys: bool = False,
    release: Table | None = None,
    plan: PlanFile | AnyPath | None = None,
    progress: Callable[..., None] = no_progress,
    **reading: Any,
) -> tuple[Claim, ...] | tuple[Experiment, Compound] | ReleaseSearches:
    """Recompute every number of the paper; or repeat its searches, on a simulated census or on a release.

    Parameters
    ----------
    simulate : bool
        Whether to search a simulated census. The result is then the searches, and an audit with all sums of age by sex.
    areas, seed, rows
        Of the simulated census: 61,029 areas, seed 1 and all rows, unless given.
    keys : bool
        Whether the simulated census is rounded by keys of records, in place of each count independently.
    release : table, optional
        A release to search under the paper's conditions, as for `read`. The result is then what each search found.
    plan, progress, **reading
        See the top of this module.
    """
    from unround.replication import claims, experiment
    from unround.replication.compound import Compound

    if release is not None:
        if simulate or keys or (areas, seed, rows) != (None, None, None):
            raise ArgumentError("{simulate}, {areas}, {seed}, {rows} and {keys} are for a simulated census: leave them out.")
        from unround.replication.release import search_release

        plan_file = plan_file_of(plan)
        return search_release(read(release, plan=plan_file, progress=progress, **reading), plan_file, progress)
    if plan is not None or reading:
        raise ArgumentError("{plan} and how a file is read go with {release}.")
    if not simulate:
        if keys or (areas, seed, rows) != (None, None, None):
            raise ArgumentError("{areas}, {seed}, {rows} and {keys} are for a simulated census: use them with {simulate}.")
        return claims()
    compound = Compound()
    number = 61_029 if areas is None else areas
    searched = experiment(number, 1 if seed is None else seed, rows or "all", progress, compound.add, keys=keys)
    return searched, compound
