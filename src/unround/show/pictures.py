"""Charts to work with in a notebook: Altair, in the palette of everything else.

Altair is the one thing that `pip install unround` does not bring: nothing but these charts needs it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from unround.errors import InputError
from unround.show.palette import PALETTE
from unround.show.words import CLAIMS, size_named

if TYPE_CHECKING:
    import altair as alt

    from unround.checks import Check

_Chart = TypeVar("_Chart")

KINDS = (*CLAIMS, "open", "given")
MOST_PANELS = 24
"""Distributions that are drawn; more would make a picture that nobody can look at."""

NEEDED = 'charts in a notebook need Altair: pip install "unround[charts]".'

NOTE = "Inferred from published values; not official counts."


def check_altair() -> None:
    """Raise InputError unless Altair is installed."""
    try:
        importlib.import_module("altair")
    except ModuleNotFoundError:
        raise InputError(NEEDED) from None


class Drawn(NamedTuple):
    """One distribution to draw."""

    name: str
    kind: str
    published: int | None
    counts: Iterable[int]
    probabilities: Iterable[float]


def colour(name: str) -> str:
    """Return a colour of the palette, as it is on a light page."""
    return PALETTE[name][0]


def claims_picture(summary: Mapping[str, Any]) -> alt.Chart:
    """Draw how many counts an audit claims, by their size and by how certain they are."""
    check_altair()
    import altair as alt

    by_value = summary["sensitive_claims"]["by_value"]
    rows = [
        {"count": size_named(size), "claim": kind, "claims": numbers[kind], "order": at}
        for size, numbers in by_value.items()
        for at, kind in enumerate(CLAIMS)
    ]
    chart = alt.Chart(_data(rows), title=_title("Counts that can be inferred, by their size")).mark_bar()
    drawn: alt.Chart = chart.encode(
        x=alt.X("count:N", sort=[size_named(size) for size in by_value], title="inferred count", axis=_level()),
        y=alt.Y("claims:Q", title="claims", stack=True),
        color=_kinds(CLAIMS),
        order="order:Q",
        tooltip=["count:N", "claim:N", "claims:Q"],
    ).properties(width=280, height=200)
    return _styled(drawn)


def distributions_picture(drawn: Iterable[Drawn], title: str) -> alt.FacetChart:
    """Draw how likely each count is, a panel for every cell."""
    check_altair()
    import altair as alt

    shown = [one for one in drawn if len(list(one.counts))]
    if not shown:
        raise InputError("there is nothing to draw: no cell has a distribution.")
    names = _distinct(shown[:MOST_PANELS])
    rows = [
        {"cell": name, "claim": one.kind, "count": int(count), "probability": float(chance), "published": one.published}
        for name, one in zip(names, shown, strict=False)
        for count, chance in zip(one.counts, one.probabilities, strict=True)
    ]
    more = f" The first {MOST_PANELS} of {len(shown)} cells." if len(shown) > MOST_PANELS else ""
    bars = alt.Chart().mark_bar()
    panel = bars.encode(
        x=alt.X("count:O", title="true count", axis=_level()),
        y=alt.Y("probability:Q", title="probability", axis=alt.Axis(format="%")),
        color=_kinds([kind for kind in KINDS if any(row["claim"] == kind for row in rows)]),
        tooltip=["cell:N", "count:O", alt.Tooltip("probability:Q", format=".1%"), "published:Q", "claim:N"],
    ).properties(width=170, height=110)
    facets: alt.FacetChart = panel.facet(
        facet=alt.Facet("cell:N", sort=names, title=None),
        data=_data(rows),
        columns=min(3, len(names)),
        title=_title(title, f"{NOTE}{more}"),
    )
    facets = facets.resolve_scale(x="independent", y="independent")
    return _styled(facets)


def residuals_picture(check: Check) -> alt.FacetChart:
    """Draw observed residuals beside those that the mechanism implies, the worst family first."""
    check_altair()
    import altair as alt

    from unround.show.check import ordered

    families = [one for one in ordered(check.families) if len(one.expected) > 1][:MOST_PANELS]
    if not families:
        raise InputError("there is nothing to draw: no family of sums could be tested.")
    rows = [
        {
            "family": one.family,
            "verdict": one.verdict,
            "residual": far,
            "observed": one.observed.get(far, 0) / max(one.sums, 1),
            "expected": one.expected.get(far, 0.0),
        }
        for one in families
        for far in sorted({*one.observed, *one.expected})
    ]
    place = alt.X("residual:O", title="residual", axis=_level())
    share, told = alt.Axis(format="%"), [alt.Tooltip(f"{name}:Q", format=".1%") for name in ("observed", "expected")]
    bars = alt.Chart().mark_bar(color=colour("series-1"))
    ticks = alt.Chart().mark_tick(color=colour("ink"), thickness=2)
    tips = ["family:N", "verdict:N", "residual:O", *told]
    seen = bars.encode(x=place, y=alt.Y("observed:Q", title="share of sums", axis=share), tooltip=tips)
    implied = ticks.encode(x=place, y=alt.Y("expected:Q", title="share of sums"))
    facets: alt.FacetChart = (
        alt.layer(seen, implied)
        .properties(width=220, height=120)
        .facet(
            facet=alt.Facet("family:N", sort=[one.family for one in families], title=None),
            data=_data(rows),
            columns=min(2, len(families)),
            title=_title("Do the data fit the mechanism?", "Bars: observed. Lines: what the mechanism implies."),
        )
    )
    facets = facets.resolve_scale(x="independent", y="independent")
    return _styled(facets)


def _distinct(drawn: list[Drawn]) -> list[str]:
    """Return names that tell panels apart, even where two cells are called alike."""
    names: list[str] = []
    for one in drawn:
        again = sum(name == one.name or name.startswith(f"{one.name} (") for name in names)
        names.append(one.name if not again else f"{one.name} ({again + 1})")
    return names


def _kinds(kinds: Iterable[str]) -> alt.Color:
    import altair as alt

    named = list(kinds)
    scale = alt.Scale(domain=named, range=[colour(f"{kind}-bar") for kind in named])
    return alt.Color("claim:N", scale=scale, title=None)


def _level() -> alt.Axis:
    import altair as alt

    return alt.Axis(labelAngle=0, labelOverlap=True)


def _title(text: str, note: str = NOTE) -> alt.TitleParams:
    import altair as alt

    return alt.TitleParams(text, subtitle=note, anchor="start")


def _styled(chart: _Chart) -> _Chart:
    """Put a chart into the colours of everything else."""
    ink, soft, line = colour("ink"), colour("soft"), colour("line")
    styled: Any = chart
    styled = styled.configure(background=colour("paper")).configure_view(stroke=None)
    styled = styled.configure_axis(labelColor=soft, titleColor=soft, gridColor=line, domainColor=colour("line-strong"))
    styled = styled.configure_title(color=ink, subtitleColor=soft).configure_legend(labelColor=ink)
    drawn: _Chart = styled.configure_header(labelColor=ink, labelFontWeight=600)
    return drawn


def _data(rows: list[dict[str, Any]]) -> Any:
    import altair as alt

    data: Any = alt.InlineData
    return data(values=rows)
