"""Writing: what was found about a table goes into the draft of its description."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unround.mechanisms import Exact
from unround.structure import Structure
from unround.tables.axes import Axes, DraftAxis
from unround.tables.draft import Draft
from unround.tables.opening import Opened
from unround.tables.roles import Roles
from unround.tables.verdicts import Protection, Verdict


def where_it_stands(opened: Opened, axes: Axes, roles: Roles) -> dict[str, Any]:
    """Return the keys that say where the table is, and how its numbers are written."""
    keys: dict[str, Any] = {}
    names, layout = opened.table.names, opened.layout
    if opened.sheet is not None:
        keys["sheet"] = opened.sheet
    if layout is not None and (opened.sheet is not None or layout.header != (1,) or layout.below):
        keys["header"], keys["rows"] = list(layout.header), list(layout.rows)
    if len(roles.values) == 1:
        keys["value"] = names[roles.values[0]]
    if roles.status is not None:
        keys["status"] = names[roles.status]
    marks = {"thousands": roles.writing.thousands, "decimal": roles.writing.decimal}
    keys |= {key: sign for key, sign in marks.items() if sign}
    ignored = [names[at] for at in roles.left_out]
    if axes.across and not axes.counts and ignored:
        keys["ignore"] = ignored
    if axes.counts:
        keys["counts"] = {column: dict(codes) for column, codes in axes.counts.items()}
    return keys


def axis_keys(axis: DraftAxis) -> dict[str, Any]:
    """Return the keys of one axis, without its sums."""
    keys: dict[str, Any] = {}
    if axis.header is not None:
        keys["header"] = axis.header
    elif axis.column is not None and axis.column != axis.name:
        keys["column"] = axis.column
    if axis.label is not None:
        keys["name"] = axis.label
    if axis.fill:
        keys["fill"] = "down"
    return keys


def write_sums(draft: Draft, axes: Axes, verdicts: Sequence[Verdict]) -> None:
    """Write down the sums that are used, each with the reason."""
    for axis in axes.all:
        used = [one for one in verdicts if one.used and one.candidate.axis == axis.name]
        if used:
            draft.keys["axes"][axis.name]["sums"] = [
                {"total": one.candidate.total, "parts": list(one.candidate.parts)} for one in used
            ]
        draft.remarks |= {(axis.name, at): f"{one.candidate.why}; {one.why}" for at, one in enumerate(used)}


def write_protection(draft: Draft, how: Protection) -> None:
    """Write down how counts were published: usually, and where otherwise."""
    if how.default is None:
        draft.asides.append(f'How counts were published could not be told ({how.why}). Say so: default = "rounding:3"')
        return
    draft.keys["default"] = how.default.name
    if not how.said:
        draft.remarks["default"] = f"inferred from the counts ({how.why}); confirm it with the agency"
    for other, rules in how.others:
        if isinstance(other, Exact):
            draft.keys.setdefault("exact", []).extend(
                {axis: _one_or_more(codes) for axis, codes in rule.items()} for rule in rules
            )
            draft.remarks["exact"] = "inferred: these counts are no multiples of the base"
        else:
            made = [{"mechanism": other.name, "where": {a: _one_or_more(c) for a, c in rule.items()}} for rule in rules]
            draft.keys.setdefault("mechanisms", []).extend(made)


def _one_or_more(codes: Sequence[str]) -> str | list[str]:
    return codes[0] if len(codes) == 1 else list(codes)


def write_asides(
    draft: Draft, axes: Axes, verdicts: Sequence[Verdict], structure: Structure, roles: Roles, opened: Opened
) -> None:
    """Write down what was tried and not used, and what the counts alone suggest."""
    names = opened.table.names
    draft.asides += [
        f"Not used ({one.candidate.axis}): {one.candidate.shown}: {one.why}" for one in verdicts if not one.used
    ]
    columns = structure.columns
    for one in structure.sums:
        if one.origin == "data" and len(one.parts) > 1:
            shown = f"{columns[one.total].key} = {' + '.join(columns[part].key for part in one.parts[:8])}"
            more = f" + … ({len(one.parts)} parts)" if len(one.parts) > 8 else ""
            draft.asides.append(f"Found in the counts, and used with less trust than a sum that you list: {shown}{more}")
    draft.asides += [f"Left out: {names[at]} ({why})" for at, why in roles.left_out.items()]
    if not structure.sums and not any(one.used for one in verdicts):
        axis = next((axis.name for axis in axes.all if axis.name not in draft.keys["areas"]), axes.all[0].name)
        draft.asides.append(
            f"No sum was found, and without one nothing can be inferred. If some counts add up, say so under [axes.{axis}]: "
            'sums = [{ total = "…", parts = ["…", "…"] }]'
        )
