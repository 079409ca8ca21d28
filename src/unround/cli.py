"""The command line. It holds no logic of its own: every command reads, calls a public function, and shows the result."""

from __future__ import annotations

import io
import json as json_module
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO, cast

import typer

from unround._version import __version__
from unround.errors import InputError, InternalError, UnroundError

if TYPE_CHECKING:
    from unround.mechanisms import Mechanism
    from unround.system import System

app = typer.Typer(
    name="unround",
    help="Work out what published, randomly rounded counts must have been, or probably were.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,  # plain help: it starts in half the time, and examples keep their lines
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Values are inferred from published tables; they are not official counts. If you find something in a "
    "real release, tell the agency before you publish it.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"unround {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    del version


@app.command()
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
        from unround.report.charts import check_plot

        check_plot(plot)
    problem = _read_system(system, _mechanism(base, mechanism))
    solution = solve_system(problem, engine=engine, top=top, threshold=threshold, prior=_read_prior(prior))
    if json:
        typer.echo(json_module.dumps(solution.to_json(), ensure_ascii=False))
    else:
        from unround.report.terminal import show_solution

        show_solution(solution, _console())
    if plot is not None and solution.feasible:
        from unround.report.charts import MOST_PANELS, histograms, save

        save(histograms(solution), plot)
        more = len(solution.cells) - MOST_PANELS
        typer.echo(f"Drawn: {plot}{f' (the first {MOST_PANELS} cells)' if more > 0 else ''}", err=True)
    elif plot is not None:
        typer.echo(f"Nothing to draw: {plot} was not written.", err=True)
    if not solution.feasible:
        raise typer.Exit(1)


@app.command()
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
    from unround.expect import expectation

    expected = expectation(
        parts, exact_total=exact_total, base=base, zero_parts=zero_parts, areas=areas, threshold=threshold
    )
    if json:
        typer.echo(json_module.dumps(expected.to_json(), ensure_ascii=False))
    else:
        from unround.report.paper import show_expectation

        show_expectation(expected, _console())


@app.command()
def paper(
    simulate: Annotated[bool, typer.Option("--simulate", help="Run the paper's searches on a simulated census.")] = False,
    areas: Annotated[int | None, typer.Option(help="With --simulate: how many areas.", show_default="61029")] = None,
    seed: Annotated[int | None, typer.Option(help="With --simulate: the seed of the census.", show_default="1")] = None,
    rows: Annotated[
        str | None, typer.Option(help="With --simulate: age, short or all rows of the profile.", show_default="all")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Recompute every number of the paper, and say where ours differ.

    \b
    Examples:
      unround paper                        every claim, the paper's value and ours
      unround paper --json                 the same, for programs
      unround paper --simulate             its searches on 61,029 simulated areas: found against predicted
      unround paper --simulate --areas 4000 --rows short --seed 7

    The exit code is 0 also where claims disagree. docs/paper.md tells the story.
    """  # noqa: D301 - the backspace sign keeps a paragraph's lines apart
    from unround.paper import claims, experiment

    if not simulate and (areas, seed, rows) != (None, None, None):
        raise InputError("--areas, --seed and --rows go with --simulate.")
    if simulate:
        number = 61_029 if areas is None else areas
        with _progress("Searching", number, "areas") as step:
            run = experiment(number, 1 if seed is None else seed, rows or "all", step)
        if json:
            typer.echo(json_module.dumps(run.to_json(), ensure_ascii=False))
        else:
            from unround.report.paper import show_experiment

            show_experiment(run, _console())
        return
    found = claims()
    if json:
        typer.echo(json_module.dumps([claim.to_json() for claim in found], ensure_ascii=False))
    else:
        from unround.report.paper import show_claims

        show_claims(found, _console())


@app.command()
def simulate(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="The folder to write into.")],
    areas: Annotated[int, typer.Option(help="How many areas, of all levels; the census of 2021 has 61,029.")] = 1000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same census.")] = 1,
    layout: Annotated[str, typer.Option("--format", help="statcan (bulk CSV), censusmapper (wide) or tidy.")] = "statcan",
    rows: Annotated[str, typer.Option(help="age (33 rows), short (462) or all (2,631).")] = "age",
    zipped: Annotated[bool, typer.Option("--zip", help="Zip the bulk CSV together with its companions.")] = False,
) -> None:
    """Write a synthetic census, rounded as declared, with its truth beside it.

    \b
    Examples:
      unround simulate -o census --areas 500                       ages by sex, in the Canadian bulk layout
      unround simulate -o country --areas 61029 --rows short --zip the size of a country (a minute or two)
      unround simulate -o table --format tidy --rows short         one long Parquet table

    People are drawn first and counted second, so that every sum holds among the true counts. truth.parquet holds them;
    the other files hold what an agency would publish: population and dwellings as they are, other counts rounded to
    base 5, each on its own.
    """  # noqa: D301 - the backspace sign keeps a paragraph's lines apart
    from unround.simulate import simulate as write_census

    with _progress("Simulating", areas, "areas") as step:
        made = write_census(output, areas, seed, layout, rows, zipped, step)
    for path in (*made.files, made.truth, made.note):
        typer.echo(path)
    typer.echo(f"{made.summary}.", err=True)


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
        return parse(_decoded(sys.stdin.buffer.read(), "standard input"), mechanism, where="standard input")
    if not source.strip():
        return parse(source, mechanism)
    return parse(_read_text(Path(source), 'To type equations, use =, as in "48! = 20 + 20 + 20".'), mechanism, where=source)


def _read_text(path: Path, hint: str = "") -> str:
    try:
        return _decoded(path.read_bytes(), str(path))
    except FileNotFoundError:
        raise InputError(f"there is no file {path}. {hint}".rstrip()) from None
    except OSError as problem:
        raise InputError(f"{path} cannot be read: {problem.strerror}.") from None


def _decoded(content: bytes, where: str) -> str:
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise InputError(f"{where} is not UTF-8 text.") from None


def _read_prior(source: str) -> dict[str, dict[int, float]] | None:
    if source.lower() == "flat":
        return None
    example = 'It should look like {"men": {"12": 0.5, "13": 0.5}}: for each cell, weights of its true counts.'
    text = _read_text(Path(source), 'The prior is "flat" or a JSON file.')
    try:
        loaded: Any = json_module.loads(text)
    except ValueError:
        raise InputError(f"{source} is not JSON. {example}") from None
    try:
        return {str(name): {int(v): float(p) for v, p in one.items()} for name, one in loaded.items()}
    except (ValueError, AttributeError, TypeError):
        raise InputError(f"{source} cannot be used as a prior. {example}") from None


def _console() -> Any:
    from rich.console import Console

    if sys.stdout.isatty():
        return Console(highlight=False)
    # Piped output has no width of its own; 100 columns hold every table. Tables are padded with blanks on the right.
    width = None if "COLUMNS" in os.environ else 100
    return Console(file=cast(TextIO, _WithoutTrailingBlanks()), width=width, highlight=False)


class _WithoutTrailingBlanks(io.TextIOBase):
    """Standard output, for whole lines, without the blanks at their ends."""

    def write(self, text: str) -> int:
        sys.stdout.write("\n".join(line.rstrip(" ") for line in text.split("\n")))
        return len(text)


@contextmanager
def _progress(what: str, total: int, unit: str) -> Iterator[Callable[[int], None]]:
    """Show a bar with the time that is left, on a terminal; yield the function to call with how much is done."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)


def main() -> None:
    """Start from the shell."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader that goes away ends us quietly, as it does any filter
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that half-written files are cleaned up
    run()


def run() -> None:
    """Run the command line; errors become one message and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a sign shows a question mark
    try:
        app()
        sys.stdout.flush()
    except InternalError as problem:
        _fail(f"internal error: {problem}\nThis is a fault of unround. Please report it with the input that led here.", 3)
    except UnroundError as problem:
        _fail(f"error: {problem}", 2)
    except OSError as problem:
        _fail(f"error: the output cannot be written: {problem.strerror}.", 2)
    except KeyboardInterrupt:
        _fail("interrupted", 130)


def _fail(message: str, code: int) -> None:
    typer.echo(message, err=True)
    sys.exit(code)
