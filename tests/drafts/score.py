"""Are drafts read right, and decided right? Prints a line for every draft that is not, and the numbers.

python -m tests.drafts.score [NAME…] [--keep FOLDER] [--chance 100] [--small 1000]
"""

from __future__ import annotations

import argparse
import itertools
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from python_calamine import CalamineWorkbook

import unround
from tests.drafts import abroad, chance, fourth, offices, small, third
from tests.drafts.corpus import DRAFTS, Draft, build
from tests.drafts.tables import Labels, Table
from unround import release as release_codes

SETS = (offices, abroad, third, fourth)
"""Modules that enter drafts among those of the corpus."""
RIGHT = {"leaky": ("revise", "stop"), "healthy": ("publish",), "open": ("undecided", "stop", "error")}


@dataclass(frozen=True)
class Verdict:
    name: str
    kind: str
    read: str
    """What was read wrongly; "" where nothing was, or where nobody could read it."""
    decision: str
    question: str
    seconds: float

    @property
    def decided_right(self) -> bool:
        return self.decision in RIGHT[self.kind]


def judge(name: str, folder: Path) -> Verdict:
    """Have the program read and decide one draft."""
    draft, path = DRAFTS[name], folder / name
    read = "" if draft.kind == "open" else read_wrongly(draft, path)
    start = time.perf_counter()
    try:
        review = unround.review(path, repairs=())
        decision, question = review.decision, _question(review)
    except unround.UnroundError as error:
        decision, question = "error", str(error)
    except Exception as error:  # a fault of the program is a finding here
        decision, question = "crash", f"{type(error).__name__}: {error}"
    return Verdict(name, draft.kind, read, decision, question, time.perf_counter() - start)


def _question(review: object) -> str:
    report = review.to_json()  # type: ignore[attr-defined]
    unsettled = [f"{entry.get('what')}: {entry.get('settle')}" for entry in report.get("unsettled", ())]
    reasons = [
        reason if isinstance(reason, str) else str(reason.get("sentence", reason)) for reason in report.get("reasons", ())
    ]
    return " | ".join([*unsettled, *reasons])[:400]


# --- reading -------------------------------------------------------------------------------------------------------------


def read_wrongly(draft: Draft, path: Path) -> str:
    """Return what is read wrongly (a count that is missing, misplaced or another number; a sum), or ""."""
    try:
        read = list(_read(path))
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    faults = []
    for at, table in enumerate(draft.tables):
        wrong = [_table_wrongly(table, release, sums) for release, sums in read]
        if all(wrong):
            faults.append(
                (f"table {at + 1}: " if len(draft.tables) > 1 else "")
                + min(wrong, key=lambda fault: (not fault.startswith("sum"), len(fault)))
            )
    return "; ".join(faults)


def _read(path: Path) -> Iterable[tuple[unround.Release, list[tuple[str, list[str]]]]]:
    """Yield what is read from a file, sheet by sheet: counts, and sums between labels."""
    sheets = CalamineWorkbook.from_path(str(path)).sheet_names if path.suffix in (".xlsx", ".ods") else []
    for sheet in sheets if len(sheets) > 1 else [None]:
        try:
            described = unround.describe(path, sheet=sheet)
            others = [
                unround.describe(path, sheet=sheet, header=other.header, columns=other.letters)
                for other in described.opened.others
                if sheet in (None, other.sheet)
            ]
            releases = [unround.read(path, sheet=sheet), *(other.release for other in others)]
            for table, release in zip((described, *others), releases, strict=True):
                names = {word: " ".join(row) for block in release.blocks() for row in _rows(block) for word in row}
                used = [(entry["total"], entry["parts"]) for entry in table.to_json()["sums"] if entry["used"]]
                yield (
                    release,
                    [(names.get(total, total), [names.get(part, part) for part in parts]) for total, parts in used],
                )
        except unround.UnroundError:
            if len(sheets) < 2:
                raise


