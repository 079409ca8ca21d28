"""Comparisons and calibrations as pages: pictures and tables in one file that needs nothing else, light or dark."""

from __future__ import annotations

import html
from typing import Any

from unround.comparison.measure import LARGE
from unround.comparison.verdict import number, sentences
from unround.presentation.compare import calibration_sentences, footnotes
from unround.presentation.compare_charts import (
    FAMILIES,
    distance_chart,
    drawn,
    family,
    reliability_chart,
    risk_chart,
    sums_chart,
)

STYLE = """
:root { --ink: #1d2127; --soft: #5c6570; --grid: #d9dde2; --paper: #ffffff; --card: #f6f7f9; --line: #e3e6ea; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8eaed; --soft: #a2abb5; --grid: #3a4048; --paper: #15181c; --card: #1d2126; --line: #30363d; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 40px 24px 64px; }
h1 { font-size: 28px; line-height: 1.2; margin: 0 0 8px; }
h2 { font-size: 19px; margin: 44px 0 4px; }
p.lead, p.what { color: var(--soft); margin: 0 0 14px; max-width: 78ch; }
figure { margin: 0; overflow-x: auto; }
figure svg { color: var(--ink); max-width: 100%; height: auto; display: block; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 7px 10px; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--soft); font-weight: 600; vertical-align: bottom; white-space: normal; }
th:first-child, td:first-child { text-align: left; font-weight: 600; padding-left: 0; }
td small { color: var(--soft); }
tr:first-child td { background: var(--card); }
i.dot { display: inline-block; width: 10px; height: 10px; border-radius: 50%; margin-right: 8px; }
ul { padding-left: 20px; max-width: 92ch; }
li { margin: 6px 0; }
footer { margin-top: 44px; padding-top: 14px; border-top: 1px solid var(--line); color: var(--soft); font-size: 14px; }
"""


def comparison_page(told: dict[str, Any]) -> str:
    """Return a comparison as a page.

    Parameters
    ----------
    told : dict
        `Comparison.to_json()`.
    """
    rows = told["mechanisms"]
    many = f"{told['seeds']} releases each" if told["seeds"] > 1 else "one release each"
    lead = (
        f"{told['areas']:,} areas with {told['cells']:,} counts, from {told['source']}; {many}. Whoever infers has the "
        "published table, the sums that hold in it, and the mechanism."
    )
    parts = [
        _section(
            "What it costs, and what it gives away",
            "To the left: nearer to the truth. Down: less given away. Bars are one standard error over releases, where they "
            "are wide enough to be seen. A ring marks ways under which some counts can be proved.",
            drawn(risk_chart(rows)),
        ),
        _section(
            "What the sums add",
            "The average probability that is put on the true count: from the published count alone (hollow), and with all "
            "sums (filled).",
            drawn(sums_chart(rows)),
        ),
        _section(
            "How far published counts lie from the truth",
            "Shares of all counts by signed distance; lines show what the mechanism promises of large counts. Rounding "
            "leaves 0 as it is, so that more counts are right than it promises.",
            drawn(distance_chart(rows)),
        ),
        "<h2>How far off</h2>" + _errors_table(rows),
        "<h2>What it gives away</h2>" + _risks_table(rows),
    ]
    if any(row["negative"] > 0 for row in rows):
        what = (
            "<p class='what'>Noise makes some counts negative. Hiding that makes them look better, and totals too large.</p>"
        )
        parts.append("<h2>Negative counts published as 0</h2>" + what + _clamped_table(rows))
    parts.append(_list("In words", sentences(told)))
    parts.append(_list("How to read it", footnotes(told)))
    return _page("Ways of publishing, side by side", lead, parts)


def calibration_page(told: dict[str, Any]) -> str:
    """Return a calibration as a page.

    Parameters
    ----------
    told : dict
        `Calibration.to_json()`.
    """
    lead = f"{told['areas']:,} areas published by {told['mechanism']}, from {told['source']}."
    heads = ("", "counts", "flat: off by", "log loss", "fitted: off by", "log loss", "by chance", "trust")
    cells = [
        [
            _text(name),
            f"{group['fitted']['cells']:,}",
            f"{100 * group['flat']['calibration_error']:.2f}",
            f"{group['flat']['log_loss']:.3f}",
            f"{100 * group['fitted']['calibration_error']:.2f}",
            f"{group['fitted']['log_loss']:.3f}",
            f"{100 * group['fitted']['by_chance']:.2f}",
            _text(group["trust"]),
        ]
        for name, group in told["groups"].items()
    ]
    parts = [
        _section(
            "How often claims are right",
            "On the diagonal, claims are right as often as they state; below it they are overconfident. Points are as large "
            "as there are claims.",
            drawn(reliability_chart(told["groups"])),
        ),
        "<h2>By kind of count</h2><p class='what'>Off by: the expected calibration error, in points. By chance: what "
        "perfectly calibrated claims, as many as these, would show.</p>" + _table(heads, cells),
        _list("Which prior to trust", calibration_sentences(told)),
    ]
    return _page("How often claims are right", lead, parts)


