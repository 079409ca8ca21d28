"""The command that opens the explorer: serve."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from unround.errors import InputError


def serve(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that audit wrote.")],
    host: Annotated[str, typer.Option(help="Where to listen; other than 127.0.0.1, others may look too.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Which port; 0 takes any that is free.")] = 8765,
    browser: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    get: Annotated[
        str | None, typer.Option("--get", metavar="PATH", help="Print what this address answers, and serve nothing.")
    ] = None,
) -> None:
    """Go through an audit in a browser: areas, counts and their histograms, findings, sums; and try numbers of your own.

    \b
    Examples:
      unround serve audit --open
      unround serve audit --port 9000
      unround serve audit --get "/findings.json?kind=proved"      one view, for programs
      unround serve audit --get /area/10010001.json

    It listens on this machine alone, reads nothing but the audit, and needs no network. Every view has its own address,
    and says the same as JSON at that address with .json after it. Ctrl-C ends it.
    """  # noqa: D301 - the backspace sign keeps a paragraph's lines apart
    # Before numpy is loaded. For matrices as small as ours, threads that wait for each other in a busy loop take fifty times
    # as long as one thread does, wherever anything else runs on the machine.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from unround.web import serve as web

    if get is not None:
        if not get.startswith("/"):
            raise InputError(f"an address starts with a slash, as in /findings.json; not {get!r}.")
        status, content = web.get(folder, get)
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
        if status >= 400:
            typer.echo(f"\nstatus {status}", err=True)
            raise typer.Exit(2 if status < 500 else 3)
        return

    def started(address: str) -> None:
        typer.echo(f"The explorer is at {address}   (Ctrl-C ends it)")
        sys.stdout.flush()
        if browser:
            import webbrowser

            webbrowser.open(address)

    web.serve(folder, host, port, started)