def _table_wrongly(table: Table, release: unround.Release, sums: list[tuple[str, list[str]]]) -> str:
    cells = _cells(table, release)
    meant = table.meant
    if twice := [cell for cell, number in Counter(cell for cell, _ in cells).items() if number > 1]:
        return f"read twice: {_named(twice)}"
    read = dict(cells)
    if missing := [cell for cell in meant if cell not in read]:
        return f"{len(missing)} of {len(meant)} counts not read: {_named(missing)}"
    if wrong := [cell for cell in meant if meant[cell] != read[cell]]:
        return f"{len(wrong)} counts read wrongly: " + ", ".join(
            f"{'/'.join(cell)} is {read[cell]}, not {meant[cell]}" for cell in wrong[:2]
        )
    if more := [cell for cell in read if cell not in meant]:
        return f"read though they are not counts: {_named(more)}"
    return _sums_wrongly(table, sums)


def _named(cells: list) -> str:
    return ", ".join("/".join(map(str, cell)) for cell in cells[:2])


def _cells(table: Table, release: unround.Release) -> list[tuple[Labels, int | None]]:
    """Return the counts of a release at their places in the table."""
    out = []
    names = [_Names(axis.printed, axis.total) for axis in table.axes]
    heads = {_Names.plain(word) for block in release.blocks() for row in _rows(block) for word in row}
    down = [2 * sum(_Names.plain(label) in heads for label in axis.printed) > len(axis.printed) for axis in table.axes]
    columns = []
    for column in release.columns:
        words = [*column.codes, column.label, column.key]
        columns.append(["" if is_row else axis.of(words) for axis, is_row in zip(names, down, strict=True)])
    for block in release.blocks():
        for words, counts in zip(_rows(block), block.counts, strict=True):
            here = [axis.of(words) if is_row else "" for axis, is_row in zip(names, down, strict=True)]
            for column, across, count in zip(release.columns, columns, counts, strict=True):
                if column.is_in_file:
                    cell = tuple(own or other for own, other in zip(here, across, strict=True))
                    out.append((cell, _counted(int(count))))
    return out


def _counted(code: int) -> int | None:
    """Return a count; of one that is printed unrounded, that number; None for one that is hidden, or known by a range."""
    if code > release_codes.ABSENT:
        return code
    low, high = release_codes.told_range(code) or (0, 1)
    return low if low == high else None


def _rows(block: object) -> list[list[str]]:
    """Return the words that name each row: codes and names of all its axes."""
    areas = block.areas  # type: ignore[attr-defined]
    text = [name for name in areas.columns if str(areas[name].dtype) == "String" and name not in ("level", "parent")]
    return [[word for word in row if word] for row in areas.select(text).iter_rows()]


class _Names:
    """The labels of an axis, looked for in the words of a cell; where there is none of them, it is the total."""

    def __init__(self, labels: list[str], total: str) -> None:
        self.total = total
        ordered = sorted(labels, key=len, reverse=True)
        self.looks = [
            (label, re.compile(rf"(?<![\w+]){re.escape(self.plain(label))}(?![\w+])")) for label in ordered if label != total
        ]

    @staticmethod
    def plain(label: str) -> str:
        return " ".join(re.sub("[¹²³]", "", label.casefold()).replace("–", "-").split())

    def of(self, words: Iterable[str]) -> str:
        plain = [self.plain(word) for word in words]
        for label, _ in self.looks:
            if self.plain(label) in plain:
                return label
        if self.plain(self.total) in plain and len(self.total.split()) > 2:
            return self.total  # "Totaal mannen en vrouwen" is not "Vrouwen"
        for label, look in self.looks:
            if any(look.search(word) for word in plain):
                return label
        return self.total or f"not known: {' '.join(plain)}"


# --- sums ----------------------------------------------------------------------------------------------------------------


def _sums_wrongly(table: Table, sums: list[tuple[str, list[str]]]) -> str:
    """Return what is wrong about sums: those meant must follow from those found, and those found must hold in truth."""
    for at, axis in enumerate(table.axes):
        places = {label: place for place, label in enumerate(axis.printed)}
        names = _Names(axis.printed, axis.total)
        found = []
        for total, parts in sums:
            known = [names.of([part]) for part in parts]
            if all(part in places and part != axis.total for part in known) and (head := names.of([total])) in places:
                found.append((head, known))
        for total, parts in found:
            if missed := _misses(table, at, total, parts):
                return f"sums: {total} = {' + '.join(parts)} does not hold in {missed}"
        for total, parts in axis.sums:
            if not any(part.startswith("~") for part in parts) and not _follows(total, parts, found, places):
                return f"sums not found: {total} = {' + '.join(parts)}"[:150]
    return ""


