"""From arrays to findings: one row a claim, its route in words, its proof checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unround.audits.contradictions import UNRESOLVED
from unround.audits.inferred import CONDITIONAL, KINDS, LIKELY, OPEN, OTHERS_NEEDED, PROVED, Inferred
from unround.audits.model import Model
from unround.batch.tighten import chain
from unround.batch.types import NO_UPPER_BOUND
from unround.errors import InputError, InternalError
from unround.infer.certify import certificates
from unround.linked.bounds import LinkedBounds
from unround.linked.prover import BETWEEN, Prover
from unround.mechanisms import mechanism
from unround.proofs import Proof, proofs_of
from unround.release import ABSENT
from unround.system import Cell, Sum, System

if TYPE_CHECKING:
    import polars as pl

INDEPENDENT = "independent rounding"
EXACT = "population exact"
UNDISTURBED = "right counts in sums that contradict each other"
FOUND = "a sum that was found in the data"
DOUBTFUL = "a sum that cannot hold in some other area"
FITTED = "the fitted prior"
NESTED = "areas that make up the area that they lie in"
REASONS = (INDEPENDENT, EXACT, UNDISTURBED, FOUND, DOUBTFUL, FITTED, NESTED)
"""What claims rest on beyond what the agency documents; in codes, a bit each."""

ADD_UP = "areas that add up"
"""The route of a claim that other areas make likely."""

MOST_ROUTE = 4
"""Sums that a route names; of longer ones it gives the number."""


@dataclass(frozen=True, slots=True)
class Proved:
    """A proved or conditional claim with its certificate; `because` says on what, a bit of `REASONS` each.

    `others` says that its cells are named by area, because it was found across areas; `across` names the areas whose sums
    with each other it needs.
    """

    area: int
    cell: int
    because: int
    equations: tuple[int, ...]
    system: System
    proof: Proof
    across: tuple[str, ...] = ()
    others: bool = False

    @property
    def kind(self) -> int:
        """Proved, or conditional."""
        return CONDITIONAL if self.because else PROVED


def proofs(model: Model, inferred: Inferred, names: Sequence[str] = (), only: int | None = None) -> list[Proved]:
    """Write out and check the certificate of everything in a block that is proved, or would be under an assumption.

    Claims that rest on a cell of a contradiction, on a sum that only the data suggest, or on one that cannot hold somewhere
    else (next to what is impossible lies what is extreme), become conditional: `inferred.kinds` is changed in place.

    Parameters
    ----------
    model : Model
        The sums.
    inferred : Inferred
        What was inferred about the block.
    names : sequence of str
        What to call the areas, where some lie within others.
    only : int, optional
        The only area whose claims are wanted.

    Raises
    ------
    InternalError
        If a claim has no certificate that checks: it must not be shown as proved.
    """
    written: list[Proved] = []
    kinds = inferred.kinds.copy()  # those of `inferred` change on the way
    unresolved = {one.area for one in inferred.contradictions if one.kind == UNRESOLVED}
    for kind, windows, tight, slack in (
        (PROVED, inferred.documented_windows, inferred.documented, inferred.documented_slack),
        (CONDITIONAL, inferred.windows, inferred.assumed, inferred.slack),
    ):
        within_areas = kinds == kind
        if only is not None:
            within_areas[np.arange(len(kinds)) != only] = False
        if inferred.across is not None:
            bounds = inferred.across.documented if kind == PROVED else inferred.across.assumed
            written += proofs_across(model, inferred, bounds, within_areas & bounds.moved, kind, slack, names)
            within_areas &= ~bounds.moved
        here = np.argwhere(within_areas)
        for area in np.unique(here[:, 0]).tolist():
            cells = here[here[:, 0] == area, 1].tolist()
            chains = [chain(model.compiled, windows, tight, area, cell, inferred.active) for cell in cells]
            within = {int(c): int(slack[area, c]) for c in np.flatnonzero(slack[area])}
            used = sorted({e for one in chains for e in one})
            silent = silent_in(inferred, area)
            system = model.system(inferred.counts[area], used, within, silent)
            wanted = {model.columns[cell].key: cell for cell in cells}
            found = proofs_of(system, certificates(system, [system.index[key] for key in wanted]))
            if len(found) < len(cells):
                missing = sorted(set(wanted) - {proof.cell for proof in found})
                raise InternalError(f"no certificate was found for {', '.join(missing)}")
            named = {model.sum_named(e): e for e in used}
            for proof in found:
                cell = wanted[proof.cell]
                sums = tuple(named[one] for one in _sums_of(proof))
                members = sorted({c for e in sums for c in model.members(e)})
                because = 2 * (kind == CONDITIONAL) + 4 * bool(area in unresolved or inferred.clashing[area, members].any())
                because += 8 * any(model.origins[e] == "data" for e in sums)
                because += 16 * any(model.doubtful[e] for e in sums)
                if because:
                    inferred.kinds[area, cell] = CONDITIONAL
                small = model.system(inferred.counts[area], sums, within, silent)
                written.append(Proved(area, cell, because, sums, small, proof))
    return sorted(written, key=lambda one: (one.area, one.cell))  # however many areas are in the block


def proofs_across(
    model: Model,
    inferred: Inferred,
    bounds: LinkedBounds,
    wanted: NDArray[np.bool_],
    kind: int,
    slack: NDArray[np.int32],
    names: Sequence[str],
) -> list[Proved]:
    """Do the same for claims that need other areas.

    A claim whose certificate would take too many areas is not shown as proved; it may still be likely.
    """
    assert inferred.across is not None
    nested = inferred.across.nested
    called = [f"{name.replace(BETWEEN, ' ')}" for name in names]
    row_of = {name: row for row, name in enumerate(called)}
    sums_of = {model.sum_named(e): e for e in range(len(model.equations))}

    def cell_of(area: int, column: int) -> Cell:
        silent = inferred.documented_windows.start[area, column] < 0 and inferred.counts[area, column] > ABSENT
        return model.cell(column, int(inferred.counts[area, column]), int(slack[area, column]), bool(silent))

    def place(name: str) -> tuple[int, str]:
        area, _, key = name.partition(BETWEEN)
        return row_of[area], key

    prover = Prover(model.compiled, bounds, nested.cells, inferred.active, cell_of, called)
    written = list[Proved]()
    for area in np.flatnonzero(wanted.any(axis=1)).tolist():
        columns = np.flatnonzero(wanted[area]).tolist()
        found = prover.prove(area, columns)
        for column in set(columns).difference(column for column, _, _ in found):
            likely = inferred.linked is not None and inferred.posterior.mode[area, column] == inferred.value[area, column]
            inferred.kinds[area, column] = LIKELY if likely else OPEN
        for column, system, proof in found:
            own, between, because = [], list[int](), 2 * (kind == CONDITIONAL)
            for one in system.sums:
                places = [place(name) for name in (one.total, *one.parts)]
                if len({row for row, _ in places}) == 1:
                    own.append(sums_of[Sum(places[0][1], tuple(key for _, key in places[1:]))])
                else:
                    between += [row for row, _ in places]
                    because |= 64 * (not nested.sure[places[0][0]])
            cells = [place(cell.name) for cell in system.cells]
            because |= 4 * any(inferred.clashing[row, model.index[key]] for row, key in cells)
            because |= 8 * any(model.origins[e] == "data" for e in own) | 16 * any(model.doubtful[e] for e in own)
            if because:
                inferred.kinds[area, column] = CONDITIONAL
            inferred.depth[area, column] = proof.depth
            across = tuple(called[row] for row in dict.fromkeys(between))
            written.append(Proved(area, column, because, tuple(dict.fromkeys(own)), system, proof, across, True))
    return written


def silent_in(inferred: Inferred, area: int) -> frozenset[int]:
    """Return the cells whose published count cannot come from their mechanism: they are treated as not published."""
    misfit = (inferred.documented_windows.start[area] < 0) & (inferred.counts[area] > ABSENT)
    return frozenset(np.flatnonzero(misfit).tolist())


def findings_frame(
    model: Model,
    inferred: Inferred,
    areas: pl.DataFrame,
    axes: tuple[str, ...],
    names: Labels,
    written: list[Proved],
    *,
    fitted: bool,
) -> pl.DataFrame:
    """Return the claims of a block, a row each; `fitted` says that probabilities rest on a fitted prior."""
    import polars as pl

    rows, cells = np.nonzero(inferred.kinds != OPEN)
    kinds = inferred.kinds[rows, cells]
    published = inferred.counts[rows, cells]
    certain = kinds != LIKELY
    bounds = inferred.reach
    low, high = bounds.low[rows, cells].copy(), bounds.high[rows, cells].copy()
    value = inferred.value[rows, cells]
    low[certain], high[certain] = value[certain], value[certain]
    probability = np.where(certain, 1.0, inferred.posterior.probability[rows, cells])
    routes = _routes(model, inferred, rows, cells, written)
    depth = inferred.depth[rows, cells]
    where = {name: areas[name][rows] for name in axes if name in areas.columns}
    if "region_name" in areas.columns:
        where["region_name"] = areas["region_name"][rows]
    return pl.DataFrame(
        {
            **where,
            **{name: column.gather(cells) for name, column in names.columns.items()},
            "published": pl.Series(published).set(pl.Series(published <= ABSENT), None),
            "low": low,
            "high": pl.Series(high).set(pl.Series(high >= NO_UPPER_BOUND), None),
            "value": value,
            "probability": probability,
            "kind": pl.Series(KINDS).gather(kinds),
            "route": routes,
            "depth": pl.Series(depth).set(pl.Series(depth < 0), None),
            "assumptions": names.doubted(
                _assumptions(model, inferred, rows, cells, written, fitted), cells, kinds == PROVED
            ),
            "method": methods_of(inferred, rows),
            **({"observations": observations(model, inferred)[rows, cells]} if model.repeated else {}),
        }
    )


def observations(model: Model, inferred: Inferred) -> NDArray[np.int32]:
    """Return how often each count was published: once, or again in other files."""
    there = inferred.counts > ABSENT
    number = there.astype(np.int32)
    for cell, (first, e) in model.repeated.items():
        number[:, first] += there[:, cell] & inferred.active[:, e]
    return number


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """What findings call a cell: a column an axis, and its label; and what the check of the release found wanting there."""

    columns: dict[str, Any]
    doubts: Any

    @classmethod
    def of(cls, model: Model, axes: tuple[str, ...], doubts: Mapping[int, str]) -> Labels:
        """Take the names from the model's columns, and the doubts by position among the release's."""
        import polars as pl

        named: dict[str, Any] = {}
        for i, axis in enumerate(axes):
            named[axis] = pl.Series(axis, [column.codes[i] for column in model.columns], dtype=pl.String)
            if axis == "characteristic_id":
                label = [column.label for column in model.columns]
                named["characteristic"] = pl.Series("characteristic", label, dtype=pl.String)
        wanting = [f" (the check: {doubts[c]})" if c in doubts else "" for c in model.positions.tolist()]
        return cls(named, pl.Series(wanting, dtype=pl.String))

    def doubted(self, assumptions: pl.Series, cells: Any, proved: Any) -> pl.Series:
        """Mark assumptions that the check found wanting; proofs rest on none of them."""
        import polars as pl

        kept = np.asarray((assumptions == "").to_numpy() | proved)
        marked: pl.Series = assumptions + self.doubts.gather(cells).set(pl.Series(kept), "")
        return marked


def _routes(model: Model, inferred: Inferred, rows: Any, cells: Any, written: list[Proved]) -> pl.Series:
    """Name the sums that led to each claim: those of the proof, or all that the cell stands in."""
    import polars as pl

    unused = frozenset(model.compiled.unused)
    usual = [[e for e in sums if e not in unused] for sums in model.touching]
    routes = pl.Series([_listed(model, sums) for sums in usual], dtype=pl.String).gather(cells)
    proved = {(one.area, one.cell): list(one.equations) for one in written}
    others = {(one.area, one.cell): one.across for one in written if one.across}
    # Only proofs, and areas in which some sum is not used, need a look of their own.
    special = (inferred.kinds[rows, cells] != LIKELY) | ~np.asarray(inferred.active.all(axis=1))[rows]
    places, texts = np.flatnonzero(special), []
    for area, cell in zip(rows[places].tolist(), cells[places].tolist(), strict=True):
        sums = proved.get((area, cell)) or [e for e in usual[cell] if inferred.active[area, e]]
        across = others.get((area, cell))
        texts.append(_areas_listed(across, model, sums) if across else _listed(model, sums))
    routes = routes.scatter(places, texts) if texts else routes
    return _with_others(routes, inferred, rows, cells)


def _areas_listed(across: Sequence[str], model: Model, sums: list[int]) -> str:
    """Name the areas that a proof needs, and its sums within them."""
    shown = f"areas {across[0]} = {' + '.join(across[1 : MOST_ROUTE + 1])}{' + …' if len(across) > MOST_ROUTE + 1 else ''}"
    return f"{shown}; {_listed(model, sums)}" if sums else shown


def _with_others(routes: pl.Series, inferred: Inferred, rows: Any, cells: Any) -> pl.Series:
    """Say of claims that are likely because of other areas that they are."""
    import polars as pl

    if inferred.linked is None:
        return routes
    needed = (inferred.depth[rows, cells] == OTHERS_NEEDED) & (inferred.kinds[rows, cells] == LIKELY)
    return (pl.Series(["", ADD_UP + "; "]).gather(needed.astype(np.int64)) + routes).str.strip_chars_end("; ")


def methods_of(inferred: Inferred, rows: Any) -> pl.Series:
    """Say for the areas of some claims how their probabilities were obtained; see `linked.methods`."""
    import polars as pl

    from unround.linked.methods import METHODS

    names = pl.Series([method.name for method in METHODS], dtype=pl.String)
    code = np.zeros(len(inferred.counts), dtype=np.int64) if inferred.linked is None else inferred.linked.method
    return names.gather(code[rows])


def _sums_of(proof: Proof) -> list[Sum]:
    """Return the sums of a proof as they come up in it."""
    used = [step["sum"] for step in proof.steps if step["by"] == "sum"]
    return list(dict.fromkeys(Sum(one["total"], tuple(one["parts"])) for one in used))


def _listed(model: Model, equations: list[int]) -> str:
    shown = [model.sum_in_short(e) for e in equations[:MOST_ROUTE]]
    more = len(equations) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")


def _assumptions(model: Model, inferred: Inferred, rows: Any, cells: Any, written: list[Proved], fitted: bool) -> pl.Series:
    """Say what each claim rests on beyond what the agency documents."""
    import polars as pl

    likely = inferred.kinds[rows, cells] == LIKELY
    assumed = np.asarray(inferred.documented_slack.any(axis=1) & ~inferred.slack.any(axis=1))
    population = likely & model.on_adjusted[cells] & assumed[rows]
    disturbed = likely & np.asarray(inferred.clashing.any(axis=1))[rows]
    which = likely * (33 if fitted else 1) + 2 * population + 4 * disturbed
    proved = {(one.area, one.cell): one.because for one in written}
    for place in np.flatnonzero(~likely).tolist():
        which[place] = proved[int(rows[place]), int(cells[place])]
    said = ["; ".join(text for bit, text in enumerate(REASONS) if code >> bit & 1) for code in range(1 << len(REASONS))]
    return pl.Series(said).gather(which)


def proof_lines(model: Model, written: list[Proved], areas: pl.DataFrame, axes: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Return certificates as plain data, a line each, with all that is needed to check them.

    Where a proof needs other areas, its cells are named by area, and each line tells their areas and keys apart.
    """
    for one in written:
        cells = [
            {"name": c.name, "published": c.published, "mechanism": c.mechanism.name, **_apart(c.name, one)}
            for c in one.system.cells
        ]
        sums = [{"total": s.total, "parts": list(s.parts)} for s in one.system.sums]
        where = {axis: areas[axis][one.area] for axis in axes}
        named = {"kind": KINDS[one.kind], "key": model.columns[one.cell].key}
        yield {**where, **named, **one.proof.to_json(), "cells": cells, "sums": sums}


def _apart(name: str, one: Proved) -> dict[str, str]:
    if not one.others:
        return {}
    area, _, key = name.partition(BETWEEN)
    return {"area": area, "key": key}


def read_proof(line: dict[str, Any]) -> tuple[System, Proof]:
    """Return the system and the proof of a line that `proof_lines` wrote, for `check_proof`.

    Raises
    ------
    InputError
        Where the line is no certificate, or one that was damaged.
    """
    try:
        cells = [Cell(c["name"], c["published"], mechanism(c["mechanism"])) for c in line["cells"]]
        sums = [Sum(s["total"], tuple(s["parts"])) for s in line["sums"]]
        fields = ("cell", "value", "text", "depth", "rests_on", "steps")
        return System(cells, sums), Proof(**{name: line[name] for name in fields})
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"this is no certificate of an audit ({error!r}). Run the audit again.") from None
