"""What a review has to say: the decision, and everything that led to it. docs/review.md tells what each field means."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from unround._version import __version__
from unround.release import Entry
from unround.reviews.decision import EXIT_CODES, Reason, Unsettled
from unround.reviews.policy import RANGE, Policy
from unround.shown import Plain, Shown, plain

MOST_CELLS = 10_000
"""Cells to act on that JSON lists; the workbook has them all."""

TOGETHER = "together"
"""What all tables of a review are called together."""


@dataclass(frozen=True, slots=True)
class CellToActOn(Plain):
    """A cell that falls under a limit which is exceeded."""

    ASIDE = ("row", "column")

    cell: str
    area: str
    area_name: str
    key: str
    what: str
    codes: tuple[str, ...]
    published: int | None
    claim: str
    value: int
    size: str
    low: int
    high: int | None
    probability_low: float | None
    probability_high: float | None
    limits: tuple[int, ...]
    rules: tuple[str, ...]
    because: str
    row: int
    column: int
    action: str = ""
    comment: str = ""

    @property
    def said(self) -> str:
        """What readers can tell, in words."""
        return {
            "unrounded": "it is printed unrounded",
            "proved": f"it is {self.value:,}: proved",
            "conditional": f"it is {self.value:,}: proved under an assumption",
            "likely": f"it is likely {self.value:,}",
            RANGE: "its size",
        }[self.claim]

    @property
    def range(self) -> str:
        """The possible counts, in words."""
        if self.high is None:
            return f"{self.low:,} or more"
        return f"{self.low:,}" if self.low == self.high else f"{self.low:,} to {self.high:,}"

    @property
    def rule(self) -> str:
        """The rules that it breaks."""
        return "; ".join(self.rules)


@dataclass(frozen=True, slots=True)
class LimitFound(Plain):
    """A limit of the policy, and how many counts fall under it."""

    sentence: str
    name: str
    found: str
    number: int
    accepted: int
    allowed: int
    exceeded: bool


@dataclass(frozen=True, slots=True)
class RepairCost(Plain):
    """What readers lose by a repair: counts, exact counts, and how much farther from the truth the others are on average."""

    columns_dropped: tuple[str, ...]
    counts_lost: int
    unrounded_lost: int
    mean_added_error: float | None
    error_is: str
    largest_error: int | None


@dataclass(frozen=True, slots=True)
class TriedRepair(Plain):
    """A repair that was tried: what it leaves, by the same policy, and what it costs."""

    rank: int
    name: str
    action: str
    method: str
    publications: int
    within_policy: bool
    cells_left: float
    cells_left_most: int
    left: float | None
    claims: Mapping[str, float]
    reasons: tuple[Reason, ...]
    cost: RepairCost
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NotTried(Plain):
    """A repair that does not apply, and why."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class ReviewExample(Plain):
    """The first cell that takes an argument: the proof, or the sums around it."""

    cell: str
    area: str
    what: str
    published: int | None
    claim: str
    value: int
    probability_high: float | None
    argument: Any
    sums: Sequence[Any]


@dataclass(frozen=True, slots=True)
class ColumnRead(Plain):
    """How a column was read."""

    key: str
    what: str
    mechanism: str


@dataclass(frozen=True, slots=True)
class ReadingOfTable(Plain):
    """How a table was read: what each column is, which sums hold, and what was left out; and the hash of it all."""

    columns: tuple[ColumnRead, ...]
    sums: tuple[str, ...]
    over_areas: bool
    figures: tuple[str, ...]
    hidden: int
    account: tuple[Entry, ...]
    sha256: str = ""

    def signed(self, fingerprint: str) -> ReadingOfTable:
        """Return it with the hash of what it says of counts with this fingerprint."""
        content = {name: value for name, value in self.to_json().items() if name != "sha256"}
        digest = hashlib.sha256(json.dumps(content, ensure_ascii=False, sort_keys=True).encode())
        digest.update(fingerprint.encode())
        return replace(self, sha256=digest.hexdigest())


@dataclass(frozen=True, slots=True)
class PictureRow(Plain):
    """A row of the table: of each cell what is printed, its kind, and the least and the most that readers can tell."""

    area: str
    cells: Sequence[tuple[int | None, str, tuple[int, int | None]]]


