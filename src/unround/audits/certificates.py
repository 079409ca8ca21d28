"""Certificates: every proved or conditional claim of a block is written out as a small system with its proof, and checked.

`InferredBlock` holds everything that was inferred about the block.
"""

from __future__ import annotations

import gzip
import json
import shutil
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unround.audits.bounds import UNRESOLVED, Active, BlockBounds, Contradiction, NestedAreas
from unround.audits.claims import BlockClaims, ClaimKind, Needs, RestsOn
from unround.audits.figures import FigureBounds
from unround.audits.model import Model
from unround.audits.suspects import Suspect
from unround.audits.weigh import BlockProbabilities
from unround.bounds.linked import LinkedBounds
from unround.bounds.prover import BETWEEN, FigureGround, Prover, used_by
from unround.errors import InputError
from unround.evidence.cells import EvidenceBlock
from unround.mechanisms import mechanism
from unround.mechanisms.base import BoolArray
from unround.proofs import Proof
from unround.release import ABSENT, Counts
from unround.system import Cell, PublishedFigure, Sum, System

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True, eq=False)
class InferredBlock:
    """What was inferred about a block of areas.

    - `counts`: What was published.
    - `active`: Which sums were used in which area.
    - `documented`: What is possible by what the agency documents.
    - `assumed`: The same if counts that may have been adjusted are exact. The same object where that makes no difference.
    - `probabilities`: What is likely.
    - `claims`: What is claimed.
    - `contradictions`: Published numbers that cannot all be right.
    - `clashing`: The cells in contradictions.
    - `nested`: How areas are nested, where any are linked.
    - `suspects`: Sums that are possible, but absurd: of their areas nothing is claimed but what is proved.
    - `figured`: What is possible if figures were computed from true counts, where there are any.
    """

    counts: Counts
    active: Active
    documented: BlockBounds
    assumed: BlockBounds
    probabilities: BlockProbabilities
    claims: BlockClaims
    contradictions: tuple[Contradiction, ...]
    clashing: BoolArray
    nested: NestedAreas | None = None
    suspects: tuple[Suspect, ...] = ()
    figured: FigureBounds | None = None

    @property
    def by_figures(self) -> BoolArray:
        """Where a claim would not be made, or not be certain, without figures."""
        kinds, marked = self.claims.kinds, np.zeros(self.counts.shape, dtype=np.bool_)
        if self.figured is not None:
            marked |= (kinds == ClaimKind.LIKELY) & (self.claims.needs == Needs.FIGURE)
            certain = self.assumed.tight.low == self.assumed.tight.high
            marked |= (kinds == ClaimKind.CONDITIONAL) & ~certain
        return marked


@dataclass(frozen=True, slots=True)
class Certificate:
    """The proof of one claim, with all that is needed to check it.

    - `area`, `cell`: Where the claim is, in its block.
    - `rests_on`: What it rests on beyond what the agency documents or the user declares.
    - `sums`: The sums within areas that it uses.
    - `system`, `proof`: The cells and sums that matter, and the steps.
    - `areas`: The areas whose sums with each other it needs, where it does.
    - `by_area`: Whether its cells are named by area, because it was found in a family.
    - `figures`: The figures of the model that it uses.
    - `conditions`: What it uses that was inferred: each a sentence, "if …".
    """

    area: int
    cell: int
    rests_on: RestsOn
    sums: tuple[int, ...]
    system: System
    proof: Proof
    areas: tuple[str, ...] = ()
    by_area: bool = False
    figures: tuple[int, ...] = ()
    conditions: tuple[str, ...] = ()

    @property
    def kind(self) -> ClaimKind:
        """Proved, or conditional."""
        return ClaimKind.CONDITIONAL if self.rests_on else ClaimKind.PROVED

    @property
    def because(self) -> tuple[str, ...]:
        """What it rests on, in words: conditions in full."""
        reasons = self.rests_on & ~(RestsOn.INFERRED | RestsOn.SUM_IN_DATA) if self.conditions else self.rests_on
        return (*reasons.texts, *self.conditions)


