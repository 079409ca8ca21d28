"""What changed between two audits; and whether the folder of one is in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unround.job.verify import Verification
from unround.show.parts import (
    ALARM,
    PAGE,
    QUIET,
    STRONG,
    TERMINAL,
    Bullets,
    Document,
    Fact,
    Facts,
    Only,
    Part,
    Row,
    Section,
    Table,
    Terms,
    Text,
    rest,
)
from unround.show.words import CLAIMS, block_named, listed, notice, number, percent, several, share, size_named

if TYPE_CHECKING:
    from unround.differences import Diff

MOST_BLOCKS, MOST_PROBLEMS = 16, 20
"""Tables and problems that are listed; the others are counted."""

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
    from unround.differences.run import named

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


# -- the document -----------------------------------------------------------------------------------------------------

HEADINGS = ("newly proved", "conditional", "likely", "no longer")


def difference(found: Diff | Mapping[str, Any], called: tuple[str, str] = ("before", "after")) -> Document:
    """Say what changed between two audits; `called` are their names."""
    told = found if isinstance(found, Mapping) else found.to_json()
    sides = [(name, one_side(told[side])) for name, side in zip(called, ("before", "after"), strict=True)]
    said = notice(told["after"]["product"])
    parts = [Only(TERMINAL, [Terms(sides)]), *changed(told), Only(TERMINAL, [Text(said, QUIET)])]
    return Document("What changed", parts, "Two audits compared", notice=said)


def changed(told: Mapping[str, Any], *, public: bool = False) -> Iterator[Part]:
    """Say what changed: as a part of other documents, too. The public one names no area."""
    yield Text(verdict(told), "lead")
    yield from (Text(sentence, ALARM) for sentence in alarms(told))
    yield Only(PAGE, [_tiles(told)])
    few = public and told["after"]["areas"] < FEWEST_AREAS
    if any(changes(row) for row in told["by_value"].values()) and not few:
        rows = {size_named(name): row for name, row in told["by_value"].items()}
        foot = Row(["all", *_numbers(told)], "strong")
        yield Section("By inferred count", [_changes("Inferred count", rows, foot)], level=3)
    blocks = {block_named(name, told["by_block"]): row for name, row in told["by_block"].items() if changes(row)}
    if blocks:
        table = _changes("Table", dict(list(blocks.items())[:MOST_BLOCKS]))
        yield Section("By table", [table, rest(len(blocks), MOST_BLOCKS, "--json gives them all")], level=3)
    sizes = {size_named(name): row for name, row in told["by_area_size"].items() if changes(row)}
    if sizes:
        yield Section("By size of area", [_changes("Size of area", sizes)], level=3)
    if told["strongest"] and not public:
        aside = "(proved first, then conditional, then likely; within each, counts of one or two first)"
        yield Section("The most serious new claims", [_strongest(told)], aside=aside, level=3)
    yield Bullets((*details(told), *scope(told)), QUIET)
    if told["differences"]:
        yield Text("Some changes do not come from what was published:", ALARM)
        yield Bullets(differing(told))


def changes(row: Mapping[str, Any]) -> int:
    """Return how many claims were made or given up."""
    return int(sum(row["newly"].values()) + sum(row["lost"].values()))


def _tiles(told: Mapping[str, Any]) -> Part:
    before = {"proved": "not proved before", "conditional": "open, or only likely, before", "likely": "open before"}
    facts = [Fact(f"newly {kind}", f"{told['newly'][kind]:,}", before[kind], kind) for kind in CLAIMS]
    lost = f"{sum(told['lost'].values()):,}"
    return Facts([*facts, Fact("no longer claimed", lost, "claimed before; the reasons are below")], "tiles")


def _changes(first: str, rows: Mapping[str, Mapping[str, Any]], foot: Row | None = None) -> Part:
    lines = [Row([name, *_numbers(row)], claims=row["newly"]) for name, row in rows.items()]
    return Table((first, *HEADINGS), lines, f"New claims by {first.lower()}", foot=foot)


def _numbers(row: Mapping[str, Any]) -> list[str]:
    return [*(f"{row['newly'][kind]:,}" for kind in CLAIMS), f"{sum(row['lost'].values()):,}"]


def _strongest(told: Mapping[str, Any]) -> Part:
    rows = [
        [area_of(row), count_of(row), number(row["published"]), f"{row['value']:,}", *change_of(row)]
        for row in told["strongest"]
    ]
    heads = ("area", "count", "published", "inferred", "now", "before")
    return Table(heads, rows, "The most serious new claims", left=("count", "now", "before"))


# -- whether a folder is in order -------------------------------------------------------------------------------------


def verification(found: Verification) -> Document:
    """Say whether an audit folder is in order."""
    return Document("Is the audit in order?", list(_verification(found)))


def _verification(found: Verification) -> Iterator[Part]:
    if found.holds:
        yield Text("Everything is as the audit left it.", STRONG)
        certificates = several(found.certificates, "certificate")
        yield Bullets(
            [
                f"{several(found.files, 'file')} with the right hash",
                f"{certificates} checked against the published counts, one for each proved or conditional finding",
            ]
        )
        return
    yield Text(f"{several(len(found.problems), 'problem')} found:", "wrong")
    yield Bullets(found.problems[:MOST_PROBLEMS])
    yield rest(len(found.problems), MOST_PROBLEMS, "--json gives them all")
    yield Text("Do not rely on this folder: run the audit again.")
