"""The commands: for each, the function that it calls, examples for --help, and what it shows of the result."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unround import api
from unround.arguments import refuse_overwriting, write_text
from unround.cli.build import Call, command, listed
from unround.cli.voice import console, print_json, say, tell
from unround.errors import InputError

if TYPE_CHECKING:
    from unround.comparison import Comparison
    from unround.inspection import Inspection
    from unround.job.verify import Verification
    from unround.reconstruction import Reconstruction
    from unround.results import AuditFolder
    from unround.reviews import Review
    from unround.simulation import Simulated
    from unround.solution import Solution
    from unround.tables import Described, Question

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, in full precision.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Print the whole report, not only what matters most.")]
Everything = Annotated[bool, typer.Option("--all", help="List everything, not only what matters most.")]


def show(result: Any, json: bool, **options: Any) -> None:
    """Print a result, for programs or for people."""
    if json:
        print_json(result.to_json())
    else:
        from unround.show import show as show_document

        show_document(result, console(), **options)


def _check_plot(file: Path | None) -> Path | None:
    """Refuse a picture that cannot be drawn before anything takes long."""
    if file is not None:
        from unround.show.plots import check_plot

        check_plot(file)
    return file


Plot = Annotated[
    Path | None,
    typer.Option("--plot", metavar="FILE", help="Draw what was found as a picture: .svg or .html.", callback=_check_plot),
]


@command(
    api.solve,
    """
    Examples:
      unround solve "48! = 20 + 20 + 20"             an exact total: all three parts are proved
      unround solve "87! = men: 35 + women: 45"      only two solutions are left
      unround solve "6 = 6 + 6" --base 3             New Zealand rounds to base 3
      unround solve examples/small-town.txt --plot town.svg    a file, and a histogram of every cell
      unround solve - --json < examples/small-town.txt         from standard input, for programs
      unround solve "100! = 30 + 30 + 40" --expect --areas 59625    how often three parts give themselves away

    Values:
      48!     exact                   ?       not published
      20      rounded                 ?1..7   not published, but from 1 to 7
      9 @3    rounded to base 3       10 ~5   within 5 of the truth

    Cells can be named, so that several sums can use them: '110! = a: 30 + 65 + 10; a = 10 + 10 + 10'. Put names that
    contain spaces or symbols in double quotes: '87! = "0 to 14": 35 + 45'. See docs/solve.md for the whole notation.

    Exit codes: 0 solved; 1 no true counts fit; 2 the input cannot be used; 3 a fault in unround itself.
    """,
)
def solve(
    call: Call[Solution],
    *,
    plot: Plot = None,
    expect: Annotated[
        bool, typer.Option("--expect", help="In place of a solution: how often sums of this shape give counts away.")
    ] = False,
    areas: Annotated[
        int | None, typer.Option("--areas", metavar="N", help="With --expect: in how many areas the sum is published.")
    ] = None,
    json: Json = False,
) -> None:
    """Show a solution, and draw it if asked; or what is to be expected of such sums."""
    if expect:
        show(call.of(api.expect, "--expect")(areas=areas), json)
        return
    if areas is not None:
        raise InputError("--areas goes with --expect: give both, or neither.")
    solution = call()
    show(solution, json)
    if plot is not None and solution.feasible:
        from unround.show.plots import MOST_PANELS, save, solution_plot

        save(solution_plot(solution), plot)
        more = len(solution.cells) - MOST_PANELS
        say(f"Drawn: {plot}{f' (the first {MOST_PANELS} cells)' if more > 0 else ''}", err=True)
    elif plot is not None:
        tell(f"Nothing to draw: {plot} was not written.", err=True)
    if not solution.feasible:
        raise typer.Exit(1)


@command(
    api.describe,
    """
    Examples:
      unround describe draft.xlsx                        what its rows, columns, totals and symbols are taken for
      unround describe draft.xlsx -o draft.toml          the same, written down, to be read and corrected
      unround audit draft.xlsx --describe draft.toml -o audit
      unround describe draft.xlsx --sheet "Table 2" --header 4-5
      unround describe table.csv --value persons         if several columns hold numbers

    Sums are suggested by names (Total, Both sexes, _T, Insgesamt; ages that make up another age), and each is verified on
    the counts. What cannot be known is asked if a person is at the terminal, and assumed otherwise. Other commands take
    such a file directly and describe it on the way; a description beside the table, under the same name, is found by itself.
    """,
)
def describe(
    call: Call[Described],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing; take the default answers.")] = False,
    json: Json = False,
) -> None:
    """Ask what a table leaves open, if somebody is there to answer, and show what it is taken for."""
    interactive = not yes and not json and sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    described, out = call(ask=_ask if interactive else None), call.typed["out"]
    show(described, json, draft=out is None)
    if out is not None and not json:
        say(f"Description written: {out}. Read it, then run: unround audit {out} -o audit", err=True)


def _ask(question: Question) -> str:
    """Ask at the terminal: the number of an answer, or nothing for the default."""
    tell(question.text)
    for number, choice in enumerate(question.choices, start=1):
        tell(f"  {number}  {choice}")
    default = str(question.choices.index(question.default) + 1) if question.default in question.choices else ""
    while True:
        typed = typer.prompt("Number", default=default, show_default=bool(default)).strip()
        if typed.isdigit() and 1 <= int(typed) <= len(question.choices):
            return question.choices[int(typed) - 1]
        if typed in question.choices:
            return str(typed)


@command(
    api.check,
    """
    Examples:
      unround check census.csv.gz                        how it was read, which sums hold, whether the data fit
      unround check census.csv.gz --all                  every sum and every family
      unround check census.csv.gz --write census.toml    a description to edit, for audit census.toml
      unround check census.csv.gz --plot check.svg       observed residuals against expected ones
      unround check draft.xlsx                           a table of your own, described on the way
      unround check da.csv csd.csv --nesting areas.csv   several files as one, and which areas make up which

    Sums are proposed by indentation, by the columns for men and women, by names, and by the counts themselves; each is then
    verified in all areas. Sums with counts too small to judge are marked as taken on trust. For each family of sums, the
    published residuals |total - parts| are compared with those that the mechanism implies; where no mechanism is declared,
    it is inferred from the counts first. The exit code is 0 whatever is found. See docs/checks.md for the method, and for
    what real censuses show.
    """,
)
def check(
    call: Call[Inspection],
    *,
    write: Annotated[
        Path | None,
        typer.Option("--write", metavar="TOML", help="Draft a description with what was found, to edit and pass to audit."),
    ] = None,
    plot: Plot = None,
    everything: Everything = False,
    json: Json = False,
) -> None:
    """Show what is in a file and whether it fits; draft a description and draw the residuals if asked."""
    refuse_overwriting(write)
    inspected = call()
    if write is not None:
        write_text(write, inspected.toml(write))
    if plot is not None:
        from unround.show.check import residual_plot
        from unround.show.plots import save

        save(residual_plot(inspected), plot)
    show(inspected, json, everything=everything)
    if write is not None:
        tables = [str(table) for table in call.typed["table"]]
        named = f"{' '.join(tables)} --describe {write}" if len(tables) > 1 else write
        say(f"Description written: {write}. Edit it, then run: unround audit {named} -o audit", err=True)


@command(
    api.audit,
    """
    Examples:
      unround audit census.csv.gz -o audit
      unround audit draft.xlsx -o audit                      a table of your own: see unround describe
      unround audit 98-401-X2021006_English_CSV_data_Ontario.zip -o ontario --threshold 0.9
      unround audit census.csv.gz -o audit --estimates       error bars for every count
      unround audit census.csv.gz -o audit --estimates distributions      how likely every possible count is
      unround audit census.zip -o /shared/audit --cluster tcp://scheduler:8786      on many machines
      unround audit census.csv.gz -o audit --boundaries areas.geojson.gz      with a map in report and explorer
      unround audit audit --boundaries areas.geojson.gz      the pages of a finished audit again, with a map
      unround audit profile.csv table.csv -o both            several files about the same people as one (docs/linked.md)
      unround simulate -o census --areas 500                 a census with known truth …
      unround audit census/98-401-X2021006_English_CSV_data.csv -o audit --truth census/truth.parquet

    In the folder:
      report.html                      the result as a page; report-public.html: the same without any inferred value
      findings.parquet, findings.csv   one row per claim: proved, conditional or likely; its range and route;
                                       likely zeros that were published as 0 are counted, and have rows with --zeros
      summary.json                     how much was inferred, where, against chance; sensitive claims
      contradictions.csv               inconsistent published figures, each with the smallest set that clashes
      proofs.jsonl                     a certificate for every proved count
      estimates.parquet                with --estimates

    An audit that was stopped or killed resumes where it was when the same command is given again. The exit code is 0
    whenever the audit completes, whatever it finds.
    """,
)
def audit(call: Call[AuditFolder], *, verbose: Verbose = False, json: Json = False) -> None:
    """Show what was found, and what to look at next."""
    if call.typed["out"] is None and not call.typed["table"][0].is_dir():
        raise InputError("an audit is written into a folder: name it with -o DIR.")
    folder = call()
    if json:
        print_json(folder.summary | {"seconds": folder.run["seconds"]})
    else:
        show(folder, json, verbose=verbose)


def just_show(call: Call[Any], *, json: Json = False) -> None:
    """Show the result."""
    show(call(), json)


explain = command(
    api.explain,
    """
    Examples:
      unround explain audit 10010001 10 --sex men
      unround explain audit 10010001 "0 to 4 years"
      unround explain audit 10010001 10 --json         with the certificate, for programs
    """,
)(just_show)


@command(
    api.serve,
    """
    Examples:
      unround serve audit --open
      unround serve audit --port 9000
      unround serve audit --boundaries areas.geojson.gz           with a map
      unround serve audit --get "/findings.json?kind=proved"      one view, for programs
      unround serve audit --get /area/10010001.json

    It listens on this machine only, reads nothing but the audit, and needs no network. Every view has an address of its
    own, and the same address followed by .json gives the same as JSON. Ctrl-C stops it.
    """,
)
def serve(
    call: Call[None],
    *,
    get: Annotated[
        str | None, typer.Option("--get", metavar="PATH", help="Print the page at this address, and serve nothing.")
    ] = None,
) -> None:
    """Serve until interrupted; or print one page."""
    # Before numpy is loaded. For matrices as small as ours, threads that wait for each other in a busy loop take fifty times
    # as long as one thread does, wherever anything else runs on the machine.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if get is not None:
        status, content = api.view(call.typed["folder"], get, boundaries=call.typed["boundaries"])
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
        if status >= 400:
            tell(f"\nerror: {get} has no page to show (status {status}): what is printed says why.", err=True)
            raise typer.Exit(2 if status < 500 else 3)
        return

    def started(address: str) -> None:
        say(f"The explorer is at {address}   (Ctrl-C stops it)")
        sys.stdout.flush()

    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # a visitor who leaves must not end it, as a closed pipe ends a filter
    host = call.typed["host"]
    if host.strip("[]") not in ("127.0.0.1", "localhost", "::1"):
        tell(f"warning: on {host}, everybody who can reach this machine can read this audit, without a password.", err=True)
    call(started=started)


@command(
    api.verify,
    """
    Examples:
      unround verify audit
      unround verify audit --json                       the same, for programs

    A certificate proves something about the few counts and sums that stand in it. Here these are compared with the
    audit's own, and what is proved with its findings. The exit code is 0 if all is well, and 1 if anything is wrong.
    Whoever can write to the folder can also replace its hashes: they show damage, not who did it.
    """,
)
def verify(call: Call[Verification], *, json: Json = False) -> None:
    """Show what was checked; the exit code says whether it holds."""
    verified = call()
    show(verified, json)
    if not verified.holds:
        raise typer.Exit(1)


@command(
    api.review,
    """
    Examples:
      unround review draft.xlsx -o review                          the decision, and a page to sign
      unround review draft.toml -o review --truth truth.csv        repairs from the true counts
      unround review --show-policy > policy.toml                   the default policy, to be changed …
      unround review draft.toml -o review --policy policy.toml     … and used
      unround review draft.toml -o review --accept "R01:15-64/men" --because "published in 2019" --reviewer "A. Name"
      unround review draft.toml -o review --ignore "column H: Index" --because "not of these people" --reviewer "A. Name"
      unround review draft.toml --json --repairs none
      unround review profile.csv --more extra.csv -o more          what would one more table expose?
      unround review profile.csv --rates all                       how coarse must its rates be to add nothing?
      unround review after --against before                        two audits: what does the second tell beyond the first?

    Repairs:
      hide           hide the cells to act on, and others from which they would follow
      redraw         round areas with cells to act on again, with other random numbers
      round-totals   round counts that are unrounded now
      base           round to a coarser base, twice the old one; base=N: to this one
      drop-totals    leave out all totals
      drop           leave out the total, or another column, that tells most; drop=KEY: this one
      merge          merge two neighbouring categories, the sparsest first; merge=A+B: these two
      controlled     round all counts of an area together, so that all sums add up
      same-numbers   print counts that are out already (--earlier, --more) with the numbers that are out
      drop-repeats   leave them out

    Exit codes: 0 publish, 4 revise, 5 stop, 6 undecided, 2 bad input.
    """,
)
def review(
    call: Call[Review],
    *,
    more: Annotated[
        Path | None,
        typer.Option(
            "--more",
            metavar="TABLE",
            help="FILE is published: may this table be, in addition? As review TABLE --earlier FILE.",
        ),
    ] = None,
    rates: Annotated[
        str | None,
        typer.Option(
            "--rates",
            metavar="LIST",
            help="FILE is published: how coarse must these rates be to add nothing? Columns of rates, “NUMERATOR of "
            "UNIVERSE”, or all.",
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="DIR", help="FILE is a folder of an audit: what does it tell beyond this one?"),
    ] = None,
    report: Annotated[
        bool, typer.Option("--report", help="With --against: write the reports in FILE again, with what changed.")
    ] = False,
    show_policy: Annotated[bool, typer.Option("--show-policy", help="Print the policy in force, and exit.")] = False,
    json: Json = False,
) -> None:
    """Show the decision, which is the exit code too; or what one more table, rates or another audit tell."""
    if show_policy:
        from unround.reviews import policy_of

        typer.echo(policy_of(call.typed["policy"]).text, nl=False)
        return
    if sum(asked is not None for asked in (more, rates, against)) > 1:
        raise InputError("--more, --rates and --against exclude each other: give one of them.")
    tables = call.typed["table"] or []
    if against is not None:
        if len(tables) != 1:
            raise InputError("--against compares two folders: unround review AFTER --against BEFORE.")
        show(call.of(api.diff, "--against")(before=against, after=tables[0], report=report), json)
        if report and not json:
            say(f"\nWritten: {tables[0] / 'report.html'} and {tables[0] / 'report-public.html'}, with what changed.")
        return
    if report:
        raise InputError("--report goes with --against: give both, or neither.")
    if rates is not None:
        show(call.of(api.rate_steps, "--rates")(rates=listed(rates)), json)
        return
    if more is not None and not tables:
        raise InputError("--more is about a table beside what is published: unround review RELEASE --more TABLE.")
    reviewed = call() if more is None else call(table=[more], earlier=[*tables, *(call.typed["earlier"] or [])])
    show(reviewed, json)
    if reviewed.exit_code:
        raise typer.Exit(reviewed.exit_code)


protect = command(
    api.protect,
    """
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
    """,
)(just_show)


reconcile = command(
    api.reconcile,
    """
    Examples:
      unround reconcile table.xlsx -o additive                     the same table, with counts that add up
      unround reconcile districts.csv regions.csv -o additive      several files, which add up between them too
      unround reconcile census.csv -o additive --format parquet --real
      unround reconcile release.csv -o additive --truth truth.csv  errors measured, not estimated

    Counts stay inside what is possible, and those that were published exactly stay as they are. Where no true counts fit,
    the clash is named, and its counts stay as they were published. reconciled.parquet holds every count with its mean,
    standard error and bounds. They are model estimates, not official counts.
    """,
)(just_show)


@command(
    api.compare,
    """
    Examples:
      unround compare -o compare                                       six mechanisms on 2,000 simulated areas
      unround compare --mechanism rounding:5,laplace:1.45 --areas 500 --seeds 3
      unround compare --what-if all                                    small changes to today's practice
      unround compare --what-if drop-invariants,base=10
      unround compare --truth truth.parquet -o compare                 your own table
      unround compare --rows income --rates all --mechanism rounding:5 rates from true and from published counts

    Today's practice is rounding:5 with exact populations. A release is published --seeds times in each way; the true
    counts stay the same. ε is for the whole release: all counts, at all levels of areas, that a person is part of.
    """,
)
def compare(call: Call[Comparison], *, json: Json = False) -> None:
    """Show the ways of publishing side by side."""
    show(call(), json)
    written(call, json, "compare")


def written(call: Call[Any], json: bool, name: str) -> None:
    """Say where a page and its numbers are, if they were written."""
    if (out := call.typed["out"]) is not None and not json:
        say(f"\nWritten: {out / f'{name}.html'} (charts), {out / f'{name}.json'} (every number).")


@command(
    api.simulate,
    """
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
      unround simulate -o records --persons --areas 200            records, for unround reconstruct

    People are drawn first and counted second, so every sum holds among the true counts, which are in truth.parquet. The
    other files hold what an agency would publish: population and dwellings exactly, other counts rounded to base 5, each
    independently. With --keys, every person, household and family has a key, a random number from 0 to 1; a count goes
    up if the sum of its records' keys and a constant of its table, modulo 1, is below its remainder divided by 5. So the
    same records round alike wherever the constant is the same. The sums of keys are in truth.parquet, the constants in
    constants.csv. With --weighted, one record in four is in the sample tables, with a weight of about four; the truth of
    these tables is the estimate before it was rounded. See docs/checks.md.

    With --persons, households and their people are drawn, in areas that differ, and written as persons.parquet; a profile
    and tables by several attributes are published from them. See docs/reconstruct.md.
    """,
)
def simulate(call: Call[Simulated], *, json: Json = False) -> None:
    """Say which files were written, and what to try on them."""
    say_simulated(call(), json)


def say_simulated(made: Simulated, json: bool) -> None:
    """Say which files hold what was invented, and what to try on them."""
    if json:
        print_json(made.to_json())
        return
    for path in (*made.files, made.nesting, made.constants, made.boundaries, made.truth, made.note):
        if path is not None:
            say(path)
    say(f"{made.summary}.", err=True)
    tables = " ".join(str(path) for path in made.files if path.suffix != ".toml")
    if made.truth.stem == "persons":
        say(f"Try: unround reconstruct {tables} --truth {made.truth} -o reconstruction", err=True)
        return
    within = f" --nesting {made.nesting}" if made.nesting else ""
    shapes = f" --boundaries {made.boundaries}" if made.boundaries else ""
    say(f"Try: unround audit {tables}{within}{shapes} -o audit --truth {made.truth}", err=True)


@command(
    api.reconstruct,
    """
    Examples:
      unround simulate -o census --persons --areas 100
      unround reconstruct census/*.toml --truth census/persons.parquet -o reconstruction
      unround reconstruct draft.csv --truth records.csv -o found --attributes age,sex,marital
      unround reconstruct census/*.toml --truth census/persons.parquet -o found --variability 5

    Four guesses at the records of every area: drawn from the law of the country, without any table of the area; from the
    area's own totals; from all tables, which is the reconstruction; and from the same tables unrounded. Each is compared
    with the truth: for everyone, for people who are alone in their area with their age and sex, and for people unlike the
    area's most common kind. Axes of the tables are called like the columns of PERSONS, and their codes like the values.

    Without --truth it refuses: unround does not write reconstructed persons about a real release. From records that
    `unround simulate` did not draw, aggregates alone are written.
    """,
)
def reconstruct(call: Call[Reconstruction], *, json: Json = False) -> None:
    """Show how much of each person tables give away, and say where it was written."""
    show(call(), json)
    if not json:
        out = call.typed["out"]
        say(f"\nWritten: {out / 'reconstruct.html'} (a page), {out / 'summary.json'} (every number).")


GROUPS = {
    "Audit": (solve, describe, check, audit),
    "Explore": (explain, serve, verify),
    "Use tables that do not add up": (reconcile,),
    "Publish more safely": (review, protect, compare),
    "Research": (simulate, reconstruct),
}
"""The order of --help: from one sum to a whole release, and from there to what is to be done about it."""
