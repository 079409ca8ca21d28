"""The one door, second half: commands about ways of publishing as Python functions of the same name.

What arguments have in common stands at the top of `api`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from unround.api import read
from unround.arguments import (
    AnyPath,
    Stage,
    Table,
    material_of,
    mechanism_name,
    names_of,
    no_progress,
    paths_of,
    plan_file_of,
    public,
    refuse_file,
    write_result,
)
from unround.errors import ArgumentError, InputError
from unround.results.shown import as_result

if TYPE_CHECKING:
    from typing import Literal

    from unround.mechanisms import Mechanism
    from unround.replication import Claim, Experiment
    from unround.replication.compound import Compound
    from unround.replication.release import ReleaseSearches
    from unround.results.publishing import Calibrations, Comparison, Protected, RateSteps, Reconstruction, WhatIf
    from unround.simulation import Simulated
    from unround.structure import PlanFile


@overload
def whatif(
    table: Table,
    add: Table,
    out: AnyPath | None = ...,
    *,
    rates: None = ...,
    truth: Table | None = ...,
    repairs: Sequence[str] | None = ...,
    seed: int = ...,
    threshold: float = ...,
    prior: str = ...,
    population: str = ...,
    plan: PlanFile | AnyPath | None = ...,
    progress: Stage = ...,
    command: str = ...,
    **reading: Any,
) -> WhatIf: ...
@overload
def whatif(
    table: Table,
    add: Table | None = ...,
    out: AnyPath | None = ...,
    *,
    rates: Sequence[str] | None,
    truth: Table | None = ...,
    repairs: Sequence[str] | None = ...,
    seed: int = ...,
    threshold: float = ...,
    prior: str = ...,
    population: str = ...,
    plan: PlanFile | AnyPath | None = ...,
    progress: Stage = ...,
    command: str = ...,
    **reading: Any,
) -> WhatIf | RateSteps: ...
@public
def whatif(
    table: Table,
    add: Table | None = None,
    out: AnyPath | None = None,
    *,
    rates: Sequence[str] | None = None,
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
) -> WhatIf | RateSteps:
    """Say what publishing one more table would expose, and which inexpensive repairs of it expose least.

    Or, with `rates` in place of `add`: how coarse rates must be printed to add nothing to what counts give away.

    Parameters
    ----------
    table, **reading
        What is published already, as for `read`.
    add : table
        What may be published in addition.
    out : path, optional
        A folder for both audits, whatif.json and whatif.html; without it, nothing is written. Not with `rates`.
    rates : sequence of str, optional
        Columns of rates; or "numerator of universe", by the keys of counts, for a rate that is not printed yet; or "all"
        for every printed rate that the data show to be computed from true counts. They are computed from the true counts
        (without `truth`, from plausible ones), printed in steps of 0.1 to 10 points, and audited each time.
    truth : table, optional
        The true counts of both: repairs are published from them, and claims are scored.
    repairs : sequence of str, optional
        The repairs to try, as `unround whatif --help` lists them; all by default, none if it is empty.
    seed : int
        Of all random draws.
    threshold, prior, population
        Of all audits, as for `audit`.
    plan, progress, command
        See the top of `api`.
    """
    from unround.audits import AuditOptions
    from unround.results.publishing import WhatIf
    from unround.scenarios import whatif as try_out
    from unround.show.whatif import write_whatif

    plan_file = plan_file_of(plan)
    if rates is not None:
        from unround.results.publishing import RateSteps
        from unround.scenarios import rate_steps

        if add is not None or out is not None or repairs is not None:
            raise ArgumentError("{rates} cannot be combined with {add}, {repairs} or {out}: ask about rates alone.")
        steps = rate_steps(
            read(table, plan=plan_file, **reading),
            [rates] if isinstance(rates, str) else rates,
            AuditOptions(threshold, prior, population),
            plan_file=plan_file,
            truth=None if truth is None else read(truth),
            seed=seed,
            progress=progress,
            command=command,
        )
        return as_result(RateSteps, steps)
    if add is None:
        raise ArgumentError("name the table that may be published in addition ({add}), or rates to ask about ({rates}).")
    found = try_out(
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
    return as_result(WhatIf, found)


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
    figures: str = "true",
    boundaries: bool = False,
    world: str | None = None,
    base: int | None = None,
    mechanism: Mechanism | str | None = None,
    rounded_total: bool = False,
    persons: bool = False,
    people: int | None = None,
    tables: Sequence[str] | None = None,
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
        "age" (33 rows, the default), "short" (462), "income" (140, with rates of low income), "sample" (150, most of them
        sample tables) or "all" (2,631).
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
    figures : str
        What rates, averages and medians are computed from: the "true" counts, the "published" ones; or "none" are written.
    boundaries : bool
        Whether to write made-up shapes of all areas too, boundaries.geojson.gz: they tile a plane, each within its parent.
    world : str, optional
        A world in place of the census, as `unround calibrate --list-worlds` names them.
    base, mechanism : int, Mechanism or str, optional
        With a world or persons: the base to which counts are rounded, or how else they are published; "rounding:5" by
        default.
    rounded_total : bool
        With a world: whether the total of all is rounded too, in place of published exactly.
    persons : bool
        Whether to write records, one row per person, and tables published from them, in place of the census.
    people : int, optional
        With persons: how many of them live in a typical area (400).
    tables : sequence of str, optional
        With persons: the tables to publish; all by default.
    progress
        See the top of `api`.
    """
    from unround.simulation import Constants, Rounds
    from unround.simulation import simulate as write_census

    how = mechanism_name(base, mechanism)
    if persons:
        others = (rows is not None, zipped, levels, apart, repeat != 1, weighted, world, rounded_total)
        if file_format not in (None, "tidy") or any((*others, figures != "true", boundaries)):
            raise ArgumentError(
                "{file_format}, {rows}, {zipped}, {levels}, {apart}, {repeat}, {weighted}, {figures}, {boundaries}, {world} "
                "and {rounded_total} are not about persons: leave them out if you give {persons}."
            )
        return _simulate_persons(out, areas, seed, people, how, tables, keys, constants, progress)
    if people is not None or tables is not None:
        raise ArgumentError("{people} and {tables} go with {persons}.")
    if world is not None:
        from unround.simulation.worlds import world as world_named
        from unround.simulation.worlds.write import simulate_world

        of_census = (rows is not None, zipped, levels, apart, repeat != 1, keys, constants, weighted, figures != "true")
        if file_format not in (None, "tidy") or any(of_census) or boundaries:
            raise ArgumentError(
                "{file_format}, {rows}, {zipped}, {levels}, {apart}, {repeat}, {keys}, {constants}, {weighted}, {figures} "
                "and {boundaries} are for the census: leave them out if you give {world}."
            )
        return simulate_world(Path(out), world_named(world), areas, seed, how or "rounding:5", rounded_total=rounded_total)
    if how is not None or rounded_total:
        raise ArgumentError(
            "the census is published as Canada's is: {base}, {mechanism} and {rounded_total} go with {world}."
        )
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
        rounds=Rounds(Constants.parse(constants) if keys else None, weighted, figures),
        boundaries=boundaries,
    )