# -- tables and text ---------------------------------------------------------------------------------------------------


def _errors_table(rows: list[dict[str, Any]]) -> str:
    heads = (
        "",
        "mean error",
        f"of counts over {LARGE}",
        "promised",
        "root mean square",
        "within 4",
        "bias",
        "sums that do not add up",
        "ε, whole release",
    )
    cells = [
        [
            _named(row),
            _with_error(row, "mean_error", 3),
            _with_error(row, f"mean_error_over_{LARGE}", 3),
            "" if row["expected"] is None else f"{row['expected']['mean_error']:.3f}",
            _with_error(row, "rmse", 3),
            f"{100 * row['within_4']:.1f} %",
            _with_error(row, "bias", 3, "+"),
            f"{100 * row['sums_broken']:.1f} %",
            "none" if row["epsilon"] is None else f"{row['epsilon']:.1f}",
        ]
        for row in rows
    ]
    return _table(heads, cells)


def _risks_table(rows: list[dict[str, Any]]) -> str:
    heads = (
        "",
        "proved",
        "of these wrong",
        "likely",
        "of these right",
        "probability put on the truth",
        "without sums",
        "best guess is right",
        "1s and 2s disclosed",
    )
    cells = [
        [
            _named(row),
            number(row["proved"]),
            number(row["proved_wrong"]),
            number(row["likely"]),
            f"{100 * row['likely_right'] / row['likely']:.1f} %" if row["likely"] else "",
            _with_error(row, "truth_probability", 3),
            f"{row['truth_probability_alone']:.3f}",
            f"{100 * row['guessed']:.1f} %",
            number(row["small_disclosed"]),
        ]
        for row in rows
    ]
    return _table(heads, cells)


def _clamped_table(rows: list[dict[str, Any]]) -> str:
    heads = (
        "",
        "negative",
        "mean error as drawn",
        "clamped",
        "root mean square as drawn",
        "clamped",
        "bias as drawn",
        "clamped",
        "bias of true zeros, clamped",
    )
    cells = [
        [
            _named(row),
            f"{100 * row['negative']:.1f} %",
            f"{row['mean_error']:.3f}",
            f"{row['clamped_mean_error']:.3f}",
            f"{row['rmse']:.3f}",
            f"{row['clamped_rmse']:.3f}",
            f"{row['bias']:+.3f}",
            f"{row['clamped_bias']:+.3f}",
            f"{row['clamped_bias_of_zeros']:+.2f}",
        ]
        for row in rows
        if row["negative"] > 0
    ]
    return _table(heads, cells)


def _named(row: dict[str, Any]) -> str:
    return f"<i class='dot' style='background:{FAMILIES[family(row['name'])]}'></i>{_text(row['name'])}"


def _with_error(row: dict[str, Any], name: str, digits: int, sign: str = "") -> str:
    spread = row["standard_error"][name]
    shown = f"{row[name]:{sign}.{digits}f}"
    return shown if spread is None else f"{shown} <small>± {spread:.{digits}f}</small>"


def _table(heads: tuple[str, ...], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{_text(one)}</th>" for one in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _section(title: str, what: str, content: str) -> str:
    return f"<h2>{_text(title)}</h2><p class='what'>{_text(what)}</p><figure>{content}</figure>"


def _list(title: str, items: list[str]) -> str:
    return f"<h2>{_text(title)}</h2><ul>" + "".join(f"<li>{_text(item)}</li>" for item in items) + "</ul>"


def _text(text: str) -> str:
    return html.escape(str(text))


def _page(title: str, lead: str, parts: list[str]) -> str:
    from unround._version import __version__

    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'><meta name='color-scheme' content='light dark'>"
        f"<title>{_text(title)}</title><style>{STYLE}</style></head><body><main><h1>{_text(title)}</h1>"
        f"<p class='lead'>{_text(lead)}</p>{''.join(parts)}"
        f"<footer>unround {__version__}. Model estimates; not official counts.</footer></main></body></html>\n"
    )
