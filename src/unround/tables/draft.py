"""Descriptions written as TOML: as they are drafted, or with what was found besides; with the reasons for what they say."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unround.mechanisms import Exact, Mechanism
from unround.release import Entry, Match, Release, What
from unround.small_files import toml_comment, toml_text
from unround.structure import JudgedFigure, JudgedSum, MechanismEvidence, Structure
from unround.structure.evidence import LABELS, OPTION
from unround.tables.axes import Axes, DraftAxis
from unround.tables.description import BY_KEY, KEYS
from unround.tables.roles import Roles
from unround.tables.suggested import SuggestedProtection, SuggestedSum
from unround.tables.tidy import Opened


@dataclass(slots=True)
class Draft:
    """A description as keys and values, as `make_description` takes it, and remarks on some of the keys.

    Remarks are by key ("default"), or by axis and position of the sum (("age", 0)). `suggested` are keys that only the
    counts suggest: they are written as comments, for written down they would read as declared, and claims as proved.
    `asides` are lines of their own at the end: what was tried and not used.
    """

    keys: dict[str, Any]
    remarks: dict[Any, str] = field(default_factory=dict)
    suggested: dict[str, Any] = field(default_factory=dict)
    asides: list[str] = field(default_factory=list)

    def toml(self, file: Path | None, where: Path | None = None) -> str:
        """Return the text of the TOML."""
        keys, comment = dict(self.keys), ""
        if file is not None:
            toml = where or file.with_suffix(".toml")
            comment = (
                f"Drafted by `unround describe {file.name}`. Read it, correct what is wrong, then run:\n"
                f"  unround audit {_relative(toml, Path.cwd()) if where else toml.name} -o audit"
            )
            keys["data"] = _relative(file, toml.parent)
        text = _text(keys, comment, self.remarks)
        if self.suggested:
            guess = "".join(f"# {line}\n" for line in toml_text(self.suggested).splitlines() if line)
            top, heading, rest = text.partition("\n\n")  # a key that is uncommented has to stand above all headings
            text = f"{top}\n{toml_comment(self.remarks['suggested'])}\n{guess}".rstrip("\n") + f"{heading}{rest}"
        return text + "".join(["\n", *(f"{toml_comment(aside)}\n" for aside in self.asides)] if self.asides else [])


def _text(keys: Mapping[str, Any], comment: str, remarks: Mapping[Any, str]) -> str:
    return toml_text({key: keys[key] for key in KEYS if key in keys}, comment, remarks, inline=("counts",))


_FOUND = """\
What unround found out about {source}, from {areas:,} areas.
What stands here is what you say, and it overrules the counts. What was only found stands in comments: it is used as said
there, and what follows from it is conditional if nobody says it. To decide it yourself, remove the # before an entry.

mechanisms: how columns were published (exact, rounding:5, sample:5, nearest:3 …)
sums:       a total and its parts; use = true or false, and because = "…"
repeats:    columns that show the same count; alike = true if their numbers are the same everywhere, so that the first is
            used for all; alike = false if the count was rounded anew for each; use = false if they are not the same
figures:    rates, means and medians, and whether to use them; to say what one is of, write column = "345" in place of
            columns, and kind, numerator and universe, or groups (docs/figures.md)
keys:       a table whose random numbers add up, and the constant of its sums: table = "Age", constant = 0.31
match:      for several files: which columns of one file are also in earlier files (docs/linked.md)
"""


def drafted(release: Release, structure: Structure, where: Path | None = None) -> str:
    """Return the description of a release, with everything that was found out about it in comments."""
    keys, folder = dict(_plain(release.described)), where.parent if where is not None else Path()
    if os.path.isfile(release.source):
        keys["data"] = _relative(Path(release.source), folder)
    for axis in keys.get("axes", {}).values():
        if "hierarchy" in axis:
            axis["hierarchy"] = _relative(Path(axis["hierarchy"]), folder)
    said = [evidence for evidence in structure.how if evidence.basis == OPTION and evidence.mechanism is not None]
    names = [column.key for column in structure.columns]
    more = {
        "mechanisms": [*keys.get("mechanisms", []), *(_mechanism(evidence, names) for evidence in said)],
        "match": [_match(match) for match in release.decisions.matches],
    }
    keys |= {key: entries for key, entries in more.items() if entries}
    pieces = [_text(keys, _FOUND.format(source=release.source, areas=structure.areas), {})]
    for evidence in structure.how:
        if evidence not in said and (evidence.basis != "description" or not release.described):
            why = f"{evidence.block}: {evidence.why}" if evidence.block else evidence.why
            pieces.append(_aside([why], "mechanisms", _mechanism(evidence, names)))
    described = ("file", LABELS) if release.described.get("axes") else ("file",)
    for sums in (structure.sums, structure.rejected):
        those = [judged for judged in sums if judged.origin not in described and len(judged.parts) > 1]
        pieces += [_sum_aside(group, release) for group in _alike(those, release)]
    verdicts: dict[str, list[JudgedFigure]] = {}
    for figure in structure.figures:
        verdicts.setdefault(figure.verdict, []).append(figure)
    for verdict, some in verdicts.items():
        why = f"{verdict}: {some[0].figure.name}: {some[0].why}"
        columns = [figure.figure.name for figure in some]
        pieces.append(_aside([why], "figures", {"columns": columns, "use": verdict == "evidence"}))
    for repeat in structure.repeats:
        columns = [names[at] for at in repeat.columns]
        pieces.append(_aside([repeat.why], "repeats", {"columns": columns, "alike": repeat.alike}))
    return "\n".join(pieces)


def _plain(value: Any) -> Any:
    """Return keys and values as TOML can have them."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.name if isinstance(value, Mechanism) else value


