"""How results look in a notebook: a card of their own, in light colours, which needs nothing from elsewhere."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from unround.show import site, words

if TYPE_CHECKING:
    from rich.console import Console

    from unround.audits import AuditFolder

WIDTH = 100
"""Columns of text that is printed."""

MOST_FINDINGS = 8
"""What a card lists; the rest is in the tables behind it."""

Show = Callable[["Console"], None]


def text(show: Show) -> str:
    """Return what a terminal would show, without colours."""
    from unround.show.terminal import VisibleConsole

    written = io.StringIO()
    show(VisibleConsole(file=written, width=WIDTH, highlight=False, color_system=None))
    return "\n".join(line.rstrip() for line in written.getvalue().strip("\n").splitlines())


def audit_card(folder: AuditFolder) -> str:
    """Return the verdict of an audit, how many claims it makes, and the first of them."""
    from unround.show.check import fit_in_words

    summary, findings = folder.summary, folder.first_findings(MOST_FINDINGS)
    claims = sum(summary[kind] for kind in words.CLAIMS)
    return _card(
        "audit.html",
        verdict=words.verdict(summary),
        claims=claims,
        by_value=summary["sensitive_claims"]["by_value"],
        summary=summary,
        check=fit_in_words(summary.get("check")),
        notes=words.not_listed(summary),
        axes=findings.columns[: findings.columns.index("published")],  # what says where: codes and names
        findings=findings.to_dicts(),
        more=claims - findings.height,
        path=str(folder.path),
        notice=words.notice(summary["product"]),
    )


def _card(template: str, **context: Any) -> str:
    from markupsafe import Markup

    from unround.show.page import card_style

    return site.render(f"notebook/{template}", context, style=Markup(card_style()))
