"""What changed between two audits: the sentences of terminal and pages, and the section of a page that shows it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unround.show.words import CLAIMS, block_named, listed, percent, several, share, size_named

MOST_BLOCKS = 16
"""Tables that a page lists; the others are counted."""

FEWEST_AREAS = 10
"""With fewer areas than this, the public page does not say how new claims are spread over counts: that would nearly reveal
them."""


def one_side(side: Mapping[str, Any]) -> str:
    """Say what an audit was of, and what it found."""
    found = ", ".join(f"{side['counts'][kind]:,} {kind}" for kind in CLAIMS)
    counts = several(side["cells_published"], "published count")
    where = "" if side["path"] is None else f"{Path(side['path']).name}/: "
    return f"{where}{several(side['areas'], 'area')}, {counts}; {found}"


def verdict(told: Mapping[str, Any]) -> str:
    """Say in a few sentences what changed."""
    newly, lost, exact = told["newly"], sum(told["lost"].values()), told["now_published_exactly"]
    new = sum(newly.values())
    if not new:
        said = "Nothing is proved or likely that was not so before"
        said += (
            f"; but {several(exact, 'count')} that {_were(exact)} rounded {_are(exact)} now published unrounded."
            if exact
            else "."
        )
        return f"{said}{_lost(lost)}"
    kinds = [f"{newly[kind]:,} {kind}" for kind in CLAIMS if newly[kind]]
    small = told["by_value"]["1-2"]["newly"]
    ones = listed([f"{small[kind]:,} {kind}" for kind in CLAIMS if small[kind]])
    of_small = f", among them counts of one or two: {ones}" if ones else "; none of them is a count of one or two"
    said = f"{several(new, 'count is', 'counts are')} newly exposed, or exposed with more certainty than before: "
    return f"{said}{listed(kinds)}{of_small}.{_lost(lost)}"


def _lost(lost: int) -> str:
    return f" {several(lost, 'claim is', 'claims are')} no longer made." if lost else ""


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def alarms(told: Mapping[str, Any]) -> list[str]:
    """Return what must not be overlooked."""
    found = []
    exact, otherwise = told["now_published_exactly"], told["proved_otherwise"]
    if exact:
        found.append(
            f"{several(exact, 'count')} that {_were(exact)} protected before {_are(exact)} now published unrounded: nothing "
            "needs to be inferred."
        )
    if otherwise:
        found.append(
            f"{several(otherwise, 'count is', 'counts are')} proved to be one number before and another after: at least one "
            "of the audits assumes something that does not hold, or they are not about the same people."
        )
    return found


def details(told: Mapping[str, Any]) -> list[str]:
    """Return where new claims come from, and what became of old ones."""
    found, moves = [], told["transitions"]
    raised = [f"{moves[old][new]:,} from {old} to {new}" for new in CLAIMS for old in CLAIMS if _raised(moves, old, new)]
    if raised:
        found.append(f"Claims that became stronger: {', '.join(raised)}.")
    known, fresh = (sum(told[name].values()) for name in ("newly_of_known_cells", "newly_of_new_cells"))
    if known and fresh:
        found.append(
            f"{known:,} of the new claims are about counts that were already published before, {fresh:,} about counts that "
            "only the later audit has."
        )
    elif known:
        found.append("All new claims are about counts that were already published before.")
    elif fresh:
        found.append("All new claims are about counts that only the later audit has.")
    if sum(told["lost"].values()):
        why = {name: sum(kinds.values()) for name, kinds in told["lost_because"].items()}
        words = {
            "published_exactly": "because the count is now published unrounded",
            "not_in_after": "because the later audit does not have the count",
            "no_longer_follows": "because it no longer follows, or is no longer likely enough",
        }
        reasons = ", ".join(f"{number:,} {words[name]}" for name, number in why.items() if number)
        found.append(f"No longer claimed: {reasons}.")
    if told["other_value"]:
        found.append(f"{several(told['other_value'], 'claim gives', 'claims give')} a different count than before.")
    weaker = sum(told["weaker"].values())
    if weaker:
        found.append(f"{several(weaker, 'claim is', 'claims are')} weaker than before.")
    return found


def _raised(moves: Mapping[str, Mapping[str, int]], old: str, new: str) -> int:
    return moves[old][new] if CLAIMS.index(new) < CLAIMS.index(old) else 0


def scope(told: Mapping[str, Any]) -> list[str]:
    """Return what could be compared, and what could not."""
    matched = told["matched"]
    found = [
        f"Compared: {several(matched['counts_in_both'], 'count')} per area in {several(matched['areas_in_both'], 'area')} "
        "that both audits have."
    ]
    again = matched["counts_published_again"]
    if again:
        found.append(
            f"{several(len(again), 'count')} per area {_are(len(again))} published again in the later audit "
            f"({_few(again)}). Each is counted once here; the audit itself lists both numbers."
        )
    for side, name in (("earlier", "before"), ("later", "after")):
        areas, counts = matched[f"areas_only_{name}"], matched[f"counts_only_{name}"]
        if counts:
            found.append(f"Only in the {side} audit: {several(len(counts), 'count')} per area ({_few(counts)}).")
        if areas:
            found.append(f"Only in the {side} audit: {several(areas, 'area')}.")
    return found


def _few(names: list[str]) -> str:
    from unround.differences.match import named

    return named(names)


def differing(told: Mapping[str, Any]) -> list[str]:
    """Return in what the audits differ besides what was published."""
    found = []
    for one in told["differences"]:
        old, new = (
            share(one[side]) if one["what"] == "threshold" else f"{one[side]:,}" if isinstance(one[side], int) else one[side]
            for side in ("before", "after")
        )
        found.append(f"The audits differ in {one['what']} ({old} before, {new} after): {one['means']}.")
    return found


def area_of(row: Mapping[str, Any]) -> str:
    """Name the area of a claim."""
    place, name = ", ".join(row["area"].values()), row["area_name"]
    return f"{name} ({place})" if name and name not in place else place


def count_of(row: Mapping[str, Any]) -> str:
    """Name what a claim counts."""
    rest = [code for axis, code in row["codes"].items() if axis != "characteristic_id" and code != "total"]
    said = [row["label"], *(code for code in rest if code not in row["label"])]
    return ", ".join(said)


def change_of(row: Mapping[str, Any]) -> tuple[str, str]:
    """Say what a claim is, and what it was before."""
    now = row["kind"] if row["kind"] != "likely" else f"likely ({percent(row['probability'])})"
    was = row["before"]
    if was["kind"] == "none":
        return now, "open" if row["published_before"] else "not published"
    return now, was["kind"] if was["kind"] != "likely" else f"likely {was['value']:,} ({percent(was['probability'])})"


# -- the section of a page ---------------------------------------------------------------------------------------------


def diff_section(told: Mapping[str, Any], *, public: bool, heading: str = "") -> dict[str, Any]:
    """Gather what the section shows."""
    few = public and told["after"]["areas"] < FEWEST_AREAS
    blocks = [(block_named(name, told["by_block"]), row) for name, row in told["by_block"].items() if changes(row)]
    return {
        "verdict": verdict(told),
        "alarms": alarms(told),
        "newly": told["newly"],
        "lost": sum(told["lost"].values()),
        "heading": heading or f"What changed since {Path(told['before']['path']).name}",
        "by_value": [] if few else _rows([(size_named(name), row) for name, row in told["by_value"].items()]),
        "by_block": _rows(blocks[:MOST_BLOCKS]),
        "more_blocks": len(blocks) - len(blocks[:MOST_BLOCKS]),
        "by_size": _rows([(size_named(name), row) for name, row in told["by_area_size"].items() if changes(row)]),
        "strongest": [] if public else [_claim(row) for row in told["strongest"]],
        "details": details(told),
        "scope": scope(told),
        "differing": differing(told),
    }


def changes(row: Mapping[str, Any]) -> int:
    """Return how many claims were made or given up."""
    return int(sum(row["newly"].values()) + sum(row["lost"].values()))


def _rows(rows: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with their numbers, and the largest number of claims, which is the longest bar."""
    largest = max((sum(row["newly"].values()) for _, row in rows), default=0) or 1
    return [
        {
            "name": name,
            **row["newly"],
            "lost": sum(row["lost"].values()),
            "largest": largest,
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