def _mechanism(evidence: MechanismEvidence, names: Sequence[str]) -> dict[str, Any]:
    how = evidence.mechanism or evidence.suggested
    return {"mechanism": how.name if how is not None else "…", "columns": [names[at] for at in evidence.columns]}


def _match(match: Match) -> dict[str, Any]:
    pairs = {"columns": dict(match.columns), "characteristics": dict(match.characteristics)}
    return {"file": match.file, **{name: some for name, some in pairs.items() if some}}


def _aside(why: Sequence[str], key: str, entry: Mapping[str, Any]) -> str:
    """Return an entry as comments, below its reasons."""
    lines = toml_text({key: [entry]}).strip().splitlines()
    return "".join(f"{toml_comment(line)}\n" for line in why) + "".join(f"# {line}\n" for line in lines)


def _alike(sums: Sequence[JudgedSum], release: Release) -> list[list[JudgedSum]]:
    """Put sums together that differ only in the codes of the other axes."""
    groups: dict[object, list[JudgedSum]] = {}
    for at, judged in enumerate(sums):
        axis, codes, _ = _along(judged, release)
        # Sums by sex are many and alike; each of the others has a reason of its own to be shown.
        reason = judged.why.split(":")[0] if judged.origin == "sex" and not judged.kept else ""
        key = at if axis == BY_KEY else (axis, codes, judged.origin, reason)
        groups.setdefault(key, []).append(judged)
    return list(groups.values())


