"""Areas within areas: sentences and rows for the terminal and the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unround.show.words import CLAIMS, listed, percent, several

TITLE = "Areas within areas"


def section(told: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what is shown of areas within areas; None where there are none, or it was not looked for."""
    linked = told.get("linked")  # audits of earlier versions have none
    if not linked or not linked["levels"]:
        return None
    return {"sentences": sentences(told), "levels": levels(linked), "methods": methods(linked)}


def sentences(told: Mapping[str, Any]) -> list[str]:
    """Say how areas were linked, and what came of it."""
    linked = told["linked"]
    families = sum(level["parents"] for level in linked["levels"])
    used = sum(level["used"] for level in linked["levels"])
    if not families:
        return ["The file places areas within other areas, but no area was found to be the sum of its parts: see below."]
    said = [
        f"{several(families, 'area is', 'areas are')} the sum of other areas in this release, so the counts of each family "
        f"must agree. {several(used, 'family is', 'families are')} inferred together."
    ]
    if families > used:
        left = families - used
        said.append(
            f"{several(left, 'family is', 'families are')} not used, not even for bounds: too many counts would have to be "
            "looked at together. What the sums of these families give away is not known."
        )
    for why, number in linked["families_not_linked"].items():
        said.append(f"{several(number, 'family is', 'families are')} linked for bounds and proofs only: {why}.")
    need = {name: linked["claims_that_need_other_areas"][name] for name in CLAIMS}
    kinds = listed([f"{number:,} {name}" for name, number in need.items() if number])
    said.append(f"Claims that need other areas: {kinds or 'none'}.")
    clashes = told["contradictions_by_kind"].get("areas", 0)
    if clashes:
        cannot = several(clashes, "area cannot be the sum of its parts", "areas cannot be the sum of their parts")
        said.append(f"{cannot}: listed as inconsistencies, and not linked.")
    return said


def levels(linked: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the pairs of levels, one row each."""
    return [
        {
            "name": f"{level['child'] or 'areas'} in {level['parent'] or 'areas'}",
            "families": f"{level['parents']:,}",
            "linked": f"{level['used']:,}",
            "columns": f"{level['columns']:,}",
            "rejected": f"{sum(level['rejected'].values()):,}",
            "why": "; ".join(f"{number:,}: {why}" for why, number in level["rejected"].items()),
        }
        for level in linked["levels"]
    ]


def methods(linked: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return how probabilities were obtained, one row per method that was used, with its measured error."""
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


def _error(share: float) -> str:
    return percent(share) if share else "exact"
