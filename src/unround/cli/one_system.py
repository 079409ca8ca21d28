"""Commands about one system: solve, expect."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unround import api
from unround.cli.common import Json, Mechanism, Threshold, console, one_of, print_json, say, tell


def solve(
    system: Annotated[
        str,
        typer.Argument(metavar="SYSTEM", help='Equations if it contains "=", else a file; "-" is standard input.'),
    ],
    base: Annotated[int | None, typer.Option(help="Base to which counts were randomly rounded.", show_default="5")] = None,
    mechanism: Mechanism = None,
    engine: Annotated[
        str,
        typer.Option(
            help="auto, tree, cutset, elimination, chains, cp-sat, z3 or brute.",
            autocompletion=one_of("auto", "tree", "cutset", "elimination", "chains", "cp-sat", "z3", "brute"),
        ),
    ] = "auto",
    top: Annotated[int, typer.Option(min=0, help="How many of the best solutions to list.")] = 5,
    threshold: Threshold = 0.66,
    prior: Annotated[
        str,
        typer.Option(metavar="flat|FILE", help='flat, or a JSON file: {"cell": {"12": 0.5, "13": 0.5}, …}.'),
    ] = "flat",
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw a histogram of every cell: .svg, .png or .html.")
    ] = None,
    json: Json = False,
) -> None:
    """Work out one system: the numbers that you see in a table, and how they add up.

    \b
    Examples:
      unround solve "48! = 20 + 20 + 20"             an exact total: all three parts are proved
      unround solve "87! = men: 35 + women: 45"      only two solutions are left
      unround solve "6 = 6 + 6" --base 3             New Zealand rounds to base 3
      unround solve examples/small-town.txt --plot town.png    a file, and a histogram of every cell
      unround solve - --json < examples/small-town.txt         from standard input, for programs

    \b
    Values:
      48!     exact                   ?       not published
      20      rounded                 ?1..7   not published, but from 1 to 7
      9 @3    rounded to base 3       10 ~5   within 5 of the truth

    Cells can be named, so that several sums can use them: '110! = a: 30 + 65 + 10; a = 10 + 10 + 10'. Put names that
    contain spaces or symbols in double quotes: '87! = "0 to 14": 35 + 45'. See docs/solve.md for the whole notation.

    Exit codes: 0 solved; 1 no true counts fit; 2 the input cannot be used; 3 a fault in unround itself.
    """  # noqa: D301 - \b keeps the lines of a paragraph apart
    if plot is not None:
        from unround.show.plots import check_plot

        check_plot(plot)
    solution = api.solve(system, base=base, mechanism=mechanism, engine=engine, top=top, threshold=threshold, prior=prior)
    if json:
        print_json(solution.to_json())
    else:
        from unround.show.terminal.solve import show_solution

        show_solution(solution, console())
    if plot is not None and solution.feasible:
        from unround.show.plots import MOST_PANELS, save, solution_plot

        save(solution_plot(solution), plot)
        more = len(solution.cells) - MOST_PANELS
        say(f"Drawn: {plot}{f' (the first {MOST_PANELS} cells)' if more > 0 else ''}", err=True)
    elif plot is not None:
        tell(f"Nothing to draw: {plot} was not written.", err=True)
    if not solution.feasible:
        raise typer.Exit(1)


def expect(
    parts: Annotated[int, typer.Option(help="How many parts the sum has.")],
    exact_total: Annotated[bool, typer.Option("--exact-total", help="The total is published exactly, not rounded.")] = False,
    base: Annotated[int, typer.Option(help="Base to which counts are randomly rounded.")] = 5,
    zero_parts: Annotated[int, typer.Option(help="How many of the parts are published as 0.")] = 0,
    areas: Annotated[int | None, typer.Option(help="In how many areas the sum is published.")] = None,
    threshold: Threshold = 0.66,
    json: Json = False,
) -> None:
    """Say how often sums of one shape reveal their counts, before looking at any data.

    \b
    Examples:
      unround expect --parts 2 --exact-total                  men and women under an exact population, base 5
      unround expect --parts 3 --exact-total --areas 59625    three age groups, in as many areas as in the paper
      unround expect --parts 2 --base 3                       men and women in New Zealand, all three counts rounded
    """  # noqa: D301 - \b keeps the lines of a paragraph apart
    expected = api.expect(parts, exact_total=exact_total, base=base, zero_parts=zero_parts, areas=areas, threshold=threshold)
    if json:
        print_json(expected.to_json())
    else:
        from unround.show.terminal.paper import show_expectation

        show_expectation(expected, console())
