"""Run every benchmark, print one table of ratios, and keep it in bench/results.json.

Each ratio is the median of interleaved runs on the same machine. The command exits with 1 where one misses its aim by more
than a quarter, and names it. Times in seconds depend on the machine, and on what else it does: they are judged in a table of
their own, and fail nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence

from rich.console import Console
from rich.table import Table

from bench import census, figures, limits, linked, multiway, persons, posterior, reading, results, serve, single, stages
from bench.row import Ratio, Row, Share, Time

PARTS: dict[str, Callable[[], Iterator[Row]]] = {
    "single": single.rows,
    "reading": reading.rows,
    "posterior": posterior.rows,
    "limits": limits.rows,
    "stages": stages.rows,
    "multiway": multiway.rows,
    "linked": linked.rows,
    "census": census.rows,
    "figures": figures.rows,
    "persons": persons.rows,
    "serve": serve.rows,
}


def main() -> None:
    asked = argparse.ArgumentParser(
        prog="python -m bench", description="Speed, as ratios against baselines in the same run."
    )
    asked.add_argument("parts", nargs="*", metavar="PART", help=f"only some of {', '.join(PARTS)}; nothing is kept then")
    asked.add_argument("--check", action="store_true", help="measure and judge, but leave bench/results.json as it is")
    given = asked.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        asked.error(f"there is no part {min(unknown)}: choose from {', '.join(PARTS)}.")
    console, ratios, times, shares = Console(width=150), list[Ratio](), list[Time](), list[Share]()
    for name in given.parts or PARTS:
        console.print(f"Measuring: {name} …", style="dim")
        for row in PARTS[name]():
            if isinstance(row, Ratio):
                ratios.append(row)
            elif isinstance(row, Share):
                shares.append(row)
            else:
                times.append(row)
    show(ratios, times, console)
    show_shares(shares, console)
    if not given.check and not given.parts:
        measured: dict[str, Sequence[Row]] = {"ratios": ratios, "times": times, "limits": shares}
        results.keep("bench", {name: [one.to_json() for one in rows] for name, rows in measured.items()})
        console.print(f"Kept in {results.PATH}; `make docs` brings docs/speed.md up to date.")
    missed = [one for one in ratios if one.missed]
    if missed:
        told = "\n".join(f"  {one.job}: {shown(one.ratio)} of {one.baseline}; the aim is {one.aim:,}×" for one in missed)
        sys.exit(f"Ratios that miss their aim by more than a quarter:\n{told}")


def shown(ratio: float) -> str:
    """Return a ratio as people read it."""
    return f"{ratio:,.0f}×" if ratio >= 100 else f"{ratio:.3g}×"


def seconds(time: float) -> str:
    """Return a time as people read it."""
    return f"{time:.3g} s" if time >= 1 else f"{1e3 * time:.3g} ms" if time >= 1e-3 else f"{1e6 * time:.3g} µs"


def show(ratios: list[Ratio], times: list[Time], console: Console) -> None:
    """Print what was measured."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("job", "against", "their time", "ours", "times as fast", "aim", ""):
        table.add_column(name, justify="left" if name in ("job", "against", "") else "right", overflow="fold")
    for one in ratios:
        verdict = "missed" if one.missed else ""
        cells = seconds(one.theirs), seconds(one.ours), shown(one.ratio), f"{one.aim:,}×", verdict
        table.add_row(one.job, one.baseline, *cells)
    console.print(table)
    if times:
        console.print("\nTimes, which depend on this machine and on what else it does now:")
        table = Table(box=None, header_style="bold", pad_edge=False)
        for name in ("job", "time", "aim", ""):
            table.add_column(name, justify="left" if name in ("job", "") else "right", overflow="fold")
        for time in times:
            table.add_row(time.job, seconds(time.ours), seconds(time.aim), "missed here" if time.missed else "")
        console.print(table)


def show_shares(shares: list[Share], console: Console) -> None:
    """Print how close the heaviest loops come to their limits."""
    if not shares:
        return
    console.print("\nBeside the least time that anything could take here:")
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("job", "limit", "least", "ours", "share"):
        table.add_column(name, justify="left" if name in ("job", "limit") else "right", overflow="fold")
    for one in shares:
        table.add_row(one.job, one.limit, seconds(one.least), seconds(one.ours), f"{100 * one.share:.0f}%")
    console.print(table)


if __name__ == "__main__":
    main()
