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
    Section,
    Table,
    TableRow,
    Terms,
    Text,
    rest,
    titled,
)
from unround.show.words import CLAIMS, block_named, listed, notice, number, percent, several, share, size_named
from unround.shown import plain

if TYPE_CHECKING:
    from unround.differences import Diff

MOST_BLOCKS, MOST_PROBLEMS = 16, 20
"""Tables and problems that are listed; the others are counted."""

FEWEST_AREAS = 10
"""With fewer areas than this, the public page does not say how new claims are spread over counts: that would nearly reveal
them."""


def one_side(side: Mapping[str, Any]) -> str:
    """Say what an audit was of, and what it found."""
    claims = ", ".join(f"{side['counts'][kind]:,} {kind}" for kind in CLAIMS)
    counts = several(side["cells_published"], "published count")
    where = "" if side["path"] is None else f"{Path(side['path']).name}/: "
    return f"{where}{several(side['areas'], 'area')}, {counts}; {claims}"


def verdict(compared: Mapping[str, Any]) -> str:
    """Say in a few sentences what changed."""
    newly, lost, exact = compared["newly"], sum(compared["lost"].values()), compared["now_published_exactly"]
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
    small = compared["by_value"]["1-2"]["newly"]
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


def alarms(compared: Mapping[str, Any]) -> list[str]:
    """Return what must not be overlooked."""
    sentences = []
    exact, otherwise = compared["now_published_exactly"], compared["proved_otherwise"]
    if exact:
        sentences.append(
            f"{several(exact, 'count')} that {_were(exact)} protected before {_are(exact)} now published unrounded: nothing "
            "needs to be inferred."
        )
    if otherwise:
        sentences.append(
            f"{several(otherwise, 'count is', 'counts are')} proved to be one number before and another after: at least one "
            "of the audits assumes something that does not hold, or they are not about the same people."
        )
    return sentences


def details(compared: Mapping[str, Any]) -> list[str]:
    """Return where new claims come from, and what became of old ones."""
    sentences, moves = [], compared["transitions"]
    raised = [f"{moves[old][new]:,} from {old} to {new}" for new in CLAIMS for old in CLAIMS if _raised(moves, old, new)]
    if raised:
        sentences.append(f"Claims that became stronger: {', '.join(raised)}.")
    known, fresh = (sum(compared[name].values()) for name in ("newly_of_known_cells", "newly_of_new_cells"))
    if known and fresh:
        sentences.append(
            f"{known:,} of the new claims are about counts that were already published before, {fresh:,} about counts that "
            "only the later audit has."
        )
    elif known:
        sentences.append("All new claims are about counts that were already published before.")
    elif fresh:
        sentences.append("All new claims are about counts that only the later audit has.")
    if sum(compared["lost"].values()):
        why = {name: sum(kinds.values()) for name, kinds in compared["lost_because"].items()}
        words = {
            "published_exactly": "because the count is now published unrounded",
            "not_in_after": "because the later audit does not have the count",
            "no_longer_follows": "because it no longer follows, or is no longer likely enough",
        }
        reasons = ", ".join(f"{number:,} {words[name]}" for name, number in why.items() if number)
        sentences.append(f"No longer claimed: {reasons}.")
    if compared["other_value"]:
        sentences.append(f"{several(compared['other_value'], 'claim gives', 'claims give')} a different count than before.")
    weaker = sum(compared["weaker"].values())
    if weaker:
        sentences.append(f"{several(weaker, 'claim is', 'claims are')} weaker than before.")
    return sentences


def _raised(moves: Mapping[str, Mapping[str, int]], old: str, new: str) -> int:
    return moves[old][new] if CLAIMS.index(new) < CLAIMS.index(old) else 0


def scope(compared: Mapping[str, Any]) -> list[str]:
    """Return what could be compared, and what could not."""
    from unround.differences.run import named

    matched = compared["matched"]
    sentences = [
        f"Compared: {several(matched['counts_in_both'], 'count')} per area in {several(matched['areas_in_both'], 'area')} "
        "that both audits have."
    ]
    again = matched["counts_published_again"]
    if again:
        sentences.append(
            f"{several(len(again), 'count')} per area {_are(len(again))} published again in the later audit "
            f"({named(again)}). Each is counted once here; the audit itself lists both numbers."
        )
    for side, name in (("earlier", "before"), ("later", "after")):
        areas, counts = matched[f"areas_only_{name}"], matched[f"counts_only_{name}"]
        if counts:
            sentences.append(f"Only in the {side} audit: {several(len(counts), 'count')} per area ({named(counts)}).")
        if areas:
            sentences.append(f"Only in the {side} audit: {several(areas, 'area')}.")
    if any(compared[side].get("zeros_not_listed") for side in ("before", "after")):
        sentences.append("Likely zeros that were published as 0 are not compared: not both audits list them (--zeros).")
    return sentences