@dataclass(frozen=True, slots=True)
class TablePicture(Plain):
    """The table itself with the kind of every cell; of a large one, the rows with cells to act on."""

    columns: tuple[str, ...]
    rows: tuple[PictureRow, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class TableFacts(Plain):
    """What was reviewed."""

    source: str
    product: str | None
    areas: int
    columns: int
    counts: int
    hidden: int
    mechanisms: Mapping[str, str]
    sums: int
    fingerprint: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Review(Plain, Shown):
    """The decision on a draft table or on several, and everything that led to it.

    - `decision`: "publish", "undecided", "revise" or "stop".
    - `unsettled`: What keeps it from being published, though nothing is known to be wrong with it.
    - `folder`: Where it was written.
    """

    ALSO: ClassVar[tuple[str, ...]] = ("exit_code",)
    ASIDE: ClassVar[tuple[str, ...]] = ("folder",)

    decision: str
    unsettled: tuple[Unsettled, ...]
    policy: Policy
    reviewer: str
    date: str
    seed: int
    command: str
    notes: tuple[str, ...]
    unround: str = __version__
    folder: Path | None = None

    @property
    def exit_code(self) -> int:
        """The exit code of the command: 0, 4, 5 or 6."""
        return EXIT_CODES[self.decision]

    @property
    def tables(self) -> Sequence[TableReview]:
        """The review of every table, and at the end that of all of them together, where there are several."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, kw_only=True)
class TableReview(Review):
    """The decision on one table, or on several as if they were one."""

    ALSO = (*Review.ALSO, "cells_to_act_on")

    name: str
    reasons: tuple[Reason, ...]
    cells: tuple[CellToActOn, ...]
    example: ReviewExample | None
    limits: tuple[LimitFound, ...]
    claims: Mapping[str, Mapping[str, int]]
    likely_alone: int
    repairs: tuple[TriedRepair, ...]
    not_tried: tuple[NotTried, ...]
    worlds: Mapping[str, Any] | None
    check: Mapping[str, Any]
    selfcheck: Mapping[str, Any] | None
    exceptions: tuple[Mapping[str, Any], ...]
    exceptions_not_applied: tuple[Mapping[str, Any], ...]
    ignored: tuple[Mapping[str, Any], ...]
    table: TableFacts
    reading: ReadingOfTable
    picture: TablePicture | None
    files: tuple[Mapping[str, Any], ...]
    draws: int
    diff: Mapping[str, Any] | None = None
    repaired: Mapping[str, str] | None = None

    @property
    def cells_to_act_on(self) -> int:
        """How many cells there are to act on."""
        return len(self.cells)

    @property
    def tables(self) -> Sequence[TableReview]:
        """Only this one."""
        return (self,)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        few = self if len(self.cells) <= MOST_CELLS else replace(self, cells=self.cells[:MOST_CELLS])
        return Plain.to_json(few) | {"cells_to_act_on": len(self.cells)}


@dataclass(frozen=True, eq=False, kw_only=True)
class JointReview(Review):
    """The one decision on several tables: that of the worst.

    - `each`: The review of every table; then of all together, where that could be done.
    - `places`: The folders in which they are.
    """

    each: tuple[TableReview, ...]
    places: tuple[str, ...]

    @property
    def tables(self) -> Sequence[TableReview]:
        """The review of every table; then of all together."""
        return self.each

    @property
    def files(self) -> list[Mapping[str, Any]]:
        """All files that were read, each once."""
        alone = [table for table in self.each if table.name != TOGETHER]
        return list({file["sha256"]: file for table in alone for file in table.files}.values())

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data: what is said of the tables, with their names; and everything about each."""

        def all_of(name: str) -> list[dict[str, Any]]:
            return [plain(entry) | {"table": table.name} for table in self.each for entry in getattr(table, name)]

        together = {name: value for name, value in Plain.to_json(self).items() if name not in ("each", "places")}
        return together | {
            "tables": [table.to_json() | {"folder": place} for table, place in zip(self.each, self.places, strict=True)],
            **{name: all_of(name) for name in ("reasons", "exceptions", "ignored")},
            "cells": all_of("cells")[:MOST_CELLS],
            "cells_to_act_on": sum(len(table.cells) for table in self.each),
            "limits": plain(self.each[0].limits),
            "files": self.files,
        }
