"""What one more table would expose, as text in the terminal; and what the page says too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from unround.audits.summary import CLAIMS
from unround.presentation.diff import bulleted, show_diff
from unround.presentation.terminal import percent
from unround.presentation.words import several

AS_IT_IS = "as it is"
CALLED = ("release alone", "with the table")


def show_whatif(told: Mapping[str, Any], console: Console) -> None:
    """Print what the table would expose, and what each repair of it leaves."""
    release, table = file_names(told)
    console.print(Text(f"What would {table} expose, next to {release}?\n"))
    show_diff(told["diff"], console, CALLED)
    console.print(Text(f"\n{advice(told)}", style="bold"))
    if told["repairs"]:
        console.print()
        console.print(_ranking(told))
        said = Table.grid(padding=(0, 2, 0, 0))
        for row in told["repairs"]:
            said.add_row(f"  {row['name']}", Text(row["sentence"]))
        console.print("\nWhat is done")
        console.print(said, style="dim")
    console.print()
    console.print(bulleted((*footnotes(told), *refusals(told))), style="dim")


def file_names(told: Mapping[str, Any]) -> tuple[str, str]:
    """Return the names of release and table; with their folders where the names alone are the same."""
    release, table = Path(told["release"]), Path(told["table"])
    if release.name != table.name:
        return release.name, table.name
    return str(Path(release.parent.name, release.name)), str(Path(table.parent.name, table.name))


def _ranking(told: Mapping[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "repair" else "right", no_wrap=heading == "repair")
    for row in rows(told):
        table.add_row(*row["cells"], style="" if row["method"] else "dim")
    return table


HEADINGS = ("", "repair", "exposure left", "newly proved", "conditional", "likely", "of 1–2", "counts lost", "added error")


def rows(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the ranking as text: a row a repair, and the table as it is at the end."""
    found = []
    for row in told["repairs"]:
        mark = "" if row["method"] == "exact" else "≈ "
        costs = row["cost"]
        error = costs["mean_added_error"]
        lost = f"{costs['counts_lost']:,}"
        if costs["counts_lost_but_in_release"]:
            lost += f" (+{costs['counts_lost_but_in_release']:,})"
        cells = [
            f"{row['rank']}.",
            row["name"],
            f"{mark}{_left(row)}",
            *(f"{mark}{row['newly'][kind]:,}" for kind in CLAIMS),
            f"{mark}{sum(row['newly_small'].values()):,}",
            lost,
            "unknown" if error is None else f"{error:+.2f}" if abs(error) >= 0.005 else "0",
        ]
        found.append({"cells": cells, "method": row["method"], "left": row["left"], "kinds": row["newly"]})
    now = told["as_it_is"]
    cells = ["", AS_IT_IS, "all" if now["exposure"] else "none", *(f"{now['newly'][kind]:,}" for kind in CLAIMS)]
    cells += [f"{sum(now['newly_small'].values()):,}", "", ""]
    return [*found, {"cells": cells, "method": "", "left": 1.0 if now["exposure"] else 0.0, "kinds": now["newly"]}]


def _left(row: Mapping[str, Any]) -> str:
    if row["left"] is None:
        return "–" if row["exposure"] else "none"
    return "none" if row["exposure"] == 0 else percent(row["left"])


def advice(told: Mapping[str, Any]) -> str:
    """Say which repair leaves least."""
    if not told["as_it_is"]["exposure"]:
        return (
            "The table exposes nothing by its sums that the release did not, so that there is nothing to repair. That rests "
            "on the assumptions of the audit, and does not say what other knowledge would reveal."
        )
    if not told["repairs"]:
        return "No repair could be tried."
    best = told["repairs"][0]
    if best["left"] is not None and best["left"] >= 1:
        return "None of these repairs leaves less exposed than the table as it is."
    about = "about " if best["method"] != "exact" else ""
    if best["exposure"] == 0:
        nothing = f"{about}nothing of" if about else "nothing of"
        return f"The repair that leaves least is {best['name']}: {nothing} what the table would expose is left."
    return f"The repair that leaves least is {best['name']}: {about}{percent(best['left'])} of the exposure is left."


def footnotes(told: Mapping[str, Any]) -> list[str]:
    """Return how to read the ranking."""
    sure, small = told["weights"]["sureness"], told["weights"]["smallness"]
    found = []
    if told["repairs"]:
        found.append(
            f"Exposure left: new claims next to the release alone, weighed. A proved count weighs {sure['proved']}, a "
            f"conditional one {sure['conditional']}, a likely one {sure['likely']}; times {small['1-2']} for counts of one "
            f"or two, times {small['3-9']} for three to nine."
        )
        found.append(
            "Counts lost: published counts of the table that readers no longer get (+ those that the release still has). "
            f"Added error: how much farther from the truth the table's counts are on average{_error(told)}."
        )
    world = told["simulated"]
    if world is not None:
        found.append(
            f"≈: tried on simulated counts, since another base needs true ones and none were given (--truth). Plausible "
            f"true counts of {several(world['areas'], 'area')} were drawn from the audit's estimates{_times(world)}, and "
            f"release and table published from them. There the table as it is exposes {sum(world['newly'].values()):,} "
            f"counts, here {sum(told['as_it_is']['newly'].values()):,}: an approximation. With --truth it would be exact."
        )
    found += _scores(told)
    return [*found, *told["notes"]]


def _times(world: Mapping[str, Any]) -> str:
    return f", {world['times']} times over" if world["times"] > 1 else ""


def _error(told: Mapping[str, Any]) -> str:
    return ", measured" if told["truth"] else ", as the mechanisms promise for counts well above 0"


def _scores(told: Mapping[str, Any]) -> list[str]:
    """Say how claims did against the truth, if it was given."""
    if told["truth"] is None:
        return []
    scored = [(AS_IT_IS, told["as_it_is"]), *((row["name"], row) for row in told["repairs"])]
    wrong = {name: row["truth"]["wrong"]["proved"] for name, row in scored if row.get("truth")}
    bad = [f"{number:,} with {name}" for name, number in wrong.items() if number]
    if bad:
        return [
            f"Against the truth, proved claims are wrong ({', '.join(bad)}): a documented fact does not hold, or the truth "
            "belongs to another release. Do not rely on these numbers."
        ]
    now = told["as_it_is"]["truth"]
    checked, missed = now["checked"]["likely"], now["wrong"]["likely"]
    right = (
        f" Of {checked:,} likely ones with the table as it is, {percent(1 - missed / checked)} are right." if checked else ""
    )
    return [f"Against the truth, no proved claim is wrong, with the table as it is or after any repair.{right}"]


def refusals(told: Mapping[str, Any]) -> list[str]:
    """Say which repairs were not tried."""
    return [f"Not tried, {one['name']}: {one['why']}." for one in told["not_tried"]]
