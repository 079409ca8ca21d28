"""Commands about a finished audit: report, explain, serve, verify, diff."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from unround import api
from unround.cli.common import Boundaries, Json, console, print_json, say, stages, tell

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A folder that audit wrote.")]


def report(folder: Folder, boundaries: Boundaries = None, json: Json = False) -> None:
    """Write report.html and report-public.html again, from an audit folder.

    \b
    Examples:
      unround report audit
      unround report audit --boundaries areas.geojson.gz      with a map, also in the explorer from now on

    Every audit writes both. Each is one file that needs no network: report.html with the strongest findings and their
    arithmetic; report-public.html without any area or inferred value, to share while the agency responds.
    """  # noqa: D301 - \b keeps the lines of a paragraph apart
    page, public = api.report(folder, boundaries=boundaries)
    if json:
        print_json({"report": str(page), "public": str(public)})
    else:
        say(f"{page}\n{public}")


def explain(
    folder: Folder,
    area: Annotated[str, typer.Argument(metavar="AREA", help="An area's code, the end of it, or its name.")],
    characteristic: Annotated[str, typer.Argument(metavar="CHARACTERISTIC", help="Its ID or its name.")],
    sex: Annotated[str | None, typer.Option(help="total, men or women.", show_default="total")] = None,
    json: Json = False,
) -> None:
    """Give the argument for one count of an audit, as arithmetic, and its histogram.

    \b
    Examples:
      unround explain audit 10010001 10 --sex men
      unround explain audit 10010001 "0 to 4 years"
      unround explain audit 10010001 10 --json         with the certificate, for programs
    """  # noqa: D301 - \b keeps the lines of a paragraph apart
    explanation = api.explain(folder, area, characteristic, sex)
    if json:
        print_json(explanation.to_json())
    else:
        from unround.show.terminal.explain import show_explanation

        show_explanation(explanation, console())


def serve(
    folder: Folder,
    host: Annotated[
        str, typer.Option(help="The address to listen on; with any but 127.0.0.1, other machines can connect.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes any that is free.")] = 8765,
    browser: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    boundaries: Boundaries = None,
    get: Annotated[
        str | None, typer.Option("--get", metavar="PATH", help="Print the page at this address, and serve nothing.")
    ] = None,
) -> None:
    """Explore an audit in a browser: areas, counts and their histograms, findings, sums; and try numbers of your own.

    \b
    Examples:
      unround serve audit --open
      unround serve audit --port 9000
      unround serve audit --boundaries areas.geojson.gz           with a map
      unround serve audit --get "/findings.json?kind=proved"      one view, for programs
      unround serve audit --get /area/10010001.json

    It listens on this machine only, reads nothing but the audit, and needs no network. Every view has an address of its
    own, and the same address followed by .json gives the same as JSON. Ctrl-C stops it.
    """  # noqa: D301 - \b keeps the lines of a paragraph apart
    # Before numpy is loaded. For matrices as small as ours, threads that wait for each other in a busy loop take fifty times
    # as long as one thread does, wherever anything else runs on the machine.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if get is not None:
        status, content = api.view(folder, get, boundaries=boundaries)
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
        if status >= 400:
            tell(f"\nstatus {status}", err=True)
            raise typer.Exit(2 if status < 500 else 3)
        return

    def started(address: str) -> None:
        say(f"The explorer is at {address}   (Ctrl-C stops it)")
        sys.stdout.flush()
        if browser:
            import webbrowser

            webbrowser.open(address)

    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # a visitor who leaves must not end it, as a closed pipe ends a filter
    if host.strip("[]") not in ("127.0.0.1", "localhost", "::1"):
        tell(f"warning: on {host}, everybody who can reach this machine can read this audit, without a password.", err=True)
    api.serve(folder, host=host, port=port, boundaries=boundaries, started=started)


def verify(folder: Folder, json: Json = False) -> None:
    """Check an audit folder: every file against its hash, every certificate against what was published.

    \b
    Examples:
      unround verify audit
      unround verify audit --json                       the same, for programs

    A certificate proves something about the few counts and sums that stand in it. Here these are compared with the
    audit's own, and what is proved with its findings. The exit code is 0 if all is well, and 1 if anything is wrong.
    Whoever can write to the folder can also replace its hashes: they show damage, not who did it.
    """  # noqa: D301 - \b keeps the lines of a paragraph apart
    with stages() as progress:
        found = api.verify(folder, progress=progress)
    if json:
        print_json(found.to_json())
    else:
        from unround.show.terminal.verify import show_verification

        show_verification(found, console())
    if not found.holds:
        raise typer.Exit(1)


def diff(
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="A folder that audit wrote.")],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="Another one, about the same people.")],
    report: Annotated[
        bool, typer.Option("--report", help="Write the reports in AFTER again, with a section on what changed.")
    ] = False,
    json: Json = False,
) -> None:
    """Compare two audits of the same people: which counts are newly proved or likely, small counts first.

    \b
    Examples:
      unround audit profile.csv -o before
      unround audit profile.csv extra.csv -o after      the same with one more table
      unround diff before after                         what the table exposes
      unround diff before after --report                the same as a section of after/report.html
      unround diff before after --json                  the same, for programs

    Counts are matched by area, characteristic and sex. A count that is published twice is counted once. If the audits
    differ in anything else (threshold, prior, mechanism), the output says so.
    """  # noqa: D301 - \b keeps the lines of a paragraph apart
    with stages() as progress:
        found = api.diff(before, after, report=report, progress=progress)
    if json:
        print_json(found.to_json())
    else:
        from unround.show.terminal.diff import show_diff

        show_diff(found.to_json(), console())
        if report:
            say(f"\nWritten: {after / 'report.html'} and {after / 'report-public.html'}, with what changed.")
