"""Commands about single sums and systems: solve, expect."""

from __future__ import annotations

import json as json_module
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unround.cli.common import console, decoded, print_json, read_text
from unround.errors import InputError

if TYPE_CHECKING:
    from unround.mechanisms import Mechanism
    from unround.system import System


def solve(
    system: Annotated[
        str,
        typer.Argument(metavar="SYSTEM", help='Equations if it contains "=", else a file; "-" is standard input.'),
    ],
    base: Annotated[int | None, typer.Option(help="Base to which counts were randomly rounded.", show_default="5")] = None,
    mechanism: Annotated[
        str | None,
        typer.Option(metavar="NAME:PARAMETER", help="How counts were protected, e.g. laplace:1.45; instead of --base."),
    ] = None,
    engine: Annotated[str, typer.Option(help="auto, tree, cutset, cp-sat, z3 or brute.")] = "auto",
    top: Annotated[int, typer.Option(min=0, help="How many of the best solutions to list.")] = 5,
    threshold: Annotated[float, typer.Option(help="From which probability on a value counts as likely.")] = 0.66,
    prior: Annotated[
        str,
        typer.Option(metavar="flat|FILE", help='flat, or a JSON file: {"cell": {"12": 0.5, "13": 0.5}, …}.'),
    ] = "flat",
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw every cell's histogram: .svg, .png or .html.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object, in full precision.")] = False,
) -> None:
    """Work out one system: the numbers that you see in a table, and how they add up.

    \b
    Examples:
      unround solve "48! = 20 + 20 + 20"             an exact total: all three parts are proved
      unround solve "87! = men: 35 + women: 45"      only two ways are left
      unround solve "6 = 6 + 6" --base 3             New Zealand rounds to base 3
      unround solve examples/small-town.txt --plot town.png    a file, and every cell's histogram
      unround solve - --json < examples/small-town.txt         from standard input, for programs

    \b
    Values:
      48!     exact                   ?       not published
      20      rounded                 ?1..7   not published, but from 1 to 7
      9 @3    rounded to base 3       10 ~5   within 5 of the truth

    Cells can be named, to be used in several sums: '110! = a: 30 + 65 + 10; a = 10 + 10 + 10'. Names with blanks or
    signs go in double quotes: '87! = "0 to 14": 35 + 45'. docs/solve.md has it all.

    Exit codes: 0 solved; 1 no true counts fit; 2 the input cannot be used; 3 a fault of unround itself.
    """  # noqa: D301 - the backspace sign keeps a paragraph's lines apart
    from unround.solution import solve as solve_system

    if plot is not None:
        from unround.presentation.plots import check_plot

        check_plot(plot)
    problem = _read_system(system, _mechanism(base, mechanism))
    solution = solve_system(problem, engine=engine, top=top, threshold=threshold, prior=_read_prior(prior))
    if json:
        print_json(solution.to_json())
    else:
        from unround.presentation.terminal.solve import show_solution

        show_solution(solution, console())
    if plot is not None and solution.feasible:
        from unround.presentation.plots import MOST_PANELS, save, solution_plot

        save(solution_plot(solution), plot)
        more = len(solution.cells) - MOST_PANELS
        typer.echo(f"Drawn: {plot}{f' (the first {MOST_PANELS} cells)' if more > 0 else ''}", err=True)
    elif plot is not None:
        typer.echo(f"Nothing to draw: {plot} was not written.", err=True)
    if not solution.feasible:
        raise typer.Exit(1)


def expect(
    parts: Annotated[int, typer.Option(help="How many parts the sum has.")],
    exact_total: Annotated[
        bool, typer.Option("--exact-total", help="The total is published as it is, not rounded.")
    ] = False,
    base: Annotated[int, typer.Option(help="Base to which counts are randomly rounded.")] = 5,
    zero_parts: Annotated[int, typer.Option(help="How many of the parts are published as 0.")] = 0,
    areas: Annotated[int | None, typer.Option(help="In how many areas the sum is published.")] = None,
    threshold: Annotated[float, typer.Option(help="From which probability on a value counts as likely.")] = 0.66,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say how often sums of one shape give counts away, before looking at any data.

    \b
    Examples:
      unround expect --parts 2 --exact-total                  the sexes of an exact population, base 5
      unround expect --parts 3 --exact-total --areas 59625    three age groups, in as many areas as the paper had
      unround expect --parts 2 --base 3                       New Zealand's sexes, all three counts rounded
    """  # noqa: D301 - the backspace sign keeps a paragraph's lines apart
    from unround.expectation import expectation

    expected = expectation(
        parts, exact_total=exact_total, base=base, zero_parts=zero_parts, areas=areas, threshold=threshold
    )
    if json:
        print_json(expected.to_json())
    else:
        from unround.presentation.terminal.paper import show_expectation

        show_expectation(expected, console())


# -- reading what was typed -------------------------------------------------------------------------------------------


def _mechanism(base: int | None, spec: str | None) -> Mechanism:
    from unround.mechanisms import Rounding, mechanism

    if base is not None and spec is not None:
        raise InputError("--base and --mechanism say the same thing twice: give one of them.")
    return mechanism(spec) if spec is not None else Rounding(5 if base is None else base)


def _read_system(source: str, mechanism: Mechanism) -> System:
    from unround.equations import parse

    if "=" in source:
        return parse(source, mechanism)
    if source == "-":
        return parse(decoded(sys.stdin.buffer.read(), "standard input"), mechanism, where="standard input")
    if not source.strip():
        return parse(source, mechanism)
    return parse(read_text(Path(source), 'To type equations, use =, as in "48! = 20 + 20 + 20".'), mechanism, where=source)


def _read_prior(source: str) -> dict[str, dict[int, float]] | None:
    if source.lower() == "flat":
        return None
    example = 'It should look like {"men": {"12": 0.5, "13": 0.5}}: for each cell, weights of its true counts.'
    text = read_text(Path(source), 'The prior is "flat" or a JSON file.')
    try:
        loaded: Any = json_module.loads(text)
    except ValueError:
        raise InputError(f"{source} is not JSON. {example}") from None
    try:
        return {str(name): {int(v): float(p) for v, p in one.items()} for name, one in loaded.items()}
    except (ValueError, AttributeError, TypeError):
        raise InputError(f"{source} cannot be used as a prior. {example}") from None
