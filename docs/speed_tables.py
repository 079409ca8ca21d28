"""The tables of docs/speed.md, from bench/results.json: what `make bench` and `make scale` measured last."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

PLACE = re.compile(r"(<!-- measured: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
"""Where a table goes, by its name."""

MISSING = "Not measured yet.\n"

HEADS = ("areas", "zip", "time", "time per area", "processor time", "cores busy", "peak memory")
"""What the tables of audits say of one."""


def with_tables(page: str, results: Mapping[str, Any]) -> str:
    """Return the page with every table as the results have it."""
    made = {
        "bench": _about,
        "ratios": _ratios,
        "times": _times,
        "limits": _limits,
        "scale": _scale,
        "stages": _stages,
        "joint": _joint,
        "linked": _linked,
        "growth": _growth,
        "cluster": _cluster,
        "censuses": _censuses,
    }

    def put(match: re.Match[str]) -> str:
        return f"{match[1]}{made[match[2]](results)}{match[3]}"

    return PLACE.sub(put, page)


def _about(results: Mapping[str, Any], section: str = "bench") -> str:
    found = results.get(section)
    if found is None:
        return MISSING
    machine = found["machine"]
    libraries = ", ".join(f"{name} {version}" for name, version in machine["libraries"].items())
    return (
        f"unround {found['unround']}, {found['date']}; {machine['cores']} cores of {machine['cpu']}, "
        f"{machine['memory_gb']} GB; {machine['system']}, Python {machine['python']}; {libraries}.\n"
    )


def _ratios(results: Mapping[str, Any]) -> str:
    if "bench" not in results:
        return MISSING
    rows = [
        (
            one["job"],
            one["baseline"],
            seconds(one["baseline_seconds"]),
            seconds(one["seconds"]),
            f"**{ratio(one['ratio'])}**",
            f"{ratio(one['aim'])}{', missed' if one['missed'] else ''}",
        )
        for one in results["bench"]["ratios"]
    ]
    return table(("job", "against", "their time", "ours", "times as fast", "aim: at least"), rows, 2)


def _times(results: Mapping[str, Any]) -> str:
    if "bench" not in results:
        return MISSING
    rows = [
        (one["job"], seconds(one["seconds"]), f"{seconds(one['aim_seconds'])}{', missed' if one['missed'] else ''}")
        for one in results["bench"]["times"]
    ]
    return table(("job", "time", "aim: at most"), rows, 1)


def _limits(results: Mapping[str, Any]) -> str:
    if "limits" not in results.get("bench", {}):
        return MISSING
    rows = [
        (one["job"], one["limit"], seconds(one["least_seconds"]), seconds(one["seconds"]), f"{100 * one['share']:.0f}%")
        for one in results["bench"]["limits"]
    ]
    return table(("job", "limit", "least time", "ours", "share"), rows, 2)


def _runs(results: Mapping[str, Any], part: str) -> Any:
    """Return what `make scale` measured of a part, if it did."""
    return results.get(part, {}).get("runs")


def _scale(results: Mapping[str, Any]) -> str:
    found = _runs(results, "short")
    return MISSING if found is None else _about(results, "short") + "\n" + table(HEADS, [_run(one) for one in found], 0)


def _run(one: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        f"{one['areas']:,}",
        f"{one['zip_mb']:,.0f} MB",
        clock(one["wall"]),
        seconds(one["wall"] / one["areas"]),
        clock(one["cpu"]),
        f"{one['cpu'] / one['wall']:.2f}",
        f"{one['peak_mb']:,.0f} MB",
    )


def _stages(results: Mapping[str, Any]) -> str:
    runs = [*(_runs(results, "short") or ()), *(_runs(results, "joint") or ())]
    if not runs:
        return MISSING
    names = dict.fromkeys(stage for one in runs for stage in one["stages"])
    rows = [(f"{one['areas']:,}, {one['rows']} rows", *(_share(one, stage) for stage in names)) for one in runs]
    return table(("areas", *names), rows, 1)


def _share(one: Mapping[str, Any], stage: str) -> str:
    return f"{one['stages'][stage]:,.1f} s" if stage in one["stages"] else ""


def _joint(results: Mapping[str, Any]) -> str:
    found = _runs(results, "joint")
    return MISSING if found is None else _about(results, "joint") + "\n" + table(HEADS, [_run(one) for one in found], 0)


def _growth(results: Mapping[str, Any]) -> str:
    found = _runs(results, "growth")
    if found is None:
        return MISSING
    rows = [(f"{one['counts']:,}", *_run(one)) for one in (*found["areas"], *found["counts"])]
    return _about(results, "growth") + "\n" + table(("counts per area", *HEADS), rows, 0)


def _cluster(results: Mapping[str, Any]) -> str:
    found = _runs(results, "cluster")
    if found is None:
        return MISSING
    rows = [(f"{one['workers']}", clock(one["wall"]), f"{one['stages']['auditing']:,.1f} s") for one in found]
    one, two = found
    times, blocks = one["wall"] / two["wall"], one["stages"]["auditing"] / two["stages"]["auditing"]
    told = f"\nTwo workers are {times:.1f} times as fast as one; in the blocks alone, {blocks:.1f} times.\n"
    return table(("workers", "time", "of this, in blocks"), rows, 0) + told


def _linked(results: Mapping[str, Any]) -> str:
    found = _runs(results, "linked")
    if found is None:
        return MISSING
    rows = [
        (
            what,
            *_run(found[name])[2:],
            f"{found[name]['claims']['likely']:,}",
            f"{found[name]['claims']['proved'] + found[name]['claims']['conditional']:,}",
        )
        for name, what in (("alone", "each area alone"), ("linked", "linked"))
    ]
    heads = ("", "time", "time per area", "processor time", "cores busy", "peak memory", "likely", "proved or conditional")
    times = found["linked"]["wall"] / found["alone"]["wall"]
    methods = ", ".join(f"{number:,} {name}" for name, number in found["linked"]["areas_by_method"].items())
    told = f"\nLinked, it takes {times:.1f} times as long. Areas in blocks with families, by method: {methods}.\n"
    return table(heads, rows, 1) + told


AREAS_OF_A_CENSUS, CENSUSES, MACHINES, CORES = 500_000, 10, 10, 16
"""Half a million areas, which is about what Canada has in blocks; and an ordinary cluster."""


def _censuses(results: Mapping[str, Any]) -> str:
    short, joint = _runs(results, "short"), _runs(results, "joint")
    if short is None or joint is None:
        return MISSING
    rows = []
    for what, small, large in (
        ("age, sex, dwellings, households, marital status, languages", *short[-2:]),
        ("all 2,631 rows", *joint[-2:]),
    ):
        more = large["areas"] - small["areas"]
        each = (large["cpu"] - small["cpu"]) / more
        audit, read = ((large["stages"][name] - small["stages"][name]) / more for name in ("auditing", "reading"))
        all_areas = CENSUSES * AREAS_OF_A_CENSUS
        cores = large["cpu"] / large["wall"]
        work = audit * cores * all_areas / (MACHINES * CORES)
        rows.append((what, seconds(each), seconds(audit * cores), clock(work), clock(read * all_areas / CENSUSES)))
    heads = ("rows", "processor time per area", "of this in blocks", "blocks of all censuses", "reading one census")
    return (
        f"{CENSUSES} censuses of {AREAS_OF_A_CENSUS:,} areas each, on {MACHINES} machines with {CORES} processors like "
        "those of docs/speed.md; the cost of an area is taken from the difference between the two largest runs there.\n\n"
        + table(heads, rows, 1)
    )


def table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]], words: int) -> str:
    """Return a table in Markdown; the first columns hold words, the others numbers."""
    rule = "|".join("---" if i < words else "--:" for i in range(len(heads)))
    lines = [" | ".join(heads), *(" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows)]
    return "\n".join([f"| {lines[0]} |", f"|{rule}|", *(f"| {line} |" for line in lines[1:])]) + "\n"


def ratio(number: float) -> str:
    """Return a ratio as people read it.

    Examples
    --------
    >>> ratio(19234.6), ratio(0.8089)
    ('19,235×', '0.81×')
    """
    return f"{number:,.0f}×" if number >= 100 else f"{number:.2g}×"


def seconds(time: float) -> str:
    """Return a time as people read it.

    Examples
    --------
    >>> seconds(1.234), seconds(0.0004687)
    ('1.23 s', '469 µs')
    """
    return f"{time:.3g} s" if time >= 1 else f"{1e3 * time:.3g} ms" if time >= 1e-3 else f"{1e6 * time:.3g} µs"


def clock(time: float) -> str:
    """Return a long time as people read it.

    Examples
    --------
    >>> clock(33.6), clock(754), clock(7530)
    ('34 s', '12 min 34 s', '2 h 05 min')
    """
    whole = round(time)
    if whole < 120:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60:02} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60:02} min"
