"""The simulated country: provinces, census divisions (CD), subdivisions (CSD), dissemination areas (DA).

Areas are listed children first: the DAs of a CSD, then the CSD; after its last CSD the CD, after its last CD the province.
So one pass over the list can add up every parent from children it has just seen, however long it is.

Their shapes are made up: they tile a plane, and every area lies exactly within its parent. The country is cut into
provinces, these into census divisions, and so on, by straight cuts, each part as large as its dissemination areas are many.
All of these are convex, so that a cut leaves nothing over.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.errors import InputError

LEVELS = ("DA", "CSD", "CD", "PR")
LEVEL_NAMES = {"DA": "Dissemination area", "CSD": "Census subdivision", "CD": "Census division", "PR": "Province"}
PREFIX = {"DA": "2021S0512", "CSD": "2021A0005", "CD": "2021A0003", "PR": "2021A0002"}
MOST = 1_000_000
FACTORS = 3  # how many hidden traits an area has: old or young, students and workers or families, poor or rich

# Canada in 2021: 57,936 DAs in 5,161 CSDs in 293 CDs in 13 provinces and territories.
CSD_SHARE, CD_SHARE, CDS_A_PROVINCE = 5161 / 63403, 293 / 63403, 293 / 13
PROVINCES = (10, 11, 12, 13, 24, 35, 46, 47, 48, 59, 60, 61, 62)
ONE_DA, FEW_DAS = 1 / 3, 1 / 4  # CSDs with one DA, and with two to four, where CSDs are as small as real ones
LARGEST_CSD = 0.06  # the largest CSD holds 6 % of the country's DAs
CDS_A_CODE = 99  # a CD's code has two digits after its province's
DAS_A_CD = 9999  # a DA's code has four digits after its CD's

# Invented names; the accents are there because real files have them, in Latin-1.
STEMS = (
    "Alder", "Bélan", "Cairn", "Dorval", "Écluse", "Fenwick", "Grisé", "Hollin", "Îlet", "Jarvin", "Kestrel",
    "Lorne", "Mérival", "Norvel", "Orme", "Prévu", "Quill", "Rivelle", "Sorrel", "Tamarac", "Umber", "Vaudrel",
    "Wexley", "Yarrow", "Zéphir", "Brûlé", "Côteau", "Drumlin", "Falaise", "Garance",
)  # fmt: skip
ENDS = ("ton", "ville", "-sur-Lac", " Creek", "-Est", " Bay", " No. 3", "-des-Prés", " Hills", "by", "-aux-Ormes")
KINDS = ("Town (T)", "Village (VL)", "City (CY)", "Municipalité (MÉ)", "Rural municipality (RM)", "Parish (P)")


@dataclass(frozen=True, slots=True, eq=False)
class Geography:
    """All areas, children first.

    - `regions`: region (DGUID), code, name, level, parent (DGUID or null), csd, cd (codes or null), non-response rates.
    """

    level: NDArray[np.int8]  # 0 for a DA, 1 for a CSD, 2 for a CD, 3 for a province
    regions: pl.DataFrame
    traits: NDArray[np.float64]  # the hidden traits of the CSD that each area lies in, standard normal
    rural: NDArray[np.bool_]  # true for the DAs of CSDs with only one

    def __len__(self) -> int:
        return len(self.level)


def numbers(areas: int) -> tuple[int, int, int, int]:
    """Return how many DAs, CSDs, CDs and provinces make up so many areas.

    A single area is a DA; its CSD comes with the second, the CD with the fifth, the province with the
    seventh.

    >>> numbers(1), numbers(7), numbers(50)
    ((1, 0, 0, 0), (4, 1, 1, 1), (44, 4, 1, 1))
    """
    csds = max(1, round(areas * CSD_SHARE)) if areas >= 2 else 0
    cds = max(1, round(areas * CD_SHARE)) if areas >= 5 else 0
    provinces = min(max(1, round(cds / CDS_A_PROVINCE)), len(PROVINCES)) if areas >= 7 else 0
    provinces = max(provinces, -(-cds // 60) if areas >= 7 else 0)  # a CD's code has two digits after its province's
    return areas - csds - cds - provinces, csds, cds, provinces


def _share_out(number: int, among: int, spread: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Give each of `among` at least one, and the rest at random, the more unevenly the larger `spread`."""
    weights = rng.lognormal(0.0, spread, among)
    return 1 + rng.multinomial(number - among, weights / weights.sum())


