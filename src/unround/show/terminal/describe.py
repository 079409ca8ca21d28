"""What `unround describe` prints."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from unround.show.terminal.layout import bullets, items
from unround.show.words import several
from unround.tables import Described
from unround.tables.axes import DraftAxis

FEW = 6
"""Codes of an axis that are shown."""


def show_description(found: Described, console: Console, draft: bool = True) -> None:
    """Print what a table is taken for; with `draft` also the text of its description."""
    told = Table.grid(padding=(0, 2, 0, 0))
    told.add_row("[bold]file[/]", Text(_where(found)))
    told.add_row("[bold]rows[/]", Text(_axes(found, rows=True)))
    told.add_row("[bold]columns[/]", Text(_axes(found, rows=False)))
    told.add_row("[bold]published[/]", Text(_protection(found)))
    console.print(told)
    used = [one for one in found.verdicts if one.used]
    console.print(f"\n[bold]Sums: {len(used)}[/]" + ("" if used else ", so that nothing can be inferred"))
    items([(f"{one.candidate.axis}: {one.candidate.shown}", f"{one.candidate.why}; {one.why}") for one in used], console)
    refused = [one for one in found.verdicts if not one.used]
    if refused:
        console.print("\n[bold]Not used[/]")
        items([(f"{one.candidate.axis}: {one.candidate.shown}", one.why) for one in refused], console)
    if found.answers:
        console.print("\n[bold]Answered, or assumed[/]")
        items([(one.text, answer) for one, answer in found.answers], console)
    names = found.opened.table.names
    left = [(names[at], why) for at, why in found.roles.left_out.items()]
    if left:
        console.print("\n[bold]Columns left out[/]")
        items(left, console)
    notes = [*found.release.notes[1:], *found.structure.notes]  # the first is about describing on the way
    if notes:
        console.print()
        bullets(notes, console, "dim")
    if draft:
        console.print("\n[bold]The description[/]; write it into a file with -o\n")
        console.print(Text(found.toml()), soft_wrap=True, style="dim")


def _where(found: Described) -> str:
    opened, layout = found.opened, found.opened.layout
    words = [found.release.source]
    if opened.sheet is not None:
        others = f"; tables also on {', '.join(opened.other_sheets)}" if opened.other_sheets else ""
        words.append(f"sheet {opened.sheet!r}{others}")
    if layout is not None:
        rows = f"rows {layout.header[0]}–{layout.header[-1]}" if len(layout.header) > 1 else f"row {layout.header[0]}"
        words.append(f"header in {rows}, table in rows {layout.rows[0]}–{layout.rows[1]}")
    return ", ".join(words)


def _axes(found: Described, rows: bool) -> str:
    names = found.release.areas if rows else found.release.axes
    shown = [_axis(axis) for axis in found.axes.all if axis.name in names]
    return "; ".join(shown) or "one: the table is of a single area"


def _axis(axis: DraftAxis) -> str:
    few = ", ".join(axis.codes[:FEW]) + (", …" if len(axis.codes) > FEW else "")
    return f"{axis.name} ({several(len(axis.codes), 'code')}: {few})"


def _protection(found: Described) -> str:
    how = found.protection
    if how.default is None:
        return f"not known: {how.why}. Say it with --base"
    exact = [f"{axis} {_few(codes)}" for rule in found.draft.keys.get("exact", ()) for axis, codes in rule.items()]
    also = f"; exact: {', '.join(exact)}" if exact else ""
    others = [rule["mechanism"] for rule in found.draft.keys.get("mechanisms", ())]
    also += f"; elsewhere {', '.join(dict.fromkeys(others))}" if others else ""
    return f"{how.default.name}{also} ({how.why})"


def _few(codes: str | list[str]) -> str:
    """Return some codes, shortened."""
    listed = [codes] if isinstance(codes, str) else codes
    return " or ".join(listed[:FEW]) + (" …" if len(listed) > FEW else "")
