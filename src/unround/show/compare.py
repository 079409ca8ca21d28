"""Ways of publishing compared; and a table that was published in one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from unround._version import __version__
from unround.comparison.measure import FEW, LARGE
from unround.show import charts
from unround.show import parts as doc
from unround.shown import plain

if TYPE_CHECKING:
    from unround.comparison import Comparison
    from unround.protection.release import Protected

MANY = 12
"""Of more ways of publishing only the efficient ones are named in a chart."""

SHOWN = 10
"""Signed distances up to this one are drawn."""

FAMILIES = {"rounding": "s1", "controlled": "s4", "nearest": "s3", "noise": "s2", "other": "s5"}
"""Kinds of mechanisms, and the colour class of each: none of the colours that claims have."""

KINDS_OF = {"laplace": "noise", "gaussian": "noise", "nearest-even": "nearest", "digits": "nearest"}
ROUNDING = ("base", "graduated", "sample", "residues")


def colour(name: str) -> str:
    """Return the colour class of a mechanism.

    >>> colour("rounding:5"), colour("laplace:1.45,clamped"), colour("base=7"), colour("exact")
    ('s1', 's2', 's1', 's5')
    """
    first = name.split(":")[0].split("=")[0]
    kind = "rounding" if first in ROUNDING else KINDS_OF.get(first, first)
    return FAMILIES.get(kind, FAMILIES["other"])


# -- tables -----------------------------------------------------------------------------------------------------------

Say = Callable[[Mapping[str, Any]], str]
"""What a column says of a way of publishing."""


def _signed(value: float, form: str) -> str:
    """Return a number with a proper minus; what rounds to nothing is neither more nor less."""
    said = f"{value:{form}}"
    return said.lstrip("+-") if not any(digit in said for digit in "123456789") else said.replace("-", "−")


def _field(name: str, form: str = ".3f", none: str = "") -> Say:
    return lambda row: none if row[name] is None else _signed(row[name], form)


def _percent(name: str) -> Say:
    return _field(name, ".1%")


def _number(name: str) -> Say:
    return lambda row: "not computed" if row[name] is None else mean_count(row[name])


def _with_error(name: str, sign: str = "") -> Say:
    def shown(row: Mapping[str, Any]) -> str:
        spread, mean = row["standard_error"][name], _signed(row[name], f"{sign}.3f")
        return mean if spread is None else f"{mean} ± {spread:.3f}"

    return shown


def _right(row: Mapping[str, Any]) -> str:
    return f"{100 * row['likely_right'] / row['likely']:.1f}%" if row["likely"] else ""


NAME = ("", lambda row: str(row["name"]))
ERRORS: doc.Columns = [
    NAME,
    ("mean error", _with_error("mean_error")),
    (f"over {LARGE}", _with_error(f"mean_error_over_{LARGE}")),
    ("expected", lambda row: "" if row["expected"] is None else f"{row['expected']['mean_error']:.3f}"),
    ("RMSE", _with_error("rmse")),
    ("within 4", _percent("within_4")),
    ("bias", _with_error("bias", "+")),
    ("sums broken", _percent("sums_broken")),
    ("ε", _field("epsilon", ".1f", "none")),
]
RISKS: doc.Columns = [
    NAME,
    ("proved", _number("proved")),
    ("wrong", _number("proved_wrong")),
    ("likely", _number("likely")),
    ("right", _right),
    ("truth", _with_error("truth_probability")),
    ("alone", _field("truth_probability_alone")),
    ("best guess", _percent("guessed")),
    ("1s and 2s", _number("small_disclosed")),
]
LEFT: doc.Columns = [
    ("one", _number("proved")),
    (f"up to {FEW}", _percent(f"interval_up_to_{FEW}")),
    ("efficient", lambda row: "yes" if row["efficient"] else ""),
]
INTERVALS: doc.Columns = [
    NAME,
    ("values left, alone", _field("interval_alone", ".1f", "no bound")),
    ("with sums", _field("interval", ".1f", "no bound")),
    *LEFT,
]
DESIGNS: doc.Columns = [
    NAME,
    ("mean change", _field("mean_change")),
    ("RMSE", _field("rmse")),
    ("truth", _field("truth_probability")),
    ("likely", _number("likely")),
    ("1s and 2s", _number("small_disclosed")),
    ("values left", _field("interval", ".1f", "no bound")),
    *LEFT,
]
CLAMPED: doc.Columns = [
    NAME,
    ("negative", _percent("negative")),
    ("mean error", _field("mean_error")),
    ("clamped", _field("clamped_mean_error")),
    ("RMSE", _field("rmse")),
    ("clamped", _field("clamped_rmse")),
    ("bias", _field("bias", "+.3f")),
    ("clamped", _field("clamped_bias", "+.3f")),
    ("bias of true zeros, clamped", _field("clamped_bias_of_zeros", "+.2f")),
]


def _colours(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    return {row["name"]: colour(row["name"]) for row in rows}


# -- sentences --------------------------------------------------------------------------------------------------------


def footnotes(compared: Mapping[str, Any]) -> list[str]:
    """Return how to read the numbers of a comparison, and what was left out of account."""
    expected = "" if compared["designs"] else "Expected: the mean error of a large count, in closed form. "
    notes = [
        f"{expected}Truth: the probability that all sums, the mechanism "
        f"and a prior fitted to the release give to the true count, on average over {compared['cells_to_infer']:,} counts; "
        "alone: without sums, from the published count and that prior. ±: one standard error over releases. 1s and 2s: "
        "true counts of one or two that are correctly proved or likely.",
        "Values left: those of the feasibility interval, from the least to the greatest count that what is published leaves "
        f"possible, on average; one: counts that have one value left; up to {FEW}: the share of counts with so few. "
        "Efficient: no other way here is better in mean error, in the probability of the truth or in proved counts without "
        "being worse in another of them (by more than 1%).",
    ]
    rows = compared["mechanisms"]
    notes += [f"ε of {row['name']}, whole release: {row['epsilon_note']}." for row in rows if row["epsilon"] is not None]
    if any(row["epsilon"] is None for row in compared["mechanisms"]):
        notes.append(
            "ε is none where some tables can be distinguished with certainty, as with all rounding: nothing then limits "
            "what a release may reveal."
        )
    if any(row["left_out_of_account"] for row in compared["mechanisms"]):
        cut = max(row["left_out_of_account"] or 0.0 for row in compared["mechanisms"])
        notes.append(
            f"Noise is unbounded: counts less than {cut:g} times as likely as the most likely, given the figures published "
            "with them, are ignored."
        )
    notes += [
        f"{row['name']}: in {mean_count(row['not_exact'])} areas some sums had too many possible counts to be used, so more "
        "could be inferred than is shown."
        for row in rows
        if row["not_exact"]
    ]
    return [*notes, *compared["notes"]]


# -- the document -----------------------------------------------------------------------------------------------------


@doc.titled("Ways of publishing, side by side", "Comparison")
def comparison(result: Comparison | Mapping[str, Any]) -> Iterator[doc.Part]:
    """Say what each way of publishing costs, and what it gives away."""
    compared = plain(result)
    rows = compared["mechanisms"]
    releases = f"each published {compared['seeds']} times" if compared["seeds"] > 1 else "each published once"
    yield doc.Text(
        f"{compared['areas']:,} areas with {compared['cells']:,} counts and {compared['sums']:,} sums per area, from "
        f"{compared['source']}, {releases} in every way. Readers are taken to know the published table, the sums that hold "
        "in it, and the mechanism.",
        "lead",
    )
    if compared["designs"]:
        yield from _designs(compared)
        return
    yield doc.Only(doc.PAGE, list(_drawings(rows)))
    errors = doc.tabulated(rows, ERRORS, "How far off", colours=_colours(rows))
    short = [[str(cell).split(" ± ")[0] for cell in row.cells] for row in errors.lines]  # a terminal is narrow
    yield doc.Only(doc.TERMINAL, [doc.Section("How far off", [replace(errors, rows=short)])])
    yield doc.Only(doc.PAGE, [doc.Section("How far off", [errors])])
    for title, columns in (("What can be inferred", RISKS), ("What is left possible", INTERVALS)):
        yield doc.Section(title, [doc.tabulated(rows, columns, title, colours=_colours(rows))])
    negative = [row for row in rows if row["negative"] > 0]
    if negative:
        title = "Negative counts published as 0"
        said = doc.Text(
            "Noise makes some counts negative. Publishing 0 instead makes them look better, and totals too large."
        )
        yield doc.Only(
            doc.PAGE, [doc.Section(title, [said, doc.tabulated(negative, CLAMPED, title, colours=_colours(rows))])]
        )
    yield doc.Section("In words", [doc.Bullets(sentences(compared))])
    yield doc.Section("How to read it", [doc.Bullets(footnotes(compared), doc.QUIET)])


def _designs(compared: Mapping[str, Any]) -> Iterator[doc.Part]:
    """Say what every design costs and gives away, and which of them are efficient."""
    rows = compared["mechanisms"]
    by_change = sorted(rows, key=lambda row: float(row["mean_change"]))
    best = [row for row in by_change if row["efficient"]]
    proving = sum(row["proved"] > 0 for row in rows)
    chart = doc.Chart(
        _risk_chart(rows),
        "Risk against error, by design",
        "Left: smaller errors. Down: less can be inferred. Large and named: efficient, one of those that are nearly the "
        "same. Ring: some counts can be proved.",
    )
    yield doc.Only(doc.PAGE, [doc.Section("Error against risk", [chart])])
    yield doc.Section("Designs", [doc.tabulated(by_change, DESIGNS, "Designs")])
    words = [
        f"{len(best):,} of {len(rows):,} designs are efficient, from {best[0]['name']} (mean change "
        f"{best[0]['mean_change']:.2f}, truth {best[0]['truth_probability']:.3f}) to {best[-1]['name']} "
        f"({best[-1]['mean_change']:.2f}, {best[-1]['truth_probability']:.3f}): between them an office chooses how much "
        "error protection is worth.",
        f"Under {proving:,} of the designs some counts can be proved: where D is small for V, large changes are common.",
    ]
    yield doc.Section("In words", [doc.Bullets([*_wrong(rows), *words])])
    change = "Mean change: how far the table moves these true counts, on average over all that can be drawn."
    yield doc.Section("How to read it", [doc.Bullets([change, *footnotes(compared)], doc.QUIET)])


def _drawings(rows: Sequence[Mapping[str, Any]]) -> Iterator[doc.Part]:
    alone = [(row["name"], colour(row["name"]), row["truth_probability_alone"], row["truth_probability"]) for row in rows]
    against = doc.Chart(
        _risk_chart(rows),
        "Publishing closer to the truth reveals more",
        "Left: smaller errors. Down: less can be inferred. Bars: one standard error over releases, where visible. Ring: "
        "some counts can be proved.",
    )
    added = doc.Chart(
        charts.pairs(alone, "probability given to the true count"),
        "What the sums add",
        "The mean probability given to the true count: from the published count alone (hollow) and with all sums (filled).",
    )
    yield doc.Section("Error against risk", [doc.Side([[against], [added]])])
    said = (
        "Shares of all counts by published − true. Lines: what the mechanism implies for large counts. Rounding leaves 0 "
        "unchanged, so more counts are exact than it implies."
    )
    yield doc.Section("How far published counts are from the truth", [doc.Text(said), doc.Charts(_distance_charts(rows))])


def _risk_chart(rows: Sequence[Mapping[str, Any]]) -> Markup:
    points = [
        {
            "name": row["name"],
            "kind": colour(row["name"]),
            "error": row["mean_error"] if row["mean_change"] is None else row["mean_change"],
            "risk": row["truth_probability"],
            "error_by": row["standard_error"]["mean_error"] or 0.0,
            "risk_by": row["standard_error"]["truth_probability"] or 0.0,
            "proved": row["proved"] > 0,
        }
        for row in rows
    ]
    if len(rows) > MANY:
        named: list[dict[str, Any]] = []
        for point, row in sorted(zip(points, rows, strict=True), key=lambda pair: float(pair[0]["error"])):
            point["named"] = row["efficient"] and not any(_close(point, other) for other in named)
            named += [point] if point["named"] else []
    return charts.risk_against_error(points, "mean error of a published count", "probability given to the true count")


def _close(point: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two points of a chart are too near each other for both to be named."""
    return all(abs(point[axis] - other[axis]) < 0.06 * other[axis] for axis in ("error", "risk"))


