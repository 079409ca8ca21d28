"""Research: how often claims are right, and the paper recomputed, as commands: `python -m unround.research --help`.

The functions behind them are `unround.calibrate` and `unround.paper`.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from unround import api
from unround.cli import run
from unround.cli.build import Call, built, command
from unround.cli.commands import Json, show, written
from unround.cli.voice import print_json


@command(
    api.calibrate,
    """
    Examples:
      python -m unround.research calibrate                                      a short set of worlds, the worst first
      python -m unround.research calibrate --list-worlds
      python -m unround.research calibrate --world all -o calibrate
      python -m unround.research calibrate --world households --world couples --mechanism rounding:3 --rounded-total
      python -m unround.research calibrate --world census --rows short --areas 300
      python -m unround.research calibrate --release census.csv --truth truth.parquet

    A world is a table whose true counts are drawn by a law that the fitted prior does not know. Each is published, audited
    as `unround audit` does it, and the likely claims are compared with the truth. Besides, the likeliest counts of all cells
    are judged under a flat and a fitted prior, in groups that can be told without the truth: by sex, by the size of the
    published count, by the number of parts of a total.
    """,
)
def calibrate(
    call: Call[Any],
    *,
    list_worlds: Annotated[bool, typer.Option("--list-worlds", help="List the worlds that there are.")] = False,
    json: Json = False,
) -> None:
    """Show how often claims are right; or which worlds there are."""
    if list_worlds:
        from unround.comparison.calibration import SENTENCES
        from unround.show.parts import Bullets, Document

        if json:
            print_json(SENTENCES)
        else:
            show(Document("Worlds", [Bullets(list(SENTENCES.items()))]), json)
        return
    show(call(), json)
    written(call, json, "calibrate")


@command(
    api.paper,
    """
    Examples:
      python -m unround.research paper                        every claim, the paper's value and ours
      python -m unround.research paper --json                 the same, for programs
      python -m unround.research paper --simulate             its searches on 61,029 simulated areas: found against predicted
      python -m unround.research paper --simulate --areas 4000 --rows short --seed 7
      python -m unround.research paper --simulate --rows age --keys
      python -m unround.research paper --release profile.csv  its searches on a release: found against predicted

    With --release, a group of cells is looked at if every published value in it is above 10, and it is a find if
    |total − Σ parts| has the paper's value. --format, --describe and --plan are about that file.

    The exit code is 0 even where claims disagree. See docs/paper.md for a full account.
    """,
)
def paper(call: Call[Any], *, json: Json = False) -> None:
    """Show the claims of the paper, or what its searches find."""
    from unround.show import paper as papers

    result = call()
    if call.typed["release"] is not None:
        data, document = result.to_json(), papers.release_searches(result)
    elif call.typed["simulate"]:
        searched, compound = result
        data, document = searched.to_json() | {"audit": compound.to_json()}, papers.experiment(searched, compound)
    else:
        data, document = [claim.to_json() for claim in result], papers.claims(result)
    if json:
        print_json(data)
    else:
        show(document, json)


RESEARCH = {"Research": (calibrate, paper)}

app = built("python -m unround.research", "How often claims are right, and every number of the paper.", "", RESEARCH)

if __name__ == "__main__":
    run(app)
