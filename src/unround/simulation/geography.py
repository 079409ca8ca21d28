"""The simulated country: provinces, census divisions (CD), subdivisions (CSD), dissemination areas (DA).

Areas are listed children first: the DAs of a CSD, then the CSD; after its last CSD the CD, after its last
CD the province. So one pass over the list can add up every parent from children it has just seen, however
long it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.errors import InputError

LEVELS = ("DA", "CSD", "CD", "PR")
LEVEL_NAMES = {
    "DA": "Dissemination area",
    "CSD": "Census subdivision",
    "CD": "Census division",
    "PR": "Province",
}
PREFIX = {"DA": "2021S0512", "CSD": "2021A0005", "CD": "2021A0003", "PR": "2021A0002"}
MOST = 1_000_000
FACTORS = 3
"""How many hidden traits an area has: old or young, students and workers or families, poor or rich."""

# Canada in 2021: 57,936 DAs in 5,161 CSDs in 293 CDs in 13 provinces and territories.
CSD_SHARE, CD_SHARE, CDS_A_PROVINCE = 5161 / 63403, 293 / 63403, 293 / 13
PROVINCES = (10, 11, 12, 13, 24, 35, 46, 47, 48, 59, 60, 61, 62)
ONE_DA, FEW_DAS = 1 / 3, 1 / 4  # CSDs with one DA, and with two to four, where CSDs are as small as real ones
LARGEST_CSD = 0.06  # the largest CSD holds 6 % of the country's DAs
CDS_A_CODE = 99  # a CD's code has two digits after its province's
DAS_A_CD = 9999  # a DA's code has four digits after its CD's

# Invented names; the accents are there because real files have them, in Latin-1.
STEMS = (
    *(
        "Alder",
        "Bélan",
        "Cairn",
        "Dorval",
        "Écluse",
        "Fenwick",
        "Grisé",
        "Hollin",
        "Îlet",
        "Jarvin",
        "Kestrel",
    ),
    *(
        "Lorne",
        "Mérival",
        "Norvel",
        "Orme",
        "Prévu",
        "Quill",
        "Rivelle",
        "Sorrel",
        "Tamarac",
        "Umber",
        "Vaudrel",
    ),
    *("Wexley", "Yarrow", "Zéphir", "Brûlé", "Côteau", "Drumlin", "Falaise", "Garance"),
)
ENDS = (
    "ton",
    "ville",
    "-sur-Lac",
    " Creek",
    "-Est",
    " Bay",
    " No. 3",
    "-des-Prés",
    " Hills",
    "by",
    "-aux-Ormes",
)
KINDS = (
    "Town (T)",
    "Village (VL)",
    "City (CY)",
    "Municipalité (MÉ)",
    "Rural municipality (RM)",
    "Parish (P)",
)


@dataclass(frozen=True, slots=True, eq=False)
class Geography:
    """All areas, children first.

    - `level`: 0 for a DA, 1 for a CSD, 2 for a CD, 3 for a province.
    - `regions`: region (DGUID), code, name, level, parent (DGUID or null), csd, cd (codes or null), non-response rates.
    - `traits`: The hidden traits of the CSD that each area lies in, standard normal.
    - `rural`: True for the DAs of CSDs with only one.
    """

    level: NDArray[np.int8]
    regions: pl.DataFrame
    traits: NDArray[np.float64]
    rural: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.level)


def numbers(areas: int) -> tuple[int, int, int, int]:
    """Return how many DAs, CSDs, CDs and provinces make up so many areas.

    A single area is a DA; its CSD comes with the second, the CD with the fifth, the province with the
    seventh.

    Examples
    --------
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
    one, few = round(csds * ONE_DA), round(csds * FEW_DAS)
    several = csds - one - few
    sizes = np.concatenate([np.full(several, 5), rng.integers(2, 5, few), np.ones(one)]).astype(np.int64)
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
    stem, end = rng.integers(len(STEMS)), rng.integers(len(ENDS))
    return STEMS[stem] + ENDS[end]


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
    return _finish(level, rows, csd_of, da_sizes, rng)


def _finish(
    level: list[int],
    rows: list[tuple[str | None, ...]],
    csd_of: list[int],
    da_sizes: NDArray[np.int64],
    rng: np.random.Generator,
) -> Geography:
    """Turn the lists into arrays, and draw what belongs to areas."""
    columns = ["region", "code", "name", "level", "parent", "csd", "cd"]
    regions = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row").with_columns(
        tnr_sf=pl.Series(np.round(rng.gamma(2.0, 1.6, len(rows)), 1)),
        tnr_lf=pl.Series(np.round(rng.gamma(2.0, 2.2, len(rows)), 1)),
    )
    here = np.minimum(np.array(csd_of), len(da_sizes) - 1)
    traits = rng.normal(size=(len(da_sizes), FACTORS))[here]
    kinds = np.array(level, dtype=np.int8)
    return Geography(kinds, regions, traits, (kinds == 0) & (da_sizes[here] == 1))
