"""The summary of an audit: how much was found, where, which claims are sensitive; and what keeps it from saying "safe".

What was not understood, not used, withheld, contradicted or given up is not settled. Each entry says what it is, why, and
the option or the line of TOML that settles it. The headline of an audit names the first; `summary.json` lists all, and a
review reads them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.audits.bounds import ASSUMPTION, CELL, Contradiction, hidden_counts
from unround.audits.certificates import Certificate, InferredBlock
from unround.audits.claims import KINDS, ClaimKind, HeldBecause, Needs
from unround.audits.findings import ADD_UP, WEIGHED
from unround.audits.findings import SIZES as SIZES
from unround.audits.model import Model
from unround.checks import Check
from unround.checks.families import CONTRADICTS
from unround.engines.linked_weights import APART, METHODS, NOT_CONVERGED
from unround.evidence.block import EXACT, NO_UPPER_BOUND, UNSETTLED, BlockPosterior
from unround.mechanisms.base import reaches
from unround.release import ABSENT, NOT_APPLICABLE, Release, What
from unround.structure import Structure

AREA_SIZES = ((0, "0-99"), (100, "100-499"), (500, "500-999"), (1000, "1,000-4,999"), (5000, "5,000+"))
"""Classes of areas by the largest count that was published of them, which is their population in most releases."""

STEPS = {2: "two", 3: "three", 4: "four", 5: "five"}
"""How many steps an argument has, in words."""

FIGURES_ROUTE = "figures computed from true counts"
"""The route of claims that would not be made without a rate, a mean or a median."""

MOST_CONDITIONS = 20
"""Conditions that are listed, those of most claims first."""

CLAIMS = KINDS[1:]
"""The kinds of claims: proved, conditional, likely."""

REASONS_TO_HOLD = tuple(why for why in HeldBecause if why != HeldBecause.NOTHING)

PROVED, CONDITIONAL, LIKELY = ClaimKind.PROVED, ClaimKind.CONDITIONAL, ClaimKind.LIKELY


def _zero() -> dict[str, int]:
    return dict.fromkeys(CLAIMS, 0)


def _no_areas() -> dict[str, dict[str, int]]:
    return {name: {"areas": 0, "cells": 0, "cells_published": 0, **_zero()} for _, name in AREA_SIZES}


@dataclass
class Tally:
    """What is counted while blocks go by."""

    areas: int = 0
    hidden_areas: int = 0
    cells: int = 0
    published: int = 0
    sums: int = 0
    claims: Counter[str] = field(default_factory=Counter)
    by_block: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(_zero))
    by_route: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(_zero))
    by_value: dict[str, dict[str, int]] = field(default_factory=lambda: {name: _zero() for _, name in SIZES})
    by_area_size: dict[str, dict[str, int]] = field(default_factory=_no_areas)
    conditions: Counter[str] = field(default_factory=Counter)
    """What conditional claims rest on, and how many do."""
    alone: int = 0
    on_average: int = 0
    """Counts, besides those listed, that are likely on average over the priors that were run, but not under all of them."""
    at_highest: int = 0
    """The same under at least one of them."""
    held_back: dict[str, dict[str, int]] = field(
        default_factory=lambda: {why.label: {kind.label: 0 for kind in (CONDITIONAL, LIKELY)} for why in REASONS_TO_HOLD}
    )
    """Claims that are held back, by reason and kind."""
    suspect_areas: int = 0
    """Areas with a sum that is possible but absurd."""
    suspect_sums: int = 0
    zeros_proved: int = 0
    whole_totals: int = 0
    cut: int = 0
    unweighed: int = 0
    singly: int = 0
    estimated: int = 0
    """Counts whose probabilities were estimated by chains, and are not certain."""
    error_units: int = 0
    """Their standard errors added up, in hundredths of a point: whole numbers, so that blocks may come in any order."""
    contradictions: Counter[str] = field(default_factory=Counter)
    methods: Counter[str] = field(default_factory=Counter)
    """Areas by how their probabilities were obtained."""
    likely_by_method: Counter[str] = field(default_factory=Counter)
    """Likely claims in these areas."""
    unlinked: Counter[str] = field(default_factory=Counter)
    """Families that were not linked for probabilities, by reason."""
    by_others: dict[str, int] = field(default_factory=_zero)
    """Claims that need other areas."""
    hidden: Counter[str] = field(default_factory=Counter)
    """Counts that are not printed, and what a reader can work out of them."""
    by_figures: dict[str, int] = field(default_factory=_zero)
    """Claims that would not be made, or not be certain, without figures."""

    def add(self, model: Model, inferred: InferredBlock, threshold: float) -> None:
        """Count a block, once its claims are certified; the threshold is that of likely counts."""
        counts, claims, weighed = inferred.counts, inferred.claims, inferred.probabilities
        self.areas += len(counts)
        there = counts > ABSENT
        self.hidden_areas += int((~there.any(axis=1)).sum())
        self.cells += counts.size
        self.published += int(there.sum())
        self.sums += int(inferred.active.sum())
        self.alone += int(claims.without_sums.sum())
        for why in REASONS_TO_HOLD:
            held = claims.held_back[claims.held_because == why]
            for kind in (CONDITIONAL, LIKELY):
                self.held_back[why.label][kind.label] += int((held == kind).sum())
        self.suspect_areas += len({entry.area for entry in inferred.suspects})
        self.suspect_sums += len(inferred.suspects)
        self.cut += int(weighed.posterior.cut.sum()) + _left_out(model, inferred)
        self._errors(weighed.posterior)
        self.unweighed += int(weighed.too_noisy.sum())
        self.singly += int(weighed.cut_off.sum())
        self.contradictions.update(entry.kind for entry in inferred.contradictions)
        rows, cells = np.nonzero(claims.kinds != ClaimKind.OPEN)
        kinds, values = claims.kinds[rows, cells], claims.values[rows, cells]
        sizes = np.searchsorted([start for start, _ in SIZES], values, side="right") - 1
        for kind in (PROVED, CONDITIONAL, LIKELY):
            name, here = kind.label, kinds == kind
            self.claims[name] += int(here.sum())
            for cell, number in zip(*np.unique(cells[here], return_counts=True), strict=True):
                self.by_block[model.columns[cell].block][name] += int(number)
            for size, number in zip(*np.unique(sizes[here], return_counts=True), strict=True):
                self.by_value[SIZES[size][1]][name] += int(number)
            if kind == LIKELY:
                for need, number in Counter(claims.needs[rows, cells][here].tolist()).items():
                    self.by_route[_ROUTES[Needs(need)]][name] += number
        for certificate in claims.certified:
            self.by_route[route_of(model, certificate)][certificate.kind.label] += 1
            self.conditions.update(certificate.because)
        self.zeros_proved += int((claims.of_kind(PROVED) & (claims.values == 0)).sum())
        self.whole_totals += _whole_totals(model, inferred)
        self._area_sizes(inferred, there)
        self._methods(inferred)
        self._doubtful(inferred, threshold)
        if inferred.figured is not None:
            needed = inferred.by_figures
            for kind in (CONDITIONAL, LIKELY):
                self.by_figures[kind.label] += int((needed & claims.of_kind(kind)).sum())
        if inferred.nested is not None:
            self._families(inferred)
        self._hidden(inferred)

    def _hidden(self, inferred: InferredBlock) -> None:
        """Count what is not printed: how much of it has one possible value, and how much was not looked at to the end."""
        hidden, bounds = hidden_counts(inferred.counts), inferred.documented
        self.hidden["counts"] += int(hidden.sum())
        self.hidden["with_one_value"] += int((hidden & (bounds.tight.low == bounds.tight.high)).sum())
        self.hidden["unbounded"] += int((hidden & (bounds.tight.high >= NO_UPPER_BOUND)).sum())
        if bounds.linked is not None:
            self.hidden["not_settled"] += int(bounds.linked.limited.sum())

    def _errors(self, posterior: BlockPosterior) -> None:
        """Add up the standard errors of probabilities that chains estimated."""
        self.estimated += int((posterior.error > 0).sum())
        self.error_units += int(np.rint(10_000 * posterior.error).sum())

    def _doubtful(self, inferred: InferredBlock, threshold: float) -> None:
        """Count what some priors of the set make likely, but not all: nobody should take caution for safety."""
        weighed = inferred.probabilities
        # Where nothing would be claimed anyhow, only one prior was run, and there is no highest.
        some = reaches(weighed.highest, threshold) & ~reaches(weighed.lowest, threshold)
        if some.any():
            some &= inferred.claims.of_kind(ClaimKind.OPEN) & ~inferred.assumed.given & ~inferred.clashing & ~weighed.cut_off
            self.at_highest += int(some.sum())
            self.on_average += int((some & reaches(weighed.posterior.probability, threshold)).sum())

    def _methods(self, inferred: InferredBlock) -> None:
        """Count areas, and what is likely in them, by how probabilities were obtained."""
        codes = inferred.probabilities.methods
        likely = inferred.claims.of_kind(LIKELY).sum(axis=1)
        for code in np.unique(codes).tolist():
            self.methods[METHODS[code].name] += int((codes == code).sum())
            self.likely_by_method[METHODS[code].name] += int(likely[codes == code].sum())

    def _families(self, inferred: InferredBlock) -> None:
        """Count what nested areas contribute to each other."""
        claims, linked = inferred.claims, inferred.probabilities.linked
        for certificate in claims.certified:
            self.by_others[certificate.kind.label] += bool(certificate.areas)
        if linked is not None:
            self.by_others["likely"] += int(((claims.needs == Needs.FAMILY) & claims.of_kind(LIKELY)).sum())
            self.unlinked.update(family.why for family in linked.unlinked)

    def _area_sizes(self, inferred: InferredBlock, there: NDArray[np.bool_]) -> None:
        """Count areas, and what is claimed about them, by how large the areas are."""
        shown = there.any(axis=1)
        classes = np.searchsorted([start for start, _ in AREA_SIZES], inferred.counts.max(axis=1), side="right") - 1
        exists = inferred.counts != NOT_APPLICABLE
        per_area = {"areas": shown, "cells": exists.sum(axis=1), "cells_published": there.sum(axis=1)}
        per_area |= {kind.label: inferred.claims.of_kind(kind).sum(axis=1) for kind in (PROVED, CONDITIONAL, LIKELY)}
        for k, (_, name) in enumerate(AREA_SIZES):
            for what, number in per_area.items():
                self.by_area_size[name][what] += int(number[shown & (classes == k)].sum())

    def plain(self) -> dict[str, Any]:
        """Return what was counted, to be written down and added up with other blocks'."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def of(cls, counted: Mapping[str, Any]) -> Tally:
        """Return what `plain` wrote down, or several of them added up."""
        return cls(**counted)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "areas": self.areas,
            "areas_hidden": self.hidden_areas,
            "cells": self.cells,
            "cells_published": self.published,
            "sums": self.sums,
            **{name: self.claims.get(name, 0) for name in CLAIMS},
            "conditions": {
                "number": len(self.conditions),
                "most_claims": [
                    {"condition": text, "claims": claims}
                    for text, claims in sorted(self.conditions.items(), key=lambda item: (-item[1], item[0]))[
                        :MOST_CONDITIONS
                    ]
                ],
            },
            "likely_without_sums": self.alone,
            "more_likely_on_average": self.on_average,
            "more_likely_at_highest_found": self.at_highest,
            "held_back": {
                kind.label: sum(held[kind.label] for held in self.held_back.values()) for kind in (CONDITIONAL, LIKELY)
            },
            "held_back_because": self.held_back,
            "hidden": {name: self.hidden.get(name, 0) for name in ("counts", "with_one_value", "unbounded", "not_settled")},
            "suspect": {"areas": self.suspect_areas, "sums": self.suspect_sums},
            "contradictions": sum(self.contradictions.values()),
            "contradictions_by_kind": dict(sorted(self.contradictions.items())),
            "by_block": _most_first(self.by_block),
            "by_area_size": self.by_area_size,
            "by_route": _most_first(self.by_route),
            "sensitive_claims": {
                "by_value": self.by_value,
                "zeros_proved": self.zeros_proved,
                "parts_proved_to_be_their_total": self.whole_totals,
            },
            "sums_left_out_of_probabilities": self.cut,
            "areas_not_weighed": self.unweighed,
            "areas_where_chains_disagree": self.methods.get(METHODS[APART].name, 0),
            "estimated": {
                "counts": self.estimated,
                "mean_error_in_points": round(self.error_units / self.estimated / 100, 2) if self.estimated else None,
            },
            "cells_judged_singly": self.singly,
            "claims_because_of_figures": self.by_figures,
            "linked": {
                "areas_by_method": {
                    method.name: self.methods[method.name] for method in METHODS if method.name in self.methods
                },
                "likely_by_method": {
                    method.name: self.likely_by_method[method.name] for method in METHODS if method.name in self.methods
                },
                "families_not_linked": dict(sorted(self.unlinked.items())),
                "claims_that_need_other_areas": self.by_others,
            },
        }


