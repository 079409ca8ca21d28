"""Are drafts read right, and decided right? Prints a line for every draft that is not, and the numbers.

python -m tests.drafts.score [NAME…] [--keep FOLDER] [--small 1000]
"""

from __future__ import annotations

import argparse
import itertools
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from python_calamine import CalamineWorkbook

import unround
from tests.drafts import small
from tests.drafts.corpus import DRAFTS, Draft, build
from tests.drafts.tables import Labels, Table

RIGHT = {"leaky": ("revise", "stop"), "healthy": ("publish",), "open": ("undecided", "stop", "error")}
ABSENT, EXACTLY = -1_047_483_632, -2_047_483_632
"""Numbers up to the first are codes, not counts; from the second on they tell a count that is printed unrounded."""


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
    found = review.to_json()  # type: ignore[attr-defined]
    unsettled = [f"{entry.get('what')}: {entry.get('settle')}" for entry in found.get("unsettled", ())]
    reasons = [
        reason if isinstance(reason, str) else str(reason.get("sentence", reason)) for reason in found.get("reasons", ())
    ]
    return " | ".join([*unsettled, *reasons])[:400]


# --- reading -------------------------------------------------------------------------------------------------------------


def read_wrongly(draft: Draft, path: Path) -> str:
    """Return what is read wrongly (a count that is missing, misplaced or another number; a sum), or ""."""
    try:
        found = list(_releases(path))
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    faults = []
    for at, table in enumerate(draft.tables):
        wrong = [_table_wrongly(table, release) for release in found]
        if all(wrong):
            faults.append(
                (f"table {at + 1}: " if len(draft.tables) > 1 else "")
                + min(wrong, key=lambda fault: (not fault.startswith("sum"), len(fault)))
            )
    return "; ".join(faults)


def _releases(path: Path) -> Iterable[unround.Release]:
    """Yield what is read from a file: one release, or one for every sheet."""
    first = unround.read(path)
    yield first
    if path.suffix in (".xlsx", ".ods"):
        names = CalamineWorkbook.from_path(str(path)).sheet_names
        for name in names if len(names) > 1 else ():
            try:
                yield unround.read(path, sheet=name)
            except unround.UnroundError:
                continue


def _table_wrongly(table: Table, release: unround.Release) -> str:
    cells, columns, parents = _cells(table, release)
    meant = table.meant
    twice = [cell for cell, number in Counter(cell for cell, _ in cells).items() if number > 1]
    if twice:
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
    return _sums_wrongly(table, release, columns, parents)


def _named(cells: list) -> str:
    return ", ".join("/".join(map(str, cell)) for cell in cells[:2])


def _cells(
    table: Table, release: unround.Release
) -> tuple[list[tuple[Labels, int | None]], dict[str, Labels], list[tuple[str, str]]]:
    """Return the counts of a release at their places in the table, what its columns are, and which area is within which."""
    out, parents = [], []
    names = [_Names(axis.printed, axis.total) for axis in table.axes]
    heads = _row_words(release)
    rows_axis = [2 * sum(_Names.plain(label) in heads for label in axis.printed) > len(axis.printed) for axis in table.axes]
    columns = {}
    for column in release.columns:
        words = [*column.codes, column.label, column.key]
        columns[column.key] = tuple("" if is_row else axis.of(words) for axis, is_row in zip(names, rows_axis, strict=True))
    for block in release.blocks():
        text = [
            name
            for name in block.areas.columns
            if str(block.areas[name].dtype) == "String" and name not in ("level", "parent")
        ]
        for at, row in enumerate(block.areas.select(text).iter_rows()):
            words = [word for word in row if word]
            here = [axis.of(words) if is_row else "" for axis, is_row in zip(names, rows_axis, strict=True)]
            if "parent" in block.areas.columns and block.areas["parent"][at] is not None:
                parents.append(
                    (
                        str(here),
                        str(
                            [
                                axis.of([block.areas["parent"][at]]) if is_row else ""
                                for axis, is_row in zip(names, rows_axis, strict=True)
                            ]
                        ),
                    )
                )
            for column, count in zip(release.columns, block.counts[at], strict=True):
                if not column.is_in_file:
                    continue
                cell = tuple(own or across for own, across in zip(here, columns[column.key], strict=True))
                told = int(count) if count > ABSENT else int(count) - EXACTLY if count >= EXACTLY else None
                out.append((cell, told))
    return out, columns, parents


