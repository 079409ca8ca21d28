"""Drafts drawn at random: axes, layouts, signs, notes and ways of publishing in any combination, judged like all others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tests.drafts.corpus import DRAFTS, Axis, Dialect, Hide, Layout, Table, add, places
from tests.drafts.judge import FAR

SEXES = """Persons,Males,Females;Total,Male,Female;Both sexes,Men,Women;All,Men,Women;Insgesamt,männlich,weiblich
Ensemble,Hommes,Femmes;Total,Hombres,Mujeres;Totaal,Mannen,Vrouwen;Total,Homens,Mulheres"""
OTHERS = """All ages,0-4,5-14,15-24,25-64,65+;Total,Under 18,18 to 64,65 and over;Total,Single,Married,Widowed,Divorced
All persons,0-19 years,20-39 years,40-59 years,60 years and over;All dwellings,House,Flat,Other
Total population,Employed,Unemployed,Not in the labour force;Insgesamt,unter 18,18 bis 64,65 und mehr
Tous les âges,0 à 14 ans,15 à 64 ans,65 ans et plus;All households,1 person,2 persons,3 persons,4 or more persons
All qualifications,None,School,Vocational,Degree;Any condition,Asthma,Diabetes,Other condition"""
WHOLE = (
    "Total;All areas;All wards;Scotland;Whole region;County total;Grand total;City of Exampleton;Gesamt;New Zealand;TOTAL"
)
SIDE = "District;Area;Ward;Local authority;Region;Commune;Gemeinde;Name;LGA"
HIDDEN = '{} = confidential;{} suppressed;"{}" denotes a suppressed value;{}: value suppressed to protect confidentiality'
NEAREST = "Figures are rounded to the nearest {}.;Numbers have been rounded to the nearest {};Rounded to nearest {}."
RANDOM = """Counts have been randomly rounded to base {}.;Random rounding to base {} has been applied.
All counts are subject to random rounding (base {}).;Values are randomly rounded to a multiple of {}."""


def draw(number: int) -> str | None:
    """Enter the draft of this number among all drafts, and return its name; None if it is neither leaky nor healthy."""
    rng = np.random.default_rng([number, 77])

    def pick(choices: Any) -> Any:
        listed = choices.replace("\n", ";").split(";") if isinstance(choices, str) else choices
        return listed[rng.integers(len(listed))]

    kind, base = pick(["hidden", "hidden", "random", "random with exact totals", "nearest", "exact"]), int(pick([3, 5, 10]))
    whole = pick(WHOLE) if kind == "hidden" or rng.random() < 0.4 else ""
    rows = places(int(rng.integers(6, 20)), whole, bool(rng.random() < 0.7), pick(SIDE))
    (top, *parts), (both, *sexes) = pick(OTHERS).split(","), pick(SEXES).split(",")
    other, sex = Axis("Category", [(top, parts)]), Axis("Sex", [(both, sexes)])
    across = pick([(other,), (sex,), (other, sex), (sex, other)])
    more: dict[str, Any] = {"mean": float(rng.uniform(12, 50)), "seed": int(rng.integers(10**6))}
    notes = []
    if kind == "hidden":
        sign = pick("c;x;..;*;<5;S;:;#")
        low, high = (1, 4) if sign == "<5" else (0, FAR)
        more["hide"] = Hide(5, sign, low, high, complements=bool(rng.random() < 0.4), second="x" if sign == "<5" else "")
        notes += [pick(HIDDEN).format(sign)] if sign != "<5" and rng.random() < 0.8 else []
    elif kind != "exact":
        more["how"] = f"{'nearest' if kind == 'nearest' else 'rounding'}:{base}"
        more["exact"] = (tuple(axis.labels[0] for axis in across),) if rng.random() < 0.5 else ()
        notes += (
            [pick(NEAREST if kind == "nearest" else RANDOM).format(base)] if kind == "nearest" or rng.random() < 0.6 else []
        )
    suffix = pick([".xlsx", ".csv", ".csv", ".ods"])
    joined = [" - ", " ", ", ", "repeat"]
    layout = Layout(
        head=pick(joined if suffix == ".csv" else ["merge", "blank", *joined]) if len(across) > 1 else "merge",
        above=pick([(), ("Table 3. Counts by area, 2021",), ("Statistics Office", "Table A1: Counts", "")]),
        below=(*pick([(), ("",)]), *notes, *pick([(), ("Source: Statistics Office, 2021",)])),
        codes=pick(["", "", "E0700"]),
        blank_rows=pick([0, 0, 0, 4]) if suffix != ".csv" else 0,
        extra=pick([(), (), (), (("Rank", lambda at: at + 1),), (("Median age", lambda at: round(38.2 + at / 7, 1)),)]),
    )
    dialect = pick(
        [Dialect(), Dialect(";", ","), Dialect("\t"), Dialect(thousands=",", quote=True), Dialect(";", encoding="latin-1")]
    )
    name = f"chance-{number}-{kind.split()[0]}{suffix}"
    long = suffix == ".csv" and rng.random() < 0.25
    add(
        name,
        "",
        Table((rows, *across), **more),
        Layout(-1, value=pick("Count;Value;Persons;n")) if long else layout,
        dialect=dialect,
    )
    draft = DRAFTS.pop(name)
    judged = draft.judged()[0]
    if judged == "narrow":
        return None
    DRAFTS[name] = replace(draft, kind=judged)
    return name
