"""Commands about ways of publishing: whatif, simulate, protect, compare, calibrate, paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unround import publishing
from unround.cli.common import (
    Areas,
    Base,
    Describe,
    Format,
    Json,
    LowestThreshold,
    Mechanism,
    Output,
    Plan,
    Population,
    Prior,
    bar,
    console,
    listed,
    print_json,
    say,
    stages,
    typed,
)
from unround.errors import InputError

SimulatedAreas = Annotated[int | None, typer.Option(help="How many areas to simulate.", show_default="2000")]
SimulatedRows = Annotated[str | None, typer.Option(help="Which rows to simulate: age, short or income.", show_default="age")]
Seed = Annotated[int, typer.Option(help="Seed of the census and of all random draws: the same seed gives the same numbers.")]


def whatif(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="What is published: any table that audit reads.")],
    add: Annotated[Path | None, typer.Option("--add", metavar="TABLE", help="What may be published in addition.")] = None,
    rates: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="In place of --add: how coarse must these rates be to add nothing? Columns of rates, separated by commas; "
            "“NUMERATOR of UNIVERSE” for one that is not printed yet; or all, for those computed from true counts.",
        ),
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The true counts of both: repairs are published from them, and claims are scored."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help="Keep both audits, whatif.json and whatif.html there."),
    ] = None,
    repairs: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Repairs to try, separated by commas: same-numbers, drop-repeats, drop-totals, drop, drop=KEY, base, "
            "base=N; or none.",
            show_default="all",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all random draws: the same seed gives the same numbers.")] = 0,
    threshold: LowestThreshold = 0.66,
    prior: Prior = "fitted",
    population: Population = "exact",
    file_format: Format = "auto",
    description: Describe = None,
    base: Base = None,
    mechanism: Mechanism = None,
    plan: Plan = None,
    areas: Areas = None,
    json: Json = False,
) -> None:
    """Say what publishing one more table would expose, and which inexpensive repairs of it expose least.

    \b
    Examples:
      unround whatif profile.csv --add extra.csv                         what would it expose?
      unround whatif profile.csv --add extra.toml -o whatif              keep both audits and a page
      unround whatif profile.csv --add extra.csv --truth truth.parquet   repairs from the true counts
      unround whatif profile.csv --add extra.csv --repairs same-numbers,base=10
      unround whatif profile.csv --add extra.csv --repairs none --json
      unround whatif profile.csv --rates all                             how coarse must its rates be to add nothing?
      unround whatif table.toml --rates "poor of all" --truth truth.parquet

    \b
    Repairs:
      same-numbers   publish counts that are in RELEASE with the same numbers again
      drop-repeats   leave out counts that are in RELEASE
      drop-totals    leave out the totals of TABLE
      drop           leave out single totals and columns, those closest to what is exposed; drop=KEY: this one
      base           round to a coarser base, twice the old one; base=N: to this one

    RELEASE is audited alone and with TABLE, then again after every repair. --format, --describe, --base, --mechanism,
    --plan and --areas are about RELEASE. A coarser base needs true counts: without --truth, plausible ones are drawn from
    the audit's estimates, and the output says so. So do --rates, which are tried in steps of 0.1 to 10 points.
    """  # noqa: D301 - \b keeps the lines of a paragraph apart
    with stages() as progress:
        found = publishing.whatif(
            release,
            add,
            output,
            rates=None if rates is None else listed(rates),
            truth=truth,
            repairs=None if repairs is None else [name for name in listed(repairs) if name != "none"],
            seed=seed,
            threshold=threshold,
            prior=prior,
            population=population,
            plan=plan,
            progress=progress,
            command=typed(),
            file_format=file_format,
            description=description,
            base=base,
            mechanism=mechanism,
            areas=areas,
        )
    if json:
        print_json(found.to_json())
    elif rates is not None:
        from unround.show.terminal.rate_steps import show_rate_steps

        show_rate_steps(found.to_json(), console())
    else:
        from unround.show.terminal.whatif import show_whatif

        show_whatif(found.to_json(), console())
        if output is not None:
            say(f"\nWritten: {output / 'whatif.html'} (a page), {output / 'whatif.json'} (every number), and the audits.")


def simulate(
    output: Output,
    areas: Annotated[int, typer.Option(help="How many areas, of all levels; the census of 2021 has 61,029.")] = 1000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same census.")] = 1,
    file_format: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="NAME", help="statcan (bulk CSV), censusmapper (wide) or tidy.", show_default="statcan"
        ),
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(help="age (33 rows), short (462), income (140), sample (150) or all (2,631).", show_default="age"),
    ] = None,
    zipped: Annotated[bool, typer.Option("--zip", help="Zip the bulk CSV together with its companion files.")] = False,
    levels: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Levels to write, such as da,csd,cd,province; also writes areas.csv."),
    ] = None,
    apart: Annotated[bool, typer.Option("--apart", help="Write one file per level.")] = False,
    repeat: Annotated[
        int, typer.Option(help="How many times to publish, each time rounded anew and into files of its own.")
    ] = 1,
    keys: Annotated[
        bool, typer.Option("--keys", help="Round by the keys of records and a constant of every table.")
    ] = False,
    constants: Annotated[
        str,
        typer.Option(
            metavar="LIST", help="With --keys: constants of tables, such as 0 for all, or 8=0.31.", show_default="drawn"
        ),
    ] = "",
    weighted: Annotated[
        bool, typer.Option("--weighted", help="Let sample tables show weighted estimates; for rows sample or all.")
    ] = False,
    figures: Annotated[
        str,
        typer.Option(metavar="SOURCE", help="Rates, averages and medians: from true or published counts, or none."),
    ] = "true",
    boundaries: Annotated[
        bool, typer.Option("--boundaries", help="Also write made-up shapes of all areas, for a map of the audit.")
    ] = False,
    world: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A world in place of the census: see `unround calibrate --list-worlds`."),
    ] = None,
    base: Annotated[
        int | None,
        typer.Option(help="With --world or --persons: base to round to; short for --mechanism rounding:BASE."),
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option(
            metavar="NAME:PARAMETER", help="With --world or --persons: how to publish counts.", show_default="rounding:5"
        ),
    ] = None,
    rounded_total: Annotated[
        bool, typer.Option("--rounded-total", help="With --world: round the total of all too.")
    ] = False,
    persons: Annotated[
        bool, typer.Option("--persons", help="Records, one row per person, and tables published from them.")
    ] = False,
    people: Annotated[int | None, typer.Option(help="With --persons: people in a typical area.", show_default="400")] = None,
    tables: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="With --persons: profile, age_sex, age_sex_marital, age_sex_education, birthplace_language_religion, "
            "age_household_birthplace.",
            show_default="all",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Write a synthetic census, rounded as declared, together with its true counts.

    \b
    Examples:
      unround simulate -o census --areas 500                       ages by sex, in the Canadian bulk format
      unround simulate -o country --areas 61029 --rows short --zip the size of a country (a minute or two)
      unround simulate -o table --format tidy --rows short         one long Parquet table
      unround simulate -o nested --levels da,csd,cd,province       many CSDs of one DA, and areas.csv, for linked audits
      unround simulate -o twice --repeat 2                         the same counts, rounded twice
      unround simulate -o keyed --areas 2000 --rows short --keys   rounded by keys, with a constant for every table
      unround simulate -o alike --rows short --keys --constants 0  the same count rounds alike wherever it stands
      unround simulate -o sample --rows sample --keys --weighted   sample tables of weighted estimates
      unround simulate -o rates --rows income                      rates of low income, from true counts
      unround simulate -o mapped --boundaries                      with made-up shapes, for audit --boundaries
      unround simulate -o couples --world couples --mechanism rounding:3
      unround simulate -o records --persons --areas 200            records, for unround reconstruct

    People are drawn first and counted second, so every sum holds among the true counts, which are in truth.parquet. The
    other files hold what an agency would publish: population and dwellings exactly, other counts rounded to base 5, each
    independently. With --keys, every person, household and family has a key, a random number from 0 to 1; a count goes
    up if the sum of its records' keys and a constant of its table, modulo 1, is below its remainder divided by 5. So the
    same records round alike wherever the constant is the same. The sums of keys are in truth.parquet, the constants in
    constants.csv. With --weighted, one record in four is in the sample tables, with a weight of about four; the truth of
    these tables is the estimate before it was rounded. See docs/checks.md.

    With --world, another table is drawn and written as tidy Parquet, with the total of all published exactly.

    With --persons, households and their people are drawn, in areas that differ, and written as persons.parquet; a profile
    and tables by several attributes are published from them. See docs/reconstruct.md.
    """  # noqa: D301 - \b keeps the lines of a paragraph apart
    with bar("Simulating", areas, "areas") as progress:
        made = publishing.simulate(
            output,
            areas=areas,
            seed=seed,
            file_format=file_format,
            rows=rows,
            zipped=zipped,
            levels=levels,
            apart=apart,
            repeat=repeat,
            keys=keys,
            constants=constants,
            weighted=weighted,
            figures=figures,
            boundaries=boundaries,
            world=world,
            base=base,
            mechanism=mechanism,
            rounded_total=rounded_total,
            persons=persons,
            people=people,
            tables=None if tables is None else listed(tables),
            progress=progress,
        )
    if json:
        print_json(made.to_json())
        return
    for path in (*made.files, made.nesting, made.constants, made.boundaries, made.truth, made.note):
        if path is not None:
            say(path)
    say(f"{made.summary}.", err=True)
    tables_of = " ".join(str(path) for path in made.files if path.suffix != ".toml")
    if persons:
        say(f"Try: unround reconstruct {tables_of} --truth {made.truth} -o reconstruction", err=True)
        return
    within = f" --areas {made.nesting}" if made.nesting else ""
    shapes = f" --boundaries {made.boundaries}" if made.boundaries else ""
    say(f"Try: unround audit {tables_of}{within}{shapes} -o audit --truth {made.truth}", err=True)


