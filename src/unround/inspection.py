"""Inspect a release: what is in it, how it was published, which sums hold, and which published figures are inconsistent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unround.audits.block import Auditor
from unround.audits.model import Model, block_size, display_name
from unround.checks import Check, check_spool
from unround.output import scratch_folder
from unround.prior import Prior
from unround.release import ABSENT, Release, adjustable, table_of, why_absent
from unround.score.summary import contradiction_rows
from unround.shown import Tabular, plain
from unround.structure import JudgedSum, Nesting, Structure, find_nesting
from unround.tables.account import account
from unround.tables.spool import Spool, Stage, survey

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl


@dataclass(frozen=True, slots=True)
class TableInside:
    """One table of a release: its columns in the file, how they were published (None: not known), and its sums.

    Of the sums, `documented` ones are those that layout, names, universes or the user announce; `found` ones the counts
    alone; `rejected` are candidates of either kind that were not believed.
    """

    table: str
    columns: int
    mechanisms: tuple[str | None, ...]
    sums: Mapping[str, int]


@dataclass(frozen=True)
class Inspection(Tabular):
    """What is in a release.

    - `release`, `structure`: What was published, and how it adds up.
    - `areas`: How many there are.
    - `levels`: How many of each level, where the file says.
    - `cells`: How many counts are published, and how many are missing for which reason.
    - `contradictions`: Sums that cannot hold in an area, with the smallest set of cells that clash.
    - `nesting`: Which areas make up which.
    - `fit`: Whether the data fit the mechanism that was declared for them, or inferred.
    """

    release: Release
    structure: Structure = field(repr=False)
    areas: int
    levels: Mapping[str, int]
    cells: Mapping[str, int]
    contradictions: list[dict[str, Any]] = field(repr=False)
    nesting: Nesting = field(repr=False)
    fit: Check = field(repr=False)

    def toml(self, where: Path | None = None) -> str:
        """Draft a description: the text of a TOML with what was found, to be edited and given back as `describe`."""
        from unround.tables.draft import drafted

        return drafted(self.release, self.structure, where)

    @property
    def verdict(self) -> str:
        """Whether the data fit the mechanism: the worst verdict on any family of sums."""
        return self.fit.verdict

    def to_polars(self) -> pl.DataFrame:
        """Return the families of sums that were tested, the worst first."""
        return self.fit.to_polars()

    @property
    def notes(self) -> list[str]:
        """What is to be known of it besides; first what keeps an audit from being made."""
        return [*filter(None, [self.release.obstacle]), *self.release.notes, *self.structure.notes]

    def tables(self) -> list[TableInside]:
        """Return the tables of the release, in its order; columns that stand in none come under ""."""
        structure = self.structure
        members: dict[str, list[int]] = {}
        for at, column in enumerate(self.release.columns):
            if column.is_in_file:
                members.setdefault(column.block, []).append(at)
        kept = Counter((table_of(self.release.columns, *judged.equation), judged.is_documented) for judged in structure.sums)
        rejected = Counter(table_of(self.release.columns, *judged.equation) for judged in structure.rejected)
        kinds = {at: how.name if how else None for at, how in enumerate(structure.mechanisms)}
        return [
            TableInside(
                name,
                len(those),
                tuple(dict.fromkeys(kinds[at] for at in those)),
                {"documented": kept[name, True], "found": kept[name, False], "rejected": rejected[name]},
            )
            for name, those in members.items()
        ]

    def sum_in_words(self, checked: JudgedSum) -> str:
        """Return a sum in words, long ones shortened."""
        columns = [self.release.columns[c] for c in (checked.total, *checked.parts)]
        total, *parts = [display_name(column) for column in columns]
        shown = " + ".join(parts) if len(parts) <= 6 else f"{parts[0]} + {parts[1]} + … + {parts[-1]} ({len(parts)} parts)"
        return f"{total} = {shown}"

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        structure, columns = self.structure, self.release.columns
        return {
            "source": self.release.source,
            "format": self.release.file_format,
            "product": self.release.product,
            "areas": self.areas,
            "levels": dict(self.levels),
            "columns": sum(column.is_in_file for column in columns),
            "added_totals": [column.key for column in columns if not column.is_in_file],
            "tables": plain(self.tables()),
            "cells": dict(self.cells),
            "figures": [figure.to_json() for figure in structure.figures],
            "left_out": {why: list(labels) for why, labels in self.release.left_out.items()},
            "account": [entry.to_json() for entry in account(self.release, structure)],
            "mechanisms": [
                {
                    "block": evidence.block,
                    "mechanism": evidence.mechanism.name if evidence.mechanism else None,
                    "columns": [columns[c].key for c in evidence.columns],
                    "suggested": evidence.suggested.name if evidence.suggested else None,
                    "why": evidence.why,
                }
                for evidence in structure.how
            ],
            "noise": [noise.to_json([column.key for column in columns]) for noise in structure.noise],
            "sums": [self._sum_json(judged) for judged in structure.sums],
            "rejected": [self._sum_json(judged) for judged in structure.rejected],
            "repeats": [
                {"columns": [columns[c].key for c in repeat.columns], "alike": repeat.alike, "why": repeat.why}
                for repeat in structure.repeats
            ],
            "nesting": self.nesting.to_json(),
            "contradictions": self.contradictions,
            "fit": self.fit.to_json(),
            "notes": self.notes,
        }

    def _sum_json(self, judged: JudgedSum) -> dict[str, Any]:
        columns = self.release.columns
        return {
            "total": columns[judged.total].key,
            "parts": [columns[part].key for part in judged.parts],
            "table": table_of(columns, *judged.equation),
            "origin": judged.origin,
            "ground": judged.ground,
            "compared_with": [columns[part].key for part in judged.against],
            "areas": judged.areas,
            "impossible": judged.impossible,
            "mean_residual": judged.mean,
            "spread": judged.spread,
            "expected_spread": judged.expected,
            "kept": judged.kept,
            "why": judged.why,
        }


def inspect(release: Release, progress: Stage = lambda *_: None) -> Inspection:
    """Describe a release, test it, and list its inconsistencies, without inferring any count."""
    with scratch_folder("inspect") as work:
        spool, structure = survey(release, work, progress, insist=False)
        levels = Counter(spool.areas["level"].to_list()) if "level" in spool.areas.columns else Counter[str]()
        return Inspection(
            release,
            structure,
            spool.rows,
            {str(level): number for level, number in levels.items() if level},
            _tally(spool, np.array([column.is_in_file for column in release.columns])),
            _contradictions(release, spool, structure, progress) if structure.equations else [],
            find_nesting(spool.areas, spool.pick, structure, release.areas),
            check_spool(release, spool, structure, progress),
        )


def _tally(spool: Spool, in_file: NDArray[np.bool_]) -> dict[str, int]:
    """Count what is published and what is missing."""
    tally = Counter[str]()
    for block in spool.blocks(4096):
        counts = block.counts if in_file.all() else block.counts[:, in_file]
        there = counts > ABSENT
        tally["published"] += int(there.sum())
        for code, number in zip(*np.unique(counts[~there], return_counts=True), strict=True):
            tally[why_absent(int(code)) or "not a count"] += int(number)
    return dict(tally)


def _contradictions(release: Release, spool: Spool, structure: Structure, progress: Stage) -> list[dict[str, Any]]:
    model = Model.of(structure)
    auditor = Auditor(model, Prior.flat())
    rows: list[dict[str, Any]] = []
    done = 0
    for block in spool.blocks(block_size(len(model.columns))):
        progress("Checking", done, spool.rows)
        counts = model.counts_of(block.counts)
        clashes = auditor.documented(counts, adjustable(block.areas)).contradictions
        for clash, row in zip(clashes, contradiction_rows(model, clashes, counts), strict=True):
            where = {axis: block.areas[axis][clash.area] for axis in release.areas}
            rows.append(where | {name: text for name, text in row.items() if name != "area"})
        done += len(counts)
    return rows
