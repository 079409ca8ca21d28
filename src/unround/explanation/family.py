"""What other areas of a family contribute to one cell: which they are, how they were used, and what was published there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from unround.audits import InferredBlock
from unround.audits.certificates import Certificate
from unround.audits.findings import finding
from unround.bounds.prover import BETWEEN
from unround.engines.linked_weights import ALONE, FAMILY, GIBBS, LOOPY, MERGED, METHODS, OWN
from unround.job import AuditFolder
from unround.shown import Plain
from unround.sums.families import Rows

MOST_AREAS = 30
"""Areas that are listed; the others are counted."""

SAME, ABOVE, BESIDE, WITHIN = "the same area", "contains it", "beside it", "part of it"
ROLES = (SAME, ABOVE, BESIDE, WITHIN)
"""What another area is to the one in question."""

BOUNDS = "bounds"
"""The method where other areas only narrow down what is possible."""

SAMPLED = frozenset({GIBBS, FAMILY})
"""The methods that draw random numbers."""

_HOW = {
    GIBBS: "whole areas are sampled",
    LOOPY: "areas exchange messages about what is possible",
    FAMILY: "the tables of all of them are sampled together",
}


@dataclass(frozen=True, slots=True)
class FamilyMember(Plain):
    """Another area of the family.

    - `row`: Its place in the audit.
    - `code`, `name`: What it is called.
    - `role`: What it is to the area in question: `SAME`, `ABOVE`, `BESIDE` or `WITHIN`.
    - `published`: What was published of the same count there.
    - `low`, `high`, `value`, `probability`: What is known of it: the possible range, the likeliest count and how likely
      it is.
    """

    ASIDE = ("row",)

    row: int
    code: str
    name: str
    role: str
    published: int | None
    low: int
    high: int | None
    value: int | None
    probability: float | None


@dataclass(frozen=True, slots=True)
class FamilyEvidence(Plain):
    """The other areas that contribute to what is known of a cell.

    - `method`: How probabilities were obtained: the name of one of `linked.methods.METHODS`, or `BOUNDS`.
    - `said`: The same in words, with how exact it is.
    - `mean_error`, `worst_error`: How far the method is from exact distributions, as measured: total variation, on
      average and in the worst cell.
    - `rhat`, `error`: Where it was sampled: how far chains differ, and one standard error of probabilities.
    - `areas`: The areas; `more` says how many were left out.
    """

    method: str
    said: tuple[str, ...]
    mean_error: float
    worst_error: float
    rhat: float | None
    error: float | None
    areas: tuple[FamilyMember, ...]
    more: int


def family_evidence(folder: AuditFolder, inferred: InferredBlock, rows: Sequence[int], cell: int) -> FamilyEvidence | None:
    """Say what other areas contribute to a cell of the first area; None where they contribute nothing."""
    documented, assumed, linked = inferred.documented.linked, inferred.assumed.linked, inferred.probabilities.linked
    if inferred.nested is None or documented is None or assumed is None:
        return None
    # What is certain needs no probability, however those of the area were obtained.
    certain = bool(inferred.claims.certain[0, cell])
    code = OWN if linked is None or certain or linked.method[0] in ALONE else int(linked.method[0])
    if code == OWN and not (assumed.moved[0, cell] or documented.moved[0, cell]):
        return None
    parent = assumed.parent if linked is None else linked.parent
    if code == OWN and (parent < 0).all():
        parent = documented.parent
    relatives = list(_relatives(parent))
    names = area_names(folder, rows)
    adds_up = bool(inferred.nested.cells[cell])
    method = METHODS[code]
    sampled = linked if code in SAMPLED else None
    shown = relatives if adds_up else []
    return FamilyEvidence(
        BOUNDS if code == OWN else method.name,
        tuple(_sentences(inferred, code, relatives, names, adds_up, certain=certain)),
        method.mean,
        method.worst,
        float(sampled.rhat[0]) if sampled is not None else None,
        float(sampled.error[0]) if sampled is not None else None,
        tuple(_member(folder, inferred, rows, names, cell, at, role) for at, role in shown[:MOST_AREAS]),
        len(shown) - len(shown[:MOST_AREAS]),
    )


def how_linked(folder: AuditFolder, inferred: InferredBlock, rows: Sequence[int]) -> tuple[str, ...]:
    """Say how the first area's probabilities were obtained, where other areas contribute to them."""
    linked = inferred.probabilities.linked
    if linked is None or linked.method[0] in ALONE:
        return ()
    names = area_names(folder, rows)
    return tuple(_sentences(inferred, int(linked.method[0]), list(_relatives(linked.parent)), names, True))


