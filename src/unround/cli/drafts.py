"""The command about a draft table: review."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unround import api
from unround.cli.common import (
    Areas,
    Base,
    Describe,
    Format,
    Json,
    Plan,
    Sheet,
    Undeclared,
    console,
    listed,
    print_json,
    stages,
    typed,
)
from unround.errors import InputError


def review(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE...", help="The draft: any table that audit reads. Several files are read as one."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="DIR", help="Write review.html, cells.xlsx, review.json and the audit there."
        ),
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(metavar="TOML", help="What may be published.", show_default="the default policy"),
    ] = None,
    show_policy: Annotated[bool, typer.Option("--show-policy", help="Print the policy in force, and exit.")] = False,
    truth: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The true counts, if you have them: repairs are published from them."),
    ] = None,
    earlier: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A release that is already out: what do both together tell that it does not?"),
    ] = None,
    repairs: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Repairs to try, separated by commas: round-totals, base, base=N, drop-totals, drop, drop=KEY, merge, "
            "controlled, same-numbers; or none.",
            show_default="all",
        ),
    ] = None,
    accept: Annotated[
        list[str] | None,
        typer.Option(metavar="CELL", help="Accept a cell as it is: AREA:KEY, as in cells.xlsx. May be repeated."),
    ] = None,
    because: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Why: one reason for all accepted cells, or one for each."),
    ] = None,
    reviewer: Annotated[str, typer.Option(metavar="NAME", help="Who accepts them.")] = "",
    seed: Annotated[int, typer.Option(help="Seed of all random draws: the same seed gives the same numbers.")] = 0,
    draws: Annotated[
        int | None,
        typer.Option(
            help="How many times to publish a repair that draws random numbers.", show_default="5, fewer in large tables"
        ),
    ] = None,
    file_format: Format = "auto",
    description: Describe = None,
    sheet: Sheet = None,
    base: Base = None,
    plan: Plan = None,
    mechanism: Undeclared = None,
    areas: Areas = None,
    json: Json = False,
) -> None:
    """Decide whether a draft table may be published: publish, revise or stop.

    \b
    Examples:
      unround review draft.xlsx -o review                          the decision, and a page to sign
      unround review draft.toml -o review --truth truth.csv        repairs from the true counts
      unround review --show-policy > policy.toml                   the default policy, to be changed …
      unround review draft.toml -o review --policy policy.toml     … and used
      unround review draft.toml -o review --accept "R01:15-64/men" --because "published in 2019 already"
      unround review draft.toml --json --repairs none

    \b
    Repairs:
      round-totals   round counts that are unrounded now
      base           round to a coarser base, twice the old one; base=N: to this one
      drop-totals    leave out all totals
      drop           leave out the total, or another column, that tells most; drop=KEY: this one
      merge          merge the sparsest categories
      controlled     round all counts of an area together, so that all sums add up
      same-numbers   print counts of the release given by --earlier with its numbers

    \b
    Exit codes: 0 publish, 4 revise, 5 stop, 2 bad input.
    """  # noqa: D301 - \b keeps the lines of a paragraph apart
    if show_policy:
        from unround.reviews import policy_of

        typer.echo(policy_of(policy).text, nl=False)
        return
    if not files:
        raise InputError("no table is given: unround review FILE -o DIR. `unround review --help` shows examples.")
    with stages() as progress:
        found = api.review(
            files,
            output,
            policy=policy,
            truth=truth,
            earlier=earlier,
            repairs=None if repairs is None else [name for name in listed(repairs) if name != "none"],
            accept=_reasons(accept or [], because or []),
            reviewer=reviewer,
            seed=seed,
            draws=draws,
            plan=plan,
            base=base,
            mechanism=mechanism,
            progress=progress,
            command=typed(),
            file_format=file_format,
            description=description,
            sheet=sheet,
            areas=areas,
        )
    if json:
        print_json(found.to_json())
    else:
        from unround.show.terminal.review import show_review

        show_review(found.to_json(), console(), output)
    if found.exit_code:
        raise typer.Exit(found.exit_code)


def _reasons(cells: list[str], because: list[str]) -> dict[str, str]:
    """Give every accepted cell its reason."""
    if because and not cells:
        raise InputError("--because says why a cell is accepted: use it together with --accept CELL.")
    if cells and len(because) not in (1, len(cells)):
        raise InputError(
            f"{len(cells)} cells are accepted with {len(because)} reasons: give --because TEXT once for all, or once "
            "for each."
        )
    return dict(zip(cells, because * len(cells) if len(because) == 1 else because, strict=True))
