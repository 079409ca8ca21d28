"""What changed between two audits; and whether the folder of one is in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unround.job.verify import Verification
from unround.show import parts as doc
from unround.show.words import CLAIMS, block_named, few, listed, notice, percent, several, share, size_named
from unround.shown import plain

if TYPE_CHECKING:
    from unround.differences import Diff

MOST_BLOCKS, MOST_PROBLEMS, MOST_NAMED = 16, 20, 5
"""Tables and problems that are listed, and counts that are named; the others are counted."""

FEWEST_AREAS = 10
"""With fewer areas a public page does not say how claims are spread over counts: that would nearly reveal the counts."""


def one_side(side: Mapping[str, Any]) -> str:
    """Say what an audit was of, and what it found."""
    claims = ", ".join(f"{side['counts'][kind]:,} {kind}" for kind in CLAIMS)
    counts = several(side["cells_published"], "published count")
    where = "" if side["path"] is None else f"{Path(side['path']).name}/: "
    return f"{where}{several(side['areas'], 'area')}, {counts}; {claims}"


def verdict(compared: Mapping[str, Any]) -> str:
    """Say in a few sentences what changed."""
    newly, lost, exact = compared["newly"], sum(compared["lost"].values()), compared["now_published_exactly"]
    new, gone = sum(newly.values()), f" {several(lost, 'claim is', 'claims are')} no longer made." if lost else ""
    if not new:
        said = "Nothing is proved or likely that was not so before"
        rounded = several(exact, "count that was rounded is", "counts that were rounded are")
        said += f"; but {rounded} now published unrounded." if exact else "."
        return f"{said}{gone}"
    kinds = [f"{newly[kind]:,} {kind}" for kind in CLAIMS if newly[kind]]
    small = compared["by_value"]["1-2"]["newly"]
    ones = listed([f"{small[kind]:,} {kind}" for kind in CLAIMS if small[kind]])
    of_small = f", among them counts of one or two: {ones}" if ones else "; none of them is a count of one or two"
    said = f"{several(new, 'count is', 'counts are')} newly exposed, or exposed with more certainty than before: "
    return f"{said}{listed(kinds)}{of_small}.{gone}"


def alarms(compared: Mapping[str, Any]) -> list[str]:
    """Return what must not be overlooked."""
    sentences = []
    exact, otherwise = compared["now_published_exactly"], compared["proved_otherwise"]
    if exact:
        sentences.append(
            f"{several(exact, 'count that was protected before is', 'counts that were protected before are')} now published "
            "unrounded: nothing needs to be inferred."
        )
    if otherwise:
        sentences.append(
            f"{several(otherwise, 'count is', 'counts are')} proved to be one number before and another after: at least one "
            "of the audits assumes something that does not hold, or they are not about the same people."
        )
    return sentences


KNOWN, FRESH = "counts that were already published before", "counts that only the later audit has"


def details(compared: Mapping[str, Any]) -> list[str]:
    """Return where new claims come from, and what became of old ones."""
    sentences, moves = [], compared["transitions"]
    raised = [
        f"{moves[old][new]:,} from {old} to {new}"
        for at, new in enumerate(CLAIMS)
        for old in CLAIMS[at + 1 :]
        if moves[old][new]
    ]
    if raised:
        sentences.append(f"Claims that became stronger: {', '.join(raised)}.")
    known, fresh = (sum(compared[name].values()) for name in ("newly_of_known_cells", "newly_of_new_cells"))
    if known and fresh:
        sentences.append(f"{known:,} of the new claims are about {KNOWN}, {fresh:,} about {FRESH}.")
    elif known or fresh:
        sentences.append(f"All new claims are about {KNOWN if known else FRESH}.")
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


def scope(compared: Mapping[str, Any]) -> list[str]:
    """Return what could be compared, and what could not."""
    matched = compared["matched"]
    sentences = [
        f"Compared: {several(matched['counts_in_both'], 'count')} per area in {several(matched['areas_in_both'], 'area')} "
        "that both audits have."
    ]
    again = matched["counts_published_again"]
    if again:
        sentences.append(
            f"{several(len(again), 'count per area is', 'counts per area are')} published again in the later audit "
            f"({few(again, MOST_NAMED)}). Each is counted once here; the audit itself lists both numbers."
        )
    for side, name in (("earlier", "before"), ("later", "after")):
        areas, counts = matched[f"areas_only_{name}"], matched[f"counts_only_{name}"]
        if counts:
            sentences.append(
                f"Only in the {side} audit: {several(len(counts), 'count')} per area ({few(counts, MOST_NAMED)})."
            )
        if areas:
            sentences.append(f"Only in the {side} audit: {several(areas, 'area')}.")
    if any(compared[side]["zeros_not_listed"] for side in ("before", "after")):
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


def _area(row: Mapping[str, Any]) -> str:
    place, name = ", ".join(row["area"].values()), row["area_name"]
    return f"{name} ({place})" if name and name not in place else place


def _count(row: Mapping[str, Any]) -> str:
    codes = [code for axis, code in row["codes"].items() if axis != "characteristic_id" and code != "total"]
    return ", ".join([row["label"], *(code for code in codes if code not in row["label"])])


def _before(row: Mapping[str, Any]) -> str:
    was = row["before"]
    if was["kind"] == "none":
        return "open" if row["published_before"] else "not published"
    return f"likely {was['value']:,} ({percent(was['probability'])})" if was["kind"] == "likely" else str(was["kind"])


STRONGEST: doc.Columns = [
    ("area", _area),
    ("count", _count),
    ("published", "published"),
    ("inferred", "value"),
    ("now", lambda row: f"likely ({percent(row['probability'])})" if row["kind"] == "likely" else row["kind"]),
    ("before", _before),
]


# -- the document -----------------------------------------------------------------------------------------------------

HEADINGS = ("newly proved", "conditional", "likely", "no longer")


def difference(result: Diff | Mapping[str, Any], called: tuple[str, str] = ("before", "after")) -> doc.Document:
    """Say what changed between two audits; `called` are their names."""
    compared = plain(result)
    sides = [(name, one_side(compared[side])) for name, side in zip(called, ("before", "after"), strict=True)]
    said = notice(compared["after"]["product"])
    parts = [
        doc.Only(doc.TERMINAL, [doc.Terms(sides)]),
        *changed(compared),
        doc.Only(doc.TERMINAL, [doc.Text(said, doc.QUIET)]),
    ]
    return doc.Document("What changed", parts, "Two audits compared", notice=said)


def changed(compared: Mapping[str, Any], *, public: bool = False) -> Iterator[doc.Part]:
    """Say what changed: as a part of other documents, too. The public one names no area."""
    yield doc.Text(verdict(compared), "lead")
    yield from (doc.Text(sentence, doc.ALARM) for sentence in alarms(compared))
    yield doc.Only(doc.PAGE, [_tiles(compared)])
    hidden = public and compared["after"]["areas"] < FEWEST_AREAS
    if any(changes(row) for row in compared["by_value"].values()) and not hidden:
        rows = {size_named(name): row for name, row in compared["by_value"].items()}
        foot = doc.TableRow(["all", *_numbers(compared)], "strong")
        yield doc.Section("By inferred count", [_changes("Inferred count", rows, foot)], level=3)
    blocks = {block_named(name, compared["by_block"]): row for name, row in compared["by_block"].items() if changes(row)}
    if blocks:
        table = _changes("Table", dict(list(blocks.items())[:MOST_BLOCKS]))
        yield doc.Section("By table", [table, doc.rest(len(blocks), MOST_BLOCKS, "--json gives them all")], level=3)
    sizes = {size_named(name): row for name, row in compared["by_area_size"].items() if changes(row)}
    if sizes:
        yield doc.Section("By size of area", [_changes("Size of area", sizes)], level=3)
    if compared["strongest"] and not public:
        table = doc.tabulated(
            compared["strongest"], STRONGEST, "The most serious new claims", left=("count", "now", "before")
        )
        aside = "(proved first, then conditional, then likely; within each, counts of one or two first)"
        yield doc.Section("The most serious new claims", [table], aside=aside, level=3)
    yield doc.Bullets((*details(compared), *scope(compared)), doc.QUIET)
    if compared["differences"]:
        yield doc.Text("Some changes do not come from what was published:", doc.ALARM)
        yield doc.Bullets(differing(compared))


def changes(row: Mapping[str, Any]) -> int:
    """Return how many claims were made or given up."""
    return int(sum(row["newly"].values()) + sum(row["lost"].values()))


def _tiles(compared: Mapping[str, Any]) -> doc.Part:
    before = {"proved": "not proved before", "conditional": "open, or only likely, before", "likely": "open before"}
    facts = [doc.Fact(f"newly {kind}", f"{compared['newly'][kind]:,}", before[kind], kind) for kind in CLAIMS]
    lost = f"{sum(compared['lost'].values()):,}"
    return doc.Facts([*facts, doc.Fact("no longer claimed", lost, "claimed before; the reasons are below")], "tiles")


def _changes(first: str, rows: Mapping[str, Mapping[str, Any]], foot: doc.TableRow | None = None) -> doc.Part:
    lines = [doc.TableRow([name, *_numbers(row)], claims=row["newly"]) for name, row in rows.items()]
    return doc.Table((first, *HEADINGS), lines, f"New claims by {first.lower()}", foot=foot)


def _numbers(row: Mapping[str, Any]) -> list[str]:
    return [*(f"{row['newly'][kind]:,}" for kind in CLAIMS), f"{sum(row['lost'].values()):,}"]


# -- whether a folder is in order -------------------------------------------------------------------------------------


@doc.titled("Is the audit in order?")
def verification(verified: Verification) -> Iterator[doc.Part]:
    """Tell in words whether an audit folder is in order."""
    if verified.holds:
        yield doc.Text("Everything is as the audit left it.", doc.STRONG)
        certificates = several(verified.certificates, "certificate")
        yield doc.Bullets(
            [
                f"{several(verified.files, 'file')} with the right hash",
                f"{certificates} checked against the published counts, one for each proved or conditional finding",
            ]
        )
        return
    yield doc.Text(f"{several(len(verified.problems), 'problem')} found:", "wrong")
    yield doc.Bullets(verified.problems[:MOST_PROBLEMS])
    yield doc.rest(len(verified.problems), MOST_PROBLEMS, "--json gives them all")
    yield doc.Text("Do not rely on this folder: run the audit again.")
