"""How often claims are right, the paper recomputed, and worlds to try things on: a function and its options for each.

No `from __future__ import annotations` here: the fields are evaluated, because they are looked at.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY
from pathlib import Path
from typing import Any

from research.calibration import Calibrations, calibrate_release, calibrate_worlds
from research.calibration_document import calibration
from research.paper import Claim, claims
from research.searches import Compound, Experiment, ReleaseSearches, experiment, search_release
from research.variability import measure
from research.worlds import write_world
from unround import read
from unround.api import mechanism_name, refuse_file, write_result
from unround.comparison import TODAY
from unround.errors import ArgumentError
from unround.mechanisms import Mechanism
from unround.options import BASE, OUT, SEED, AnyPath, Opening, Progress, Reading, Table, argument, group, option, takes
from unround.show.page import page
from unround.simulation import Simulated


@group()
class CalibrateOptions(Progress):
    """The options of `calibrate`."""

    out: AnyPath | None = option("Write calibrate.json and calibrate.html there.", "DIR", short="-o", default=None)
    _: KW_ONLY
    world: Sequence[str] | None = option(
        "A world to calibrate on, or all. May be repeated.", "NAME", shown="a short set", split=True, default=None
    )
    release: Table | None = option(
        "A release, in place of simulated ones.",
        "FILE",
        needs=("truth",),
        excludes=("world", "areas", "rows", "base", "mechanism", "rounded_total"),
        default=None,
    )
    truth: Table | None = option("its true counts.", "FILE", needs=("release",), default=None)
    base: int | None = option(BASE, default=None)
    mechanism: Mechanism | str | None = option(
        "How to publish what is simulated.", "NAME:PARAMETER", shown="rounding:5", shell=str, default=None
    )
    rounded_total: bool = option("Round the total of all too; not in the world census.", default=False)
    areas: int | None = option("How many areas to draw of each world.", shown="2000", default=None)
    rows: str | None = option("Which rows of the world census: age or short.", shown="age", default=None)
    seed: int = option(SEED, default=11)


@takes(CalibrateOptions)
def calibrate(given: CalibrateOptions) -> Calibrations:
    """Measure how often claims are right, by the count claimed and the probability stated, on worlds of several kinds."""
    how = mechanism_name(given.base, given.mechanism)
    refuse_file(given.out)
    if given.release is not None:
        calibrated = Calibrations.of([calibrate_release(read(given.release), read(given.truth), given.progress)])
    else:
        calibrated = calibrate_worlds(
            given.world,
            given.areas,
            given.seed,
            how or TODAY,
            given.rows,
            rounded_total=given.rounded_total,
            progress=given.progress,
        )
    if given.out is not None:
        write_result(given.out, "calibrate", calibrated.to_json(), page(calibration(calibrated)))
    return calibrated


@group(kw_only=True)
class PaperOptions(Opening, Progress):
    """The options of `paper`."""

    simulate: bool = option("Run the paper's searches on a simulated census.", default=False)
    areas: int | None = option("how many areas.", shown="61029", needs=("simulate",), default=None)
    seed: int | None = option("the seed of the census.", shown="1", least=0, needs=("simulate",), default=None)
    rows: str | None = option("age, short or all rows of the profile.", shown="all", needs=("simulate",), default=None)
    keys: bool = option("round by keys, not independently.", needs=("simulate",), default=False)
    release: Table | None = option(
        "Run the paper's searches on this release: any table that audit reads.", "FILE", excludes=("simulate",), default=None
    )


@takes(PaperOptions)
def paper(given: PaperOptions) -> tuple[Claim, ...] | tuple[Experiment, Compound] | ReleaseSearches:
    """Recompute every number of the paper; or repeat its searches, on a simulated census or on a release.

    The result is the claims of the paper; or the searches, and an audit with all sums of age by sex; or what each search
    found in the release.
    """
    if given.release is not None:
        release = read(given.release, **vars(given.part(Opening)), progress=given.progress)
        return search_release(release, given.progress)
    if given.part(Opening) != Opening():
        raise ArgumentError("How a file is read goes with {release}: give it.")
    if not given.simulate:
        return claims()
    compound = Compound()
    number = 61_029 if given.areas is None else given.areas
    searched = experiment(
        number,
        1 if given.seed is None else given.seed,
        given.rows or "all",
        lambda done: given.progress("Searching", done, number),
        compound.add,
        keys=given.keys,
    )
    return searched, compound


@group()
class WorldOptions(Progress):
    """The options of `world`."""

    name: str = argument("Which world; `python -m research calibrate --list-worlds` names them.", "NAME")
    out: AnyPath = option(OUT)
    _: KW_ONLY
    areas: int = option("How many areas.", least=1, default=1000)
    seed: int = option("The same seed gives the same world.", least=0, default=1)
    mechanism: Mechanism | str = option("How to publish counts.", "NAME:PARAMETER", shell=str, default="rounding:5")
    rounded_total: bool = option("Round the total of all too.", default=False)


@takes(WorldOptions)
def world(given: WorldOptions) -> Simulated:
    """Write a world as it would be published, as a tidy table, with its true counts beside it."""
    how: Any = mechanism_name(None, given.mechanism)
    typed = f"python -m research world {given.name} -o FOLDER {given.typed('areas', 'seed')}"
    return write_world(given.name, given.out, given.areas, given.seed, how, typed, rounded_total=given.rounded_total)


@group()
class VariabilityOptions(Reading):
    """The options of `variability`."""

    table: Table = argument("Tables over the same people: any that audit reads.", "RELEASE...")
    truth: AnyPath = option("The records behind the tables, one row per person: CSV or Parquet.", "PERSONS")
    _: KW_ONLY
    areas: int = option("How many areas to look at.", least=1, default=5)
    time_limit: float = option("The solver's time for each area.", "SECONDS", above=0, default=10.0)


@takes(VariabilityOptions)
def variability(given: VariabilityOptions) -> dict[str, Any]:
    """Find how different two worlds of persons can be that both fit all tables of an area."""
    tables = list(given.table) if isinstance(given.table, list | tuple) else [given.table]
    releases = [read(table, **vars(given.part(Reading))) for table in tables]
    return measure(releases, Path(given.truth), given.areas, given.time_limit, given.progress)