def certify(model: Model, inferred: InferredBlock, names: Sequence[str] = (), only: int | None = None) -> BlockClaims:
    """Write out and check the certificate of everything in a block that is proved, or would be under an assumption.

    Claims that rest on a cell of a contradiction, on a sum that only the data suggest, or on one that cannot hold somewhere
    else (where something is impossible, something extreme is near) become conditional in the claims that are returned. A
    claim whose certificate would take too many areas is not proved; it may still be likely.

    Raises `InternalError` if a claim has no certificate that checks: it must not be shown as proved.
    """
    claims = inferred.claims
    kinds, depth = claims.kinds.copy(), np.zeros_like(claims.depth)
    written: list[Certificate] = []
    here = np.ones(kinds.shape, dtype=np.bool_)
    if only is not None:
        here[np.arange(len(here)) != only] = False
    by_figures = inferred.by_figures & claims.of_kind(ClaimKind.CONDITIONAL)
    for kind, bounds in ((ClaimKind.PROVED, inferred.documented), (ClaimKind.CONDITIONAL, inferred.assumed)):
        wanted = claims.of_kind(kind) & ~by_figures & here
        written += _certified(model, inferred, bounds, kind, wanted, names)
        if bounds.linked is not None:
            in_family = wanted & bounds.linked.moved
            kinds[in_family] = _uncertified(inferred)[in_family]
    if inferred.figured is not None:
        bounds, wanted = inferred.figured.bounds, by_figures & here
        written += _certified(model, inferred, bounds, ClaimKind.CONDITIONAL, wanted, names, inferred.figured)
    for certificate in written:
        kinds[certificate.area, certificate.cell] = certificate.kind
        depth[certificate.area, certificate.cell] = certificate.proof.depth
    written.sort(key=lambda certificate: (certificate.area, certificate.cell))  # however many areas are in the block
    return replace(claims, kinds=kinds, depth=depth, certificates=tuple(written))


def _uncertified(inferred: InferredBlock) -> np.ndarray[Any, np.dtype[np.int8]]:
    """Return what claims become that have no certificate: likely, where probabilities were linked and agree."""
    likely = inferred.probabilities.posterior.mode == inferred.claims.values
    likely &= inferred.probabilities.linked is not None
    return np.where(likely, np.int8(ClaimKind.LIKELY), np.int8(ClaimKind.OPEN))


def _certified(
    model: Model,
    inferred: InferredBlock,
    bounds: BlockBounds,
    kind: ClaimKind,
    wanted: BoolArray,
    names: Sequence[str],
    figured: FigureBounds | None = None,
) -> Iterator[Certificate]:
    """Prove claims by the sums of their own area, by those of other areas, and by figures where these are given."""
    nested = inferred.nested
    called = [name.replace(BETWEEN, " ") for name in names]
    row_of = {name: row for row, name in enumerate(called)}
    number_of = {model.sum_named(e): e for e in range(len(model.equations))}
    unresolved = {entry.area for entry in inferred.contradictions if entry.kind == UNRESOLVED}

    def place(name: str, here: int) -> tuple[int, str]:
        if name in model.index:
            return here, name
        area, _, key = name.partition(BETWEEN)
        return row_of[area], key

    prover = _prover(model, inferred, bounds, called, figured)
    for area in np.flatnonzero(wanted.any(axis=1)).tolist():
        for column, system, proof in prover.prove(area, np.flatnonzero(wanted[area]).tolist()):
            within, between, complete = list[int](), list[int](), True
            used, figures = used_by(proof)
            for entry in used:
                places = [place(name, area) for name in (entry.total, *entry.parts)]
                if len({row for row, _ in places}) == 1:
                    within.append(number_of[Sum(places[0][1], tuple(key for _, key in places[1:]))])
                else:
                    between += [row for row, _ in places]
                    complete &= nested is not None and bool(nested.sure[places[0][0]])
            cells = [(row, model.index[key]) for row, key in (place(cell.name, area) for cell in system.cells)]
            disturbed = any(row in unresolved or bool(inferred.clashing[row, cell]) for row, cell in cells)
            # Of conditional claims by figures, only those need an exact population that have an adjusted count in them.
            adjusted = [inferred.documented.may_differ_by[at] != bounds.may_differ_by[at] for at in cells]
            population = figured is None or any(adjusted)
            published = zip((cell.published for cell in system.cells), (cell for _, cell in cells), strict=True)
            conditions = conditions_of(model, published, within)
            if between and model.conditions.areas:
                conditions, complete = (*conditions, model.conditions.areas), True
            rests_on = _rests_on(model, kind if population else ClaimKind.PROVED, within, disturbed, conditions)
            rests_on |= RestsOn(0) if complete else RestsOn.COMPLETE_FAMILY
            rests_on |= RestsOn.FIGURES if figures else RestsOn(0)
            yield Certificate(
                area,
                column,
                rests_on,
                tuple(dict.fromkeys(within)),
                system,
                proof,
                areas=tuple(called[row] for row in dict.fromkeys(between)),
                by_area=proof.cell not in model.index,
                figures=tuple(f for f, entry in enumerate(model.figures) if entry.figure.name in figures),
                conditions=conditions,
            )


def _prover(
    model: Model, inferred: InferredBlock, bounds: BlockBounds, called: Sequence[str], figured: FigureBounds | None
) -> Prover:
    """Return what proves the claims of a block under one reading; `called` are the names of its areas."""
    silent = inferred.documented.windows.unbounded & (inferred.counts > ABSENT)  # published, and no count of its mechanism

    def cell_of(area: int, column: int) -> Cell:
        within = bounds.may_differ_by[area]
        return model.cell(column, inferred.counts[area], lambda cell: int(within[cell]), bool(silent[area, column]))

    def published(area: int, figure: int) -> tuple[PublishedFigure, list[int]]:
        assert figured is not None
        stated = figured.published(model, inferred.counts, area, figure)
        assert stated is not None  # it says something
        return stated, [model.index[key] for key in stated.figure.counts]

    linked = bounds.linked or LinkedBounds.none(bounds.tight)
    block = EvidenceBlock(model.compiled, bounds.windows, linked.tight, active=inferred.active)
    columns = np.zeros(len(model.columns), dtype=np.bool_) if inferred.nested is None else inferred.nested.cells
    ground = None if figured is None else FigureGround(figured.rows, published)
    return Prover(block, linked, columns, cell_of, called, ground)