def _distance_charts(rows: Sequence[Mapping[str, Any]]) -> list[doc.Chart]:
    """Draw signed distances, one chart per mechanism, all to the same scale."""
    from unround.comparison.measure import distances
    from unround.protection.table import parse_protection

    drawn, places = [], range(-SHOWN, SHOWN + 1)
    for row in rows:
        name = row["name"]
        observed = {d: float(row["distances"].get(str(d), row["distances"].get(d, 0.0))) for d in places}
        expected = None
        if row["expected"] is not None:
            spec = f"rounding:{name[5:]}" if name.startswith("base=") else name if ":" in name else "rounding:5"
            implied = distances(parse_protection(spec).mechanism)
            expected = None if implied is None else {d: implied.shares.get(d, 0.0) for d in places}
        drawn.append((name, observed, expected))
    top = max(share for _, observed, expected in drawn for share in (*observed.values(), *(expected or {}).values()))
    return [
        doc.Chart(
            charts.columns(
                observed,
                f"Shares of counts by published − true, {name}: {100 * observed[0]:.1f}% are exact",
                kind=colour(name),
                expected=expected,
                top=top,
            ),
            name,
        )
        for name, observed, expected in drawn
    ]


SURE = 2.5
"""Differences of fewer standard errors than this are not called differences."""