def _csd_sizes(das: int, csds: int, cap: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return how many DAs each CSD has: every second has one only, the others have a long tail."""
    several = csds - csds // 2 if das > csds else 0
    sizes = np.ones(csds, dtype=np.int64)
    rest = das - csds - several  # those with several have at least two
    if several and rest < 0:
        several, rest = das - csds, 0
    if several:
        weights = np.minimum(rng.pareto(0.9, several) + 0.1, 400.0)
        sizes[:several] = 2 + rng.multinomial(rest, weights / weights.sum())
        _cap(sizes, das, several, cap)
    return rng.permutation(sizes)


def _cap(sizes: NDArray[np.int64], das: int, several: int, cap: int) -> None:
    """Take from the largest of the first CSDs what they have too many, and give it to the others among these."""
    sizes -= np.maximum(sizes - cap, 0)
    while spill := int(das - sizes.sum()):
        room = np.flatnonzero(sizes[:several] < cap)
        if not len(room):
            room = np.arange(several)
        sizes[room[:spill]] += 1 if spill < len(room) else spill // len(room)


def _small_csd_sizes(das: int, csds: int, cap: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return how many DAs each CSD has where most have few: a third one, a quarter two to four, others five or more."""
    single, few = round(csds * ONE_DA), round(csds * FEW_DAS)
    several = csds - single - few
    sizes = np.concatenate([np.full(several, 5), rng.integers(2, 5, few), np.ones(single)]).astype(np.int64)
    rest = das - int(sizes.sum())
    if rest < 0 or several < 1:  # a country of a few areas
        return _csd_sizes(das, csds, cap, rng)
    weights = rng.lognormal(0.0, 2.2, several)
    sizes[:several] += rng.multinomial(rest, weights / weights.sum())
    _cap(sizes, das, several, cap)
    return rng.permutation(sizes)


def _tree(
    counts: tuple[int, int, int, int], rng: np.random.Generator, small: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the DAs of each CSD, the CSDs of each CD and the CDs of each province."""
    das, csds, cds, provinces = counts
    cd_sizes = _share_out(cds, provinces, 0.5, rng) if provinces else np.array([cds])
    while cd_sizes.max() > CDS_A_CODE:
        cd_sizes = _share_out(cds, provinces, 0.1, rng)
    csd_sizes = _share_out(csds, cds, 0.6, rng) if cds else np.array([csds])
    if not csds:
        return np.array([das]), np.array([1]), np.array([1])
    cap = max(2, int(LARGEST_CSD * das) if csds > 40 else das)
    state = rng.bit_generator.state
    while True:
        sizes = (_small_csd_sizes if small else _csd_sizes)(das, csds, cap, rng)
        ends = np.cumsum(csd_sizes)[:-1]
        if max(int(part.sum()) for part in np.split(sizes, ends)) <= DAS_A_CD:
            return sizes, csd_sizes, cd_sizes
        rng.bit_generator.state = state
        cap = cap * 3 // 4


def _name(rng: np.random.Generator) -> str:
    return STEMS[rng.integers(len(STEMS))] + ENDS[rng.integers(len(ENDS))]


def plan(areas: int, seed: int, small: bool = False) -> Geography:
    """Lay out a country of so many areas; `small` gives it as many CSDs of few DAs as real ones have."""
    if areas < 1:
        raise InputError(f"a simulated census needs at least 1 area, not {areas}.")
    if areas > MOST:
        raise InputError(f"a simulated census has at most {MOST:,} areas, not {areas:,}: their codes would run out.")
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
    counts = numbers(areas)
    _, csds, cds, provinces = counts
    da_sizes, csd_sizes, cd_sizes = _tree(counts, rng, small)
    codes = PROVINCES if len(cd_sizes) <= len(PROVINCES) else range(10, 10 + len(cd_sizes))
    level, rows, csd_of = list[int](), list[tuple[str | None, ...]](), list[int]()
    at_cd = at_csd = 0

    def add(kind: int, code: str, name: str, parent: str | None, csd: str | None, cd: str | None) -> None:
        level.append(kind)
        csd_of.append(at_csd)
        rows.append((PREFIX[LEVELS[kind]] + code, code, name, LEVELS[kind], parent, csd, cd))

    for province, in_province in zip(codes, cd_sizes, strict=False):
        up = PREFIX["PR"] + str(province) if provinces else None
        for cd_number in range(1, in_province + 1) if cds else [1]:
            cd = f"{province}{cd_number:02d}"
            cd_region = PREFIX["CD"] + cd if cds else None
            da_number = 0
            for csd_number in range(1, csd_sizes[at_cd] + 1):
                csd = f"{cd}{csd_number:03d}"
                for _ in range(da_sizes[at_csd]):
                    da_number += 1
                    code = f"{cd}{da_number:04d}"
                    add(0, code, code, PREFIX["CSD"] + csd if csds else None, csd if csds else None, cd)
                if csds:
                    kind = KINDS[rng.integers(len(KINDS))]
                    add(1, csd, f"{_name(rng)}, {kind}", cd_region, csd, cd)
                at_csd += 1
            if cds:
                add(2, cd, f"{_name(rng)}, Census division (CDR)", up, None, cd)
            at_cd += 1
        if provinces:
            add(3, str(province), f"Province {province} (simulated)", None, None, None)
    columns = ["region", "code", "name", "level", "parent", "csd", "cd"]
    regions = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row").with_columns(
        tnr_sf=pl.Series(np.round(rng.gamma(2.0, 1.6, len(rows)), 1)),
        tnr_lf=pl.Series(np.round(rng.gamma(2.0, 2.2, len(rows)), 1)),
    )
    here = np.minimum(np.array(csd_of), len(da_sizes) - 1)
    traits = rng.normal(size=(len(da_sizes), FACTORS))[here]
    kinds = np.array(level, dtype=np.int8)
    return Geography(kinds, regions, traits, (kinds == 0) & (da_sizes[here] == 1))


BOUNDARIES = "boundaries.geojson.gz"
MIDDLE, ACROSS = (-30.0, 44.0), (9.0, 5.0)
"""Where the country lies: in the middle of an ocean, so that nobody takes it for a real one."""
CORNERS = 14
STEPS = 10  # halvings until a cut is where it should be: to a thousandth of the width
DIGITS = 6  # decimals of a degree: a tenth of a metre
Polygon = NDArray[np.float64]  # corners in order, against the clock; convex


def area_of(polygon: Polygon) -> float:
    """Return the area of a polygon, in square units."""
    (x, y), after = polygon.T, np.concatenate([polygon[1:], polygon[:1]])
    return float(x @ after[:, 1] - y @ after[:, 0]) / 2


def halves(polygon: Polygon, along: NDArray[np.float64], share: float) -> tuple[Polygon, Polygon]:
    """Cut a polygon by a straight line across a direction, so that the first part has a given share of its area."""
    heights = polygon @ along
    low, high = float(heights.min()), float(heights.max())
    wanted = share * area_of(polygon)
    for _ in range(STEPS):
        level = (low + high) / 2
        below, _ = _cut(polygon, heights, level)
        low, high = (level, high) if len(below) < 3 or area_of(below) < wanted else (low, level)
    return _cut(polygon, heights, (low + high) / 2)


def _cut(polygon: Polygon, heights: NDArray[np.float64], level: float) -> tuple[Polygon, Polygon]:
    """Return what lies below a level, and above it."""
    below: list[NDArray[np.float64]] = []
    above: list[NDArray[np.float64]] = []
    for k, corner in enumerate(polygon):
        other = (k + 1) % len(polygon)
        here, there = heights[k] - level, heights[other] - level
        if here <= 0:
            below.append(corner)
        if here >= 0:
            above.append(corner)
        if here * there < 0:
            crossing = corner + (polygon[other] - corner) * (here / (here - there))
            below.append(crossing)
            above.append(crossing)
    return np.array(below).reshape(-1, 2), np.array(above).reshape(-1, 2)


def divided(polygon: Polygon, weights: NDArray[np.float64], rng: np.random.Generator) -> list[Polygon]:
    """Cut a polygon into parts of such weights, across its longer side each time."""
    if len(weights) == 1:
        return [polygon]
    middle = int(np.argmin(np.abs(np.cumsum(weights) - weights.sum() / 2)[:-1])) + 1
    spread = polygon - polygon.mean(axis=0)
    along = np.linalg.eigh(spread.T @ spread)[1][:, 1]
    turn = rng.normal(0.0, 0.25)
    along = np.array([np.cos(turn) * along[0] - np.sin(turn) * along[1], np.sin(turn) * along[0] + np.cos(turn) * along[1]])
    first, second = halves(polygon, along, float(weights[:middle].sum() / weights.sum()))
    return divided(first, weights[:middle], rng) + divided(second, weights[middle:], rng)


def shapes_of(place: Geography, seed: int) -> list[Polygon]:
    """Return a shape for every area of a country."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(77,)))
    angles = np.linspace(0, 2 * np.pi, CORNERS, endpoint=False) + rng.uniform(-0.12, 0.12, CORNERS)
    country = np.array(MIDDLE) + np.array(ACROSS) * np.column_stack([np.cos(angles), np.sin(angles)])
    children, leaves, roots = _shapes_tree(place)
    shapes: list[Polygon | None] = [None] * len(place)
    waiting = list(zip(roots, divided(country, leaves[roots], rng), strict=True))
    while waiting:
        row, polygon = waiting.pop()
        shapes[row] = polygon
        below = children[row]
        if below:
            # Dissemination areas are of different sizes, too.
            sizes = rng.uniform(0.6, 1.4, len(below)) if place.level[below[0]] == 0 else leaves[below]
            waiting += zip(below, divided(polygon, sizes, rng), strict=True)
    return [shape for shape in shapes if shape is not None]


def _shapes_tree(place: Geography) -> tuple[list[list[int]], NDArray[np.float64], list[int]]:
    """Return the children of every area, how many of the smallest areas are in it, and the areas without a parent."""
    regions = place.regions
    at = {region: row for row, region in enumerate(regions["region"])}
    children: list[list[int]] = [[] for _ in range(len(place))]
    leaves, roots = np.zeros(len(place)), list[int]()
    for row, parent in enumerate(regions["parent"]):  # children come first
        leaves[row] = leaves[row] or 1
        if parent in at:
            children[at[parent]].append(row)
            leaves[at[parent]] += leaves[row]
        else:
            roots.append(row)
    return children, leaves, roots


def write_boundaries(path: Path, place: Geography, levels: tuple[str, ...], seed: int) -> None:
    """Write the shapes of all areas of some levels as GeoJSON, the same bytes every time."""
    shapes = shapes_of(place, seed)
    rows = place.regions.select("region", "code", "name", "level").rows()
    lines = []
    for (region, code, name, level), shape in zip(rows, shapes, strict=True):
        if level in levels:
            corners = [[round(float(x), DIGITS), round(float(y), DIGITS)] for x, y in shape]
            about = {"DGUID": region, "code": code, "name": name, "level": LEVEL_NAMES[level]}
            geometry = {"type": "Polygon", "coordinates": [[*corners, corners[0]]]}
            feature = {"type": "Feature", "properties": about, "geometry": geometry}
            lines.append(json.dumps(feature, ensure_ascii=False, separators=(",", ":")))
    text = '{"type":"FeatureCollection","note":"simulated: these shapes are invented","features":[\n' + ",\n".join(lines)
    with path.open("wb") as file, gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
        packed.write(f"{text}\n]}}\n".encode())