def _relatives(parent: Rows) -> Iterator[tuple[int, str]]:
    """Yield the areas around the first: those that are the same, the one that contains it, those beside it, its parts."""
    below: dict[int, list[int]] = {}
    for row, above in enumerate(parent.tolist()):
        below.setdefault(above, []).append(row)
    top, bottom, same = 0, 0, []
    while parent[top] >= 0 and len(below[int(parent[top])]) == 1:
        top = int(parent[top])
        same.append(top)
    while len(below.get(bottom, ())) == 1:
        (bottom,) = below[bottom]
        same.append(bottom)
    yield from ((row, SAME) for row in same)
    above = int(parent[top])
    if above >= 0:
        yield above, ABOVE
        yield from ((row, BESIDE) for row in below[above] if row != top)
    yield from ((row, WITHIN) for row in below.get(bottom, ()))


def _sentences(
    inferred: InferredBlock,
    method: int,
    relatives: list[tuple[int, str]],
    names: list[str],
    adds_up: bool,
    *,
    certain: bool = False,
) -> Iterator[str]:
    """Say how other areas were used, one sentence each."""
    by_role = {role: [names[row] for row, its_role in relatives if its_role == role] for role in ROLES}
    same, linked = by_role[SAME], inferred.probabilities.linked
    if same:
        alike = linked is not None and inferred.nested is not None and inferred.nested.alike.any()
        twice = "with the same numbers" if alike else "and each of its counts was rounded anew there"
        yield f"It is the same area as {_several(same)}: one is the only area in the other, {twice}."
    if method == OWN:
        yield f"Other areas narrow down what is possible: {_around(by_role)}."
        if not certain:
            yield "How likely each count is follows from its own table alone."
        if linked is None and not certain:
            yield "Because counts share random numbers, what other areas make likely was not computed."
    elif method == MERGED:
        yield "Both tables are treated as one, which is exact."
    elif linked is not None:
        how, named = _HOW[method], METHODS[method].name
        yield f"It is inferred together with other areas, because {_around(by_role)}: {how} (method: {named})."
        if method in SAMPLED:
            yield (
                f"The sampling chains agree (R-hat {linked.rhat[0]:.2f}); judging by their differences, probabilities "
                f"in this family are off by about {_points(2 * linked.error[0])} at most."
            )
        yield _measured(method)
    if not adds_up:
        yield "This count does not add up over areas, or this could not be verified; other counts of its table do."


def _measured(method: int) -> str:
    measured = METHODS[method]
    name = "such samples" if method in SAMPLED else "such messages"
    return (
        f"Compared with exact distributions, {name} were off by {_points(measured.mean)} on average, and by "
        f"{_points(measured.worst)} at worst."
    )


def _around(by_role: dict[str, list[str]]) -> str:
    said = []
    if by_role[ABOVE]:
        beside = by_role[BESIDE]
        number = f"{len(beside)} more areas" if len(beside) > 1 else f"the area {beside[0]}" if beside else "nothing else"
        said.append(f"together with {number} it makes up {by_role[ABOVE][0]}")
    if by_role[WITHIN]:
        said.append(f"it is made up of {len(by_role[WITHIN])} areas")
    return ", and ".join(said) or "they contain the same people"


def _points(share: float) -> str:
    """Return a difference of probabilities in words.

    >>> _points(0.018), _points(0.01), _points(0.0002)
    ('1.8 points', '1 point', 'less than 0.1 points')
    """
    said = f"{100 * share:.2g}"
    return "less than 0.1 points" if share < 0.001 else f"{said} point{'' if said == '1' else 's'}"


def _several(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _member(
    folder: AuditFolder, inferred: InferredBlock, rows: Sequence[int], names: list[str], cell: int, at: int, role: str
) -> FamilyMember:
    known = finding(inferred, at, cell)
    code = " ".join(str(folder.areas[axis][rows[at]]) for axis in folder.area_axes)
    return FamilyMember(
        rows[at], code, names[at], role, known.published, known.low, known.high, known.value, known.probability
    )


# -- names ------------------------------------------------------------------------------------------------------------


def area_names(folder: AuditFolder, rows: Sequence[int]) -> list[str]:
    """Return what to call some areas: by name, or by code where several are called alike or have none."""
    here = folder.areas[np.asarray(rows)]
    codes = [str(code) for code in here["code" if "code" in here.columns else folder.area_axes[0]].to_list()]
    if "region_name" not in here.columns:
        return codes
    called = [str(name or code) for name, code in zip(here["region_name"].to_list(), codes, strict=True)]
    times = Counter(called)
    return [
        name if times[name] == 1 or name == code else f"{name} ({code})" for name, code in zip(called, codes, strict=True)
    ]


def cell_names(folder: AuditFolder, certificate: Certificate, rows: Sequence[int]) -> dict[str, str]:
    """Return what to call the cells of a proof: with their areas, where it involves several."""
    display = folder.model.display
    if not certificate.by_area:
        return display
    names = area_names(folder, rows)
    codes = [str(code).replace(BETWEEN, " ") for code in folder.areas[np.asarray(rows)][folder.area_axes[0]].to_list()]
    called = dict(zip(codes, names, strict=True))
    called_so = {}
    for cell in certificate.system.cells:
        area, _, key = cell.name.partition(BETWEEN)
        called_so[cell.name] = f"{display[key]} in {called[area]}"
    return called_so
