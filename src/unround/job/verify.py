"""Does an audit folder hold what its audit found? Files against their hashes, certificates against what was published.

A certificate by itself proves something about the system that stands in it. Here that system is compared with the audit's
own model and published counts, and what it proves with the findings. Nothing of the engines is used: what is possible is
left to `check_proof`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from unround.audits.certificates import conditions_of, proofs_in, read_proof
from unround.audits.claims import ClaimKind
from unround.audits.figures import published_figure
from unround.bounds.prover import BETWEEN
from unround.errors import InputError
from unround.job.folder import FILES, FINDINGS, OURS, PROOFS, PUBLISHED, RUN, SUMMARY, AuditFolder, Damaged
from unround.mechanisms import Suppressed, Unpublished, Within
from unround.proofs import Proof, fault_in_proof, proof_in_words
from unround.release import ABSENT, SUPPRESSED, Counts, adjustable, told_range
from unround.shown import Plain, Shown
from unround.system import Cell, PublishedFigure, Sum, System

CERTAIN = tuple(kind.label for kind in (ClaimKind.PROVED, ClaimKind.CONDITIONAL))

AT_ONCE = 2_000
"""Areas whose published counts are kept in memory."""


@dataclass(frozen=True, slots=True)
class Verification(Plain, Shown):
    """What was verified, and what is wrong.

    - `files`, `certificates`, `findings`: How many were looked at: files with a hash, certificates, and proved or
      conditional findings.
    - `problems`: What is wrong, a sentence each; none if all is as it should be.
    """

    ALSO = ("holds",)

    files: int
    certificates: int
    findings: int
    problems: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def verify(path: Path, progress: Callable[[str, int, int], None] = lambda *_: None) -> Verification:
    """Check every file of an audit against its hash, and every certificate against the audit's model and published counts.

    Parameters
    ----------
    path : Path
        The audit's folder.
    progress : function
        Is told what is being done, and how far it is.

    Raises
    ------
    InputError
        If there is no audit in the folder, or one of another version.
    """
    try:
        folder = AuditFolder.open(path)
    except Damaged as error:
        return Verification(0, 0, 0, (f"{error.name} {error.how}.",))
    problems = list(_files(folder))
    if any(name in problem for problem in problems for name in (PROOFS, FINDINGS, PUBLISHED)):
        return Verification(len(folder.summary[FILES]), 0, 0, tuple(problems))  # there is nothing to compare with
    claimed = _claimed(folder)
    checked = _Certificates(folder)
    proved = Counter[tuple[str, ...]]()
    try:
        for number, line in enumerate(proofs_in(folder.file(PROOFS)), 1):
            progress("Checking certificates", number, max(len(claimed), number))
            where, fault = checked.fault(line, claimed)
            proved[where] += 1
            if fault:
                problems.append(f"{PROOFS}, line {number}: {fault}.")
    except InputError as error:
        problems.append(str(error))
    missing = [where for where in claimed if not proved[where]]
    problems += [
        f"{FINDINGS}: {' '.join(where)} is said to be {claimed[where][0]}, without a certificate." for where in missing
    ]
    problems += [f"{PROOFS}: {' '.join(where)} has {times} certificates." for where, times in proved.items() if times > 1]
    return Verification(len(folder.summary[FILES]), sum(proved.values()), len(claimed), tuple(problems))


def _files(folder: AuditFolder) -> Iterator[str]:
    """Say which files are missing, changed, or without a hash."""
    hashed = folder.summary[FILES]
    for name in hashed:
        try:
            folder.file(name)
        except Damaged as error:
            yield f"{error.name} {error.how}."
    for name in OURS:
        path = folder.path / name
        there = [path] if path.is_file() else sorted(path.rglob("*")) if path.is_dir() else []
        for one in there:
            short = one.relative_to(folder.path).as_posix()
            if one.is_file() and short not in hashed and short not in (SUMMARY, RUN):
                yield f"{short} was put there after the audit."


def _claimed(folder: AuditFolder) -> dict[tuple[str, ...], tuple[str, int, int | None]]:
    """Return what findings claim to be certain: kind, value and published count, by area and key."""
    import polars as pl

    axes, codes = folder.area_axes, folder.axes
    keys = {column.codes: column.key for column in folder.model.columns}
    found = folder.findings.filter(pl.col("kind").is_in(CERTAIN))
    return {
        (*(str(row[axis]) for axis in axes), keys.get(tuple(row[code] for code in codes), "")): (
            row["kind"],
            row["value"],
            row["published"],
        )
        for row in found.iter_rows(named=True)
    }


class _Certificates:
    """Compares certificates with what an audit knows."""

    def __init__(self, folder: AuditFolder) -> None:
        self.folder, self.model, self.nested = folder, folder.model, folder.nested
        self.axes = folder.area_axes
        self.sums = {self.model.sum_named(e): e for e in range(len(self.model.equations))}
        self._counts: dict[int, Counts] = {}

    @cached_property
    def rows(self) -> dict[tuple[str, ...], int]:
        """Where areas are, by all of their codes."""
        return {tuple(map(str, codes)): row for row, codes in enumerate(self.folder.areas.select(self.axes).iter_rows())}

    @cached_property
    def named(self) -> dict[str, int]:
        """Where areas are, by what certificates of families call them."""
        return {codes[0].replace(BETWEEN, " "): row for codes, row in self.rows.items()}

    @cached_property
    def adjustable(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """In which areas the agency may have adjusted exact counts."""
        return adjustable(self.folder.areas)

    def fault(
        self, line: str, claimed: Mapping[tuple[str, ...], tuple[str, int, int | None]]
    ) -> tuple[tuple[str, ...], str | None]:
        """Return which count a certificate is about, and what is wrong with it, if anything."""
        try:
            told = json.loads(line)
            system, proof = read_proof(told)
            where = (*(str(told[axis]) for axis in self.axes), str(told["key"]))
            return where, self._fault(told, where, system, proof, claimed.get(where))
        except (InputError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            return (), f"this is not a certificate ({error!r:.200})"

    def _fault(
        self,
        told: Mapping[str, Any],
        where: tuple[str, ...],
        system: System,
        proof: Proof,
        claim: tuple[str, int, int | None] | None,
    ) -> str | None:
        problem = fault_in_proof(system, proof)
        if problem is not None:
            return f"it does not check: {problem}"
        row = self.rows.get(where[:-1])
        if row is None or where[-1] not in self.model.index:
            return f"there is no count {' '.join(where)} in this audit"
        places = {cell["name"]: self._place(cell, row) for cell in told["cells"]}
        if places.get(proof.cell) != (row, self.model.index[where[-1]]):
            return f"it is filed under {' '.join(where)}, but proves {proof.cell}"
        kind = told["kind"]
        for cell in system.cells:
            if not self._as_published(cell, *places[cell.name], kind):
                return f"{cell.name} was not published as it says ({cell.published}, {cell.mechanism.name})"
            if kind == ClaimKind.PROVED.label and conditions_of(self.model, [(cell.published, places[cell.name][1])], ()):
                return f"nobody documents or declares how {cell.name} was published, so it proves nothing"
        for one in system.sums:
            wrong = self._sum(one, places, kind)
            if wrong is not None:
                return f"{one.total} = {' + '.join(one.parts)} {wrong}"
        for stated in system.figures:
            wrong = self._figure(stated, row, kind)
            if wrong is not None:
                return f"the figure {stated.figure.name} {wrong}"
        if proof.text != proof_in_words(system, proof, {}):
            return "its text is not what its steps say"
        published = int(self._published(row)[places[proof.cell][1]])
        if claim != (kind, proof.value, published if published > ABSENT else None):
            return f"it is not what {FINDINGS} says of {' '.join(where)}"
        return None

    def _place(self, cell: Mapping[str, Any], row: int) -> tuple[int, int]:
        """Return the area and the column of a certificate's cell; those of a family say which area they are of."""
        if "area" in cell:
            return self.named[cell["area"]], self.model.index[cell["key"]]
        return row, self.model.index[cell["name"]]

    def _published(self, row: int) -> Counts:
        if row not in self._counts:
            first = row - row % AT_ONCE
            rows = np.arange(first, min(first + AT_ONCE, self.folder.areas.height))
            self._counts = dict(zip(rows.tolist(), self.folder.counts_of(rows), strict=True))
        return self._counts[row]

    def _figure(self, stated: PublishedFigure, row: int, kind: str) -> str | None:
        """Return what is wrong with a figure of a certificate, if anything: it must be the model's, as published there."""
        if kind == ClaimKind.PROVED.label:
            return "was not documented to be of true counts, which proves nothing"
        named = {one.figure.name: f for f, one in enumerate(self.model.figures)}
        values = self.folder.figures_of(np.array([row]))
        if values is None or stated.figure.name not in named:
            return "is not a figure of this release that was found to be of true counts"
        known = published_figure(self.model, self._published(row), values[0], named[stated.figure.name])
        # Labels say nothing; all else is what the inequality follows from.
        same = known is not None and known.to_json() == stated.to_json()
        return None if same else "was not published as it says"

    def _as_published(self, cell: Cell, row: int, column: int, kind: str) -> bool:
        """Whether a cell says of itself no more than the release does."""
        if isinstance(cell.mechanism, Unpublished):
            return cell.published is None
        published, how = int(self._published(row)[column]), self.model.mechanisms[column]
        if (told := told_range(published)) is not None:
            return cell.published is None and cell.mechanism == Suppressed(*told)
        if isinstance(cell.mechanism, Suppressed) and cell.mechanism != how:
            return cell.published is None and self._is_limited(cell.mechanism, row, column, kind)
        shown = published if published > ABSENT else None
        if cell.published != shown or (shown is None and published != SUPPRESSED):
            return False
        within = int(self.model.adjusted[column]) if self.adjustable[row] else 0
        if within and shown is not None:
            return cell.mechanism == Within(within) or (kind != ClaimKind.PROVED.label and cell.mechanism == how)
        return cell.mechanism == how

    def _is_limited(self, how: Suppressed, row: int, column: int, kind: str) -> bool:
        """Whether a hidden cell is bounded by the people or households that were published of its area, and no further."""
        counts, moved = self._published(row), self.adjustable[row]
        limits = {self.model.limit(counts, column, lambda one: int(self.model.adjusted[one]) if moved else 0)}
        if kind != ClaimKind.PROVED.label:  # the assumption may be that the population was not adjusted
            limits.add(self.model.limit(counts, column, lambda _: 0))
        return any(most is not None and how == Suppressed(0, most) for most in limits)

    def _sum(self, one: Sum, places: Mapping[str, tuple[int, int]], kind: str) -> str | None:
        """Return what is wrong with a sum of a certificate, if anything."""
        total, parts = places[one.total], [places[part] for part in one.parts]
        proved = kind == ClaimKind.PROVED.label
        if {row for row, _ in parts} == {total[0]}:
            named = Sum(self.model.columns[total[1]].key, tuple(self.model.columns[column].key for _, column in parts))
            e = self.sums.get(named)
            if e is None:
                return "is no sum of this release"
            sure = self.model.origins[e] != "data" and not self.model.doubtful[e] and not self.model.conditions.of_sums((e,))
            return None if sure or not proved else "rests on what nobody documents or declares, which proves nothing"
        children = set() if self.nested is None else set(np.flatnonzero(self.nested.parent == total[0]).tolist())
        rows = [row for row, _ in parts]
        if not children or set(rows) != children or len(rows) != len(children) or {c for _, c in parts} != {total[1]}:
            return "is no sum over areas of this release"
        assert self.nested is not None
        sure = self.nested.sure[total[0]] and not self.model.conditions.areas
        return None if sure or not proved else "rests on a list of areas that may not be complete"
