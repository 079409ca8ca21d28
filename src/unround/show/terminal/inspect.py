"""What `unround inspect` prints."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.table import Table
from rich.text import Text

from unround.audits.model import display_name
from unround.inspection import Inspection
from unround.release import AREA
from unround.show.terminal.layout import items, plain_table
from unround.show.words import NO_INCONSISTENCIES, several
from unround.structure import JudgedSum, MechanismEvidence, Nesting
from unround.structure.nesting import SIZES

EXAMPLES = 8
"""Sums, repeats or contradictions that are listed unless all are asked for."""

ORIGINS = {
    "indentation": "indentation",
    "sex": "total, men and women",
    "names": "names",
    "universe": "counts of the same people",
    "data": "the counts themselves",
    "file": "the description",
    "files": "counts that appear in several files",
}
"""What proposed a sum, in words."""


def show_inspection(seen: Inspection, console: Console, everything: bool = False) -> None:
    """Print what is in a release."""
    release, structure = seen.release, seen.structure
    most = 10**9 if everything else EXAMPLES
    told = Table.grid(padding=(0, 2, 0, 0))
    files = release.source.split(" + ")
    for at, file in enumerate(files):
        heading = "" if at else "[bold]file[/]" if len(files) == 1 else "[bold]files[/]"
        told.add_row(heading, Text(f"{file} ({release.file_format})" if len(files) == 1 else file))
    what = release.areas[0].replace("_", " ")
    told.add_row("[bold]areas[/]" if what == AREA else f"[bold]{what}s[/]", Text(f"{seen.areas:,}{_levels(seen)}"))
    inside = sum(column.is_in_file for column in release.columns)
    told.add_row("[bold]columns[/]", Text(f"{inside:,} of counts{_figures(seen)}{_left_out(seen)}"))
    told.add_row("[bold]tables[/]", Text(_tables(seen)))
    absent = ", ".join(f"{number:,} {why}" for why, number in seen.cells.items() if why != "published")
    told.add_row("[bold]counts[/]", Text(f"{seen.cells.get('published', 0):,} published{f'; {absent}' if absent else ''}"))
    console.print(told)
    console.print("\n[bold]How counts were published[/]")
    _mechanisms(seen, console, most)
    _used_sums(seen, console, most)
    if structure.rejected:
        console.print(f"\n[bold]Sums not used: {len(structure.rejected):,}[/]")
        items([(f"{seen.sum_in_words(one)} ({_known(one)})", one.why) for one in structure.rejected[:most]], console)
        _more(console, len(structure.rejected), most)
    if structure.repeats:
        anew = sum(not one.alike for one in structure.repeats)
        console.print(
            f"\n[bold]Counts that appear more than once: {len(structure.repeats):,}[/] "
            f"({anew:,} rounded anew each time, {len(structure.repeats) - anew:,} always the same number)"
        )
        items([(_same(seen, one.columns), one.why) for one in structure.repeats[:most]], console)
        _more(console, len(structure.repeats), most)
    _nesting(seen.nesting, console)
    _contradictions(seen, console, most)
    for note in (*release.notes, *structure.notes):
        console.print(Text(f"Note: {note}"), style="dim")


def _tables(seen: Inspection) -> str:
    """Say how many tables there are, and what is outside of them or was added."""
    names = {column.block for column in seen.release.columns} - {""}
    outside = sum(column.block == "" and column.is_in_file for column in seen.release.columns)
    added = sum(not column.is_in_file for column in seen.release.columns)
    words = f"{len(names):,}" + (f"; {several(outside, 'column')} outside any" if outside else "")
    missing = "total that is not in the file", "totals that are not in the file"
    return (
        words
        + (f"; {several(added, *missing)} added: two tables share it" if added == 1 else "")
        + (f"; {several(added, *missing)} added: each is shared by two tables" if added > 1 else "")
    )


def _known(one: JudgedSum) -> str:
    """Say who announces a sum: documented, and by what; or found."""
    return f"documented: {ORIGINS[one.origin]}" if one.is_documented else "found in the counts"


def _levels(seen: Inspection) -> str:
    levels = [f"{number:,} {level}" for level, number in list(seen.levels.items())[:6]]
    return f" ({', '.join(levels)})" if len(levels) > 1 else f" ({next(iter(seen.levels))})" if levels else ""


def _figures(seen: Inspection) -> str:
    """Say which figures there are, and how many are evidence."""
    kinds = Counter(str(one.kind) for one in seen.release.figures)
    if not kinds:
        return ""
    listed = ", ".join(several(kinds[kind], kind) for kind in ("rate", "mean", "median") if kinds[kind])
    used = sum(one.is_evidence for one in seen.structure.figures)
    return f"; {listed}" + (f" ({used:,} computed from true counts)" if used else "")


def _left_out(seen: Inspection) -> str:
    left = ", ".join(f"{why} ({len(labels):,})" for why, labels in seen.release.left_out.items() if labels)
    return f"; not counts: {left}" if left else ""


def _same(seen: Inspection, columns: tuple[int, ...]) -> str:
    names = [display_name(seen.release.columns[c]) for c in columns]
    return " = ".join(names) if len(names) <= 4 else f"{' = '.join(names[:3])} = … ({len(names)} columns)"


def _mechanisms(seen: Inspection, console: Console, most: int) -> None:
    """Print how the columns were published: one line per mechanism, or one per table if all are asked for."""
    table = plain_table("mechanism", "columns", "evidence", left=["evidence"])
    groups: dict[str, list[MechanismEvidence]] = {}
    for one in seen.structure.how:
        if not any(seen.release.columns[at].is_in_file for at in one.columns):
            continue
        groups.setdefault(one.mechanism.name if one.mechanism else "unknown, so not audited", []).append(one)
    for name, found in sorted(groups.items(), key=lambda item: -sum(len(one.columns) for one in item[1])):
        found.sort(key=lambda one: -len(one.columns))
        shown = found if len(found) <= 3 or most > EXAMPLES else found[:1]
        for one in shown:
            where = f" ({one.block})" if one.block and len(found) > 1 else ""
            table.add_row(name, f"{len(one.columns):,}", Text(f"{one.why}{where}"))
        left = found[len(shown) :]
        if left:
            table.add_row(
                name, f"{sum(len(one.columns) for one in left):,}", f"likewise, in {several(len(left), 'more table')}"
            )
    console.print(table)


def _used_sums(seen: Inspection, console: Console, most: int) -> None:
    """Print the sums that hold, with the evidence: how far totals are from their parts, and how much of that is rounding."""
    sums = seen.structure.sums
    judged = sum(not one.unjudged for one in sums)
    taken = f", {len(sums) - judged:,} too small to judge, taken on trust" if judged < len(sums) else ""
    kept = Counter(one.origin for one in sums if one.is_documented)
    origins = ", ".join(f"{number:,} by {ORIGINS[origin]}" for origin, number in kept.most_common())
    found = len(sums) - kept.total()
    told = [f"{kept.total():,} documented ({origins})"] if kept else []
    told += [f"{found:,} found in the counts"] if found else []
    confirmed = f": {', '.join(told)}. {judged:,} confirmed by the counts{taken}" if sums else ": none"
    console.print(f"\n[bold]Sums used: {len(sums):,}[/]{confirmed}")
    if not sums:
        return
    table = plain_table("sum", "areas", "off by", "spread", "expected", "impossible")
    for one in sums[:most]:
        error = one.spread / one.areas**0.5 if one.areas else 0.0
        marks = [*([] if one.is_documented else ["found"]), *(["on trust"] if one.unjudged else [])]
        name = Text(seen.sum_in_words(one)).append(f" ({', '.join(marks)})" if marks else "", style="dim")
        numbers = (f"{one.mean:+.2f} ± {error:.2f}", f"{one.spread:.2f}", f"{one.expected:.2f}")
        table.add_row(name, f"{one.areas:,}", *numbers, f"{one.impossible:,}")
    console.print(table)
    console.print(
        "off by: mean of total − parts, ± its standard error; expected: the spread that rounding alone causes.", style="dim"
    )
    if any(one.against for one in sums):
        console.print(
            "Of a total that is not in the file, the parts in one table are compared with those in the other.", style="dim"
        )
    _more(console, len(sums), most)


def _nesting(nesting: Nesting, console: Console) -> None:
    """Print which areas add up to which, and which do not although they seem to."""
    if not nesting.levels:
        return
    console.print(
        f"\n[bold]Areas within areas[/]: {several(nesting.linked, 'area is part of another', 'areas are parts of others')}"
    )
    table = plain_table("areas in areas", "known from", "parents", *SIZES, "columns", "left out", left=["known from"])
    for level in nesting.levels:
        sizes = [f"{level.by_k[size]:,}" if size in level.by_k else "-" for size in SIZES]
        left = f"{sum(level.rejected.values()):,}"
        table.add_row(Text(level.name), level.by, f"{level.parents:,}", *sizes, f"{int(level.columns.sum()):,}", left)
    console.print(table)
    console.print(f"{', '.join(SIZES)}: parents with this many areas; columns: those that add up.", style="dim")
    told = []
    for level in nesting.levels:
        told.append((level.name, level.why))
        told += [(level.name, f"{number:,} left out: {why}") for why, number in level.rejected.items()]
    items(told, console)


def _contradictions(seen: Inspection, console: Console, most: int) -> None:
    rows = seen.contradictions
    if not rows and not seen.structure.equations:
        console.print("\nNo sum is used, so it is not known whether the published figures are consistent.")
        return
    if not rows:
        console.print(f"\n{NO_INCONSISTENCIES}")
        return
    console.print(f"\n[bold]Inconsistencies in the published figures: {len(rows):,}[/]")
    items([(str(next(iter(row.values()))), row["clash"]) for row in rows[:most]], console)
    _more(console, len(rows), most)


def _more(console: Console, number: int, most: int) -> None:
    if number > most:
        console.print(f"   … and {number - most:,} more; --all lists them.", style="dim")
