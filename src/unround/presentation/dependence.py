"""Random numbers that totals share with their parts: sentences and rows for the terminal and the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unround.presentation.words import UNGROUPED, percent


def sentences(told: Mapping[str, Any]) -> list[str]:
    """Say what was found about shared random numbers, and what it changes; nothing where it was not looked for."""
    found = told.get("dependence")
    if not found or all(one["p_value"] is None and not one["used"] for one in found["tables"]):
        return []  # nothing to fit, or a plan that says so
    used = [one for one in found["tables"] if one["used"]]
    if not used:
        return [
            "Totals and their parts were tested for shared random numbers; none are assumed: every count is taken to "
            f"have its own. {_whys(found['tables'])}"
        ]
    said = [
        f"In {_tables(len(used))}, totals are assumed to share random numbers with their parts, as shown below; proofs do "
        "not depend on this. Of three ways of sharing, this mixture fits the published counts best; others may fit as well."
    ]
    claims = found["claims"]
    if claims:
        moved = f"{claims['only_with']:,} are claimed only with sharing, {claims['only_without']:,} only without it"
        if claims["another_value"]:
            moved += f", and {claims['another_value']:,} with a different value"
        said.append(
            f"Likely counts: {claims['likely']:,} with shared random numbers, {claims['likely_without']:,} if every count "
            f"had its own; {moved}."
        )
    if not all(one["told_apart"] for one in used):
        said.append(
            "“Split evenly” means that the counts do not show whose random number the total uses: the share is divided "
            "evenly between the two parts, so probabilities of the parts may be off by a few points at most."
        )
    return said


def rows(told: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the fitted shares, one row per table."""
    tables = (told.get("dependence") or {"tables": ()})["tables"]
    several = len({one["mechanism"] for one in tables}) > 1
    return [
        {
            "table": (one["table"] or UNGROUPED) + (f" ({one['mechanism']})" if several else ""),
            "shares": "; ".join(
                f"{pattern} {share:.0%}" + (f" ± {one['standard_errors'][pattern]:.0%}" if one["standard_errors"] else "")
                for pattern, share in one["shares"].items()
            ),
            "counts": f"{one['counts']:,}" if one["counts"] else "–",
            "used": ("yes" if one["used"] else "no") + ("" if one["told_apart"] else ", split evenly"),
            "why": one["why"],
        }
        for one in tables
    ]


def by_part(score: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return how often likeliest counts were right, for totals and for parts, with and without shared random numbers."""
    found = []
    for name, part in score.get("by_part", {}).items():
        without = score.get("by_part_without", {}).get(name)
        if part["all"]["cells"]:
            found.append(
                {
                    "part": name,
                    "cells": f"{part['all']['cells']:,}",
                    "stated": percent(part["all"]["stated"]),
                    "right": percent(part["all"]["right"]),
                    "off": points(part["all"]),
                    "likely": points(part["likely"]),
                    "without": points(without["all"]) if without else "",
                    "likely_without": points(without["likely"]) if without else "",
                }
            )
    return found


def points(one: Mapping[str, Any]) -> str:
    """Return the share that was right less what was stated, in points.

    Examples
    --------
    >>> points({"cells": 10, "stated": 0.81, "right": 0.8}), points({"cells": 0, "stated": None, "right": None})
    ('−1.0', '–')
    """
    if not one["cells"]:
        return "–"
    off = round(100 * (one["right"] - one["stated"]), 1) + 0.0  # no negative zero
    return f"{off:+.1f}".replace("-", "−") if off else "0.0"


def _tables(number: int) -> str:
    return "one table" if number == 1 else f"{number:,} tables"


def _whys(tables: list[dict[str, Any]]) -> str:
    return " ".join(f"{one['table'] or UNGROUPED}: {one['why']}." for one in tables[:3])