def _misses(table: Table, at: int, total: str, parts: list[str]) -> str:
    """Return where a sum along an axis does not hold in truth, "" where it holds everywhere."""
    for labels in itertools.product(*([total] if other == at else axis.printed for other, axis in enumerate(table.axes))):
        if table.truth[labels] != sum(table.truth[(*labels[:at], part, *labels[at + 1 :])] for part in parts):
            return "/".join(labels)
    return ""


def _follows(total: str, parts: list[str], found: list[tuple[str, list[str]]], places: dict[str, int]) -> bool:
    """Return whether a sum is a combination of those that were found."""
    rows = np.zeros((len(found) + 1, len(places)))
    for row, (head, below) in zip(rows, [*found, (total, parts)], strict=True):
        row[places[head]] -= 1
        for part in below:
            row[places[part]] += 1
    return bool(found) and np.linalg.matrix_rank(rows[:-1]) == np.linalg.matrix_rank(rows)


# --- the whole -----------------------------------------------------------------------------------------------------------


def score(folder: Path, names: list[str]) -> list[Verdict]:
    build(folder, names)
    return [judge(name, folder) for name in names]


def in_words(verdicts: list[Verdict]) -> str:
    """Return the numbers, and every draft that is not as it should be."""
    by_kind = {kind: [verdict for verdict in verdicts if verdict.kind == kind] for kind in RIGHT}
    readable = by_kind["leaky"] + by_kind["healthy"]
    published = [verdict for verdict in by_kind["leaky"] + by_kind["open"] if verdict.decision == "publish"]
    lines = [
        f"read right      {sum(not verdict.read for verdict in readable)} of {len(readable)}",
        f"decided right   {sum(verdict.decided_right for verdict in verdicts)} of {len(verdicts)}",
        f"wrong PUBLISH   {len(published)} of {len(by_kind['leaky'] + by_kind['open'])}",
        *(
            f"{kind:15} "
            + ", ".join(
                f"{decision} {number}" for decision, number in Counter(verdict.decision for verdict in group).most_common()
            )
            for kind, group in by_kind.items()
        ),
        f"slowest         {max((verdict.seconds, verdict.name) for verdict in verdicts)}",
        "",
    ]
    for verdict in sorted(verdicts, key=lambda verdict: (verdict not in published, verdict.kind, verdict.name)):
        if verdict.read or not verdict.decided_right:
            mark = "WRONG PUBLISH " if verdict in published else ""
            why = f": {DRAFTS[verdict.name].why}" if DRAFTS[verdict.name].why else ""
            lines.append(f"{mark}{verdict.name} ({verdict.kind}{why}): {verdict.decision}")
            lines += [f"    read: {verdict.read}"] if verdict.read else []
            lines += [f"    said: {verdict.question}"] if verdict.question and not verdict.decided_right else []
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names of drafts; all by default")
    parser.add_argument("--keep", type=Path, help="write the drafts there, and leave them")
    parser.add_argument(
        "--judge", action="store_true", help="have the judge confirm first that each draft is what it is said to be"
    )
    parser.add_argument("--workers", type=int, default=1, help="how many processes audit small tables")
    parser.add_argument("--chance", type=int, default=0, help="how many drafts to draw at random, too")
    parser.add_argument("--small", type=int, default=0, help="how many small tables to audit, too")
    options = parser.parse_args()
    names = [name for name in DRAFTS if not options.names or any(part in name for part in options.names)]
    names += [name for number in range(options.chance) if (name := chance.draw(number))]
    for name in names if options.judge else ():
        if DRAFTS[name].kind not in ("open", found := DRAFTS[name].judged()[0]):
            raise SystemExit(f"{name} is said to be {DRAFTS[name].kind}, and is {found}")
    with tempfile.TemporaryDirectory() as temporary:
        verdicts = score(options.keep or Path(temporary), names)
    print(in_words(verdicts))
    bad = any(verdict.decision == "publish" and verdict.kind != "healthy" for verdict in verdicts)
    if options.small:
        bad |= small.main(options.small, options.workers)
    return int(bad)


if __name__ == "__main__":
    raise SystemExit(main())