def _simulate_persons(
    out: AnyPath,
    areas: int,
    seed: int,
    people: int | None,
    how: str | None,
    tables: Sequence[str] | None,
    keys: bool,
    constants: str,
    progress: Callable[[int], None],
) -> Simulated:
    """Write records and tables published from them."""
    from unround.simulation import Constants
    from unround.simulation.persons.law import TYPICAL
    from unround.simulation.persons.write import simulate_persons

    if constants.strip() and not keys:
        raise ArgumentError("{constants} are those of tables that are rounded by keys: give {keys} too.")
    constant = Constants.parse(constants)
    if constant.given:
        raise ArgumentError("with {persons}, {constants} is one number for all tables, such as 0.")
    return simulate_persons(
        Path(out),
        areas,
        seed,
        TYPICAL if people is None else people,
        how or "rounding:5",
        names=None if tables is None else names_of(tables, "tables"),
        keys=keys,
        constant=constant.everywhere,
        progress=progress,
    )


@public
def protect(
    table: Table,
    out: AnyPath,
    mechanism: str | None = None,
    *,
    base: int | None = None,
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
    mechanism : str, optional
        Such as "rounding:5", "controlled:5" or "laplace:1.45".
    base : int, optional
        In place of `mechanism`: the base to which counts are randomly rounded.
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
        See the top of `api`.
    """
    from unround.protection.release import ProtectOptions
    from unround.protection.release import protect as publish
    from unround.protection.table import by_keys, parse_protection
    from unround.results.publishing import Protected

    how = mechanism_name(base, mechanism)
    if how is None:
        raise ArgumentError("say how to protect the counts: {mechanism}, such as rounding:5 or controlled:5, or {base}.")
    protection = by_keys(parse_protection(how)) if keys else parse_protection(how)
    sums = None if key_sums is None else Path(key_sums)
    options = ProtectOptions(protection, seed, names_of(exact, "exact"), clamp, additive, constant, sums)
    plan_file = plan_file_of(plan)
    release = read(table, plan=plan_file, **reading)
    made = publish(release, Path(out), options, plan_file=plan_file, progress=progress, command=command)
    return as_result(Protected, made)


@public
def reconstruct(
    table: Table,
    out: AnyPath,
    *,
    truth: AnyPath | None = None,
    attributes: Sequence[str] = (),
    kind: Sequence[str] = (),
    seed: int = 1,
    seeds: int = 3,
    worlds: int = 32,
    sample: int = 40,
    ways: Sequence[str] | None = None,
    variability: int = 0,
    time_limit: float = 10.0,
    cluster: str | None = None,
    progress: Stage = no_progress,
    command: str = "",
    **reading: Any,
) -> Reconstruction:
    """Say how much of each person could be reconstructed from tables, on people whose truth is known.

    Without the true records it refuses: reconstructed persons of a real release are never written. From records that
    `simulate` did not draw, aggregates alone are written.

    Parameters
    ----------
    table, **reading
        Tables over the same people, as for `read`: a path, or several in a list.
    out : path
        The folder for summary.json and reconstruct.html; and for reconstructed.parquet and proofs.jsonl, the certificates of
        verified claims, where all persons are simulated.
    truth : path
        The records behind the tables, one row per person: CSV or Parquet.
    attributes : sequence of str
        The attributes that a record consists of; all that the tables are about by default.
    kind : sequence of str
        The attributes by which people are of the same kind; birthplace, language, religion and the like by default.
    seed, seeds, worlds : int
        Of all random draws; how many times to begin anew; and how many worlds to keep each time.
    sample : int
        Areas in which other ways of publishing are tried, tables left out, and claims proved; 0 for none.
    ways : sequence of str, optional
        Ways of publishing to try there; exact, base 3, 5 and 10, keyed, Laplace and controlled by default.
    variability : int
        Areas of the sample in which a solver looks how different two worlds can be that both fit.
    time_limit : float
        The solver's time for each, in seconds.
    cluster : str, optional
        The scheduler of a Dask cluster that does the work, by its address; `out` must be seen by all workers
        under the same path.
    progress, command
        See the top of `api`.
    """
    from unround.reconstruction import ReconstructOptions
    from unround.reconstruction import reconstruct as measure
    from unround.reconstruction.guess import Effort
    from unround.reconstruction.ways import WAYS
    from unround.results.publishing import Reconstruction
    from unround.show.reconstruct import write_page

    if truth is None:
        raise ArgumentError(
            "reconstruct needs {truth}: the true records, one row per person. It measures how much of them tables give "
            "away; without a truth there is nothing to measure, only persons to be guessed at, and unround does not write "
            "reconstructed persons about a real release. `unround simulate --persons` draws records to try it on."
        )
    options = ReconstructOptions(
        seed,
        Effort(worlds=worlds, seeds=seeds),
        names_of(attributes, "attributes"),
        names_of(kind, "kind"),
        sample,
        WAYS if ways is None else names_of(ways, "ways"),
        variability,
        time_limit,
    )
    tables = list(table) if isinstance(table, list | tuple) else [table]
    found = measure(
        [read(one, **reading) for one in tables],
        Path(truth),
        Path(out),
        options,
        files_used=paths_of(table),
        progress=progress,
        command=command,
        finish=write_page,
        cluster=cluster,
    )
    return as_result(Reconstruction, found)


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
    rates: Sequence[str] | None = None,
    rate_step: float = 0.1,
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
        How many areas to simulate (2,000), and which rows ("age" or "short"; "income" has rates of low income).
    rates : sequence of str, optional
        Rates to print beside the counts, computed from true counts and from published ones: columns of rates, "numerator
        of universe" by the keys of counts, or "all" for those that the table has.
    rate_step : float
        What they are rounded to, in points.
    seed, seeds : int
        Of the simulated census and of all draws; and how many times to publish in each way.
    threshold : float
        Minimum probability to report a count as likely.
    progress
        See the top of `api`.
    """
    from unround.comparison import DEFAULT, TODAY, WHAT_IFS, practice
    from unround.comparison import compare as compare_practices
    from unround.comparison import what_if as changed
    from unround.comparison.rates import rates_of
    from unround.results.publishing import Comparison

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
    chosen = () if rates is None else rates_of(material, [rates] if isinstance(rates, str) else rates)
    found = compare_practices(material, practices, seed, seeds, threshold, progress, rates=chosen, step=rate_step)
    if out is not None:
        from unround.show.compare import comparison_page

        write_result(out, "compare", found.to_json(), comparison_page)
    return as_result(Comparison, found)


@public
def calibrate(
    out: AnyPath | None = None,
    *,
    worlds: Sequence[str] | None = None,
    release: Table | None = None,
    truth: Table | None = None,
    base: int | None = None,
    mechanism: Mechanism | str | None = None,
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
    base, mechanism : int, Mechanism or str, optional
        The base to which worlds are rounded, or how else they are published; "rounding:5" by default.
    areas, rows
        How many areas to draw (2,000) of each world, and which rows of the census ("age" or "short").
    rounded_total : bool
        Whether the total of all is rounded too, in place of published exactly; not in the census.
    seed : int
        Of the worlds and of all draws.
    progress
        See the top of `api`.
    """
    from unround.comparison import TODAY
    from unround.comparison.calibration import calibrate_release
    from unround.comparison.worlds import Calibrations as Found
    from unround.comparison.worlds import calibrate_worlds
    from unround.results.publishing import Calibrations

    if (release is None) != (truth is None):
        raise ArgumentError("{release} and {truth} go together: the published table, and its true counts.")
    how = mechanism_name(base, mechanism)
    if release is not None and (areas, rows, how, worlds, rounded_total) != (None, None, None, None, False):
        raise ArgumentError(
            "{worlds}, {areas}, {rows}, {base}, {mechanism} and {rounded_total} are for simulated counts: leave them out "
            "if you give {release}."
        )
    if seed < 0:
        raise InputError(f"a seed is a whole number from 0, not {seed}.")
    refuse_file(out)
    if release is not None:
        found = Found.of([calibrate_release(read(release), read(truth), progress)])
    else:
        found = calibrate_worlds(
            None if worlds is None else names_of(worlds, "worlds"),
            areas,
            seed,
            how or TODAY,
            rows,
            rounded_total=rounded_total,
            progress=progress,
        )
    if out is not None:
        from unround.show.calibrate import calibration_page

        write_result(out, "calibrate", found.to_json(), calibration_page)
    return as_result(Calibrations, found)


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
        See the top of `api`.
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
