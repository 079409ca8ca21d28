"""What is in a release: how it was read, how its counts were published, which sums hold; and a table without description."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from unround.audits.model import display_name
from unround.inspection import Inspection
from unround.release import AREA, Entry
from unround.show.check import check
from unround.show.parts import QUIET, Bullets, Code, Document, Line, Part, Section, Table, TableCell, Terms, Text, rest
from unround.show.words import NO_INCONSISTENCIES, ORIGINS, several
from unround.structure import JudgedSum, MechanismEvidence, Nesting
from unround.structure.evidence import FILES, FOUND
from unround.structure.nesting import SIZES
from unround.tables import Described
from unround.tables.account import account

FEW = 6
"""Codes of an axis that are shown."""
MOST_ENTRIES = 40
"""Entries of an account that are listed."""


def how_it_was_read(entries: Sequence[Entry], most: int = MOST_ENTRIES) -> Section:
    """Return the account of a reading; what was not understood or not used comes first."""
    ordered = sorted(entries, key=lambda entry: (not entry.settle, entry.used))
    rows = [(entry.place, entry.what.value, "yes" if entry.used else "no", entry.why) for entry in ordered[:most]]
    table = Table(("where", "what", "used", "why"), rows, "How it was read", left=("what", "used", "why"))
    settle = [(entry.place, f"settle it with {entry.settle}") for entry in ordered if entry.settle]
    return Section("How it was read", [table, rest(len(ordered), most, "the JSON lists them"), Bullets(settle[:most])])


def description(described: Described, draft: bool = True) -> Document:
    """Say what a table is taken for; with `draft` also the text of its description."""
    parts = [*_description(described)]
    if draft:
        parts.append(Section("The description", [Code(described.toml())], aside="(write it into a file with -o)"))
    return Document("What the table is taken for", parts)


def _description(described: Described) -> Iterator[Part]:
    opened, layout, release, how = described.opened, described.opened.layout, described.release, described.protection
    where = [release.source, *([f"sheet {opened.sheet!r}"] if opened.sheet is not None else [])]
    if layout is not None:
        first, last = layout.header[0], layout.header[-1]
        rows = f"rows {first}–{last}" if len(layout.header) > 1 else f"row {first}"
        where.append(f"header in {rows}, table in rows {layout.rows[0]}–{layout.rows[1]}")
    axes = {
        axis.name: f"{axis.name} ({several(len(axis.codes), 'code')}: {_few(axis.codes, ', ', ', …')})"
        for axis in described.axes.all
    }
    by_rows, by_columns = (
        "; ".join(said for name, said in axes.items() if name in names) or "one: the table is of a single area"
        for names in (release.areas, release.axes)
    )
    exact = [f"{axis} {_few(codes)}" for rule in described.draft.keys.get("exact", ()) for axis, codes in rule.items()]
    others = dict.fromkeys(rule["mechanism"] for rule in described.draft.keys.get("mechanisms", ()))
    also = (f"; exact: {', '.join(exact)}" if exact else "") + (f"; elsewhere {', '.join(others)}" if others else "")
    unknown = f"not known: {how.why}. Say it with --base"
    published = unknown if how.default is None else f"{how.default.name}{also} ({how.why})"
    facts = {"file": ", ".join(where), "rows": by_rows, "columns": by_columns, "published": published}
    yield Terms(list(facts.items()), "wide")
    used = [verdict for verdict in described.verdicts if verdict.used]
    sums = [
        (f"{figure.candidate.axis}: {figure.candidate.shown}", f"{figure.candidate.why}; {figure.why}") for figure in used
    ]
    yield Section(f"Sums: {len(used)}", [Bullets(sums)], aside="" if used else "so that nothing can be inferred")
    refused = [
        (f"{verdict.candidate.axis}: {verdict.candidate.shown}", verdict.why)
        for verdict in described.verdicts
        if not verdict.used
    ]
    answers = [(question.text, answer) for question, answer in described.answers]
    for title, items in (("Not used", refused), ("Answered, or assumed", answers)):
        if items:
            yield Section(title, [Bullets(items)])
    yield how_it_was_read(account(release, described.structure))
    notes = release.notes[1:]  # the first is about describing on the way
    yield Bullets([*notes, *described.structure.notes], QUIET)


def _few(codes: str | Sequence[str], mark: str = " or ", more: str = " …") -> str:
    """Return some codes, shortened."""
    listed = [codes] if isinstance(codes, str) else codes
    return mark.join(listed[:FEW]) + (more if len(listed) > FEW else "")


EXAMPLES = 8
"""Sums, repeats or contradictions that are listed unless all are asked for."""

_MARKS = {FOUND: "found", FILES: "files"}
"""What is put behind a sum that nobody says holds; of others, labels suggest it."""


def inspection(seen: Inspection, everything: bool = False) -> Document:
    """Say what is in a release, and whether the data fit the way in which it was published."""
    fit = check(seen.fit, everything)
    return Document(
        "What is in the release",
        [*_inspection(seen, 10**9 if everything else EXAMPLES), Section(fit.title, fit.parts)],
        notice=fit.notice,
    )


def _inspection(seen: Inspection, most: int) -> Iterator[Part]:
    structure = seen.structure
    yield _overview(seen)
    yield how_it_was_read(account(seen.release, structure), max(most, MOST_ENTRIES))
    yield Section("How counts were published", [_mechanisms(seen, most)])
    yield _used_sums(seen, most)
    if structure.rejected:
        sums = [
            (f"{seen.sum_in_words(rejected)} ({_known(rejected)})", rejected.why) for rejected in structure.rejected[:most]
        ]
        yield Section(f"Sums not used: {len(structure.rejected):,}", [Bullets(sums), rest(len(structure.rejected), most)])
    if structure.repeats:
        anew = sum(not repeat.alike for repeat in structure.repeats)
        repeats = [(_same(seen, repeat.columns), repeat.why) for repeat in structure.repeats[:most]]
        yield Section(
            f"Counts that appear more than once: {len(structure.repeats):,}",
            [Bullets(repeats), rest(len(structure.repeats), most)],
            aside=f"({anew:,} rounded anew each time, {len(structure.repeats) - anew:,} always the same number)",
        )
    yield from _nesting(seen.nesting)
    yield _contradictions(seen, most)
    yield Text("\n".join(f"Note: {note}" for note in seen.notes), QUIET)


def _overview(seen: Inspection) -> Part:
    release, structure = seen.release, seen.structure
    files, what = release.source.split(" + "), release.areas[0].replace("_", " ")
    levels = [f"{number:,} {level}" for level, number in list(seen.levels.items())[:6]]
    in_levels = f" ({', '.join(levels)})" if len(levels) > 1 else f" ({next(iter(seen.levels))})" if levels else ""
    kinds = Counter(str(figure.kind) for figure in release.figures)
    evidence = sum(figure.is_evidence for figure in structure.figures)
    figures = ", ".join(several(kinds[kind], kind) for kind in ("rate", "mean", "median") if kinds[kind])
    figures = f"; {figures}" + (f" ({evidence:,} computed from true counts)" if evidence else "") if kinds else ""
    left = ", ".join(f"{why} ({len(labels):,})" for why, labels in release.left_out.items() if labels)
    inside = [column for column in release.columns if column.is_in_file]
    absent = ", ".join(f"{number:,} {why}" for why, number in seen.cells.items() if why != "published")
    outside, added = sum(column.block == "" for column in inside), len(release.columns) - len(inside)
    tables = f"{len({column.block for column in release.columns} - {''}):,}"
    tables += f"; {several(outside, 'column')} outside any" if outside else ""
    shared = "two tables share it" if added == 1 else "each is shared by two tables"
    missing = several(added, "total that is not in the file", "totals that are not in the file")
    tables += f"; {missing} added: {shared}" if added else ""
    return Terms(
        [
            ("file", f"{files[0]} ({release.file_format})") if len(files) == 1 else ("files", "\n".join(files)),
            ("areas" if what == AREA else what if what.endswith("s") else f"{what}s", f"{seen.areas:,}{in_levels}"),
            ("columns", f"{len(inside):,} of counts{figures}{f'; not counts: {left}' if left else ''}"),
            ("tables", tables),
            ("counts", f"{seen.cells.get('published', 0):,} published{f'; {absent}' if absent else ''}"),
        ],
        "wide",
    )


def _known(judged: JudgedSum) -> str:
    """Return who announces a sum: the agency or the user, and by what; labels; or nobody."""
    if judged.is_documented:
        return f"{judged.ground}: {ORIGINS[judged.origin]}"
    return "found in the counts" if judged.origin == FOUND else f"suggested by {ORIGINS[judged.origin]}"


def _same(seen: Inspection, columns: tuple[int, ...]) -> str:
    names = [display_name(seen.release.columns[c]) for c in columns]
    return " = ".join(names) if len(names) <= 4 else f"{' = '.join(names[:3])} = … ({len(names)} columns)"


def _mechanisms(seen: Inspection, most: int) -> Part:
    """Say how the columns were published: one line per mechanism, or one per table if all are asked for."""
    rows = []
    groups: dict[str, list[MechanismEvidence]] = {}
    for evidence in seen.structure.how:
        if not any(seen.release.columns[at].is_in_file for at in evidence.columns):
            continue
        groups.setdefault(evidence.mechanism.name if evidence.mechanism else "unknown, so not audited", []).append(evidence)
    for name, alike in sorted(groups.items(), key=lambda item: -sum(len(evidence.columns) for evidence in item[1])):
        alike.sort(key=lambda evidence: -len(evidence.columns))
        shown = alike if len(alike) <= 3 or most > EXAMPLES else alike[:1]
        for evidence in shown:
            where = f" ({evidence.block})" if evidence.block and len(alike) > 1 else ""
            rows.append([name, f"{len(evidence.columns):,}", f"{evidence.why}{where}"])
        left = alike[len(shown) :]
        if left:
            columns = sum(len(step.columns) for step in left)
            rows.append([name, f"{columns:,}", f"likewise, in {several(len(left), 'more table')}"])
    return Table(("mechanism", "columns", "evidence"), rows, "Mechanisms", left=("evidence",))


def _used_sums(seen: Inspection, most: int) -> Part:
    """List the sums that hold, with the evidence: how far totals are from their parts, and how much of that is rounding."""
    sums = seen.structure.sums
    if not sums:
        return Section("Sums used: 0", [])
    judged = sum(not total_and_parts.unjudged for total_and_parts in sums)
    taken = f", {len(sums) - judged:,} too small to judge, taken on trust" if judged < len(sums) else ""
    kept = Counter(total_and_parts.origin for total_and_parts in sums if total_and_parts.is_documented)
    origins = ", ".join(f"{number:,} by {ORIGINS[origin]}" for origin, number in kept.most_common())
    inferred = Counter(total_and_parts.origin for total_and_parts in sums if not total_and_parts.is_documented)
    by_counts, matched = inferred[FOUND], inferred[FILES]
    labels = inferred.total() - by_counts - matched
    known = [f"{kept.total():,} documented or declared ({origins})"] if kept else []
    known += [f"{labels:,} suggested by labels alone"] if labels else []
    known += [f"{matched:,} by {ORIGINS[FILES]} under one name"] if matched else []
    known += [f"{by_counts:,} found in the counts"] if by_counts else []
    rows: list[Line] = []
    for kept_sum in sums[:most]:
        error = kept_sum.spread / kept_sum.areas**0.5 if kept_sum.areas else 0.0
        marks = [
            *([] if kept_sum.is_documented else [_MARKS.get(kept_sum.origin, "labels")]),
            *(["on trust"] if kept_sum.unjudged else []),
        ]
        name = TableCell(seen.sum_in_words(kept_sum), small=f"({', '.join(marks)})" if marks else "")
        numbers = (f"{kept_sum.mean:+.2f} ± {error:.2f}", f"{kept_sum.spread:.2f}", f"{kept_sum.expected:.2f}")
        rows.append([name, f"{kept_sum.areas:,}", *numbers, f"{kept_sum.impossible:,}"])
    legend = "off by: mean of total − parts, ± its standard error; expected: the spread that rounding alone causes."
    if any(total_and_parts.against for total_and_parts in sums):
        legend += " Of a total that is not in the file, the parts in one table are compared with those in the other."
    table = Table(("sum", "areas", "off by", "spread", "expected", "impossible"), rows, "Sums", legend=legend)
    aside = f"{', '.join(known)}. {judged:,} confirmed by the counts{taken}"
    return Section(f"Sums used: {len(sums):,}:", [table, rest(len(sums), most)], aside=aside)


def _nesting(nesting: Nesting) -> Iterator[Part]:
    """Say which areas add up to which, and which do not although they seem to."""
    if not nesting.levels:
        return
    rows, reasons = [], []
    for level in nesting.levels:
        sizes = [f"{level.by_k[size]:,}" if size in level.by_k else "-" for size in SIZES]
        left = f"{sum(level.rejected.values()):,}"
        rows.append([level.name, level.by, f"{level.parents:,}", *sizes, f"{int(level.columns.sum()):,}", left])
        reasons.append((level.name, level.why))
        reasons += [(level.name, f"{number:,} left out: {why}") for why, number in level.rejected.items()]
    heads = ("areas in areas", "known from", "parents", *SIZES, "columns", "left out")
    legend = f"{', '.join(SIZES)}: parents with this many areas; columns: those that add up."
    aside = several(nesting.linked, "area is part of another", "areas are parts of others")
    yield Section(
        "Areas within areas:",
        [Table(heads, rows, "Levels", left=("known from",), legend=legend), Bullets(reasons)],
        aside=aside,
    )


def _contradictions(seen: Inspection, most: int) -> Part:
    rows = seen.contradictions
    if not rows:
        unknown = "No sum is used, so it is not known whether the published figures are consistent."
        return Text(NO_INCONSISTENCIES if seen.structure.equations else unknown)
    clashes = [(str(next(iter(row.values()))), row["clash"]) for row in rows[:most]]
    return Section(f"Inconsistencies in the published figures: {len(rows):,}", [Bullets(clashes), rest(len(rows), most)])