def protect(
    truth: Annotated[Path, typer.Argument(metavar="TRUTH", help="The true counts: any table that audit reads.")],
    output: Output,
    mechanism: Annotated[
        str | None,
        typer.Option(
            metavar="NAME:PARAMETER",
            help="How to protect counts: rounding:5, controlled:5, laplace:1.45, gaussian:2, or any other mechanism.",
        ),
    ] = None,
    base: Annotated[
        int | None, typer.Option(help="Base to round counts to at random; short for --mechanism rounding:BASE.")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Draw the same random numbers again; without it, they come from the operating system."),
    ] = None,
    clamp: Annotated[bool, typer.Option("--clamp", help="Publish negative counts as 0.")] = False,
    additive: Annotated[
        bool, typer.Option("--additive", help="Afterwards, move counts to the nearest whole numbers that add up.")
    ] = False,
    exact: Annotated[
        list[str] | None,
        typer.Option(
            "--exact",
            metavar="NAME",
            help="Publish exactly: population, dwellings, or a column's key or name. May be repeated.",
        ),
    ] = None,
    keys: Annotated[
        bool, typer.Option("--keys", help="Round by the keys of records and a constant of the table, not independently.")
    ] = False,
    constant: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="With --keys: the constant, from 0 to 1.", show_default="drawn")
    ] = None,
    key_sums: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="With --keys: sums of your records' keys, one row per count.", show_default="drawn"
        ),
    ] = None,
    file_format: Format = "auto",
    description: Describe = None,
    plan: Plan = None,
    areas: Areas = None,
    json: Json = False,
) -> None:
    """Publish a table of true counts under a mechanism, and say what that costs.

    \b
    Examples:
      unround simulate -o census --format tidy --areas 500
      unround protect census/truth.parquet -o noisy --mechanism laplace:1.45 --clamp --exact population
      unround protect census/truth.parquet -o even --mechanism controlled:5 --seed 7
      unround protect census/truth.parquet -o keyed --mechanism rounding:5 --keys --seed 7
      unround audit even/release.toml -o audit --truth census/truth.parquet

    controlled:5 rounds at random so that every sum still adds up. Noise is drawn exactly, in whole numbers. Sums are
    found in the true counts, or taken from the description. With --keys, a count goes up if the sum of its records' keys
    and a constant of its table, modulo 1, is below its remainder divided by the base; keys follow from the seed, so that
    a total has the same key in every table that is published with this seed. PROTECTED.txt in the folder says what was
    done and by how much counts are off: do not publish that file.
    """  # noqa: D301 - \b keeps the lines of a paragraph apart
    with stages() as progress:
        made = publishing.protect(
            truth,
            output,
            mechanism,
            base=base,
            seed=seed,
            clamp=clamp,
            additive=additive,
            exact=exact or (),
            keys=keys,
            constant=constant,
            key_sums=key_sums,
            plan=plan,
            progress=progress,
            command=typed(),
            file_format=file_format,
            description=description,
            areas=areas,
        )
    if json:
        print_json(made.to_json())
    else:
        from unround.show.terminal.protect import show_protected

        show_protected(made, console())


