"""Commands about other ways of publishing: compare, calibrate."""

from __future__ import annotations

import json as jsons
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unround.cli.common import console, print_json, stages
from unround.errors import InputError

if TYPE_CHECKING:
    from unround.comparison import Material

AREAS, SEED, ROWS = 2000, 11, "age"
"""What is simulated unless the user says otherwise."""

Areas = Annotated[int | None, typer.Option(help="How many areas to simulate.", show_default=str(AREAS))]
Rows = Annotated[str | None, typer.Option(help="Which rows to simulate: age or short.", show_default=ROWS)]
Seed = Annotated[int, typer.Option(help="Of the census, and of all draws: the same seed gives the same numbers.")]


def compare(
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Write compare.json and compare.html there.")
    ] = None,
    mechanisms: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Separated by commas; the first is what others are compared with.",
            show_default="rounding:5,controlled:5,rounding:10,nearest:5,laplace:1.45,gaussian:2",
        ),
    ] = None,
    changes: Annotated[
        str | None,
        typer.Option(
            "--what-if",
            metavar="LIST",
            help="Changes to today's practice in place of mechanisms: drop-invariants, same-seed, base=N, no-totals, "
            "controlled, any mechanism, or all.",
        ),
    ] = None,
    areas: Areas = None,
    rows: Rows = None,
    seed: Seed = SEED,
    seeds: Annotated[int, typer.Option(help="How often to publish in each way.")] = 5,
    threshold: Annotated[float, typer.Option(help="From which probability on a count is likely.")] = 0.66,
    truth: Annotated[
        Path | None, typer.Option(metavar="FILE", help="True counts of your own, in place of simulated ones.")
    ] = None,
    exact: Annotated[
        list[str] | None,
        typer.Option(
            "--exact",
            metavar="NAME",
            help="With --truth: published as it is, today. Repeat it.",
            show_default="population and dwellings, if there are any",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Publish the same table in several ways, infer what can be inferred from each, and judge both by the truth.

    \b
    Examples:
      unround compare -o compare                                       six mechanisms on 2,000 simulated areas
      unround compare --mechanisms rounding:5,laplace:1.45 --areas 500 --seeds 3
      unround compare --what-if all                                    small changes to today's practice
      unround compare --what-if drop-invariants,base=10
      unround compare --truth truth.parquet -o compare                 your own table

    Today's practice is rounding:5 with exact populations. A release is published --seeds times in each way; the truth
    stays the same. ε is for the whole release: all counts of all levels of areas that a person is in.
    """  # noqa: D301 - the backspace sign keeps a paragraph's lines apart
    from unround import comparison as comparing

    if mechanisms is not None and changes is not None:
        raise InputError("--mechanisms and --what-if are two kinds of comparison: give one of them.")
    if output is not None:
        _check_folder(output)
    material = _material(truth, areas, seed, rows, exact)
    if changes is not None:
        wanted = comparing.WHAT_IFS if changes.strip() == "all" else tuple(_listed(changes, "--what-if"))
        practices = [comparing.practice(comparing.TODAY, material)]
        practices += [comparing.what_if(change, material) for change in wanted if change != comparing.TODAY]
    else:
        specs = comparing.DEFAULT if mechanisms is None else tuple(_listed(mechanisms, "--mechanisms"))
        practices = [comparing.practice(spec, material) for spec in specs]
    with stages() as progress:
        told = comparing.compare(material, practices, seed, seeds, threshold, progress).to_json()
    if output is not None:
        from unround.presentation.compare import comparison_page

        _write(output, {"compare.json": _text(told), "compare.html": comparison_page(told)})
    if json:
        print_json(told)
    else:
        from unround.presentation.terminal.compare import show_comparison

        show_comparison(told, console())
        if output is not None:
            typer.echo(f"\nWritten: {output / 'compare.html'} (pictures), {output / 'compare.json'} (every number).")


def calibrate(
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Write calibrate.json and calibrate.html there.")
    ] = None,
    release: Annotated[Path | None, typer.Option(metavar="FILE", help="A release, in place of a simulated one.")] = None,
    truth: Annotated[Path | None, typer.Option(metavar="FILE", help="With --release: its true counts.")] = None,
    mechanism: Annotated[
        str | None, typer.Option(help="How to publish what is simulated.", show_default="rounding:5")
    ] = None,
    areas: Areas = None,
    rows: Rows = None,
    seed: Seed = SEED,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say how often claims of each stated probability are right, under a flat and a fitted prior, and which to trust when.

    \b
    Examples:
      unround calibrate                                      ages by sex in 2,000 simulated areas
      unround calibrate --rows short --areas 300 -o calibrate
      unround calibrate --release census.csv --truth truth.parquet

    Claims are judged in groups that whoever makes them can tell: by sex, by the size of what was published, by the number
    of parts of a total.
    """  # noqa: D301 - the backspace sign keeps a paragraph's lines apart
    from unround.comparison import TODAY
    from unround.comparison.calibration import calibrate as calibrate_on
    from unround.comparison.calibration import calibrate_release

    if (release is None) != (truth is None):
        raise InputError("--release and --truth go together: the published table, and its true counts.")
    if release is not None and (areas, rows, mechanism) != (None, None, None):
        raise InputError("--areas, --rows and --mechanism are for simulated counts: leave them out with --release.")
    if output is not None:
        _check_folder(output)
    with stages() as progress:
        if release is not None and truth is not None:
            from unround.readers import read

            found = calibrate_release(read(release), read(truth), progress)
        else:
            found = calibrate_on(_material(None, areas, seed, rows), mechanism or TODAY, seed, progress)
    told = found.to_json()
    if output is not None:
        from unround.presentation.compare import calibration_page

        _write(output, {"calibrate.json": _text(told), "calibrate.html": calibration_page(told)})
    if json:
        print_json(told)
    else:
        from unround.presentation.terminal.compare import show_calibration

        show_calibration(found, console())
        if output is not None:
            typer.echo(f"\nWritten: {output / 'calibrate.html'} (pictures), {output / 'calibrate.json'} (every number).")


def _material(
    truth: Path | None, areas: int | None, seed: int, rows: str | None, exact: list[str] | None = None
) -> Material:
    from unround.comparison import from_release, simulated

    if truth is not None:
        if (areas, rows) != (None, None):
            raise InputError("--areas and --rows are for simulated counts: leave them out with --truth.")
        from unround.readers import read

        return from_release(read(truth), None if exact is None else tuple(exact))
    if exact is not None:
        raise InputError("--exact is for counts of your own: it goes with --truth.")
    if seed < 0:
        raise InputError(f"a seed is a whole number from 0, not {seed}.")
    return simulated(AREAS if areas is None else areas, seed, rows or ROWS)


def _listed(text: str, option: str) -> list[str]:
    """Split a list at its commas, but for those inside the parameters of a mechanism."""
    found: list[str] = []
    for piece in (part.strip() for part in text.split(",")):
        # What starts with a number, or is no name of its own, goes on with the parameters of the one before.
        if found and ":" in found[-1] and (piece[:1].isdigit() or piece[:1] in "+-." or piece == "clamped"):
            found[-1] += f",{piece}"
        elif piece:
            found.append(piece)
    if not found:
        raise InputError(f"{option} is empty: name at least one, such as rounding:5.")
    twice = {one for one in found if found.count(one) > 1}
    if twice:
        raise InputError(f"{option} names {', '.join(sorted(twice))} more than once.")
    return found


def _text(told: object) -> str:
    return jsons.dumps(told, ensure_ascii=False, indent=2) + "\n"


def _check_folder(folder: Path) -> None:
    """Complain before a long run, not after it."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: give -o a folder to write into.")


def _write(folder: Path, files: dict[str, str]) -> None:
    """Write files that belong together: all of them complete before the first takes the place of an older one."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / f".{name}.part").write_text(text, encoding="utf-8")
        for name in files:
            (folder / f".{name}.part").replace(folder / name)
    except OSError as problem:
        raise InputError(f"cannot write into {folder}: {problem.strerror}. Choose another folder with -o.") from None