def _left_out(model: Model, inferred: InferredBlock) -> int:
    """Count the sums that hold in an area, but that none of its probabilities uses."""
    different = {(total, frozenset(parts)): e for e, (total, parts) in reversed(list(enumerate(model.equations)))}
    news = set(different.values())  # a sum that only repeats another is not left out
    number = int(inferred.active[:, [e for e in model.compiled.left_out if e in news]].sum())
    method = inferred.probabilities.posterior.method
    assert method is not None
    unused = set(model.compiled.unused)
    for table in model.compiled.multiway:
        without = [e for e in table.equations if e in unused and e in news]
        number += int(inferred.active[np.ix_((method == EXACT) | (method == UNSETTLED), without)].sum())
    return number


def _most_first(claims: Mapping[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """Sort by how many claims there are, then by name: blocks come in any order."""
    return dict(sorted(claims.items(), key=lambda item: (-sum(item[1].values()), item[0])))


def route_of(model: Model, certificate: Certificate) -> str:
    """Name the kind of argument: one sum, by its number of parts and its total; a chain of sums; or areas that add up."""
    if certificate.areas:
        return ADD_UP
    if certificate.figures:
        return FIGURES_ROUTE
    if certificate.proof.depth > 1 or len(certificate.sums) > 1:
        return f"{STEPS.get(max(certificate.proof.depth, 2), 'six-or-more')}-step argument"
    total, parts = model.equations[certificate.sums[0]]
    number = "1 part" if len(parts) == 1 else f"{len(parts)} parts"
    return f"one sum of {number}, {'exact' if model.exact[total] else 'rounded'} total"


_ROUTES = {Needs.NOTHING: WEIGHED, Needs.FAMILY: ADD_UP, Needs.FIGURE: FIGURES_ROUTE}


def _whole_totals(model: Model, inferred: InferredBlock) -> int:
    """Count the parts that are proved to be all of their total: everybody counted there has that property."""
    tight, claims, whole = inferred.documented.tight, inferred.claims, 0
    for area, cell in np.argwhere(claims.of_kind(PROVED) & (claims.values > 0)).tolist():
        value = claims.values[area, cell]
        whole += any(
            len(model.equations[e][1]) > 1
            and cell != model.equations[e][0]
            and tight.low[area, model.equations[e][0]] == tight.high[area, model.equations[e][0]] == value
            for e in model.touching[cell]
            if inferred.active[area, e]
        )
    return whole


def contradiction_rows(model: Model, contradictions: Iterable[Contradiction], counts: Any) -> list[dict[str, Any]]:
    """Return contradictions as rows of text."""

    def printed(area: int, cell: int) -> str:
        return f"{model.columns[cell].key} = {counts[area, cell] if counts[area, cell] > ABSENT else 'not published'}"

    return [
        {
            "area": contradiction.area,
            "kind": contradiction.kind,
            "sums": "; ".join(model.sum_in_short(e) for e in contradiction.sums),
            "cells": "; ".join(printed(contradiction.area, cell) for cell in contradiction.cells),
            "clash": contradiction.text,
        }
        for contradiction in contradictions
    ]


Entry = dict[str, str]
"""`what`, `why` and `settle`; and `check`, where it is one of the checks that a policy decides on by itself."""

MOST_NAMED = 5
"""Columns that an entry names; of more it tells how many there are."""

_SAY_HOW = "say how counts were published: --base, --mechanism or --exact, or [[mechanisms]] in a description"


def unsettled_before(release: Release, structure: Structure, checked: Check) -> list[Entry]:
    """Return what is not settled before the first area is looked at."""
    return [*_mechanisms(structure, checked), *_sums(structure), *_figures(structure), *_reading(release)]


def unsettled_after(summary: Mapping[str, Any]) -> list[Entry]:
    """Return what is not settled once all areas were looked at, from the summary of an audit: the worst first."""
    return [*_contradicted(summary), *summary["unsettled"], *_held_back(summary), *_given_up(summary)]


def _named(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return f"{'column' if len(names) == 1 else 'columns'} {', '.join(names[:MOST_NAMED])}{more}"


def _mechanisms(structure: Structure, checked: Check) -> Iterator[Entry]:
    if checked.verdict == CONTRADICTS:
        why = "the check finds figures that cannot come from how counts are said or thought to have been published"
        yield {"what": "mechanism", "why": why, "settle": _SAY_HOW, "check": "contradicts"}
    for evidence in structure.how:
        if evidence.mechanism is None and "no count above 0" not in evidence.why:
            settle = (
                _SAY_HOW if evidence.suggested is None else f"--mechanism {evidence.suggested.name}, if the agency says so"
            )
            names = [structure.columns[at].key for at in evidence.columns]
            yield {"what": _named(names), "why": f"not used: {evidence.why}", "settle": settle}


def _sums(structure: Structure) -> Iterator[Entry]:
    """Yield the sums that may well hold, for all that the counts tell, and are not used."""
    used = {judged.total for judged in structure.sums}
    for judged in structure.rejected:
        if judged.unjudged and judged.is_documented and judged.areas and judged.total not in used:
            names = [structure.columns[at].key for at in (judged.total, *judged.parts)]
            listed = " + ".join(names[1:] if len(names) <= MOST_NAMED else [names[1], names[2], "…", names[-1]])
            settle = "[[sums]] in a description, with use = true if it holds, and use = false if not"
            yield {"what": f"sum {names[0]} = {listed}", "why": f"not used: {judged.why}", "settle": settle}


def _figures(structure: Structure) -> Iterator[Entry]:
    unclear = [judged.figure.name for judged in structure.figures if judged.verdict == "unclear" and not judged.left_out]
    if unclear:
        why = "it cannot be told whether they were computed from true counts, so they are not used"
        settle = "[[figures]] in a description, with use = true or use = false"
        yield {"what": f"figures: {_named(unclear)}", "why": why, "settle": settle}


def _reading(release: Release) -> Iterator[Entry]:
    for entry in release.account:
        if entry.what == What.UNKNOWN:
            yield {"what": entry.place, "why": f"not understood: {entry.why}", "settle": entry.settle, "check": "reading"}


def _contradicted(summary: Mapping[str, Any]) -> Iterator[Entry]:
    """Yield that counts cannot come from their mechanism, or contradict each other: nothing reassures then."""
    kinds = summary["contradictions_by_kind"]
    misfits = kinds.get(CELL, 0)
    others = sum(number for kind, number in kinds.items() if kind not in (CELL, ASSUMPTION))
    if misfits:
        how = " or ".join(summary["mechanisms"])
        why = f"{misfits:,} of {summary['cells_published']:,} published counts cannot come from {how}; they were not used"
        yield {"what": "mechanism", "why": why, "settle": _SAY_HOW, "check": "contradicts"}
    if others:
        why = f"{others:,} sets of published figures cannot all be right; what they say was set aside"
        settle = "correct what contradictions.csv lists"
        yield {"what": "contradictions", "why": why, "settle": settle, "check": "contradicts"}


_WITHHELD = {
    "mechanism": ("the published figures contradict their mechanism", "--doubtful lists them", "contradicts"),
    "selfcheck": ("the prior failed its self-check there", "give the true counts (--truth FILE)", "self-check"),
    "tied": ("the same count appears in tables whose sums cannot all be used at once", "--rounding independent", "withheld"),
    "suspect": ("the data of the area are suspect", "correct what suspects.csv lists", "withheld"),
    "odd": ("the share of men in the area is far from the usual one", "give the true counts (--truth FILE)", "withheld"),
}


def _held_back(summary: Mapping[str, Any]) -> Iterator[Entry]:
    for because, claims in summary["held_back_because"].items():
        number = sum(claims.values())
        if number:
            why, settle, check = _WITHHELD[because]
            yield {"what": "claims held back", "why": f"{number:,}, because {why}", "settle": settle, "check": check}


def _given_up(summary: Mapping[str, Any]) -> Iterator[Entry]:
    settle = "audit fewer columns or sums at once (use = false in a description)"
    if number := summary["hidden"]["not_settled"]:
        why = f"the sums around {number:,} of them form loops too large to search: their intervals may be narrower"
        yield {"what": "hidden counts", "why": why, "settle": settle}
    if number := sum(level["parents"] - level["used"] for level in summary["linked"]["levels"]):
        why = f"{number:,} of them are not used: too many counts would have to be looked at together"
        yield {"what": "sums of areas", "why": why, "settle": "audit one region at a time"}
    for areas, why in (
        (summary["areas_not_weighed"], "noise leaves too many counts possible to use all sums at once"),
        (summary["areas_where_chains_disagree"], "the Markov chains do not agree"),
    ):
        if areas:
            text = f"in {areas:,} areas {why}: what sums make likely there is not known"
            yield {"what": "probabilities", "why": text, "settle": settle, "check": "not-weighed"}
    if number := summary["linked"]["families_not_linked"].get(NOT_CONVERGED):
        why = f"in {number:,} families of areas {NOT_CONVERGED}: what the sums over areas make likely there is not known"
        settle = "judge these counts by their ranges, which hold, or audit one region at a time"
        yield {"what": "sums of areas", "why": why, "settle": settle}
