"""How often claims are right, the paper recomputed, and worlds, as commands: `python -m research --help`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from research import commands, paper_document
from research.calibration import SENTENCES, Calibrations
from research.calibration_document import calibration
from research.variability import document
from unround.cli import run
from unround.cli.build import Call, built, command
from unround.cli.commands import Json, say_simulated, show, written
from unround.cli.voice import print_json
from unround.show.parts import Bullets, Document
from unround.simulation import Simulated


@command(
    commands.calibrate,
    """
    Examples:
      python -m research calibrate                                      a short set of worlds, the worst first
      python -m research calibrate --list-worlds
      python -m research calibrate --world all -o calibrate
      python -m research calibrate --world households --world couples --mechanism rounding:3 --rounded-total
      python -m research calibrate --world census --rows short --areas 300
      python -m research calibrate --release census.csv --truth truth.parquet

    A world is a table whose true counts are drawn by a law that the fitted prior does not know. Each is published, audited
    as `unround audit` does it, and the likely claims are compared with the truth. Besides, the likeliest counts of all cells
    are judged under a flat and a fitted prior, in groups that can be told without the truth: by sex, by the size of the
    published count, by the number of parts of a total.
    """,
)
def calibrate(
    call: Call[Calibrations],
    *,
    list_worlds: Annotated[bool, typer.Option("--list-worlds", help="List the worlds that there are.")] = False,
    json: Json = False,
) -> None:
    """Show how often claims are right; or which worlds there are."""
    if list_worlds:
        _show(SENTENCES, Document("Worlds", [Bullets(list(SENTENCES.items()))]), json)
        return
    calibrated = call()
    _show(calibrated.to_json(), calibration(calibrated), json)
    written(call, json, "calibrate")


def _show(data: Any, document: Document, json: bool) -> None:
    if json:
        print_json(data)
    else:
        show(document, json)


@command(
    commands.paper,
    """
    Examples:
      python -m research paper                        every claim, the paper's value and ours
      python -m research paper --json                 the same, for programs
      python -m research paper --simulate             its searches on 61,029 simulated areas: found against predicted
      python -m research paper --simulate --areas 4000 --rows short --seed 7
      python -m research paper --simulate --rows age --keys
      python -m research paper --release profile.csv  its searches on a release: found against predicted

    With --release, a group of cells is looked at if every published value in it is above 10, and it is a find if
    |total − Σ parts| has the paper's value. --format and --describe are about that file.

    The exit code is 0 even where claims disagree. See docs/paper.md for a full account.
    """,
)
def paper(call: Call[Any], *, json: Json = False) -> None:
    """Show the claims of the paper, or what its searches find."""
    result = call()
    if call.typed["release"] is not None:
        _show(result.to_json(), paper_document.release_searches(result), json)
    elif call.typed["simulate"]:
        searched, compound = result
        _show(searched.to_json() | {"audit": compound.to_json()}, paper_document.experiment(searched, compound), json)
    else:
        _show([claim.to_json() for claim in result], paper_document.claims(result), json)


@command(
    commands.world,
    """
    Examples:
      python -m research world couples -o couples --mechanism rounding:3
      unround audit couples/release.toml -o audit --truth couples/truth.parquet

    Unless --rounded-total is given, the total of all is published exactly.
    """,
)
def world(call: Call[Simulated], *, json: Json = False) -> None:
    """Say which files were written, and what to try on them."""
    say_simulated(call(), json)


@command(
    commands.variability,
    """
    Examples:
      unround simulate -o census --persons --areas 20
      python -m research variability census/*.toml --truth census/persons.parquet --areas 5

    0% means that an area is determined. In the same areas, the solver looks for combinations of attributes that somebody has
    in every world, beyond those that bounds prove. See docs/reconstruct.md.
    """,
)
def variability(call: Call[dict[str, Any]], *, json: Json = False) -> None:
    """Show how different worlds can be."""
    measured = call()
    _show(measured, document(measured), json)


COMMANDS = {"Research": (calibrate, paper, world, variability)}

app = built("python -m research", "How often claims are right, and every number of the paper.", "", COMMANDS)

if __name__ == "__main__":
    run(app)