def _along(judged: JudgedSum, release: Release) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return the axis that a sum is over, its codes there, and those on the other axes; keys where it is over several."""
    columns = [release.columns[at] for at in (judged.total, *judged.parts)]
    for place, axis in enumerate(release.axes if len(release.axes) == 2 else ()):
        if len({column.codes[1 - place] for column in columns}) == 1:
            return axis, tuple(column.codes[place] for column in columns), (columns[0].codes[1 - place],)
    return BY_KEY, tuple(column.key for column in columns), ()


def _sum_aside(group: Sequence[JudgedSum], release: Release) -> str:
    """Return one sum, or several that differ in one code only, as comments."""
    first = group[0]
    axis, (total, *parts), others = _along(first, release)
    entry: dict[str, Any] = {"total": total, "parts": parts, "use": first.kept}
    if others:
        other = next(name for name in release.axes if name != axis)
        entry |= {"axis": axis, "where": {other: [_along(judged, release)[2][0] for judged in group]}}
    if len(group) < 4:
        head = release.columns[first.total]
        return _aside([f"{head.label} ({head.block})", *dict.fromkeys(judged.why for judged in group)], "sums", entry)
    means = [judged.mean for judged in group]
    summary = (
        f"over all of these the residual averages {min(means):.2f} to {max(means):.2f}, and is impossible in at most "
        f"{max(judged.impossible for judged in group):,} areas"
    )
    return _aside([f"{len(group)} sums; the first: {first.why}", summary], "sums", entry)


def _relative(file: Path, folder: Path) -> str:
    """Return the way to a file from a folder, as short as it is."""
    try:
        return Path(os.path.relpath(file, folder)).as_posix()
    except ValueError:  # another drive
        return file.as_posix()


def where_it_stands(opened: Opened, axes: Axes, roles: Roles) -> dict[str, Any]:
    """Return the keys that say where the table is, and how its numbers are written."""
    keys: dict[str, Any] = {}
    names, layout = opened.table.names, opened.layout
    if layout is not None and layout.letters is not None:
        keys["columns"] = layout.letters
    if opened.sheet is not None:
        keys["sheet"] = opened.sheet
    if layout is not None and (keys or layout.header != (1,) or layout.below or layout.skip):
        keys["header"], keys["rows"] = list(layout.header), list(layout.rows)
        keys |= {"skip": list(layout.skip)} if layout.skip and not opened.headings else {}
        keys |= {"percentages": list(layout.percentages)} if layout.percentages else {}
    if len(roles.values) == 1:
        keys["value"] = names[roles.values[0]]
    if roles.status is not None:
        keys["status"] = names[roles.status]
    marks = {"thousands": roles.writing.thousands, "decimal": roles.writing.decimal}
    keys |= {key: sign for key, sign in marks.items() if sign}
    left = {**roles.left_out, **dict.fromkeys(roles.unknown, "")}
    if left:
        keys["ignore"] = [{"column": names[at], "because": why} for at, why in sorted(left.items())]
    if axes.counts:
        keys["counts"] = {column: dict(codes) for column, codes in axes.counts.items()}
    return keys


def axis_keys(axis: DraftAxis, headings: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """Return the keys of one axis, without its sums."""
    keys: dict[str, Any] = {}
    if axis.name in headings:
        keys["headings"] = list(headings[axis.name])
    elif axis.header is not None:
        keys["header"] = axis.header
    elif axis.column is not None and axis.column != axis.name:
        keys["column"] = axis.column
    if axis.label is not None:
        keys["name"] = axis.label
    if axis.fill:
        keys["fill"] = "down"
    if axis.within is not None:
        keys["within"] = axis.within
        keys |= {"headings": list(headings[axis.within])} if axis.within in headings else {}
    return keys


def write_sums(draft: Draft, axes: Axes, verdicts: Sequence[SuggestedSum]) -> None:
    """Write down the sums that are used, each with the reason."""
    for axis in axes.all:
        used = [verdict for verdict in verdicts if verdict.used and verdict.axis == axis.name]
        if used:
            draft.keys["axes"][axis.name]["sums"] = [
                {"total": verdict.total, "parts": list(verdict.parts)} for verdict in used
            ]
        draft.remarks |= {(axis.name, at): f"{verdict.suggested_by}; {verdict.why}" for at, verdict in enumerate(used)}
    if any(verdict.used for verdict in verdicts):
        draft.keys["inferred"] = True
        draft.remarks["inferred"] = (
            "the sums: what follows from one is conditional, until somebody who knows deletes this line"
        )


def write_protection(draft: Draft, how: SuggestedProtection, noted: Collection[str]) -> None:
    """Write down how counts were published: usually, and where otherwise; `noted` are codes that a note calls exact."""
    if how.default is None:
        draft.asides.append(f'How counts were published could not be told ({how.why}). Say so: default = "rounding:3"')
        return
    into = draft.keys if how.said else draft.suggested
    into["default"] = how.default.name
    if not how.said:
        draft.remarks["suggested"] = (
            f"How counts were published is left to the counts ({how.why}), and what follows is conditional on it. If the "
            "agency says so, uncomment this:"
        )
    elif how.note:
        draft.remarks["default"] = f"as a note says: {how.note}"
    for other, rules in how.others:
        for rule in rules:
            where: dict[str, Any] = {axis: codes[0] if len(codes) == 1 else list(codes) for axis, codes in rule.items()}
            is_noted = not how.said or not {code for codes in rule.values() for code in codes}.isdisjoint(noted)
            if isinstance(other, Exact):
                into.setdefault("exact", []).append(where if is_noted else {**where, "inferred": True})
                if not is_noted:
                    draft.remarks["exact"] = "the counts suggest it: they are not multiples of the base"
            else:
                into.setdefault("mechanisms", []).append({"mechanism": other.name, "where": where})


def write_open(draft: Draft, entries: Sequence[Entry]) -> list[Entry]:
    """Write down the questions that nobody has answered, and return what is none: the description speaks of them now."""
    asked = [entry for entry in entries if entry.what is What.UNKNOWN]
    if asked:
        draft.keys["open"] = [{"place": entry.place, "why": entry.why, "settle": entry.settle} for entry in asked]
        draft.remarks["open"] = "nobody has answered it: settle it, then delete it"
    return [entry for entry in entries if entry.what is not What.UNKNOWN]


def write_asides(draft: Draft, axes: Axes, verdicts: Sequence[SuggestedSum], structure: Structure, roles: Roles) -> None:
    """Write down what was tried and not used, and what the counts alone suggest."""
    draft.asides += [f"Not used ({judged.axis}): {judged.shown}: {judged.why}" for judged in verdicts if not judged.used]
    columns = structure.columns
    for judged in structure.sums:
        if judged.origin == "data" and len(judged.parts) > 1:
            shown = f"{columns[judged.total].key} = {' + '.join(columns[part].key for part in judged.parts[:8])}"
            more = f" + … ({len(judged.parts)} parts)" if len(judged.parts) > 8 else ""
            draft.asides.append(f"Found in the counts, and used with less trust than a sum that you list: {shown}{more}")
    if roles.unknown:
        draft.remarks["ignore"] = "without a reason it stays open: say why it may be left out, or what it is"
    if not structure.sums and not any(judged.used for judged in verdicts):
        axis = next((axis.name for axis in axes.all if axis.name not in draft.keys["areas"]), axes.all[0].name)
        draft.asides.append(
            f"No sum was found, and without one nothing can be inferred. If some counts add up, say so under [axes.{axis}]: "
            'sums = [{ total = "…", parts = ["…", "…"] }]'
        )