def differing(compared: Mapping[str, Any]) -> list[str]:
    """Return in what the audits differ besides what was published."""
    sentences = []
    for change in compared["differences"]:
        old, new = (
            share(value) if change["what"] == "threshold" else f"{value:,}" if isinstance(value, int) else value
            for value in (change["before"], change["after"])
        )
        sentences.append(f"The audits differ in {change['what']} ({old} before, {new} after): {change['means']}.")
    return sentences


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


def difference(result: Diff | Mapping[str, Any], called: tuple[str, str] = ("before", "after")) -> Document:
    """Say what changed between two audits; `called` are their names."""
    compared = plain(result)
    sides = [(name, one_side(compared[side])) for name, side in zip(called, ("before", "after"), strict=True)]
    said = notice(compared["after"]["product"])
    parts = [Only(TERMINAL, [Terms(sides)]), *changed(compared), Only(TERMINAL, [Text(said, QUIET)])]
    return Document("What changed", parts, "Two audits compared", notice=said)


def changed(compared: Mapping[str, Any], *, public: bool = False) -> Iterator[Part]:
    """Say what changed: as a part of other documents, too. The public one names no area."""
    yield Text(verdict(compared), "lead")
    yield from (Text(sentence, ALARM) for sentence in alarms(compared))
    yield Only(PAGE, [_tiles(compared)])
    few = public and compared["after"]["areas"] < FEWEST_AREAS
    if any(changes(row) for row in compared["by_value"].values()) and not few:
        rows = {size_named(name): row for name, row in compared["by_value"].items()}
        foot = TableRow(["all", *_numbers(compared)], "strong")
        yield Section("By inferred count", [_changes("Inferred count", rows, foot)], level=3)
    blocks = {block_named(name, compared["by_block"]): row for name, row in compared["by_block"].items() if changes(row)}
    if blocks:
        table = _changes("Table", dict(list(blocks.items())[:MOST_BLOCKS]))
        yield Section("By table", [table, rest(len(blocks), MOST_BLOCKS, "--json gives them all")], level=3)
    sizes = {size_named(name): row for name, row in compared["by_area_size"].items() if changes(row)}
    if sizes:
        yield Section("By size of area", [_changes("Size of area", sizes)], level=3)
    if compared["strongest"] and not public:
        aside = "(proved first, then conditional, then likely; within each, counts of one or two first)"
        yield Section("The most serious new claims", [_strongest(compared)], aside=aside, level=3)
    yield Bullets((*details(compared), *scope(compared)), QUIET)
    if compared["differences"]:
        yield Text("Some changes do not come from what was published:", ALARM)
        yield Bullets(differing(compared))


def changes(row: Mapping[str, Any]) -> int:
    """Return how many claims were made or given up."""
    return int(sum(row["newly"].values()) + sum(row["lost"].values()))


def _tiles(compared: Mapping[str, Any]) -> Part:
    before = {"proved": "not proved before", "conditional": "open, or only likely, before", "likely": "open before"}
    facts = [Fact(f"newly {kind}", f"{compared['newly'][kind]:,}", before[kind], kind) for kind in CLAIMS]
    lost = f"{sum(compared['lost'].values()):,}"
    return Facts([*facts, Fact("no longer claimed", lost, "claimed before; the reasons are below")], "tiles")


def _changes(first: str, rows: Mapping[str, Mapping[str, Any]], foot: TableRow | None = None) -> Part:
    lines = [TableRow([name, *_numbers(row)], claims=row["newly"]) for name, row in rows.items()]
    return Table((first, *HEADINGS), lines, f"New claims by {first.lower()}", foot=foot)


def _numbers(row: Mapping[str, Any]) -> list[str]:
    return [*(f"{row['newly'][kind]:,}" for kind in CLAIMS), f"{sum(row['lost'].values()):,}"]


def _strongest(compared: Mapping[str, Any]) -> Part:
    rows = [
        [area_of(row), count_of(row), number(row["published"]), f"{row['value']:,}", *change_of(row)]
        for row in compared["strongest"]
    ]
    heads = ("area", "count", "published", "inferred", "now", "before")
    return Table(heads, rows, "The most serious new claims", left=("count", "now", "before"))


# -- whether a folder is in order -------------------------------------------------------------------------------------


@titled("Is the audit in order?")
def verification(verified: Verification) -> Iterator[Part]:
    """Tell in words whether an audit folder is in order."""
    if verified.holds:
        yield Text("Everything is as the audit left it.", STRONG)
        certificates = several(verified.certificates, "certificate")
        yield Bullets(
            [
                f"{several(verified.files, 'file')} with the right hash",
                f"{certificates} checked against the published counts, one for each proved or conditional finding",
            ]
        )
        return
    yield Text(f"{several(len(verified.problems), 'problem')} found:", "wrong")
    yield Bullets(verified.problems[:MOST_PROBLEMS])
    yield rest(len(verified.problems), MOST_PROBLEMS, "--json gives them all")
    yield Text("Do not rely on this folder: run the audit again.")