def compare(
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Write compare.json and compare.html there.")
    ] = None,
    mechanisms: Annotated[
        list[str] | None,
        typer.Option(
            "--mechanism",
            metavar="LIST",
            help="Ways of publishing, separated by commas or one at a time; the others are compared with the first.",
            show_default="rounding:5,controlled:5,rounding:10,nearest:5,laplace:1.45,gaussian:2",
        ),
    ] = None,
    changes: Annotated[
        str | None,
        typer.Option(
            "--what-if",
            metavar="LIST",
            help="Changes to today's practice, in place of --mechanism: drop-invariants, same-seed, base=N, no-totals, "
            "controlled, keyed, alike, any mechanism, or all.",
        ),
    ] = None,
    rates: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Rates to print beside the counts, from true counts and from published ones: columns of rates, separated "
            "by commas; “NUMERATOR of UNIVERSE”; or all.",
        ),
    ] = None,
    rate_step: Annotated[float, typer.Option(metavar="POINTS", help="What rates are rounded to.")] = 0.1,
    areas: SimulatedAreas = None,
    rows: SimulatedRows = None,
    seed: Seed = 11,
    seeds: Annotated[int, typer.Option(help="How many times to publish in each way.")] = 5,
    threshold: LowestThreshold = 0.66,
    truth: Annotated[
        Path | None, typer.Option(metavar="FILE", help="True counts of your own, in place of simulated ones.")
    ] = None,
    exact: Annotated[
        list[str] | None,
        typer.Option(
            "--exact",
            metavar="NAME",
            help="With --truth: what is published exactly today. May be repeated.",
            show_default="population and dwellings, if there are any",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Publish the same table in several ways, infer what can be inferred from each, and judge both by the truth.

    \b
    Examples:
      unround compare -o compare                                       six mechanisms on 2,000 simulated areas
      unround compare --mechanism rounding:5,laplace:1.45 --areas 500 --seeds 3
      unround compare --what-if all                                    small changes to today's practice
      unround compare --what-if drop-invariants,base=10
      unround compare --truth truth.parquet -o compare                 your own table
      unround compare --rows income --rates all --mechanism rounding:5 rates from true and from published counts

    Today's practice is rounding:5 with exact populations. A release is published --seeds times in each way; the true
    counts stay the same. ε is for the whole release: all counts, at all levels of areas, that a person is part of.
    """  # noqa: D301 - \b keeps the lines of a paragraph apart
    with stages() as progress:
        found = publishing.compare(
            output,
            mechanisms=listed(",".join(mechanisms), "--mechanism") if mechanisms else None,
            what_if=None if changes is None else listed(changes, "--what-if"),
            rates=None if rates is None else listed(rates, "--rates"),
            rate_step=rate_step,
            truth=truth,
            exact=exact,
            areas=areas,
            rows=rows,
            seed=seed,
            seeds=seeds,
            threshold=threshold,
            progress=progress,
        )
    if json:
        print_json(found.to_json())
    else:
        from unround.show.terminal.compare import show_comparison

        show_comparison(found.to_json(), console())
        _written(output, "compare")


def calibrate(
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Write calibrate.json and calibrate.html there.")
    ] = None,
    worlds: Annotated[
        list[str] | None,
        typer.Option(
            "--world", metavar="NAME", help="A world to calibrate on, or all. May be repeated.", show_default="a short set"
        ),
    ] = None,
    list_worlds: Annotated[bool, typer.Option("--list-worlds", help="List the worlds that there are.")] = False,
    release: Annotated[Path | None, typer.Option(metavar="FILE", help="A release, in place of simulated ones.")] = None,
    truth: Annotated[Path | None, typer.Option(metavar="FILE", help="With --release: its true counts.")] = None,
    base: Annotated[
        int | None, typer.Option(help="Base to round what is simulated to; short for --mechanism rounding:BASE.")
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option(metavar="NAME:PARAMETER", help="How to publish what is simulated.", show_default="rounding:5"),
    ] = None,
    rounded_total: Annotated[
        bool, typer.Option("--rounded-total", help="Round the total of all too; not in the world census.")
    ] = False,
    areas: Annotated[int | None, typer.Option(help="How many areas to draw of each world.", show_default="2000")] = None,
    rows: Annotated[
        str | None, typer.Option(help="Which rows of the world census: age or short.", show_default="age")
    ] = None,
    seed: Seed = 11,
    json: Json = False,
) -> None:
    """Say how often claims are right, by the count claimed and the probability stated, on worlds of several kinds.

    \b
    Examples:
      unround calibrate                                      a short set of worlds, the worst first
      unround calibrate --list-worlds
      unround calibrate --world all -o calibrate
      unround calibrate --world households --world couples --mechanism rounding:3 --rounded-total
      unround calibrate --world census --rows short --areas 300
      unround calibrate --release census.csv --truth truth.parquet

    A world is a table whose true counts are drawn by a law that the fitted prior does not know. Each is published, audited
    as `unround audit` does it, and the likely claims are compared with the truth. Besides, the likeliest counts of all cells
    are judged under a flat and a fitted prior, in groups that can be told without the truth: by sex, by the size of the
    published count, by the number of parts of a total.
    """  # noqa: D301 - \b keeps the lines of a paragraph apart
    if list_worlds:
        from unround.comparison.worlds import SENTENCES

        if json:
            print_json(SENTENCES)
        else:
            from unround.show.terminal.calibrate import show_worlds

            show_worlds(SENTENCES, console())
        return
    with stages() as progress:
        found = publishing.calibrate(
            output,
            worlds=worlds or None,
            release=release,
            truth=truth,
            base=base,
            mechanism=mechanism,
            areas=areas,
            rows=rows,
            rounded_total=rounded_total,
            seed=seed,
            progress=progress,
        )
    if json:
        print_json(found.to_json())
    else:
        from unround.show.terminal.calibrate import show_calibration

        show_calibration(found.to_json(), console())
        _written(output, "calibrate")


def paper(
    simulate: Annotated[bool, typer.Option("--simulate", help="Run the paper's searches on a simulated census.")] = False,
    areas: Annotated[int | None, typer.Option(help="With --simulate: how many areas.", show_default="61029")] = None,
    seed: Annotated[int | None, typer.Option(help="With --simulate: the seed of the census.", show_default="1")] = None,
    rows: Annotated[
        str | None, typer.Option(help="With --simulate: age, short or all rows of the profile.", show_default="all")
    ] = None,
    keys: Annotated[bool, typer.Option("--keys", help="With --simulate: round by keys, not independently.")] = False,
    release: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Run the paper's searches on this release: any table that audit reads."),
    ] = None,
    file_format: Format = "auto",
    description: Describe = None,
    plan: Plan = None,
    json: Json = False,
) -> None:
    """Recompute every number of the paper, and say where ours differ.

    \b
    Examples:
      unround paper                        every claim, the paper's value and ours
      unround paper --json                 the same, for programs
      unround paper --simulate             its searches on 61,029 simulated areas: found against predicted
      unround paper --simulate --areas 4000 --rows short --seed 7
      unround paper --simulate --rows age --keys
      unround paper --release profile.csv  its searches on a release: found against predicted

    With --release, a group of cells is looked at if every published value in it is above 10, and it is a find if
    |total − Σ parts| has the paper's value. --format, --describe and --plan are about that file.

    The exit code is 0 even where claims disagree. See docs/paper.md for a full account.
    """  # noqa: D301 - \b keeps the lines of a paragraph apart
    if release is not None:
        with stages() as staged:
            found = publishing.paper(
                simulate=simulate,
                areas=areas,
                seed=seed,
                rows=rows,
                keys=keys,
                release=release,
                plan=plan,
                progress=staged,
                file_format=file_format,
                description=description,
            )
        if json:
            print_json(found.to_json())
        else:
            from unround.show.terminal.paper import show_release_searches

            show_release_searches(found, console())
        return
    if plan is not None or description is not None or file_format != "auto":
        raise InputError("--format, --describe and --plan are about the file that --release names: give it.")
    if simulate:
        with bar("Searching", 61_029 if areas is None else areas, "areas") as progress:
            searched, compound = publishing.paper(
                simulate=True, areas=areas, seed=seed, rows=rows, keys=keys, progress=progress
            )
        if json:
            print_json(searched.to_json() | {"audit": compound.to_json()})
        else:
            from unround.show.terminal.paper import show_compound, show_experiment

            show_experiment(searched, console())
            show_compound(compound, console())
        return
    claims = publishing.paper(areas=areas, seed=seed, rows=rows, keys=keys)
    if json:
        print_json([claim.to_json() for claim in claims])
    else:
        from unround.show.terminal.paper import show_claims

        show_claims(claims, console())


def _written(output: Path | None, name: str) -> None:
    if output is not None:
        page, numbers = output / f"{name}.html", output / f"{name}.json"
        say(f"\nWritten: {page} (charts), {numbers} (every number).")