def conditions_of(model: Model, cells: Iterable[tuple[int | None, int]], sums: Iterable[int]) -> tuple[str, ...]:
    """Return what an argument by some cells, each with what was published of it, and by some sums uses that was inferred.

    What was not published says nothing by its mechanism, unless that hides counts.
    """
    used = {cell for published, cell in cells if published is not None or model.hides[cell]}
    return (*model.conditions.of_cells(sorted(used)), *model.conditions.of_sums(sorted(set(sums))))


def _rests_on(model: Model, kind: ClaimKind, sums: Sequence[int], disturbed: bool, conditions: Sequence[str]) -> RestsOn:
    """Return what a proof by these sums rests on."""
    reasons = RestsOn.INFERRED if conditions else RestsOn(0)
    if kind == ClaimKind.CONDITIONAL:
        reasons |= RestsOn.EXACT_POPULATION
    if disturbed:
        reasons |= RestsOn.CORRECT_COUNTS
    if any(model.origins[e] == "data" for e in sums):
        reasons |= RestsOn.SUM_IN_DATA
    if any(model.doubtful[e] for e in sums):
        reasons |= RestsOn.DOUBTFUL_SUM
    return reasons


# -- as plain data ----------------------------------------------------------------------------------------------------


def proof_lines(
    model: Model, written: Iterable[Certificate], areas: pl.DataFrame, axes: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    """Return certificates as plain data, one line each, with all that is needed to check them.

    Where a proof needs other areas, its cells are named by area, and each line tells their areas and keys apart.
    """
    for certificate in written:
        cells = [
            {"name": c.name, "published": c.published, "mechanism": c.mechanism.name, **_apart(c.name, certificate)}
            for c in certificate.system.cells
        ]
        sums = [{"total": s.total, "parts": list(s.parts)} for s in certificate.system.sums]
        where = {axis: areas[axis][certificate.area] for axis in axes}
        named: dict[str, Any] = {"kind": certificate.kind.label, "key": model.columns[certificate.cell].key}
        if certificate.because:
            named["because"] = list(certificate.because)
        figures = (
            {"figures": [stated.to_json() for stated in certificate.system.figures]} if certificate.system.figures else {}
        )
        yield {**where, **named, **certificate.proof.to_json(), "cells": cells, "sums": sums, **figures}


def _apart(name: str, certificate: Certificate) -> dict[str, str]:
    if not certificate.by_area:
        return {}
    area, _, key = name.partition(BETWEEN)
    return {"area": area, "key": key}


LONGEST_LINE = 1 << 24
"""Characters of a certificate at most. A damaged file may unpack to anything."""


def write_proofs(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Write certificates, a line each, as they come: packed, they take a sixteenth of the room."""
    with path.open("wb") as file, gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:  # the same bytes at any time
        for line in lines:
            packed.write(f"{json.dumps(line, ensure_ascii=False)}\n".encode())


def join_proofs(path: Path, parts: Iterable[Path]) -> None:
    """Write the certificates of several files into one, packed anew: the same bytes however many files there were."""
    with path.open("wb") as file, gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
        for part in parts:
            with gzip.open(part, "rb") as lines:
                shutil.copyfileobj(lines, packed)


def proofs_in(path: Path) -> Iterator[str]:
    """Return the lines that `write_proofs` wrote; a byte that is not text is shown as such: its line is not a certificate.

    Raises `InputError` if the file is damaged.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8", errors="backslashreplace") as lines:
            while line := lines.readline(LONGEST_LINE):
                yield line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path.name} cannot be unpacked ({error}). Run the audit again.") from None


def read_proof(line: dict[str, Any]) -> tuple[System, Proof]:
    """Return the system and the proof of a line that `proof_lines` wrote, for `check_proof`.

    Raises `InputError` if the line is not a certificate, or a damaged one.
    """
    try:
        cells = [Cell(c["name"], c["published"], mechanism(c["mechanism"])) for c in line["cells"]]
        sums = [Sum(s["total"], tuple(s["parts"])) for s in line["sums"]]
        fields = ("cell", "value", "text", "depth", "rests_on", "steps")
        figures = [PublishedFigure.of_json(stated) for stated in line.get("figures", ())]
        return System(cells, sums, figures), Proof(**{name: line[name] for name in fields})
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"this is not a certificate from an audit ({error!r}). Run the audit again.") from None
