"""The commands: for each, the function that it calls, and what it shows of the result; help.txt has examples."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unround import api
from unround.cli.build import Call, command, listed
from unround.cli.voice import console, print_json, say, tell
from unround.errors import InputError
from unround.output import refuse_overwriting, write_text

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


def _page_name(file: Path | None) -> Path | None:
    """Refuse a page that cannot be written before anything takes long."""
    if file is not None:
        from unround.show.page import check_name

        check_name(file)
    return file


PageFile = Annotated[
    Path | None,
    typer.Option("--page", metavar="FILE", help="Also write it as a page with pictures: .html.", callback=_page_name),
]


def write_page(result: Any, page: Path | None) -> None:
    """Write a result as a page, if that is wanted, and say so."""
    if page is not None:
        result.save(page)
        say(f"Page written: {page}", err=True)


@command(api.solve)
def solve(
    call: Call[Solution],
    *,
    page: PageFile = None,
    expect: Annotated[
        bool, typer.Option("--expect", help="In place of a solution: how often sums of this shape give counts away.")
    ] = False,
    areas: Annotated[
        int | None, typer.Option("--areas", metavar="N", help="With --expect: in how many areas the sum is published.")
    ] = None,
    json: Json = False,
) -> None:
    """Show a solution; or what is to be expected of such sums."""
    if expect:
        show(call.of(api.expect, "--expect")(areas=areas), json)
        return
    if areas is not None:
        raise InputError("--areas goes with --expect: give both, or neither.")
    solution = call()
    show(solution, json)
    write_page(solution, page)
    if not solution.feasible:
        raise typer.Exit(1)


@command(api.describe)
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


@command(api.check)
def check(
    call: Call[Inspection],
    *,
    write: Annotated[
        Path | None,
        typer.Option("--write", metavar="TOML", help="Draft a description with what was found, to edit and pass to audit."),
    ] = None,
    page: PageFile = None,
    everything: Everything = False,
    json: Json = False,
) -> None:
    """Show what is in a file and whether it fits; draft a description and write a page if asked."""
    refuse_overwriting(write)
    inspected = call()
    write_page(inspected, page)
    if write is not None:
        write_text(write, inspected.toml(write))  # after the page: what is there is not replaced by the next try
    show(inspected, json, everything=everything)
    if write is not None:
        tables = [str(table) for table in call.typed["table"]]
        named = f"{' '.join(tables)} --describe {write}" if len(tables) > 1 else write
        say(f"Description written: {write}. Edit it, then run: unround audit {named} -o audit", err=True)


@command(api.audit)
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


explain = command(api.explain)(just_show)


@command(api.serve)
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


@command(api.verify)
def verify(call: Call[Verification], *, json: Json = False) -> None:
    """Show what was checked; the exit code says whether it holds."""
    verified = call()
    show(verified, json)
    if not verified.holds:
        raise typer.Exit(1)


@command(api.review)
def review(
    call: Call[Review],
    *,
    more: Annotated[
        Path | None,
        typer.Option(
            "--more",
            metavar="TABLE",
            help="FILE is out already: may this table be published as well? The same as review TABLE --earlier FILE.",
        ),
    ] = None,
    rates: Annotated[
        str | None,
        typer.Option(
            "--rates",
            metavar="LIST",
            help="FILE is out already: how coarse must these rates be to add nothing? Columns of rates, “NUMERATOR of "
            "UNIVERSE”, or all.",
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="DIR", help="FILE is the folder of an audit: what does it add to this one?"),
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


protect = command(api.protect)(just_show)


reconcile = command(api.reconcile)(just_show)


@command(api.compare)
def compare(call: Call[Comparison], *, json: Json = False) -> None:
    """Show the ways of publishing side by side."""
    show(call(), json)
    written(call, json, "compare")


def written(call: Call[Any], json: bool, name: str) -> None:
    """Say where a page and its numbers are, if they were written."""
    if (out := call.typed["out"]) is not None and not json:
        say(f"\nWritten: {out / f'{name}.html'} (charts), {out / f'{name}.json'} (every number).")


@command(api.simulate)
def simulate(call: Call[Simulated], *, json: Json = False) -> None:
    """Say which files were written, and what to try on them."""
    say_simulated(call(), json)


def say_simulated(made: Simulated, json: bool) -> None:
    """Say which files hold what was invented, and what to try on them."""
    if json:
        print_json(made.to_json())
        return
    for path in (*made.files, made.nesting, made.boundaries, made.truth, made.note):
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


@command(api.reconstruct)
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
