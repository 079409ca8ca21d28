"""What changed between two audits, as a section of a page; the template `diff.html.j2` lays it out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unround.audits.summary import CLAIMS
from unround.presentation.diff import (
    alarms,
    area_of,
    block_named,
    change_of,
    count_of,
    details,
    differing,
    scope,
    size_named,
    verdict,
)

MOST_BLOCKS = 16
"""Tables that are listed; the others are counted."""

FEWEST_AREAS = 10
"""Of fewer areas a public page does not tell how new claims spread over counts: that would be nearly the counts."""


def diff_section(told: Mapping[str, Any], *, public: bool, heading: str = "") -> dict[str, Any]:
    """Gather what the section shows.

    Parameters
    ----------
    told : mapping
        `Diff.to_json()`.
    public : bool
        Leave out every area and every inferred value.
    heading : str
        What stands above it.
    """
    few = public and told["after"]["areas"] < FEWEST_AREAS
    blocks = [(block_named(name, told), row) for name, row in told["by_block"].items() if _all(row)]
    return {
        "verdict": verdict(told),
        "alarms": alarms(told),
        "newly": told["newly"],
        "lost": sum(told["lost"].values()),
        "heading": heading or f"What changed since {Path(told['before']['path']).name}",
        "by_value": [] if few else _rows([(size_named(name), row) for name, row in told["by_value"].items()]),
        "by_block": _rows(blocks[:MOST_BLOCKS]),
        "more_blocks": len(blocks) - len(blocks[:MOST_BLOCKS]),
        "by_size": _rows([(size_named(name), row) for name, row in told["by_area_size"].items() if _all(row)]),
        "strongest": [] if public else [_claim(row) for row in told["strongest"]],
        "details": details(told),
        "scope": scope(told),
        "differing": differing(told),
    }


def _all(row: Mapping[str, Any]) -> int:
    return int(sum(row["newly"].values()) + sum(row["lost"].values()))


def _rows(rows: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with their numbers, and the lengths of their bars in percent."""
    largest = max((sum(row["newly"].values()) for _, row in rows), default=0) or 1
    return [
        {
            "name": name,
            **row["newly"],
            "lost": sum(row["lost"].values()),
            "bars": {kind: 100 * row["newly"][kind] / largest for kind in CLAIMS if row["newly"][kind]},
        }
        for name, row in rows
    ]


def _claim(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "kind": row["kind"],
        "area": area_of(row),
        "what": count_of(row),
        "table": row["table"],
        "published": row["published"],
        "value": row["value"],
        "now": change_of(row)[0],
        "before": change_of(row)[1],
        "route": row["route"],
    }
