"""Shared random numbers in words and rows, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from unround.presentation.terminal import percent

ALL = "columns of no table"


def sentences(told: Mapping[str, Any]) -> list[str]:
    """Say what was found about shared random numbers, and what it changes; nothing where nobody looked."""
    found = told.get("dependence")
    if not found or all(one["p_value"] is None and not one["used"] for one in found["tables"]):
        return []  # nothing to fit, or a plan that says so
    used = [one for one in found["tables"] if one["used"]]
    if not used:
        return [
            "Random numbers that total and parts share were looked for, and not used: every count is taken to have its own. "
            f"{_whys(found['tables'])}"
        ]
    said = [
        f"In {_tables(len(used))}, total and parts are taken to share random numbers, as below; proofs do not rest on it. "
        "It is the mixture of three ways of sharing that makes all that was published likeliest, and others may fit as well."
    ]
    claims = found["claims"]
    if claims:
        moved = f"{claims['only_with']:,} are claimed with it only, {claims['only_without']:,} without it only"
        if claims["another_value"]:
            moved += f", {claims['another_value']:,} with another value"
        said.append(
            f"Likely counts: {claims['likely']:,} with shared random numbers, {claims['likely_without']:,} if every count "
            f"had its own; {moved}."
        )
    if not all(one["told_apart"] for one in used):
        said.append(
            "Where it is marked “split evenly”, the counts do not tell whose random number the total uses: the share "
            "is divided evenly between the two parts, which leaves probabilities of the parts off by a few points at most."
        )
    return said


def rows(told: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the fitted shares, a row a table and pattern, with what each is called."""
    tables = (told.get("dependence") or {"tables": ()})["tables"]
    several = len({one["mechanism"] for one in tables}) > 1
    return [
        {
            "table": (one["table"] or ALL) + (f" ({one['mechanism']})" if several else ""),
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
    """Return how often likeliest counts were right, for totals and parts each; and if no random numbers were shared."""
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


def show_dependence(told: Mapping[str, Any], console: Console) -> None:
    """Print what was found about shared random numbers."""
    for at, said in enumerate(sentences(told)):
        console.print(Text(f"\n{said}" if not at else said))
    if any(one["used"] for one in (told.get("dependence") or {"tables": ()})["tables"]):
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        for heading in ("table", "in which share of its counts", "fitted to", "used"):
            table.add_column(heading)
        for row in rows(told):
            table.add_row(row["table"], row["shares"], row["counts"], row["used"])
        console.print(table)


def show_parts(score: Mapping[str, Any], console: Console) -> None:
    """Print how often likeliest counts were right, for totals and parts each."""
    found = by_part(score)
    if not found:
        return
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    both = any(row["without"] for row in found)
    headings = ["likeliest counts of", "counts", "stated", "right", "off", "likely ones off"]
    for heading in (*headings, *(["off, none shared", "likely ones off"] if both else [])):
        table.add_column(heading, justify="left" if heading == headings[0] else "right")
    for row in found:
        names = ("part", "cells", "stated", "right", "off", "likely", *(("without", "likely_without") if both else ()))
        table.add_row(*(row[name] for name in names))
    console.print(table)


def _tables(number: int) -> str:
    return "one table" if number == 1 else f"{number:,} tables"


def _whys(tables: list[dict[str, Any]]) -> str:
    return " ".join(f"{one['table'] or ALL}: {one['why']}." for one in tables[:3])