def _row_words(release: unround.Release) -> set[str]:
    return {
        _Names.plain(word)
        for block in release.blocks()
        for name in block.areas.columns
        if str(block.areas[name].dtype) == "String" and name not in ("level", "parent")
        for word in block.areas[name]
        if word
    }


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
        for label, look in self.looks:
            if any(look.search(word) for word in plain):
                return label
        return self.total or f"not known: {' '.join(plain)}"


# --- sums ----------------------------------------------------------------------------------------------------------------


def _sums_wrongly(table: Table, release: unround.Release, columns: dict[str, Labels], parents: list[tuple[str, str]]) -> str:
    """Return what is wrong about sums: those meant must follow from those found, and those found must hold in truth."""
    across = [axis for axis, label in zip(table.axes, next(iter(columns.values())), strict=True) if label]
    places = {labels: at for at, labels in enumerate(dict.fromkeys(columns.values()))}
    found = []
    for kept in _sums(release):
        total, parts = kept
        if total in columns and all(part in columns for part in parts):
            found.append({columns[total]: -1} | {columns[part]: 1 for part in parts})
    rows = [axis for axis in table.axes if axis not in across]
    for factors in found:
        for labels, value in _in_truth(table, rows, factors):
            if value:
                return f"sums: {factors} does not hold in {labels}"
    meant = []
    for total, parts in table.sums:
        if all(part in table.published for part in parts) and total in table.published:
            cut = [
                tuple(label if axis in across else "" for axis, label in zip(table.axes, cell, strict=True))
                for cell in (total, *parts)
            ]
            if len(set(cut)) > 1 and cut not in meant:
                meant.append(cut)
    if missing := [cut for cut in meant if not _follows(cut, found, places)]:
        total, *parts = ("/".join(filter(None, labels)) for labels in missing[0])
        return f"sums not found: {total} = {' + '.join(parts)}"
    if any(axis.parts for axis in rows) and not parents and not _areas_found(release):
        return "sums not found: over the rows"
    return ""


def _sums(release: unround.Release) -> list[tuple[str, list[str]]]:
    found = unround.check(release).to_json()
    return [(entry["total"], entry["parts"]) for entry in found["sums"] if entry.get("kept", True)]


def _areas_found(release: unround.Release) -> bool:
    found = unround.check(release).to_json()
    return bool(found.get("geography") or (found.get("nesting") or {}).get("linked"))


def _in_truth(table: Table, rows: list, factors: dict[Labels, int]) -> Iterable[tuple[str, int]]:
    """Yield by how much a sum of columns misses, in every row."""
    for labels in itertools.product(*(axis.printed if axis in rows else [""] for axis in table.axes)):
        value = 0
        for column, factor in factors.items():
            value += factor * table.truth[tuple(own or other for own, other in zip(labels, column, strict=True))]
        yield "/".join(filter(None, labels)), value


def _follows(cut: list[Labels], found: list[dict[Labels, int]], places: dict[Labels, int]) -> bool:
    def vector(factors: dict[Labels, int]) -> np.ndarray:
        out = np.zeros(len(places))
        for labels, factor in factors.items():
            out[places[labels]] += factor
        return out

    if any(labels not in places for labels in cut):
        return False
    rows = [vector(factors) for factors in found]
    wanted = vector({cut[0]: -1} | dict.fromkeys(cut[1:], 1))
    return bool(rows) and np.linalg.matrix_rank(np.array(rows)) == np.linalg.matrix_rank(np.array([*rows, wanted]))


# --- the whole -----------------------------------------------------------------------------------------------------------


def score(folder: Path, names: list[str], workers: int = 1) -> list[Verdict]:
    build(folder, names)
    if workers == 1:
        return [judge(name, folder) for name in names]
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        return list(pool.map(judge, names, [folder] * len(names)))


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
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--small", type=int, default=0, help="how many small tables to audit, too")
    options = parser.parse_args()
    names = [name for name in DRAFTS if not options.names or any(part in name for part in options.names)]
    for name in names if options.judge else ():
        if DRAFTS[name].kind not in ("open", found := DRAFTS[name].judged()[0]):
            raise SystemExit(f"{name} is said to be {DRAFTS[name].kind}, and is {found}")
    with tempfile.TemporaryDirectory() as temporary:
        verdicts = score(options.keep or Path(temporary), names, options.workers)
    print(in_words(verdicts))
    bad = any(verdict.decision == "publish" and verdict.kind != "healthy" for verdict in verdicts)
    if options.small:
        bad |= small.main(options.small, options.workers)
    return int(bad)


if __name__ == "__main__":
    raise SystemExit(main())
