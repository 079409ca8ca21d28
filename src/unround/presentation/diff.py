"""What changed between two audits, as text in the terminal; and the sentences that the page says too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from unround.audits.summary import CLAIMS
from unround.presentation.release import notice
from unround.presentation.terminal import percent
from unround.presentation.words import several, share

MOST_BLOCKS = 10
"""Tables that are listed; the others are counted."""

HEADINGS = ("newly proved", "conditional", "likely", "lost")


def show_diff(told: Mapping[str, Any], console: Console, called: tuple[str, str] = ("before", "after")) -> None:
    """Print what changed; `called` says what the two audits are called."""
    sides = Table.grid(padding=(0, 2, 0, 0))
    for name, side in zip(called, ("before", "after"), strict=True):
        sides.add_row(name, Text(one_side(told[side])))
    console.print(sides)
    console.print()
    console.print(Text(verdict(told), style="bold"))
    for said in alarms(told):
        console.print(Text(f"\n{said}"), style="bold red")
    if any(_all(row) for row in told["by_value"].values()):
        console.print()
        console.print(_table("count", {size_named(name): row for name, row in told["by_value"].items()}, total=told))
        _more_tables(told, console)
    if told["strongest"]:
        console.print("\n[bold]What matters most of it[/] (proved first, then counts of one or two)")
        console.print(_strongest(told))
    console.print()
    console.print(bulleted((*details(told), *scope(told))), style="dim")
    if told["differences"]:
        console.print(bulleted(differing(told)), style="yellow")
    console.print(Text(f"\n{notice(told['after']['product'])}"), style="dim")


def bulleted(sentences: Iterable[str]) -> Table:
    """Lay out sentences, a point each."""
    found = Table.grid(padding=(0, 1, 0, 0))
    for said in sentences:
        found.add_row(" •", Text(said))
    return found


def _more_tables(told: Mapping[str, Any], console: Console) -> None:
    blocks = {block_named(name, told): row for name, row in told["by_block"].items() if _all(row)}
    shown = dict(list(blocks.items())[:MOST_BLOCKS])
    console.print()
    console.print(_table("table", shown))
    if len(blocks) > len(shown):
        console.print(f"   and {len(blocks) - len(shown):,} more tables; --json gives them all.", style="dim")
    sizes = {f"{size_named(name)}": row for name, row in told["by_area_size"].items() if _all(row)}
    console.print()
    console.print(_table("size of area", sizes))


def _table(first: str, rows: Mapping[str, Mapping[str, Any]], total: Mapping[str, Any] | None = None) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column(first, max_width=44)
    for heading in HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for name, row in rows.items():
        table.add_row(Text(name), *_numbers(row))
    if total is not None:
        table.add_row("all", *_numbers(total), style="bold")
    return table


def _numbers(row: Mapping[str, Any]) -> list[str]:
    return [*(f"{row['newly'][kind]:,}" for kind in CLAIMS), f"{sum(row['lost'].values()):,}"]


def _all(row: Mapping[str, Any]) -> int:
    return int(sum(row["newly"].values()) + sum(row["lost"].values()))


def _strongest(told: Mapping[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in ("area", "count", "published", "inferred", "now", "before"):
        table.add_column(heading, justify="right" if heading in ("published", "inferred") else "left", overflow="fold")
    for row in told["strongest"]:
        published = "–" if row["published"] is None else f"{row['published']:,}"
        now, before = change_of(row)
        table.add_row(Text(area_of(row)), Text(count_of(row)), published, f"{row['value']:,}", Text(now), Text(before))
    return table


# -- words ------------------------------------------------------------------------------------------------------------


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
        said = "Nothing is proved or likely that was not before"
        said += f"; but {several(exact, 'count')} that {_were(exact)} rounded can now be read as they are." if exact else "."
        return f"{said}{_lost(lost)}"
    kinds = [f"{newly[kind]:,} {kind}" for kind in CLAIMS if newly[kind]]
    small = told["by_value"]["1-2"]["newly"]
    ones = [f"{small[kind]:,} {kind}" for kind in CLAIMS if small[kind]]
    of_small = f"; counts of one or two among them: {', '.join(ones)}" if ones else "; none of them is a count of one or two"
    said = f"{several(new, 'count is', 'counts are')} exposed that {_were(new)} not before, or more surely so than before: "
    return f"{said}{', '.join(kinds)}{of_small}.{_lost(lost)}"


def _lost(lost: int) -> str:
    return f" {several(lost, 'claim is', 'claims are')} no longer made." if lost else ""


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def alarms(told: Mapping[str, Any]) -> list[str]:
    """Return what nobody may overlook."""
    found = []
    exact, otherwise = told["now_published_exactly"], told["proved_otherwise"]
    if exact:
        found.append(
            f"{several(exact, 'count')} that {_were(exact)} protected before {'is' if exact == 1 else 'are'} published as "
            f"{'it is' if exact == 1 else 'they are'} now: nothing needs to be inferred of {'it' if exact == 1 else 'them'}."
        )
    if otherwise:
        found.append(
            f"{several(otherwise, 'count is', 'counts are')} proved to be one number before and another after: at least one "
            "of the audits takes something for granted that does not hold, or they are not of the same people."
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
            f"{known:,} of the new claims are about counts that were published before already, {fresh:,} about counts that "
            "only the later audit has."
        )
    elif known:
        found.append("All new claims are about counts that were published before already.")
    elif fresh:
        found.append("All new claims are about counts that only the later audit has.")
    if sum(told["lost"].values()):
        why = {name: sum(kinds.values()) for name, kinds in told["lost_because"].items()}
        words = {
            "published_exactly": "because the count is published as it is now",
            "not_in_after": "because the later audit does not have the count",
            "no_longer_follows": "because it no longer follows, or is no longer likely enough",
        }
        listed = ", ".join(f"{number:,} {words[name]}" for name, number in why.items() if number)
        found.append(f"No longer claimed: {listed}.")
    if told["other_value"]:
        found.append(f"{several(told['other_value'], 'claim names', 'claims name')} another count than before.")
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
        f"Compared: {several(matched['counts_in_both'], 'count')} an area that both audits have, in "
        f"{several(matched['areas_in_both'], 'area')}."
    ]
    again = matched["counts_published_again"]
    if again:
        found.append(
            f"{several(len(again), 'count')} an area {'is' if len(again) == 1 else 'are'} published once more in the later "
            f"audit ({_few(again)}). Here each counts once; the audit itself lists both numbers."
        )
    for side, name in (("earlier", "before"), ("later", "after")):
        areas, counts = matched[f"areas_only_{name}"], matched[f"counts_only_{name}"]
        if counts:
            found.append(f"Only in the {side} audit: {several(len(counts), 'count')} an area ({_few(counts)}).")
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


def size_named(name: str) -> str:
    """Return a class of counts with a proper dash."""
    return name.replace("-", "–")


def block_named(name: str, told: Mapping[str, Any]) -> str:
    """Return a table's name, also where it has none."""
    return name or ("all columns" if len(told["by_block"]) == 1 else "columns of no table")


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