def sentences(compared: Mapping[str, Any]) -> list[str]:
    """Return what to make of a comparison."""
    rows = compared["mechanisms"]
    said = list(_wrong(rows))
    said += [_against(rows[0], row) for row in rows[1:]]
    said += [_clamping(row) for row in rows if row["negative"] > 0]
    said += list(_noise(rows))
    return said


def _wrong(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for row in rows:
        if row["proved_wrong"]:
            yield f"{row['name']}: {row['proved_wrong']:g} proved counts were wrong. This is a fault in unround."


def _change(first: Mapping[str, Any], other: Mapping[str, Any], name: str) -> str:
    """Return by how many per cent a number falls or rises, if by more than standard errors explain."""
    before, after = first[name], other[name]
    errors = [row["standard_error"][name] or 0.0 for row in (first, other)]
    share = 100 * (after / before - 1) if before else 0.0
    if abs(after - before) <= SURE * (errors[0] ** 2 + errors[1] ** 2) ** 0.5 + 1e-12 or abs(share) < 0.5:
        return "stays the same"
    return f"{'falls' if share < 0 else 'rises'} by {abs(share):.0f}%"


def _against(first: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """Return how one way of publishing compares with the first."""
    if not first["proved"]:
        proofs = (
            "nothing can be proved under either" if not row["proved"] else f"{mean_count(row['proved'])} counts are proved"
        )
    elif not row["proved"]:
        proofs = f"nothing can be proved any more (before: {mean_count(first['proved'])})"
    else:
        proofs = f"{mean_count(row['proved'])} counts are proved instead of {mean_count(first['proved'])}"
    truth = "truth_probability"
    return (
        f"{row['name']} compared with {first['name']}: {proofs}; the number of likely counts goes from "
        f"{mean_count(first['likely'])} to {mean_count(row['likely'])}, and the probability given to the true count "
        f"{_change(first, row, truth)} ({first[truth]:.3f} to {row[truth]:.3f}). The mean error "
        f"{_change(first, row, 'mean_error')} ({first['mean_error']:.2f} to {row['mean_error']:.2f}{_promise(first, row)})."
    )


def _promise(first: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """Return the same of large counts: in closed form, and as measured."""
    if first["expected"] is None or row["expected"] is None:
        return ""
    before, after = first["expected"]["mean_error"], row["expected"]["mean_error"]
    if before == after:
        return ""
    large = f"mean_error_over_{LARGE}"
    share = 100 * (after / before - 1)
    return (
        f"; for large counts it {'falls' if share < 0 else 'rises'} by {abs(share):.0f}%, from {before:.3f} to {after:.3f} "
        f"in closed form, and from {first[large]:.2f} to {row[large]:.2f} among counts over {LARGE} here"
    )


def _clamping(row: Mapping[str, Any]) -> str:
    """Return what publishing negative counts as 0 does."""
    return (
        f"{row['name']}: {100 * row['negative']:.1f}% of counts are negative. If they are published as 0, the mean error is "
        f"{row['clamped_mean_error']:.2f} instead of {row['mean_error']:.2f}, but counts are biased by "
        f"{row['clamped_bias']:+.3f} on average, and true zeros by {row['clamped_bias_of_zeros']:+.2f}: totals added up "
        "from many empty parts come out too large."
    )


def _noise(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield whether noise defeats inference, as the paper hopes."""
    noisy = [row for row in rows if row["left_out_of_account"] is not None]
    if not noisy:
        return
    helped = "; ".join(
        f"under {row['name']} they raise the probability given to the true count from "
        f"{row['truth_probability_alone']:.3f} to {row['truth_probability']:.3f}, and the best guess is off by "
        f"{row['guess_error']:.2f} on average, the published count by {row['mean_error']:.2f}"
        for row in noisy
    )
    yield (
        "Does noise defeat inference? Nothing can be proved any more, and solutions cannot be listed one by one. But sums "
        f"still reveal something: {helped}."
    )


def mean_count(value: float) -> str:
    """Return a mean count for people: whole where it is large.

    >>> mean_count(0.0), mean_count(16.6), mean_count(2394.4)
    ('0', '16.6', '2,394')
    """
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.1f}"


# -- one table, published ---------------------------------------------------------------------------------------------


def _score(name: str, form: str = ".2f") -> Say:
    def shown(step: Mapping[str, Any]) -> str:
        text = "–" if step[name] is None else f"{step[name]:{form}}".replace("-", "−")
        return text if text.strip("+−0.") else text.lstrip("+−")

    return shown


STEPS: doc.Columns = [
    ("", lambda step: str(step["step"])),
    ("mean error", _score("mean_error")),
    ("RMSE", _score("rmse")),
    ("within 4", _score("within_4", ".1%")),
    ("bias", _score("bias", "+.2f")),
    ("bias under 5", _score("small_bias", "+.2f")),
    ("negative", _score("negative", ",")),
    ("sums off", _score("sums_off", ".1%")),
]


@doc.titled("What was published, and what it cost")
def protected(made: Protected) -> Iterator[doc.Part]:
    """Say what was done to a table, and what it cost."""
    yield from _cost(made)
    about = f"its description: {made.declared}, and its sums"
    note = "the above, for you; do not publish it"
    yield doc.Files("", [(str(made.table), "the table"), (str(made.about), about), (str(made.note), note)])


def _cost(made: Protected) -> Iterator[doc.Part]:
    few = ", ".join(made.exact[:6]) + (" …" if len(made.exact) > 6 else "")
    exact = f", {len(made.exact):,} of them unrounded ({few})" if made.exact else ""
    yield doc.Text(f"{made.areas:,} areas, {made.columns:,} columns{exact}, {made.sums:,} sums. {made.how.sentence}")
    yield doc.Text(f"Random numbers came from {made.chance}.", doc.QUIET)
    legend = (
        "Mean error: the mean absolute difference; bias: the mean difference with its sign, for all counts and for true "
        "counts under 5; sums off: totals that are not the sum of their parts."
    )
    steps = made.to_json()["steps"]
    table = doc.tabulated(steps, STEPS, "Errors", legend=legend)
    yield doc.Section("Published minus true counts", [table])
    hidden = steps[-1]["hidden"]
    yield doc.Text(f"{hidden:,} counts are not published." if hidden else "")
    yield doc.Text("\n".join(f"Note: {note}" for note in made.notes), "alarm")


@doc.titled("For those who hold the true counts")
def protection_note(made: Protected) -> Iterator[doc.Part]:
    """Say the same to those who hold the truth, and how to do it again."""
    yield doc.Text(
        "This note is for those who hold the true counts. It shows how far the table is from them, and where the random "
        "numbers came from: do not publish it."
    )
    constants = [(f"constant {name}".strip(), f"{value:.6f}") for name, value in made.constants.items()]
    facts = [("from", made.source), ("unrounded", ", ".join(made.exact) or "nothing"), ("declared", made.declared)]
    last = [("version", f"unround {__version__}"), ("command", made.command or "from Python")]
    yield doc.Terms([*facts, *constants, *last])
    yield from _cost(made)
