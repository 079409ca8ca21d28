"""Areas within areas in words and rows, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from unround.audits.summary import CLAIMS
from unround.presentation.terminal import percent

TITLE = "Areas within areas"


def section(told: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what a page shows of areas that lie within each other; None where none do, or nobody looked."""
    linked = told.get("linked")  # audits of earlier versions have none
    if not linked or not linked["levels"]:
        return None
    return {"said": sentences(told), "levels": levels(linked), "methods": methods(linked)}


def sentences(told: Mapping[str, Any]) -> list[str]:
    """Say how areas were linked, and what came of it."""
    linked = told["linked"]
    families = sum(level["parents"] for level in linked["levels"])
    together = sum(level["linked"] for level in linked["levels"])
    most = linked["most_areas_of_a_family"]
    if not families:
        return ["Areas were said to lie within each other, but none was found to be the sum of those in it: see below."]
    said = [
        f"{_number(families, 'area is', 'areas are')} the sum of others in this release: all counts of a family have to "
        f"agree. {_number(together, 'family is', 'families are')} taken together."
    ]
    if families > together:
        large = families - together
        said.append(
            f"{_number(large, 'has', 'have')} more than {most} areas; so many roundings say next to nothing about any one "
            "of them, and they are not linked."
        )
    for why, number in linked["families_not_linked"].items():
        said.append(f"{_number(number, 'family is', 'families are')} linked for bounds and proofs only: {why}.")
    if not linked["probabilities"]:
        said.append(
            "Because total and parts share random numbers (see above), other areas are used for what is possible and "
            "proved. What they make likely was not worked out: that is no sign of safety."
        )
    need = {name: linked["claims_that_need_other_areas"][name] for name in CLAIMS}
    listed = ", ".join(f"{number:,} {name}" for name, number in need.items() if number)
    said.append(f"Claims that need other areas: {listed or 'none'}.")
    clashes = told["contradictions_by_kind"].get("areas", 0)
    if clashes:
        cannot = _number(clashes, "area cannot be the sum of those in it", "areas cannot be the sums of those in them")
        said.append(f"{cannot}: a contradiction each, and not linked.")
    return said


def levels(linked: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the pairs of levels, a row each."""
    return [
        {
            "name": f"{level['child'] or 'areas'} in {level['parent'] or 'areas'}",
            "families": f"{level['parents']:,}",
            "linked": f"{level['linked']:,}",
            "columns": f"{level['columns']:,}",
            "rejected": f"{sum(level['rejected'].values()):,}",
            "why": "; ".join(f"{number:,}: {why}" for why, number in level["rejected"].items()),
        }
        for level in linked["levels"]
    ]


def methods(linked: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return how probabilities were obtained, a row a method that was used, with how far each is off."""
    return [
        {
            "name": method["name"],
            "sentence": method["sentence"],
            "areas": f"{linked['areas_by_method'][method['name']]:,}",
            "likely": f"{linked['likely_by_method'].get(method['name'], 0):,}",
            "mean": _error(method["mean"]),
            "worst": _error(method["worst"]),
        }
        for method in linked["methods"]
        if linked["areas_by_method"].get(method["name"])
    ]


def show_nesting(told: Mapping[str, Any], console: Console) -> None:
    """Print how areas within areas were linked, and what came of it."""
    shown = section(told)
    if shown is None:
        return
    console.print(f"\n[bold]{TITLE}[/]")
    for said in shown["said"]:
        console.print(Text(said))
    console.print()
    table = _table(("areas in areas", "families", "linked", "columns", "left out"))
    for row in shown["levels"]:
        table.add_row(*(row[name] for name in ("name", "families", "linked", "columns", "rejected")))
    console.print(table)
    for row in shown["levels"]:
        if row["why"]:
            console.print(Text(f"left out, {row['name']}: {row['why']}"), style="dim")
    console.print()
    table = _table(("probabilities", "areas", "likely", "off by", "at worst"))
    for row in shown["methods"]:
        table.add_row(*(row[name] for name in ("name", "areas", "likely", "mean", "worst")))
    console.print(table)
    for row in shown["methods"]:
        console.print(Text(f"{row['name']}: {row['sentence']}"), style="dim")
    console.print(
        "off by: how far it was from exact distributions when that was measured (total variation), on average over counts "
        "and for the worst.",
        style="dim",
    )


def _table(headings: tuple[str, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for at, heading in enumerate(headings):
        table.add_column(heading, justify="right" if at else "left")
    return table


def _error(share: float) -> str:
    return percent(share) if share else "exact"


def _number(number: int, one: str, more: str) -> str:
    return f"{number:,} {one if number == 1 else more}"
