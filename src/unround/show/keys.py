"""Keys, random numbers that add up as counts do: sentences and rows for the terminal and the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unround.show.words import UNGROUPED, percent, several


def sentences(told: Mapping[str, Any]) -> list[str]:
    """Say which tables have keys, and what follows; nothing where none have."""
    found = told.get("keys") or {"tables": (), "repeats": ()}
    said = []
    if found["tables"]:
        said.append(
            f"In {several(len(found['tables']), 'table')}, the random number of a total is the sum of its parts' and a "
            "constant, as if every record had a key; probabilities account for it, and proofs do not depend on it."
        )
    known = sum(bool(one["constants"]) for one in found["repeats"])
    if known:
        said.append(
            f"{several(known, 'count')} that {'appears' if known == 1 else 'appear'} in several tables "
            f"{'is' if known == 1 else 'are'} rounded with one random number, seen from another constant in each table: "
            "together the published figures say more than independent ones would."
        )
    if len(found["repeats"]) > known:
        once = len(found["repeats"]) - known
        said.append(
            f"How {several(once, 'count')} that {'appears' if once == 1 else 'appear'} in several tables "
            f"{'was' if once == 1 else 'were'} rounded is not known: probabilities allow for any constants."
        )
    withheld = found.get("columns_withheld", 0)
    if withheld:
        said.append(
            f"In {several(withheld, 'column')}, the same count appears in several tables whose sums cannot all be used at "
            "once: probabilities would be too high, and likely claims there are withheld. That is no sign of safety."
        )
    weighted = [name for name in told.get("mechanisms", ()) if name.startswith("weighted:")]
    if weighted:
        said.append(
            "Some tables show weighted estimates, not whole numbers. An estimate published as 15 lies anywhere between 10 "
            "and 20; it has bounds, but no whole number is claimed."
        )
    return said


def rows(told: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the constants, one row per table."""
    return [
        {
            "table": one["table"] or UNGROUPED,
            "constant": f"{one['constant']:.3f}" + (f" ± {one['error']:.3f}" if one["error"] else ""),
            "why": one["why"],
        }
        for one in (told.get("keys") or {"tables": ()})["tables"]
    ]


def by_part(score: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return how often likeliest counts were right, for totals and for parts."""
    found = []
    for name, part in score.get("by_part", {}).items():
        if part["all"]["cells"]:
            found.append(
                {
                    "part": name,
                    "cells": f"{part['all']['cells']:,}",
                    "stated": percent(part["all"]["stated"]),
                    "right": percent(part["all"]["right"]),
                    "off": points(part["all"]),
                    "likely": points(part["likely"]),
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
